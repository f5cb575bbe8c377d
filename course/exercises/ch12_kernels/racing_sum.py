"""The exercise racing-sum: an atomic addition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import (
    ALONE,
    EVERY_BLOCK_ALIKE,
    FIRST_LEFT_OUT,
    LAST_LEFT_OUT,
    NOT_MULTIPLIED,
    ONE_BLOCK_TOO_LATE,
    READS,
    KernelExercise,
    changed,
    floats,
    most_read,
    works_alone,
)
from course.notebook.exercise import Case, Draw, case, exercise
from tensorkit import cuda
from tensorkit.cuda import Counts

_THREE_STEPS = (
    "Reading, adding and writing are three steps, with `+=` as well, and other threads come in "
    "between. `cuda.atomic_add(out, 0, x[i])` is a single step."
)

_NOT_ONE_PLACE = "Each thread adds to a place of its own. The sum belongs in `out[0]`."


@cuda.kernel
def total(x, out, n):
    """The sum of all elements, in out[0]."""
    i = cuda.grid(1)
    if i < n:
        cuda.atomic_add(out, 0, x[i])


def _races(x, out, n):
    i = cuda.grid(1)
    if i < n:
        out[0] += x[i]


_ADD = "cuda.atomic_add(out, 0, x[i])"


@exercise("racing-sum", answer=total, stub=_races, points=1, difficulty=3, minutes=4)
class RacingSum(KernelExercise):
    """A sum that races

    The kernel below adds every element to `out[0]`. Launch it in a new cell, as in the example, and
    read the error: two threads read the same old value, and one addition is lost. Repair it. Each
    thread still adds one element.

    **Input:** `x` with `n` elements and `out` with at least one, on the device; `out` holds zeros.

    **Output:** none. `out[0]` becomes the sum of all elements of `x`; `x` and the rest of `out`
    stay as they are.

    ```python
    x, out = tk.tensor([1.0, 2.0, 3.0]).cuda(), tk.zeros(1).cuda()
    total[1, 4](x, out, 3)
    out                          # tensor([6.], device='cuda:0')
    ```
    """

    filled = 1
    hints = (
        "`out[0] += x[i]` is three steps: read, add, write. Another thread may come in between.",
        "`cuda.atomic_add(out, 0, value)` makes one step of the three.",
    )
    usual_mistakes = {
        "still races": (
            _races,
            _THREE_STEPS,
        ),
        "still races, written out": (
            changed(total, _ADD, "out[0] = out[0] + x[i]"),
            _THREE_STEPS,
        ),
        "a barrier inside an if": (
            changed(total, _ADD, f"cuda.syncthreads()\n        {_ADD}"),
            "Not all threads of a block reach this barrier. An atomic addition needs none: leave "
            "`cuda.syncthreads()` out.",
        ),
        "the guard is gone": (
            changed(total, f"    if i < n:\n        {_ADD}", f"    {_ADD}"),
            "The threads beyond the end read outside of `x`. Keep the guard: `if i < n:`.",
        ),
        "adds its number": (
            changed(total, "x[i]", "i"),
            "You add the number of the thread. Add its element: `x[i]`.",
        ),
        "not one place": (changed(total, "out, 0", "out, cuda.threadIdx.x"), _NOT_ONE_PLACE),
        "a place for each block": (
            changed(total, "out, 0", "out, cuda.blockIdx.x"),
            "Each block adds to a place of its own. The sum belongs in `out[0]`.",
        ),
        "every block alike": (
            changed(total, "cuda.grid(1)", "cuda.threadIdx.x"),
            EVERY_BLOCK_ALIKE,
        ),
        "the block is not multiplied": (
            changed(total, "cuda.grid(1)", "cuda.blockIdx.x + cuda.threadIdx.x"),
            NOT_MULTIPLIED,
        ),
        "one block too late": (
            changed(total, "cuda.grid(1)", "cuda.grid(1) + cuda.blockDim.x"),
            ONE_BLOCK_TOO_LATE,
        ),
        "an element for each": (changed(total, "out, 0", "out, i"), _NOT_ONE_PLACE),
        "the last one is left out": (changed(total, "i < n", "i < n - 1"), LAST_LEFT_OUT),
        "the first one is left out": (changed(total, "i < n", "0 < i and i < n"), FIRST_LEFT_OUT),
        "ones": (
            changed(total, "x[i]", "1"),
            "You count the elements. Each thread adds the value of its own one, `x[i]`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(n: int, blocks: int, threads: int, label: str, out: int = 1) -> Case:
            x = floats(draw, n, low=13, high=19)  # no sum is that of the threads' numbers
            return case(blocks, threads, x, tk.zeros(out), n, label=label)

        yield sized(3, 1, 4, "three elements, four threads", 4)
        yield sized(30, 1, 32, "one block", 32)
        yield sized(100, 4, 32, "four blocks", 32)
        yield sized(20, 1, 32, "a warp", 32)
        yield sized(5, 3, 2, "three blocks of two", 2)
        yield sized(40, 2, 32, "two warps", 32)
        yield sized(1, 1, 1, "one element (size 1)")
        whole = tk.tensor(draw.integers(6, 3, 9), dtype=tk.int32)
        out = tk.zeros(4, dtype=tk.int32)
        yield case(2, 4, whole, out, 6, label="whole numbers (int)")

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """Each thread adds one element; sums of blocks may be put together first, in a tree."""
        blocks, threads, *_, n = args
        if most_read(log.shown) > 2 * threads.bit_length():  # of a tree: two in a round, and a sum
            return ALONE
        return works_alone(log, READS, n, blocks, threads)
