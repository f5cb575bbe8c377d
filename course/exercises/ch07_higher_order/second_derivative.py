"""The exercise second-derivative: the second derivative of a polynomial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.engine.measuring import measured
from course.notebook.demands import is_by_autograd, seen
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def second_derivative(coefficients: list[float], x: float) -> float:
    """The second derivative of a polynomial at `x`, by autograd."""
    t = tk.tensor(x, dtype=tk.float64, requires_grad=True)
    y = t * 0
    for power, coefficient in enumerate(coefficients):
        y = y + coefficient * t**power
    (slope,) = tk.autograd.grad(y, t, create_graph=True)
    (curvature,) = tk.autograd.grad(slope, t)
    return curvature.item()


def _polynomial(coefficients: list[float], t: tk.Tensor) -> tk.Tensor:
    y = t * 0
    for power, coefficient in enumerate(coefficients):
        y = y + coefficient * t**power
    return y


def _derived(coefficients: list[float]) -> list[float]:
    return [power * number for power, number in enumerate(coefficients)][1:] or [0.0]


def _value(coefficients: list[float], x: float) -> float:
    return _polynomial(coefficients, tk.tensor(x, dtype=tk.float64)).item()


def _first_derivative(coefficients: list[float], x: float) -> float:
    return _value(_derived(coefficients), x)


def _both_added(coefficients: list[float], x: float) -> float:
    return _first_derivative(coefficients, x) + second_derivative(coefficients, x)


def _powers_from_one(coefficients: list[float], x: float) -> float:
    return second_derivative([0.0, *coefficients], x)


def _without_the_graph(coefficients: list[float], x: float) -> float:
    t = tk.tensor(x, dtype=tk.float64, requires_grad=True)
    (slope,) = tk.autograd.grad(_polynomial(coefficients, t), t)
    (curvature,) = tk.autograd.grad(slope, t)
    return curvature.item()


@exercise(
    "second-derivative", answer=second_derivative, points=0, difficulty=3, minutes=8, further=True
)
class SecondDerivative(Exercise):
    """The second derivative of a polynomial

    **Input:** `coefficients`, a list of two or more floats `[c0, c1, c2, ...]` for the polynomial
    $c_0 + c_1 x + c_2 x^2 + \\dots$, and `x`, a float.

    **Output:** its second derivative at `x`, a Python float. Let autograd find it, in float64.
    `coefficients` stays as it is.

    ```python
    second_derivative([0.0, 0.0, 0.0, 1.0], 3.0)
    # 18.0: the polynomial is x³, its second derivative 6x
    ```
    """

    hints = (
        "Make a float64 tensor that requires grad, compute the polynomial with it, and ask "
        "`tk.autograd.grad` for the slope.",
        "The slope must be recorded itself to be differentiated again: `create_graph=True`. "
        "`tk.autograd.grad` returns a tuple: `(slope,) = ...`.",
    )
    usual_mistakes = {
        "the first derivative": (
            _first_derivative,
            "This is the slope. Differentiate once more: the gradient of the slope.",
        ),
        "both added": (
            _both_added,
            "These are the first and the second derivative added up: backward accumulates in "
            "`.grad`. `tk.autograd.grad` returns a gradient and stores nothing.",
        ),
        "powers from 1": (
            _powers_from_one,
            "Your powers are one too high. `coefficients[0]` belongs to x to the power of 0.",
        ),
        "by a formula": (
            lambda coefficients, x: _value(_derived(_derived(coefficients)), x),
            "The number is right, and autograd did not find it. Compute the polynomial with a "
            "tensor that requires grad, and ask autograd twice: for the slope, then for the slope "
            "of the slope.",
        ),
        "without the graph": (
            _without_the_graph,
            "The slope has no history, so it cannot be differentiated. `create_graph=True` belongs "
            "into the call that computes the slope.",
            r"^(?!(?s:.*)create_graph)",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbers(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 1, 9)]

        yield case([0.0, 0.0, 0.0, 1.0], 3.0, label="x³ at 3")
        yield case([1.0, 3.0, 1.0], 2.0, label="x² + 3x + 1 at 2")
        yield case(
            [float(number) for number in draw.integers(5, 1, 5)], 2.0, label="any polynomial"
        )
        constant, linear, square, cube = numbers(4)
        at = -draw.integer(1, 6) / 2
        yield case([constant, linear, -square, cube], at, label="at a negative number")
        yield case(numbers(2), 3.0, label="a straight line")
        # 6x and the rest nearly cancel, so that float32 keeps few digits
        at, step = draw.integer(3, 9) / 7, draw.integer(1, 9) / 1000
        yield case([0.0, 0.0, step - 3 * at, 1.0], at, label="nearly no curvature")
        yield case(draw.integers(4, 1, 9), draw.integer(2, 5), label="whole numbers (int)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The number, and whether autograd has found it in two walks."""
        right = self.reference(*args)
        curvature, work = measured(answer, *args)
        if not isinstance(curvature, float):
            return curvature
        demands = {"by autograd": is_by_autograd(curvature, work["doubled"], walks=2)}
        return seen("second derivative", curvature, right, demands)
