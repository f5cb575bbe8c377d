"""Masks: writing and picking where a bool tensor is true."""

from typing import Any

import numpy as np

from tensorkit import dtypes, layout
from tensorkit.autograd import history
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, refuse_mix
from tensorkit.errors import DTypeError, ShapeError
from tensorkit.layout import Ints
from tensorkit.ops import copying, writing
from tensorkit.ops.arguments import as_number, check_value, need_tensor, no_such_call
from tensorkit.ops.moving import joining
from tensorkit.ops.notation import op
from tensorkit.ops.operands import number_array


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``input`` with ``value``, a number or 0-d tensor, where ``mask`` is true; they broadcast.

    >>> tk.masked_fill(tk.tensor([1., 2., 3.]), tk.tensor([True, False, True]), 0)
    tensor([0., 2., 0.])
    """
    need_tensor("masked_fill", input)
    value = _fill_value("masked_fill", input, mask, value)
    layout.broadcast_shapes(tuple(mask.shape), tuple(input.shape))
    if isinstance(value, TensorBase):
        return _fill_with_tensor(input, mask, value)
    return _fill_with_number(input, mask, value=value)


def masked_fill_(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write ``value`` where ``mask`` is true, in place."""
    if _is_simple(x, mask, value):
        array = copying.stored(value, x.dtype)
        if writing.write_plainly(x, array, "masked_fill_", mask._array):
            return x
    value = _fill_value("masked_fill_", x, mask, value)
    is_tensor = isinstance(value, TensorBase)
    x, mask = joining(x, mask)
    if is_tensor and value.device is not CPU:  # else it travels as a number
        refuse_mix(x.device, value.device, into=x.device)
    tracked = history.check_write(x, value)
    writing.check_overlap(x)
    own, other = tuple(x.shape), tuple(mask.shape)
    writing.check_output_shape(own, layout.broadcast_shapes(own, other))
    operation = _fill_with_tensor if is_tensor else _fill_with_number
    array = value._array if is_tensor else value
    at = x._xp.broadcast_to(mask._array, own)
    rule = operation.definition.rules[None] if tracked else None
    values = {"x": x, "mask": mask, "value": value}
    writing.write(x, array, "masked_fill", rule, values, at)
    return x


def _is_simple(x: Any, mask: Any, value: Any) -> bool:
    """Whether a number that needs no check is written through a mask of the same shape."""
    return (
        isinstance(x, TensorBase)
        and writing.is_apart(mask, x)
        and mask.dtype is dtypes.bool_
        and mask.shape == x.shape
        and value.__class__ is float
        and x.dtype.is_floating_point
        and -60_000 < value < 60_000
    )


def _fill_value(function: str, x: TensorBase, mask: Any, value: Any) -> Any:
    """What is to be filled in: a 0-d tensor, or a number as an array of the dtype of ``x``."""
    number = None if isinstance(value, TensorBase) else as_number(value)
    if not isinstance(mask, TensorBase) or (number is None and not isinstance(value, TensorBase)):
        raise no_such_call(
            function, (mask, value), "(Tensor mask, Tensor value)", "(Tensor mask, Number value)"
        )
    if mask.dtype is not dtypes.bool_:
        raise DTypeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{mask.dtype.c_name.replace('uint8_t', 'unsigned char')}",
            repair="mask.bool()",
        )
    if number is not None:
        check_value(number, x.dtype)
        return number_array(number, x.dtype)[()]
    if value.shape:
        raise ShapeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value.shape)} dimension(s).",
            repair="tk.where(mask, value, x)",
        )
    if value.device is CPU and value.dtype is not x.dtype:
        check_value(value._array.item(), x.dtype)
    return value


def _filled(xp: Any, x: Any, mask: Any, value: Any) -> Any:
    if x.shape == mask.shape:
        filled = x.copy()
    else:
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


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of ``input`` where ``mask`` is true, as a vector; they broadcast.

    >>> tk.masked_select(tk.tensor([1, 2, 3]), tk.tensor([True, False, True]))
    tensor([1, 3])
    """
    need_tensor("masked_select", input)
    need_tensor("masked_select", mask, "mask", 2)
    if mask.dtype is not dtypes.bool_:
        raise DTypeError("masked_select: expected BoolTensor for mask", repair="mask.bool()")
    layout.broadcast_shapes(tuple(mask.shape), tuple(input.shape))
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
