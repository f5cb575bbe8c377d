"""Parts of a tensor along one dimension: narrow, split, chunk, unbind. All are views."""

from functools import partial
from typing import Any

from tensorkit import layout as rules
from tensorkit.base import Tensor
from tensorkit.errors import IndexRangeError, ShapeError, sizes
from tensorkit.layout import Layout
from tensorkit.ops import views
from tensorkit.ops.arguments import as_int, need_int, need_sizes, need_tensor
from tensorkit.ops.notation import Operation, composed, op
from tensorkit.ops.windows import put_part


@composed
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Any:
    """View of ``length`` entries along ``dim`` from ``start`` on.

    >>> tk.narrow(tk.arange(6), 0, 2, 3)
    tensor([2, 3, 4])
    """
    need_tensor("narrow", input)
    if not input.shape:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.", a_shape=())
    start, length = need_int("narrow", "start", 3, start), need_int("narrow", "length", 4, length)
    if length < 0:
        raise ShapeError("narrow(): length must be non-negative.", a_shape=input.shape)
    dim = rules.wrap_dim(need_int("narrow", "dim", 2, dim), input.dim())
    size = input.shape[dim]
    if not -size <= start <= size:
        raise IndexRangeError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})",
            index=start,
            dim=dim,
            size=size,
        )
    start += size if start < 0 else 0
    if start + length > size:
        raise ShapeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({size}).",
            a_shape=input.shape,
            dim=dim,
        )
    return views.slice, (dim, start, start + length, 1)


@composed
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Views of parts of one size along ``dim``, the last perhaps smaller; or of given sizes.

    >>> tk.split(tk.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> tk.split(tk.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return _parts(tensor, split_size_or_sections, dim)


def _parts(tensor: Tensor, split_size_or_sections: Any, dim: int) -> Any:
    need_tensor("split", tensor)
    step = as_int(split_size_or_sections)
    if step is None:
        return _split_with_sizes(tensor, split_size_or_sections, dim)
    if not tensor.shape:
        raise ShapeError("split expects at least a 1-dimensional tensor", a_shape=())
    dim = rules.wrap_dim(need_int("split", "dim", 3, dim), tensor.dim())
    size = tensor.shape[dim]
    if step < 0:
        raise ShapeError(f"split expects split_size be non-negative, but got split_size={step}")
    if step == 0 and size:
        raise ShapeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}",
            a_shape=tensor.shape,
        )
    starts = range(0, size, step) if size else [0]
    return [(_split_part, (dim, start, min(start + step, size))) for start in starts]


def _split_with_sizes(x: Tensor, lengths: Any, dim: int) -> Any:
    lengths = need_sizes("split_with_sizes", "split_sizes", 2, lengths)
    if not x.shape:
        raise ShapeError("split_with_sizes expects at least a 1-dimensional tensor", a_shape=())
    place = rules.wrap_dim(need_int("split", "dim", 3, dim), x.dim())
    size = x.shape[place]
    if any(length < 0 for length in lengths):
        raise ShapeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={sizes(lengths)}"
        )
    if sum(lengths) != size:
        raise ShapeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size "
            f"at dimension {dim}), but got split_sizes={sizes(lengths)}",
            a_shape=x.shape,
        )
    parts, start = [], 0
    for length in lengths:
        parts.append((_sized_part, (place, start, start + length)))
        start += length
    return parts


@composed
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """Views of at most ``chunks`` parts of one size along ``dim``, the last perhaps smaller.

    >>> tk.chunk(tk.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    need_tensor("chunk", input)
    if not input.shape:
        raise ShapeError("chunk expects at least a 1-dimensional tensor", a_shape=())
    chunks = need_int("chunk", "chunks", 2, chunks)
    if chunks < 1:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = input.shape[rules.wrap_dim(need_int("chunk", "dim", 3, dim), input.dim())]
    if not size:
        return _split_with_sizes(input, (0,) * chunks, dim)
    return _parts(input, -(-size // chunks), dim)


@composed
def unbind(input: Tensor, dim: int = 0) -> Any:
    """Views of all entries along ``dim``, which disappears.

    >>> tk.unbind(tk.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    need_tensor("unbind", input)
    dim = rules.wrap_dim(need_int("unbind", "dim", 2, dim), input.dim())
    return [(_entry, (dim, index)) for index in range(input.shape[dim])]


# Each part has a node of its own; PyTorch has one for all parts, under the same name.


def _part(x: Any, dim: int, start: int, end: int) -> Any:
    return x[(*[slice(None)] * dim, slice(start, end))]


def _part_operation(node: str) -> Operation:
    @op(kind="view", on_arrays=_part)
    def part(layout: Layout, dim: int, start: int, end: int) -> Layout:
        return rules.slice_(layout, dim, start, end, 1)

    part.grad(
        node=node,
        x=lambda g, shape, dim, start, end: put_part(
            g, size=shape, part=partial(_part, dim=dim, start=start, end=end)
        ),
    )
    part.definition.rules[None].part = _part
    return part


_split_part = _part_operation("SplitBackward0")
_sized_part = _part_operation("SplitWithSizesBackward0")


def _row(x: Any, dim: int, index: int) -> Any:
    return x[(*[slice(None)] * dim, index, ...)]


@op(kind="view", on_arrays=_row)
def _entry(layout: Layout, dim: int, index: int) -> Layout:
    return rules.select(layout, dim, index)


_entry.grad(
    node="UnbindBackward0",
    x=lambda g, shape, dim, index: put_part(
        g, size=shape, part=partial(_row, dim=dim, index=index)
    ),
)
_entry.definition.rules[None].part = _row
