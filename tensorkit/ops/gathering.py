"""Elements picked, written or added up at positions that tensors name; always copies.

Two ways to name positions. *Places* are a NumPy index: for each dimension ``slice(None)`` or an
int64 array of positions (these broadcast together), or for several dimensions one bool mask.
``x[index]`` uses them. ``gather`` and its relatives take an *index* of as many dimensions as the
input, which replaces the position along one dimension only.
"""

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd import history
from tensorkit.autograd.graph import Rule
from tensorkit.base import TensorBase
from tensorkit.errors import DTypeError, IndexRangeError, ShapeError, message, must_be, sizes
from tensorkit.layout import Ints
from tensorkit.ops import general
from tensorkit.ops.general import need_int, need_tensor
from tensorkit.ops.notation import op

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor

Places = tuple[Any, ...]


# Places


@op(kind="function")
def take_places(xp: Any, x: Any, *, places: Places) -> Any:
    """``x[places]`` as a copy."""
    first = len(places) - 1
    one = all(place.__class__ is slice for place in places[:first])
    last = places[first]
    if one and x.flags.c_contiguous:
        if last.dtype != bool:
            return x.take(last, axis=first)
        end = first + last.ndim
        merged = x.reshape((*x.shape[:first], last.size, *x.shape[end:]))
        return merged.compress(last.reshape(-1), axis=first)
    return x[places]


@op(kind="function")
def add_places(xp: Any, x: Any, *, places: Places, size: Ints) -> Any:
    """Zeros of shape ``size`` to which ``x`` is added at ``places``; positions may repeat."""
    whole = xp.zeros(size, x.dtype)
    if any(place.__class__ is not slice and place.dtype == bool for place in places):
        whole[places] = x  # a mask names no element twice
        return whole
    places = (*places, *[slice(None)] * (len(size) - len(places)))
    picked = [dim for dim, place in enumerate(places) if place.__class__ is not slice]
    rest = [dim for dim in range(len(size)) if dim not in picked]
    rows: Any = 0
    for dim in picked:
        rows = rows * size[dim] + places[dim] % size[dim]
    # rows of the picked dimensions; each is followed by the elements of the others
    n_rows, width = prod(size[dim] for dim in picked), prod(size[dim] for dim in rest)
    adjacent = picked[-1] - picked[0] == len(picked) - 1
    first = picked[0] if adjacent else 0
    order = [*range(first, first + rows.ndim)]
    order += [dim for dim in range(x.ndim) if dim not in order]
    values = x.transpose(order).reshape(rows.size, width)
    total = add_rows(xp, rows.reshape(-1), values, n_rows)
    inverse = np.argsort([*picked, *rest])
    return total.reshape([size[dim] for dim in (*picked, *rest)]).transpose(inverse)


@op(kind="function")
def put_places(xp: Any, x: Any, y: Any, *, places: Places) -> Any:
    """``x`` with ``y`` at ``places``."""
    copy = x.copy()
    copy[places] = y
    return copy


take_places.grad(
    node="IndexBackward0",
    x=lambda g, shape, places: add_places(g, places=places, size=shape),
)
add_places.grad(x=lambda g, places: take_places(g, places=places))
put_places.grad(
    node="IndexPutBackward0",
    x=lambda g, places: put_places(g, 0.0, places=places),
    y=lambda g, places: take_places(g, places=places),
)
_ACCUMULATE = Rule(
    "index_put",
    "IndexPutBackward0",
    ("x", "y"),
    {"x": lambda g: g, "y": lambda g, places: take_places(g, places=places)},
)


def add_rows(xp: Any, rows: Any, values: Any, n_rows: int) -> Any:
    """A matrix of ``n_rows`` rows, to whose row ``rows[i]`` row i of ``values`` is added.

    On flat memory: adding whole rows takes NumPy four times as long.
    """
    width = values.shape[1]
    dtype = xp.float32 if values.dtype == xp.float16 else values.dtype
    total = xp.zeros(n_rows * width, dtype)
    if width != 1:
        rows = (rows[:, None] * width + xp.arange(width)).reshape(-1)
    xp.add.at(total, rows, values.reshape(-1).astype(dtype, copy=False))
    return total.astype(values.dtype, copy=False).reshape(n_rows, width)


