"""Choosing by a mask: where, masked_fill, nonzero."""

from typing import Any

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd.grad_mode import state
from tensorkit.autograd.node import finished, record
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError, ShapeError, must_be
from tensorkit.errstate import silently
from tensorkit.ops import writing
from tensorkit.ops.arguments import as_number, check_value, need_tensor
from tensorkit.ops.promotion import as_array, is_operand, number_array, result_type
from tensorkit.ops.transfer import together


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """``input`` where ``condition`` is true, ``other`` elsewhere; shapes broadcast.

    Both may be tensors or numbers; their dtypes are promoted. Raises unless ``condition`` is a
    bool tensor. Without them it is ``nonzero(condition, as_tuple=True)``.

    >>> x = tk.tensor([-1., 2.])
    >>> tk.where(x > 0, x, 0.)
    tensor([0., 2.])
    """
    if state.on_arrays and not isinstance(condition, TensorBase):
        return _where(condition, input, other)
    if input is other is None:
        return nonzero(condition, as_tuple=True)
    condition, input, other = together(condition, input, other)
    _need_mask("where", condition, "tk.where(condition != 0, x, y)")
    for place, (name, value) in enumerate((("input", input), ("other", other)), 2):
        if not is_operand(value):
            raise must_be("where", name, place, "Tensor or a number", value)
    dtype, shape = result_type(input, other), tuple(condition.shape)
    for each in (input, other):
        if isinstance(each, TensorBase):
            shape = layout.broadcast_shapes(shape, tuple(each.shape))
        elif dtype is not dtypes.float16:  # which takes it as inf
            check_value(each, dtype)
    chosen = [silently(as_array, each, dtype) for each in (input, other)]
    array = silently(_where.definition.forward, condition._xp, condition._array, *chosen)
    values = {"condition": condition, "input": input, "other": other}
    return record(_where.definition.rules[None], base.new(array), values)


@op(dtypes={"condition": "integral", "input": "any", "other": "any"})
def _where(xp: Any, condition: Any, input: Any, other: Any) -> Any:
    return xp.where(condition, input, other)


_where.grad(
    node="WhereBackward0",
    input=lambda g, condition: where(condition, g, 0.0),
    other=lambda g, condition: where(condition, 0.0, g),
)


_MANY = 2**8


def kept(xp: Any, condition: Any, x: Any) -> Any:
    """``x`` where ``condition`` is true, 0 elsewhere, by masking bits if they are many.

    ``xp.where`` stumbles over every change of a random condition and takes up to ten times as
    long; a product would make nan of inf.
    """
    if condition.shape != x.shape or x.dtype.kind != "f" or not x.flags.c_contiguous:
        return xp.where(condition, x, x.dtype.type(0))
    if x.size < _MANY:
        result = xp.zeros(x.shape, x.dtype)
        xp.copyto(result, x, where=condition)
        return result
    masks = condition.astype(f"u{x.itemsize}")
    xp.negative(masks, out=masks)
    masks &= x.view(masks.dtype)
    return masks.view(x.dtype)


def _need_mask(function: str, mask: Any, repair: str) -> None:
    need_tensor(function, mask, "mask", 2)
    if mask.dtype is not dtypes.bool_:
        raise DTypeError(
            f"{function} expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{mask.dtype.word}",
            repair=repair,
        )


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``input`` with ``value``, a number or 0-d tensor, where ``mask`` is true; they broadcast.

    >>> tk.masked_fill(tk.tensor([1., 2., 3.]), tk.tensor([True, False, True]), 0)
    tensor([0., 2., 0.])
    """
    need_tensor("masked_fill", input)
    _need_mask("masked_fill", mask, "mask.bool()")
    layout.broadcast_shapes(tuple(mask.shape), tuple(input.shape))
    number = as_number(value)
    if number is not None:
        check_value(number, input.dtype)
        return _fill_with_number(input, mask, value=number_array(number, input.dtype)[()])
    need_tensor("masked_fill", value, "value", 3)
    if value.shape:
        raise ShapeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value.shape)} dimension(s).",
            repair="tk.where(mask, value, x)",
        )
    if value.device is CPU and value.dtype is not input.dtype:
        check_value(value.item(), input.dtype)
    return _fill_with_tensor(input, mask, value.to(input.dtype))


masked_fill_ = writing.in_place(masked_fill)


def _filled(xp: Any, x: Any, mask: Any, value: Any) -> Any:
    filled = xp.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)).copy()
    xp.copyto(filled, value, where=mask)
    return filled


@op(dtypes={"input": "any", "mask": "integral"})
def _fill_with_number(xp: Any, input: Any, mask: Any, *, value: Any) -> Any:
    return _filled(xp, input, mask, value)


@op(dtypes={"input": "any", "mask": "integral", "value": "any"})
def _fill_with_tensor(xp: Any, input: Any, mask: Any, value: Any) -> Any:
    return _filled(xp, input, mask, value)


_fill_with_number.grad(
    node="MaskedFillBackward0",
    input=lambda g, mask: _fill_with_number(g, mask, value=0),
)
_fill_with_tensor.grad(
    node="MaskedFillBackward1",
    input=lambda g, mask: _fill_with_number(g, mask, value=0),
    value=lambda g, mask: _fill_with_number(g, ~mask, value=0),
)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero: a row for each, or a tensor per dimension.

    >>> tk.nonzero(tk.tensor([[1, 0], [0, 2]]))
    tensor([[0, 0],
            [1, 1]])
    """
    need_tensor("nonzero", input)
    array, xp = input._array, input._xp
    found = (array if array.ndim else array.reshape(1)).nonzero()
    if as_tuple:
        return tuple([finished(base.new(each.copy())) for each in found])
    rows = xp.stack(found, 1)
    return finished(base.new(rows if array.ndim else rows[:, :0].copy()))


@op()
def zeros_as(xp: Any, input: Any) -> Any:
    """Zeros in the shape of ``input``: the gradient of what does not depend on it."""
    return xp.zeros(input.shape, input.dtype)
