"""Reductions: many elements become one, all of them or those along dimensions.

Each has ``dim=None`` (all dimensions, one, or a tuple of them) and ``keepdim=False`` (whether
reduced dimensions stay, with size 1). The gradient of a reduction has its shape: a formula first
puts the reduced dimensions back (``restored``) and then repeats it (``spread``).
"""

import warnings
from collections import namedtuple
from functools import partial
from math import inf
from math import prod as product_of
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tensorkit.base import Tensor, TensorBase
from tensorkit.dispatch import op
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import AutogradError, DTypeError, IndexRangeError, ShapeError, sizes
from tensorkit.layout import Ints
from tensorkit.ops.arithmetic import abs, pow, sign
from tensorkit.ops.comparison import maximum, minimum
from tensorkit.ops.gathering import add_along
from tensorkit.ops.selection import where, zeros_as
from tensorkit.ops.views import expand, reshape, transpose, unsqueeze

Dims = int | Ints | None

# What reductions share


def axes(x: Any, dim: Dims) -> Dims:
    """The axes that NumPy reduces: where no dimension is named, all are meant."""
    return None if dim == () or not x.ndim else dim


def count(shape: Ints, dim: Dims) -> int:
    """How many elements become one."""
    if dim is None or dim == () or not shape:
        return product_of(shape)
    return product_of([shape[each] for each in (dim if isinstance(dim, tuple) else (dim,))])


def restored(x: Any, shape: Ints, dim: Dims, keepdim: bool) -> Any:
    """A result or its gradient with the reduced dimensions back, of size 1."""
    if keepdim or dim is None or dim == () or not shape:
        return x
    reduced = {each % len(shape) for each in (dim if isinstance(dim, tuple) else (dim,))}
    return reshape(x, tuple([1 if at in reduced else size for at, size in enumerate(shape)]))


def spread(g: Any, shape: Ints, dim: Dims, keepdim: bool) -> Any:
    """The gradient of a sum: repeated along the dimensions that were added up."""
    if isinstance(g, np.generic):  # what NumPy makes of an array without dimensions
        g = np.asarray(g)
    return expand(restored(g, shape, dim, keepdim), shape)


def wide(xp: Any, x: Any) -> Any:
    """float16 as float32, in which it is computed; else ``x``."""
    return x.astype(xp.float32) if x.dtype == xp.float16 else x


def _summands(function: str, xp: Any, x: Any, dtype: DType | None) -> Any:
    """``x`` in ``dtype``; without one, integers and bools count in int64."""
    if dtype is not None:
        return x.astype(as_dtype(function, dtype).numpy, copy=False)
    return x.astype(xp.int64, copy=False) if x.dtype.kind in "biu" else x


# Sums

_MANY = 2**14
_TERMS = 128  # so many numbers float32 adds one after the other and loses hardly a digit


def total(xp: Any, x: Any, dim: Dims = None, keepdims: bool = False) -> Any:
    """The sum of an array, added up precisely enough.

    Along the last axis NumPy adds in pairs; along others one after the other, which loses digits
    in float32. float16 cannot even count to 4096.
    """
    axis, dtype = axes(x, dim), x.dtype
    if dtype.char == "e":
        return xp.add.reduce(x, axis, xp.float32, None, keepdims).astype(dtype)
    if dtype.char == "f" and x.ndim:
        if x.size > _MANY and x.flags.c_contiguous:
            found = _in_blocks(xp, x, axis, keepdims)
            if found is not None:
                return found
        named = axis if axis.__class__ is tuple else (axis,)
        if axis is not None and -1 not in named and x.ndim - 1 not in named:
            return xp.add.reduce(x, axis, xp.float64, None, keepdims).astype(dtype)
    return xp.add.reduce(x, axis, dtype, None, keepdims)


def _in_blocks(xp: Any, x: Any, axis: Dims, keepdims: bool) -> Any:
    """Sums of a contiguous array over all, its first or its last dimensions; None for others.

    BLAS and einsum add faster than ``add.reduce``, but one after the other in float32, so they are
    given few terms at a time (row "d: sum(0)": 0.5 of PyTorch's time, without 1.6).
    """
    dims = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    n_dims, sizes_left = len(dims), [*x.shape]
    for dim in sorted(dims, reverse=True):
        sizes_left[dim : dim + 1] = [1] if keepdims else []
    if {*dims} == {*range(x.ndim - n_dims, x.ndim)} != {*range(n_dims)}:
        rows = x.reshape(-1, product_of(x.shape[-n_dims:]))
        if rows.shape[1] > 16 * _TERMS:
            return None
        return rows.dot(xp.ones(rows.shape[1], x.dtype)).reshape(sizes_left)
    if {*dims} != {*range(n_dims)}:
        return None
    columns = x.reshape(product_of(x.shape[:n_dims]), -1)
    n_whole = len(columns) // _TERMS * _TERMS
    blocks = columns[:n_whole].reshape(-1, _TERMS, columns.shape[1])
    if columns.shape[1] == 1:
        sums = xp.einsum("ij->i", blocks[:, :, 0])[:, None]
    else:
        sums = xp.einsum("ijk->ik", blocks)
    sums = xp.add.reduce(sums, 0, xp.float64)
    rest = xp.add.reduce(columns[n_whole:], 0, xp.float64)
    return (sums + rest).astype(x.dtype).reshape(sizes_left)


