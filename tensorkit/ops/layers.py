"""Layers that are single operations: the rows of an embedding, layer norm."""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tensorkit import kernels
from tensorkit.kernels import Rows
from tensorkit.layout import Ints
from tensorkit.ops.along import wide
from tensorkit.ops.elementary import sqrt
from tensorkit.ops.indexing import added
from tensorkit.ops.notation import op
from tensorkit.ops.reduction import mean, total
from tensorkit.ops.selection import where
from tensorkit.ops.views import unsqueeze

# the mean of a row, and of the squares of what is beyond it
_SPREAD = {"mean": "x * share", "spread": "(x - mean) * (x - mean) * share"}
_SCALED = "g * (weight ? weight[j] : T(1))"
_NORMED = Rows(
    "layer_norm",
    "T x, raw T weight, raw T bias, number eps, number share",
    _SPREAD,
    "y = (x - mean) / sqrt(spread + eps) * (weight ? weight[j] : T(1)) + (bias ? bias[j] : T(0));",
)
_NORMED_SLOPE = Rows(
    "layer_norm_slope",
    "T g, T x, raw T weight, number eps, number share",
    # less `one`, so that the rounding of the mean does not count
    {**_SPREAD, "one": f"{_SCALED} * share", "two": f"({_SCALED} - one) * (x - mean) * share"},
    f"y = ({_SCALED} - one - (x - mean) * two / (spread + eps)) / sqrt(spread + eps);",
)
_WEIGHT_SLOPE = Rows(
    "layer_norm_weight",
    "T g, T x, number eps, number share",
    _SPREAD,
    "y = g * (x - mean) / sqrt(spread + eps);",
)


def _launched(kernel: Rows, xp: Any, dims: Ints, *given: Any) -> Any:
    """A kernel on arrays whose last dimensions ``dims`` make a row, and what these share."""
    x = given[0]
    size = prod(x.shape[dim] for dim in dims)
    rows = [each.reshape(-1, size) if getattr(each, "shape", ()) == x.shape else each
            for each in given]  # fmt: skip
    return kernel(xp, 1, *rows, 1 / size).reshape(x.shape)


@op(kind="function")
def native_layer_norm(xp: Any, x: Any, weight: Any, bias: Any, *, dims: Ints, eps: float) -> Any:
    """``x`` with mean 0 and variance 1 along its last dimensions ``dims``, then scaled and moved.

    Source: Ba, Kiros and Hinton 2016.

    >>> tk.nn.functional.layer_norm(tk.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
    size = prod(x.shape[dim] for dim in dims)
    given = (weight, bias)
    if x.size and kernels.are_for(xp, x, *(each for each in given if each is not None)):
        return _launched(_NORMED, xp, dims, x, weight, bias, eps)
    own = wide(xp, x)
    if _are_rows(own, size):
        scale, shift = (None if each is None else each.reshape(-1) for each in given)
        result = _by_rows(lambda x: _normed_rows(x, scale, shift, eps), size, own)
        return result.astype(x.dtype, copy=False)
    scale = own.dtype.type(1 / size if size else 0)
    result = own - total(xp, own, dims, True) * scale
    spread = total(xp, result * result, dims, True) * scale
    result /= xp.sqrt(spread + own.dtype.type(eps))
    if weight is not None:
        result *= weight
    if bias is not None:
        result += bias
    return result.astype(x.dtype, copy=False)


def _are_rows(x: Any, size: int) -> bool:
    """Whether NumPy's arrays are normalised in rows of this size, by products with vectors."""
    return x.__class__ is np.ndarray and x.dtype.char in "fd" and x.size > 0 and size <= 2048


