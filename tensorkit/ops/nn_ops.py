"""What layers and losses are made of: softmax, layer norm, embedding, and losses as operations.

``nn.functional`` has the public losses and layers, which check shapes; here they are computed.
``reduction`` is "none" (one number per item), "mean" or "sum".
"""

from math import prod
from typing import Any

import numpy as np

from tensorkit.base import Tensor
from tensorkit.devices import backend_of
from tensorkit.dispatch import op
from tensorkit.dtypes import DType, as_dtype, of_numpy
from tensorkit.errors import IndexRangeError, ShapeError
from tensorkit.layout import Ints
from tensorkit.ops.arguments import need_tensor, no_kernel
from tensorkit.ops.blocks import by_rows
from tensorkit.ops.elementary import exp, log, sigmoid, sqrt
from tensorkit.ops.matmul import addmm, refuse_sizes
from tensorkit.ops.places import add_rows, outside
from tensorkit.ops.reductions import mean, sum, total, wide
from tensorkit.ops.selection import where
from tensorkit.ops.views import t, unsqueeze

# Exponentials that are divided by their sum


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


def _softmax(xp: Any, x: Any, dim: int) -> Any:
    powers = xp.exp(x - x.max(dim, keepdims=True))
    powers /= total(xp, powers, dim, True)
    return powers


def _log_softmax(xp: Any, x: Any, dim: int) -> Any:
    shifted = x - x.max(dim, keepdims=True)
    shifted -= xp.log(total(xp, xp.exp(shifted), dim, True))
    return shifted


softmax.grad(input=lambda g, out, dim: out * (g - sum(g * out, dim, True)))
log_softmax.grad(input=lambda g, out, dim: g - exp(out) * sum(g, dim, True))

