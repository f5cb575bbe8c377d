"""Deep copies and pickles of tensors, both only of leaves: a graph is neither copied nor stored."""

from typing import Any

from tensorkit import base
from tensorkit.autograd.node import become_leaf
from tensorkit.base import Tensor
from tensorkit.devices import Device, as_device
from tensorkit.dtypes import DType
from tensorkit.errors import AutogradError
from tensorkit.layout import Layout
from tensorkit.storage import Storage


def deepcopy(x: Tensor, memo: dict[Any, Any]) -> Tensor:
    """A copy of a leaf; views of one storage stay views of one copy. For ``copy.deepcopy``."""
    found = memo.get(id(x))
    if not x.is_leaf:
        raise AutogradError(
            "Only Tensors created explicitly by the user (graph leaves) support the "
            "deepcopy protocol at the moment.  If you were attempting to deepcopy a "
            "module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001",
            repair="copy.deepcopy(x.detach())",
        )
    if found is None:
        storage = base.storage_of(x)
        copied = memo.get(id(storage))
        if copied is None:
            copied = Storage(storage.flat.copy())
            memo[id(storage)] = copied
        found = memo[id(x)] = base.on_storage(copied, base.layout_of(x))
        if x.requires_grad:
            become_leaf(found)
        if x.grad is not None:
            found._grad = deepcopy(x.grad, memo)
    return found


def reduce(x: Tensor) -> tuple[Any, ...]:
    """What a pickle of a leaf holds: its memory and how it looks at it."""
    source = base.layout_of(x)
    flat = base.storage_of(x).flat
    if not x.is_leaf:
        raise AutogradError(
            "cannot pickle a tensor that has a history: its graph would stay behind",
            repair="x.detach()",
        )
    leaf = x.requires_grad
    return _rebuild, (_Flat(flat, x.device), x.dtype, *source, leaf)


class _Flat:
    """The memory of a tensor, which passes through the host where it is pickled."""

    def __init__(self, array: Any, device: Device) -> None:
        self.array, self.device = array, device

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.device.backend.to_host(self.array, "pickle"), self.device)


def _arrived(array: Any, device: Device) -> _Flat:
    device = as_device(device)
    return _Flat(device.backend.from_host(array, "pickle"), device)


def _rebuild(
    flat: _Flat, dtype: DType, shape: Any, strides: Any, offset: int, leaf: bool = False
) -> Tensor:
    """A tensor from what ``reduce`` gave."""
    made = base.on_storage(Storage(flat.array), Layout(shape, strides, offset))
    if leaf:
        become_leaf(made)
    return made
