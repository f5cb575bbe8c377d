"""Reading and writing by index: ``x[index]`` and ``x[index] = value``.

An index is read from left to right. Integers, slices and ``None`` make one view after the other, as
in PyTorch. Masks, lists and tensors of positions are collected on the way; at the end they pick
elements of that view, and what is picked is a copy.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorkit import base, direct_path, errors, layout
from tensorkit.autograd.node import Rule
from tensorkit.autograd.versions import bump_version, check_write, make_view
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of, check_same_device, is_array
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch_mode import seen_by_modes, through_modes
from tensorkit.dtypes import DType, bool_, float16
from tensorkit.ops import copying, inplace, views
from tensorkit.ops.arguments import as_number, check_value, need_tensor, stored
from tensorkit.ops.comparison import zeros_as
from tensorkit.ops.copying import moved
from tensorkit.ops.views import check_index, overwriting, read_at, refuse_position
from tensorkit.thread_state import state

Picks = dict[int, Any]  # of a dimension: the positions or the mask that pick from it
_ndarray = np.ndarray
_NUMBERS = frozenset((int, bool, float))
_PLAIN = frozenset((int, slice))
_VIEWS = frozenset((int, slice, type(None), type(...)))


def getitem(x: Tensor, index: Any) -> Tensor:
    """``x[index]``: a view, unless masks or positions pick from it."""
    found = _view_at_once(x, index)
    if found is not None:
        return found
    if state.dispatch_modes:  # as in seen_by_modes, without its call
        return through_modes(getitem, (x, index), {}, records=True)
    picks: Picks = {}
    target = _viewed(x, index, picks)
    if picks:
        arrays = _as_arrays(target, picks)
        return read_at(target, index=arrays if target._node is None else _own(arrays))
    return views.alias(x) if target is x else target


def _view_at_once(x: Tensor, index: Any) -> Tensor | None:
    """What NumPy makes of an index of integers and slices in one step; None of what has to be read.

    Without it the benchmark's rows x[3], x[3, 2], x[1:3], x[:, 1:3] and x[1:3] with a gradient take
    1.3 to 2.2 times as long, and the mean of all rows 1.035 times.
    """
    array, kind, rule = x._array, index.__class__, views.SELECT
    if array.__class__ is not _ndarray or not direct_path.is_open:
        return None
    try:
        if kind is int:
            shown = array[index, ...]
        elif kind is slice and (index.step is None or index.step > 0):
            shown, rule = array[index], views.SLICE
        elif kind is tuple and x._node is None and _PLAIN.issuperset(map(type, index)):
            shown = array[(*index, ...)]
        else:
            return None
    except (IndexError, TypeError):
        return None
    if not shown.size or (kind is tuple and min((0, *shown.strides)) < 0):
        return None
    return make_view(x, shown, rule, () if x._node is None else (array.shape, (index, ...)))


@seen_by_modes
def setitem(x: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value``: writes into the memory of ``x``; ``value`` is cast and broadcast."""
    is_tensor = isinstance(value, TensorBase)
    if not is_tensor:
        value = _checked_number(x.dtype, value)
    if index is False:
        return
    picks: Picks = {}
    target = _viewed(x, index, picks, for_assignment=True)
    if picks:
        _put(target, picks, value)
    elif is_tensor:
        node = "CopyBackwards" if value.ndim else "FillBackward3"
        if value.ndim and value.shape != target.shape:
            value = _without_leading_ones(value)
            if value.shape != target.shape:
                value = views.expand(value, target._array.shape)
        copy_(target, value, node)
    else:
        inplace.check_overlap(target)
        _written(target, stored(value, x.dtype), value, "fill", "FillBackward3")


def _without_leading_ones(x: Tensor) -> Tensor:
    """A value to write in fewer dimensions: leading sizes of 1 do not count."""
    shape = tuple(x.shape)
    while shape and shape[0] == 1:
        shape = shape[1:]
    return views.view(x, shape) if len(shape) < x.ndim else x


