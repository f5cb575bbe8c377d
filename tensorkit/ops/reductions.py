"""Reductions: many elements become one, all of them or those along dimensions.

Most have ``dim=None`` (all dimensions, one, or a tuple of them) and ``keepdim=False`` (whether
reduced dimensions stay, with size 1). The gradient of a reduction has its shape: a formula first
puts the reduced dimensions back (``restored``) and then repeats it (``spread``).

At the end come softmax and its relatives: exponentials and their sum, safe from overflow.
"""

import warnings
from math import inf, nan
from math import prod as product_of
from operator import index
from typing import Any

import numpy as np

from tensorkit.base import Tensor
from tensorkit.dispatch import op
from tensorkit.dtypes import DType, as_dtype, float32, get_default_dtype, of_numpy
from tensorkit.errors import AutogradError, DTypeError, NotSupportedError, sizes
from tensorkit.layout import Ints
from tensorkit.ops.arguments import no_kernel
from tensorkit.ops.comparison import where, zeros_as
from tensorkit.ops.joining import flip
from tensorkit.ops.pointwise import exp, wide
from tensorkit.ops.views import expand, reshape, transpose
from tensorkit.overrides import overridable
from tensorkit.thread_state import state

Dims = int | Ints | None

# What reductions share


def _is_empty(dim: Any) -> bool:
    """Whether ``dim`` is ``()``, which means all; NumPy cannot compare its numbers with that."""
    return dim.__class__ is tuple and not dim


def axes(x: Any, dim: Dims) -> Dims:
    """The axes that NumPy reduces: where no dimension is named, all are meant."""
    return None if _is_empty(dim) or not x.ndim else dim


def count(shape: Ints, dim: Dims) -> int:
    """How many elements become one."""
    if dim is None or _is_empty(dim) or not shape:
        return product_of(shape)
    return product_of([shape[each] for each in dim]) if isinstance(dim, tuple) else shape[dim]


def restored(x: Any, shape: Ints, dim: Dims, keepdim: bool) -> Any:
    """A result or its gradient with the reduced dimensions back, of size 1."""
    if keepdim or dim is None or _is_empty(dim) or not shape:
        return x
    reduced = {each % len(shape) for each in (dim if isinstance(dim, tuple) else (dim,))}
    return reshape(x, tuple([1 if at in reduced else size for at, size in enumerate(shape)]))


def spread(g: Any, shape: Ints, dim: Dims, keepdim: bool) -> Any:
    """The gradient of a sum: repeated along the dimensions that were added up."""
    g = restored(g, shape, dim, keepdim)
    if isinstance(g, (np.ndarray, np.generic)) and product_of(shape) < _SMALL:
        repeated = np.empty(shape, g.dtype)  # half the time of a view
        repeated[...] = g
        return repeated
    return expand(np.asarray(g) if isinstance(g, np.generic) else g, shape)


def _summands(xp: Any, x: Any) -> Any:
    """``x``; integers and bools as int64, in which they are added up and multiplied."""
    return x.astype(xp.int64, copy=False) if x.dtype.kind in "biu" else x


# Sums

_SMALL, _MANY = 2**12, 2**14
_TERMS = 128  # so many numbers float32 adds one after the other and loses hardly a digit


def total(xp: Any, x: Any, dim: Dims = None, keepdims: bool = False) -> Any:
    """The sum of an array, added up precisely enough.

    Along the last axis NumPy adds in pairs; along others one after the other, which loses digits
    in float32. float16 cannot even count to 4096.
    """
    dtype, axis = x.dtype, axes(x, dim)
    if dtype.char == "e":
        return xp.add.reduce(x, axis, xp.float32, None, keepdims).astype(dtype)
    if axis is None or (axis.__class__ is int and x.shape[axis] <= _TERMS):
        return xp.add.reduce(x, axis, dtype, None, keepdims)
    if dtype.char == "f":
        dims = {dim % x.ndim for dim in (axis if axis.__class__ is tuple else (axis,))}
        if x.size > _MANY and x.__class__ is np.ndarray and x.flags.c_contiguous:
            found = _of_matrix(xp, x.reshape(-1, x.shape[-1]), dims, x.ndim - 1)
            if found is not None:
                kept = [1 if at in dims else n for at, n in enumerate(x.shape)]
                left = [n for at, n in enumerate(x.shape) if at not in dims]
                return found.reshape(kept if keepdims else left)
        if x.ndim - 1 not in dims:
            return xp.add.reduce(x, axis, xp.float64, None, keepdims).astype(dtype)
    return xp.add.reduce(x, axis, dtype, None, keepdims)


