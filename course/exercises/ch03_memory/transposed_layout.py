"""The exercise transposed-layout: shape and stride of a transposed view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise

Ints = tuple[int, ...]


def transposed_layout(
    shape: tuple[int, ...], stride: tuple[int, ...], a: int, b: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and stride after dimensions `a` and `b` have changed places."""
    sizes, steps = list(shape), list(stride)
    sizes[a], sizes[b] = sizes[b], sizes[a]
    steps[a], steps[b] = steps[b], steps[a]
    return tuple(sizes), tuple(steps)


def _only_the_shape(shape: Ints, stride: Ints, a: int, b: int) -> tuple[Ints, Ints]:
    return transposed_layout(shape, stride, a, b)[0], stride


def _only_the_stride(shape: Ints, stride: Ints, a: int, b: int) -> tuple[Ints, Ints]:
    return shape, transposed_layout(shape, stride, a, b)[1]


def _as_if_copied(shape: Ints, stride: Ints, a: int, b: int) -> tuple[Ints, Ints]:
    turned, _ = transposed_layout(shape, stride, a, b)
    return turned, tuple(tk.empty(turned).stride())


def _all_reversed(shape: Ints, stride: Ints, a: int, b: int) -> tuple[Ints, Ints]:
    return shape[::-1], stride[::-1]


def _overwritten(shape: Ints, stride: Ints, a: int, b: int) -> tuple[Ints, Ints]:
    sizes, steps = list(shape), list(stride)
    sizes[a] = sizes[b]
    steps[a] = steps[b]
    return tuple(sizes), tuple(steps)


def _from_a_fresh_tensor(shape: Ints, stride: Ints, a: int, b: int) -> tuple[Ints, Ints]:
    turned = tk.empty(shape).transpose(a, b)
    return tuple(turned.shape), turned.stride()


def _two_of_them(shape: Ints, stride: Ints, a: int, b: int) -> tuple[Ints, Ints]:
    return (shape[b], shape[a]), (stride[b], stride[a])


def _lists(shape: Ints, stride: Ints, a: int, b: int) -> Any:
    sizes, steps = transposed_layout(shape, stride, a, b)
    return sizes + steps


@exercise("transposed-layout", answer=transposed_layout, points=3, difficulty=2, minutes=6)
class TransposedLayout(Exercise):
    """Transpose without touching a number

    **Input:** `shape` and `stride` of a tensor, possibly empty: two tuples of the same length.
    Two dimensions `a` and `b`, which may be negative as in `t.transpose(-2, -1)`.

    **Output:** a pair: shape and stride of the tensor with these two dimensions exchanged. The
    storage stays as it is.

    ```python
    transposed_layout((2, 3), (3, 1), 0, 1)
    # ((3, 2), (1, 3))
    ```
    """

    hints = (
        "No number moves in memory. What do you have to exchange so that the same walk through "
        "the storage is described with the dimensions swapped?",
        "Exchange two sizes, and exchange the two strides that belong to them. A list can be "
        "written to: `sizes = list(shape)`.",
    )
    usual_mistakes = {
        "only the shape": (
            _only_the_shape,
            "You exchanged the sizes and left the strides. A stride belongs to its dimension: it "
            "moves along.",
        ),
        "only the stride": (
            _only_the_stride,
            "You exchanged the strides and left the sizes. Both belong to their dimensions.",
        ),
        "as if copied": (
            _as_if_copied,
            "These are the strides of a new, contiguous tensor of that shape. The storage is still "
            "the old one: exchange the strides that are there.",
        ),
        "everything reversed": (
            _all_reversed,
            "You turned all dimensions around. Only `a` and `b` change places.",
        ),
        "overwritten": (
            _overwritten,
            "One value stands there twice: after `s[a] = s[b]` the old `s[a]` is gone. Exchange "
            "both in one line: `s[a], s[b] = s[b], s[a]`.",
        ),
        "from a fresh tensor": (
            _from_a_fresh_tensor,
            "You transpose a new tensor of that shape, and its strides are not those that were "
            "given. Exchange the entries of `stride` itself.",
        ),
        "two of them": (
            _two_of_them,
            "Only `a` and `b` are left in your tuples. All other dimensions stay where they are.",
        ),
        "one tuple": (
            _lists,
            "The numbers are right, in one tuple. Return a pair: `return shape, stride`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case((2, 3), (3, 1), 0, 1, label="a matrix")
        shape = tuple(draw.distinct(3, 2, 6))
        yield case(shape, tuple(tk.empty(shape).stride()), 0, 2, label="first and last of three")
        yield case(shape, tuple(tk.empty(shape).stride()), 1, 2, label="the last two of three")
        a, b, c = draw.distinct(3, 2, 6)
        yield case((a, b, c), (b * c, c, 1), -1, -3, label="counted from the end (negative dims)")
        a, b, c = draw.distinct(3, 2, 6)
        yield case((a, b, c), (1, a * c, a), 0, 1, label="three dimensions, permuted before")
        a, b = draw.distinct(2, 2, 6)
        yield case((a, b), (4 * b, 2), 0, 1, label="every second column")
        a, b = draw.distinct(2, 2, 6)
        yield case((a, b), (b, 1), 1, 1, label="a dimension with itself")
        n = draw.integer(2, 9)
        yield case((0, n), (n, 1), 0, 1, label="no rows (empty)")
        n = draw.integer(2, 9)
        yield case((1, n), (n, 1), 0, 1, label="a single row")
