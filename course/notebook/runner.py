"""Runs an answer on one case and says what happened, whatever it does.

An answer may raise, print, warn, loop, exit or change its arguments. None of that leaves this
module: the result is an `Outcome`. Data in words: a *budget* is the time left to all cases of one
check together, so that an endless loop costs a learner a few seconds and not a few per case.
"""

from __future__ import annotations

import os
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tensorkit as tk
from course.notebook import compare
from course.notebook.exercise import Case, Exercise
from course.notebook.plain import plain
from course.notebook.quiet import run_quietly
from course.shared.errors import TimeLimit


@dataclass
class Outcome:
    """What an answer did in one case."""

    ended: str = "returned"
    """`returned`, `raised`, `timed out` or `not run`."""
    value: Any = None
    error: BaseException | None = None
    message: tuple[str, str] = ("", "")
    """First line of the exception's text, and what follows it."""
    place: str = ""
    """The line of the learner's code that raised, as it can be shown."""
    changed: dict[int, str] = field(default_factory=dict)
    """Positions of the arguments that the answer changed; of each, what was changed."""
    printed: str = ""
    warned: list[str] = field(default_factory=list)
    left_changed: list[str] = field(default_factory=list)
    """Settings and names that the answer changed and that were put back, in words."""

    def agrees_with(self, other: Outcome) -> bool:
        """True if both did the same: equal values, or exceptions of the same class."""
        if self.ended != other.ended:
            return False
        if self.ended == "raised":
            return type(self.error) is type(other.error)
        if self.changed != other.changed:
            return False
        return compare.difference(self.value, other.value) is None


class Budget:
    """Seconds left to the cases of one check."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())


def run_case(
    exercise: Exercise, answer: Any, given: Case, untouched: Case, budget: Budget
) -> Outcome:
    """The outcome of `answer` in the case `given`, as plain data.

    untouched: the same case drawn again, to see whether the arguments were changed.
    Raises KeyboardInterrupt only: whoever presses Stop means the whole check.
    """
    if not budget.left:
        return Outcome("not run")
    outcome = Outcome()
    arguments: list[Any] = []

    def run() -> None:
        try:
            outcome.value = plain(exercise.run(answer, *given.args))
            arguments[:] = map(plain, given.args)
        except (KeyboardInterrupt, TimeLimit):
            raise
        except BaseException as error:
            outcome.ended, outcome.error = "raised", error
            outcome.message, outcome.place = compare.text_of(error), _place(error, answer)

    noted = run_quietly(run, budget.left, _refused_to(exercise, answer))
    if noted.is_late:
        outcome.ended = "timed out"
    outcome.printed, outcome.left_changed = noted.printed, noted.left_changed
    outcome.warned = [compare.text_of(text)[0] for text in noted.warned]
    if outcome.ended == "returned" and not exercise.changes_arguments:
        outcome.changed = changed(arguments, untouched)
    return outcome


def changed(arguments: list[Any], untouched: Case) -> dict[int, str]:
    """The positions of the arguments that are no longer as they were drawn, with what changed."""
    pairs = enumerate(zip(arguments, untouched.args, strict=True))
    changes = {position: _changed_in(now, before) for position, (now, before) in pairs}
    return {position: change for position, change in changes.items() if change}


def _changed_in(now: Any, before: Any) -> str:
    """What of a value is no longer as it was: "values", "requires_grad", "grad" or nothing.

    Numbers are as they were if no bit of them has changed: what is added and subtracted again may
    come back rounded. An answer that puts all bits back leaves the argument as it was.
    """
    if compare.difference(now, before) is not None or _bits(now) != _bits(before):
        return "values"
    if isinstance(now, dict | list | tuple):
        old = before.values() if isinstance(before, dict) else before
        new = [now[key] for key in before] if isinstance(before, dict) else now
        return next(filter(None, map(_changed_in, new, old)), "")
    if not isinstance(now, tk.Tensor):
        return ""
    if now.requires_grad != before.requires_grad:
        return "requires_grad"
    grads = [tensor.grad if tensor.is_leaf else None for tensor in (now, before)]
    return "grad" if compare.difference(*grads) is not None else ""


def _bits(value: Any) -> bytes:
    """The bits of a tensor, an array or a float, in the order of the elements; else nothing."""
    if isinstance(value, tk.Tensor):
        value = value.detach().cpu().numpy()
    is_numeric = isinstance(value, np.ndarray | np.generic | float)
    return np.asarray(value).tobytes() if is_numeric else b""


def _refused_to(exercise: Exercise, answer: Any) -> tuple[str, ...]:
    """The calls that an answer must do without; usual mistakes may build on a right answer."""
    is_ours = any(answer is mistake[0] for mistake in exercise.usual_mistakes.values())
    return () if is_ours else exercise.without


def _place(error: BaseException, answer: Any) -> str:
    """The innermost line of the learner's own code: `line 3: return a + b`.

    A line of the answer's own cell comes before one of a cell that it calls.
    """
    if isinstance(error, RecursionError):
        return ""
    stdlib = os.__file__.rpartition("os.py")[0]
    libraries = (tk.__path__[0], str(Path(__file__).parents[1]), stdlib)
    cell = getattr(getattr(answer, "__code__", None), "co_filename", None)
    frames = [
        frame
        for frame in reversed(traceback.extract_tb(error.__traceback__))
        if frame.line and not frame.filename.startswith(libraries)
        if "site-packages" not in frame.filename
    ]
    for frame in sorted(frames, key=lambda frame: frame.filename != cell):
        addition = "" if cell in (None, frame.filename) else " of another cell"
        return f"line {frame.lineno}{addition}: {frame.line}"
    return ""
