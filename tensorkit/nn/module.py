"""Module: what all layers and models are made of; Parameter, what they train; and containers.

Parameters and child modules are attributes as all others. State dicts, printing and moving between
dtypes walk the tree of children.
"""

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import signature
from itertools import groupby
from operator import index as as_index
from typing import Any, Self

from tensorkit import absent
from tensorkit._tensor import Tensor
from tensorkit.autograd.grad_mode import no_grad
from tensorkit.creation import empty
from tensorkit.errors import NotSupportedError, message


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
        return Parameter(self.detach().clone(), self.requires_grad)

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameter, (self.detach(), self.requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` found: keys that it lacked, and keys that nothing asked for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"


class Module:
    """A part of a model: parameters, other modules, and ``forward``.

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

    def __init__(self, **others: Any) -> None:
        """What is no option of a layer comes here, and is refused."""
        if others:
            settings = getattr(self, "settings", None) or [*signature(type(self)).parameters][:-1]
            absent.known_options(type(self).__name__, settings, others)
        vars(self)["training"] = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every module defines its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        held = vars(self).get(name)
        if isinstance(value, (Parameter, Module)):
            if "training" not in vars(self):
                what = "module" if isinstance(value, Module) else "parameters"
                raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        elif value is not None and isinstance(held, (Parameter, Module)):
            is_tensor = isinstance(value, Tensor)
            given = f"torch.{value.dtype.word}Tensor" if is_tensor else type(value).__name__
            own = "Parameter" if isinstance(held, Parameter) else "Module"
            what = "parameter" if isinstance(held, Parameter) else "child module"
            first = f"cannot assign '{given}' as {what} '{name}' (torch.nn.{own} or None expected)"
            raise TypeError(message(first, repair=f"tk.nn.{own}(...)"))
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(absent.sentence("torch.nn.Module", name, type(self).__name__))

    # Walking the tree

    def _own(self, kind: type) -> dict[str, Any]:
        """The attributes that are a Parameter, or a Module."""
        return {name: value for name, value in vars(self).items() if isinstance(value, kind)}

    def _walk(self, path: str = "") -> "Iterator[tuple[str, Module]]":
        """This module and all below it, with names such as ``"0.linear"``.

        A module that stands in several places comes several times.
        """
        yield path, self
        for name, child in self._own(Module).items():
            yield from child._walk(f"{path}.{name}" if path else name)

    def _all_parameters(self) -> "Iterator[tuple[str, Parameter]]":
        """The parameters of this module and all below it; shared ones come several times."""
        for path, module in self._walk():
            for name, param in module._own(Parameter).items():
                yield f"{path}.{name}" if path else name, param

    @absent.explains_options
    def named_modules(self) -> "Iterator[tuple[str, Module]]":
        """This module, whose name is ``""``, and all below it, each once."""
        return _once(self._walk())

    @absent.explains_options
    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their names, shared ones once."""
        return _once(self._all_parameters())

    def modules(self) -> "Iterator[Module]":
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    @absent.explains_options
    def parameters(self) -> Iterator[Parameter]:
        """All parameters, as optimizers take them.

        >>> [tuple(p.shape) for p in tk.nn.Linear(3, 2).parameters()]
        [(2, 3), (2,)]
        """
        return (param for _, param in self.named_parameters())

    def children(self) -> "Iterator[Module]":
        """The modules directly below this one, each once."""
        return iter(dict.fromkeys(self._own(Module).values()))

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
        """Replace the memory of every parameter and gradient by what ``fn`` makes of it.

        All of them, or none if ``fn`` raises.
        """
        with no_grad():
            found = [
                (param, fn(param.data), None if param.grad is None else fn(param.grad))
                for param in self.parameters()
            ]
            for param, values, gradient in found:
                param.grad, param.data = None, values
                param.grad = gradient
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

    def cpu(self) -> Self:
        """All parameters on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        """All parameters on the CUDA device."""
        return self._apply(lambda x: x.cuda(device))

    # Saving

    @absent.explains_options
    def state_dict(self) -> dict[str, Any]:
        """All parameters by name, on the same memory, without history.

        >>> list(tk.nn.Linear(3, 2).state_dict())
        ['weight', 'bias']
        """
        return OrderedDict((name, param.detach()) for name, param in self._all_parameters())

    @absent.explains_options
    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
        """Copy the values of ``state_dict`` into the parameters.

        Raises RuntimeError if a shape differs or, unless ``strict`` is False, if a key is missing
        or unexpected. Where a shape differs nothing is copied to that parameter.
        """
        own, problems = self.state_dict(), []
        missing = [key for key in own if key not in state_dict]
        unexpected = [key for key in state_dict if key not in own]
        for kind, keys in (("Missing", missing), ("Unexpected", unexpected)):
            if keys and strict:
                quoted = ", ".join(f'"{key}"' for key in keys)
                problems.append(f"{kind} key(s) in state_dict: {quoted}. ")
        for key in [key for key in own if key in state_dict]:
            value, member = state_dict[key], own[key]
            if not isinstance(value, Tensor):
                problems.append(f"{key} should be a tensor, not {type(value).__name__}.")
            elif value.shape == member.shape:
                member.copy_(value.detach())
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

    def _child_lines(self) -> list[str]:
        return [f"({name}): {module!r}" for name, module in self._own(Module).items()]

    def __repr__(self) -> str:
        extra, children = self.extra_repr(), self._child_lines()
        inside = extra
        if children or "\n" in extra:
            lines = "\n".join([extra, *children] if extra else children).split("\n")
            inside = "".join(f"\n  {line}" if line.strip() else "\n" for line in lines) + "\n"
        return f"{type(self).__name__}({inside})"


def _once(named: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Of what has several names, the first."""
    seen = set()
    for name, each in named:
        if each not in seen:
            seen.add(each)
            yield name, each


def clear_gradients(params: Any, set_to_none: bool) -> None:
    """Forget the gradients of ``params``, or fill them with zeros."""
    for param in params:
        if set_to_none:
            param._grad = None
        elif param.grad is not None:
            param.grad = param.grad.detach().zero_()


# Containers


class _Numbered(Module):
    """Children with the names "0", "1", ... in the order of a list."""

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def __len__(self) -> int:
        return len(self._own(Module))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._own(Module).values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            first = f"{type(self).__name__} takes no slices; they are not part of tensorkit"
            raise NotSupportedError(first, repair="tk.nn.Sequential(*list(modules)[:2])")
        return list(self)[as_index(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._own(Module))[index], module)

    def append(self, module: Any) -> Self:
        """Add a module at the end."""
        if not isinstance(module, Module):
            got = getattr(module, "__qualname__", type(module).__name__)
            raise TypeError(message(f"{got} is not a Module subclass", repair="tk.nn.ReLU()"))
        setattr(self, str(len(self)), module)
        return self


class Sequential(_Numbered):
    """Modules applied one after the other.

    >>> tk.nn.Sequential(tk.nn.Linear(2, 3), tk.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__(modules)

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules, whose parameters are found.

    >>> layers = tk.nn.ModuleList([tk.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def _child_lines(self) -> list[str]:
        """Equal neighbours as one line, counted: ``(0-2): 3 x ReLU()``."""
        lines, first = [], 0
        for text, group in groupby(map(repr, self)):
            last = first + len(list(group)) - 1
            count = f"({first}): " if last == first else f"({first}-{last}): {last - first + 1} x "
            lines.append(count + text)
            first = last + 1
        return lines
