"""Comparisons and logic: bool tensors from two tensors, or a tensor and a number."""

from functools import partial
from typing import Any

from tensorkit import layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.dispatch import op
from tensorkit.dtypes import DType
from tensorkit.errors import DTypeError
from tensorkit.ops.arguments import check_value, need_two
from tensorkit.ops.promotion import as_array, is_operand, result_type
from tensorkit.ops.selection import where
from tensorkit.ops.writing import in_place

_logic = partial(op, promote=True, numbers=False)
_comparison = partial(op, promote=True)


@_comparison(symbol="==", ufunc="equal")
def eq(xp: Any, input: Any, other: Any) -> Any:
    """Whether elements are equal. A nan is equal to nothing.

    >>> tk.eq(tk.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return xp.equal(input, other)


@_comparison(symbol="!=", ufunc="not_equal")
def ne(xp: Any, input: Any, other: Any) -> Any:
    """Whether elements differ.

    >>> tk.ne(tk.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return xp.not_equal(input, other)


@_comparison(symbol="<", ufunc="less")
def lt(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is less than ``y``, element by element.

    >>> tk.lt(tk.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return xp.less(input, other)


@_comparison(symbol="<=", ufunc="less_equal")
def le(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is less than or equal to ``y``, element by element.

    >>> tk.le(tk.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return xp.less_equal(input, other)


@_comparison(symbol=">", ufunc="greater")
def gt(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is greater than ``y``, element by element.

    >>> tk.gt(tk.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return xp.greater(input, other)


@_comparison(symbol=">=", ufunc="greater_equal")
def ge(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is greater than or equal to ``y``, element by element.

    >>> tk.ge(tk.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return xp.greater_equal(input, other)


@_logic(ufunc="logical_and")
def logical_and(xp: Any, input: Any, other: Any) -> Any:
    """Whether both elements are true, that is, not zero.

    >>> tk.logical_and(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([ True, False])
    """
    return xp.logical_and(input, other)


@_logic(ufunc="logical_or")
def logical_or(xp: Any, input: Any, other: Any) -> Any:
    """Whether one of the elements, or both, are true, that is, not zero.

    >>> tk.logical_or(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([True, True])
    """
    return xp.logical_or(input, other)


@_logic(ufunc="logical_xor")
def logical_xor(xp: Any, input: Any, other: Any) -> Any:
    """Whether exactly one of the elements is true, that is, not zero.

    >>> tk.logical_xor(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([False,  True])
    """
    return xp.logical_xor(input, other)


@op(elementwise=True)
def logical_not(xp: Any, input: Any) -> Any:
    """Whether each element is zero.

    >>> tk.logical_not(tk.tensor([0., 2.]))
    tensor([ True, False])
    """
    return (
        xp.logical_not(input) if input.dtype.kind == "b" else xp.equal(input, 0)
    )  # which is faster


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same values (one answer, not one each).

    >>> tk.equal(tk.tensor([1, 2]), tk.tensor([1, 2]))
    True
    """
    need_two("equal", input, other)
    return input.shape == other.shape and _all(eq(input, other), "equal")


def _all(answers: Tensor, why: str) -> bool:
    return bool(answers.device.backend.item(answers._array.all(), why))


def _check_tolerances(
    input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool
) -> None:
    layout.broadcast_shapes(tuple(input.shape), tuple(other.shape))
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise DTypeError(f"{name} must be greater than or equal to zero, but got {value:g}")


@op(explain=_check_tolerances, elementwise=True)
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
    if input.dtype.kind == "b":
        return close
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
    return xp.maximum(input, other)


@_logic(ufunc="minimum")
def minimum(xp: Any, input: Any, other: Any) -> Any:
    """The smaller of two elements; nan if one of them is nan.

    >>> tk.minimum(tk.tensor([1., 5.]), tk.tensor([3., 2.]))
    tensor([1., 2.])
    """
    return xp.minimum(input, other)


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

    The limits are numbers or tensors that broadcast, or None; where they cross, ``max`` wins.

    >>> tk.clamp(tk.tensor([-2., 0.5, 9.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    limits = [each for each in (min, max) if each is not None]
    n_tensors = len([each for each in limits if isinstance(each, TensorBase)])
    if not isinstance(input, TensorBase) or n_tensors not in (0, len(limits)):
        raise TypeError("clamp(): limits must be two numbers or two tensors")
    if not limits:
        raise DTypeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if n_tensors:
        return _clamp_to_tensors(input, min, max)
    dtype = result_type(input, *limits)
    for each in limits:
        check_value(each, dtype)
    low, high = (None if each is None else _number(each, dtype) for each in (min, max))
    return _clamp(input if input.dtype is dtype else input.to(dtype), min=low, max=high)


def _number(value: Any, dtype: DType) -> Any:
    return as_array(value, dtype) if is_operand(value) else None


def _within(xp: Any, x: Any, low: Any, high: Any) -> Any:
    if low is not None:
        x = xp.maximum(low, x)  # the second of two zeros is taken: x keeps its sign
    return x if high is None else xp.minimum(high, x)


@op(elementwise=True, name="clamp")
def _clamp(xp: Any, input: Any, *, min: Any, max: Any) -> Any:
    return _within(xp, input, min, max)


@op(promote=True, tensors=3, name="clamp")
def _clamp_to_tensors(xp: Any, input: Any, min: Any = None, max: Any = None) -> Any:
    return _within(xp, input, min, max)


def _pass_inside(g: Any, x: Any, low: Any, high: Any) -> Any:
    if low is None:
        return where(x <= high, g, 0.0)
    return where(x >= low if high is None else (x >= low) & (x <= high), g, 0.0)


def _pass_below(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(x < low if high is None else (x < low) & (low < high), g, 0.0)


def _pass_above(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(x > high if low is None else (x > high) | (high < low), g, 0.0)


_clamp.grad(
    node="ClampBackward1", input=lambda g, input, min, max: _pass_inside(g, input, min, max)
)
_clamp_to_tensors.grad(
    input=lambda g, input, min, max: _pass_inside(g, input, min, max),
    min=lambda g, input, min, max: _pass_below(g, input, min, max),
    max=lambda g, input, min, max: _pass_above(g, input, min, max),
)
clamp_ = in_place(clamp)
