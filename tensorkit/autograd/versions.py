"""Views and writes in place: how they are tied to the graph.

A view and its base have one ``Storage``, and so one version, which every write raises. Whether a
saved tensor is stale is asked in ``node.Node.value``, when a formula wants it; the error is
``node._refuse_stale``.

A view remembers its base (which is no view), its edge, and the version of the storage that the edge
belongs to (``_edge_version``). When the storage has another version, this memory was written to,
and the view gets a new edge: see ``node.regenerate_edge``.

A recorded write to a view is a write to a part of its base. The base's new node, ``CopySlices``,
saves the node of the write and applies it to that part of the gradient.
"""

import sys
from typing import Any

from tensorkit import base, direct_path
from tensorkit.autograd.node import (
    INFERENCE,
    LEAF,
    NO_GRAD_VIEW,
    VIEW,
    Node,
    Rule,
    edge_of,
    keep_retaining,
    parts,
    regenerate_edge,
    requires_grad,
)
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError, NotSupportedError
from tensorkit.thread_state import PACKAGE, state

_new = object.__new__


def make_view(
    x: Tensor, array: Any, rule: Rule | None, saved: Any = (), offset: int | None = None
) -> Tensor:
    """The view of ``x`` that ``array`` shows, on the same storage.

    ``saved`` are the values of ``rule.saved_names``, in that order: no tensors. ``offset`` is where
    ``array`` begins in the storage, if that is known.
    """
    result: Tensor = _new(base.tensor_class)
    result._array = array
    result._storage = storage = x._storage or base.storage_of(x)
    if offset is None and not array.size:  # an array of nothing does not say where it begins
        offset = base.offset_of(x)
    result._offset = offset
    result._node = node = x._node
    is_in_mode = not direct_path.is_open  # only then may origins be recorded, or inference be on
    if is_in_mode and state.origin_recorders:
        state.origin_recorders[-1].made(result)
    if array.dtype.kind != "f" or node is INFERENCE:
        return result
    if is_in_mode and node is None and state.inference:  # a view of a normal tensor is one
        return result
    result._view_base = x._view_base if node is VIEW or node is NO_GRAD_VIEW else x
    result._edge, result._edge_version = None, storage.version
    is_recorded, edge = state.grad, None
    result._node = VIEW if is_recorded and node is not NO_GRAD_VIEW else NO_GRAD_VIEW
    if node is not None and is_recorded:
        edge = x if node is LEAF else edge_of(x)
    if edge is not None:
        assert rule is not None
        result._edge = Node(rule, result, (edge,), saved)
        if is_in_mode and state.origin_recorders:
            state.origin_recorders[-1].node(result._edge)
    return result


def is_view(x: TensorBase) -> bool:
    """Whether autograd knows ``x`` as a view of another tensor."""
    return x._node is VIEW or x._node is NO_GRAD_VIEW


# Writing


def version_of(x: TensorBase) -> int:
    """How often the memory of ``x`` was written to; counting begins with its storage."""
    return 0 if x._storage is None else x._storage.version


def check_write(x: TensorBase, *others: Any) -> bool:
    """Raise where autograd cannot allow a write to ``x``. Gives whether it will be recorded.

    ``others`` are the other inputs of the operation.
    """
    if x._node is INFERENCE and not state.inference:
        raise AutogradError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.",
            repair="x = x.clone()",
        )
    if not state.grad:
        return False
    tracked = requires_grad(x) or (x._array.dtype.kind == "f" and any(map(requires_grad, others)))
    whole = x._view_base if is_view(x) else x
    if x._node is NO_GRAD_VIEW and (tracked or requires_grad(whole)):
        raise AutogradError(
            "A view was created in no_grad mode and is being modified inplace with grad mode "
            "enabled.",
            repair="make the view outside of no_grad, too; or write to it inside",
        )
    if whole._node is LEAF:
        has_base = is_view(x) or getattr(x, "_view_base", None) is not None
        raise AutogradError(
            f"a {'view of a leaf' if has_base else 'leaf'} Variable that requires grad is being "
            "used in an in-place operation.",
            "A leaf has no history in which the change could be recorded.",
            repair="x = x + y    # a new tensor; or, to update a parameter: with tk.no_grad():",
        )
    if isinstance(whole._node, Node) and whole._node.rule.is_view:
        raise AutogradError(
            f"Output 0 of {whole._node.rule.name} is a view and is being modified inplace. "
            "A custom Function returns new tensors.",
            repair="y = F.apply(x).clone()",
        )
    if tracked and getattr(x._storage, "has_leaf_view", False):
        raise NotSupportedError(
            "a recorded write to a tensor of which a view was made a leaf by requires_grad_()",
            "The leaf would have to become a part of the result.",
            repair="x = x * y    # a new tensor",
        )
    return tracked


def bump_version(x: TensorBase, operation: str, last_write: Any = None) -> Any:
    """Note that ``operation`` has written to the memory of ``x``, and the line that called it.

    Returns the note, so that a call that writes to several tensors looks for its line once: it
    gives it as ``last_write`` for the others.
    """
    storage = x._storage or base.storage_of(x)
    storage.version += 1
    if last_write is None:
        frame = sys._getframe(1)
        frame = frame.f_back or frame  # the caller of the function that wrote, if it is Python
        code = frame.f_code
        # of_user, written out: every write in a training loop comes here
        while code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
            frame = frame.f_back
            code = frame.f_code
        last_write = operation, code, frame.f_lasti
    storage.last_write = last_write
    return last_write


def rebase_history(x: TensorBase, node: Node) -> None:
    """The values of ``x`` are now the result of ``node``."""
    whole, new = x, node
    if is_view(x):
        whole = x._view_base
        edges = (edge_of(whole), *node.edges[1:])
        saved = (node, base.layout_of(whole), base.layout_of(x))
        new = Node(_COPY_SLICES, whole, edges, saved)
    keep_retaining(whole._node, new)
    whole._node = new
    if whole is not x:
        regenerate_edge(x, version_of(x))


def save_result(node: Node, result: TensorBase) -> None:
    """Let a node save the result of a write, which exists only after it."""
    keeps = node.rule.saved_names
    saved, versions = list(node.saved), list(node.versions or [0] * len(keeps))
    at = keeps.index("out")
    saved[at], versions[at] = base.same_memory(result), version_of(result)
    node.saved, node.versions = tuple(saved), tuple(versions)


class _CopySlices(Rule):
    """A recorded write to a part of a tensor; its node saves the node that made the new part.

    The gradient of the part goes through that node; what comes out for the part's old values takes
    its place in the gradient of the whole.
    """

    def gradients(self, node: Node, g: Any, as_tensors: bool) -> Any:
        inner, source, target = [node.value(at, False) for at in range(3)]
        part = parts.read(g, source=source, target=target)
        own, *others = inner.rule.gradients(inner, part, as_tensors)
        if node.edges[0] is None:
            return (None, *others)
        own = own.to(g.dtype) if as_tensors else own  # a factor may be of a wider dtype
        return (parts.write(g, own, source=source, target=target), *others)


_COPY_SLICES = _CopySlices("copy_slices", "CopySlices", ("inner", "source", "target"), {})
_COPY_SLICES.set_saved(_COPY_SLICES.inputs)
