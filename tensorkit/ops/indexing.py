"""Indexing: ``x[index]`` and ``x[index] = value``.

An index is read once from left to right. Integers, slices, ``...`` and ``None`` turn the layout so
far into the next one, and a single view is made at the end. Masks, lists and tensors of positions
are noted on the way, as *picks*, and then pick from that view; their result is a copy.
"""

import operator
from typing import Any

import numpy as np

from tensorkit import base, layout
from tensorkit.autograd import history
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Device, backend_of, is_array, refuse_mix
from tensorkit.dtypes import DType, bool_, float16
from tensorkit.errors import (
    DeviceMismatchError,
    DTypeError,
    IndexRangeError,
    message,
    must_be,
    sizes,
    type_name,
)
from tensorkit.layout import Layout
from tensorkit.ops import copying, places, views, writing
from tensorkit.ops.arguments import check_value, need_tensor, need_tensors
from tensorkit.ops.moving import moved
from tensorkit.ops.notation import Operation

Picks = dict[int, Any]  # of a dimension: the positions or the mask that pick from it
Step = tuple[Operation, tuple[Any, ...]]  # a part of an index: a view operation, its arguments


def getitem(x: Tensor, index: Any) -> Tensor:
    """``x[index]``: a view, unless masks or positions pick from it."""
    array, kind = x._array, index.__class__
    if array.__class__ is np.ndarray and array.size:
        view = _by_integers(x, index if kind is tuple else (index,))
        if view is not x:
            return view
    if array.ndim and (kind is tuple or isinstance(index, TensorBase)):
        found = _positions(index if kind is tuple else (index,), array.ndim)
        if found is not None:
            return places.pick(x, _on(x.device, found))
    steps: list[Step] = []
    picks: Picks = {}
    shape = locate(Layout(array.shape, x._strides, 0), index, steps, picks).shape
    target = _viewed(x, steps, aliased=not picks)
    return places.pick(target, _on(x.device, _places(shape, picks))) if picks else target


def _by_integers(x: Tensor, parts: tuple[Any, ...]) -> Tensor:
    """The view for integers and slices, one operation after the other, as in PyTorch.

    ``x`` itself where other questions are to be asked: of other parts, of an index outside.
    """
    result, dim = x, 0
    for part in parts:
        array: Any = result._array
        if dim >= array.ndim:
            return x
        size, lead = array.shape[dim], (_ALL,) * dim
        if part.__class__ is int:
            if not -size <= part < size:
                return x
            known: dict[str, Any] = {"dim": dim, "index": part}
            result = history.view(result, array[(*lead, part, ...)], _SELECT, known)
        elif part.__class__ is slice and _is_known(part) and (part.step or 1) > 0:
            start, stop, step = part.indices(size)
            if stop <= start:
                return x
            if stop - start < size or step > 1 or len(parts) == 1:
                known = {"dim": dim, "start": start, "end": stop, "step": step}
                result = history.view(result, array[(*lead, part)], _SLICE, known)
            dim += 1
        else:
            return x
    return result


_ALL = slice(None)
_SELECT, _SLICE = views.select.definition.rules[None], views.slice.definition.rules[None]


def _viewed(x: Tensor, steps: list[Step], aliased: bool = True) -> Tensor:
    """The view that an index means: one operation after the other, as in PyTorch."""
    for operation, arguments in steps:
        x = operation(x, *arguments)
    return views.alias(x) if aliased and not steps else x


def _positions(index: tuple[Any, ...], most: int) -> tuple[Any, ...] | None:
    """The arrays of an index of at most so many tensors of positions, of one shape and dtype."""
    if not 0 < len(index) <= most or not isinstance(index[0], TensorBase):
        return None
    first = index[0]._array
    if first.dtype != np.int64 or not first.ndim:
        return None
    for part in index:
        if not isinstance(part, TensorBase) or part.device is not index[0].device:
            return None
        if part._array.shape != first.shape or part._array.dtype != first.dtype:
            return None
    return tuple([part._array for part in index])


def _is_known(part: Any) -> bool:
    """Whether a part of an index says by itself which view it means."""
    if part.__class__ is slice:
        return {part.start.__class__, part.stop.__class__, part.step.__class__} <= _BOUNDS
    return part.__class__ in _BOUNDS or part is Ellipsis


