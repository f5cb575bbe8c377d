"""What a tensor carries for autograd: requires_grad, ``.grad``, hooks, ``detach_`` and ``data``.

In the order in which backward calls hooks: those of the tensor, that of ``retain_grad``, and for a
leaf those that see ``.grad`` when it is complete.
"""

import itertools
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Self

from tensorkit import base
from tensorkit.autograd.grad_mode import state
from tensorkit.autograd.inplace import is_view
from tensorkit.autograd.node import INFERENCE, LEAF, Hooks, Node, become_leaf, edge_of
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError, ShapeError, message, sizes, type_name
from tensorkit.storage import Storage


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
        advice = (
            ""
            if value
            else " If you want to use a computed variable in a subgraph that doesn't require "
            "differentiation use var_no_grad = var.detach()."
        )
        raise AutogradError(
            f"you can only change requires_grad flags of leaf variables.{advice}",
            repair=None if value else "x = x.detach()",
        )
    if value and x._node is INFERENCE and not state.inference:
        raise AutogradError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
            repair="x.clone().requires_grad_()",
        )
    if value:
        kinds = "floating point and complex dtype" if by_assignment else "floating point dtype"
        make_leaf(x, f"only Tensors of {kinds} can require gradients")
    elif x._node is not INFERENCE:
        x._node = None


def make_leaf(
    x: Tensor,
    sentence: str = "Only Tensors of floating point and complex dtype can require gradients",
) -> Tensor:
    """``x`` as a leaf that requires grad; the ``sentence`` refuses what has no gradient."""
    if not x.dtype.is_floating_point:
        raise AutogradError(
            sentence,
            f"This one has dtype {x.dtype}: a small change of an integer is no integer.",
            repair="x.float().requires_grad_()",
            dtype=x.dtype,
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
                ".grad attribute won't be populated during autograd.backward(). If you indeed want "
                "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
                "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
                "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
                "more information.",
                repair="y.retain_grad()    # before backward",
            ),
            UserWarning,
            stacklevel=2,
        )
    return found


def forget_grad(x: Tensor) -> None:
    """No gradient, as before the first backward."""
    x._grad = None


def set_grad(x: Tensor, value: Any) -> None:
    """Replace the gradient; it must fit the tensor."""
    if value is not None:
        if not isinstance(value, TensorBase):
            kind = type_name(value)
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {kind}"
            )
        if value is x:
            raise AutogradError("can't assign Variable as its own grad")
        for what in ("device", "dtype"):
            own, other = getattr(x, what), getattr(value, what)
            if own != other:
                raise AutogradError(
                    f"assigned grad has {what} {other}, but the tensor has {own}",
                    repair="x.grad = g.to(x.device, x.dtype)",
                )
        if value.shape != x.shape:
            raise AutogradError(
                f"attempting to assign a gradient of size '{sizes(value.shape)}' to a tensor of "
                f"size '{sizes(x.shape)}'. Please ensure that the gradient and the tensor are "
                "the same size"
            )
    x._grad = value


class _RetainGrad:
    """The hook that keeps the gradient of a tensor that is no leaf. It does not keep the tensor."""

    __slots__ = ("tensor",)

    def __init__(self, x: TensorBase) -> None:
        self.tensor = weakref.ref(x)

    def __call__(self, gradient: Tensor) -> None:
        x = self.tensor()
        if x is not None:
            have = getattr(x, "_grad", None)
            x._grad = gradient if have is None else have + gradient


def retain_grad(x: Tensor) -> None:
    """Keep the gradient of ``x`` although it is no leaf."""
    node = edge_of(x)
    if node is None:
        raise AutogradError(
            "can't retain_grad on Tensor that has requires_grad=False",
            repair="x.requires_grad_()    # before",
        )
    if isinstance(node, Node) and not retains_grad(x):
        node.get_hooks().retained = _RetainGrad(x)


def retains_grad(x: Tensor) -> bool:
    """Whether ``retain_grad`` was called on ``x``, which is no leaf."""
    node = edge_of(x)
    retained = node.hooks.retained if isinstance(node, Node) and node.hooks else None
    return retained is not None and retained.tensor() is x


# Hooks


class Handle:
    """What registering a hook returns: ``remove()``, or leaving ``with``, takes it away again."""

    __slots__ = ("_hooks", "_number")

    _numbers = itertools.count()

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._number = hooks, next(Handle._numbers)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.pop(self._number, None)

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
    return Handle(_hooks_of(edge).tensor, hook)


def register_post_accumulate_grad_hook(x: Tensor, hook: Callable[[Any], None]) -> Handle:
    """Call ``hook`` with the leaf ``x`` whenever backward has added to ``x.grad``.

    >>> x = tk.tensor(3., requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
    >>> (x * 2).backward()
    tensor(2.)
    """
    if x._node is not LEAF:
        raise AutogradError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors",
            repair="x.register_hook(hook)",
        )
    return Handle(_hooks_of(x).accumulated, hook)


def _hooks_of(edge: Any) -> Hooks:
    if isinstance(edge, Node):
        return edge.get_hooks()
    if edge._hooks is None:
        edge._hooks = Hooks()
    return edge._hooks


def through_hooks(hooks: Hooks, gradient: Any) -> Any:
    """The gradient, a tensor, as the hooks of its tensor leave it."""
    for hook in list(hooks.tensor.values()):
        answer = hook(gradient)
        if answer is not None:
            gradient = _checked(hook, answer, gradient)
    if hooks.retained is not None:
        hooks.retained(gradient)
    return gradient


def _checked(hook: Any, answer: Any, value: Any) -> Any:
    """The answer of a hook, which must fit the gradient that it replaces."""
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(answer, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(answer).__name__}'")
    if (answer.dtype, answer.device) != (value.dtype, value.device):
        found: Any = answer
        raise AutogradError(
            f"hook '{name}' has changed the type of value (was {value.type()} got {found.type()})"
        )
    if answer.shape != value.shape:
        raise ShapeError(
            f"hook '{name}' has changed the size of value",
            f"It was {sizes(value.shape)} and is {sizes(answer.shape)}.",
        )
    return answer


# Leaving the graph


def detach_(x: Tensor) -> Tensor:
    """Forget how ``x`` came about: it becomes a leaf that does not require grad."""
    if is_view(x):
        raise AutogradError(
            "Can't detach views in-place. Use detach() instead.",
            repair="x = x.detach()",
        )
    if base.watch is not None:
        base.watch.writes(x)
    if x._node is not INFERENCE:
        x._node = None
    return x


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
    if x._node is LEAF and not value.dtype.is_floating_point:
        raise AutogradError(
            "data set to a tensor that requires gradients must be floating point or complex dtype",
            repair="x.data = value.float()",
        )
    version = 0 if x._storage is None else x._storage.version
    storage = base.storage_of(value)
    x._array = value._array
    x._storage = Storage(storage.flat)
    x._storage.version = version
    x._offset = value._offset
