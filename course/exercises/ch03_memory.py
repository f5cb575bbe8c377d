"""The exercises of chapter 03, Memory, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen
from course.notebook.varied import Varied

Ints = tuple[int, ...]


def position_of(index: tuple[int, ...], stride: tuple[int, ...], offset: int) -> int:
    """The position in the storage of the element with this index."""
    position = offset
    for i, step in zip(index, stride, strict=True):
        position += i * step
    return position


def _forgets_the_offset(index: Ints, stride: Ints, offset: int) -> int:
    return sum(i * step for i, step in zip(index, stride, strict=True))


def _adds_instead(index: Ints, stride: Ints, offset: int) -> int:
    return offset + sum(i + step for i, step in zip(index, stride, strict=True))


def _from_the_right(index: Ints, stride: Ints, offset: int) -> int:
    return offset + sum(i * step for i, step in zip(index, stride[::-1], strict=True))


def _offset_times(index: Ints, stride: Ints, offset: int) -> int:
    return sum((i + offset) * step for i, step in zip(index, stride, strict=True))


def _only_the_first(index: Ints, stride: Ints, offset: int) -> int:
    return offset + (index[0] * stride[0] if index else 0)


def _two_dimensions(index: Ints, stride: Ints, offset: int) -> int:
    return offset + index[0] * stride[0] + index[1] * stride[1]


def _only_the_last(index: Ints, stride: Ints, offset: int) -> int:
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
        "counted from 1": (
            lambda index, stride, offset: (
                offset + sum(i * step for i, step in zip(index, stride, strict=True)) + 1
            ),
            "You are one position too far: positions count from 0.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case((1, 2), (4, 1), 0, label="a matrix")
        row, column = draw.distinct(2, 1, 3)
        yield case((row, column), (1, draw.integer(4, 9)), 0, label="a transposed matrix")
        index: Ints
        stride: Ints
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
        stride = draw.integer(4, 9), draw.integer(50, 99), 1
        yield case((first, 0, last), stride, 0, label="a dimension with one entry")
        yield case((), (), draw.integer(3, 99), label="a single number (0-d)")


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

    **Output:** a pair: shape and stride of the tensor with these two dimensions exchanged, as two
    tuples. The storage stays as it is.

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


@exercise("which-layout", points=2, difficulty=2, minutes=6)
class WhichLayout(Prediction):
    """Predict the layout

    Write down shapes and strides as lists, offsets as numbers, and True or False where the question
    has two answers.

    One is done for you:

    ```python
    tk.zeros(3, 4).stride()      # [4, 1]: a new row every 4 elements
    ```
    """

    name = "layouts"
    ask = "Replace each ... by what you expect: a list, a number, True or False."
    questions = {
        "tk.zeros(2, 5).stride()": (
            "One step to the right is 1 element further, one row down a whole row of 5."
        ),
        "tk.zeros(3, 4).T.stride()": "A transpose exchanges the strides along with the sizes.",
        "tk.zeros(2, 3, 4).transpose(-1, 0).stride()": (
            "-1 is the last dimension. Write down the strides of [2, 3, 4] and exchange two."
        ),
        "tk.tensor(5).stride()": "One stride for each dimension, and here is none.",
        "tk.zeros(3, 4)[:, 1].stride()": (
            "The whole number removes the columns and their stride; the rows keep theirs."
        ),
        "tk.zeros(3, 4)[::2].stride()": "A step of 2 doubles the stride of that dimension.",
        "tk.zeros(2, 3, 4).permute(2, 0, 1).shape": (
            "`permute` lists, for each new dimension, which old one it is."
        ),
        "tk.zeros(3, 4)[1:, 1:].storage_offset()": (
            "The first element of the slice is row 1, column 1: its position in the storage."
        ),
        "tk.zeros(3, 4).T.is_contiguous()": (
            "Contiguous means: reading row after row walks through memory element by element."
        ),
        "tk.zeros(4, 1).T.is_contiguous()": (
            "Nobody takes a step in a dimension of size 1: its stride does not matter."
        ),
        "tk.zeros(3, 4)[1:].is_contiguous()": (
            "Leaving out rows at the beginning leaves no gaps between the elements."
        ),
    }
    varied = (
        Varied(("3", "4"), 3, 12, ("tk.zeros(3, 4)",)),
        Varied(("5",), 3, 12, ("tk.zeros(2, 5)",)),
    )
    hints = (
        "For each of them draw the storage as one row of numbers, and count.",
        "Slices and transposes never move a number. They change sizes, strides and the offset.",
    )
    usual_mistakes = {
        "strides of a fresh tensor": (
            {
                "tk.zeros(3, 4).T.stride()": [3, 1],
                "tk.zeros(3, 4)[::2].stride()": [4, 1],
                "tk.zeros(3, 4)[:, 1].stride()": [1],
                "tk.zeros(2, 3, 4).transpose(-1, 0).stride()": [6, 2, 1],
            },
            "You gave the strides that a new tensor of that shape would have. These tensors lie in "
            "the memory of the old one: start from its strides.",
        ),
        "permute the other way": (
            {
                "tk.zeros(2, 3, 4).permute(2, 0, 1).shape": [3, 4, 2],
                "tk.zeros(3, 4)[1:, 1:].storage_offset()": 2,
            },
            "`permute(2, 0, 1)` reads: the new dimension 0 is the old dimension 2. And an offset "
            "counts all the elements that are skipped, whole rows too.",
        ),
        "contiguity exchanged": (
            {
                "tk.zeros(3, 4).T.is_contiguous()": True,
                "tk.zeros(3, 4)[1:].is_contiguous()": False,
            },
            "It is not about whether something was cut off, but about gaps and order: rows 1 and 2 "
            "stand side by side in memory, the rows of a transpose do not.",
        ),
    }

    def observe(self, value: Any) -> Any:
        return value if isinstance(value, (bool, int)) else list(value)


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


def _last_stride_only(shape: Ints, stride: Ints) -> bool:
    return not stride or stride[-1] == 1


def _descending(shape: Ints, stride: Ints) -> bool:
    return list(stride) == sorted(stride, reverse=True)


def _size_one_counts(shape: Ints, stride: Ints) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if 0 not in shape and step != expected:
            return False
        expected *= size
    return True


def _empty_counts(shape: Ints, stride: Ints) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 and step != expected:
            return False
        expected *= max(size, 1)
    return True


def _from_left_to_right(shape: Ints, stride: Ints) -> bool:
    expected = 1
    for size, step in zip(shape, stride, strict=True):
        if size > 1 and step != expected:
            return 0 in shape
        expected *= size
    return True


def _two_sizes(shape: Ints, stride: Ints) -> bool:
    return stride == (shape[1], 1)


def _one_size_instead_of_the_product(shape: Ints, stride: Ints) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 and step != expected:
            return False
        expected = size
    return True


def _any_size_of_one(shape: Ints, stride: Ints) -> bool:
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
    a step there; and a tensor without elements is always contiguous. Your function runs inside
    tensorkit below.
    """

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
        yield case((a, 0, c), steps, label="no elements (empty)")
        yield case((0,), (draw.integer(2, 9),), label="a vector of none (empty)")
        n, step = draw.integers(2, 2, 9)
        yield case((n,), (step,), label="every second element (non-contiguous)")
        yield case((), (), label="a single number (0-d)")


