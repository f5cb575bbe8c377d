"""Views: tensors that look at memory that is already there. Each op maps a layout to a layout."""

import builtins
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from math import prod
from typing import Any

from tensorkit import base
from tensorkit import layout as rules
from tensorkit.autograd import history
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of
from tensorkit.errors import IndexRangeError, ShapeError, sizes
from tensorkit.layout import Ints, Layout
from tensorkit.ops import copying
from tensorkit.ops.arguments import as_int, need_int, need_sizes, need_tensor, no_such_call
from tensorkit.ops.notation import composed, op, viewed_array
from tensorkit.ops.windows import add_window, put_part

_xp = CPU.backend.xp
_ALL = builtins.slice(None)


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """View of the same storage with any shape, strides and offset (default: its own offset).

    The caller is responsible for the meaning; only the bounds of the storage are checked.

    >>> tk.as_strided(tk.arange(6), (2, 2), (3, 1))
    tensor([[0, 1],
            [3, 4]])
    """
    need_tensor("as_strided", input)
    return strided(input, size, stride, storage_offset, 2)


def strided(input: Tensor, size: Any, stride: Any, storage_offset: Any, first: int) -> Tensor:
    """``as_strided``; ``first`` is the position at which the caller wrote ``size``."""
    target = _target(input, size, stride, storage_offset, first)
    result = base.view_of(input, target)
    values = {"source": base.layout_of(input), "target": target}
    return history.as_view(result, input, history.windows[0], values)


def _target(input: Tensor, size: Any, stride: Any, storage_offset: Any, first: int) -> Layout:
    """The layout that was asked for; raises where it is none or leaves the storage."""
    shape = need_sizes("as_strided", "size", first, size)
    strides = need_sizes("as_strided", "stride", first + 1, stride)
    if storage_offset is None:
        offset = base.layout_of(input).offset
    else:
        offset = need_int("as_strided", "storage_offset", first + 2, storage_offset)
    if len(shape) != len(strides):
        raise ShapeError("mismatch in length of strides and shape", a_shape=shape, b_shape=strides)
    if any(step < 0 for step in strides):
        raise ShapeError(
            "as_strided: Negative strides are not supported at the moment, "
            f"got strides: {sizes(strides)}",
            a_shape=shape,
        )
    if any(length < 0 for length in shape):
        raise ShapeError(
            f"Storage size calculation overflowed with sizes={sizes(shape)} "
            f"and strides={sizes(strides)}",
            a_shape=shape,
        )
    if offset < 0:
        raise ShapeError(f"Tensor: invalid storage offset {offset}", a_shape=shape)
    itemsize = input.itemsize
    have = base.storage_of(input).nbytes()
    need = (offset + rules.extent(shape, strides)) * itemsize
    if need >= 2**63:
        raise ShapeError(
            f"Storage size calculation overflowed with sizes={sizes(shape)} "
            f"and strides={sizes(strides)}",
            a_shape=shape,
        )
    rules.check_size(shape, itemsize)
    if 0 not in shape and need > have:
        raise ShapeError(
            f"setStorage: sizes {sizes(shape)}, strides {sizes(strides)}, storage offset "
            f"{offset}, and itemsize {itemsize} requiring a storage size of {need} are out "
            f"of bounds for storage of size {have}",
            f"The last element would be number {need // itemsize - 1}; "
            f"the storage has elements 0 to {have // itemsize - 1}.",
            a_shape=shape,
        )
    return Layout(shape, strides, offset)


@op(kind="view")
def _as_strided(layout: Layout, target: Layout) -> Layout:
    return target


_as_strided.grad(x=lambda g, source, target: add_window(g, source=source, target=target))
history.windows.insert(0, _as_strided.definition.rules[None])


def _selected(x: Any, dim: int, index: int) -> Any:
    return x[(*[_ALL] * (dim if dim >= 0 else dim + x.ndim), index, ...)]


@op(kind="view", on_arrays=_selected)
def select(layout: Layout, dim: int, index: int) -> Layout:
    """View of one entry along ``dim``; the dimension disappears.

    >>> tk.arange(6).view(2, 3).select(0, 1)
    tensor([3, 4, 5])
    """
    dim, index = need_int("select", "dim", 1, dim), need_int("select", "index", 2, index)
    if not layout.shape:
        raise IndexRangeError(
            "select() cannot be applied to a 0-dim tensor.", index=index, dim=dim, size=0
        )
    dim = rules.wrap_dim(dim, len(layout.shape))
    length = layout.shape[dim]
    if not -length <= index < length:
        raise IndexRangeError(
            f"select(): index {index} out of range for tensor of size {sizes(layout.shape)} "
            f"at dimension {dim}",
            index=index,
            dim=dim,
            size=length,
        )
    return rules.select(layout, dim, index)


