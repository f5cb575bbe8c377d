"""Modules that compute one function each: layers, activations, losses."""

import math
from typing import Any, ClassVar

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
        self, in_features: int, out_features: int, bias: bool = True, **options: Any
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), **options))
        self.bias = Parameter(empty(out_features, **options)) if bias else None
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

    def __init__(self, num_embeddings: int, embedding_dim: int, **options: Any) -> None:
        super().__init__()
        placed = {name: options.pop(name, None) for name in ("device", "dtype")}
        others = {name: str(x) for name, x in options.items() if x is not None}
        refuse_options("Embedding", "num_embeddings, embedding_dim", others)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = Parameter(empty((num_embeddings, embedding_dim), **placed))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw first values: normal numbers."""
        init.normal_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """The rows at these positions."""
        return F.embedding(input, self.weight)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_embeddings}, {self.embedding_dim}"


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
        **options: Any,
    ) -> None:
        super().__init__()
        is_number = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if is_number else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = empty(self.normalized_shape, **options)
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
    """A function of ``nn.functional`` as a module, with the settings that it is called with."""

    function: Any
    settings: ClassVar[dict[str, Any]]  # their names, in order, and defaults

    def __init_subclass__(cls, function: Any = None, **settings: Any) -> None:
        if function is not None:
            cls.function, cls.settings = staticmethod(function), settings

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__()
        name, has = type(self).__name__, ", ".join(self.settings) or "no settings"
        if len(args) > len(self.settings):
            raise TypeError(f"{name} has {has}; {len(args)} were given")
        others = {each: value for each, value in named.items() if each not in self.settings}
        refuse_options(name, has, others)
        own = {**self.settings, **dict(zip(self.settings, args, strict=False)), **named}
        for setting, value in own.items():
            if setting == "weight":
                self.register_buffer(setting, value)
            else:
                setattr(self, setting, value)

    def forward(self, *tensors: Tensor) -> Tensor:
        """What the function gives."""
        own = self.__dict__
        return type(self).function(*tensors, **{name: own[name] for name in self.settings})

    def extra_repr(self) -> str:
        """The settings, but for those that say no."""
        own = {name: getattr(self, name) for name in self.settings}
        return ", ".join(f"{name}={x!r}" for name, x in own.items() if x is not False)


class Flatten(_Function, function=Tensor.flatten, start_dim=1, end_dim=-1):
    """Dimensions ``start_dim`` to ``end_dim`` as one; the first, the batch, stays."""


class Dropout(_Function, function=F.dropout, p=0.5, inplace=False):
    """In training, each element zero with probability ``p``, the others scaled up.

    >>> tk.nn.Dropout(0.5).eval()(tk.ones(2))
    tensor([1., 1.])
    """

    p: float
    inplace: bool

    def forward(self, *tensors: Tensor) -> Tensor:
        """What is left of the input."""
        return F.dropout(tensors[0], self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"p={self.p}, inplace={self.inplace}"


# Activations


class Tanh(_Function, function=F.tanh):
    """The hyperbolic tangent."""


class Sigmoid(_Function, function=F.sigmoid):
    """``1 / (1 + exp(-x))``."""


class ReLU(_Function, function=F.relu, inplace=False):
    """Each element where it is positive, 0 elsewhere."""


class LeakyReLU(_Function, function=F.leaky_relu, negative_slope=0.01, inplace=False):
    """Each element where it is positive, ``negative_slope`` times it elsewhere."""


class GELU(_Function, function=F.gelu, approximate="none"):
    """``x`` times the part of a normal distribution below ``x``."""


class SiLU(_Function, function=F.silu):
    """``x * sigmoid(x)``."""


class Softplus(_Function, function=F.softplus, beta=1.0, threshold=20.0):
    """``log(1 + exp(beta * x)) / beta``."""


class Softmax(_Function, function=F.softmax, dim=None):
    """``exp(x)`` divided by its sum along ``dim``."""


class LogSoftmax(_Function, function=F.log_softmax, dim=None):
    """The logarithm of ``Softmax``."""


# Losses


class _Loss(_Function):
    """A loss of an input and a target; only ``weight`` may be given without a name."""

    def __init__(self, *args: Any, **named: Any) -> None:
        name = type(self).__name__
        others = args[1:] if "weight" in self.settings else args
        if any(isinstance(each, Tensor) for each in others):
            raise ShapeError(
                "Boolean value of Tensor with more than one value is ambiguous",
                "A loss is made with its settings and then called with input and target.",
                repair=f"tk.nn.{name}()(input, target)",
            )
        if others:
            raise TypeError(message(f"{name} takes its settings by name", repair='reduction="sum"'))
        super().__init__(*args, **named)

    def extra_repr(self) -> str:
        """Losses show no settings."""
        return ""


class MSELoss(_Loss, function=F.mse_loss, reduction="mean"):
    """The mean of the squared differences.

    >>> tk.nn.MSELoss()(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """


class L1Loss(_Loss, function=F.l1_loss, reduction="mean"):
    """The mean of the absolute differences."""


_OF_CLASSES = {"weight": None, "ignore_index": -100, "reduction": "mean"}


class NLLLoss(_Loss, function=F.nll_loss, **_OF_CLASSES):
    """Minus the log-probability of each item's class."""


class CrossEntropyLoss(_Loss, function=F.cross_entropy, **_OF_CLASSES):
    """Minus the log-probability of each item's class, from scores.

    >>> tk.nn.CrossEntropyLoss()(tk.tensor([[0., 0.]]), tk.tensor([1]))
    tensor(0.6931)
    """


class BCELoss(_Loss, function=F.binary_cross_entropy, reduction="mean"):
    """Binary cross entropy of probabilities."""


class BCEWithLogitsLoss(_Loss, function=F.binary_cross_entropy_with_logits, reduction="mean"):
    """Binary cross entropy of scores, of which it takes the sigmoid."""
