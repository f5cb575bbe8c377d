"""Elementary functions of one tensor: exp, log, sqrt, sin, cos, tanh, sigmoid, relu.

Integers give the default dtype, except for relu, which keeps them.
"""

from typing import Any

from tensorkit import dtypes
from tensorkit.dtypes import DType
from tensorkit.errors import DTypeError
from tensorkit.ops.general import Operand
from tensorkit.ops.notation import op
from tensorkit.ops.selection import where


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


@op(kind="unary", ufunc="sqrt", result="floating")
def sqrt(xp: Any, x: Any) -> Any:
    """The square root of each element: nan below 0.

    >>> tk.sqrt(tk.tensor([4., 9.]))
    tensor([2., 3.])
    """
    return xp.sqrt(x)


sqrt.grad(x=lambda g, out: g / (2 * out))


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


@op(kind="unary", ufunc="tanh", result="floating")
def tanh(xp: Any, x: Any) -> Any:
    """The hyperbolic tangent of each element, between -1 and 1.

    >>> tk.tanh(tk.tensor([0., 100.]))
    tensor([0., 1.])
    """
    return xp.tanh(x)


tanh.grad(x=lambda g, out: g * (1 - out * out))


@op(kind="unary", result="floating")
def sigmoid(xp: Any, x: Any) -> Any:
    """The logistic function ``1 / (1 + exp(-x))``, between 0 and 1.

    >>> tk.sigmoid(tk.tensor([0., 100.]))
    tensor([0.5000, 1.0000])
    """
    one = x.dtype.type(1)
    return one / (one + xp.exp(-x))


sigmoid.grad(x=lambda g, out: g * ((1 - out) * out))


def _check_relu(operands: tuple[Operand, ...], promoted: DType) -> None:
    if promoted is dtypes.bool_:
        raise DTypeError("Boolean inputs not supported for relu")


@op(kind="unary", refuse=_check_relu)
def relu(xp: Any, x: Any) -> Any:
    """Each element where it is positive, 0 elsewhere. Its slope at 0 is taken as 0.

    >>> tk.relu(tk.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return xp.maximum(x, x.dtype.type(0))


relu.grad(x=lambda g, out: where(out > 0, g, 0.0))