def _of_matrix(xp: Any, x: Any, dims: set[int], last: int) -> Any:
    """Sums of the rows or the columns of a large matrix, or None.

    BLAS and einsum add faster than NumPy's ``add.reduce``, but one after the other in float32, so
    they are given few terms at a time (row "d: sum(0)": 0.5 of PyTorch's time, without 1.6).
    """
    if dims == {last} and x.shape[1] <= 16 * _TERMS:
        return x.dot(xp.ones(x.shape[1], x.dtype))
    if dims != {*range(last)}:
        return None
    n_whole = len(x) // _TERMS * _TERMS
    sums = xp.einsum("ijk->ik", x[:n_whole].reshape(-1, _TERMS, x.shape[1]))
    rest = xp.add.reduce(x[n_whole:], 0, xp.float64)
    return (xp.add.reduce(sums, 0, xp.float64) + rest).astype(x.dtype)


def _check_dtype(input: Tensor, dtype: Any, **_: Any) -> None:
    if dtype is not None:
        as_dtype("sum", dtype)


@op(check=_check_dtype)
def sum(
    xp: Any, input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    """Sum of all elements, or along ``dim``: one dimension or a tuple of them.

    With ``keepdim`` the summed dimensions stay, with size 1. Integers and bools give int64;
    ``dtype`` converts before adding.

    >>> x = tk.tensor([[1., 2.], [3., 4.]])
    >>> tk.sum(x), tk.sum(x, dim=0)
    (tensor(10.), tensor([4., 6.]))
    """
    if dtype is not None:
        input = input.astype(as_dtype("sum", dtype).numpy, copy=False)
    elif input.dtype.char not in "fd":
        input = _summands(xp, input)
    elif dim is None and not keepdim:
        return xp.add.reduce(input, None)
    return total(xp, input, dim, keepdim)


sum.grad(
    node="SumBackward1",
    without_options="SumBackward0",
    input=lambda g, shape, dim, keepdim: spread(g, shape, dim, keepdim),
)


@op()
def sum_to_shape(xp: Any, x: Any, *, to: Ints) -> Any:
    """What broadcasting from ``to`` repeated, added up again: the engine's way back.

    >>> sum_to_shape(tk.ones(2, 3), to=(1, 3)), sum_to_shape(tk.ones(1, 3), to=(1, 3))
    (tensor([[2., 2., 2.]]), tensor([[1., 1., 1.]]))
    """
    shape, lead, found = x.shape, x.ndim - len(to), x
    if lead >= 0:
        grown = [lead + at for at, size in enumerate(to) if size == 1 and shape[lead + at] != 1]
        dims = (*range(lead), *grown)
        if dims:
            found = total(xp, x, dims[0] if len(dims) == 1 else dims, True)
    if lead < 0 or found.shape[lead:] != to:
        raise AutogradError(
            f"invalid gradient - got {sizes(x.shape)} but expected shape compatible with "
            f"{sizes(to)}",
            "A Function's backward gave a gradient of another shape, or the source of a scatter is "
            "larger than its index, and has a gradient only there.",
            repair="return g.reshape(x.shape), or src[:index.shape[0]]",
        )
    return found.reshape(to)


sum_to_shape.grad(node="SumBackward1", x=lambda g, shape: expand(g, shape))
sum_to_shape = overridable(sum_to_shape)


def _need_floats(input: Tensor, **_: Any) -> None:
    if not input.dtype.is_floating_point:
        raise DTypeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {input.dtype.word}",
            "The mean of integers is a fraction.",
            repair="x.float().mean()",
        )


