"""Elementary functions of one tensor: exponentials, roots, angles, rounding, isnan.

Integers give the default dtype; relu and rounding keep them.
"""

from math import log as log_of
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.base import Tensor
from tensorkit.devices import is_array
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError
from tensorkit.ops.selection import kept, where, zeros_as


@op(ufunc="exp", to_floating=True)
def exp(xp: Any, input: Any) -> Any:
    """The exponential function of each element.

    >>> tk.exp(tk.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """
    return xp.exp(input)


exp.grad(input=lambda g, out: g * out)


@op(ufunc="log", to_floating=True)
def log(xp: Any, input: Any) -> Any:
    """The natural logarithm of each element: nan below 0, -inf at 0.

    >>> tk.log(tk.tensor([1., 0.]))
    tensor([0., -inf])
    """
    return xp.log(input)


log.grad(input=lambda g, input: g / input)


@op(ufunc="expm1", to_floating=True)
def expm1(xp: Any, input: Any) -> Any:
    """``exp(x) - 1``, exact also where ``x`` is small.

    >>> tk.expm1(tk.tensor([0., 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])
    """
    return xp.expm1(input)


expm1.grad(input=lambda g, out: g * (out + 1))


@op(ufunc="log2", to_floating=True)
def log2(xp: Any, input: Any) -> Any:
    """The logarithm to base 2 of each element.

    >>> tk.log2(tk.tensor([1., 8.]))
    tensor([0., 3.])
    """
    return xp.log2(input)


log2.grad(input=lambda g, input: g / (input * log_of(2)))


@op(ufunc="log10", to_floating=True)
def log10(xp: Any, input: Any) -> Any:
    """The logarithm to base 10 of each element.

    >>> tk.log10(tk.tensor([1., 100.]))
    tensor([0.0000, 2.0000])
    """
    return xp.log10(input)


log10.grad(input=lambda g, input: g / (input * log_of(10)))


@op(ufunc="log1p", to_floating=True)
def log1p(xp: Any, input: Any) -> Any:
    """``log(1 + x)``, exact also where ``x`` is small.

    >>> tk.log1p(tk.tensor([0., 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])
    """
    return xp.log1p(input)


log1p.grad(input=lambda g, input: g / (input + 1))


@op(ufunc="sqrt", to_floating=True)
def sqrt(xp: Any, input: Any) -> Any:
    """The square root of each element: nan below 0.

    >>> tk.sqrt(tk.tensor([4., 9.]))
    tensor([2., 3.])
    """
    return xp.sqrt(input)


sqrt.grad(input=lambda g, out: g / (2 * out))


@op(to_floating=True)
def rsqrt(xp: Any, input: Any) -> Any:
    """``1 / sqrt(x)``, element by element.

    >>> tk.rsqrt(tk.tensor([4., 0.25]))
    tensor([0.5000, 2.0000])
    """
    return xp.divide(input.dtype.type(1), xp.sqrt(input))


rsqrt.grad(input=lambda g, out: -0.5 * g * out * out * out)


@op(ufunc="sin", to_floating=True)
def sin(xp: Any, input: Any) -> Any:
    """The sine of each element, in radians.

    >>> tk.sin(tk.tensor([0., tk.pi / 2]))
    tensor([0., 1.])
    """
    return xp.sin(input)


@op(ufunc="cos", to_floating=True)
def cos(xp: Any, input: Any) -> Any:
    """The cosine of each element, in radians.

    >>> tk.cos(tk.tensor([0., tk.pi]))
    tensor([ 1., -1.])
    """
    return xp.cos(input)


sin.grad(input=lambda g, input: g * cos(input))
cos.grad(input=lambda g, input: -g * sin(input))


@op(ufunc="tan", to_floating=True)
def tan(xp: Any, input: Any) -> Any:
    """The tangent of each element, in radians.

    >>> tk.tan(tk.tensor([0., tk.pi / 4]))
    tensor([0., 1.])
    """
    return xp.tan(input)


tan.grad(input=lambda g, out: g * (1 + out * out))


@op(ufunc="arcsin", to_floating=True)
def asin(xp: Any, input: Any) -> Any:
    """The angle whose sine is each element: nan outside of -1 to 1.

    >>> tk.asin(tk.tensor([0., 1.]))
    tensor([0.0000, 1.5708])
    """
    return xp.arcsin(input)


