"""Softmax and its relatives: exponentials that are divided by their sum, safe from overflow."""

from typing import Any

import numpy as np

from tensorkit import dtypes, kernels
from tensorkit.base import Tensor
from tensorkit.devices import backend_of, is_array
from tensorkit.errors import NotSupportedError, must_be
from tensorkit.kernels import Rows
from tensorkit.layout import Ints
from tensorkit.ops.along import (
    as_dtype_of,
    axes,
    is_small_matrix,
    one_dim,
    ones,
    restore,
    row_sums,
    some_dims,
    wide,
)
from tensorkit.ops.arguments import need_bool, need_tensor
from tensorkit.ops.elementary import exp
from tensorkit.ops.notation import Operation, op, planned
from tensorkit.ops.reduction import sum, total


@planned(1)
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Any:
    """``exp(x)`` divided by its sum along ``dim``: positive numbers that add up to 1.

    Raises NotImplementedError for integers; ``dtype`` converts before.

    >>> tk.softmax(tk.tensor([1., 1., 1., 1.]), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return _normalised("softmax", _softmax, input, dim, dtype)


@planned(1)
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Any:
    """The logarithm of ``softmax``, without its loss of digits.

    >>> tk.log_softmax(tk.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _normalised("log_softmax", _log_softmax, input, dim, dtype)


def _normalised(function: str, operation: Operation, x: Any, dim: Any, dtype: Any) -> Any:
    x = as_dtype_of(function, x, dtype)
    place = one_dim(function, x, dim)
    if not x.dtype.is_floating_point:
        last = "lastdim_" if place == max(x.ndim - 1, 0) else ""
        word = x.dtype.word
        raise NotSupportedError(
            f"\"{function}_{last}kernel_impl\" not implemented for '{word}'",
            "Probabilities are fractions.",
            repair=f"x.float().{function}({dim})",
            dtype=x.dtype,
        )
    return operation, (x,), {"dim": place}


_ROWS = 2**16  # elements at a time, so that they stay in the processor's cache


def _by_rows(kernel: Rows, function: Any, xp: Any, x: Any, dim: int) -> Any:
    """``function(x, out, dim)``, computed in float32 at least, on a few rows at a time."""
    own = wide(xp, x if x.ndim else x.reshape(1))
    if kernels.are_for(xp, own):
        return kernel(xp, dim, own).reshape(x.shape).astype(x.dtype, copy=False)
    if not own.size:
        return x.copy()
    if own.size <= _ROWS or xp.__name__ != "numpy" or dim != own.ndim - 1:
        result = function(xp, own, None, dim)
    else:
        result = xp.empty(own.shape, own.dtype)
        length = own.shape[-1]
        rows, into = own.reshape(-1, length), result.reshape(-1, length)
        step = max(_ROWS // length, 1)
        for start in range(0, len(rows), step):
            function(xp, rows[start : start + step], into[start : start + step], 1)
    result = result if x.ndim else result.reshape(())
    return result.astype(x.dtype, copy=False)


def _is_moderate(xp: Any, x: Any) -> bool:
    """Whether exponentials of these numbers are safe as they are: worth asking for many only."""
    if x.size < 4096 or xp.__name__ != "numpy":
        return False
    return bool(x.max() < 30 and x.min() > -30)


_POWERS = {"most": "max x", "all": "exp(x - most)"}
_SOFTMAX = Rows("softmax", "T x", _POWERS, "y = exp(x - most) / all;")
_LOG_SOFTMAX = Rows("log_softmax", "T x", _POWERS, "y = x - most - log(all);")
_SOFTMAX_SLOPE = Rows("softmax_slope", "T g, T out", {"all": "g * out"}, "y = out * (g - all);")
_LOG_SOFTMAX_SLOPE = Rows(
    "log_softmax_slope", "T g, T out", {"all": "g"}, "y = g - exp(out) * all;"
)


def _softmax_along(xp: Any, x: Any, out: Any, dim: int) -> Any:
    if _is_moderate(xp, x):
        out = xp.exp(x, out)
    else:
        out = xp.subtract(x, x.max(dim, keepdims=True), out)
        out = xp.exp(out, out)
    return xp.divide(out, _sums_along(out, dim), out)


def _log_softmax_along(xp: Any, x: Any, out: Any, dim: int) -> Any:
    out = xp.subtract(x, x.max(dim, keepdims=True), out)
    return xp.subtract(out, xp.log(_sums_along(xp.exp(out), dim)), out)


@op(kind="function")
def _softmax(xp: Any, x: Any, *, dim: int) -> Any:
    return _by_rows(_SOFTMAX, _softmax_along, xp, x, dim)


@op(kind="function")
def _log_softmax(xp: Any, x: Any, *, dim: int) -> Any:
    return _by_rows(_LOG_SOFTMAX, _log_softmax_along, xp, x, dim)


def _sums_along(x: Any, dim: int) -> Any:
    """Sums along a dimension, of a tensor or an array."""
    if not is_array(x):
        return sum(x, (dim,), True)
    if is_small_matrix(x):
        return row_sums(x) if dim else row_sums(x.T).T
    return total(backend_of(x).xp, x, (dim,), True)


def _along(kernel: Rows) -> Any:
    """How a formula launches it; a tensor without dimensions is a row of one element."""
    return lambda xp, g, out, dim: kernel(
        xp, dim, g.reshape(g.shape or 1), out.reshape(g.shape or 1)
    ).reshape(g.shape)


_softmax.grad(
    x=kernels.formula(
        _along(_SOFTMAX_SLOPE),
        lambda g, out, dim: out * (g - _sums_along(g * out, dim)),
    )
)
_log_softmax.grad(
    x=kernels.formula(
        _along(_LOG_SOFTMAX_SLOPE),
        lambda g, out, dim: g - exp(out) * _sums_along(g, dim),
    )
)


@planned(1)
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Any:
    """The logarithm of the sum of ``exp(x)`` along ``dim``, without overflow.

    >>> tk.logsumexp(tk.tensor([1000., 1000.]), dim=0)
    tensor(1000.6932)
    """
    need_tensor("logsumexp", input)
    if dim is None:
        raise must_be("logsumexp", "dim", 2, "tuple of ints", dim)
    dims = some_dims("logsumexp", input, dim)
    x = as_dtype_of("logsumexp", input, None, integers=dtypes.get_default_dtype())
    keepdim = need_bool("logsumexp", "keepdim", 3, keepdim)
    return _logsumexp, (x,), {"dim": dims, "keepdim": keepdim}


@op(kind="function")
def _logsumexp(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    axis, own = axes(x, dim), wide(xp, x)
    if not x.size:
        return xp.log(xp.asarray(total(xp, x, dim, keepdim)))
    if xp is np and dim == (x.ndim - 1,) and own.size >= _ROWS and own.flags.c_contiguous:
        sums = _sums_of_powers(own.reshape(-1, own.shape[-1]))
        if sums is not None:
            shape = own.shape[:-1] + ((1,) if keepdim else ())
            return np.log(sums, sums).reshape(shape).astype(x.dtype, copy=False)
    if _is_moderate(xp, own):
        return xp.log(total(xp, xp.exp(own), dim, keepdim)).astype(x.dtype, copy=False)
    largest = own.max(axis=axis, keepdims=True)
    largest = xp.where(xp.isinf(largest), own.dtype.type(0), largest)
    result = xp.log(total(xp, xp.exp(own - largest), dim, True)) + largest
    result = xp.asarray(result).astype(x.dtype, copy=False)
    return result if keepdim or not x.ndim else result.squeeze(dim)


def _sums_of_powers(x: Any) -> Any:
    """The sums of exp(x) along rows, a few rows at a time; None where that is not safe."""
    n_rows, length = x.shape
    if length > 2048:
        return None
    step = max(_ROWS // length, 1)
    sums, powers = np.empty(n_rows, x.dtype), np.empty((step, length), x.dtype)
    sum_by = ones(length, x.dtype.char)
    for start in range(0, n_rows, step):
        rows = x[start : start + step]
        if not (rows.max() < 30 and rows.min() > -30):
            return None
        np.exp(rows, powers[: len(rows)])
        np.dot(powers[: len(rows)], sum_by, sums[start : start + len(rows)])
    return sums


def _share(g: Any, x: Any, out: Any) -> Any:
    return g * exp(x - out)


_logsumexp.grad(
    x=lambda g, x, out, shape, dim, keepdim: _share(
        restore(g, shape, dim, keepdim), x, restore(out, shape, dim, keepdim)
    ),
)
