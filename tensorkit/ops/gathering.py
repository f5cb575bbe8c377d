"""Reading, writing and adding along one dimension at the positions that a tensor holds.

``index_select`` and ``index_add`` name whole slices. For ``gather``, ``scatter`` and their
relatives the index has as many dimensions as the tensor and replaces the position along one.
"""

from operator import index as as_index
from typing import Any

import numpy as np

from tensorkit import dtypes, layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import backend_of, is_array
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError, IndexRangeError, NotSupportedError, ShapeError, sizes
from tensorkit.layout import Ints
from tensorkit.ops import copying, views, writing
from tensorkit.ops.arguments import as_number, as_scalar, check_value, need_tensor
from tensorkit.ops.arithmetic import remainder
from tensorkit.ops.indexing import outside
from tensorkit.ops.views import refuse_position

# Where the elements are: an index of the array for each kind of positions


def _slices(index: Any, dim: int) -> tuple[Any, ...]:
    """The slices at ``index`` along ``dim``."""
    return (*[slice(None)] * dim, index)


def _elements(xp: Any, index: Any, dim: int) -> tuple[Any, ...]:
    """The elements that ``gather`` reads: ``index`` along ``dim``, all places along the others."""
    ones = (1,) * (index.ndim - 1)
    return tuple(
        index if place == dim else xp.arange(size).reshape((*ones[:place], size, *ones[place:]))
        for place, size in enumerate(index.shape)
    )


def _added(total: Any, index: Any, values: Any) -> Any:
    """``total``, to which ``values`` were added at ``index``; positions may repeat."""
    backend_of(total).add_at(total, index, values)
    return total


# Checks


def _prepared(function: str, x: Any, dim: Any, index: Any, name: str = "index") -> int:
    """``dim`` counted from the front, if ``index`` is a tensor of integers."""
    need_tensor(function, x)
    need_tensor(function, index, name, 3)
    if index.dtype not in (dtypes.int64, dtypes.int32):
        first = f"{function}(): Expected dtype int32/int64 for index"
        raise DTypeError(first, repair=f"{name}.long()")
    return layout.wrap_dim(as_index(dim), x.dim())


