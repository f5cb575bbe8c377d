"""Cross entropy of few scores, as small classifiers have them: two operations in one call.

To whoever looks it is ``nll_loss(log_softmax(x, 1), target)``, with a node for each.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorkit import base
from tensorkit.autograd.graph import FoldedNode, ResultNode, next_order
from tensorkit.autograd.history import edge_of
from tensorkit.autograd.modes import state
from tensorkit.autograd.saved import FREED, Saved, refuse_freed
from tensorkit.base import Form, Tensor
from tensorkit.devices import CPU
from tensorkit.ops import planning
from tensorkit.ops.losses import nll_loss, picks_of
from tensorkit.ops.normalising import log_softmax_definition
from tensorkit.quiet import quiet

_OPTIONS = {"reduction": "mean", "ignore_index": -100}
_DIM = {"dim": 1}
_nll, _log_softmax = nll_loss.definition, log_softmax_definition
_plans: dict[Any, Any] = planning.table()


def of_few(x: Tensor, target: Tensor) -> Tensor | None:
    """The mean for scores (N, C) and classes (N,); None where the two operations have to do it."""
    key = x._form, target._form
    plan = _plans.get(key, 0)
    if plan == 0:
        plan = _plan(*key)
        planning.remember(_plans, key, plan)
    if plan is None:
        return None
    form, loss_of, scores_of, known = plan
    try:
        scores = quiet.run(scores_of, x._array)
        loss = np.asarray(quiet.run(loss_of, scores, target._array))
    except RuntimeError:  # items that do not count, no such class; or fast paths are closed
        return None
    result = base.new(loss, form)
    edge = None if x._node is None or not state.grad else edge_of(x)
    if edge is not None:
        node = LossNode()
        node.rule = _nll.rules[None]
        node._form = form
        node.hooks = None
        next_order()  # that of the node of log_softmax
        node.order = next_order()
        node.ways = (edge,)
        node.known = known
        node.saved = {"scores": scores, "target": Saved(target)}
        result._node = node
    return result


def _plan(x: Form, target: Form) -> Any:
    if x.device is not CPU or target.device is not CPU or target.shape != x.shape[:1]:
        return None
    scores_of = _log_softmax.shortcut(x, **_DIM)  # type: ignore[misc]
    loss_of = _nll.shortcut(x, target, **_OPTIONS)  # type: ignore[misc]
    if scores_of is None or loss_of is None:
        return None
    known = {**_OPTIONS, "shape": tuple(x.shape), "weight": None}
    return base.contiguous_form(CPU, x.dtype.numpy, ()), loss_of, scores_of, known


class LossNode(FoldedNode):
    """A node of ``nll_loss`` that leads to where the scores before ``log_softmax`` came from."""

    __slots__ = ()

    def passed(self, g: Any) -> Any:
        """The edge with its gradient: by how much each probability is too large."""
        ways, saved = self.ways, self.saved
        if self.__class__ is not LossNode:  # another thread has looked just now
            return self.passed(g)
        target = saved["target"]
        if target is FREED:
            refuse_freed()
        storage, share = target.tensor._storage, g.item() / len(target.tensor._array)
        if not share > 0 or (storage is not None and storage.version != target.version):
            return self.unfolded().passed(g)  # zeros have signs; or it raises
        slope = np.exp(saved["scores"])
        try:
            slope += picks_of(slope.shape[1], slope.dtype.char).take(target.tensor._array, 0)
        except (IndexError, ValueError):  # labels that were changed through other memory
            return self.unfolded().passed(g)
        slope *= share
        flat = slope.ravel()
        # nan and infinity are the formulas' care, as are labels of no class, whose rows are nan
        return ((ways[0], slope),) if flat.dot(flat) < np.inf else self.unfolded().passed(g)

    def plain(self) -> tuple[tuple[Any, ...], Mapping[str, Any], dict[str, Any]]:
        """Those of ``nll_loss``, with a node for ``log_softmax`` behind it."""
        (edge,) = self.ways
        behind = ResultNode()
        behind.rule = _log_softmax.rules[None]
        behind._form = base.contiguous_form(CPU, self._form.dtype.numpy, self.known["shape"])
        behind.hooks = None
        behind.order = self.order - 1
        behind.left = edge
        behind.saved = self.saved["scores"]
        behind.options = _DIM
        behind.storage = None
        return (behind,), self.known, {"target": self.saved["target"]}
