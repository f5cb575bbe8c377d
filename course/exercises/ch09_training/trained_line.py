"""The exercise trained-line: the loop of gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def trained_line(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    """Slope and height of a line after some steps of gradient descent from 0."""
    model = tk.nn.Linear(1, 1)
    tk.nn.init.zeros_(model.weight)
    tk.nn.init.zeros_(model.bias)
    optimizer = tk.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        prediction = model(x).flatten()
        loss = ((prediction - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return tk.tensor([model.weight.item(), model.bias.item()])


@no_type_check
def _line_program(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    model = tk.nn.Linear(1, 1)
    tk.nn.init.zeros_(model.weight)
    tk.nn.init.zeros_(model.bias)
    optimizer = tk.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        prediction = ...  # what the model says for x, in the shape of y
        loss = ...  # the mean of the squared differences
        ...  # the three lines that turn a loss into a step
    return tk.tensor([model.weight.item(), model.bias.item()])


def _a_line(
    x: tk.Tensor, y: tk.Tensor, steps: int, lr: float, step: Callable[[Any, Any, Any], None]
) -> tk.Tensor:
    model = tk.nn.Linear(1, 1)
    tk.nn.init.zeros_(model.weight)
    tk.nn.init.zeros_(model.bias)
    optimizer = tk.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        step(optimizer, model(x), y)
    return tk.tensor([model.weight.item(), model.bias.item()])


def _a_line_by(
    loss: Callable[[Any, Any], Any], x: tk.Tensor, y: tk.Tensor, steps: int, lr: float
) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        value = loss(prediction, y)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()

    return _a_line(x, y, steps, lr, step)


def _every_pair(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def loss(prediction: Any, y: Any) -> Any:
        return ((prediction - y) ** 2).mean()

    return _a_line_by(loss, x, y, steps, lr)


def _line_never_cleared(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        ((prediction.flatten() - y) ** 2).mean().backward()
        optimizer.step()

    return _a_line(x, y, steps, lr, step)


def _line_stays(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        ((prediction.flatten() - y) ** 2).mean().backward()
        optimizer.zero_grad()
        optimizer.step()

    return _a_line(x, y, steps, lr, step)


def _one_step_late(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def step(optimizer: Any, prediction: Any, y: Any) -> None:
        optimizer.step()
        optimizer.zero_grad()
        ((prediction.flatten() - y) ** 2).mean().backward()

    return _a_line(x, y, steps, lr, step)


def _the_sum(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def loss(prediction: Any, y: Any) -> Any:
        return ((prediction.flatten() - y) ** 2).sum()

    return _a_line_by(loss, x, y, steps, lr)


def _not_squared(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def loss(prediction: Any, y: Any) -> Any:
        return (prediction.flatten() - y).mean()

    return _a_line_by(loss, x, y, steps, lr)


def _the_mean_squared(x: tk.Tensor, y: tk.Tensor, steps: int, lr: float) -> tk.Tensor:
    def loss(prediction: Any, y: Any) -> Any:
        return (prediction.flatten() - y).mean() ** 2

    return _a_line_by(loss, x, y, steps, lr)


@exercise(
    "trained-line",
    answer=trained_line,
    stub=_line_program,
    kind="complete",
    points=5,
    difficulty=3,
    minutes=10,
)
class TrainedLine(Exercise):
    """The loop

    The model and the optimizer are there; the loop is not. Fill its gaps.

    **Input:** `x` of shape `[samples, 1]` and `y` of shape `[samples]`, both float32, with at least
    one sample; `steps`, how many steps to take; `lr`, the learning rate.

    **Output:** slope and height of the line after these steps, in a tensor of shape `[2]`. The line
    begins at 0, and each step goes against the gradient of the mean squared error. `x` and `y` stay
    as they are.

    ```python
    trained_line(tk.tensor([[2.0]]), tk.tensor([1.0]), 1, 0.25)
    # tensor([1.0000, 0.5000]): the gradients are 2 · (0 - 1) · 2 = -4 and -2
    ```

    Look at the shapes of `model(x)` and `y` before you subtract.
    """

    hints = (
        "`model(x)` has the shape `[samples, 1]`, `y` has `[samples]`. What would broadcasting "
        "make of their difference? `flatten()` brings the first into the shape of the second.",
        "A step is: clear the gradients, compute new ones, move. The optimizer does the first and "
        "the last, the loss the one between.",
        "`optimizer.zero_grad()`, `loss.backward()`, `optimizer.step()`.",
    )
    usual_mistakes = {
        "every pair": (
            _every_pair,
            "You subtract `[samples]` from `[samples, 1]`, and broadcasting compares every "
            "prediction with every target. Bring the prediction into the shape of `y` first: "
            "`model(x).flatten()`.",
        ),
        "never cleared": (
            _line_never_cleared,
            "The gradients of earlier steps are still there and are added. "
            "`optimizer.zero_grad()` clears them, before `backward` in every step.",
        ),
        "the line stays": (
            _line_stays,
            "The line stays at 0: the optimizer makes no step, or finds no gradient. First "
            "`zero_grad()`, then `backward()`, then `step()`, in every round.",
        ),
        "one step late": (
            _one_step_late,
            "You are one step behind: the optimizer moves before there is a gradient, and the last "
            "gradient is never used. First `backward`, then `step()`.",
        ),
        "the sum": (
            _the_sum,
            "You take the sum of the squares, so your steps are longer the more samples there are. "
            "Take their mean.",
        ),
        "not squared": (
            _not_squared,
            "Your loss is the mean of the differences, which is smallest where they are far below "
            "0. Square them before you take the mean.",
        ),
        "the mean squared": (
            _the_mean_squared,
            "You square the mean of the differences, in which too high and too low cancel out. "
            "Square each difference, then take the mean.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def rising(n: int) -> tk.Tensor:
            return tk.tensor([float(number) for number in sorted(draw.distinct(n, 1, 20))])

        yield case(
            tk.tensor([[2.0]]),
            tk.tensor([1.0]),
            1,
            0.25,
            label="one point, one step (size 1)",
            weight=0.5,
        )
        x = tk.tensor([[1.0], [2.0], [3.0]])
        yield case(x, rising(3), 1, 0.1, label="three points, one step")
        yield case(x, rising(3), 3, 0.1, label="three points, three steps")
        slope, height = draw.floats(2, 2, 6)
        x = tk.tensor([[-1.0], [0.5], [1.0], [1.5]])
        yield case(x, slope * x.flatten() - height, 6, 0.125, label="any line, six steps")
        beside = rising(4) * tk.tensor([1.0, -1.0, 1.0, 1.0])
        yield case(x, beside, 15, 0.25, label="points beside a line")
        yield case(
            tk.tensor([[0.5]]),
            tk.tensor([draw.number(2, 9)]),
            2,
            0.5,
            label="one point, two steps",
            weight=0.5,
        )
        apart = tk.tensor([[1.0, 9.0], [0.0, 9.0], [-2.0, 9.0]])
        y = tk.stack([rising(3), tk.full((3,), 9.0)], dim=1)[:, 0]
        yield case(apart[:, :1], y, 4, 0.25, label="apart in memory (non-contiguous)")
