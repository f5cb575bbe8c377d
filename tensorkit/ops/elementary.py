"""Elementary functions of one tensor: exponentials, roots, angles, rounding, isnan.

Integers give the default dtype; relu and rounding keep them.
"""

from math import log as log_of
from typing import Any

import numpy as np

from tensorkit import dtypes, kernels
from tensorkit.base import Tensor
from tensorkit.devices import is_array
from tensorkit.dtypes import DType
from tensorkit.errors import DTypeError
from tensorkit.kernels import Kernel
from tensorkit.ops import general
from tensorkit.ops.arguments import need_tensor, no_kernel
from tensorkit.ops.notation import op, planned
from tensorkit.ops.operands import Operand
from tensorkit.ops.selection import kept, where, zeros_as


@op(kind="unary", ufunc="exp", result="floating")
def exp(xp: Any, x: Any) -> Any:
    """The exponential function of each element.

    >>> tk.exp(tk.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """
    return xp.exp(x)


exp.grad(x=lambda g, out: g * out)


@op(kind="unary", ufunc="log", result="floating")
def log(xp: Any, x: Any) -> Any:
    """The natural logarithm of each element: nan below 0, -inf at 0.

    >>> tk.log(tk.tensor([1., 0.]))
    tensor([0., -inf])
    """
    return xp.log(x)


log.grad(x=lambda g, x: g / x)


@op(kind="unary", ufunc="expm1", result="floating")
def expm1(xp: Any, x: Any) -> Any:
    """``exp(x) - 1``, exact also where ``x`` is small.

    >>> tk.expm1(tk.tensor([0., 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])
    """
    return xp.expm1(x)


expm1.grad(x=lambda g, out: g * (out + 1))


@op(kind="unary", ufunc="log2", result="floating")
def log2(xp: Any, x: Any) -> Any:
    """The logarithm to base 2 of each element.

    >>> tk.log2(tk.tensor([1., 8.]))
    tensor([0., 3.])
    """
    return xp.log2(x)


log2.grad(x=lambda g, x: g / (x * log_of(2)))


@op(kind="unary", ufunc="log10", result="floating")
def log10(xp: Any, x: Any) -> Any:
    """The logarithm to base 10 of each element.

    >>> tk.log10(tk.tensor([1., 100.]))
    tensor([0.0000, 2.0000])
    """
    return xp.log10(x)


log10.grad(x=lambda g, x: g / (x * log_of(10)))


@op(kind="unary", ufunc="log1p", result="floating")
def log1p(xp: Any, x: Any) -> Any:
    """``log(1 + x)``, exact also where ``x`` is small.

    >>> tk.log1p(tk.tensor([0., 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])
    """
    return xp.log1p(x)


log1p.grad(x=lambda g, x: g / (x + 1))


@op(kind="unary", ufunc="sqrt", result="floating")
def sqrt(xp: Any, x: Any) -> Any:
    """The square root of each element: nan below 0.

    >>> tk.sqrt(tk.tensor([4., 9.]))
    tensor([2., 3.])
    """
    return xp.sqrt(x)


sqrt.grad(x=lambda g, out: g / (2 * out))


@op(kind="unary", result="floating")
def rsqrt(xp: Any, x: Any) -> Any:
    """``1 / sqrt(x)``, element by element.

    >>> tk.rsqrt(tk.tensor([4., 0.25]))
    tensor([0.5000, 2.0000])
    """
    return xp.divide(x.dtype.type(1), xp.sqrt(x))


rsqrt.grad(x=lambda g, out: -0.5 * g * out * out * out)


@op(kind="unary", ufunc="sin", result="floating")
def sin(xp: Any, x: Any) -> Any:
    """The sine of each element, in radians.

    >>> tk.sin(tk.tensor([0., tk.pi / 2]))
    tensor([0., 1.])
    """
    return xp.sin(x)


@op(kind="unary", ufunc="cos", result="floating")
def cos(xp: Any, x: Any) -> Any:
    """The cosine of each element, in radians.

    >>> tk.cos(tk.tensor([0., tk.pi]))
    tensor([ 1., -1.])
    """
    return xp.cos(x)


sin.grad(x=lambda g, x: g * cos(x))
cos.grad(x=lambda g, x: -g * sin(x))


@op(kind="unary", ufunc="tan", result="floating")
def tan(xp: Any, x: Any) -> Any:
    """The tangent of each element, in radians.

    >>> tk.tan(tk.tensor([0., tk.pi / 4]))
    tensor([0., 1.])
    """
    return xp.tan(x)


tan.grad(x=lambda g, out: g * (1 + out * out))


@op(kind="unary", ufunc="arcsin", result="floating")
def asin(xp: Any, x: Any) -> Any:
    """The angle whose sine is each element: nan outside of -1 to 1.

    >>> tk.asin(tk.tensor([0., 1.]))
    tensor([0.0000, 1.5708])
    """
    return xp.arcsin(x)


