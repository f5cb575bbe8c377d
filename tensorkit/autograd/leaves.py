"""Old names, until all branches are merged."""

from tensorkit.autograd.hooks import *  # noqa
