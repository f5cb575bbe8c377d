"""The exercise half-precision: a sum that stops growing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def total_of(x: tk.Tensor) -> tk.Tensor:
    """The sum of all elements of the vector `x`, as a 0-d float32 tensor."""
    total = tk.tensor(0.0)
    for value in x:
        total += value
    return total


def _narrow_total(x: tk.Tensor) -> tk.Tensor:
    total = tk.tensor(0.0, dtype=tk.float16)
    for value in x:
        total += value
    return total.float()


def _answers_in_float16(x: tk.Tensor) -> tk.Tensor:
    total = tk.tensor(0.0)
    for value in x:
        total += value
    return total.to(tk.float16)


def _sums_in_float16(x: tk.Tensor) -> tk.Tensor:
    return x.sum().float()


def _starts_with_an_int(x: tk.Tensor) -> tk.Tensor:
    total = tk.tensor(0)
    for value in x:
        total += value
    return total


def _total_of_shape_one(x: tk.Tensor) -> tk.Tensor:
    total = tk.zeros(1)
    for value in x:
        total += value
    return total


def _python_number(x: tk.Tensor) -> float:
    return float(sum(x.tolist()))


@exercise(
    "half-precision",
    answer=total_of,
    stub=_narrow_total,
    points=0,
    difficulty=3,
    minutes=6,
    further=True,
)
class HalfPrecision(Exercise):
    """A sum that stops growing

    The code below adds up a float16 vector. For small vectors it is right. For some others it
    answers `inf`, or another number than the sum. Repair it.

    **Input:** `x`, a float16 tensor with one dimension, possibly empty.

    **Output:** the sum of its elements as a 0-d float32 tensor. `x` itself stays as it is.

    ```python
    total_of(tk.tensor([2048.0, 1.0, 1.0], dtype=tk.float16))
    # tensor(2050.)
    # the code below answers tensor(2048.)
    ```
    """

    hints = (
        "Print `total` after every step. In which line does it go wrong, in the additions or in "
        "the last line?",
        "float16 has no number between 2048 and 2050, and none above 65504. Which tensor in this "
        "code has to hold such numbers?",
        "Only `total` has to be wider, from the first line on. A cast at the end comes too late.",
    )
    usual_mistakes = {
        "casts at the end": (
            _narrow_total,
            "The sum still grows in float16 and is cast at the end, when the digits are lost "
            "already: `inf` stays `inf`. Each addition should be one of float32.",
        ),
        "answers in float16": (
            _answers_in_float16,
            "You add up well and then cast the result back to float16, which cannot hold it. "
            "Return the float32 total.",
        ),
        "sums in float16": (
            _sums_in_float16,
            "The sum is rounded to float16 before it becomes float32. Let no step give a float16 "
            "sum: `x.sum()` answers in the dtype of `x`.",
        ),
        "starts with a whole number": (
            _starts_with_an_int,
            "`tk.tensor(0)` is int64, and `+=` writes into it: a float does not fit there. Begin "
            "with `tk.tensor(0.0)`.",
        ),
        "shape [1]": (
            _total_of_shape_one,
            "The number is right, in a tensor of shape `[1]`, which has one dimension of size 1. "
            "A 0-d tensor has none, as that of `tk.tensor(0.0)`.",
        ),
        "a Python number": (
            _python_number,
            "The number is right, as a Python float. Keep the total in a tensor, or wrap it at "
            "the end: `tk.tensor(...)`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(_float16(draw.integers(5, 1, 9)), label="small numbers")
        a, b, c = draw.integers(3, 1, 20)
        yield case(_float16([a / 4, -b / 4, c]), label="fractions and signs")
        large = 2048 + 4 * draw.integer(0, 400)  # to which float16 cannot add 1
        yield case(_float16([large, 1, 1, 1]), label="small steps on a large number")
        yield case(_float16([60000, draw.integer(200, 900) * 32]), label="a sum above 65504")
        large = 32 * draw.integer(1100, 1900)
        yield case(_float16([large, large, -large]), label="above 65504 on the way")
        five = _float16(draw.integers(5, 1, 9))
        yield case(five[::2], label="every second element (non-contiguous)")
        yield case(_float16([draw.integer(1, 39) / 4]), label="a single element (size 1)")
        yield case(_float16([]), label="no elements (empty)")


def _float16(numbers: list[Any]) -> tk.Tensor:
    return tk.tensor(numbers, dtype=tk.float16)
