"""Old names, until all branches are merged."""

from tensorkit.autograd.inplace import version_of as version_of  # noqa
