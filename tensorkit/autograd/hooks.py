"""Hooks: functions of the user that backward calls, and what else hangs on a node or a leaf.

Nodes and leaves carry an ``Attached`` once there is something to carry. In the order in which
backward calls them: hooks of the tensor, the hook of ``retain_grad``, hooks before the node, hooks
after the node, and for a leaf those that see ``.grad`` when it is complete.
"""

import itertools
from collections.abc import Callable
from typing import Any, Self

from tensorkit.base import TensorBase
from tensorkit.errors import AutogradError, ShapeError

_numbers = itertools.count()
Hooks = dict[int, Callable[..., Any]]


class Attached:
    """What was attached to a node or a leaf after it was made."""

    __slots__ = ("accumulated", "after", "before", "line", "metadata", "of_tensor", "retained")

    def __init__(self) -> None:
        self.of_tensor: Hooks = {}
        self.retained: Any = None  # that of retain_grad: see leaves
        self.before: Hooks = {}
        self.after: Hooks = {}
        self.accumulated: Hooks = {}
        self.metadata: dict[Any, Any] = {}
        self.line: tuple[str, int] | None = None  # of the user's code, if a recording was on


class Handle:
    """What registering a hook returns: ``remove()``, or leaving ``with``, takes it away again."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: Hooks, hook: Callable[..., Any]) -> None:
        self._hooks, self._number = hooks, next(_numbers)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def through_tensor_hooks(attached: Attached, gradient: Any) -> Any:
    """The gradient, a tensor, as the hooks of its tensor leave it."""
    for hook in list(attached.of_tensor.values()):
        answer = hook(gradient)
        if answer is not None:
            gradient = _checked(hook, answer, gradient)
    if attached.retained is not None:
        attached.retained(gradient)
    return gradient


def before_node(attached: Attached, gradient: Any) -> Any:
    """The gradient as the hooks before the node leave it."""
    gradients: tuple[Any, ...] = (gradient,)
    for hook in list(attached.before.values()):
        gradients = _replaced(hook, hook(gradients), gradients)
    return gradients[0]


def after_node(attached: Attached, results: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
    """What the node computed from ``gradient``, as the hooks after the node leave it."""
    for hook in list(attached.after.values()):
        results = _replaced(hook, hook(results, (gradient,)), results)
    return results


def _replaced(hook: Any, answer: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if answer is None:
        return values
    if not isinstance(answer, tuple):
        _refuse_kind("tuple", answer)
    if len(answer) != len(values):
        raise AutogradError(
            f"hook '{_name(hook)}' has returned an incorrect number of values "
            f"(got {len(answer)}, but expected {len(values)})"
        )
    return tuple(_checked(hook, new, old) for new, old in zip(answer, values, strict=True))


def _checked(hook: Any, answer: Any, value: Any) -> Any:
    """The answer of a hook, which must fit the gradient that it replaces."""
    if answer is None:
        return None
    if value is None:
        raise AutogradError("can't replace a None gradient with a non-None value")
    if not isinstance(answer, TensorBase):
        _refuse_kind("Variable", answer)
    if (answer.dtype, answer.device) != (value.dtype, value.device):
        was, got = (each.type() for each in (value, answer))
        raise AutogradError(
            f"hook '{_name(hook)}' has changed the type of value (was {was} got {got})"
        )
    if answer.shape != value.shape:
        raise ShapeError(
            f"hook '{_name(hook)}' has changed the size of value",
            a_shape=tuple(answer.shape),
            b_shape=tuple(value.shape),
        )
    return answer


def after_accumulation(attached: Attached, leaf: Any) -> None:
    """Tell the hooks of a leaf that its gradient is complete."""
    for hook in list(attached.accumulated.values()):
        answer = hook(leaf)
        if answer is not None:
            _refuse_kind("Variable", answer)


def _refuse_kind(wanted: str, answer: Any) -> None:
    raise TypeError(f"expected {wanted}, but hook returned '{type(answer).__name__}'")


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)
