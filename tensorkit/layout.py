"""Shapes, strides and offsets: pure functions on integers, no arrays.

A *shape* is a tuple of sizes. *Strides* say, for each dimension, how many elements apart two
neighbours lie in the flat storage. An *offset* is the position of the first element there. The
three together are a ``Layout``. The rules are PyTorch's, also for dimensions of size 0 and 1,
where array libraries differ: that is why strides are computed here and nowhere else.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from operator import index
from typing import Any, NamedTuple

from tensorkit.errors import IndexRangeError, ShapeError, sizes

Ints = tuple[int, ...]
MOST_DIMS = 64  # NumPy's own limit


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple that prints as PyTorch's does and knows ``numel()``.

    >>> tk.zeros(2, 3).shape
    torch.Size([2, 3])
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Any] = ()) -> "Size":
        """The size whose dimensions these integers are."""
        return tuple.__new__(cls, [_as_size(at, value) for at, value in enumerate(iterable)])

    def numel(self) -> int:
        """Number of elements of a tensor of this size.

        >>> tk.Size([2, 3]).numel()
        6
        """
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({sizes(self)})"

    def __getitem__(self, index: Any) -> Any:
        got = tuple.__getitem__(self, index)
        return Size(got) if isinstance(index, slice) else got

    def __add__(self, other: Any) -> "Size":
        if not isinstance(other, tuple):
            kind = type(other).__name__
            raise TypeError(f"can only concatenate tuple (not {kind}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> "Size":
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, times: Any) -> "Size":
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)


def _as_size(position: int, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {position} is '{type(value).__name__}')"
        ) from None


class Layout(NamedTuple):
    """Where the elements of a tensor lie in its flat storage."""

    shape: Ints
    strides: Ints
    offset: int


def contiguous_strides(shape: Sequence[int]) -> Ints:
    """Row-major strides: the last dimension is the fastest.

    An empty dimension counts as one of size 1, as in PyTorch.

    >>> from tensorkit import layout
    >>> layout.contiguous_strides((2, 3, 4)), layout.contiguous_strides((2, 0, 3))
    ((12, 4, 1), (3, 3, 1))
    """
    strides = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * max(shape[dim + 1], 1)
    return tuple(strides)


def check_size(shape: Ints, itemsize: int) -> None:
    """ShapeError for more bytes than 64 bits can count, or more dimensions than NumPy has."""
    _check_dims(shape)
    if prod(shape) * itemsize >= 2**63:
        raise ShapeError(
            f"Storage size calculation overflowed with sizes={sizes(shape)}", a_shape=shape
        )
    if prod(max(size, 1) for size in shape) >= 2**63:
        raise ShapeError("Stride calculation overflowed", a_shape=shape)


def _check_dims(shape: Ints) -> None:
    if len(shape) > MOST_DIMS:
        raise ShapeError(
            f"tensorkit's tensors have at most {MOST_DIMS} dimensions, not {len(shape)}",
            a_shape=shape,
        )


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether reading in row-major order walks the storage one element at a time.

    Strides of dimensions of size 1 do not matter; an empty tensor is contiguous.
    """
    return 0 in shape or _has_no_gaps(zip(reversed(strides), reversed(shape), strict=True))


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their stretch of storage, without gaps and without overlap."""
    if is_contiguous(shape, strides):
        return True
    return _has_no_gaps(sorted((st, n) for st, n in zip(strides, shape, strict=True) if n > 1))


def _has_no_gaps(fastest_first: Iterable[tuple[int, int]]) -> bool:
    """Whether dimensions, given as strides and sizes, fill memory in this order."""
    expected = 1
    for stride, size in fastest_first:
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def slowest_first(strides: Sequence[int]) -> list[int]:
    """The dimensions in their order in memory, that of the largest stride first."""
    return sorted(range(len(strides)), key=strides.__getitem__, reverse=True)


def inverse(order: Sequence[int]) -> Ints:
    """The order of dimensions that undoes another one.

    >>> from tensorkit import layout
    >>> layout.inverse((2, 0, 1))
    (1, 2, 0)
    """
    return tuple([order.index(dim) for dim in range(len(order))])


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements of storage lie between the first and the last element, both included."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def overlaps_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether certainly two indices name the same element (a stride of 0 over a real dimension)."""
    if is_dense(shape, strides):
        return False
    return any(size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True))


