"""Module: what all layers and models are made of; and Parameter, what they train.

Parameters, buffers (saved with the parameters, not trained) and child modules are attributes as all
others. State dicts, printing and moving between dtypes walk the tree of children.
"""

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, Self

from tensorkit._tensor import Tensor
from tensorkit.autograd.grad_mode import no_grad
from tensorkit.creation import empty
from tensorkit.errors import message, refuse_options


class Parameter(Tensor):
    """A leaf on the memory of ``data`` that a ``Module`` finds when it is assigned to it.

    Raises RuntimeError if it is to require grad and ``data`` holds no floating-point numbers.

    >>> tk.nn.Parameter(tk.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        """A parameter that shares the memory of ``data``; without data it is empty."""
        made = (empty(0) if data is None else data).detach()
        made.__class__ = cls
        return made.requires_grad_(requires_grad)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        """All is done in ``__new__``."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Parameter":
        if id(self) not in memo:
            memo[id(self)] = Parameter(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameter, (self.detach(), self.requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` found: keys that it lacked, and keys that nothing asked for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"

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
    _is_saved: dict[str, bool]  # of each buffer, whether state dicts have it

    def __init__(self) -> None:
        self.__dict__.update(training=True, _is_saved={})

    # Calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every module defines its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    # Attributes

    @property
    def _parameters(self) -> dict[str, Parameter]:
        return {name: x for name, x in vars(self).items() if isinstance(x, Parameter)}

    @property
    def _modules(self) -> "dict[str, Module]":
        return {name: x for name, x in vars(self).items() if isinstance(x, Module)}

    @property
    def _buffers(self) -> dict[str, Tensor]:
        own = vars(self)
        return {name: own[name] for name in self._is_saved if own[name] is not None}

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        held = own.get(name)
        if isinstance(value, (Parameter, Module)):
            if "training" not in own:
                what = "module" if isinstance(value, Module) else "parameters"
                raise AttributeError(f"cannot assign {what} before Module.__init__() call")
            self._is_saved.pop(name, None)
        elif value is None:
            pass
        elif isinstance(held, Parameter):
            _refuse_value(value, f"parameter '{name}' (torch.nn.Parameter or None expected)")
        elif isinstance(held, Module):
            _refuse_value(value, f"child module '{name}' (torch.nn.Module or None expected)")
        elif name in own.get("_is_saved", ()) and not isinstance(value, Tensor):
            wanted = "torch.nn.Buffer, torch.Tensor or None"
            _refuse_value(value, f"buffer '{name}' ({wanted} expected)")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._is_saved.pop(name, None)

    def _register(self, name: str, value: Any, kind: type) -> None:
        if value is not None and not isinstance(value, kind):
            got = getattr(value, "__qualname__", type(value).__name__)
            raise TypeError(f"{got} is not a {kind.__name__} subclass")
        if not name or "." in name or not isinstance(getattr(self, name, None), (kind, type(None))):
            raise KeyError(f"'{name}' cannot be a name: it is empty, has a dot, or is taken")
        setattr(self, name, value)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set a parameter under ``name``; None says that there is none."""
        self._register(name, param, Parameter)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Set a child under ``name``, another way to write ``self.name = module``."""
        self._register(name, module, Module)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set a tensor that is no parameter; unless ``persistent``, state dicts leave it out."""
        self._register(name, tensor, Tensor)
        self._is_saved[name] = persistent

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
            yield from module.named_modules(memo, _joined(prefix, name), remove_duplicate)

    def modules(self) -> "Iterator[Module]":
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def children(self) -> "Iterator[Module]":
        """The modules directly below this one, each once."""
        return iter(dict.fromkeys(self._modules.values()))

    def _named(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        below = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in below if recurse else [(prefix, self)]:
            for name, member in getattr(module, kind).items():
                if member not in seen:
                    yield _joined(path, name), member
                if remove_duplicate:
                    seen.add(member)

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
                (module, name, fn(buffer))
                for module in self.modules()
                for name, buffer in module._buffers.items()
            ]
            for param, values, gradient in params:
                param.grad, param.data = None, values
                param.grad = gradient
            for module, name, buffer in buffers:
                setattr(module, name, buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device, a floating-point dtype, or both, as ``Tensor.to`` takes them.

        Tensors of integers keep their dtype. Changes the module itself and returns it.

        >>> tk.nn.Linear(2, 2).to(tk.float64).weight.dtype
        torch.float64
        """

        def moved(x: Tensor) -> Tensor:
            found = x.to(*args, **kwargs)
            if not x.is_floating_point():
                return x.to(found.device)
            if not found.is_floating_point():
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                    f"dtype={found.dtype}"
                )
            return found

        return self._apply(moved)

    def float(self) -> Self:
        """All floating-point parameters and buffers as float32."""
        return self._apply(lambda x: x.float() if x.is_floating_point() else x)

    def double(self) -> Self:
        """All floating-point parameters and buffers as float64."""
        return self._apply(lambda x: x.double() if x.is_floating_point() else x)

    def half(self) -> Self:
        """All floating-point parameters and buffers as float16."""
        return self._apply(lambda x: x.half() if x.is_floating_point() else x)

    def cpu(self) -> Self:
        """All parameters and buffers on the CPU."""
        return self._apply(lambda x: x.cpu())

    def cuda(self, device: Any = None) -> Self:
        """All parameters and buffers on the CUDA device."""
        return self._apply(lambda x: x.cuda(device))

    # Saving

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and buffers by name, on the same memory, without history.

        >>> list(tk.nn.Linear(3, 2).state_dict())
        ['weight', 'bias']
        """
        state: dict[str, Any] = OrderedDict()
        for path, module in self.named_modules(remove_duplicate=False):
            saved = {k: x for k, x in module._buffers.items() if module._is_saved[k]}
            for name, member in {**module._parameters, **saved}.items():
                key = prefix + _joined(path, name)
                state[key] = member if keep_vars else member.detach()
        return state

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy the values of ``state_dict`` into the parameters and buffers.

        Raises RuntimeError if a shape differs or, unless ``strict`` is False, if a key is missing
        or unexpected. Where a shape differs nothing is copied to that parameter.
        """
        refuse_options("load_state_dict", "state_dict, strict", {"assign": assign})
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        own, problems = self.state_dict(), []
        missing = [key for key in own if key not in state_dict]
        unexpected = [key for key in state_dict if key not in own]
        if strict:
            for kind, keys in (("Missing", missing), ("Unexpected", unexpected)):
                if keys:
                    quoted = ", ".join(f'"{key}"' for key in keys)
                    problems.append(f"{kind} key(s) in state_dict: {quoted}. ")
        for key in [key for key in own if key in state_dict]:
            value, member = state_dict[key], own[key]
            if not isinstance(value, Tensor):
                problems.append(f"{key} should be a tensor, not {type(value).__name__}.")
            elif value.shape == member.shape:
                with no_grad():
                    member.copy_(value)
            else:
                problems.append(
                    f"size mismatch for {key}: copying a param with shape {value.shape!r} "
                    f"from checkpoint, the shape in current model is {member.shape!r}."
                )
        if problems:
            first = f"Error(s) in loading state_dict for {type(self).__name__}:"
            raise RuntimeError("\n\t".join([first, *problems]))
        return _IncompatibleKeys(missing, unexpected)

    # Printing

    def extra_repr(self) -> str:
        """What stands between the brackets when the module prints."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        if not self._modules and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        lines = extra.split("\n") if extra else []
        lines += [f"({name}): {module!r}" for name, module in self._modules.items()]
        return _bracketed(self._get_name(), lines)

    def _get_name(self) -> str:
        return type(self).__name__


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _bracketed(name: str, parts: list[str]) -> str:
    """The text of a module: its parts in lines of their own, two places in."""
    lines = "\n".join(parts).split("\n")
    body = "".join(f"\n  {line}" if line.strip() else "\n" for line in lines)
    return f"{name}({body}\n)"


def _refuse_value(value: Any, wanted: str) -> NoReturn:
    kind = value.type() if isinstance(value, Tensor) else type(value).__name__
    repair = "tk.nn.Parameter(x)" if wanted.startswith("parameter") else None
    raise TypeError(message(f"cannot assign '{kind}' as {wanted}", repair=repair))


def clear_gradients(params: Any, set_to_none: bool) -> None:
    """Forget the gradients of ``params``, or fill them with zeros."""
    for param in params:
        if set_to_none:
            param._grad = None
        elif param.grad is not None:
            param.grad = param.grad.detach().zero_()
