"""Parameter: a tensor that a module trains."""

from typing import Any

from tensorkit import base
from tensorkit._tensor import Tensor
from tensorkit.autograd.hooks import make_leaf
from tensorkit.creation import empty


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
        source = empty(0) if data is None else data.detach()
        result = object.__new__(cls)
        result._array = source._array
        result._storage, result._offset = base.storage_of(source), source._offset
        result._node = None
        return make_leaf(result) if requires_grad else result

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
