"""Losses: how far an input is from its target, as operations with their gradients.

``reduction`` is "none" (one number per item), "mean" or "sum".
"""

import warnings
from math import nan, prod
from typing import Any

import numpy as np

from tensorkit import layout
from tensorkit.base import Tensor
from tensorkit.devices import CPU, backend_of
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError, IndexRangeError, ShapeError, message, refuse_options, sizes
from tensorkit.layout import Ints
from tensorkit.ops.arguments import need_tensor
from tensorkit.ops.elementary import log, sigmoid
from tensorkit.ops.gathering import first_outside
from tensorkit.ops.reductions import total, wide
from tensorkit.ops.selection import where
from tensorkit.ops.softmax import log_softmax
from tensorkit.ops.views import expand

_REDUCTIONS = ("none", "mean", "sum")


def _explain(input: Tensor, target: Tensor, reduction: str, **others: Any) -> None:
    """Raise for a reduction that does not exist, and for sizes that differ."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if input.shape != target.shape:
        raise ValueError(
            message(
                f"Target size ({target.shape!r}) must be the same as input size ({input.shape!r})",
                repair="target.view_as(input)",
            )
        )


def _reduced(xp: Any, items: Any, reduction: str) -> Any:
    if reduction not in _REDUCTIONS:
        raise ValueError
    if reduction == "none":
        return items
    sums = total(xp, wide(xp, items))
    sums = sums / items.size if reduction == "mean" else sums
    return sums.astype(items.dtype, copy=False)


def _for_each(g: Any, shape: Ints, reduction: str, factor: float = 1) -> Any:
    """The gradient that each item gets, times ``factor``."""
    share = factor / max(prod(shape), 1) if reduction == "mean" else factor
    return g if share == 1 else g * share


def _in_one_shape(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both broadcast, with a warning if they did not have one shape."""
    if input.size() == target.size():
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape!r}) that is different to the input size "
        f"({input.shape!r}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        UserWarning,
        stacklevel=3,
    )
    shape = layout.broadcast_shapes(tuple(input.shape), tuple(target.shape))
    return expand(input, shape), expand(target, shape)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Any:
    """The mean of the squared differences; their sum, or each of them.

    >>> tk.nn.functional.mse_loss(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """
    return _mse_loss(*_in_one_shape(input, target), reduction=reduction)


@op(tensors=2, promote=True, dtypes="floating", kernel="mse_cpu", explain=_explain)
def _mse_loss(xp: Any, input: Any, target: Any, reduction: str) -> Any:
    difference = xp.asarray(input - target)
    return _reduced(xp, difference * difference, reduction)


