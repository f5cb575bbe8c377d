"""The exercise momentum-step: gradient descent with a velocity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def momentum_step(
    parameters: list[tk.Tensor],
    gradients: list[tk.Tensor | None],
    velocities: list[tk.Tensor],
    lr: float,
    momentum: float,
) -> None:
    """Renew each velocity, then move each parameter by minus `lr` times it."""
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v *= momentum
                v += g
                p -= lr * v


def _no_memory(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v = momentum * v + g
                p -= lr * v


def _old_velocity(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                p -= lr * v
                v *= momentum
                v += g


def _running_mean(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v *= momentum
                v += (1 - momentum) * g
                p -= lr * v


def _rate_in_the_velocity(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v *= momentum
                v += lr * g
                p -= v


def _rate_twice(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                v *= momentum
                v += lr * g
                p -= lr * v


def _without_momentum(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            if g is not None:
                p -= lr * g


def _velocity_of_none(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            v *= momentum
            if g is not None:
                v += g
            p -= lr * v


def _into_the_gradient(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    with tk.no_grad():
        for p, g, v in zip(parameters, gradients, velocities, strict=True):
            if g is not None:
                g += momentum * v
                v.copy_(g)
                p -= lr * v


def _momentum_recorded(
    parameters: Any, gradients: Any, velocities: Any, lr: float, momentum: float
) -> None:
    for p, g, v in zip(parameters, gradients, velocities, strict=True):
        if g is not None:
            v *= momentum
            v += g
            p -= lr * v


@exercise("momentum-step", answer=momentum_step, points=0, difficulty=3, minutes=9, further=True)
class MomentumStep(Exercise):
    """A step with momentum

    What `optim.SGD(..., momentum=0.9)` does in its `step()`. Each parameter has a velocity, a
    tensor of its shape.

    **Input:** `parameters`, a list of leaves that require grad, of any shape and dtype;
    `gradients`, as many tensors, or None where there is no gradient; `velocities`, as many tensors;
    `lr` and `momentum`, two numbers.

    **Output:** none is needed. For each parameter $p$ with gradient $g$ and velocity $v$, *in
    place*:

    $$v \\leftarrow \\text{momentum} \\cdot v + g, \\qquad p \\leftarrow p - \\text{lr} \\cdot v$$

    Where the gradient is None, parameter and velocity stay as they are. The gradients and the
    parameters' own `.grad` stay as they are everywhere.

    ```python
    p, v = tk.tensor([1.0], requires_grad=True), tk.tensor([10.0])
    momentum_step([p], [tk.tensor([1.0])], [v], 0.1, 0.5)
    # v is tensor([6.]), 0.5 · 10 + 1
    # p is tensor([0.4000], requires_grad=True), 1 - 0.1 · 6
    ```

    Your function runs inside tensorkit's own optimizer below.
    """

    changes_arguments = True
    hints = (
        "`v = momentum * v + g` makes a new tensor and forgets it. The velocity has to be "
        "remembered until the next step: write into it.",
        "`v *= momentum`, then `v += g`, then `p -= lr * v`, all inside `with tk.no_grad():`.",
    )
    usual_mistakes = {
        "no memory": (
            _no_memory,
            "The parameters are right, and the velocities have not changed: at the next step they "
            "will be missing. Write into them with `*=` and `+=`.",
        ),
        "the old velocity": (
            _old_velocity,
            "You move with the velocity of the last step and renew it afterwards. Renew it first.",
        ),
        "a running mean": (
            _running_mean,
            "You weigh the gradient with `1 - momentum`. That is a running mean, as in Adam; here "
            "the gradient is added as it is.",
        ),
        "the rate in the velocity": (
            _rate_in_the_velocity,
            "You multiply by `lr` while you renew the velocity. It comes in only when the "
            "parameter moves, so that a new rate takes effect at once.",
        ),
        "the rate twice": (
            _rate_twice,
            "You multiply by `lr` twice: while you renew the velocity, and when the parameter "
            "moves. It belongs there only.",
        ),
        "without momentum": (
            _without_momentum,
            "This is the step without momentum. Renew the velocity, and move by it in place of "
            "the gradient.",
        ),
        "moves without a gradient": (
            _velocity_of_none,
            "Where the gradient is None you still move. Skip that parameter altogether.",
        ),
        "written into the gradient": (
            _into_the_gradient,
            "You write into the gradient, which belongs to the caller. Write into the velocity.",
        ),
        "recorded": (
            _momentum_recorded,
            "A leaf that requires grad cannot be written to while operations are recorded: put "
            "the update into `with tk.no_grad():`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def vector(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 1, 9))

        unit, ten = tk.tensor([1.0]), tk.tensor([10.0])
        yield case([unit], [unit.clone()], [ten], 0.1, 0.5, label="one parameter")
        yield case(
            [vector(3), vector(2).unsqueeze(0)],
            [vector(3), vector(2).unsqueeze(0)],
            [vector(3), vector(2).unsqueeze(0)],
            0.5,
            0.5,
            label="two parameters",
        )
        five, slopes, speeds = ([vector(1) for _ in range(5)] for _ in range(3))
        yield case(five, slopes, speeds, 0.5, 0.5, label="five parameters")
        yield case([vector(1)[0]], [vector(1)[0]], [tk.tensor(0.0)], 0.5, 0.9, label="at rest")
        yield case(
            [vector(1), vector(1)],
            [None, vector(1)],
            [vector(1), vector(1)],
            0.25,
            0.5,
            label="one without a gradient",
        )
        yield case(
            [vector(2).unsqueeze(0).double(), vector(1).double()],
            [vector(2).unsqueeze(0).double(), None],
            [vector(2).unsqueeze(0).double(), vector(1).double()],
            2.0,
            0.75,
            label="float64, one without a gradient",
        )
        up, down = draw.integers(2, 1, 9)
        halves = tk.tensor([up, -down], dtype=tk.float16)
        yield case(
            [halves], [4 * halves], [2 * halves], 0.25, 0.5, label="half the memory (float16)"
        )
        wide, quick = vector(6).reshape(2, 3), vector(6).reshape(2, 3)
        yield case(
            [wide.T, tk.zeros(0, 3)],
            [2 * wide.T, tk.zeros(0, 3)],
            [quick.T, tk.zeros(0, 3)],
            0.5,
            0.25,
            label="one turned, one without elements (empty)",
        )

    def run(self, answer: Any, *args: Any) -> Any:
        """What has become of parameters and velocities."""
        values, gradients, velocities, lr, momentum = args
        parameters = [value.clone().requires_grad_() for value in values]
        listed, kept = list(parameters), list(velocities)
        answer(listed, gradients, velocities, lr, momentum)
        return {
            "parameters": [parameter.detach().clone() for parameter in parameters],
            "velocities": [velocity.detach().clone() for velocity in kept],
            "gradients": gradients,
            "their own .grad": [parameter.grad for parameter in parameters],
            "still leaves that require grad": all(
                parameter.is_leaf and parameter.requires_grad for parameter in listed
            ),
        }
