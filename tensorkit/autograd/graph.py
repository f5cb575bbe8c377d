"""The graph: one node per recorded operation, pointing back to where its inputs came from.

A *node* is one application of a ``Rule``: the rule, an edge per input, the values that the formulas
need, and shape and dtype of the result.

An *edge* is the node that made an input, or the input itself if it is a leaf, or None if it does
not require grad. ``autograd.marks`` tells what a tensor's ``_node`` may be that is no node.

Nodes never point to the tensor they made: a graph is freed by reference counting. A node that
needs its own result keeps the array and the storage, not the tensor.
"""

import itertools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tensorkit import base, dtypes, kernels
from tensorkit.autograd.hooks import Attached, Handle
from tensorkit.autograd.rules import Rule, saved_as
from tensorkit.autograd.saved import (
    FREED,
    as_it_was,
    maker_of,
    refuse_freed,
    refuse_inference,
    refuse_stale,
)
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of
from tensorkit.errors import AutogradError

_WITH_NAMESPACE = ("CopySlices", "CopyBackwards")
_ndarray = np.ndarray
next_order = itertools.count().__next__
_FREED = [(FREED,) * n for n in range(65)]
ALPHA_IS_1 = (1,)  # what a sum saves: nothing that is ever freed


class Node:
    """One recorded operation. ``repr`` is its name, without an address: ``<MulBackward0>``."""

    __slots__ = ("device", "dtype", "edges", "hooks", "order", "rule", "saved", "shape", "versions")

    rule: Rule
    edges: Any  # a tuple: where the gradients go: a Node, a leaf or None for each input
    saved: tuple[Any, ...]  # by rule.keeps: tensors, numbers, options; None for what is not needed
    versions: Any  # those of the saved tensors when they were saved; 0 if all were 0
    order: int  # a node is younger than those its edges lead to: backward takes the youngest first
    shape: tuple[int, ...]  # of the result, and of the gradient that arrives here
    dtype: Any  # of its array
    device: Any
    hooks: Attached | None

    def gradients(self, g: Any) -> tuple[Any, ...]:  # noqa: C901 - without calls
        """The gradient for each edge, from the gradient of the result: arrays."""
        rule, versions, values = self.rule, self.versions, []
        for at, value in enumerate(self.saved):
            if isinstance(value, TensorBase):
                storage = value._storage
                if storage is not None and storage.version != (versions and versions[at]):
                    self._refuse_stale(at)
                value = value._array
            elif value is FREED:
                refuse_freed()
            values.append(value)
        if g.__class__ is not _ndarray:
            return self._on_device(g, values)
        found: list[Any] = []
        for edge, (formula, places) in zip(self.edges, rule.ways, strict=False):
            if edge is None:
                found.append(None)
            elif formula is None:
                self._refuse()
            elif len(places) == 1:
                found.append(formula(g, values[places[0]]))
            elif not places:
                found.append(formula(g))
            else:
                found.append(formula(g, *[values[place] for place in places]))
        return tuple(found)

    def _on_device(self, g: Any, values: list[Any]) -> tuple[Any, ...]:
        """The gradients as arrays of a device; a formula that is a kernel is launched."""
        found: list[Any] = []
        for edge, (formula, places) in zip(self.edges, self.rule.ways, strict=False):
            if edge is None:
                found.append(None)
                continue
            if formula is None:
                self._refuse()
            saved = [values[place] for place in places]
            arrays, xp = [each for each in saved if hasattr(each, "dtype")], backend_of(g).xp
            launch: Any = getattr(formula, "launch", None)
            is_kernel = launch is not None and kernels.are_for(xp, g, *arrays)
            found.append(launch(xp, g, *saved) if is_kernel else formula(g, *saved))
        return tuple(found)

    def tensor_gradients(self, g: Tensor) -> tuple[Any, ...]:
        """The gradient for each edge as tensors, computed by recorded operations."""
        formulas, needs = self.rule.formulas, self.rule.needs
        found: list[Any] = []
        for place, edge in enumerate(self.edges):
            if edge is None:
                found.append(None)
            else:
                formula = formulas[place] or self._refuse()
                found.append(formula(g, *map(self.value, needs[place])))
        return tuple(found)

    def value(self, name: str) -> Any:
        """A saved value: a tensor as it was, a number, an option; None if nothing has the name."""
        rule = self.rule
        if name not in rule.keeps or not self.saved:
            return None
        at = rule.keeps.index(name)
        value = self.saved[at]
        if value is FREED:
            refuse_freed()
        if not isinstance(value, TensorBase):
            return value
        if value._storage is not None and value._storage.version != (
            self.versions and self.versions[at]
        ):
            self._refuse_stale(at)
        if name == "out":
            value = base.same_memory(value)
            value._node = self
            return value
        place = rule.inputs.index(name) if name in rule.inputs else None
        return as_it_was(value, None if place is None else self.edges[place])

    def _refuse_stale(self, at: int) -> NoReturn:
        name, value = self.rule.keeps[at], self.saved[at]
        maker = self if name == "out" else maker_of(value)
        refuse_stale(self, name, value, self.versions and self.versions[at], maker)

    def release(self) -> None:
        """Forget the saved tensors, and numbers that are inputs; options stay."""
        saved, rule = self.saved, self.rule
        if not saved or saved is ALPHA_IS_1:
            return
        if rule.frees_all:
            self.saved = _FREED[len(saved)]
            return
        self.saved = tuple(
            [
                FREED if value is not None and (frees or isinstance(value, TensorBase)) else value
                for value, frees in zip(saved, rule.frees, strict=True)
            ]
        )

    def attached(self) -> Attached:
        """What is attached to this node, made when first asked for."""
        if self.hooks is None:
            self.hooks = Attached()
        return self.hooks

    def _refuse(self) -> NoReturn:
        name = self.rule.name
        raise AutogradError(
            f"derivative for aten::{name} is not implemented",
            repair="x.detach() before it, if no gradient should flow",
        )

    def name(self) -> str:
        """The name that PyTorch gives this kind of node."""
        node = self.rule.node
        return f"torch::autograd::{node}" if node in _WITH_NAMESPACE else node

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of the inputs, each with the number of the output; None where no grad flows.

        A leaf is represented by an AccumulateGrad, made when asked.
        """
        edges = list(self.edges)
        edges += [None] * (len(self.rule.inputs) - len(edges))
        return tuple(
            (AccumulateGrad(edge), 0)
            if isinstance(edge, TensorBase)
            else (edge, 0)
            if edge is None
            else (shown(edge.whole), edge.output_nr)
            for place, edge in enumerate(edges)
            if not self.is_option(place)
        )

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node was run in backward.

        Both are tuples; a tuple that it returns takes the place of ``grad_inputs``.
        """
        return Handle(self.attached().after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(grad_outputs)`` before this node is run; it may return others."""
        return Handle(self.attached().before, hook)

    @property
    def metadata(self) -> dict[Any, Any]:
        """Whatever the user wants to note about this node."""
        return self.attached().metadata

    @property
    def whole(self) -> "Node":
        """The node that this one is an output of: itself, unless it has several."""
        return self

    output_nr = 0

    def allow_write(self) -> None:
        """Raise where a write to the result of this node would spoil the graph."""

    def is_option(self, place: int) -> bool:
        """Whether the input at ``place`` is an option to PyTorch: it has no edge there."""
        rule = self.rule
        return (
            rule.option is not None
            and place < len(rule.inputs)
            and rule.inputs[place] == rule.option
        )

    def shown_value(self, name: str) -> Any:
        """A saved value as PyTorch shows it: sizes as a tuple, a number that is an input as a
        tensor."""
        value = self.value(name)
        if name == "shape":
            return tuple(value)
        rule = self.rule
        if name in rule.inputs and name != rule.option and isinstance(value, (bool, int, float)):
            dtype = dtypes.float64 if isinstance(value, float) else dtypes.of_number(value)
            return base.new(CPU.backend.xp.asarray(value, dtype.numpy))
        return value

    def __dir__(self) -> list[str]:
        saved = [saved_as(self.rule, name) for name in self.rule.keeps]
        return sorted({*object.__dir__(self), *saved})

    def __repr__(self) -> str:
        return f"<{self.rule.node}>"


def shown(node: Node) -> Node:
    """``node``, from now on as the user sees it: what it saved are attributes.

    For that it gets a class of its own, with PyTorch's name. The others have no ``__getattr__``:
    with one, CPython 3.11 would look up every attribute of every node the slow way.
    """
    kind = type(node)
    if not hasattr(kind, "__getattr__"):
        face = _faces.get((kind, node.rule.node))
        if face is None:
            body = {"__slots__": (), "__module__": __name__, "__getattr__": _saved_attribute}
            face = _faces[kind, node.rule.node] = type(node.rule.node, (kind,), body)
        node.__class__ = face
    return node


_faces: dict[tuple[type, str], type] = {}


def _saved_attribute(node: Node, attribute: str) -> Any:
    rule = node.rule
    if attribute.startswith("_saved_"):
        for name in rule.keeps:
            if attribute == saved_as(rule, name):
                return node.shown_value(name)
        if attribute == "_saved_self_sym_sizes" and "source" in rule.keeps:
            return node.value("source").shape
    raise AttributeError(f"'{rule.node}' object has no attribute '{attribute}'")


class AccumulateGrad:
    """Stands for a leaf in ``next_functions``; ``variable`` is the leaf."""

    __slots__ = ("variable",)

    next_functions: tuple[tuple[Any, int], ...] = ()

    def __init__(self, variable: TensorBase) -> None:
        self.variable = variable

    def name(self) -> str:
        """The name of this node."""
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook((), grad_outputs)`` after the gradient was added to ``variable.grad``."""
        return Handle(attached_to(self.variable).after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(grad_outputs)`` before the gradient is added to ``variable.grad``."""
        return Handle(attached_to(self.variable).before, hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return hash(("AccumulateGrad", id(self.variable)))

    def __repr__(self) -> str:
        return "<AccumulateGrad>"


class Parts:
    """Gradients for some of the outputs of a node that has several."""

    __slots__ = ("values",)

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values

    def __add__(self, other: "Parts") -> "Parts":
        total = dict(self.values)
        for place, value in other.values.items():
            if place in total:  # a sum of two 0-d arrays would be a NumPy scalar
                value = total[place] + value
                value = np.asarray(value) if isinstance(value, np.generic) else value
            total[place] = value
        return Parts(total)


def attached_to(leaf: TensorBase) -> Attached:
    """What is attached to a leaf, made when first asked for."""
    found = getattr(leaf, "_hooks", None)
    if found is None:
        found = leaf._hooks = Attached()
    return found


def make_node(
    rule: Rule, x: TensorBase, edges: tuple[Any, ...], values: dict[str, Any], result: Any
) -> Node:
    """A node that keeps of ``values`` (parameter to argument) what its formulas will need.

    ``x`` has the shape and dtype of the result; ``result`` is the finished result, of which a
    node keeps the memory where a formula needs ``out``.
    """
    saved, versions, is_needed = [], [], False
    for name, users in rule.kept:
        value = result if name == "out" else values.get(name)
        version = 0
        if isinstance(value, TensorBase):
            for place in users:
                if edges[place] is not None:
                    break
            else:
                value = None
            if value is not None:
                refuse_inference(value)
                if name == "out":  # the tensor would point back to the node
                    value = base.same_memory(value)
                version = 0 if value._storage is None else value._storage.version
        if value is not None:
            is_needed = True
        saved.append(value)
        versions.append(version)
    node = Node()
    node.rule = rule
    node.edges = edges
    node.saved = tuple(saved) if is_needed else ()
    node.versions = tuple(versions) if any(versions) else 0
    node.order = next_order()
    node.shape, node.dtype, node.device = x._array.shape, x._array.dtype, x.device
    node.hooks = None
    if base.watch is not None:
        base.watch.node(node)
    return node


def save_result(node: Node, result: TensorBase) -> None:
    """Keep the result of a write, which exists only after it."""
    at = node.rule.keeps.index("out")
    kept = base.same_memory(result)
    saved, versions = list(node.saved), list(node.versions or [0] * len(node.rule.keeps))
    saved = saved or [None] * len(node.rule.keeps)
    saved[at], versions[at] = kept, base.storage_of(result).version
    node.saved, node.versions = tuple(saved), tuple(versions)