_mse_loss.grad(
    input=lambda g, input, target, shape, reduction: (
        _for_each(g, shape, reduction, 2) * (input - target)
    ),
    target=lambda g, input, target, shape, reduction: (
        _for_each(g, shape, reduction, 2) * (target - input)
    ),
)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of the absolute differences; their sum, or each of them.

    >>> tk.nn.functional.l1_loss(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(1.)
    """
    x, y = _in_one_shape(input, target)
    _explain(x, y, reduction)
    items = (x - y).abs()
    return items if reduction == "none" else items.mean() if reduction == "mean" else items.sum()


def _explain_classes(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, **others: Any
) -> None:
    """Raise for classes that do not fit the scores."""
    shape, own = tuple(input.shape), tuple(target.shape)
    _explain(target, target, reduction)
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) > 1 and (not own or shape[0] != own[0]):
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({own[0] if own else 0})."
        )
    if len(shape) == 1 and not _fit(shape, own):
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {own[0]}")
    if not _fit(shape, own):
        raise ShapeError(
            "0D or 1D target tensor expected, multi-target not supported"
            if len(shape) < 3
            else f"Expected target size {sizes(_items(shape))}, got {sizes(own)}",
            f"The target has shape {own}: one class number per item is expected, {_items(shape)}.",
            a_shape=shape,
            b_shape=own,
        )
    if str(target.dtype) not in ("torch.int64", "torch.uint8"):
        raise DTypeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.word}",
            "The target holds class numbers.",
            repair="target.long()",
        )
    n_classes = shape[min(len(shape) - 1, 1)]
    if weight is not None and tuple(weight.shape) != (n_classes,):
        raise ShapeError(
            f"weight tensor should be defined either for all {n_classes} classes or no classes but "
            f"got weight tensor of shape: {sizes(weight.shape)}",
            b_shape=tuple(weight.shape),
        )


def _items(shape: Ints) -> Ints:
    """The shape without that of the classes: (N, C, ...) gives (N, ...), (C,) gives ()."""
    return (*shape[:1], *shape[2:]) if len(shape) > 1 else ()


def _fit(shape: Ints, target: Ints) -> bool:
    return target == _items(shape) or (len(shape) == 1 and target == (1,))


def _rows(xp: Any, x: Any) -> Any:
    """Scores (N, C, ...) or (C,) as a table: a row per item."""
    if x.ndim == 2:
        return x
    return x[None] if x.ndim == 1 else xp.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def _counted(xp: Any, target: Any, weight: Any, ignored: int, n_classes: int, like: Any) -> Any:
    """The class of each item and how much the item counts: 0 for both where it is ignored."""
    left_out = target == ignored
    kept = xp.where(left_out, 0, target)
    wrong = first_outside(kept, n_classes)
    if wrong is not None:
        raise IndexRangeError(
            f"Target {wrong} is out of bounds.",
            f"There are {n_classes} classes, 0 to {n_classes - 1}.",
            index=wrong,
            size=n_classes,
        )
    counts = xp.where(left_out, 0, 1 if weight is None else weight[kept])
    return kept, counts.astype(like.dtype, copy=False)


@op(
    tensors=3,
    dtypes={"target": "any", "input": "floating", "weight": "floating"},
    explain=_explain_classes,
)
def nll_loss(
    xp: Any,
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """Minus the log-probability of each item's class: input (N, C, ...), target (N, ...).

    ``weight`` has one number per class; items of the class ``ignore_index`` do not count. Raises
    IndexError for a class that does not exist.

    >>> tk.nn.functional.nll_loss(tk.tensor([[-1., -2.]]), tk.tensor([1]))
    tensor(2.)
    """
    rows, classes = _rows(xp, input), target.reshape(-1)
    n_classes = rows.shape[1]
    if not _fit(input.shape, target.shape) or target.dtype not in (np.int64, np.uint8):
        raise ValueError
    if reduction not in _REDUCTIONS or (weight is not None and weight.shape != (n_classes,)):
        raise ValueError
    kept, counts = _counted(xp, classes, weight, ignore_index, n_classes, rows)
    items = -rows[xp.arange(kept.size), kept]
    items = xp.where(counts == 0, rows.dtype.type(0), items * counts)
    if reduction == "none":
        return items.reshape(_items(input.shape))
    sums = total(xp, wide(xp, items))
    sums = sums / total(xp, wide(xp, counts)) if reduction == "mean" else sums
    return sums.astype(input.dtype, copy=False)


@op(tensors=3, dtypes={"g": "floating", "target": "any", "weight": "floating"})
def _nll_loss_backward(
    xp: Any,
    g: Any,
    target: Any,
    weight: Any = None,
    size: Ints = (),
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Any:
    """The gradient of ``nll_loss``: zeros of this size, and at each item's class its share."""
    result = xp.zeros(size, g.dtype)
    rows = _rows(xp, result)
    kept, counts = _counted(xp, target.reshape(-1), weight, ignore_index, rows.shape[1], g)
    slope = -g / total(xp, wide(xp, counts)) if reduction == "mean" else -g.reshape(-1)
    slope = xp.where(counts == 0, g.dtype.type(0), slope * counts)
    rows[xp.arange(kept.size), kept] = slope
    if len(size) > 2:
        return xp.moveaxis(rows.reshape(*_items(size), size[1]), -1, 1)
    return result


nll_loss.grad(
    input=lambda g, target, weight, shape, reduction, ignore_index: _nll_loss_backward(
        g, target, weight, shape, reduction, ignore_index
    ),
)
_nll_loss_backward.grad(
    g=lambda g, target, weight, reduction, ignore_index: nll_loss(
        g, target, weight, ignore_index, reduction
    ),
)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """``nll_loss`` of ``log_softmax``: input (N, C, ...) are scores, target (N, ...) classes.

    A target of the input's shape holds probabilities.

    >>> tk.nn.functional.cross_entropy(tk.tensor([[0., 0.]]), tk.tensor([1]))
    tensor(0.6931)
    """
    need_tensor("cross_entropy_loss", input)
    need_tensor("cross_entropy_loss", target, "target", 2)
    has = "weight, ignore_index, reduction"
    refuse_options("cross_entropy", has, {"label_smoothing": label_smoothing})
    class_dim = 0 if len(input.shape) == 1 else 1
    if input.shape != target.shape:
        return nll_loss(log_softmax(input, class_dim), target, weight, ignore_index, reduction)
    if not target.is_floating_point():
        raise DTypeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.word}"
        )
    refuse_options("cross_entropy of probabilities", "reduction", {"weight": weight is not None})
    _explain(input, target, reduction)
    items = -(log_softmax(input, class_dim) * target).sum(class_dim)
    if reduction != "mean":
        return items if reduction == "none" else items.sum()
    return items.sum() / (input.numel() / (input.shape[class_dim] or nan))