asin.grad(x=lambda g, x: g / sqrt(1 - x * x))


@op(kind="unary", ufunc="arccos", result="floating")
def acos(xp: Any, x: Any) -> Any:
    """The angle whose cosine is each element: nan outside of -1 to 1.

    >>> tk.acos(tk.tensor([1., 0.]))
    tensor([0.0000, 1.5708])
    """
    return xp.arccos(x)


acos.grad(x=lambda g, x: -g / sqrt(1 - x * x))


@op(kind="unary", ufunc="arctan", result="floating")
def atan(xp: Any, x: Any) -> Any:
    """The angle whose tangent is each element, between -pi/2 and pi/2.

    >>> tk.atan(tk.tensor([0., 1.]))
    tensor([0.0000, 0.7854])
    """
    return xp.arctan(x)


atan.grad(x=lambda g, x: g / (x * x + 1))


@op(kind="unary", ufunc="sinh", result="floating")
def sinh(xp: Any, x: Any) -> Any:
    """The hyperbolic sine of each element.

    >>> tk.sinh(tk.tensor([0., 1.]))
    tensor([0.0000, 1.1752])
    """
    return xp.sinh(x)


@op(kind="unary", ufunc="cosh", result="floating")
def cosh(xp: Any, x: Any) -> Any:
    """The hyperbolic cosine of each element.

    >>> tk.cosh(tk.tensor([0., 1.]))
    tensor([1.0000, 1.5431])
    """
    return xp.cosh(x)


sinh.grad(x=lambda g, x: g * cosh(x))
cosh.grad(x=lambda g, x: g * sinh(x))


@op(kind="binary", ufunc="arctan2", result="floating", takes="tensors")
def atan2(xp: Any, x: Any, y: Any) -> Any:
    """The angle of the points ``(y, x)``: ``input`` is the height, ``other`` the distance.

    >>> tk.atan2(tk.tensor([1., 1.]), tk.tensor([1., -1.]))
    tensor([0.7854, 2.3562])
    """
    return xp.arctan2(x, y)


def _over_distance(g: Any, part: Any, x: Any, y: Any) -> Any:
    return where((x == 0) & (y == 0), 0.0, g * part / (x * x + y * y))


atan2.grad(
    x=lambda g, x, y: _over_distance(g, y, x, y),
    y=lambda g, x, y: _over_distance(g, -x, x, y),
)


@op(kind="unary", ufunc="tanh", result="floating")
def tanh(xp: Any, x: Any) -> Any:
    """The hyperbolic tangent of each element, between -1 and 1.

    >>> tk.tanh(tk.tensor([0., 100.]))
    tensor([0., 1.])
    """
    return xp.tanh(x)


_TANH_SLOPE = Kernel("tanh_slope", "T g, T out", "T slope", "slope = g * (1 - out * out);")


@op(kind="binary", takes="tensors")
def tanh_backward(xp: Any, x: Any, y: Any) -> Any:
    """The gradient of ``tanh``: ``x`` is that of its result ``y``. One step of a graph, not three.

    >>> x = tk.zeros(1, requires_grad=True)
    >>> tk.autograd.grad(x.tanh(), x, create_graph=True)
    (tensor([1.], grad_fn=<TanhBackwardBackward0>),)
    """
    return x * (1 - y * y)


tanh_backward.grad(x=lambda g, y: tanh_backward(g, y), y=lambda g, x, y: g * (-2 * y * x))
tanh.grad(x=kernels.formula(_TANH_SLOPE, lambda g, out: tanh_backward(g, out)))


@op(kind="unary", result="floating")
def sigmoid(xp: Any, x: Any) -> Any:
    """The logistic function ``1 / (1 + exp(-x))``, between 0 and 1.

    >>> tk.sigmoid(tk.tensor([0., 100.]))
    tensor([0.5000, 1.0000])
    """
    result = one_more_than_exp(xp, x)
    return xp.divide(x.dtype.type(1), result, result)


def one_more_than_exp(xp: Any, x: Any) -> Any:
    """``1 + exp(-x)`` as a new array."""
    result = xp.asarray(xp.negative(x))
    xp.exp(result, result)
    result += _ONE[result.dtype] if xp is np else 1
    return result


_ONE = {np.dtype(char): np.ones((), char) for char in "efd"}  # added faster than a number


_SIGMOID_SLOPE = Kernel("sigmoid_slope", "T g, T out", "T slope", "slope = g * ((1 - out) * out);")
sigmoid.grad(x=kernels.formula(_SIGMOID_SLOPE, lambda g, out: g * ((1 - out) * out)))


def _check_relu(operands: tuple[Operand, ...], promoted: DType) -> None:
    if promoted is dtypes.bool_:
        raise DTypeError("Boolean inputs not supported for relu")


