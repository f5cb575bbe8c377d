"""The layers and losses as functions: what modules compute, without their parameters.

``reduction`` of a loss is "none" (one number per item), "mean" or "sum".
"""

import warnings
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tensorkit import absent, creation, dtypes, errors, layout
from tensorkit._tensor import Tensor
from tensorkit.devices import CPU, backend_of
from tensorkit.dispatch import op
from tensorkit.layout import Ints
from tensorkit.ops.activations import gelu, leaky_relu, log_of_one_more_than_exp, silu, softplus
from tensorkit.ops.arguments import need_tensor
from tensorkit.ops.comparison import where
from tensorkit.ops.gathering import first_outside
from tensorkit.ops.matmul import addmm, matmul, refuse_sizes
from tensorkit.ops.pointwise import log, sigmoid, sqrt, tanh, wide
from tensorkit.ops.pointwise import relu as _relu
from tensorkit.ops.reductions import divided, log_softmax, mean, softmax, total
from tensorkit.ops.views import expand, t, view
from tensorkit.random import rand_like

# the functions that ``import *`` gives
_OFFERED = (
    "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy dropout embedding gelu "
    "l1_loss layer_norm leaky_relu linear log_softmax mse_loss nll_loss one_hot relu sigmoid silu "
    "softmax softplus tanh"
)
__all__ = _OFFERED.split()

