"""Reading, writing and adding along one dimension at the positions that a tensor holds.

``index_select`` and ``index_add`` name whole slices. For ``gather``, ``scatter`` and their
relatives the index has as many dimensions as the tensor and replaces the position along one. Both
become an index of the array, with which ``take`` reads and the operations below write and add.
"""

from operator import index as as_index
from typing import Any

import numpy as np

from tensorkit import dtypes, layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import backend_of, check_same_device, is_array
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError, IndexRangeError, ShapeError, sizes
from tensorkit.ops import views
from tensorkit.ops.arguments import as_number, as_scalar, check_value, need_tensor, stored
from tensorkit.ops.arithmetic import remainder
from tensorkit.ops.indexing import getitem, outside
from tensorkit.ops.inplace import in_place
from tensorkit.ops.views import overwriting, read_at, refuse_position, zeros_with

# Where the elements are: an index of the array for each kind of positions


def _slices(index: Tensor, dim: int) -> tuple[Any, ...]:
    """The slices at ``index`` along ``dim``; a copy, as a node may keep it."""
    return (*[slice(None)] * dim, index._array.reshape(-1).copy())


def elements(index: Any, dim: int) -> tuple[Any, ...]:
    """The elements that ``gather`` reads: ``index`` along ``dim``, all along the others."""
    array = index._array if isinstance(index, TensorBase) else index
    xp, ones = backend_of(array).xp, (1,) * (array.ndim - 1)
    return tuple(
        array.copy() if at == dim else xp.arange(size).reshape((*ones[:at], size, *ones[at:]))
        for at, size in enumerate(array.shape)
    )


# Checks


def _prepared(function: str, x: Any, dim: Any, index: Any, name: str = "index") -> int:
    """``dim`` counted from the front, if ``index`` is a tensor of integers."""
    need_tensor(function, x)
    need_tensor(function, index, name, 3)
    if index.dtype not in (dtypes.int64, dtypes.int32):
        first = f"{function}(): Expected dtype int32/int64 for index"
        raise DTypeError(first, repair=f"{name}.long()")
    check_same_device(x.device, index.device)
    return layout.wrap_dim(as_index(dim), x.dim())


def _fitting(function: str, x: Any, dim: Any, index: Any, src: Any = None) -> int:
    """``dim``, if ``index`` lies inside of ``x`` and, along all dimensions, of ``src``."""
    dim = _prepared(function, x, dim, index)
    shape = tuple(index.shape)
    for name, other in (("self", x), ("src", src)):
        if not isinstance(other, TensorBase):
            continue
        own = tuple(other.shape)
        if len(own) != len(shape):
            first = f"Index tensor must have the same number of dimensions as {name} tensor"
            raise ShapeError(first)
        pairs = enumerate(zip(shape, own, strict=True))
        if any(size > most and (at != dim or name == "src") for at, (size, most) in pairs):
            raise ShapeError(
                f"Expected index {sizes(shape)} to be no larger than {name} {sizes(own)} apart "
                f"from dimension {dim}",
            )
    _refuse_outside(x, dim, index)
    return dim


def _refuse_outside(x: Tensor, dim: int, index: Tensor) -> None:
    position = first_outside(index._array, x.shape[dim])
    if position is not None:
        refuse_position(position, dim, x.shape[dim], error=ShapeError)


def first_outside(index: Any, size: int) -> int | None:
    """The first position that is negative or not below ``size``; a device tells it later."""
    if is_array(index) and index.__class__ is not np.ndarray:
        backend_of(index).device_assert_inside(index, 0, size, outside(size))
        return None
    bad = index[index.view(f"u{index.itemsize}") >= size]  # a negative one counts as large
    return int(bad[0]) if bad.size else None


# Reading: PyTorch has a node for each function