_BOUNDS = frozenset((int, type(None)))  # what the ends of a slice may be


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value``: writes into the memory of ``x``; ``value`` is cast and broadcast."""
    if isinstance(value, np.integer):
        value = int(value)
    if not isinstance(value, TensorBase):
        _check_assigned(x.dtype, value)
    if _assigned_plainly(x, index, value):
        return
    if index is False:
        return
    source = base.layout_of(x)
    steps: list[Step] = []
    picks: Picks = {}
    part = locate(source, index, steps, picks)
    if picks:
        target = _viewed(x, steps, aliased=False)
        _put(target, _places(part.shape, picks), value)
        return
    target = x if part == source else getitem(x, index)
    if isinstance(value, TensorBase):
        wanted = tuple(target.shape)
        shape = tuple(value.shape)
        while shape and shape[0] == 1:  # leading dimensions of 1 do not count
            shape = shape[1:]
        word = value.dtype.word
        kind = "CPUBoolType" if word == "Bool" else f"torch.{word}Tensor"
        strides = value._strides[len(value.shape) - len(shape) :]
        layout.expand(Layout(shape, strides, 0), wanted, kind)  # raises where it does not fit
        if not value.shape:
            copying.copy_(target, value, "FillBackward3")
        elif tuple(value.shape) == wanted:
            copying.copy_(target, value)
        else:
            fitting = views.view(value, shape) if len(shape) < len(value.shape) else value
            copying.copy_(target, fitting if shape == wanted else views.expand(fitting, wanted))
    else:
        copying.assign_number(target, value)


def _assigned_plainly(x: Tensor, index: Any, value: Any) -> bool:
    """Write where NumPy means the same and nothing is recorded; False where nothing was done."""
    if isinstance(value, TensorBase):
        if value.dtype is not x.dtype or value.device is not x.device:
            return False
        if not writing.is_apart(value, x):
            return False
        array, operation = value._array, "copy_"
    elif (value.__class__ is float or value.__class__ is int) and x.dtype.is_floating_point:
        array, operation = copying.stored(value, x.dtype), "fill_"
    else:
        return False
    at = index
    if isinstance(index, TensorBase):
        if index.dtype is not bool_ or isinstance(value, TensorBase):
            return False
        if index.shape != x.shape or not writing.is_apart(index, x) or not x.shape:
            return False
        at, operation = index._array, "index_put_"
    elif not all(map(_is_plain_part, index if index.__class__ is tuple else (index,))):
        return False
    try:
        return writing.write_plainly(x, array, operation, at)
    except (IndexError, ValueError):  # whose words PyTorch has others for
        return False


def _is_plain_part(part: Any) -> bool:
    """Whether a part of an index is an integer, or a slice from left to right without steps."""
    if part.__class__ is slice:
        return (
            part.step is None and part.start.__class__ in _BOUNDS and part.stop.__class__ in _BOUNDS
        )
    return part.__class__ is int


def _filled_where(target: Tensor, found: places.Places, value: Any) -> bool:
    """Write a number on a device where a mask of its own is true; False where nothing was done.

    As in PyTorch the host need not wait to learn how many elements that are. The number may also
    be a tensor of the host.
    """
    mask, number = found[-1], value
    if isinstance(value, TensorBase):
        if value.device is not CPU or value._array.size != 1:
            return False
        number = value._array.item()
    if not target._is_contiguous:
        return False
    if mask.__class__ is np.ndarray or mask.dtype != bool or target.dtype is bool_:
        return False
    if backend_of(mask) is not target.device.backend or history.check_write(target, value):
        return False
    shape = [1] * (len(found) - 1) + [*mask.shape]
    mask = mask.reshape(shape + [1] * (len(target.shape) - len(shape)))
    at = target._xp.broadcast_to(mask, tuple(target.shape))
    if number is not value:
        check_value(number, target.dtype)
    writing.write(target, copying.stored(number, target.dtype), "index_put", at=at)
    return True


def _put(target: Tensor, found: places.Places, value: Any) -> None:
    """Write a checked number or a tensor at places of ``target``."""
    device, dtype = target.device, target.dtype
    if device is not CPU and _filled_where(target, found, value):
        return
    at = _on(device, found)
    if not isinstance(value, TensorBase):
        places.put(target, at, copying.stored(value, dtype))
        return
    while value.shape and value.shape[0] == 1:  # leading 1s do not count
        value = views.select(value, 0, 0)
    if value.shape:
        refuse_mix(target.device, value.device, into=target.device)
    elif value.dtype is not dtype and any(
        place.__class__ is not slice and place.dtype == bool for place in found
    ):  # for a mask one number is cast, as in a fill
        check_value(value.item(), dtype)
        value = copying.to(value, dtype, None)
    places.put(target, at, moved(value, target.device))


def _check_assigned(dtype: DType, value: Any) -> None:
    """Raise unless ``value`` is a number that ``dtype`` holds; float16 turns large ones to inf."""
    if isinstance(value, (bool, int, float)):
        if not isinstance(value, float) and not -(2**63) <= value < 2**63:
            raise ValueError("Overflow when unpacking long long")
        if dtype is not float16:
            check_value(value, dtype)
        return
    repair = "x[...] = tk.tensor(...)" if isinstance(value, (list, tuple)) else None
    if isinstance(value, np.ndarray):
        repair = "x[...] = tk.from_numpy(array)"
    elif isinstance(value, np.generic):
        repair = "x[...] = value.item()"
    raise TypeError(
        message(f"can't assign a {type_name(value)} to a torch.{dtype.word}Tensor", repair=repair)
    )


def locate(source: Layout, index: Any, steps: list[Step], picks: Picks) -> Layout:
    """The layout of the view that ``x[index]`` is or picks from; ``source`` is that of ``x``.

    The view operations that lead there are appended to ``steps``, what picks goes to ``picks``.
    """
    if not isinstance(index, tuple) and _means_tuple(index):
        index = tuple(index)
    if not isinstance(index, tuple):
        index = _pick(index)
        if (
            not isinstance(index, (slice, TensorBase))
            and not is_array(index)
            and index is not None
            and index is not Ellipsis
        ):
            position = _position(index)
            _refuse_scalar_index(source, position)
            return _select(source, 0, position, 0, steps)
        if isinstance(index, slice) and not source.shape:
            _bounds(index)  # a step of 0 is the first complaint
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        index = (index,)
    else:
        index = tuple(_pick(part) for part in index)
    n_dims = len(source.shape)
    n_named = sum(map(_dims_named, index))
    if n_named > n_dims:
        raise IndexRangeError(
            f"too many indices for tensor of dimension {n_dims}",
            f"The index names {n_named} dimensions.",
            index=n_named,
            dim=n_dims,
            size=n_dims,
        )
    return _walk(source, index, n_dims - n_named, steps, picks)


def _walk(
    source: Layout, index: tuple[Any, ...], n_skipped: int, steps: list[Step], picks: Picks
) -> Layout:
    result, dim = source, 0
    for place, part in enumerate(index):
        if part is Ellipsis:
            dim += n_skipped
        elif is_array(part):
            if part.dtype == bool and not part.ndim:  # a new dimension, taken once or never
                result = layout.unsqueeze(result, layout.wrap_dim(dim, len(result.shape) + 1))
                steps.append((views.unsqueeze, (dim,)))
                part = np.zeros(int(part), np.int64)
            if dim >= len(result.shape):  # after a second `...`
                raise IndexError(
                    f"too many indices for tensor of dimension {len(result.shape)} (got {dim + 1})"
                )
            picks[dim] = part
            dim += part.ndim if part.dtype == bool else 1
        elif part is None:
            # A second `...` skips once more, and may skip beyond the end.
            result = layout.unsqueeze(result, layout.wrap_dim(dim, len(result.shape) + 1))
            steps.append((views.unsqueeze, (dim,)))
            dim += 1
        elif isinstance(part, slice):
            start, stop, step = _bounds(part)
            dim = layout.wrap_dim(dim, len(result.shape))
            before = result
            result = layout.slice_(result, dim, start, stop, step)
            if result != before or len(index) == 1:
                steps.append((views.slice, (dim, start, stop, step)))
            dim += 1
        else:
            position = _position(part)
            dim = layout.wrap_dim(dim, len(result.shape))
            result = _select(result, dim, position, place, steps)
    return result


def _select(source: Layout, dim: int, index: int, place: int, steps: list[Step]) -> Layout:
    result = layout.select(source, dim, index, place)
    steps.append((views.select, (dim, index)))
    return result


def _refuse_scalar_index(source: Layout, position: int) -> None:
    if not source.shape and position != 0:
        raise IndexRangeError(
            f"index {position} is out of bounds for dimension 0 with size 0",
            index=position,
            dim=0,
            size=0,
        )
    if not source.shape:
        raise IndexRangeError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number",
            repair="x.item()",
            index=0,
            dim=0,
            size=0,
        )


def _dims_named(part: Any) -> int:
    """How many dimensions of the tensor one part of an index speaks of."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if is_array(part) and part.dtype == bool else 1


