"""Losses as single operations: nll, mse, binary cross entropy with and without logits.

Each takes inputs that its caller in ``nn.functional`` has checked, of one shape, and ``reduction``:
"none" (one number per item), "mean" or "sum".
"""

from functools import lru_cache
from typing import Any

import numpy as np

from tensorkit import kernels
from tensorkit.devices import backend_of
from tensorkit.errors import IndexRangeError
from tensorkit.kernels import Kernel, Rows
from tensorkit.layout import Ints
from tensorkit.ops.along import count, first_of_rows, wide
from tensorkit.ops.elementary import log, sigmoid
from tensorkit.ops.indexing import outside
from tensorkit.ops.notation import op
from tensorkit.ops.reduction import total
from tensorkit.ops.selection import where


def _reduced(xp: Any, items: Any, reduction: str) -> Any:
    if reduction == "none":
        return items
    sums = total(xp, items)
    return sums if reduction == "sum" else sums / items.size


def _for_each(g: Any, shape: Ints, reduction: str, factor: float = 1) -> Any:
    """The gradient that each item gets, times ``factor``."""
    share = factor / max(count(shape, None), 1) if reduction == "mean" else factor
    return g if share == 1 else g * share


# Distances


@op(kind="function")
def mse_loss(xp: Any, x: Any, y: Any, *, reduction: str) -> Any:
    """Mean of the squared differences.

    >>> tk.nn.functional.mse_loss(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """
    difference = xp.asarray(xp.subtract(x, y))
    if reduction == "none":
        return difference * difference
    wider = wide(xp, difference)
    return _reduced(xp, wider * wider, reduction).astype(difference.dtype)


mse_loss.grad(
    x=lambda g, x, y, shape, reduction: _for_each(g, shape, reduction, 2) * (x - y),
    y=lambda g, x, y, shape, reduction: _for_each(g, shape, reduction, 2) * (y - x),
)


# Classes


def _all_count(target: Any, n_classes: int, ignore_index: int) -> bool:
    """Whether all classes exist and none is ignored; IndexError for others that do not exist."""
    if target.__class__ is not np.ndarray:  # the host does not wait to know
        said = outside(n_classes)
        backend_of(target).expect_inside(target, 0, n_classes, said, ignore_index)
        return False
    # negative numbers are huge without their sign
    codes: Any = target.view(np.uint8 if target.itemsize == 1 else np.uint64)
    unusual = codes >= n_classes
    if not unusual.ravel().nonzero()[0].size:
        return not 0 <= ignore_index < n_classes
    wrong = target[unusual & (target != ignore_index)]
    if wrong.size:
        raise IndexRangeError(
            f"Target {int(wrong[0])} is out of bounds.",
            f"There are {n_classes} classes, 0 to {n_classes - 1}.",
            index=int(wrong[0]),
            size=n_classes,
        )
    return False


def _weights(
    xp: Any, x: Any, target: Any, weight: Any, ignore_index: int, all_count: bool
) -> tuple[Any, Any]:
    """How much each item counts, and its class; 0 for both where it is ignored.

    There is None for counts if each counts as one.
    """
    if all_count:
        return None if weight is None else weight[target], target
    ignored = target == ignore_index
    kept = xp.where(ignored, 0, target)
    counts = xp.ones(target.shape, x.dtype) if weight is None else weight[kept]
    return xp.where(ignored, x.dtype.type(0), counts), kept


_counted: Any = lru_cache(100)(np.arange)  # never written to


def _chosen(xp: Any, kept: Any) -> Any:
    """The index of ``x[n, kept[n, ...], ...]``: x (N, C, ...) or (C,), kept (N, ...) or ()."""
    n_dims = kept.ndim
    if n_dims == 1:
        return (_counted if xp is np and kept.size <= 1024 else xp.arange)(kept.size), kept
    places = [
        xp.arange(size).reshape((size, *(1,) * (n_dims - 1 - dim)))
        for dim, size in enumerate(kept.shape)
    ]
    return (*places[:1], kept, *places[1:])


