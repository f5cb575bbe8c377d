"""Comparisons, logic and choices: where, masked_fill, maximum, clamp."""

from functools import partial
from typing import Any

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd.node import add_node, mark_inference
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch import op
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.errors import DTypeError, ShapeError, message, must_be
from tensorkit.ops import arguments, inplace
from tensorkit.ops.copying import on_one_device
from tensorkit.ops.inplace import in_place
from tensorkit.thread_state import state


@seen_by_modes
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
    condition, input, other = on_one_device(condition, input, other)
    _need_mask("where", condition, "tk.where(condition != 0, x, y)")
    for position, (name, value) in enumerate((("input", input), ("other", other)), 2):
        if not arguments.is_operand(value):
            raise must_be("where", name, position, "Tensor or a number", value)
    dtype, shape = arguments.result_type(input, other), tuple(condition.shape)
    for each in (input, other):
        if isinstance(each, TensorBase):
            shape = layout.broadcast_shapes(shape, tuple(each.shape))
        elif dtype is not dtypes.float16:  # which takes it as inf
            arguments.check_value(each, dtype)
    chosen = [without_warnings(arguments.as_array, each, dtype) for each in (input, other)]
    array = without_warnings(_where.definition.forward, condition._xp, condition._array, *chosen)
    values = {"condition": condition, "input": input, "other": other}
    return add_node(_where.definition.rules[None], base.new(array), values)


@op(dtypes={"condition": "integral", "input": "any", "other": "any"})
def _where(xp: Any, condition: Any, input: Any, other: Any) -> Any:
    is_array = input.__class__ is np.ndarray and condition.dtype == bool
    if is_array and input.dtype.kind == "f" and condition.size >= _MANY:
        given = [x for x in (condition, input, other) if x.__class__ is np.ndarray]
        alike = [x.flags.c_contiguous and x.shape == condition.shape for x in given]
        if all(alike) and given[-1].dtype == input.dtype:
            return _chosen_by_bits(condition, input, other)
    return xp.where(condition, input, other)


_where.grad(
    node="WhereBackward0",
    input=lambda g, condition: where(condition, g, 0.0),
    other=lambda g, condition: where(condition, 0.0, g),
)


_MANY = 2**8