asin.grad(input=lambda g, input: g / sqrt(1 - input * input))


@op(ufunc="arccos", to_floating=True)
def acos(xp: Any, input: Any) -> Any:
    """The angle whose cosine is each element: nan outside of -1 to 1.

    >>> tk.acos(tk.tensor([1., 0.]))
    tensor([0.0000, 1.5708])
    """
    return xp.arccos(input)


acos.grad(input=lambda g, input: -g / sqrt(1 - input * input))


@op(ufunc="arctan", to_floating=True)
def atan(xp: Any, input: Any) -> Any:
    """The angle whose tangent is each element, between -pi/2 and pi/2.

    >>> tk.atan(tk.tensor([0., 1.]))
    tensor([0.0000, 0.7854])
    """
    return xp.arctan(input)


atan.grad(input=lambda g, input: g / (input * input + 1))


@op(ufunc="sinh", to_floating=True)
def sinh(xp: Any, input: Any) -> Any:
    """The hyperbolic sine of each element.

    >>> tk.sinh(tk.tensor([0., 1.]))
    tensor([0.0000, 1.1752])
    """
    return xp.sinh(input)


@op(ufunc="cosh", to_floating=True)
def cosh(xp: Any, input: Any) -> Any:
    """The hyperbolic cosine of each element.

    >>> tk.cosh(tk.tensor([0., 1.]))
    tensor([1.0000, 1.5431])
    """
    return xp.cosh(input)


sinh.grad(input=lambda g, input: g * cosh(input))
cosh.grad(input=lambda g, input: g * sinh(input))


@op(promote=True, ufunc="arctan2", to_floating=True, numbers=False)
def atan2(xp: Any, input: Any, other: Any) -> Any:
    """The angle of the points ``(y, x)``: ``input`` is the height, ``other`` the distance.

    >>> tk.atan2(tk.tensor([1., 1.]), tk.tensor([1., -1.]))
    tensor([0.7854, 2.3562])
    """
    return xp.arctan2(input, other)


def _over_distance(g: Any, part: Any, x: Any, y: Any) -> Any:
    return where((x == 0) & (y == 0), 0.0, g * part / (x * x + y * y))


atan2.grad(
    input=lambda g, input, other: _over_distance(g, other, input, other),
    other=lambda g, input, other: _over_distance(g, -input, input, other),
)


@op(ufunc="tanh", to_floating=True)
def tanh(xp: Any, input: Any) -> Any:
    """The hyperbolic tangent of each element, between -1 and 1.

    >>> tk.tanh(tk.tensor([0., 100.]))
    tensor([0., 1.])
    """
    return xp.tanh(input)


@op(promote=True, numbers=False)
def tanh_backward(xp: Any, input: Any, other: Any) -> Any:
    """The gradient of ``tanh``: ``x`` is that of its result ``y``. One step of a graph, not three.

    >>> x = tk.zeros(1, requires_grad=True)
    >>> tk.autograd.grad(x.tanh(), x, create_graph=True)
    (tensor([1.], grad_fn=<TanhBackwardBackward0>),)
    """
    return input * (1 - other * other)


tanh_backward.grad(
    input=lambda g, other: tanh_backward(g, other),
    other=lambda g, input, other: g * (-2 * other * input),
)
tanh.grad(input=lambda g, out: tanh_backward(g, out))


@op(to_floating=True)
def sigmoid(xp: Any, input: Any) -> Any:
    """The logistic function ``1 / (1 + exp(-x))``, between 0 and 1.

    >>> tk.sigmoid(tk.tensor([0., 100.]))
    tensor([0.5000, 1.0000])
    """
    result = one_more_than_exp(xp, input)
    return xp.divide(input.dtype.type(1), result, result)


def one_more_than_exp(xp: Any, x: Any) -> Any:
    """``1 + exp(-x)`` as a new array."""
    result = xp.asarray(xp.negative(x))
    xp.exp(result, result)
    result += _ONE[result.dtype] if xp is np else 1
    return result


_ONE = {np.dtype(char): np.ones((), char) for char in "efd"}  # added faster than a number


sigmoid.grad(input=lambda g, out: g * ((1 - out) * out))


