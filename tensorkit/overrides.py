"""A function of yours in place of one of the library's, while a block runs.

>>> from tensorkit import overrides
>>> with overrides.override("broadcast_shapes", lambda a, b: (2, 3)):
...     tk.ones(3) + 1
tensor([[2., 2., 2.],
        [2., 2., 2.]])

Inside such a block the direct path of ``tensorkit.dispatch`` is closed. Outside of all blocks it
does not ask whether a function was replaced. These functions can be:

    strides_of(array)               strides in elements
    is_contiguous(shape, strides)   whether elements lie one after the other in row-major order
    broadcast_shapes(a, b)          the shape that both are stretched to
    sum_to_shape(x, *, to)          sums a gradient (tensor or array) back to the shape ``to``,
                                    from before broadcasting
    backward_order(roots, waiting)  the nodes in the order in which backward runs them
    first_gradient(root, given, position)  the gradient with which backward begins at a root
    step(optimizer)                 a step of an optimizer
    find_kernel(kernels, operation, device)  the kernel that computes a call

``override_gradient`` does the same for the formulas of an operation.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

from tensorkit import direct_path

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
_FUNCTIONS: dict[str, Any] = {}


def overridable(function: AnyFunction) -> AnyFunction:
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


def override(name: str, function: Callable[..., Any]) -> "replaced":
    """While the block runs the library calls ``function`` in place of its own of this name."""
    return replaced(_FUNCTIONS[name], current=function)


def override_gradient(operation: Any, **formulas: Callable[..., Any]) -> "replaced":
    """While the block runs ``operation`` is recorded with these formulas; see ``Definition.grad``.

    >>> from tensorkit import overrides
    >>> x = tk.tensor(3., requires_grad=True)
    >>> with overrides.override_gradient(tk.relu, input=lambda g: g * 100):
    ...     tk.relu(x).backward()
    >>> x.grad
    tensor(100.)
    """
    from copy import copy  # is imported by nothing else that `import tensorkit` needs

    changed = copy(operation.definition)
    changed.rules = {}
    changed.grad(node=operation.definition.rules[None].node, **formulas)
    return replaced(operation.definition, rules=changed.rules, rule_without_options=None)


class replaced:
    """Context in which ``owner`` has these attributes, and the direct path is closed."""

    def __init__(self, owner: Any, *, closes_path: bool = True, **values: Any) -> None:
        self._owner, self._values, self._closes_path = owner, values, closes_path

    def __enter__(self) -> None:
        self._before = {name: getattr(self._owner, name) for name in self._values}
        own = vars(self._owner)
        own.setdefault("_blocks", []).append(self)
        own.update(self._values)
        if self._closes_path:
            direct_path.close()

    def __exit__(self, *error: object) -> None:
        own, blocks = vars(self._owner), vars(self._owner)["_blocks"]
        at = blocks.index(self)
        del blocks[at]
        for name, value in self._before.items():
            # A block that was entered later may have replaced the same name: its value stays, and
            # it will restore the value from before this block.
            later = [each._before for each in blocks[at:] if name in each._before]
            (later[0] if later else own)[name] = value
        if self._closes_path:
            direct_path.reopen()
