"""The exercise tiled-matmul: a matrix product with tiles in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import (
    READS,
    WRITES,
    KernelExercise,
    accesses,
    changed,
    floats,
    unfilled,
    works_alone,
)
from course.notebook.exercise import Case, Draw, case, exercise
from tensorkit import cuda
from tensorkit.cuda import Counts


@cuda.kernel
def matmul(a, b, out, n):
    """The product of two n x n matrices, tile by tile."""
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for tile in range(n // 4):
        left[ty, tx] = a[row, 4 * tile + tx]
        right[ty, tx] = b[4 * tile + ty, column]
        cuda.syncthreads()
        for k in range(4):
            value += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    out[row, column] = value


def _matmul_program(a, b, out, n):
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for tile in range(n // 4):
        left[ty, tx] = ...  # row `row` of a, column tx of tile number `tile`
        right[ty, tx] = ...  # row ty of tile number `tile`, column `column` of b
        ...  # all 32 numbers are there before anybody reads them
        for k in range(4):
            value += ...  # a product of two numbers of the tiles
        ...  # nobody writes the next tile before all have read this one
    out[row, column] = value


def _without_tiles(a, b, out, n):
    column, row = cuda.grid(2)
    value = 0.0
    for k in range(n):
        value += a[row, k] * b[k, column]
    out[row, column] = value


_PRODUCT = "`k` is the column in `left` and the row in `right`: `left[ty, k] * right[k, tx]`."

_X_IN_PRODUCT = (
    "`out[row, column]` is the product of this thread's row, which is `ty` in `left`, and its "
    "column, `tx` in `right`: `left[ty, k] * right[k, tx]`."
)

_BROUGHT = (
    "The first index of a matrix is its row. This thread brings `a[row, 4 * tile + tx]` into "
    "`left` and `b[4 * tile + ty, column]` into `right`."
)

_EXCHANGED = (
    "You multiply `b` by `a`, and the order of the factors matters. `left` gets the numbers of "
    "`a`, `right` those of `b`."
)


@exercise(
    "tiled-matmul",
    answer=matmul,
    stub=_matmul_program,
    kind="complete",
    points=4,
    difficulty=5,
    minutes=12,
)
class TiledMatmul(KernelExercise):
    """A matrix product in tiles

    Each block computes a square of 4 x 4 elements of `a @ b`. It brings a tile of `a` and one of
    `b` into shared memory: each thread brings a number of each. Then it adds the products of these,
    and goes on to the next pair. So each number is read from global memory once for 4 threads. Fill
    the gaps.

    **Input:** `a`, `b` and `out` of shape `[n, n]` on the device; `n`, a multiple of 4. A block has
    `(4, 4)` threads, and there are `(n // 4, n // 4)` blocks.

    **Output:** none. `out` becomes `a @ b`; `a` and `b` stay as they are. The check counts the
    reads of global memory, too.

    ```python
    a, out = tk.ones(4, 4).cuda(), tk.zeros(4, 4).cuda()
    matmul[(1, 1), (4, 4)](a, a, out, 4)
    out[0]                       # tensor([4., 4., 4., 4.], device='cuda:0')
    ```
    """

    filled = 2
    hints = (
        "In tile number `tile` the columns of `a` begin at `4 * tile`, and so do the rows of `b`.",
        "`a[row, 4 * tile + tx]` and `b[4 * tile + ty, column]`; the product is "
        "`left[ty, k] * right[k, tx]`.",
        "Both single gaps are barriers: `cuda.syncthreads()`. One is for the reads after it, one "
        "for the writes of the next turn.",
    )
    usual_mistakes = {
        "reads before the barrier": (
            changed(matmul, "        cuda.syncthreads()\n        for", "        for"),
            "Threads read numbers of the tile that others have not brought yet. The first barrier "
            "stands between bringing and reading.",
        ),
        "writes too early": (
            changed(matmul, "        cuda.syncthreads()\n    out", "    out"),
            "A quick thread brings the next tile while others still read this one. A second "
            "barrier stands at the end of the turn.",
        ),
        "always the first tile": (
            changed(matmul, "4 * tile + ", ""),
            "Every turn brings the first tile again. The columns of `a` and the rows of `b` begin "
            "at `4 * tile`.",
        ),
        "tiles that overlap": (
            changed(matmul, "4 * tile", "tile"),
            "`tile` counts tiles, and each is four wide: its columns of `a` and its rows of `b` "
            "begin at `4 * tile`.",
        ),
        "the right tile is turned": (
            changed(matmul, "right[k, tx]", "right[tx, k]"),
            _PRODUCT,
        ),
        "the row of the matrix": (
            changed(matmul, "left[ty, k]", "left[row, k]"),
            "`row` counts the rows of the whole matrix, and a tile has four. Within a tile the row "
            "of this thread is `ty`: `left[ty, k]`.",
            r"(?s)\A(?!.*left\[ty, k\])",
        ),
        "a row by a row": (
            changed(matmul, "right[k, tx]", "right[ty, k]"),
            "You multiply a row of `left` by a row of `right`. `k` is the column in `left` and the "
            "row in `right`: `left[ty, k] * right[k, tx]`.",
        ),
        "element by element": (
            changed(
                matmul,
                "for k in range(4):\n            value += left[ty, k] * right[k, tx]",
                "value += left[ty, tx] * right[ty, tx]",
            ),
            "You multiply the tiles element by element. A matrix product adds over `k`: "
            "`left[ty, k] * right[k, tx]`.",
        ),
        "dimensions swapped": (
            changed(matmul, "column, row =", "row, column ="),
            "`cuda.grid(2)` gives x first, and here x goes along the columns: "
            "`column, row = cuda.grid(2)`.",
        ),
        "the tile of a is brought turned": (
            changed(matmul, "a[row, 4 * tile + tx]", "a[4 * tile + tx, row]"),
            "The first index of `a` is the row: this thread brings `a[row, 4 * tile + tx]`.",
        ),
        "the tile of b is brought turned": (
            changed(matmul, "b[4 * tile + ty, column]", "b[column, 4 * tile + ty]"),
            "The first index of `b` is the row, and the tile has the rows from `4 * tile` on: this "
            "thread brings `b[4 * tile + ty, column]`.",
        ),
        "the left tile is turned": (
            changed(matmul, "left[ty, k]", "left[k, ty]"),
            _PRODUCT,
        ),
        "every block alike": (
            changed(matmul, "a[row,", "a[ty,", "column]\n        cuda", "tx]\n        cuda"),
            "Every block brings the first rows of `a` and the first columns of `b`: `ty` and `tx` "
            "count within a block. The row of this thread is `row` in `a`, its column `column` in "
            "`b`.",
        ),
        "one tile too late": (
            changed(matmul, "range(n // 4)", "range(1, n // 4)"),
            "Tiles are counted from 0, and yours begin with the second one: `range(n // 4)`.",
        ),
        "added to out": (
            changed(matmul, "] = value", "] += value"),
            "`out[row, column] += value` adds to what `out` held, and `out` need not hold zeros. "
            "`=` writes.",
        ),
        "both tiles are turned": (
            changed(matmul, "left[ty, k] * right[k, tx]", "left[k, ty] * right[tx, k]"),
            _PRODUCT,
        ),
        "the tiles exchanged": (
            changed(matmul, "left[ty, k] * right[k, tx]", "left[k, tx] * right[ty, k]"),
            _PRODUCT,
        ),
        "columns of both": (
            changed(matmul, "left[ty, k] * right[k, tx]", "left[k, tx] * right[k, ty]"),
            _PRODUCT,
        ),
        "a column by a column": (
            changed(matmul, "left[ty, k]", "left[k, tx]"),
            _PRODUCT,
        ),
        "the own elements in each turn": (
            changed(matmul, "left[ty, k] * right[k, tx]", "left[ty, tx] * right[ty, tx]"),
            _PRODUCT,
        ),
        "x and y exchanged in the product": (
            changed(matmul, "left[ty, k] * right[k, tx]", "left[tx, k] * right[k, ty]"),
            _X_IN_PRODUCT,
        ),
        "x and y exchanged in the tiles": (
            changed(
                matmul, "tile + tx", "tile + ty", "4 * tile + ty, column", "4 * tile + tx, column"
            ),
            _BROUGHT,
        ),
        "both are brought turned": (
            changed(
                matmul,
                "a[row, 4 * tile + tx]",
                "a[4 * tile + tx, row]",
                "b[4 * tile + ty, column]",
                "b[column, 4 * tile + ty]",
            ),
            _BROUGHT,
        ),
        "the matrices exchanged": (
            changed(
                matmul,
                "a[row, 4 * tile + tx]",
                "b[row, 4 * tile + tx]",
                "= b[4 * tile + ty, column]",
                "= a[4 * tile + ty, column]",
            ),
            _EXCHANGED,
        ),
        "without tiles": (
            _without_tiles,
            "The product is right, and each of its elements reads a row and a column from global "
            "memory. Read them from the tiles, `left[ty, k] * right[k, tx]`, which the 16 threads "
            "have brought together.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(n: int, a: tk.Tensor, b: tk.Tensor, label: str) -> Case:
            return case((n // 4, n // 4), (4, 4), a, b, unfilled(draw, n, n), n, label=label)

        def matrix(n: int) -> tk.Tensor:
            return floats(draw, n, n, low=1, high=5)

        yield sized(4, tk.ones(4, 4), tk.ones(4, 4), "one tile of ones")
        yield sized(8, matrix(8), tk.eye(8), "times the identity")
        yield sized(8, matrix(8), matrix(8), "four tiles")
        yield sized(16, matrix(16), matrix(16), "sixteen tiles")
        yield sized(8, matrix(8).T, matrix(8), "a turned matrix (non-contiguous)")
        yield sized(8, matrix(8), matrix(8).T, "the other one turned")

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """Each number is read from global memory once for 4 threads."""
        blocks, threads, *_, n = args
        least = n**3 // 2  # 2 numbers in each of n // 4 turns, for each element
        if counts.loads <= least + n * n:  # an element of `out` that is read shows by its value
            return works_alone(log, WRITES, n * n, blocks, threads) or works_alone(
                log, READS, least, blocks, threads
            )
        if not any(at < 0 and kind == READS for _, kind, at in accesses(log.shown)):
            return (
                f"reads {counts.loads} numbers from global memory and none from a shared array",
                "read `left` and `right` in the loop over `k`",
            )
        return (
            f"reads {counts.loads} numbers from global memory, where {least} are enough",
            "read each number once for 4 threads, into `left` and `right`, and multiply these",
        )
