"""The exercise forgotten-zero: a descent whose gradients add up."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def fit_slope(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    """The slope of the line through 0 that fits best, by gradient descent from 0."""
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        loss = ((w * x - y) ** 2).mean()
        w.grad = None
        loss.backward()
        with tk.no_grad():
            w -= lr * w.grad
    return w.item()


def _never_cleared(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        loss = ((w * x - y) ** 2).mean()
        loss.backward()
        with tk.no_grad():
            w -= lr * w.grad
    return w.item()


def _cleared_too_early(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        loss = ((w * x - y) ** 2).mean()
        loss.backward()
        w.grad.zero_()
        with tk.no_grad():
            w -= lr * w.grad
    return w.item()


def _begins_again(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        w = tk.tensor(0.0, requires_grad=True)
        ((w * x - y) ** 2).mean().backward()
        with tk.no_grad():
            w -= lr * w.grad
    return w.item()


def _cleared_now_and_then(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for step in range(steps):
        if step % 2 == 0:
            w.grad = None
        ((w * x - y) ** 2).mean().backward()
        with tk.no_grad():
            w -= lr * w.grad
    return w.item()


def _a_new_result(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        ((w * x - y) ** 2).mean().backward()
        w = w - lr * w.grad
    return w.item()


def _a_new_constant(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        w.grad = None
        ((w * x - y) ** 2).mean().backward()
        with tk.no_grad():
            w = w - lr * w.grad
    return w.item()


def _zeroed_before_there_is_one(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        w.grad.zero_()
        ((w * x - y) ** 2).mean().backward()
        with tk.no_grad():
            w -= lr * w.grad
    return w.item()


def _set_to_a_number(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        w.grad = 0
        ((w * x - y) ** 2).mean().backward()
        with tk.no_grad():
            w -= lr * w.grad
    return w.item()


def _uphill(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        w.grad = None
        ((w * x - y) ** 2).mean().backward()
        with tk.no_grad():
            w += lr * w.grad
    return w.item()


def _smaller_rate(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> float:
    w = tk.tensor(0.0, requires_grad=True)
    for step in range(steps):
        ((w * x - y) ** 2).mean().backward()
        with tk.no_grad():
            w -= lr / (step + 1) * w.grad
    return w.item()


@exercise(
    "forgotten-zero", answer=fit_slope, stub=_never_cleared, points=3, difficulty=2, minutes=7
)
class ForgottenZero(Exercise):
    """The line that overshoots

    The program below fits a line through 0. Each step should bring the slope closer to the best
    one; instead it goes past it, further each time. Find what is missing and add it.

    **Input:** `x` and `y`, two vectors of the same length with at least one element; `steps`, how
    many steps to take; `lr`, the learning rate.

    **Output:** the slope after these steps, a Python float. In each step the slope moves by minus
    `lr` times the gradient of the mean squared error *at the present slope*. `x` and `y` stay as
    they are.

    ```python
    fit_slope(tk.tensor([1.0]), tk.tensor([2.0]), 2, 0.25)
    # 1.5: from 0 to 1.0 with gradient -4, then to 1.5 with gradient -2
    ```
    """

    hints = (
        "Print `w.grad` in each step and compare with the gradient on paper. What does backward do "
        "with a gradient that is there already?",
        "It adds to it. Clear it once in each step, before `backward` or after the update: "
        "`w.grad = None`.",
    )
    usual_mistakes = {
        "still not cleared": (
            _never_cleared,
            "The gradient of every step is still added to those before it. Set `w.grad` to None in "
            "each step.",
        ),
        "cleared too early": (
            _cleared_too_early,
            "The slope stays at 0. A gradient that is cleared between `backward` and the update "
            "moves nothing: clear before `backward`, or after the update.",
            r"zero|grad =",
        ),
        "begins again": (
            _begins_again,
            "You make a new `w` in each step, at 0, so only the last step counts. Keep the tensor "
            "and clear its gradient.",
            r"for (?s:.*)w = tk",
        ),
        "now and then": (
            _cleared_now_and_then,
            "You clear the gradient in some steps only. It has to be cleared in every one.",
        ),
        "a new result": (
            _a_new_result,
            "`w = w - ...` makes a new tensor, the result of an operation; it has no `.grad`. Keep "
            "the update as it was: `w -= ...` inside `no_grad` writes into the leaf.",
            r"w = w - ",
        ),
        "a new constant": (
            _a_new_constant,
            "`w = w - ...` inside `no_grad` makes a new tensor that does not require grad. Keep "
            "the update as it was: `w -= ...` writes into the leaf.",
            r"w = w - ",
        ),
        "zeroed before there is one": (
            _zeroed_before_there_is_one,
            "Before the first `backward` there is no gradient that could be filled with zeros: "
            "`w.grad` is None. Write `w.grad = None`, which works in every step.",
        ),
        "set to a number": (
            _set_to_a_number,
            "A gradient is a tensor or None, not a number: `w.grad = None`, or `w.grad.zero_()` "
            "once there is one.",
            r"\.grad = ",
        ),
        "uphill": (
            _uphill,
            "You add the gradient. It points uphill: to make the loss smaller, subtract it.",
        ),
        "a smaller rate": (
            _smaller_rate,
            "The gradients still add up, and a smaller rate does not change that. Clear the "
            "gradient in each step.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbers(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 2, 20)]

        yield case(tk.tensor([1.0]), tk.tensor([2.0]), 2, 0.25, label="two steps by hand")
        yield case(tk.tensor([1.0, 2.0]), tk.tensor(numbers(2)), 3, 0.1, label="three steps")
        slope, steep, slow = draw.floats(3, 1.5, 6)
        x = tk.tensor([1.0, 0.5, 1.5, -1.0])
        yield case(x, slope * x, 5, 0.125, label="any slope, five steps")
        yield case(x, -steep * x, 20, 0.25, label="a negative slope, twenty steps")
        yield case(tk.tensor(numbers(1)), tk.tensor(numbers(1)), 1, 0.25, label="a single step")
        yield case(tk.tensor([1.0]), tk.tensor([2.0]), 0, 0.25, label="no step")
        apart = tk.tensor([1.0, 9.0, -2.0, 9.0])[::2]
        yield case(apart, slow * apart, 3, 0.125, label="every second point (non-contiguous)")
        whole = tk.tensor(draw.integers(2, 2, 20))
        yield case(tk.tensor([1, 2]), whole, 3, 0.1, label="whole numbers (int)")
        halves = tk.tensor([1.0, -1.0], dtype=tk.float16)
        yield case(halves, draw.integer(2, 30) * halves, 2, 0.25, label="half the memory (float16)")
