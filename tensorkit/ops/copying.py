"""Copies and writes: clone, contiguous, conversion between dtypes, copy_, fill_."""

from typing import Any

import numpy as np

from tensorkit import base, layout
from tensorkit.autograd import history
from tensorkit.autograd.history import record
from tensorkit.autograd.modes import state
from tensorkit.autograd.rules import Rule
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Device
from tensorkit.dtypes import DType, float16
from tensorkit.errors import ShapeError, must_be
from tensorkit.layout import Ints
from tensorkit.ops import results, writing
from tensorkit.ops.arguments import Number, as_number, check_value, need_tensor
from tensorkit.ops.moving import moved
from tensorkit.ops.operands import number_array
from tensorkit.ops.selection import zeros_as
from tensorkit.quiet import quietly


def clone(input: Tensor) -> Tensor:
    """Copy with memory of its own; the order of the elements in memory is kept where it is dense.

    >>> a = tk.tensor([1, 2])
    >>> b = tk.clone(a)
    >>> b[0] = 9
    >>> a
    tensor([1, 2])
    """
    need_tensor("clone", input)
    return _recorded(_CLONE, converted(input, input.dtype), input)


def to_dtype(x: Tensor, dtype: DType) -> Tensor:
    """A copy of ``x`` with this dtype."""
    return _recorded(_CONVERSION, converted(x, dtype), x)


def to(x: Tensor, dtype: DType | None, device: Device | None, copy: bool = False) -> Tensor:
    """``x`` with this dtype and on this device; itself if nothing changes, unless ``copy``."""
    dtype, device = dtype or x.dtype, device or x.device
    if dtype is x.dtype and device is x.device and not copy:
        return x
    if device is not x.device:
        # PyTorch converts where the data are, then moves them
        return moved(x if dtype is x.dtype else to_dtype(x, dtype), device)
    return _recorded(_CONVERSION, converted(x, dtype), x)


def laid_out(x: Tensor, strides: Ints) -> Tensor:
    """A copy of ``x`` with these strides."""
    return _recorded(_CLONE, converted(x, x.dtype, strides), x)


# The engine casts a gradient to the dtype it is needed in, so a cast has the formula of a copy.
_CLONE = Rule("clone", "CloneBackward0", ("x",), {"x": lambda g: g})
_CONVERSION = Rule("to", "ToCopyBackward0", ("x",), {"x": lambda g: g})
_COPY = Rule("copy_", "CopyBackwards", ("x", "y"), {"x": lambda g: zeros_as(g), "y": lambda g: g})
_ZERO = Rule("zero_", "ZeroBackward0", ("x",), {"x": lambda g: zeros_as(g)})
_FILLS = {
    node: Rule("fill_", node, ("x", "y"), {"x": lambda g: zeros_as(g), "y": lambda g: g}, option)
    for node, option in (("FillBackward2", "y"), ("FillBackward3", None))
}


def _recorded(rule: Rule, result: Tensor, x: TensorBase) -> Tensor:
    return results.finished(result) if x._node is None else record(rule, result, {"x": x})


