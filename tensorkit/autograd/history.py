"""How tensors are tied to the graph: recording a result, views and their bases, in-place writes.

A view remembers its base (which is no view) and the edge it had when the storage had version
``_seen``. When the storage has another version the base, or another view of it, was written to;
then the view's history begins anew, as an ``as_strided`` of the base: that is how a write through
one view reaches all others.

A recorded write to a view is a write to a part of its base. The base's new node, ``CopySlices``,
holds the node of the write and applies it to that part of the gradient.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tensorkit import base
from tensorkit.autograd.graph import GeneralNode, Node, make_node, next_order
from tensorkit.autograd.marks import HIDDEN_VIEW, INFERENCE, LEAF, VIEW, Mark
from tensorkit.autograd.modes import state
from tensorkit.autograd.rules import Rule
from tensorkit.autograd.saved import NOTHING, refuse_freed
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError
from tensorkit.frames import HOME
from tensorkit.layout import Layout

_new = object.__new__


# Where a gradient goes


def edge_of(x: TensorBase) -> Any:
    """Where the gradient of ``x`` goes: a Node, ``x`` itself if it is a leaf, or None."""
    node = x._node
    if node.__class__ is not Mark:
        return node
    if node is LEAF:
        return x
    if node is VIEW or node is HIDDEN_VIEW:
        storage: Any = x._storage
        if storage.version != x._seen:
            _begin_anew(x, storage.version)
        return x._edge
    return None


def _begin_anew(view: TensorBase, version: int) -> None:
    """Give a view a new node: its base was written to since it was made."""
    origin, before = view._viewed, view._edge
    edge, view._edge, view._seen = edge_of(origin), None, version
    if edge is not None:
        parts = {"source": base.layout_of(origin), "target": base.layout_of(view)}
        view._edge = node = make_node(as_strided_rule, view._form, (edge,), parts, None)
        _keep_retaining(before, node)


def requires_grad(x: TensorBase) -> bool:
    """Whether ``x`` takes part in autograd."""
    return x._node is not None and edge_of(x) is not None


def become_leaf(x: TensorBase) -> None:
    """Let ``x`` require grad; the fields that backward asks for are there from now on."""
    x._node = LEAF
    x._grad = getattr(x, "_grad", None)
    x._hooks = getattr(x, "_hooks", None)


# Recording results


def record(rule: Rule | None, result: Tensor, values: dict[str, Any]) -> Tensor:
    """Give ``result`` a node if a gradient may be wanted.

    ``values``: the operation's inputs and options by name, from which the formulas' needs are
    saved. Every result is recorded here, or in the same way by what ``recorders`` makes of a rule.
    """
    if state.inference:
        result._node = INFERENCE
        return result
    if not state.grad or rule is None or not result._form.dtype.is_floating_point:
        return result
    edges, tracked = [], False
    for name in rule.inputs:
        x = values[name]
        edge = x._node if isinstance(x, TensorBase) else None
        if edge.__class__ is Mark:
            edge = edge_of(x)
        edges.append(edge)
        if edge is not None:
            tracked = True
    if tracked:
        result._node = make_node(rule, result._form, tuple(edges), values, result)
    return result


# Views


def as_view(result: Tensor, x: TensorBase, make_edge: Callable[[Any], Any]) -> Tensor:
    """Tie a view that was just made to the base of ``x``.

    ``make_edge`` makes the node of the view from the edge of ``x``; it is only called if there is
    one and operations are recorded.
    """
    origin = x._node
    if origin is INFERENCE or (origin is None and state.inference):
        # A view of a normal tensor stays a normal tensor, also in inference mode.
        result._node = origin
        return result
    if not result._form.dtype.is_floating_point:
        return result
    is_view = origin is VIEW or origin is HIDDEN_VIEW
    result._viewed = x._viewed if is_view else x  # type: ignore[assignment]
    edge = None if origin is None else edge_of(x)
    result._edge = make_edge(edge) if edge is not None and state.grad else None
    storage = result._storage
    assert storage is not None
    result._seen = storage.version
    result._node = VIEW if state.grad and origin is not HIDDEN_VIEW else HIDDEN_VIEW
    return result


def view(x: Tensor, plan: tuple[Any, ...], array: Any = None) -> Tensor:
    """The view of ``x`` that a ``ViewPlan``, or a plain tuple of the same, describes.

    ``array`` is what it shows, if the caller has it.
    """
    form, offset, take, byte_strides, steps = plan
    storage = x._storage or base.storage_of(x)
    result = _new(base.public)
    result._form = form
    result._storage = storage
    result._offset = offset = offset + x._offset
    if array is not None:
        result._array = array
    elif take is not None:
        result._array = take(x._array)
    else:
        view_bytes = form.device.backend.view_bytes
        result._array = view_bytes(storage.flat, form.shape, byte_strides, offset)
    node = x._node
    if base.watch is not None or not state.grad or (node.__class__ is Mark and node is not LEAF):
        result._node = None
        if base.watch is not None:
            base.watch.made(result)
        return as_view(result, x, partial(_chain, steps))
    if not form.dtype.is_floating_point:
        result._node = None
        return result
    result._viewed = x
    result._seen = storage.version
    result._node = VIEW
    result._edge = None if node is None else _chain(steps, x if node is LEAF else node)
    return result


def _chain(steps: tuple[Any, ...], edge: Any) -> Any:
    """The nodes of these steps, one after the other; what they keep they share."""
    for rule, form, known in steps:
        node = GeneralNode()
        node.rule = rule
        node._form = form
        node.hooks = None
        node.order = next_order()
        node.edges = (edge,)
        node.known = known
        node.saved = NOTHING
        if base.watch is not None:
            base.watch.node(node)
        edge = node
    return edge


def is_view(x: TensorBase) -> bool:
    """Whether autograd knows ``x`` as a view of another tensor."""
    return x._node is VIEW or x._node is HIDDEN_VIEW


# Writing in place


def check_write(x: TensorBase, *others: Any) -> bool:
    """Raise where autograd cannot allow a write to ``x``. Gives whether it will be recorded.

    ``others`` are the other inputs of the operation.
    """
    if x._node is INFERENCE and not state.inference:
        raise AutogradError(
            "Inplace update to inference tensor outside InferenceMode is not allowed."
            "You can make a clone to get a normal tensor before doing inplace update."
            "See https://github.com/pytorch/rfcs/pull/17 for more details.",
            repair="x = x.clone()",
        )
    if not state.grad:
        return False
    own = x._node is not None and edge_of(x) is not None
    if x._node is LEAF:
        of = "a leaf" if getattr(x, "_viewed", None) is None else "a view of a leaf"
        raise AutogradError(
            f"{of} Variable that requires grad is being used in an in-place operation.",
            "A leaf has no history in which the change could be recorded.",
            repair="x = x + y    # a new tensor; or, to update a parameter: with tk.no_grad():",
        )
    if isinstance(x._node, Node):
        x._node.allow_write()
    tracked = own or (x._form.dtype.is_floating_point and any(map(_tracked, others)))
    if is_view(x):
        _check_view(x, tracked)
    return tracked


def _check_view(x: TensorBase, tracked: bool) -> None:
    """Raise where a recorded write to the view ``x`` would have no clear meaning."""
    if x._node is HIDDEN_VIEW and (tracked or requires_grad(x._viewed)):
        raise AutogradError(
            "A view was created in no_grad mode and is being modified inplace with grad mode "
            "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. "
            "You can clarify your code by moving both the view and the inplace either both "
            "inside the no_grad block (if you don't want the inplace to be tracked) or both "
            "outside (if you want the inplace to be tracked)."
        )
    if isinstance(x._viewed._node, Node):
        x._viewed._node.allow_write()
    if x._viewed._node is LEAF:
        raise AutogradError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            "The view shares the leaf's memory, and a leaf has no history.",
            repair="x = x.clone()    # before you write to a part of it",
        )


def _tracked(value: Any) -> bool:
    return isinstance(value, TensorBase) and value._node is not None and edge_of(value) is not None


def written(x: TensorBase, operation: str) -> None:
    """Note that ``operation`` has written to the memory of ``x``, and who called it."""
    storage = x._storage or base.storage_of(x)
    storage.version += 1
    frame = sys._getframe(2)  # of whom called the function that wrote
    code = frame.f_code
    # frames.of_user, written out: every write in a training loop comes here
    while code.co_filename.startswith(HOME) and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    storage.wrote = operation, code, frame.f_lasti


def rebase(x: TensorBase, node: Node) -> None:
    """The values of ``x`` are now the result of ``node``."""
    if not is_view(x):
        _keep_retaining(x._node, node)
        x._node = node
        return
    origin = x._viewed
    whole = CopySlices()
    whole.rule = _COPY_SLICES
    whole._form = origin._form
    whole.hooks = None
    whole.order = next_order()
    whole.inner = node
    whole.freed = False
    whole.base_edge = edge_of(origin) if origin._node is not None else None
    whole.source = base.layout_of(origin)
    whole.target = base.layout_of(x)
    _keep_retaining(origin._node, whole)
    origin._node = whole
    _begin_anew(x, base.storage_of(x).version)


def become(x: TensorBase, seen: TensorBase, operation: str) -> None:
    """``x`` itself becomes ``seen``, a view of it that was just made; recorded if that was."""
    before = edge_of(x)
    if base.watch is not None:
        base.watch.writes(x)
    x._array, x._form, x._offset = seen._array, seen._form, seen._offset
    written(x, operation)
    node = seen._edge if is_view(seen) else None
    if node is None:
        return
    if isinstance(before, Node) and before.hooks is not None and before.hooks.retained:
        node.attached().retained = before.hooks.retained.kept_before()
    if is_view(x):
        x._edge, x._seen = node, x._storage.version  # type: ignore[union-attr]
    else:
        x._node = node


def _keep_retaining(before: Any, node: Node) -> None:
    """A tensor that retains its gradient goes on to do so after a write to it."""
    if isinstance(before, Node) and before.hooks is not None and before.hooks.retained is not None:
        node.attached().retained, before.hooks.retained = before.hooks.retained, None


_COPY_SLICES = Rule("copy_slices", "CopySlices", (), {})


class CopySlices(Node):
    """A recorded write to a part of a tensor: ``inner`` made the new part.

    The gradient of the part goes through ``inner``; what comes out for the part's old values
    takes its place in the gradient of the whole.
    """

    __slots__ = ("base_edge", "freed", "inner", "source", "target")

    inner: Node
    base_edge: Any
    source: Layout  # of the whole
    target: Layout  # of the part

    @property
    def edges(self) -> tuple[Any, ...]:
        """The whole as it was, then what ``inner`` took beside the part."""
        return (self.base_edge, *self.inner.edges[1:])

    def _gradients(self, g: Any, on_arrays: bool) -> tuple[Any, ...]:
        if self.freed:
            refuse_freed()
        read, write = _window_functions[on_arrays]
        run = self.inner.gradients if on_arrays else self.inner.tensor_gradients
        part, *others = run(read(g, source=self.source, target=self.target))
        if self.base_edge is None:
            return (None, *others)
        return (write(g, part, source=self.source, target=self.target), *others)

    def gradients(self, g: Any) -> tuple[Any, ...]:
        """The gradients for all edges."""
        return self._gradients(g, True)

    def tensor_gradients(self, g: Tensor) -> tuple[Any, ...]:
        """The gradients for all edges as tensors."""
        return self._gradients(g, False)

    def release(self) -> None:
        """Forget what ``inner`` saved; PyTorch forgets ``inner`` itself."""
        self.inner.release()
        self.freed = True

    def is_option(self, place: int) -> bool:
        """Whether ``inner`` has an option at this place."""
        return place > 0 and self.inner.is_option(place)


# Set where the operations are defined, which is below this layer: the rule of views that begin
# anew, and how to read and write a part, on tensors and on arrays.
as_strided_rule: Any = None
_window_functions: list[tuple[Callable[..., Any], Callable[..., Any]]] = []


def use_windows(read: Any, write: Any) -> None:
    """Tell this module how to read and write a part of a tensor."""
    _window_functions[:] = [(read, write), (read.on_arrays, write.on_arrays)]
