"""The autograd graph as plain data: what ``graph``, ``backward`` and ``saved`` draw.

A ``Vertex`` is an operation or a leaf. ``read`` lists them so that inputs come before what uses
them. It reads ``grad_fn``, ``next_functions`` and the ``_saved_`` attributes, and, for values that
nobody saved, tensors that have a name in the caller's code or that a recording remembers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorkit.autograd.function import FunctionNode
from tensorkit.autograd.graph import AccumulateGrad, AutogradError, saved_as
from tensorkit.data import is_tensor
from tensorkit.layout import Layout
from tensorkit.viz import words

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor

MOST_RECORDED = 500


@dataclass
class Saved:
    """What an operation kept for backward: PyTorch's name, words, the tensor if it is one."""

    name: str
    words: str
    tensor: Any = None


@dataclass
class Vertex:
    """An operation or a leaf. ``inputs`` are places in the list, None where no gradient goes."""

    node: Any  # a Node, or the leaf itself
    is_leaf: bool
    inputs: list[int | None]
    title: str
    form: str
    name: str = ""
    value: str = ""
    retains_grad: bool = False
    line: str = ""  # of the code, if a recording was on
    saved: list[Saved] = field(default_factory=list)

    @property
    def label(self) -> str:
        """What it is called in a sentence."""
        return (
            f"{self.title} ({self.name})" if self.name and self.name != self.title else self.title
        )


def order(root: Any) -> list[Any]:
    """The nodes and leaves below ``root``, inputs first, by a walk that is no recursion."""
    done: list[Any] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, is_finished = stack.pop()
        if is_finished:
            done.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((it, False) for it in reversed(inputs_of(node)) if it is not None)
    return done


def inputs_of(node: Any) -> list[Any]:
    """Where the gradients of a node go: nodes, leaf tensors, or None."""
    if is_tensor(node):
        return []
    return [it.variable if isinstance(it, AccumulateGrad) else it for it, _ in node.next_functions]


def read(
    root: "Tensor", named: Iterable[tuple[str, "Tensor"]], *, values: bool = True
) -> list[Vertex]:
    """Every operation and leaf behind ``root``; the last is the root's own."""
    known = _known(root, named)
    nodes = order(root.grad_fn if root.grad_fn is not None else root)
    place = {id(node): number for number, node in enumerate(nodes)}
    vertices = []
    for node in nodes:
        is_leaf = is_tensor(node)
        name, tensor = known.get(id(node), ("", node if is_leaf else None))
        inputs = [None if it is None else place[id(it)] for it in inputs_of(node)]
        vertex = Vertex(node, is_leaf, inputs, "", "", name)
        if is_leaf:
            vertex.title, vertex.form = name or "leaf", words.form(node.shape, node.dtype)
        else:
            vertex.title, vertex.form = node.name().rpartition(":")[2], _form(node)
            vertex.saved = saved_by(node)
            vertex.retains_grad = tensor is not None and tensor.retains_grad
            if node.hooks is not None and node.hooks.line is not None:
                vertex.line = words.place(*node.hooks.line)
        if tensor is not None and values:
            vertex.value = words.values(tensor)
        vertices.append(vertex)
    if values:
        _values_from_saved(vertices)
    return vertices


def _known(
    root: "Tensor", named: Iterable[tuple[str, "Tensor"]]
) -> dict[int, tuple[str, "Tensor"]]:
    """Name and tensor by the id of the node that made it, or of the leaf."""
    known: dict[int, tuple[str, Tensor]] = {}
    for name, x in [*named, ("", root)]:
        if x.requires_grad:
            known.setdefault(id(x if x.is_leaf else x.grad_fn), (name, x))
    _add_recorded(known, root)
    return known


def _add_recorded(known: dict[int, tuple[str, "Tensor"]], root: "Tensor") -> None:
    """Add the intermediate results that a recording remembers.

    An origin names the operation that was called. Where that is one node, its inputs that require
    grad are, in order, the inputs of the node.
    """
    waiting = [(root, root.grad_fn)]
    for x, node in waiting:  # grows while it is walked
        origin = x.origin
        if origin is None or node is None or len(waiting) > MOST_RECORDED:
            continue
        if origin.operation.rstrip("_") != node.rule.name:
            continue
        sources = [it for it in inputs_of(node) if it is not None]
        tensors = [it for it in origin.inputs if it.requires_grad]
        for source, tensor in zip(sources, tensors, strict=False):
            fits = len(sources) == len(tensors) and not is_tensor(source)
            if fits and id(source) not in known:
                known[id(source)] = ("", tensor)
                waiting.append((tensor, source))


def _form(node: Any) -> str:
    # PyTorch has this as _input_metadata: what the gradient that arrives must be like
    return words.form(node._form.shape, node._form.dtype)


def saved_by(node: Any) -> list[Saved]:
    """What a node keeps for backward, in words; a freed or a changed value is told as such."""
    inner = getattr(node, "inner", node)  # a write to a part keeps what the write kept
    found: list[Saved] = []
    if isinstance(inner, FunctionNode):
        return _saved_by_function(inner)
    for name in sorted(inner.rule.keeps, key=lambda name: saved_as(inner.rule, name)):
        attribute = saved_as(inner.rule, name)
        try:
            value = getattr(inner, attribute)
        except AutogradError as error:
            found.append(Saved(attribute, _why_gone(error)))
            continue
        if is_tensor(value):
            told = words.form(value.shape, value.dtype)
            if not value.ndim:
                told += f" = {words.values(value)}"
            found.append(Saved(attribute, told, value))
        elif not isinstance(value, Layout) and value not in (None, 1 if name == "alpha" else None):
            found.append(Saved(attribute, words.number(value)))
    return found


def _saved_by_function(node: FunctionNode) -> list[Saved]:
    """What a user's function saved by ``ctx.save_for_backward``."""
    try:
        kept = [it for it in node.saved_tensors if it is not None]
    except AutogradError as error:
        return [Saved("saved_tensors", _why_gone(error))]
    return [Saved("saved_tensors", words.form(it.shape, it.dtype), it) for it in kept]


def _why_gone(error: AutogradError) -> str:
    is_changed = hasattr(error, "version")
    return "changed since it was saved" if is_changed else "freed by an earlier backward"


def _values_from_saved(vertices: list[Vertex]) -> None:
    """Fill in the values of results that the operation using them, or making them, saved."""
    for vertex in vertices:
        rule = None if vertex.is_leaf else getattr(vertex.node, "rule", None)
        if rule is None:
            continue
        for place, source in enumerate(vertex.inputs):
            if source is None or vertices[source].value or place >= len(rule.inputs):
                continue
            name = saved_as(rule, rule.inputs[place])
            for saved in vertex.saved:
                if saved.name == name and saved.tensor is not None:
                    vertices[source].value = words.values(saved.tensor)
        for saved in vertex.saved:
            if saved.name == "_saved_result" and saved.tensor is not None and not vertex.value:
                vertex.value = words.values(saved.tensor)
