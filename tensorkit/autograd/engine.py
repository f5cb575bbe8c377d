"""Backward: walking the graph from the results to the leaves.

Of the nodes that a gradient has reached the youngest is run next, as in PyTorch: all gradients that
it will ever receive come from younger ones, so they have arrived. What is under way is kept in
dictionaries of the run, never on the nodes, so that an error, Ctrl-C, or a backward inside a hook
leaves nothing behind; and the walk is a loop, so that a graph may be a million nodes deep.

A plain backward works on arrays; with ``create_graph`` it works on tensors and is recorded.
``_OnArrays`` and ``_OnTensors`` say what differs.

Gradients of leaves are collected until the end and only then added to ``.grad``.
"""

import sys
import warnings
from collections.abc import Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

import numpy as np

from tensorkit import base, layout
from tensorkit.autograd import anomaly, hooks, leaves
from tensorkit.autograd.graph import Node, Parts
from tensorkit.autograd.history import edge_of
from tensorkit.autograd.hooks import Attached
from tensorkit.autograd.modes import enable_grad, state
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of, device_of_array, is_array
from tensorkit.dtypes import of_numpy
from tensorkit.errors import AutogradError, DeviceMismatchError, NotSupportedError, ShapeError
from tensorkit.frames import is_ours
from tensorkit.ops import copying, moving, reductions
from tensorkit.quiet import SILENT, quietly, reports


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
    if inputs is not None and not _several(inputs):
        raise AutogradError("`inputs` argument to `backward()` cannot be empty.")
    run = _Run(create_graph, retain_graph)
    starts = run.starts(tensors, grad_tensors)
    wanted = None
    if inputs is not None:
        for x in _several(inputs):
            _need_tensor(x)
            leaves.retain_grad(x)  # raises where x does not require grad
        wanted = [_wanted_edge(x) for x in _several(inputs)]
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak. We recommend using "
            "autograd.grad when creating the graph to avoid this. If you have to use this "
            "function, make sure to reset the .grad fields of your parameters to None after use "
            "to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=2 + _depth_in_library(),
        )
    for leaf, gradient in run.collect(starts, wanted).values():
        if leaf._hooks is not None:
            run.accumulate_between_hooks(leaf, gradient)
        elif leaf._node is not None:  # else it was told since to require grad no longer
            run.work.accumulate(leaf, gradient)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
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
    xs = _several(inputs)
    if not xs:
        raise AutogradError("`inputs` argument to `grad()` cannot be empty.")
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if is_grads_batched:
        raise NotSupportedError(
            "tensorkit has no is_grads_batched",
            repair="[tk.autograd.grad(y, x, g, retain_graph=True) for g in grad_outputs]",
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    run = _Run(create_graph, retain_graph)
    starts = run.starts(outputs, grad_outputs)
    wanted = [_wanted_edge(x) for x in xs]
    collected = run.collect(starts, wanted)
    results: list[Any] = []
    for place, (x, edge) in enumerate(zip(xs, wanted, strict=True)):
        found = collected.get(id(edge)) or run.nodes.get(id(edge))
        if found is not None:
            results.append(run.work.result(found[1]))
        elif materialize_grads:
            results.append(copying.filled(x, 0))
        elif allow_unused:
            results.append(None)
        else:
            raise AutogradError(
                f"The differentiated Tensor at index {place} appears to not have been used in "
                "the graph. Set allow_unused=True if this is the desired behavior.",
                "No path leads from the outputs to this input.",
                repair="allow_unused=True gives None, materialize_grads=True gives zeros",
                index=place,
            )
    return tuple(results)


# Checking the arguments


def _several(tensors: Any) -> tuple[Any, ...]:
    return (tensors,) if isinstance(tensors, TensorBase) else tuple(tensors)


def _root_edge(root: Tensor, place: int) -> Any:
    if not isinstance(root, TensorBase):
        raise AssertionError("Expected output to be a torch.Tensor")
    edge = edge_of(root)
    if edge is None:
        raise AutogradError(
            f"element {place} of tensors does not require grad and does not have a grad_fn",
            "No operation on a tensor that requires grad led to it.",
            repair="x.requires_grad_()    # before y is computed from it",
        )
    return edge


def _need_tensor(x: Any) -> None:
    if not isinstance(x, TensorBase):
        kind = type(x).__name__
        raise AutogradError(f"all inputs have to be Tensors or GradientEdges, but got {kind}")


def _wanted_edge(x: Any) -> Any:
    _need_tensor(x)
    edge = edge_of(x)
    if edge is None:
        raise AutogradError(
            "One of the differentiated Tensors does not require grad",
            repair="x.requires_grad_()    # before y is computed from it",
        )
    return edge


def _first_gradient(root: Tensor, given: Any, place: int) -> Tensor:
    """The gradient that a root starts with, checked."""
    shape = root.shape
    if given is None:
        if root._array.size != 1:
            raise AutogradError(
                "grad can be implicitly created only for scalar outputs",
                f"This tensor has shape {tuple(shape)}: a gradient needs one number to "
                "be the derivative of.",
                repair="y.sum().backward(), or y.backward(gradient=tk.ones_like(y))",
            )
        return copying.filled(root, 1)
    if not isinstance(given, TensorBase):
        raise TypeError("gradients can be either Tensors or None, but got " + type(given).__name__)
    if given.shape != shape:
        raise ShapeError(
            f"Mismatch in shape: grad_output[{place}] has a shape of {given.shape!r} "
            f"and output[{place}] has a shape of {shape!r}.",
            "A gradient has the shape of the tensor it belongs to.",
            a_shape=tuple(given.shape),
            b_shape=tuple(shape),
        )
    given = moving.at_home(given, root.device, place)
    return given if given.dtype is root.dtype else copying.to_dtype(given, root.dtype)


def _depth_in_library() -> int:
    """How many callers of ``backward`` belong to the library: ``Tensor.backward`` is one."""
    frame, depth = sys._getframe(2), 0
    while frame.f_back is not None and is_ours(frame):
        frame, depth = frame.f_back, depth + 1
    return depth


# Walking the graph


class _Run:
    """One walk."""

    __slots__ = ("arrived", "create_graph", "heap", "keep", "nodes", "pending", "private", "work")

    def __init__(self, create_graph: bool, retain_graph: bool | None) -> None:
        self.work: Any = _ON_TENSORS if create_graph else _ON_ARRAYS
        self.create_graph = create_graph
        self.keep = create_graph if retain_graph is None else retain_graph
        self.pending: dict[Any, Any] = {}  # node -> the sum of the gradients that arrived so far
        self.heap: list[tuple[int, Any]] = []  # the same nodes, the youngest first
        self.private: set[Any] = set()  # nodes whose sum is an array that this run made
        self.arrived: dict[int, tuple[Any, Any]] = {}  # id of a leaf -> (leaf, gradient)
        self.nodes: dict[int, tuple[Any, Any]] = {}  # the same of nodes that are wanted

    def starts(self, tensors: Any, given: Any) -> list[tuple[Any, Any]]:
        """Where the walk begins, and the gradients there; ``given`` is None for ones."""
        if given is None and not self.create_graph and isinstance(tensors, TensorBase):
            node, array = tensors._node, tensors._array
            if isinstance(node, Node) and array.size == 1:  # nearly always
                one = backend_of(array).xp.empty(array.shape, array.dtype)
                one.fill(1)
                return [(node, one)]
        roots = _several(tensors)
        gradients = (None,) * len(roots) if given is None else _several(given)
        if len(roots) != len(gradients):
            raise AutogradError(f"got {len(roots)} tensors and {len(gradients)} gradients")
        found = []
        for place, root in enumerate(roots):
            edge = _root_edge(root, place)
            first = _first_gradient(root, gradients[place], place)
            found.append((edge, self.work.start(first)))
        return found

    def collect(
        self, starts: list[tuple[Any, Any]], wanted: list[Any] | None
    ) -> dict[int, tuple[Any, Any]]:
        """The gradients that arrive at leaves: id of a leaf -> (leaf, gradient)."""
        grad_before, reports_before = state.grad, reports.set(SILENT)
        on_arrays_before = state.on_arrays
        state.grad, state.on_arrays = self.create_graph, not self.create_graph
        try:
            self._walk(starts, wanted)
            return self._found(wanted)
        except (TypeError, ValueError) as error:
            _look_for_moved(starts, error)
            raise
        finally:
            state.grad, state.on_arrays = grad_before, on_arrays_before
            reports.reset(reports_before)

    def _walk(  # noqa: C901 - one loop, through which every node goes
        self, passed: Any, wanted: list[Any] | None
    ) -> None:
        work, pending, arrived, heap = self.work, self.pending, self.arrived, self.heap
        keep, on_arrays, careful = self.keep, not self.create_graph, state.anomaly is not None
        dead: Any = None
        if wanted is not None:
            wanted_ids = {id(edge) for edge in wanted}
            dead = _leading_nowhere(wanted_ids, [edge for edge, _ in passed])
        node: Any = None
        alone: Any = None  # the only node that a gradient has reached: most are, once
        while True:
            for edge, value in passed:
                if edge is None:
                    continue
                is_node = isinstance(edge, Node)
                if value is not None:
                    model = edge if is_node else edge._array
                    if (
                        value.__class__ is not _ndarray
                        or value.dtype is not model.dtype
                        or value.shape != model.shape
                    ):
                        value = work.as_needed(value, edge)
                # the first to arrive, without a call
                if is_node:
                    if alone is None:
                        if not heap:
                            alone, gradient = edge, value
                            continue
                    else:
                        pending[alone] = gradient
                        heappush(heap, (-alone.order, alone))
                        alone = None
                    if edge in pending:
                        self._deliver(edge, value)
                    else:
                        pending[edge] = value
                        heappush(heap, (-edge.order, edge))
                elif value is not None:
                    if id(edge) in arrived:
                        self._deliver(edge, value)
                    else:
                        arrived[id(edge)] = edge, value
            if not (keep or node is None):
                node.release()
            # The last reference goes before the next node runs: its memory can be used again.
            edge = value = passed = None
            if alone is not None:
                node, alone = alone, None
            elif heap:
                node = heappop(heap)[1]
                gradient = pending.pop(node)
            else:
                return
            attached = node.hooks
            if dead is not None:
                is_end, is_wanted = node in dead, id(node) in wanted_ids and gradient is not None
                if is_wanted:
                    if is_end and attached is not None:  # as in PyTorch, only there after hooks
                        gradient = self._after_hooks(attached, gradient)
                    self.nodes[id(node)] = node, gradient
                if is_end:  # if it is not wanted, its hooks are not called either
                    node, passed = None, ()
                    continue
            if attached is not None and gradient is not None:
                gradient = self._after_hooks(attached, gradient)
            if gradient is None:  # a user's function gave None on every way here
                passed = ((edge, None) for edge in node.edges)
            elif careful or attached is not None:
                run = node.gradients if on_arrays else node.tensor_gradients
                passed = zip(node.edges, self._with_care(node, run, gradient), strict=False)
            elif not on_arrays:
                passed = zip(node.edges, node.tensor_gradients(gradient), strict=False)
            elif node.rule.part is not None:
                self._add_to_part(node, gradient)
                passed = ()
            else:
                passed = zip(node.edges, node.gradients(gradient), strict=False)

    def _add_to_part(self, node: Node, gradient: Any) -> None:
        """Add the gradient of a view to its part of the gradient of the whole.

        So the gradients of a hundred rows need one array, not a hundred.
        """
        edge: Any = node.edges[0]
        is_leaf = isinstance(edge, TensorBase)
        key, model = (id(edge), edge._array) if is_leaf else (edge, edge)
        if not is_leaf and edge not in self.pending:
            self._deliver(edge, None)
        have: Any = self.arrived.get(key, (edge, None))[1] if is_leaf else self.pending.get(key)
        # a sum made elsewhere may lie in memory as its operands did; the view needs row-major order
        if key not in self.private or not have.flags.c_contiguous:
            if have is None:
                have = backend_of(gradient).xp.zeros(model.shape, model.dtype)
            else:
                have = have.copy(order="C")
            self.private.add(key)
            if is_leaf:
                self.arrived[key] = (edge, have)
            else:
                self.pending[key] = have
        part: Any = node.rule.part(have, *map(node.value, node.rule.options))  # type: ignore[misc]
        part += gradient

    def _deliver(self, edge: Any, value: Any) -> None:
        """Add a gradient to what has arrived; it may be None for a node, which is then visited.

        The first is kept as it is, the second makes an array of this run's own, to which all later
        ones are added.
        """
        work = self.work
        if isinstance(edge, TensorBase):
            key = id(edge)
            have = self.arrived.get(key)
            if have is None:
                self.arrived[key] = (edge, value)
            else:
                add = work.add_into if key in self.private else work.add
                self.arrived[key] = (edge, add(have[1], value))
                self.private.add(key)
        elif edge not in self.pending:
            self.pending[edge] = value
            heappush(self.heap, (-edge.order, edge))
        elif value is not None:
            have = self.pending[edge]
            if have is not None:
                value = (work.add_into if edge in self.private else work.add)(have, value)
                self.private.add(edge)
            self.pending[edge] = value

    def _after_hooks(self, attached: Attached, gradient: Any) -> Any:
        """A gradient that has arrived, as the hooks of its tensor leave it."""
        if not (attached.of_tensor or attached.retained):
            return gradient
        shown = self.work.result(gradient)
        return self.work.start(hooks.through_tensor_hooks(attached, shown))

    def _with_care(self, node: Node, run: Any, gradient: Any) -> tuple[Any, ...]:
        """The gradients from a node with hooks of its own, or in anomaly mode."""
        work, attached = self.work, node.hooks
        if attached is not None and attached.before:
            given = hooks.before_node(attached, work.result(gradient))
            gradient = work.start(given)
        results = anomaly.watched(node, run, gradient) if state.anomaly else run(gradient)
        if attached is None or not attached.after:
            return tuple(results)
        edges = [None if node.is_option(place) else edge for place, edge in enumerate(node.edges)]
        shown = tuple(
            None if edge is None or value is None else work.result(work.as_needed(value, edge))
            for edge, value in zip(edges, results, strict=False)
        )
        changed = hooks.after_node(attached, shown, work.result(gradient))
        return tuple(None if each is None else work.start(each) for each in changed)

    def _found(self, wanted: list[Any] | None) -> dict[int, tuple[Any, Any]]:
        """The gradients of leaves that are wanted, after their hooks."""
        found = self.arrived
        if wanted is not None:
            keys = {id(edge) for edge in wanted}
            found = {key: pair for key, pair in found.items() if key in keys}
        for key, (leaf, gradient) in found.items():
            device = leaf.device
            if gradient.__class__ is _ndarray:
                if device is not CPU:
                    raise _moved(leaf, "cpu")
            elif not self.create_graph and backend_of(gradient) is not device.backend:
                raise _moved(leaf, f"cuda:{backend_of(gradient).index}")
            attached = leaf._hooks
            if attached is not None:
                found[key] = (leaf, self._after_hooks(attached, gradient))
        return found

    def accumulate_between_hooks(self, leaf: Any, gradient: Any) -> None:
        """Add to the gradient of a leaf and tell its hooks before and after."""
        work, attached = self.work, leaf._hooks
        if attached.before:
            given = hooks.before_node(attached, work.result(gradient))
            gradient = work.start(given)
        if leaf._node is not None:
            work.accumulate(leaf, gradient)
        hooks.after_accumulation(attached, leaf)
        if attached.after:
            hooks.after_node(attached, (), work.result(gradient))


_ndarray = np.ndarray


def _leading_nowhere(wanted: set[int], starts: list[Any]) -> set[Any] | None:
    """The nodes from which no edge in ``wanted`` can be reached, itself not counted.

    None if there are none, and no node is wanted itself.
    """
    found: dict[Any, Any] = {}  # read once: who looks from another thread changes them
    ends: set[int] = set()
    waiting: list[Any] = list(starts)
    for edge in waiting:  # which grows meanwhile
        if isinstance(edge, Node):
            if edge not in found:
                found[edge] = edge.edges
                waiting += found[edge]
        elif edge is not None:
            ends.add(id(edge))
    if ends == wanted:
        return None
    leading: set[Any] = set()
    for node in sorted(found, key=_ORDER):
        for edge in found[node]:
            if edge is not None and (
                id(edge) in wanted or (isinstance(edge, Node) and edge in leading)
            ):
                leading.add(node)
                break
    return found.keys() - leading


_ORDER = attrgetter("order")


def _look_for_moved(starts: list[Any], error: Exception) -> None:
    """Raise if a leaf is no longer on the device on which an operation used it."""
    seen = set()
    for start, gradient in starts:
        array = gradient._array if isinstance(gradient, TensorBase) else gradient
        device, waiting = device_of_array(array), [start]
        for edge in waiting:  # which grows meanwhile
            if isinstance(edge, TensorBase) and edge.device is not device:
                raise _moved(edge, str(device)) from error
            is_new = isinstance(edge, Node) and edge not in seen
            if is_new and edge.rule.node not in _BETWEEN_DEVICES:
                seen.add(edge)
                waiting += edge.edges


_BETWEEN_DEVICES = "ToCopyBackward0", "CopyBackwards"


def _moved(leaf: TensorBase, device: str) -> DeviceMismatchError:
    return DeviceMismatchError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{leaf.device} and {device}!",
        f"A leaf of shape {tuple(leaf.shape)} was moved after it had been computed with.",
        repair="model.to(device) first, then the forward pass and backward()",
    )


