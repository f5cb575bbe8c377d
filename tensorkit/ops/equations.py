"""Systems of linear equations, inverses and determinants, with LAPACK."""

from typing import Any

import numpy as np

from tensorkit import base, layout
from tensorkit.base import Tensor
from tensorkit.devices import CPU, refuse_mix
from tensorkit.errors import DTypeError, ShapeError, TensorkitError
from tensorkit.ops import results
from tensorkit.ops.arguments import need_tensor
from tensorkit.ops.arithmetic import neg
from tensorkit.ops.notation import Operation, op
from tensorkit.ops.products import matmul
from tensorkit.ops.views import transpose, unsqueeze


class _LinAlgError(TensorkitError, RuntimeError):
    """A matrix that has no inverse."""


LinAlgError = _LinAlgError  # PyTorch's class prints with the underscore, too


def solve(A: Tensor, B: Tensor) -> Tensor:
    """The ``x`` for which ``A @ x`` is ``B``; A: (..., n, n), B: (..., n, k) or (n,).

    Raises LinAlgError if ``A`` is singular.

    >>> tk.linalg.solve(tk.tensor([[2., 0.], [0., 4.]]), tk.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    _check("linalg_solve", "linalg.solve", A)
    need_tensor("linalg_solve", B, "B", 2)
    if A.dtype is not B.dtype:
        raise DTypeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type "
            f"{A.dtype.word} and B of type {B.dtype.word} instead",
            repair=f"B.to(tk.{A.dtype.name})",
        )
    refuse_mix(A.device, B.device)
    is_vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    shape = (*B.shape, 1) if is_vector else tuple(B.shape)
    if len(shape) < 2 or A.shape[-1] != shape[-2]:
        n, k = A.shape[-1], shape[-2:]
        raise ShapeError(
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B "
            f"({n}x{n} and {k[0]}x{k[1]})",
            a_shape=tuple(A.shape),
            b_shape=tuple(B.shape),
        )
    layout.broadcast_shapes(tuple(A.shape[:-2]), shape[:-2])
    result = _if_regular(A, _solve, (A, B), {"is_vector": is_vector}, not is_vector)
    if result is None:
        place, _ = _zero_pivot(A.detach().cpu()._array)
        raise LinAlgError(
            f"torch.linalg.solve: {place}The solver failed because the input matrix is singular.",
            "Some row of A is a sum of multiples of the others.",
        )
    return result


def inv(A: Tensor) -> Tensor:
    """The inverse of each matrix; A: (..., n, n). Raises LinAlgError if there is none.

    >>> tk.linalg.inv(tk.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    _check("linalg_inv", "linalg.inv", A)
    result = _if_regular(A, _inv, (A,), {}, True)
    if result is None:
        place, number = _zero_pivot(A.detach().cpu()._array)
        raise LinAlgError(
            f"linalg.inv: {place}The diagonal element {number} is zero, the inversion could "
            "not be completed because the input matrix is singular.",
            "Some row of A is a sum of multiples of the others.",
        )
    return result


def _if_regular(A: Tensor, *call: Any) -> Tensor | None:
    """``_by_columns(*call)``, or None if ``A`` is singular: then CuPy gives inf and nan."""
    try:
        result = _by_columns(*call)
    except np.linalg.LinAlgError:
        return None
    isfinite = A._xp.isfinite
    if A.device is CPU or isfinite(result._array).all() or not isfinite(A._array).all():
        return result
    return None


@op(kind="function")
def _solve(xp: Any, x: Any, y: Any, *, is_vector: bool) -> Any:
    return xp.linalg.solve(x, y[..., None])[..., 0] if is_vector else xp.linalg.solve(x, y)


@op(kind="function")
def _inv(xp: Any, x: Any) -> Any:
    return xp.linalg.inv(x)


def _outer_of(x: Any, y: Any, is_vector: bool) -> Any:
    """``x @ y.T``, with vectors as columns."""
    if is_vector:
        x, y = unsqueeze(x, -1), unsqueeze(y, -1)
    return matmul(x, transpose(y, -2, -1))


_solve.grad(
    node="LinalgSolveExBackward0",
    x=lambda g, x, out, is_vector: neg(
        _outer_of(_solve(transpose(x, -2, -1), g, is_vector=is_vector), out, is_vector)
    ),
    y=lambda g, x, is_vector: _solve(transpose(x, -2, -1), g, is_vector=is_vector),
)
_inv.grad(
    node="LinalgInvExBackward0",
    x=lambda g, out: neg(matmul(transpose(out, -2, -1), matmul(g, transpose(out, -2, -1)))),
)


def _by_columns(
    operation: Operation, inputs: tuple[Any, ...], options: dict[str, Any], matrices: bool
) -> Tensor:
    """The result of ``operation``; matrices lie column by column, as LAPACK leaves them."""
    xp, definition = inputs[0]._xp, operation.definition
    array = results.run(definition.forward, xp, *[x._array for x in inputs], **options)
    strides = layout.contiguous_strides(array.shape)
    if matrices:
        *batch, n, k = array.shape
        *rest, column, row = layout.contiguous_strides((*batch, k, n))
        strides = (*rest, row, column)
    result = base.place(array, strides)
    values = {**dict(zip(("x", "y"), inputs, strict=False)), **options}
    return results.recorded(definition, result, values)


def _check(function: str, name: str, A: Any) -> None:
    need_tensor(function, A, "A", 1)
    shape, dtype = tuple(A.shape), A.dtype
    if len(shape) < 2:
        raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if shape[-1] != shape[-2]:
        raise ShapeError(
            f"{name}: A must be batches of square matrices, but they are {shape[-2]} by "
            f"{shape[-1]} matrices",
            a_shape=shape,
        )
    if not dtype.is_floating_point:
        raise DTypeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {dtype.word}",
            repair="A.float()",
        )
    if dtype.name == "float16":
        raise DTypeError(
            f"{name}: Low precision dtypes not supported. Got {dtype.word}", repair="A.float()"
        )


def _zero_pivot(matrices: Any) -> tuple[str, int]:
    """Which matrix of a batch is singular, in words, and at which step of the elimination."""
    n = matrices.shape[-1]
    for number, matrix in enumerate(matrices.reshape(-1, n, n)):
        rows = matrix.copy()
        for step in range(n):
            best = step + int(np.argmax(np.abs(rows[step:, step])))
            rows[[step, best]] = rows[[best, step]]
            if rows[step, step] == 0:
                return f"(Batch element {number}): " if matrices.ndim > 2 else "", step + 1
            factors = rows[step + 1 :, step] / rows[step, step]
            rows[step + 1 :] -= factors[:, None] * rows[step]
    return "", n
