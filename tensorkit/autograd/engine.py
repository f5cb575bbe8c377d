"""Backward: walking the graph from the results to the leaves.

Of the nodes that a gradient has reached the youngest is run next, as in PyTorch: all gradients that
it will ever receive come from younger ones, so they have arrived. What is under way is kept in
dictionaries of the run, never on the nodes, so that an error, Ctrl-C, or a backward inside a hook
leaves nothing behind; and the walk is a loop, so that a graph may be a million nodes deep.

Gradients are arrays in a plain backward. They are tensors with ``create_graph``, which records the
backward, and while the direct path is closed: a ``DispatchMode`` or a kernel of the user's is to
see every operation. Gradients of leaves are collected until the end and only then added to
``.grad``.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from tensorkit import absent, base, direct_path, layout
from tensorkit.autograd.grad_mode import enable_grad, no_grad
from tensorkit.autograd.hooks import retain_grad, through_hooks
from tensorkit.autograd.node import Hooks, Node, edge_of
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import backend_of, device_of_array, is_array
from tensorkit.direct_path import NO_WARNINGS, warning_state, without_warnings
from tensorkit.dtypes import of_numpy
from tensorkit.errors import AutogradError, DeviceMismatchError, ShapeError
from tensorkit.ops import copying, reductions
from tensorkit.overrides import overridable
from tensorkit.thread_state import is_library_code, state


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradients of ``tensors`` to the ``.grad`` of the leaves they depend on.

    ``grad_tensors`` holds one gradient per tensor; a tensor of one element may have None, which
    means 1. With ``inputs`` only those tensors get a gradient.

    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> tk.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    starts = _starts(tensors, grad_tensors)
    wanted = None
    if inputs is not None:
        wanted = dict.fromkeys(_wanted(inputs, "backward"))
        for x in as_tuple(inputs):
            retain_grad(x)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak. We recommend using "
            "autograd.grad when creating the graph to avoid this.",
            UserWarning,
            stacklevel=3 if is_library_code(sys._getframe(1)) else 2,
        )
    run = _Run(create_graph, retain_graph)
    run.collect(starts, wanted)
    for leaf in run.grads:
        if leaf.__class__ is not Node and leaf._node is not None:  # else it requires no grad now
            run.accumulate(leaf)


@absent.explains_options
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``; no ``.grad`` changes.

    An input that was not used is an error, unless ``allow_unused`` (then its gradient is None) or
    ``materialize_grads`` (then it is zero). With ``create_graph`` the gradients can themselves be
    differentiated.

    >>> x = tk.tensor(3., requires_grad=True)
    >>> (slope,) = tk.autograd.grad(x * x * x, x, create_graph=True)
    >>> (curvature,) = tk.autograd.grad(slope, x)
    >>> slope.item(), curvature.item()
    (27.0, 18.0)
    """
    starts, wanted = _starts(outputs, grad_outputs), _wanted(inputs, "grad")
    run = _Run(create_graph, retain_graph)
    run.collect(starts, dict.fromkeys(wanted))
    gradients: list[Any] = []
    for position, (x, edge) in enumerate(zip(as_tuple(inputs), wanted, strict=True)):
        if edge in run.grads:
            gradients.append(run.result(edge))
        elif materialize_grads:
            gradients.append(copying.filled(x, 0))
        elif allow_unused:
            gradients.append(None)
        else:
            raise AutogradError(
                f"The differentiated Tensor at index {position} appears to not have been used in "
                "the graph. Set allow_unused=True if this is the desired behavior.",
                "No path leads from the outputs to this input.",
                repair="allow_unused=True gives None, materialize_grads=True gives zeros",
            )
    return tuple(gradients)


# Checking the arguments


def as_tuple(tensors: Any) -> tuple[Any, ...]:
    """Tensors as a tuple, where one may be given alone."""
    # of what is neither, Python says as in PyTorch that it is not iterable
    return (tensors,) if isinstance(tensors, TensorBase) else tuple(tensors)


