"""What is done to all gradients or parameters together: clipping, one long vector."""

from collections.abc import Iterable

from tensorkit._tensor import Tensor
from tensorkit.autograd.grad_mode import no_grad
from tensorkit.creation import zeros
from tensorkit.errors import refuse_options
from tensorkit.ops.joining import cat, stack


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    params = [parameters] if isinstance(parameters, Tensor) else parameters
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
    has = "parameters, max_norm, norm_type"
    refuse_options("clip_grad_norm_", has, {"error_if_nonfinite": error_if_nonfinite})
    gradients = _gradients(parameters)
    if not gradients:
        return zeros(())
    norms = [x.norm(norm_type).to(gradients[0].device) for x in gradients]
    total = stack(norms).norm(norm_type)
    scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
    # all are there before the first gradient is scaled: memory may run out
    scales = [scale.to(x.device, x.dtype) for x in gradients]
    for gradient, own in zip(gradients, scales, strict=True):
        gradient.mul_(own)
    return total


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamp all gradients to ``[-clip_value, clip_value]``."""
    gradients = _gradients(parameters)
    # all are there before the first gradient is changed: memory may run out
    clamped = [gradient.clamp(-clip_value, clip_value) for gradient in gradients]
    for gradient, own in zip(gradients, clamped, strict=True):
        gradient.copy_(own)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, one after the other, as a vector.

    >>> tk.nn.utils.parameters_to_vector(tk.nn.Linear(3, 2).parameters()).shape
    torch.Size([8])
    """
    return cat([param.reshape(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters look at parts of ``vec``, in order."""
    start = 0
    for param in parameters:
        param.data = vec[start : start + param.numel()].view(param.shape).data
        start += param.numel()
