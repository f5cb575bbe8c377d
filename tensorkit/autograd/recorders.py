"""The short ways to record a result: for a rule a function that makes the node without asking.

What ``history.record`` has to find out in every call is here found out once, when a call is
planned: which inputs have a formula, what these need, which kind of node holds it. Where that is
not simple the short way is ``history.record`` itself.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tensorkit.autograd.graph import GeneralNode, PairNode, ResultNode, next_order
from tensorkit.autograd.history import edge_of, record
from tensorkit.autograd.marks import INFERENCE, LEAF, Mark
from tensorkit.autograd.modes import state
from tensorkit.autograd.rules import Rule
from tensorkit.autograd.saved import NOTHING, Saved, SavedResult
from tensorkit.base import Tensor

Recorder = Callable[..., object]  # takes a result and the inputs that have edges


def no_record(*_: Any) -> None:
    """The operation has no gradient, and its results do not require grad."""


@cache
def unary_recorder(rule: Rule) -> Recorder:
    """The short way for one tensor, ``record(result, x)``."""
    if (rule.keeps <= {"x"} or rule.keeps == {"out"}) and all(rule.formulas):
        return _one_recorder(rule, {})
    return lambda result, x: record(rule, result, {"x": x})


def _one_recorder(rule: Rule, options: Mapping[str, Any]) -> Recorder:
    """The short way for a formula of one tensor or of the result, which ``options`` may follow."""
    keeps_x, keeps_result = "x" in rule.keeps, "out" in rule.keeps

    def record_one(result: Tensor, x: Tensor) -> None:
        if not state.grad:
            return
        edge = x._node
        if edge.__class__ is Mark:
            edge = x if edge is LEAF else edge_of(x)
        if edge is None:
            return
        if keeps_result:
            node: Any = ResultNode()
            node.saved = result._array
            node.options = options
            node.storage = None
        else:
            node = PairNode()
            node.right = node.y = None
            node.x = x if keeps_x else None
            version = 0 if x._storage is None else x._storage.version
            node.versions = version and (version, 0)
        node.rule = rule
        node._form = result._form
        node.hooks = None
        node.order = next_order()
        node.left = edge
        result._node = node

    return record_one


@cache
def pair_recorder(  # noqa: C901 - one way, without calls
    rule: Rule, kind: type[PairNode] = PairNode
) -> Recorder:
    """The short way for two tensors of one form and formulas that need nothing but them.

    Gives a function ``record(result, x, y)``, which is called if one of them may require grad.
    """
    x_for_x, y_for_x = "x" in rule.needs[0], "y" in rule.needs[0]
    x_for_y, y_for_y = "x" in rule.needs[1], "y" in rule.needs[1]
    keeps = rule.keeps & {"x", "y"}
    is_simple = rule.keeps <= {"x", "y", "alpha"} and all(rule.formulas)

    def record_pair(result: Tensor, x: Tensor, y: Tensor) -> None:
        if not state.grad:
            return
        left, right = x._node, y._node
        if left.__class__ is Mark:
            left = x if left is LEAF else edge_of(x)
        if right.__class__ is Mark:
            right = y if right is LEAF else edge_of(y)
        if left is None and right is None:
            return
        if not is_simple or x._node is INFERENCE or y._node is INFERENCE:
            record(rule, result, {"x": x, "y": y, "alpha": 1})
            return
        node = kind()
        node.rule = rule
        node._form = result._form
        node.hooks = None
        node.order = next_order()
        node.left = left
        node.right = right
        node.x = node.y = None
        node.versions = 0
        if keeps:
            if (x_for_y and right is not None) or (x_for_x and left is not None):
                node.x = x
            if (y_for_x and left is not None) or (y_for_y and right is not None):
                node.y = y
            own, other = x._storage, y._storage
            if own is not None or other is not None:
                node.versions = own.version if own else 0, other.version if other else 0
        result._node = node

    return record_pair


@cache
def number_recorder(rule: Rule, number_first: bool) -> Recorder:
    """The short way for a tensor and a number, ``record(result, x, number)``."""
    place = int(number_first)
    own, other = ("y", "x") if number_first else ("x", "y")
    if not rule.keeps <= {"x", "y", "alpha"} or rule.formulas[place] is None:
        return lambda result, x, number: record(rule, result, {own: x, other: number, "alpha": 1})
    keeps_own, keeps_number = own in rule.needs[place], other in rule.needs[place]

    def record_number(result: Tensor, x: Tensor, number: Any) -> None:
        if not state.grad:
            return
        edge = x._node
        if edge.__class__ is Mark:
            edge = x if edge is LEAF else edge_of(x)
        if edge is None:
            return
        node = PairNode()
        node.rule = rule
        node._form = result._form
        node.hooks = None
        node.order = next_order()
        version = 0 if x._storage is None else x._storage.version
        kept, given = x if keeps_own else None, number if keeps_number else None
        if number_first:
            node.left, node.right, node.x, node.y = None, edge, given, kept
            node.versions = version and (0, version)
        else:
            node.left, node.right, node.x, node.y = edge, None, kept, given
            node.versions = version and (version, 0)
        result._node = node

    return record_number


def known_recorder(  # noqa: C901 - one way, without calls
    rule: Rule, names: tuple[str, ...], known: dict[str, Any]
) -> Recorder:
    """The short way for tensors with these ``names`` and options that are ``known`` beforehand.

    Gives a function ``record(result, *inputs)``, which is called if one of them may require grad.
    """
    places = [names.index(name) for name in rule.inputs]
    if len(names) == len(places) == 1 and rule.keeps - known.keys() == {"out"}:
        first, *options = rule.needs[0]
        if first == "out":
            return _one_recorder(rule, {name: known[name] for name in options})
    kept = {name: known[name] for name in rule.keeps if name in known}
    tensors = [(name, names.index(name), users) for name, users in rule.kept if name in names]
    keeps_result = "out" in rule.keeps

    def record_known(  # noqa: C901 - one way, without calls
        result: Tensor, *inputs: Tensor
    ) -> None:
        if not (state.grad and result._form.dtype.is_floating_point):
            return
        edges, tracked = [], False
        for place in places:
            x = inputs[place]
            edge = x._node
            if edge.__class__ is Mark:
                edge = x if edge is LEAF else edge_of(x)
            edges.append(edge)
            if edge is not None:
                tracked = True
        if not tracked:
            return
        node = GeneralNode()
        node.rule = rule
        node._form = result._form
        node.hooks = None
        node.order = next_order()
        node.edges = tuple(edges)
        node.known = kept
        node.saved = NOTHING
        if tensors or keeps_result:
            saved: dict[str, Any] = {}
            node.saved = saved
            for name, place, users in tensors:
                for user in users:
                    if edges[user] is not None:
                        saved[name] = Saved(inputs[place])
                        break
            if keeps_result:
                saved["out"] = SavedResult(result)
        result._node = node

    return record_known
