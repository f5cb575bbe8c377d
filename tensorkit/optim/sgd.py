"""Stochastic gradient descent, with momentum (Sutskever et al. 2013, who explain Nesterov's)."""

from typing import Any

from tensorkit._tensor import Tensor
from tensorkit.kernels import Kernel
from tensorkit.optim.optimizer import Optimizer, check_settings, new_state, refuse, settings

_PLAIN = Kernel("sgd", "T g, T sign, T decay, T lr", "T x", "x -= lr * (sign * g + decay * x);")
_MOMENTUM = Kernel(
    "sgd_momentum",
    "T g, T sign, T decay, T lr, T momentum, T share, T nesterov",
    "T x, T v",
    "T slope = sign * g + decay * x;"
    "v = momentum * v + share * slope;"
    "x -= lr * (nesterov ? slope + momentum * v : v);",
)


class SGD(Optimizer):
    """Moves each parameter against its gradient: ``x -= lr * g``.

    With ``momentum`` the direction is a running sum, ``v = momentum * v + (1 - dampening) * g``,
    which begins as the gradient itself. ``weight_decay`` adds that part of ``x`` to the gradient.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> optimizer = tk.optim.SGD([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = settings(locals())
        check_settings(learning_rate=lr, momentum=momentum, weight_decay=weight_decay)
        refuse(differentiable=differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)

    def prepare(
        self, group: dict[str, Any], state: dict[str, Any], param: Tensor
    ) -> tuple[int, list[Tensor]]:
        """The velocity, if there is momentum; that it is the first step matters only then."""
        if not group["momentum"]:
            return 1, []
        is_first = state.get("momentum_buffer") is None
        if is_first:
            state["momentum_buffer"] = new_state(param)
        return 1 if is_first else 2, [state["momentum_buffer"]]

    def kernel(self, group: dict[str, Any], count: int) -> tuple[Kernel, tuple[float, ...]]:
        """The kernel of a step, and its numbers."""
        numbers = (-1 if group["maximize"] else 1, group["weight_decay"], float(group["lr"]))
        if not group["momentum"]:
            return _PLAIN, numbers
        share = 1 if count == 1 else 1 - group["dampening"]  # v begins as zero
        return _MOMENTUM, (*numbers, group["momentum"], share, group["nesterov"])

    def update(
        self, xp: Any, group: dict[str, Any], count: int, spare: Any, x: Any, g: Any, *state: Any
    ) -> None:
        """One step of gradient descent."""
        lr, momentum, decay = float(group["lr"]), group["momentum"], group["weight_decay"]
        one, two = spare
        if group["maximize"]:
            g = xp.negative(g, out=one)
        if decay:
            g = xp.add(g, xp.multiply(x, decay, out=two), out=one)
        if momentum:
            (v,) = state
            if count == 1:
                v[...] = g
            else:
                v *= momentum
                v += xp.multiply(g, 1 - group["dampening"], out=two)
            g = xp.add(g, xp.multiply(v, momentum, out=two), out=one) if group["nesterov"] else v
        x -= xp.multiply(g, lr, out=two)
