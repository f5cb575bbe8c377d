"""Copies and writes: clone, contiguous, conversion between dtypes, copy_, fill_."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorkit import base, layout
from tensorkit.base import TensorBase
from tensorkit.devices import quietly
from tensorkit.dtypes import DType, float16
from tensorkit.errors import ShapeError, message, must_be
from tensorkit.layout import Ints
from tensorkit.ops import general
from tensorkit.ops.general import as_number, need_tensor

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor


def clone(input: "Tensor") -> "Tensor":
    """Copy with memory of its own; the order of the elements in memory is kept where it is dense.

    >>> a = tk.tensor([1, 2])
    >>> b = tk.clone(a)
    >>> b[0] = 9
    >>> a
    tensor([1, 2])
    """
    need_tensor("clone", input)
    form = input._form
    return converted(input, form.dtype)


def converted(x: TensorBase, dtype: DType, strides: Ints | None = None) -> "Tensor":
    """A copy of ``x`` with this dtype and, unless ``strides`` are given, the same memory order."""
    form = x._form
    shape = tuple(form.shape)
    if strides is None:
        strides = layout.dense_strides(shape, form.strides)
    array = form.device.backend.allocate(dtype.numpy, shape, strides)
    quietly(np.copyto, array, x._array, casting="unsafe")
    return base.new(array, base.form_of(form.device, dtype, shape, strides))


def contiguous(x: "Tensor") -> "Tensor":
    """``x`` itself if it is contiguous, otherwise a contiguous copy."""
    if x._form.is_contiguous:
        return x
    return converted(x, x._form.dtype, layout.contiguous_strides(tuple(x._form.shape)))


def copy_(target: "Tensor", source: Any) -> "Tensor":
    """Write the values of ``source`` into ``target``; they are broadcast and cast."""
    if not isinstance(source, TensorBase):
        number = as_number(source)
        if number is None:
            raise must_be("copy_", "other", 1, "Tensor", source)
        general.check_overlap(target)
        general.write(target, np.asarray(number))  # cast as a tensor would be, without a check
        return target
    if source is target:
        return target
    general.check_overlap(target, source)
    own, other = tuple(target._form.shape), tuple(source._form.shape)
    general.check_output_shape(own, layout.broadcast_shapes(own, other))
    general.write(target, source._array)
    return target


def fill_(target: "Tensor", value: Any) -> "Tensor":
    """Set every element of ``target`` to one value: a number or a 0-d tensor."""
    if isinstance(value, TensorBase):
        if value._form.shape:
            n_dims = len(value._form.shape)
            raise ShapeError(
                message(
                    "fill_ only supports 0-dimension value tensor but got tensor with "
                    f"{n_dims} dimensions.",
                    repair="x.copy_(value)",
                ),
                a_shape=(),
                b_shape=tuple(value._form.shape),
            )
        general.write(target, value._array)
        return target
    number = as_number(value)
    if number is None:
        raise TypeError(
            "fill_() received an invalid combination of arguments - got "
            f"({type(value).__name__}), but expected one of:\n"
            " * (Tensor value)\n * (Number value)"
        )
    dtype = target._form.dtype
    if dtype is not float16 or target._array.size != 1:  # PyTorch's shortcut for one element
        general.check_value(number, dtype)
    general.write(target, stored(number, dtype))
    return target


def stored(number: general.Number, dtype: DType) -> Any:
    """A 0-d array of ``number`` as ``dtype`` stores it: truncated, wrapped, or as a truth value."""
    if dtype.category == 1 and isinstance(number, float):
        number = int(number)
    return quietly(general.number_array, number, dtype)
