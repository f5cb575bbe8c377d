"""The autograd graph as plain data: what ``graph``, ``backward`` and ``saved`` draw.

A ``Vertex`` is an operation or a leaf. ``read`` lists them so that inputs come before what uses
them. It reads the edges of nodes and the ``_saved_`` attributes, and, for values that
nobody saved, tensors that have a name in the caller's code or that a recording remembers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tensorkit.autograd.function import FunctionNode
from tensorkit.autograd.rules import saved_as
from tensorkit.base import Tensor
from tensorkit.data import is_tensor
from tensorkit.errors import AutogradError
from tensorkit.layout import Layout
from tensorkit.viz import words

MOST_RECORDED = 500
_PLAIN = (("alpha", 1), ("beta", 1))  # factors that change nothing


@dataclass
class Saved:
    """What an operation kept for backward: PyTorch's name, words, the tensor if it is one."""

    name: str
    words: str
    tensor: Any = None


@dataclass
class Vertex:
    """An operation or a leaf. ``inputs`` are places in the list, None where no gradient goes.

    What it kept and its value are looked up when asked for: of a large graph few are drawn.
    """

    node: Any  # a Node, or the leaf itself
    is_leaf: bool
    inputs: list[int | None]
    title: str
    form: str
    name: str = ""
    tensor: Any = None  # the leaf, or a result that is still known
    shows_value: bool = True
    users: list[tuple["Vertex", int]] = field(default_factory=list)  # and the number of the input

    @property
    def label(self) -> str:
        """What it is called in a sentence."""
        return (
            f"{self.title} ({self.name})" if self.name and self.name != self.title else self.title
        )

    @cached_property
    def saved(self) -> list[Saved]:
        """What the operation keeps for backward."""
        return [] if self.is_leaf else saved_by(self.node)

    @property
    def retains_grad(self) -> bool:
        """Whether ``retain_grad`` was called on the result."""
        return not self.is_leaf and self.tensor is not None and bool(self.tensor.retains_grad)

    @property
    def line(self) -> str:
        """The line of code, if a recording was on."""
        hooks = None if self.is_leaf else self.node.hooks
        return words.place(*hooks.line) if hooks is not None and hooks.line is not None else ""

    @cached_property
    def value(self) -> str:
        """The value in words, as far as the tensor or somebody who saved it is still there."""
        if not self.shows_value:
            return ""
        kept = {it.name: it.tensor for it in self.saved}
        found = [self.tensor, kept.get("_saved_result")]
        for user, number in self.users:
            rule = user.node.rule
            if number < len(rule.inputs):
                name = saved_as(rule, rule.inputs[number])
                found += [it.tensor for it in user.saved if it.name == name]
        return next((words.values(it) for it in found if it is not None), "")


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


def leads_to(root: Any, leaf: Tensor, most: int) -> bool:
    """Whether a leaf is among the first ``most`` nodes below ``root``."""
    seen = {id(root)}
    waiting = [root]
    for node in waiting:  # grows while it is walked
        for it in () if is_tensor(node) else node.edges:
            if it is leaf:
                return True
            if it is not None and id(it) not in seen and len(waiting) < most:
                seen.add(id(it))
                waiting.append(it)
    return False


def inputs_of(node: Any) -> list[Any]:
    """Where the gradients of a node go, as in ``next_functions``: nodes, leaf tensors, or None."""
    if is_tensor(node):
        return []
    return [
        it if it is None or is_tensor(it) else it.whole
        for place, it in enumerate(node.edges)
        if not node.is_option(place)
    ]


def read(root: Tensor, named: Iterable[tuple[str, Tensor]], *, values: bool = True) -> list[Vertex]:
    """Every operation and leaf behind ``root``; the last is the root's own."""
    known = _known(root, named)
    nodes = order(root.grad_fn if root.grad_fn is not None else root)
    place = {id(node): number for number, node in enumerate(nodes)}
    vertices: list[Vertex] = []
    for node in nodes:
        is_leaf = is_tensor(node)
        name, tensor = known.get(id(node), ("", node if is_leaf else None))
        inputs = [None if it is None else place[id(it)] for it in inputs_of(node)]
        title = name or "leaf" if is_leaf else node.name().rpartition(":")[2]
        # PyTorch has the form as _input_metadata: what the gradient that arrives must be like
        form = words.form(node)
        vertex = Vertex(node, is_leaf, inputs, title, form, name, tensor, values)
        for number, source in enumerate(inputs):
            if source is not None:
                vertices[source].users.append((vertex, number))
        vertices.append(vertex)
    return vertices


def _known(root: Tensor, named: Iterable[tuple[str, Tensor]]) -> dict[int, tuple[str, Tensor]]:
    """Name and tensor by the id of the node that made it, or of the leaf."""
    known: dict[int, tuple[str, Tensor]] = {}
    for name, x in [*named, ("", root)]:
        if x.requires_grad:
            known.setdefault(id(x if x.is_leaf else x.grad_fn), (name, x))
    _add_recorded(known, root)
    return known


def _add_recorded(known: dict[int, tuple[str, Tensor]], root: Tensor) -> None:
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


def saved_by(node: Any) -> list[Saved]:
    """What a node keeps for backward, in words; a freed or a changed value is told as such."""
    inner = getattr(node, "inner", node)  # a write to a part keeps what the write kept
    found: list[Saved] = []
    if isinstance(inner, FunctionNode):
        return _saved_by_function(inner)
    for name in sorted(inner.rule.keeps, key=lambda name: saved_as(inner.rule, name)):
        if name == "shape" and inner.rule.part is not None:
            continue  # of a view of a part
        attribute = saved_as(inner.rule, name)
        try:
            value = inner.shown_value(name)
        except AutogradError as error:
            found.append(Saved(attribute, _why_gone(error)))
            continue
        if is_tensor(value):
            told = words.form(value)
            if not value.ndim:
                told += f" = {words.values(value)}"
            found.append(Saved(attribute, told, value))
        elif not (value is None or isinstance(value, (bool, Layout)) or (name, value) in _PLAIN):
            found.append(Saved(attribute, words.number(value)))
    return found


def refusals(nodes: Iterable[Any]) -> Iterator[AutogradError]:
    """The errors that saved values raise which were changed or freed, one a node."""
    for node in nodes:
        inner = getattr(node, "inner", node)
        if is_tensor(inner):
            continue
        try:
            if isinstance(inner, FunctionNode):
                _ = inner.saved_tensors
            else:
                for name in sorted(inner.rule.keeps):
                    inner.value(name)
        except AutogradError as error:
            yield error


def _saved_by_function(node: FunctionNode) -> list[Saved]:
    """What a user's function saved by ``ctx.save_for_backward``."""
    try:
        kept = [it for it in node.saved_tensors if it is not None]
    except AutogradError as error:
        return [Saved("saved_tensors", _why_gone(error))]
    return [Saved("saved_tensors", words.form(it), it) for it in kept]


def _why_gone(error: AutogradError) -> str:
    is_changed = hasattr(error, "version")
    return "changed since it was saved" if is_changed else "freed by an earlier backward"
