"""The exercise sigmoid-gradient: a formula that can be differentiated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import Rule


def sigmoid_gradient(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    """The gradient of the input of a sigmoid, from that of its result `out`."""
    return upstream * out * (1 - out)


def _detached(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    out = out.detach()
    return upstream * out * (1 - out)


def _without_recording(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    with tk.no_grad():
        return upstream * out * (1 - out)


def _without_upstream(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return out * (1 - out)


def _of_tanh(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - out * out)


def _half_of_it(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - out)


@exercise("sigmoid-gradient", answer=sigmoid_gradient, points=3, difficulty=3, minutes=9)
class SigmoidGradient(Exercise):
    r"""A formula that can be differentiated

    The slope of the sigmoid is $\frac{e^{-x}}{(1 + e^{-x})^2}$. Its node has saved the result
    `out`, which is $\frac{1}{1 + e^{-x}}$, and not `x`. Find on paper how the slope is computed
    from `out` alone. Then write the gradient formula of this node so that its *result* has a
    history too: the second derivative goes back through it.

    **Input:** `upstream` and `out`, two float tensors of the same shape and dtype, with any number
    of dimensions, which may require grad.

    **Output:** upstream gradient times slope, element by element, computed with tensor operations
    that are recorded. `upstream` and `out` stay as they are.

    ```python
    sigmoid_gradient(tk.tensor([1.0, 2.0]), tk.tensor([0.5, 0.25]))
    # tensor([0.2500, 0.3750])
    ```

    The check also differentiates your result once more, with respect to `out` and to `upstream`.
    Your function runs inside tensorkit below.
    """

    rules = (
        Rule(
            "write the gradient formula of this node",
            "Your answer lets autograd find the gradient, and this formula is what autograd runs. "
            "Compute it from `upstream` and `out`.",
            refuses=("backward", "grad"),
        ),
    )

    hints = (
        "The slope is a product of two fractions: $\\frac{1}{1 + e^{-x}}$, which is `out`, and "
        "$\\frac{e^{-x}}{1 + e^{-x}}$. The two fractions add up to 1.",
        "As with tanh: what comes from above, times the node's own slope, `out * (1 - out)`.",
        "Write one line with `*` and `-` and nothing that takes a tensor out of the graph: no "
        "`detach`, no `no_grad`, no `.data`, no `.item()`.",
    )
    usual_mistakes = {
        "detached": (
            _detached,
            "The gradient is right, and its slope with respect to `out` is lost, as after "
            "`detach`. Use `out` as it comes.",
        ),
        "not recorded": (
            _without_recording,
            "The numbers are right, and nothing was recorded, as inside `no_grad`: the result "
            "cannot be differentiated. Compute with the tensors as they come.",
        ),
        "without upstream": (
            _without_upstream,
            "This is the derivative alone. Multiply what comes from above into it.",
        ),
        "of tanh": (
            _of_tanh,
            "`1 - out * out` is the derivative of tanh. That of the sigmoid is `out * (1 - out)`.",
        ),
        "half of it": (
            _half_of_it,
            "A factor is missing: the derivative is `out * (1 - out)`.",
        ),
        "a product of vectors": (
            lambda upstream, out: upstream @ (out * (1 - out)),
            "`@` adds the products up. Multiply element by element: `*`.",
            r"@|matmul|dot",
        ),
        "sigmoid once more": (
            lambda upstream, out: upstream * tk.sigmoid(out) * (1 - tk.sigmoid(out)),
            "`out` is the sigmoid already. Do not apply it again.",
        ),
        "brackets missing": (
            lambda upstream, out: upstream * (out * 1 - out),
            "`out * 1 - out` is 0: put brackets around `1 - out`.",
            r"- ?out",
        ),
        "added": (
            lambda upstream, out: upstream + out * (1 - out),
            "You added the upstream gradient. Along a chain derivatives are multiplied.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def upstream(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 2, 5))

        def out(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 0.1, 0.4))

        yield case(tk.tensor([1.0, 2.0]), tk.tensor([0.5, 0.25]), label="two elements")
        yield case(upstream(4), out(4), label="any four elements")
        yield case(
            tk.stack([-upstream(2), upstream(2)]), tk.stack([out(2), 1 - out(2)]), label="a matrix"
        )
        yield case(upstream(1)[0], out(1)[0], label="a single number (0-d)")
        yield case(-upstream(2).double(), 1 - out(2).double(), label="float64")
        yield case(upstream(4)[::2], out(4)[::2], label="every second element (non-contiguous)")
        yield case(
            upstream(1).unsqueeze(0),
            1 - out(1).unsqueeze(0),
            label="a matrix of one number (size 1)",
        )
        yield case(tk.zeros(0), tk.zeros(0), label="no elements (empty)", weight=0.25)

    def run(self, answer: Any, *args: Any) -> Any:
        """The gradient, and the gradient of its sum with respect to `out`."""
        upstream, out = (argument.clone().requires_grad_() for argument in args)
        gradient = answer(upstream, out)
        if not isinstance(gradient, tk.Tensor):
            return gradient
        seen = Seen({"gradient": gradient.detach().clone()})
        seen["can be differentiated"] = gradient.requires_grad
        if gradient.requires_grad:
            again = tk.autograd.grad(gradient.sum(), (out, upstream), materialize_grads=True)
            seen["differentiated once more, by out"] = again[0]
            seen["differentiated once more, by upstream"] = again[1]
        return seen
