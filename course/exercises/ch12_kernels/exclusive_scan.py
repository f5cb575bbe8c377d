"""The exercise exclusive-scan: the sums of all elements before each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import (
    ALONE,
    WRITES,
    KernelExercise,
    accesses,
    changed,
    floats,
    most_read,
    unfilled,
)
from course.notebook.exercise import Case, Draw, case, exercise
from course.notebook.rules import SUM_WITHOUT_BARRIER, Rule
from tensorkit import cuda
from tensorkit.cuda import Counts


@cuda.kernel
def exclusive_scan(x, out, n):
    """The sum of all elements before each one."""
    part = cuda.shared(16, tk.float32)
    t = cuda.threadIdx.x
    part[t] = 0.0
    if t > 0 and t <= n:
        part[t] = x[t - 1]
    cuda.syncthreads()
    step = 1
    while step < 16:
        before = 0.0
        if t >= step:
            before = part[t - step]
        cuda.syncthreads()
        part[t] += before
        cuda.syncthreads()
        step = 2 * step
    if t < n:
        out[t] = part[t]


def _only_the_neighbour(x, out, n):
    part = cuda.shared(16, tk.float32)
    t = cuda.threadIdx.x
    part[t] = 0.0
    if t > 0 and t <= n:
        part[t] = x[t - 1]
    cuda.syncthreads()
    if t < n:
        out[t] = part[t]


@exercise(
    "exclusive-scan",
    answer=exclusive_scan,
    difficulty=5,
    minutes=15,
    further=True,
)
class ExclusiveScan(KernelExercise):
    """Sums of all before

    An exclusive scan gives each element the sum of all elements before it. It looks like work for
    one thread, and 16 threads do it in four rounds: in round `step` = 1, 2, 4, 8 each thread adds
    the number that lies `step` before its own.

    **Input:** `x` and `out` with `n` elements on the device, `n` at most 16; `n`. There is one
    block of 16 threads.

    **Output:** none. `out[i]` becomes `x[0] + ... + x[i - 1]`, and `out[0]` becomes 0; `x` stays as
    it is. The check counts the barriers, four to twelve, the reads of `x`, at most two for each
    element, and what each thread reads and writes: a thread adds one number in each round.

    ```python
    x, out = tk.tensor([3.0, 1.0, 2.0]).cuda(), tk.zeros(3).cuda()
    exclusive_scan[1, 16](x, out, 3)
    out                          # tensor([0., 3., 4.], device='cuda:0')
    ```
    """

    filled = 1
    rules = (
        Rule(
            "in four rounds",
            "A thread that adds in a loop of its own goes through all elements before. Add one "
            "number in each round, with `cuda.syncthreads()` between one round and the next.",
            refuses=(SUM_WITHOUT_BARRIER,),
        ),
    )
    hints = (
        "Shift first: thread `t` begins with `x[t - 1]`, thread 0 with 0. Then make the inclusive "
        "sums of these.",
        "In a round a thread reads what another one writes. Read into a name, wait, write, wait.",
        "A thread with `t < step` has nothing that many places before it: it adds 0.0.",
    )
    usual_mistakes = {
        "inclusive": (
            changed(exclusive_scan, "t > 0 and t <= n", "t < n", "x[t - 1]", "x[t]"),
            "Your sums contain the element itself. Shift by one: thread `t` begins with "
            "`x[t - 1]`.",
        ),
        "reads and writes in one phase": (
            changed(
                exclusive_scan,
                "        before = 0.0\n        if t >= step:\n            before = part[t - step]\n"
                "        cuda.syncthreads()\n        part[t] += before",
                "        if t >= step:\n            part[t] += part[t - step]",
            ),
            "`part[t] += part[t - step]` reads a number that another thread writes in the same "
            "round. Read into a name, `cuda.syncthreads()`, then add.",
        ),
        "one round short": (
            changed(exclusive_scan, "step < 16", "step < 8"),
            "Each sum has at most eight elements: the last round, `step` = 8, is missing.",
        ),
        "steps of one more": (
            changed(exclusive_scan, "2 * step", "step + 1"),
            "The rounds have `step` = 1, 2, 4, 8: it doubles, `step = 2 * step`.",
        ),
        "one round": (
            _only_the_neighbour,
            "This is the element before, not the sum of all before. Add in rounds with `step` = 1, "
            "2, 4, 8.",
            r"- 1\b",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(n: int, label: str) -> Case:
            return case(1, 16, floats(draw, n, low=2), unfilled(draw, n), n, label=label)

        yield sized(16, "sixteen elements")
        yield sized(5, "five elements")
        yield sized(9, "nine elements")
        yield sized(15, "fifteen elements")
        yield sized(2, "two elements")
        yield sized(1, "one element (size 1)")

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """Few reads of `x`, four rounds with one to three barriers each, shared by all threads."""
        n = args[-1]
        if counts.loads > 2 * n:
            return (
                f"reads `x` {counts.loads} times for {n} elements: each thread adds up all before",
                "each thread reads one element of `x`, and the rounds add in shared memory",
            )
        if not 4 <= counts.barriers <= 12:
            amount = "too few" if counts.barriers < 4 else "too many"
            return (
                f"has {counts.barriers} barriers, {amount} for four rounds",
                "read into a name, wait, add, wait, in each of the rounds 1, 2, 4, 8",
            )
        # adding takes up to three reads; two sweeps write up to 15 numbers, one thread alone 16
        writes = Counter(thread for thread, kind, _ in accesses(log.shown) if kind == WRITES)
        reads_many = any(most_read([phase]) > 3 for phase in log.shown)
        if max(writes.values(), default=0) > 15 or reads_many:
            return ALONE
        return None
