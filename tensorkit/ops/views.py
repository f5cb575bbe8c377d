"""Views: tensors that look at memory that is already there. NumPy makes each of them."""

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import index as as_index
from typing import Any, NoReturn

from tensorkit import base, direct_path, layout
from tensorkit.autograd.node import AS_STRIDED, Rule, parts
from tensorkit.autograd.versions import make_view
from tensorkit.base import Tensor, TensorBase
from tensorkit.definition import unpacked
from tensorkit.devices import backend_of
from tensorkit.dispatch import op
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.dtypes import DType
from tensorkit.errors import IndexRangeError, NotSupportedError, ShapeError, sizes
from tensorkit.layout import Ints, Layout
from tensorkit.ops import copying
from tensorkit.ops.arguments import need_tensor
from tensorkit.thread_state import state

# A part of a tensor


@op()
def zeros_with(xp: Any, x: Any, *, size: Ints, index: Any) -> Any:
    """Zeros of shape ``size``, with ``x`` at ``index``; where positions repeat, its sums."""
    whole = xp.zeros(size, x.dtype)
    if _has_arrays(index):
        backend_of(whole).add_at(whole, index, x)
    else:
        whole[index] = x
    return whole


def check_index(x: Tensor, index: Any) -> None:
    """Raise what NumPy finds wrong with an index, in PyTorch's words."""
    try:
        x._array[index]
    except IndexError as error:
        outside = re.match("index (.+) is out of bounds for axis (.+) with size (.+)", str(error))
        if outside:
            refuse_position(int(outside[1]), int(outside[2]), int(outside[3]))
        raise IndexRangeError(str(error).replace("arrays", "tensors")) from None


@op(check=check_index)
def read_at(xp: Any, x: Any, *, index: Any) -> Any:
    """``x[index]`` as a copy."""
    are_rows = len(index) == 1 and getattr(index[0], "dtype", None) == xp.int64
    if are_rows and xp.__name__ == "numpy" and x.flags.c_contiguous:  # in two thirds of the time
        return x.take(index[0], 0)
    return x[index] if _has_arrays(index) else x[index].copy()


def _has_arrays(index: Any) -> bool:
    return any(hasattr(part, "dtype") for part in index)


zeros_with.grad(x=lambda g, index: read_at(g, index=index))
read_at.grad(
    node="IndexBackward0",
    x=lambda g, shape, index: zeros_with(g, size=shape, index=index),
)


def overwriting(name: str, node: str | None = None, tensors: int = 2) -> Any:
    """An operation that gives a copy of ``x`` with ``value``, a tensor or a number, at an index."""
    made = op(name=name, tensors=tensors)(_overwritten)
    made.grad(
        node=node,
        x=lambda g, index: _with_number(g, 0, index=index),
        value=lambda g, index: read_at(g, index=index),
    )
    return made


def _overwritten(xp: Any, x: Any, value: Any, *, index: Any) -> Any:
    copy = x.copy()
    copy[index] = value
    return copy


_with_number, _with_tensor = overwriting("index_fill", tensors=1), overwriting("index_put")


def refuse_position(
    position: int, dim: int, size: int, detail: str = "", error: Any = IndexRangeError
) -> NoReturn:
    """Raise: a position is outside of a dimension."""
    raise error(
        f"index {position} is out of bounds for dimension {dim} with size {size}",
        (detail or f"Valid positions are 0 to {size - 1}.") if size else "The dimension is empty.",
        repair=f"{size - 1} for the last" if size else None,
    ) from None


def _part_rule(name: str) -> Rule:
    """The gradient of a part; PyTorch has a name for each function that makes one."""
    formula = {"x": lambda g, shape, index: zeros_with(g, size=shape, index=index)}
    rule = Rule(name, f"{name}Backward0", ("x",), formula, options=("index",))
    rule.is_part = True
    return rule


SELECT, SLICE, SPLIT, SPLIT_WITH_SIZES, UNBIND = map(
    _part_rule, ("Select", "Slice", "Split", "SplitWithSizes", "Unbind")
)