def _means_tuple(index: Any) -> bool:
    """Whether a list is meant as a tuple: a short one that holds more than numbers."""
    if not isinstance(index, (list, range)) or len(index) >= 32:
        return False
    kinds = (TensorBase, list, tuple, range, np.ndarray, slice)
    return any(isinstance(part, kinds) or part is None or part is Ellipsis for part in index)


def _pick(part: Any) -> Any:
    """Positions as an int64 array or a mask as a bool array; all else as it is."""
    if part.__class__ is int or part.__class__ is slice or part is None or part is Ellipsis:
        return part
    if isinstance(part, TensorBase):
        dtype = part.dtype
        if dtype.name not in ("int64", "int32", "uint8", "bool") and (
            part.shape or dtype.is_floating_point
        ):
            raise IndexError(
                message(
                    "tensors used as indices must be long, int, byte or bool tensors",
                    f"This one is {dtype}.",
                    repair="index.long()",
                )
            )
        if dtype.name in ("bool", "uint8"):
            return part._array.astype(bool, copy=False)
        return part._array.astype(np.int64, copy=False) if part.shape else part
    if isinstance(part, bool):
        return np.asarray(part)
    if isinstance(part, (list, tuple, range, np.ndarray, str, bytes)):
        array = np.asarray(part)
        if array.dtype.kind in "US":
            kind = "str" if array.dtype.kind == "U" else "bytes"
            raise TypeError(
                message(
                    f"new(): invalid data type '{kind}'",
                    "Valid are integers, slices, ..., None, and masks, lists or tensors of these.",
                )
            )
        if array.dtype.kind not in "biuf":
            raise DTypeError(f"Could not infer dtype of {type_name(array.flat[0])}")
        if array.dtype == bool:
            return array
        return array.astype(np.int64) if array.ndim else int(array)
    return part