def pick(x: "Tensor", places: Places) -> "Tensor":
    """``x[places]``, laid out as PyTorch lays it out."""
    form = x._form
    if 0 in form.shape:
        _refuse_empty(tuple(form.shape), places)
    try:
        array = general.run(
            take_places.definition.forward, form.device.backend.xp, x._array, places=places
        )
    except IndexError:
        places = _inside(tuple(form.shape), places)
        array = take_places.definition.forward(form.device.backend.xp, x._array, places=places)
    strides = _strides(x, places, array.shape)
    result = base.place(array, form.device, form.dtype, strides)
    if x._node is None:
        return general.finished(result)
    values = {"x": x, "shape": tuple(form.shape), "places": _own(places)}
    return general.recorded(take_places.definition, result, values)


def put(x: "Tensor", places: Places, value: Any, accumulate: bool = False) -> None:
    """``x[places] = value``, or ``+=`` for ``accumulate``; ``value`` is a tensor of x's dtype.

    It may also be a number that was checked; an array of it is then given as ``value``.
    """
    tracked = history.check_write(x, value)
    own = tuple(x._form.shape)
    array = value._array if isinstance(value, TensorBase) else value
    wanted = _picked_shape(own, places)
    _refuse_empty(own, places)
    if not _fits(array.shape, wanted):
        raise ShapeError(
            message(
                f"shape mismatch: value tensor of shape {sizes(array.shape)} cannot be broadcast "
                f"to indexing result of shape {sizes(wanted)}"
            ),
            a_shape=tuple(array.shape),
            b_shape=wanted,
        )
    dtype = x._form.dtype
    if isinstance(value, TensorBase) and value._form.dtype is not dtype:
        raise DTypeError(
            message(
                "Index put requires the source and destination dtypes match, got "
                f"{dtype.word} for the destination and {value._form.dtype.word} for the source.",
                repair=f"x[index] = value.to({dtype})".replace("torch.", "tk."),
            )
        )
    if accumulate or 0 in wanted:
        places = _inside(own, places)
    rule = None
    if tracked:
        places = _own(places)
        rule = _ACCUMULATE if accumulate else put_places.definition.rules[None]
    at: Any = places
    if accumulate:
        xp = x._form.device.backend.xp
        full = xp.broadcast_to(array, wanted)
        array, at = x._array + add_places.definition.forward(xp, full, places=places, size=own), ...
    try:
        general.write(x, array, "index_put", rule, (x, value), {"places": places}, at)
    except IndexError:
        _inside(own, places)
        raise


def _own(places: Places) -> Places:
    """Copies for a node to keep: the caller may change the tensors before backward."""
    return tuple(place if place.__class__ is slice else place.copy() for place in places)


def _picked_shape(shape: Ints, places: Places) -> Ints:
    """The shape of ``x[places]``."""
    picked, block = _block(shape, places)
    rest = [size for dim, size in enumerate(shape) if dim not in picked]
    lead = _lead(picked)
    return (*rest[:lead], *block, *rest[lead:])


def _block(shape: Ints, places: Places) -> tuple[list[int], Ints]:
    """The dimensions that places replace, and the shape that stands in for them."""
    picked: list[int] = []
    for dim, place in enumerate(places):
        if place.__class__ is not slice:
            if place.dtype == bool:
                return list(range(dim, dim + place.ndim)), (int(np.count_nonzero(place)),)
            picked.append(dim)
    block = np.broadcast_shapes(*[places[dim].shape for dim in picked])
    return picked, block


def _lead(picked: list[int]) -> int:
    """Where the new dimensions stand: in place of adjacent ones, otherwise in front."""
    return picked[0] if picked[-1] - picked[0] == len(picked) - 1 else 0


