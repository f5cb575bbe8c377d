"""Modules that compute one function each: layers, activations, losses."""

import math
from typing import Any

from tensorkit._tensor import Tensor
from tensorkit.creation import empty
from tensorkit.errors import ShapeError, message, refuse_options
from tensorkit.nn import functional as F
from tensorkit.nn import init
from tensorkit.nn.module import Module, Parameter


class Identity(Module):
    """Its input, whatever arguments it was made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """``x @ weight.t() + bias``: (..., in_features) gives (..., out_features).

    >>> _ = tk.manual_seed(0)
    >>> layer = tk.nn.Linear(3, 2)
    >>> layer(tk.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    bias: Any  # a parameter, or None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        self.bias = Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw first values: even numbers up to ``1 / sqrt(in_features)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The linear map of the last dimension."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}"


class Embedding(Module):
    """A table of vectors, looked up by position: integers (...) give (..., embedding_dim).

    >>> _ = tk.manual_seed(0)
    >>> tk.nn.Embedding(10, 4)(tk.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        has = "num_embeddings, embedding_dim, padding_idx"
        refuse_options("Embedding", has, {"max_norm": max_norm})
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError("Padding_idx must be within num_embeddings")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw first values: normal numbers; the row of the padding is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, input: Tensor) -> Tensor:
        """The rows at these positions."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """The sizes."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class LayerNorm(Module):
    """Mean 0 and variance 1 along the last dimensions, then a learned scale and shift.

    >>> tk.nn.LayerNorm(2)(tk.tensor([1., 3.])).detach()
    tensor([-1.0000,  1.0000])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        is_number = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if is_number else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = empty(self.normalized_shape, device=device, dtype=dtype)
        self.weight = Parameter(made) if elementwise_affine else None
        self.bias = Parameter(made.clone()) if elementwise_affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class _Function(Module):
    """A function of ``nn.functional`` that is called with settings; tensors of them are buffers."""

    function: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = tuple(settings)
        for name, value in settings.items():
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *tensors: Tensor) -> Tensor:
        """What the function gives."""
        own = self.__dict__
        return self.function(*tensors, **{name: own[name] for name in self._settings})

    def extra_repr(self) -> str:
        """The settings, but for those that say no."""
        own = self.__dict__
        return ", ".join(
            f"{name}={own[name]!r}" for name in self._settings if own[name] is not False
        )


class Flatten(_Function):
    """Dimensions ``start_dim`` to ``end_dim`` as one; the first, the batch, stays."""

    function = staticmethod(Tensor.flatten)

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__(start_dim=start_dim, end_dim=end_dim)


class Dropout(_Function):
    """In training, each element zero with probability ``p``, the others scaled up.

    >>> tk.nn.Dropout(0.5).eval()(tk.ones(2))
    tensor([1., 1.])
    """

    function = staticmethod(F.dropout)
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__(p=p, training=True, inplace=inplace)
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")

    def extra_repr(self) -> str:
        """The settings."""
        return f"p={self.p}, inplace={self.inplace}"


# Activations


class Tanh(_Function):
    """The hyperbolic tangent."""

    function = staticmethod(F.tanh)


class Sigmoid(_Function):
    """``1 / (1 + exp(-x))``."""

    function = staticmethod(F.sigmoid)


class ReLU(_Function):
    """Each element where it is positive, 0 elsewhere."""

    function = staticmethod(F.relu)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)


class LeakyReLU(_Function):
    """Each element where it is positive, ``negative_slope`` times it elsewhere."""

    function = staticmethod(F.leaky_relu)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class GELU(_Function):
    """``x`` times the part of a normal distribution below ``x``."""

    function = staticmethod(F.gelu)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


class SiLU(_Function):
    """``x * sigmoid(x)``."""

    function = staticmethod(F.silu)


class Softplus(_Function):
    """``log(1 + exp(beta * x)) / beta``."""

    function = staticmethod(F.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Softmax(_Function):
    """``exp(x)`` divided by its sum along ``dim``."""

    function = staticmethod(F.softmax)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim=dim)


class LogSoftmax(Softmax):
    """The logarithm of ``Softmax``."""

    function = staticmethod(F.log_softmax)


# Losses


class _Loss(_Function):
    """A loss of an input and a target.

    ``given`` came without a name, where PyTorch has options that are no longer to be used.
    """

    def __init__(self, *given: Any, **settings: Any) -> None:
        name = type(self).__name__
        if any(isinstance(each, Tensor) for each in given):
            raise ShapeError(
                "Boolean value of Tensor with more than one value is ambiguous",
                "A loss is made with its settings and then called with input and target.",
                repair=f"tk.nn.{name}()(input, target)",
            )
        if given:
            raise TypeError(message(f"{name} takes its settings by name", repair='reduction="sum"'))
        super().__init__(**settings)

    def extra_repr(self) -> str:
        """Losses show no settings."""
        return ""


class MSELoss(_Loss):
    """The mean of the squared differences.

    >>> tk.nn.MSELoss()(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """

    function = staticmethod(F.mse_loss)

    def __init__(self, *given: Any, reduction: str = "mean") -> None:
        super().__init__(*given, reduction=reduction)


class L1Loss(MSELoss):
    """The mean of the absolute differences."""

    function = staticmethod(F.l1_loss)


class NLLLoss(_Loss):
    """Minus the log-probability of each item's class."""

    function = staticmethod(F.nll_loss)

    def __init__(
        self,
        weight: Tensor | None = None,
        *given: Any,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(*given, weight=weight, ignore_index=ignore_index, reduction=reduction)


class CrossEntropyLoss(NLLLoss):
    """Minus the log-probability of each item's class, from scores.

    >>> tk.nn.CrossEntropyLoss()(tk.tensor([[0., 0.]]), tk.tensor([1]))
    tensor(0.6931)
    """

    function = staticmethod(F.cross_entropy)

    def __init__(
        self, weight: Tensor | None = None, *given: Any, label_smoothing: float = 0.0, **named: Any
    ) -> None:
        super().__init__(weight, *given, **named)
        has = "weight, ignore_index, reduction"
        refuse_options("CrossEntropyLoss", has, {"label_smoothing": label_smoothing})


class BCELoss(_Loss):
    """Binary cross entropy of probabilities."""

    function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight: Tensor | None = None, *given: Any, reduction: str = "mean") -> None:
        super().__init__(*given, weight=weight, reduction=reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of scores, of which it takes the sigmoid."""

    function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(
        self,
        weight: Tensor | None = None,
        *given: Any,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(*given, weight=weight, reduction=reduction, pos_weight=pos_weight)