@op()
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
    return total(xp, _summands("sum", xp, input, dtype), dim, keepdim)


sum.grad(
    node="SumBackward1",
    plain="SumBackward0",
    input=lambda g, shape, dim, keepdim: spread(g, shape, dim, keepdim),
)


@op(dtypes="any")
def sum_to_shape(xp: Any, x: Any, *, to: Ints) -> Any:
    """What broadcasting from ``to`` repeated, added up again: the engine's way back."""
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
    grown = (lead + dim for dim, size in enumerate(to) if size == 1 != x.shape[lead + dim])
    return total(xp, x, (*range(lead), *grown), True).reshape(to)


sum_to_shape.grad(node="SumBackward1", x=lambda g, shape: expand(g, shape))


def _need_floats(input: Tensor, dtype: Any, **_: Any) -> None:
    kind = input.dtype if dtype is None else as_dtype("mean", dtype)
    if not kind.is_floating_point:
        what = "Input dtype" if dtype is None else "Optional dtype"
        raise DTypeError(
            f"mean(): could not infer output dtype. {what} must be either a floating point or "
            f"complex dtype. Got: {kind.word}",
            "The mean of integers is a fraction.",
            repair="x.float().mean()",
        )


@op(explain=_need_floats)
def mean(
    xp: Any, input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    """Mean of all elements, or along ``dim``: one dimension or a tuple of them.

    Raises RuntimeError for integers and bools, unless ``dtype`` is a floating-point one.

    >>> tk.mean(tk.tensor([[1., 2.], [3., 4.]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    x = input if dtype is None else _summands("mean", xp, input, dtype)
    if x.dtype.kind != "f":
        raise TypeError  # NumPy would give float64
    return _mean(xp, x, dim, keepdim)


def _mean(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    if x.dtype.char == "e":  # the sum may be too large for float16
        return _mean(xp, wide(xp, x), dim, keepdim).astype(x.dtype)
    return total(xp, x, dim, keepdim) / count(x.shape, dim)


mean.grad(
    node="MeanBackward1",
    plain="MeanBackward0",
    input=lambda g, shape, dim, keepdim: spread(g / (count(shape, dim) or 1), shape, dim, keepdim),
)


@op(tensors=1)
def cumsum(xp: Any, input: Any, dim: int, *, dtype: DType | None = None) -> Any:
    """Sums of the first 1, 2, 3, ... elements along ``dim``. Integers and bools give int64.

    >>> tk.cumsum(tk.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
    x = _summands("cumsum", xp, input, dtype)
    if x.dtype == bool:
        raise TypeError("bools cannot be added up")
    return _cumsum(xp, x, dim)


def _cumsum(xp: Any, x: Any, dim: int) -> Any:
    # in float64, as PyTorch: float32 would lose a digit every few thousand elements
    return x.cumsum(dim, xp.float64 if x.dtype.kind == "f" else x.dtype).astype(x.dtype)


@op(tensors=1)
def _cumsum_from_end(xp: Any, input: Any, dim: int) -> Any:
    return xp.flip(_cumsum(xp, xp.flip(input, dim), dim), dim)


cumsum.grad(input=lambda g, dim, shape: _cumsum_from_end(g, dim) if shape else g)
_cumsum_from_end.grad(input=lambda g, dim: cumsum(g, dim))


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
    scale = 2 / freedom if freedom else inf
    return scale * restored(g, shape, dim, keepdim) * (input - mean(input, dim, True))


var.grad(input=_slope_of_var)
std.grad(
    input=lambda g, input, out, shape, dim, correction, keepdim: _slope_of_var(
        where(out == 0, 0.0, g / (2 * out)), input, shape, dim, correction, keepdim
    )
)


@op(dtypes="floating", kernel="linalg_vector_norm_cpu")
def norm(
    xp: Any,
    input: Any,
    p: Any = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Any:
    """The p-norm ``sum(|x| ** p) ** (1 / p)`` of all elements, or along ``dim``.

    ``p`` is 2 unless told otherwise; ``inf`` gives the largest size, 0 counts what is not zero.

    >>> tk.norm(tk.tensor([3., -4.])), tk.norm(tk.tensor([3., -4.]), p=1)
    (tensor(5.), tensor(7.))
    """
    x = input if dtype is None else _summands("norm", xp, input, dtype)
    p, own = _power(p), wide(xp, x)
    if p == 2:
        found = xp.sqrt(total(xp, own * own, dim, keepdim))
    elif p == 0:
        found = total(xp, (own != 0).astype(own.dtype), dim, keepdim)
    elif p in (inf, -inf):
        own = xp.absolute(own)
        found = (own.max if p > 0 else own.min)(axis=axes(x, dim), keepdims=keepdim)
    else:
        found = total(xp, xp.absolute(own) ** p, dim, keepdim) ** (1 / p)
    return found.astype(x.dtype)


def _power(p: Any) -> float:
    return 2.0 if p is None or p == "fro" else float(p)


def _slope_of_norm(g: Any, x: Any, out: Any, dim: Dims, p: float) -> Any:
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


norm.grad(
    node="LinalgVectorNormBackward0",
    input=lambda g, input, out, shape, p, dim, keepdim: _slope_of_norm(
        restored(g, shape, dim, keepdim), input, restored(out, shape, dim, keepdim), dim, _power(p)
    ),
)


# Products


@op()
def prod(
    xp: Any,
    input: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Any:
    """Product of all elements, or along one dimension.

    Integers and bools give int64; ``dtype`` converts before multiplying.

    >>> x = tk.tensor([[1., 2.], [3., 4.]])
    >>> tk.prod(x), tk.prod(x, dim=0)
    (tensor(24.), tensor([3., 8.]))
    """
    x = _summands("prod", xp, input, dtype)
    axis = None if dim is None else index(dim)
    return xp.multiply.reduce(wide(xp, x), axis, None, None, keepdim).astype(x.dtype)


def _slope_of_prod(g: Any, x: Any, out: Any, dim: int | None) -> Any:
    if not any(x == 0):
        return g * (out / x)
    if dim is None or not x.ndim:
        return g * reshape(_products_of_others(reshape(x, (-1,))), tuple(x.shape))
    return g * transpose(_products_of_others(transpose(x, dim, -1)), dim, -1)


def _products_of_others(x: Any) -> Any:
    """For each element the product of all others along the last dimension, zeros among them."""
    return prod(where(_diagonal(x), 1.0, unsqueeze(x, -2)), -1)


@op()
def _diagonal(xp: Any, x: Any) -> Any:
    return xp.eye(x.shape[-1], dtype=bool)


prod.grad(
    node="ProdBackward1",
    plain="ProdBackward0",
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


# The largest and the smallest. Equal ones get equal shares of the gradient, but where an index is
# reported that one gets all.


def _need_elements(
    input: Tensor, dim: Dims = None, keepdim: bool = False, whole: Any = ShapeError
) -> None:
    if count(tuple(input.shape), dim) == 0:
        error = whole if dim is None or dim == () else IndexRangeError
        raise error(
            "Expected reduction dim to have non-zero size.",
            f"The tensor has shape {tuple(input.shape)}: there is no largest or smallest element.",
        )


@op(explain=_need_elements)
def amax(xp: Any, input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """The largest element, or the largest ones along ``dim``: one dimension or a tuple of them.

    >>> tk.amax(tk.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([5., 3.])
    """
    return input.max(axis=axes(input, dim), keepdims=keepdim)


@op(explain=_need_elements)
def amin(xp: Any, input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """The smallest element, or the smallest ones along ``dim``.

    >>> tk.amin(tk.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([1., 2.])
    """
    return input.min(axis=axes(input, dim), keepdims=keepdim)


def _equal_shares(g: Any, x: Any, out: Any, shape: Ints, dim: Dims, keepdim: bool) -> Any:
    is_extreme = x == restored(out, shape, dim, keepdim)
    return restored(g, shape, dim, keepdim) * is_extreme / sum(is_extreme, dim, True)


for _each in (amax, amin):
    _each.grad(
        input=lambda g, input, out, shape, dim, keepdim: _equal_shares(
            g, input, out, shape, dim, keepdim
        )
    )


@op(explain=_need_elements)
def _max(xp: Any, input: Any) -> Any:
    return input.max()


@op(explain=_need_elements)
def _min(xp: Any, input: Any) -> Any:
    return input.min()


def _shares_of_all(g: Any, x: Any, out: Any) -> Any:
    is_extreme = (x == out) | ((x != x) & (out != out))  # nan is the extreme of what has nan
    return where(is_extreme, g / sum(is_extreme), 0.0)


_max.grad(node="MaxBackward1", input=lambda g, input, out: _shares_of_all(g, input, out))
_min.grad(node="MinBackward1", input=lambda g, input, out: _shares_of_all(g, input, out))


@op(dtypes="numeric", explain=partial(_need_elements, whole=IndexRangeError))
def argmax(xp: Any, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index of the largest element, along ``dim`` or in the flattened tensor.

    >>> tk.argmax(tk.tensor([[1., 5.], [3., 2.]])), tk.argmax(tk.tensor([[1., 5.], [3., 2.]]), 0)
    (tensor(1), tensor([1, 0]))
    """
    return _positions(xp, input.argmax(axis=dim), input, dim, keepdim)


@op(dtypes="numeric", explain=partial(_need_elements, whole=IndexRangeError))
def argmin(xp: Any, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index of the smallest element, along ``dim`` or in the flattened tensor.

    >>> tk.argmin(tk.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([0, 1])
    """
    return _positions(xp, input.argmin(axis=dim), input, dim, keepdim)


def _positions(xp: Any, found: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    if not keepdim:
        return found
    return found.reshape((1,) * x.ndim) if dim is None else xp.expand_dims(found, dim)


def named_result(name: str, *fields: str) -> Any:
    """A class of named tuples that prints as PyTorch's ``torch.return_types`` do."""

    def __repr__(self: Any) -> str:
        parts = (f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n" + ",\n".join(parts) + ")"

    tuple_of: Any = namedtuple  # a checker wants to know the fields
    body = {
        "__slots__": (),
        "__module__": "torch.return_types",
        "__repr__": __repr__,
        "__reduce__": lambda self: (_made_again, (name, fields, tuple(self))),
    }
    return type(name, (tuple_of(name, fields),), body)


def _made_again(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return named_result(name, *fields)(*values)


def picked(xp: Any, x: Any, indices: Any, dim: int, keepdim: bool = True) -> tuple[Any, Any]:
    """The elements at these positions along a dimension, and the positions."""
    values = xp.take_along_axis(x, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def put_back(g: Any, indices: Any, shape: Ints, dim: int, keepdim: bool = True) -> Any:
    """The gradient of what was picked, where it was picked; zeros elsewhere."""
    if not shape:
        return g
    g, indices = (restored(each, shape, dim, keepdim) for each in (g, indices))
    return add_along(g, indices, dim=dim % len(shape), size=shape)


@op(tensors=1, name="max", outputs=named_result("max", "values", "indices"), explain=_need_elements)
def _max_along(xp: Any, input: Any, dim: int, keepdim: bool = False) -> Any:
    indices = xp.expand_dims(input.argmax(axis=index(dim)), dim)
    return picked(xp, input, indices, dim, keepdim)


@op(tensors=1, name="min", outputs=named_result("min", "values", "indices"), explain=_need_elements)
def _min_along(xp: Any, input: Any, dim: int, keepdim: bool = False) -> Any:
    indices = xp.expand_dims(input.argmin(axis=index(dim)), dim)
    return picked(xp, input, indices, dim, keepdim)


for _each, _name in ((_max_along, "MaxBackward0"), (_min_along, "MinBackward0")):
    _each.grad(
        node=_name,
        input=lambda g, indices, shape, dim, keepdim: put_back(g, indices, shape, dim, keepdim),
    )


def max(input: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The largest element; with ``dim`` values and indices along it; with a tensor ``maximum``.

    >>> x = tk.tensor([[1., 5.], [3., 2.]])
    >>> tk.max(x), tk.max(x, dim=1).indices, tk.max(x, x.t())
    (tensor(5.), tensor([1, 0]), tensor([[1., 5.],
            [5., 2.]]))
    """
    return _chosen(_max, _max_along, maximum, input, dim, keepdim, options)


def min(input: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The smallest element; with ``dim`` values and indices along it; with a tensor ``minimum``.

    >>> x = tk.tensor([[1., 5.], [3., 2.]])
    >>> tk.min(x), tk.min(x, dim=1).values
    (tensor(1.), tensor([1., 2.]))
    """
    return _chosen(_min, _min_along, minimum, input, dim, keepdim, options)


def _chosen(
    whole: Any, along: Any, of_two: Any, x: Any, dim: Any, keepdim: Any, options: dict[str, Any]
) -> Any:
    if isinstance(options.get("other", dim), TensorBase) and not keepdim:
        return of_two(x, options.get("other", dim))
    if dim is None and not options:
        return whole(x)
    return along(x, *([] if dim is None else [dim]), keepdim=keepdim, **options)
