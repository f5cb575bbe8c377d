"""The exercise gradient-penalty: a penalty on a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def penalty_gradient(x: tk.Tensor, w: tk.Tensor) -> tk.Tensor:
    """The gradient, with respect to `w`, of how steep the model is at `x`."""
    x = x.clone().requires_grad_()
    w = w.clone().requires_grad_()
    y = tk.tanh(x @ w).sum()
    (slope,) = tk.autograd.grad(y, x, create_graph=True)
    penalty = (slope**2).sum()
    penalty.backward()
    return w.grad


def _slope_without_history(x: tk.Tensor, w: tk.Tensor) -> tk.Tensor:
    x = x.clone().requires_grad_()
    w = w.clone().requires_grad_()
    y = tk.tanh(x @ w).sum()
    (slope,) = tk.autograd.grad(y, x)
    penalty = (slope**2).sum()
    penalty.backward()
    return w.grad


def _slope_asked_afterwards(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x)
    (slope.requires_grad_() ** 2).sum().backward()
    return w.grad


def _of_the_model(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    tk.tanh(x @ w).sum().backward()
    return w.grad


def _not_squared(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x, create_graph=True)
    slope.sum().backward()
    return w.grad


def _added_before_squared(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x, create_graph=True)
    (slope.sum() ** 2).backward()
    return w.grad


def _the_penalty_itself(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x, create_graph=True)
    return (slope**2).sum()


def _slope_of_w(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), w, create_graph=True)
    (slope**2).sum().backward()
    return w.grad


def _accumulated(x: tk.Tensor, w: tk.Tensor) -> Any:
    return penalty_gradient(x, w) + _of_the_model(x, w)


def _slope_of_the_input(x: tk.Tensor, w: tk.Tensor) -> Any:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x, create_graph=True)
    (slope**2).sum().backward()
    return x.grad


@exercise(
    "gradient-penalty",
    answer=penalty_gradient,
    stub=_slope_without_history,
    points=6,
    difficulty=4,
    minutes=9,
)
class GradientPenalty(Exercise):
    """A penalty on a gradient

    A model should not change abruptly when its input changes a little. To prevent this, a
    penalty is added to the loss: the squared slope of the output with respect to the *input*.
    Training then needs the gradient of the penalty with respect to the *weights*. The code
    below ends with an error. Repair it.

    **Input:** `x` of shape `[samples, inputs]` and `w` of shape `[inputs]`, floats of the same
    dtype; at least one sample and one input.

    **Output:** the gradient of the penalty with respect to `w`. The penalty is the sum of the
    squared slopes of `tanh(x @ w).sum()` with respect to `x`. `x` and `w` themselves stay as they
    are.

    ```python
    penalty_gradient(tk.tensor([[0.0]]), tk.tensor([2.0]))
    # tensor([4.]): the slope is w, the penalty w², its gradient 2w
    ```
    """

    hints = (
        "Which tensor has no history although it has to be differentiated? Ask it for its "
        "`grad_fn`.",
        "`tk.autograd.grad` returns plain numbers unless you ask it to record its own work: "
        "`create_graph=True`.",
    )
    usual_mistakes = {
        "asked afterwards": (
            _slope_asked_afterwards,
            "`requires_grad_()` makes the slope a new leaf: backward ends there, and `w.grad` "
            "stays None. The slope must be recorded while it is computed: `create_graph=True`.",
            r"^(?!(?s:.*)create_graph)(?s:.*)"
            r"((requires_grad_\((?s:.*)){3}|slope.requires_grad)",
        ),
        "of the model": (
            _of_the_model,
            "This is the gradient of the model itself. Differentiate the penalty.",
        ),
        "not squared": (
            _not_squared,
            "The slopes are not squared: steep up and steep down would cancel out.",
        ),
        "added before squared": (
            _added_before_squared,
            "You add the slopes up and square their sum. Square each of them, then add.",
        ),
        "the penalty itself": (
            _the_penalty_itself,
            "This is the penalty. Asked for is its gradient with respect to `w`.",
        ),
        "slope of the weights": (
            _slope_of_w,
            "You take the slope with respect to `w`. Steepness is the slope with respect to the "
            "input `x`.",
        ),
        "accumulated": (
            _accumulated,
            "The gradient of the model has been added: backward accumulates in `w.grad`. Use "
            "`tk.autograd.grad` for the slope.",
        ),
        "of the input": (
            _slope_of_the_input,
            "This is the gradient with respect to `x`. Asked for is that with respect to `w`.",
            r"return x\.grad",
        ),
        "kept, not recorded": (
            _slope_without_history,
            "`retain_graph=True` keeps the graph and records nothing. `create_graph=True` records "
            "the slope.",
            r"^(?!(?s:.*)create_graph)(?s:.*)retain_graph=True",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def vector(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 0.3, 0.9))

        yield case(tk.tensor([[0.0]]), tk.tensor([2.0]), label="one input, at 0 (size 1)")
        yield case(
            tk.tensor([draw.floats(2, 0.2, 0.6) for _ in range(3)]),
            vector(2),
            label="three samples",
        )
        signs = tk.tensor([1.0, -1.0, 1.0])
        yield case((vector(3) * signs).unsqueeze(0), vector(3) * 2, label="three inputs")
        yield case(vector(2).unsqueeze(0).double(), -vector(2).double(), label="float64")
        yield case(
            tk.tensor([[*draw.floats(2, 0.1, 0.7), number] for number in draw.floats(2, 0.2, 0.5)])[
                :, ::2
            ],
            vector(2),
            label="every second column (non-contiguous)",
        )
        yield case(tk.zeros(0, 2), tk.tensor([0.5, 1.5]), label="no samples (empty)", weight=0.25)
        halves = tk.tensor([[0.0, 0.0]], dtype=tk.float16)
        up, down = draw.integers(2, 3, 20)
        yield case(
            halves,
            tk.tensor([up / 4, -down / 4], dtype=tk.float16),
            label="at 0, half the memory (float16)",
        )
