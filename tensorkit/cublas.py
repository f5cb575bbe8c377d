"""Products of matrices on a GPU by cuBLAS, as their memory lies: none is copied to be turned.

CuPy's own product does that for two contiguous matrices only. With more dimensions it makes its
operands contiguous first, and computes those of float16 in float32, without tensor cores.
"""

from typing import Any

import numpy as np

# the numbers with which a product is scaled: cuBLAS reads them in the dtype that it adds in
_ONE_AND_ZERO = {kind: (np.ones(1, kind), np.zeros(1, kind)) for kind in ("f", "d")}


def product(cupy: Any, x: Any, y: Any, tf32: bool) -> Any:
    """Products of matrices in pairs: x (b, n, m) and y (b, m, p) give (b, n, p), contiguous.

    Of float16, which is added in float32, float32 or float64; ``tf32`` lets float32 be rounded.
    """
    (b, n, m), p = x.shape, y.shape[2]
    if not (b and n and m and p):
        return cupy.zeros((b, n, p), x.dtype)
    cublas, runtime = cupy.cuda.cublas, cupy.cuda.runtime
    add_in = cublas.CUBLAS_COMPUTE_32F_FAST_TF32 if tf32 else cublas.CUBLAS_COMPUTE_32F
    kind, add_in = {
        "e": (runtime.CUDA_R_16F, cublas.CUBLAS_COMPUTE_32F),
        "f": (runtime.CUDA_R_32F, add_in),
        "d": (runtime.CUDA_R_64F, cublas.CUBLAS_COMPUTE_64F),
    }[x.dtype.char]
    one, zero = _ONE_AND_ZERO["d" if x.dtype.char == "d" else "f"]
    x, *x_lies = _as_it_lies(cupy, x)
    y, *y_lies = _as_it_lies(cupy, y)
    out = cupy.empty((b, n, p), x.dtype)
    (x_turn, x_row, x_step), (y_turn, y_row, y_step) = x_lies, y_lies
    # cuBLAS goes down columns first, so that it sees each matrix transposed: out.T = y.T @ x.T
    cublas.gemmStridedBatchedEx(
        cupy.cuda.get_cublas_handle(),
        *(y_turn, x_turn, p, n, m),
        one.ctypes.data,
        *(y.data.ptr, kind, y_row, y_step),
        *(x.data.ptr, kind, x_row, x_step),
        zero.ctypes.data,
        *(out.data.ptr, kind, p, n * p),
        *(b, add_in, cublas.CUBLAS_GEMM_DEFAULT),
    )
    return out


def _as_it_lies(cupy: Any, x: Any) -> tuple[Any, int, int, int]:
    """Matrices (b, rows, columns), whether their columns lie in one piece instead of their rows,
    the distance from one row (or column) to the next, and that from one matrix to the next.

    A copy where neither rows nor columns lie in one piece.
    """
    step, row, column = (stride // x.itemsize for stride in x.strides)
    _, n_rows, n_columns = x.shape
    # strides of dimensions of one element say nothing
    row, column = (row if n_rows > 1 else n_columns), (column if n_columns > 1 else n_rows)
    if (column == 1 or n_columns == 1) and row >= n_columns:
        return x, 0, row, step
    if (row == 1 or n_rows == 1) and column >= n_rows:
        return x, 1, column, step
    return cupy.ascontiguousarray(x), 0, n_columns, n_rows * n_columns
