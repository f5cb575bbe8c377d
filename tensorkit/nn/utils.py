"""What is done to all gradients or parameters together: clipping, one long vector."""

import math
from collections.abc import Iterable

from tensorkit import data
from tensorkit._tensor import Tensor
from tensorkit.autograd.modes import no_grad
from tensorkit.base import TensorBase
from tensorkit.errors import DTypeError
from tensorkit.ops.joining import cat, stack


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    params = [parameters] if isinstance(parameters, TensorBase) else parameters
    return [p.grad for p in params if p.grad is not None]


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients so that their norm, taken together, is at most ``max_norm``.

    Gives the norm before.

    >>> x = tk.tensor([1., 1.], requires_grad=True)
    >>> (x * tk.tensor([3., 4.])).sum().backward()
    >>> tk.nn.utils.clip_grad_norm_(x, max_norm=1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    gradients = _gradients(parameters)
    if not gradients:
        return data.tensor(0.0)
    norms = stack([_norm(each, norm_type).to(gradients[0].device) for each in gradients])
    norm = _norm(norms, norm_type)
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise DTypeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped. To disable this error and scale the "
            "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    # all are there before the first gradient is scaled: memory may run out
    scales = {device: scale.to(device) for device in {each.device for each in gradients}}
    # a number of a smaller dtype than the scale's takes memory to be scaled in place
    small = [x for x in gradients if not x.shape and x.dtype is not scale.dtype]
    scaled = [x * scales[x.device] for x in small]
    if small:
        gradients = [x for x in gradients if x.shape or x.dtype is scale.dtype]
    for gradient in gradients:
        gradient.mul_(scales[gradient.device])
    for gradient, value in zip(small, scaled, strict=True):
        gradient.copy_(value)
    return norm


def _norm(x: Tensor, order: float) -> Tensor:
    if order == math.inf:
        return x.abs().max()
    if order == 2:
        return (x * x).sum().sqrt()
    return (x.abs() ** order).sum() ** (1 / order)


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamp all gradients to ``[-clip_value, clip_value]``."""
    for gradient in _gradients(parameters):
        gradient.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, one after the other, as a vector.

    >>> tk.nn.utils.parameters_to_vector(tk.nn.Linear(3, 2).parameters()).shape
    torch.Size([8])
    """
    return cat([param.reshape(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters look at parts of ``vec``, in order."""
    if not isinstance(vec, TensorBase):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for param in parameters:
        param.data = vec[start : start + param.numel()].view(param.shape).data
        start += param.numel()