def _by_rows(function: Any, size: int, *arrays: Any) -> Any:
    """``function`` of rows of this size, of so many at a time as the processor's cache holds."""
    rows = [each.reshape(-1, size) for each in arrays]
    step = max(_CACHED // size, 1)
    if len(rows[0]) <= step:
        return function(*rows).reshape(arrays[0].shape)
    result = np.empty(rows[0].shape, arrays[0].dtype)
    for start in range(0, len(result), step):
        result[start : start + step] = function(*[each[start : start + step] for each in rows])
    return result.reshape(arrays[0].shape)


_CACHED = 2**15


def _normed_rows(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    result, _ = _standard_rows(x, eps)
    if weight is not None:
        result *= weight
    if bias is not None:
        result += bias
    return result


def _row_means(x: Any) -> Any:
    return x.dot(_shares(x.shape[1], x.dtype.char))


@lru_cache(100)
def _shares(n: int, char: str) -> Any:
    """What each of so many numbers counts in their mean; not to be written to."""
    return np.full(n, 1 / n, char)


def _standard_rows(x: Any, eps: float) -> tuple[Any, Any]:
    """Rows with mean 0 and variance 1, and what they were multiplied by."""
    result = x - _row_means(x)[:, None]
    scale = _row_means(result * result)
    scale += eps
    scale = np.reciprocal(np.sqrt(scale, scale), scale)[:, None]
    result *= scale
    return result, scale


def _standard(x: Any, dims: Ints, eps: float) -> tuple[Any, Any]:
    """``x`` with mean 0 and variance 1, and the deviation it was divided by."""
    centred = x - mean(x, dims, True)
    deviation = sqrt(mean(centred * centred, dims, True) + eps)
    return centred / deviation, deviation


def _normed_slope(g: Any, x: Any, weight: Any, dims: Ints, eps: float) -> Any:
    if g.__class__ is np.ndarray and _are_rows(x, prod(x.shape[dim] for dim in dims)):
        return _normed_slope_of_rows(g, x, weight, dims, eps)
    standard, deviation = _standard(x, dims, eps)
    g = g if weight is None else g * weight
    return (g - mean(g, dims, True) - standard * mean(g * standard, dims, True)) / deviation


def _normed_slope_of_rows(g: Any, x: Any, weight: Any, dims: Ints, eps: float) -> Any:
    size = prod(x.shape[dim] for dim in dims)
    weight = None if weight is None else weight.reshape(-1)

    def slope_of(g: Any, x: Any) -> Any:
        standard, scale = _standard_rows(x, eps)
        g = g if weight is None else g * weight
        slope = g - _row_means(g)[:, None]
        standard *= _row_means(g * standard)[:, None]
        slope -= standard
        slope *= scale
        return slope

    return _by_rows(slope_of, size, g, x)


def _weight_slope(g: Any, x: Any, dims: Ints, eps: float) -> Any:
    size = prod(x.shape[dim] for dim in dims)
    if g.__class__ is np.ndarray and _are_rows(x, size):
        return _by_rows(lambda g, x: g * _standard_rows(x, eps)[0], size, g, x)
    return g * _standard(x, dims, eps)[0]


native_layer_norm.grad(
    x=kernels.formula(
        lambda xp, g, x, weight, dims, eps: _launched(_NORMED_SLOPE, xp, dims, g, x, weight, eps),
        lambda g, x, weight, dims, eps: _normed_slope(g, x, weight, dims, eps),
    ),
    weight=kernels.formula(
        lambda xp, g, x, dims, eps: _launched(_WEIGHT_SLOPE, xp, dims, g, x, eps),
        lambda g, x, dims, eps: _weight_slope(g, x, dims, eps),
    ),
    bias=lambda g: g,
)


@op(kind="function")
def embedding(xp: Any, weight: Any, index: Any, *, padding_idx: int | None) -> Any:
    """The rows of ``weight`` (n, d) at ``index`` (...), as (..., d).

    The row ``padding_idx`` gets no gradient.

    >>> tk.nn.functional.embedding(tk.tensor([1, 1]), tk.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    return weight.take(index, axis=0)


@op(kind="function")
def embedding_rows(xp: Any, g: Any, index: Any, *, size: Ints, padding_idx: int | None) -> Any:
    """The gradient of ``embedding``: zeros of this size, to whose rows ``g`` is added."""
    rows, values = index.reshape(-1), g.reshape(index.size, *size[1:])
    if padding_idx is not None:
        values = xp.where((rows == padding_idx)[:, None], values.dtype.type(0), values)
    return added.definition.forward(xp, values, index=(rows,), size=size)


def _without_padding(g: Any, index: Any, padding_idx: int | None) -> Any:
    found = embedding(g, index, padding_idx=padding_idx)
    if padding_idx is None:
        return found
    return where(unsqueeze(index == padding_idx, -1), 0.0, found)


embedding.grad(
    weight=lambda g, index, shape, padding_idx: embedding_rows(
        g, index, size=shape, padding_idx=padding_idx
    )
)
embedding_rows.grad(node="EmbeddingDenseBackwardBackward0", g=_without_padding)