def _places(shape: Any, picks: Picks) -> tuple[Any, ...]:
    """The picks as NumPy wants them, after a check against the shape of what they pick from."""
    for dim, pick in picks.items():
        for place, size in enumerate(pick.shape) if pick.dtype == bool else ():
            if size != shape[dim + place]:
                raise IndexRangeError(
                    f"The shape of the mask {sizes(pick.shape)} at index {place} does not "
                    f"match the shape of the indexed tensor {sizes(shape)} at index "
                    f"{dim + place}",
                    index=place,
                    dim=dim + place,
                    size=shape[dim + place],
                )
    if len(picks) > 1:  # a mask among others is the positions of what it keeps
        picks = {
            dim + place: positions
            for dim, pick in picks.items()
            for place, positions in enumerate(pick.nonzero() if pick.dtype == bool else (pick,))
        }
        try:
            np.broadcast_shapes(*[pick.shape for pick in picks.values()])
        except ValueError:
            shapes = ", ".join(sizes(pick.shape) for pick in picks.values())
            raise IndexError(
                message(
                    "shape mismatch: indexing tensors could not be broadcast together with shapes "
                    + shapes,
                )
            ) from None
    return tuple(picks.get(dim, slice(None)) for dim in range(max(picks) + 1))


def _on(device: Device, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Places where they are needed: masks and positions of the host are sent to a device."""
    for place in found:
        is_foreign = place.__class__ is not np.ndarray and is_array(place)
        if is_foreign and backend_of(place) is not device.backend:
            raise DeviceMismatchError(
                "indices should be either on cpu or on the same device as the indexed tensor "
                f"({device})",
                repair=f"x[index.to('{device}')]",
            )
    if device is CPU:
        return found
    sent: list[Any] = []
    has_mask = False  # then it is the only pick
    for place in found:
        # a device looks for the places of a mask once: how many there are, the host must know
        is_mask = place.__class__ is not slice and place.dtype == bool
        has_mask = has_mask or is_mask
        for each in place.nonzero() if is_mask else (place,):
            if each.__class__ is np.ndarray:
                each = device.backend.from_host(np.ascontiguousarray(each), "index")
            sent.append(each)
    return places.Inside(sent) if has_mask else tuple(sent)


def _bounds(part: slice) -> tuple[int, int, int]:
    def bound(value: Any, default: int) -> int:
        if value is None:
            return default
        try:
            return operator.index(value)
        except TypeError:
            raise TypeError(
                "slice indices must be integers or None or have an __index__ method"
            ) from None

    step = bound(part.step, 1)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError(
            message(
                "step must be greater than zero",
                f"The step is {step}. A view that runs backwards would need a negative stride, "
                "which PyTorch's tensors do not have.",
            )
        )
    return bound(part.start, 0), bound(part.stop, 2**63 - 1), step


def _position(part: Any) -> int:
    """The integer that one part of an index stands for."""
    if isinstance(part, TensorBase):
        return int(part.device.backend.item(part._array, "index"))
    try:
        position = operator.index(part)
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got {type_name(part).removeprefix('numpy.')})"
        ) from None
    if not -(2**63) <= position < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return position


def index_put_(x: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """``x[indices] = values``, or ``+=``; unlike with ``x[indices] += values``, positions add up
    where they repeat."""
    if not isinstance(indices, (tuple, list)):
        raise must_be("index_put_", "indices", 1, "tuple of Tensors", indices)
    need_tensors(indices, 0)
    need_tensor("index_put_", values, "values", 2)
    picks: Picks = {}
    locate(base.layout_of(x), tuple(indices), [], picks)
    device = x.device
    if values.shape or values.device is not CPU:  # else it travels as a number
        refuse_mix(device, values.device, into=device)
    at = _on(device, _places(tuple(x.shape), picks))
    places.put(x, at, values, bool(accumulate))
    return x
