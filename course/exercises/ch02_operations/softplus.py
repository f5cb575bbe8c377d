"""The exercise softplus: the curve that ends in inf."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


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
    large or small it is. `x` itself stays as it is.

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
            "limit, and a smaller limit loses digits of float64. Choose a formula that needs none.",
        ),
        "a small limit": (
            lambda x: tk.where(x > 10, x, tk.log(1 + tk.exp(x))),
            "Beyond your limit you return `x` itself. In float64 the difference still shows there. "
            "Choose a formula that needs no limit.",
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
        between = [draw.number(11.1, 12.9), draw.number(-3, -1), draw.number(11.1, 12.9)]
        yield case(tk.tensor(between, dtype=tk.float64), label="around 12, in float64")
        column = tk.tensor([[draw.number(11.1, 12.9)], [draw.number(11.1, 12.9)]])
        yield case(column.double(), label="a column of float64")
        mixed = tk.tensor([draw.number(0.3, 3), 0.0, -large[3], 0.0, large[4]])
        yield case(mixed[::2], label="every second element (non-contiguous)")
        yield case(tk.zeros(0, 2), label="no elements (empty)")
