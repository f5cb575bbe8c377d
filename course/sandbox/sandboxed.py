"""What learners' notebooks import as `course` while they are graded: the five names, and no more.

It becomes `course/__init__.py` in the sandbox. The checks themselves run on the other side.
"""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["check", "hint", "progress", "solution", "transplant"]


class Placeholder:
    """Stands where a notebook shows a check, a hint, a solution or its progress."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def __float__(self) -> float:
        return 0.0


def check(*_: object, **__: object) -> Placeholder:
    """The check runs apart from this process."""
    return Placeholder("Checked apart from this cell.")


def hint(*_: object, **__: object) -> Placeholder:
    return Placeholder("Hints open in your own notebook.")


def solution(*_: object, **__: object) -> Placeholder:
    return Placeholder("Solutions open in your own notebook.")


def progress(*_: object, **__: object) -> Placeholder:
    return Placeholder("Your points stand below each exercise.")


@contextmanager
def transplant(*_: object, **__: object) -> Iterator[Placeholder]:
    """The library keeps its own functions here: what a picture shows is not graded."""
    yield Placeholder("Tried out in your own notebook.")
