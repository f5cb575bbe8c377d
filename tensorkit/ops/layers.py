"""Layers that are single operations: the rows of an embedding, layer norm."""

from math import prod
from typing import Any

from tensorkit import kernels
from tensorkit.kernels import Kernel, Reduction
from tensorkit.layout import Ints
from tensorkit.ops.along import wide
from tensorkit.ops.elementary import sqrt
from tensorkit.ops.notation import op
from tensorkit.ops.places import add_rows
from tensorkit.ops.reduction import mean, total
from tensorkit.ops.selection import where
from tensorkit.ops.views import unsqueeze

_SQUARES = Reduction(
    "squares",
    "T x, T sum, T share",
    "T y",
    "(x - share * sum) * (x - share * sum)",
    "a + b",
    "y = a",
    "0",
)
_NORMED = Kernel(
    "layer_norm",
    "T x, T sum, T squares, T share, T eps, T weight, T bias",
    "T y",
    "y = (x - share * sum) / sqrt(share * squares + eps) * weight + bias;",
)


def _normed(xp: Any, x: Any, weight: Any, bias: Any, size: int, eps: float) -> Any:
    """Layer norm in three launches."""
    rows, share = x.reshape(-1, size), 1 / size
    sums = rows.sum(-1, keepdims=True)
    squares = _SQUARES(xp, rows, sums, share, axis=-1, keepdims=True)
    scale = 1 if weight is None else weight.reshape(-1)
    shift = 0 if bias is None else bias.reshape(-1)
    return _NORMED(xp, rows, sums, squares, share, eps, scale, shift).reshape(x.shape)


@op(kind="function")
def native_layer_norm(xp: Any, x: Any, weight: Any, bias: Any, *, dims: Ints, eps: float) -> Any:
    """``x`` with mean 0 and variance 1 along its last dimensions ``dims``, then scaled and moved.

    Source: Ba, Kiros and Hinton 2016.

    >>> tk.nn.functional.layer_norm(tk.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
    size = prod(x.shape[dim] for dim in dims)
    given = (weight, bias)
    if kernels.are_for(xp, x) and x.size and all(w is None or w.dtype == x.dtype for w in given):
        return _normed(xp, x, weight, bias, size, eps)
    own = wide(xp, x)
    scale = own.dtype.type(1 / size if size else 0)
    result = own - total(xp, own, dims, True) * scale
    spread = total(xp, result * result, dims, True) * scale
    result /= xp.sqrt(spread + own.dtype.type(eps))
    if weight is not None:
        result *= weight
    if bias is not None:
        result += bias
    return result.astype(x.dtype, copy=False)


def _standard(x: Any, dims: Ints, eps: float) -> tuple[Any, Any]:
    """``x`` with mean 0 and variance 1, and the deviation it was divided by."""
    centred = x - mean(x, dims, True)
    deviation = sqrt(mean(centred * centred, dims, True) + eps)
    return centred / deviation, deviation


def _normed_slope(g: Any, x: Any, weight: Any, dims: Ints, eps: float) -> Any:
    standard, deviation = _standard(x, dims, eps)
    g = g if weight is None else g * weight
    return (g - mean(g, dims, True) - standard * mean(g * standard, dims, True)) / deviation


native_layer_norm.grad(
    x=lambda g, x, weight, dims, eps: _normed_slope(g, x, weight, dims, eps),
    weight=lambda g, x, dims, eps: g * _standard(x, dims, eps)[0],
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
    return add_rows(xp, rows, values, size[0])


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
embedding_rows.grad(
    node="EmbeddingDenseBackwardBackward0",
    g=lambda g, index, padding_idx: _without_padding(g, index, padding_idx),
)
