"""The exercise linear-gradients: the loss of a linear model and its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def linear_gradients(
    x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor
) -> tuple[float, tk.Tensor, tk.Tensor]:
    """The loss of a linear model, and its gradients with respect to `w` and `b`."""
    w = w.clone().requires_grad_()
    b = b.clone().requires_grad_()
    prediction = x @ w + b
    loss = ((prediction - target) ** 2).mean()
    loss.backward()
    return loss.item(), w.grad, b.grad


@no_type_check
def _linear_program(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    w = w.clone().requires_grad_()
    b = b.clone().requires_grad_()
    prediction = ...  # x @ w + b
    loss = ...  # the mean of the squared differences between prediction and target
    ...  # let autograd compute the gradients
    return loss.item(), w.grad, b.grad


def _with_loss(
    x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor, loss_of: Any
) -> tuple[float, tk.Tensor, tk.Tensor]:
    w, b = w.clone().requires_grad_(), b.clone().requires_grad_()
    loss = loss_of(x, w, b, target)
    loss.backward()
    return loss.item(), w.grad, b.grad


def _sum_of_squares(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: ((x @ w + b - t) ** 2).sum())


def _not_squared(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: (x @ w + b - t).mean())


def _absolute(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: (x @ w + b - t).abs().mean())


def _squared_mean(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: (x @ w + b - t).mean() ** 2)


def _element_by_element(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return _with_loss(x, target, w, b, lambda x, w, b, t: ((x * w + b - t) ** 2).mean())


def _backward_of_the_prediction(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    w, b = w.clone().requires_grad_(), b.clone().requires_grad_()
    prediction = x @ w + b
    prediction.sum().backward()
    return ((prediction - target) ** 2).mean().item(), w.grad, b.grad


def _without_backward(x: tk.Tensor, target: tk.Tensor, w: tk.Tensor, b: tk.Tensor) -> Any:
    return ((x @ w + b - target) ** 2).mean().item(), None, None


@exercise(
    "linear-gradients",
    answer=linear_gradients,
    stub=_linear_program,
    kind="complete",
    points=2,
    difficulty=2,
    minutes=6,
)
class LinearGradients(Exercise):
    """A loss and its gradients

    The heart of every training program: predict, measure the error, let autograd find the
    gradients. Fill the three gaps.

    **Input:** `x` of shape `[samples, inputs]`, `target` of shape `[samples, 1]`, `w` of shape
    `[inputs, 1]`, `b` of shape `[1]`; all floats of the same dtype, at least one sample and input.

    **Output:** three things: the loss as a Python number, the gradient with respect to `w`, the
    gradient with respect to `b`. The loss is the mean of the squared differences. The arguments
    stay as they are, `requires_grad` included: so the first two lines of the
    program copy `w` and `b`.

    ```python
    x, target = tk.tensor([[1.0, 2.0]]), tk.tensor([[5.0]])
    linear_gradients(x, target, tk.tensor([[0.5], [1.5]]), tk.tensor([0.1]))
    # (1.96..., tensor([[-2.8000],
    #         [-5.6000]]), tensor([-2.8000]))
    ```

    The prediction is 0.5 + 3 + 0.1 = 3.6, the error -1.4, the loss 1.96.
    """

    hints = (
        "`(prediction - target) ** 2` are the squared differences, one for each sample.",
        "`backward` is called on the one number that everything led to.",
    )
    usual_mistakes = {
        "the sum": (
            _sum_of_squares,
            "You added the squares up. The mean divides by the number of samples, and so do its "
            "gradients.",
        ),
        "not squared": (
            _not_squared,
            "The differences are not squared, so errors in both directions cancel out. Square them "
            "before the mean.",
        ),
        "absolute values": (
            _absolute,
            "You took absolute values. That is another loss; here the differences are squared.",
        ),
        "the square of the mean": (
            _squared_mean,
            "You squared the mean of the differences. Square first, then take the mean.",
        ),
        "no backward": (
            _without_backward,
            "The loss is right, the gradients are None: nobody asked for them. Call "
            "`loss.backward()`.",
            r"^(?!(?s:.*)backward\()",
        ),
        "element by element": (
            _element_by_element,
            "`*` multiplies element by element. The prediction is a matrix product: `x @ w`.",
            r"x \* w|w \* x|mul",
        ),
        "every pair": (
            lambda x, target, w, b: _with_loss(
                x, target, w, b, lambda x, w, b, t: (((x @ w + b).flatten() - t) ** 2).mean()
            ),
            "`[samples]` minus `[samples, 1]` compares every prediction with every target. Leave "
            "the prediction as it comes, `[samples, 1]`.",
        ),
        "the root": (
            lambda x, target, w, b: _with_loss(
                x, target, w, b, lambda x, w, b, t: ((x @ w + b - t) ** 2).mean().sqrt()
            ),
            "You took a root at the end. The loss is the mean of the squares itself.",
        ),
        "backward of the prediction": (
            _backward_of_the_prediction,
            "The loss is right; the gradients are those of the sum of the predictions. Call "
            "`backward` on the loss.",
        ),
        "w first": (
            lambda x, target, w, b: _with_loss(
                x, target, w, b, lambda x, w, b, t: ((w @ x + b - t) ** 2).mean()
            ),
            "`w @ x` is another product: its inner sizes are 1 and the number of samples. The "
            "inputs must meet: `x @ w`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[1.0, 2.0]]),
            tk.tensor([[5.0]]),
            tk.tensor([[0.5], [1.5]]),
            tk.tensor([0.1]),
            label="one sample (size 1)",
        )
        yield case(*_two_samples(draw), label="two samples")
        yield case(*_linear_problem(draw, 5, 3), label="any five samples")
        yield case(*_linear_problem(draw, 3, 1), label="one input (size 1)")
        halves = (tensor.half() for tensor in _two_samples(draw))
        yield case(*halves, label="half the memory (float16)")
        x, target, w, b = _linear_problem(draw, 4, 2)
        turned = x.T.contiguous().T
        yield case(turned, target, w, b, label="stored by columns (non-contiguous)")
        yield case(*(tensor.double() for tensor in _linear_problem(draw, 4, 2)), label="float64")


def _two_samples(draw: Draw) -> tuple[tk.Tensor, ...]:
    """Whole numbers, with unlike predictions, an error of 6 to 9 and one of 2 to 5."""
    low, high = draw.integers(2, 1, 2), draw.integers(2, 4, 5)
    x = tk.tensor([[high[0], low[0]], [low[1], high[1]]]).float()
    w, b = tk.tensor([[draw.integer(3, 4)], [draw.integer(-2, -1)]]).float(), tk.tensor([1.0])
    errors = tk.tensor([[draw.integer(6, 9)], [draw.integer(2, 5)]])
    return x, x @ w + b + errors, w, b


def _linear_problem(draw: Draw, samples: int, inputs: int) -> tuple[tk.Tensor, ...]:
    """Errors of both signs: some targets lie far above the predictions, some far below."""
    x = tk.tensor([draw.floats(inputs, -3, 1) for _ in range(samples)])
    target = tk.tensor([[30.0 if i % 2 else -40.0] for i in range(samples)])
    w = tk.tensor([[number] for number in draw.floats(inputs, -2, 2)])
    return x, target, w, tk.tensor([-0.5])
