"""Old names, until all branches are merged."""

from tensorkit.autograd.node import FREED as FREED, INFERENCE as INFERENCE, LEAF as LEAF, VIEW as VIEW  # noqa
from tensorkit.autograd.node import Kind as Mark  # noqa
