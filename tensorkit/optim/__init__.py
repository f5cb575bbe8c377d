"""Optimizers: they change parameters by what backward found. SGD, Adam and AdamW.

``param_groups`` is a list, as in PyTorch, of one dictionary: the parameters and the settings they
are trained with. The state of a parameter is a dictionary of tensors. Each optimizer defines
``change``, the formulas of a step for the array of one parameter.
"""

import copy
import math
from collections import defaultdict
from typing import Any

import numpy as np

from tensorkit import absent, base
from tensorkit._tensor import Tensor
from tensorkit.autograd.versions import bump_version
from tensorkit.base import TensorBase
from tensorkit.devices import check_same_device
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.errors import NotSupportedError, message
from tensorkit.nn.module import clear_gradients
from tensorkit.ops import inplace
from tensorkit.overrides import overridable

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


class Optimizer:
    """Base of SGD, Adam and AdamW; ``settings`` are those of all parameters."""

    def __init__(self, params: Any, settings: dict[str, Any], others: dict[str, Any]) -> None:
        if isinstance(params, TensorBase):
            raise TypeError(message("params should be tensors in a list", repair="[x]"))
        params = list(params)
        if not params:
            raise ValueError("optimizer got an empty parameter list")
        for param in params:
            if isinstance(param, dict):
                repair = f"[tk.optim.{type(self).__name__}(**options | group) for group in groups]"
                raise NotSupportedError("an optimizer has one group of parameters", repair=repair)
            if not isinstance(param, TensorBase):
                raise TypeError(message("an optimizer takes tensors", repair="model.parameters()"))
            if not param.is_leaf:  # type: ignore[attr-defined]
                repair = "x.detach().requires_grad_()"
                raise ValueError(message("can't optimize a non-leaf Tensor", repair=repair))
        if len(set(params)) < len(params):
            raise ValueError(message("a parameter is given twice", repair="dict.fromkeys(params)"))
        self._check({**settings, **others}, settings)
        self._settings = [*settings]
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = [{"params": params, **settings}]

    def _check(self, given: dict[str, Any], settings: Any) -> None:
        """Raise for settings that no step of this optimizer could use."""
        has = {"params", "foreach", "fused", *settings}  # the second and third change nothing
        others = {name: value for name, value in given.items() if name not in has}
        absent.known_options(type(self).__name__, [*settings], others)
        for name in settings:
            numbers = given[name] if name == "betas" else (given[name],)
            if not all(0 <= x < (1 if name == "betas" else math.inf) for x in numbers):
                raise ValueError(f"Invalid {name}: {given[name]}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        clear_gradients(self.param_groups[0]["params"], set_to_none)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(absent.sentence("torch.optim", name, type(self).__name__))

    # A step

    @seen_by_modes
    @overridable
    def step(self) -> None:
        """Change all parameters that have a gradient."""
        without_warnings(self._step)

    def _step(self) -> None:
        # All is computed before anything is written: where memory runs out, nothing has changed.
        (group,), name = self.param_groups, f"{type(self).__name__}.step"
        if len(group) > 1 + len(self._settings):  # it may have some of the user's own
            others = {name: each for name, each in group.items() if name in absent.OPTIONS}
            absent.known_options(type(self).__name__, self._settings, others)
        changes = []
        for param in group["params"]:
            if getattr(param, "_grad", None) is None:
                continue
            state = self.state.get(param, {})
            _check_writable(param, state)
            arrays = {name: each._array for name, each in state.items()} if state else state
            x, g = param._array, param._grad._array
            change, found = self.change(param._xp, group, arrays, x, g)
            made = {
                name: base.new(np.asarray(value) if np.isscalar(value) else value)
                for name, value in found.items()
            }
            changes.append((param, change, made))
        last_write = None
        for param, change, state in changes:
            if state:
                self.state[param] = state
            x = param._array
            x -= change
            last_write = bump_version(param, name, last_write)

    def change(self, xp: Any, group: Any, state: Any, x: Any, g: Any) -> tuple[Any, dict[str, Any]]:
        """What is subtracted from an array ``x`` with the gradient ``g``, and its new state.

        ``state`` holds arrays, and is empty before the first step.
        """
        raise NotImplementedError

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data, with numbers for the parameters."""
        own = self.param_groups[0]
        number = {param: at for at, param in enumerate(own["params"])}
        return {
            "state": {number[param]: state for param, state in self.state.items()},
            "param_groups": [{**own, "params": [*number.values()]}],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and settings from ``state_dict``, which stays as it is.

        Raises ValueError if that has another number of parameters.
        """
        saved, (own,) = copy.deepcopy(state_dict), self.param_groups
        if [len(each["params"]) for each in saved["param_groups"]] != [len(own["params"])]:
            first = "loaded state dict has another number of parameter groups, or of parameters"
            raise ValueError(message(first, f"One group of {len(own['params'])} would fit."))
        (group,) = saved["param_groups"]
        self._check({**own, **group}, [name for name in own if name != "params"])
        param_of = dict(zip(group["params"], own["params"], strict=True))
        states = {}  # all of them are there before anything is taken over: memory may run out
        for number, state in saved["state"].items():
            param = param_of[number]
            states[param] = {
                # steps are counted on the host
                name: x.cpu() if name == "step" else x.to(param.device, param.dtype)
                for name, x in state.items()
            }
        self.state.clear()
        self.state.update(states)
        own.update(group, params=own["params"])

    def __repr__(self) -> str:
        settings = sorted(self.param_groups[0].items())
        lines = [f"    {name}: {value}" for name, value in settings if name != "params"]
        return "\n".join([f"{type(self).__name__} (", "Parameter Group 0", *lines, ")"])


def _check_writable(param: Tensor, state: dict[str, Any]) -> None:
    """Raise where a parameter cannot be written to, or its state is on another device."""
    if not param._array.flags.c_contiguous:
        inplace.check_overlap(param)
    for name, each in state.items():
        if name != "step":
            repair = "optimizer.load_state_dict(optimizer.state_dict())    # it follows"
            check_same_device(param.device, each.device, repair=repair)


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

    @absent.explains_options
    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        *,
        weight_decay: float = 0,
        **others: Any,
    ) -> None:
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(params, settings, others)

    def change(self, xp: Any, group: Any, state: Any, x: Any, g: Any) -> tuple[Any, dict[str, Any]]:
        """A step of gradient descent."""
        if group["weight_decay"]:
            g = g + float(group["weight_decay"]) * x
        if not group["momentum"]:
            return float(group["lr"]) * g, {}
        v = float(group["momentum"]) * state.get("momentum_buffer", 0.0) + g
        return float(group["lr"]) * v, {"momentum_buffer": v}


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

    shrinks = False  # whether weight decay is for the parameters themselves

    @absent.explains_options
    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float | None = None,
        **others: Any,
    ) -> None:
        settings: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps}
        usual = 1e-2 if self.shrinks else 0
        settings["weight_decay"] = usual if weight_decay is None else weight_decay
        super().__init__(params, settings, others)

    def change(self, xp: Any, group: Any, state: Any, x: Any, g: Any) -> tuple[Any, dict[str, Any]]:
        """A step of Adam; ``m`` and ``v`` are the means."""
        lr, decay, (beta1, beta2) = float(group["lr"]), float(group["weight_decay"]), group["betas"]
        if not self.shrinks:
            g = g + decay * x if decay else g
        m, v = state.get("exp_avg", 0.0), state.get("exp_avg_sq", 0.0)
        # each step after the first writes to an array of its own: a fifth less time
        distance, squares = g - m, g * g
        distance *= 1 - beta1
        distance += m
        squares *= 1 - beta2
        squares += v * beta2
        n = state.get("step", np.float32(0)) + np.float32(1)  # counted on the host
        root = xp.sqrt(squares)
        root /= math.sqrt(1 - beta2 ** int(n))
        root += group["eps"]
        change = distance / root
        change *= lr / (1 - beta1 ** int(n))
        if self.shrinks:
            change = change + lr * decay * x
        return change, {"step": n, "exp_avg": distance, "exp_avg_sq": squares}


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


__getattr__ = absent.missing("torch.optim")
