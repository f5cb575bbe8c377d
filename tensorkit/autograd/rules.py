"""Old names, until all branches are merged."""

from tensorkit.autograd.node import Rule as Rule  # noqa