def _viewed(x: Tensor, index: Any, picks: Picks, for_assignment: bool = False) -> Tensor:
    """The view that ``x[index]`` is or picks from; what picks from it is added to ``picks``."""
    parts: Sequence[Any] = index if index.__class__ is tuple else (index,)
    n_others = x._array.ndim - len(parts)
    if n_others < 0 or not _PLAIN.issuperset(map(type, parts)):
        parts, n_others = _read(x, index)
    dim = 0
    for position, part in enumerate(parts):
        if part.__class__ is int:
            size = x._array.shape[dim]
            if not -size <= part < size:
                refuse_position(part, position, size, f"Valid indices are {-size} to {size - 1}.")
            x = views.part(x, dim, part if part >= 0 else part + size, views.SELECT)
        elif part.__class__ is slice:
            size = x._array.shape[dim]
            start, stop, step = _bounds(part, size)
            # PyTorch makes no view of what is whole
            if stop - start != size or step > 1 or (len(parts) == 1 and not for_assignment):
                x = views.part(x, dim, slice(start, stop, step), views.SLICE)
            dim += 1
        elif part is Ellipsis:
            dim += n_others
        elif part is None or not part.ndim:
            x = views.unsqueeze(x, dim)
            if part is not None:  # True or False, of which one or nothing is picked
                picks[dim] = np.zeros(int(part), np.int64)
            dim += 1
        else:
            picks[dim] = part
            dim += _dims_named(part)
    return x


def _bounds(part: slice, size: int) -> tuple[int, int, int]:
    """Where a slice begins and ends, from left to right, and its step."""
    start, stop, step = part.indices(size)
    if step < 0:
        raise ValueError(
            errors.message(
                "step must be greater than zero",
                f"The step is {step}. A view that runs backwards would need a negative stride, "
                "which PyTorch's tensors do not have.",
            )
        )
    return start, stop if stop > start else start, step


def _read(x: Tensor, index: Any) -> tuple[Sequence[Any], int]:
    """The parts of an index, and how many dimensions no part names."""
    if isinstance(index, list) and len(index) < 32 and not {*map(type, index)} <= _NUMBERS:
        index = tuple(index)  # a list of more than numbers is meant as a tuple
    parts: Sequence[Any] = index if isinstance(index, tuple) else (index,)
    parts = [part if part.__class__ in _VIEWS else _as_part(part) for part in parts]
    n_dims = x._array.ndim
    n_named = sum([_dims_named(part) for part in parts])
    if not n_dims and isinstance(index, slice):
        _bounds(index, 0)  # a step of 0 is the first complaint
    is_bare = not isinstance(index, (tuple, TensorBase))
    if not n_dims and is_bare and parts[0].__class__ is int:
        raise errors.IndexRangeError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number",
            repair="x.item()",
        )
    if n_named > n_dims or sum([part is Ellipsis for part in parts]) > 1:
        raise errors.IndexRangeError(
            f"too many indices for tensor of dimension {n_dims}",
            f"The index names {n_named} dimensions. One `...` stands for all others.",
        )
    return parts, n_dims - n_named


def _as_part(part: Any) -> Any:
    """A part of an index as an int, an int64 array of positions, or a bool array: a mask."""
    if isinstance(part, TensorBase):
        part = part._array
    elif isinstance(part, (bool, list, tuple, range)):
        part = np.asarray(part)
        part = part.astype(np.int64) if not part.size else part
    elif not is_array(part):
        try:
            return operator.index(part)
        except TypeError:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
                f"are valid indices (got {errors.type_name(part).removeprefix('numpy.')})"
            ) from None
    if part.dtype == bool or part.dtype == np.uint8:
        return part.astype(bool, copy=False)
    if part.dtype.kind == "i" and not part.ndim:
        return int(backend_of(part).item(part, "index"))
    if part.dtype.kind != "i" or part.itemsize < 4:
        raise IndexError(
            errors.message(
                "tensors used as indices must be long, int, byte or bool tensors",
                f"This one is {part.dtype}.",
                repair="index.long()",
            )
        )
    return part.astype(np.int64, copy=False)