_KNOWN = "(target >= 0 && target < classes ? -x[{at} * classes + target] : T(0) / T(0))"
_ITEM = Kernel(
    "nll",
    "raw T x, int64 target, int64 ignored, int64 classes",
    "T item",
    f"item = target == ignored ? T(0) : {_KNOWN.format(at='i')};",
)
_N_COUNTED = {"count": "T(target != ignored)"}
_TOTAL = Rows(
    "nll_total",
    "raw T x, int64 target, integer ignored, integer classes, integer is_mean",
    {**_N_COUNTED, "all": f"(target == ignored ? T(0) : {_KNOWN.format(at='j')})"},
    "y = is_mean ? all / count : all;",
    of_rows=True,
)
_SHARE = Rows(
    "nll_share",
    "raw T g, int64 target, integer ignored",
    _N_COUNTED,
    "y = g[0] / count;",
    of_rows=True,
)
_SPREAD = Kernel(
    "nll_spread",
    "T g, int64 target, int64 ignored, int64 classes",
    "T slope",
    "slope = target != ignored && target == i % classes ? -g : T(0);",
)


def _is_plain(xp: Any, x: Any, shape: Ints, target: Any, weight: Any) -> bool:
    """Whether kernels do this: scores of this shape (N, C), int64 targets (N,), no weights."""
    if not kernels.are_for(xp, x):
        return False
    return weight is None and len(shape) == 2 and target.dtype == xp.int64


def _is_table(x: Any, target: Any) -> bool:
    """Whether these are scores (N, C) in row-major order and classes (N,) of int64."""
    return x.ndim == 2 and x.flags.c_contiguous and x.dtype.char in "fd" and target.itemsize == 8


def _nll(xp: Any, x: Any, target: Any, weight: Any, reduction: str, ignore_index: int) -> Any:
    n_classes = x.shape[min(x.ndim - 1, 1)]
    all_count = _all_count(target, n_classes, ignore_index)
    if _is_plain(xp, x, x.shape, target, weight):
        if reduction == "none":
            return _ITEM(xp, x, target, ignore_index, n_classes)
        return _TOTAL(xp, 0, x, target, ignore_index, n_classes, reduction == "mean")
    counts, kept = _weights(xp, x, target, weight, ignore_index, all_count)
    items = xp.asarray(-x[_chosen(xp, kept)])
    if counts is not None:  # also where an ignored item is infinite
        items = xp.where(target == ignore_index, x.dtype.type(0), items * counts)
    if reduction == "none":
        return items
    sums = total(xp, wide(xp, items))
    if reduction == "mean":
        sums = sums / _total_weight(xp, counts, kept)
    return sums.astype(x.dtype, copy=False)


def _total_weight(xp: Any, counts: Any, kept: Any) -> Any:
    return kept.size if counts is None else total(xp, wide(xp, counts))


@op(kind="function")
def nll_loss(
    xp: Any, x: Any, target: Any, weight: Any = None, *, reduction: str, ignore_index: int
) -> Any:
    """Minus the log-probability ``x`` of each item's class: x (N, C) or (C,), target (N,) or ().

    The mean is weighted by ``weight``, one number per class. Items of the class ``ignore_index``
    do not count. Raises IndexError for other classes that do not exist.

    >>> tk.nn.functional.nll_loss(tk.tensor([[-1., -2.]]), tk.tensor([1]))
    tensor(2.)
    """
    return _nll(xp, x, target, weight, reduction, ignore_index)


@op(kind="function")
def nll_loss2d(
    xp: Any, x: Any, target: Any, weight: Any = None, *, reduction: str, ignore_index: int
) -> Any:
    """The same for items that have places: x (N, C, ...), target (N, ...)."""
    return _nll(xp, x, target, weight, reduction, ignore_index)


