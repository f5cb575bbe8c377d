"""The autograd graph as plain data: what ``graph``, ``backward``, ``saved`` and ``explain`` read.

A ``Vertex`` is an operation or a leaf. ``read`` lists them so that inputs come before what uses
them. Tensors are known where they have a name in the user's code or where a node saved them.

``fold`` makes large graphs small: what repeats becomes one *group*, or else equal stretches do. A
stretch of the graph's order can always become one box without making a circle, because every way
out of it and back would lie inside it.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any, NamedTuple

from tensorkit.autograd.node import NAMES, Node
from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.errors import AutogradError
from tensorkit.layout import Layout
from tensorkit.viz import words

LONGEST_BLOCK, MOST_DRAWN = 80, 40


class Saved(NamedTuple):
    """What an operation keeps for backward: a tensor, a number, or the error where it is gone."""

    name: str
    value: Any

    @property
    def words(self) -> str:
        """The value in words; empty if it says nothing, as a factor of 1."""
        value = self.value
        if is_tensor(value):
            return words.form(value) + ("" if value.ndim else f" = {words.values(value)}")
        if isinstance(value, AutogradError):
            is_changed = hasattr(value, "expected")
            return "changed since it was saved" if is_changed else "freed by an earlier backward"
        is_factor = self.name in ("alpha", "beta") and value == 1
        says_nothing = value is None or is_factor or isinstance(value, bool | Layout)
        return "" if says_nothing else words.number(value)


@dataclass
class Vertex:
    """An operation or a leaf. ``inputs`` are the numbers of those its gradients go to."""

    node: Any  # a node, or the leaf itself
    inputs: list[int]
    kind: str  # MulBackward0, or leaf
    name: str = ""
    tensor: Any = None  # the leaf, or a result that is still known

    @property
    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.kind == "leaf"

    @property
    def form(self) -> str:
        """Shape and dtype of its value."""
        return words.form(self.node)

    @property
    def label(self) -> str:
        """What it is called in a sentence."""
        if self.is_leaf:
            return self.name or "leaf"
        return f"{self.kind} ({self.name})" if self.name else self.kind

    @cached_property
    def saved(self) -> list[Saved]:
        """What it keeps for backward."""
        return saved_by(self.node)

    @property
    def value(self) -> str:
        """The value in words, where the tensor is known."""
        return "" if self.tensor is None else words.values(self.tensor)


def line_of(node: Any) -> str:
    """The line of code where a node was made, if a recording was on."""
    line = node.hooks.line if node.hooks is not None else None
    return "" if line is None else words.code_line(*line)


def _inputs_of(node: Any) -> list[Any]:
    """Where the gradients of a node go: nodes and leaf tensors."""
    edges = () if is_tensor(node) else node.edges
    return [edge for edge in edges if edge is not None]


def order(root: Tensor) -> list[Any]:
    """The nodes and leaves behind ``root``, inputs first."""
    done: list[Any] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root.grad_fn or root, False)]  # no recursion: graphs are deep
    while stack:
        node, is_finished = stack.pop()
        if is_finished:
            done.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((source, False) for source in reversed(_inputs_of(node)))
    return done


def read(root: Tensor) -> list[Vertex]:
    """Every operation and leaf behind ``root``; the last is the root's own."""
    nodes = order(root)
    numbers = {id(node): number for number, node in enumerate(nodes)}
    vertices = []
    for node in nodes:
        kind = "leaf" if is_tensor(node) else node.name().rpartition(":")[2]
        tensor = node if is_tensor(node) else None
        inputs = [numbers[id(source)] for source in _inputs_of(node)]
        vertices.append(Vertex(node, inputs, kind, tensor=tensor))
    kept = [("", s.value) for vertex in vertices for s in vertex.saved if is_tensor(s.value)]
    for name, x in reversed([*words.named_tensors(), ("", root), *kept]):  # the first name wins
        number = numbers.get(id(x if x.is_leaf else x.grad_fn)) if x.requires_grad else None
        if number is not None:
            vertices[number].name = name or vertices[number].name
            vertices[number].tensor = x
    return vertices


