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
from functools import cache
from typing import Any

from tensorkit import base
from tensorkit.autograd.graph import ALPHA_IS_1, Node, make_node, next_order
from tensorkit.autograd.marks import HIDDEN_VIEW, INFERENCE, LEAF, VIEW, Mark
from tensorkit.autograd.modes import state
from tensorkit.autograd.rules import Rule
from tensorkit.autograd.saved import refuse_freed
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError
from tensorkit.frames import HOME
from tensorkit.layout import Layout
from tensorkit.storage import Storage

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
        view._edge = node = make_node(as_strided_rule, view, (edge,), parts, None)
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
    saved. Every result is recorded here, or in the same way by what ``recorder`` makes of a rule.
    """
    if state.inference:
        result._node = INFERENCE
        return result
    if not state.grad or rule is None or result._array.dtype.kind != "f":
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
        result._node = make_node(rule, result, tuple(edges), values, result)
    return result


Recorder = Callable[..., object]  # takes a result and its inputs


@cache
def recorder(rule: Rule | None) -> Recorder:
    """``record`` in short, for one or two inputs, of which one may be a number.

    Called as ``recorder(rule)(result, *inputs)`` where one of the inputs may require grad.
    """
    if rule is None:
        return lambda result, *inputs: result
    if is_short(rule):
        return _record_one(rule) if len(rule.inputs) == 1 else _record_two(rule)
    names = rule.inputs
    return lambda result, *inputs: record(
        rule, result, {"alpha": 1, **dict(zip(names, inputs, strict=False))}
    )


def is_short(rule: Rule) -> bool:
    """Whether there is a short way to record: the formulas need hardly anything but the inputs."""
    if len(rule.inputs) == 1:
        return rule.keeps in ((), rule.inputs, ("out",), ("shape",))
    return len(rule.inputs) == 2 and set(rule.keeps) <= {*rule.inputs, "alpha"}


def _record_one(rule: Rule) -> Recorder:
    keeps_x, keeps_result = rule.keeps == rule.inputs, rule.keeps == ("out",)

    def record_one(result: Tensor, x: Tensor) -> None:
        edge = x._node
        if edge.__class__ is Mark:
            edge = x if edge is LEAF else edge_of(x)
        if edge is None or not state.grad:
            return
        node = Node()
        node.rule = rule
        node.edges = (edge,)
        node.versions = 0
        if keeps_x:
            node.saved = (x,)
            if x._storage is not None and x._storage.version:
                node.versions = (x._storage.version,)
        elif keeps_result:  # the tensor would point back to the node
            kept = _new(base.public)
            kept._array = array = result._array
            kept._storage = result._storage = Storage(array)
            kept._offset = result._offset = 0
            kept._node = None
            node.saved = (kept,)
        else:
            node.saved = (x._array.shape,) if rule.keeps else ()
        node.order = next_order()
        array = result._array
        node.shape, node.dtype, node.device = array.shape, array.dtype, result.device
        node.hooks = None
        result._node = node

    return record_one


def _record_two(rule: Rule) -> Recorder:  # noqa: C901 - one way, without calls
    first, second = rule.inputs
    x_for_x, x_for_y = (first in needs for needs in rule.needs)
    y_for_x, y_for_y = (second in needs for needs in rule.needs)
    keeps = tuple([{first: "x", second: "y"}.get(name, name) for name in rule.keeps])
    constant = ALPHA_IS_1 if keeps == ("alpha",) else ()
    if constant:
        keeps = ()

    def record_two(  # noqa: C901 - one way, without calls
        result: Tensor, x: Any, y: Any
    ) -> None:
        if not state.grad:
            return
        left, right = getattr(x, "_node", None), getattr(y, "_node", None)
        if left.__class__ is Mark:
            if left is INFERENCE:
                record(rule, result, {first: x, second: y, "alpha": 1})
                return
            left = x if left is LEAF else edge_of(x)
        if right.__class__ is Mark:
            if right is INFERENCE:
                record(rule, result, {first: x, second: y, "alpha": 1})
                return
            right = y if right is LEAF else edge_of(y)
        if left is None and right is None:
            return
        node = Node()
        node.rule = rule
        node.edges = (left, right)
        node.versions = 0
        node.saved = constant
        if keeps:
            if not ((x_for_x and left is not None) or (x_for_y and right is not None)):
                x = None
            if not ((y_for_x and left is not None) or (y_for_y and right is not None)):
                y = None
            own, other = getattr(x, "_storage", None), getattr(y, "_storage", None)
            versions = own.version if own else 0, other.version if other else 0
            if keeps == ("y", "x"):
                node.saved = (y, x)
                if versions != _FIRST:
                    node.versions = versions[::-1]
            elif keeps == ("x", "y"):
                node.saved = (x, y)
                if versions != _FIRST:
                    node.versions = versions
            else:
                node.saved = tuple(
                    [x if name == "x" else y if name == "y" else 1 for name in keeps]
                )
                node.versions = tuple([versions[name == "y"] for name in keeps])
        node.order = next_order()
        array = result._array
        node.shape, node.dtype, node.device = array.shape, array.dtype, result.device
        node.hooks = None
        result._node = node

    return record_two


_FIRST = 0, 0


# Views


def as_view(
    result: Tensor, x: TensorBase, rule: Rule | None, values: dict[str, Any] | None = None
) -> Tensor:
    """Tie a view that was just made to the base of ``x``, and record it."""
    origin = x._node
    if origin is INFERENCE or (origin is None and state.inference):
        # A view of a normal tensor stays a normal tensor, also in inference mode.
        result._node = origin
        return result
    if result._array.dtype.kind != "f":
        return result
    is_view = origin is VIEW or origin is HIDDEN_VIEW
    result._viewed = x._viewed if is_view else x  # type: ignore[assignment]
    edge = None if origin is None else edge_of(x)
    if edge is not None and state.grad:
        assert rule is not None
        result._edge = node = Node()
        known = values or {}
        node.rule, node.edges, node.versions, node.hooks = rule, (edge,), 0, None
        node.saved = tuple(
            [x._array.shape if name == "shape" else known.get(name) for name in rule.keeps]
        )
        node.order = next_order()
        array = result._array
        node.shape, node.dtype, node.device = array.shape, array.dtype, result.device
        if base.watch is not None:
            base.watch.node(node)
    else:
        result._edge = None
    result._seen = result._storage.version  # type: ignore[union-attr]
    result._node = VIEW if state.grad and origin is not HIDDEN_VIEW else HIDDEN_VIEW
    return result


def view(
    x: Tensor, array: Any, rule: Rule, values: Any = None, offset: int | None = None
) -> Tensor:
    """The view of ``x`` that ``array`` shows, on the same storage; ``values`` are its options."""
    result = _new(base.public)
    result._array = array
    result._storage = storage = x._storage or base.storage_of(x)
    result._offset = offset if array.size or offset is not None else base.offset_of(x)
    if x._node is base.watch is None and not state.inference:  # nearly always
        result._node = None
        if array.dtype.kind == "f":
            result._viewed, result._edge, result._seen = x, None, storage.version
            result._node = VIEW if state.grad else HIDDEN_VIEW
        return result
    result._node = None
    if base.watch is not None:
        base.watch.made(result)
    return as_view(result, x, rule, values)


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
    tracked = own or (x._array.dtype.kind == "f" and any(map(_tracked, others)))
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
    array = origin._array
    whole.shape, whole.dtype, whole.device = array.shape, array.dtype, origin.device
    whole.saved, whole.versions = (), 0
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
        read, write = _window_functions
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
_window_functions: list[Callable[..., Any]] = []


def use_windows(read: Any, write: Any) -> None:
    """Tell this module how to read and write a part of a tensor."""
    _window_functions[:] = [read, write]