@op(kind="function")
def nll_spread(
    xp: Any, g: Any, target: Any, weight: Any, *, size: Ints, reduction: str, ignore_index: int
) -> Any:
    """The gradient of ``nll_loss``: zeros of this size, and at each item's class its share."""
    if g.__class__ is np.ndarray:
        pass
    elif _is_plain(xp, g, size, target, weight):
        if reduction == "mean":
            g = _SHARE(xp, 0, g, target, ignore_index)
        columns = g.reshape(-1, 1), target.reshape(-1, 1)
        return _SPREAD(xp, *columns, ignore_index, size[1], xp.empty(size, g.dtype))
    all_count = _all_count(target, size[min(len(size) - 1, 1)], ignore_index)
    counts, kept = _weights(xp, g, target, weight, ignore_index, all_count)
    if reduction == "mean":
        g = g / _total_weight(xp, counts, kept)
    result = xp.zeros(size, g.dtype)
    if counts is None and _is_table(result, kept) and kept.__class__ is np.ndarray:
        result.reshape(-1)[first_of_rows(*size) + kept] = -g
        return result
    slope = -g
    if counts is not None:  # also where all are ignored, and g is infinite
        slope = xp.where(target == ignore_index, g.dtype.type(0), slope * counts)
    result[_chosen(xp, kept)] = slope
    return result


for _operation in (nll_loss, nll_loss2d):
    _operation.grad(
        x=lambda g, target, weight, shape, reduction, ignore_index: nll_spread(
            g, target, weight, size=shape, reduction=reduction, ignore_index=ignore_index
        ),
    )
nll_spread.grad(
    g=lambda g, target, weight, reduction, ignore_index: nll_loss(
        g, target, weight, reduction=reduction, ignore_index=ignore_index
    ),
)


# Two classes


@op(kind="function")
def binary_cross_entropy(xp: Any, x: Any, y: Any, weight: Any, *, reduction: str) -> Any:
    """``-(y log x + (1 - y) log(1 - x))``, logarithms not below -100; times ``weight`` if given.

    >>> tk.nn.functional.binary_cross_entropy(tk.tensor([0.5]), tk.tensor([1.]))
    tensor(0.6931)
    """
    least = x.dtype.type(-100)
    yes, no = xp.maximum(xp.log(x), least), xp.maximum(xp.log1p(-x), least)
    items = xp.asarray((y - 1) * no - y * yes)
    return _reduced(xp, items if weight is None else items * weight, reduction)


def _weighted(g: Any, weight: Any, shape: Ints, reduction: str) -> Any:
    g = _for_each(g, shape, reduction)
    return g if weight is None else g * weight


def _at_least(x: Any, least: float) -> Any:
    return where(x > least, x, least)


binary_cross_entropy.grad(
    x=lambda g, x, y, weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * ((x - y) / _at_least((1 - x) * x, 1e-12))
    ),
    y=lambda g, x, weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * (log(1 - x) - log(x))
    ),
)


@op(kind="function")
def bce_with_logits(
    xp: Any, x: Any, y: Any, weight: Any, pos_weight: Any, *, reduction: str
) -> Any:
    """``binary_cross_entropy(sigmoid(x), y)`` without overflow; ``pos_weight`` counts the ones.

    The result has the dtype of the targets.

    >>> tk.nn.functional.binary_cross_entropy_with_logits(tk.tensor([0.]), tk.tensor([1.]))
    tensor(0.6931)
    """
    # softplus(-x), which is -log(sigmoid(x))
    miss = xp.log1p(xp.exp(-xp.absolute(x))) + xp.maximum(-x, x.dtype.type(0))
    if pos_weight is not None:
        miss = miss * ((pos_weight - 1) * y + 1)
    items = xp.asarray((1 - y) * x + miss)
    items = items if weight is None else items * weight
    return _reduced(xp, items.astype(y.dtype, copy=False), reduction)


def _logit_slope(x: Any, y: Any, pos_weight: Any) -> Any:
    if pos_weight is None:
        return sigmoid(x) - y
    return (1 - y) - ((pos_weight - 1) * y + 1) * sigmoid(-x)


def _target_slope(x: Any, pos_weight: Any) -> Any:
    return -x if pos_weight is None else (1 - pos_weight) * log(sigmoid(x)) - x


bce_with_logits.grad(
    node="BinaryCrossEntropyWithLogitsBackward0",
    x=lambda g, x, y, weight, pos_weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * _logit_slope(x, y, pos_weight)
    ),
    y=lambda g, x, weight, pos_weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * _target_slope(x, pos_weight)
    ),
)
