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


def duration(seconds: float) -> str:
    """A time in its two largest units.

    >>> duration(93_600)
    '1 day 2 hours'
    """
    minutes = max(1, round(seconds / 60))
    units = (("day", minutes // 1440), ("hour", minutes // 60 % 24), ("minute", minutes % 60))
    words = [f"{count} {unit}{'s' * (count != 1)}" for unit, count in units if count]
    return " ".join(words[:2])
