"""Choosing between elements: where, nonzero, and what formulas need of the kind."""

import math
from typing import Any

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU
from tensorkit.errors import DTypeError
from tensorkit.ops import results
from tensorkit.ops.arguments import check_value, need_tensor, no_such_call
from tensorkit.ops.moving import together
from tensorkit.ops.notation import op
from tensorkit.ops.operands import as_array, as_operand, promoted_type
from tensorkit.quiet import quietly


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """``input`` where ``condition`` is true, ``other`` elsewhere; shapes broadcast.

    Both may be tensors or numbers; their dtypes are promoted. Raises unless ``condition`` is a
    bool tensor. Without them it is ``nonzero(condition, as_tuple=True)``.

    >>> x = tk.tensor([-1., 2.])
    >>> tk.where(x > 0, x, 0.)
    tensor([0., 2.])
    """
    if state.on_arrays and not isinstance(condition, TensorBase):
        return _choose(condition, input, other)
    plain = _plain_choice(condition, input, other)
    if plain is not None:
        return plain
    if input is other is None:
        need_tensor("where", condition, "condition")
        return nonzero(condition, as_tuple=True)
    condition, input, other = together(condition, input, other)
    operands = [as_operand(value) for value in (input, other)]
    if not isinstance(condition, TensorBase) or None in operands:
        raise no_such_call(
            "where",
            tuple(value for value in (condition, input, other) if value is not None),
            "(Tensor condition, Tensor or Number input, Tensor or Number other)",
        )
    if condition.dtype is not dtypes.bool_:
        raise DTypeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.word}",
            repair="tk.where(condition != 0, x, y)",
        )
    first, second = (operand for operand in operands if operand is not None)
    dtype = promoted_type((first, second))
    for each in (first, second):
        if each.is_number and dtype is not dtypes.float16:  # which takes it as inf
            check_value(each.array, dtype)
    shape = layout.broadcast_shapes(
        layout.broadcast_shapes(tuple(condition.shape), first.shape), second.shape
    )
    chosen = [quietly(as_array, each, dtype) for each in (first, second)]
    array = results.run(_choose.definition.forward, condition._xp, condition._array, *chosen)
    pairs = [(tuple(condition.shape), condition._strides)]
    pairs += [(each.shape, each.strides) for each in (first, second) if not each.is_number]
    strides = layout.result_strides(shape, pairs)
    result = base.place(array, strides)
    values = {"condition": condition, "x": input, "y": other}
    return results.recorded(_choose.definition, result, values)


def _plain_choice(condition: Any, input: Any, other: Any) -> Tensor | None:
    """The result for contiguous tensors of the CPU of one floating-point dtype, and numbers."""
    tensors = [x for x in (input, other) if isinstance(x, TensorBase)]
    if not tensors or not isinstance(condition, TensorBase) or state.inference or base.watch:
        return None
    dtype, arrays = tensors[0]._array.dtype, [condition._array]
    for x in (input, other):
        if isinstance(x, TensorBase):
            arrays.append(x._array)
        elif x.__class__ is float and -60_000 < x < 60_000:
            arrays.append(dtype.type(x))
        else:
            return None
    if dtype.char not in "fd" or arrays[0].dtype != bool:
        return None
    if any(array.dtype is not dtype for array in arrays[1:]):
        return None
    if not all(isinstance(x, (_ndarray, dtype.type)) and x.flags.c_contiguous for x in arrays):
        return None
    try:
        chosen = results.run(_choose.definition.forward, _xp, *arrays)
    except ValueError:  # shapes that do not fit
        return None
    result = base.new(base.contiguous(chosen))
    return results.recorded(
        _choose.definition, result, {"condition": condition, "x": input, "y": other}
    )


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero: a row for each, or a tensor per dimension.

    >>> tk.nonzero(tk.tensor([[1, 0], [0, 2]]))
    tensor([[0, 0],
            [1, 1]])
    """
    need_tensor("nonzero", input)
    array, xp = input._array, input._xp
    if as_tuple and not array.ndim:
        array = array.reshape(1)
    if not array.ndim:
        found = xp.zeros((0, int(bool(array))), xp.int64)
    else:
        found = np.array(array.nonzero()) if xp is np else xp.stack(xp.nonzero(array))
    n_dims, count = found.shape
    result = results.finished(base.place(found.T, (1, count)))
    if not as_tuple:
        return result
    columns = (layout.Layout((count,), (1,), dim * count) for dim in range(n_dims))
    return tuple(results.finished(base.view_of(result, column)) for column in columns)


@op(kind="function")
def _choose(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    """``where`` on arrays."""
    if x.__class__ is _ndarray and _is_zero(y):
        return kept(xp, condition, x)
    if y.__class__ is _ndarray and _is_zero(x):
        return kept(xp, xp.logical_not(condition), y)
    return xp.where(condition, x, y)


_MANY = 2**8
_xp = CPU.backend.xp
_ndarray = _xp.ndarray  # what is slow there is not slow on a GPU


def _is_zero(value: Any) -> bool:
    return getattr(value, "ndim", 0) == 0 and value == 0 and not math.copysign(1, value) < 0


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


_choose.grad(
    node="WhereBackward0",
    x=lambda g, condition: where(condition, g, 0.0),
    y=lambda g, condition: where(condition, 0.0, g),
)


@op(kind="function")
def zeros_as(xp: Any, x: Any) -> Any:
    """Zeros in the shape of ``x``: the gradient of what does not depend on it."""
    return xp.zeros(x.shape, x.dtype)
