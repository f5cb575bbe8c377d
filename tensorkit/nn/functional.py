"""The layers and losses as functions: what modules compute, without their parameters."""

import warnings
from math import nan
from typing import Any, NoReturn

from tensorkit import absent, creation, layout
from tensorkit._tensor import Tensor
from tensorkit.devices import CPU
from tensorkit.dtypes import int32, int64, promote_types, uint8
from tensorkit.errors import (
    DTypeError,
    IndexRangeError,
    ShapeError,
    message,
    must_be,
    sizes,
)
from tensorkit.layout import Ints
from tensorkit.ops import elementary, matmul, nn_ops, views
from tensorkit.ops.activations import gelu as gelu
from tensorkit.ops.activations import leaky_relu as leaky_relu
from tensorkit.ops.activations import silu as silu
from tensorkit.ops.activations import softplus as softplus
from tensorkit.ops.arguments import as_scalar, need_sizes, need_tensor, no_kernel, read
from tensorkit.ops.gathering import first_outside, gather

# Layers


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.t() + bias``: input (..., m), weight (n, m), bias (n,), out (..., n).

    >>> x, w = tk.tensor([[1., 2.]]), tk.tensor([[3., 4.], [5., 6.]])
    >>> tk.nn.functional.linear(x, w, tk.tensor([0., 1.]))
    tensor([[11., 18.]])
    """
    try:
        shape = input.shape
    except AttributeError:
        raise must_be("linear", "input", 1, "Tensor", input) from None
    if not shape:
        raise ShapeError(
            f"both arguments to linear need to be at least 1D, but they are 0D and {weight.dim()}D",
            a_shape=(),
            b_shape=tuple(weight.shape),
        )
    if bias is None:
        need_tensor("linear", weight, "weight", 2)
        return matmul.matmul(input, views.t(weight))
    if len(shape) == 2:
        return nn_ops.linear(input, weight, bias)
    if not input._is_contiguous:
        return matmul.matmul(input, views.t(weight)) + bias
    rows = views.view(input, (-1, shape[-1]))
    return views.view(nn_ops.linear(rows, weight, bias), (*shape[:-1], weight.shape[0]))


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of ``weight`` (n, d) at the positions ``input`` (...), as (..., d).

    The row ``padding_idx`` gets no gradient. Raises IndexError for a position outside.

    >>> tk.nn.functional.embedding(tk.tensor([1, 1]), tk.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    need_tensor("embedding", weight, "weight")
    if weight.dim() != 2:
        raise ShapeError("'weight' must be 2-D", a_shape=tuple(weight.shape))
    need_tensor("embedding", input, "indices", 2)
    if input.dtype not in (int64, int32):
        raise DTypeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar "
            f"types: Long, Int; but got torch.{input.dtype.word}Tensor instead (while checking "
            "arguments for embedding)",
            repair="input.long()",
        )
    n_rows = weight.shape[0]
    if padding_idx is not None:
        if not -n_rows <= padding_idx < n_rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= n_rows
    positions = input._array
    if input.device is not CPU:
        first_outside(positions, n_rows)
    elif positions.size and not (positions.min() >= 0 and positions.max() < n_rows):
        raise IndexRangeError(
            "index out of range in self",
            f"Positions 0 to {n_rows - 1} have a row; the input holds {int(positions.min())} "
            f"to {int(positions.max())}.",
            size=n_rows,
        )
    return nn_ops.embedding(weight, input, padding_idx=padding_idx)


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``input`` with mean 0 and variance 1 along its last dimensions, times weight, plus bias.

    >>> tk.nn.functional.layer_norm(tk.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
    need_tensor("layer_norm", input)
    shape = tuple(input.shape)
    own = need_sizes("layer_norm", "normalized_shape", 2, normalized_shape)
    number = as_scalar(eps)
    if number is None:
        raise must_be("layer_norm", "eps", 5, "float", eps)
    eps = float(number)
    if not own:
        raise ShapeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != own:
            raise ShapeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{sizes(given.shape)} and normalized_shape = {sizes(own)}"
            )
    if shape[-len(own) :] != own:
        wanted = ", ".join(["*", *map(str, own)])
        raise ShapeError(
            f"Given normalized_shape={sizes(own)}, expected input with shape [{wanted}], but got "
            f"input of size{sizes(shape)}",
            a_shape=shape,
        )
    _need_floating("LayerNormKernelImpl", input)
    dims = tuple(range(len(shape) - len(own), len(shape)))
    return nn_ops.native_layer_norm(input, weight, bias, dims=dims, eps=eps)


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
        nothing = creation.zeros((), dtype=input.dtype, device=input.device)
        return input.mul_(nothing) if inplace else input * nothing
    kept = creation.empty_like(input)
    kept.bernoulli_(1 - p).div_(1 - p)
    return input.mul_(kept) if inplace else input * kept


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class number a row with a 1 in its place: input (...), out (..., num_classes).

    >>> tk.nn.functional.one_hot(tk.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    need_tensor("one_hot", tensor)
    if tensor.dtype is not int64:
        raise DTypeError(
            "one_hot is only applicable to index tensor of type LongTensor.", repair="x.long()"
        )
    classes, num_classes = tensor._array, read(num_classes)
    if not classes.size:
        if num_classes <= 0:
            raise ShapeError("Can not infer total number of classes from empty tensor.")
        return creation.zeros((*tensor.shape, num_classes), dtype=int64, device=tensor.device)
    largest = tensor.max()._value("one_hot") if num_classes == -1 else num_classes - 1
    if tensor.device is not CPU:
        first_outside(classes, largest + 1)
    elif classes.min() < 0:
        raise DTypeError("Class values must be non-negative.")
    elif classes.max() > largest:
        raise DTypeError(
            "Class values must be smaller than num_classes.",
            f"The largest is {int(classes.max())}.",
        )
    columns = creation.arange(largest + 1, device=tensor.device)
    return (tensor.unsqueeze(-1) == columns).long()


# Activations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element where it is positive, 0 elsewhere."""
    return elementary.relu.inplace(input) if inplace else elementary.relu(input)


