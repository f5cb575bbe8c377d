"""The exercise sgd-step: a step of gradient descent, in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.engine.measuring import measured
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def sgd_step(
    parameters: list[tk.Tensor],
    gradients: list[tk.Tensor | None],
    lr: float,
) -> None:
    """Move each parameter, in place, by minus `lr` times its gradient."""
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            if g is not None:
                p -= lr * g


def _through_data(parameters: Any, gradients: Any, lr: float) -> None:
    for p, g in zip(parameters, gradients, strict=True):
        if g is not None:
            p.data -= lr * g


def _new_names(parameters: Any, gradients: Any, lr: float) -> None:
    for p, g in zip(parameters, gradients, strict=True):
        if g is not None:
            p = p - lr * g


def _new_names_and_none(parameters: Any, gradients: Any, lr: float) -> None:
    for p, g in zip(parameters, gradients, strict=True):
        p = p - lr * g


def _their_own_gradients(parameters: Any, gradients: Any, lr: float) -> None:
    with tk.no_grad():
        for p in parameters:
            p -= lr * p.grad


def _ends_at_none(parameters: Any, gradients: Any, lr: float) -> None:
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            if g is None:
                return
            p -= lr * g


def _in_the_list(parameters: Any, gradients: Any, lr: float) -> None:
    for i, g in enumerate(gradients):
        if g is not None:
            parameters[i] = parameters[i] - lr * g


def _recorded(parameters: Any, gradients: Any, lr: float) -> None:
    for p, g in zip(parameters, gradients, strict=True):
        if g is not None:
            p -= lr * g


def _adds(parameters: Any, gradients: Any, lr: float) -> None:
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            if g is not None:
                p += lr * g


def _without_rate(parameters: Any, gradients: Any, lr: float) -> None:
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            if g is not None:
                p -= g


def _none_not_skipped(parameters: Any, gradients: Any, lr: float) -> None:
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            p -= lr * g


def _into_the_gradients(parameters: Any, gradients: Any, lr: float) -> None:
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            if g is not None:
                g *= lr
                p -= g


def _gradients_set_to_zero(parameters: Any, gradients: Any, lr: float) -> None:
    with tk.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            if g is not None:
                p -= lr * g
                g.zero_()


def _through_grad(parameters: Any, gradients: Any, lr: float) -> None:
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g
    tk.optim.SGD(parameters, lr=lr).step()


@exercise("sgd-step", answer=sgd_step, points=5, difficulty=3, minutes=9)
class SgdStep(Exercise):
    """A step of gradient descent

    What `optim.SGD` does in its `step()`: move every parameter a little against its gradient.

    **Input:** `parameters`, a list of leaves that require grad, of any shape and dtype;
    `gradients`, a list of as many tensors of the same shapes and dtypes, or None where there is no
    gradient; `lr`, the learning rate.

    **Output:** none is needed. Each parameter is changed *in place*, by minus `lr` times its
    gradient. It stays the same tensor, stays a leaf, and still requires grad. Where the gradient is
    None the parameter stays as it is. The gradients and the parameters' own `.grad` stay as they
    are, too. Do without `.data`.

    ```python
    w = tk.tensor([1.0, 2.0], requires_grad=True)
    sgd_step([w], [tk.tensor([10.0, -10.0])], 0.1)
    w
    # tensor([0., 3.], requires_grad=True)
    ```

    Your function runs inside tensorkit's own optimizer below.
    """

    changes_arguments = True
    hints = (
        "`p = p - lr * g` makes a new tensor and puts the name `p` on it; the parameter stays as "
        "it was. Which operator writes into the tensor?",
        "`p -= lr * g` writes. On a leaf that requires grad this is refused while operations are "
        "recorded: do it in a block `with tk.no_grad():`.",
        "Skip what is None: `if g is not None:`.",
    )
    usual_mistakes = {
        "through .data": (
            _through_data,
            "The parameters are right, and their versions do not count the change, as with all "
            "that is written through `.data` or a NumPy array. Write into the parameter itself, "
            "inside `with tk.no_grad():`.",
        ),
        "new names": (
            _new_names,
            "No parameter has changed. `p = p - ...` makes a new tensor and puts the name `p` on "
            "that one; `p -= ...` writes into the parameter.",
        ),
        "new names, None too": (
            _new_names_and_none,
            "No parameter has changed. `p = p - ...` makes a new tensor and puts the name `p` on "
            "that one; `p -= ...` writes into the parameter. Skip those whose gradient is None.",
        ),
        "their own gradients": (
            _their_own_gradients,
            "You use `.grad` of the parameters. The gradients of this step are those in the list "
            "`gradients`; go through both lists with `zip`.",
        ),
        "ends at None": (
            _ends_at_none,
            "After the first None nothing moves any more: `return` and `break` end more than one "
            "round. Skip that parameter only: `if g is not None:` around the update, or "
            "`continue`.",
        ),
        "other tensors in the list": (
            _in_the_list,
            "You put new tensors into the list, and the model still holds the old ones. Write into "
            "the parameters that are there.",
        ),
        "recorded": (
            _recorded,
            "A leaf that requires grad cannot be written to while operations are recorded. An "
            "update is no part of the forward pass: put it into `with tk.no_grad():`.",
        ),
        "adds": (
            _adds,
            "You go uphill. A gradient points to where the loss grows: subtract.",
        ),
        "without the rate": (
            _without_rate,
            "You subtract the whole gradient. Multiply it by `lr` first.",
        ),
        "None is not skipped": (
            _none_not_skipped,
            "A parameter that was not used has no gradient: `None`. Skip it.",
        ),
        "gradients set to 0": (
            _gradients_set_to_zero,
            "You set the gradients to 0 after the step, and they should stay as they are.",
        ),
        "through .grad": (
            _through_grad,
            "You write the gradients into `.grad` of the parameters, which should stay as it is. "
            "Subtract `lr * g` from the parameter itself.",
        ),
        "written into the gradient": (
            _into_the_gradients,
            "You change the gradients, and they should stay as they are: `p -= lr * g` leaves `g` "
            "alone.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def vector(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 1, 9))

        yield case([tk.tensor([1.0, 2.0])], [tk.tensor([10.0, -10.0])], 0.1, label="one parameter")
        yield case(
            [vector(3), vector(2).unsqueeze(0)],
            [vector(3), vector(2).unsqueeze(0)],
            0.5,
            label="two parameters",
        )
        five = [vector(1) for _ in range(5)]
        yield case(five, [vector(1) for _ in five], 0.5, label="five parameters")
        yield case([vector(1), vector(1)], [None, -vector(1)], 0.25, label="one without a gradient")
        yield case([vector(1)[0]], [vector(1)[0]], 0.5, label="a single number (0-d)")
        yield case(
            [vector(1).double(), vector(2).double()],
            [None, vector(2).double()],
            2.0,
            label="float64, one without a gradient",
        )
        halves = tk.tensor(draw.integers(2, 1, 9), dtype=tk.float16)
        upward, downward = draw.integers(2, 1, 9)
        yield case(
            [halves],
            [tk.tensor([4.0 * upward, -4.0 * downward], dtype=tk.float16)],
            0.25,
            label="half the memory (float16)",
        )
        yield case(
            [tk.zeros(0, 3), vector(1)],
            [tk.zeros(0, 3), vector(1)],
            0.5,
            label="one without elements (empty)",
        )
        turned = vector(6).reshape(2, 3)
        yield case(
            [turned.T], [2 * turned.T], 0.25, label="a transposed parameter (non-contiguous)"
        )

    def run(self, answer: Any, *args: Any) -> Any:
        """What has become of the parameters."""
        values, gradients, lr = args
        parameters = [value.clone().requires_grad_() for value in values]
        for parameter in parameters:
            # of an earlier step: not what is asked for
            parameter.grad = tk.full_like(parameter, 100.0)
        listed = list(parameters)
        _, work = measured(answer, listed, gradients, lr)
        written = zip(work["written"], gradients, strict=False)
        return {
            "values": [parameter.detach().clone() for parameter in parameters],
            "gradients": gradients,
            "their own .grad": [parameter.grad for parameter in parameters],
            "written with a version": all(n > 0 for n, g in written if g is not None),
            "still the same tensors": all(a is b for a, b in zip(listed, parameters, strict=True)),
            "still leaves that require grad": all(
                parameter.is_leaf and parameter.requires_grad for parameter in parameters
            ),
        }
