"""The exercise sliding-windows: neighbours as rows that share memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch03_memory.stereo import some_vector
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


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
    Your function itself leaves `x` as it is.

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
        "a view of all": (
            lambda x, size: x.view(-1, size),
            "`view` uses each element once, so your rows do not overlap. `as_strided` can show the "
            "same element in several rows.",
            r"view\(",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, 2.0, 3.0, 4.0]), 2, label="pairs")
        yield case(some_vector(draw, 7), 3, label="threes of any seven numbers")
        ten = some_vector(draw, 10)
        yield case(ten[::2], 2, label="pairs of every second element (non-contiguous)")
        yield case(some_vector(draw, 8)[3:], 2, label="pairs of the end of a vector")
        yield case(some_vector(draw, 12)[1::3], 3, label="a step and an offset")
        n = draw.integer(3, 6)
        yield case(some_vector(draw, n), n, label="one window")
        yield case(some_vector(draw, draw.integer(3, 5)), 1, label="windows of one (size 1)")
        yield case(some_vector(draw, 3).half(), 2, label="half the memory (float16)")

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
