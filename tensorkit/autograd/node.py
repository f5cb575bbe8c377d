"""The graph: one node per recorded operation, pointing back to where its inputs came from.

A *node* is one application of a ``Rule``: the rule, an edge per input, the values that the formulas
need, and shape and dtype of the result. An *edge* is the node that made an input, the input itself
if it is a leaf, or None if it does not require grad. Nodes do not point to the tensor they made, so
that a graph is freed by reference counting. In ``x.mul_(x)`` and its like the node saves ``x``
itself as ``other``: only there the two form a cycle.

What autograd knows of a tensor is its ``_node``:

    None          does not require grad: by far the commonest, and asked for first
    LEAF          a leaf that requires grad
    a Node        the result of a recorded operation
    VIEW          a view of another tensor: ``edge_of`` finds out when it matters
    NO_GRAD_VIEW  the same, made under no_grad
    INFERENCE     made in inference mode
"""

import itertools
import re
from collections.abc import Callable, Mapping
from enum import Enum
from operator import itemgetter
from typing import Any, NoReturn

from tensorkit import base
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError, NotSupportedError, sizes
from tensorkit.storage import Storage
from tensorkit.thread_state import state

# What stands for a node in ``_node``; FREED stands where a node saved a value until its graph was
# freed.
Marker = Enum("Marker", "LEAF VIEW NO_GRAD_VIEW INFERENCE FREED")
LEAF, VIEW, NO_GRAD_VIEW, INFERENCE, FREED = Marker

_new = object.__new__
next_order = itertools.count().__next__


