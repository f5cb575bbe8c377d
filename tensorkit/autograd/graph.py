"""Old names, until all branches are merged."""

from tensorkit.autograd.inplace import save_result as save_result  # noqa
from tensorkit.autograd.node import *  # noqa
