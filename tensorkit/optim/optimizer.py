"""What every optimizer shares: groups of parameters, their state, and the loop of a step.

A *group* is a dictionary of parameters and the settings they are trained with. The state of a
parameter is a dictionary of tensors. An optimizer defines ``update``, which changes the array of
one parameter in place; large parameters reach it in blocks that fit the processor's cache. On a
CUDA device one launch of its ``kernel`` changes all parameters that have the same settings.
"""

import copy
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from tensorkit import base, frames, layout
from tensorkit._tensor import Tensor
from tensorkit.autograd.modes import enable_grad
from tensorkit.base import TensorBase
from tensorkit.devices import CPU, refuse_mix
from tensorkit.errors import NotSupportedError, message
from tensorkit.kernels import Kernel
from tensorkit.nn.module import clear_gradients, typename
from tensorkit.ops import copying, writing
from tensorkit.quiet import quietly

BLOCK = 2**16  # elements: a few arrays of this size fit the second-level cache
_NONE = None, None  # instead of spare arrays


class Optimizer:
    """Base of SGD, Adam and AdamW; ``defaults`` are the settings a group may leave out."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, TensorBase):
            raise TypeError(
                message(
                    "params argument given to the optimizer should be an iterable of Tensors or "
                    f"dicts, but got {typename(params)}",
                    repair="[x]",
                )
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train more parameters, with settings of their own where ``param_group`` has them."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, TensorBase) else list(params)
        names = [each[0] for each in params if isinstance(each, tuple)]
        if names:
            params = [each[1] for each in params]
        for param in params:
            if not isinstance(param, TensorBase):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + typename(param)
                )
            if not param.is_leaf:  # type: ignore[attr-defined]
                raise ValueError(
                    message(
                        "can't optimize a non-leaf Tensor", repair="x.detach().requires_grad_()"
                    )
                )
        if len(set(params)) < len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                UserWarning,
                stacklevel=3,
            )
        if not set(params).isdisjoint(self._params()):
            raise ValueError("some parameters appear in more than one parameter group")
        group = {**param_group, "params": params, **({"param_names": names} if names else {})}
        # the order of PyTorch: what was given, then the settings that it leaves out
        self.param_groups.append({**group, **self.defaults, **group})

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
        quietly(self._step, _caller(type(self).__name__))
        return loss

    def _step(self, writer: tuple[str, Any, int]) -> None:
        here: list[Any] = []  # of the CPU, which come last: there is memory for them
        # Changes of those on CUDA devices, by their storages: one launch cannot change the same
        # memory twice, so what is given twice waits for the next one.
        rounds: list[dict[int, Any]] = []
        for group in self.param_groups:
            for param in group["params"]:
                gradient = getattr(param, "_grad", None)
                if gradient is None:
                    continue
                if param.device is CPU:
                    here.append((param, gradient, group))
                    continue
                key = id(base.storage_of(param))
                before = [each[key] for each in rounds if key in each]
                if len(before) == len(rounds):
                    rounds.append({})
                before = [each for each in before if each[0] is param]
                state = before[-1][2] if before else dict(self.state.get(param, {}))
                count, arrays = self._prepared(param, gradient, group, state)
                changes = next(each for each in rounds if key not in each)
                changes[key] = param, group, state, count + len(before), arrays
        spares = [_spare(changes.values()) for changes in rounds]
        for changes, spare in zip(rounds, spares, strict=True):
            self._launch(changes, spare, writer)
        for param, gradient, group in here:
            self._change(param, gradient, group, writer)

    def _change(
        self, param: Tensor, gradient: Tensor, group: dict[str, Any], writer: tuple[str, Any, int]
    ) -> None:
        """Run ``update`` on one parameter, in blocks if it is large and in one piece."""
        state = (self.state and self.state.get(param)) or {}
        count, arrays = self._prepared(param, gradient, group, state)
        self._begin(param, state, writer)
        size = arrays[0].size
        if size <= BLOCK or not all(x.flags.c_contiguous for x in arrays):
            self.update(np, group, count, _NONE, *arrays)
            return
        flat = [x.reshape(-1) for x in arrays]
        for start in range(0, size, BLOCK):
            self.update(np, group, count, _NONE, *[x[start : start + BLOCK] for x in flat])

    def _prepared(
        self, param: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]
    ) -> tuple[int, list[Any]]:
        """The number of the step, and the arrays: parameter, gradient, state."""
        if not param._is_contiguous:
            writing.check_overlap(param)
        count, tensors = self.prepare(group, state, param)
        arrays = [param._array, gradient._array]
        for each in tensors:
            if each.device is not param.device:
                refuse_mix(
                    param.device,
                    each.device,
                    repair="optimizer.load_state_dict(optimizer.state_dict())    # it follows",
                )
            arrays.append(each._array)
        return count, arrays

    def _begin(self, param: Tensor, state: dict[str, Any], writer: tuple[str, Any, int]) -> None:
        """Note that a parameter changes now."""
        if state:
            self.state[param].update(state)
            if "step" in state:
                state["step"]._array += 1
        storage = param._storage or base.storage_of(param)
        storage.version += 1
        storage.wrote = writer

    def _launch(self, changes: Any, spare: Any, writer: tuple[str, Any, int]) -> None:
        """Change parameters of CUDA devices, with one launch all that have the same settings.

        By now there is memory for the state of all and for what is computed on the way: what does
        not fit has changed nothing.
        """
        together: dict[Any, list[Any]] = defaultdict(list)
        for key, (param, group, state, count, arrays) in changes.items():
            self._begin(param, state, writer)
            x, *others = arrays
            if key in spare:
                self.update(param._xp, group, count, spare[key], *arrays)
                continue
            kernel, numbers = self.kernel(group, count)
            # a launch for many needs arrays that lie alike, without gaps
            alike = all(each.strides == x.strides for each in others)
            alike = alike and layout.is_dense(tuple(param.shape), param._strides)
            together[param.device, param.dtype, kernel, numbers, alike or key].append(
                (group, count, arrays)
            )
        for (device, _, kernel, numbers, _), some in together.items():
            group, count, _ = some[0]
            lists = [[g, x, *state] for _, _, (x, g, *state) in some]
            update = partial(self._update_of_lists, group, count)
            device.backend.launch_on_lists(kernel, numbers, lists, update)

    def _update_of_lists(self, group: dict[str, Any], count: int, *arrays: Any) -> None:
        g, x, *state = arrays
        self.update(np, group, count, _NONE, x, g, *state)

    def prepare(
        self, group: dict[str, Any], state: dict[str, Any], param: Tensor
    ) -> tuple[int, list[Tensor]]:
        """Which step of this parameter comes, and the tensors of its state, made at the first."""
        raise NotImplementedError

    def kernel(self, group: dict[str, Any], count: int) -> tuple[Kernel, tuple[float, ...]]:
        """What ``update`` is on a GPU: a kernel of ``g``, ``x`` and the state, and its numbers."""
        raise NotImplementedError

    def update(
        self, xp: Any, group: dict[str, Any], count: int, spare: Any, x: Any, g: Any, *state: Any
    ) -> None:
        """Change the array ``x`` of a parameter and those of its state in place; not ``g``.

        ``spare`` are two arrays to compute in. Where they are None new ones are made.
        """
        raise NotImplementedError

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data, parameters as numbers in the order of the groups."""
        number = {param: place for place, param in enumerate(dict.fromkeys(self._params()))}
        return {
            "state": {number[param]: state for param, state in self.state.items()},
            "param_groups": [
                {**_without_params(group), "params": [number[param] for param in group["params"]]}
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
        numbers = chain.from_iterable(group["params"] for group in others)
        param_of = dict(zip(numbers, self._params(), strict=True))
        states = {}  # all of them are there before anything is taken over: memory may run out
        for number, state in saved["state"].items():
            param = param_of[number]
            states[param] = {name: _fitted(name, x, param) for name, x in state.items()}
        self.state.clear()
        self.state.update(states)
        self.param_groups = [
            {**_without_params(theirs), "params": mine["params"]}
            for mine, theirs in zip(own, others, strict=True)
        ]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for place, group in enumerate(self.param_groups):
            settings = sorted(_without_params(group).items())
            lines += [f"Parameter Group {place}", *(f"    {k}: {v}" for k, v in settings), ""]
        return "\n".join([*lines[:-1], ")"])


def _without_params(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


def _fitted(name: str, value: Any, param: Tensor) -> Any:
    """A loaded value as its parameter is, dtype and device; steps are counted on the host."""
    if not isinstance(value, Tensor):
        return value
    if name == "step":
        return value.cpu()
    return value.to(param.device, param.dtype if param.is_floating_point() else value.dtype)


def _caller(optimizer: str) -> tuple[str, Any, int]:
    """Who called ``step``, as the error about a changed tensor names it."""
    frame = frames.of_user(sys._getframe(2))
    return f"{optimizer}.step", frame.f_code, frame.f_lasti


def _spare(changes: Iterable[Any]) -> dict[int, list[Any]]:
    """Two arrays to compute in for each parameter that no kernel changes, such as of float16.

    By storages, as the changes; they are parts of two that are as large as the largest.
    """
    sizes: dict[Any, int] = defaultdict(int)
    params = [param for param, *_, arrays in changes if not _have_kernel(arrays)]
    for param in params:
        key = param.device, param.dtype
        sizes[key] = max(sizes[key], param.numel())
    made = {
        (device, dtype): [device.backend.xp.empty(size, dtype.numpy) for _ in range(2)]
        for (device, dtype), size in sizes.items()
    }
    return {
        id(base.storage_of(param)): [
            each[: param.numel()].reshape(param.shape) for each in made[param.device, param.dtype]
        ]
        for param in params
    }


def _have_kernel(arrays: list[Any]) -> bool:
    return {each.dtype.char for each in arrays} in ({"f"}, {"d"})  # see kernels.py


def new_state(param: Tensor) -> Tensor:
    """Zeros that lie in memory as the parameter does."""
    shape, strides = tuple(param.shape), param._strides
    zeros = copying.filled(param, 0)
    if zeros.stride() != strides and layout.is_dense(shape, strides):
        return copying.laid_out(zeros, strides)
    return zeros


def settings(arguments: dict[str, Any]) -> dict[str, Any]:
    """What ``__init__`` was given beside the parameters, of its ``locals()``."""
    others = ("self", "params", "__class__")
    return {name: value for name, value in arguments.items() if name not in others}


def check_settings(**numbers: float) -> None:
    """ValueError in PyTorch's words unless each number is at least 0."""
    for name, value in numbers.items():
        if not value >= 0.0:
            words = "weight_decay" if name == "weight_decay" else name.replace("_", " ")
            raise ValueError(f"Invalid {words}{_VALUE.get(name, '')}: {value}")


_VALUE = dict.fromkeys(("momentum", "weight_decay", "epsilon"), " value")


def refuse(**options: Any) -> None:
    """NotImplementedError for an option of PyTorch's that would change what a step means."""
    for name, value in options.items():
        if value:
            raise NotSupportedError(
                f"tensorkit's optimizers have no {name}=True", repair=f"{name}=False"
            )
