"""softmax and its relatives: exponentials and their sum, safe from overflow."""

from typing import Any

import numpy as np

from tensorkit.dispatch import op
from tensorkit.dtypes import DType, as_dtype, get_default_dtype, of_numpy
from tensorkit.layout import Ints
from tensorkit.ops.arguments import no_kernel
from tensorkit.ops.blocks import by_rows
from tensorkit.ops.elementary import exp
from tensorkit.ops.reductions import Dims, axes, restored, sum, total, wide


@op(tensors=1)
def softmax(xp: Any, input: Any, dim: int, dtype: DType | None = None) -> Any:
    """``exp(x)`` divided by its sum along ``dim``: positive numbers that add up to 1.

    Raises NotImplementedError for integers; ``dtype`` converts before.

    >>> tk.softmax(tk.tensor([1., 1., 1., 1.]), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return _normalised("softmax", _softmax, xp, input, dim, dtype)


@op(tensors=1)
def log_softmax(xp: Any, input: Any, dim: int, dtype: DType | None = None) -> Any:
    """The logarithm of ``softmax``, without its loss of digits.

    >>> tk.log_softmax(tk.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _normalised("log_softmax", _log_softmax, xp, input, dim, dtype)


def _normalised(function: str, kernel: Any, xp: Any, x: Any, dim: int, dtype: DType | None) -> Any:
    if dtype is not None:
        x = x.astype(as_dtype(function, dtype).numpy, copy=False)
    if x.dtype.kind != "f":
        repair = f"x.float().{function}({dim})"
        raise no_kernel(f"{function}_lastdim_kernel_impl", of_numpy(x.dtype), repair)
    if not x.size:
        return x.copy()
    return by_rows(xp, kernel, dim, wide(xp, x)).astype(x.dtype, copy=False)


def _are_moderate(xp: Any, x: Any) -> bool:
    """Whether exponentials of many numbers are safe as they are, which saves half of the time."""
    return xp is np and x.size >= 4096 and bool(x.max() < 30 and x.min() > -30)


def _softmax(xp: Any, x: Any, dim: int) -> Any:
    powers = x if _are_moderate(xp, x) else x - x.max(dim, keepdims=True)
    powers = xp.exp(powers) if powers is x else xp.exp(powers, powers)
    powers /= total(xp, powers, dim, True)
    return powers


def _log_softmax(xp: Any, x: Any, dim: int) -> Any:
    shifted = x - x.max(dim, keepdims=True)
    shifted -= xp.log(total(xp, xp.exp(shifted), dim, True))
    return shifted


softmax.grad(input=lambda g, out, dim: out * (g - sum(g * out, dim, True)))
log_softmax.grad(input=lambda g, out, dim: g - exp(out) * sum(g, dim, True))


@op(tensors=1)
def logsumexp(xp: Any, input: Any, dim: int | Ints, keepdim: bool = False) -> Any:
    """The logarithm of the sum of ``exp(x)`` along ``dim``, without overflow.

    >>> tk.logsumexp(tk.tensor([1000., 1000.]), dim=0)
    tensor(1000.6932)
    """
    x = input if input.dtype.kind == "f" else input.astype(get_default_dtype().numpy)
    own, axis = wide(xp, x), axes(x, dim)
    if not x.size:
        return xp.log(total(xp, x, dim, keepdim))
    found = by_rows(xp, _log_of_sum, axis, own)
    return (found if keepdim else found.squeeze(axis)).astype(x.dtype)


def _log_of_sum(xp: Any, x: Any, axis: Dims) -> Any:
    if _are_moderate(xp, x):
        return np.log(total(np, np.exp(x), axis, True))
    largest = x.max(axis=axis, keepdims=True)
    largest = xp.where(xp.isinf(largest), x.dtype.type(0), largest)
    return xp.log(total(xp, xp.exp(x - largest), axis, True)) + largest


logsumexp.grad(
    input=lambda g, input, out, shape, dim, keepdim: (
        restored(g, shape, dim, keepdim) * exp(input - restored(out, shape, dim, keepdim))
    ),
)
