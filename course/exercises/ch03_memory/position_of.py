"""The exercise position-of: where an element stands in the storage."""

from __future__ import annotations

from collections.abc import Iterator

from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def position_of(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    """The position in the storage of the element with this index."""
    position = offset
    for i, step in zip(index, stride, strict=True):
        position += i * step
    return position


def _forgets_the_offset(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    return sum(i * step for i, step in zip(index, stride, strict=True))


def _adds_instead(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    return offset + sum(i + step for i, step in zip(index, stride, strict=True))


def _from_the_right(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    return offset + sum(i * step for i, step in zip(index, stride[::-1], strict=True))


def _offset_times(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    return sum((i + offset) * step for i, step in zip(index, stride, strict=True))


def _only_the_first(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    return offset + (index[0] * stride[0] if index else 0)


def _overwritten(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    return index[-1] * stride[-1] if index else offset


def _two_dimensions(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    return offset + index[0] * stride[0] + index[1] * stride[1]


def _only_the_last(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    return offset + (index[-1] * stride[-1] if index else 0)


@exercise("position-of", answer=position_of, points=3, difficulty=2, minutes=6)
class PositionOf(Exercise):
    """Where an element stands

    **Input:** `index`, a tuple of whole numbers, 0 or larger; `stride`, a tuple of the same length;
    `offset`, a whole number.

    **Output:** the position in the storage of the element with that index, as a Python int. Count
    positions from 0.

    ```python
    position_of((1, 2), (4, 1), 0)
    # 6: one row of 4, then 2 elements further
    ```

    The formula above is for two dimensions; here there may be any number of them. A tensor without
    dimensions has the index `()`, and its one element stands at the offset.
    """

    hints = (
        "One step in dimension 0 moves on by `stride[0]` elements. How far do `index[0]` steps go?",
        "Begin with the offset. For each dimension add its index times its stride; `zip(index, "
        "stride)` gives the pairs.",
    )
    usual_mistakes = {
        "forgets the offset": (
            _forgets_the_offset,
            "You begin to count at position 0. The tensor begins at its offset: add it.",
        ),
        "adds": (
            _adds_instead,
            "You add index and stride. Three steps of length 4 go 12 elements far: multiply.",
        ),
        "the wrong way round": (
            _from_the_right,
            "You paired the first index with the last stride. They belong together in the order in "
            "which they stand.",
        ),
        "the offset in every dimension": (
            _offset_times,
            "You shift every index by the offset. The offset counts elements of the storage and is "
            "added once, at the end.",
        ),
        "only one dimension": (
            _only_the_first,
            "Only dimension 0 counts in your answer. Add index times stride of every dimension; a "
            "`return` inside a loop ends it after the first round.",
        ),
        "only the last dimension": (
            _only_the_last,
            "Only the last dimension counts in your answer. Add what each one gives to what you "
            "have so far: `position += ...`, not `position = ...`.",
        ),
        "two dimensions": (
            _two_dimensions,
            "This is right for a matrix. A tensor may have one dimension, three, or none: go "
            "through all of them in a loop.",
        ),
        "offset added each time": (
            lambda index, stride, offset: sum(
                offset + i * step for i, step in zip(index, stride, strict=True)
            ),
            "You add the offset once for each dimension. Add it once, before the loop or after it.",
        ),
        "overwritten": (
            _overwritten,
            "Each round overwrites what the one before has found, and the offset too: add to it, "
            "with `+=`.",
        ),
        "counted from 1": (
            lambda index, stride, offset: (
                offset + sum(i * step for i, step in zip(index, stride, strict=True)) + 1
            ),
            "You are one position too far: positions count from 0.",
        ),
        "a product of sums": (
            lambda index, stride, offset: offset + sum(index) * sum(stride),
            "You add first and multiply the sums. Each index belongs to its own stride: multiply "
            "these two, then add the products.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case((1, 2), (4, 1), 0, label="a matrix")
        row, column = draw.distinct(2, 1, 3)
        yield case((row, column), (1, draw.integer(4, 9)), 0, label="a transposed matrix")
        index: tuple[int, ...]
        stride: tuple[int, ...]
        index, stride = (draw.integer(2, 3), draw.integer(4, 6)), (2 * draw.integer(7, 9), 2)
        offset = draw.integer(3, 9)
        yield case(index, stride, offset, label="every second column, with an offset")
        index, stride = (draw.integer(3, 6), draw.integer(1, 4), draw.integer(1, 2)), (20, 5, 1)
        yield case(index, stride, draw.integer(3, 9), label="three dimensions")
        index, stride = (draw.integer(3, 9),), (draw.integer(3, 9),)
        yield case(index, stride, draw.integer(1, 9), label="a vector")
        index = tuple(draw.distinct(2, 1, 5))
        yield case(index, (0, 1), draw.integer(3, 9), label="a stride of 0")
        first, last = draw.distinct(2, 1, 3)
        stride = draw.integer(4, 9), draw.integer(50, 99), 1, 40, 10
        index = (first, 0, last, *draw.distinct(2, 1, 3))
        yield case(index, stride, 0, label="a dimension with one entry")
        yield case((), (), draw.integer(3, 99), label="a single number (0-d)")