def _wanted(inputs: Any, function: str) -> list[Any]:
    """The edges of ``inputs``."""
    xs = as_tuple(inputs)
    if not xs:
        raise AutogradError(f"`inputs` argument to `{function}()` cannot be empty.")
    edges = [edge_of(x) if isinstance(x, TensorBase) else None for x in xs]
    if [edge for edge in edges if edge is None]:  # a tensor has an == of its own
        raise AutogradError(
            "One of the differentiated Tensors does not require grad",
            repair="x.requires_grad_()    # before y is computed from it",
        )
    return edges


def _starts(tensors: Any, given: Any) -> list[tuple[Any, Tensor]]:
    """Where the walk begins, and the gradients there; ``given`` is None for ones."""
    roots = as_tuple(tensors)
    gradients = (None,) * len(roots) if given is None else as_tuple(given)
    if len(roots) != len(gradients):
        raise AutogradError(f"got {len(roots)} tensors and {len(gradients)} gradients")
    starts = []
    for position, root in enumerate(roots):
        edge = edge_of(root) if isinstance(root, TensorBase) else None
        if edge is None:
            raise AutogradError(
                f"element {position} of tensors does not require grad and does not have a grad_fn",
                "No operation on a tensor that requires grad led to it.",
                repair="x.requires_grad_()    # before y is computed from it",
            )
        starts.append((edge, first_gradient(root, gradients[position], position)))
    return starts


@overridable
def first_gradient(root: Tensor, given: Any, position: int) -> Tensor:
    """The gradient that a root starts with, checked."""
    if given is None:
        if root._array.size != 1:
            raise AutogradError(
                "grad can be implicitly created only for scalar outputs",
                f"This tensor has shape {tuple(root.shape)}: a gradient needs one number to "
                "be the derivative of.",
                repair="y.sum().backward(), or y.backward(gradient=tk.ones_like(y))",
            )
        return copying.filled(root, 1)
    if not isinstance(given, TensorBase):
        raise TypeError("gradients can be either Tensors or None, but got " + type(given).__name__)
    if given.shape != root.shape:
        raise ShapeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {given.shape!r} "
            f"and output[{position}] has a shape of {root.shape!r}.",
            "A gradient has the shape of the tensor it belongs to.",
            repair="y.backward(tk.ones_like(y))",
        )
    given = copying.gradient_on(given, root.device, position)
    return given if given.dtype is root.dtype else copying.to(given, root.dtype, None)


# Going through the graph


@overridable
def backward_order(roots: list[Any], waiting: list[tuple[int, Node]]) -> Iterator[Node]:
    """The nodes in the order in which they are run; one that no gradient has reached is left out.

    ``waiting`` is a heap of the nodes that a gradient has reached; it grows while they are run.
    ``roots`` is for a function that replaces this one by ``overrides``.
    """
    while waiting:
        yield heappop(waiting)[1]