def _fitting(function: str, x: Any, dim: Any, index: Any, src: Any = None) -> int:
    """``dim``, if ``index`` lies inside of ``x`` and, along all dimensions, of ``src``."""
    dim = _prepared(function, x, dim, index)
    shape = tuple(index.shape)
    if not index.numel():
        return dim
    for name, other in (("self", x), ("src", src)):
        if not isinstance(other, TensorBase):
            continue
        own = tuple(other.shape)
        if len(own) != len(shape):
            first = f"Index tensor must have the same number of dimensions as {name} tensor"
            raise ShapeError(first, a_shape=own, b_shape=shape)
        pairs = enumerate(zip(shape, own, strict=True))
        if any(size > most and (at != dim or name == "src") for at, (size, most) in pairs):
            raise ShapeError(
                f"Expected index {sizes(shape)} to be no larger than {name} {sizes(own)} apart "
                f"from dimension {dim}",
                a_shape=own,
                b_shape=shape,
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
        backend_of(index).expect_inside(index, 0, size, outside(size))
        return None
    bad = index[(index < 0) | (index >= size)]
    return int(bad[0]) if bad.size else None


# Reading


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
    return _index_select(input, index, dim=dim)


@op(dtypes={"input": "any", "index": "integral"})
def _index_select(xp: Any, input: Any, index: Any, *, dim: int) -> Any:
    return input[_slices(index.reshape(-1), dim)]


@op(dtypes={"input": "any", "index": "integral"})
def _add_slices(xp: Any, input: Any, index: Any, *, dim: int, size: Ints) -> Any:
    return _added(xp.zeros(size, input.dtype), _slices(index.reshape(-1), dim), input)


_index_select.grad(input=lambda g, index, shape, dim: _add_slices(g, index, dim=dim, size=shape))
_add_slices.grad(input=lambda g, index, dim: _index_select(g, index, dim=dim))


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Elements of ``input``, of which ``index`` says the position along ``dim``.

    For two dimensions and ``dim=1``: ``out[i, j] = input[i, index[i, j]]``. The result has the
    shape of ``index``, which may be smaller than ``input`` along the other dimensions.

    >>> tk.gather(tk.tensor([[1, 2], [3, 4]]), 1, tk.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    dim = _fitting("gather", input, dim, index)
    return take_along(input, index, dim=dim)


@op(dtypes={"input": "any", "index": "integral"})
def take_along(xp: Any, input: Any, index: Any, *, dim: int) -> Any:
    """``gather`` on arrays."""
    return input[_elements(xp, index, dim)] if index.size else xp.zeros(index.shape, input.dtype)


@op(dtypes={"input": "any", "index": "integral"})
def add_along(xp: Any, input: Any, index: Any, *, dim: int, size: Ints) -> Any:
    """Zeros of shape ``size`` to which ``input`` is added where ``gather`` would read."""
    return _scatter_add.definition.forward(xp, xp.zeros(size, input.dtype), index, input, dim=dim)


take_along.grad(
    node="GatherBackward0",
    input=lambda g, index, shape, dim: add_along(g, index, dim=dim, size=shape),
)
add_along.grad(input=lambda g, index, dim: take_along(g, index, dim=dim))


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


def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, **more: Any) -> Tensor:
    """A copy of ``input`` with elements of ``src`` at the positions that ``index`` names.

    For two dimensions and ``dim=1``: ``out[i, index[i, j]] = src[i, j]``. ``src`` is a tensor of
    the dtype of ``input``, or one number (``value=``). Where positions repeat, one of them wins.

    >>> tk.zeros(2, 3).scatter(1, tk.tensor([[2], [0]]), 1.)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if "reduce" in more:
        raise NotSupportedError(
            "tensorkit's scatter has no reduce=", repair="x.scatter_add(dim, index, src)"
        )
    src = more.get("value", src)
    number = None if isinstance(src, TensorBase) else as_number(src)
    if number is None:
        return _scatter(input, index, src, dim=_fitting("scatter", input, dim, index, src))
    dim = _fitting("scatter", input, dim, index)
    check_value(number, input.dtype)
    value = copying.stored(number, input.dtype)[()]
    return _scatter_number(input, index, dim=dim, value=value)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of ``input`` to which elements of ``src`` are added; positions may repeat.

    >>> tk.zeros(3).scatter_add(0, tk.tensor([0, 2, 2]), tk.tensor([1., 2., 3.]))
    tensor([1., 0., 5.])
    """
    return _scatter_add(input, index, src, dim=_fitting("scatter_add", input, dim, index, src))


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
            a_shape=wanted,
            b_shape=tuple(source.shape),
        )
    _refuse_outside(input, dim, index)
    return _index_add(input, index, source, dim=dim, alpha=as_scalar(alpha))


scatter_ = writing.in_place(scatter)
scatter_add_ = writing.in_place(scatter_add)
index_add_ = writing.in_place(index_add)


@op(dtypes={"input": "any", "index": "integral", "src": "any"})
def _scatter(xp: Any, input: Any, index: Any, src: Any, *, dim: int) -> Any:
    copy = input.copy()
    if index.size:
        copy[_elements(xp, index, dim)] = src[tuple(map(slice, index.shape))]
    return copy


@op(dtypes={"input": "any", "index": "integral"})
def _scatter_number(xp: Any, input: Any, index: Any, *, dim: int, value: Any) -> Any:
    copy = input.copy()
    if index.size:
        copy[_elements(xp, index, dim)] = value
    return copy


@op(dtypes={"input": "any", "index": "integral", "src": "any"})
def _scatter_add(xp: Any, input: Any, index: Any, src: Any, *, dim: int) -> Any:
    if not index.size:
        return input.copy()
    return _added(input.copy(), _elements(xp, index, dim), src[tuple(map(slice, index.shape))])


@op(dtypes={"input": "any", "index": "integral", "src": "any"})
def _index_add(xp: Any, input: Any, index: Any, src: Any, *, dim: int, alpha: Any) -> Any:
    src = src if alpha == 1 else src * src.dtype.type(alpha)
    return _added(input.copy(), _slices(index.reshape(-1), dim), src)


_scatter.grad(
    input=lambda g, index, dim: _scatter_number(g, index, dim=dim, value=0),
    src=lambda g, index, dim: take_along(g, index, dim=dim),
)
_scatter_number.grad(
    node="ScatterBackward1",
    input=lambda g, index, dim: _scatter_number(g, index, dim=dim, value=0),
)
_scatter_add.grad(input=lambda g: g, src=lambda g, index, dim: take_along(g, index, dim=dim))
_index_add.grad(
    input=lambda g: g,
    src=lambda g, index, dim, alpha: _index_select(g, index, dim=dim) * alpha,
)
