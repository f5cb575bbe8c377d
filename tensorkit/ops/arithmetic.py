"""Arithmetic and bits: + - * / // % ** & | ^ and their relatives, one definition each."""

import math
from functools import partial
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError, message
from tensorkit.ops import arguments
from tensorkit.ops.arguments import check_value, need_tensor, result_type
from tensorkit.ops.comparison import where, zeros_as
from tensorkit.ops.pointwise import log


def _check_sum(input: Any, other: Any, alpha: Any) -> None:
    promoted = result_type(input, other)
    if isinstance(alpha, float) and not promoted.is_floating_point:
        raise DTypeError(
            "For integral input tensors, argument alpha must not be a floating point number.",
            f"The result would have dtype {promoted}; alpha is {alpha}.",
            repair="x.float()",
        )
    arguments.as_number(alpha)  # raises where it is too large
    check_value(alpha, promoted)


def _check_difference(input: Any, other: Any, alpha: Any) -> None:
    are_bools = [result_type(each) is dtypes.bool_ for each in (input, other)]
    if all(are_bools):
        raise DTypeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )
    if any(are_bools):
        raise DTypeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    _check_sum(input, other, alpha)


def _scaled(xp: Any, x: Any, alpha: Any) -> Any:
    return x if alpha == 1 else xp.multiply(x, np.asarray(alpha).astype(x.dtype)[()])