@op(check=_need_floats)
def mean(xp: Any, input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Mean of all elements, or along ``dim``: one dimension or a tuple of them.

    Raises RuntimeError for integers and bools.

    >>> tk.mean(tk.tensor([[1., 2.], [3., 4.]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    if input.dtype.kind != "f":
        raise TypeError  # NumPy would give float64
    return _mean(xp, input, dim, keepdim)


def _mean(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    if x.dtype.char == "e":  # the sum may be too large for float16
        return _mean(xp, wide(xp, x), dim, keepdim).astype(x.dtype)
    return total(xp, x, dim, keepdim) / count(x.shape, dim)


mean.grad(
    node="MeanBackward1",
    without_options="MeanBackward0",
    input=lambda g, shape, dim, keepdim: spread(divided(g, count(shape, dim)), shape, dim, keepdim),
)


def divided(g: Any, n: int) -> Any:
    """``g`` divided by a count, also one that float16 does not hold."""
    return g / (n or 1) if n < 2**15 else g / 2**8 / (n / 2**8)


@op(tensors=1)
def cumsum(xp: Any, input: Any, dim: int) -> Any:
    """Sums of the first 1, 2, 3, ... elements along ``dim``. Integers and bools give int64.

    >>> tk.cumsum(tk.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
    x = _summands(xp, input)
    # in float64, as PyTorch: float32 would lose a digit every few thousand elements
    return x.cumsum(dim, xp.float64 if x.dtype.kind == "f" else x.dtype).astype(x.dtype)


cumsum.grad(input=lambda g, dim, shape: flip(cumsum(flip(g, dim), dim), dim) if shape else g)


# How far apart the elements are


@op(dtypes="floating")
def var(
    xp: Any, input: Any, dim: Dims = None, *, correction: float = 1, keepdim: bool = False
) -> Any:
    """Variance: the sum of squared distances from the mean, divided by n less ``correction``.

    >>> tk.var(tk.tensor([1., 2., 3., 4.])), tk.var(tk.tensor([1., 2., 3., 4.]), correction=0)
    (tensor(1.6667), tensor(1.2500))
    """
    return _variance("var", xp, wide(xp, input), dim, correction, keepdim).astype(input.dtype)


@op(dtypes="floating")
def std(
    xp: Any, input: Any, dim: Dims = None, *, correction: float = 1, keepdim: bool = False
) -> Any:
    """Standard deviation: the square root of ``var``.

    >>> tk.std(tk.tensor([[1., 2.], [3., 6.]]), dim=1)
    tensor([0.7071, 2.1213])
    """
    exact = input.astype(np.float64)  # the squares of 1e30 are no float32
    return xp.sqrt(_variance("std", xp, exact, dim, correction, keepdim)).astype(input.dtype)


def _variance(function: str, xp: Any, x: Any, dim: Dims, correction: float, keepdim: bool) -> Any:
    freedom = count(x.shape, dim) - correction
    if freedom <= 0:
        warnings.warn(
            f"{function}(): degrees of freedom is <= 0. Correction should be strictly less than "
            "the reduction factor (input numel divided by output numel).",
            UserWarning,
            stacklevel=4,
        )
    distances = xp.asarray(x - _mean(xp, x, dim, True))
    distances *= distances
    return xp.divide(total(xp, distances, dim, keepdim), freedom if freedom > 0 else 0)


def _slope_of_var(
    g: Any, input: Any, shape: Ints, dim: Dims, correction: float, keepdim: bool
) -> Any:
    freedom = count(shape, dim) - correction
    if freedom <= 0 and (dim is None or not shape):  # PyTorch takes the slope as no matter of x
        return where(input == mean(input), g * nan, g * inf)
    scale = 2 / freedom if freedom else inf
    return scale * restored(g, shape, dim, keepdim) * (input - mean(input, dim, True))


var.grad(input=_slope_of_var)
std.grad(
    input=lambda g, input, out, shape, dim, correction, keepdim: _slope_of_var(
        where(out == 0, 0.0, g / (2 * out)), input, shape, dim, correction, keepdim
    )
)


@op(dtypes="floating", kernel_name="linalg_vector_norm_cpu")
def norm(xp: Any, input: Any, p: Any = "fro", dim: Dims = None, keepdim: bool = False) -> Any:
    """The size of a vector, the root of the sum of squares, of all elements or along ``dim``.

    >>> tk.norm(tk.tensor([3., -4.]))
    tensor(5.)
    """
    if p not in (2, None, "fro"):
        repair = _OTHER_NORMS.get(p, f"(x.abs() ** {p}).sum(dim) ** (1 / {p})")
        repair = repair.replace("dim", "" if dim is None else str(dim))
        raise NotSupportedError(f"tensorkit has the norm of p = 2, not {p}", repair=repair)
    own = wide(xp, input)
    return xp.sqrt(total(xp, own * own, dim, keepdim)).astype(input.dtype)


_OTHER_NORMS = {
    0: "(x != 0).sum(dim).to(x.dtype)",
    1: "x.abs().sum(dim)",
    inf: "x.abs().amax(dim)",
    -inf: "x.abs().amin(dim)",
    "nuc": "numpy.linalg.norm(x.numpy(), 'nuc')",
}


def _slope_of_norm(g: Any, x: Any, out: Any) -> Any:
    return where(out == 0, 0.0, g * (x / out))


norm.grad(
    node="LinalgVectorNormBackward0",
    input=lambda g, input, out, shape, dim, keepdim: _slope_of_norm(
        restored(g, shape, dim, keepdim), input, restored(out, shape, dim, keepdim)
    ),
)


# Products


@op()
def prod(xp: Any, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Product of all elements, or along one dimension. Integers and bools give int64.

    >>> x = tk.tensor([[1., 2.], [3., 4.]])
    >>> tk.prod(x), tk.prod(x, dim=0)
    (tensor(24.), tensor([3., 8.]))
    """
    x = _summands(xp, input)
    axis = None if dim is None else index(dim)
    return xp.multiply.reduce(wide(xp, x), axis, None, None, keepdim).astype(x.dtype)


def _slope_of_prod(g: Any, x: Any, out: Any, dim: int | None) -> Any:
    if x.ndim and not any(x == 0):
        return g * (out / x)
    if dim is None and not state.grad and sum(x == 0) > 1:  # PyTorch: also beside inf and nan
        return zeros_as(x)
    if count(tuple(x.shape), dim) == 1:
        return reshape(g, tuple(x.shape))
    if dim is None:
        return g * reshape(_products_of_others(reshape(x, (-1,))), tuple(x.shape))
    return g * transpose(_products_of_others(transpose(x, dim, -1)), dim, -1)


def _products_of_others(x: Any) -> Any:
    """For each element the product of all others along the last dimension, zeros among them."""
    return _products_before(x) * flip(_products_before(flip(x, -1)), -1)


def _products_before(x: Any) -> Any:
    """For each element the product of all before it along the last dimension."""
    found, n = _shifted(x, by=1), 1  # n: of how many elements, where there are as many
    while n < x.shape[-1]:
        found, n = found * _shifted(found, by=n), 2 * n
    return found


@op()
def _shifted(xp: Any, x: Any, *, by: int, fill: int = 1) -> Any:
    """The last dimension moved to the right ``by`` elements; ``fill`` in front, the end is lost.

    >>> _shifted(tk.tensor([2., 3., 4.]), by=1)
    tensor([1., 2., 3.])
    """
    return xp.concatenate((xp.full_like(x[..., :by], fill), x[..., :-by]), -1)


_shifted.grad(x=lambda g, by: flip(_shifted(flip(g, -1), by=by, fill=0), -1))


prod.grad(
    node="ProdBackward1",
    without_options="ProdBackward0",
    input=lambda g, input, out, shape, dim, keepdim: _slope_of_prod(
        restored(g, shape, dim, keepdim), input, restored(out, shape, dim, keepdim), dim
    ),
)


# Truth


@op()
def all(xp: Any, input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether all elements are true, that is, not zero; or all along ``dim``.

    >>> tk.all(tk.tensor([[True, False], [True, True]]), dim=1)
    tensor([False,  True])
    """
    found = input.all(axis=dim, keepdims=keepdim)
    return found.astype(input.dtype) if input.dtype == "uint8" else found


@op()
def any(xp: Any, input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether an element is true, that is, not zero; or one along ``dim``.

    >>> tk.any(tk.tensor([[True, False], [False, False]]), dim=1)
    tensor([ True, False])
    """
    found = input.any(axis=dim, keepdims=keepdim)
    return found.astype(input.dtype) if input.dtype == "uint8" else found  # PyTorch's old bool


@op(tensors=1)
def softmax(xp: Any, input: Any, dim: int) -> Any:
    """``exp(x)`` divided by its sum along ``dim``: positive numbers that add up to 1.

    Raises NotImplementedError for integers.

    >>> tk.softmax(tk.tensor([1., 1., 1., 1.]), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return _normalised("softmax", _softmax, xp, input, dim)


@op(tensors=1)
def log_softmax(xp: Any, input: Any, dim: int) -> Any:
    """The logarithm of ``softmax``, without its loss of digits.

    >>> tk.log_softmax(tk.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _normalised("log_softmax", _log_softmax, xp, input, dim)


def _normalised(function: str, kernel: Any, xp: Any, x: Any, dim: int) -> Any:
    if x.dtype.kind != "f":
        repair = f"x.float().{function}({dim})"
        raise no_kernel(f"{function}_lastdim_kernel_impl", of_numpy(x.dtype), repair)
    if not x.size:
        return x.cumsum(dim)  # a copy, or an error for a dimension that is not there
    return kernel(xp, wide(xp, x), dim).astype(x.dtype, copy=False)


def _powers(xp: Any, x: Any, axis: Dims) -> tuple[Any, Any]:
    """Exponentials and their sums; None for sums that are not safe without subtracting the largest.

    They are safe if they are finite and at least 2: a logarithm near 1 loses digits. For many
    numbers this saves half of the time.
    """
    if xp is not np or x.size < 4096:
        return None, None
    powers = np.exp(x)
    sums = total(np, powers, axis, True)
    return powers, sums if sums.min() >= 2 and sums.max() < inf else None


def _softmax(xp: Any, x: Any, dim: int) -> Any:
    powers, sums = _powers(xp, x, dim)
    if sums is None:
        powers = xp.exp(x - x.max(dim, keepdims=True))
        sums = total(xp, powers, dim, True)
    powers /= sums
    return powers


def _log_softmax(xp: Any, x: Any, dim: int) -> Any:
    shifted = x - x.max(dim, keepdims=True)
    shifted -= xp.log(total(xp, xp.exp(shifted), dim, True))
    return shifted


softmax.grad(input=lambda g, out, dim: out * (g - sum(g * out, dim, True)))
log_softmax.grad(
    # what float16 cannot hold, the sum may still be: the engine casts the gradient
    input=lambda g, out, dim: (
        g - exp(out) * sum(g, dim, True, dtype=float32 if g.dtype.itemsize == 2 else None)
    )
)


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
    found = _log_of_sum(xp, own, axis)
    return (found if keepdim else found.squeeze(axis)).astype(x.dtype)


def _log_of_sum(xp: Any, x: Any, axis: Dims) -> Any:
    sums = _powers(xp, x, axis)[1]
    if sums is not None:
        return np.log(sums)
    largest = x.max(axis=axis, keepdims=True)
    largest = xp.where(xp.isinf(largest), x.dtype.type(0), largest)
    return xp.log(total(xp, xp.exp(x - largest), axis, True)) + largest


logsumexp.grad(
    input=lambda g, input, out, shape, dim, keepdim: (
        restored(g, shape, dim, keepdim) * exp(input - restored(out, shape, dim, keepdim))
    ),
)