def _sliced(x: Any, dim: int, start: int, end: int, step: int) -> Any:
    return x[(*[_ALL] * (dim if dim >= 0 else dim + x.ndim), builtins.slice(start, end, step))]


@op(kind="view", on_arrays=_sliced)
def slice(layout: Layout, dim: int, start: int, end: int, step: int) -> Layout:
    """View of every ``step``-th entry from ``start`` up to, not including, ``end``: an index."""
    return rules.slice_(layout, dim, start, end, step)


select.grad(
    x=lambda g, shape, dim, index: put_part(
        g, size=shape, part=partial(_selected, dim=dim, index=index)
    )
)
slice.grad(
    x=lambda g, shape, dim, start, end, step: put_part(
        g, size=shape, part=partial(_sliced, dim=dim, start=start, end=end, step=step)
    )
)
select.definition.rules[None].part = _selected
slice.definition.rules[None].part = _sliced


def _with_one(x: Any, dim: int) -> Any:
    shape = x.shape
    if not -len(shape) - 1 <= dim <= len(shape):
        return None
    place = dim if dim >= 0 else dim + len(shape) + 1
    return x.reshape((*shape[:place], 1, *shape[place:]))  # nothing is copied


@op(kind="view", on_arrays=_with_one)
def unsqueeze(layout: Layout, dim: int) -> Layout:
    """View with a new dimension of size 1 before ``dim``.

    >>> tk.arange(3).unsqueeze(0).shape
    torch.Size([1, 3])
    """
    dim = need_int("unsqueeze", "dim", 1, dim)
    return rules.unsqueeze(layout, rules.wrap_dim(dim, len(layout.shape) + 1))


unsqueeze.grad(x=lambda g, shape: reshape(g, shape))


@composed
def squeeze(input: Tensor, dim: Any = None) -> Any:
    """View without dimensions of size 1: all of them, or those that ``dim`` names.

    >>> tk.zeros(1, 3, 1).squeeze().shape, tk.zeros(1, 3, 1).squeeze(0).shape
    (torch.Size([3]), torch.Size([3, 1]))
    """
    need_tensor("squeeze", input)
    if dim is None:
        return _squeeze_all, ()
    if isinstance(dim, (tuple, list)):
        return _squeeze_dims, (need_sizes("squeeze", "dim", 2, dim),)
    place = as_int(dim)
    if place is None:
        raise no_such_call("squeeze", (dim,), "()", "(int dim)", "(tuple of ints dim)")
    return _squeeze_dim, (place,)


def _without(layout: Layout, dims: Sequence[int]) -> Layout:
    kept = [dim for dim, size in enumerate(layout.shape) if size != 1 or dim not in dims]
    return Layout(
        tuple(layout.shape[dim] for dim in kept),
        tuple(layout.strides[dim] for dim in kept),
        layout.offset,
    )


@op(kind="view")
def _squeeze_all(layout: Layout) -> Layout:
    return _without(layout, range(len(layout.shape)))


@op(kind="view")
def _squeeze_dim(layout: Layout, dim: int) -> Layout:
    return _without(layout, wrap_dims(dim, len(layout.shape)))


@op(kind="view")
def _squeeze_dims(layout: Layout, dim: Ints) -> Layout:
    return _without(layout, wrap_dims(dim, len(layout.shape)))


for _number, _view in enumerate((_squeeze_all, _squeeze_dim, _squeeze_dims)):
    _view.grad(node=f"SqueezeBackward{_number}", x=lambda g, shape: reshape(g, shape))


def wrap_dims(dim: Any, n_dims: int) -> Ints:
    """One dimension or several, counted from the front; each may be named once.

    A 0-d tensor takes the dimensions 0 and -1, as in PyTorch.
    """
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    found = []
    for each in dims:
        place = rules.wrap_dim(each, max(n_dims, 1))
        if place in found:
            raise ShapeError(f"dim {place} appears multiple times in the list of dims", dim=place)
        found.append(place)
    return tuple(found)


