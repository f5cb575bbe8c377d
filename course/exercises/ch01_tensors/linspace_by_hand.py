"""The exercise linspace-by-hand: numbers at equal distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import no_type_check

import numpy as np

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.rules import Rule


def evenly_spaced(start: float, end: float, n: int) -> tk.Tensor:
    """`n` numbers at equal distances from `start` to `end`, both included."""
    step = (end - start) / max(n - 1, 1)
    return start + step * tk.arange(n)


@no_type_check
def _spaced_program(start: float, end: float, n: int) -> tk.Tensor:
    step = ...  # from each number to the next; for n = 1 there is no next one
    return ...  # n numbers that begin at start and lie this far apart


def _without_the_end(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) / max(n, 1)
    return start + step * tk.arange(n)


def _one_too_many(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) / max(n, 1)
    return start + step * tk.arange(n + 1)


def _divides_by_no_gap(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) / (n - 1)
    return start + step * tk.arange(n)


def _floor_of_the_width(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) // (n - 1)
    return start + step * tk.arange(n)


def _forgets_the_start(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) / max(n - 1, 1)
    return step * tk.arange(n)


def _with_numpy(start: float, end: float, n: int) -> tk.Tensor:
    return tk.from_numpy(np.linspace(start, end, n))


def _arange_to_the_end(start: float, end: float, n: int) -> tk.Tensor:
    return tk.arange(start, end, (end - start) / max(n - 1, 1))


@exercise(
    "linspace-by-hand",
    answer=evenly_spaced,
    stub=_spaced_program,
    kind="complete",
    points=0,
    difficulty=2,
    minutes=6,
    further=True,
    without=("linspace",),
)
class LinspaceByHand(Exercise):
    """linspace by hand

    **Input:** two numbers `start` and `end`, and `n`, how many numbers are wanted (0 or more).

    **Output:** a float32 tensor of shape `[n]`: `n` numbers at equal distances, the first one
    `start`, the last one `end`. For `n` equal to 1 it holds `start` alone.

    ```python
    evenly_spaced(2, 5, 4)
    # tensor([2., 3., 4., 5.])
    ```

    `tk.linspace` does this, and switches itself off while your answer runs. NumPy's `linspace` is
    no answer either. `tk.arange` and some arithmetic are enough. Fill the gaps.
    """

    rules = (
        Rule(
            "by hand",
            "Compute the numbers: `tk.arange(n)`, times the width of a gap, plus `start`.",
            refuses=("linspace", ".linspace", ".r_"),
        ),
    )
    hints = (
        "Four numbers in a row have three gaps between them. How wide is one gap?",
        "`tk.arange(n)` counts 0, 1, 2, ... Multiply it by the width of a gap, then shift it so "
        "that it begins at `start`.",
        "The width is `(end - start) / (n - 1)`. For `n` equal to 1 that divides by 0, and the "
        "width does not matter there: `max(n - 1, 1)` is one way out.",
    )
    usual_mistakes = {
        "arange to the end": (
            _arange_to_the_end,
            "`tk.arange(start, end, step)` stops before `end`, or behind it where the step was "
            "rounded. Count the numbers, `tk.arange(n)`, and compute each from its place.",
            r"arange\(.*,",
        ),
        "the end is missing": (
            _without_the_end,
            "Your last number falls short of `end`. You divided by the number of points; divide "
            "by the number of gaps between them, which is one less.",
        ),
        "one number too many": (
            _one_too_many,
            "You return `n + 1` numbers: `n` gaps, and so one point too many. Begin with "
            "`tk.arange(n)` and ask how many gaps `n` points have.",
        ),
        "a single point": (
            _divides_by_no_gap,
            "With one point there is no gap, and `n - 1` is 0: the division fails. Treat `n` "
            "equal to 1 apart, or never divide by less than 1.",
        ),
        "rounds the width down": (
            _floor_of_the_width,
            "The width of a gap is rounded down to a whole number, which is what `//` does. A gap "
            "can be 0.25 wide: divide with `/`.",
        ),
        "the start is missing": (
            _forgets_the_start,
            "The distances are right, and every result begins at 0. Add `start` at the end.",
        ),
        "float64 from NumPy": (
            _with_numpy,
            "The numbers are right, in float64; asked for is float32. Functions of NumPy give "
            "float64, and so does `dtype=tk.float64`. The product of `tk.arange` and a Python "
            "float is float32.",
        ),
        "brackets missing": (
            lambda start, end, n: start + (end - start / max(n - 1, 1)) * tk.arange(n),
            "Only `start` is divided: `/` comes before `-`. Put brackets around `end - start`.",
        ),
        "begins a step late": (
            lambda start, end, n: start + (end - start) / max(n - 1, 1) * tk.arange(1, n + 1),
            "Your numbers begin one step after `start`. `tk.arange(n)` begins at 0, so that the "
            "first one is `start` itself.",
        ),
        "the width backwards": (
            lambda start, end, n: start + (start - end) / max(n - 1, 1) * tk.arange(n),
            "You go away from `end`: the width is `end - start`, divided by the number of gaps.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(0, 1, draw.integer(4, 12), label="from 0 to 1")
        yield case(draw.integer(1, 9), draw.integer(-9, -1), draw.integer(4, 6), label="downwards")
        start = draw.number(-9, -1)
        end = round(start + draw.integer(10, 18) + 0.5, 2)  # so that no width is whole
        yield case(start, end, draw.integer(6, 9), label="any two ends")
        point = draw.number(1, 9)
        yield case(point, point, draw.integer(3, 6), label="both ends the same")
        start, end = draw.distinct(2, 10, 29)
        yield case(start, end, 2, label="the two ends alone")
        start, end = draw.distinct(2, 1, 9)
        yield case(start, end, 1, label="one number (size 1)")
        start = draw.number(-9, -1)
        yield case(start, draw.integer(1, 9), 1, label="one number, below zero (size 1)")
        yield case(1, 4, 0, label="no number (empty)", weight=0.25)
