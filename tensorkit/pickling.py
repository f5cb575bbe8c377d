"""Deep copies and pickles of tensors, both only of leaves: a graph is neither copied nor stored.

Both hold a tensor's storage and how it looks at it; so views of one storage stay views of one.
"""

from typing import Any

from tensorkit import base
from tensorkit.autograd.node import become_leaf
from tensorkit.base import Tensor
from tensorkit.errors import AutogradError
from tensorkit.layout import Layout
from tensorkit.storage import Storage


def reduce(x: Tensor) -> tuple[Any, ...]:
    """What a pickle of a leaf holds."""
    if not x.is_leaf:
        raise AutogradError(
            "Only Tensors created explicitly by the user (graph leaves) can be copied deeply or "
            "pickled: a graph would stay behind",
            repair="x.detach()",
        )
    return _on_storage, (base.storage_of(x), base.layout_of(x), x.requires_grad)


def deepcopy(x: Tensor, memo: dict[Any, Any]) -> Tensor:
    """A copy of a leaf and its gradient. For ``copy.deepcopy``."""
    import copy  # which has called this

    make, parts = reduce(x)
    found = memo[id(x)] = make(*copy.deepcopy(parts, memo))
    if x.grad is not None:
        found._grad = copy.deepcopy(x.grad, memo)
    return found


def _on_storage(storage: Storage, layout: Layout, requires_grad: bool) -> Tensor:
    made = base.on_storage(storage, layout)
    if requires_grad:
        become_leaf(made)
    return made
