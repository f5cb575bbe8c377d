"""The exercise saved-and-changed: a result that is saved and then written to."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def slope_of_square(x: tk.Tensor) -> tk.Tensor:
    """The gradient of the sum of (exp(x) + 1)²."""
    x = x.clone().requires_grad_()
    y = x.exp()
    y = y + 1
    (y * y).sum().backward()
    return x.grad


def _changed_after_saving(x: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    y = x.exp()
    y += 1
    (y * y).sum().backward()
    return x.grad


def _through_data(x: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    y = x.exp()
    y.data += 1
    (y * y).sum().backward()
    return x.grad


def _through_a_detached_name(x: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    y = x.exp()
    z = y.detach() + 1
    (z * y).sum().backward()
    return x.grad


def _without_the_one(x: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    y = x.exp()
    (y * y).sum().backward()
    return x.grad


def _not_squared(x: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    (x.exp() + 1).sum().backward()
    return x.grad


def _under_no_grad(x: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    with tk.no_grad():
        y = x.exp() + 1
    (y * y).sum().backward()
    return x.grad


def _still_in_place(x: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    y = x.exp()
    with tk.no_grad():
        y.add_(1)
    (y * y).sum().backward()
    return x.grad


def _one_inside(x: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    ((x + 1).exp() ** 2).sum().backward()
    return x.grad


@exercise(
    "saved-and-changed",
    answer=slope_of_square,
    stub=_changed_after_saving,
    points=4,
    difficulty=3,
    minutes=7,
)
class SavedAndChanged(Exercise):
    """Changed behind its back

    The formula of `exp` needs its result, so the node saves it. The code below then writes into
    this tensor, and backward raises an error. Call it as in the example, in a new cell, and
    read the error; then repair the code.

    **Input:** `x`, a float tensor of any shape and dtype.

    **Output:** the gradient of the sum of `(exp(x) + 1)²` at `x`. `x` itself stays as it is.

    ```python
    slope_of_square(tk.tensor([0.0]))
    # tensor([4.]): 2 · (1 + 1) · 1
    ```
    """

    hints = (
        "Which line writes into a tensor that is there already? Who still needs the old numbers?",
        "`y = y + 1` makes a new tensor and leaves the result of `exp` alone.",
    )
    usual_mistakes = {
        "through .data": (
            _through_data,
            "No error now, and a wrong gradient: exp's formula used the changed numbers. What is "
            "written through `.data` or a NumPy array is not counted as a version, so nothing "
            "notices it. Make a new tensor instead.",
        ),
        "one factor detached": (
            _through_a_detached_name,
            "A detached factor counts as a constant: half of the gradient is missing. Add 1 to the "
            "recorded tensor.",
        ),
        "without the 1": (
            _without_the_one,
            "The 1 is gone from the formula. It must be added, only not in place.",
        ),
        "not squared": (
            _not_squared,
            "This is the gradient of exp(x) + 1. The formula squares it: keep the square.",
        ),
        "under no_grad": (
            _under_no_grad,
            "No way leads back to `x`: inside `no_grad` nothing is recorded, and `detach` cuts the "
            "history off. Record everything, and write into nothing.",
        ),
        "still in place": (
            _still_in_place,
            "The result of `exp` is still written to. Inside `no_grad` and with `add_` it is the "
            "same memory, and keeping the graph changes nothing. Make a new tensor, `y = y + 1`.",
        ),
        "the 1 inside": (
            _one_inside,
            "The 1 stands inside the `exp` now. It is added to the result of `exp`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([0.0]), label="at 0")
        yield case(tk.tensor(draw.floats(3, 0.5, 2)), label="anywhere")
        rows = [draw.floats(2, 0.5, 2), draw.floats(2, -2, -0.5)]
        yield case(tk.tensor(rows), label="a matrix")
        yield case(tk.tensor(draw.number(0.5, 2)), label="a single number (0-d)")
        yield case(tk.tensor(draw.floats(2, -1, 1), dtype=tk.float64), label="float64")
        first, second = draw.floats(2, 0.5, 2)
        yield case(
            tk.tensor([first, 9.0, second, 9.0])[::2], label="every second element (non-contiguous)"
        )
        yield case(tk.zeros(0, 2), label="no elements (empty)", weight=0.25)
        yield case(tk.zeros(3, dtype=tk.float16), label="half the memory (float16)")
