"""``linear``: the product and the sum of a layer in one call; most small training consists of it.

To whoever looks it is ``addmm(bias, x, t(weight))``, and ``t`` has a node. Hardly anybody looks, so
that node is made when somebody does: until then a ``LinearNode`` stands for both.
"""

from collections.abc import Mapping
from typing import Any

from tensorkit import base
from tensorkit.autograd.graph import FoldedNode, make_node, next_order
from tensorkit.autograd.history import edge_of
from tensorkit.autograd.marks import INFERENCE, LEAF, VIEW
from tensorkit.autograd.modes import state
from tensorkit.autograd.saved import FREED, Saved, SavedResult, refuse_freed
from tensorkit.base import Form, Tensor
from tensorkit.devices import CPU
from tensorkit.ops import planning
from tensorkit.ops.arguments import need_tensor
from tensorkit.ops.products import addmm, addmm_rule, refuse_sizes
from tensorkit.ops.reduction import sum_to_shape
from tensorkit.ops.views import t
from tensorkit.quiet import quiet

_plans: dict[Any, tuple[Form, dict[str, Form]]] = planning.table()  # by the forms of the operands


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``x @ weight.t() + bias`` of a matrix ``x``, or what ``addmm`` raises."""
    try:
        form, known = _plans[x._form, weight._form, bias._form]
        if weight._node is LEAF and x._node is not INFERENCE is not bias._node:
            result = base.new(quiet.run(_sum, x._array, weight._array, bias._array), form)
            if state.grad:
                result._node = _folded(form, known, x, weight, bias)
            return result
    except (AttributeError, KeyError, RuntimeError):
        pass  # no tensors, met for the first time, fast paths closed
    need_tensor("linear", weight, "weight", 2)
    need_tensor("linear", bias, "bias", 3)
    turned = t(weight)
    given, taken = x._form.shape, turned._form.shape
    if len(given) == len(taken) == 2 and given[1] != taken[0]:
        refuse_sizes(given, taken, of_layer=True)
    result = addmm(bias, x, turned)
    form, own = x._form, weight._form
    is_plain = form.device is CPU and form.dtype.numpy.char in "fd" and own.is_contiguous
    if is_plain and bias._form.shape == own.shape[:1]:
        planning.remember(_plans, (form, own, bias._form), (result._form, {"of t": turned._form}))
    return result


def _sum(x: Any, weight: Any, bias: Any) -> Any:
    product = x.dot(weight.T)
    product += bias
    return product


def _folded(
    form: Form, known: dict[str, Form], x: Tensor, weight: Tensor, bias: Tensor
) -> "LinearNode":
    left = None if x._node is None else edge_of(x)
    node = LinearNode()
    node.rule = addmm_rule
    node._form = form
    node.hooks = None
    next_order()  # of the node of `t`
    node.order = next_order()
    node.ways = edge_of(bias), left, weight
    node.known = known  # the leaf may have another form when somebody looks
    node.saved = {"mat1": Saved(x)}
    if left is not None:  # the memory, as a view keeps it: `weight.data = ` gives the leaf another
        node.saved["mat2"] = SavedResult(weight)
    return node


class LinearNode(FoldedNode):
    """A node of ``addmm`` with the leaf that ``t`` was applied to in place of the node of ``t``."""

    __slots__ = ()

    def passed(self, g: Any) -> Any:
        """Each edge with its gradient."""
        (own, left, leaf), saved = self.ways, self.saved
        if self.__class__ is not LinearNode:  # another thread has looked just now
            return self.passed(g)
        x = saved["mat1"]
        if x is FREED:
            refuse_freed()
        storage = x.tensor._storage
        if storage is not None and storage.version != x.version:
            self.unfolded().passed(g)  # raises
        slope = None
        if left is not None:
            weight = saved["mat2"]
            if weight.storage.version != weight.version:
                self.unfolded().passed(g)  # raises
            slope = g.dot(weight.array)
        sums = None if own is None else sum_to_shape.on_arrays(g, to=own._form.shape)
        return (own, sums), (left, slope), (leaf, g.T.dot(x.tensor._array))

    def plain(self) -> tuple[tuple[Any, ...], Mapping[str, Any], dict[str, Any]]:
        """Those of ``addmm``, with a node for ``t`` behind it."""
        own, left, leaf = self.ways
        turned, saved = self.known["of t"], {**self.saved}
        behind = make_node(t.definition.rules[None], turned, (leaf,), {}, None)
        behind.order = self.order - 1
        behind.hooks = None  # a recording would note who looks
        kept = saved.get("mat2")
        if isinstance(kept, SavedResult):
            view = base.new(kept.array.T, turned)
            view._storage, view._offset = kept.storage, kept.offset
            view._viewed, view._edge, view._seen, view._node = leaf, behind, kept.version, VIEW
            saved["mat2"] = Saved(view)
            saved["mat2"].version = kept.version
        known = {"beta": 1, "alpha": 1, "turned": not turned.is_contiguous}
        return (own, left, behind), known, saved
