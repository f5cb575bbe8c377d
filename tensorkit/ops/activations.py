"""Activation functions that are more than an elementary function: gelu, silu, softplus, leaky relu.

They take floating-point numbers only, as in PyTorch.
"""

from math import pi, sqrt
from typing import Any

import numpy as np

from tensorkit import base, kernels
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import backend_of, is_array
from tensorkit.dtypes import DType
from tensorkit.errors import DTypeError
from tensorkit.kernels import Kernel
from tensorkit.ops import general
from tensorkit.ops.arguments import need_tensor, no_kernel, read
from tensorkit.ops.blocks import in_blocks
from tensorkit.ops.elementary import exp, one_more_than_exp, sigmoid, tanh
from tensorkit.ops.error_function import erf
from tensorkit.ops.notation import Operation, op, planned
from tensorkit.ops.operands import Operand
from tensorkit.ops.selection import where
from tensorkit.quiet import quietly


def refuse_integers(kernel: str) -> Any:
    """What an operation of floating-point numbers only has as ``refuse``."""

    def refuse(_: tuple[Operand, ...], promoted: DType) -> None:
        if not promoted.is_floating_point:
            raise no_kernel(kernel, promoted, "x.float()")

    return refuse


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """``x`` times the part of a normal distribution that lies below ``x``.

    ``approximate="tanh"`` computes it by tanh. Source: Hendrycks and Gimpel 2016.

    >>> tk.nn.functional.gelu(tk.tensor([-1., 0., 1.]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise DTypeError("approximate argument must be either none or tanh.")
    if approximate == "tanh":
        return _gelu_by_tanh(input)
    if isinstance(input, TensorBase) and _is_worth_keeping(input):
        below = quietly(in_blocks, np, _below, input._array)
        return _gelu_by_part(input, base.new(below))
    return _gelu(input)


def _is_worth_keeping(x: Tensor) -> bool:
    """Whether the part below ``x`` had better be kept for backward than computed again there."""
    array = x._array
    is_tracked = x._node is not None and state.grad and not (state.inference or base.watch)
    is_plain = array.__class__ is np.ndarray and array.flags.c_contiguous
    return is_tracked and is_plain and array.dtype.char in "fd" and array.size >= 4096


_GELU = Kernel("gelu", "T x", "T y", "y = x * T(0.5) * erfc(-x * T(0.7071067811865476));")
_GELU_SLOPE = Kernel(
    "gelu_slope",
    "T g, T x",
    "T slope",
    "T below = T(0.5) * erfc(-x * T(0.7071067811865476));"
    "slope = g * (below + x * exp(T(-0.5) * x * x) * T(0.3989422804014327));",
)


@op(kind="unary", refuse=refuse_integers("GeluKernelImpl"))
def _gelu(xp: Any, x: Any) -> Any:
    if kernels.are_for(xp, x):
        return _GELU(xp, x)
    return in_blocks(xp, lambda xp, x: _below(xp, x) * x, x)


def _below(xp: Any, x: Any) -> Any:
    """The part of a normal distribution that lies below ``x``, of a block."""
    below = xp.asarray(erf.definition.forward(xp, x * x.dtype.type(sqrt(0.5))))
    below += x.dtype.type(1)
    below *= x.dtype.type(0.5)
    return below


@op(kind="function")
def _gelu_by_part(xp: Any, x: Any, below: Any) -> Any:
    return x * below


def _gelu_slope(x: Any, below: Any = None) -> Any:
    if is_array(x):  # in blocks, without a temporary array for every sign
        given = (x,) if below is None else (x, below)
        return in_blocks(backend_of(x).xp, _gelu_slope_of_block, *given)
    return 0.5 * (1 + erf(x * sqrt(0.5))) + x * exp(x * x * -0.5) * (1 / sqrt(2 * pi))


def _gelu_slope_of_block(xp: Any, x: Any, below: Any = None) -> Any:
    density = xp.asarray(x * x)
    density *= x.dtype.type(-0.5)
    density = xp.exp(density, density)
    density *= x.dtype.type(1 / sqrt(2 * pi))
    density *= x
    density += _below(xp, x) if below is None else below
    return density


_gelu.grad(x=kernels.formula(_GELU_SLOPE, lambda g, x: g * _gelu_slope(x)))
_gelu_by_part.grad(node="GeluBackward0", x=lambda g, x, below: g * _gelu_slope(x, below))

_GELU_BY_TANH = Kernel(
    "gelu_by_tanh",
    "T x",
    "T y",
    "T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x);"
    "y = T(0.5) * x * (tanh(inner) + T(1));",
)
_GELU_BY_TANH_SLOPE = Kernel(
    "gelu_by_tanh_slope",
    "T g, T x",
    "T slope",
    "T y = tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x));"
    "T inner = T(0.7978845608028654) * (T(1) + T(3 * 0.044715) * x * x);"
    "slope = g * (T(0.5) * (1 + y) + T(0.5) * x * (1 - y * y) * inner);",
)


@op(kind="unary", refuse=refuse_integers("GeluKernelImpl"))
def _gelu_by_tanh(xp: Any, x: Any) -> Any:
    if kernels.are_for(xp, x):
        return _GELU_BY_TANH(xp, x)
    scale, cubic = x.dtype.type(sqrt(2 / pi)), x.dtype.type(0.044715)
    inner = scale * (x + cubic * x * x * x)
    return x.dtype.type(0.5) * x * (xp.tanh(inner) + x.dtype.type(1))


def _gelu_by_tanh_slope(x: Any) -> Any:
    y = tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))
    return 0.5 * (1 + y) + 0.5 * x * (1 - y * y) * sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x)


_gelu_by_tanh.grad(
    node="GeluBackward0",
    x=kernels.formula(_GELU_BY_TANH_SLOPE, lambda g, x: g * _gelu_by_tanh_slope(x)),
)

_SILU = Kernel("silu", "T x", "T y", "y = x / (1 + exp(-x));")
_SILU_SLOPE = Kernel(
    "silu_slope",
    "T g, T x",
    "T slope",
    "T share = 1 / (1 + exp(-x)); slope = g * (share * (1 + x * (1 - share)));",
)


@op(kind="unary", refuse=refuse_integers("silu_cpu"))
def silu(xp: Any, x: Any) -> Any:
    """``x * sigmoid(x)``, element by element.

    >>> tk.nn.functional.silu(tk.tensor([-1., 0., 1.]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    if kernels.are_for(xp, x):
        return _SILU(xp, x)
    below = one_more_than_exp(xp, x)
    return xp.divide(x, below, below)


def _silu_slope(x: Any, share: Any) -> Any:
    return share * (1 + x * (1 - share))


silu.grad(x=kernels.formula(_SILU_SLOPE, lambda g, x: g * _silu_slope(x, sigmoid(x))))


@planned(1)
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Any:
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself where ``beta * x`` exceeds ``threshold``.

    >>> tk.nn.functional.softplus(tk.tensor([-1., 0., 50.]))
    tensor([ 0.3133,  0.6931, 50.0000])
    """
    limits = {"beta": read(beta), "threshold": read(threshold)}
    return _on_floats(_softplus, "softplus_cpu", input, **limits)


@op(kind="function")
def _softplus(xp: Any, x: Any, *, beta: float, threshold: float) -> Any:
    scale, most = x.dtype.type(beta), x.dtype.type(threshold)
    scaled = x if beta == 1 else x * scale
    if xp is np and x.size and np.maximum.reduce(scaled, None) <= most:
        result = np.log1p(np.exp(scaled))
        return result if beta == 1 else result / scale
    return xp.where(scaled > most, x, xp.log1p(xp.exp(xp.minimum(scaled, most))) / scale)


_softplus.grad(
    x=lambda g, x, beta, threshold: g * where(x * beta > threshold, 1.0, sigmoid(x * beta))
)


@planned(1)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Each element where it is positive, ``negative_slope`` times it elsewhere.

    >>> tk.nn.functional.leaky_relu(tk.tensor([-1., 2.]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    into, slope = input if inplace else None, read(negative_slope)
    return _on_floats(_leaky_relu, "leaky_relu_cpu", input, into, negative_slope=slope)


@op(kind="function")
def _leaky_relu(xp: Any, x: Any, *, negative_slope: float) -> Any:
    below = x * x.dtype.type(negative_slope)
    return xp.maximum(x, below) if 0 < negative_slope <= 1 else xp.where(x > 0, x, below)


def _leaky_slope(g: Any, x: Any, least: float) -> Any:
    if g.__class__ is np.ndarray and 0 <= least <= 1:  # a choice takes five times as long
        return g * np.maximum(x > 0, g.dtype.type(least))
    return where(x > 0, g, g * least)


_LEAKY_SLOPE = Kernel(
    "leaky_slope", "T g, T x, T least", "T slope", "slope = x > 0 ? g : g * least;"
)
_leaky_relu.grad(
    x=kernels.formula(_LEAKY_SLOPE, lambda g, x, negative_slope: _leaky_slope(g, x, negative_slope))
)


def _on_floats(
    operation: Operation, kernel: str, x: Tensor, into: Any = None, **options: Any
) -> Any:
    need_tensor(operation.definition.name, x)
    refuse_integers(kernel)((), x.dtype)
    if into is None and x._is_contiguous:
        return operation, (x,), options
    return general.elementwise(operation.definition, {"x": x}, options, into)
