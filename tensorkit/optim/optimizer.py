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
from tensorkit.autograd import history
from tensorkit.autograd.modes import enable_grad
from tensorkit.base import TensorBase
from tensorkit.creation import zeros_like
from tensorkit.data import tensor
from tensorkit.devices import refuse_mix
from tensorkit.errors import message, refuse_options
from tensorkit.nn.module import clear_gradients
from tensorkit.ops import writing
from tensorkit.quiet import quietly


class Optimizer:
    """Base of SGD, Adam and AdamW; ``defaults`` are the settings a group may leave out.

    Of PyTorch's settings ``has`` are those that may be chosen; the others keep their defaults.
    """

    has = ""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = {name: defaults[name] for name in defaults if name not in _NO_SETTINGS}
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, TensorBase):
            raise TypeError(
                message("params should be an iterable of tensors or dicts", repair="[x]")
            )
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
                raise ValueError(
                    message(
                        "can't optimize a non-leaf Tensor", repair="x.detach().requires_grad_()"
                    )
                )
        if not set(params).isdisjoint(self._params()):
            raise ValueError("some parameters appear in more than one parameter group")
        # the order of PyTorch: what was given, then the settings that it leaves out
        group = {**param_group, "params": params}
        self.param_groups.append(self._checked({**group, **self.defaults, **group}))

    def _checked(self, group: dict[str, Any]) -> dict[str, Any]:
        """The group; ValueError for a number that no step could use."""
        named = {name: x for name, x in group.items() if name in self.defaults}
        accepted = {*self.has.split(", "), "foreach", "fused"}  # these two ask for speed only
        others = {name: value for name, value in named.items() if name not in accepted}
        refuse_options(type(self).__name__, self.has, others)
        for name, value in named.items():
            values = value if isinstance(value, tuple) else (value,)
            if not all(0 <= (x or 0) < (1 if name == "betas" else math.inf) for x in values):
                raise ValueError(f"Invalid {name}: {value}")
        return group

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
        quietly(self._step)
        return loss

    def _step(self) -> None:
        # The memory for all comes first: where it runs out, nothing has changed.
        states: dict[Tensor, dict[str, Any]] = {}
        sizes: defaultdict[Any, int] = defaultdict(int)
        changes = [
            (param, group)
            for group in self.param_groups
            for param in group["params"]
            if param._grad is not None
        ]
        for param, group in changes:
            if param not in states:
                states[param] = self.state.get(param) or self.new_state(group, param)
                _check_place(param, states[param])
            key = param.device, param.dtype
            sizes[key] = max(sizes[key], param.numel())
        spare = {
            (device, dtype): device.backend.xp.empty((2, size), dtype.numpy)
            for (device, dtype), size in sizes.items()
        }
        self.state.update({param: state for param, state in states.items() if state})
        for param, group in changes:
            x, g = param._array, param._grad._array
            one, two = spare[param.device, param.dtype][:, : x.size]
            arrays = one.reshape(x.shape), two.reshape(x.shape)
            self.update(param._xp, group, states[param], x, g, *arrays)
            history.written(param, f"{type(self).__name__}.step")

    def new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """What is kept of a parameter, before its first step."""
        raise NotImplementedError

    def update(
        self, xp: Any, group: dict[str, Any], state: Any, x: Any, g: Any, one: Any, two: Any
    ) -> None:
        """Change the array ``x`` of a parameter and its state in place; ``g`` is its gradient.

        ``one`` and ``two`` are arrays of its shape to compute in.
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
            self._checked({**_settings(theirs), "params": mine["params"]})
            for mine, theirs in zip(own, others, strict=True)
        ]
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


_NO_SETTINGS = {"self", "params", "__class__"}  # of what ``locals()`` of an ``__init__`` has


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


def _check_place(param: Tensor, state: dict[str, Any]) -> None:
    """Raise where a parameter cannot be written to, or its state is on another device."""
    if not param.is_contiguous():
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

    has = "lr, momentum, weight_decay"

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
        super().__init__(params, locals())

    def new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """The velocity, where there is momentum."""
        return {"momentum_buffer": zeros_like(param)} if group["momentum"] else {}

    def update(
        self, xp: Any, group: dict[str, Any], state: Any, x: Any, g: Any, one: Any, two: Any
    ) -> None:
        """One step of gradient descent."""
        if group["weight_decay"]:
            g = xp.add(g, xp.multiply(x, group["weight_decay"], out=one), out=one)
        if group["momentum"]:
            v = state["momentum_buffer"]._array
            v *= group["momentum"]
            v += g
            g = v
        x -= xp.multiply(g, float(group["lr"]), out=two)


class Adam(Optimizer):
    """Divides the running mean of the gradients by the root of that of their squares.

    Both means start at zero and are corrected for it. ``weight_decay`` adds that part of the
    parameter to the gradient, or shrinks the parameter if it is decoupled. Source: Kingma and Ba
    2015.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> optimizer = tk.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    has = "lr, betas, eps, weight_decay, decoupled_weight_decay"

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
        super().__init__(params, locals())

    def new_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """The number of the step, and the running means."""
        means = {name: zeros_like(param) for name in ("exp_avg", "exp_avg_sq")}
        return {"step": tensor(0.0), **means}

    def update(
        self, xp: Any, group: dict[str, Any], state: Any, x: Any, g: Any, one: Any, two: Any
    ) -> None:
        """One step of Adam; ``m`` and ``v`` are the means."""
        lr, (beta1, beta2), decay = float(group["lr"]), group["betas"], group["weight_decay"]
        m, v = state["exp_avg"]._array, state["exp_avg_sq"]._array
        count = state["step"]._array
        count += 1
        if decay and group["decoupled_weight_decay"]:
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
