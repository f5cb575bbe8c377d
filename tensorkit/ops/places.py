"""Elements picked, written or added up at places, as ``x[index]`` needs them; always copies.

*Places* are a NumPy index: for each dimension ``slice(None)`` or an int64 array of positions
(these broadcast together), or for several dimensions one bool mask.
"""

from math import prod
from typing import Any

import numpy as np

from tensorkit import base, layout
from tensorkit.autograd import history
from tensorkit.autograd.rules import Rule
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of, is_array
from tensorkit.errors import DTypeError, IndexRangeError, ShapeError, message, sizes
from tensorkit.layout import Ints
from tensorkit.ops import results, writing
from tensorkit.ops.notation import op

Places = tuple[Any, ...]


class Inside(Places):
    """Places on a device that a mask named: no kernel need look whether they lie inside."""


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
    if any(place.__class__ is not slice and place.dtype == bool for place in places):
        whole = xp.zeros(size, x.dtype)
        whole[places] = x  # a mask names no element twice
        return whole
    picked = [dim for dim, place in enumerate(places) if place.__class__ is not slice]
    rest = [dim for dim in range(len(size)) if dim not in picked]
    rows: Any = 0
    for dim in picked:
        place = places[dim]
        if place.__class__ is not np.ndarray or (place.size and place.min() < 0):
            place = place % size[dim]  # on a device to ask would be to wait
        rows = rows * size[dim] + place if dim != picked[0] else place
    # rows of the picked dimensions; each is followed by the elements of the others
    n_rows, width = prod(size[dim] for dim in picked), prod(size[dim] for dim in rest)
    adjacent = picked[-1] - picked[0] == len(picked) - 1
    first = picked[0] if adjacent else 0
    order = [*range(first, first + rows.ndim)]
    order += [dim for dim in range(x.ndim) if dim not in order]
    values = x.transpose(order).reshape(rows.size, width)
    total = add_rows(xp, rows.reshape(-1), values, n_rows)
    if picked[-1] == len(picked) - 1:  # they are the first dimensions
        return total.reshape(size)
    order = [*picked, *rest]
    return total.reshape([size[dim] for dim in order]).transpose(layout.inverse(order))


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


_WIDE = 256  # elements of a row, from which on rows are best added one by one


def add_rows(xp: Any, rows: Any, values: Any, n_rows: int) -> Any:
    """A matrix of ``n_rows`` rows, to whose row ``rows[i]`` row i of ``values`` is added.

    On flat memory: adding whole rows takes NumPy four times as long.
    """
    width = values.shape[1]
    dtype = xp.float32 if values.dtype == xp.float16 else values.dtype
    if xp.__name__ == "numpy" and width >= _WIDE:
        wide = xp.zeros((n_rows, width), dtype)
        for row, each in zip(rows.tolist(), values, strict=True):
            wide[row] += each
        return wide.astype(values.dtype, copy=False)
    total = xp.zeros(n_rows * width, dtype)
    if width != 1:
        rows = (rows[:, None] * width + xp.arange(width)).reshape(-1)
    backend_of(total).add_at(total, rows, values.reshape(-1).astype(dtype, copy=False))
    return total.astype(values.dtype, copy=False).reshape(n_rows, width)


def pick(x: Tensor, places: Places) -> Tensor:
    """``x[places]``, laid out as PyTorch lays it out."""
    if 0 in x.shape:
        _refuse_empty(tuple(x.shape), places)
    if x.device is not CPU:
        places = expect_inside(tuple(x.shape), places)
    try:
        array = results.run(take_places.definition.forward, x._xp, x._array, places=places)
    except IndexError:
        places = _inside(tuple(x.shape), places)
        array = take_places.definition.forward(x._xp, x._array, places=places)
    is_simple = x._is_contiguous and 1 not in x.shape and array.size
    if is_simple and places[0].__class__ is not slice and _are_alike(places):
        result = results.contiguous_result(array, x.device)
    else:
        strides = _strides(x, places, array.shape)
        result = base.place(array, strides)
    if x._node is None:
        return results.finished(result)
    values = {"x": x, "shape": tuple(x.shape), "places": _own(places)}
    return results.recorded(take_places.definition, result, values)


