"""First values of parameters: written in place, unrecorded. Each function returns its tensor."""

from tensorkit import absent
from tensorkit._tensor import Tensor
from tensorkit.autograd.grad_mode import no_grad


@absent.explains_options
@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Numbers spread evenly between ``a`` and ``b``."""
    return tensor.uniform_(a, b)


@absent.explains_options
@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Numbers of the normal distribution."""
    return tensor.normal_(mean, std)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere.

    >>> tk.nn.init.constant_(tk.empty(2), 3)
    tensor([3., 3.])
    """
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


__getattr__ = absent.missing("torch.nn.init")