class Rule:
    """The gradient formulas of an operation, one per input, and what they need.

    A formula is written in operations and operators. In a plain backward it is given arrays: the
    operators are NumPy's, and operations compute arrays. With ``create_graph=True`` it is given
    tensors, and what it does is recorded as any other call. Its first parameter is the
    gradient of the result; the others name what a node saves for it: inputs, options, ``shape`` of
    the first input, ``out``.
    """

    is_part = False  # a view of some elements: its node saves the shape of the whole and an index
    is_view = False  # a user's Function whose result shares memory with an argument
    all_freed: tuple[Any, ...] | None = None  # replaces ``saved``, if backward frees all of it
    quick_form: Callable[..., object] | None = None  # of add_node, if this rule has one

    def __init__(
        self,
        name: str,
        node: str,
        inputs: tuple[str, ...],
        formulas: Mapping[str, Callable[..., Any] | None],
        options: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.node = node  # its name, as PyTorch prints it: MulBackward0
        self.inputs = inputs
        self.options = options  # of a view: what it was called with, which its node saves too
        each = [formulas.get(name) for name in inputs]
        self.needs = tuple(() if f is None else _parameters(f) for f in each)
        # What a node saves, in the order in which formulas name it and in which it is checked: the
        # first that was changed is the one in the error.
        asked = [name for needs in self.needs for name in needs]
        self.set_saved(tuple(dict.fromkeys([*asked, *options])))
        # for each input: its number, its formula, and where in ``saved_names`` its values are
        positions = [tuple(map(self.saved_names.index, needs)) for needs in self.needs]
        self.formulas = tuple(zip(range(len(inputs)), each, positions, strict=True))

    def set_saved(self, names: tuple[str, ...]) -> None:
        """Set what a node saves.

        Backward frees inputs and the result, an index too, except in views.
        """
        self.saved_names, freed = names, {"out", "index", *self.inputs} - {*self.options}
        self.frees = tuple(name in freed for name in names)
        self.all_freed = (FREED,) * len(names) if all(self.frees) else None

    def saved_after_backward(self, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """What stays of ``saved`` after backward: options, but no tensor and no input's number."""
        pairs = zip(saved, self.frees)  # noqa: B905 - strict= takes time
        return tuple([FREED if frees or isinstance(x, TensorBase) else x for x, frees in pairs])

    def gradients(self, node: "Node", g: Any, as_tensors: bool) -> Any:
        """The gradient for each edge: arrays from an array, recorded tensors from a tensor."""
        found: list[Any] = []
        for at, formula, needs in self.formulas:  # with zip a node would take a tenth longer
            if node.edges[at] is None:
                found.append(None)
            elif formula is None:
                raise NotSupportedError(
                    f"derivative for aten::{self.name} is not implemented",
                    repair="x.detach() before it, if no gradient should flow",
                )
            elif not needs:
                found.append(formula(g))
            elif len(needs) == 1:
                found.append(formula(g, node.value(needs[0], as_tensors)))
            else:
                found.append(formula(g, *[node.value(each, as_tensors) for each in needs]))
        return found

    def with_history(self, node: "Node", at: int) -> Any:
        """A saved tensor with its history; the saved result has none, as it would be a cycle."""
        value = node.saved[at]
        if self.saved_names[at] == "out":
            is_whole = isinstance(value, Storage)
            value = base.tensor_of(value) if is_whole else base.same_memory(value)
            value._node = node
        return value


def _parameters(formula: Callable[..., Any]) -> tuple[str, ...]:
    code = getattr(formula, "__wrapped__", formula).__code__
    return tuple(code.co_varnames[1 : code.co_argcount])


class Hooks:
    """What the user has attached to a node or a leaf: functions that backward calls."""

    __slots__ = ("line", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[object, Callable[..., Any]] = {}  # get the gradient, may replace it
        self.retained: Any = None  # a weak reference to the tensor that retains its gradient
        self.line: tuple[str, int] | None = None  # of the user's code, if a recording was on


def hooks_of(edge: Any) -> Hooks:
    """The hooks of a node or a leaf, made when first asked for."""
    name = "hooks" if isinstance(edge, Node) else "_hooks"
    if getattr(edge, name) is None:
        setattr(edge, name, Hooks())
    return getattr(edge, name)


class Node:
    """One recorded operation. ``repr`` is its name, without an address: ``<MulBackward0>``."""

    __slots__ = ("device", "dtype", "edges", "hooks", "order", "rule", "saved", "shape", "versions")

    rule: Rule
    edges: tuple[Any, ...]  # where the gradients go: a Node, a leaf or None for each input
    # One value for each name in rule.saved_names; None if no edge needs it. The result is saved
    # without its node: as another tensor on its memory, or as its storage.
    saved: tuple[Any, ...]
    versions: Any  # when they were saved, one for each value; the number 0 means that all were 0
    order: int  # a node is younger than those its edges lead to: backward takes the youngest first
    shape: tuple[int, ...]  # of the result, and of the gradient that arrives here
    dtype: Any  # of its array
    device: Any
    hooks: Hooks | None

    def __init__(
        self, rule: Rule, like: TensorBase, edges: Any, saved: Any = (), versions: Any = 0
    ) -> None:
        self.rule, self.edges, self.saved, self.versions = rule, edges, saved, versions
        self.shape, self.dtype = like._array.shape, like._array.dtype
        self.order, self.hooks, self.device = next_order(), None, like.device

    def value(self, at: int, as_tensors: bool) -> Any:
        """What was saved at this place: of a tensor its array, or itself with its history.

        AutogradError if an earlier backward freed it, or if it was written to since.
        """
        value = self.saved[at]
        kind = value.__class__
        if kind is base.tensor_class or kind is Storage or isinstance(value, TensorBase):
            storage: Any = value if kind is Storage else value._storage
            if storage is not None and storage.version != (self.versions and self.versions[at]):
                _refuse_stale(self, at, value)
            return self.rule.with_history(self, at) if as_tensors else value._array
        if value is FREED:
            _refuse_freed()
        return value

    def name(self) -> str:
        """The name that PyTorch gives this kind of node."""
        node = self.rule.node
        return f"torch::autograd::{node}" if node in ("CopySlices", "CopyBackwards") else node

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of the inputs, each with 0, its only output; None where no grad flows.

        A leaf is represented by an AccumulateGrad, made when asked.
        """
        return tuple(
            (AccumulateGrad(edge) if isinstance(edge, TensorBase) else edge, 0)
            for edge in self.edges
        )

    def __repr__(self) -> str:
        return f"<{self.rule.node}>"


class AccumulateGrad:
    """Stands for a leaf in ``next_functions``; ``variable`` is the leaf."""

    next_functions: tuple[tuple[Any, int], ...] = ()

    def __init__(self, variable: TensorBase) -> None:
        self.variable = variable

    def name(self) -> str:
        """The name of this node."""
        return "torch::autograd::AccumulateGrad"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)

    def __repr__(self) -> str:
        return "<AccumulateGrad>"


# Recording


def edge_of(x: TensorBase) -> Any:
    """Where the gradient of ``x`` goes: a Node, ``x`` itself if it is a leaf, or None.

    A view whose base was written to since gets its new node here.
    """
    node = x._node
    if node.__class__ is not Marker:
        return node
    if node is LEAF:
        return x
    storage: Any = x._storage
    if node is VIEW:
        if storage.version != x._edge_version:
            regenerate_edge(x, storage.version)
        return x._edge
    if node is NO_GRAD_VIEW and state.grad and storage.version != x._edge_version:
        _refuse_no_grad_view(x)
    return None


def _refuse_no_grad_view(view: TensorBase) -> None:
    """Raise if the base of this view, which was written to since, requires grad."""
    if requires_grad(view._view_base):
        raise AutogradError(
            "A view was created in no_grad mode and its base or another view of its base has been "
            "modified inplace with grad mode enabled.",
            "Nothing says whether the view is a constant or a part of its base.",
            repair="make the view outside of no_grad; or x.detach() for a constant",
        )


def regenerate_edge(view: TensorBase, version: int) -> None:
    """Give a view a new node, ``as_strided`` of its base, which was written to since.

    That is how a write through one view reaches all others.
    """
    whole, before = view._view_base, view._edge
    if whole._node is LEAF:  # where the leaf is a view itself, PyTorch takes what it is a view of
        whole = getattr(whole, "_view_base", whole)
    edge, view._edge, view._edge_version = edge_of(whole), None, version
    if edge is not None:
        layouts = (base.layout_of(whole), base.layout_of(view))
        view._edge = node = Node(AS_STRIDED, view, (edge,), layouts)
        keep_retaining(before, node)


def keep_retaining(before: Any, node: Node) -> None:
    """A tensor that retains its gradient goes on to do so after a write to it."""
    if isinstance(before, Node) and before.hooks is not None:
        hooks_of(node).retained, before.hooks.retained = before.hooks.retained, None


class parts:
    """Operations on the part of a tensor that a layout describes.

    The last lines of ``ops.views`` define them and put them here: operations need this file, so
    this file cannot import them.
    """

    read: Callable[..., Any]
    add: Callable[..., Any]
    write: Callable[..., Any]


AS_STRIDED = Rule(
    "as_strided",
    "AsStridedBackward0",
    ("x",),
    {"x": lambda g, source, target: parts.add(g, source=source, target=target)},
)


def requires_grad(x: Any) -> bool:
    """Whether ``x`` is a tensor that takes part in autograd."""
    return isinstance(x, TensorBase) and x._node is not None and edge_of(x) is not None


def become_leaf(x: TensorBase) -> None:
    """Let ``x`` require grad; the fields that backward asks for are there from now on."""
    x._node = LEAF
    x._grad = getattr(x, "_grad", None)
    x._hooks = getattr(x, "_hooks", None)


def mark_inference(result: Tensor) -> Tensor:
    """``result``, a new tensor, as one of inference mode if that is on."""
    if state.inference:
        result._node = INFERENCE
    return result


def add_node(rule: Rule, result: Tensor, values: dict[str, Any]) -> Tensor:
    """Give ``result`` a node, if an input requires grad and operations are recorded.

    ``values``: the operation's inputs and options by name, of which the node keeps what the
    formulas need. Results with memory of their own get their nodes here, or from the rule's
    ``quick_form``; views in ``versions.make_view``.
    """
    if state.inference or not state.grad or result._array.dtype.kind != "f":
        return mark_inference(result)
    edges: list[Any] = []
    needed: Any = None
    for name, needs in zip(rule.inputs, rule.needs):  # noqa: B905 - strict= takes time
        x = values[name]
        edge = edge_of(x) if isinstance(x, TensorBase) and x._node is not None else None
        if edge is not None:
            needed = needs if needed is None else needed + needs
        edges.append(edge)
    if needed is None:  # there is no edge
        return result
    saved, versions = [], []
    for name in rule.saved_names:
        value, version = result if name == "out" else values.get(name), 0
        if isinstance(value, TensorBase) and name not in needed:
            value = None
        elif isinstance(value, TensorBase):
            _check_not_inference(value)
            version = 0 if value._storage is None else value._storage.version
            if name == "out":  # the tensor itself would point back to the node
                value = base.same_memory(value)
        saved.append(value)
        versions.append(version)
    noted = tuple(versions) if any(versions) else 0
    result._node = Node(rule, result, tuple(edges), tuple(saved), noted)
    if state.origin_recorders:
        state.origin_recorders[-1].node(result._node)
    return result


def quick_form(  # noqa: C901 - one function, for speed
    rule: Rule, tensors: tuple[str, ...], options: dict[str, Any]
) -> Callable[..., object] | None:
    """A faster ``add_node`` for this rule alone; to understand the graph ``add_node`` is enough.

    It is for one or two tensors, of which one may be a number. What it gives is called with the
    result, the tensors and, unless they are those in ``options``, the values of the options. None
    where formulas need something else. It does what ``add_node`` does, versions included, in a
    third of the time: half the time of a small operation with a gradient.
    """
    x_name, y_name = (*tensors, "")[:2]
    names, keeps = (x_name, y_name, "out", "shape"), rule.saved_names
    n = len([name for name in keeps if name in names])  # options come after these
    if len(tensors) > 2 or not rule.inputs or not {*keeps[n:]} <= {*options}:
        return None
    needs = {**dict.fromkeys(names, ()), **dict(zip(rule.inputs, rule.needs, strict=True))}
    # y_for_x: whether the formula of x needs y
    (x_for_x, y_for_x), (x_for_y, y_for_y) = (
        [name in needs[which] for name in (x_name, y_name)] for which in (x_name, y_name)
    )
    has_x_edge, has_y_edge = x_name in rule.inputs, y_name in rule.inputs
    keeps_tensors, keeps_shape = not {*keeps}.isdisjoint(tensors), "shape" in keeps
    keeps_result, is_product = "out" in keeps, keeps == (y_name, x_name)
    pick, pick_options = _picker(names, keeps[:n]), _picker((*options,), keeps[n:])
    defaults = tuple(options.values())
    kept_defaults = pick_options(defaults)

    def add_node_quickly(  # noqa: C901 - one function, for speed
        result: Tensor, x: Any, y: Any = None, values: Any = defaults
    ) -> None:
        if not state.grad:
            return
        x_edge = y_edge = x_storage = y_storage = out = shape = None
        if x.__class__ is base.tensor_class or isinstance(x, TensorBase):
            x_edge, x_storage = x._node, x._storage
        if y is not None and (y.__class__ is base.tensor_class or isinstance(y, TensorBase)):
            y_edge, y_storage = y._node, y._storage
        if x_edge.__class__ is Marker or y_edge.__class__ is Marker:
            if x_edge is INFERENCE or y_edge is INFERENCE:
                add_node(rule, result, {**options, x_name: x, y_name: y})
                return
            x_edge = x if x_edge is LEAF else x_edge and edge_of(x)
            y_edge = y if y_edge is LEAF else y_edge and edge_of(y)
        if (x_edge is None or not has_x_edge) and (y_edge is None or not has_y_edge):
            return
        array = result._array
        result._node = node = _new(Node)
        node.rule, node.versions, node.hooks, node.device = rule, 0, None, result.device
        if has_x_edge:
            node.edges = (x_edge, y_edge) if has_y_edge else (x_edge,)
        else:
            node.edges = (y_edge,)
        kept = kept_defaults if values is defaults else pick_options(values)
        if keeps_shape:
            shape = x._array.shape
        if keeps_tensors:
            if not ((x_for_x and x_edge is not None) or (x_for_y and y_edge is not None)):
                x = x_storage = None
            if not ((y_for_x and x_edge is not None) or (y_for_y and y_edge is not None)):
                y = y_storage = None
            x_version = 0 if x_storage is None else x_storage.version
            y_version = 0 if y_storage is None else y_storage.version
            if x_version or y_version:
                node.versions = pick((x_version, y_version, 0, 0)) + (0,) * len(kept)
        if keeps_result:  # its storage: the tensor itself would point back to the node
            out = result._storage
            if out is None:  # as Storage(array), in half of the time
                result._storage = out = _new(Storage)
                out._array, out.version, out.last_write = array, 0, None
                result._offset = 0
        if is_product:
            node.saved = (y, x)
        else:
            node.saved = pick((x, y, out, shape)) + kept if n else kept
        node.order, node.dtype, node.shape = next_order(), array.dtype, array.shape
        if x_edge.__class__ is Node and x_edge.shape == node.shape:
            node.shape = x_edge.shape  # one tuple for both: a sixth of a node's memory

    return add_node_quickly


def _picker(names: tuple[str, ...], wanted: tuple[str, ...]) -> Callable[[Any], Any]:
    """What takes the values of ``wanted`` from those of ``names``: tuples, also of one value."""
    indices = [names.index(name) for name in wanted]
    if len(indices) < 2:  # itemgetter gives no tuple of one value, but a slice is one
        return itemgetter(slice(*[at for each in indices for at in (each, each + 1)] or [0]))
    return itemgetter(*indices)


# Refusing what was changed or freed


def _check_not_inference(x: TensorBase) -> None:
    """Raise if ``x`` was made in inference mode."""
    if x._node is INFERENCE:
        raise AutogradError(
            "Inference tensors cannot be saved for backward.",
            repair="x = x.clone()    # outside of inference_mode",
        )


def _refuse_freed() -> NoReturn:
    raise AutogradError(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are "
        "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you "
        "need to backward through the graph a second time or if you need to access saved "
        "tensors after calling backward.",
        "The first backward freed the tensors that the formulas need.",
        repair="y.backward(retain_graph=True)    # the first time; or compute y again",
    )


NAMES = {"x": "input", "y": "other", "out": "result"}  # as PyTorch shows them


def _refuse_stale(node: Node, at: int, x: Any) -> NoReturn:
    """A saved tensor was written to: name the node that saved it and the line that wrote."""
    storage = x if isinstance(x, Storage) else x._storage
    x = base.tensor_of(x) if isinstance(x, Storage) else x
    name, version, expected = node.rule.saved_names[at], storage.version, node.versions
    expected = expected and expected[at]
    made_by, maker = "", node if name == "out" else x._node
    if maker is VIEW or maker is NO_GRAD_VIEW:  # its history begins anew with every write
        made_by = "" if x._view_base._node is None else ", which is output 0 of AsStrided,"
    elif isinstance(maker, Node):
        kind = re.sub("Backward0?([0-9]*)$", r"\1", maker.name())
        made_by = f", which is output 0 of {kind},"
    details = [f"<{node.rule.node}> needs the values of its {NAMES.get(name, name)} as they were."]
    if node.hooks is not None and node.hooks.line is not None:
        file, line = node.hooks.line
        details.append(f"It was recorded here: {file}, line {line}.")
    if storage.writer is not None:
        operation, file, line = storage.writer
        details.append(f"{operation} changed it: {file}, line {line}.")
    raise AutogradError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [torch.{x.dtype.word}Tensor {sizes(x.shape)}]{made_by} is at "
        f"version {version}; expected version {expected} instead. Hint: enable anomaly detection "
        "to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False).",
        *details,
        repair="x = x + y instead of x += y there, or save_this = x.clone() before",
        node=node,
        version=version,
        expected=expected,
        saved=NAMES.get(name, name),
        writer=storage.writer,
    )