def channels_of(samples: tk.Tensor) -> tk.Tensor:
    """The two channels of a recording, as two rows that share its memory."""
    return samples.view(-1, 2).T


def _halves(samples: tk.Tensor) -> tk.Tensor:
    return samples.view(2, -1)


def _a_row_for_each_moment(samples: tk.Tensor) -> tk.Tensor:
    return samples.view(-1, 2)


def _copied(samples: tk.Tensor) -> tk.Tensor:
    return tk.stack([samples[::2], samples[1::2]])


def _left_alone(samples: tk.Tensor) -> tk.Tensor:
    return samples[::2]


@exercise("stereo", answer=channels_of, points=2, difficulty=3, minutes=5)
class Stereo(Exercise):
    """Two channels in one vector

    A recording in stereo comes as one long vector: the left and the right sample of a moment side
    by side, then those of the next moment. To work on one channel you want each in a row of its
    own, without copying the recording.

    **Input:** `samples`, a vector of any dtype with an even number of elements, possibly none. It
    may be a view, such as every second element of a longer vector.

    **Output:** a matrix of shape `[2, moments]`: row 0 holds the left samples, row 1 the right
    ones. It shares the memory of `samples`: the check changes `samples` afterwards and looks
    whether the rows show it.

    ```python
    channels_of(tk.tensor([1, 10, 2, 20, 3, 30]))
    # tensor([[ 1,  2,  3],
    #         [10, 20, 30]])
    ```
    """

    hints = (
        "Two numbers belong to each moment. Which shape puts the two side by side, so that a row "
        "is a moment?",
        "`view(-1, 2)` gives a row for each moment. A row for each channel is one step away, and "
        "that step does not copy either.",
    )
    usual_mistakes = {
        "halves": (
            _halves,
            "Row 0 is the first half of the recording, row 1 the second. Left and right take "
            "turns: make a row for each moment first.",
        ),
        "a row for each moment": (
            _a_row_for_each_moment,
            "Each row is a moment, with left and right side by side. Rows should be channels: "
            "exchange the dimensions.",
        ),
        "a copy": (
            _copied,
            "The rows are right, and they are copies: after a change of `samples` they show the "
            "old numbers. `view` and `.T` never copy.",
        ),
        "one channel": (
            _left_alone,
            "This is the left channel alone. Both are asked for, as rows of one matrix.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1, 10, 2, 20, 3, 30]), label="three moments (int)")
        yield case(_vector(draw, 8), label="any four moments")
        yield case(_vector(draw, 10).double(), label="float64")
        yield case(_vector(draw, 12)[::2], label="every second element (non-contiguous)")
        yield case(_vector(draw, 9)[3:], label="the end of a vector")
        yield case(_vector(draw, 2), label="one moment (size 1)")
        yield case(_vector(draw, 6).half(), label="half the memory (float16)")
        yield case(tk.zeros(0), label="no moments (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The channels, before and after `samples` was changed."""
        (samples,) = args
        channels = answer(samples)
        if not isinstance(channels, tk.Tensor):
            return channels
        seen = Seen({"at first": channels.clone()})
        samples += 100
        seen["after samples += 100"] = channels.clone()
        samples -= 100
        return seen


def channels_first(photos: tk.Tensor) -> tk.Tensor:
    """Photos as a network wants them: channels first, values from 0 to 1."""
    scaled = photos.float() / 255
    moved = scaled.permute(0, 3, 1, 2)
    return moved.contiguous()


def _channels_program(photos: tk.Tensor) -> Any:
    scaled = ...  # float32, values from 0 to 1, still [photo, height, width, channel]
    moved = ...  # [photo, channel, height, width]
    return ...  # the same, contiguous


def _reshaped(photos: tk.Tensor) -> tk.Tensor:
    n, height, width, channels = photos.shape
    return (photos.float() / 255).reshape(n, channels, height, width)


def _photos_on_their_side(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / 255).permute(0, 3, 2, 1).contiguous()


def _the_inverse_order(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / 255).permute(0, 2, 3, 1).contiguous()


def _not_scaled(photos: tk.Tensor) -> tk.Tensor:
    return photos.float().permute(0, 3, 1, 2).contiguous()


def _rounded(photos: tk.Tensor) -> tk.Tensor:
    return (photos // 255).float().permute(0, 3, 1, 2).contiguous()


def _channels_in_front(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / 255).permute(3, 0, 1, 2).contiguous()


def _by_the_brightest(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / photos.max()).permute(0, 3, 1, 2).contiguous()


def _not_contiguous(photos: tk.Tensor) -> tk.Tensor:
    return (photos.float() / 255).permute(0, 3, 1, 2)


@exercise(
    "channels-first",
    answer=channels_first,
    stub=_channels_program,
    kind="complete",
    points=3,
    difficulty=3,
    minutes=7,
)
class ChannelsFirst(Exercise):
    """From the camera to the network

    Image files keep the channels (red, green, blue) last and their values from 0 to 255. Layers
    want the channels before height and width and small floats. Fill the three gaps.

    **Input:** `photos`, a uint8 tensor of shape `[n, height, width, channels]` (NHWC).

    **Output:** a contiguous float32 tensor of shape `[n, channels, height, width]` (NCHW), its
    values divided by 255.

    ```python
    photos = tk.tensor([[[[255, 0], [0, 255], [51, 0]]]], dtype=tk.uint8)
    channels_first(photos)      # one photo: 1 high, 3 wide, 2 channels
    # tensor([[[[1.0000, 0.0000, 0.2000]],
    #
    #          [[0.0000, 1.0000, 0.0000]]]])
    ```
    """

    hints = (
        "`permute` lists, for each new dimension, the old one. New dimension 1 should be the "
        "channels: which number did they have?",
        "New order: photo 0, channel 3, height 1, width 2.",
        "A cast keeps the numbers; only a division makes 255 to 1. After `permute` the elements "
        "lie in the old order: `.contiguous()` copies them into the new one.",
    )
    usual_mistakes = {
        "reshaped": (
            _reshaped,
            "The shape is right and the pixels are mixed: `reshape` and `view` keep the order in "
            "memory. To move a dimension, use `permute`.",
        ),
        "on their side": (
            _photos_on_their_side,
            "Height and width changed places: your photos lie on their side. After the channels "
            "come height (1), then width (2).",
        ),
        "the inverse order": (
            _the_inverse_order,
            "This is the way back, from channels first to channels last. `permute` asks for the "
            "old number of each new dimension.",
        ),
        "not scaled": (
            _not_scaled,
            "The values still go up to 255. Divide by 255.",
        ),
        "rounded down": (
            _rounded,
            "Only 255 survives: what lies below has become 0, as `//` between whole numbers makes "
            "it. Make floats first, then use `/`.",
        ),
        "the channels in front": (
            _channels_in_front,
            "The channels came before the photos. The photo stays dimension 0, the channels become "
            "dimension 1.",
        ),
        "the brightest pixel": (
            _by_the_brightest,
            "You divide by the brightest pixel there is. Then a dark photo becomes a bright one: "
            "255 is the largest a uint8 can be, divide by that.",
        ),
        "not contiguous": (
            _not_contiguous,
            "The values are right, and the elements still lie in the camera's order. Finish with "
            "`.contiguous()`.",
        ),
        "divides by 256": (
            lambda photos: (photos.float() / 256).permute(0, 3, 1, 2).contiguous(),
            "Your brightest pixel is 0.9961. The largest uint8 is 255: divide by that.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[[[255, 0], [0, 255], [51, 0]]]], dtype=tk.uint8), label="three pixels"
        )
        yield case(_photos(draw, 2, 2, 3, 3), label="two photos")
        yield case(_photos(draw, 1, 3, 3, 3), label="a square photo")
        yield case(_photos(draw, 2, 3, 2, 1), label="grey photos")
        yield case(_photos(draw, 1, 1, 1, 3), label="a single pixel (size 1)")
        lines = _photos(draw, 2, 4, 2, 3)[:, ::2]
        yield case(lines, label="every second line of two photos (non-contiguous)")
        yield case(tk.zeros(0, 4, 5, 3, dtype=tk.uint8), label="no photos (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The photos, and whether they are contiguous."""
        moved = answer(*args)
        if not isinstance(moved, tk.Tensor):
            return moved
        return Seen({"photos": moved, "contiguous": moved.is_contiguous()})


def _photos(draw: Draw, n: int, height: int, width: int, channels: int) -> tk.Tensor:
    numbers = draw.distinct(n * height * width * channels, 1, 254)
    return tk.tensor(numbers, dtype=tk.uint8).reshape(n, height, width, channels)


def without_batch(batch: tk.Tensor) -> tk.Tensor:
    """The one photo in a batch of one."""
    return batch.squeeze(0)


def _squeezes_everything(batch: tk.Tensor) -> tk.Tensor:
    return batch.squeeze()


def _squeezes_the_channels(batch: tk.Tensor) -> tk.Tensor:
    return batch.squeeze(1)


def _keeps_the_batch(batch: tk.Tensor) -> tk.Tensor:
    return batch[0:1]


def _one_more(batch: tk.Tensor) -> tk.Tensor:
    return batch.unsqueeze(0)


def _everything_flat(batch: tk.Tensor) -> tk.Tensor:
    return batch.flatten()


@exercise(
    "without-batch",
    answer=without_batch,
    stub=_squeezes_everything,
    points=0,
    difficulty=2,
    minutes=4,
    further=True,
)
class WithoutBatch(Exercise):
    """One dimension too many, or too few

    A network takes batches. For a single photo you add a batch dimension, and remove it from
    the result. The code below removes it. It worked for months with colour photos, and fails
    with the first grey one. Repair it.

    **Input:** `batch` of shape `[1, channels, height, width]` and of any dtype.

    **Output:** the photo, of shape `[channels, height, width]`, whatever these sizes are.

    ```python
    without_batch(tk.zeros(1, 1, 28, 28)).shape
    # torch.Size([1, 28, 28])
    ```
    """

    hints = (
        "How many dimensions of size 1 does a grey photo have, and how many does `squeeze()` take?",
        "`squeeze` takes a dimension as its argument, and then removes no other.",
    )
    usual_mistakes = {
        "the channels": (
            _squeezes_the_channels,
            "You removed dimension 1, the channels, and only where there is one. The batch is "
            "dimension 0.",
        ),
        "the batch stays": (
            _keeps_the_batch,
            "The batch dimension is still there. A slice keeps it, with size 1; a whole number as "
            "index removes it.",
        ),
        "one more": (
            _one_more,
            "There is one more dimension now. `unsqueeze` adds one, `squeeze` takes one away.",
        ),
        "flat": (
            _everything_flat,
            "Your result has one dimension. Only that of the batch should go.",
        ),
        "the sizes of the example": (
            lambda batch: batch.reshape(1, 28, 28),
            "The sizes of the example stand in your code. Other photos have others.",
            r"28",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(_one_photo(draw, 3, 2, draw.integer(3, 4)), label="a colour photo")
        yield case(_one_photo(draw, 1, 2, draw.integer(3, 6)), label="a grey photo")
        yield case(_one_photo(draw, 3, 1, 1), label="a single pixel (size 1)")
        yield case(_one_photo(draw, 1, 1, draw.integer(4, 9)), label="a single grey line")
        last = _photos(draw, 1, 2, draw.integer(3, 4), 3).float().permute(0, 3, 1, 2)
        yield case(last, label="channels last in memory (non-contiguous)")
        halves = _one_photo(draw, 1, 2, draw.integer(3, 6)).half()
        yield case(halves, label="half the memory (float16)")
        yield case(_photos(draw, 1, 1, 2, 1).permute(0, 3, 1, 2), label="two pixels as uint8 (int)")
        yield case(tk.zeros(1, 3, 0, 4), label="no lines (empty)")


def _one_photo(draw: Draw, channels: int, height: int, width: int) -> tk.Tensor:
    numbers = draw.distinct(channels * height * width, 0, 255)
    return tk.tensor(numbers).float().reshape(1, channels, height, width)


def sliding_windows(x: tk.Tensor, size: int) -> tk.Tensor:
    """The runs of `size` neighbours in `x`, as rows that share its memory."""
    (step,) = x.stride()
    return x.as_strided((len(x) - size + 1, size), (step, step), x.storage_offset())


def _stacked(x: tk.Tensor, size: int) -> tk.Tensor:
    return tk.stack([x[i : i + size] for i in range(len(x) - size + 1)])


def _blocks(x: tk.Tensor, size: int) -> tk.Tensor:
    return x[: len(x) // size * size].view(-1, size)


def _blocks_as_strides(x: tk.Tensor, size: int) -> tk.Tensor:
    return x.as_strided((len(x) - size + 1, size), (size, 1), x.storage_offset())


def _one_window_short(x: tk.Tensor, size: int) -> tk.Tensor:
    return sliding_windows(x[:-1], size)


def _step_of_one(x: tk.Tensor, size: int) -> tk.Tensor:
    return x.as_strided((len(x) - size + 1, size), (1, 1), x.storage_offset())


def _from_the_beginning(x: tk.Tensor, size: int) -> tk.Tensor:
    (step,) = x.stride()
    return x.as_strided((len(x) - size + 1, size), (step, step), 0)


@exercise(
    "sliding-windows",
    answer=sliding_windows,
    points=0,
    difficulty=4,
    minutes=9,
    further=True,
)
class SlidingWindows(Exercise):
    """Windows without a copy

    For a moving average you need every run of `size` neighbours. In a table of these runs most
    numbers occur several times. With strides they need to be in memory only once.

    **Input:** `x`, a float vector, and `size`, from 1 to its length.

    **Output:** a matrix whose row `i` is `x[i : i + size]`, for every `i` for which that fits. It
    shares the memory of `x`: the check changes `x` afterwards and looks whether the rows show it.

    ```python
    sliding_windows(tk.tensor([1.0, 2.0, 3.0, 4.0]), 2)
    # tensor([[1., 2.],
    #         [2., 3.],
    #         [3., 4.]])
    ```

    `x.as_strided(shape, stride, offset)` is a view with any shape and stride over the storage of
    `x`. The vector itself may be a view, such as every second element of a longer one.
    """

    hints = (
        "How many rows are there for a vector of 4 and windows of 2? And of 3?",
        "One step to the right in a row is one element further in `x`. One row down is also one "
        "element further: both dimensions have the same stride.",
        "One element further in `x` is `x.stride(0)` elements of the storage, and `x` begins at "
        "`x.storage_offset()`.",
    )
    usual_mistakes = {
        "a copy": (
            _stacked,
            "The rows are right, and they are copies: after a change of `x` they show the old "
            "numbers. `as_strided` makes a view.",
        ),
        "blocks": (
            _blocks,
            "Your rows do not overlap. The next row begins one element later, not `size` elements.",
        ),
        "blocks, as strides": (
            _blocks_as_strides,
            "One row down you go `size` elements further, so the rows do not overlap, and the last "
            "ones lie beyond the end. The next row begins one element later.",
        ),
        "one window too few": (
            _one_window_short,
            "The last window is missing. `len(x) - size + 1` of them fit.",
        ),
        "a stride of 1": (
            _step_of_one,
            "The stride 1 is right for a contiguous vector. `x` may be every second element of "
            "another one: ask `x.stride(0)`.",
        ),
        "from the beginning of the storage": (
            _from_the_beginning,
            "You begin at position 0 of the storage. `x` may begin later: at `x.storage_offset()`.",
        ),
        "turned": (
            lambda x, size: x.as_strided(
                (size, len(x) - size + 1), (x.stride(0), x.stride(0)), x.storage_offset()
            ),
            "Your windows are the columns. The shape has the number of windows first, then `size`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, 2.0, 3.0, 4.0]), 2, label="pairs")
        yield case(_vector(draw, 7), 3, label="threes of any seven numbers")
        ten = _vector(draw, 10)
        yield case(ten[::2], 2, label="pairs of every second element (non-contiguous)")
        yield case(_vector(draw, 8)[3:], 2, label="pairs of the end of a vector")
        yield case(_vector(draw, 12)[1::3], 3, label="a step and an offset")
        n = draw.integer(3, 6)
        yield case(_vector(draw, n), n, label="one window")
        yield case(_vector(draw, draw.integer(3, 5)), 1, label="windows of one (size 1)")
        yield case(_vector(draw, 3).half(), 2, label="half the memory (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The windows, before and after `x` was changed."""
        x, size = args
        windows = answer(x, size)
        if not isinstance(windows, tk.Tensor):
            return windows
        seen = Seen({"at first": windows.clone()})
        x += 100
        seen["after x += 100"] = windows.clone()
        x -= 100
        return seen


def _vector(draw: Draw, n: int) -> tk.Tensor:
    return tk.tensor(draw.distinct(n, 1, 99)).float()


def product_chain(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    """The product, transposed and flattened, and the index of its largest element."""
    flat = (A @ B).T.flatten()
    return flat, int(flat.argmax().item())


def _not_transposed(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A @ B).flatten()
    return flat, int(flat.argmax().item())


def _element_by_element(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A * B).T.flatten()
    return flat, int(flat.argmax().item())


def _factors_transposed(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A.T @ B.T).flatten()
    return flat, int(flat.argmax().item())


def _index_before_the_turn(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    product = A @ B
    return product.T.flatten(), int(product.argmax().item())


def _largest_size(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A @ B).T.flatten()
    return flat, int(flat.abs().argmax().item())


def _the_value(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, Any]:
    flat = (A @ B).T.flatten()
    return flat, flat.max().item()


def _the_smallest(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A @ B).T.flatten()
    return flat, int(flat.argmin().item())


@exercise("product-chain", answer=product_chain, points=3, difficulty=3, minutes=7)
class ProductChain(Exercise):
    """Product, transpose, flatten, argmax

    **Input:** two square matrices `A` and `B` of the same size and dtype.

    **Output:** a pair: the product of the two, transposed and then flattened to a vector; and the
    index of the largest element in that vector, as a Python int.

    ```python
    A = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    B = tk.tensor([[0.0, 1.0], [1.0, 0.0]])
    product_chain(A, B)
    # (tensor([2., 4., 1., 3.]), 1)
    ```

    The product is `[[2, 1], [4, 3]]`, its transpose `[[2, 4], [1, 3]]`.
    """

    hints = (
        "Four steps in the order of the title. Methods can be chained from left to right.",
        "`(A @ B).T.flatten()` is the vector. Ask the vector itself for `argmax`, and take the "
        "Python number out with `.item()`.",
    )
    usual_mistakes = {
        "not transposed": (
            _not_transposed,
            "The transpose is missing: your vector goes through the product row after row.",
        ),
        "element by element": (
            _element_by_element,
            "`*` multiplies element by element. The product of two matrices is `A @ B`.",
        ),
        "the factors transposed": (
            _factors_transposed,
            "This is the transpose of B @ A, another product: turning both factors turns their "
            "order round too. Multiply A @ B first, then turn the result.",
        ),
        "the index before the turn": (
            _index_before_the_turn,
            "The vector is right; the index counts in the product before it was turned. Ask the "
            "vector.",
        ),
        "the largest without its sign": (
            _largest_size,
            "You compare without signs: a negative number is not the largest, however far from 0 "
            "it is. Ask `argmax` of the vector as it is.",
        ),
        "the value": (
            _the_value,
            "You gave the largest element itself. `argmax` says where it stands.",
        ),
        "the smallest": (
            _the_smallest,
            "You found the smallest element. `argmax` finds the largest.",
        ),
        "one factor transposed": (
            lambda A, B: ((v := (A @ B.T).flatten()), int(v.argmax().item())),
            "Only `B` is transposed: `.T` comes before `@`. Put brackets around the product.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[1.0, 2.0], [3.0, 4.0]]),
            tk.tensor([[0.0, 1.0], [1.0, 0.0]]),
            label="two by two",
        )
        yield case(*_with_a_clear_winner(draw, 3), label="three by three")
        yield case(*_with_a_clear_winner(draw, 4), label="four by four")
        far, near = float(draw.integer(5, 9)), float(draw.integer(1, 4))
        yield case(
            tk.tensor([[0.0, -far], [near, 0.0]]),
            tk.eye(2),
            label="the number farthest from 0 is negative",
        )
        a, b = [float(number) for number in draw.integers(2, 2, 9)]
        yield case(tk.tensor([[-a]]), tk.tensor([[b]]), label="one by one (size 1)")
        A, B = _with_a_clear_winner(draw, 3)
        yield case(A.T.contiguous().T, B, label="stored by columns (non-contiguous)")
        # rising numbers: the largest of the product stands at row 1, column 0
        a, b, c, d = sorted(draw.distinct(4, 1, 9))
        halves = tk.tensor([[a, b], [c, d]]).half()
        yield case(halves, halves.flip(1), label="half the memory (float16)")
        whole = tk.tensor([[draw.integer(6, 9), draw.integer(1, 2)], [2, draw.integer(3, 5)]])
        other = tk.tensor([[1, draw.integer(4, 6)], [0, -draw.integer(1, 2)]])
        yield case(whole, other, label="whole numbers (int)")


def _with_a_clear_winner(draw: Draw, n: int) -> tuple[tk.Tensor, tk.Tensor]:
    """A product whose largest element stands at row 0, column 1 and is far from all others."""
    A = tk.tensor([[float(number) for number in draw.distinct(n, 1, 9)] for _ in range(n)])
    A[0] += 20
    A[n - 1] -= 60
    B = tk.eye(n) * draw.integer(1, 3)
    B[0, 1] += 5
    return A, B
