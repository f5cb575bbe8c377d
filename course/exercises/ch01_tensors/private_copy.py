"""The exercise private-copy: the small picture that changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def private_copy(array: np.ndarray) -> tk.Tensor:
    """Every second row and column of `array`, as float32, with memory of its own."""
    return tk.from_numpy(array)[::2, ::2].float().clone()


def _sometimes_shared(array: np.ndarray) -> tk.Tensor:
    return tk.from_numpy(array)[::2, ::2].float()


def _contiguous(array: np.ndarray) -> tk.Tensor:
    return tk.from_numpy(array)[::2, ::2].float().contiguous()


def _always_shared(array: np.ndarray) -> tk.Tensor:
    return tk.from_numpy(array)[::2, ::2]


def _its_own_dtype(array: np.ndarray) -> tk.Tensor:
    return tk.tensor(array)[::2, ::2]


def _all_copied(array: np.ndarray) -> tk.Tensor:
    return tk.tensor(array, dtype=tk.float32)


def _rows_taken_twice(array: np.ndarray) -> tk.Tensor:
    return tk.tensor(array, dtype=tk.float32)[::2][::2]


def _still_an_array(array: np.ndarray) -> np.ndarray:
    return array[::2, ::2].astype(np.float32)


@exercise(
    "private-copy", answer=private_copy, stub=_sometimes_shared, points=7, difficulty=3, minutes=8
)
class PrivateCopy(Exercise):
    """The small picture that changes

    A camera writes every new frame into the same NumPy array. A program keeps a small picture of
    each frame: every second row and column, as float32. With the code below that works for a camera
    that delivers float64. With another camera yesterday's small picture changes when today's frame
    arrives. Find out with which one, and repair the code for all of them.

    **Input:** `array`, a NumPy array of shape `[rows, columns]`, of float32, float64, int64 or
    uint8.

    **Output:** a float32 tensor with every second row and column, from row 0 and column 0 on. A
    later write to the array must not show in the tensor, and a write to the tensor must not show in
    the array. The array itself stays as it is.

    ```python
    frame = np.array([[1.0, 2.0, 3.0]], dtype=np.float32)
    kept = private_copy(frame)
    frame[0, 0] = 99.0
    kept
    # tensor([[1., 3.]]); the code below gives tensor([[99.,  3.]])
    ```

    The check makes just this experiment, with zeros as the later frame.
    """

    hints = (
        "The code has three steps. Which of them never copies, and which copies only sometimes?",
        "A cast to the dtype that a tensor has already returns the same tensor. Which method "
        "copies in any case?",
    )
    usual_mistakes = {
        "sometimes shared": (
            _sometimes_shared,
            "Where the array is float32 already, the tensor still shares its memory: a cast copies "
            "only if the dtype changes. Ask for a copy in any case.",
        ),
        "contiguous": (
            _contiguous,
            "`.contiguous()` copies only what is not contiguous already, and a single element "
            "always is. `.clone()` copies in any case.",
            "contiguous",
        ),
        "always shared": (
            _always_shared,
            "The tensor has the dtype of the array, and its memory: slices are views. Make it "
            "float32, and ask for a copy.",
        ),
        "the dtype of the array": (
            _its_own_dtype,
            "Your tensor has memory of its own, and the dtype that the array had. Make it float32.",
        ),
        "the whole frame": (
            _all_copied,
            "This is the whole frame. Keep every second row and column: `[::2, ::2]`.",
        ),
        "rows twice": (
            _rows_taken_twice,
            "`[::2][::2]` takes rows twice. Put both slices into one pair of brackets: "
            "`[::2, ::2]`.",
        ),
        "still an array": (
            _still_an_array,
            "The numbers are right, in a NumPy array. Make a tensor of them.",
        ),
        "two rows and two columns": (
            lambda array: tk.tensor(array, dtype=tk.float32)[:2, :2],
            "`[:2, :2]` takes the first two rows and columns. Every second one is `[::2, ::2]`.",
        ),
        "only the rows": (
            lambda array: tk.tensor(array, dtype=tk.float32)[::2],
            "You take every second row, and all columns. `[::2, ::2]` takes every second of both.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def frame(rows: int, columns: int) -> np.ndarray:
            return np.array(draw.distinct(rows * columns, 1, 250)).reshape(rows, columns)

        yield case(np.array([[1.0, 2.0, 3.0]], dtype=np.float32), label="the row of the example")
        # float16 holds none of these fractions
        yield case((frame(3, 5) / 100).astype(np.float32), label="any frame of float32")
        yield case(frame(4, 3) / 100 - 70, label="any frame of float64")
        yield case(frame(3, 4), label="whole numbers, int64")
        yield case(frame(5, 2).astype(np.uint8), label="whole numbers, uint8")
        yield case(
            frame(4, 6).astype(np.float32)[:, ::2], label="a part of another (non-contiguous)"
        )
        # one element is left, of which every view is contiguous
        yield case(frame(2, 2).astype(np.float32), label="two rows, two columns")
        yield case(frame(1, 1).astype(np.float32), label="one row, one column (size 1)")
        yield case(np.zeros((0, 3), dtype=np.float32), label="no rows (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The small picture, before and after a write to the array."""
        (array,) = args
        kept = answer(array)
        before, seen = array.copy(), Seen({"at first": _frozen(kept)})
        array[...] = 0
        seen["after the array is filled with zeros"] = _frozen(kept)
        array[...] = before  # the check looks whether the answer itself changed the array
        return seen


def _frozen(value: Any) -> Any:
    """A tensor or an array as it is now, with memory of its own."""
    if isinstance(value, tk.Tensor):
        return value.clone()
    return value.copy() if isinstance(value, np.ndarray) else value
