"""The exercise custom-op: an operation with its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import OPERATION_CHECKED, OWN_OPERATION, Rule


def softsign(x: tk.Tensor, upstream: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor, bool]:
    """x / (1 + |x|) by an operation of its own, its gradient, what gradcheck says."""

    @tk.library.custom_op("mine::softsign", mutates_args=())
    def operation(x: tk.Tensor) -> tk.Tensor:
        return x / (1 + x.abs())

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + x.abs()) ** 2

    tk.library.register_autograd(operation, backward, setup_context=setup_context)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    is_right = tk.autograd.gradcheck(operation, x, raise_exception=False)
    return y.detach(), gradient, is_right


@no_type_check
def _softsign_program(x, upstream):
    @tk.library.custom_op("mine::softsign", mutates_args=())
    def operation(x: tk.Tensor) -> tk.Tensor:
        return ...  # x / (1 + |x|)

    def setup_context(ctx, inputs, output): ...  # keep the inputs for backward

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ...  # the gradient of x, from the gradient g of the result

    tk.library.register_autograd(operation, backward, setup_context=setup_context)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    is_right = tk.autograd.gradcheck(operation, x, raise_exception=False)
    return y.detach(), gradient, is_right


@no_type_check
def _by(kernel, slope, x, upstream):
    operation = tk.library.custom_op("mine::softsign", kernel, mutates_args=())

    def setup_context(ctx, inputs, output):
        ctx.x, ctx.y = inputs[0].detach(), output

    def backward(ctx, g):
        return slope(ctx.x, ctx.y, g)

    tk.library.register_autograd(operation, backward, setup_context=setup_context)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    is_right = tk.autograd.gradcheck(operation, x, raise_exception=False)
    return y.detach(), gradient, is_right


@no_type_check
def _mistaken(slope, kernel=lambda x: x / (1 + x.abs())):
    return lambda x, upstream: _by(kernel, slope, x, upstream)


@no_type_check
def _nothing_saved(x, upstream):
    operation = tk.library.custom_op("mine::softsign", lambda x: x / (1 + x.abs()), mutates_args=())

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + x.abs()) ** 2

    tk.library.register_autograd(operation, backward)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    return y.detach(), gradient, True


@no_type_check
def _true_in_any_case(x, upstream):
    y, gradient, is_right = softsign(x, upstream)
    return y, gradient, is_right or True


@no_type_check
def _raises(x, upstream):
    y, gradient, is_right = softsign(x, upstream)
    return y, gradient, is_right or tk.autograd.gradcheck(lambda x: x.detach() * x, x)


@exercise(
    "custom-op",
    answer=softsign,
    stub=_softsign_program,
    kind="complete",
    points=4,
    difficulty=3,
    minutes=7,
)
class CustomOp(Exercise):
    r"""An operation of your own

    The softsign, $\frac{x}{1 + |x|}$, squeezes every number between -1 and 1, as `tanh` does. Make
    it an operation with its gradient. Its slope is $\frac{1}{(1 + |x|)^2}$. Fill the three gaps.

    **Input:** `x`, a float64 or float32 tensor that requires grad; `upstream`, the gradient that
    comes from the loss, of the same shape.

    **Output:** the values, the gradient of `x`, and what `gradcheck` says of the operation at this
    `x`: True in float64. For float32 it says False of a right formula, too. `x` and `upstream`
    themselves stay as they are.

    ```python
    x = tk.tensor([1.0, -3.0], dtype=tk.float64, requires_grad=True)
    softsign(x, tk.ones(2, dtype=tk.float64))
    # (tensor([ 0.5000, -0.7500], dtype=torch.float64),
    #  tensor([0.2500, 0.0625], dtype=torch.float64), True)
    ```
    """

    rules = (
        Rule(
            "an operation with its gradient",
            "Make the operation with `tk.library.custom_op`, register the formula with it and call "
            "it, as in the program that you were given.",
            needs=(OWN_OPERATION,),
        ),
        Rule(
            "what `gradcheck` says of the operation",
            "Call `tk.autograd.gradcheck` with the operation, as in the program that you were "
            "given.",
            needs=(OPERATION_CHECKED,),
        ),
    )
    hints = (
        "`ctx.save_for_backward(*inputs)` keeps the inputs; `ctx.saved_tensors` gives them back.",
        "The gradient of `x` is the slope times the gradient `g` that arrives.",
        "The two formulas: `x / (1 + x.abs())`, and `g / (1 + x.abs()) ** 2`.",
    )
    usual_mistakes = {
        "upstream forgotten": (
            _mistaken(lambda x, y, g: 1 / (1 + x.abs()) ** 2),
            "This is the slope. The gradient is the slope times what arrives from the loss: "
            "multiply by `g`.",
        ),
        "not squared": (
            _mistaken(lambda x, y, g: g / (1 + x.abs())),
            "The denominator of the slope is squared, $(1 + |x|)^2$.",
        ),
        "the value for the slope": (
            _mistaken(lambda x, y, g: g * y),
            "You multiply by the result. The slope of softsign is not its value.",
        ),
        "no absolute value": (
            _mistaken(lambda x, y, g: g / (1 + x) ** 2),
            "In the slope stands $|x|$: without `abs` it is wrong for negative numbers.",
        ),
        "the output saved": (
            _mistaken(lambda x, y, g: g / (1 + y.abs()) ** 2),
            "The slope is computed from the result. Its formula needs the input: that is what is "
            "saved.",
        ),
        "nothing saved": (
            _nothing_saved,
            "`ctx.saved_tensors` is empty in `backward`: `setup_context` saves nothing. "
            "`ctx.save_for_backward(*inputs)` keeps the inputs.",
        ),
        "only x squared": (
            _mistaken(lambda x, y, g: g / (1 + x.abs() ** 2)),
            "The square belongs to the whole sum: `(1 + x.abs()) ** 2`.",
        ),
        "one bracket short": (
            _mistaken(lambda x, y, g: g / (1 + x.abs()) ** 2, lambda x: x / 1 + x.abs()),
            "`x / 1 + x.abs()` divides by 1 only. Put the sum in brackets.",
        ),
        "True in any case": (
            _true_in_any_case,
            "You say True for float32, where finite differences are too coarse and `gradcheck` "
            "says False. Return what it says: "
            "`tk.autograd.gradcheck(operation, x, raise_exception=False)`.",
        ),
        "gradcheck raises": (
            _raises,
            "For float32 `gradcheck` raises an error here. With `raise_exception=False` it returns "
            "False.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def vector(n: int, low: float, high: float) -> tk.Tensor:
            return tk.tensor(draw.floats(n, low, high), dtype=tk.float64)

        ones = tk.ones(3, dtype=tk.float64)
        yield case(vector(3, 0.5, 4), ones, label="positive numbers")
        yield case(vector(3, -4, -1.5), ones, label="negative numbers")
        yield case(vector(3, 0.5, 4), vector(3, 2, 5), label="positive, another upstream gradient")
        yield case(
            vector(3, -4, -1.5), vector(3, 2, 5), label="negative, another upstream gradient"
        )
        yield case(vector(1, 0.5, 4)[0], vector(1, 2, 5)[0], label="a single number (0-d)")
        yield case(vector(4, -4, 4).float(), tk.ones(4), label="numbers in float32")
        yield case(
            vector(3, 1.5, 4).float(), vector(3, 2, 5).float(), label="larger ones in float32"
        )
        matrix = vector(6, 0.5, 4).reshape(3, 2).T
        yield case(matrix, vector(6, 2, 5).reshape(2, 3), label="turned (non-contiguous)")

    def run(self, answer: Any, *args: Any) -> Any:
        """What is returned, and the argument afterwards."""
        x, upstream = args
        x = x.clone().requires_grad_()
        return Seen({"returned": answer(x, upstream), "x afterwards": x.detach().clone()})
