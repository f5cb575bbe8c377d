"""What is done to the gradients of all parameters together: clipping."""

from collections.abc import Iterable

from tensorkit import absent
from tensorkit._tensor import Tensor
from tensorkit.autograd.grad_mode import no_grad
from tensorkit.creation import zeros
from tensorkit.ops.joining import stack


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0
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
    params = [parameters] if isinstance(parameters, Tensor) else parameters
    gradients = [p.grad for p in params if p.grad is not None]
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


__getattr__ = absent.missing("torch.nn.utils")
