"""Old names, until all branches are merged."""

from tensorkit.autograd.inplace import *  # noqa
from tensorkit.autograd.node import *  # noqa
