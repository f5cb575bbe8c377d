"""The exercise straight-through: round forward, and let the gradient pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def rounded_straight_through(x: tk.Tensor) -> tk.Tensor:
    """`x` rounded, with the gradient of `x`."""
    return x + (x.round() - x).detach()


def _only_rounded(x: tk.Tensor) -> tk.Tensor:
    return x.round()


def _detached(x: tk.Tensor) -> tk.Tensor:
    return x.round().detach()


def _not_rounded(x: tk.Tensor) -> tk.Tensor:
    return x + (x - x.round()).detach() * 0


def _twice(x: tk.Tensor) -> tk.Tensor:
    return x * 2 + (x.round() - 2 * x).detach()


@exercise(
    "straight-through",
    answer=rounded_straight_through,
    points=0,
    difficulty=4,
    minutes=7,
    further=True,
)
class StraightThrough(Exercise):
    """Round forward, pass backward

    The slope of rounding is 0 nearly everywhere, so nothing in front of it could learn. A common
    trick: round in the forward pass, and let the gradient through as if nothing had happened.

    **Input:** `x`, a float tensor of any shape and dtype that requires grad.

    **Output:** a tensor with the values of `x.round()`, through which the gradient of `x`
    passes unchanged; `x` stays as it is. After `rounded_straight_through(x).sum().backward()`,
    `x.grad` is all ones.

    ```python
    x = tk.tensor([0.2, 1.7], requires_grad=True)
    rounded_straight_through(x)
    # tensor([0., 2.], ...)
    ```
    """

    hints = (
        "Write the rounded value as `x` plus something. What is that something, and which part of "
        "the sum should pass a gradient?",
        "`x.round()` is `x + (x.round() - x)`. Detach the brackets: then only the first `x` has a "
        "history.",
    )
    usual_mistakes = {
        "only rounded": (
            _only_rounded,
            "The values are right, and the gradient is 0. That is the slope of rounding, and of a "
            "sum in which `x` cancels. Add the whole difference to `x`, detached.",
        ),
        "everything detached": (
            _detached,
            "Nothing leads back to `x` any more. Only the difference between the rounded value and "
            "`x` should be detached.",
        ),
        "not rounded": (
            _not_rounded,
            "The gradient passes, and the values are not rounded. Add `x.round() - x`, detached.",
        ),
        "twice": (
            _twice,
            "The gradient comes back twice as large: one `x` with a history is enough. Detach "
            "all of what you add to it.",
        ),
        "the wrong difference": (
            lambda x: x + (x - x.round()).detach(),
            "You add `x - x.round()`, which leads away from the rounded value. Add `x.round() - "
            "x`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def unrounded(n: int) -> list[float]:
            """Numbers with one decimal that are not whole and do not lie in the middle."""
            decimals = [(1, 2, 3, 4, 6, 7, 8, 9)[number] for number in draw.integers(n, 0, 7)]
            whole = draw.integers(n, -9, 9)
            return [units + tenths / 10 for units, tenths in zip(whole, decimals, strict=True)]

        yield case(tk.tensor([0.2, 1.7]), label="two numbers")
        yield case(tk.tensor(unrounded(4)), label="any numbers")
        yield case(tk.tensor([unrounded(2), unrounded(2)]), label="a matrix")
        even, odd = 2 * draw.integer(-9, 9), 2 * draw.integer(-9, 9) + 1
        yield case(tk.tensor([even + 0.5, odd + 0.5]), label="halfway between whole numbers")
        yield case(tk.tensor(unrounded(1)[0]), label="a single number (0-d)")
        first, second = unrounded(2)
        yield case(
            tk.tensor([first, 9.0, second, 9.0])[::2], label="every second number (non-contiguous)"
        )
        yield case(tk.zeros(0), label="no numbers (empty)", weight=0.25)
        yield case(tk.tensor([unrounded(1)]), label="a matrix of one number (size 1)")
        first, second = draw.integers(2, -5, 5)
        quarters = tk.tensor([first + 0.25, second + 0.75], dtype=tk.float16)
        yield case(quarters, label="half the memory (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The values, and the gradient that comes back when the upstream gradients differ."""
        (values,) = args
        x = values.clone().requires_grad_()
        y = answer(x)
        if not isinstance(y, tk.Tensor) or y.shape != x.shape:
            return y
        has_history = y is x or y.grad_fn is not None  # `x` itself, where nothing is rounded
        shown = ((y.detach().double() * 1e4).round() / 1e4).to(y.dtype)
        seen = Seen({"values": shown, "has a history": has_history})
        upstream = tk.arange(1.0, x.numel() + 1).reshape(x.shape)
        if y.requires_grad:
            (y * upstream).sum().backward()
        seen["gradient of x"] = tk.zeros_like(values) if x.grad is None else x.grad
        seen["x afterwards"] = x.detach().clone()
        return seen