# The two kinds of work


class _OnArrays:
    """A plain backward: gradients are arrays, nothing is recorded."""

    def start(self, gradient: Tensor) -> Any:
        return gradient._array

    def as_needed(self, value: Any, edge: Any) -> Any:
        """``value`` in the shape and dtype that ``edge`` has: here broadcasting is undone."""
        if value.__class__ is Parts:
            return value
        model = edge if isinstance(edge, Node) else edge._array
        if not is_array(value):
            value = np.asarray(value)
        if value.shape != model.shape:
            value = reductions.sum_to_shape(value, to=model.shape)
        return value if value.dtype == model.dtype else value.astype(model.dtype)

    def add(self, have: Any, value: Any) -> Any:
        total = have + value
        return np.asarray(total) if isinstance(total, np.generic) else total

    def add_into(self, have: Any, value: Any) -> Any:
        have += value
        return have

    def result(self, gradient: Any) -> Tensor:
        """A gradient as a tensor, on memory of its own."""
        device = device_of_array(gradient)
        # held by the run's dictionary, by this function and by getrefcount
        if gradient.__class__ is not _ndarray:
            if not device.backend.is_alone(gradient, 4):
                gradient = gradient.copy()
        elif gradient.base is not None or sys.getrefcount(gradient) > 3:
            gradient = gradient.copy()
        return base.new(base.contiguous(gradient, device))

    def accumulate(self, leaf: Tensor, gradient: Any) -> None:
        have = leaf._grad
        if have is not None:
            quietly(have._xp.add, have._array, gradient, out=have._array)
            base.storage_of(have).version += 1
            return
        # held by the dictionary, by the caller, by this function and by getrefcount
        if gradient.__class__ is not _ndarray:
            alone = leaf.device.backend.is_alone(gradient, 5)
        else:
            alone = sys.getrefcount(gradient) <= 4 and (
                gradient.base is None or _is_only_view(gradient)
            )
        if not alone:
            gradient = gradient.copy()
        if leaf._array.strides == gradient.strides and gradient.flags.c_contiguous:
            leaf._grad = base.new(gradient)
        else:
            leaf._grad = base.place(gradient, _grad_strides(leaf))