def overlap_partially(a: Layout, b: Layout) -> bool:
    """Whether two dense layouts on one storage share some elements without being the same."""
    if a == b or not (is_dense(a.shape, a.strides) and is_dense(b.shape, b.strides)):
        return False
    a_end, b_end = a.offset + prod(a.shape), b.offset + prod(b.shape)
    if a.offset == b.offset and a_end == b_end:
        # the stride of a dimension of size 1 is never used
        return _used_strides(a) != _used_strides(b)
    return a.offset < b_end and b.offset < a_end


def _used_strides(layout: Layout) -> list[tuple[int, int]]:
    return [(n, s) for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1]


def broadcast_shapes(a: Ints, b: Ints) -> Ints:
    """The shape both can be stretched to; ShapeError if two sizes differ and neither is 1.

    >>> from tensorkit import layout
    >>> layout.broadcast_shapes((2, 1, 3), (4, 1))
    (2, 4, 3)
    """
    if a == b:
        return tuple(a)
    n_dims = max(len(a), len(b))
    padded_a, padded_b = (1,) * (n_dims - len(a)) + a, (1,) * (n_dims - len(b)) + b
    shape = []
    # From the right, as PyTorch does: the first dimension that does not fit is the one reported.
    for dim in range(n_dims - 1, -1, -1):
        size_a, size_b = padded_a[dim], padded_b[dim]
        if size_a != size_b and size_a != 1 and size_b != 1:
            raise ShapeError(
                f"The size of tensor a ({size_a}) must match the size of tensor b ({size_b}) "
                f"at non-singleton dimension {dim}",
                _picture(a, b, dim, n_dims),
                "Shapes are aligned at the right; two sizes fit if they are equal or one is 1.",
                a_shape=tuple(a),
                b_shape=tuple(b),
                dim=dim,
            )
        shape.append(size_b if size_a == 1 else size_a)
    return tuple(reversed(shape))


def _picture(a: Ints, b: Ints, dim: int, n_dims: int) -> str:
    """Both shapes, aligned at the right, with a mark below the sizes that do not fit."""
    columns = [""] * n_dims
    for shape in (a, b):
        for place, size in enumerate(shape, start=n_dims - len(shape)):
            columns[place] = max(columns[place], str(size), key=len)
    widths = [len(column) for column in columns]

    def row(shape: Ints) -> str:
        cells = [""] * (n_dims - len(shape)) + [str(size) for size in shape]
        return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))

    mark = "  ".join(("^" if place == dim else " ").rjust(w) for place, w in enumerate(widths))
    return f"  a: {row(a)}\n  b: {row(b)}\n     {mark.rstrip()}"


def broadcast_strides(shape: Ints, strides: Ints, to: Ints) -> Ints:
    """Strides that read a tensor as if it had shape ``to``: 0 where it is repeated."""
    lead = len(to) - len(shape)
    return (0,) * lead + tuple(
        0 if size == 1 and wanted != 1 else stride
        for size, stride, wanted in zip(shape, strides, to[lead:], strict=True)
    )


def expand(source: Layout, to: Ints, type_name: str, asked: Ints | None = None) -> Layout:
    """``source`` read with shape ``to``; dimensions of size 1 are repeated.

    ``type_name`` ("torch.FloatTensor") and ``asked`` (the sizes as the caller wrote them) only
    serve PyTorch's error messages.
    """
    shape = source.shape
    if len(shape) > len(to):
        raise ShapeError(
            f"expand({type_name}{{{sizes(shape)}}}, size={sizes(to)}): the number "
            f"of sizes provided ({len(to)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(shape)})",
            a_shape=to,
            b_shape=shape,
        )
    lead = len(to) - len(shape)
    for dim in range(len(to) - 1, lead - 1, -1):
        if shape[dim - lead] not in (1, to[dim]):
            raise ShapeError(
                f"The expanded size of the tensor ({to[dim]}) must match the existing size "
                f"({shape[dim - lead]}) at non-singleton dimension {dim}.  "
                f"Target sizes: {sizes(asked or to)}.  Tensor sizes: {sizes(shape)}",
                a_shape=to,
                b_shape=shape,
                dim=dim,
            )
    strides = list(broadcast_strides(shape, source.strides, to))
    for dim in range(lead - 1, -1, -1):  # a new dimension is not repeated where one is enough
        if shape and to[dim] == 1:
            strides[dim] = to[dim + 1] * strides[dim + 1]
    return Layout(to, tuple(strides), source.offset)