tanh, sigmoid = elementary.tanh, elementary.sigmoid


def softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """``exp(x)`` divided by its sum along ``dim``."""
    return nn_ops.softmax(input, _implied_dim("softmax", input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """The logarithm of ``softmax``."""
    return nn_ops.log_softmax(input, _implied_dim("log_softmax", input, dim), dtype)


def _implied_dim(name: str, x: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        UserWarning,
        stacklevel=4,
    )
    return 0 if x.dim() in (0, 1, 3) else 1


# Losses


def _check_reduction(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _need_floating(kernel: str, x: Tensor) -> None:
    if not x.is_floating_point():
        raise no_kernel(kernel, x.dtype, "x.float()")


def _reduced(items: Tensor, reduction: str) -> Tensor:
    _check_reduction(reduction)
    return items if reduction == "none" else items.mean() if reduction == "mean" else items.sum()


def _broadcast(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one shape, with a warning if they did not have it."""
    if input.size() == target.size():
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape!r}) that is different to the input size "
        f"({input.shape!r}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        UserWarning,
        stacklevel=4,
    )
    shape = layout.broadcast_shapes(tuple(input.shape), tuple(target.shape))
    return views.expand(input, shape), views.expand(target, shape)


def _of_one_dtype(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    if x.dtype is y.dtype:
        return x, y
    dtype = promote_types(x.dtype, y.dtype)
    return x.to(dtype), y.to(dtype)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Any:
    """The mean of the squared differences; their sum, or each of them.

    >>> tk.nn.functional.mse_loss(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """
    x, y = _broadcast(input, target)
    _check_reduction(reduction)
    x, y = _of_one_dtype(x, y)
    _need_floating("mse_cpu", x)
    return nn_ops.mse_loss(x, y, reduction=reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of the absolute differences; their sum, or each of them.

    >>> tk.nn.functional.l1_loss(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(1.)
    """
    x, y = _broadcast(input, target)
    return _reduced((x - y).abs(), reduction)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """Minus the log-probability of each item's class: input (N, C, ...), target (N, ...).

    ``weight`` has one number per class; items of the class ``ignore_index`` do not count. Raises
    IndexError for a class that does not exist.

    >>> tk.nn.functional.nll_loss(tk.tensor([[-1., -2.]]), tk.tensor([1]))
    tensor(2.)
    """
    _check_reduction(reduction)
    need_tensor("nll_loss_nd", input)
    need_tensor("nll_loss_nd", target, "target", 2)
    shape = tuple(input.shape)
    _check_classes(shape, target, weight)
    weight, own = None if weight is None else weight.detach(), tuple(target.shape)
    known = {"reduction": reduction, "ignore_index": int(ignore_index)}
    if len(shape) == 2:
        return nn_ops.nll_loss(input, target, weight, **known)
    # one item has a row; items that have places (N, C, ...) have rows of their own
    rows = input.unsqueeze(0) if len(shape) == 1 else input.movedim(1, -1).flatten(0, -2)
    loss = nn_ops.nll_loss(rows, target.reshape(-1), weight, **known)
    return loss.reshape(own if len(shape) > 1 else ()) if reduction == "none" else loss


def _check_classes(shape: Ints, target: Tensor, weight: Tensor | None) -> None:
    own = tuple(target.shape)
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) == 1 and own not in ((), (1,)):
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {own[0]}")
    if len(shape) > 1 and (not own or shape[0] != own[0]):
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({own[0] if own else 0})."
        )
    if len(shape) == 2 and len(own) > 1:
        raise ShapeError(
            "0D or 1D target tensor expected, multi-target not supported",
            f"The target has shape {own}: one class number per item is expected, {shape[:1]}.",
            a_shape=shape,
            b_shape=own,
        )
    if (*shape[:1], *shape[2:]) != own and len(shape) > 1:
        raise ShapeError(
            f"Expected target size {sizes((*shape[:1], *shape[2:]))}, got {sizes(own)}",
            a_shape=shape,
            b_shape=own,
        )
    if target.dtype not in (int64, uint8):
        raise DTypeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.word}",
            "The target holds class numbers.",
            repair="target.long()",
        )
    n_classes = shape[1] if len(shape) > 1 else shape[0]
    if weight is not None and tuple(weight.shape) != (n_classes,):
        raise ShapeError(
            f"weight tensor should be defined either for all {n_classes} classes or no classes but "
            f"got weight tensor of shape: {sizes(weight.shape)}",
            b_shape=tuple(weight.shape),
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

    A target of the input's shape holds probabilities. ``label_smoothing`` spreads that part of
    each target evenly over all classes.

    >>> tk.nn.functional.cross_entropy(tk.tensor([[0., 0.]]), tk.tensor([1]))
    tensor(0.6931)
    """
    need_tensor("cross_entropy_loss", input)
    need_tensor("cross_entropy_loss", target, "target", 2)
    class_dim = 0 if len(input.shape) == 1 else 1
    is_plain = weight is None and ignore_index == -100 and reduction == "mean"
    if is_plain and not label_smoothing and input.shape != target.shape:
        return nll_loss(nn_ops.log_softmax(input, class_dim), target)
    _check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise DTypeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if input.shape == target.shape:
        return _against_probabilities(input, target, weight, reduction, label_smoothing)
    scores = nn_ops.log_softmax(input, class_dim)
    nll = nll_loss(scores, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return nll
    counted = scores if weight is None else scores * _per_class(weight, scores)
    ignored = target == ignore_index
    spread = (-counted.sum(class_dim)).masked_fill_(ignored, 0.0)
    if reduction != "none":
        spread = spread.sum()
    if reduction == "mean":
        kept = ~ignored
        if weight is not None:
            each = gather(weight, 0, target.masked_fill(ignored, 0).view(-1))
            kept = each.masked_fill(ignored.view(-1), 0)
        spread = spread / kept.sum()
    return (1 - label_smoothing) * nll + spread * (label_smoothing / input.shape[class_dim])


def _per_class(weight: Tensor, scores: Tensor) -> Tensor:
    """Weights (C,) ready to broadcast with scores (N, C, ...)."""
    return weight if scores.dim() == 1 else weight.view(1, -1, *[1] * (scores.dim() - 2))


def _against_probabilities(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    if not target.is_floating_point():
        raise DTypeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.word}"
        )
    class_dim = 0 if x.dim() == 1 else 1
    n_classes = (x.shape[class_dim] if x.dim() else 1) or nan
    scores = nn_ops.log_softmax(x, class_dim)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / n_classes
    items = scores * target
    if weight is not None:
        items = items * _per_class(weight, scores)
    if reduction == "none":
        return -items.sum(class_dim)
    return -items.sum() if reduction == "sum" else -items.sum() / (x.numel() / n_classes)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """``-(y log x + (1 - y) log(1 - x))`` of probabilities x and targets y.

    >>> tk.nn.functional.binary_cross_entropy(tk.tensor([0.5]), tk.tensor([1.]))
    tensor(0.6931)
    """
    _check_reduction(reduction)
    if input.size() != target.size():
        raise ValueError(
            message(
                f"Using a target size ({target.shape!r}) that is different to the input size "
                f"({input.shape!r}) is deprecated. Please ensure they have the same size.",
                repair="target.view_as(input)",
            )
        )
    if input.dtype is not target.dtype:
        raise DTypeError(
            f"Found dtype {target.dtype.word} but expected {input.dtype.word}",
            repair=f"target.to(tk.{input.dtype.name})",
        )
    inside = (input._array >= 0) & (input._array <= 1)
    if input.device is not CPU:
        input.device.backend.expect(inside, "The input of this loss was no probability")
    elif not inside.all():
        raise DTypeError(
            "all elements of input should be between 0 and 1",
            "The input of this loss is a probability.",
            repair="binary_cross_entropy_with_logits(input, target)",
        )
    spread = None if weight is None else views.expand(weight.detach(), tuple(input.shape))
    return nn_ops.binary_cross_entropy(input, target, spread, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``binary_cross_entropy(sigmoid(x), y)`` without overflow; ``pos_weight`` counts the ones.

    >>> tk.nn.functional.binary_cross_entropy_with_logits(tk.tensor([0.]), tk.tensor([1.]))
    tensor(0.6931)
    """
    _check_reduction(reduction)
    if input.size() != target.size():
        raise ValueError(
            message(
                f"Target size ({target.shape!r}) must be the same as input size ({input.shape!r})",
                repair="target.view_as(input)",
            )
        )
    if not target.is_floating_point():
        raise DTypeError(
            f"result type {input.dtype.word} can't be cast to the desired output type "
            f"{target.dtype.word}",
            repair="target.float()",
        )
    x, y = _of_one_dtype(input, target)
    given = [None if w is None else w.detach().to(x.dtype) for w in (weight, pos_weight)]
    return nn_ops.bce_with_logits(x, y, *given, reduction=reduction).to(target.dtype)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.nn.functional", name))