def part(x: Tensor, dim: int, where: int | slice, rule: Rule) -> Tensor:
    """The view of the entries ``where`` along ``dim``: of one, or from left to right."""
    index = (*(slice(None),) * dim, where, ...)
    shown = x._array[index]
    saved = (x._array.shape, index)
    if shown.size:
        return make_view(x, shown, rule, saved)
    # of nothing, NumPy does not say where it begins
    start = where.start if isinstance(where, slice) else where
    return make_view(x, shown, rule, saved, base.offset_of(x) + start * x._strides[dim])


def _dim_of(function: str, input: Any, dim: Any) -> int:
    """A dimension of a tensor, counted from the front."""
    need_tensor(function, input)
    return layout.wrap_dim(as_index(dim), input.ndim)


@seen_by_modes
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """View of one entry along ``dim``; the dimension disappears.

    >>> tk.arange(6).view(2, 3).select(0, 1)
    tensor([3, 4, 5])
    """
    dim, index = _dim_of("select", input, dim), as_index(index)
    size = input.shape[dim]
    if not -size <= index < size:
        refuse_position(index, dim, size)
    return part(input, dim, index % size, SELECT)


@seen_by_modes
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """View of ``length`` entries along ``dim`` from ``start`` on.

    >>> tk.narrow(tk.arange(6), 0, 2, 3)
    tensor([2, 3, 4])
    """
    dim = _dim_of("narrow", input, dim)
    size = input.shape[dim]
    start = start + size if start < 0 else start
    if not (0 <= start <= size and 0 <= length <= size - start):
        raise ShapeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return part(input, dim, slice(start, start + length), SLICE)