class _Run:
    """One backward."""

    def __init__(self, create_graph: bool, retain_graph: bool | None) -> None:
        self.create_graph = create_graph
        self.retain_graph = create_graph if retain_graph is None else retain_graph
        self.as_tensors = create_graph or not direct_path.is_open  # what gradients are; else arrays
        self.pending: dict[Any, Any] = {}  # a node or a leaf -> the sum that arrived so far
        self.waiting: list[tuple[int, Node]] = []  # a heap: the same nodes, the youngest first
        # the edges whose sum this run has allocated: only to these it may add in place
        self.allocated: set[Any] = set()
        self.grads: dict[Any, Any] = {}  # the gradients of the leaves, or of what is wanted

    def collect(self, starts: list[tuple[Any, Tensor]], wanted: dict[Any, None] | None) -> None:
        """Find the gradients of all leaves, or of the nodes and leaves that are ``wanted``.

        With ``create_graph`` operations of the formulas are recorded: here ``state.grad`` is set.
        """
        before = state.grad, state.on_arrays, warning_state.set(NO_WARNINGS)
        state.grad = self.create_graph
        state.on_arrays = not self.as_tensors
        try:
            for edge, gradient in starts:
                value = gradient if self.as_tensors else gradient._array
                self.pending[edge] = self._sum(edge, self.pending.get(edge), value)
            self._walk(wanted)
            for leaf, gradient in self.pending.items():
                if leaf.__class__ is not Node and (wanted is None or leaf in wanted):
                    gradient = self.grads[leaf] = self._after_hooks(leaf._hooks, gradient)
                    if gradient.__class__ is not _ndarray or leaf._array.__class__ is not _ndarray:
                        _check_not_moved((leaf,), self._array(gradient))
            self.pending.clear()  # no second reference: ``_copy_if_shared`` copies what has one
        finally:
            state.grad, state.on_arrays = before[:2]
            warning_state.reset(before[2])

    def _walk(self, wanted: dict[Any, None] | None) -> None:  # noqa: C901 - for speed
        """Run the nodes in order: each gives its inputs what its formulas make of its gradient.

        Where an input was broadcast, ``_unbroadcast_and_cast`` sums its gradient.

        All in one loop: calls of functions would take as long as all the rest of it.
        """
        pending, waiting, allocated = self.pending, self.waiting, self.allocated
        as_tensors, retain_graph = self.as_tensors, self.retain_graph
        roots = [*pending]
        needed = None if wanted is None else _leading_to(wanted, roots)
        waiting += [(-edge.order, edge) for edge in roots if edge.__class__ is Node]
        heapify(waiting)
        for node in backward_order(roots, waiting):
            gradient = pending.pop(node, None)
            if gradient is None:  # only in an order of the user's: no gradient has come here
                continue
            if wanted is not None:
                is_end = node not in needed  # type: ignore[operator]
                # hooks are called once: here if the walk ends at this node, otherwise below
                if node in wanted:
                    hooks = node.hooks if is_end else None
                    self.grads[node] = self._after_hooks(hooks, gradient)
                if is_end:
                    continue
            if node.hooks is not None:
                gradient = self._after_hooks(node.hooks, gradient)
            rule = node.rule
            if rule.is_part and not as_tensors:
                values = self._added_to_part(node, gradient)
            else:
                try:
                    values = rule.gradients(node, gradient, as_tensors)
                except (TypeError, ValueError):
                    _check_not_moved(node.saved, self._array(gradient))
                    raise
            del gradient  # its memory can be used again
            at = -1
            for edge in node.edges:  # with zip a node would take a tenth longer
                at += 1
                value = values[at]
                if edge is None or value is None:
                    continue
                is_node = edge.__class__ is Node
                target = edge if is_node else edge._array
                if (
                    value.__class__ is not _ndarray
                    or value.dtype is not target.dtype
                    or value.shape != target.shape
                ):
                    value = self._unbroadcast_and_cast(value, target)
                so_far = pending.get(edge)
                if so_far is None:  # it is kept as it is: others may hold it
                    pending[edge] = value
                    if is_node:
                        heappush(waiting, (-edge.order, edge))
                elif edge in allocated:
                    so_far += value
                else:
                    pending[edge] = self._sum(edge, so_far, value)
            if node.saved and not retain_graph:
                node.saved = rule.all_freed or rule.saved_after_backward(node.saved)

    def _array(self, gradient: Any) -> Any:
        return gradient._array if self.as_tensors else gradient

    def _sum(self, edge: Any, so_far: Any, value: Any) -> Any:
        """The sum so far and one gradient more, in new memory."""
        if so_far is None:
            return value
        total = so_far + value
        if not self.as_tensors:
            self.allocated.add(edge)
        return np.array(total) if isinstance(total, np.generic) else total

    def _unbroadcast_and_cast(self, value: Any, target: Any) -> Any:
        """``value`` in the shape and dtype of ``target``: here broadcasting is undone."""
        if not (self.as_tensors or is_array(value)):
            value = np.asarray(value)
        if tuple(value.shape) != target.shape:
            value = reductions.sum_to_shape(value, to=target.shape)
        if self.as_tensors:
            dtype = of_numpy(target.dtype)
            return value if value.dtype is dtype else copying.to(value, dtype, None)
        return value if value.dtype == target.dtype else value.astype(target.dtype)

    def _added_to_part(self, node: Node, gradient: Any) -> tuple[Any]:
        """Add the gradient of a view to its part of the gradient of the whole, if there is one.

        So the gradients of a hundred rows need one array, not a hundred.
        """
        edge: Any = node.edges[0]
        shape, index = node.saved
        whole: Any = self.pending.get(edge)
        if whole is None:
            whole = backend_of(gradient).xp.zeros(shape, gradient.dtype)
            whole[index] = gradient
            self.allocated.add(edge)
            return (whole,)
        # a sum made elsewhere may lie in memory as its operands did; the view needs row-major order
        if edge not in self.allocated or not whole.flags.c_contiguous:
            whole = self.pending[edge] = whole.copy(order="C")
            self.allocated.add(edge)
        whole[index] += gradient
        return (None,)

    def _after_hooks(self, hooks: Hooks | None, gradient: Any) -> Any:
        """A gradient that has arrived, as the hooks of its tensor leave it."""
        if hooks is None or not (hooks.tensor or hooks.retained):
            return gradient
        shown = gradient if self.create_graph else base.new(self._array(gradient).copy())
        shown = through_hooks(hooks, shown)
        return shown if self.as_tensors else shown._array

    def result(self, edge: Any) -> Tensor:
        """A gradient that was found, as a tensor on memory of its own."""
        if self.create_graph:
            return self.grads[edge]
        gradient = self._copy_if_shared(edge)
        return base.new(base.contiguous(gradient, device_of_array(gradient)))

    def accumulate(self, leaf: Tensor) -> None:
        """Add what was found to the ``.grad`` of a leaf."""
        grad = leaf._grad
        if self.create_graph:
            with enable_grad():
                leaf._grad = self.grads[leaf].clone() if grad is None else grad + self.grads[leaf]
        elif grad is not None and self.as_tensors:
            with no_grad():
                grad += self.grads[leaf]
        elif grad is not None:
            without_warnings(grad._xp.add, grad._array, self.grads[leaf], out=grad._array)
            storage = base.storage_of(grad)
            storage.version, storage.last_write = storage.version + 1, None
        else:
            gradient = self._copy_if_shared(leaf)
            if gradient.strides == leaf._array.strides:
                leaf._grad = base.new(gradient)
            else:  # it lies in memory as the leaf does
                shape, strides = gradient.shape, leaf._strides
                is_dense = layout.is_dense(shape, strides)
                strides = strides if is_dense else layout.contiguous_strides(shape)
                leaf._grad = base.new_with_strides(gradient, strides)

    def _copy_if_shared(self, edge: Any) -> Any:
        """The array of a gradient that was found, copied if other references share its memory."""
        is_alone = _n_references(self.grads[edge]) == _ONE_REFERENCE
        gradient = self.grads[edge]
        if self.as_tensors:
            return gradient._array.copy()
        if gradient.__class__ is not _ndarray:
            return gradient.copy()
        if gradient.base is not None:  # or a transpose of an array that has no other references
            is_all = gradient.flags.forc and getattr(gradient.base, "size", 0) == gradient.size
            is_alone = is_alone and is_all and _n_references(gradient.base) == _ONE_REFERENCE
        return gradient if is_alone else gradient.copy()


