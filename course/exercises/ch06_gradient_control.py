"""The exercises of chapter 06, Gradient control, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import GRADIENT_IN_LOOP, Rule


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
    `lr` times the gradient of the mean squared error *at the present slope*.

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
        half = tk.tensor([1.0, -1.0], dtype=tk.float16)
        yield case(half, draw.integer(2, 30) * half, 2, 0.25, label="half the memory (float16)")


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

    **Output:** nothing. Each parameter is changed *in place*, by minus `lr` times its gradient. It
    stays the same tensor, stays a leaf, and still requires grad. Where the gradient is None the
    parameter stays as it is. The gradients and the parameters' own `.grad` stay as they are, too.
    Do without `.data`.

    ```python
    w = tk.tensor([1.0, 2.0], requires_grad=True)
    sgd_step([w], [tk.tensor([10.0, -10.0])], 0.1)
    w
    # tensor([0., 3.], requires_grad=True)
    ```

    Your function runs inside tensorkit's own optimizer below.
    """

    changes_arguments = True
    rules = (
        Rule(
            "do without `.data`",
            "What is written through `.data` is not counted as a version. Write into the parameter "
            "itself, inside `with tk.no_grad():`.",
            refuses=(".data",),
        ),
    )
    hints = (
        "`p = p - lr * g` makes a new tensor and puts the name `p` on it; the parameter stays as "
        "it was. Which operator writes into the tensor?",
        "`p -= lr * g` writes. On a leaf that requires grad this is refused while operations are "
        "recorded: do it in a block `with tk.no_grad():`.",
        "Skip what is None: `if g is not None:`.",
    )
    usual_mistakes = {
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
            "You put new tensors into the list. They are no leaves, and the model still holds the "
            "old ones. Write into the parameters that are there.",
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
        def some(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 1, 9))

        yield case([tk.tensor([1.0, 2.0])], [tk.tensor([10.0, -10.0])], 0.1, label="one parameter")
        yield case(
            [some(3), some(2).unsqueeze(0)],
            [some(3), some(2).unsqueeze(0)],
            0.5,
            label="two parameters",
        )
        yield case([some(1), some(1)], [None, -some(1)], 0.25, label="one without a gradient")
        yield case([some(1)[0]], [some(1)[0]], 0.5, label="a single number (0-d)")
        yield case(
            [some(1).double(), some(2).double()],
            [None, some(2).double()],
            2.0,
            label="float64, one without a gradient",
        )
        half = tk.tensor(draw.integers(2, 1, 9), dtype=tk.float16)
        upward, downward = draw.integers(2, 1, 9)
        yield case(
            [half],
            [tk.tensor([4.0 * upward, -4.0 * downward], dtype=tk.float16)],
            0.25,
            label="half the memory (float16)",
        )
        yield case(
            [tk.zeros(0, 3), some(1)],
            [tk.zeros(0, 3), some(1)],
            0.5,
            label="one without elements (empty)",
        )
        turned = some(6).reshape(2, 3)
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
        answer(listed, gradients, lr)
        return {
            "values": [parameter.detach().clone() for parameter in parameters],
            "gradients": gradients,
            "their own .grad": [parameter.grad for parameter in parameters],
            "still the same tensors": all(a is b for a, b in zip(listed, parameters, strict=True)),
            "still leaves": all(
                parameter.is_leaf and parameter.requires_grad for parameter in parameters
            ),
        }


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

    **Output:** a new tensor with the values of `x.round()`, through which the gradient of `x`
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
        one, other = unrounded(2)
        yield case(
            tk.tensor([one, 9.0, other, 9.0])[::2], label="every second number (non-contiguous)"
        )
        yield case(tk.zeros(0), label="no numbers (empty)", weight=0.25)
        yield case(tk.tensor([unrounded(1)]), label="a matrix of one number (size 1)")
        one, other = draw.integers(2, -5, 5)
        quarters = tk.tensor([one + 0.25, other + 0.75], dtype=tk.float16)
        yield case(quarters, label="half the memory (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The values, and the gradient that comes back when the upstream gradients differ."""
        (values,) = args
        x = values.clone().requires_grad_()
        y = answer(x)
        if not isinstance(y, tk.Tensor) or y.shape != x.shape:
            return y
        seen = Seen(
            {"values": y.detach().round(decimals=4), "has a history": y.grad_fn is not None}
        )
        upstream = tk.arange(1.0, x.numel() + 1).reshape(x.shape)
        if y.requires_grad:
            (y * upstream).sum().backward()
        seen["gradient of x"] = tk.zeros_like(values) if x.grad is None else x.grad
        seen["x afterwards"] = x.detach().clone()
        return seen


@exercise("which-grad", points=2, difficulty=3, minutes=5)
class WhichGrad(Prediction):
    """Predict: does it require grad?

    Every answer is True or False. `tk.no_grad()(f)` is the function `f` with recording switched off
    while it runs.

    One is done for you:

    ```python
    w = tk.ones(1, requires_grad=True)
    (w * 2).requires_grad  # True: recorded
    ```
    """

    name = "asks"
    ask = "Replace each ... by True or False."
    questions = {
        "(w * 2).detach().requires_grad": ("`detach` gives the numbers without their history."),
        "w.detach().is_leaf": (
            "What has no history is a leaf, whether it asks for a gradient or not."
        ),
        "(w.detach() * 2).requires_grad": ("Its only input asks for nothing."),
        "(tk.ones(1).detach() + w).requires_grad": (
            "One input that asks is enough, whatever the other one is."
        ),
        "tk.no_grad()(lambda: w * 2)().requires_grad": (
            "Inside `no_grad` no operation is recorded."
        ),
        "tk.no_grad()(lambda: tk.ones(1, requires_grad=True))().requires_grad": (
            "`no_grad` switches recording off. A new tensor that asks for a gradient still asks."
        ),
        "tk.inference_mode()(lambda: w * 2)().requires_grad": (
            "`inference_mode` records nothing either."
        ),
        "(tk.ones(1, requires_grad=True).requires_grad_(False) * 2).requires_grad": (
            "`requires_grad_(False)` takes the wish back: the tensor is frozen."
        ),
    }
    hints = (
        "Ask two things: was the operation recorded, and did one of its inputs ask for a gradient?",
        "`detach`, `no_grad`, `inference_mode` and `requires_grad_(False)` all end in False, with "
        "one exception: a tensor that is *made* with `requires_grad=True` inside `no_grad`.",
    )
    usual_mistakes = {
        "detach changes nothing": (
            {
                "(w * 2).detach().requires_grad": True,
                "(w.detach() * 2).requires_grad": True,
            },
            "A detached tensor has no history and asks for nothing; what is made of it alone has "
            "none either.",
        ),
        "no_grad freezes everything": (
            {
                "tk.no_grad()(lambda: tk.ones(1, requires_grad=True))().requires_grad": False,
                "(tk.ones(1).detach() + w).requires_grad": False,
            },
            "These switches stop the recording of operations. A tensor that asks for a gradient "
            "still asks, and one such input is enough outside of them.",
        ),
        "no_grad is only for the update": (
            {
                "tk.no_grad()(lambda: w * 2)().requires_grad": True,
                "tk.inference_mode()(lambda: w * 2)().requires_grad": (True),
            },
            "Nothing that is computed inside `no_grad` or `inference_mode` is recorded, so its "
            "results require no grad.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        w = tk.ones(1, requires_grad=True)
        return eval(expression, {"tk": tk, "w": w})


def train_only(parameters: dict[str, tk.Tensor], names: list[str]) -> list[str]:
    """Freeze all but the named parameters; the names of those that can be trained."""
    for name, p in parameters.items():
        p.requires_grad_(name in names)
    return [name for name, p in parameters.items() if p.requires_grad]


def _others_frozen_only(parameters: Any, names: Any) -> Any:
    for name, p in parameters.items():
        if name not in names:
            p.requires_grad_(False)
    return [name for name, p in parameters.items() if p.requires_grad]


def _named_only(parameters: Any, names: Any) -> Any:
    for name in names:
        if name in parameters:
            parameters[name].requires_grad_(True)
    return [name for name, p in parameters.items() if p.requires_grad]


def _detached_copies(parameters: Any, names: Any) -> Any:
    for name in list(parameters):
        if name not in names:
            parameters[name] = parameters[name].detach()
    return [name for name, p in parameters.items() if p.requires_grad]


def _the_named_frozen(parameters: Any, names: Any) -> Any:
    for name, p in parameters.items():
        p.requires_grad_(name not in names)
    return [name for name, p in parameters.items() if p.requires_grad]


def _compared(parameters: Any, names: Any) -> Any:
    return [name for name in parameters if name in names]


def _in_the_order_asked(parameters: Any, names: Any) -> Any:
    train_only(parameters, names)
    return names


def _in_the_order_of_names(parameters: Any, names: Any) -> Any:
    train_only(parameters, names)
    return [name for name in names if name in parameters]


@exercise("train-only", answer=train_only, points=0, difficulty=2, minutes=6, further=True)
class TrainOnly(Exercise):
    """Freeze all but a few

    To train only the last layer of a network, freeze the rest: a parameter that does not require
    grad gets no gradient, and the graph does not even reach it.

    **Input:** `parameters`, a dictionary from names to leaves, some of which require grad; `names`,
    the names of those that should be trained, possibly none.

    **Output:** the names of all parameters that require grad afterwards, in the order of the
    dictionary. The parameters themselves are changed: those in `names` require grad, all others do
    not. Names that are not in the dictionary are ignored.

    ```python
    model = {"first": tk.ones(2, requires_grad=True), "last": tk.ones(2)}
    train_only(model, ["last"])
    # ["last"]
    ```
    """

    changes_arguments = True
    hints = (
        "`requires_grad_` takes True or False. Go through the whole dictionary, not only through "
        "`names`.",
        "`p.requires_grad_(name in names)` does both at once.",
    )
    usual_mistakes = {
        "only frozen": (
            _others_frozen_only,
            "You freeze the others, and a named one that was frozen before stays frozen. Set both "
            "ways.",
        ),
        "only thawed": (
            _named_only,
            "You let the named ones be trained, and the others are not frozen. Go through all of "
            "them.",
        ),
        "detached": (
            _detached_copies,
            "The names are right, and the model's own tensors still require grad: `detach` gives "
            "other tensors. `requires_grad_(False)` freezes the tensor itself.",
        ),
        "the wrong ones": (
            _the_named_frozen,
            "You froze those that should be trained, and the other way round. Turn it: True for "
            "those in `names`, False for all others.",
        ),
        "nothing set": (
            _compared,
            "The names are right, and no parameter has changed: set it with "
            "`p.requires_grad_(...)`.",
        ),
        "the names as they came": (
            _in_the_order_asked,
            "You return the names as they were given. Asked for are those that require grad now, "
            "in the order of the dictionary.",
        ),
        "in the order of names": (
            _in_the_order_of_names,
            "The names are in the order in which they were asked for. Go through the dictionary: "
            "its order counts.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def names(n: int) -> list[str]:
            return [chr(number) for number in sorted(draw.distinct(n, ord("a"), ord("z")))]

        yield case({"first": True, "last": False}, ["last"], label="the other one")
        a, b, c = names(3)
        yield case({a: True, b: True, c: False}, [c, a], label="two of three")
        yield case(
            {"a": False, "b": True, "c": True}, [], label="freeze everything, no names (empty)"
        )
        a, b, d = names(3)
        yield case({a: False, b: False}, [b, a, d], label="all, and one too many")
        start = draw.integer(0, 40)
        layers = {f"layer{start + i}": i % 2 == 0 for i in range(4)}
        wanted = f"layer{start + 2 * draw.integer(0, 1) + 1}"
        yield case(layers, [wanted], label="any layer")

    def run(self, answer: Any, *args: Any) -> Any:
        """What is returned, and which of the model's own tensors require grad."""
        asked, names = args
        model = {name: tk.ones(2, requires_grad=asks) for name, asks in asked.items()}
        returned = answer(dict(model), list(names))
        return {
            "returned": returned,
            "require grad": [name for name, p in model.items() if p.requires_grad],
        }


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

    **Output:** the gradient of the sum of `(exp(x) + 1)²` at `x`.

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
            "No error now, and a wrong gradient: `.data` writes past the version count, so exp's "
            "formula used the changed numbers. Make a new tensor instead.",
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
        one, other = draw.floats(2, 0.5, 2)
        yield case(
            tk.tensor([one, 9.0, other, 9.0])[::2], label="every second element (non-contiguous)"
        )
        yield case(tk.zeros(0, 2), label="no elements (empty)", weight=0.25)
        yield case(tk.zeros(3, dtype=tk.float16), label="half the memory (float16)")


def micro_batch_gradient(
    x: tk.Tensor,
    y: tk.Tensor,
    w: tk.Tensor,
    size: int,
) -> tk.Tensor:
    """The gradient of the mean squared error over all samples, `size` at a time."""
    w = w.clone().requires_grad_()
    for start in range(0, len(x), size):
        part_x, part_y = x[start : start + size], y[start : start + size]
        loss = ((part_x @ w - part_y) ** 2).mean()
        share = len(part_x) / len(x)
        (loss * share).backward()
    return w.grad


@no_type_check
def _micro_batch_program(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> tk.Tensor:
    w = w.clone().requires_grad_()
    for start in range(0, len(x), size):
        part_x, part_y = x[start : start + size], y[start : start + size]
        loss = ((part_x @ w - part_y) ** 2).mean()
        share = ...  # which part of all samples this piece is, from 0 to 1
        ...  # backward, with this piece counted as much as its share
    return w.grad


def _batches(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int, weight: Any) -> Any:
    w = w.clone().requires_grad_()
    starts = range(0, len(x), size)
    for start in starts:
        part_x, part_y = x[start : start + size], y[start : start + size]
        loss = ((part_x @ w - part_y) ** 2).mean()
        (loss * weight(len(part_x), len(x), len(starts))).backward()
    return w.grad


def _no_share(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: 1)


def _equal_shares(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: 1 / batches)


def _share_of_the_size(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: size / whole)


def _share_of_one(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: 1 / whole)


def _whole_numbers(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: part // whole)


def _count_of_samples(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    return _batches(x, y, w, size, lambda part, whole, batches: part)


def _the_sum_scaled(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    w = w.clone().requires_grad_()
    for start in range(0, len(x), size):
        part_x, part_y = x[start : start + size], y[start : start + size]
        ((part_x @ w - part_y) ** 2).mean().backward()
        w.grad *= len(part_x) / len(x)
    return w.grad


def _share_for_backward(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    w = w.clone().requires_grad_()
    ((x[:size] @ w - y[:size]) ** 2).mean().backward(0.5)
    return w.grad


def _cleared_between(x: tk.Tensor, y: tk.Tensor, w: tk.Tensor, size: int) -> Any:
    w = w.clone().requires_grad_()
    for start in range(0, len(x), size):
        w.grad = None
        part_x, part_y = x[start : start + size], y[start : start + size]
        loss = ((part_x @ w - part_y) ** 2).mean()
        (loss * (len(part_x) / len(x))).backward()
    return w.grad


@exercise(
    "micro-batches",
    answer=micro_batch_gradient,
    stub=_micro_batch_program,
    kind="complete",
    points=6,
    difficulty=4,
    minutes=10,
)
class MicroBatches(Exercise):
    """A large batch in small pieces

    If a batch does not fit into memory, it can be computed in pieces: gradients add up by
    themselves. But the mean over all samples is not the sum of the means of the pieces, and the
    last piece may be smaller. Fill the two gaps.

    **Input:** `x` of shape `[samples, inputs]`, with at least one sample, `y` of shape `[samples]`,
    `w` of shape `[inputs]`, and `size`, the number of samples in a piece.

    **Output:** the gradient, with respect to `w`, of the mean squared error over all samples,
    computed in pieces.

    ```python
    x, y = tk.tensor([[1.0], [2.0], [3.0]]), tk.tensor([1.0, 1.0, 1.0])
    micro_batch_gradient(x, y, tk.tensor([0.0]), 2)
    # tensor([-4.])
    ```

    All at once: the mean of 2 · (0 - 1) · 1, 2 · (0 - 1) · 2 and 2 · (0 - 1) · 3.
    """

    rules = (
        Rule(
            "in pieces",
            "Go through the samples in a loop, `size` at a time, with a `backward` for each piece.",
            needs=(GRADIENT_IN_LOOP,),
        ),
    )
    hints = (
        "A piece of 2 samples out of 3 should count two thirds: its mean, times its share, is its "
        "part of the whole mean.",
        "`share = len(part_x) / len(x)`; `len(part_x)` may be smaller than `size` in the last "
        "piece. Then `(loss * share).backward()`.",
    )
    usual_mistakes = {
        "no share": (
            _no_share,
            "You add up the means of the pieces. With 3 pieces that is about 3 times too much: "
            "multiply each loss by its share of all samples.",
        ),
        "equal shares": (
            _equal_shares,
            "You count every piece alike. The last one may be smaller, and then its samples count "
            "too much: take `len(part_x)`.",
        ),
        "the size of a full piece": (
            _share_of_the_size,
            "You take `size` for every piece. The last one may hold fewer samples: `len(part_x)`.",
        ),
        "one sample": (
            _share_of_one,
            "You count each piece as one sample. Its loss is a mean, so it stands for as many as "
            "the piece holds.",
        ),
        "whole numbers": (
            _whole_numbers,
            "`//` divides whole numbers and cuts, so nearly every share is 0. Divide with `/`.",
        ),
        "the count": (
            _count_of_samples,
            "This is how many samples the piece has. Its share is that divided by `len(x)`.",
        ),
        "the sum scaled": (
            _the_sum_scaled,
            "You multiply `w.grad`, in which the pieces before are added up already; they are "
            "scaled once more each time. Multiply the loss, before `backward`.",
        ),
        "backward with a number": (
            _share_for_backward,
            "`backward` does not take the share. Multiply the loss by it first: "
            "`(loss * share).backward()`.",
        ),
        "cleared between": (
            _cleared_between,
            "You clear the gradient before each piece, so only the last one counts. Here they are "
            "meant to add up.",
        ),
        "divided by the share": (
            lambda x, y, w, size: _batches(
                x, y, w, size, lambda part, whole, batches: whole / part
            ),
            "You divide by the share. A piece that is half of the samples should count half: "
            "multiply.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        x, y = tk.tensor([[1.0], [2.0], [3.0]]), tk.tensor([1.0, 1.0, 1.0])
        yield case(x, y, tk.tensor([0.0]), 2, label="three samples, two at a time")
        yield case(*_samples(draw, 6, 2), 2, label="pieces of the same size")
        yield case(*_samples(draw, 7, 3), 3, label="a last piece of one sample")
        yield case(*_samples(draw, 5, 2), 4, label="a large piece and a small one")
        yield case(*_samples(draw, 3, 1), 1, label="one sample at a time")
        yield case(*_samples(draw, 4, 2), 10, label="everything in one piece")
        x, y, w = _samples(draw, 5, 2)
        apart = tk.stack([x, -x, y.unsqueeze(1) * x], dim=2)[..., 0]
        yield case(apart, y, w, 2, label="samples apart in memory (non-contiguous)")
        x = tk.tensor([[1.0], [2.0], [4.0], [8.0]], dtype=tk.float16)
        yield case(
            x, x.flatten(), tk.zeros(1, dtype=tk.float16), 2, label="half the memory (float16)"
        )


def _samples(draw: Draw, n: int, inputs: int) -> tuple[tk.Tensor, tk.Tensor, tk.Tensor]:
    """Samples whose gradients differ much: the later, the larger."""
    rows = [[(i + 1.0) * number for number in draw.floats(inputs, 1, 2)] for i in range(n)]
    return tk.tensor(rows), tk.tensor([3.0 * (i + 1) for i in range(n)]), tk.zeros(inputs)
