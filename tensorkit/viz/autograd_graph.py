"""The autograd graph as plain data: what ``graph``, ``backward``, ``saved`` and ``explain`` read.

A ``Vertex`` is an operation or a leaf. ``read`` lists them so that inputs come before what uses
them. Tensors are known where they have a name in the caller's code or where a node saved them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tensorkit.autograd.node import NAMES, Node
from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.errors import AutogradError
from tensorkit.layout import Layout
from tensorkit.viz import words

_OMITTED = (("alpha", 1), ("beta", 1))  # factors that change nothing


@dataclass
class Saved:
    """What an operation keeps for backward: its name, words, and the tensor if it is one.

    ``error`` is what the value raises if it was freed, or changed since it was saved.
    """

    name: str
    words: str
    tensor: Any = None
    error: AutogradError | None = None


@dataclass
class Vertex:
    """An operation or a leaf. ``inputs`` are numbers in the list, None where no gradient goes."""

    node: Any  # a node, or the leaf itself
    is_leaf: bool
    inputs: list[int | None]
    title: str
    form: str
    name: str = ""
    tensor: Any = None  # the leaf, or a result that is still known

    @property
    def label(self) -> str:
        """What it is called in a sentence."""
        has_own_name = self.name and self.name != self.title
        return f"{self.title} ({self.name})" if has_own_name else self.title

    @cached_property
    def saved(self) -> list[Saved]:
        """What the operation keeps for backward."""
        return [] if self.is_leaf else saved_by(self.node)

    @property
    def value(self) -> str:
        """The value in words, where the tensor is known."""
        return "" if self.tensor is None else words.values(self.tensor)

    @property
    def line(self) -> str:
        """The line of code, if a recording was on."""
        line = None if self.is_leaf else line_of(self.node)
        return "" if line is None else words.code_line(*line)


def line_of(node: Any) -> tuple[str, int] | None:
    """File and line where a node was made, if a recording was on."""
    return None if node.hooks is None else node.hooks.line


def inputs_of(node: Any) -> list[Any]:
    """Where the gradients of a node go: nodes, leaf tensors, or None."""
    if is_tensor(node):
        return []
    return [
        it.variable if it is not None and it.name().endswith("AccumulateGrad") else it
        for it, _ in node.next_functions
    ]


def order(root: Any) -> list[Any]:
    """The nodes and leaves below ``root``, inputs first."""
    done: list[Any] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]  # no recursion: graphs are deep
    while stack:
        node, is_finished = stack.pop()
        if is_finished:
            done.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((it, False) for it in reversed(inputs_of(node)) if it is not None)
    return done


def read(root: Tensor, named: Iterable[tuple[str, Tensor]], *, values: bool = True) -> list[Vertex]:
    """Every operation and leaf behind ``root``; the last is the root's own."""
    nodes = order(root.grad_fn if root.grad_fn is not None else root)
    numbers = {id(node): number for number, node in enumerate(nodes)}
    vertices: list[Vertex] = []
    for node in nodes:
        is_leaf = is_tensor(node)
        inputs = [None if it is None else numbers[id(it)] for it in inputs_of(node)]
        title = "leaf" if is_leaf else node.name().rpartition(":")[2]
        tensor = node if is_leaf and values else None
        # PyTorch has the form as _input_metadata: what the gradient that arrives must be like
        vertices.append(Vertex(node, is_leaf, inputs, title, words.form(node), "", tensor))
    known = [*named, ("", root)]
    if values:
        known += [("", it.tensor) for v in vertices for it in v.saved if it.tensor is not None]
    for name, x in reversed(known):  # the first one that is known wins
        node = x if x.is_leaf else x.grad_fn
        if x.requires_grad and id(node) in numbers:
            vertex = vertices[numbers[id(node)]]
            vertex.name = name or vertex.name
            vertex.title = vertex.name if vertex.is_leaf and vertex.name else vertex.title
            vertex.tensor = x if values else None
    return vertices


def saved_by(node: Any) -> list[Saved]:
    """What a node keeps for backward, in words; also that it was freed or changed."""
    if node.name().endswith("CopySlices") and isinstance(node.saved[0], Node):
        node = node.saved[0]  # a write to a part keeps what the write kept
    found: list[Saved] = []
    for at, keep in enumerate(node.rule.keeps[: len(node.saved)]):
        name = NAMES.get(keep, keep)
        if keep == "shape" and node.rule.part is not None:
            continue  # a view of a part: the index says it already
        try:
            value = node.value(at)
        except AutogradError as error:
            is_changed = hasattr(error, "expected")
            why = "changed since it was saved" if is_changed else "freed by an earlier backward"
            found.append(Saved(name, why, error=error))
            continue
        if is_tensor(value):
            text = words.form(value)
            text = text if value.ndim else f"{text} = {words.values(value)}"
            found.append(Saved(name, text, value))
        elif not (value is None or isinstance(value, bool | Layout) or (name, value) in _OMITTED):
            found.append(Saved(name, words.number(value)))
    return sorted(found, key=lambda it: it.name)


def errors(nodes: Iterable[Any]) -> list[AutogradError]:
    """The errors that saved values raise which were freed, or changed since they were saved."""
    found = [it.error for node in nodes if not is_tensor(node) for it in saved_by(node)]
    return [it for it in found if it is not None]