def _is_only_view(array: Any) -> bool:
    """Whether a view sees all of its memory and nobody else sees any."""
    whole = array.base
    # held by the view, by this function and by getrefcount
    return whole.__class__ is _ndarray and whole.size == array.size and sys.getrefcount(whole) == 3


class _OnTensors:
    """A backward with ``create_graph``: gradients are tensors, every step is recorded."""

    def start(self, gradient: Tensor) -> Any:
        return gradient

    def as_needed(self, value: Any, edge: Any) -> Any:
        """``value`` in the shape and dtype that ``edge`` has."""
        if value.__class__ is Parts:
            return value
        model = edge if isinstance(edge, Node) else edge._array
        if value._array.shape != model.shape:
            value = reductions.sum_to_shape(value, to=model.shape)
        same = value._array.dtype == model.dtype
        return value if same else copying.to_dtype(value, of_numpy(model.dtype))

    def add(self, have: Any, value: Any) -> Any:
        return have + value

    add_into = add

    def result(self, gradient: Tensor) -> Tensor:
        return gradient

    def accumulate(self, leaf: Tensor, gradient: Tensor) -> None:
        have = leaf._grad
        with enable_grad():
            leaf._grad = (
                copying.laid_out(gradient, _grad_strides(leaf)) if have is None else have + gradient
            )


_ON_ARRAYS, _ON_TENSORS = _OnArrays(), _OnTensors()


def _grad_strides(leaf: TensorBase) -> Any:
    """How the gradient of a leaf lies in memory: like the leaf if that is dense."""
    shape, strides = leaf._array.shape, leaf._strides
    if layout.is_dense(shape, strides):
        return strides
    return layout.contiguous_strides(shape)
