"""The exercise lost-gradient: a cast between the leaf and the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.engine.measuring import measured
from course.notebook.demands import is_by_autograd, seen
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


def _cast_at_the_end(values: list[float]) -> Any:
    x = tk.tensor(values, requires_grad=True)
    (x**3).sum().backward()
    return x.grad.double()


def _gradient_at(x: Any) -> Any:
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

    **Output:** the gradient of the sum of their cubes at these values, as autograd finds it, a
    float64 vector with all the digits of float64. The list stays as it is.

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
        "cast at the end": (
            _cast_at_the_end,
            "The gradient is computed in float32, and the cast at the end brings no digits back. "
            "Say the dtype where the tensor is made.",
            r"\.grad\.(double|to)\(",
        ),
        "float32 first": (
            lambda values: _gradient_at(tk.tensor(values).double().requires_grad_()),
            "`tk.tensor` makes float32 of Python's floats, and a cast afterwards brings no digits "
            "back. Say the dtype there: `dtype=tk.float64`.",
            r"tensor\((?!.*float64)",
        ),
        "still cast": (
            _cast_after_asking,
            "The gradient is None: only leaves keep gradients, and the result of a cast is no "
            "leaf. Name float64 where the tensor is made.",
            r"\.(double|to)\(",
        ),
        "by a formula": (
            lambda values: 3 * tk.tensor(values, dtype=tk.float64) ** 2,
            "The numbers are right, and autograd did not find them. Let it compute the gradient: "
            "`backward()` on the sum, then `.grad` of the leaf.",
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
        # float32 holds neither these nor their slopes
        a, b, c, d, e, f, g, h = [n + 0.1 for n in draw.integers(8, 600, 999)]
        yield case([a, b, c, d], label="any four numbers")
        yield case([e, -f], label="with a minus")
        yield case([g, 0.0], label="with a zero")
        yield case([h], label="a single number (size 1)")
        yield case([draw.integer(1, 9), -draw.integer(1, 9)], label="whole numbers (int)")
        yield case([], label="no numbers (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The gradient, whether autograd has found it, and whether it has the digits of float32."""
        exact = 3 * tk.tensor(args[0], dtype=tk.float64) ** 2
        gradient, work = measured(answer, *args)
        is_float64 = isinstance(gradient, tk.Tensor) and gradient.dtype is tk.float64
        if not is_float64:
            return gradient
        looked_at = seen(
            "gradient", gradient, exact, {"by autograd": is_by_autograd(gradient, work["doubled"])}
        )
        is_near = gradient.shape == exact.shape and tk.allclose(gradient, exact, rtol=1e-6, atol=0)
        is_float32 = is_near and not tk.allclose(gradient, exact, rtol=1e-12, atol=0)
        looked_at["it has the digits of float32"] = is_float32
        return looked_at