def put(x: Tensor, places: Places, value: Any, accumulate: bool = False) -> None:
    """``x[places] = value``, or ``+=`` for ``accumulate``; ``value`` is a tensor of x's dtype.

    It may also be a number that was checked; an array of it is then given as ``value``.
    """
    tracked = history.check_write(x, value)
    own = tuple(x.shape)
    array = value._array if isinstance(value, TensorBase) else value
    wanted = _picked_shape(own, places)
    _refuse_empty(own, places)
    if not _fits(array.shape, wanted):
        raise ShapeError(
            f"shape mismatch: value tensor of shape {sizes(array.shape)} cannot be broadcast "
            f"to indexing result of shape {sizes(wanted)}",
            a_shape=tuple(array.shape),
            b_shape=wanted,
        )
    dtype = x.dtype
    if isinstance(value, TensorBase) and value.dtype is not dtype:
        raise DTypeError(
            "Index put requires the source and destination dtypes match, got "
            f"{dtype.word} for the destination and {value.dtype.word} for the source.",
            repair=f"x[index] = value.to(tk.{dtype.name})",
        )
    if accumulate or 0 in wanted or x.device is not CPU:
        places = _inside(own, places)
    rule = None
    if tracked:
        places = _own(places)
        rule = _ACCUMULATE if accumulate else put_places.definition.rules[None]
    if 0 in x._strides:  # an expanded array is read-only; PyTorch does write here
        x._array = base.view_of(x, base.layout_of(x))._array
    at: Any = places
    if accumulate:
        xp = x._xp
        if array.__class__ is np.ndarray and x.device is not CPU:
            array = xp.full((), array[()], array.dtype)
        full = xp.broadcast_to(array, wanted)
        array, at = x._array + add_places.definition.forward(xp, full, places=places, size=own), ...
    try:
        values = {"x": x, "y": value, "places": places}
        writing.write(x, array, "index_put", rule, values, at)
    except IndexError:
        _inside(own, places)
        raise


def _own(places: Places) -> Places:
    """Copies for a node to keep: the caller may change the tensors before backward."""
    return tuple(place if place.__class__ is slice else place.copy() for place in places)


def _picked_shape(shape: Ints, places: Places) -> Ints:
    """The shape of ``x[places]``."""
    picked, block = _block(places)
    rest = [size for dim, size in enumerate(shape) if dim not in picked]
    lead = _lead(picked)
    return (*rest[:lead], *block, *rest[lead:])


def _block(places: Places) -> tuple[list[int], Ints]:
    """The dimensions that places replace, and the shape that stands in for them."""
    picked: list[int] = []
    for dim, place in enumerate(places):
        if place.__class__ is not slice:
            if place.dtype == bool:
                return list(range(dim, dim + place.ndim)), (int(place.sum()),)
            picked.append(dim)
    block = np.broadcast_shapes(*[places[dim].shape for dim in picked])
    return picked, block


def _lead(picked: list[int]) -> int:
    """Where the new dimensions stand: in place of adjacent ones, otherwise in front."""
    return picked[0] if picked[-1] - picked[0] == len(picked) - 1 else 0


def _are_alike(places: Any) -> bool:
    """Whether these are contiguous arrays of one shape."""
    return all(
        each.__class__ is places[0].__class__
        and each.shape == places[0].shape
        and each.flags.c_contiguous
        for each in places
    )


def _strides(x: TensorBase, places: Places, shape: Ints) -> Ints:
    """Strides of ``x[places]``: PyTorch reads x with stride 0 along the new dimensions."""
    arrays = [place for place in places if place.__class__ is not slice]
    if 0 not in shape and x._strides == layout.contiguous_strides(x.shape) and _are_alike(arrays):
        return layout.contiguous_strides(shape)
    is_mask = arrays[0].dtype == bool
    picked, block = _block(places)
    lead, n_block = _lead(picked), len(block)
    rest = [step for dim, step in enumerate(x._strides) if dim not in picked]
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
    if any(is_array(place) and place.__class__ is not np.ndarray for place in places):
        return expect_inside(shape, places)
    found = []
    picked, block = _block(places)
    if 0 in _picked_shape(shape, places):  # nothing is read: PyTorch does not look either
        return tuple(p if p.__class__ is slice or p.dtype == bool else p * 0 for p in places)
    for number, dim in enumerate(picked):  # PyTorch's sentence counts the index tensors only
        place = np.broadcast_to(places[dim], block).reshape(-1)
        outside = np.flatnonzero((place < -shape[dim]) | (place >= shape[dim]))
        if outside.size:
            found.append((int(outside[0]), number, int(place[outside[0]]), shape[dim]))
    if found:
        _, number, position, size = min(found)
        refuse_position(position, number, size, IndexRangeError)
    return places


def expect_inside(shape: Ints, places: Places) -> Places:
    """Have a device look whether all positions lie inside of ``shape``; it tells later."""
    if places.__class__ is Inside:
        return (*places,)
    for place, size in zip(places, shape, strict=False):
        if place.__class__ is not slice and place.dtype != bool:
            backend_of(place).expect_inside(place, -size, size, outside(size))
    return places


def outside(size: int) -> str:
    """What a device tells of a position that lay outside."""
    return f"A position was outside of a dimension of size {size}"


def _refuse_empty(shape: Ints, places: Places) -> None:
    picked, block = _block(places)
    if any(shape[dim] == 0 for dim in picked) and 0 not in block:
        raise IndexRangeError(
            "index is out of bounds for dimension with size 0", index=0, dim=picked[0], size=0
        )


def refuse_position(position: int, dim: int, size: int, error: Any) -> None:
    raise error(
        message(
            f"index {position} is out of bounds for dimension {dim} with size {size}",
            f"Valid positions are 0 to {size - 1}." if size else "The dimension is empty.",
        ),
        index=position,
        dim=dim,
        size=size,
    ) from None