# Layers


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``x @ weight.t() + bias`` of a matrix ``x``; what is refused names the layer."""
    try:
        return addmm(bias, x, t(weight))
    except (TypeError, ShapeError):
        for at, (name, value) in enumerate((("input", x), ("weight", weight), ("bias", bias)), 1):
            need_tensor("linear", value, name, at)
        given, taken = tuple(x.shape), tuple(weight.shape)
        if len(given) == len(taken) == 2 and given[1] != taken[1]:
            refuse_sizes(given, taken[::-1], of_layer=True)
        raise


@op(tensors=3, dtypes="floating", kernel="LayerNormKernelImpl")
def native_layer_norm(
    xp: Any, input: Any, weight: Any = None, bias: Any = None, *, dims: Ints, eps: float
) -> Any:
    """``input`` with mean 0 and variance 1 along its last dimensions ``dims``, scaled and moved.

    Source: Ba, Kiros and Hinton 2016.

    >>> tk.nn.functional.layer_norm(tk.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
    n = prod(input.shape[dim] for dim in dims)
    if not input.size:
        return input.copy()

    def kernel(xp: Any, x: Any, axis: int) -> Any:
        result = x - total(xp, x, axis, True) / n
        result /= xp.sqrt(total(xp, result * result, axis, True) / n + x.dtype.type(eps))
        if weight is not None:
            result *= weight.reshape(-1)
        if bias is not None:
            result += bias.reshape(-1)
        return result

    rows = wide(xp, input).reshape(-1, n)
    return by_rows(xp, kernel, 1, rows).reshape(input.shape).astype(input.dtype, copy=False)


def _standard(x: Any, dims: Ints, eps: float) -> tuple[Any, Any]:
    """``x`` with mean 0 and variance 1, and the deviation it was divided by."""
    centred = x - mean(x, dims, True)
    deviation = sqrt(mean(centred * centred, dims, True) + eps)
    return centred / deviation, deviation


def _slope_of_norm(g: Any, x: Any, weight: Any, dims: Ints, eps: float) -> Any:
    standard, deviation = _standard(x, dims, eps)
    g = g if weight is None else g * weight
    return (g - mean(g, dims, True) - standard * mean(g * standard, dims, True)) / deviation


native_layer_norm.grad(
    input=lambda g, input, weight, dims, eps: _slope_of_norm(g, input, weight, dims, eps),
    weight=lambda g, input, dims, eps: g * _standard(input, dims, eps)[0],
    bias=lambda g: g,
)


@op(dtypes={"weight": "any", "index": "integral"})
def embedding(xp: Any, weight: Any, index: Any, *, padding_idx: int | None) -> Any:
    """The rows of ``weight`` (n, d) at ``index`` (...), as (..., d).

    The row ``padding_idx`` gets no gradient.

    >>> tk.nn.functional.embedding(tk.tensor([1, 1]), tk.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    return weight.take(index, axis=0)


@op(dtypes={"g": "any", "index": "integral"})
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

# Losses


def _reduced(xp: Any, items: Any, reduction: str) -> Any:
    if reduction == "none":
        return items
    sums = total(xp, items)
    return sums if reduction == "sum" else sums / items.size


def _for_each(g: Any, shape: Ints, reduction: str, factor: float = 1) -> Any:
    """The gradient that each item gets, times ``factor``."""
    share = factor / max(prod(shape), 1) if reduction == "mean" else factor
    return g if share == 1 else g * share


@op(dtypes="floating", kernel="mse_cpu")
def mse_loss(xp: Any, input: Any, target: Any, *, reduction: str) -> Any:
    """Mean of the squared differences.

    >>> tk.nn.functional.mse_loss(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """
    difference = wide(xp, xp.asarray(input - target))
    return _reduced(xp, difference * difference, reduction).astype(input.dtype)


mse_loss.grad(
    input=lambda g, input, target, shape, reduction: (
        _for_each(g, shape, reduction, 2) * (input - target)
    ),
    target=lambda g, input, target, shape, reduction: (
        _for_each(g, shape, reduction, 2) * (target - input)
    ),
)


def _counted(
    xp: Any, target: Any, weight: Any, ignore_index: int, n_classes: int, dtype: Any
) -> tuple[Any, Any]:
    """How much each item counts (None: each as one), and its class; 0 for both where ignored.

    IndexRangeError for other classes that do not exist.
    """
    is_host = target.__class__ is np.ndarray
    if not is_host:  # the host does not wait to know
        said = outside(n_classes)
        backend_of(target).expect_inside(target, 0, n_classes, said, ignore_index)
    # negative numbers are huge without their sign
    elif (
        target.size
        and not 0 <= ignore_index < n_classes
        and np.maximum.reduce(target.astype(np.uint64)) < n_classes
    ):
        return None if weight is None else weight[target], target
    ignored = target == ignore_index
    wrong = target[~ignored & ((target < 0) | (target >= n_classes))] if is_host else target[:0]
    if wrong.size:
        raise IndexRangeError(
            f"Target {int(wrong[0])} is out of bounds.",
            f"There are {n_classes} classes, 0 to {n_classes - 1}.",
            index=int(wrong[0]),
            size=n_classes,
        )
    kept = xp.where(ignored, 0, target)
    counts = xp.where(ignored, 0, 1 if weight is None else weight[kept]).astype(dtype)
    return counts, kept


def _total_weight(xp: Any, counts: Any, kept: Any) -> Any:
    return kept.size if counts is None else total(xp, wide(xp, counts))


@op(
    tensors=3,
    ndim={"input": 2, "target": 1},
    dtypes={"input": "floating", "target": "integral", "weight": "floating"},
)
def nll_loss(
    xp: Any,
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Any:
    """Minus the log-probability ``input`` (N, C) of each item's class, ``target`` (N,).

    The mean is weighted by ``weight``, one number per class. Items of the class ``ignore_index``
    do not count. Raises IndexError for other classes that do not exist.

    >>> tk.nn.functional.nll_loss(tk.tensor([[-1., -2.]]), tk.tensor([1]))
    tensor(2.)
    """
    counts, kept = _counted(xp, target, weight, ignore_index, input.shape[1], input.dtype)
    items = -input[xp.arange(kept.size), kept]
    if counts is not None:  # also where an ignored item is infinite
        items = xp.where(target == ignore_index, input.dtype.type(0), items * counts)
    if reduction == "none":
        return items
    sums = total(xp, wide(xp, items))
    if reduction == "mean":
        sums = sums / _total_weight(xp, counts, kept)
    return sums.astype(input.dtype, copy=False)


@op(
    tensors=3,
    ndim={"target": 1},
    dtypes={"g": "floating", "target": "integral", "weight": "floating"},
)
def nll_spread(
    xp: Any, g: Any, target: Any, weight: Any, *, size: Ints, reduction: str, ignore_index: int
) -> Any:
    """The gradient of ``nll_loss``: zeros of this size, and at each item's class its share."""
    counts, kept = _counted(xp, target, weight, ignore_index, size[1], g.dtype)
    slope = -g / _total_weight(xp, counts, kept) if reduction == "mean" else -g
    if counts is not None:  # also where all are ignored, and g is infinite
        slope = xp.where(target == ignore_index, g.dtype.type(0), slope * counts)
    result = xp.zeros(size, g.dtype)
    result[xp.arange(kept.size), kept] = slope
    return result


nll_loss.grad(
    input=lambda g, target, weight, shape, reduction, ignore_index: nll_spread(
        g, target, weight, size=shape, reduction=reduction, ignore_index=ignore_index
    ),
)
nll_spread.grad(
    g=lambda g, target, weight, reduction, ignore_index: nll_loss(
        g, target, weight, reduction=reduction, ignore_index=ignore_index
    ),
)


@op(tensors=3, dtypes="floating")
def binary_cross_entropy(
    xp: Any, input: Any, target: Any, weight: Any = None, *, reduction: str
) -> Any:
    """``-(y log x + (1 - y) log(1 - x))``, logarithms not below -100; times ``weight`` if given.

    >>> tk.nn.functional.binary_cross_entropy(tk.tensor([0.5]), tk.tensor([1.]))
    tensor(0.6931)
    """
    least = input.dtype.type(-100)
    yes, no = xp.maximum(xp.log(input), least), xp.maximum(xp.log1p(-input), least)
    items = xp.asarray((target - 1) * no - target * yes)
    return _reduced(xp, items if weight is None else items * weight, reduction)


def _weighted(g: Any, weight: Any, shape: Ints, reduction: str) -> Any:
    g = _for_each(g, shape, reduction)
    return g if weight is None else g * weight


def _at_least(x: Any, least: float) -> Any:
    return where(x > least, x, least)


binary_cross_entropy.grad(
    input=lambda g, input, target, weight, shape, reduction: (
        _weighted(g, weight, shape, reduction)
        * ((input - target) / _at_least((1 - input) * input, 1e-12))
    ),
    target=lambda g, input, weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * (log(1 - input) - log(input))
    ),
)


@op(tensors=4, dtypes="floating")
def bce_with_logits(
    xp: Any, input: Any, target: Any, weight: Any = None, pos_weight: Any = None, *, reduction: str
) -> Any:
    """``binary_cross_entropy(sigmoid(x), y)`` without overflow; ``pos_weight`` counts the ones.

    >>> tk.nn.functional.binary_cross_entropy_with_logits(tk.tensor([0.]), tk.tensor([1.]))
    tensor(0.6931)
    """
    # softplus(-x), which is -log(sigmoid(x))
    miss = xp.log1p(xp.exp(-xp.absolute(input))) + xp.maximum(-input, input.dtype.type(0))
    if pos_weight is not None:
        miss = miss * ((pos_weight - 1) * target + 1)
    items = xp.asarray((1 - target) * input + miss)
    return _reduced(xp, items if weight is None else items * weight, reduction)


def _slope_of_logits(x: Any, y: Any, pos_weight: Any) -> Any:
    if pos_weight is None:
        return sigmoid(x) - y
    return (1 - y) - ((pos_weight - 1) * y + 1) * sigmoid(-x)


def _slope_of_target(x: Any, pos_weight: Any) -> Any:
    return -x if pos_weight is None else (1 - pos_weight) * log(sigmoid(x)) - x


bce_with_logits.grad(
    node="BinaryCrossEntropyWithLogitsBackward0",
    input=lambda g, input, target, weight, pos_weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * _slope_of_logits(input, target, pos_weight)
    ),
    target=lambda g, input, weight, pos_weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * _slope_of_target(input, pos_weight)
    ),
)