def _strides(x: TensorBase, places: Places, shape: Ints) -> Ints:
    """Strides of ``x[places]``: PyTorch reads x with stride 0 along the new dimensions."""
    arrays = [place for place in places if place.__class__ is not slice]
    if (
        0 not in shape
        and x._form.strides == layout.contiguous_strides(x._form.shape)
        and all(each.flags.c_contiguous and each.shape == arrays[0].shape for each in arrays)
    ):
        return layout.contiguous_strides(shape)
    is_mask = arrays[0].dtype == bool
    picked, block = _block(tuple(x._form.shape), places)
    lead, n_block = _lead(picked), len(block)
    rest = [step for dim, step in enumerate(x._form.strides) if dim not in picked]
    after = len(rest) - lead
    pairs = [(shape, (*rest[:lead], *[0] * n_block, *rest[lead:]))]
    for each in arrays:
        own = block if is_mask else each.shape
        steps = (1,) if is_mask else tuple(step // each.itemsize for step in each.strides)
        steps = layout.broadcast_strides(own, steps, block)
        pairs.append(((*[1] * lead, *block, *[1] * after), (*[0] * lead, *steps, *[0] * after)))
    return layout.result_strides(shape, pairs)


def _fits(shape: Ints, wanted: Ints) -> bool:
    lead = len(wanted) - len(shape)
    pairs = zip(shape, wanted[max(lead, 0) :], strict=False)
    return lead >= 0 and all(size in (1, other) for size, other in pairs)


def _inside(shape: Ints, places: Places) -> Places:
    """IndexError for the first position that lies outside of ``shape``; otherwise the places.

    NumPy looks while it reads, so this is only called where it complained.
    """
    _refuse_empty(shape, places)
    found = []
    picked, block = _block(shape, places)
    if 0 in _picked_shape(shape, places):  # nothing is read: PyTorch does not look either
        return tuple(p if p.__class__ is slice or p.dtype == bool else p * 0 for p in places)
    for number, dim in enumerate(picked):  # PyTorch's sentence counts the index tensors only
        place = np.broadcast_to(places[dim], block).reshape(-1)
        outside = np.flatnonzero((place < -shape[dim]) | (place >= shape[dim]))
        if outside.size:
            found.append((int(outside[0]), number, int(place[outside[0]]), shape[dim]))
    if found:
        _, number, position, size = min(found)
        _refuse_position(position, number, size, IndexRangeError)
    return places


def _refuse_empty(shape: Ints, places: Places) -> None:
    picked, block = _block(shape, places)
    if any(shape[dim] == 0 for dim in picked) and 0 not in block:
        raise IndexRangeError(
            "index is out of bounds for dimension with size 0", index=0, dim=picked[0], size=0
        )


def _refuse_position(position: int, dim: int, size: int, error: Any) -> None:
    raise error(
        message(
            f"index {position} is out of bounds for dimension {dim} with size {size}",
            f"Valid positions are 0 to {size - 1}." if size else "The dimension is empty.",
        ),
        index=position,
        dim=dim,
        size=size,
    )


# Whole slices along one dimension


def index_select(input: "Tensor", dim: int, index: "Tensor") -> "Tensor":
    """The slices of ``input`` along ``dim`` that ``index``, a vector, names, as a copy.

    >>> tk.index_select(tk.tensor([[1, 2], [3, 4], [5, 6]]), 0, tk.tensor([2, 0]))
    tensor([[5, 6],
            [1, 2]])
    """
    need_tensor("index_select", input)
    dim = layout.wrap_dim(need_int("index_select", "dim", 2, dim), max(input.dim(), 1))
    _need_index("index_select", index, 3)
    if index._form.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError("index_select(): Expected dtype int32 or int64 for index")
    if len(index._form.shape) > 1:
        raise IndexRangeError("index_select(): Index is supposed to be a vector")
    size = input._form.shape[dim] if input._form.shape else 1
    if not input._form.shape and index._array.size != 1:
        raise ShapeError(
            f"index_select(): Index to scalar can have only 1 value, got {index._array.size} "
            "value(s)"
        )
    if _outside(index._array, size) is not None:
        raise IndexRangeError(
            message("index out of range in self", f"Valid positions are 0 to {size - 1}.")
        )
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


def gather(input: "Tensor", dim: int, index: "Tensor") -> "Tensor":
    """Elements of ``input``, of which ``index`` says the position along ``dim``.

    For two dimensions and ``dim=1``: ``out[i, j] = input[i, index[i, j]]``. The result has the
    shape of ``index``, which may be smaller than ``input`` along the other dimensions.

    >>> tk.gather(tk.tensor([[1, 2], [3, 4]]), 1, tk.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    need_tensor("gather", input)
    dim = layout.wrap_dim(need_int("gather", "dim", 2, dim), max(input.dim(), 1))
    _check_index("gather", input, dim, index)
    return take_along(input, index, dim=dim)


@op(kind="function")
def take_along(xp: Any, x: Any, index: Any, *, dim: int) -> Any:
    """``gather`` on arrays."""
    if not index.size:
        return xp.zeros(index.shape, x.dtype)
    return x[_coordinates(xp, index, dim)] if x.ndim else x.reshape(index.shape).copy()


@op(kind="function")
def add_along(xp: Any, x: Any, index: Any, *, dim: int, size: Ints) -> Any:
    """Zeros of shape ``size`` to which ``x`` is added where ``gather`` would read."""
    if not index.size:
        return xp.zeros(size, x.dtype)
    if not size:
        return x.reshape(size).copy()
    rows: Any = 0
    for length, place in zip(size, _coordinates(xp, index, dim), strict=True):
        rows = rows * length + place
    values = x[tuple(map(slice, index.shape))]
    return add_rows(xp, rows.reshape(-1), values.reshape(-1, 1), prod(size)).reshape(size)


take_along.grad(
    node="GatherBackward0",
    x=lambda g, index, shape, dim: add_along(g, index, dim=dim, size=shape),
)
add_along.grad(x=lambda g, index, dim: take_along(g, index, dim=dim))


def _coordinates(xp: Any, index: Any, dim: int) -> Places:
    """For each dimension the positions that ``gather`` reads, ready to broadcast."""
    ones = (1,) * (index.ndim - 1)
    return tuple(
        index if place == dim else xp.arange(size).reshape((*ones[:place], size, *ones[place:]))
        for place, size in enumerate(index.shape)
    )


def _need_index(function: str, index: Any, position: int) -> None:
    if not isinstance(index, TensorBase):
        raise must_be(function, "index", position, "Tensor", index)


def _check_index(function: str, x: TensorBase, dim: int, index: Any) -> None:
    """Raise unless ``index`` is one that ``gather`` and its relatives can use on ``x``."""
    _need_index(function, index, 3)
    if index._form.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError(
            message(f"{function}(): Expected dtype int32/int64 for index", repair="index.long()")
        )
    own, shape = tuple(x._form.shape) or (1,), tuple(index._form.shape) or (1,)
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
    position = _outside(index._array, own[dim])
    if position is not None:
        _refuse_position(position, dim, own[dim], ShapeError)


def _outside(index: Any, size: int) -> int | None:
    """The first position that is negative or not below ``size``."""
    if not index.size or (index.min() >= 0 and index.max() < size):
        return None
    flat = index.reshape(-1)
    return int(flat[(flat < 0) | (flat >= size)][0])


# Masks


def masked_fill(input: "Tensor", mask: "Tensor", value: Any) -> "Tensor":
    """``input`` with ``value``, a number or 0-d tensor, where ``mask`` is true; they broadcast.

    >>> tk.masked_fill(tk.tensor([1., 2., 3.]), tk.tensor([True, False, True]), 0)
    tensor([0., 2., 0.])
    """
    need_tensor("masked_fill", input)
    value = _fill_value("masked_fill", input, mask, value)
    layout.broadcast_shapes(tuple(mask._form.shape), tuple(input._form.shape))
    if isinstance(value, TensorBase):
        return _fill_with_tensor(input, mask, value)
    return _fill_with_number(input, mask, value=value)


def masked_fill_(x: "Tensor", mask: "Tensor", value: Any) -> "Tensor":
    """Write ``value`` where ``mask`` is true, in place."""
    value = _fill_value("masked_fill_", x, mask, value)
    is_tensor = isinstance(value, TensorBase)
    tracked = history.check_write(x, value)
    general.check_overlap(x)
    own, other = tuple(x._form.shape), tuple(mask._form.shape)
    general.check_output_shape(own, layout.broadcast_shapes(own, other))
    operation = _fill_with_tensor if is_tensor else _fill_with_number
    array = value._array if is_tensor else value
    at = np.broadcast_to(mask._array, own)
    rule = operation.definition.rules[None] if tracked else None
    general.write(x, array, "masked_fill", rule, (x, value)[: 1 + is_tensor], {"mask": mask}, at)
    return x


def _fill_value(function: str, x: TensorBase, mask: Any, value: Any) -> Any:
    """What is to be filled in: a 0-d tensor, or a number as an array of the dtype of ``x``."""
    number = None if isinstance(value, TensorBase) else general.as_number(value)
    if not isinstance(mask, TensorBase) or (number is None and not isinstance(value, TensorBase)):
        raise general.no_such_call(
            function, (mask, value), "(Tensor mask, Tensor value)", "(Tensor mask, Number value)"
        )
    if mask._form.dtype is not dtypes.bool_:
        raise DTypeError(
            message(
                "masked_fill_ only supports boolean masks, but got mask with dtype "
                f"{mask._form.dtype.c_name.replace('uint8_t', 'unsigned char')}",
                repair="mask.bool()",
            )
        )
    if number is not None:
        general.check_value(number, x._form.dtype)
        return general.number_array(number, x._form.dtype)
    if value._form.shape:
        raise ShapeError(
            message(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value._form.shape)} dimension(s).",
                repair="tk.where(mask, value, x)",
            )
        )
    return value


def _filled(xp: Any, x: Any, mask: Any, value: Any) -> Any:
    filled = xp.empty(np.broadcast_shapes(x.shape, mask.shape), x.dtype)
    filled[...] = x
    xp.copyto(filled, value, casting="unsafe", where=mask)
    return filled


@op(kind="function")
def _fill_with_number(xp: Any, x: Any, mask: Any, *, value: Any) -> Any:
    return _filled(xp, x, mask, value)


@op(kind="function")
def _fill_with_tensor(xp: Any, x: Any, mask: Any, value: Any) -> Any:
    return _filled(xp, x, mask, value)


_fill_with_number.grad(
    node="MaskedFillBackward0",
    x=lambda g, mask: _fill_with_number(g, mask, value=0),
)
_fill_with_tensor.grad(
    node="MaskedFillBackward1",
    x=lambda g, mask: _fill_with_number(g, mask, value=0),
    value=lambda g, mask: _fill_with_number(g, ~mask, value=0),
)


def masked_select(input: "Tensor", mask: "Tensor") -> "Tensor":
    """The elements of ``input`` where ``mask`` is true, as a vector; they broadcast.

    >>> tk.masked_select(tk.tensor([1, 2, 3]), tk.tensor([True, False, True]))
    tensor([1, 3])
    """
    need_tensor("masked_select", input)
    if not isinstance(mask, TensorBase):
        raise must_be("masked_select", "mask", 2, "Tensor", mask)
    if mask._form.dtype is not dtypes.bool_:
        raise DTypeError(
            message("masked_select: expected BoolTensor for mask", repair="mask.bool()")
        )
    layout.broadcast_shapes(tuple(mask._form.shape), tuple(input._form.shape))
    return take_masked(input, mask)


@op(kind="function")
def take_masked(xp: Any, x: Any, mask: Any) -> Any:
    """The elements of ``x`` where ``mask`` is true."""
    x, mask = xp.broadcast_arrays(x, mask)
    return x.reshape(-1).compress(mask.reshape(-1))


@op(kind="function")
def put_masked(xp: Any, x: Any, mask: Any, *, size: Ints) -> Any:
    """Zeros in which the vector ``x`` is written where ``mask`` is true."""
    whole = xp.zeros(np.broadcast_shapes(mask.shape, size), x.dtype)
    whole[xp.broadcast_to(mask, whole.shape)] = x
    return whole


take_masked.grad(
    node="MaskedSelectBackward0",
    x=lambda g, mask, shape: put_masked(g, mask, size=shape),
)
put_masked.grad(x=lambda g, mask, size: take_masked(g, mask))