def _dims_named(part: Any) -> int:
    """How many dimensions of the tensor one part of an index speaks of."""
    if part.__class__ in _VIEWS:
        return part is not None and part is not Ellipsis
    return part.ndim if part.dtype == bool else 1


def _as_arrays(x: Tensor, picks: Picks, one_number: bool = False) -> tuple[Any, ...]:
    """What picks from ``x`` as an index of its array, on its device.

    A mask becomes positions, so that a device counts them once; but for ``one_number`` to write,
    it need not count them: there the index is one mask for all elements.
    """
    shape, device = x._array.shape, x.device
    found: Picks = {}
    for dim, pick in picks.items():
        if pick.__class__ is not np.ndarray and backend_of(pick) is not device.backend:
            raise errors.DeviceMismatchError(
                "indices should be either on cpu or on the same device as the indexed tensor "
                f"({device})",
                repair=f"x[index.to('{device}')]",
            )
        is_mask = pick.dtype == bool
        for at, size in enumerate(pick.shape if is_mask else ()):
            if size != shape[dim + at]:
                raise errors.IndexRangeError(
                    f"The shape of the mask {errors.sizes(pick.shape)} at index {at} does not "
                    f"match the shape of the indexed tensor {errors.sizes(shape)} at index "
                    f"{dim + at}",
                )
        one_mask = is_mask and one_number and len(picks) == 1
        for at, each in enumerate(pick.nonzero() if is_mask and not one_mask else (pick,)):
            if device is not CPU and each.__class__ is np.ndarray:
                each = device.backend.from_host(np.ascontiguousarray(each), "index")
            if device is not CPU and not is_mask:
                size = shape[dim]
                device.backend.device_assert_inside(each, -size, size, outside(size))
            found[dim + at] = each
        if one_mask:
            full = (1,) * dim + pick.shape + (1,) * (len(shape) - dim - pick.ndim)
            return (x._xp.broadcast_to(found[dim].reshape(full), shape),)
    return tuple([found.get(dim, slice(None)) for dim in range(max(found) + 1)])


# Elements that an index picks


_INDEX_PUT = overwriting("index_put").definition.rules[None]


