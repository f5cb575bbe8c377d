"""Arithmetic: + - * / // % ** and their relatives, one definition per operation."""

import math
from typing import Any

from tensorkit import dtypes, kernels
from tensorkit.base import Tensor
from tensorkit.devices import CPU, backend_of
from tensorkit.dtypes import DType
from tensorkit.errors import DTypeError
from tensorkit.kernels import Kernel
from tensorkit.ops.arguments import check_value, need_tensor, no_kernel
from tensorkit.ops.blocks import in_blocks
from tensorkit.ops.elementary import log
from tensorkit.ops.notation import op
from tensorkit.ops.operands import Operand
from tensorkit.ops.selection import where, zeros_as
from tensorkit.rounding import multiply_add

Operands = tuple[Operand, ...]


def _check_alpha(_: Operands, promoted: DType, *, alpha: Any = 1) -> None:
    if isinstance(alpha, bool) and promoted is not dtypes.bool_:
        raise DTypeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and not promoted.is_floating_point:
        raise DTypeError(
            "For integral input tensors, argument alpha must not be a floating point number.",
            f"The result would have dtype {promoted}; alpha is {alpha}.",
            repair="x.float()",
        )
    check_value(alpha, promoted)


def _check_difference(operands: Operands, promoted: DType, *, alpha: Any = 1) -> None:
    if all(operand.dtype is dtypes.bool_ for operand in operands):
        raise DTypeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )
    if any(operand.dtype is dtypes.bool_ for operand in operands):
        raise DTypeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    _check_alpha(operands, promoted, alpha=alpha)


def _plus_scaled(xp: Any, x: Any, y: Any, alpha: Any) -> Any:
    """``x + alpha * y``; for floating point rounded once, as PyTorch's kernels do."""
    dtype = y.dtype
    if dtype.kind != "f":
        return xp.add(x, xp.multiply(y, CPU.backend.xp.asarray(alpha).astype(dtype)[()]))
    alpha = dtype.type(alpha)
    if math.fabs(math.frexp(alpha)[0]) == 0.5:  # a power of two: products with it are exact
        if math.fabs(alpha) <= 1:
            return xp.add(x, xp.multiply(y, alpha))
        # y * alpha may overflow; a factor below 0 would make -0. of a difference that is 0
        size, combine = dtype.type(math.fabs(alpha)), xp.add if alpha > 0 else xp.subtract
        return xp.multiply(combine(xp.multiply(x, 1 / size), y), size)
    if dtype.char == "f":  # in float64 the product is exact, and the sum has digits to spare
        return xp.add(y.astype(xp.float64) * float(alpha), x).astype(dtype)
    return multiply_add(xp, y, alpha, x, dtype)