@op(kind="view", on_arrays=lambda x, size: _expanded(x, size))
def expand(layout: Layout, size: Ints) -> Layout:
    """View in which dimensions of size 1 are repeated, with stride 0; -1 keeps a size.

    >>> tk.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    shape = layout.shape
    lead = len(size) - len(shape)
    wanted = list(size)
    for dim, length in enumerate(size):
        if length != -1:
            continue
        if dim < lead:
            raise ShapeError(
                f"The expanded size of the tensor ({length}) isn't allowed in a leading, "
                f"non-existing dimension {dim}",
                a_shape=size,
            )
        wanted[dim] = shape[dim - lead]
    return rules.expand(layout, tuple(wanted), "torch.FloatTensor", tuple(size))


expand.grad(x=lambda g: g)  # the engine sums what broadcasting repeated


def _expanded(x: Any, size: Ints) -> Any:
    """An array with repeated elements; ``broadcast_to`` takes seven times as long."""
    if isinstance(x, _xp.generic):
        x = _xp.asarray(x)
    if x.__class__ is not _xp.ndarray or not x.flags.c_contiguous or 0 in size or -1 in size:
        return backend_of(x).xp.broadcast_to(x, size)
    pairs = list(zip(x.shape, x.strides, size[len(size) - x.ndim :], strict=True))
    if any(own != 1 and own != wanted for own, _, wanted in pairs):
        return None
    strides = [0 if own == 1 < wanted else stride for own, stride, wanted in pairs]
    return _xp.ndarray(size, x.dtype, x, 0, [0] * (len(size) - x.ndim) + strides)


@op(kind="view", on_arrays=lambda x: x.T if x.ndim <= 2 else None)
def t(layout: Layout) -> Layout:
    """View of a matrix with rows and columns exchanged; vectors stay as they are.

    >>> tk.arange(6).view(2, 3).t().stride()
    (1, 3)
    """
    n_dims = len(layout.shape)
    if n_dims > 2:
        raise ShapeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {n_dims}D",
            repair="x.transpose(-2, -1) or x.mT",
            a_shape=layout.shape,
        )
    return Layout(layout.shape[::-1], layout.strides[::-1], layout.offset)


t.grad(x=lambda g: t(g))


@op(kind="view", on_arrays=lambda x, dim0, dim1: x.swapaxes(dim0, dim1) if x.ndim else None)
def transpose(layout: Layout, dim0: int, dim1: int) -> Layout:
    """View with two dimensions exchanged.

    >>> tk.zeros(2, 3, 4).transpose(0, 2).shape
    torch.Size([4, 3, 2])
    """
    dim0, dim1 = need_int("transpose", "dim0", 1, dim0), need_int("transpose", "dim1", 2, dim1)
    n_dims = max(len(layout.shape), 1)
    first, second = rules.wrap_dim(dim0, n_dims), rules.wrap_dim(dim1, n_dims)
    order = list(range(len(layout.shape)))
    if order:
        order[first], order[second] = second, first
    return _reordered(layout, order)


transpose.grad(x=lambda g, dim0, dim1: transpose(g, dim0, dim1))


@op(kind="view", on_arrays=lambda x, dims: x.transpose(dims))
def permute(layout: Layout, dims: Ints) -> Layout:
    """View with all dimensions in a new order.

    >>> tk.zeros(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    n_dims = len(layout.shape)
    if len(dims) != n_dims:
        raise ShapeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {n_dims} is not "
            f"equal to len(dims) = {len(dims)}",
            "Every dimension is named once, those that stay where they are too.",
            repair=f"x.permute({', '.join(map(str, range(n_dims)))}), in the order you want",
            a_shape=layout.shape,
        )
    order = [rules.wrap_dim(dim, n_dims) for dim in dims]
    if len(set(order)) != n_dims:
        raise ShapeError("permute(): duplicate dims are not allowed.", a_shape=layout.shape)
    return _reordered(layout, order)


permute.grad(x=lambda g, dims: permute(g, rules.inverse([dim % len(dims) for dim in dims])))


def _reordered(layout: Layout, order: Sequence[int]) -> Layout:
    shape, strides, offset = layout
    return Layout(tuple(shape[dim] for dim in order), tuple(strides[dim] for dim in order), offset)


def _reshaped(x: Any, size: Ints) -> Any:
    return x.reshape(size) if x.flags.c_contiguous and min(size, default=0) >= -1 else None


