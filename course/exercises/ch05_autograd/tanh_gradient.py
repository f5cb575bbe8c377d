"""The exercise tanh-gradient: the gradient that one node passes on."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def tanh_gradient(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    """The gradient of the input of tanh, from that of its result `out`."""
    return upstream * (1 - out * out)


def _without_upstream(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return 1 - out * out


def _not_the_square(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - out)


def _difference_squared(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - out) ** 2


def _upstream_added(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream + (1 - out * out)


def _tanh_once_more(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * (1 - tk.tanh(out) ** 2)


def _of_the_sigmoid(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return upstream * out * (1 - out)


def _summed_up(upstream: tk.Tensor, out: tk.Tensor) -> tk.Tensor:
    return (upstream * (1 - out * out)).sum()


@exercise("tanh-gradient", answer=tanh_gradient, points=2, difficulty=2, minutes=5)
class TanhGradient(Exercise):
    """One node's work

    A node receives the gradient of its result, the *upstream gradient*, and passes on the
    gradient of its input. For `out = tanh(x)` the derivative is `1 - tanh(x)²`, and `tanh(x)`
    is known already: it is `out`.

    **Input:** `upstream` and `out`, two float tensors of the same shape and dtype, with any number
    of dimensions.

    **Output:** the gradient of `x`: upstream gradient times derivative, element by element. Both
    arguments stay as they are.

    ```python
    tanh_gradient(tk.tensor([1.0, 2.0]), tk.tensor([0.0, 0.5]))
    # tensor([1.0000, 1.5000])
    ```

    Your function runs inside tensorkit below.
    """

    hints = (
        "The chain rule multiplies: what comes from above, times the node's own derivative.",
        "The derivative at each element is `1 - out * out`.",
    )
    usual_mistakes = {
        "without upstream": (
            _without_upstream,
            "This is the derivative of tanh alone. What comes from above must be multiplied in, or "
            "the chain ends here.",
        ),
        "not squared": (
            _not_the_square,
            "The derivative is 1 minus the *square* of the result: `1 - out * out`.",
        ),
        "the difference squared": (
            _difference_squared,
            "`(1 - out) ** 2` squares the difference. Square `out` alone, then subtract it from 1.",
        ),
        "added": (
            _upstream_added,
            "You added the upstream gradient. Along a chain derivatives are multiplied.",
        ),
        "tanh once more": (
            _tanh_once_more,
            "`out` is tanh of the input already. Do not apply tanh again.",
        ),
        "of the sigmoid": (
            _of_the_sigmoid,
            "`out * (1 - out)` is the derivative of the sigmoid. That of tanh is `1 - out * out`.",
        ),
        "summed up": (
            _summed_up,
            "The gradient of `x` has the shape of `x`: every element keeps its own. Leave out the "
            "sum.",
        ),
        "brackets missing": (
            lambda upstream, out: upstream - out * out,
            "Only the 1 is multiplied by `upstream`: `*` comes before `-`. Put brackets around the "
            "whole difference.",
        ),
        "exchanged": (
            lambda upstream, out: out * (1 - upstream * upstream),
            "You took the derivative of `upstream` and multiplied by `out`: exchange the two.",
        ),
        "a product of vectors": (
            lambda upstream, out: upstream @ (1 - out * out),
            "`@` adds the products up. Multiply element by element: `*`.",
            r"@|matmul|dot",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, 2.0]), tk.tensor([0.0, 0.5]), label="two elements")
        yield case(
            tk.tensor(draw.floats(4, 2, 9)),
            tk.tensor(draw.floats(4, 0.3, 0.8)),
            label="any four elements",
        )
        signs = tk.tensor([[-1.0, 1.0], [1.0, -1.0]])
        upstream, out = _passed_back(draw, 4)
        yield case(
            upstream.reshape(2, 2) * signs,
            out.reshape(2, 2) * signs.flip(1),
            label="a matrix with negative numbers",
        )
        flat = tk.tensor([draw.integer(2, 9), -draw.integer(2, 9), draw.integer(2, 9)]).float()
        yield case(flat, tk.ones(3), label="where tanh is flat")
        upstream, out = _passed_back(draw, 1)
        yield case(upstream[0], -out[0], label="a single number (0-d)")
        yield case(*_passed_back(draw, 1), label="a single element (size 1)")
        upstream, out = (tensor.double() for tensor in _passed_back(draw, 2))
        yield case(upstream, -out, label="float64")
        upstream, out = (tensor.half() for tensor in _passed_back(draw, 2))
        yield case(upstream, -out, label="half the memory (float16)")
        upstream, out = _passed_back(draw, 4)
        yield case(upstream[::2], out[::2], label="every second element (non-contiguous)")
        yield case(tk.zeros(0), tk.zeros(0), label="no elements (empty)", weight=0.25)


def _passed_back(draw: Draw, n: int) -> tuple[tk.Tensor, tk.Tensor]:
    """A gradient from above and a result of tanh that are not small; their product is not 1."""
    return tk.tensor(draw.integers(n, 2, 9)).float(), tk.tensor(draw.integers(n, 9, 15)) / 16
