"""Copies and writes: clone, contiguous, conversion between dtypes, copy_, fill_."""

from typing import Any

import numpy as np

from tensorkit import base, layout
from tensorkit.autograd.inplace import check_write, written
from tensorkit.autograd.node import Rule, record
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Device
from tensorkit.dtypes import DType, float16
from tensorkit.errors import ShapeError, must_be
from tensorkit.errstate import silently
from tensorkit.layout import Ints
from tensorkit.ops import writing
from tensorkit.ops.arguments import Number, as_number, check_value, need_tensor
from tensorkit.ops.promotion import number_array
from tensorkit.ops.selection import zeros_as
from tensorkit.ops.transfer import moved


def clone(input: Tensor) -> Tensor:
    """Copy with memory of its own; the order of the elements in memory is kept where it is dense.

    >>> a = tk.tensor([1, 2])
    >>> b = tk.clone(a)
    >>> b[0] = 9
    >>> a
    tensor([1, 2])
    """
    need_tensor("clone", input)
    return record(_CLONE, converted(input, input.dtype), {"x": input})


def to_dtype(x: Tensor, dtype: DType) -> Tensor:
    """A copy of ``x`` with this dtype."""
    return record(_CONVERSION, converted(x, dtype), {"x": x})


def to(x: Tensor, dtype: DType | None, device: Device | None, copy: bool = False) -> Tensor:
    """``x`` with this dtype and on this device; itself if nothing changes, unless ``copy``."""
    dtype, device = dtype or x.dtype, device or x.device
    if dtype is x.dtype and device is x.device and not copy:
        return x
    if device is not x.device:
        # PyTorch converts where the data are, then moves them
        return moved(x if dtype is x.dtype else to_dtype(x, dtype), device)
    return to_dtype(x, dtype)


def laid_out(x: Tensor, strides: Ints) -> Tensor:
    """A copy of ``x`` with these strides."""
    copied = x.device.backend.allocate(x._array.dtype, x._array.shape, strides)
    copied[...] = x._array
    return record(_CLONE, base.place(copied, strides), {"x": x})


# The engine casts a gradient to the dtype it is needed in, so a cast has the formula of a copy.
_CLONE = Rule("clone", "CloneBackward0", ("x",), {"x": lambda g: g})
_CONVERSION = Rule("to", "ToCopyBackward0", ("x",), {"x": lambda g: g})
_WRITES = {
    node: Rule(name, node, ("x", "y"), {"x": lambda g: zeros_as(g), "y": lambda g: g}, option)
    for name, node, option in (
        ("copy_", "CopyBackwards", None),
        ("zero_", "ZeroBackward0", "y"),
        ("fill_", "FillBackward2", "y"),
        ("fill_", "FillBackward3", None),
    )
}


def converted(x: TensorBase, dtype: DType) -> Tensor:
    """A copy of ``x`` with this dtype, in row-major order where elements are repeated."""
    array = x._array
    order = "C" if 0 in array.strides else "K"
    return base.new(silently(array.astype, dtype.numpy, order))


def contiguous(x: Tensor) -> Tensor:
    """``x`` itself if it is contiguous, otherwise a contiguous copy."""
    if layout.is_contiguous(x._array.shape, x._strides):
        return x
    return laid_out(x, layout.contiguous_strides(tuple(x.shape)))


def copy_(target: Tensor, source: Any, node: str = "CopyBackwards") -> Tensor:
    """Write the values of ``source`` into ``target``; they are broadcast and cast.

    ``node`` is what PyTorch calls the record; it calls a copy of a 0-d tensor a filling.
    """
    if not isinstance(source, TensorBase):
        number = as_number(source)
        if number is None:
            raise must_be("copy_", "other", 1, "Tensor", source)
        check_write(target)
        writing.check_overlap(target)
        # cast as a tensor would be, without a check
        return _written(target, np.asarray(number), number, "copy", node)
    tracked = check_write(target, source)
    if target.device is not source.device:
        alike = target._is_contiguous and target.shape == source.shape
        if alike and source.device is CPU and not tracked and base.watch is None:
            # converted where the data are, as in PyTorch; so it needs no memory on the way
            array = silently(source._array.astype, target.dtype.numpy, copy=False)
            target.device.backend.write_from_host(target._array, array, "copy_")
            written(target, "copy_")
            return target
        source = moved(source, target.device, "copy_")
    if source is not target:
        writing.check_overlap(target, source)
    own, other = tuple(target.shape), tuple(source.shape)
    writing.check_output_shape(own, layout.broadcast_shapes(own, other))
    return _written(target, source._array, source, "copy", node)


def zero_(target: Tensor) -> Tensor:
    """Set every element of ``target`` to zero."""
    return _written(target, stored(0, target.dtype), 0, "zero", "ZeroBackward0")


def fill_(target: Tensor, value: Any) -> Tensor:
    """Set every element of ``target`` to one value: a number or a 0-d tensor."""
    if isinstance(value, TensorBase):
        if value.shape:
            raise ShapeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{len(value.shape)} dimensions.",
                repair="x.copy_(value)",
            )
        array = value._array
        if value.device is not CPU and value.device is not target.device:
            array = value.device.backend.to_host(array, "fill_")
        return _written(target, array, value, "fill", "FillBackward3")
    number = as_number(value)
    if number is None:
        raise must_be("fill_", "value", 1, "Tensor or a number", value)
    if target.dtype is not float16 or target._array.size != 1:  # PyTorch's shortcut
        check_value(number, target.dtype)
    return _written(target, stored(number, target.dtype), number, "fill", "FillBackward2")


def _written(target: Tensor, array: Any, value: Any, operation: str, node: str) -> Tensor:
    """Write an array, that of ``value``, into ``target``."""
    tracked = check_write(target, value)
    rule = _WRITES[node] if tracked else None
    writing.write(target, array, operation, rule, {"x": target, "y": value})
    return target


def filled(x: TensorBase, number: float) -> Tensor:
    """A contiguous tensor of the shape, dtype and device of ``x``, filled with one number."""
    array = x._xp.empty(x._array.shape, x._array.dtype)
    array.fill(number)
    return base.new(array)


def assign_number(target: Tensor, number: Number) -> None:
    """``target[...] = number``, which has been checked."""
    writing.check_overlap(target)
    _written(target, stored(number, target.dtype), number, "fill", "FillBackward3")


def stored(number: Number, dtype: DType) -> Any:
    """A 0-d array of ``number`` as ``dtype`` stores it: truncated, wrapped, or as a truth value."""
    if dtype.category == 1 and isinstance(number, float):
        number = int(number)
    return silently(number_array, number, dtype)
