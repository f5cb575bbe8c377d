"""Two small exercises on which the machinery of the course is tested, apart from any chapter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise


def strides_of(shape):  # type: ignore[no-untyped-def]  # as it stands in a learner's cell
    """Strides, in elements, of a contiguous tensor of this shape.

    >>> strides_of((3, 4))
    (4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def bytes_apart(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(4 * stride for stride in strides_of(shape))


def from_the_left(shape: tuple[int, ...]) -> tuple[int, ...]:
    return strides_of(shape[::-1])[::-1]


@exercise("sample-strides", answer=strides_of, points=3, difficulty=2, minutes=8)
class StridesOf(Exercise):
    """Row-major strides of a shape

    Write `strides_of(shape)`.
    """

    hints = ("How far apart are two neighbours?", "Walk the shape from the right.")
    usual_mistakes: ClassVar = {
        "counts bytes": (bytes_apart, "These are bytes: divide by the element size."),
        "column-major": (from_the_left, "You started from the left."),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case((3, 4), label="a matrix")
        yield case((draw.integer(3, 9),), label="a vector", weight=0.5)
        yield case(tuple(draw.distinct(3, 2, 6)), label="three dimensions", weight=1.5)


def negated(t):  # type: ignore[no-untyped-def]
    """The tensor with every sign turned."""
    return -t


def broken_negated(t):  # type: ignore[no-untyped-def]
    t *= -1
    return t


@exercise("sample-negated", answer=negated, stub=broken_negated, points=2, difficulty=1, minutes=2)
class Negated(Exercise):
    """Turn every sign

    Mend `negated(t)`.
    """

    hints = ("Whose tensor is it?", "There is an operator for it.")
    usual_mistakes: ClassVar = {
        "absolute value": (lambda t: abs(t), "That removes signs."),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, -2.0]), label="a vector")
        yield case(tk.tensor(3), label="a whole number")


@exercise("sample-dtype", points=1, difficulty=1, minutes=3)
class WhichDtype(Prediction):
    """Which dtype?

    Predict, then run.
    """

    name = "dtypes"
    ask = "Replace each ... by a dtype."
    hints = ("Look at the decimal point.", "One float makes all of them floats.")
    questions: ClassVar = {
        "tk.tensor([1, 2])": "Whole numbers become int64.",
        "tk.tensor([1, 2.0])": "One decimal point makes all of them float32.",
        "tk.tensor(1) / tk.tensor(2)": "Division is true division.",
    }
    usual_mistakes: ClassVar = {
        "integers stay": (
            {"tk.tensor([1, 2.0])": "int64", "tk.tensor(1) / tk.tensor(2)": "int64"},
            "An integer dtype cannot hold these.",
        )
    }

    def observe(self, value: Any) -> str:
        return str(value.dtype).removeprefix("torch.")