# Layers


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.t() + bias``: input (..., m), weight (n, m), bias (n,), out (..., n).

    >>> x, w = tk.tensor([[1., 2.]]), tk.tensor([[3., 4.], [5., 6.]])
    >>> tk.nn.functional.linear(x, w, tk.tensor([0., 1.]))
    tensor([[11., 18.]])
    """
    need_tensor("linear", input)
    try:
        if bias is None:
            return matmul(input, t(weight))
        if input._array.ndim == 2:
            return addmm(bias, input, t(weight))
        if not input.is_contiguous():
            return matmul(input, t(weight)) + bias
        rows = view(input, (prod(input.shape[:-1]), input.shape[-1]))
        return view(addmm(bias, rows, t(weight)), (*input.shape[:-1], weight.shape[0]))
    except errors.DTypeError as error:
        first = "mat1 and mat2 must have the same dtype, but got {} and {}"
        _check_dtype(str(error).split("\n")[0] if bias is None else first, input, weight)
        raise
    except (IndexError, errors.ShapeError):
        if input.dim() and weight.dim() == 2 and input.shape[-1] != weight.shape[1]:
            given = prod(input.shape[:-1]), input.shape[-1]
            refuse_sizes(given, (weight.shape[1], weight.shape[0]), of_layer=True)
        raise


def _check_dtype(first: str, x: Tensor, *parameters: Tensor | None) -> None:
    """DTypeError if a parameter of a layer has another dtype than its input."""
    for each in parameters:
        if each is not None and each.dtype is not x.dtype:
            first = first.format(x.dtype.word, each.dtype.word)
            raise errors.DTypeError(first, repair=f"x.to(tk.{each.dtype.name})") from None


@absent.explains_options
def embedding(input: Tensor, weight: Tensor) -> Tensor:
    """The rows of ``weight`` (n, d) at the positions ``input`` (...), as (..., d).

    Raises IndexError for a position outside.

    >>> tk.nn.functional.embedding(tk.tensor([1, 1]), tk.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    return _embedding(weight, input)


@op(tensors=2, ndim={"weight": 2}, dtypes={"weight": "any", "indices": "integral"})
def _embedding(xp: Any, weight: Any, indices: Any) -> Any:
    wrong = first_outside(indices, len(weight))
    if wrong is not None:
        detail = f"Positions 0 to {len(weight) - 1} have a row; the input holds {wrong}."
        repair = f"tk.nn.Embedding({wrong + 1}, {weight.shape[1]})" if wrong > 0 else None
        raise errors.IndexRangeError("index out of range in self", detail, repair=repair)
    return weight.take(indices, axis=0)


@op(tensors=2, dtypes={"g": "any", "indices": "integral"})
def _embedding_dense_backward(xp: Any, g: Any, indices: Any, size: Ints) -> Any:
    """The gradient of ``embedding``: zeros of this size, to whose rows ``g`` is added."""
    result = xp.zeros(size, g.dtype)
    backend_of(result).add_at(result, indices, g)
    return result


_embedding.grad(weight=lambda g, indices, shape: _embedding_dense_backward(g, indices, shape))
_embedding_dense_backward.grad(g=lambda g, indices: _embedding(g, indices))


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``input`` with mean 0 and variance 1 along its last dimension, times weight, plus bias.

    Source: Ba, Kiros and Hinton 2016.

    >>> tk.nn.functional.layer_norm(tk.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
    need_tensor("layer_norm", input)
    if isinstance(normalized_shape, int):
        raise errors.must_be("layer_norm", "normalized_shape", 2, "tuple of ints", 0)
    own, shapes = tuple(normalized_shape), [tuple(x.shape) for x in (weight, bias) if x is not None]
    if len(own) > 1:
        first = f"layer_norm takes one dimension, not {own}; others are not part of tensorkit"
        raise errors.NotSupportedError(first, repair="x.flatten(-2), and view_as(x) of the result")
    if own != tuple(input.shape[-1:]) or any(each != own for each in shapes):
        wanted = ", ".join(["*", *map(str, own)])
        raise errors.ShapeError(
            f"Given normalized_shape={errors.sizes(own)}, expected input with shape [{wanted}], "
            f"but got input of size{errors.sizes(input.shape)}",
            f"Weight and bias have the shapes {shapes}; they need normalized_shape.",
        )
    _check_dtype("mixed dtype (CPU): all inputs must share same datatype.", input, weight, bias)
    return _native_layer_norm(input, weight, bias, eps)


@op(tensors=3, dtypes="floating", kernel_name="LayerNormKernelImpl")
def _native_layer_norm(
    xp: Any, input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    result = _standard(partial(mean.definition.forward, xp), xp.sqrt, wide(xp, input), eps)[0]
    if weight is not None:
        result *= weight
    if bias is not None:
        result += bias
    return result.astype(input.dtype, copy=False)


def _standard(mean: Any, sqrt: Any, x: Any, eps: float) -> tuple[Any, Any]:
    """``x`` with mean 0 and variance 1, and the deviation it was divided by.

    ``mean`` and ``sqrt`` are the operations in formulas, the functions of arrays in the forward.
    """
    centred = x - mean(x, -1, True)
    centred -= mean(centred, -1, True)  # what rounding has left: equal numbers give 0
    deviation = sqrt(mean(centred * centred, -1, True) + eps)
    return centred / deviation, deviation


def _in_float32(x: Any) -> Any:
    """A tensor or an array of float16 as float32: the squares of 300 are no float16; else ``x``."""
    if x.dtype.itemsize > 2:
        return x
    return x.float() if isinstance(x, Tensor) else x.astype(np.float32)


def _slope_of_layer_norm(g: Any, input: Any, weight: Any, eps: float) -> Any:
    standard, deviation = _standard(mean, sqrt, _in_float32(input), eps)
    g = _in_float32(g) if weight is None else _in_float32(g) * weight
    return (g - mean(g, -1, True) - standard * mean(g * standard, -1, True)) / deviation


_native_layer_norm.grad(
    input=_slope_of_layer_norm,
    weight=lambda g, input, eps: g * _standard(mean, sqrt, _in_float32(input), eps)[0],
    bias=lambda g: g,
)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element zero with probability ``p``, the others multiplied by ``1 / (1 - p)``.

    Does nothing unless ``training``.

    >>> tk.nn.functional.dropout(tk.ones(2), training=False)
    tensor([1., 1.])
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    need_tensor("dropout", input)
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        kept = creation.zeros((), dtype=input.dtype, device=input.device)
    else:
        # PyTorch compares numbers of float64, too
        kept = (rand_like(input.detach(), dtype=dtypes.float64) < 1 - p).to(input.dtype).div_(1 - p)
    return input.mul_(kept) if inplace else input * kept


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class number a row with a 1 in its place: input (...), out (..., num_classes).

    >>> tk.nn.functional.one_hot(tk.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    need_tensor("one_hot", tensor)
    if str(tensor.dtype) != "torch.int64":
        first = "one_hot is only applicable to index tensor of type LongTensor."
        raise errors.DTypeError(first, repair="x.long()")
    size = num_classes
    if num_classes == -1:
        size = tensor.device.backend.item(tensor.max()._array, "one_hot") + 1
    wrong = first_outside(tensor._array, size)
    if wrong is not None:
        kind = "non-negative" if wrong < 0 else "smaller than num_classes"
        raise errors.DTypeError(f"Class values must be {kind}.", f"One of them is {wrong}.")
    return (tensor.unsqueeze(-1) == creation.arange(size, device=tensor.device)).long()


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element where it is positive, 0 elsewhere."""
    return input.relu_() if inplace else _relu(input)


# Losses

_REDUCTIONS = ("none", "mean", "sum")


def _reduced(xp: Any, items: Any, reduction: str) -> Any:
    if reduction not in _REDUCTIONS:
        raise ValueError
    if reduction == "none":
        return items
    sums = total(xp, wide(xp, items)) / (items.size if reduction == "mean" else 1)
    return sums if sums.dtype == items.dtype else sums.astype(items.dtype)


def _for_each(g: Any, shape: Ints, reduction: str) -> Any:
    """The gradient that each item gets."""
    n = prod(shape) if reduction == "mean" else 0
    scaled = divided(g, n) if n > 2**14 else g * (1 / n) if n else g
    return np.asarray(scaled) if isinstance(scaled, np.generic) else scaled


def _check_loss(input: Tensor, target: Tensor, reduction: str) -> None:
    """Raise for a reduction that does not exist, and for sizes that differ."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if input.shape != target.shape:
        first = f"Target size ({target.shape!r}) must be the same as input size ({input.shape!r})"
        raise ValueError(errors.message(first, repair="target.view_as(input)"))


def _loss(slope: Any, target_slope: Any, **declared: Any) -> Callable[[Any], Any]:
    """Declare a loss by the number for each item; the slopes are its derivatives by x and y."""

    def define(item: Any) -> Any:
        def forward(xp: Any, input: Any, target: Any, reduction: str = "mean") -> Any:
            if input.shape != target.shape:
                raise ValueError
            return _reduced(xp, xp.asarray(item(xp, input, target)), reduction)

        forward.__name__, forward.__doc__ = item.__name__, item.__doc__
        loss = op(tensors=2, check=_check_loss, **declared)(forward)
        loss.grad(
            input=lambda g, input, target, shape, reduction: (
                _for_each(g, shape, reduction) * slope(input, target)
            ),
            target=lambda g, input, target, shape, reduction: (
                _for_each(g, shape, reduction) * target_slope(input, target)
            ),
        )
        return loss

    return define


def _in_one_shape(input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Both broadcast, with a warning if they did not have one shape."""
    if input.size() == target.size():
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape!r}) that is different to the input size "
        f"({input.shape!r}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=3,
    )
    shape = layout.broadcast_shapes(tuple(input.shape), tuple(target.shape))
    return expand(input, shape), expand(target, shape)


@absent.explains_options
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Any:
    """The mean of the squared differences; their sum, or each of them.

    >>> tk.nn.functional.mse_loss(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """
    return _mse_loss(*_in_one_shape(input, target), reduction=reduction)


@_loss(
    lambda x, y: 2 * (x - y),
    lambda x, y: 2 * (y - x),
    promote=True,
    dtypes="floating",
    kernel_name="mse_cpu",
)
def _mse_loss(xp: Any, x: Any, y: Any) -> Any:
    difference = x - y
    return difference * difference


@absent.explains_options
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of the absolute differences; their sum, or each of them.

    >>> tk.nn.functional.l1_loss(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(1.)
    """
    x, y = _in_one_shape(input, target)
    _check_loss(x, y, reduction)
    items = (x - y).abs()
    return items if reduction == "none" else items.mean() if reduction == "mean" else items.sum()


def _check_classes(input: Tensor, target: Tensor, reduction: str) -> None:
    """Raise for classes that do not fit the scores."""
    shape, own = tuple(input.shape), tuple(target.shape)
    _check_loss(target, target, reduction)
    if len(shape) not in (1, 2):
        first = "scores have the shape (N, C) or (C,); others are not part of tensorkit"
        raise errors.NotSupportedError(first, repair="x.movedim(1, -1).flatten(0, -2), y.flatten()")
    if own != shape[:-1] and own[:1] == shape[:-1]:
        detail = f"The target has shape {own}: one class number per item is expected, {shape[:-1]}."
        first = "0D or 1D target tensor expected, multi-target not supported"
        repair = "-(y * x.log_softmax(1)).sum(1).mean()" if own == shape else "y.squeeze(1)"
        raise errors.ShapeError(first, detail, repair=repair)
    if own != shape[:-1]:
        n = own[0] if own else 0
        first = f"Expected input batch_size ({shape[0]}) to match target batch_size ({n})."
        raise ValueError(errors.message(first, repair="a class number for each row: x[:n], y[:n]"))
    if target.dtype.name not in ("int64", "uint8"):
        raise errors.DTypeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.word}",
            "The target holds class numbers.",
            repair="target.long()",
        )


def _at_classes(xp: Any, target: Any, shape: Ints) -> Any:
    """Where the scores of all items' classes are in scores of this shape."""
    wrong = first_outside(target, shape[-1])
    if wrong is not None:
        detail = f"There are {shape[-1]} classes, 0 to {shape[-1] - 1}; no class is ignored."
        repair = f"{wrong + 1} scores per item, or targets below {shape[-1]}"
        repair = "x[y >= 0], y[y >= 0]    # without the others" if wrong < 0 else repair
        raise errors.IndexRangeError(f"Target {wrong} is out of bounds.", detail, repair=repair)
    return (target,) if len(shape) == 1 else (xp.arange(target.size), target)


@op(dtypes={"input": "floating", "target": "any"}, check=_check_classes)
def nll_loss(xp: Any, input: Any, target: Any, *, reduction: str = "mean") -> Any:
    """Minus the log-probability of each item's class: input (N, C) or (C,), target (N,) or ().

    Raises IndexError for a class that does not exist.

    >>> tk.nn.functional.nll_loss(tk.tensor([[-1., -2.]]), tk.tensor([1]))
    tensor(2.)
    """
    if target.shape != input.shape[:-1] or target.ndim > 1:
        raise ValueError
    if target.dtype.char not in "lB":
        raise ValueError
    return _reduced(xp, -input[_at_classes(xp, target, input.shape)], reduction)


@op(dtypes={"g": "floating", "target": "any"})
def _nll_loss_backward(xp: Any, g: Any, target: Any, *, size: Ints) -> Any:
    """The gradient of ``nll_loss``: zeros of this size, and ``-g`` at the classes."""
    result = xp.zeros(size, g.dtype)
    result[_at_classes(xp, target, size)] = -g
    return result


nll_loss.grad(
    input=lambda g, target, shape, reduction: _nll_loss_backward(
        _for_each(g, shape[:-1], reduction), target, size=shape
    ),
)
_nll_loss_backward.grad(g=lambda g, target: nll_loss(g, target, reduction="none"))


@absent.explains_options
def cross_entropy(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """``nll_loss`` of ``log_softmax``: input (N, C) or (C,) are scores, target (N,) or () classes.

    >>> tk.nn.functional.cross_entropy(tk.tensor([[0., 0.]]), tk.tensor([1]))
    tensor(0.6931)
    """
    need_tensor("cross_entropy_loss", input)
    scores = log_softmax(input, 0 if input._array.ndim == 1 else 1)
    return nll_loss(scores, target, reduction=reduction)


@_loss(
    lambda x, y: (x - y) / where((1 - x) * x > 1e-12, (1 - x) * x, 1e-12),
    lambda x, y: log(1 - x) - log(x),
    dtypes="floating",
)
def binary_cross_entropy(xp: Any, x: Any, y: Any) -> Any:
    """``-(y log x + (1 - y) log(1 - x))`` of probabilities x and targets y.

    The logarithms are not below -100.

    >>> tk.nn.functional.binary_cross_entropy(tk.tensor([0.5]), tk.tensor([1.]))
    tensor(0.6931)
    """
    backend = backend_of(x)
    repairs = {"input": "binary_cross_entropy_with_logits(input, target)"}
    repairs["target"] = "target.clamp(0, 1)    # of targets -1 and 1"
    for (name, repair), values in zip(repairs.items(), (x, y), strict=True):
        inside = (values >= 0) & (values <= 1)
        if backend is not CPU.backend:
            backend.device_assert(inside, f"The {name} of this loss was no probability")
        elif not inside.all():
            first = f"all elements of {name} should be between 0 and 1"
            raise errors.DTypeError(first, repair=repair)
    yes, no = xp.maximum(xp.log(x), -100.0), xp.maximum(xp.log1p(-x), -100.0)
    return (y - 1) * no - y * yes


@_loss(lambda x, y: sigmoid(x) - y, lambda x, y: -x, dtypes="floating")
def binary_cross_entropy_with_logits(xp: Any, x: Any, y: Any) -> Any:
    """``binary_cross_entropy(sigmoid(x), y)`` without overflow.

    >>> tk.nn.functional.binary_cross_entropy_with_logits(tk.tensor([0.]), tk.tensor([1.]))
    tensor(0.6931)
    """
    return (1 - y) * x + log_of_one_more_than_exp(xp, -x)


__getattr__ = absent.missing("torch.nn.functional")
