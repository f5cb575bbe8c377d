"""What learners' notebooks import as `course` while they are graded: the five names, and no more.

It becomes `course/__init__.py` in the sandbox. The checks themselves run on the other side.
"""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["check", "hint", "progress", "solution", "transplant"]


class Later:
    """Stands where a notebook shows a check, a hint, a solution or its progress."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def __float__(self) -> float:
        return 0.0


def check(*_: object, **__: object) -> Later:
    """The check runs apart from this process."""
    return Later("Checked apart from this cell.")


def hint(*_: object, **__: object) -> Later:
    return Later("Hints open in your own notebook.")


def solution(*_: object, **__: object) -> Later:
    return Later("Solutions open in your own notebook.")


def progress(*_: object, **__: object) -> Later:
    return Later("Your points stand below each exercise.")


@contextmanager
def transplant(*_: object, **__: object) -> Iterator[Later]:
    """The library keeps its own functions here: what a picture shows is not graded."""
    yield Later("Tried out in your own notebook.")
