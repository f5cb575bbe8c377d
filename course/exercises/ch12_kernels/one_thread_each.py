"""The exercise one-thread-each: a kernel with an index and a guard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import (
    EVERY_BLOCK_ALIKE,
    FIRST_LEFT_OUT,
    LAST_LEFT_OUT,
    NOT_MULTIPLIED,
    ONE_BLOCK_TOO_LATE,
    WRITES,
    KernelExercise,
    changed,
    floats,
    unfilled,
    works_alone,
)
from course.notebook.exercise import Case, Draw, case, exercise
from tensorkit import cuda
from tensorkit.cuda import Counts

_BEYOND = (
    "A thread beyond the end reaches outside of the tensors. A guard keeps such threads still, and "
    "the last element is `n - 1`: `if i < n:`."
)


@cuda.kernel
def axpy(a, x, y, out, n):
    """One element of a * x + y for each thread."""
    i = cuda.grid(1)
    if i < n:
        out[i] = a * x[i] + y[i]


@exercise("one-thread-each", answer=axpy, points=1, difficulty=2, minutes=5)
class OneThreadEach(KernelExercise):
    """One thread for each element

    Write the kernel that computes `a * x + y`. Each thread fills one element of `out`. There may be
    more threads than elements: those have nothing to do.

    **Input:** a number `a`; `x`, `y` and `out`, tensors with `n` elements on the device; `n`.

    **Output:** none. `out` is filled: element `i` becomes `a * x[i] + y[i]`; `x` and `y`
    stay as they are.

    ```python
    x, y = tk.tensor([1.0, 2.0, 3.0]).cuda(), tk.tensor([10.0, 10.0, 10.0]).cuda()
    out = tk.zeros(3).cuda()
    axpy[2, 2](2, x, y, out, 3)      # 2 blocks of 2 threads: one of the four does nothing
    out                              # tensor([12., 14., 16.], device='cuda:0')
    ```
    """

    filled = 3
    hints = (
        "Which element is this thread's own? `cuda.grid(1)` is its number among all threads of the "
        "launch.",
        "`i = cuda.grid(1)`, then a guard, `if i < n:`, and in it one line that fills `out[i]`.",
    )
    usual_mistakes = {
        "no guard": (
            changed(axpy, "    if i < n:\n        out", "    out"),
            _BEYOND,
        ),
        "every block alike": (
            changed(axpy, "cuda.grid(1)", "cuda.threadIdx.x"),
            EVERY_BLOCK_ALIKE,
        ),
        "the block is not multiplied": (
            changed(axpy, "cuda.grid(1)", "cuda.blockIdx.x + cuda.threadIdx.x"),
            NOT_MULTIPLIED,
        ),
        "one too far": (
            changed(axpy, "i < n", "i <= n"),
            _BEYOND,
        ),
        "one block too late": (
            changed(axpy, "cuda.grid(1)", "cuda.grid(1) + cuda.blockDim.x"),
            ONE_BLOCK_TOO_LATE,
        ),
        "the last one is left out": (changed(axpy, "i < n", "i < n - 1"), LAST_LEFT_OUT),
        "the first one is left out": (changed(axpy, "i < n", "0 < i and i < n"), FIRST_LEFT_OUT),
        "the guard turned": (
            changed(axpy, "i < n", "i > n"),
            "This lets only threads beyond the end work. The guard is `i < n`.",
        ),
        "x and y exchanged": (
            changed(axpy, "a * x[i] + y[i]", "a * y[i] + x[i]"),
            "The number `a` is a factor of `x[i]`, not of `y[i]`: `a * x[i] + y[i]`.",
        ),
        "a is made whole": (
            changed(axpy, "a * x[i]", "int(a) * x[i]"),
            "The number `a` may have a fraction, such as 2.5. Multiply by `a` itself: "
            "`a * x[i] + y[i]`.",
            r"int\(a\)",
        ),
        "brackets around the sum": (
            changed(axpy, "a * x[i] + y[i]", "a * (x[i] + y[i])"),
            "The number `a` is a factor of `x[i]` alone: `a * x[i] + y[i]`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(n: int, blocks: int, threads: int, label: str) -> Case:
            x, y, out = floats(draw, n), floats(draw, n), unfilled(draw, n)
            a = (-1) ** n * (draw.integer(1, 8) + 0.5)  # no whole number, and some below 0
            return case(blocks, threads, a, x, y, out, n, label=label)

        yield sized(8, 1, 8, "one block, a thread for each element")
        yield sized(8, 2, 4, "two blocks, a thread for each element")
        yield sized(7, 2, 4, "one thread too many")
        yield sized(10, 4, 4, "six threads too many")
        yield sized(33, 2, 32, "nearly a block too many")
        yield sized(2, 4, 2, "more blocks than are needed")
        yield sized(1, 3, 1, "one element (size 1)")
        whole = tk.tensor(draw.integers(6, 1, 9))
        out = unfilled(draw, 6).long()
        yield case(2, 4, 3, whole, whole + 1, out, 6, label="whole numbers (int)")

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """Each thread fills one element."""
        blocks, threads, *_, n = args
        return works_alone(log, WRITES, n, blocks, threads)
