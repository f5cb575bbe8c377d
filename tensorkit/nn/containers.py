"""Modules that hold other modules: Sequential, ModuleList, ModuleDict."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Self

from tensorkit.nn.module import Module, _bracketed


class _Numbered(Module):
    """Children with the names "0", "1", ... in the order of a list."""

    def _name(self, index: int) -> str:
        names = list(self._modules)
        if not -len(names) <= index < len(names):
            raise IndexError(f"index {index} is out of range")
        return names[index]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end."""
        for module in modules:
            self.append(module)
        return self


class Sequential(_Numbered):
    """Modules applied one after the other; an OrderedDict gives them names.

    >>> tk.nn.Sequential(tk.nn.Linear(2, 3), tk.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        pairs = args[0].items() if named else ((str(at), each) for at, each in enumerate(args))
        for name, module in pairs:
            self.add_module(name, module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return getattr(self, self._name(index))

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules, whose parameters are found.

    >>> layers = tk.nn.ModuleList([tk.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(index))

    def __repr__(self) -> str:
        """Equal neighbours as one line, counted: ``(0-2): 3 x ReLU()``."""
        parts, first = [], 0
        for text, group in groupby(self, repr):
            count = len(list(group))
            last = first + count - 1
            parts.append(
                f"({first}): {text}" if count == 1 else f"({first}-{last}): {count} x {text}"
            )
            first = last + 1
        return _bracketed(self._get_name(), parts) if parts else f"{self._get_name()}()"


class ModuleDict(Module):
    """A dictionary of modules, whose parameters are found.

    >>> heads = tk.nn.ModuleDict({"digit": tk.nn.Linear(2, 10)})
    >>> heads["digit"]
    Linear(in_features=2, out_features=10, bias=True)
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add all modules of a dictionary."""
        for name, module in modules.items():
            self[name] = module

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules."""
        return self._modules.items()
