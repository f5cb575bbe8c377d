"""Copies in another arrangement: flip, roll, repeat, tril, triu, diag."""

from functools import lru_cache
from typing import Any

from tensorkit import base, dtypes, layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU
from tensorkit.errors import ShapeError, must_be, sizes
from tensorkit.layout import Ints
from tensorkit.ops import copying, gathering, results, views, writing
from tensorkit.ops.arguments import as_int, need_int, need_sizes, need_tensor, no_kernel
from tensorkit.ops.notation import op, planned
from tensorkit.ops.views import expand, wrap_dims


@planned(1)
def flip(input: Tensor, dims: Any) -> Any:
    """The elements in reverse order along ``dims``, as a copy.

    >>> tk.flip(tk.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    need_tensor("flip", input)
    shape = tuple(input.shape)
    dims = wrap_dims(need_sizes("flip", "dims", 2, dims), len(shape))
    axes = dims if shape else ()
    if input._strides == layout.contiguous_strides(shape):
        return _flip, (input,), {"dims": axes}
    array = results.run(_flip.definition.forward, input.device.backend.xp, input._array, dims=axes)
    strides = layout.dense_strides(shape, input._strides)
    result = base.place(array, strides)
    return results.recorded(_flip.definition, result, {"x": input, "dims": axes})


@op(kind="function")
def _flip(xp: Any, x: Any, *, dims: Ints) -> Any:
    return x[layout.backwards(x.ndim, dims)].copy()


_flip.grad(x=lambda g, dims: _flip(g, dims=dims))


@planned(1)
def roll(input: Tensor, shifts: Any, dims: Any = ()) -> Any:
    """The elements moved by ``shifts`` places along ``dims``; what leaves comes in again.

    Without ``dims`` the tensor is rolled as one long vector.

    >>> tk.roll(tk.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    need_tensor("roll", input)
    dims = () if dims is None else dims
    shifts, dims = (
        need_sizes("roll", name, place, (each,) if as_int(each) is not None else each)
        for name, place, each in (("shifts", 2, shifts), ("dims", 3, dims))
    )
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise ShapeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    dims = tuple(layout.wrap_dim(dim, input.dim()) for dim in dims)
    return _roll, (input,), {"shifts": shifts, "dims": dims}


@op(kind="function")
def _roll(xp: Any, x: Any, *, shifts: Ints, dims: Ints) -> Any:
    if not dims:
        return _rolled(xp, x.reshape(-1), shifts[0], 0).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(xp, x, shift, dim)
    return x


def _rolled(xp: Any, x: Any, shift: int, dim: int) -> Any:
    size = x.shape[dim]
    if not size:
        return x.copy()
    first = (slice(None),) * dim
    end = size - shift % size
    return xp.concatenate((x[(*first, slice(end, None))], x[(*first, slice(end))]), dim)


_roll.grad(x=lambda g, shifts, dims: _roll(g, shifts=tuple(-shift for shift in shifts), dims=dims))


def repeat(input: Tensor, repeats: Ints) -> Tensor:
    """The whole tensor, ``repeats`` times along each dimension, as a copy.

    There may be more repeats than dimensions: new ones come in front.

    >>> tk.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    lead = len(repeats) - input.dim()
    if lead < 0:
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor",
            a_shape=input.shape,
        )
    shape = [n * size for n, size in zip(repeats, (1,) * lead + input.shape, strict=True)]
    if any(n < 0 for n in repeats):
        negative = next(size for n, size in zip(repeats, shape, strict=True) if n < 0)
        raise ShapeError(
            f"Trying to create tensor with negative dimension {negative}: {sizes(shape)}"
        )
    return _repeat(input, repeats=repeats)


@op(kind="function")
def _repeat(xp: Any, x: Any, *, repeats: Ints) -> Any:
    return xp.tile(x, repeats)


@op(kind="function")
def _fold(xp: Any, x: Any, *, repeats: Ints, size: Ints) -> Any:
    """The sum of all copies that ``repeat`` made of a tensor of shape ``size``."""
    own = (1,) * (len(repeats) - len(size)) + size
    apart = x.reshape([each for pair in zip(repeats, own, strict=True) for each in pair])
    return xp.add.reduce(apart, axis=tuple(range(0, apart.ndim, 2))).reshape(size)


_repeat.grad(x=lambda g, repeats, shape: _fold(g, repeats=repeats, size=shape))
_fold.grad(x=lambda g, repeats: _repeat(g, repeats=repeats))


def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Each entry along ``dim`` several times in a row; without ``dim``, each element.

    ``repeats`` is a number or a tensor with one for each entry.

    >>> tk.repeat_interleave(tk.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    need_tensor("repeat_interleave", input)
    if dim is None:
        input, dim = views.flatten(input), 0
    dim = layout.wrap_dim(need_int("repeat_interleave", "dim", 3, dim), input.dim())
    if isinstance(repeats, TensorBase) and repeats._array.size != 1:
        return gathering.index_select(input, dim, _interleaved(repeats, input.shape[dim]))
    count = as_int(repeats)
    if count is None:
        raise must_be("repeat_interleave", "repeats", 2, "Tensor", repeats)
    if count < 0:
        raise ShapeError("Repeats must be non-negative")
    if input._node is None and input.device is CPU:
        copies = input._array.repeat(count, dim)
        return results.finished(results.contiguous_result(copies, input.device))
    shape = tuple(input.shape)
    apart = (*shape[: dim + 1], count, *shape[dim + 1 :])
    spread = views.expand(views.unsqueeze(input, dim + 1), apart)
    spread = copying.laid_out(spread, layout.contiguous_strides(apart))
    return views.view(spread, (*shape[:dim], shape[dim] * count, *shape[dim + 1 :]))


def _interleaved(repeats: Any, size: int) -> Tensor:
    """Position 0 as often as ``repeats`` says first, then position 1, and so on."""
    if repeats.shape != (size,):
        raise ShapeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.shape[0]} and input.size({0}) = {size}"
        )
    if repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise no_kernel("repeat_interleave_cpu", repeats.dtype, "repeats.long()")
    if (repeats._array < 0).any():
        raise ShapeError("repeats can not be negative")
    positions = repeats.device.backend.repeated_positions(repeats._array)
    return results.contiguous_result(positions, repeats.device)


# Triangles and diagonals


@planned(1)
def tril(input: Tensor, diagonal: int = 0) -> Any:
    """The lower triangle of each matrix, zeros above; ``diagonal`` moves the border up.

    >>> tk.tril(tk.ones(3, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.],
            [1., 1., 1.]])
    """
    return _tril, (input,), {"diagonal": _border("tril", input, diagonal)}


@planned(1)
def triu(input: Tensor, diagonal: int = 0) -> Any:
    """The upper triangle of each matrix, zeros below; ``diagonal`` moves the border up.

    >>> tk.triu(tk.ones(2, 3), 1)
    tensor([[0., 1., 1.],
            [0., 0., 1.]])
    """
    return _triu, (input,), {"diagonal": _border("triu", input, diagonal)}


tril_, triu_ = map(writing.in_place, (tril, triu))


def _border(function: str, x: Any, diagonal: Any) -> int:
    need_tensor(function, x)
    if x.dim() < 2:
        raise ShapeError(f"{function}: input tensor must have at least 2 dimensions")
    return need_int(function, "diagonal", 2, diagonal)


@op(kind="function")
def _tril(xp: Any, x: Any, *, diagonal: int) -> Any:
    outside = _below(xp, *x.shape[-2:], diagonal + 1, True)
    return xp.tril(x, diagonal) if outside is None else _without(xp, x, outside)


@op(kind="function")
def _triu(xp: Any, x: Any, *, diagonal: int) -> Any:
    outside = _below(xp, *x.shape[-2:], diagonal, False)
    return xp.triu(x, diagonal) if outside is None else _without(xp, x, outside)


def _without(xp: Any, x: Any, outside: Any) -> Any:
    """A copy with zeros where the mask ``outside`` is true."""
    x = x.copy()
    xp.copyto(x, x.dtype.type(0), where=outside)
    return x


@lru_cache(100)
def _below(xp: Any, n_rows: int, n_columns: int, diagonal: int, negated: bool) -> Any:
    """A mask of what lies below a diagonal, or of the rest; None where it is not worth keeping."""
    if xp.__name__ != "numpy" or n_rows * n_columns > _MANY:
        return None
    below = xp.tri(n_rows, n_columns, diagonal - 1, bool)
    return ~below if negated else below


_MANY = 2**16


_tril.grad(x=lambda g, diagonal: _tril(g, diagonal=diagonal))
_triu.grad(x=lambda g, diagonal: _triu(g, diagonal=diagonal))


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix as a vector, or a matrix with a vector as its diagonal; a copy.

    >>> tk.diag(tk.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> tk.diag(tk.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    need_tensor("diag", input)
    diagonal = need_int("diag", "diagonal", 2, diagonal)
    n_dims = input.dim()
    if n_dims not in (1, 2):
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {n_dims}D", a_shape=input.shape)
    if n_dims == 2:
        return take_diagonal(input, diagonal=diagonal)
    side = input.shape[0] + (diagonal if diagonal > 0 else -diagonal)
    return spread_diagonal(input, diagonal=diagonal, size=(side, side))


@op(kind="function")
def take_diagonal(xp: Any, x: Any, *, diagonal: int) -> Any:
    """A diagonal of a matrix."""
    return x.diagonal(diagonal).copy()


@op(kind="function")
def spread_diagonal(xp: Any, x: Any, *, diagonal: int, size: Ints) -> Any:
    """A matrix of shape ``size``, zeros but for one diagonal."""
    whole = xp.zeros(size, x.dtype)
    rows = xp.arange(x.shape[0]) + (0 if diagonal > 0 else -diagonal)
    whole[rows, rows + diagonal] = x
    return whole


take_diagonal.grad(
    node="DiagonalBackward0_copy",
    x=lambda g, diagonal, shape: spread_diagonal(g, diagonal=diagonal, size=shape),
)
spread_diagonal.grad(
    node="DiagEmbedBackward0",
    x=lambda g, diagonal: take_diagonal(g, diagonal=diagonal),
)


@planned(1)
def trace(input: Tensor) -> Any:
    """The sum of the diagonal of a matrix.

    >>> tk.trace(tk.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    need_tensor("trace", input)
    if input.dim() != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {input.dim()}")
    return _trace, (input,), {}


@op(kind="function")
def _trace(xp: Any, x: Any) -> Any:
    dtype = x.dtype if x.dtype.kind == "f" else xp.int64
    return xp.add.reduce(x.diagonal(), axis=0, dtype=dtype)


_trace.grad(x=lambda g, shape: spread_diagonal(expand(g, (min(shape),)), diagonal=0, size=shape))
