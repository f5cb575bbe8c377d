"""The exercise promotion-layer: two operands in one dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def promoted(x: tk.Tensor, y: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    """Both tensors in the dtype that they have together."""

    def rank(t: tk.Tensor) -> tuple[int, bool, int]:
        kind = 2 if t.dtype.is_floating_point else 0 if t.dtype is tk.bool else 1
        return kind, t.ndim > 0, t.dtype.itemsize

    dtype = max((x, y), key=rank).dtype
    return x.to(dtype), y.to(dtype)


def _in(dtype: tk.dtype, x: tk.Tensor, y: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    return x.to(dtype), y.to(dtype)


def _kind(t: tk.Tensor) -> int:
    return 2 if t.dtype.is_floating_point else 0 if t.dtype is tk.bool else 1


def _the_larger(x: tk.Tensor, y: tk.Tensor) -> Any:
    return _in(max((x, y), key=lambda t: t.dtype.itemsize).dtype, x, y)


def _the_left(x: tk.Tensor, y: tk.Tensor) -> Any:
    return _in(x.dtype, x, y)


def _always_float32(x: tk.Tensor, y: tk.Tensor) -> Any:
    return _in(tk.float32, x, y)


def _dimensions_ignored(x: tk.Tensor, y: tk.Tensor) -> Any:
    return _in(max((x, y), key=lambda t: (_kind(t), t.dtype.itemsize)).dtype, x, y)


def _dimensions_first(x: tk.Tensor, y: tk.Tensor) -> Any:
    rank = lambda t: (t.ndim > 0, _kind(t), t.dtype.itemsize)  # noqa: E731
    return _in(max((x, y), key=rank).dtype, x, y)


def _bool_as_a_whole_number(x: tk.Tensor, y: tk.Tensor) -> Any:
    rank = lambda t: (t.dtype.is_floating_point, t.ndim > 0, t.dtype.itemsize)  # noqa: E731
    return _in(max((x, y), key=rank).dtype, x, y)


def _one_element_as_a_number(x: tk.Tensor, y: tk.Tensor) -> Any:
    rank = lambda t: (_kind(t), t.numel() > 1, t.dtype.itemsize)  # noqa: E731
    return _in(max((x, y), key=rank).dtype, x, y)


def _only_the_dtype(x: tk.Tensor, y: tk.Tensor) -> Any:
    return promoted(x, y)[0].dtype


def _the_winner_twice(x: tk.Tensor, y: tk.Tensor) -> Any:
    first, second = promoted(x, y)
    winner = x if first is x else second
    return winner, winner


def _only_the_first(x: tk.Tensor, y: tk.Tensor) -> Any:
    return promoted(x, y)[0], y


@exercise(
    "promotion-layer",
    answer=promoted,
    points=3,
    difficulty=3,
    minutes=9,
    without=("result_type", "promote_types"),
)
class PromotionLayer(Exercise):
    """The layer of promotion

    A kernel computes in one dtype. Before it runs, the operands get the dtype that they have
    together. There are three kinds: bool, whole numbers, floating point.

    1. The higher kind wins: floating point over whole numbers, whole numbers over bool.
    2. Within a kind a tensor with dimensions wins over one without.
    3. If that does not decide either, the larger dtype wins: the one of more bytes.

    **Input:** `x` and `y`, tensors of any dtype, with or without dimensions.

    **Output:** both, in the dtype of the winner. No two dtypes of one kind and one size meet here.
    `x` and `y` themselves stay as they are.

    ```python
    x, y = promoted(tk.tensor([1, 2]), tk.tensor(0.5))
    x.dtype, y.dtype
    # (torch.float32, torch.float32)
    ```

    `t.dtype.is_floating_point`, `t.dtype is tk.bool` and `t.dtype.itemsize` tell what you need.
    """

    hints = (
        "Give each tensor a rank, a tuple of three entries: kind, dimensions, size. Tuples are "
        "compared entry by entry, from the left.",
        "`max((x, y), key=rank).dtype` is the dtype of the winner, if `rank(t)` gives the tuple.",
        "The tuple: `(kind, t.ndim > 0, t.dtype.itemsize)`, where the kind is 2 for floating "
        "point, 0 for `tk.bool`, 1 for all others.",
    )
    usual_mistakes = {
        "the larger dtype": (
            _the_larger,
            "You compare sizes first, so int64 wins over float32 and the decimals are lost. The "
            "kind comes first.",
        ),
        "the left operand": (
            _the_left,
            "You take the dtype of `x`. Which operand stands on the left does not matter.",
        ),
        "always float32": (
            _always_float32,
            "Not all results are float32: two tensors of whole numbers stay whole, float64 stays "
            "float64. Find the winner.",
        ),
        "dimensions ignored": (
            _dimensions_ignored,
            "A tensor without dimensions counts less than one with, within its kind: "
            "float32 values and a single float64 number give float32.",
        ),
        "dimensions first": (
            _dimensions_first,
            "You ask for dimensions before the kind. Whole numbers and a single 0.5 must become "
            "floating point, or the half is lost.",
        ),
        "bool as a whole number": (
            _bool_as_a_whole_number,
            "bool is a kind of its own, below the whole numbers: a bool tensor and one whole "
            "number without dimensions give whole numbers.",
        ),
        "one element as a number": (
            _one_element_as_a_number,
            "A tensor of shape (1,) has a dimension, although it has one element. Ask "
            "`t.ndim > 0`, not for the number of elements.",
        ),
        "only the dtype": (_only_the_dtype, "You return the dtype. Return both tensors in it."),
        "the winner twice": (
            _the_winner_twice,
            "You return one tensor twice. Return both, `x` first, each in the dtype of the winner.",
        ),
        "only the first": (
            _only_the_first,
            "`y` comes back as it was. The kernel needs both in one dtype.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def vector(dtype: tk.dtype, n: int = 3) -> tk.Tensor:
            if dtype.is_floating_point:
                return tk.tensor(draw.floats(n, 1, 9), dtype=dtype)
            return tk.tensor(draw.integers(n, 0, 9)).to(dtype)

        def single(dtype: tk.dtype) -> tk.Tensor:
            return vector(dtype, 1)[0]

        yield case(vector(tk.float32), vector(tk.float64), label="two sizes of floating point")
        yield case(vector(tk.int64), vector(tk.float32), label="whole numbers and floats")
        yield case(vector(tk.float32), vector(tk.int64), label="floats and whole numbers")
        yield case(vector(tk.bool), vector(tk.int32), label="bool and whole numbers")
        yield case(vector(tk.int64), vector(tk.int32), label="two sizes of whole numbers (int)")
        matrix = vector(tk.float32, 4).reshape(2, 2)
        yield case(matrix, vector(tk.float64, 2), label="a float32 matrix and a float64 vector")
        yield case(
            vector(tk.float32), vector(tk.float64, 1), label="a float64 vector of one element"
        )
        yield case(
            vector(tk.int64, 1), vector(tk.int32), label="an int64 vector of one element (int)"
        )
        yield case(
            vector(tk.float32), single(tk.float64), label="float32 and one float64 number (0-d)"
        )
        yield case(single(tk.int64), vector(tk.int32), label="one int64 number and int32 (0-d)")
        yield case(vector(tk.bool), single(tk.int64), label="bool and one whole number (0-d)")
        yield case(single(tk.int32), vector(tk.bool), label="one whole number and bool (0-d)")
        yield case(vector(tk.int64), single(tk.float32), label="whole numbers and one float (0-d)")
        yield case(single(tk.float32), single(tk.float64), label="two single numbers (0-d)")
        yield case(vector(tk.float16), vector(tk.int64), label="half precision and int64 (float16)")
        yield case(single(tk.int8), vector(tk.bool), label="one int8 number and bool (0-d)")
        yield case(vector(tk.bool), single(tk.int16), label="bool and one int16 number (0-d)")
        yield case(vector(tk.int16), single(tk.int32), label="int16 and one int32 number (0-d)")
        yield case(vector(tk.float64, 0), vector(tk.int64, 0), label="no elements (empty)")
