"""Views: tensors that look at memory that is already there. Each op maps a layout to a layout."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorkit import base
from tensorkit import layout as rules
from tensorkit.errors import IndexRangeError, ShapeError, message, sizes
from tensorkit.layout import Layout
from tensorkit.ops.general import need_int, need_sizes, need_tensor
from tensorkit.ops.notation import op

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor


def as_strided(
    input: "Tensor",
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> "Tensor":
    """View of the same storage with any shape, strides and offset (default: its own offset).

    The caller is responsible for the meaning; only the bounds of the storage are checked.

    >>> tk.as_strided(tk.arange(6), (2, 2), (3, 1))
    tensor([[0, 1],
            [3, 4]])
    """
    need_tensor("as_strided", input)
    return strided(input, size, stride, storage_offset, 2)


def strided(input: "Tensor", size: Any, stride: Any, storage_offset: Any, first: int) -> "Tensor":
    """``as_strided``; ``first`` is the position at which the caller wrote ``size``."""
    shape = need_sizes("as_strided", "size", first, size)
    strides = need_sizes("as_strided", "stride", first + 1, stride)
    if storage_offset is None:
        offset = base.layout_of(input).offset
    else:
        offset = need_int("as_strided", "storage_offset", first + 2, storage_offset)
    if len(shape) != len(strides):
        raise ShapeError("mismatch in length of strides and shape", a_shape=shape, b_shape=strides)
    if any(step < 0 for step in strides):
        raise ShapeError(
            "as_strided: Negative strides are not supported at the moment, "
            f"got strides: {sizes(strides)}",
            a_shape=shape,
        )
    if any(length < 0 for length in shape):
        raise ShapeError(
            f"Storage size calculation overflowed with sizes={sizes(shape)} "
            f"and strides={sizes(strides)}",
            a_shape=shape,
        )
    if offset < 0:
        raise ShapeError(f"Tensor: invalid storage offset {offset}", a_shape=shape)
    itemsize = input.itemsize
    have = base.storage_of(input).nbytes()
    need = (offset + rules.extent(shape, strides)) * itemsize
    if need >= 2**63:
        raise ShapeError(
            f"Storage size calculation overflowed with sizes={sizes(shape)} "
            f"and strides={sizes(strides)}",
            a_shape=shape,
        )
    rules.check_size(shape, itemsize)
    if 0 not in shape and need > have:
        raise ShapeError(
            message(
                f"setStorage: sizes {sizes(shape)}, strides {sizes(strides)}, storage offset "
                f"{offset}, and itemsize {itemsize} requiring a storage size of {need} are out "
                f"of bounds for storage of size {have}",
                f"The last element would be number {need // itemsize - 1}; "
                f"the storage has elements 0 to {have // itemsize - 1}.",
            ),
            a_shape=shape,
        )
    return base.view_of(input, Layout(shape, strides, offset))


@op(kind="view")
def select(layout: Layout, dim: int, index: int) -> Layout:
    """View of one entry along ``dim``; the dimension disappears.

    >>> tk.arange(6).as_strided((2, 3), (3, 1)).select(0, 1)
    tensor([3, 4, 5])
    """
    dim, index = need_int("select", "dim", 1, dim), need_int("select", "index", 2, index)
    if not layout.shape:
        raise IndexRangeError(
            "select() cannot be applied to a 0-dim tensor.", index=index, dim=dim, size=0
        )
    dim = rules.wrap_dim(dim, len(layout.shape))
    length = layout.shape[dim]
    if not -length <= index < length:
        raise IndexRangeError(
            f"select(): index {index} out of range for tensor of size {sizes(layout.shape)} "
            f"at dimension {dim}",
            index=index,
            dim=dim,
            size=length,
        )
    return rules.select(layout, dim, index)


@op(kind="view")
def unsqueeze(layout: Layout, dim: int) -> Layout:
    """View with a new dimension of size 1 before ``dim``.

    >>> tk.arange(3).unsqueeze(0).shape
    torch.Size([1, 3])
    """
    dim = need_int("unsqueeze", "dim", 1, dim)
    return rules.unsqueeze(layout, rules.wrap_dim(dim, len(layout.shape) + 1))
