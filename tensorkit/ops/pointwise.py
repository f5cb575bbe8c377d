"""Functions of each element: exponentials, roots, angles, rounding, erf.

Integers give the default dtype; relu and rounding keep them.
"""

import math
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.base import Tensor
from tensorkit.devices import is_array
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError
from tensorkit.ops.comparison import where, zeros_as


@op(ufunc="exp", to_floating=True)
def exp(xp: Any, input: Any) -> Any:
    """The exponential function of each element.

    >>> tk.exp(tk.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """


exp.grad(input=lambda g, out: g * out)


@op(ufunc="log", to_floating=True)
def log(xp: Any, input: Any) -> Any:
    """The natural logarithm of each element: nan below 0, -inf at 0.

    >>> tk.log(tk.tensor([1., 0.]))
    tensor([0., -inf])
    """


log.grad(input=lambda g, input: g / input)


@op(ufunc="log1p", to_floating=True)
def log1p(xp: Any, input: Any) -> Any:
    """``log(1 + x)``, exact also where ``x`` is small.

    >>> tk.log1p(tk.tensor([0., 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])
    """


log1p.grad(input=lambda g, input: g / (input + 1))


@op(ufunc="sqrt", to_floating=True)
def sqrt(xp: Any, input: Any) -> Any:
    """The square root of each element: nan below 0.

    >>> tk.sqrt(tk.tensor([4., 9.]))
    tensor([2., 3.])
    """


sqrt.grad(input=lambda g, out: g / (2 * out))


@op(ufunc="sin", to_floating=True)
def sin(xp: Any, input: Any) -> Any:
    """The sine of each element, in radians.

    >>> tk.sin(tk.tensor([0., tk.pi / 2]))
    tensor([0., 1.])
    """


@op(ufunc="cos", to_floating=True)
def cos(xp: Any, input: Any) -> Any:
    """The cosine of each element, in radians.

    >>> tk.cos(tk.tensor([0., tk.pi]))
    tensor([ 1., -1.])
    """


sin.grad(input=lambda g, input: g * cos(input))
cos.grad(input=lambda g, input: -g * sin(input))


@op(ufunc="arctan", to_floating=True)
def atan(xp: Any, input: Any) -> Any:
    """The angle whose tangent is each element, between -pi/2 and pi/2.

    >>> tk.atan(tk.tensor([0., 1.]))
    tensor([0.0000, 0.7854])
    """


atan.grad(input=lambda g, input: g / (input * input + 1))


@op(ufunc="tanh", to_floating=True)
def tanh(xp: Any, input: Any) -> Any:
    """The hyperbolic tangent of each element, between -1 and 1.

    >>> tk.tanh(tk.tensor([0., 100.]))
    tensor([0., 1.])
    """


@op(promote=True, numbers=False)
def _tanh_backward(xp: Any, input: Any, other: Any) -> Any:
    """The gradient of ``tanh``: ``x`` is that of its result ``y``. One step of a graph, not three.

    >>> x = tk.zeros(1, requires_grad=True)
    >>> tk.autograd.grad(x.tanh(), x, create_graph=True)
    (tensor([1.], grad_fn=<TanhBackwardBackward0>),)
    """
    return input * (1 - other * other)


_tanh_backward.grad(
    input=lambda g, other: _tanh_backward(g, other),
    other=lambda g, input, other: g * (-2 * other * input),
)
tanh.grad(input=lambda g, out: _tanh_backward(g, out))


@op(to_floating=True)
def sigmoid(xp: Any, input: Any) -> Any:
    """The logistic function ``1 / (1 + exp(-x))``, between 0 and 1.

    >>> tk.sigmoid(tk.tensor([0., 100.]))
    tensor([0.5000, 1.0000])
    """
    result = one_more_than_exp(xp, wide(xp, input))
    return xp.divide(result.dtype.type(1), result, result).astype(input.dtype, copy=False)


def wide(xp: Any, x: Any) -> Any:
    """float16 as float32, in which it is computed; else ``x``."""
    return x.astype(xp.float32) if x.dtype.char == "e" else x


def one_more_than_exp(xp: Any, x: Any) -> Any:
    """``1 + exp(-x)`` as a new array."""
    result = xp.asarray(xp.negative(x))
    xp.exp(result, result)
    result += 1
    return result


sigmoid.grad(input=lambda g, out: g * ((1 - out) * out))


def _check_relu(input: Tensor) -> None:
    if input.dtype is dtypes.bool_:
        raise DTypeError("Boolean inputs not supported for relu")