@op(tensors=3, dtypes="floating", explain=_explain)
def binary_cross_entropy(
    xp: Any, input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Any:
    """``-(y log x + (1 - y) log(1 - x))`` of probabilities x and targets y; times ``weight``.

    The logarithms are not below -100.

    >>> tk.nn.functional.binary_cross_entropy(tk.tensor([0.5]), tk.tensor([1.]))
    tensor(0.6931)
    """
    if input.shape != target.shape:
        raise ValueError
    inside, backend = (input >= 0) & (input <= 1), backend_of(input)
    if backend is not CPU.backend:
        backend.expect(inside, "The input of this loss was no probability")
    elif not inside.all():
        raise DTypeError(
            "all elements of input should be between 0 and 1",
            "The input of this loss is a probability.",
            repair="binary_cross_entropy_with_logits(input, target)",
        )
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


def _explain_logits(input: Tensor, target: Tensor, reduction: str, **others: Any) -> None:
    _explain(input, target, reduction)
    if not target.is_floating_point():
        raise DTypeError(
            f"result type {input.dtype.word} can't be cast to the desired output type "
            f"{target.dtype.word}",
            repair="target.float()",
        )


# words that differ: these dtypes may
_DTYPES = {"input": "floating", "target": "numeric", "weight": "any", "pos_weight": "any"}


@op(tensors=4, dtypes=_DTYPES, explain=_explain_logits)
def binary_cross_entropy_with_logits(
    xp: Any,
    input: Any,
    target: Any,
    weight: Any = None,
    pos_weight: Any = None,
    reduction: str = "mean",
) -> Any:
    """``binary_cross_entropy(sigmoid(x), y)`` without overflow; ``pos_weight`` counts the ones.

    >>> tk.nn.functional.binary_cross_entropy_with_logits(tk.tensor([0.]), tk.tensor([1.]))
    tensor(0.6931)
    """
    if input.shape != target.shape or target.dtype.kind != "f":
        raise ValueError
    # softplus(-x), which is -log(sigmoid(x))
    miss = xp.log1p(xp.exp(-xp.absolute(input))) + xp.maximum(-input, input.dtype.type(0))
    if pos_weight is not None:
        miss = miss * ((pos_weight - 1) * target + 1)
    items = xp.asarray((1 - target) * input + miss)
    items = items if weight is None else items * weight
    return _reduced(xp, items.astype(target.dtype, copy=False), reduction)


def _slope_of_logits(x: Any, y: Any, pos_weight: Any) -> Any:
    if pos_weight is None:
        return sigmoid(x) - y
    return (1 - y) - ((pos_weight - 1) * y + 1) * sigmoid(-x)


def _slope_of_target(x: Any, pos_weight: Any) -> Any:
    return -x if pos_weight is None else (1 - pos_weight) * log(sigmoid(x)) - x


binary_cross_entropy_with_logits.grad(
    input=lambda g, input, target, weight, pos_weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * _slope_of_logits(input, target, pos_weight)
    ),
    target=lambda g, input, weight, pos_weight, shape, reduction: (
        _weighted(g, weight, shape, reduction) * _slope_of_target(input, pos_weight)
    ),
)
