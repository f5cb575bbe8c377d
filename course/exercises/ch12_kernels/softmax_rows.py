"""The exercise softmax-rows: maximum, sum and division in one launch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import (
    ALONE,
    WRITES,
    KernelExercise,
    changed,
    unfilled,
    works_alone,
)
from course.notebook.exercise import Case, Draw, case, exercise
from tensorkit import cuda
from tensorkit.cuda import Counts

_USED_TWICE = (
    "`part` is written and read by different threads in one phase. A barrier stands between a "
    "write and the reads of others, and another one before `part` is used again."
)


@cuda.kernel
def softmax(x, out, columns):
    """Softmax of each row: a block of 4 threads for each."""
    part = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(t, columns, 4):
        largest = max(largest, x[row, j])
    part[t] = largest
    cuda.syncthreads()
    for k in range(4):
        largest = max(largest, part[k])
    cuda.syncthreads()
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    part[t] = own
    cuda.syncthreads()
    whole = 0.0
    for k in range(4):
        whole += part[k]
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / whole


def _largest_not_taken_off(x, out, columns):
    part = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j])
    part[t] = own
    cuda.syncthreads()
    whole = 0.0
    for k in range(4):
        whole += part[k]
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j]) / whole


def _own_sum_only(x, out, columns):
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(columns):
        largest = max(largest, x[row, j])
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / own


def _own_largest_and_sum(x, out, columns):
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(t, columns, 4):
        largest = max(largest, x[row, j])
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / own


def _no_barrier_for_the_sum(x, out, columns):
    part = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(columns):
        largest = max(largest, x[row, j])
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    part[t] = own
    whole = 0.0
    for k in range(4):
        whole += part[k]
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / whole


def _written_over(x, out, columns):
    part = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(t, columns, 4):
        largest = max(largest, x[row, j])
    part[t] = largest
    cuda.syncthreads()
    for k in range(4):
        largest = max(largest, part[k])
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    part[t] = own
    cuda.syncthreads()
    whole = 0.0
    for k in range(4):
        whole += part[k]
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / whole


def _each_alone(x, out, columns):
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(columns):
        largest = max(largest, x[row, j])
    whole = 0.0
    for j in range(columns):
        whole += math.exp(x[row, j] - largest)
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / whole


_SUM = "whole = 0.0\n    for j in range(columns)"


def _column_first(x, out, columns):
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[0, row]
    for j in range(columns):
        largest = max(largest, x[j, row])
    whole = 0.0
    for j in range(columns):
        whole += math.exp(x[j, row] - largest)
    for j in range(t, columns, 4):
        out[j, row] = math.exp(x[j, row] - largest) / whole


@exercise("softmax-rows", answer=softmax, points=3, difficulty=4, minutes=15)
class SoftmaxRows(KernelExercise):
    """Softmax in one launch

    Written in operations, softmax is five launches, and each but the last writes a tensor that a
    later one reads: the largest of each row, a difference, exp, a sum, a quotient. Write it as one
    kernel, which may read `x` several times and writes `out` only. A block takes a row; its 4
    threads share the columns: thread `t` takes `t`, `t + 4`, `t + 8`, ... and fills these. For the
    largest and the sum each may go over the whole row, or they share that work too.

    **Input:** `x` and `out` of shape `[rows, columns]` on the device; `columns`, at least 1. There
    are `rows` blocks of 4 threads.

    **Output:** none. `out` becomes the softmax of each row: `exp(x - largest)`, divided by the sum
    of these. The largest element of the row is taken off so that nothing overflows.

    ```python
    x, out = tk.tensor([[1.0, 1.0], [0.0, 100.0]]).cuda(), tk.zeros(2, 2).cuda()
    softmax[2, 4](x, out, 2)
    out                          # about [[0.5, 0.5], [0, 1]]
    ```
    """

    filled = 1
    hints = (
        "Begin simply: every thread finds the largest of its row in a loop over all columns, and "
        "the sum as well, and then fills its own columns. No barrier is needed for that. The "
        "largest so far begins with `x[row, 0]`.",
        "To share the work: each thread finds the largest of its own columns, writes it to "
        "`part[t]`, waits, and takes the largest of the four. The same for the sum.",
        "`part` is used twice. Between the last read of the first time and the first write of the "
        "second time all threads wait.",
    )
    usual_mistakes = {
        "the largest is not taken off": (
            _largest_not_taken_off,
            "`exp` of a large number overflows. Take the largest element of the row off first: "
            "`math.exp(x[row, j] - largest)`.",
        ),
        "the sum of its own columns": (
            _own_sum_only,
            "Each thread divides by the sum of its own columns. The sum of the whole row is in the "
            "four parts together.",
        ),
        "its own largest and sum": (
            _own_largest_and_sum,
            "Each thread knows only its own columns: their largest and their sum. Put the four "
            "parts together in shared memory, twice.",
        ),
        "reads before the barrier": (
            _no_barrier_for_the_sum,
            _USED_TWICE,
        ),
        "written over": (
            _written_over,
            _USED_TWICE,
        ),
        "four columns only": (
            changed(_each_alone, "range(t, columns, 4)", "range(t, min(t + 1, columns))"),
            "Only the first four columns are filled. A thread goes on in steps of 4: "
            "`for j in range(t, columns, 4):`.",
        ),
        "the number in the launch": (
            changed(_each_alone, "cuda.threadIdx.x", "cuda.grid(1)"),
            "`cuda.grid(1)` counts the threads of all blocks. Each row has 4 threads of its own, "
            "which begin at `cuda.threadIdx.x`.",
        ),
        "the first one is not added": (
            changed(_each_alone, _SUM, _SUM.replace("(columns)", "(1, columns)")),
            "The sum has all columns of the row, the first one too: `range(columns)`.",
        ),
        "the last one is not added": (
            changed(_each_alone, _SUM, _SUM.replace("(columns)", "(columns - 1)")),
            "The sum has all columns of the row, the last one too: `range(columns)`.",
        ),
        "a sum without exp": (
            changed(_each_alone, "whole += math.exp(x[row, j] - largest)", "whole += x[row, j]"),
            "The exponentials are divided by their own sum: `math.exp(x[row, j] - largest)` is "
            "what is added.",
        ),
        "not divided": (
            changed(_each_alone, " / whole", ""),
            "These are the exponentials. Divide by their sum over the row.",
        ),
        "the largest of another row": (
            changed(_each_alone, "x[row, 0]", "x[0, 0]"),
            "Numbers of another row come into the largest of this one. It begins with `x[row, 0]`, "
            "and goes over the columns of this row.",
        ),
        "the wrong row": (
            _column_first,
            "The first index of a matrix is its row, and a block has one: `x[row, j]` with "
            "`row = cuda.blockIdx.x`, which begins at 0. `cuda.threadIdx.x` counts the 4 threads "
            "that share its columns.",
            r"(?s)(\w+) = cuda\.blockIdx\.x\n.*x\[[^\[\],]+, \1\]|\[[^\[\],]+, cuda\.blockIdx\.x\]"
            r"|(\w+) = cuda\.threadIdx\.x\n.*x\[\2, |grid\(1\)|blockIdx\.x \+ 1",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(rows: int, columns: int, label: str, more: float = 0.0) -> Case:
            values = [
                [number + more for number in draw.floats(columns, -2, 2)] for _ in range(rows)
            ]
            x = tk.tensor(values).reshape(rows, columns)
            return case(rows, 4, x, unfilled(draw, rows, columns), columns, label=label)

        yield sized(2, 6, "two rows of six")
        yield sized(1, 9, "one row")
        yield sized(3, 7, "large numbers", 100.0)
        yield sized(2, 5, "very large numbers", 1000.0)
        yield sized(2, 6, "numbers far below 0", -20_000.0)
        far = tk.tensor([draw.floats(6, -9, -5)])
        far[0, 2] += 4
        yield case(
            1, 4, 1e37 * far, unfilled(draw, 1, 6), 6, label="a row with nothing above -1e37"
        )
        apart = tk.tensor(draw.floats(78, -2, 2)).reshape(6, 13)
        apart[range(6), [1, 2, 3, 9, 11, 12]] += 1000
        yield case(6, 4, apart, unfilled(draw, 6, 13), 13, label="one large number in each row")
        rows = tk.tensor([draw.floats(6, at - 2, at + 2) for at in (1000, 0, -1000)])
        yield case(3, 4, rows, unfilled(draw, 3, 6), 6, label="rows far apart")
        below = tk.tensor([draw.floats(5, at - 2, at + 2) for at in (300, -300)])
        yield case(2, 4, below, unfilled(draw, 2, 5), 5, label="a row far below the one before")
        yield sized(4, 8, "four rows of eight")
        yield sized(2, 13, "three or four columns for each thread")
        yield sized(1, 140, "many columns")
        yield sized(3, 1, "one column (size 1)")
        turned = tk.tensor([draw.floats(3, -2, 2) for _ in range(6)]).T
        yield case(3, 4, turned, unfilled(draw, 3, 6), 6, label="a turned matrix (non-contiguous)")

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """The 4 threads of a block share the columns, and read neighbours at the same time."""
        blocks, threads, x, _, columns = args
        n_accesses = counts.loads + counts.stores
        if columns > 100 and counts.transactions > 3.75 * columns:  # four far apart take four
            return (
                f"takes {counts.transactions} transactions: the threads are far apart",
                "thread `t` takes the columns `t`, `t + 4`, `t + 8`, ...",
            )
        # one thread alone leaves three idle at each access; putting four parts together is little
        most = n_accesses / 2 if columns > 100 else 2.9 * n_accesses
        if columns > 4 and counts.idle_threads > most:
            return ALONE
        return works_alone(log, WRITES, x.numel(), blocks, threads)
