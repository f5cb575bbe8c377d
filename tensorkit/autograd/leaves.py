"""Leaves and what hangs on tensors: requires_grad, grad, hooks, detach_, data."""

import warnings
import weakref
from collections.abc import Callable
from typing import Any

from tensorkit import base
from tensorkit.autograd.graph import Node, attached_to
from tensorkit.autograd.history import become_leaf, edge_of, is_view
from tensorkit.autograd.hooks import Handle
from tensorkit.autograd.marks import INFERENCE, LEAF
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError, message, must_be, sizes, type_name
from tensorkit.storage import Storage


def set_requires_grad(x: Tensor, value: Any, by_assignment: bool = False) -> None:
    """Make ``x`` a leaf that requires grad, or one that does not.

    What is no leaf may only be asked for what it is anyway, and not ``by_assignment``.
    """
    if not isinstance(value, bool):
        if by_assignment:
            raise AutogradError("requires_grad must be a bool")
        raise must_be("requires_grad_", "requires_grad", 1, "bool", value)
    edge = edge_of(x)
    if isinstance(edge, Node):
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
    if x._node is INFERENCE and not (value and state.inference):
        if value:
            raise AutogradError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed.",
                repair="x.clone().requires_grad_()",
            )
        return
    if value:
        kinds = "floating point and complex dtype" if by_assignment else "floating point dtype"
        _need_floating(x, f"only Tensors of {kinds} can require gradients")
    x._node = None
    if value:
        become_leaf(x)


def make_leaf(x: Tensor) -> Tensor:
    """``x``, just created, as a leaf that requires grad."""
    _need_floating(x, "Only Tensors of floating point and complex dtype can require gradients")
    become_leaf(x)
    return x


def _need_floating(x: TensorBase, sentence: str) -> None:
    if not x.dtype.is_floating_point:
        raise AutogradError(
            sentence,
            f"This one has dtype {x.dtype}: a small change of an integer is no integer.",
            repair="x.float().requires_grad_()",
            dtype=x.dtype,
        )


# The gradient


def get_grad(x: Tensor) -> Tensor | None:
    """The gradient that backward added up here; None before the first.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    found = getattr(x, "_grad", None)
    if found is None and x._node is not None:
        warn_of_no_leaf(x)
    return found


def forget_grad(x: Tensor) -> None:
    """No gradient, as before the first backward."""
    x._grad = None


def set_grad(x: Tensor, value: Any) -> None:
    """Replace the gradient; it must fit the tensor."""
    if value is None:
        forget_grad(x)
        return
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type {type_name(value)}"
        )
    if value is x:
        raise AutogradError("can't assign Variable as its own grad")
    own, other = x, value
    if own.device is not other.device:
        raise AutogradError(
            "assigned grad has data located on a different device",
            f"The tensor is on {own.device}, the gradient on {other.device}.",
            repair=f"x.grad = g.to('{own.device}')",
        )
    if own.dtype is not other.dtype:
        raise AutogradError(
            f"attempting to assign a gradient with dtype '{other.dtype.whole_name}' to a tensor "
            f"with grad_dtype '{own.dtype.word}'. The gradient must match the tensor's "
            "grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
            "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with "
            "caution. Diverging the dtypes of a tensor and its gradient may break downstream "
            "systems that assume they match.",
            repair=f"x.grad = g.to(tk.{own.dtype.name})",
        )
    if own.shape != other.shape:
        raise AutogradError(
            f"attempting to assign a gradient of size '{sizes(other.shape)}' to a tensor of "
            f"size '{sizes(own.shape)}'. Please ensure that the gradient and the tensor are "
            "the same size"
        )
    x._grad = value  # type: ignore[assignment]


class _RetainGrad:
    """The hook that keeps the gradient of a tensor that is no leaf. It does not keep the tensor."""

    __slots__ = ("tensor",)

    def __init__(self, x: TensorBase) -> None:
        self.tensor = weakref.ref(x)

    def __call__(self, gradient: Tensor) -> None:
        x = self.tensor()
        if x is None:
            return
        have = getattr(x, "_grad", None)
        x._grad = gradient if have is None else have + gradient

    def kept_before(self) -> "_RetainGrad":
        """Says of a younger node of the tensor that the gradient is kept already."""
        return _KeptBefore(self.tensor)


class _KeptBefore(_RetainGrad):
    __slots__ = ()

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __call__(self, gradient: Tensor) -> None:
        pass


def retain_grad(x: Tensor) -> None:
    """Keep the gradient of ``x`` although it is no leaf."""
    node = edge_of(x)
    if node is None:
        raise AutogradError(
            "can't retain_grad on Tensor that has requires_grad=False",
            repair="x.requires_grad_()    # before",
        )
    if isinstance(node, Node) and not retains_grad(x):
        node.attached().retained = _RetainGrad(x)


def retains_grad(x: Tensor) -> bool:
    """Whether ``retain_grad`` was called on ``x``, which is no leaf."""
    node = edge_of(x)
    retained = isinstance(node, Node) and node.hooks is not None and node.hooks.retained
    return isinstance(retained, _RetainGrad) and retained.tensor() is x


def warn_of_no_leaf(x: Tensor) -> None:
    """Warn whoever asks for a gradient that ``x`` will never have."""
    if x.is_leaf or retains_grad(x):
        return
    warnings.warn(
        message(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
            ".grad attribute won't be populated during autograd.backward(). If you indeed want "
            "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
            "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
            "the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more "
            "information.",
            repair="y.retain_grad()    # before backward",
        ),
        UserWarning,
        stacklevel=3,
    )


# Hooks


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
    attached = edge.attached() if isinstance(edge, Node) else attached_to(edge)
    return Handle(attached.of_tensor, hook)


def register_post_accumulate_grad_hook(x: Tensor, hook: Callable[[Any], None]) -> Handle:
    """Call ``hook`` with the leaf ``x`` whenever backward has added to ``x.grad``.

    >>> x = tk.tensor(3., requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
    >>> (x * 2).backward()
    tensor(2.)
    """
    edge = edge_of(x)
    if edge is None:
        raise AutogradError("cannot register a hook on a tensor that doesn't require gradient")
    if isinstance(edge, Node):
        raise AutogradError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return Handle(attached_to(x).accumulated, hook)


# Leaving the graph


def detach_(x: Tensor) -> Tensor:
    """Forget how ``x`` came about: it becomes a leaf that does not require grad."""
    if is_view(x):
        raise AutogradError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
            "function in torch/optim/optimizer.py as the solution.",
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
