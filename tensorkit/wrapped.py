"""Arrays that hold another library's array: operators, and what follows from indexing.

The simulated device's hold NumPy's (``tensorkit.simulated``), those of a second GPU CuPy's
(``tensorkit.other_gpu``).
"""

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class Wrapped:
    """``_do`` says where and how the array inside is computed with."""

    __slots__ = ()

    __array_ufunc__ = None  # NumPy's numbers leave operators to these
    __hash__ = object.__hash__

    def _do(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """``function`` of the array inside and of what is inside of the others."""
        raise NotImplementedError

    @property
    def T(self) -> Any:
        """The view with all dimensions in reverse order."""
        return self.transpose()  # type: ignore[attr-defined]

    def __getitem__(self, index: Any) -> Any:
        return self._do("getitem", operator.getitem, index)

    def __len__(self) -> int:
        return int(self.shape[0])  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))


def _operator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: Wrapped, *others: Any) -> Any:
        if others and not isinstance(others[0], (Wrapped, int, float, np.generic, np.ndarray)):
            return NotImplemented
        return self._do(name, function, *others)

    return apply


def _in_place(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: Wrapped, other: Any) -> Wrapped:
        self._do(name, function, other)
        return self

    return apply


def _reflected(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return _operator(name, lambda x, y: function(y, x))


_BINARY = "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul"
_OTHER = "lt", "le", "eq", "ne", "gt", "ge", "neg", "abs", "invert"
for _name in _BINARY:
    _function = getattr(operator, f"__{_name}__")
    setattr(Wrapped, f"__{_name}__", _operator(_name, _function))
    setattr(Wrapped, f"__r{_name}__", _reflected(_name, _function))
    setattr(Wrapped, f"__i{_name}__", _in_place(_name, getattr(operator, f"__i{_name}__")))
for _name in _OTHER:
    setattr(Wrapped, f"__{_name}__", _operator(_name, getattr(operator, f"__{_name}__")))
