"""The exercise dense: a dense layer."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def dense(x: tk.Tensor, weight: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
    """What a dense layer makes of the samples in `x`."""
    return x @ weight.T + bias


def _without_transpose(x: tk.Tensor, weight: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
    return x @ weight + bias


def _element_by_element(x: tk.Tensor, weight: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
    return x * weight + bias


def _weight_first(x: tk.Tensor, weight: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
    return weight @ x.T + bias


def _transposed_result(x: tk.Tensor, weight: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
    return (x @ weight.T + bias).T


def _forgets_the_bias(x: tk.Tensor, weight: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
    return x @ weight.T


def _bias_inside(x: tk.Tensor, weight: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
    return x @ (weight.T + bias)


def _bias_before_the_turn(x: tk.Tensor, weight: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
    return (weight @ x.T + bias).T


@exercise("dense", answer=dense, points=5, difficulty=3, minutes=8)
class Dense(Exercise):
    """A dense layer

    The most common part of a network multiplies each sample by a matrix of weights and adds a
    bias.

    **Input:** `x` of shape `[samples, inputs]`, `weight` of shape `[outputs, inputs]` (a row for
    each output, as PyTorch stores it), `bias` of shape `[outputs]`; all of the same dtype,
    float or int64.

    **Output:** a tensor of shape `[samples, outputs]`. Output `j` of a sample is the sample times
    row `j` of `weight`, element by element, added up, plus `bias[j]`. The three arguments stay as
    they are.

    ```python
    x = tk.tensor([[1.0, 2.0]])
    weight = tk.tensor([[10.0, 20.0], [1.0, 1.0], [0.0, 5.0]])
    dense(x, weight, tk.tensor([0.5, 0.0, 0.0]))
    # tensor([[50.5000,  3.0000, 10.0000]])
    ```
    """

    hints = (
        "Write the shapes side by side: `[samples, inputs] @ [?, ?]` should give "
        "`[samples, outputs]`.",
        "`weight` lies the wrong way round for that: `weight.T` has shape `[inputs, outputs]`.",
        "The bias is a row that is added to every row of the product.",
    )
    usual_mistakes = {
        "weight not transposed": (
            _without_transpose,
            "You multiply by `weight` as it is, `[outputs, inputs]`. The inner sizes must agree: "
            "`[samples, inputs] @ [inputs, outputs]`, so turn it with `.T`.",
        ),
        "element by element": (
            _element_by_element,
            "`*` multiplies element by element and adds nothing up. A matrix product is `@`.",
        ),
        "weight first": (
            _weight_first,
            "`weight @ x.T` has shape `[outputs, samples]`: samples stand in columns. Put `x` "
            "first, and turn `weight`.",
        ),
        "result turned": (
            _transposed_result,
            "The numbers are right and lie the wrong way round: each row should "
            "be a sample. `.T` turns a matrix.",
        ),
        "bias before the turn": (
            _bias_before_the_turn,
            "You add the bias while the samples stand in columns, so it goes along the samples, "
            "or does not fit. Turn the product first, then add the bias to its rows.",
        ),
        "no bias": (
            _forgets_the_bias,
            "The product is right, the bias is missing. Add it: one number for each output.",
        ),
        "bias inside": (
            _bias_inside,
            "You added the bias to the weights, where it is multiplied too. Add it to the product.",
        ),
        "reshaped": (
            lambda x, weight, bias: x @ weight.reshape(weight.shape[1], weight.shape[0]) + bias,
            "`reshape` fits, and mixes the weights: it keeps the order in memory. `.T` makes rows "
            "of columns.",
            r"reshape|view",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[1.0, 2.0]]),
            tk.tensor([[10.0, 20.0], [1.0, 1.0], [0.0, 5.0]]),
            tk.tensor([0.5, 0.0, 0.0]),
            label="one sample, three outputs",
        )
        yield case(*_layer(draw, 4, 3, 2), label="four samples")
        yield case(*_layer(draw, 3, 3, 3), label="as many outputs as inputs as samples")
        yield case(*_layer(draw, 2, 5, 1), label="one output")
        yield case(tk.zeros(0, 2), tk.ones(3, 2), tk.ones(3), label="no samples (empty)")
        a, b, c = [float(number) for number in draw.integers(3, 2, 9)]
        single = tk.tensor([[a]]), tk.tensor([[b]]), tk.tensor([c])
        yield case(*single, label="one of everything (size 1)")
        halves = tk.tensor([draw.integers(2, 1, 9) for _ in range(2)]).half()
        weight = tk.tensor([draw.integers(2, -9, 9) for _ in range(3)]).half() / 2
        bias = tk.tensor(draw.distinct(3, 1, 9)).half() / 2
        yield case(halves, weight, bias, label="half the memory (float16)")
        # the product is far from symmetric
        low, high = draw.integers(4, 1, 4), draw.integers(4, 6, 9)
        x, weight = tk.tensor([high[:2], low[:2]]), tk.tensor([low[2:], high[2:]])
        yield case(x, weight, tk.tensor(draw.distinct(2, 1, 9)), label="whole numbers (int)")
        x, weight, bias = _layer(draw, 3, 4, 2)
        yield case(x.double(), weight.double(), bias.double(), label="float64")
        wide, weight, bias = _layer(draw, 3, 4, 2)
        yield case(
            tk.cat([wide, wide])[::2], weight, bias, label="every second sample (non-contiguous)"
        )


def _layer(draw: Draw, samples: int, inputs: int, outputs: int) -> tuple[tk.Tensor, ...]:
    return (
        tk.tensor([draw.floats(inputs, -3, 3) for _ in range(samples)]),
        tk.tensor([draw.floats(inputs, -3, 3) for _ in range(outputs)]),
        tk.tensor(draw.floats(outputs, -9, -5)),
    )
