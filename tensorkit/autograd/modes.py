"""Old names, until all branches are merged."""

from tensorkit.autograd.grad_mode import *  # noqa
from tensorkit.autograd.grad_mode import _State as _State
