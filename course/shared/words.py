"""Words that messages of several commands share."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int) -> str:
    """The first of some names, and how many more there are.

    >>> listed(["ada", "bob", "cem"], 2)
    'ada, bob and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