@op(elementwise=True, dtypes="numeric", check=_check_relu)
def relu(xp: Any, input: Any) -> Any:
    """Each element where it is positive, 0 elsewhere. Its slope at 0 is taken as 0.

    >>> tk.relu(tk.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    if input.dtype.char == "e":  # of which NumPy takes the first of two zeros
        return xp.where(input < 0, input.dtype.type(0), input)
    zero = input.dtype.type(0)
    if input.size > 2**15 and input.shape[-1] > 64:  # NumPy is five times as fast with arrays
        zero = xp.zeros(input.shape[-1], input.dtype)
    return xp.maximum(zero, input)  # -0. stays, as in PyTorch


def _passed(g: Any, out: Any) -> Any:
    # floor is 0 there, or -0: through it the slope depends on x, with a derivative of 0
    return where(out != 0, g, 0.0 if is_array(g) else floor(out) + 0.0)


relu.grad(input=lambda g, out: _passed(g, out))


# Rounding: integers are whole already, and slopes are 0


def _rounded(function: Any, x: Any) -> Any:
    return function(x) if x.dtype.kind == "f" else x.copy(order="K")


@op(elementwise=True, dtypes="numeric", kernel_name="floor_vml_cpu")
def floor(xp: Any, input: Any) -> Any:
    """The largest whole number that is not above each element.

    >>> tk.floor(tk.tensor([1.7, -1.2]))
    tensor([ 1., -2.])
    """
    return _rounded(xp.floor, input)


@op(elementwise=True, dtypes="numeric", kernel_name="ceil_vml_cpu")
def ceil(xp: Any, input: Any) -> Any:
    """The smallest whole number that is not below each element.

    >>> tk.ceil(tk.tensor([1.2, -1.7]))
    tensor([ 2., -1.])
    """
    return _rounded(xp.ceil, input)


@op(elementwise=True, dtypes="numeric", kernel_name="trunc_vml_cpu")
def trunc(xp: Any, input: Any) -> Any:
    """The whole part of each element: rounded towards zero.

    >>> tk.trunc(tk.tensor([1.7, -1.7]))
    tensor([ 1., -1.])
    """
    return _rounded(xp.trunc, input)


@op(elementwise=True, dtypes="numeric", kernel_name="round_vml_cpu")
def round(xp: Any, input: Any) -> Any:
    """The nearest whole number; halves go to the even one.

    >>> tk.round(tk.tensor([0.5, 1.5, -2.7]))
    tensor([ 0.,  2., -3.])
    """
    return _rounded(xp.rint, input)


for _step in (floor, ceil, trunc, round):
    _step.grad(input=lambda g: zeros_as(g))


# What kind of number


@op(ufunc="isnan")
def isnan(xp: Any, input: Any) -> Any:
    """Whether each element is not a number.

    >>> tk.isnan(tk.tensor([1., tk.nan]))
    tensor([False,  True])
    """


@op(ufunc="isinf")
def isinf(xp: Any, input: Any) -> Any:
    """Whether each element is infinite, with either sign.

    >>> tk.isinf(tk.tensor([1., -tk.inf, tk.nan]))
    tensor([False,  True, False])
    """


@op(ufunc="isfinite")
def isfinite(xp: Any, input: Any) -> Any:
    """Whether each element is neither infinite nor nan.

    >>> tk.isfinite(tk.tensor([1., tk.inf, tk.nan]))
    tensor([ True, False, False])
    """


# numerator and denominator, or a polynomial: lowest coefficient first
# fmt: off
_SMALL = (
    (3.20937758913846947e03, 3.77485237685302021e02, 1.13864154151050156e02,
     3.16112374387056560e00, 1.85777706184603153e-1),
    (2.84423683343917062e03, 1.28261652607737228e03, 2.44024637934444173e02,
     2.36012909523441209e01, 1.0),
)
_LARGE = (
    (1.23033935479799725e03, 2.05107837782607147e03, 1.71204761263407058e03,
     8.81952221241769090e02, 2.98635138197400131e02, 6.61191906371416295e01,
     8.88314979438837594e00, 5.64188496988670089e-1, 2.15311535474403846e-8),
    (1.23033935480374942e03, 3.43936767414372164e03, 4.36261909014324716e03,
     3.29079923573345963e03, 1.62138957456669019e03, 5.37181101862009858e02,
     1.17693950891312499e02, 1.57449261107098347e01, 1.0),
)
_SINGLE = tuple(np.array(each, np.float32) for each in (  # arrays are added faster than numbers
    1.128379274229331, 0.10276905577258814, -0.00019182899863344688, -0.0006197879053020732,
    8.763928233858581e-05, -5.668938352197733e-06, 1.4188889672433178e-07,
))
# fmt: on


@op(to_floating=True)
def erf(xp: Any, input: Any) -> Any:
    """The error function: how much of a normal distribution lies within ``x * sqrt(2)``.

    >>> tk.erf(tk.tensor([0., 1., 10.]))
    tensor([0.0000, 0.8427, 1.0000])
    """
    if input.dtype.char == "e":
        return erf.definition.forward(xp, input.astype(xp.float32)).astype(input.dtype)
    return _single(xp, input) if input.dtype.char == "f" else _double(xp, input)


erf.grad(input=lambda g, input: 2 / math.sqrt(math.pi) * g * exp(-input * input))


def _fraction(z: Any, coefficients: Any) -> Any:
    """A quotient of two polynomials."""
    numerator, denominator = (_polynomial(z, each) for each in coefficients)
    numerator /= denominator
    return numerator


def _polynomial(z: Any, coefficients: Any) -> Any:
    """A polynomial by Horner's rule."""
    value = z * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= z
    value += coefficients[0]
    return value


def _single(xp: Any, x: Any) -> Any:
    if xp is not np:
        return xp.tanh(x * _polynomial(xp.asarray(x * x), [each[()] for each in _SINGLE]))
    result = np.asarray(_polynomial(np.asarray(x * x), _SINGLE))
    np.multiply(result, x, result)
    return np.tanh(result, result)


def _double(xp: Any, x: Any) -> Any:
    size = xp.asarray(xp.minimum(xp.absolute(x), 6.0))
    near = x * _fraction(xp.asarray(xp.minimum(size, 0.5) ** 2), _SMALL)
    far = 1 - xp.exp(-size * size) * _fraction(size, _LARGE)
    return xp.where(size <= 0.46875, near, xp.copysign(far, x))