@op(kind="binary", symbol="+", ufunc="add", refuse=_check_alpha, direct="fdlihbB?")
def add(xp: Any, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    """Sum ``x + alpha * y``, element by element; shapes broadcast.

    >>> tk.add(tk.tensor([1, 2]), 10)
    tensor([11, 12])
    >>> tk.tensor([1., 2.]).add(1., alpha=0.5)
    tensor([1.5000, 2.5000])
    """
    return xp.add(x, y) if alpha == 1 else _plus_scaled(xp, x, y, alpha)


add.grad(
    x=lambda g: g,
    y=lambda g, alpha: g if alpha == 1 else g * alpha,
)


@op(kind="binary", symbol="-", ufunc="subtract", refuse=_check_difference, direct="fdlihbB")
def sub(xp: Any, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    """Difference ``x - alpha * y``, element by element; shapes broadcast.

    >>> tk.sub(tk.tensor([3., 5.]), tk.tensor([1., 1.]))
    tensor([2., 4.])
    """
    return xp.subtract(x, y) if alpha == 1 else _plus_scaled(xp, x, y, -alpha)


sub.grad(
    x=lambda g: g,
    y=lambda g, alpha: -g if alpha == 1 else -g * alpha,
)
sub.grad(number="reflected", node="RsubBackward1", option=True, y=lambda g: -g)


@op(kind="binary", symbol="*", ufunc="multiply", exact_number=True)
def mul(xp: Any, x: Any, y: Any) -> Any:
    """Product ``x * y``, element by element; shapes broadcast.

    >>> tk.mul(tk.tensor([1., 2., 3.]), 10)
    tensor([10., 20., 30.])
    """
    return xp.multiply(x, y)


mul.grad(
    x=lambda g, y: g * y,
    y=lambda g, x: g * x,
)


@op(kind="binary", symbol="/", ufunc="divide", result="floating", exact_number=True)
def div(xp: Any, x: Any, y: Any) -> Any:
    """Quotient ``x / y``, element by element; integers give the default dtype.

    >>> tk.tensor([1, 2]) / 2
    tensor([0.5000, 1.0000])
    """
    return xp.divide(x, y)


_DIVISOR_SLOPE = Kernel("divisor_slope", "T g, T x, T y", "T slope", "slope = -g * ((x / y) / y);")
div.grad(
    x=lambda g, y: g / y,
    y=kernels.formula(_DIVISOR_SLOPE, lambda g, x, y: -g * ((x / y) / y)),
)


def _check_divisor(x: Any, y: Any) -> None:
    if y.dtype.kind not in "iu" or not x.size:
        return
    backend = backend_of(y)
    if backend is not CPU.backend:  # PyTorch leaves it at what the GPU makes of it
        backend.expect(y != 0, "An integer was divided by zero")
    elif not y.all():
        raise DTypeError(
            "ZeroDivisionError",
            "Integers have no infinity: dividing one by zero has no result.",
            repair="x.float()",
        )


@op(
    kind="binary",
    symbol="//",
    dtypes="numeric",
    kernel="div_floor_cpu",
    takes="overloads",
    exact_number=True,
)
def floor_divide(xp: Any, x: Any, y: Any) -> Any:
    """Quotient rounded down, towards minus infinity; keeps integer dtypes.

    Raises RuntimeError where integers are divided by zero.

    PyTorch has no derivative for it, nor have we; ``div(rounding_mode="floor")`` has, and it is 0.

    >>> tk.floor_divide(tk.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return _floor_of_quotient(xp, x, y)


floor_divide.grad(node="NotImplemented")


def _divided_in_double(xp: Any, x: Any, y: Any) -> tuple[Any, Any] | None:
    """``x // y`` and ``x % y`` of many float32 numbers, where float64 shows both exactly.

    It does below quotients of 2**24. None elsewhere, as for nan and infinities: then NumPy's own
    functions, which take several times as long, must tell.
    """
    if xp.__name__ != "numpy" or y.dtype.char != "f" or x.size < 2**12 or x.dtype.char != "f":
        return None
    quotient = x / y.astype(xp.float64)
    xp.floor(quotient, quotient)
    rest = x - quotient * y
    if not (quotient.max() < 2**24 and quotient.min() > -(2**24)) or xp.isnan(rest.max()):
        return None
    return quotient.astype(x.dtype), rest.astype(x.dtype)


def _floor_of_quotient(xp: Any, x: Any, y: Any) -> Any:
    _check_divisor(x, y)
    found = _divided_in_double(xp, x, y)
    if found is not None:
        return found[0]
    if y.dtype.kind in "iu" or xp.__name__ == "numpy":
        return xp.floor_divide(x, y)
    # NumPy's rule: start from the exact remainder, so that the quotient is not rounded up.
    rest = xp.fmod(x, y)
    quotient = (x - rest) / y
    quotient = xp.where((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1, quotient)
    floor = xp.floor(quotient)
    floor = xp.where(quotient - floor > 0.5, floor + 1, floor)
    zero = xp.copysign(xp.zeros_like(quotient), x / y)
    return xp.where(y == 0, x / y, xp.where(quotient == 0, zero, floor)).astype(rest.dtype)


@op(kind="binary", dtypes="numeric", kernel="div_floor_cpu")
def floor_of_quotient(xp: Any, x: Any, y: Any) -> Any:
    """``floor_divide`` with a derivative, which is 0. Public as ``div(rounding_mode=)``.

    >>> tk.div(tk.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    return _floor_of_quotient(xp, x, y)


floor_of_quotient.grad(
    node="DivBackward2",
    x=lambda g: zeros_as(g),
    y=lambda g: zeros_as(g),
)


@op(kind="binary", dtypes="numeric", kernel="div_trunc_cpu", exact_number=True)
def trunc_divide(xp: Any, x: Any, y: Any) -> Any:
    """Quotient rounded towards zero; keeps integer dtypes. Public as ``div(rounding_mode=)``.

    >>> tk.div(tk.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    """
    _check_divisor(x, y)
    if y.dtype.kind in "iu":
        towards_minus_infinity = xp.floor_divide(x, y)
        inexact = towards_minus_infinity * y != x
        return towards_minus_infinity + (inexact & ((x < 0) != (y < 0)))
    return xp.trunc(xp.divide(x, y))


trunc_divide.grad(
    node="DivBackward2",
    x=lambda g: zeros_as(g),
    y=lambda g: zeros_as(g),
)


@op(kind="binary", symbol="%", dtypes="numeric", takes="one tensor")
def remainder(xp: Any, x: Any, y: Any) -> Any:
    """What is left of ``x`` after ``floor_divide``; it has the sign of ``y``.

    >>> tk.remainder(tk.tensor([7, -7]), 3)
    tensor([1, 2])
    """
    _check_divisor(x, y)
    if y.dtype.kind in "iu":
        return xp.remainder(x, y)
    return in_blocks(xp, _rest, x, y) if x.shape == y.shape else _rest(xp, x, y)


def _rest(xp: Any, x: Any, y: Any) -> Any:
    found = _divided_in_double(xp, x, y)
    rest = xp.remainder(x, y) if found is None else found[1]
    if xp.__name__ == "numpy" and xp.count_nonzero(rest) == rest.size:  # a GPU would have to wait
        return rest
    return xp.where(rest == 0, xp.copysign(rest, x), rest)


remainder.grad(
    node="RemainderBackward1",
    x=lambda g: g,
    y=lambda g, x, y: -g * floor_of_quotient(x, y),
)
remainder.grad(number="y", node="RemainderBackward0", option=True, x=lambda g: g)
remainder.grad(number="x", node="NotImplemented")


def _check_exponent(operands: Operands, promoted: DType) -> None:
    exponent = operands[1]
    if promoted is dtypes.bool_ and not exponent.is_number:
        raise no_kernel("pow", promoted, "x.int()")
    if not exponent.is_number:
        return
    if not promoted.is_floating_point and exponent.array < 0:
        raise DTypeError(
            "Integers to negative integer powers are not allowed.",
            f"The result would have dtype {promoted}, which holds no fractions.",
            repair=f"x.float() ** {exponent.array}",
        )
    if not promoted.is_floating_point or promoted is dtypes.float16:
        check_value(exponent.array, promoted)


@op(
    kind="binary",
    symbol="** or pow()",
    refuse=_check_exponent,
    takes="exponent",
)
def pow(xp: Any, x: Any, y: Any) -> Any:
    """Power ``x ** y``, element by element.

    Raises RuntimeError for an integer tensor with a negative integer number as exponent.

    >>> tk.pow(tk.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    if y.dtype.kind == "b":  # only with the numbers True and False as exponents
        return xp.logical_or(x, xp.logical_not(y))
    if y.dtype.kind in "iu":
        if x.dtype.kind != "f":
            return _integer_power(xp, x, y)
        y = y.astype(x.dtype)  # the exponent of a gradient, as it was given
    is_number = isinstance(y, xp.generic)  # not a tensor
    # for a number on a GPU the host would have to wait
    is_here = is_number or xp.__name__ == "numpy"
    if is_here and y.ndim == 0:
        exact = _EXACT_POWERS.get(float(y))
        if exact is not None:
            return exact(xp, x)
    if y.size == 1 and (not is_here or float(y.reshape(())) in _ROOTS):
        if is_number:
            return _ROOTS[float(y)](xp, x)
        # NumPy, too, would take a root, but here -inf and -0. count as positive.
        y = xp.full(xp.broadcast_shapes(x.shape, y.shape), y)
    return xp.power(x, y)


# Exponents for which a product is both faster and exact to the last digit.
_EXACT_POWERS = {
    1.0: lambda xp, x: x.copy(),
    2.0: lambda xp, x: x * x,
    3.0: lambda xp, x: x * x * x,
    -2.0: lambda xp, x: 1 / (x * x),
    -1.0: lambda xp, x: 1 / x,
}
_ROOTS = {
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


def _slope(g: Any, x: Any, y: Any) -> Any:
    return zeros_as(g) if y == 0 else g * (y * (x if y == 2 else pow(x, y - 1)))


def _exponent_slope(g: Any, x: Any, y: Any, out: Any) -> Any:
    # 0 ** y is 0 for every y > 0, and counts as flat at y = 0
    return where((x == 0) & (y >= 0), 0.0, g * (out * log(x)))


def _exponent_slope_of_number(g: Any, x: float, y: Any, out: Any) -> Any:
    if x == 0:
        return where(y >= 0, 0.0, g * (out * -math.inf))
    return g * (out * (math.log(x) if x > 0 else math.nan))


pow.grad(
    node="PowBackward1",
    x=lambda g, x, y: where(y == 0, 0.0, g * (y * pow(x, y - 1))),
    y=_exponent_slope,
)
pow.grad(number="y", node="PowBackward0", option=True, x=_slope)
pow.grad(
    number="x",
    node="PowBackward2",
    option=True,
    y=_exponent_slope_of_number,
)


def square(input: Tensor) -> Tensor:
    """``x ** 2``, element by element.

    >>> tk.square(tk.tensor([1., -3.]))
    tensor([1., 9.])
    """
    need_tensor("square", input)
    return pow(input, 2)


@op(kind="unary", result="floating")
def reciprocal(xp: Any, x: Any) -> Any:
    """``1 / x``, element by element; integers give the default dtype.

    >>> tk.reciprocal(tk.tensor([1., 2., 4.]))
    tensor([1.0000, 0.5000, 0.2500])
    """
    return xp.divide(x.dtype.type(1), x)


reciprocal.grad(x=lambda g, out: -g * (out * out))


def _check_negation(operands: Operands, promoted: DType) -> None:
    if promoted is dtypes.bool_:
        raise DTypeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )


@op(kind="unary", symbol="-", ufunc="negative", refuse=_check_negation)
def neg(xp: Any, x: Any) -> Any:
    """Each element with the other sign.

    >>> tk.neg(tk.tensor([1, -2]))
    tensor([-1,  2])
    """
    return xp.negative(x)


neg.grad(x=lambda g: -g)


@op(kind="unary")
def sign(xp: Any, x: Any) -> Any:
    """-1, 0 or 1: the sign of each element; 0 for nan.

    >>> tk.sign(tk.tensor([3., 0., -3.]))
    tensor([ 1.,  0., -1.])
    """
    if xp.__name__ == "numpy" and x.dtype.kind != "b":
        signs = xp.sign(x)
        if not xp.count_nonzero(signs != signs):  # no nan: nearly always
            return signs
    return ((x > 0).view(xp.int8) - (x < 0).view(xp.int8)).astype(x.dtype)


sign.grad(x=lambda g: zeros_as(g))


@op(kind="unary", dtypes="numeric", ufunc="absolute")
def abs(xp: Any, x: Any) -> Any:
    """Absolute value of each element.

    >>> tk.abs(tk.tensor([1, -2]))
    tensor([1, 2])
    """
    return xp.absolute(x)


abs.grad(x=lambda g, x: g * sign(x))