def _check_relu(input: Tensor) -> None:
    if input.dtype is dtypes.bool_:
        raise DTypeError("Boolean inputs not supported for relu")


@op(elementwise=True, dtypes="numeric", explain=_check_relu)
def relu(xp: Any, input: Any) -> Any:
    """Each element where it is positive, 0 elsewhere. Its slope at 0 is taken as 0.

    >>> tk.relu(tk.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    if input.dtype.char == "e":  # of which NumPy takes the first of two zeros
        return xp.where(input < 0, input.dtype.type(0), input)
    return xp.maximum(input.dtype.type(0), input)  # -0. stays, as in PyTorch


def _passed(g: Any, out: Any) -> Any:
    if g.__class__ is np.ndarray:
        return kept(np, out.astype(bool), g)
    # floor is 0 there, or -0: through it the slope depends on x, with a derivative of 0
    return where(out != 0, g, 0.0 if is_array(g) else floor(out) + 0.0)


relu.grad(input=lambda g, out: _passed(g, out))


# Rounding: integers are whole already, and slopes are 0


def _rounded(function: Any, x: Any) -> Any:
    return function(x) if x.dtype.kind == "f" else x.copy(order="K")


@op(elementwise=True, dtypes="numeric", kernel="floor_vml_cpu")
def floor(xp: Any, input: Any) -> Any:
    """The largest whole number that is not above each element.

    >>> tk.floor(tk.tensor([1.7, -1.2]))
    tensor([ 1., -2.])
    """
    return _rounded(xp.floor, input)


@op(elementwise=True, dtypes="numeric", kernel="ceil_vml_cpu")
def ceil(xp: Any, input: Any) -> Any:
    """The smallest whole number that is not below each element.

    >>> tk.ceil(tk.tensor([1.2, -1.7]))
    tensor([ 2., -1.])
    """
    return _rounded(xp.ceil, input)


@op(elementwise=True, dtypes="numeric", kernel="trunc_vml_cpu")
def trunc(xp: Any, input: Any) -> Any:
    """The whole part of each element: rounded towards zero.

    >>> tk.trunc(tk.tensor([1.7, -1.7]))
    tensor([ 1., -1.])
    """
    return _rounded(xp.trunc, input)


def round(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """The nearest number with ``decimals`` digits behind the point; halves go to the even one.

    >>> tk.round(tk.tensor([0.5, 1.5, -2.7])), tk.round(tk.tensor([3.14159]), decimals=2)
    (tensor([ 0.,  2., -3.]), tensor([3.1400]))
    """
    return _round(input) if decimals is None else _round_to(input, decimals=decimals)


@op(elementwise=True, dtypes="numeric", kernel="round_vml_cpu")
def _round(xp: Any, input: Any) -> Any:
    return _rounded(xp.rint, input)


@op(elementwise=True, dtypes="floating", kernel="round_cpu")
def _round_to(xp: Any, input: Any, *, decimals: int) -> Any:
    own = input.astype(xp.float32) if input.dtype == xp.float16 else input
    scale = own.dtype.type(10.0 ** abs(decimals))
    rounded = xp.rint(own * scale) / scale if decimals > 0 else xp.rint(own / scale) * scale
    return rounded.astype(input.dtype, copy=False)


for _step in (floor, ceil, trunc, _round):
    _step.grad(input=lambda g: zeros_as(g))
_round_to.grad(node="RoundBackward1", input=lambda g: zeros_as(g))


# What kind of number


@op(elementwise=True)
def isnan(xp: Any, input: Any) -> Any:
    """Whether each element is not a number.

    >>> tk.isnan(tk.tensor([1., tk.nan]))
    tensor([False,  True])
    """
    return xp.isnan(input)


@op(elementwise=True)
def isinf(xp: Any, input: Any) -> Any:
    """Whether each element is infinite, with either sign.

    >>> tk.isinf(tk.tensor([1., -tk.inf, tk.nan]))
    tensor([False,  True, False])
    """
    return xp.isinf(input)


@op(elementwise=True)
def isfinite(xp: Any, input: Any) -> Any:
    """Whether each element is neither infinite nor nan.

    >>> tk.isfinite(tk.tensor([1., tk.inf, tk.nan]))
    tensor([ True, False, False])
    """
    return xp.isfinite(input)
