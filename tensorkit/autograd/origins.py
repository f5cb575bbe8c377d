"""Old names, until all branches are merged."""

from tensorkit.autograd.recording import *  # noqa