def _n_references(value: Any) -> int:
    """The references to ``value``, and those that this call adds in this version of Python."""
    return sys.getrefcount(value)


_one = [np.empty(1)]
_ONE_REFERENCE = _n_references(_one[0])  # what it gives when one container alone holds a value
_ndarray = np.ndarray


def _leading_to(wanted: dict[Any, None], roots: list[Any]) -> set[Any]:
    """The nodes from which an edge in ``wanted`` can be reached, itself not counted."""
    waiting = [edge for edge in dict.fromkeys(roots) if edge.__class__ is Node]
    reached = set(waiting)
    for node in waiting:  # grows while it is read
        for edge in node.edges:
            if edge.__class__ is Node and edge not in reached:
                reached.add(edge)
                waiting.append(edge)
    leading: set[Any] = set()
    ends = set(wanted)
    for node in sorted(reached, key=lambda node: node.order):
        if not ends.isdisjoint(node.edges):
            leading.add(node)
            ends.add(node)
    return leading


def _check_not_moved(values: Iterable[Any], gradient: Any) -> None:
    """Raise if one of these, perhaps tensors, is not where this array is: a leaf was moved."""
    device = device_of_array(gradient)
    for leaf in values:
        if isinstance(leaf, TensorBase) and leaf.device is not device:
            raise DeviceMismatchError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{leaf.device} and {device}!",
                f"A leaf of shape {tuple(leaf.shape)} was moved after it had been computed with.",
                repair="model.to(device) first, then the forward pass and backward()",
            )
