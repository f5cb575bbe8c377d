"""Shapes, strides and offsets: pure functions on integers, no arrays.

A *shape* is a tuple of sizes. *Strides* say, for each dimension, how many elements apart two
neighbours lie in the flat storage. An *offset* is the position of the first element there. The
three together are a ``Layout``. The rules are PyTorch's, also for dimensions of size 0 and 1,
where array libraries differ. A broadcast is undone by ``ops.reductions.sum_to_shape``.
"""

from collections.abc import Iterable, Sequence
from math import prod
from operator import index
from typing import Any, NamedTuple

from tensorkit.errors import IndexRangeError, ShapeError, sizes
from tensorkit.overrides import overridable

Ints = tuple[int, ...]


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple that prints as PyTorch's does and knows ``numel()``.

    >>> tk.zeros(2, 3).shape
    torch.Size([2, 3])
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Any] = ()) -> "Size":
        """The size whose dimensions these integers are."""
        return tuple.__new__(cls, map(index, iterable))

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
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> "Size":
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, times: Any) -> "Size":
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__


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


@overridable
def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether reading in row-major order walks the storage one element at a time.

    Strides of dimensions of size 1 do not matter; an empty tensor is contiguous.
    """
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return 0 in shape
        expected *= size
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their stretch of storage, without gaps and without overlap."""
    order = slowest_first(strides)
    return is_contiguous([shape[dim] for dim in order], [strides[dim] for dim in order])


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
    """True if a stride of 0 repeats elements; other overlaps are not looked for."""
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


@overridable
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
                repair="tk.explain.broadcast(a, b)    # which change would make them fit",
            )
        shape.append(size_b if size_a == 1 else size_a)
    return tuple(reversed(shape))


def _picture(a: Ints, b: Ints, dim: int, n_dims: int) -> str:
    """Both shapes, aligned at the right, with a mark below the sizes that do not fit."""
    width = max(len(str(size)) for size in (*a, *b))

    def row(*cells: Any) -> str:
        padded = [""] * (n_dims - len(cells)) + [str(cell) for cell in cells]
        return "  ".join(cell.rjust(width) for cell in padded)

    mark = row(*[""] * dim, "^", *[""] * (n_dims - dim - 1))
    return f"  a: {row(*a)}\n  b: {row(*b)}\n     {mark.rstrip()}"


def check_expand(shape: Ints, to: Ints, asked: Ints) -> None:
    """ShapeError unless a tensor can be read with shape ``to``, its sizes of 1 repeated.

    ``asked`` (the sizes as the caller wrote them) only serves the error message.
    """
    lead = len(to) - len(shape)
    if lead < 0:
        first = f"expand(): the tensor has {len(shape)} dimensions, and {sizes(to)} has fewer"
        raise ShapeError(first, repair="x.reshape(size), if it has as many elements")
    for dim, size in enumerate(to[:lead]):
        if size < 0:
            first = f"The expanded size of the tensor ({size}) isn't allowed in a leading"
            raise ShapeError(f"{first}, non-existing dimension {dim}")
    for dim in range(len(to) - 1, lead - 1, -1):
        if shape[dim - lead] not in (1, to[dim]):
            raise ShapeError(
                f"The expanded size of the tensor ({to[dim]}) must match the existing size "
                f"({shape[dim - lead]}) at non-singleton dimension {dim}.  "
                f"Target sizes: {sizes(asked)}.  Tensor sizes: {sizes(shape)}",
                repair=f"a tensor whose size there is 1 or {to[dim]}",
            )


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
                raise ShapeError("only one dimension can be inferred")
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
        )
    if count != known and (unknown is None or known == 0 or count % known):
        raise ShapeError(
            f"shape '{sizes(shape)}' is invalid for input of size {count}",
            f"The sizes multiply to {known}{'' if unknown is None else ' times the -1'}; "
            f"there are {count} elements.",
            repair=f"(-1, {shape[-1]})"
            if shape[-1:] > (0,) and count % shape[-1] == 0
            else "(-1,)",
        )
    if unknown is None:
        return shape
    return (*shape[:unknown], count // known, *shape[unknown + 1 :])


def wrap_dim(dim: int, n_dims: int) -> int:
    """A dimension counted from the end (-1 is the last) as one counted from the front."""
    if n_dims == 0:
        raise IndexRangeError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -n_dims <= dim < n_dims:
        raise IndexRangeError(
            f"Dimension out of range (expected to be in range of [{-n_dims}, {n_dims - 1}], "
            f"but got {dim})",
        )
    return dim % n_dims


def wrap_dims(dim: Any, n_dims: int) -> Ints:
    """One dimension or several, counted from the front; each may be named once.

    A 0-d tensor takes the dimensions 0 and -1, as in PyTorch.
    """
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    found = tuple([wrap_dim(index(each), max(n_dims, 1)) for each in dims])
    for at, each in enumerate(found):
        if each in found[:at]:
            raise ShapeError(f"dim {each} appears multiple times in the list of dims")
    return found
