"""Old names, until all branches are merged."""

from tensorkit.autograd.node import FREED, INFERENCE, LEAF, VIEW  # noqa
from tensorkit.autograd.node import Kind as Mark  # noqa