@op(kind="view", on_arrays=_reshaped)
def view(layout: Layout, size: Ints) -> Layout:
    """View of the same elements in another shape; one size may be -1.

    Raises where no strides describe it; then ``reshape`` copies.

    >>> tk.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    shape = rules.infer_size(size, prod(layout.shape))
    strides = rules.view_strides(layout.shape, layout.strides, shape)
    if strides is None:
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
            f"Its shape is {layout.shape} and its strides are {layout.strides}.",
            repair=f"x.reshape({', '.join(map(str, shape))})    # copies",
            a_shape=layout.shape,
            b_shape=shape,
        )
    return Layout(shape, strides, layout.offset)


view.grad(x=lambda g, shape: reshape(g, shape))


@op(kind="view")
def _reshape_alias(layout: Layout, size: Ints) -> Layout:
    return view.definition.forward(layout, size)


_reshape_alias.grad(x=lambda g, shape: reshape(g, shape))


def reshape(input: Any, shape: Sequence[int]) -> Tensor:
    """The same elements in another shape: a view where strides allow it, otherwise a copy.

    >>> tk.reshape(tk.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if not isinstance(input, TensorBase):
        if state.on_arrays:
            return input.reshape(shape)
        need_tensor("reshape", input)
    if input._array.flags.c_contiguous:
        return view(input, tuple(shape))
    own = tuple(input.shape)
    wanted = rules.infer_size(tuple(shape), prod(own))
    if rules.view_strides(own, input._strides, wanted) is not None:
        return _reshape_alias(input, wanted)  # a view under another name, as in PyTorch
    return unsafe_view(copying.contiguous(input), size=wanted)


@op(kind="function")
def unsafe_view(xp: Any, x: Any, *, size: Ints) -> Any:
    """Another shape for a copy that nobody else has."""
    return x.reshape(size)


unsafe_view.grad(x=lambda g, shape: reshape(g, shape))


@composed
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Dimensions ``start_dim`` to ``end_dim`` as one; a view where strides allow it.

    >>> tk.zeros(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    need_tensor("flatten", input)
    shape = tuple(input.shape)
    first, last = (
        rules.wrap_dim(need_int("flatten", name, place, dim), max(len(shape), 1))
        for name, place, dim in (("start_dim", 1, start_dim), ("end_dim", 2, end_dim))
    )
    if first > last:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, (1,))
    if first == last:
        return input
    wanted = *shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]
    return (view, (wanted,)) if input._is_contiguous else reshape(input, wanted)


@op(kind="view")
def diagonal(layout: Layout, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Layout:
    """View of a diagonal of the matrices that ``dim1`` and ``dim2`` span; it comes last.

    >>> tk.arange(6).view(2, 3).diagonal(1)
    tensor([1, 5])
    """
    n_dims = len(layout.shape)
    offset = need_int("diagonal", "offset", 1, offset)
    first = rules.wrap_dim(need_int("diagonal", "dim1", 2, dim1), max(n_dims, 1))
    second = rules.wrap_dim(need_int("diagonal", "dim2", 3, dim2), max(n_dims, 1))
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape, strides, start = layout
    row, column = (-offset, 0) if offset < 0 else (0, offset)
    length = max(min(shape[first] - row, shape[second] - column), 0)
    rest = [dim for dim in range(n_dims) if dim not in (first, second)]
    if length:
        start += row * strides[first] + column * strides[second]
    return Layout(
        (*(shape[dim] for dim in rest), length),
        (*(strides[dim] for dim in rest), strides[first] + strides[second]),
        start,
    )


_diagonal_of = partial(viewed_array, diagonal.definition)
diagonal.grad(
    x=lambda g, shape, offset, dim1, dim2: put_part(
        g, size=shape, part=partial(_diagonal_of, offset=offset, dim1=dim1, dim2=dim2)
    )
)
diagonal.definition.rules[None].part = _diagonal_of


@op(kind="view", on_arrays=lambda x: x)
def alias(layout: Layout) -> Layout:
    """View of the whole tensor."""
    return layout


alias.grad(x=lambda g: g)


def in_place(view: Callable[..., Any], n_overloads: int = 1) -> Callable[..., Tensor]:
    """The form of a view operation that changes how the tensor itself looks at its memory.

    Its nodes are numbered on from those of the operation, which has so many overloads.
    """
    choose: Any = getattr(view, "__wrapped__", view)  # a recording looks for this name
    if hasattr(view, "definition"):
        choose = view.definition.forward
    name = f"{choose.__name__}_"
    rules_in_place: dict[Any, Any] = {}

    def inplace(input: Tensor, *args: Any, **options: Any) -> Tensor:
        need_tensor(name, input)
        history.check_write(input)
        try:
            seen = view(input, *args, **options)
        except (ShapeError, TypeError) as error:
            error.args = (str(error).replace(f"{choose.__name__}(", f"{name}(", 1),)
            raise
        node = seen._edge if history.is_view(seen) else None
        if node is not None:
            rule = node.rule
            if rule not in rules_in_place:
                rules_in_place[rule] = copy(rule)
                number = int(rule.node[-1]) + n_overloads
                rules_in_place[rule].node = f"{rule.node[:-1]}{number}"
            node.rule = rules_in_place[rule]
        history.become(input, seen, name)
        return input

    inplace.__qualname__ = inplace.__name__ = name
    inplace.__doc__ = f"``{choose.__name__}``, in place: this tensor itself becomes the view."
    return inplace
