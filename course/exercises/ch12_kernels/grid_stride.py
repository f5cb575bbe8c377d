"""The exercise grid-stride: more elements than threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import (
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

_BLOCKS_MEET = (
    "Threads of two blocks take one element. Begin at `cuda.grid(1)`, which is `blockIdx.x * "
    "blockDim.x + threadIdx.x`, and step over all threads of the launch: `gridDim.x * blockDim.x`."
)


@cuda.kernel
def squares(x, out, n):
    """All squares, however few threads there are."""
    for i in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x):
        out[i] = x[i] * x[i]


def _neighbours_in_a_row(x, out, n):
    n_threads = cuda.gridDim.x * cuda.blockDim.x
    share = (n + n_threads - 1) // n_threads
    first = share * cuda.grid(1)
    for i in range(first, min(first + share, n)):
        out[i] = x[i] * x[i]


_LOOP = "for i in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x)"


@exercise("grid-stride", answer=squares, points=1, difficulty=2, minutes=5)
class GridStride(KernelExercise):
    """More elements than threads

    A launch has as many threads as its caller likes. Write the kernel that squares all `n` elements
    with any number of threads: each thread takes its first element, then the one that lies as many
    further as there are threads in the whole launch, and so on.

    **Input:** `x` and `out`, tensors with `n` elements on the device; `n`.

    **Output:** none. `out[i]` becomes `x[i] * x[i]` for every `i`; `x` stays as it is.

    ```python
    x, out = tk.arange(5.0).cuda(), tk.zeros(5).cuda()
    squares[1, 2](x, out, 5)     # thread 0 takes 0, 2, 4; thread 1 takes 1, 3
    out                          # tensor([ 0.,  1.,  4.,  9., 16.], device='cuda:0')
    ```
    """

    filled = 1
    hints = (
        "How many threads has the whole launch? `gridDim.x` blocks of `blockDim.x` threads.",
        "`for i in range(start, n, step):` with the thread's own number as the start and the "
        "number of all threads as the step. The range ends at `n`, so no guard is needed.",
    )
    usual_mistakes = {
        "one element each": (
            changed(squares, _LOOP, "i = cuda.grid(1)\n    if i < n"),
            "Each thread fills one element, and the rest stays as it was. Let it go on: the next "
            "one lies `gridDim.x * blockDim.x` further.",
        ),
        "the step of a block": (
            changed(squares, "cuda.gridDim.x * ", ""),
            _BLOCKS_MEET,
            r"(?s)\A(?!.*gridDim)",
        ),
        "neighbours for each thread": (
            _neighbours_in_a_row,
            "Each thread takes neighbours, one after the other, so at each step the threads of a "
            "warp are far apart. The next element lies `gridDim.x * blockDim.x` further.",
        ),
        "every thread does everything": (
            changed(squares, _LOOP, "for i in range(n)"),
            "Every thread fills every element: they race, and nothing is gained. Begin at "
            "`cuda.grid(1)` and step by the number of all threads.",
        ),
        "begins at the thread of the block": (
            changed(squares, "cuda.grid(1)", "cuda.threadIdx.x"),
            "The threads of all blocks begin at the same elements. Begin at `cuda.grid(1)`.",
            r"(?s)\A(?!.*blockIdx)(?!.*grid\()",
        ),
        "the step of the blocks": (
            changed(squares, " * cuda.blockDim.x", ""),
            "The step is the number of threads, not of blocks: `gridDim.x * blockDim.x`.",
        ),
        "the block is not multiplied": (
            changed(squares, "cuda.grid(1)", "cuda.blockIdx.x + cuda.threadIdx.x"),
            _BLOCKS_MEET,
            r"blockIdx\.x \+|\+ cuda\.blockIdx\.x(?! \*)",
        ),
        "the last one is left out": (
            changed(squares, ", n,", ", n - 1,"),
            "The element `n - 1` stays as it was. A range leaves out its end, which is `n` here.",
        ),
        "twice": (
            changed(squares, "x[i] * x[i]", "2.0 * x[i]"),
            "This is twice the element. Its square is `x[i] * x[i]`.",
        ),
        "one block too late": (
            changed(squares, "cuda.grid(1)", "cuda.grid(1) + cuda.blockDim.x"),
            ONE_BLOCK_TOO_LATE,
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(n: int, blocks: int, threads: int, label: str) -> Case:
            return case(blocks, threads, floats(draw, n), unfilled(draw, n), n, label=label)

        yield sized(12, 2, 3, "two elements for each thread")
        yield sized(17, 2, 4, "two or three for each thread")
        yield sized(23, 3, 2, "three blocks of two threads")
        yield sized(9, 4, 2, "four blocks of two threads")
        yield sized(6, 1, 4, "one block")
        yield sized(300, 2, 32, "four or five for each thread")
        yield sized(130, 1, 1, "one thread")
        yield sized(5, 3, 4, "more threads than elements")
        yield sized(1, 2, 2, "one element (size 1)")
        whole = tk.tensor(draw.integers(15, 1, 9))
        yield case(2, 3, whole, unfilled(draw, 15).long(), 15, label="whole numbers (int)")

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """From one element of a thread to its next one it is as far as there are threads."""
        blocks, threads, *_, n = args
        if alone := works_alone(log, WRITES, n, blocks, threads):
            return alone
        first = dict[tuple[int, int], int]()
        for accesses_there in log.touched.values():
            for block, thread, kind, _, _, (i, *_), _ in accesses_there.values():
                at = first.setdefault((block, thread), i) if kind == WRITES else i
                if (at - i) % (blocks * threads):
                    return (
                        f"has a thread that takes the elements {min(at, i)} and {max(at, i)}",
                        "let each thread step over all threads of the launch: "
                        f"{blocks * threads} elements further",
                    )
        return None