@op(kind="unary", refuse=_check_relu)
def relu(xp: Any, x: Any) -> Any:
    """Each element where it is positive, 0 elsewhere. Its slope at 0 is taken as 0.

    >>> tk.relu(tk.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return xp.maximum(x.dtype.type(0), x)  # -0. stays, as in PyTorch


def _passed(g: Any, out: Any) -> Any:
    if g.__class__ is np.ndarray:
        return kept(np, out.astype(bool), g)
    # floor is 0 there, or -0: through it the slope depends on x, with a derivative of 0
    return where(out != 0, g, 0.0 if is_array(g) else floor(out) + 0.0)


_RELU_SLOPE = Kernel("relu_slope", "T g, T out", "T slope", "slope = out == T(0) ? T(0) : g;")
relu.grad(x=kernels.formula(_RELU_SLOPE, lambda g, out: _passed(g, out)))


# Rounding: integers are whole already, and slopes are 0


def _rounded(function: Any, x: Any) -> Any:
    return function(x) if x.dtype.kind == "f" else x.copy(order="K")


@op(kind="unary", dtypes="numeric", kernel="floor_vml_cpu")
def floor(xp: Any, x: Any) -> Any:
    """The largest whole number that is not above each element.

    >>> tk.floor(tk.tensor([1.7, -1.2]))
    tensor([ 1., -2.])
    """
    return _rounded(xp.floor, x)


@op(kind="unary", dtypes="numeric", kernel="ceil_vml_cpu")
def ceil(xp: Any, x: Any) -> Any:
    """The smallest whole number that is not below each element.

    >>> tk.ceil(tk.tensor([1.2, -1.7]))
    tensor([ 2., -1.])
    """
    return _rounded(xp.ceil, x)


@op(kind="unary", dtypes="numeric", kernel="trunc_vml_cpu")
def trunc(xp: Any, x: Any) -> Any:
    """The whole part of each element: rounded towards zero.

    >>> tk.trunc(tk.tensor([1.7, -1.7]))
    tensor([ 1., -1.])
    """
    return _rounded(xp.trunc, x)


@planned(1)
def _rounded_to(input: Tensor, decimals: int) -> Any:
    _need_fractions(input, decimals)
    if input._is_contiguous:
        return _round_to, (input,), {"decimals": decimals}
    return general.elementwise(_round_to.definition, {"x": input}, {"decimals": decimals})


def _need_fractions(x: Any, decimals: int) -> None:
    need_tensor("round", x)
    if not x.dtype.is_floating_point:
        raise no_kernel("round_cpu" if decimals else "round_vml_cpu", x.dtype)


def round(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """The nearest number with ``decimals`` digits behind the point; halves go to the even one.

    >>> tk.round(tk.tensor([0.5, 1.5, -2.7])), tk.round(tk.tensor([3.14159]), decimals=2)
    (tensor([ 0.,  2., -3.]), tensor([3.1400]))
    """
    return _round(input) if decimals is None else _rounded_to(input, decimals)


def round_(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """``round``, in place.

    >>> tk.tensor([0.5, 1.5]).round_()
    tensor([0., 2.])
    """
    if decimals is None:
        return _round.inplace(input)
    _need_fractions(input, decimals)
    return general.elementwise(_round_to.definition, {"x": input}, {"decimals": decimals}, input)


@op(kind="unary", dtypes="numeric", kernel="round_vml_cpu")
def _round(xp: Any, x: Any) -> Any:
    return _rounded(xp.rint, x)


@op(kind="function")
def _round_to(xp: Any, x: Any, *, decimals: int) -> Any:
    own = x.astype(xp.float32) if x.dtype == xp.float16 else x
    scale = own.dtype.type(10.0 ** abs(decimals))
    rounded = xp.rint(own * scale) / scale if decimals > 0 else xp.rint(own / scale) * scale
    return rounded.astype(x.dtype, copy=False)


for _step in (floor, ceil, trunc, _round):
    _step.grad(x=lambda g: zeros_as(g))
_round_to.grad(node="RoundBackward1", x=lambda g: zeros_as(g))


# What kind of number


@op(kind="unary", result="bool")
def isnan(xp: Any, x: Any) -> Any:
    """Whether each element is not a number.

    >>> tk.isnan(tk.tensor([1., tk.nan]))
    tensor([False,  True])
    """
    return xp.isnan(x)


@op(kind="unary", result="bool")
def isinf(xp: Any, x: Any) -> Any:
    """Whether each element is infinite, with either sign.

    >>> tk.isinf(tk.tensor([1., -tk.inf, tk.nan]))
    tensor([False,  True, False])
    """
    return xp.isinf(x)


@op(kind="unary", result="bool")
def isfinite(xp: Any, x: Any) -> Any:
    """Whether each element is neither infinite nor nan.

    >>> tk.isfinite(tk.tensor([1., tk.inf, tk.nan]))
    tensor([ True, False, False])
    """
    return xp.isfinite(x)
