"""The exercise lost-gradient: a cast between the leaf and the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def slopes_of_cubes(values: list[float]) -> tk.Tensor:
    """The gradient of the sum of the cubes of these numbers, in float64."""
    x = tk.tensor(values, dtype=tk.float64, requires_grad=True)
    (x**3).sum().backward()
    return x.grad


def _cast_after_asking(values: list[float]) -> Any:
    x = tk.tensor(values, requires_grad=True).double()
    (x**3).sum().backward()
    return x.grad


def _in_float32(values: list[float]) -> Any:
    x = tk.tensor(values, requires_grad=True)
    (x**3).sum().backward()
    return x.grad


def _of_the_mean(values: list[float]) -> Any:
    x = tk.tensor(values, dtype=tk.float64, requires_grad=True)
    (x**3).mean().backward()
    return x.grad


def _the_cubes(values: list[float]) -> Any:
    return tk.tensor(values, dtype=tk.float64) ** 3


@exercise(
    "lost-gradient",
    answer=slopes_of_cubes,
    stub=_cast_after_asking,
    points=2,
    difficulty=2,
    minutes=5,
)
class LostGradient(Exercise):
    """The gradient that is None

    The code below should give the gradient of `x³ + y³ + ...`, and gives `None`. Nothing is
    wrong with the formula. Find out which tensor is the leaf, then repair it.

    **Input:** `values`, a list of Python numbers.

    **Output:** the gradient of the sum of their cubes at these values, a float64 vector. The list
    stays as it is.

    ```python
    slopes_of_cubes([1.0, 2.0])
    # tensor([ 3., 12.], dtype=torch.float64)
    ```
    """

    hints = (
        "Two tensors are made in the first line. Which of them is the leaf, and which one has the "
        "name `x`?",
        "`.double()` is an operation: its result has a history, and gradients are kept by leaves. "
        "Make the leaf float64 from the start.",
    )
    usual_mistakes = {
        "in float32": (
            _in_float32,
            "The gradient is there, in float32. Say the dtype where the tensor is made.",
        ),
        "of the mean": (
            _of_the_mean,
            "This is the gradient of the mean: every slope is divided by the number of elements. "
            "Take the sum.",
        ),
        "still cast": (
            _cast_after_asking,
            "The gradient is None: gradients are kept by leaves, and what a cast gives is none. "
            "Name float64 where the tensor is made.",
            r"\.(double|to)\(",
        ),
        "the cubes": (
            _the_cubes,
            "These are the cubes. Asked for is the gradient of their sum, which backward leaves in "
            "`.grad` of the leaf.",
        ),
        "of the squares": (
            lambda values: 2 * tk.tensor(values, dtype=tk.float64),
            "This is the slope of a square. Here the numbers are cubed.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case([1.0, 2.0], label="two numbers")
        yield case([number + 0.001 for number in draw.floats(4, 1, 9)], label="any four numbers")
        # no float32 is equal to these
        a, b, c, d, e = [round(number + 0.001, 3) for number in draw.floats(5, 0.1, 2)]
        yield case([a, -b, c], label="with fractions")
        yield case([d, 0.0, -e], label="with a zero")
        one = draw.number(4, 9)
        yield case([round(one + 0.001, 3)], label="a single number (size 1)")
        yield case([draw.integer(1, 9), -draw.integer(1, 9)], label="whole numbers (int)")
        yield case([], label="no numbers (empty)")
