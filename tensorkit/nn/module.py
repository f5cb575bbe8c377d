"""Module: what all layers and models are made of.

A module keeps three tables: parameters (trained), buffers (saved with them, not trained) and
child modules. Assigning an attribute files it in the right one; state dicts, printing and moving
between dtypes walk the tree of children.
"""

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from tensorkit._tensor import Tensor
from tensorkit.autograd.hooks import Handle
from tensorkit.autograd.modes import no_grad
from tensorkit.base import TensorBase
from tensorkit.devices import cuda_device
from tensorkit.errors import NotSupportedError, TensorkitError, message
from tensorkit.nn.parameter import Parameter
from tensorkit.ops.arguments import conversion


def typename(value: Any) -> str:
    """A value's type as PyTorch's sentences name it: ``torch.FloatTensor``, ``str``.

    A class or function is named itself.
    """
    if isinstance(value, Tensor):
        return str(value.type())
    kind = value if hasattr(value, "__qualname__") else type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


class StateDictError(TensorkitError, RuntimeError):
    """A state dict that does not fit its module; ``missing`` and ``unexpected`` name keys."""


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` found: keys that it lacked, and keys that nothing asked for."""

    __slots__ = ()

    def __repr__(self) -> str:
        fits = not (self.missing_keys or self.unexpected_keys)
        return "<All keys matched successfully>" if fits else super().__repr__()

    __str__ = __repr__


class Module:
    """A part of a model: parameters, buffers, other modules, and ``forward``.

    >>> class Scale(tk.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = tk.nn.Parameter(tk.tensor(2.))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(tk.tensor([1., 2.])).detach()
    tensor([2., 4.])
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: "dict[str, Module | None]"
    _transient: set[str]  # buffers that are not saved
    _forward_hooks: dict[int, Callable[..., Any]]
    _forward_pre_hooks: dict[int, Callable[..., Any]]

    def __init__(self) -> None:
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _modules={},
            _transient=set(),
            _forward_hooks={},
            _forward_pre_hooks={},
        )

    # Calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every module defines its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._forward_hooks or self._forward_pre_hooks):
            return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
        for hook in list(self._forward_pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(module, args)`` before ``forward``; what it returns replaces the inputs."""
        return Handle(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(module, args, output)`` after ``forward``; its result replaces the output."""
        return Handle(self._forward_hooks, hook)

    # Attributes

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for members in ("_parameters", "_buffers", "_modules"):
            if name in own.get(members, ()):
                return own[members][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (Parameter, Module)):
            if "_modules" not in self.__dict__:
                what = "module" if isinstance(value, Module) else "parameters"
                raise AttributeError(f"cannot assign {what} before Module.__init__() call")
            if isinstance(value, Module):
                self._forget(name, but=self._modules)
                self._modules[name] = value
            else:
                self._forget(name, but=self._parameters)
                self.register_parameter(name, value)
            return
        for members, wanted in _FILED:
            table = self.__dict__.get(members)
            if table is not None and name in table:
                if value is not None and not (members == "_buffers" and isinstance(value, Tensor)):
                    raise TypeError(f"cannot assign '{typename(value)}' as {wanted.format(name)}")
                table[name] = value
                return
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def _forget(self, name: str, but: Any = None) -> bool:
        tables = (self.__dict__, self._parameters, self._buffers, self._modules)
        held = [table for table in tables if name in table and table is not but]
        for table in held:
            del table[name]
        self._transient.discard(name)
        return bool(held)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """File a parameter under ``name``; None keeps the place."""
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                message(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)",
                    repair="tk.nn.Parameter(x)",
                )
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """File a tensor that is no parameter; unless ``persistent``, state dicts leave it out."""
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._transient.discard if persistent else self._transient.add)(name)

    def register_module(self, name: str, module: "Module | None") -> None:
        """File a child under ``name``, another way to write ``self.name = module``."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module

    add_module = register_module

    def _check_name(self, kind: str, name: Any, table: Any) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    # Walking the tree

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> "Iterator[tuple[str, Module]]":
        """This module and all below it, each once, with names such as ``"0.weight"``'s ``"0"``."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _joined(prefix, name), remove_duplicate)

    def modules(self) -> "Iterator[Module]":
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> "Iterator[tuple[str, Module]]":
        """The modules directly below this one, each once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> "Iterator[Module]":
        """The modules directly below this one."""
        return (module for _, module in self.named_children())

    def _named(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        inside = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in inside:
            for name, member in getattr(module, table).items():
                if member is not None and id(member) not in seen:
                    if remove_duplicate:
                        seen.add(id(member))
                    yield _joined(path, name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their names, shared ones once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, as optimizers take them.

        >>> [tuple(p.shape) for p in tk.nn.Linear(3, 2).parameters()]
        [(2, 3), (2,)]
        """
        return (member for _, member in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their names."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (member for _, member in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> "Module":
        """The module at a path such as ``"0.attention"``."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def apply(self, fn: "Callable[[Module], Any]") -> Self:
        """Call ``fn`` with every module, children first: the usual way to initialise."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Behave as in training: dropout drops."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Behave as in use: dropout does nothing."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Whether the parameters are trained."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        clear_gradients(self.parameters(), set_to_none)

    # Dtype and device

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replace the memory of every parameter, gradient and buffer by what ``fn`` makes of it.

        All of them, or none if ``fn`` raises.
        """
        with no_grad():
            params = [
                (param, fn(param.data), None if param.grad is None else fn(param.grad))
                for param in self.parameters()
            ]
            buffers = [
                (module._buffers, name, fn(buffer))
                for module in self.modules()
                for name, buffer in module._buffers.items()
                if buffer is not None
            ]
            for param, values, gradient in params:
                param.grad, param.data = None, values
                param.grad = gradient
            for where, name, buffer in buffers:
                where[name] = buffer
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device, a floating-point dtype, or both, as ``Tensor.to`` takes them.

        Tensors of integers keep their dtype. Changes the module itself and returns it.

        >>> tk.nn.Linear(2, 2).to(tk.float64).weight.dtype
        torch.float64
        """
        dtype, device = conversion(args, kwargs.get("dtype"), kwargs.get("device"))
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        return self._apply(
            lambda t: t.to(device=device, dtype=dtype if t.is_floating_point() else None)
        )

    def float(self) -> Self:
        """All floating-point parameters and buffers as float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """All floating-point parameters and buffers as float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """All floating-point parameters and buffers as float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """All parameters and buffers on the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """All parameters and buffers on the CUDA device."""
        place = cuda_device(device)
        return self._apply(lambda t: t.to(place))

    # Saving

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and buffers by name, on the same memory, without history.

        >>> list(tk.nn.Linear(3, 2).state_dict())
        ['weight', 'bias']
        """
        state = OrderedDict() if destination is None else destination
        for name, member in self._state().items():
            state[prefix + name] = member if keep_vars else member.detach()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return state

    def _state(self) -> dict[str, Tensor]:
        """What this module itself saves."""
        saved = {k: v for k, v in self._buffers.items() if k not in self._transient}
        return {k: v for k, v in {**self._parameters, **saved}.items() if v is not None}

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy the values of ``state_dict`` into the parameters and buffers.

        Raises RuntimeError if a shape differs or, unless ``strict`` is False, if a key is missing
        or unexpected. Where a shape differs nothing is copied to that parameter.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        if assign:
            raise NotSupportedError(
                "tensorkit has no assign=True", repair="model.load_state_dict(state)"
            )
        missing: list[str] = []
        unexpected: list[str] = []
        problems: list[str] = []
        self._load("", dict(state_dict), missing, unexpected, problems)
        if strict:
            for kind, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    quoted = ", ".join(f'"{key}"' for key in keys)
                    problems.insert(0, f"{kind} key(s) in state_dict: {quoted}. ")
        if problems:
            raise StateDictError(
                "\n\t".join(
                    [f"Error(s) in loading state_dict for {type(self).__name__}:", *problems]
                ),
                missing=missing,
                unexpected=unexpected,
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load(
        self, prefix: str, state: dict[str, Any], missing: Any, unexpected: Any, problems: Any
    ) -> None:
        own = self._state()
        for name, member in own.items():
            key = prefix + name
            if key not in state:
                missing.append(key)
                continue
            value = state[key]
            if not isinstance(value, TensorBase):
                problems.append(
                    f'While copying the parameter named "{key}", expected torch.Tensor or '
                    f"Tensor-like object from checkpoint but received {type(value)}"
                )
            elif value.shape != member.shape:
                problems.append(
                    f"size mismatch for {key}: copying a param with shape {value.shape!r} "
                    f"from checkpoint, the shape in current model is {member.shape!r}."
                )
            else:
                try:
                    with no_grad():
                        member.copy_(value)  # type: ignore[arg-type]
                except RuntimeError as error:  # as when memory runs out; the others are copied
                    problems.append(
                        f'While copying the parameter named "{key}", whose dimensions in the model '
                        f"are {member.shape!r} and whose dimensions in the checkpoint are "
                        f"{value.shape!r}, an exception occurred : {error.args}."
                    )
        for key in state:
            first, dot, _ = key[len(prefix) :].partition(".")
            if first not in (self._modules if dot else own):
                unexpected.append(key)
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}{name}."
                below = {key: value for key, value in state.items() if key.startswith(inner)}
                module._load(inner, below, missing, unexpected, problems)

    # Printing

    def extra_repr(self) -> str:
        """What stands between the brackets when the module prints."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({extra})"
        for name, module in self._modules.items():
            lines += f"({name}): {module!r}".split("\n")
        body = "".join(f"\n  {line}" if line.strip() else "\n" for line in lines)
        return f"{self._get_name()}({body}\n)" if lines else f"{self._get_name()}()"

    def _get_name(self) -> str:
        return type(self).__name__


class Member:
    """A parameter that layers of a class have: so CPython finds it in a fifth of the time.

    It calls a descriptor at once, but ``__getattr__`` only after it has made an AttributeError.
    Whatever else a layer has under this name is found as in any module.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: type) -> Any:
        try:
            return module._parameters[self.name]
        except (AttributeError, KeyError):  # of the class; of a layer without it
            raise AttributeError(self.name) from None


# What a name may hold once it is a parameter, child or buffer, beside None.
_FILED = (
    ("_parameters", "parameter '{}' (torch.nn.Parameter or None expected)"),
    ("_modules", "child module '{}' (torch.nn.Module or None expected)"),
    ("_buffers", "buffer '{}' (torch.nn.Buffer, torch.Tensor or None expected)"),
)


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def clear_gradients(params: Any, set_to_none: bool) -> None:
    """Forget the gradients of ``params``, or fill them with zeros."""
    for param in params:
        if set_to_none:
            param._grad = None
        elif param.grad is not None:
            if param.grad.grad_fn is not None:
                param.grad.detach_()
            param.grad.requires_grad_(False).zero_()
