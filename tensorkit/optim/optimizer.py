"""Optimizers: SGD, Adam and AdamW, and what they share.

A *group* is a dictionary of parameters and the settings they are trained with. The state of a
parameter is a dictionary of tensors. Each optimizer defines ``update``, which changes the array of
one parameter in place.
"""

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from tensorkit._tensor import Tensor
from tensorkit.autograd.grad_mode import enable_grad
from tensorkit.autograd.inplace import written
from tensorkit.base import TensorBase
from tensorkit.creation import tensor, zeros_like
from tensorkit.devices import refuse_mix
from tensorkit.errors import message, refuse_options
from tensorkit.errstate import silently
from tensorkit.nn.module import clear_gradients
from tensorkit.ops import writing


class Optimizer:
    """Base of SGD, Adam and AdamW; ``defaults`` are the settings a group may leave out."""

    n_spare = 1  # how many arrays ``update`` computes in

    def __init__(self, params: Any, defaults: dict[str, Any], others: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        for name in others.keys() - _OTHERS:
            raise TypeError(f"{type(self).__name__} got an unexpected keyword argument '{name}'")
        self._check(others)
        if isinstance(params, TensorBase):
            raise TypeError(message("params should be tensors or dicts in a list", repair="[x]"))
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train more parameters, with settings of their own where ``param_group`` has them."""
        params = param_group["params"]
        params = [params] if isinstance(params, TensorBase) else list(params)
        for param in params:
            if not isinstance(param, TensorBase):
                kind = type(param).__name__
                raise TypeError(f"an optimizer changes tensors; one of the params is a {kind}")
            if not param.is_leaf:  # type: ignore[attr-defined]
                repair = "x.detach().requires_grad_()"
                raise ValueError(message("can't optimize a non-leaf Tensor", repair=repair))
        if not set(params).isdisjoint(self._params()):
            raise ValueError("some parameters appear in more than one parameter group")
        group = {**self.defaults, **param_group, "params": params}
        self._check(group)
        self.param_groups.append(group)

    def _check(self, group: dict[str, Any]) -> None:
        """Raise for settings that no step of this optimizer could use."""
        has = ("params", "foreach", "fused", *self.defaults)  # the second and third change nothing
        others = {name: value for name, value in group.items() if name not in has}
        refuse_options(type(self).__name__, ", ".join(self.defaults), others)
        for name, value in _settings(group).items():
            numbers = value if isinstance(value, tuple) else (value,)
            if not all(0 <= x < (1 if name == "betas" else math.inf) for x in numbers if x):
                raise ValueError(f"Invalid {name}: {value}")

    def _params(self) -> Iterator[Tensor]:
        return chain.from_iterable(group["params"] for group in self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        clear_gradients(self._params(), set_to_none)

    # A step

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change all parameters that have a gradient; gives what ``closure`` computed before."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        silently(self._step)
        return loss

    def _step(self) -> None:
        # The memory for all comes first: where it runs out, nothing has changed.
        states: dict[Tensor, dict[str, Any]] = {}
        changes = []
        for group in self.param_groups:
            for param in group["params"]:
                if getattr(param, "_grad", None) is None:
                    continue
                if param not in states:
                    states[param] = self.state.get(param) or self.new_state(group, param)
                    _check_place(param, states[param])
                xp = param._xp
                spare = [xp.empty_like(param._array) for _ in range(self.n_spare)]
                changes.append((xp, param, group, states[param], spare))
        for xp, param, group, state, spare in changes:
            if state:
                self.state[param] = state
            self.update(xp, group, state, param._array, param._grad._array, *spare)
            written(param, f"{type(self).__name__}.step")

    def new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """What is kept of a parameter, before its first step."""
        raise NotImplementedError

    def update(self, xp: Any, group: Any, state: Any, x: Any, g: Any, *spare: Any) -> None:
        """Change the array ``x`` of a parameter and its state in place; ``g`` is its gradient.

        ``spare`` are arrays of its shape to compute in.
        """
        raise NotImplementedError

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data, parameters as numbers in the order of the groups."""
        number = {param: place for place, param in enumerate(dict.fromkeys(self._params()))}
        return {
            "state": {number[param]: state for param, state in self.state.items()},
            "param_groups": [
                {**_settings(group), "params": [number[param] for param in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and settings from ``state_dict``, which stays as it is.

        Raises ValueError if groups or their sizes differ.
        """
        saved = copy.deepcopy(state_dict)
        own, others = self.param_groups, saved["param_groups"]
        if len(own) != len(others):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(own, others, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        groups = [
            {**_settings(theirs), "params": mine["params"]}
            for mine, theirs in zip(own, others, strict=True)
        ]
        for group in groups:
            self._check(group)
        numbers = chain.from_iterable(group["params"] for group in others)
        param_of = dict(zip(numbers, self._params(), strict=True))
        states = {}  # all of them are there before anything is taken over: memory may run out
        for number, state in saved["state"].items():
            param = param_of[number]
            states[param] = {name: _fitted(name, x, param) for name, x in state.items()}
        self.state.clear()
        self.state.update(states)
        self.param_groups = groups

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for place, group in enumerate(self.param_groups):
            settings = sorted(_settings(group).items())
            lines += [f"Parameter Group {place}", *(f"    {k}: {v}" for k, v in settings), ""]
        return "\n".join([*lines[:-1], ")"])


# what PyTorch's optimizers have besides
_OTHERS = {"dampening", "nesterov", "maximize", "amsgrad", "foreach", "fused"}
_OTHERS |= {"capturable", "differentiable"}


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


def _check_place(param: Tensor, state: dict[str, Any]) -> None:
    """Raise where a parameter cannot be written to, or its state is on another device."""
    if not param._array.flags.c_contiguous:
        writing.check_overlap(param)
    for name, each in state.items():
        if name != "step":
            refuse_mix(
                param.device,
                each.device,
                repair="optimizer.load_state_dict(optimizer.state_dict())    # it follows",
            )


def _fitted(name: str, value: Any, param: Tensor) -> Any:
    """A loaded value as its parameter is, dtype and device; steps are counted on the host."""
    return value.cpu() if name == "step" else value.to(param.device, param.dtype)


class SGD(Optimizer):
    """Moves each parameter against its gradient: ``x -= lr * g``.

    With ``momentum`` the direction is a running sum of the gradients, ``v = momentum * v + g``.
    ``weight_decay`` adds that part of ``x`` to the gradient.

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
        *,
        weight_decay: float = 0,
        **others: Any,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(params, defaults, others)

    def new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """The velocity, where there is momentum."""
        return {"momentum_buffer": zeros_like(param)} if group["momentum"] else {}

    def update(self, xp: Any, group: Any, state: Any, x: Any, g: Any, *spare: Any) -> None:
        """One step of gradient descent."""
        (one,) = spare
        if group["weight_decay"]:
            g = xp.add(g, xp.multiply(x, group["weight_decay"], out=one), out=one)
        if group["momentum"]:
            v = state["momentum_buffer"]._array
            v *= group["momentum"]
            v += g
            g = v
        x -= xp.multiply(g, float(group["lr"]), out=one)


class Adam(Optimizer):
    """Divides the running mean of the gradients by the root of that of their squares.

    Both means start at zero and are corrected for it. ``weight_decay`` adds that part of the
    parameter to the gradient. Source: Kingma and Ba 2015.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> optimizer = tk.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    n_spare = 2
    shrinks = False  # whether weight decay is for the parameters themselves
    decay: float = 0

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float | None = None,
        **others: Any,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps}
        defaults["weight_decay"] = self.decay if weight_decay is None else weight_decay
        super().__init__(params, defaults, others)

    def new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """The number of the step, and the running means."""
        means = {name: zeros_like(param) for name in ("exp_avg", "exp_avg_sq")}
        return {"step": tensor(0.0), **means}

    def update(self, xp: Any, group: Any, state: Any, x: Any, g: Any, *spare: Any) -> None:
        """One step of Adam; ``m`` and ``v`` are the means."""
        one, two = spare
        lr, (beta1, beta2), decay = float(group["lr"]), group["betas"], group["weight_decay"]
        m, v = state["exp_avg"]._array, state["exp_avg_sq"]._array
        count = state["step"]._array
        count += 1
        if decay and self.shrinks:
            x *= 1 - lr * decay
        elif decay:
            g = xp.add(g, xp.multiply(x, decay, out=one), out=one)
        m += xp.multiply(xp.subtract(g, m, out=two), 1 - beta1, out=two)
        v *= beta2
        v += xp.multiply(xp.multiply(g, g, out=two), 1 - beta2, out=two)
        root = xp.divide(xp.sqrt(v, out=two), math.sqrt(1 - beta2 ** int(count)), out=two)
        root += group["eps"]
        step = xp.divide(m, root, out=two)
        step *= lr / (1 - beta1 ** int(count))
        x -= step


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters and leaves the gradients alone.

    Source: Loshchilov and Hutter 2019.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> optimizer = tk.optim.AdamW([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.4950, 1.4900], requires_grad=True)
    """

    shrinks = True
    decay = 1e-2
