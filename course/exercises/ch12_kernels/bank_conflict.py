"""The exercise bank-conflict: a transposition in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import (
    KernelExercise,
    changed,
    floats,
    unfilled,
)
from course.notebook.exercise import Case, Draw, case, exercise
from tensorkit import cuda


@cuda.kernel
def transposed(x, out):
    """A matrix of 32 x 32 turned, without bank conflicts."""
    tile = cuda.shared((32, 33), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[row, t] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[row, t] = tile[t, row]


def _with_conflicts(x, out):
    tile = cuda.shared((32, 32), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[row, t] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[row, t] = tile[t, row]


@exercise(
    "bank-conflict",
    answer=transposed,
    stub=_with_conflicts,
    difficulty=4,
    minutes=10,
    further=True,
    witness="inside",
)
class BankConflict(KernelExercise):
    """A column more than is needed

    The kernel turns a matrix of 32 x 32. It reads and writes whole rows of global memory, so the
    columns are left to shared memory. There 32 threads read one column, and all 32 words lie in
    one bank: for each of the 32 reads the warp waits 31 times. Remove the waits. Another number in
    one place is enough.

    **Input:** `x` and `out` of shape `[32, 32]` on the device. There is one block of 32 threads.

    **Output:** none. `out` becomes `x.T`, with 64 transactions and no bank conflict; `x` stays
    as it is.

    ```python
    x, out = tk.arange(1024.0).reshape(32, 32).cuda(), tk.zeros(32, 32).cuda()
    transposed[1, 32](x, out).counts.bank_conflicts      # 992 now, 0 when repaired
    ```
    """

    filled = 1
    hints = (
        "Word number `w` of shared memory lies in bank `w % 32`. In a tile with 32 columns the "
        "element `[t, row]` is word `32 * t + row`: always the same bank.",
        "Make the rows of the tile one element longer. The element `[t, row]` is then word "
        "`33 * t + row`, in another bank for each `t`.",
    )
    usual_mistakes = {
        "as it was": (
            _with_conflicts,
            "The elements of a column still lie in one bank. Change the width of the tile, so that "
            "two neighbours in a column lie in different banks.",
        ),
        "two columns more": (
            changed(transposed, "33", "34"),
            "With 34 columns every second bank is used, each twice. The width and 32 should have "
            "no common divisor: 33.",
        ),
        "conflicts when it is written": (
            changed(_with_conflicts, "[row, t] =", "[t, row] ="),
            "Now columns are written, to shared and to global memory. Leave the loops as they were "
            "and change the width of the tile.",
        ),
        "not turned": (
            changed(transposed, "tile[t, row]", "tile[row, t]"),
            "The matrix comes out as it was: row `row` of `out` is column `row` of the tile, "
            "`tile[t, row]`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def ranged(low: int, high: int, label: str) -> Case:
            return case(
                1, 32, floats(draw, 32, 32, low=low, high=high), unfilled(draw, 32, 32), label=label
            )

        yield ranged(1, 99, "any numbers")
        yield ranged(-99, 99, "negative numbers as well")
        yield ranged(100, 999, "larger numbers")
        turned = floats(draw, 32, 32, high=99).floor().flip(0).contiguous()[:, :]
        yield case(1, 32, turned, unfilled(draw, 32, 32), label="whole numbers, upside down (int)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The filled tensor, transactions and bank conflicts."""
        blocks, threads, x, out = args
        with cuda.simulate():
            _, _, _, arguments, _, counts, *_ = answer[blocks, threads](x.cuda(), out.cuda())
            out = self.filled_alone(arguments, (x, out))
            return {"out": out, "transactions": counts[2], "conflicts": counts[3]}