def converted(x: TensorBase, dtype: DType, strides: Ints | None = None) -> Tensor:
    """A copy of ``x`` with this dtype and, unless ``strides`` are given, the same memory order."""
    array = x._array
    if strides is None:
        if array.__class__ is np.ndarray and array.flags.c_contiguous:
            return base.new(results.run(array.astype, dtype.numpy, "K"))
        strides = layout.dense_strides(array.shape, x._strides)
    copied = x.device.backend.allocate(dtype.numpy, array.shape, strides)
    quietly(x._xp.copyto, copied, array, casting="unsafe")
    return base.place(copied, strides)


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
        rule = _COPY if history.check_write(target) else None
        writing.check_overlap(target)
        # cast as a tensor would be, without a check
        writing.write(target, np.asarray(number), "copy", rule, {"x": target, "y": number})
        return target
    if (
        (source._node is None or not state.grad)
        and (source._storage is None or target._storage is None)
        and (target.shape == source.shape or not source.shape)
        and target.device is source.device
        and writing.write_plainly(target, source._array, "copy_")
    ):
        return target
    tracked = history.check_write(target, source)
    if target.device is not source.device:
        alike = target._is_contiguous and target.shape == source.shape
        if alike and source.device is CPU and not tracked and base.watch is None:
            # converted where the data are, as in PyTorch; so it needs no memory on the way
            array = results.run(source._array.astype, target.dtype.numpy, copy=False)
            target.device.backend.write_from_host(target._array, array, "copy_")
            history.written(target, "copy_")
            return target
        source = moved(source, target.device, "copy_")
    if source is not target:
        writing.check_overlap(target, source)
    own, other = tuple(target.shape), tuple(source.shape)
    writing.check_output_shape(own, layout.broadcast_shapes(own, other))
    rule = {"CopyBackwards": _COPY, **_FILLS}[node] if tracked else None
    writing.write(target, source._array, "copy", rule, {"x": target, "y": source})
    return target


_NOUGHT = np.zeros((), np.uint8)


def zero_(target: Tensor) -> Tensor:
    """Set every element of ``target`` to zero."""
    if writing.write_plainly(target, _NOUGHT, "zero_"):
        return target
    rule = _ZERO if history.check_write(target) else None
    writing.write(target, stored(0, target.dtype), "zero", rule, {"x": target})
    return target


def fill_(target: Tensor, value: Any) -> Tensor:
    """Set every element of ``target`` to one value: a number or a 0-d tensor."""
    tracked = history.check_write(target, value)
    if isinstance(value, TensorBase):
        if value.shape:
            n_dims = len(value.shape)
            raise ShapeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{n_dims} dimensions.",
                repair="x.copy_(value)",
                a_shape=(),
                b_shape=tuple(value.shape),
            )
        rule = _FILLS["FillBackward3"] if tracked else None
        array = value._array
        if value.device is not CPU and value.device is not target.device:
            array = value.device.backend.to_host(array, "fill_")
        writing.write(target, array, "fill", rule, {"x": target, "y": value})
        return target
    number = as_number(value)
    if number is None:
        raise TypeError(
            "fill_() received an invalid combination of arguments - got "
            f"({type(value).__name__}), but expected one of:\n"
            " * (Tensor value)\n * (Number value)"
        )
    dtype = target.dtype
    if dtype is not float16 or target._array.size != 1:  # PyTorch's shortcut for one element
        check_value(number, dtype)
    if writing.write_plainly(target, stored(number, dtype), "fill_"):
        return target
    rule = _FILLS["FillBackward2"] if tracked else None
    writing.write(target, stored(number, dtype), "fill", rule, {"x": target, "y": value})
    return target


def filled(x: TensorBase, number: float) -> Tensor:
    """A contiguous tensor of the shape, dtype and device of ``x``, filled with one number."""
    array = x._xp.empty(x._array.shape, x._array.dtype)
    array.fill(number)
    return base.new(array)


def assign_number(target: Tensor, number: Number) -> None:
    """``target[...] = number``, which has been checked."""
    tracked = history.check_write(target)
    writing.check_overlap(target)
    rule = _FILLS["FillBackward3"] if tracked else None
    values = stored(number, target.dtype)
    writing.write(target, values, "fill", rule, {"x": target, "y": number})


def stored(number: Number, dtype: DType) -> Any:
    """A 0-d array of ``number`` as ``dtype`` stores it: truncated, wrapped, or as a truth value."""
    if dtype.is_floating_point and -60_000 < number < 60_000:  # nearly always
        return np.array(number, dtype.numpy)
    if dtype.category == 1 and isinstance(number, float):
        number = int(number)
    return quietly(number_array, number, dtype)
