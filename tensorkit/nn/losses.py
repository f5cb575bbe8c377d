"""Losses: how far an input is from its target, as operations with their gradients.

``reduction`` is "none" (one number per item), "mean" or "sum".
"""

import warnings
from math import prod
from typing import Any

import numpy as np

from tensorkit import layout
from tensorkit.base import Tensor
from tensorkit.devices import CPU, backend_of
from tensorkit.dispatch import op
from tensorkit.errors import (
    DTypeError,
    IndexRangeError,
    NotSupportedError,
    ShapeError,
    message,
    refuse_options,
    sizes,
)
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
    if len(shape) not in (1, 2):
        first = "scores have the shape (N, C) or (C,); others are not part of tensorkit"
        raise NotSupportedError(first, repair="x.movedim(1, -1).reshape(-1, n_classes)")
    if own != shape[:-1] and (len(shape) == 1 or own[:1] != shape[:1]):
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({own[0] if own else 0})."
        )
    if own != shape[:-1]:
        raise ShapeError(
            "0D or 1D target tensor expected, multi-target not supported",
            f"The target has shape {own}: one class number per item is expected, {shape[:-1]}.",
            a_shape=shape,
            b_shape=own,
        )
    if target.dtype.name not in ("int64", "uint8"):
        raise DTypeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.word}",
            "The target holds class numbers.",
            repair="target.long()",
        )
    if weight is not None and tuple(weight.shape) != shape[-1:]:
        raise ShapeError(
            f"weight tensor should be defined either for all {shape[-1]} classes or no classes but "
            f"got weight tensor of shape: {sizes(weight.shape)}",
            b_shape=tuple(weight.shape),
        )


def _counted(xp: Any, target: Any, weight: Any, ignored: int, like: Any) -> Any:
    """Row and class of each item, and how much it counts: 0 where its class is ignored."""
    left_out, n_classes = target == ignored, like.shape[-1]
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
    at = (kept,) if like.ndim == 1 else (xp.arange(kept.size), kept)
    return at, counts.astype(like.dtype, copy=False)


_OF_CLASSES = {"input": "floating", "target": "any", "weight": "floating"}


@op(tensors=3, dtypes=_OF_CLASSES, explain=_explain_classes)
def nll_loss(
    xp: Any,
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """Minus the log-probability of each item's class: input (N, C) or (C,), target (N,) or ().

    ``weight`` has one number per class; items of the class ``ignore_index`` do not count. Raises
    IndexError for a class that does not exist.

    >>> tk.nn.functional.nll_loss(tk.tensor([[-1., -2.]]), tk.tensor([1]))
    tensor(2.)
    """
    weights = input.shape[-1:] if weight is None else weight.shape
    if (target.shape, weights) != (input.shape[:-1], input.shape[-1:]) or input.ndim > 2:
        raise ValueError
    if target.dtype not in (np.int64, np.uint8) or reduction not in _REDUCTIONS:
        raise ValueError
    at, counts = _counted(xp, target, weight, ignore_index, input)
    # also where an ignored item is infinite
    items = xp.where(counts == 0, input.dtype.type(0), -input[at] * counts)
    if reduction == "none":
        return items
    sums = total(xp, wide(xp, items))
    sums = sums / total(xp, wide(xp, counts)) if reduction == "mean" else sums
    return sums.astype(input.dtype, copy=False)


@op(tensors=3, dtypes={**_OF_CLASSES, "g": "floating"})
def _nll_loss_backward(
    xp: Any,
    g: Any,
    target: Any,
    weight: Any = None,
    size: Ints = (),
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """The gradient of ``nll_loss``: zeros of this size, and at each item's class its share."""
    result = xp.zeros(size, g.dtype)
    at, counts = _counted(xp, target, weight, ignore_index, result)
    slope = -g / total(xp, wide(xp, counts)) if reduction == "mean" else -g
    result[at] = xp.where(counts == 0, g.dtype.type(0), slope * counts)
    return result


nll_loss.grad(
    input=lambda g, target, weight, shape, ignore_index, reduction: _nll_loss_backward(
        g, target, weight, shape, ignore_index, reduction
    ),
)
_nll_loss_backward.grad(
    g=lambda g, target, weight, ignore_index, reduction: nll_loss(
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
    """``nll_loss`` of ``log_softmax``: input (N, C) or (C,) are scores, target (N,) or () classes.

    >>> tk.nn.functional.cross_entropy(tk.tensor([[0., 0.]]), tk.tensor([1]))
    tensor(0.6931)
    """
    need_tensor("cross_entropy_loss", input)
    need_tensor("cross_entropy_loss", target, "target", 2)
    has = "class numbers as target, weight, ignore_index, reduction"
    probabilities = input.shape == target.shape and target.is_floating_point()
    refuse_options(
        "cross_entropy", has, {"label_smoothing": label_smoothing, "probabilities": probabilities}
    )
    scores = log_softmax(input, 0 if len(input.shape) == 1 else 1)
    return nll_loss(scores, target, weight, ignore_index, reduction)


@op(tensors=2, dtypes="floating", explain=_explain)
def binary_cross_entropy(xp: Any, input: Any, target: Any, reduction: str = "mean") -> Any:
    """``-(y log x + (1 - y) log(1 - x))`` of probabilities x and targets y.

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
    return _reduced(xp, xp.asarray((target - 1) * no - target * yes), reduction)


def _at_least(x: Any, least: float) -> Any:
    return where(x > least, x, least)


binary_cross_entropy.grad(
    input=lambda g, input, target, shape, reduction: (
        _for_each(g, shape, reduction) * ((input - target) / _at_least((1 - input) * input, 1e-12))
    ),
    target=lambda g, input, shape, reduction: (
        _for_each(g, shape, reduction) * (log(1 - input) - log(input))
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
@op(tensors=2, dtypes={"input": "floating", "target": "numeric"}, explain=_explain_logits)
def binary_cross_entropy_with_logits(
    xp: Any, input: Any, target: Any, reduction: str = "mean"
) -> Any:
    """``binary_cross_entropy(sigmoid(x), y)`` without overflow.

    >>> tk.nn.functional.binary_cross_entropy_with_logits(tk.tensor([0.]), tk.tensor([1.]))
    tensor(0.6931)
    """
    if input.shape != target.shape or target.dtype.kind != "f":
        raise ValueError
    # softplus(-x), which is -log(sigmoid(x))
    miss = xp.log1p(xp.exp(-xp.absolute(input))) + xp.maximum(-input, input.dtype.type(0))
    items = xp.asarray((1 - target) * input + miss)
    return _reduced(xp, items.astype(target.dtype, copy=False), reduction)


binary_cross_entropy_with_logits.grad(
    input=lambda g, input, target, shape, reduction: (
        _for_each(g, shape, reduction) * (sigmoid(input) - target)
    ),
    target=lambda g, input, shape, reduction: _for_each(g, shape, reduction) * -input,
)