_index_select, _gather = (
    op(name=name)(read_at.definition.forward) for name in ("index_select", "gather")
)
for _each in (_index_select, _gather):
    _each.grad(x=lambda g, shape, index: zeros_with(g, size=shape, index=index))


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of ``input`` along ``dim`` that ``index``, a vector, names, as a copy.

    >>> tk.index_select(tk.tensor([[1, 2], [3, 4], [5, 6]]), 0, tk.tensor([2, 0]))
    tensor([[5, 6],
            [1, 2]])
    """
    dim = _prepared("index_select", input, dim, index)
    if index.dim() > 1:
        raise IndexRangeError("index_select(): Index is supposed to be a vector")
    if first_outside(index._array, input.shape[dim]) is not None:
        detail = f"Valid positions are 0 to {input.shape[dim] - 1}."
        raise IndexRangeError("index out of range in self", detail)
    return _index_select(input, index=_slices(index, dim))


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Elements of ``input``, of which ``index`` says the position along ``dim``.

    For two dimensions and ``dim=1``: ``out[i, j] = input[i, index[i, j]]``. The result has the
    shape of ``index``, which may be smaller than ``input`` along the other dimensions.

    >>> tk.gather(tk.tensor([[1, 2], [3, 4]]), 1, tk.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    dim = _fitting("gather", input, dim, index)
    return _gather(input, index=elements(index, dim))


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """``gather`` that broadcasts both along the other dimensions; without ``dim``, of all elements.

    >>> x = tk.tensor([[1, 2], [3, 4]])
    >>> tk.take_along_dim(x, tk.tensor([[1]]), 1)
    tensor([[2],
            [4]])
    """
    if dim is None:
        return gather(views.reshape(input, (-1,)), 0, views.reshape(indices, (-1,)))
    dim = _prepared("take_along_dim", input, dim, indices, "indices")
    if input.dim() != indices.dim():
        raise ShapeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.dim()} dimensions for input, and {indices.dim()} dimensions for "
            "indices"
        )
    own, other = list(input.shape), list(indices.shape)
    n_own, n_other = own[dim], other[dim]
    own[dim] = other[dim] = 1
    shape = layout.broadcast_shapes(tuple(own), tuple(other))
    kept, wanted = ((*shape[:dim], size, *shape[dim + 1 :]) for size in (n_own, n_other))
    # -1 is the last; PyTorch wraps all others, too
    indices = views.expand(remainder(indices, n_own), wanted)
    return gather(views.expand(input, kept), dim, indices)


# Writing and adding


_scatter, _scatter_number = overwriting("scatter"), overwriting("scatter", "ScatterBackward1", 1)


def _added(xp: Any, input: Any, src: Any, *, index: Any, alpha: Any = 1) -> Any:
    total = input.copy()
    backend_of(total).add_at(total, index, src if alpha == 1 else src * src.dtype.type(alpha))
    return total


_scatter_add, _index_add = (op(name=name)(_added) for name in ("scatter_add", "index_add"))
for _each in (_scatter_add, _index_add):
    _each.grad(input=lambda g: g, src=lambda g, index, alpha: read_at(g, index=index) * alpha)


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None
) -> Tensor:
    """A copy of ``input`` with elements of ``src`` at the positions that ``index`` names.

    For two dimensions and ``dim=1``: ``out[i, index[i, j]] = src[i, j]``. ``src`` is a tensor of
    the dtype of ``input``, or one number (``value=``). Where positions repeat, one of them wins.

    >>> tk.zeros(2, 3).scatter(1, tk.tensor([[2], [0]]), 1.)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    src = src if value is None else value
    number = None if isinstance(src, TensorBase) else as_number(src)
    at = elements(index, _fitting("scatter", input, dim, index, src))
    if number is None:
        return _scatter(input, _as_large(src, index), index=at)
    check_value(number, input.dtype)
    return _scatter_number(input, stored(number, input.dtype)[()], index=at)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of ``input`` to which elements of ``src`` are added; positions may repeat.

    >>> tk.zeros(3).scatter_add(0, tk.tensor([0, 2, 2]), tk.tensor([1., 2., 3.]))
    tensor([1., 0., 5.])
    """
    at = elements(index, _fitting("scatter_add", input, dim, index, src))
    return _scatter_add(input, _as_large(src, index), index=at)


def _as_large(src: Any, index: Tensor) -> Any:
    """The elements of ``src`` that stand where ``index`` has one."""
    if getattr(src, "shape", index.shape) == index.shape:
        return src
    return getitem(src, tuple(map(slice, index.shape)))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy of ``input`` to whose slices at ``index`` those of ``source`` are added.

    >>> tk.zeros(3).index_add(0, tk.tensor([0, 0]), tk.tensor([1., 2.]))
    tensor([3., 0., 0.])
    """
    need_tensor("index_add", source, "source", 4)
    dim = _prepared("index_add", input, dim, index)
    wanted = (*input.shape[:dim], index.numel(), *input.shape[dim + 1 :])
    if source.shape != wanted:
        raise ShapeError(
            f"index_add(): source should have shape {sizes(wanted)}, that of the tensor with the "
            f"number of indices along dimension {dim}, but its shape is {sizes(source.shape)}",
        )
    _refuse_outside(input, dim, index)
    return _index_add(input, source, index=_slices(index, dim), alpha=as_scalar(alpha))


scatter_ = in_place(scatter)
scatter_add_ = in_place(scatter_add)
index_add_ = in_place(index_add)
