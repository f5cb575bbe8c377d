"""What an exercise makes of what `course.engine.measuring` has measured of an answer."""

from __future__ import annotations

from typing import Any

from course.notebook import compare
from course.notebook.plain import Seen


def seen(name: str, value: Any, right: Any, demands: dict[str, bool]) -> Seen:
    """A value under its name and, if it is right, which further demands the answer has met."""
    is_right = compare.difference(value, right) is None
    return Seen({name: value, **demands} if is_right else {name: value})


def is_by_autograd(result: Any, doubled: Any, walks: int = 1) -> bool:
    """Whether `result` is a gradient that autograd has computed.

    doubled: the answer's result in a second run, in which `course.engine.measuring` doubled the
    gradient with which each backward pass begins; `...` if that run raised. walks: how many
    backward passes, each through the one before, the result takes. Autograd's result is then
    `2**walks` times as large; that of a formula stays the same.
    """
    return doubled is ... or compare.difference(doubled, result * 2**walks) is None