def saved_by(node: Any) -> list[Saved]:
    """What a node keeps for backward; a leaf keeps nothing."""
    if is_tensor(node):
        return []
    if node.name().endswith("CopySlices") and isinstance(node.saved[0], Node):
        node = node.saved[0]  # a write to a part keeps what the write kept
    found = []
    for at, keep in enumerate(node.rule.saved_names[: len(node.saved)]):
        try:
            value = node.value(at, True)
        except AutogradError as error:
            value = error
        if keep != "shape" or not node.rule.is_part:  # of a part the index says it already
            found.append(Saved(NAMES.get(keep, keep), value))
    return sorted(found, key=lambda saved: saved.name)


def errors(root: Tensor) -> list[AutogradError]:
    """The errors that saved values behind ``root`` raise: freed, or changed since; newest first."""
    kept = (saved.value for node in reversed(order(root)) for saved in saved_by(node))
    return [value for value in kept if isinstance(value, AutogradError)]


class Group(NamedTuple):
    """Vertices drawn as one box: ``times`` times the same operations, one after the other."""

    members: list[int]
    times: int = 1


def fold(vertices: list[Vertex]) -> list[Group]:
    """Groups that hold each vertex once, in an order in which inputs come first."""
    if len(vertices) <= MOST_DRAWN:
        return [Group([number]) for number in range(len(vertices))]
    operations = [number for number, vertex in enumerate(vertices) if not vertex.is_leaf]
    folded = _with_leaves(vertices, _repeated_blocks(vertices, operations))
    if len(folded) <= MOST_DRAWN:
        return folded
    *rest, last = operations
    size = -(-2 * len(rest) // MOST_DRAWN)
    stretches = [Group(rest[start : start + size]) for start in range(0, len(rest), size)]
    return _with_leaves(vertices, [*stretches, Group([last])])


def _repeated_blocks(vertices: list[Vertex], operations: list[int]) -> list[Group]:
    """The operations, with each block that follows itself at least twice as one group."""
    labels = [(vertices[number].kind, vertices[number].form) for number in operations]

    def repeats(start: int, block: int) -> int:
        parts = (labels[at : at + block] for at in range(start, len(labels), block))
        return sum(1 for _ in takewhile(labels[start : start + block].__eq__, parts))

    groups, start = [], 0
    while start < len(labels):
        best = (0, -1, 1)  # operations saved, the shortest block of these, how often it is there
        for block in range(1, min(LONGEST_BLOCK, (len(labels) - start) // 3) + 1):
            if labels[start] == labels[start + block] and (times := repeats(start, block)) > 2:
                best = max(best, (block * (times - 1), -block, times))
        _, block, times = best
        groups.append(Group(operations[start : start - block * times], times))
        start -= block * times
    return groups


def _with_leaves(vertices: list[Vertex], groups: list[Group]) -> list[Group]:
    """Each leaf inside the folded group that uses it first, or before all groups."""
    leaves, placed = [], set[int]()
    for group in groups:
        is_folded = len(group.members) > 1
        for source in (source for member in [*group.members] for source in vertices[member].inputs):
            if vertices[source].is_leaf and source not in placed:
                placed.add(source)
                group.members.append(source) if is_folded else leaves.append(Group([source]))
    return [*leaves, *groups]


def edges(vertices: list[Vertex], groups: list[Group]) -> list[tuple[int, int]]:
    """The edges between groups: (from, to), each once if something is folded."""
    group_of = {member: number for number, group in enumerate(groups) for member in group.members}
    ends = [
        (group_of[source], group_of[number])
        for number, vertex in enumerate(vertices)
        for source in vertex.inputs
        if group_of[source] != group_of[number]
    ]
    return ends if len(groups) == len(vertices) else list(dict.fromkeys(ends))
