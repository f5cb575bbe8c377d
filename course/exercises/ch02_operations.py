"""The exercises of chapter 02, Operations, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.rules import LOOP, Rule
from course.notebook.varied import Value, Varied


def softplus(x: tk.Tensor) -> tk.Tensor:
    """log(1 + exp(x)) of each element, also where exp(x) is too large."""
    return x.clamp(min=0) + tk.log(1 + tk.exp(-x.abs()))


def _overflows(x: tk.Tensor) -> tk.Tensor:
    return tk.log(1 + tk.exp(x))


def _only_the_ramp(x: tk.Tensor) -> tk.Tensor:
    return x.clamp(min=0)


def _limits_the_input(x: tk.Tensor) -> tk.Tensor:
    return tk.log(1 + tk.exp(x.clamp(max=80)))


def _only_the_rest(x: tk.Tensor) -> tk.Tensor:
    return tk.log(1 + tk.exp(-x.abs()))


def _overflows_on_the_other_side(x: tk.Tensor) -> tk.Tensor:
    return x + tk.log(1 + tk.exp(-x))


def _in_float64(x: tk.Tensor) -> tk.Tensor:
    return tk.log(1 + tk.exp(x.double())).to(x.dtype)


def _some_number_for_inf(x: tk.Tensor) -> tk.Tensor:
    result = tk.log(1 + tk.exp(x))
    result[result == float("inf")] = 1000
    return result


def _a_limit_for_float32(x: tk.Tensor) -> tk.Tensor:
    return tk.where(x > 50, x, tk.log(1 + tk.exp(x)))


@exercise(
    "softplus",
    answer=softplus,
    stub=_overflows,
    points=0,
    difficulty=3,
    minutes=12,
    further=True,
)
class Softplus(Exercise):
    """The curve that ends in inf

    The *softplus*, log(1 + exp(x)), is a smooth ramp: almost 0 far to the left, almost `x` far
    to the right. The code below computes the formula directly. It is right for small numbers,
    and answers `inf` for 100, because exp(100) is larger than any float32. Repair it.

    On paper, log(1 + exp(x)) equals x + log(1 + exp(-x)): take exp(x) out of the bracket. `exp` of
    a negative number is never too large. So each of the two forms is safe for half of all numbers.

    **Input:** `x`, a float tensor of any shape.

    **Output:** a tensor of the same shape and dtype: log(1 + exp(x)) of each element, however
    large or small it is.

    ```python
    softplus(tk.tensor([0.0, 100.0]))
    # tensor([  0.6931, 100.0000])
    # the code below answers tensor([0.6931,    inf])
    ```

    In float16 even exp(12) is `inf`.
    """

    hints = (
        "`exp` of a large number is `inf`, `exp` of a negative one is harmless. Can the formula be "
        "written so that `exp` sees only negative numbers?",
        "Use the form with exp(x) where `x` is negative, the form with exp(-x) where it is "
        "positive.",
        "Both in one line: `-x.abs()` is never positive, and `x.clamp(min=0)` is `x` where it is "
        "positive and 0 elsewhere.",
    )
    usual_mistakes = {
        "only the ramp": (
            _only_the_ramp,
            "You cut the numbers off at 0. Near 0 the softplus is rounder: at 0 it is log(2), "
            "0.6931. Add the logarithm to your ramp.",
        ),
        "limits the input": (
            _limits_the_input,
            "There is no `inf` any more, but your curve stops growing: at 1000 it should be 1000. "
            "Limit what goes into `exp`, and add what you cut off.",
        ),
        "only the logarithm": (
            _only_the_rest,
            "The left half is right. To the right your curve falls back to 0: where `x` is "
            "positive, `x` itself must be added.",
        ),
        "the other side": (
            _overflows_on_the_other_side,
            "The right half is right now, and the `inf` has moved to the left: for -1000 you ask "
            "for exp(1000). Use this form only where `x` is positive.",
        ),
        "some number for inf": (
            _some_number_for_inf,
            "You put one number in the place of every `inf`. Far to the right the softplus is `x` "
            "itself: what stands there depends on `x`.",
        ),
        "a limit for float32": (
            _a_limit_for_float32,
            "This is right for float32. In float16 `exp` is `inf` from 12 on, long before your "
            "limit. Choose a smaller one, or a formula that needs none.",
        ),
        "a wider dtype": (
            _in_float64,
            "float64 only moves the limit: exp(1000) is `inf` there too. Write the formula so that "
            "`exp` never sees a large number.",
        ),
        "log taken apart": (
            lambda x: tk.log(tk.ones_like(x)) + x,
            "log(1 + exp(x)) is not log(1) + x: the logarithm of a sum cannot be taken apart.",
        ),
        "x where positive": (
            lambda x: tk.where(x > 0, x, tk.log(1 + tk.exp(x))),
            "Where `x` is a little above 0 the softplus is larger than `x`: at 0.5 it is 0.97. "
            "Add the logarithm there too.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([0.0, 100.0]), label="zero and a large number")
        four = [*draw.floats(2, -3, -1), *draw.floats(2, 1, 3)]
        yield case(tk.tensor(four), label="any four numbers")
        yield case(tk.tensor([-1000.0, 1000.0]), label="far out on both sides")
        small = draw.floats(2, 0.3, 3)
        large = [float(number) for number in draw.integers(5, 1001, 1900)]
        table = tk.tensor([[-small[0], large[0]], [float(draw.integer(90, 99)), small[1]]])
        yield case(table, label="a table")
        yield case(tk.tensor(large[1]), label="a single number (0-d)")
        yield case(tk.tensor([[-large[2]]]), label="one row, one column (size 1)")
        a, b, c = draw.integer(12, 19), -draw.integer(12, 19), draw.integer(100, 400)
        yield case(tk.tensor([a, b, c, 0]).half(), label="half the memory (float16)")
        column = tk.tensor([[draw.integer(12, 15) - 0.5], [draw.integer(15, 40)]])
        yield case(column.half(), label="a column of halves (float16)")
        mixed = tk.tensor([draw.number(0.3, 3), 0.0, -large[3], 0.0, large[4]])
        yield case(mixed[::2], label="every second element (non-contiguous)")
        yield case(tk.zeros(0, 2), label="no elements (empty)")


def brighter(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    """The pixels with `amount` added, no value below 0 or above 255."""
    return (pixels + amount).clamp(0, 255)


def _changes_the_photo(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    pixels.add_(amount)
    pixels.clamp_(0, 255)
    return pixels


def _only_the_clamp_is_new(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    pixels += amount
    return pixels.clamp(0, 255)


def _result_thrown_away(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    pixels = pixels.clone()
    pixels.add(amount)
    pixels.clamp(0, 255)
    return pixels


def _no_lower_limit(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    return (pixels + amount).clamp(max=255)


def _no_upper_limit(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    return (pixels + amount).clamp(min=0)


def _limits_first(pixels: tk.Tensor, amount: float) -> tk.Tensor:
    return pixels.clamp(0, 255) + amount


def _min_and_max_of_python(pixels: tk.Tensor, amount: float) -> Any:
    return min(max(pixels + amount, 0), 255)


@exercise("brighter", answer=brighter, stub=_changes_the_photo, points=4, difficulty=2, minutes=6)
class Brighter(Exercise):
    """Brighter, without touching the photo

    A program shows a photo three times: as it is, brighter, darker. With the code below all three
    look alike, because the function writes into the photo that it is given. Repair it.

    **Input:** `pixels`, a float tensor of any shape with values from 0 to 255, and `amount`, a
    number, negative for darker.

    **Output:** a tensor: `amount` added to every pixel, what is then below 0 set to 0, what is
    above 255 set to 255. `pixels` stays as it was.

    ```python
    photo = tk.tensor([10.0, 200.0])
    brighter(photo, 100)
    # tensor([110., 255.])
    photo
    # tensor([ 10., 200.])
    ```
    """

    hints = (
        "Which names in the code end in an underscore? Each of them writes into the tensor before "
        "the dot.",
        "`pixels + amount` is a new tensor, and so is `.clamp(0, 255)` without the underscore. "
        "Chain the two.",
    )
    usual_mistakes = {
        "writes into the photo": (
            _only_the_clamp_is_new,
            "`amount` is still added to the photo itself: `+=` and `add_` write into the tensor. "
            "Write `pixels + amount`, which makes a new one.",
        ),
        "min and max of Python": (
            _min_and_max_of_python,
            "Python's `min` and `max` want one answer for the whole tensor. `clamp` compares each "
            "element with the limits.",
            r"\b(min|max)\(",
        ),
        "the result is lost": (
            _result_thrown_away,
            "The pixels come back as they were. Without the underscore `add` and `clamp` change "
            "nothing; they return something new: use that.",
        ),
        "no lower limit": (
            _no_lower_limit,
            "Darker pixels fall below 0. Give `clamp` both limits: 0 and 255.",
        ),
        "no upper limit": (
            _no_upper_limit,
            "Bright pixels rise above 255. Give `clamp` both limits: 0 and 255.",
        ),
        "limits first": (
            _limits_first,
            "You clamp first and add then, so the sum can leave the range again. Add first.",
        ),
        "multiplied": (
            lambda pixels, amount: (pixels * (1 + amount / 100)).clamp(0, 255),
            "You make the pixels larger by a percentage. `amount` is added to each.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([10.0, 200.0]), 100, label="two pixels, brighter")
        three = [draw.integer(1, 40), draw.integer(180, 255), draw.integer(110, 170)]
        yield case(tk.tensor(three).float(), -draw.integer(50, 100), label="three pixels, darker")
        yield case(
            tk.tensor([[float(number) for number in draw.integers(3, 0, 180)] for _ in range(2)]),
            draw.integer(20, 60),
            label="any photo, brighter",
        )
        ends = tk.tensor([0, 255, draw.integer(200, 250), draw.integer(1, 4)]).float()
        yield case(ends, -draw.integer(5, 19) - 0.5, label="at both ends, darker")
        pixel = float(draw.integer(230, 250))
        yield case(tk.tensor(pixel), draw.integer(30, 60), label="a single pixel (0-d)")
        four = tk.tensor(draw.integers(4, 1, 200)).float()
        yield case(four[::2], draw.integer(20, 50), label="every second pixel (non-contiguous)")
        pixel = float(draw.integer(230, 250))
        yield case(tk.tensor([[pixel]]), draw.integer(30, 60), label="one row, one column (size 1)")
        halves = tk.tensor([draw.integer(1, 50), draw.integer(170, 250)]).half()
        yield case(halves, draw.integer(90, 150), label="half the memory (float16)")
        yield case(tk.zeros(0, 3), 1, label="no pixels (empty)")


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
    each output, as PyTorch stores it), `bias` of shape `[outputs]`; all of the same dtype.

    **Output:** a tensor of shape `[samples, outputs]`. Output `j` of a sample is the sample times
    row `j` of `weight`, element by element, added up, plus `bias[j]`.

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
        one = tk.tensor([[a]]), tk.tensor([[b]]), tk.tensor([c])
        yield case(*one, label="one of everything (size 1)")
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
        tk.tensor(draw.floats(outputs, 5, 9)),
    )


def batch_product(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    """The products of the matrices in `a` with those in `b`, one by one."""
    products = [a[i] @ b[i] for i in range(a.shape[0])]
    return tk.stack(products)


def _joined_products(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    return tk.cat([a[i] @ b[i] for i in range(a.shape[0])])


def _always_the_first(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    return tk.stack([a[i] @ b[0] for i in range(a.shape[0])])


def _stops_early(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    return tk.stack([a[i] @ b[i] for i in range(max(1, a.shape[0] - 1))])


def _list_of_products(a: tk.Tensor, b: tk.Tensor) -> Any:
    return [a[i] @ b[i] for i in range(a.shape[0])]


def _hadamard(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    return a * b


@exercise(
    "batch-product",
    answer=batch_product,
    points=0,
    difficulty=3,
    minutes=6,
    further=True,
    without=("bmm",),
)
class BatchProduct(Exercise):
    """Many products at once

    What `bmm` does, written out: multiply matrix by matrix, then make one tensor of the results.

    **Input:** `a` of shape `[n, rows, inner]` and `b` of shape `[n, inner, columns]`, `n` at least
    1, both of the same dtype.

    **Output:** a tensor of shape `[n, rows, columns]`; its entry `i` is `a[i] @ b[i]`.

    ```python
    a = tk.tensor([[[1.0, 0.0]], [[2.0, 1.0]]])
    b = tk.tensor([[[3.0], [4.0]], [[5.0], [6.0]]])
    batch_product(a, b)
    # tensor([[[ 3.]],
    #
    #         [[16.]]])
    ```

    `a @ b` does it in one go; here write the loop yourself. `tk.stack(matrices)` makes one tensor
    of a list of matrices. `tk.bmm` switches itself off while your function runs.
    """

    rules = (
        Rule(
            "here write the loop",
            "Go through the matrices in a loop, and multiply one pair at a time.",
            needs=(LOOP,),
        ),
    )
    hints = (
        "Collect `a[i] @ b[i]` for every `i` in a list. What turns a list of matrices into one "
        "tensor with a new dimension?",
        "`tk.stack(products)`: entry `i` of the new dimension 0 is product `i`.",
    )
    usual_mistakes = {
        "joined": (
            _joined_products,
            "The products stand below one another, in two dimensions, as `cat` puts them. `stack` "
            "adds a third.",
        ),
        "always the first": (
            _always_the_first,
            "Every matrix is multiplied by `b[0]`. The index of `b` must move along: `b[i]`.",
        ),
        "one too few": (
            _stops_early,
            "The last product is missing. `range(n)` ends before `n` by itself: subtract nothing.",
        ),
        "a list": (
            _list_of_products,
            "The products are right, in a Python list. `tk.stack` makes one tensor of them.",
        ),
        "element by element": (
            _hadamard,
            "`*` multiplies element by element. A matrix product is `@`.",
        ),
        "all pairs": (
            lambda a, b: tk.stack([one @ other for one in a for other in b]),
            "Every matrix of `a` meets every matrix of `b`. Entry `i` is `a[i] @ b[i]`: go "
            "through both together.",
        ),
        "stacked aside": (
            lambda a, b: tk.stack([a[i] @ b[i] for i in range(len(a))], dim=1),
            "The products are right, and the new dimension is not the first one. `tk.stack` puts "
            "it in front unless `dim` is given.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[[1.0, 0.0]], [[2.0, 1.0]]]),
            tk.tensor([[[3.0], [4.0]], [[5.0], [6.0]]]),
            label="two small products",
        )
        yield case(*_batch(draw, 3, 2, 4, 3), label="three of any numbers")
        yield case(*_batch(draw, 4, 2, 2, 2), label="square matrices")
        yield case(*_batch(draw, 1, 3, 2, 2), label="a single pair (size 1)")
        yield case(*(matrices.double() for matrices in _batch(draw, 2, 1, 3, 1)), label="float64")
        turned = [matrices.mT for matrices in _batch(draw, 2, 3, 2, 3)]
        yield case(*reversed(turned), label="transposes (non-contiguous)")
        halves = tk.tensor([[draw.integers(2, 1, 8)], [draw.integers(2, 9, 20)]]).half() / 2
        yield case(halves, halves.mT, label="half the memory (float16)")
        whole = tk.tensor([*draw.integers(6, 1, 4), *draw.integers(6, 5, 9)])
        yield case(whole.reshape(2, 2, 3), whole.reshape(2, 3, 2), label="whole numbers (int)")
        yield case(tk.zeros(2, 0, 3), tk.ones(2, 3, 4), label="no rows (empty)")


def _batch(draw: Draw, n: int, rows: int, inner: int, columns: int) -> tuple[tk.Tensor, tk.Tensor]:
    def matrices(height: int, width: int) -> tk.Tensor:
        return tk.tensor([[draw.floats(width, 1, 9) for _ in range(height)] for _ in range(n)])

    return matrices(rows, inner), matrices(inner, columns)


@exercise("which-result", points=2, difficulty=1, minutes=5)
class WhichResult(Prediction):
    """Predict the result

    Write down what you expect before you run anything: for a tensor of one number that number, for
    a vector a list such as `[1.0, 2.0]`.

    One is done for you:

    ```python
    tk.tensor([1.0, 2.0]) + 1      # [2.0, 3.0]: the 1 is added to each element
    ```
    """

    name = "results"
    ask = "Replace each ... by the result that you expect: a number or a list."
    questions = {
        "tk.tensor([1.0, 2.0]) * tk.tensor([3.0, 4.0])": (
            "`*` multiplies element by element; it adds nothing up."
        ),
        "tk.tensor([1.0, 2.0]) @ tk.tensor([3.0, 4.0])": (
            "`@` of two vectors multiplies element by element and adds the products up."
        ),
        "tk.tensor([1, 2]) / 2": "`/` divides each element, and whole numbers become floats.",
        "tk.tensor([1.0, 2.0, 3.0]) ** 2": "`**` raises each element to the power.",
        "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum()": "Without `dim` everything is added up.",
        "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)": (
            "`dim=0` is the dimension that disappears: the rows are added to each other."
        ),
        "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=1)": (
            "`dim=1` is the dimension that disappears: each row becomes one number."
        ),
        "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).amax(dim=-1)": (
            "-1 is the last dimension, and it disappears: each row becomes one number."
        ),
        "tk.zeros(0).sum()": "A sum begins at 0 and adds what there is.",
        "tk.tensor([4.0, 9.0, 7.0]).argmax()": "`argmax` gives a position, counted from 0.",
        "tk.tensor([5.0, -3.0]).abs().sqrt().sum().round()": (
            "Go from left to right: absolute values, square roots, their sum, rounded."
        ),
    }
    varied = (
        Varied(
            ("1.0", "2.0", "3.0", "4.0"), 1, 9, ("tk.tensor([1.0, 2.0", "tk.tensor([[1.0, 2.0]")
        ),
        Varied(("4.0", "7.0", "9.0"), 1, 9, ("tk.tensor([4.0, 9.0, 7.0])",)),
    )
    hints = (
        "`*` and `**` keep the shape. `@`, `sum` and `argmax` make fewer numbers of many.",
        "The `dim` that you name is the one that goes. `[[1, 2], [3, 4]]` has rows as dimension 0: "
        "without it, one row is left.",
    )
    usual_mistakes = {
        "dim names what stays": (
            {
                "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)": Value(
                    "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=1)"
                ),
                "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=1)": Value(
                    "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)"
                ),
                "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).amax(dim=-1)": [3.0, 4.0],
            },
            "You kept the dimension that is named. `dim=0` says which dimension disappears: after "
            "`sum(dim=0)` the rows are gone and one number for each column is left.",
        ),
        "products confused": (
            {
                "tk.tensor([1.0, 2.0]) * tk.tensor([3.0, 4.0])": Value(
                    "tk.tensor([1.0, 2.0]) @ tk.tensor([3.0, 4.0])"
                ),
                "tk.tensor([1.0, 2.0]) @ tk.tensor([3.0, 4.0])": Value(
                    "tk.tensor([1.0, 2.0]) * tk.tensor([3.0, 4.0])"
                ),
            },
            "You exchanged `*` and `@`. `*` works element by element and keeps the shape; `@` adds "
            "the products up.",
        ),
        "the value instead of the position": (
            {
                "tk.tensor([4.0, 9.0, 7.0]).argmax()": 9.0,
                "tk.tensor([5.0, -3.0]).abs().sqrt().sum().round()": 3.0,
            },
            "You gave the largest value. `argmax` answers where it is, `max` how large it is; and "
            "do the last line once more, step by step.",
        ),
        "vectors are added up": (
            {
                "tk.tensor([1.0, 2.0, 3.0]) ** 2": Value("(tk.tensor([1.0, 2.0, 3.0]) ** 2).sum()"),
                "tk.tensor([1.0, 2.0]) * tk.tensor([3.0, 4.0])": Value(
                    "tk.tensor([1.0, 2.0]) @ tk.tensor([3.0, 4.0])"
                ),
            },
            "You added the elements up. An operation on elements leaves as many numbers as it was "
            "given.",
        ),
    }

    def observe(self, value: tk.Tensor) -> Any:
        return value.tolist()


def standard_rows(x: tk.Tensor) -> tk.Tensor:
    """The rows of `x`, each with mean 0 and standard deviation 1."""
    return (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True)


def _over_columns(x: tk.Tensor) -> tk.Tensor:
    return (x - x.mean(dim=0)) / x.std(dim=0)


def _over_everything(x: tk.Tensor) -> tk.Tensor:
    return (x - x.mean()) / x.std()


def _without_keepdim(x: tk.Tensor) -> tk.Tensor:
    return (x - x.mean(dim=1)) / x.std(dim=1)


def _only_the_mean(x: tk.Tensor) -> tk.Tensor:
    return x - x.mean(dim=1, keepdim=True)


def _divides_by_variance(x: tk.Tensor) -> tk.Tensor:
    return (x - x.mean(dim=1, keepdim=True)) / x.var(dim=1, keepdim=True)


def _divides_first_then_centres(x: tk.Tensor) -> tk.Tensor:
    return x / x.std(dim=1, keepdim=True)


def _squeezed_into_0_to_1(x: tk.Tensor) -> tk.Tensor:
    low, high = x.amin(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)
    return (x - low) / (high - low)


@exercise("standard-rows", answer=standard_rows, points=5, difficulty=3, minutes=9)
class StandardRows(Exercise):
    """Standardise each row

    Each row holds the measurements of one sensor. To compare sensors of different kinds, shift
    each row so that its mean is 0, and scale it so that its standard deviation is 1.

    **Input:** `x`, a float tensor of shape `[rows, columns]`, with at least 2 columns and no row
    of equal numbers.

    **Output:** a tensor of the same shape and dtype: from each row its mean is subtracted, then
    the row is divided by its standard deviation, as `std` computes it.

    ```python
    standard_rows(tk.tensor([[1.0, 2.0, 3.0], [10.0, 30.0, 50.0]]))
    # tensor([[-1.,  0.,  1.],
    #         [-1.,  0.,  1.]])
    ```
    """

    hints = (
        "Which `dim` disappears if each row becomes one number?",
        "`x.mean(dim=1)` has shape `[rows]`, and that is taken for a row of numbers. With "
        "`keepdim=True` it has shape `[rows, 1]` and fits beside the rows.",
        "The same two words, `dim=1` and `keepdim=True`, belong in `std`.",
    )
    usual_mistakes = {
        "columns": (
            _over_columns,
            "You standardise the columns. `dim=0` makes the rows disappear; you want one mean for "
            "each row, so name the dimension of the columns: `dim=1`.",
        ),
        "everything at once": (
            _over_everything,
            "You took one mean and one deviation of all numbers together. Give both a `dim`, so "
            "that each row has its own.",
        ),
        "without keepdim": (
            _without_keepdim,
            "`x.mean(dim=1)` has shape `[rows]` and is subtracted along the wrong direction, or "
            "does not fit at all. `keepdim=True` keeps a size of 1 in its place.",
        ),
        "only centred": (
            _only_the_mean,
            "The means are 0 now. The rows still have different spreads: divide each by its `std`.",
        ),
        "variance": (
            _divides_by_variance,
            "You divide by the variance, which is the square of the standard deviation. Use `std`.",
        ),
        "not centred": (
            _divides_first_then_centres,
            "The spread is 1 now, and the means are not 0: subtract the mean of each row first.",
        ),
        "from 0 to 1": (
            _squeezed_into_0_to_1,
            "You stretched each row from 0 to 1. That is another scaling: subtract the mean, "
            "divide by the standard deviation.",
        ),
        "brackets missing": (
            lambda x: x - x.mean(dim=1, keepdim=True) / x.std(dim=1, keepdim=True),
            "Only the mean is divided: `/` comes before `-`. Put brackets around the difference.",
        ),
        "divided by n": (
            lambda x: (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True, correction=0),
            "This is the standard deviation that NumPy computes, with `n` as divisor. `std` as it "
            "comes divides by `n - 1`.",
        ),
        "the old mean": (
            lambda x: x / x.std(dim=1, keepdim=True) - x.mean(dim=1, keepdim=True),
            "You scale first and subtract the mean that the row had before. Subtract the mean "
            "first, then divide.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([[1.0, 2.0, 3.0], [10.0, 30.0, 50.0]]), label="two sensors")
        yield case(_rows(draw, 3, 5), label="any three rows")
        yield case(_rows(draw, 4, 4), label="as many rows as columns")
        yield case(_rows(draw, 1, 6), label="a single row (size 1)")
        yield case(_rows(draw, 5, 3).T, label="columns of a table (non-contiguous)")
        # in equal steps, so that float16 is exact
        start, step = draw.integer(1, 9), draw.integer(2, 5)
        small = [start + step * i for i in draw.distinct(3, 0, 2)]
        start, step = draw.integer(10, 30), draw.integer(6, 10)
        large = [start + step * i for i in draw.distinct(3, 0, 2)]
        yield case(tk.tensor([small, large]).half(), label="half the memory (float16)")
        yield case(_rows(draw, 2, 4).double(), label="float64")
        yield case(tk.zeros(0, 3), label="no rows (empty)")


def _rows(draw: Draw, rows: int, columns: int) -> tk.Tensor:
    return tk.tensor(
        [
            [20.0 * row + number for number in draw.distinct(columns, 0, 40)]
            for row in range(1, rows + 1)
        ]
    )


def block_means(x: tk.Tensor, size: int) -> tk.Tensor:
    """The means of consecutive blocks of `size` elements of the vector `x`."""
    return x.reshape(-1, size).mean(dim=1)


def _blocks_as_columns(x: tk.Tensor, size: int) -> tk.Tensor:
    return x.reshape(size, -1).mean(dim=1)


def _mean_of_the_others(x: tk.Tensor, size: int) -> tk.Tensor:
    return x.reshape(-1, size).mean(dim=0)


def _block_sums(x: tk.Tensor, size: int) -> tk.Tensor:
    return x.reshape(-1, size).sum(dim=1)


def _every_nth(x: tk.Tensor, size: int) -> tk.Tensor:
    return x[::size]


@exercise("block-means", answer=block_means, points=0, difficulty=2, minutes=5, further=True)
class BlockMeans(Exercise):
    """The means of blocks

    A sensor reports a number every minute; you want one number an hour.

    **Input:** `x`, a vector of any float dtype, and `size`, a number from 1 on that divides the
    length of `x`.

    **Output:** a vector of the same dtype with the mean of the first `size` elements, of the next
    `size`, and so on.

    ```python
    block_means(tk.tensor([1.0, 3.0, 10.0, 20.0, 0.0, 2.0]), 2)
    # tensor([ 2., 15.,  1.])
    ```

    No loop is needed.
    """

    hints = (
        "If the vector were a table with a block in each row, one reduction would do it.",
        "`x.reshape(-1, size)` is that table; its rows are the blocks.",
    )
    usual_mistakes = {
        "size rows": (
            _blocks_as_columns,
            "You made `size` rows. A row should hold one block, that is `size` columns: "
            "`reshape(-1, size)`.",
        ),
        "the other dimension": (
            _mean_of_the_others,
            "The table is right; the mean goes over its columns' direction. Each row should become "
            "one number: `dim=1`.",
        ),
        "sums": (_block_sums, "These are the sums of the blocks. Take their means."),
        "one of each": (
            _every_nth,
            "You picked the first element of each block. All of its elements count: take the mean.",
        ),
        "at every place": (
            lambda x, size: tk.stack([x[i : i + size].mean() for i in range(len(x) - size + 1)]),
            "A block begins at every element, as in a moving average. The next block begins "
            "`size` elements later.",
        ),
        "every so many": (
            lambda x, size: x.reshape(size, -1).mean(dim=0),
            "Each of your means is over elements that lie apart. A block holds neighbours: "
            "`reshape(-1, size)` puts each into a row.",
        ),
        "one mean": (
            lambda x, size: x.mean(),
            "This is one mean of everything. Each block should become one number.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, 3.0, 10.0, 20.0, 0.0, 2.0]), 2, label="blocks of two")
        yield case(
            tk.tensor([float(number) for number in draw.distinct(12, 1, 60)]), 4, label="any twelve"
        )
        n = draw.integer(3, 5)
        one = tk.tensor([draw.integer(40, 60), *draw.integers(n - 1, 1, 30)]).float()
        yield case(one, n, label="one block")
        n = draw.integer(3, 5)
        yield case(tk.tensor(draw.distinct(n, 1, 60)).float(), 1, label="blocks of one (size 1)")
        rising = tk.tensor(sorted(draw.distinct(12, 1, 60))).float()
        yield case(rising[::2], 3, label="every second element (non-contiguous)")
        yield case(tk.tensor(draw.distinct(4, 1, 60)).double(), 2, label="float64")
        halves = tk.tensor(draw.distinct(4, 1, 60)).half()
        yield case(halves, 2, label="half the memory (float16)")
        yield case(tk.zeros(0), 2, label="no elements (empty)")


def ensemble(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    """The average of several models, and the class that it gives each sample."""
    stacked = tk.stack(predictions)
    average = stacked.mean(dim=0)
    winners = average.argmax(dim=1)
    return average, winners


def _ensemble_program(predictions: list[tk.Tensor]) -> Any:
    stacked = ...  # one tensor of shape [models, samples, classes]
    average = ...  # the mean over the models: [samples, classes]
    winners = ...  # for each sample the class with the largest average: [samples]
    return average, winners


def _joined(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.cat(predictions).mean(dim=0)
    return average, average.argmax()


def _mean_over_samples(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.stack(predictions).mean(dim=1)
    return average, average.argmax(dim=1)


def _mean_of_everything(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    stacked = tk.stack(predictions)
    return stacked.mean(), stacked.mean(dim=0).argmax(dim=1)


def _winners_over_samples(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.stack(predictions).mean(dim=0)
    return average, average.argmax(dim=0)


def _one_winner(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.stack(predictions).mean(dim=0)
    return average, average.argmax()


def _values_of_the_winners(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    average = tk.stack(predictions).mean(dim=0)
    return average, average.amax(dim=1)


def _the_sum(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, tk.Tensor]:
    total = tk.stack(predictions).sum(dim=0)
    return total, total.argmax(dim=1)


def _values_and_places(predictions: list[tk.Tensor]) -> tuple[tk.Tensor, Any]:
    average = tk.stack(predictions).mean(dim=0)
    return average, average.max(dim=1)


@exercise(
    "ensemble",
    answer=ensemble,
    stub=_ensemble_program,
    kind="complete",
    points=4,
    difficulty=3,
    minutes=8,
)
class Ensemble(Exercise):
    """The average of several models

    Three models look at the same samples. Each gives a table: a row for each sample, a probability
    for each class. Their average is usually better than any of them. Fill the three gaps.

    **Input:** `predictions`, a list of at least one float tensor, all of shape `[samples, classes]`
    and of the same dtype.

    **Output:** two tensors: the average table, `[samples, classes]`, and for each sample the number
    of the class with the largest average, `[samples]`.

    ```python
    one = tk.tensor([[0.9, 0.1], [0.4, 0.6]])
    two = tk.tensor([[0.5, 0.5], [0.0, 1.0]])
    ensemble([one, two])
    # (tensor([[0.7000, 0.3000],
    #          [0.2000, 0.8000]]), tensor([0, 1]))
    ```
    """

    hints = (
        "Which of `cat` and `stack` makes a new dimension, one entry for each model?",
        "After `stack` the models are dimension 0. That is the one which the mean makes disappear.",
        "In `average`, dimension 1 holds the classes: `argmax(dim=1)` leaves one number for each "
        "sample.",
    )
    usual_mistakes = {
        "joined": (
            _joined,
            "Your average is over models and samples at once: `cat` gives them one dimension. "
            "`stack` gives the models a dimension of their own, over which the mean goes.",
        ),
        "mean over the samples": (
            _mean_over_samples,
            "You averaged over dimension 1 of the stack, the samples. The models are dimension 0.",
        ),
        "mean of everything": (
            _mean_of_everything,
            "Your average is a single number: without `dim` everything is averaged. Name the "
            "dimension of the models.",
        ),
        "winners over the samples": (
            _winners_over_samples,
            "`argmax(dim=0)` makes the samples disappear: it says for each class which sample is "
            "best. You want the class of each sample, so the classes must go.",
        ),
        "one winner": (
            _one_winner,
            "`argmax()` without `dim` gives one position in the whole table. Name the dimension of "
            "the classes to get one for each sample.",
        ),
        "values and places": (
            _values_and_places,
            "`max(dim=1)` answers twice: the largest averages and where they stand. You want the "
            "places alone: `argmax(dim=1)`.",
        ),
        "the largest value": (
            _values_of_the_winners,
            "You gave the largest average itself. `argmax` says at which class it stands.",
        ),
        "the sum": (
            _the_sum,
            "You added the tables and did not divide by the number of models: take the mean.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            [tk.tensor([[0.9, 0.1], [0.4, 0.6]]), tk.tensor([[0.5, 0.5], [0.0, 1.0]])],
            label="two models, two samples",
        )
        yield case(_tables(draw, 3, 4, 3), label="three models, any numbers")
        yield case(_tables(draw, 3, 2, 5), label="five classes")
        yield case(_disagreeing(draw, 3, 4), label="models that disagree")
        yield case(_tables(draw, 2, 1, 3), label="a single sample (size 1)")
        yield case(_tables(draw, 1, 3, 3), label="a single model (size 1)")
        halves = [table.half() for table in _tables(draw, 2, 2, 2)]
        yield case(halves, label="half the memory (float16)")
        wide = [tk.stack([table, -table], dim=2).flatten(1) for table in _tables(draw, 2, 3, 3)]
        yield case([table[:, ::2] for table in wide], label="every second column (non-contiguous)")
        yield case([tk.zeros(0, 3), tk.zeros(0, 3)], label="no samples (empty)")
        yield case([table.double() for table in _tables(draw, 4, 3, 2)], label="float64")

    def advice(self, *args: Any) -> str | None:
        (predictions,) = args
        shape = list(predictions[0].shape)
        return (
            f"Print the shapes on the way: the stack is {[len(predictions), *shape]}, the average "
            f"{shape}, the winners {shape[:1]}."
        )


def _disagreeing(draw: Draw, samples: int, classes: int) -> list[tk.Tensor]:
    """Three tables: the first and the last prefer other classes than their average does."""
    tables = [draw.floats(classes, 0, 0.1) for _ in range(3 * samples)]
    for n, row in enumerate(tables):
        model, sample = divmod(n, samples)
        row[(sample + 1) % classes] += 0.5
        if model != 1:
            row[(sample + model) % classes] += 0.8
    rows = [tables[start : start + samples] for start in range(0, 3 * samples, samples)]
    return [tk.tensor(table) for table in rows]


def _tables(draw: Draw, models: int, samples: int, classes: int) -> list[tk.Tensor]:
    """Tables in which sample i clearly prefers class (i + 1) % classes."""
    tables = []
    for _ in range(models):
        rows = [draw.floats(classes, 0, 0.4) for _ in range(samples)]
        for sample, row in enumerate(rows):
            row[(sample + 1) % classes] += 0.5
        tables.append(tk.tensor(rows))
    return tables
