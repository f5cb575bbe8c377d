"""The exercise tree-sum: block sums in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import (
    ALONE,
    FIRST_LEFT_OUT,
    LAST_LEFT_OUT,
    NOT_MULTIPLIED,
    ONE_BLOCK_TOO_LATE,
    READS,
    KernelExercise,
    accesses,
    changed,
    floats,
    most_read,
    unfilled,
    works_alone,
)
from course.notebook.exercise import Case, Draw, case, exercise
from course.notebook.rules import SUM_WITHOUT_BARRIER, Rule
from tensorkit import cuda
from tensorkit.cuda import Counts

_ONE_PHASE = (
    "A place of `part` is written by one thread and read by another in one phase. All threads wait "
    "after each has written its own number, and at the end of each round: in the loop, after the "
    "`if`. In a round only the first `half` threads add, and what they read is `part[t + half]`."
)

_EVERY_BLOCK_ALIKE = (
    "Every block adds the first elements. The thread's own element is `x[i]` with "
    "`i = cuda.grid(1)`; `t` is its place in `part`."
)

_IN_THE_IF = "            cuda.syncthreads()\n        half"

MOST_READ = 7
"""Of shared memory by a thread: two numbers in each round, and the sum."""


@cuda.kernel
def block_sums(x, out, n):
    """The sum of each block's elements, in out[block], by a tree."""
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = 0.0
    if i < n:
        part[t] = x[i]
    cuda.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def _tree_program(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    ...  # part[t]: the thread's own element, or 0.0 beyond the end
    cuda.syncthreads()
    half = 4
    while half > 0:
        if ...:  # which threads add in this round
            part[t] += ...  # the number that lies half further
        ...  # before the next round reads what was added
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


@exercise(
    "tree-sum",
    answer=block_sums,
    stub=_tree_program,
    kind="complete",
    points=3,
    difficulty=4,
    minutes=10,
)
class TreeSum(KernelExercise):
    """A tree in shared memory

    Atomic additions to one place wait for each other. Here each block of 8 threads adds its own
    elements in shared memory, in three rounds: four threads add, then two, then one. Fill the gaps.

    **Input:** `x` with `n` elements on the device; `out`, with an element for each block; `n`. A
    block has 8 threads.

    **Output:** none. `out[b]` becomes the sum of the elements `8 * b` to `8 * b + 7` of `x`, as far
    as there are any; `x` stays as it is.

    ```python
    x, out = tk.arange(10.0).cuda(), tk.zeros(2).cuda()
    block_sums[2, 8](x, out, 10)
    out                          # tensor([28., 17.], device='cuda:0')
    ```
    """

    filled = 1
    rules = (
        Rule(
            "in three rounds",
            "Share the additions: four threads add one number each, then two, then one, with "
            "`cuda.syncthreads()` between one round and the next.",
            refuses=(SUM_WITHOUT_BARRIER, "atomic_add"),
        ),
    )
    hints = (
        "Every element of `part` is read in some round, so every thread writes its own one first: "
        "`part[t] = 0.0`, and within the guard `part[t] = x[i]`.",
        "In a round with `half = 4` the threads 0 to 3 add `part[t + 4]`: `if t < half:`.",
        "A round reads what the round before has written. Between the two all threads wait: "
        "`cuda.syncthreads()`, outside of the `if`.",
    )
    usual_mistakes = {
        "no barrier in the loop": (
            changed(block_sums, "        cuda.syncthreads()\n        half", "        half"),
            _ONE_PHASE,
            r"(?s)syncthreads.*while(?!.*syncthreads)",
        ),
        "a barrier inside the if": (
            changed(block_sums, "        cuda.syncthreads()\n        half", _IN_THE_IF),
            "Not all threads come to this barrier, and a barrier is for all of the block. It "
            "stands below the `if`, in a loop that goes round equally often for each thread.",
        ),
        "nothing beyond the end": (
            changed(block_sums, "    part[t] = 0.0\n", ""),
            "Threads beyond the end write nothing, and their places are read all the same. Write "
            "`part[t] = 0.0` in every thread first.",
        ),
        "reads before the barrier": (
            changed(block_sums, "    cuda.syncthreads()\n    half", "    half"),
            _ONE_PHASE,
            r"(?s)\A(?!.*syncthreads.*while).*while(?!.*:\s*cuda\.syncthreads).*syncthreads",
        ),
        "too many threads add": (
            changed(block_sums, "t < half", "t < 8 - half"),
            _ONE_PHASE,
        ),
        "every block alike": (
            changed(block_sums, "cuda.grid(1)", "cuda.threadIdx.x"),
            _EVERY_BLOCK_ALIKE,
        ),
        "every block alike, with a guard": (
            changed(block_sums, "x[i]", "x[t]"),
            _EVERY_BLOCK_ALIKE,
        ),
        "block 0 alone adds": (
            changed(block_sums, "t < half", "i < half"),
            "`i` counts in the whole launch, so the rounds add in block 0 only. Within a block the "
            "thread is `t`: `if t < half:`.",
        ),
        "block 0 alone writes": (
            changed(block_sums, "t == 0", "i == 0"),
            "`i` counts in the whole launch, so block 0 alone writes its sum. Within a block the "
            "first thread is `t == 0`.",
        ),
        "one round short": (
            changed(block_sums, "half > 0", "half > 1"),
            "The last round is missing, in which thread 0 adds `part[1]`: `half` = 1 is more than "
            "0 still, `while half > 0:`.",
        ),
        "the last one is left out": (changed(block_sums, "i < n", "i < n - 1"), LAST_LEFT_OUT),
        "the first one is left out": (
            changed(block_sums, "i < n", "0 < i and i < n"),
            FIRST_LEFT_OUT,
        ),
        "ones beyond the end": (
            changed(block_sums, "part[t] = 0.0", "part[t] = 1.0"),
            "Beyond the end stands a number that changes no sum: `part[t] = 0.0`.",
        ),
        "the block is not multiplied": (
            changed(block_sums, "cuda.grid(1)", "cuda.blockIdx.x + t"),
            NOT_MULTIPLIED,
        ),
        "one block too late": (
            changed(block_sums, "cuda.grid(1)", "cuda.grid(1) + 8"),
            ONE_BLOCK_TOO_LATE,
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(n: int, label: str) -> Case:
            blocks = -(-n // 8)
            return case(blocks, 8, floats(draw, n), unfilled(draw, blocks), n, label=label)

        yield case(2, 8, tk.arange(10.0), unfilled(draw, 2), 10, label="ten elements, two blocks")
        yield sized(8, "one whole block")
        yield sized(24, "three whole blocks")
        yield sized(5, "a block that is not full")
        yield sized(19, "a last block that is not full")
        yield sized(33, "a last block with one element")
        yield sized(1, "one element (size 1)")
        empty, out = tk.zeros(0), unfilled(draw, 1)
        yield case(1, 8, empty, out, 0, label="no elements (empty)", weight=0.25)

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """Four threads add in three rounds, with a barrier between one and the next."""
        blocks, threads, *_, n = args
        if counts.barriers < 3 * blocks:
            return (
                f"has {counts.barriers // blocks} barriers in a block: its threads do not add in "
                "three rounds",
                "four threads add, then two, then one, with `cuda.syncthreads()` after each round",
            )
        rounds = iter(map(_readers, log.shown[1:]))  # all after the first barrier
        if not all(any(n_readers >= least for n_readers in rounds) for least in (4, 2, 1)):
            return ALONE
        if (most := most_read(log.shown)) > MOST_READ:
            return (
                f"has a thread that reads {most} numbers of shared memory, where 7 are enough",
                "let each thread add one number in a round: `part[t] += part[t + half]`",
            )
        return works_alone(log, READS, n, blocks, threads)


def _readers(phase: Any) -> int:
    """How many threads read shared memory in a phase."""
    reads = accesses([phase])
    return len({thread for thread, kind, at in reads if kind == READS and at < 0})
