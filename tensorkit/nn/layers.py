"""Modules that compute one function each: layers, activations, losses."""

import math
from typing import Any, ClassVar

from tensorkit._tensor import Tensor
from tensorkit.absent import wrong_arguments
from tensorkit.creation import empty, ones, zeros
from tensorkit.nn import functional as F
from tensorkit.nn import init
from tensorkit.nn.module import Module, Parameter
from tensorkit.ops.views import flatten
from tensorkit.random import randn


class Linear(Module):
    """``x @ weight.t() + bias``: (..., in_features) gives (..., out_features).

    The first values are even numbers up to ``1 / sqrt(in_features)``.

    >>> _ = tk.manual_seed(0)
    >>> layer = tk.nn.Linear(3, 2)
    >>> layer(tk.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, **options: Any
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        weight = empty((out_features, in_features), **options)
        self.weight = Parameter(init.uniform_(weight, -bound, bound))
        self.bias: Any = None
        if bias:
            self.bias = Parameter(init.uniform_(empty(out_features, **options), -bound, bound))

    def forward(self, input: Tensor) -> Tensor:
        """The linear map of the last dimension."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}"


class Embedding(Module):
    """A table of vectors, looked up by position: integers (...) give (..., embedding_dim).

    The first values are normal numbers.

    >>> _ = tk.manual_seed(0)
    >>> tk.nn.Embedding(10, 4)(tk.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 4])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, *, device: Any = None, **others: Any
    ) -> None:
        super().__init__(**others)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = Parameter(randn((num_embeddings, embedding_dim), device=device))

    def forward(self, input: Tensor) -> Tensor:
        """The rows at these positions."""
        return F.embedding(input, self.weight)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_embeddings}, {self.embedding_dim}"


class LayerNorm(Module):
    """Mean 0 and variance 1 along the last dimension, then a learned scale and shift.

    The first values are scale 1 and shift 0.

    >>> tk.nn.LayerNorm(2)(tk.tensor([1., 3.])).detach()
    tensor([-1.0000,  1.0000])
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, *, device: Any = None, **others: Any
    ) -> None:
        super().__init__(**others)
        own = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = own
        self.eps = eps
        self.weight = Parameter(ones(own, device=device))
        self.bias = Parameter(zeros(own, device=device))

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings; the last two cannot be changed."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine=True, bias=True"


class _Function(Module):
    """A function of ``nn.functional`` as a module, with the settings that it is called with."""

    function: Any
    settings: ClassVar[dict[str, Any]] = {}  # their names, in order, and defaults

    def __init_subclass__(cls, function: Any = None, **settings: Any) -> None:
        cls.settings = {**cls.settings, **settings}
        if function is not None:
            cls.function = staticmethod(function)

    def __init__(self, *args: Any, **named: Any) -> None:
        if len(args) > len(self.settings) or ("reduction" in self.settings and args):
            first = f"{type(self).__name__}() was given {len(args)} settings without a name"
            raise wrong_arguments(first, self.settings)
        super().__init__(**{x: named[x] for x in named if x not in self.settings})
        vars(self).update(self.settings, **dict(zip(self.settings, args, strict=False)), **named)

    def forward(self, *tensors: Tensor) -> Tensor:
        """What the function gives."""
        own = vars(self)
        return type(self).function(*tensors, **{name: own[name] for name in self.settings})

    def extra_repr(self) -> str:
        """The settings, but for those that say no, and the reduction of a loss."""
        own = {name: getattr(self, name) for name in self.settings if name != "reduction"}
        return ", ".join(f"{name}={x!r}" for name, x in own.items() if x is not False)


class Flatten(_Function, function=flatten, start_dim=1, end_dim=-1):
    """Dimensions ``start_dim`` to ``end_dim`` as one; the first, the batch, stays."""


class Dropout(_Function, function=F.dropout, p=0.5, inplace=False):
    """In training, each element zero with probability ``p``, the others scaled up.

    >>> tk.nn.Dropout(0.5).eval()(tk.ones(2))
    tensor([1., 1.])
    """

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


class Softmax(_Function, function=F.softmax, dim=None):
    """``exp(x)`` divided by its sum along ``dim``."""


# Losses


class _Loss(_Function, reduction="mean"):
    """A loss of an input and a target. Its ``reduction`` is given by name."""


class MSELoss(_Loss, function=F.mse_loss):
    """The mean of the squared differences.

    >>> tk.nn.MSELoss()(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """


class L1Loss(_Loss, function=F.l1_loss):
    """The mean of the absolute differences."""


class NLLLoss(_Loss, function=F.nll_loss):
    """Minus the log-probability of each item's class."""


class CrossEntropyLoss(_Loss, function=F.cross_entropy):
    """Minus the log-probability of each item's class, from scores.

    >>> tk.nn.CrossEntropyLoss()(tk.tensor([[0., 0.]]), tk.tensor([1]))
    tensor(0.6931)
    """


class BCELoss(_Loss, function=F.binary_cross_entropy):
    """Binary cross entropy of probabilities."""


class BCEWithLogitsLoss(_Loss, function=F.binary_cross_entropy_with_logits):
    """Binary cross entropy of scores, of which it takes the sigmoid."""
