"""Reductions: sum, mean, var, prod, all, norm and their like, of all elements or along some."""

import warnings
from itertools import pairwise
from math import inf
from math import prod as prod_of
from typing import Any

import numpy as np

from tensorkit import layout
from tensorkit.base import Tensor
from tensorkit.devices import backend_of
from tensorkit.dtypes import DType, as_dtype, bool_, uint8
from tensorkit.errors import AutogradError, DTypeError, NotSupportedError, must_be, sizes
from tensorkit.layout import Ints
from tensorkit.ops import copying
from tensorkit.ops.along import (
    as_dtype_of,
    axes,
    count,
    one_dim,
    ones,
    restore,
    some_dims,
    spread,
    summable,
    wide,
)
from tensorkit.ops.arguments import (
    as_int,
    as_scalar,
    need_bool,
    need_tensor,
    no_kernel,
    no_such_call,
)
from tensorkit.ops.arithmetic import abs, pow, sign
from tensorkit.ops.notation import Operation, op, planned
from tensorkit.ops.selection import where, zeros_as
from tensorkit.ops.views import expand, reshape, transpose, unsqueeze


@planned(1)
def sum(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    """Sum of all elements, or along ``dim``: one dimension or a tuple of them.

    With ``keepdim`` the summed dimensions stay, with size 1. Integers and bools give int64;
    ``dtype`` converts before adding.

    >>> x = tk.tensor([[1., 2.], [3., 4.]])
    >>> tk.sum(x), tk.sum(x, dim=0)
    (tensor(10.), tensor([4., 6.]))
    """
    need_tensor("sum", input)
    known = {}
    if dtype is not None:
        input, known = summable("sum", input, dtype), {"as_is": True}
    keepdim = need_bool("sum", "keepdim", 3, keepdim)
    if dim is None and not keepdim:
        return _sum, (input,), known
    return _sum_along, (input,), {"dim": _dims("sum", input, dim), "keepdim": keepdim, **known}


@planned(1)
def mean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    """Mean of all elements, or along ``dim``: one dimension or a tuple of them.

    Raises RuntimeError for integers and bools, unless ``dtype`` is a floating-point one.

    >>> tk.mean(tk.tensor([[1., 2.], [3., 4.]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    need_tensor("mean", input)
    wanted = input.dtype if dtype is None else as_dtype("mean", dtype)
    if not wanted.is_floating_point:
        what = "Input dtype" if dtype is None else "Optional dtype"
        raise DTypeError(
            f"mean(): could not infer output dtype. {what} must be either a floating point "
            f"or complex dtype. Got: {wanted.word}",
            "The mean of integers is a fraction.",
            repair="x.float().mean()",
        )
    if wanted is not input.dtype:
        input = copying.to_dtype(input, wanted)
    keepdim = need_bool("mean", "keepdim", 3, keepdim)
    if dim is None and not keepdim:
        return _mean, (input,), {}
    return _mean_along, (input,), {"dim": _dims("mean", input, dim), "keepdim": keepdim}


def _dims(function: str, x: Tensor, dim: Any) -> Ints:
    if isinstance(dim, (str, float)):
        raise no_such_call(function, (dim,), "()", "(tuple of ints dim, bool keepdim)")
    return some_dims(function, x, dim)


def total(xp: Any, x: Any, dim: Ints | None = None, keepdims: bool = False) -> Any:
    """The sum of an array, added up precisely enough.

    Along the last axis NumPy adds in pairs; along others one after the other, which loses digits
    in float32. float16 cannot even count to 4096. einsum adds large arrays faster, but only one
    after the other, so it is given few terms at a time.
    """
    if dim is None and not keepdims and x.size <= _MANY and x.dtype.char in "fdl":
        return xp.add.reduce(x, None)  # the commonest, without questions
    if dim == (0,) and xp is np and x.ndim == 2 and x.size <= _MANY and x.dtype.char == "f":
        # as below, without questions: the gradient of a bias
        return xp.add.reduce(x, 0, xp.float64, None, keepdims).astype(x.dtype)
    if not x.ndim:
        return x.copy()
    axis, dtype = axes(x, dim), x.dtype
    if dtype.char == "e":
        return xp.add.reduce(x, axis=axis, dtype=xp.float32, keepdims=keepdims).astype(dtype)
    if dtype.char == "f":
        if x.size > _MANY and x.flags.c_contiguous:
            sums = _in_blocks(xp, x, dim)
            if sums is not None:
                return sums.reshape(_left(x.shape, dim, keepdims))
        if not (axis is None or dim is None or x.ndim - 1 in dim):
            return xp.add.reduce(x, axis=axis, dtype=xp.float64, keepdims=keepdims).astype(dtype)
    return xp.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)


_MANY = 2**14
_LONG = 128  # elements of a row, from which on NumPy is asked once for each
_TERMS = 128  # so many numbers float32 adds one after the other and loses hardly a digit


def _in_blocks(xp: Any, x: Any, dim: Ints | None) -> Any:
    """Sums of a contiguous array over all, its first or its last dimensions; None for others."""
    n_reduced = x.ndim if dim is None else len(dim)
    first = x.ndim - n_reduced
    if dim is not None and first and sorted(dim) == list(range(first, x.ndim)):
        rows = x.reshape(-1, prod_of(x.shape[first:]))
        if rows.shape[1] > 16 * _TERMS:
            return None
        if xp is np:  # BLAS, which also adds several sums side by side
            return rows.dot(ones(rows.shape[1], "f"))
        return xp.einsum("ij->i", rows)
    if dim is not None and sorted(dim) != list(range(n_reduced)):
        return None
    columns = x.reshape(prod_of(x.shape[:n_reduced]), -1)
    n_whole = len(columns) // _TERMS * _TERMS
    blocks = columns[:n_whole].reshape(-1, _TERMS, columns.shape[1])
    if columns.shape[1] == 1:
        sums = xp.einsum("ij->i", blocks[:, :, 0])[:, None]
    else:
        sums = xp.einsum("ijk->ik", blocks)
    sums = xp.add.reduce(sums, axis=0, dtype=xp.float64)
    return (sums + xp.add.reduce(columns[n_whole:], axis=0, dtype=xp.float64)).astype(x.dtype)


def _left(shape: Ints, dim: Ints | None, keepdims: bool) -> Ints:
    """The shape of a reduction's result."""
    reduced = range(len(shape)) if dim is None else dim
    if keepdims:
        return tuple(1 if place in reduced else size for place, size in enumerate(shape))
    return tuple(size for place, size in enumerate(shape) if place not in reduced)


def _mean_of(xp: Any, x: Any, dim: Ints | None, keepdims: bool) -> Any:
    if x.dtype.char == "e":  # the sum may be too large for float16
        return _mean_of(xp, wide(xp, x), dim, keepdims).astype(x.dtype)
    sums = total(xp, x, dim, keepdims)
    return sums / (x.size if dim is None else count(x.shape, dim))


def _sum_on_arrays(x: Any, dim: Ints | None = None, keepdim: bool = False) -> Any:
    xp = backend_of(x).xp
    return total(xp, _countable(xp, x), dim, keepdim)


def _countable(xp: Any, x: Any) -> Any:
    """Integers and bools as int64, in which they are added up."""
    return x.astype(xp.int64) if x.dtype.kind in "biu" and x.dtype.char != "l" else x


def _mean_on_arrays(x: Any, dim: Ints | None = None, keepdim: bool = False) -> Any:
    return _mean_of(backend_of(x).xp, x, dim, keepdim)


sum.on_arrays, mean.on_arrays = _sum_on_arrays, _mean_on_arrays


@op(kind="function")
def _sum(xp: Any, x: Any, *, as_is: bool = False) -> Any:
    return total(xp, x if as_is else _countable(xp, x))


_sum.grad(x=lambda g, shape: expand(g, shape))


@op(kind="function")
def _sum_along(xp: Any, x: Any, *, dim: Ints, keepdim: bool, as_is: bool = False) -> Any:
    return total(xp, x if as_is else _countable(xp, x), dim, keepdim)


_sum_along.grad(node="SumBackward1", x=spread)


@op(kind="function")
def _mean(xp: Any, x: Any) -> Any:
    return _mean_of(xp, x, None, False)


_mean.grad(x=lambda g, shape: _share(g, shape))


def _share(g: Any, shape: Ints) -> Any:
    return expand(g / (count(shape, None) or 1), shape)


@op(kind="function")
def _mean_along(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return _mean_of(xp, x, dim, keepdim)


_mean_along.grad(
    node="MeanBackward1",
    x=lambda g, shape, dim, keepdim: spread(g / count(shape, dim), shape, dim, keepdim),
)


# How far apart the elements are


@planned(1)
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    """Variance: the sum of squared distances from the mean, divided by n less ``correction``.

    ``correction`` is 1 unless told otherwise; ``unbiased=False`` is an older word for 0.

    >>> tk.var(tk.tensor([1., 2., 3., 4.])), tk.var(tk.tensor([1., 2., 3., 4.]), correction=0)
    (tensor(1.6667), tensor(1.2500))
    """
    return _spread("var", _var, input, dim, unbiased, keepdim, correction)


@planned(1)
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    """Standard deviation: the square root of ``var``.

    >>> tk.std(tk.tensor([[1., 2.], [3., 6.]]), dim=1)
    tensor([0.7071, 2.1213])
    """
    return _spread("std", _std, input, dim, unbiased, keepdim, correction)


def _spread(
    function: str,
    operation: Operation,
    x: Tensor,
    dim: Any,
    unbiased: Any,
    keepdim: Any,
    correction: Any,
) -> Any:
    need_tensor(function, x)
    if not x.dtype.is_floating_point:
        raise DTypeError(
            "std and var only support floating point and complex dtypes",
            repair=f"x.float().{function}()",
        )
    if isinstance(dim, bool) and unbiased is None:  # var(unbiased)
        dim, unbiased = None, dim
    if isinstance(dim, bool) or not (unbiased is None or isinstance(unbiased, bool)):
        raise no_such_call(
            function, (dim, unbiased), "(bool unbiased)", "(dim, bool unbiased, bool keepdim)"
        )
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    dims = some_dims(function, x, dim)
    keepdim = need_bool(function, "keepdim", 4, keepdim)
    options = {"dim": dims, "correction": correction, "keepdim": keepdim}
    if count(tuple(x.shape), dims) <= correction:
        warnings.warn(
            f"{function}(): degrees of freedom is <= 0. Correction should be strictly less than "
            "the reduction factor (input numel divided by output numel).",
            UserWarning,
            stacklevel=4,
        )
        return operation(x, **options)
    return operation, (x,), options


def _variance(xp: Any, x: Any, dim: Ints, correction: Any, keepdim: bool, spare: Any = None) -> Any:
    distances = xp.asarray(xp.subtract(x, _mean_of(xp, x, dim, True), out=spare))
    distances *= distances
    sums = total(xp, distances, dim, keepdim)
    return xp.divide(sums, max(count(x.shape, dim) - correction, 0))


@op(kind="function")
def _var(xp: Any, x: Any, *, dim: Ints, correction: Any, keepdim: bool) -> Any:
    return _variance(xp, wide(xp, x), dim, correction, keepdim).astype(x.dtype)


@op(kind="function")
def _std(xp: Any, x: Any, *, dim: Ints, correction: Any, keepdim: bool) -> Any:
    exact = x.astype(np.float64)  # the squares of 1e30 are no float32
    return xp.sqrt(_variance(xp, exact, dim, correction, keepdim, exact)).astype(x.dtype)


def _var_slope(g: Any, x: Any, shape: Ints, dim: Ints, correction: Any, keepdim: bool) -> Any:
    freedom = count(shape, dim) - correction
    scale = 2 / freedom if freedom else inf
    return scale * restore(g, shape, dim, keepdim) * (x - mean(x, dim, True))


_var.grad(x=_var_slope)
_std.grad(
    x=lambda g, x, out, shape, dim, correction, keepdim: _var_slope(
        where(out == 0, 0.0, g / (2 * out)), x, shape, dim, correction, keepdim
    )
)


# Products


@planned(1)
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Product of all elements, or along one dimension.

    Integers and bools give int64; ``dtype`` converts before multiplying.

    >>> x = tk.tensor([[1., 2.], [3., 4.]])
    >>> tk.prod(x), tk.prod(x, dim=0)
    (tensor(24.), tensor([3., 8.]))
    """
    input = summable("prod", input, dtype)
    if dim is None and keepdim is False:
        return _prod, (input,), {}
    if dim is None:
        raise must_be("prod", "dim", 2, "int", dim)
    if as_int(dim) is None:
        raise no_such_call("prod", (dim,), "()", "(int dim, bool keepdim)")
    place = one_dim("prod", input, dim)
    keepdim = need_bool("prod", "keepdim", 3, keepdim)
    return _prod_along, (input,), {"dim": (place,), "keepdim": keepdim}


def _product(xp: Any, x: Any, axis: Any, keepdims: bool = False) -> Any:
    own = wide(xp, x)
    if axis is None and not keepdims:
        own, axis = own.reshape(-1), 0
    while xp is np and axis is not None and own.size >= _MANY and own.shape[axis] % 2 == 0:
        own = np.multiply(*np.split(own, 2, axis))  # side by side, which a reduction is not
    return xp.multiply.reduce(own, axis=axis, keepdims=keepdims, dtype=own.dtype).astype(x.dtype)


@op(kind="function")
def _prod(xp: Any, x: Any) -> Any:
    return _product(xp, x, None)


@op(kind="function")
def _prod_along(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return _product(xp, x, axes(x, dim), keepdim) if x.ndim else x.copy()


def _prod_slope(g: Any, x: Any, out: Any, shape: Ints, dim: Ints | None = None) -> Any:
    if not any(x == 0):
        return g * (out / x)
    if dim is None or not shape:
        return g * reshape(_products_of_others(reshape(x, (-1,))), shape)
    return g * transpose(_products_of_others(transpose(x, dim[0], -1)), dim[0], -1)


@op(kind="function")
def _products_of_others(xp: Any, x: Any) -> Any:
    """For each element the product of all others along the last dimension, zeros among them."""
    one = xp.ones((*x.shape[:-1], 1), x.dtype)
    before = xp.cumprod(xp.concatenate((one, x[..., :-1]), -1), -1)
    after = xp.cumprod(xp.concatenate((one, x[..., :0:-1]), -1), -1)[..., ::-1]
    return before * after


@op(kind="function")
def _on_diagonal(xp: Any, x: Any) -> Any:
    return xp.eye(x.shape[-1], dtype=bool)


def _slope_of_others(g: Any, x: Any) -> Any:
    # d others_i / d x_j is the product of what is neither i nor j: row i has a 1 in place of x_i
    diagonal = _on_diagonal(x)
    others = _products_of_others(where(diagonal, 1.0, unsqueeze(x, -2)))
    return sum(where(diagonal, 0.0, unsqueeze(g, -1) * others), (x.ndim - 1,))


_products_of_others.grad(x=_slope_of_others)
_prod.grad(x=lambda g, x, out, shape: _prod_slope(g, x, out, shape))
_prod_along.grad(
    node="ProdBackward1",
    x=lambda g, x, out, shape, dim, keepdim: _prod_slope(
        restore(g, shape, dim, keepdim), x, restore(out, shape, dim, keepdim), shape, dim
    ),
)


# Running sums


@planned(1)
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """Sums of the first 1, 2, 3, ... elements along ``dim``. Integers and bools give int64.

    >>> tk.cumsum(tk.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
    place = one_dim("cumsum", input, dim)
    input = summable("cumsum", input, dtype)
    if input.dtype is bool_:
        raise no_kernel("cumsum_out_cpu", bool_)
    return _cumsum, (input,), {"dim": place, "backwards": False}


@op(kind="function")
def _cumsum(xp: Any, x: Any, *, dim: int, backwards: bool) -> Any:
    if not x.ndim:
        return x.copy()
    x = x[layout.backwards(x.ndim, (dim,))] if backwards else x
    # in float64, as PyTorch: float32 would lose a digit every few thousand elements
    dtype = xp.float64 if x.dtype.kind == "f" else x.dtype
    # row by row, which NumPy does not
    if xp is np and dim < x.ndim - 1 and x.size >= _LONG * x.shape[dim] > 0:
        sums = x.astype(dtype)
        for before, row in pairwise(sums.swapaxes(0, dim)):
            row += before
    else:
        sums = np.add.accumulate(x, dim, dtype) if xp is np else x.cumsum(axis=dim, dtype=dtype)
    sums = sums.astype(x.dtype, copy=False)
    return sums[layout.backwards(x.ndim, (dim,))] if backwards else sums


_cumsum.grad(x=lambda g, dim, backwards: _cumsum(g, dim=dim, backwards=not backwards))


# Truth


@planned(1)
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all elements are true, that is, not zero; or all along ``dim``.

    >>> tk.all(tk.tensor([[True, False], [True, True]]), dim=1)
    tensor([False,  True])
    """
    return _truth("all", _all, input, dim, keepdim)


@planned(1)
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether an element is true, that is, not zero; or one along ``dim``.

    >>> tk.any(tk.tensor([[True, False], [False, False]]), dim=1)
    tensor([ True, False])
    """
    return _truth("any", _any, input, dim, keepdim)


def _truth(function: str, operation: Operation, x: Tensor, dim: Any, keepdim: Any) -> Any:
    dims, keepdim = some_dims(function, x, dim), need_bool(function, "keepdim", 3, keepdim)
    if dim in ((), []):  # here, unlike elsewhere, no dimensions mean none
        return (x != 0).to(uint8) if x.dtype is uint8 else x != 0
    return operation, (x,), {"dim": dims, "keepdim": keepdim}


any.on_arrays = lambda x: x.any()


@op(kind="function")
def _all(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return _as_truth(x, x.all(axis=axes(x, dim), keepdims=keepdim))


@op(kind="function")
def _any(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return _as_truth(x, x.any(axis=axes(x, dim), keepdims=keepdim))


def _as_truth(x: Any, truth: Any) -> Any:
    return truth.astype(x.dtype) if x.dtype == "uint8" else truth  # PyTorch's old bool


# Lengths


def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm ``sum(|x| ** p) ** (1 / p)`` of all elements, or along ``dim``.

    ``p`` is 2 unless told otherwise; ``inf`` gives the largest size, 0 counts what is not zero.

    >>> tk.norm(tk.tensor([3., -4.])), tk.norm(tk.tensor([3., -4.]), p=1)
    (tensor(5.), tensor(7.))
    """
    dims = some_dims("norm", input, dim)
    input = as_dtype_of("norm", input, dtype)
    p = 2.0 if p is None or p == "fro" else as_scalar(p)
    if p is None:
        raise NotSupportedError("tensorkit has vector norms only: p is a number or 'fro'")
    if not input.dtype.is_floating_point:
        raise DTypeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {input.dtype.word}",
            repair="x.float().norm()",
        )
    if p in (inf, -inf) and count(tuple(input.shape), dims) == 0:
        raise DTypeError(
            f"linalg.vector_norm cannot compute the {p:g} norm on an empty tensor because the "
            "operation does not have an identity"
        )
    keepdim = need_bool("norm", "keepdim", 4, keepdim)
    return _vector_norm(input, p=float(p), dim=dims, keepdim=keepdim)


@op(kind="function")
def _vector_norm(xp: Any, x: Any, *, p: float, dim: Ints, keepdim: bool) -> Any:
    own = wide(xp, x)
    size = own if p == 2 else xp.absolute(own)
    if p in (inf, -inf):
        result = (size.max if p > 0 else size.min)(axis=axes(x, dim), keepdims=keepdim)
    elif p == 0:
        result = total(xp, (size != 0).astype(size.dtype), dim, keepdim)
    elif p == 1:
        result = total(xp, size, dim, keepdim)
    elif p == 2:
        result = xp.sqrt(_squares(xp, own, dim, keepdim))
    else:
        result = total(xp, xp.asarray(size**p), dim, keepdim) ** (1 / p)
    return result.astype(x.dtype)


def _squares(xp: Any, x: Any, dim: Ints, keepdim: bool) -> Any:
    """The sum of squares; einsum needs no memory for them."""
    n_whole = x.size // _TERMS * _TERMS
    if n_whole < _MANY or keepdim or len(dim) < x.ndim or not x.flags.c_contiguous:
        return total(xp, xp.asarray(x * x), dim, keepdim)
    flat = x.reshape(-1)
    blocks, rest = flat[:n_whole].reshape(-1, _TERMS), flat[n_whole:]
    sums = xp.add.reduce(xp.einsum("ij,ij->i", blocks, blocks), dtype=xp.float64)
    return (sums + xp.add.reduce(rest * rest, dtype=xp.float64)).astype(x.dtype)


def _norm_slope(g: Any, x: Any, out: Any, dim: Ints, p: float) -> Any:
    if p == 0:
        return zeros_as(x)
    if p == 1:
        return g * sign(x)
    if p in (inf, -inf):
        is_extreme = (abs(x) == out) | (x != x)
        return g * sign(x) * (is_extreme / sum(is_extreme, dim, True))
    if p == 2:
        return where(out == 0, 0.0, g * (x / out))
    scale = where(out == 0, 0.0, g / pow(out, p - 1))
    return scale * sign(x) * where(x == 0, 0.0, pow(abs(x), p - 1))


_vector_norm.grad(
    node="LinalgVectorNormBackward0",
    x=lambda g, x, out, shape, p, dim, keepdim: _norm_slope(
        restore(g, shape, dim, keepdim), x, restore(out, shape, dim, keepdim), dim, p
    ),
)


@op(kind="function")
def sum_to_shape(xp: Any, x: Any, *, to: Ints) -> Any:
    """What broadcasting from ``to`` repeated, added up again: the engine's way back."""
    if x.ndim == 2 and len(to) == 1 and to == x.shape[1:]:  # a row's, the commonest
        if xp is np and 0 < len(x) <= _TERMS and x.dtype.char in "fd":
            return ones(len(x), x.dtype.char).dot(x)
        return total(xp, x, (0,))
    lead = x.ndim - len(to)
    pairs = zip(x.shape[::-1], to[::-1], strict=False)
    if lead < 0 or [size for own, size in pairs if own != size != 1]:
        raise AutogradError(
            f"invalid gradient - got {sizes(x.shape)} but expected shape compatible with "
            f"{sizes(to)}",
            "Either a tensor was given another shape in place under no_grad (t_, squeeze_), or the "
            "source of a scatter is larger than its index, and has a gradient only there.",
            repair="y = x.t(), or src[:index.shape[0]]",
        )
    axes = (*range(lead), *(lead + dim for dim, size in enumerate(to) if size == 1))
    repeated = tuple(axis for axis in axes if axis < lead or x.shape[axis] != 1)
    return total(xp, x, repeated, True).reshape(to)


sum_to_shape.grad(node="SumBackward1", x=lambda g, shape: expand(g, shape))