@seen_by_modes
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of one size along ``dim``, the last perhaps smaller; or of given sizes.

    >>> tk.split(tk.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> tk.split(tk.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    dim = _dim_of("split", tensor, dim)
    size, rule = tensor.shape[dim], SPLIT
    if isinstance(split_size_or_sections, (tuple, list)):
        lengths, rule = [*map(as_index, split_size_or_sections)], SPLIT_WITH_SIZES
    else:
        step = as_index(split_size_or_sections)
        if step < 0:
            raise ShapeError(f"split expects split_size be non-negative, but got split_size={step}")
        if not step and size:
            first = "split_size can only be 0 if dimension size is 0"
            raise ShapeError(f"{first}, but got dimension size of {size}")
        lengths = [min(step, size - at) for at in range(0, max(size, 1), max(step, 1))]
    if min(lengths, default=0) < 0 or sum(lengths) != size:
        raise ShapeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's "
            f"size at dimension {dim}), but got split_sizes={sizes(lengths)}",
        )
    ends = accumulate(lengths, initial=0)
    return tuple([part(tensor, dim, slice(*each), rule) for each in pairwise(ends)])


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of at most ``chunks`` parts of one size along ``dim``, the last perhaps smaller.

    >>> tk.chunk(tk.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    size = input.shape[_dim_of("chunk", input, dim)]
    if chunks < 1:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return split(input, -(-size // chunks) if size else (0,) * chunks, dim)


@seen_by_modes
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of all entries along ``dim``, which disappears.

    >>> tk.unbind(tk.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    dim = _dim_of("unbind", input, dim)
    return tuple([part(input, dim, at, UNBIND) for at in range(input.shape[dim])])


# Other dimensions


def _check_view(input: Tensor, size: Ints) -> None:
    if size and isinstance(size[0], DType):
        first = "tensorkit does not reread memory as another dtype"
        raise NotSupportedError(first, repair="tk.from_numpy(x.numpy().view(...))")
    layout.infer_size(tuple(map(as_index, size)), input.numel())


@op(view=True, check=_check_view)
def view(xp: Any, input: Any, *size: int) -> Any:
    """View of the same elements in another shape; one size may be -1.

    Raises where no strides describe it; then ``reshape`` copies.

    >>> tk.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if not size:
        raise TypeError("sizes are missing")
    shown = _reshaped(input, unpacked(size))
    if not input.flags.c_contiguous and not _shares(shown, input):
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
            f"Its shape is {input.shape} and its strides are {base.strides_of(input)}.",
            repair=f"x.reshape({', '.join(map(str, shown.shape))})    # copies",
        )
    return shown


def _reshaped(x: Any, size: Ints) -> Any:
    """An array in another shape, a copy where it must be; NumPy takes any negative size as -1."""
    if min(size, default=0) < -1:
        layout.infer_size(size, x.size)
    return x.reshape(size)


def _shares(shown: Any, x: Any) -> bool:
    """Whether an array that begins where ``x`` does is a view of it: a copy lies elsewhere."""
    address = backend_of(x).address
    return bool(address(shown) == address(x))


def reshape(input: Any, *sizes: Any, shape: Any = ()) -> Any:
    """The same elements in another shape: a view where strides allow it, otherwise a copy.

    >>> tk.reshape(tk.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    size = sizes or (shape,)
    try:
        array = input._array
        shown = array.reshape(*size)
        if shown.shape != size and min(unpacked(size), default=0) < -1:
            raise ValueError("NumPy takes any negative size as -1")
    except (AttributeError, TypeError, ValueError):
        if state.on_arrays and not isinstance(input, TensorBase):
            return input.reshape(*size)
        return view(input, *size)  # which says what is wrong
    is_plain = array.flags.c_contiguous
    if not is_plain and not _shares(shown, array):
        return unsafe_view(copying.contiguous(input), size=shown.shape)
    saved = () if input._node is None else (array.shape, shown.shape)
    if is_plain:
        if not direct_path.is_open:  # a mode, or an explanation, sees it
            return view(input, shown.shape)
        return make_view(input, shown, view.definition.rules[None], saved)
    return make_view(input, shown, _ALIAS, saved[:1])  # as in PyTorch


_ALIAS = Rule(
    "reshape_alias", "ReshapeAliasBackward0", ("x",), {"x": lambda g, shape: reshape(g, shape)}
)


@op()
def unsafe_view(xp: Any, x: Any, *, size: Ints) -> Any:
    """Another shape for a copy that no other tensor uses."""
    return x.reshape(size)


unsafe_view.grad(x=lambda g, shape: reshape(g, shape))


@op(view=True, tensors=1, dim=())
def unsqueeze(xp: Any, input: Any, dim: int) -> Any:
    """View with a new dimension of size 1 before ``dim``.

    >>> tk.arange(3).unsqueeze(0).shape
    torch.Size([1, 3])
    """
    shape = input.shape
    dim = layout.wrap_dim(as_index(dim), len(shape) + 1)
    return input.reshape((*shape[:dim], 1, *shape[dim:]))  # nothing is copied


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """View without dimensions of size 1: all of them, or those that ``dim`` names.

    >>> tk.zeros(1, 3, 1).squeeze().shape, tk.zeros(1, 3, 1).squeeze(0).shape
    (torch.Size([3]), torch.Size([3, 1]))
    """
    return _SQUEEZES[0 if dim is None else 2 if isinstance(dim, (tuple, list)) else 1](input, dim)


def _squeeze(xp: Any, input: Any, dim: Any) -> Any:
    dims = range(input.ndim) if dim is None else layout.wrap_dims(dim, input.ndim)
    return input.reshape([n for at, n in enumerate(input.shape) if n != 1 or at not in dims])


# In PyTorch these are three signatures, and three nodes.
_SQUEEZES = [op(view=True, tensors=1, dim=())(_squeeze) for _ in range(3)]


for _node, _view in {
    "ViewBackward0": view,
    "UnsqueezeBackward0": unsqueeze,
    **{f"SqueezeBackward{at}": each for at, each in enumerate(_SQUEEZES)},
}.items():
    _view.grad(node=_node, input=lambda g, shape: reshape(g, shape))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions ``start_dim`` to ``end_dim`` as one; a view where strides allow it.

    >>> tk.zeros(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    need_tensor("flatten", input)
    shape = tuple(input.shape) or (1,)
    first, last = (layout.wrap_dim(as_index(dim), len(shape)) for dim in (start_dim, end_dim))
    if first > last:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last and input.ndim:
        return input
    return reshape(input, (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """All elements as a vector: a view of a contiguous tensor, of a copy otherwise.

    >>> tk.ravel(tk.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    need_tensor("ravel", input)
    return view(copying.contiguous(input), (-1,))


def _check_expand(input: Tensor, size: Ints) -> None:
    shape = tuple(input.shape)
    layout.check_expand(shape, _kept(size, shape), size)


def _kept(size: Ints, shape: Ints) -> Ints:
    """``size`` with the sizes of a tensor of this shape in place of -1."""
    lead = len(size) - len(shape)
    if -1 not in size or lead < 0:
        return size
    return tuple([shape[at - lead] if n == -1 and at >= lead else n for at, n in enumerate(size)])


@op(view=True, check=_check_expand)
def expand(xp: Any, input: Any, *size: int) -> Any:
    """View in which dimensions of size 1 are repeated, with stride 0; -1 keeps a size.

    >>> tk.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    wanted = _kept(unpacked(size), input.shape)
    return xp.broadcast_to(input, wanted)


expand.grad(input=lambda g: g)  # the engine sums what broadcasting repeated


# Other orders


@op(view=True)
def t(xp: Any, input: Any) -> Any:
    """View of a matrix with rows and columns exchanged; vectors stay as they are.

    >>> tk.arange(6).view(2, 3).t().stride()
    (1, 3)
    """
    if input.ndim > 2:
        first = f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D"
        raise ShapeError(first, repair="x.transpose(-2, -1) or x.mT")
    return input.transpose()


@op(view=True, tensors=1, dim=("dim0", "dim1"))
def transpose(xp: Any, input: Any, dim0: int, dim1: int) -> Any:
    """View with two dimensions exchanged.

    >>> tk.zeros(2, 3, 4).transpose(0, 2).shape
    torch.Size([4, 3, 2])
    """
    if input.ndim:
        return input.swapaxes(dim0, dim1)
    return input.reshape(1).swapaxes(dim0, dim1).reshape(())  # a number counts as a vector


def _check_dims(input: Tensor, dims: Ints) -> None:
    if len(dims) != input.ndim:
        raise ShapeError(
            f"permute(): the tensor has {input.ndim} dimensions, but len(dims) = {len(dims)}",
            repair=f"x.permute({', '.join(map(str, range(input.ndim)))}), in the order you want",
        )


@op(view=True, dim=("dims",), check=_check_dims)
def permute(xp: Any, input: Any, *dims: int) -> Any:
    """View with all dimensions in a new order.

    >>> tk.zeros(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    return input.transpose(unpacked(dims))


t.grad(input=lambda g: t(g))
transpose.grad(input=lambda g, dim0, dim1: transpose(g, dim0, dim1))
permute.grad(input=lambda g, dims: permute(g, layout.inverse([dim % len(dims) for dim in dims])))


@op(view=True, tensors=1, dim=("source", "destination"))
def movedim(xp: Any, input: Any, source: Any, destination: Any) -> Any:
    """View in which the dimensions ``source`` stand at the positions ``destination``.

    >>> tk.movedim(tk.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    if input.ndim:
        return xp.moveaxis(input, source, destination)
    return xp.moveaxis(input.reshape(1), source, destination).reshape(())  # as transpose


movedim.grad(
    node="PermuteBackward0",
    input=lambda g, source, destination: movedim(g, destination, source),
)


@op(view=True, dim=("dim1", "dim2"))
def diagonal(xp: Any, input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """View of a diagonal of the matrices that ``dim1`` and ``dim2`` span; it comes last.

    >>> tk.arange(6).view(2, 3).diagonal(1)
    tensor([1, 5])
    """
    return input.diagonal(offset, *layout.wrap_dims((dim1, dim2), input.ndim))


@op()
def _put_diagonal(xp: Any, input: Any, *, size: Ints, offset: int, dim1: int, dim2: int) -> Any:
    whole = xp.zeros(prod(size), input.dtype)
    whole[xp.arange(prod(size)).reshape(size).diagonal(offset, dim1, dim2)] = input
    return whole.reshape(size)


diagonal.grad(
    input=lambda g, shape, offset, dim1, dim2: _put_diagonal(
        g, size=shape, offset=offset, dim1=dim1, dim2=dim2
    )
)
_put_diagonal.grad(input=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2))


@op(view=True)
def alias(xp: Any, x: Any) -> Any:
    """View of the whole tensor."""
    return x


alias.grad(x=lambda g: g)


broadcast_to, swapaxes = expand, transpose

# Any strides


@seen_by_modes
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
    offset = base.offset_of(input) if storage_offset is None else as_index(storage_offset)
    shape, strides = tuple(map(as_index, size)), tuple(map(as_index, stride))
    if len(shape) != len(strides) or min(*shape, *strides, offset, 0) < 0:
        raise ShapeError(
            f"as_strided: sizes {sizes(shape)}, strides {sizes(strides)} and offset {offset} "
            "should be as many sizes as strides, and none of them negative"
        )
    itemsize, have = input.itemsize, base.storage_of(input).nbytes()
    need = (offset + layout.extent(shape, strides)) * itemsize
    if 0 not in shape and need > have:
        raise ShapeError(
            f"setStorage: sizes {sizes(shape)}, strides {sizes(strides)}, storage offset "
            f"{offset}, and itemsize {itemsize} requiring a storage size of {need} are out "
            f"of bounds for storage of size {have}",
            f"The last element would be number {need // itemsize - 1}; "
            f"the storage has elements 0 to {have // itemsize - 1}.",
        )
    target = Layout(shape, strides, offset)
    saved = base.layout_of(input), target
    flat = base.storage_of(input).flat
    shown = backend_of(flat).view(flat, *target)
    return make_view(input, shown, AS_STRIDED, saved, offset)


# Read, add or overwrite the part ``target`` of a tensor with the layout ``source``: two layouts on
# one storage


def _positions(x: Any, source: Layout, target: Layout) -> tuple[Any]:
    """Where in the flattened ``source`` the elements of ``target`` are; -1 for what it lacks."""
    if layout.overlaps_itself(source.shape, source.strides):
        raise NotSupportedError(
            "tensorkit has no gradient for as_strided of an expanded tensor",
            "Several elements share memory there.",
            repair="x.contiguous().as_strided(...)",
        )
    backend = x.device.backend if isinstance(x, TensorBase) else backend_of(x)
    start = min(source.offset, target.offset)
    end = max(each.offset + layout.extent(each.shape, each.strides) for each in (source, target))
    flat = backend.xp.full(max(end - start, 0), -1)
    whole, part = (
        backend.view(flat, each.shape, each.strides, each.offset - start)
        for each in (source, target)
    )
    whole[...] = backend.xp.arange(prod(source.shape)).reshape(source.shape)
    return (part.copy(),)


def _with_spare(x: Any) -> Any:
    """``x`` flattened, and one zero more: what stands at -1."""
    n = prod(x.shape)
    return zeros_with(reshape(x, (n,)), size=(n + 1,), index=(slice(n),))


def _read_strided(x: Any, *, source: Layout, target: Layout) -> Any:
    return read_at(_with_spare(x), index=_positions(x, source, target))


def _add_strided(x: Any, *, source: Layout, target: Layout) -> Any:
    n = prod(source.shape)
    whole = zeros_with(x, size=(n + 1,), index=_positions(x, source, target))
    return reshape(whole[:n], source.shape)


def _write_strided(x: Any, y: Any, *, source: Layout, target: Layout) -> Any:
    whole = _with_tensor(_with_spare(x), y, index=_positions(x, source, target))
    return reshape(whole[: prod(source.shape)], source.shape)


# for the formulas of autograd.node and autograd.versions, which this file imports
parts.read, parts.add, parts.write = _read_strided, _add_strided, _write_strided
