"""Picking along one dimension at the positions that a tensor holds; always copies.

``index_select`` picks whole slices. For ``gather`` and its relatives the index has as many
dimensions as the input and replaces the position along one of them.
"""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tensorkit import dtypes, layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import backend_of, is_array
from tensorkit.errors import DTypeError, IndexRangeError, ShapeError, sizes
from tensorkit.layout import Ints
from tensorkit.ops import views
from tensorkit.ops.arguments import need_int, need_tensor
from tensorkit.ops.arithmetic import remainder
from tensorkit.ops.notation import op, planned
from tensorkit.ops.places import Places, add_places, add_rows, outside, refuse_position

# Whole slices along one dimension


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of ``input`` along ``dim`` that ``index``, a vector, names, as a copy.

    >>> tk.index_select(tk.tensor([[1, 2], [3, 4], [5, 6]]), 0, tk.tensor([2, 0]))
    tensor([[5, 6],
            [1, 2]])
    """
    return _selected(input, index, dim)


@planned(2)
def _selected(input: Tensor, index: Any, dim: Any) -> Any:
    need_tensor("index_select", input)
    dim = layout.wrap_dim(need_int("index_select", "dim", 2, dim), max(input.dim(), 1))
    need_index("index_select", index, 3)
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError("index_select(): Expected dtype int32 or int64 for index")
    if len(index.shape) > 1:
        raise IndexRangeError("index_select(): Index is supposed to be a vector")
    size = input.shape[dim] if input.shape else 1
    if not input.shape and index._array.size != 1:
        raise ShapeError(
            f"index_select(): Index to scalar can have only 1 value, got {index._array.size} "
            "value(s)"
        )
    if first_outside(index._array, size) is not None:
        raise IndexRangeError("index out of range in self", f"Valid positions are 0 to {size - 1}.")
    return take_slices(input, index, dim=dim)


@op(kind="function")
def take_slices(xp: Any, x: Any, index: Any, *, dim: int) -> Any:
    """The slices of ``x`` along ``dim`` at the positions ``index``."""
    return x.take(index.reshape(-1), axis=dim) if x.ndim else x.copy()


@op(kind="function")
def add_slices(xp: Any, x: Any, index: Any, *, dim: int, size: Ints) -> Any:
    """Zeros of shape ``size`` to which slices are added along ``dim``."""
    if not size:
        return x.copy()
    places = (*[slice(None)] * dim, index.reshape(-1))
    return add_places.definition.forward(xp, x, places=places, size=size)


take_slices.grad(
    node="IndexSelectBackward0",
    x=lambda g, index, shape, dim: add_slices(g, index, dim=dim, size=shape),
)
add_slices.grad(x=lambda g, index, dim: take_slices(g, index, dim=dim))


# One position for each element


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Elements of ``input``, of which ``index`` says the position along ``dim``.

    For two dimensions and ``dim=1``: ``out[i, j] = input[i, index[i, j]]``. The result has the
    shape of ``index``, which may be smaller than ``input`` along the other dimensions.

    >>> tk.gather(tk.tensor([[1, 2], [3, 4]]), 1, tk.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    return _gathered(input, index, dim)


@planned(2)
def _gathered(input: Tensor, index: Any, dim: Any) -> Any:
    need_tensor("gather", input)
    dim = layout.wrap_dim(need_int("gather", "dim", 2, dim), max(input.dim(), 1))
    _check_index("gather", input, dim, index)
    return take_along(input, index, dim=dim)


@op(kind="function")
def take_along(xp: Any, x: Any, index: Any, *, dim: int) -> Any:
    """``gather`` on arrays."""
    if not index.size:
        return xp.zeros(index.shape, x.dtype)
    if not x.ndim:
        return xp.broadcast_to(x, index.shape).copy()
    if not index.ndim or x.flags.c_contiguous:  # two thirds of the time of an index for each dim
        return x.reshape(-1).take(numbers_along(xp, x.shape, index, dim))
    return x[coordinates(xp, index, dim)]


@op(kind="function")
def add_along(xp: Any, x: Any, index: Any, *, dim: int, size: Ints) -> Any:
    """Zeros of shape ``size`` to which ``x`` is added where ``gather`` would read."""
    if not index.size:
        return xp.zeros(size, x.dtype)
    if not size:
        return xp.asarray(x.sum(dtype=x.dtype))
    values = x[tuple(map(slice, index.shape))]
    rows = numbers_along(xp, size, index, dim)
    return add_rows(xp, rows.reshape(-1), values.reshape(-1, 1), prod(size)).reshape(size)


def numbers_along(xp: Any, size: Ints, index: Any, dim: int) -> Any:
    """The positions that ``gather`` reads as numbers in a row-major tensor of shape ``size``."""
    step = prod(size[dim + 1 :])
    own = index if step == 1 else index * step
    if index.size <= _FEW and xp.__name__ == "numpy":
        return own + _begins(size, index.shape, dim)
    for begin in _parts_of_begins(xp, size, index.shape, dim):
        own = own + begin
    return own


def _parts_of_begins(xp: Any, size: Ints, shape: Ints, dim: int) -> list[Any]:
    """Position 0 along ``dim`` as a number: a part for each other dimension, to be added up."""
    steps, n_dims = layout.contiguous_strides(size), len(shape)
    return [
        (xp.arange(n) * steps[place]).reshape((n, *(1,) * (n_dims - 1 - place)))
        for place, n in enumerate(shape)
        if place != dim
    ]


@lru_cache(100)
def _begins(size: Ints, shape: Ints, dim: int) -> Any:
    """The same as one array, not to be written to."""
    return np.asarray(sum(_parts_of_begins(np, size, shape, dim), np.int64(0)))


_FEW = 2**12  # positions, for which this is kept


take_along.grad(
    node="GatherBackward0",
    x=lambda g, index, shape, dim: add_along(g, index, dim=dim, size=shape),
)
add_along.grad(x=lambda g, index, dim: take_along(g, index, dim=dim))


def coordinates(xp: Any, index: Any, dim: int) -> Places:
    """For each dimension the positions that ``gather`` reads, ready to broadcast."""
    ones = (1,) * (index.ndim - 1)
    return tuple(
        index if place == dim else xp.arange(size).reshape((*ones[:place], size, *ones[place:]))
        for place, size in enumerate(index.shape)
    )


def need_index(function: str, index: Any, position: int) -> None:
    need_tensor(function, index, "index", position)


def _check_index(function: str, x: TensorBase, dim: int, index: Any) -> None:
    """Raise unless ``index`` is one that ``gather`` and its relatives can use on ``x``."""
    need_index(function, index, 3)
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError(
            f"{function}(): Expected dtype int32/int64 for index", repair="index.long()"
        )
    own, shape = tuple(x.shape) or (1,), tuple(index.shape) or (1,)
    if not index._array.size:
        return
    if len(own) != len(shape):
        raise ShapeError(
            "Index tensor must have the same number of dimensions as input tensor",
            a_shape=own,
            b_shape=shape,
        )
    for place, (size, most) in enumerate(zip(shape, own, strict=True)):
        if place != dim and size > most:
            raise ShapeError(
                f"Size does not match at dimension {place} expected index {sizes(shape)} to be "
                f"no larger than self {sizes(own)} apart from dimension {dim}",
                a_shape=own,
                b_shape=shape,
            )
    position = first_outside(index._array, own[dim])
    if position is not None:
        refuse_position(position, dim, own[dim], ShapeError)


def first_outside(index: Any, size: int) -> int | None:
    """The first position that is negative or not below ``size``; a device tells it later."""
    if is_array(index) and index.__class__ is not np.ndarray:
        backend_of(index).expect_inside(index, 0, size, outside(size))
        return None
    if not index.size or _all_below(index, size):
        return None
    flat = index.reshape(-1)
    return int(flat[(flat < 0) | (flat >= size)][0])


def _all_below(index: Any, size: int) -> bool:
    """Whether all positions, on the CPU, are at least 0 and below ``size``."""
    if index.itemsize == 8 and index.size <= _FEW:
        return np.maximum.reduce(index.view(np.uint64), None) < size  # negative ones are huge
    return bool(index.min() >= 0 and index.max() < size)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """``gather`` that broadcasts both along the other dimensions; without ``dim``, of all elements.

    >>> x = tk.tensor([[1, 2], [3, 4]])
    >>> tk.take_along_dim(x, tk.tensor([[1]]), 1)
    tensor([[2],
            [4]])
    """
    need_tensor("take_along_dim", input)
    need_tensor("take_along_dim", indices, "indices", 2)
    if indices.dtype is not dtypes.int64:
        raise DTypeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.word}",
            repair="indices.long()",
        )
    if dim is None:
        return gather(views.reshape(input, (-1,)), 0, views.reshape(indices, (-1,)))
    if input.dim() != indices.dim():
        raise ShapeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.dim()} dimensions for input, and {indices.dim()} dimensions for "
            "indices"
        )
    dim = layout.wrap_dim(need_int("take_along_dim", "dim", 3, dim), max(input.dim(), 1))
    own, other = tuple(input.shape), tuple(indices.shape)
    if not own:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    indices = remainder(indices, own[dim])  # -1 is the last; PyTorch wraps all others, too
    if input._node is None and own[:dim] == other[:dim] and own[dim + 1 :] == other[dim + 1 :]:
        return gather(input, dim, indices)
    shape = layout.broadcast_shapes(
        (*own[:dim], 1, *own[dim + 1 :]), (*other[:dim], 1, *other[dim + 1 :])
    )
    kept, wanted = ((*shape[:dim], size, *shape[dim + 1 :]) for size in (own[dim], other[dim]))
    return gather(views.expand(input, kept), dim, views.expand(indices, wanted))
