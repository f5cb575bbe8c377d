"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019)."""

import math
from typing import Any

from tensorkit._tensor import Tensor
from tensorkit.data import tensor
from tensorkit.kernels import Kernel
from tensorkit.optim.optimizer import Optimizer, check_settings, new_state, refuse, settings

_SETTINGS = (
    "T g, T sign, T decay, T shrink, T lr, T beta1, T beta2, T rest1, T rest2, T root, T eps"
)
_MEANS = (
    "x *= shrink;"
    "T slope = sign * g + decay * x;"
    "m = beta1 * m + rest1 * slope;"
    "v = beta2 * v + rest2 * slope * slope;"
)
_ADAM = Kernel("adam", _SETTINGS, "T x, T m, T v", _MEANS + "x -= lr * m / (sqrt(v) / root + eps);")
_AMSGRAD = Kernel(
    "amsgrad",
    _SETTINGS,
    "T x, T m, T v, T most",
    _MEANS + "most = most < v ? v : most;" + "x -= lr * m / (sqrt(most) / root + eps);",
)

_STATE = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


class Adam(Optimizer):
    """Divides the running mean of the gradients by the root of that of their squares.

    Both means start at zero and are corrected for it. ``weight_decay`` adds to the gradient, with
    ``decoupled_weight_decay`` it shrinks the parameter instead. ``amsgrad`` divides by the largest
    mean square so far.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> optimizer = tk.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = settings(locals())
        check_settings(learning_rate=lr, epsilon=eps)
        for place, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {place}: {beta}")
        check_settings(weight_decay=weight_decay)
        refuse(capturable=capturable, differentiable=differentiable)
        super().__init__(params, defaults)

    def prepare(
        self, group: dict[str, Any], state: dict[str, Any], param: Tensor
    ) -> tuple[int, list[Tensor]]:
        """The number of the step to come, and the running means."""
        names = _STATE if group["amsgrad"] else _STATE[:2]
        if not state:
            state["step"] = tensor(0.0)
            state.update({name: new_state(param) for name in names})
        return int(state["step"]._array) + 1, [state[name] for name in names]

    def kernel(self, group: dict[str, Any], count: int) -> tuple[Kernel, tuple[float, ...]]:
        """The kernel of a step, and its numbers."""
        lr, (beta1, beta2), decay = float(group["lr"]), group["betas"], group["weight_decay"]
        decoupled = group["decoupled_weight_decay"]
        numbers = (
            -1 if group["maximize"] else 1,
            0 if decoupled else decay,
            1 - lr * decay if decoupled else 1,
            *(lr / (1 - beta1**count), beta1, beta2, 1 - beta1, 1 - beta2),
            *(math.sqrt(1 - beta2**count), group["eps"]),
        )
        return (_AMSGRAD if group["amsgrad"] else _ADAM), numbers

    def update(
        self, xp: Any, group: dict[str, Any], count: int, spare: Any, x: Any, g: Any, *state: Any
    ) -> None:
        """One step of Adam; ``m`` and ``v`` are the means, ``most`` the largest ``v`` so far."""
        lr, (beta1, beta2), decay = float(group["lr"]), group["betas"], group["weight_decay"]
        (one, two), (m, v, *most) = spare, state
        root, corrected = math.sqrt(1 - beta2**count), lr / (1 - beta1**count)
        if group["maximize"]:
            g = xp.negative(g, out=one)
        if decay and group["decoupled_weight_decay"]:
            x *= 1 - lr * decay
        elif decay:
            g = xp.add(g, xp.multiply(x, decay, out=two), out=one)
        scratch = xp.asarray(xp.subtract(g, m, out=two))  # of no dimensions NumPy gives a number
        scratch *= 1 - beta1
        m += scratch
        v *= beta2
        xp.multiply(g, g, out=scratch)
        scratch *= 1 - beta2
        v += scratch
        if most:
            xp.maximum(most[0], v, out=most[0])
            v = most[0]
        xp.sqrt(v, out=scratch)
        scratch /= root
        scratch += group["eps"]
        xp.divide(m, scratch, out=scratch)
        scratch *= corrected
        x -= scratch


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters and leaves the gradients alone.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> optimizer = tk.optim.AdamW([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.4950, 1.4900], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, decoupled_weight_decay=True, **options
        )