def _fastest_first(shape: Ints, operands: Sequence[Ints]) -> list[int]:
    """Dimensions from the fastest to the slowest, as PyTorch's TensorIterator orders them.

    An insertion sort by the operands' strides, starting from row-major order. The first operand
    that has an opinion decides; stride 0 has none; at equal strides the smaller size goes first.
    (aten/src/ATen/TensorIterator.cpp, reorder_dimensions.)
    """

    def compare(dim0: int, dim1: int) -> int:
        for strides in operands:
            stride0, stride1 = strides[dim0], strides[dim1]
            if stride0 == 0 or stride1 == 0:
                continue
            if stride0 != stride1:
                return -1 if stride0 < stride1 else 1
            if shape[dim0] > shape[dim1]:
                return 1
        return 0

    order = list(range(len(shape) - 1, -1, -1))
    for start in range(1, len(order)):
        moving = start
        for place in range(start - 1, -1, -1):
            verdict = compare(order[place], order[moving])
            if verdict > 0:
                order[place], order[moving] = order[moving], order[place]
                moving = place
            elif verdict < 0:
                break
    return order


def _pack(shape: Ints, fastest_first: Sequence[int], *, count_empty_as_one: bool) -> Ints:
    strides = [0] * len(shape)
    step = 1
    for dim in fastest_first:
        strides[dim] = step
        step *= max(shape[dim], 1) if count_empty_as_one else shape[dim]
    return tuple(strides)


def dense_strides(shape: Ints, strides: Ints) -> Ints:
    """Strides of a copy that keeps the order in memory (``clone``, ``zeros_like``, ``to``)."""
    if is_dense(shape, strides):
        return strides
    order = _fastest_first(shape, [strides])
    return _pack(shape, order, count_empty_as_one=True)


def _is_channels_last(shape: Ints, strides: Ints) -> bool:
    """Whether a stack of images (image, channel, row, column) lies with its channels together.

    PyTorch gives results of such tensors the standard strides of this order, which differ from
    the operands' own in dimensions of size 1.
    """
    return len(shape) == 4 and _has_no_gaps((strides[dim], shape[dim]) for dim in (1, 3, 2, 0))


def result_strides(shape: Ints, operands: Sequence[tuple[Ints, Ints]]) -> Ints:
    """Strides of a new result computed from ``operands``, given as (shape, strides) pairs.

    All contiguous gives contiguous; all alike and dense keeps their strides; otherwise the
    operands' order in memory decides (TensorIterator).

    >>> from tensorkit import layout
    >>> layout.result_strides((2, 3), [((2, 3), (1, 2)), ((3,), (1,))])
    (1, 2)
    """
    if all(own == shape for own, _ in operands):
        if all(is_contiguous(own, strides) for own, strides in operands):
            return contiguous_strides(shape)
        if all(_is_channels_last(own, strides) for own, strides in operands):
            return _pack(shape, (1, 3, 2, 0), count_empty_as_one=True)
        first = operands[0][1]
        if is_dense(shape, first) and all(strides == first for _, strides in operands):
            return first
    stretched = [broadcast_strides(own, strides, shape) for own, strides in operands]
    order = _fastest_first(shape, stretched)
    if order == list(range(len(shape) - 1, -1, -1)):
        return contiguous_strides(shape)
    return _pack(shape, order, count_empty_as_one=False)


