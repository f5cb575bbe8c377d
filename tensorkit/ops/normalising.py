"""Softmax and its relatives: exponentials that are divided by their sum, safe from overflow."""

from typing import TYPE_CHECKING, Any

from tensorkit import dtypes
from tensorkit.errors import NotSupportedError, message
from tensorkit.layout import Ints
from tensorkit.ops.along import as_dtype_of, axes, one_dim, restore, some_dims, wide
from tensorkit.ops.elementary import exp
from tensorkit.ops.notation import Operation, op
from tensorkit.ops.reduction import sum, total

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor


def softmax(input: "Tensor", dim: int, dtype: Any = None) -> "Tensor":
    """``exp(x)`` divided by its sum along ``dim``: positive numbers that add up to 1.

    Raises NotImplementedError for integers; ``dtype`` converts before.

    >>> tk.softmax(tk.tensor([1., 1., 1., 1.]), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return _normalised("softmax", _softmax, input, dim, dtype)


def log_softmax(input: "Tensor", dim: int, dtype: Any = None) -> "Tensor":
    """The logarithm of ``softmax``, without its loss of digits.

    >>> tk.log_softmax(tk.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _normalised("log_softmax", _log_softmax, input, dim, dtype)


def _normalised(function: str, operation: Operation, x: Any, dim: Any, dtype: Any) -> "Tensor":
    x = as_dtype_of(function, x, dtype)
    place = one_dim(function, x, dim)
    if not x._form.dtype.is_floating_point:
        last = "lastdim_" if place == max(x.ndim - 1, 0) else ""
        word = x._form.dtype.word
        raise NotSupportedError(
            message(
                f"\"{function}_{last}kernel_impl\" not implemented for '{word}'",
                "Probabilities are fractions.",
                repair=f"x.float().{function}({dim})",
            ),
            dtype=x._form.dtype,
        )
    return operation(x, dim=place)


def _shifted(xp: Any, x: Any, axis: int | None) -> Any:
    """``x`` less its largest element, in float32 at least: exponentials of it cannot overflow."""
    x = wide(xp, x)
    return xp.subtract(x, xp.max(x, axis=axis, keepdims=True)) if x.size else x.copy()


@op(kind="function")
def _softmax(xp: Any, x: Any, *, dim: int) -> Any:
    axis = dim if x.ndim else None
    powers = xp.asarray(_shifted(xp, x, axis))
    xp.exp(powers, out=powers)
    powers /= total(xp, powers, None if axis is None else (axis,), True)
    return powers.astype(x.dtype, copy=False)


@op(kind="function")
def _log_softmax(xp: Any, x: Any, *, dim: int) -> Any:
    axis = dim if x.ndim else None
    shifted = xp.asarray(_shifted(xp, x, axis))
    shifted -= xp.log(total(xp, xp.exp(shifted), None if axis is None else (axis,), True))
    return shifted.astype(x.dtype, copy=False)


def _without_share(g: Any, powers: Any, dim: int) -> Any:
    sums: Any = sum(g, (dim,), True)
    return g - powers * sums


_softmax.grad(
    node="SoftmaxBackward0",
    x=lambda g, out, dim: out * (g - sum(g * out, (dim,), True)),
)
_log_softmax.grad(
    node="LogSoftmaxBackward0",
    x=lambda g, out, dim: _without_share(g, exp(out), dim),
)


def logsumexp(input: "Tensor", dim: Any, keepdim: bool = False) -> "Tensor":
    """The logarithm of the sum of ``exp(x)`` along ``dim``, without overflow.

    >>> tk.logsumexp(tk.tensor([1000., 1000.]), dim=0)
    tensor(1000.6932)
    """
    dims = some_dims("logsumexp", input, dim)
    x = as_dtype_of("logsumexp", input, None, integers=dtypes.get_default_dtype())
    return _logsumexp(x, dim=dims, keepdim=bool(keepdim))


@op(kind="function")
def _logsumexp(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    axis, own = axes(x, dim), wide(xp, x)
    if not x.size:
        return xp.log(xp.asarray(total(xp, x, axis, keepdim)))
    largest = xp.max(own, axis=axis, keepdims=True)
    largest = xp.where(xp.isinf(largest), own.dtype.type(0), largest)
    result = xp.log(total(xp, xp.exp(own - largest), axis, True)) + largest
    result = xp.asarray(result).astype(x.dtype, copy=False)
    return result if keepdim or not x.ndim else result.squeeze(dim)


def _share(g: Any, x: Any, out: Any) -> Any:
    return g * exp(x - out)


_logsumexp.grad(
    x=lambda g, x, out, shape, dim, keepdim: _share(
        restore(g, shape, dim, keepdim), x, restore(out, shape, dim, keepdim)
    ),
)
