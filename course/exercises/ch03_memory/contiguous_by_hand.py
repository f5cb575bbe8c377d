"""The exercise contiguous-by-hand: whether a shape and a stride are contiguous."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import Rule


def contiguous_by_hand(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether a tensor of this shape and stride is contiguous."""
    if 0 in shape:
        return True
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 and step != expected:
            return False
        expected *= size
    return True


def _last_stride_only(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return not stride or stride[-1] == 1


def _descending(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return list(stride) == sorted(stride, reverse=True)


def _size_one_counts(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if 0 not in shape and step != expected:
            return False
        expected *= size
    return True


def _empty_counts(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 and step != expected:
            return False
        expected *= max(size, 1)
    return True


def _from_left_to_right(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    expected = 1
    for size, step in zip(shape, stride, strict=True):
        if size > 1 and step != expected:
            return 0 in shape
        expected *= size
    return True


def _two_sizes(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return stride == (shape[1], 1)


def _one_size_instead_of_the_product(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 and step != expected:
            return False
        expected = size
    return True


def _one_to_the_next(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return all(stride[i] == stride[i + 1] * shape[i + 1] for i in range(len(shape) - 1))


def _or_instead_of_and(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 or step != expected:
            return 0 in shape
        expected *= size
    return True


def _any_size_of_one(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return 1 in shape or contiguous_by_hand(shape, stride)


@exercise(
    "contiguous-by-hand",
    answer=contiguous_by_hand,
    points=4,
    difficulty=4,
    minutes=8,
    without=("Tensor.is_contiguous",),
)
class ContiguousByHand(Exercise):
    """Is it contiguous?

    A tensor is contiguous if reading it row after row walks through the storage element by element:
    the last dimension has stride 1, and the stride of every other dimension is the product of all
    sizes to its right.

    **Input:** `shape` and `stride`, two tuples of the same length, for any number of dimensions,
    also for none.

    **Output:** True or False.

    ```python
    contiguous_by_hand((2, 3), (3, 1))
    # True
    contiguous_by_hand((3, 2), (1, 3))
    # False
    ```

    Two rules for the edges: the stride of a dimension of size 1 does not matter, since nobody takes
    a step there; and a tensor without elements is always contiguous. In each case the check asks
    for two layouts of the same shape. Compare the strides yourself: your function runs inside
    tensorkit below.
    """

    rules = (
        Rule(
            "Compare the strides yourself",
            "`tensorkit.layout` compares the strides for you. Go through them in a loop of your "
            "own.",
            refuses=("layout", ".layout", "tensorkit.layout"),
        ),
    )

    hints = (
        "Walk through both tuples from the right. Which stride do you expect first?",
        "Keep a number `expected`, 1 at first. After each dimension multiply it by the size.",
        "Compare only where the size is not 1; and look for a 0 in the shape before you begin.",
    )
    usual_mistakes = {
        "only the last stride": (
            _last_stride_only,
            "You look at the last stride alone. A slice such as `t[:, :2]` has stride 1 there and "
            "gaps between its rows: compare every dimension.",
        ),
        "only the order": (
            _descending,
            "You ask whether the strides fall from left to right. They must be exactly the "
            "products of the sizes to the right, or there are gaps.",
        ),
        "size 1 counts": (
            _size_one_counts,
            "You compare the stride of dimensions of size 1 too. No step is ever taken there, so "
            "any stride will do: skip them.",
        ),
        "an empty tensor": (
            _empty_counts,
            "A tensor without elements has nothing that could stand in the wrong place: with a 0 "
            "in the shape the answer is True.",
        ),
        "one size": (
            _one_size_instead_of_the_product,
            "You expect the size of the next dimension to the right. A step goes over everything "
            "to the right: multiply, `expected *= size`.",
        ),
        "two dimensions": (
            _two_sizes,
            "This is right for a matrix. A tensor may have one dimension, four, or none: go "
            "through all of them in a loop.",
        ),
        "from the left": (
            _from_left_to_right,
            "You expect stride 1 in the first dimension. Rows are stored one after the other: the "
            "last dimension has stride 1. Walk from the right.",
        ),
        "from one to the next": (
            _one_to_the_next,
            "You compare each stride with the one to its right, and nothing says that the last one "
            "is 1. A size of 1, or of 0, needs care as well.",
        ),
        "or in place of and": (
            _or_instead_of_and,
            "With `or` a size other than 1 is enough for False, however right its stride is. Both "
            "must hold: `and`.",
            r"\bor\b",
        ),
        "any size of 1": (
            _any_size_of_one,
            "You call a tensor contiguous because one of its sizes is 1. Only the stride of that "
            "dimension does not matter; the others do.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case((2, 3), (3, 1), label="a matrix")
        yield case((3, 2), (1, 3), label="a transposed matrix")
        yield case((draw.integer(2, 9), 2), (4, 1), label="two of four columns")
        rows, columns = draw.integers(2, 2, 6)
        yield case((rows, columns), (2 * columns, 2), label="every second column")
        shape = tuple(draw.distinct(4, 2, 6))
        yield case(shape, tuple(tk.empty(shape).stride()), label="four dimensions")
        a, b, c = draw.distinct(3, 2, 6)
        yield case((a, b, c), (b * c, 1, b), label="the last two exchanged")
        a, b, c, d = draw.distinct(4, 2, 6)
        yield case((a, b, c, d), (b * c * d, d, b * d, 1), label="the middle two exchanged")
        n, any_stride = draw.integer(2, 9), draw.integer(20, 99)
        yield case((1, n), (any_stride, 1), label="one row, any stride (size 1)")
        n, any_stride = draw.integer(2, 9), draw.integer(20, 99)
        yield case((n, 1), (1, any_stride), label="one column, any stride (size 1)")
        n, gap = draw.integers(2, 2, 9)
        yield case((1, n), (n * gap, gap), label="one row with gaps (size 1)")
        a, b = draw.integers(2, 2, 6)
        yield case((a, 1, b), (b + draw.integer(1, 9), b, 1), label="gaps around a size 1")
        a, c = draw.integers(2, 2, 4)
        steps = draw.integer(5, 7), draw.integer(8, 9), 1
        yield case((a, 0, c), steps, label="no elements (empty)", weight=0.25)
        yield case((0,), (draw.integer(2, 9),), label="a vector of none (empty)", weight=0.25)
        n, step = draw.integers(2, 2, 9)
        yield case((n,), (step,), label="every second element (non-contiguous)")
        yield case((), (), label="a single number (0-d)", weight=0.25)

    def run(self, answer: Any, *args: Any) -> Any:
        """The answer for a layout and for another one, so that one answer for all earns little."""
        shape, stride = args
        said = answer(shape, stride)
        if contiguous_by_hand(shape, stride):
            doubled = tuple(2 * step for step in stride)
            return Seen({"this layout": said, "with doubled strides": answer(shape, doubled)})
        fresh = tuple(tk.empty(shape).stride())
        return Seen({"this layout": said, "in a new tensor": answer(shape, fresh)})
