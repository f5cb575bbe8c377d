"""A function of yours in place of one of the library's, while a block runs.

>>> from tensorkit import overrides
>>> with overrides.override("broadcast_shapes", lambda a, b: (2, 3)):
...     tk.ones(3) + 1
tensor([[2., 2., 2.],
        [2., 2., 2.]])

Outside of such a block nothing is asked: operations take the direct path (see
``tensorkit.dispatch``), which is closed inside. These functions can be replaced:

    strides_of(array)               strides in elements
    is_contiguous(shape, strides)   whether elements lie one after the other in row-major order
    broadcast_shapes(a, b)          the shape that both are stretched to
    sum_to_shape(x, *, to)          the way back from there, of a tensor or an array: a gradient
    backward_order(roots, waiting)  the nodes in the order in which backward runs them
    step(optimizer)                 a step of an optimizer
    find_kernel(kernels, operation, device)  the kernel that computes a call

``override_gradient`` does the same for the formulas of an operation.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from functools import update_wrapper
from typing import Any, TypeVar

from tensorkit import direct_path

_Function = TypeVar("_Function", bound=Callable[..., Any])
_FUNCTIONS: dict[str, Any] = {}


def overridable(function: _Function) -> _Function:
    """Let ``override`` put another function in this one's place."""

    def call(*args: Any, **options: Any) -> Any:
        return replaceable.current(*args, **options)

    replaceable: Any = update_wrapper(call, function)
    replaceable.current = function
    _FUNCTIONS[function.__name__] = replaceable
    return replaceable


def original(name: str) -> Callable[..., Any]:
    """The library's own function of this name.

    >>> from tensorkit import overrides
    >>> overrides.original("broadcast_shapes")((2, 1), (3,))
    (2, 3)
    """
    return _FUNCTIONS[name].__wrapped__


def override(name: str, function: Callable[..., Any]) -> AbstractContextManager[None]:
    """While the block runs the library calls ``function`` in place of its own of this name."""
    return _replaced(_FUNCTIONS[name], current=function)


def override_gradient(
    operation: Any, **formulas: Callable[..., Any]
) -> AbstractContextManager[None]:
    """While the block runs ``operation`` is recorded with these formulas; see ``Definition.grad``.

    >>> from tensorkit import overrides
    >>> x = tk.tensor(3., requires_grad=True)
    >>> with overrides.override_gradient(tk.relu, input=lambda g: g * 100):
    ...     tk.relu(x).backward()
    >>> x.grad
    tensor(100.)
    """
    changed = copy(operation.definition)
    changed.rules = {}
    changed.grad(node=operation.definition.rules[None].node, **formulas)
    return _replaced(operation.definition, rules=changed.rules, plain=None)


@contextmanager
def _replaced(owner: Any, **values: Any) -> Iterator[None]:
    own = {name: getattr(owner, name) for name in values}
    vars(owner).update(values)
    direct_path.close()
    try:
        yield
    finally:
        vars(owner).update(own)
        direct_path.reopen()