def _chosen_by_bits(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where ``condition`` is true, ``y`` elsewhere, of large arrays of one dtype.

    ``np.where`` branches at each element, and at a random condition needs five times as long; a
    product of numbers would make nan of inf.
    """
    result, dtype = np.empty(x.shape, x.dtype), f"u{x.itemsize}"
    bits, own, other = (each.view(dtype) for each in (result, x, np.asarray(y, x.dtype)))
    if other.ndim or other:
        np.bitwise_xor(own, other, out=bits)
        bits *= condition
        bits ^= other
    else:
        np.multiply(own, condition, out=bits)
    return result


def _need_mask(function: str, mask: Any, repair: str) -> None:
    arguments.need_tensor(function, mask, "mask", 2)
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
    arguments.need_tensor("masked_fill", input)
    _need_mask("masked_fill", mask, "mask.bool()")
    layout.broadcast_shapes(tuple(mask.shape), tuple(input.shape))
    number = arguments.as_number(value)
    if number is not None:
        arguments.check_value(number, input.dtype)
        return _fill_with_number(input, mask, arguments.number_array(number, input.dtype)[()])
    arguments.need_tensor("masked_fill", value, "value", 3)
    if value.shape:
        raise ShapeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value.shape)} dimension(s).",
            repair="tk.where(mask, value, x)",
        )
    if value.device is CPU and value.dtype is not input.dtype:
        arguments.check_value(value.item(), input.dtype)
    return _fill_with_tensor(input, mask, value.to(input.dtype))


masked_fill_ = inplace.in_place(masked_fill)


def _filled(xp: Any, input: Any, mask: Any, value: Any) -> Any:
    filled = xp.broadcast_to(input, np.broadcast_shapes(input.shape, mask.shape)).copy()
    xp.copyto(filled, value, where=mask)
    return filled


_filling = partial(
    op, dtypes={"input": "any", "mask": "integral", "value": "any"}, name="masked_fill"
)
_fill_with_number, _fill_with_tensor = _filling(tensors=2)(_filled), _filling()(_filled)
for _each in (_fill_with_number, _fill_with_tensor):
    _each.grad(
        node=f"MaskedFillBackward{int(_each is _fill_with_tensor)}",
        input=lambda g, mask: _fill_with_number(g, mask, 0),
        value=lambda g, mask: _fill_with_number(g, ~mask, 0),
    )


@seen_by_modes
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero: a row for each, or a tensor per dimension.

    >>> tk.nonzero(tk.tensor([[1, 0], [0, 2]]))
    tensor([[0, 0],
            [1, 1]])
    """
    arguments.need_tensor("nonzero", input)
    array, xp = input._array, input._xp
    found = (array if array.ndim else array.reshape(1)).nonzero()
    if as_tuple:
        return tuple([mark_inference(base.new(each.copy())) for each in found])
    rows = xp.stack(found, 1)
    return mark_inference(base.new(rows if array.ndim else rows[:, :0].copy()))


@op()
def zeros_as(xp: Any, x: Any) -> Any:
    """Zeros in the shape of ``x``: the gradient of what does not depend on it."""
    return xp.zeros(x.shape, x.dtype)


_logic = partial(op, promote=True, numbers=False)
_comparison = partial(op, promote=True)


@_comparison(symbol="==", ufunc="equal")
def eq(xp: Any, input: Any, other: Any) -> Any:
    """Whether elements are equal. A nan is equal to nothing.

    >>> tk.eq(tk.tensor([1, 2]), 2)
    tensor([False,  True])
    """


@_comparison(symbol="!=", ufunc="not_equal")
def ne(xp: Any, input: Any, other: Any) -> Any:
    """Whether elements differ.

    >>> tk.ne(tk.tensor([1, 2]), 2)
    tensor([ True, False])
    """


@_comparison(symbol="<", ufunc="less")
def lt(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is less than ``y``, element by element.

    >>> tk.lt(tk.tensor([1, 2]), 2)
    tensor([ True, False])
    """


@_comparison(symbol="<=", ufunc="less_equal")
def le(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is less than or equal to ``y``, element by element.

    >>> tk.le(tk.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """


@_comparison(symbol=">", ufunc="greater")
def gt(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is greater than ``y``, element by element.

    >>> tk.gt(tk.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """


@_comparison(symbol=">=", ufunc="greater_equal")
def ge(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is greater than or equal to ``y``, element by element.

    >>> tk.ge(tk.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """


@_logic(ufunc="logical_and")
def logical_and(xp: Any, input: Any, other: Any) -> Any:
    """Whether both elements are true, that is, not zero.

    >>> tk.logical_and(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([ True, False])
    """


@_logic(ufunc="logical_or")
def logical_or(xp: Any, input: Any, other: Any) -> Any:
    """Whether one of the elements, or both, are true, that is, not zero.

    >>> tk.logical_or(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([True, True])
    """


@_logic(ufunc="logical_xor")
def logical_xor(xp: Any, input: Any, other: Any) -> Any:
    """Whether exactly one of the elements is true, that is, not zero.

    >>> tk.logical_xor(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([False,  True])
    """


@op(ufunc="logical_not")
def logical_not(xp: Any, input: Any) -> Any:
    """Whether each element is zero.

    >>> tk.logical_not(tk.tensor([0., 2.]))
    tensor([ True, False])
    """


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same values (one answer, not one each).

    >>> tk.equal(tk.tensor([1, 2]), tk.tensor([1, 2]))
    True
    """
    arguments.need_two("equal", input, other)
    return input.shape == other.shape and _all(eq(input, other), "equal")


def _all(answers: Tensor, reason: str) -> bool:
    return bool(answers.device.backend.item(answers._array.all(), reason))


def _check_tolerances(
    input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool
) -> None:
    layout.broadcast_shapes(tuple(input.shape), tuple(other.shape))
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise DTypeError(f"{name} must be greater than or equal to zero, but got {value:g}")


@op(check=_check_tolerances, elementwise=True)
def isclose(
    xp: Any,
    input: Any,
    other: Any,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Any:
    """Whether ``|input - other| <= atol + rtol * |other|``, element by element.

    >>> tk.isclose(tk.tensor([1., 2.]), tk.tensor([1., 2.1]))
    tensor([ True, False])
    """
    if not (rtol >= 0 and atol >= 0):
        raise ValueError
    close = xp.equal(input, other)
    if equal_nan:
        close = close | ((input != input) & (other != other))
    if input.dtype.kind != "f":
        input, other = input.astype(xp.float64), other.astype(xp.float64)
    allowed = other.dtype.type(atol) + xp.absolute(other.dtype.type(rtol) * other)
    return close | (xp.isfinite(other) & (xp.absolute(input - other) <= allowed))


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether ``isclose`` holds for all elements.

    >>> tk.allclose(tk.tensor([0.1]) + 0.2, tk.tensor([0.3]))
    True
    """
    return _all(isclose(input, other, rtol, atol, equal_nan), "allclose")


# The larger and the smaller. The gradient goes to the one that was taken, half and half to equals.


@_logic(ufunc="maximum")
def maximum(xp: Any, input: Any, other: Any) -> Any:
    """The larger of two elements; nan if one of them is nan.

    >>> tk.maximum(tk.tensor([1., 5.]), tk.tensor([3., 2.]))
    tensor([3., 5.])
    """


@_logic(ufunc="minimum")
def minimum(xp: Any, input: Any, other: Any) -> Any:
    """The smaller of two elements; nan if one of them is nan.

    >>> tk.minimum(tk.tensor([1., 5.]), tk.tensor([3., 2.]))
    tensor([1., 2.])
    """


def _share(g: Any, loses: Any, ties: Any) -> Any:
    return where(loses, 0.0, where(ties, g / 2, g))


maximum.grad(
    input=lambda g, input, other: _share(g, input < other, input == other),
    other=lambda g, input, other: _share(g, input > other, input == other),
)
minimum.grad(
    input=lambda g, input, other: _share(g, input > other, input == other),
    other=lambda g, input, other: _share(g, input < other, input == other),
)


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``min`` below ``min``, ``max`` above ``max``, each element itself between them.

    The limits are numbers or None; where they cross, ``max`` wins.

    >>> tk.clamp(tk.tensor([-2., 0.5, 9.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    arguments.need_tensor("clamp", input)
    limits = [each for each in (min, max) if each is not None]
    if not limits:
        raise DTypeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    for each in limits:
        if arguments.as_number(each) is None:
            repair = "tk.maximum(x, min)" if max is None else "tk.minimum(tk.maximum(x, min), max)"
            repair = "tk.minimum(x, max)" if min is None else repair
            raise TypeError(message("clamp(): limits must be numbers", repair=repair))
    dtype = arguments.result_type(input, *limits)
    for each in limits:
        arguments.check_value(each, dtype)
    low, high = (None if each is None else arguments.as_array(each, dtype) for each in (min, max))
    return _clamp(input if input.dtype is dtype else input.to(dtype), min=low, max=high)


@op(elementwise=True, name="clamp")
def _clamp(xp: Any, input: Any, *, min: Any, max: Any) -> Any:
    if min is not None:
        input = xp.maximum(min, input)  # the second of two zeros is taken: x keeps its sign
    return input if max is None else xp.minimum(max, input)


def _pass_inside(g: Any, input: Any, min: Any, max: Any) -> Any:
    if min is None:
        return where(input <= max, g, 0.0)
    return where(input >= min if max is None else (input >= min) & (input <= max), g, 0.0)


_clamp.grad(node="ClampBackward1", input=_pass_inside)
clip = clamp
clip_ = clamp_ = in_place(clamp)