def infer_size(shape: Ints, count: int) -> Ints:
    """``shape`` with its one -1 replaced, so that it has ``count`` elements.

    >>> from tensorkit import layout
    >>> layout.infer_size((2, -1), 6)
    (2, 3)
    """
    known, unknown = 1, None
    for dim, size in enumerate(shape):
        if size == -1:
            if unknown is not None:
                raise ShapeError("only one dimension can be inferred", a_shape=shape)
            unknown = dim
        elif size < 0:
            raise ShapeError(
                f"invalid shape dimension {size} at index {dim} of shape {sizes(shape)}"
            )
        else:
            known *= size
    if unknown is not None and known == 0 and count == 0:
        raise ShapeError(
            f"cannot reshape tensor of 0 elements into shape {sizes(shape)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous",
            a_shape=shape,
        )
    if count != known and (unknown is None or known == 0 or count % known):
        raise ShapeError(
            f"shape '{sizes(shape)}' is invalid for input of size {count}",
            f"The sizes multiply to {known}{'' if unknown is None else ' times the -1'}; "
            f"there are {count} elements.",
            a_shape=shape,
        )
    if unknown is None:
        return shape
    return (*shape[:unknown], count // known, *shape[unknown + 1 :])


def view_strides(shape: Ints, strides: Ints, to: Ints) -> Ints | None:
    """Strides that show the same elements in the shape ``to``; None if there are none.

    The dimensions are cut into chunks, each of which walks memory in even steps; a new dimension
    must not cross from one chunk into another.
    (aten/src/ATen/TensorUtils.cpp, computeStride.)

    >>> from tensorkit import layout
    >>> layout.view_strides((2, 6), (6, 1), (4, 3)), layout.view_strides((2, 3), (1, 2), (6,))
    ((3, 1), None)
    """
    if 0 in shape:
        return strides if shape == to else contiguous_strides(to)
    if not shape:
        return (1,) * len(to)
    found = [0] * len(to)
    new_dim = len(to) - 1
    step = strides[-1]  # of the fastest dimension in this chunk
    in_chunk = in_view = 1  # elements seen so far, counted in old and in new dimensions
    for dim in range(len(shape) - 1, -1, -1):
        in_chunk *= shape[dim]
        ends = dim == 0 or (shape[dim - 1] != 1 and strides[dim - 1] != in_chunk * step)
        if not ends:
            continue
        while new_dim >= 0 and (in_view < in_chunk or to[new_dim] == 1):
            found[new_dim] = in_view * step
            in_view *= to[new_dim]
            new_dim -= 1
        if in_view != in_chunk:
            return None
        if dim > 0:
            step = strides[dim - 1]
            in_chunk = in_view = 1
    return tuple(found) if new_dim == -1 else None


def wrap_dim(dim: int, n_dims: int) -> int:
    """A dimension counted from the end (-1 is the last) as one counted from the front."""
    if n_dims == 0:
        raise IndexRangeError(
            f"Dimension specified as {dim} but tensor has no dimensions", index=dim, dim=0, size=0
        )
    if not -n_dims <= dim < n_dims:
        raise IndexRangeError(
            f"Dimension out of range (expected to be in range of [{-n_dims}, {n_dims - 1}], "
            f"but got {dim})",
            index=dim,
            dim=0,
            size=n_dims,
        )
    return dim % n_dims


def select(source: Layout, dim: int, index: int, place: int | None = None) -> Layout:
    """One entry along ``dim``; the dimension disappears.

    ``place`` is what an error calls the dimension: PyTorch names the position in the index.
    """
    shape, strides, offset = source
    size = shape[dim]
    if not -size <= index < size:
        raise IndexRangeError(
            f"index {index} is out of bounds for dimension {dim if place is None else place} "
            f"with size {size}",
            f"Valid indices are {-size} to {size - 1}." if size else "The dimension is empty.",
            index=index,
            dim=dim,
            size=size,
        )
    start = index % size
    return Layout(
        shape[:dim] + shape[dim + 1 :],
        strides[:dim] + strides[dim + 1 :],
        offset + start * strides[dim],
    )


def slice_(source: Layout, dim: int, start: int, stop: int, step: int) -> Layout:
    """Every ``step``-th entry from ``start`` up to, not including, ``stop`` along ``dim``."""
    shape, strides, offset = source
    size = shape[dim]
    start = min(max(start + size if start < 0 else start, 0), size)
    stop = min(max(stop + size if stop < 0 else stop, start), size)
    if start == 0 and stop == size and step == 1:
        return source
    length = (stop - start + step - 1) // step
    return Layout(
        (*shape[:dim], length, *shape[dim + 1 :]),
        (*strides[:dim], strides[dim] * step, *strides[dim + 1 :]),
        offset + start * strides[dim],
    )


def unsqueeze(source: Layout, dim: int) -> Layout:
    """A new dimension of size 1 before ``dim``."""
    shape, strides, offset = source
    _check_dims((1, *shape))
    stride = shape[dim] * strides[dim] if dim < len(shape) else 1
    return Layout((*shape[:dim], 1, *shape[dim:]), (*strides[:dim], stride, *strides[dim:]), offset)


@lru_cache(100)
def backwards(n_dims: int, dims: Ints) -> tuple[slice, ...]:
    """The index that reverses these dimensions of an array.

    >>> from tensorkit import layout
    >>> layout.backwards(2, (1,))
    (slice(None, None, 1), slice(None, None, -1))
    """
    return tuple(slice(None, None, -1 if dim in dims else 1) for dim in range(n_dims))