def _own(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies for a node to keep: the caller may change the tensors before backward."""
    return tuple([each if each.__class__ is slice else each.copy() for each in index])


def outside(size: int) -> str:
    """What a device tells of a position that lay outside."""
    return f"A position was outside of a dimension of size {size}"


def _put(x: Tensor, picks: Picks, value: Any) -> None:
    """Write a checked number or a tensor at what picks from ``x``."""
    dtype, is_tensor = x.dtype, isinstance(value, TensorBase)
    if is_tensor:
        value = _without_leading_ones(value)
        if value.ndim:
            check_same_device(x.device, value.device, into=x.device)
        if value.device is not CPU or value._node is not None:
            value = moved(value, x.device)
    index = _as_arrays(x, picks, one_number=not getattr(value, "ndim", 0))
    if not is_tensor:
        array = stored(value, dtype)
    elif value.dtype is dtype:
        array = value._array
    elif getattr(index[0], "dtype", None) == "bool":  # a mask: one number is cast, as in a fill
        check_value(value.item(), dtype)
        value = copying.to(value, dtype, None)
        array = value._array
    else:
        raise errors.DTypeError(
            "Index put requires the source and destination dtypes match, got "
            f"{dtype.word} for the destination and {value.dtype.word} for the source.",
            repair=f"x[index] = value.to(tk.{dtype.name})",
        )
    tracked = check_write(x, value)
    index = _own(index) if tracked else index
    values = {"x": x, "value": value, "index": index}
    rule = _INDEX_PUT if tracked else None
    try:
        inplace.write(x, array, "index_put", rule, values, index)
    except IndexError:
        check_index(x, index)
    except ValueError as error:
        raise errors.ShapeError(str(error).replace("array", "tensor")) from None


def _checked_number(dtype: DType, value: Any) -> Any:
    """``value`` if it is a number that ``dtype`` holds; float16 turns large ones to inf."""
    if isinstance(value, np.integer):
        value = int(value)
    if not isinstance(value, (bool, int, float)):
        repair = "x[...] = tk.from_numpy(array)" if is_array(value) else "x[...] = tk.tensor(...)"
        first = f"can't assign a {errors.type_name(value)} to a torch.{dtype.word}Tensor"
        raise TypeError(errors.message(first, repair=repair))
    if not isinstance(value, float) and not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if dtype is not float16:
        check_value(value, dtype)
    return value


@seen_by_modes
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of ``input`` where ``mask`` is true, as a vector; they broadcast.

    >>> tk.masked_select(tk.tensor([1, 2, 3]), tk.tensor([True, False, True]))
    tensor([1, 3])
    """
    shape = layout.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    if mask.dtype is not bool_:
        raise errors.DTypeError("masked_select: expected BoolTensor for mask", repair="mask.bool()")
    return getitem(views.expand(input, shape), views.expand(mask, shape))


# Whole tensors


@seen_by_modes
def copy_(input: Tensor, source: Any, node: str = "CopyBackwards") -> Tensor:
    """Write the values of ``source`` into ``input``; they are broadcast and cast.

    ``node`` is what PyTorch calls the record; it calls a copy of a 0-d tensor a filling.
    """
    number = None if isinstance(source, TensorBase) else as_number(source)
    if number is not None:
        source = base.new(np.asarray(number))
    need_tensor("copy_", source, "other")
    tracked = check_write(input, source)
    if input.device is not source.device:
        alike = input._array.flags.c_contiguous and input.shape == source.shape
        if alike and source.device is CPU and not tracked and not state.origin_recorders:
            # converted where the data are, as in PyTorch; so it needs no memory on the way
            array = without_warnings(source._array.astype, input.dtype.numpy, copy=False)
            input.device.backend.write_from_host(input._array, array, "copy_")
            bump_version(input, "copy_")
            return input
        source = moved(source, input.device, "copy_")
    if source is not input:
        inplace.check_overlap(input, source)
    own, other = tuple(input.shape), tuple(source.shape)
    inplace.check_output_shape(own, layout.broadcast_shapes(own, other))
    return _written(input, source._array, source, "copy", node)


@seen_by_modes
def zero_(input: Tensor) -> Tensor:
    """Set every element of ``input`` to zero."""
    return _written(input, stored(0, input.dtype), 0, "zero", "ZeroBackward0")


@seen_by_modes
def fill_(input: Tensor, value: Any) -> Tensor:
    """Set every element of ``input`` to one value: a number or a 0-d tensor."""
    if isinstance(value, TensorBase):
        if value.shape:
            raise errors.ShapeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{len(value.shape)} dimensions.",
                repair="x.copy_(value)",
            )
        if value.device is not CPU:
            value = moved(value, input.device, "fill_")
        return _written(input, value._array, value, "fill", "FillBackward3")
    number = as_number(value)
    if number is None:
        raise errors.must_be("fill_", "value", 1, "Tensor or a number", value)
    if input.dtype is not float16 or input._array.size != 1:  # PyTorch's shortcut
        check_value(number, input.dtype)
    return _written(input, stored(number, input.dtype), number, "fill", "FillBackward2")


def _written(target: Tensor, array: Any, value: Any, operation: str, node: str) -> Tensor:
    """Write an array, that of ``value``, into ``target``."""
    tracked = check_write(target, value)
    rule = _WRITES[node] if tracked else None
    inplace.write(target, array, operation, rule, {"x": target, "y": value})
    return target


_WRITES = {
    node: Rule(name, node, inputs, {"x": lambda g: zeros_as(g), "y": lambda g: g})
    for name, node, inputs in (
        ("copy_", "CopyBackwards", ("x", "y")),
        ("zero_", "ZeroBackward0", ("x",)),
        ("fill_", "FillBackward2", ("x",)),
        ("fill_", "FillBackward3", ("x", "y")),
    )
}
