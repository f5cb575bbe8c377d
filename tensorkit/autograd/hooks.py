"""What a tensor carries for autograd: requires_grad, ``.grad``, hooks and ``data``.

Backward calls the hooks of a tensor first, then that of ``retain_grad``.
"""

import warnings
import weakref
from collections.abc import Callable
from typing import Any, Self

from tensorkit import base
from tensorkit.autograd.node import INFERENCE, VIEW, Hooks, Node, become_leaf, edge_of, hooks_of
from tensorkit.autograd.versions import version_of
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError, message, type_name
from tensorkit.storage import Storage
from tensorkit.thread_state import state


def set_requires_grad(x: Tensor, value: Any, by_assignment: bool = False) -> None:
    """Make ``x`` a leaf that requires grad, or one that does not.

    What is no leaf may only be asked for what it is anyway, and not ``by_assignment``.
    """
    if not isinstance(value, bool):
        kind = AutogradError if by_assignment else TypeError
        raise kind("requires_grad must be a bool")
    if isinstance(edge_of(x), Node):
        if value and not by_assignment:
            return
        first = "you can only change requires_grad flags of leaf variables."
        if not value:
            first += (
                " If you want to use a computed variable in a subgraph that doesn't require "
                "differentiation use var_no_grad = var.detach()."
            )
        raise AutogradError(first, repair=None if value else "x = x.detach()")
    if value and x._node is INFERENCE and not state.inference:
        raise AutogradError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
            repair="x.clone().requires_grad_()",
        )
    is_view = getattr(x, "_view_base", None) is not None
    if value:
        make_leaf(x)
        if is_view:
            base.storage_of(x).has_leaf_view = True
    elif x.requires_grad:
        x._node = VIEW if is_view else None


def make_leaf(x: Tensor) -> Tensor:
    """``x`` as a leaf that requires grad; AutogradError for integers, which have no gradient."""
    if not x.dtype.is_floating_point:
        raise AutogradError(
            "Only Tensors of floating point and complex dtype can require gradients",
            f"This one has dtype {x.dtype}: a small change of an integer is no integer.",
            repair="x.float().requires_grad_()",
        )
    become_leaf(x)
    return x


# The gradient


def get_grad(x: Tensor) -> Tensor | None:
    """The gradient that backward added up here; None before the first.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    found = getattr(x, "_grad", None)
    if found is None and x._node is not None and not (x.is_leaf or retains_grad(x)):
        warnings.warn(
            message(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward().",
                repair="y.retain_grad()    # before backward",
            ),
            UserWarning,
            stacklevel=2,
        )
    return found


def set_grad(x: Tensor, value: Any) -> None:
    """Replace the gradient; it must fit the tensor."""
    if value is x:
        raise AutogradError("can't assign Variable as its own grad")
    if value is not None:
        _check_gradient("assigned grad", value, x)
    x._grad = value


def retain_grad(x: Tensor) -> None:
    """Keep the gradient of ``x`` although it is no leaf."""
    node = edge_of(x)
    if node is None:
        raise AutogradError(
            "can't retain_grad on Tensor that has requires_grad=False",
            repair="x.requires_grad_()    # before",
        )
    if isinstance(node, Node) and not retains_grad(x):
        hooks_of(node).retained = weakref.ref(x)


def retains_grad(x: Tensor) -> bool:
    """Whether ``retain_grad`` was called on ``x``, which is no leaf."""
    node = edge_of(x)
    retained = node.hooks.retained if isinstance(node, Node) and node.hooks else None
    return retained is not None and retained() is x


# Hooks


class Handle:
    """What registering a hook returns: ``remove()``, or leaving ``with``, takes it away again."""

    __slots__ = ("_hooks", "_key")

    def __init__(self, hooks: dict[object, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._key = hooks, object()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_hook(x: Tensor, hook: Callable[..., Any]) -> Handle:
    """Call ``hook`` with the gradient of ``x``; what it returns takes its place.

    The result has ``remove()``.

    >>> x = tk.tensor(3., requires_grad=True)
    >>> handle = x.register_hook(lambda g: g * 10)
    >>> (x * 2).backward()
    >>> x.grad
    tensor(20.)
    """
    edge = edge_of(x)
    if edge is None:
        raise AutogradError(
            "cannot register a hook on a tensor that doesn't require gradient",
            repair="x.requires_grad_()    # before",
        )
    return Handle(hooks_of(edge).tensor, hook)


def through_hooks(hooks: Hooks, gradient: Any) -> Any:
    """The gradient, a tensor, as the hooks of its tensor leave it."""
    for hook in list(hooks.tensor.values()):
        answer = hook(gradient)
        if answer is not None:
            name = getattr(hook, "__name__", type(hook).__name__)
            _check_gradient(f"the gradient from hook '{name}'", answer, gradient)
            gradient = answer
    x = None if hooks.retained is None else hooks.retained()
    if x is not None:
        before = getattr(x, "_grad", None)
        x._grad = gradient if before is None else before + gradient
    return gradient


def _check_gradient(name: str, gradient: Any, like: Tensor) -> None:
    """Raise unless ``gradient`` is a tensor with the device, dtype and shape of ``like``."""
    if not isinstance(gradient, TensorBase):
        raise TypeError(f"{name} must be a Tensor or None, not {type_name(gradient)}")
    for what in ("device", "dtype", "shape"):
        own, wanted = getattr(gradient, what), getattr(like, what)
        if own != wanted:
            raise AutogradError(
                f"{name} has {what} {own}, but the tensor has {wanted}",
                repair=None if what == "shape" else "g.to(x.device, x.dtype)",
            )


# Leaving the graph


def get_data(x: Tensor) -> Tensor:
    """The same memory without history and without version: writes to it are not noticed.

    Prefer ``detach()``, or ``tk.no_grad()`` to change a parameter.

    >>> tk.ones(2, requires_grad=True).data
    tensor([1., 1.])
    """
    storage = base.storage_of(x)
    return base.on_storage(Storage(storage.flat), base.layout_of(x))


def set_data(x: Tensor, value: Any) -> None:
    """Let ``x`` look at the memory of ``value``; history and version stay."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"Variable data has to be a tensor, but got {type_name(value)}")
    if x.requires_grad and not value.dtype.is_floating_point:
        raise AutogradError(
            "data set to a tensor that requires gradients must be floating point or complex dtype",
            repair="x.data = value.float()",
        )
    version, storage = version_of(x), Storage(base.storage_of(value).flat)
    x._array, x._storage, x._offset = value._array, storage, value._offset
    storage.version = version
