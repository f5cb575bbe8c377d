"""The graph: one node per recorded operation, pointing back to where its inputs came from.

A *node* is one application of a ``Rule``: the rule, the form of the result, an edge per input, and
the values that the formulas need (``autograd.saved``).

An *edge* is the node that made an input, or the input itself if it is a leaf, or None if it does
not require grad. ``autograd.marks`` tells what a tensor's ``_node`` may be that is no node.

Nodes never point to the tensor they made: a graph is freed by reference counting. A node that
needs its own result keeps the array and the storage, not the tensor.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import numpy as np

from tensorkit import base, dtypes
from tensorkit.autograd.hooks import Attached, Handle
from tensorkit.autograd.rules import XY, Rule, X, Y, saved_as
from tensorkit.autograd.saved import (
    FREED,
    Saved,
    SavedResult,
    as_it_was,
    check_version,
    refuse_freed,
    refuse_stale,
)
from tensorkit.base import Form, Tensor, TensorBase
from tensorkit.devices import CPU
from tensorkit.errors import AutogradError
from tensorkit.storage import Storage

_WITH_NAMESPACE = ("CopySlices", "CopyBackwards")
next_order = itertools.count().__next__


class Node:
    """One recorded operation. ``repr`` is its name, without an address: ``<MulBackward0>``."""

    __slots__ = ("_form", "hooks", "order", "rule")

    rule: Rule
    _form: Form  # of the result, which is also the form of the gradient that arrives here
    hooks: Attached | None
    order: int  # a node is younger than those its edges lead to: backward takes the youngest first

    @property
    def edges(self) -> tuple[Any, ...]:
        """Where the gradients go: a Node, a leaf tensor or None for each input."""
        raise NotImplementedError

    # The same, but past the nodes that a FoldedNode stands for.
    ways = property(lambda self: self.edges)

    # A kind of node defines one of the next two.

    def gradients(self, g: Any) -> tuple[Any, ...]:
        """The gradient for each edge, from the gradient of the result: arrays."""
        found = [value for _, value in self.passed(g)]
        return (*found, *[None] * (len(self.edges) - len(found)))

    def passed(self, g: Any) -> Iterable[tuple[Any, Any]]:
        """Each edge with its gradient; the last ones may be missing if they are None."""
        return zip(self.edges, self.gradients(g), strict=False)

    def value(self, name: str) -> Any:
        """A saved value: a tensor, a number, an option; None where nothing has a name."""

    def release(self) -> None:
        """Forget the saved tensors."""

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

    def unfolded(self) -> "Node":
        """This node as the user sees it; it may have stood for several until now."""
        return self

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
            array = CPU.backend.xp.asarray(value, dtype.numpy)
            return base.new(array, base.contiguous_form(CPU, array.dtype, ()))
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
    node.unfolded()
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


def _applied(formula: Callable[..., Any], needs: tuple[str, ...], g: Any, x: Any, y: Any) -> Any:
    if needs is X:
        return formula(g, x)
    if needs is Y:
        return formula(g, y)
    if not needs:
        return formula(g)
    if needs is XY:
        return formula(g, x, y)
    # an alpha other than 1 makes a GeneralNode
    return formula(g, *[x if name == "x" else y if name == "y" else 1 for name in needs])


class PairNode(Node):
    """A node of one or two inputs ``x`` and ``y`` that keeps nothing but them.

    Most nodes are of this kind; so that they are small and quickly made their fields lie open.
    ``y`` may be a number. ``versions`` is 0 if both inputs had version 0, else a pair.
    """

    __slots__ = ("left", "right", "versions", "x", "y")

    left: Any
    right: Any
    x: Any
    y: Any
    versions: Any

    @property
    def edges(self) -> tuple[Any, ...]:
        """One or two edges."""
        return (self.left,) if len(self.rule.inputs) == 1 else (self.left, self.right)

    ways = edges

    def passed(self, g: Any) -> tuple[tuple[Any, Any], ...]:
        """Both edges with their gradients."""
        rule, x, y = self.rule, self.x, self.y
        left, right, needs = self.left, self.right, rule.needs
        formulas = rule._on_arrays or rule.on_arrays
        if y is not None:
            y = y._array if isinstance(y, TensorBase) and y._storage is None else self.array("y", y)
        if x is not None:
            x = x._array if isinstance(x, TensorBase) and x._storage is None else self.array("x", x)
        first = None
        if left is not None:
            formula, names = formulas[0], needs[0]  # the commonest without a call
            first = formula(g, y) if names is Y else _applied(formula, names, g, x, y)
            if right is None:
                return ((left, first),)
            if y is x and rule.commutes:
                return (left, first), (right, first)
        formula, names = formulas[1], needs[1]
        second = formula(g, x) if names is X else _applied(formula, names, g, x, y)
        return (left, first), (right, second)

    def array(self, name: str, saved: Any) -> Any:
        """A saved input as an array; a number as it is."""
        if isinstance(saved, TensorBase):
            storage, versions = saved._storage, self.versions
            if storage is not None:
                version = versions and versions[name == "y"]
                if storage.version != version:
                    check_version(self, name, saved, version)  # raises
            return saved._array
        if saved is FREED:
            refuse_freed()
        return saved

    def value(self, name: str) -> Any:
        """A saved input as a tensor or number."""
        # an alpha other than 1 makes a GeneralNode
        saved: Any = self.x if name == "x" else self.y if name == "y" else 1
        array = self.array(name, saved)  # raises where it was freed, or written to since
        if array is saved:
            return saved
        return as_it_was(saved, self.left if name == "x" else self.right)

    def release(self) -> None:
        """Forget the saved inputs: also a number, which PyTorch saves as a tensor."""
        option = self.rule.option
        if self.x is not None and option != "x":
            self.x = FREED
        if self.y is not None and option != "y":
            self.y = FREED


class RepeatedNode(PairNode):
    """A product of two tensors of which broadcasting repeated one."""

    __slots__ = ()

    def passed(self, g: Any) -> tuple[tuple[Any, Any], ...]:
        """Both edges with their gradients, in their shapes."""
        summed: Any = self.rule.summed
        first = second = None
        if self.left is not None:
            first = summed(g, self.array("y", self.y), tuple(self.left._form.shape))
        if self.right is not None:
            second = summed(g, self.array("x", self.x), tuple(self.right._form.shape))
        return (self.left, first), (self.right, second)


class ResultNode(Node):
    """A node of one input that keeps nothing but its own result and options.

    Its storage, which counts the writes to it, is most often never made: see ``base.storage_of``.
    """

    __slots__ = ("left", "options", "saved", "storage")

    left: Any
    saved: Any  # the array, or FREED
    options: Mapping[str, Any]  # in the order in which the formula takes them, after the result
    storage: Storage | None

    @property
    def edges(self) -> tuple[Any, ...]:
        """The one edge."""
        return (self.left,)

    ways = edges

    def _checked(self) -> Any:
        if self.saved is FREED:
            refuse_freed()
        if self.storage is not None and self.storage.version:
            refuse_stale(self, "out", self._form, self.storage, 0, self)
        return self.saved

    def passed(self, g: Any) -> tuple[tuple[Any, Any], ...]:
        """The edge with its gradient."""
        rule = self.rule
        formula = (rule._on_arrays or rule.on_arrays)[0]
        return ((self.left, formula(g, self._checked(), *self.options.values())),)

    def value(self, name: str) -> Any:
        """An option, or the saved result as a tensor that this node made."""
        if name != "out":
            return self.options[name]
        result = base.new(self._checked(), self._form)
        result._node = self
        base.storage_of(result)
        return result

    def release(self) -> None:
        """Forget the saved result."""
        self.saved = FREED


base.keeper = ResultNode


class GeneralNode(Node):
    """A node of any number of inputs, with options."""

    __slots__ = ("edges", "known", "saved")

    edges: tuple[Any, ...]
    known: Mapping[str, Any]  # options
    saved: dict[str, Any]  # inputs and the result, those that are needed: Saved, a number, FREED

    def passed(self, g: Any) -> list[tuple[Any, Any]]:
        """Each edge with its gradient."""
        rule, values = self.rule, self.known
        if self.saved:
            values = {**values}
            for name, saved in self.saved.items():
                values[name] = self._array(name, saved)
        formulas, needs, value_of = rule._on_arrays or rule.on_arrays, rule.needs, values.get
        found: list[Any] = []
        for place, edge in enumerate(self.edges):
            if edge is None:
                found.append((None, None))
            else:
                formula = formulas[place] or self._refuse()
                found.append((edge, formula(g, *map(value_of, needs[place]))))
        return found

    def _array(self, name: str, saved: Any) -> Any:
        """A saved tensor as an array; a number as it is."""
        if saved.__class__ is not Saved:
            saved = self._checked(name)
            return saved.array if saved.__class__ is SavedResult else saved
        tensor = saved.tensor
        if tensor._storage is not None and tensor._storage.version != saved.version:
            self._checked(name)
        return tensor._array

    def _checked(self, name: str) -> Any:
        saved = self.saved.get(name)
        if saved is FREED:
            refuse_freed()
        if isinstance(saved, (Saved, SavedResult)):
            saved.check(self, name)
        return saved

    def save_result(self, result: TensorBase) -> None:
        """Keep the result of a write, which exists only after it."""
        self.saved["out"] = SavedResult(result)

    def _edge(self, name: str) -> Any:
        inputs = self.rule.inputs
        return self.edges[inputs.index(name)] if name in inputs else None

    def value(self, name: str) -> Any:
        """A saved value; tensors as they were."""
        if name in self.known:
            return self.known[name]
        saved = self._checked(name)
        if isinstance(saved, Saved):
            return as_it_was(saved.tensor, self._edge(name))
        return saved.tensor_of(self) if isinstance(saved, SavedResult) else saved

    def release(self) -> None:
        """Forget the saved inputs and result; the options stay."""
        if self.saved:
            self.saved = dict.fromkeys(self.saved, FREED)


_unfolding = threading.RLock()


class FoldedNode(GeneralNode):
    """A node that stands for itself and for others behind it, which nobody has looked at yet.

    A kind of it defines ``passed``, which goes past these, and ``plain``, which makes them.
    """

    __slots__ = ()

    ways = GeneralNode.__dict__["edges"]  # the same field: what is known of them so far
    edges = property(lambda self: self.unfolded().edges)

    def plain(self) -> tuple[tuple[Any, ...], Mapping[str, Any], dict[str, Any]]:
        """The edges, known values and saved values of the node that shows those behind it."""
        raise NotImplementedError

    def unfolded(self) -> GeneralNode:
        """The same node, from now on with those behind it."""
        with _unfolding:
            if isinstance(self, FoldedNode):
                edges, known, saved = self.plain()
                # without a call: no other thread sees a half of it
                self.__class__ = GeneralNode  # type: ignore[assignment]
                self.edges, self.known, self.saved = edges, known, saved
        return self

    def gradients(self, g: Any) -> tuple[Any, ...]:
        """The gradient for each edge, also to the nodes behind it."""
        self.unfolded()
        return GeneralNode.gradients(self, g)

    def value(self, name: str) -> Any:
        """A saved value."""
        return self.unfolded().value(name)


def make_node(
    rule: Rule, form: Form, edges: tuple[Any, ...], values: dict[str, Any], result: Any
) -> GeneralNode:
    """A node that keeps of ``values`` (parameter to argument) what its formulas will need.

    ``result`` is the finished result, kept where a formula needs ``out``.
    """
    known: dict[str, Any] = {}
    saved: dict[str, Any] = {}
    for name, places in rule.kept:
        value = result if name == "out" else values.get(name)
        if isinstance(value, TensorBase):
            for place in places:
                if edges[place] is not None:  # else it is of no use
                    saved[name] = SavedResult(value) if name == "out" else Saved(value)
                    break
        elif value is not None:
            # PyTorch saves a number that is an input as a tensor
            is_input = name in rule.inputs and name != rule.option
            (saved if is_input else known)[name] = value
    node = GeneralNode()
    node.rule = rule
    node._form = form
    node.hooks = None
    node.order = next_order()
    node.edges = edges
    node.known = known
    node.saved = saved
    if base.watch is not None:
        base.watch.node(node)
    return node
