"""Modules with or without parameters that compute one function each."""

import math
from typing import Any

from tensorkit import creation
from tensorkit._tensor import Tensor
from tensorkit.errors import NotSupportedError
from tensorkit.nn import functional as F
from tensorkit.nn import init
from tensorkit.nn.module import Member, Module
from tensorkit.nn.parameter import Parameter


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

    weight: Any = Member()
    bias: Any = Member()

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
        self.weight = Parameter(
            creation.empty((out_features, in_features), device=device, dtype=dtype)
        )
        made = Parameter(creation.empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", made)
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
        if max_norm is not None:
            raise NotSupportedError("tensorkit's Embedding has no max_norm", repair="max_norm=None")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError("Padding_idx must be within num_embeddings")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(
            creation.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
        )
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
        options = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            made = Parameter(creation.empty(self.normalized_shape, **options)) if wanted else None
            self.register_parameter(name, made)
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


class Flatten(Module):
    """Dimensions ``start_dim`` to ``end_dim`` as one; the first, the batch, stays."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The flattened input."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Dropout(Module):
    """In training, each element zero with probability ``p``, the others scaled up for it.

    >>> tk.nn.Dropout(0.5).eval()(tk.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """What is left of the input."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"p={self.p}, inplace={self.inplace}"


# Activations: each is a function of ``nn.functional`` with its settings.


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each element."""
        return F.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each element."""
        return F.sigmoid(input)


class ReLU(Module):
    """Each element where it is positive, 0 elsewhere."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each element."""
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Whether it writes in place."""
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """Each element where it is positive, ``negative_slope`` times it elsewhere."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each element."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope."""
        return f"negative_slope={self.negative_slope}" + ", inplace=True" * self.inplace


class GELU(Module):
    """``x`` times the part of a normal distribution below ``x``."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each element."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Which form."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """``x * sigmoid(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each element."""
        return F.silu(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each element."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """``exp(x)`` divided by its sum along ``dim``."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The probabilities."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of ``Softmax``."""

    def forward(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities."""
        return F.log_softmax(input, self.dim)
