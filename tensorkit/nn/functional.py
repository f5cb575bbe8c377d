"""The layers and losses as functions: what modules compute, without their parameters."""

from math import prod
from typing import Any, NoReturn

from tensorkit import absent, creation
from tensorkit._tensor import Tensor
from tensorkit.devices import backend_of
from tensorkit.dispatch import op
from tensorkit.errors import DTypeError, IndexRangeError, ShapeError, refuse_options, sizes
from tensorkit.layout import Ints
from tensorkit.nn.losses import binary_cross_entropy as binary_cross_entropy
from tensorkit.nn.losses import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from tensorkit.nn.losses import cross_entropy as cross_entropy
from tensorkit.nn.losses import l1_loss as l1_loss
from tensorkit.nn.losses import mse_loss as mse_loss
from tensorkit.nn.losses import nll_loss as nll_loss
from tensorkit.ops.activations import gelu as gelu
from tensorkit.ops.activations import leaky_relu as leaky_relu
from tensorkit.ops.activations import silu as silu
from tensorkit.ops.activations import softplus as softplus
from tensorkit.ops.arguments import need_tensor
from tensorkit.ops.blocks import by_rows
from tensorkit.ops.elementary import relu as _relu
from tensorkit.ops.elementary import sigmoid as sigmoid
from tensorkit.ops.elementary import sqrt
from tensorkit.ops.elementary import tanh as tanh
from tensorkit.ops.gathering import first_outside
from tensorkit.ops.matmul import addmm, matmul, refuse_sizes
from tensorkit.ops.reductions import mean, total, wide
from tensorkit.ops.softmax import log_softmax as log_softmax
from tensorkit.ops.softmax import softmax as softmax
from tensorkit.ops.views import t, view

# Layers


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.t() + bias``: input (..., m), weight (n, m), bias (n,), out (..., n).

    >>> x, w = tk.tensor([[1., 2.]]), tk.tensor([[3., 4.], [5., 6.]])
    >>> tk.nn.functional.linear(x, w, tk.tensor([0., 1.]))
    tensor([[11., 18.]])
    """
    try:
        if bias is None:
            return matmul(input, t(weight))
        if len(input.shape) == 2:
            return addmm(bias, input, t(weight))
        if not input.is_contiguous():
            return matmul(input, t(weight)) + bias
        rows = view(input, (-1, input.shape[-1]))
        return view(addmm(bias, rows, t(weight)), (*input.shape[:-1], weight.shape[0]))
    except (AttributeError, TypeError, IndexError, ShapeError):
        tensors = {"input": input, "weight": weight, "bias": weight if bias is None else bias}
        for at, (name, x) in enumerate(tensors.items(), 1):
            need_tensor("linear", x, name, at)
        if not input.dim():
            raise ShapeError(
                f"both arguments to linear need to be at least 1D, but they are 0D and "
                f"{weight.dim()}D"
            ) from None
        if weight.dim() == 2 and input.shape[-1] != weight.shape[1]:
            given = prod(input.shape[:-1]), input.shape[-1]
            refuse_sizes(given, (weight.shape[1], weight.shape[0]), of_layer=True)
        raise


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of ``weight`` (n, d) at the positions ``input`` (...), as (..., d).

    Raises IndexError for a position outside.

    >>> tk.nn.functional.embedding(tk.tensor([1, 1]), tk.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    given = {"padding_idx": None if padding_idx is None else str(padding_idx)}
    refuse_options("embedding", "input, weight", given)
    return _embedding(weight, input)


@op(tensors=2, ndim={"weight": 2}, dtypes={"weight": "any", "indices": "integral"})
def _embedding(xp: Any, weight: Any, indices: Any) -> Any:
    wrong = first_outside(indices, len(weight))
    if wrong is not None:
        raise IndexRangeError(
            "index out of range in self",
            f"Positions 0 to {len(weight) - 1} have a row; the input holds {wrong}.",
            size=len(weight),
        )
    return weight.take(indices, axis=0)


@op(tensors=2, dtypes={"g": "any", "indices": "integral"})
def _embedding_dense_backward(xp: Any, g: Any, indices: Any, size: Ints) -> Any:
    """The gradient of ``embedding``: zeros of this size, to whose rows ``g`` is added."""
    result = xp.zeros(size, g.dtype)
    rows = indices.reshape(-1)
    backend_of(result).add_at(result, rows, g.reshape(indices.size, *size[1:]))
    return result


_embedding.grad(
    weight=lambda g, indices, shape: _embedding_dense_backward(g, indices, shape),
)
_embedding_dense_backward.grad(g=lambda g, indices: _embedding(g, indices))


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``input`` with mean 0 and variance 1 along its last dimensions, times weight, plus bias.

    Source: Ba, Kiros and Hinton 2016.

    >>> tk.nn.functional.layer_norm(tk.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
    need_tensor("layer_norm", input)
    own = tuple(normalized_shape)
    shapes = [tuple(x.shape) for x in (weight, bias) if x is not None]
    if not own or input.shape[-len(own) :] != own or any(each != own for each in shapes):
        wanted = ", ".join(["*", *map(str, own)])
        raise ShapeError(
            f"Given normalized_shape={sizes(own)}, expected input with shape [{wanted}], but got "
            f"input of size{sizes(input.shape)}",
            f"Weight and bias have the shapes {shapes}; they need normalized_shape.",
            a_shape=tuple(input.shape),
        )
    return _native_layer_norm(input, weight, bias, tuple(range(-len(own), 0)), eps)


@op(tensors=3, dtypes="floating", kernel="LayerNormKernelImpl")
def _native_layer_norm(
    xp: Any, input: Any, weight: Any = None, bias: Any = None, dims: Ints = (), eps: float = 1e-5
) -> Any:
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


_native_layer_norm.grad(
    input=lambda g, input, weight, dims, eps: _slope_of_norm(g, input, weight, dims, eps),
    weight=lambda g, input, dims, eps: g * _standard(input, dims, eps)[0],
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
        kept = creation.empty_like(input).bernoulli_(1 - p).div_(1 - p)
    return input.mul_(kept) if inplace else input * kept


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class number a row with a 1 in its place: input (...), out (..., num_classes).

    >>> tk.nn.functional.one_hot(tk.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    need_tensor("one_hot", tensor)
    if str(tensor.dtype) != "torch.int64":
        raise DTypeError(
            "one_hot is only applicable to index tensor of type LongTensor.", repair="x.long()"
        )
    if not tensor.numel() and num_classes <= 0:
        raise ShapeError("Can not infer total number of classes from empty tensor.")
    size = num_classes
    if num_classes == -1:
        size = tensor.device.backend.item(tensor.max()._array, "one_hot") + 1
    wrong = first_outside(tensor._array, size)
    if wrong is not None:
        kind = "non-negative" if wrong < 0 else "smaller than num_classes"
        raise DTypeError(f"Class values must be {kind}.", f"One of them is {wrong}.")
    return (tensor.unsqueeze(-1) == creation.arange(size, device=tensor.device)).long()


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element where it is positive, 0 elsewhere."""
    return input.relu_() if inplace else _relu(input)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.nn.functional", name))
