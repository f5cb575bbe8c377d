"""The exercise add-bias: a kernel in two dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course.exercises.ch12_kernels.kernel_exercise import (
    WRITES,
    KernelExercise,
    Size,
    changed,
    floats,
    unfilled,
    works_alone,
)
from course.notebook.exercise import Case, Draw, case, exercise
from tensorkit import cuda
from tensorkit.cuda import Counts

_BEYOND_BOTH = (
    "Threads beyond the last row or the last column reach outside. Guard both: "
    "`if row < rows and column < columns:`."
)

_ONE_BLOCK_AWAY = (
    "Blocks are counted from 0. Your first block fills the elements of the next one, and its own "
    "stay as they were. Take `column, row = cuda.grid(2)`."
)

_X_FIRST = (
    "`cuda.grid(2)` gives x first, and here x goes along the columns: `column, row = cuda.grid(2)`."
)


@cuda.kernel
def add_bias(x, bias, out, rows, columns):
    """A row of numbers added to every row of a matrix."""
    column, row = cuda.grid(2)
    if row < rows and column < columns:
        out[row, column] = x[row, column] + bias[column]


def _axes_swapped_with_strides(x, bias, out, rows, columns):
    first, start = cuda.grid(2)
    for row in range(first, rows, cuda.gridDim.x * cuda.blockDim.x):
        for column in range(start, columns, cuda.gridDim.y * cuda.blockDim.y):
            out[row, column] = x[row, column] + bias[column]


_POSITION = "column, row = cuda.grid(2)"


@exercise("add-bias", answer=add_bias, points=2, difficulty=3, minutes=6)
class AddBias(KernelExercise):
    """Two dimensions, and a bias

    A linear layer adds a bias to every row. Write the kernel: one thread for each element of the
    matrix. Columns go along x and rows along y, so that neighbouring threads read neighbouring
    elements.

    **Input:** `x` and `out` of shape `[rows, columns]`, `bias` of shape `[columns]`, all on the
    device; the two sizes.

    **Output:** none. `out[row, column]` becomes `x[row, column] + bias[column]`; `x` and `bias`
    stay as they are. The check counts the transactions of a larger matrix, too.

    ```python
    x, bias = tk.zeros(2, 3).cuda(), tk.tensor([1.0, 2.0, 3.0]).cuda()
    out = tk.zeros(2, 3).cuda()
    add_bias[(2, 1), (2, 2)](x, bias, out, 2, 3)     # 4 threads along x, 2 along y
    out      # tensor([[1., 2., 3.], [1., 2., 3.]], device='cuda:0')
    ```
    """

    filled = 2
    hints = (
        "`cuda.grid(2)` gives two numbers: first the one along x, then the one along y.",
        "`column, row = cuda.grid(2)`. Both may lie outside: "
        "`if row < rows and column < columns:`.",
        "Broadcasting is an index that is left out: the bias has no row, so it is `bias[column]`.",
    )
    usual_mistakes = {
        "no guard": (
            changed(add_bias, "row < rows and column < columns", "row >= 0"),
            _BEYOND_BOTH,
        ),
        "one guard": (
            changed(add_bias, "row < rows and ", ""),
            _BEYOND_BOTH,
        ),
        "the bias of the row": (
            changed(add_bias, "bias[column]", "bias[row]"),
            "The bias belongs to the columns: all elements of a column get the same number, "
            "`bias[column]`.",
        ),
        "dimensions swapped": (
            changed(add_bias, "column, row =", "row, column ="),
            _X_FIRST,
        ),
        "dimensions swapped, with strides": (
            _axes_swapped_with_strides,
            _X_FIRST,
        ),
        "the blocks along y are alike": (
            changed(add_bias, _POSITION, "column = cuda.grid(1)\n    row = cuda.threadIdx.y"),
            "Threads of two blocks fill one element. The row is the second number of "
            "`cuda.grid(2)`, `blockIdx.y * blockDim.y + threadIdx.y`.",
        ),
        "the blocks along x are alike": (
            changed(add_bias, _POSITION, f"{_POSITION}\n    column = cuda.threadIdx.x"),
            "Threads of two blocks fill one element. The column is the first number of "
            "`cuda.grid(2)`, `blockIdx.x * blockDim.x + threadIdx.x`.",
        ),
        "the block is not multiplied": (
            changed(
                add_bias,
                _POSITION,
                "column = cuda.blockIdx.x + cuda.threadIdx.x\n"
                "    row = cuda.blockIdx.y + cuda.threadIdx.y",
            ),
            "Threads of two blocks fill one element. `threadIdx` counts within a block: multiply "
            "`blockIdx.x` by `blockDim.x` and add `threadIdx.x`, and the same along y, or take "
            "`column, row = cuda.grid(2)`.",
        ),
        "blocks of the other axis": (
            changed(
                add_bias,
                _POSITION,
                "column = cuda.grid(1)\n"
                "    row = cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.y",
            ),
            "The rows of a block are `blockDim.y`: `blockIdx.y * blockDim.y + threadIdx.y`. "
            "`blockDim.x` counts its columns.",
        ),
        "one block too low": (
            changed(add_bias, _POSITION, f"{_POSITION}\n    row += cuda.blockDim.y"),
            _ONE_BLOCK_AWAY,
        ),
        "one block too far right": (
            changed(add_bias, _POSITION, f"{_POSITION}\n    column += cuda.blockDim.x"),
            _ONE_BLOCK_AWAY,
        ),
        "the guards exchanged": (
            changed(add_bias, "row < rows and column < columns", "row < columns and column < rows"),
            "There are `rows` rows and `columns` columns: `if row < rows and column < columns:`.",
        ),
        "the last column is left out": (
            changed(add_bias, "column < columns", "column < columns - 1"),
            "The column `columns - 1` stays as it was. The guard is `column < columns`.",
        ),
        "the last row is left out": (
            changed(add_bias, "row < rows", "row < rows - 1"),
            "The row `rows - 1` stays as it was. The guard is `row < rows`.",
        ),
        "times the bias": (
            changed(add_bias, "x[row, column] +", "x[row, column] *"),
            "A bias is added: `x[row, column] + bias[column]`.",
        ),
        "the column first": (
            changed(add_bias, "[row, column]", "[column, row]"),
            "The first index of a matrix is its row: `out[row, column]`, and `x[row, column]`.",
            r"x\[column|x\[\w+\.x|x\[i, j\]|x\[x",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(rows: int, columns: int, blocks: Size, threads: Size, label: str) -> Case:
            x, bias = floats(draw, rows, columns), floats(draw, columns, low=10, high=99)
            out = unfilled(draw, rows, columns)
            return case(blocks, threads, x, bias, out, rows, columns, label=label)

        yield sized(2, 4, (1, 1), (4, 2), "one block, a thread for each element")
        yield sized(2, 6, (3, 1), (2, 2), "three blocks side by side")
        yield sized(3, 5, (2, 2), (3, 2), "threads too many on both sides")
        yield sized(7, 3, (1, 3), (4, 3), "more rows than columns")
        yield sized(6, 2, (1, 3), (2, 2), "three blocks, one below the other")
        yield sized(20, 16, (1, 10), (16, 2), "rows of 16, two for each warp")
        yield sized(1, 7, (2, 1), (4, 2), "one row (size 1)")
        yield sized(7, 1, (1, 2), (2, 4), "one column (size 1)")
        turned = floats(draw, 5, 3).T
        bias = floats(draw, 5, low=10, high=99)
        arguments = turned, bias, unfilled(draw, 3, 5), 3, 5
        yield case((2, 2), (3, 2), *arguments, label="a turned matrix (non-contiguous)")

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """One thread for each element of the matrix, and neighbours along x."""
        blocks, threads, *_, rows, columns = args
        most = rows * columns // 4  # of 32 elements, two rows take 3 transactions, columns over 16
        if rows * columns > 200 and counts.transactions > most:
            return (
                f"takes {counts.transactions} transactions: neighbouring threads are rows apart",
                "columns along x: column, row = cuda.grid(2)",
            )
        return works_alone(log, WRITES, rows * columns, blocks, threads)