@op(promote=True, symbol="+", ufunc="add", check=_check_sum)
def add(xp: Any, input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Sum ``x + alpha * y``, element by element; shapes broadcast.

    >>> tk.add(tk.tensor([1, 2]), 10)
    tensor([11, 12])
    >>> tk.tensor([1., 2.]).add(1., alpha=0.5)
    tensor([1.5000, 2.5000])
    """
    return xp.add(input, _scaled(xp, other, alpha))  # x + y, without alpha, is the ufunc alone


# A formula's parameters name what a node saves. Where shapes were broadcast, the engine adds the
# gradient up again (sum_to_shape), so that no formula has to.
add.grad(
    input=lambda g: g,
    other=lambda g, alpha: g if alpha == 1 else g * alpha,
)


@op(promote=True, symbol="-", ufunc="subtract", dtypes="numeric", check=_check_difference)
def sub(xp: Any, input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Difference ``x - alpha * y``, element by element; shapes broadcast.

    >>> tk.sub(tk.tensor([3., 5.]), tk.tensor([1., 1.]))
    tensor([2., 4.])
    """
    return xp.subtract(input, _scaled(xp, other, alpha))


sub.grad(
    input=lambda g: g,
    other=lambda g, alpha: -g if alpha == 1 else -g * alpha,
)
sub.grad(number="input", node="RsubBackward1", other=lambda g: -g)


@op(promote=True, symbol="*", ufunc="multiply", check=arguments.check_factor)
def mul(xp: Any, input: Any, other: Any) -> Any:
    """Product ``x * y``, element by element; shapes broadcast.

    >>> tk.mul(tk.tensor([1., 2., 3.]), 10)
    tensor([10., 20., 30.])
    """
    return xp.multiply(input, other)


mul.grad(
    input=lambda g, other: g * other,
    other=lambda g, input: g * input,
)


@op(promote=True, symbol="/", ufunc="divide", to_floating=True, check=arguments.check_factor)
def div(xp: Any, input: Any, other: Any) -> Any:
    """Quotient ``x / y``, element by element; integers give the default dtype.

    >>> tk.tensor([1, 2]) / 2
    tensor([0.5000, 1.0000])
    """
    return xp.divide(input, other)


div.grad(
    input=lambda g, other: g / other,
    other=lambda g, input, other: -g * ((input / other) / other),
)


def _check_divisor(x: Any, y: Any) -> None:
    if y.dtype.kind not in "iu" or not x.size:
        return
    backend = backend_of(y)
    if backend is not CPU.backend:  # PyTorch leaves it at what the GPU makes of it
        backend.device_assert(y != 0, "An integer was divided by zero")
    elif not y.all():
        raise DTypeError(
            "ZeroDivisionError",
            "Integers have no infinity: dividing one by zero has no result.",
            repair="x.float()",
        )


# of a number that is rounded a little the quotient may be the next integer
_check_floor = partial(arguments.check_factor, most=0.0)


@op(promote=True, symbol="//", dtypes="numeric", kernel_name="div_floor_cpu", check=_check_floor)
def floor_divide(xp: Any, input: Any, other: Any) -> Any:
    """Quotient rounded down, towards minus infinity; keeps integer dtypes.

    Raises RuntimeError where integers are divided by zero. PyTorch has no derivative for it.

    >>> tk.floor_divide(tk.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    _check_divisor(input, other)
    if other.dtype.kind in "iu" or xp.__name__ == "numpy":
        return xp.floor_divide(input, other)
    # NumPy's rule: start from the exact remainder, so that the quotient is not rounded up.
    rest = xp.fmod(input, other)
    quotient = (input - rest) / other
    quotient = xp.where((rest != 0) & ((other < 0) != (rest < 0)), quotient - 1, quotient)
    floor = xp.floor(quotient)
    floor = xp.where(quotient - floor > 0.5, floor + 1, floor)
    zero = xp.copysign(xp.zeros_like(quotient), input / other)
    floor = xp.where(quotient == 0, zero, floor)
    return xp.where(other == 0, input / other, floor).astype(rest.dtype)


floor_divide.grad(node="NotImplemented")
# the same as a number of which nothing is differentiated, for the gradient of remainder
_whole_quotient = op(promote=True)(floor_divide.definition.forward)
_whole_quotient.grad(input=lambda g: zeros_as(g), other=lambda g: zeros_as(g))


@op(promote=True, symbol="%", dtypes="numeric")
def remainder(xp: Any, input: Any, other: Any) -> Any:
    """What is left of ``x`` after ``floor_divide``; it has the sign of ``y``.

    >>> tk.remainder(tk.tensor([7, -7]), 3)
    tensor([1, 2])
    """
    _check_divisor(input, other)
    rest = xp.remainder(input, other)
    return rest if other.dtype.kind in "iu" else xp.where(rest == 0, xp.copysign(rest, input), rest)


remainder.grad(
    node="RemainderBackward1",
    input=lambda g: g,
    other=lambda g, input, other: -g * _whole_quotient(input, other),
)
remainder.grad(number="other", node="RemainderBackward0", input=lambda g: g)
remainder.grad(number="input", node="NotImplemented")


def _check_exponent(input: Any, exponent: Any) -> None:
    promoted = result_type(input, exponent)
    if isinstance(exponent, TensorBase):
        return
    if not promoted.is_floating_point and exponent < 0:
        raise DTypeError(
            "Integers to negative integer powers are not allowed.",
            f"The result would have dtype {promoted}, which holds no fractions.",
            repair=f"x.float() ** {exponent}",
        )
    if not promoted.is_floating_point or promoted is dtypes.float16:
        check_value(exponent, promoted)


@op(promote=True, symbol="** or pow()", dtypes="numeric", kernel_name="pow", check=_check_exponent)
def pow(xp: Any, input: Any, exponent: Any) -> Any:
    """Power ``x ** y``, element by element.

    Raises RuntimeError for an integer tensor with a negative integer number as exponent.

    >>> tk.pow(tk.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    is_number = isinstance(exponent, np.generic)  # not a tensor
    if input.dtype.kind in "iu":
        if is_number and exponent < 0:
            raise TypeError
        return _integer_power(xp, input, exponent)
    if is_number:
        exact = _EXACT_POWERS.get(float(exponent))
        # the square of what float16 holds may be too large for it
        if exact is not None and not (input.dtype.char == "e" and exponent in (-2, -0.5, 0.5)):
            return exact(xp, input)
    elif exponent.size == 1 and exponent.ndim <= input.ndim:
        # NumPy would take a root, but here -inf and -0. count as positive
        exponent = xp.full_like(input, exponent.reshape(()))
    return xp.power(input, exponent)


# Exponents for which a product is both faster and exact to the last digit.
_EXACT_POWERS = {
    1.0: lambda xp, x: x.copy(),
    2.0: lambda xp, x: x * x,
    3.0: lambda xp, x: x * x * x,
    -2.0: lambda xp, x: 1 / (x * x),
    -1.0: lambda xp, x: 1 / x,
    0.5: lambda xp, x: xp.sqrt(x),
    -0.5: lambda xp, x: 1 / xp.sqrt(x),
}


def _integer_power(xp: Any, x: Any, y: Any) -> Any:
    # A negative exponent leaves only 1 and -1: everything else rounds to 0.
    result = xp.power(x, xp.maximum(y, 0).astype(y.dtype))
    if backend_of(y) is not CPU.backend or (y < 0).any():  # a GPU would have to wait
        parity = xp.where(y % 2 == 0, 1, -1).astype(x.dtype)
        small = xp.where(x == 1, 1, xp.where(x == -1, parity, 0)).astype(x.dtype)
        result = xp.where(y < 0, small, result)
    return result


def _slope(g: Any, input: Any, exponent: Any) -> Any:
    if exponent == 0:
        return zeros_as(g)
    return g * (exponent * (input if exponent == 2 else pow(input, exponent - 1)))


def _exponent_slope(g: Any, input: Any, exponent: Any, out: Any) -> Any:
    # 0 ** y is 0 for every y > 0, and counts as flat at y = 0; the zeros promote the base, as NumPy
    # has logarithms of small integers only in float16
    return g * where((input == 0) & (exponent >= 0), 0.0, out * log(input + zeros_as(g)))


def _exponent_slope_of_number(g: Any, input: float, exponent: Any, out: Any) -> Any:
    if input == 0:
        return g * where(exponent >= 0, 0.0, out * -math.inf)
    return g * (out * (math.log(input) if input > 0 else math.nan))


pow.grad(
    node="PowBackward1",
    input=lambda g, input, exponent: where(
        exponent == 0, 0.0, g * (exponent * pow(input, exponent - 1))
    ),
    exponent=_exponent_slope,
)
pow.grad(number="exponent", node="PowBackward0", input=_slope)
pow.grad(number="input", node="PowBackward2", exponent=_exponent_slope_of_number)


def square(input: Tensor) -> Tensor:
    """``x ** 2``, element by element.

    >>> tk.square(tk.tensor([1., -3.]))
    tensor([1., 9.])
    """
    need_tensor("square", input)
    return pow(input, 2)


@op(to_floating=True)
def reciprocal(xp: Any, input: Any) -> Any:
    """``1 / x``, element by element; integers give the default dtype.

    >>> tk.reciprocal(tk.tensor([1., 2., 4.]))
    tensor([1.0000, 0.5000, 0.2500])
    """
    return xp.divide(input.dtype.type(1), input)


reciprocal.grad(input=lambda g, out: -g * (out * out))


def _check_negation(input: Tensor) -> None:
    if input.dtype is dtypes.bool_:
        raise DTypeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )


@op(ufunc="negative", dtypes="numeric", check=_check_negation)
def neg(xp: Any, input: Any) -> Any:
    """Each element with the other sign.

    >>> tk.neg(tk.tensor([1, -2]))
    tensor([-1,  2])
    """


neg.grad(input=lambda g: -g)


@op(elementwise=True)
def sign(xp: Any, input: Any) -> Any:
    """-1, 0 or 1: the sign of each element; 0 for nan.

    >>> tk.sign(tk.tensor([3., 0., -3.]))
    tensor([ 1.,  0., -1.])
    """
    return ((input > 0).view(xp.int8) - (input < 0).view(xp.int8)).astype(input.dtype)


sign.grad(input=lambda g: zeros_as(g))


@op(dtypes="numeric", ufunc="absolute")
def abs(xp: Any, input: Any) -> Any:
    """Absolute value of each element.

    >>> tk.abs(tk.tensor([1, -2]))
    tensor([1, 2])
    """


abs.grad(input=lambda g, input: g * sign(input))
absolute, divide, multiply, subtract, true_divide = abs, div, mul, sub, div


@op(promote=True, symbol="&", ufunc="bitwise_and", dtypes="integral")
def bitwise_and(xp: Any, input: Any, other: Any) -> Any:
    """And: of bools, or of the bits of integers.

    >>> tk.tensor([True, True]) & tk.tensor([True, False])
    tensor([ True, False])
    """


@op(promote=True, symbol="|", ufunc="bitwise_or", dtypes="integral")
def bitwise_or(xp: Any, input: Any, other: Any) -> Any:
    """Or: of bools, or of the bits of integers.

    >>> tk.tensor([4, 2]) | 1
    tensor([5, 3])
    """


@op(promote=True, symbol="^", ufunc="bitwise_xor", dtypes="integral")
def bitwise_xor(xp: Any, input: Any, other: Any) -> Any:
    """Exclusive or: of bools, or of the bits of integers.

    >>> tk.tensor([True, True]) ^ tk.tensor([True, False])
    tensor([False,  True])
    """


def _check_inversion(input: Tensor) -> None:
    if input.dtype.is_floating_point:
        raise TypeError(
            message(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
                repair="~(x != 0)",
            )
        )


@op(ufunc="invert", dtypes="integral", check=_check_inversion)
def bitwise_not(xp: Any, input: Any) -> Any:
    """Not: of bools, or of the bits of integers.

    >>> ~tk.tensor([True, False])
    tensor([False,  True])
    """
