"""Activation functions that are more than an elementary function: gelu, silu, softplus, leaky relu.

They take floating-point numbers only, as in PyTorch.
"""

from math import pi, sqrt
from typing import Any

from tensorkit.base import Tensor, TensorBase
from tensorkit.dispatch import op
from tensorkit.dtypes import float16
from tensorkit.errors import NotSupportedError
from tensorkit.ops.arguments import check_factor
from tensorkit.ops.comparison import where
from tensorkit.ops.inplace import in_place
from tensorkit.ops.pointwise import erf, exp, one_more_than_exp, sigmoid, wide


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """``x`` times the part of a normal distribution that lies below ``x``.

    Source: Hendrycks and Gimpel 2016.

    >>> tk.nn.functional.gelu(tk.tensor([-1., 0., 1.]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate != "none":
        first = f"tensorkit's gelu is exact; there is no approximate={approximate!r}"
        raise NotSupportedError(first, repair="gelu(x)")
    return _gelu(input)


@op(elementwise=True, dtypes="floating", kernel_name="GeluKernelImpl")
def _gelu(xp: Any, input: Any) -> Any:
    x = wide(xp, input)
    below = xp.asarray(erf.definition.forward(xp, x * x.dtype.type(sqrt(0.5))))
    below += x.dtype.type(1)
    below *= x.dtype.type(0.5)
    return (below * x).astype(input.dtype, copy=False)


def _gelu_slope(x: Any) -> Any:
    return 0.5 * (1 + erf(x * sqrt(0.5))) + x * exp(x * x * -0.5) * (1 / sqrt(2 * pi))


_gelu.grad(input=lambda g, input: g * _gelu_slope(input))


@op(elementwise=True, dtypes="floating", kernel_name="silu_cpu")
def silu(xp: Any, input: Any) -> Any:
    """``x * sigmoid(x)``, element by element.

    >>> tk.nn.functional.silu(tk.tensor([-1., 0., 1.]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    below = one_more_than_exp(xp, wide(xp, input))
    return xp.divide(input, below, below).astype(input.dtype, copy=False)


def _silu_slope(x: Any, share: Any) -> Any:
    return share * (1 + x * (1 - share))


silu.grad(input=lambda g, input: g * _silu_slope(input, sigmoid(input)))


@op(elementwise=True, dtypes="floating")
def softplus(xp: Any, input: Any, beta: float = 1, threshold: float = 20) -> Any:
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself where ``beta * x`` exceeds ``threshold``.

    >>> tk.nn.functional.softplus(tk.tensor([-1., 0., 50.]))
    tensor([ 0.3133,  0.6931, 50.0000])
    """
    scaled = wide(xp, input) if beta == 1 else wide(xp, input) * beta
    below = log_of_one_more_than_exp(xp, scaled) / beta
    return xp.where(scaled > threshold, input, below).astype(input.dtype, copy=False)


def log_of_one_more_than_exp(xp: Any, x: Any) -> Any:
    """``log(1 + exp(x))`` as a new array, without overflow."""
    return xp.log1p(xp.exp(-xp.absolute(x))) + xp.maximum(x, x.dtype.type(0))


softplus.grad(
    input=lambda g, input, beta, threshold: (
        g * where(input * beta > threshold, 1.0, sigmoid(_flat_at(threshold, input * beta)))
    )
)


def _flat_at(threshold: float, x: Any) -> Any:
    """``x``, which counts as constant at the threshold, as in PyTorch's second derivative."""
    return where(x == threshold, threshold, x)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Each element where it is positive, ``negative_slope`` times it elsewhere.

    >>> tk.nn.functional.leaky_relu(tk.tensor([-1., 2.]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    if isinstance(input, TensorBase) and input.dtype is float16:
        check_factor(input, negative_slope)
    return (_leaky_relu_ if inplace else _leaky_relu)(input, negative_slope=negative_slope)


@op(elementwise=True, dtypes="floating")
def _leaky_relu(xp: Any, input: Any, *, negative_slope: float) -> Any:
    below = input * negative_slope
    if 0 < negative_slope <= 1:
        return xp.maximum(input, below)
    return xp.where(input > 0, input, below)


_leaky_relu.grad(input=lambda g, input, negative_slope: where(input > 0, g, g * negative_slope))
_leaky_relu_ = in_place(_leaky_relu, "leaky_relu")
