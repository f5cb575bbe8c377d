"""Views composed of others: unflatten, ravel, movedim, broadcast_tensors."""

from collections.abc import Sequence
from typing import Any

from tensorkit import layout
from tensorkit.base import Tensor
from tensorkit.errors import ShapeError
from tensorkit.errors import sizes as bracketed
from tensorkit.layout import Ints
from tensorkit.ops import copying, views
from tensorkit.ops.arguments import need_int, need_sizes, need_tensor, need_tensors, no_such_call
from tensorkit.ops.notation import composed


@composed
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Any:
    """One dimension as several of these sizes, of which one may be -1.

    >>> tk.unflatten(tk.zeros(2, 12), 1, (3, -1)).shape
    torch.Size([2, 3, 4])
    """
    need_tensor("unflatten", input)
    shape = tuple(input.shape)
    dim = layout.wrap_dim(need_int("unflatten", "dim", 2, dim), max(len(shape), 1))
    wanted = need_sizes("unflatten", "sizes", 3, sizes)
    if not wanted:
        raise ShapeError("unflatten: sizes must be non-empty", a_shape=shape)
    if not shape or wanted.count(-1) > 1:
        raise ShapeError(
            "unflatten got an unexpected error:",
            "A number has no dimension to divide." if not shape else "One size may be -1.",
            a_shape=shape,
        )
    try:
        found = layout.infer_size(wanted, shape[dim])
    except ShapeError:
        raise ShapeError(
            f"unflatten: Provided sizes {bracketed(wanted)} don't multiply up to the size of dim "
            f"{dim} ({shape[dim]}) in the input tensor",
            a_shape=shape,
        ) from None
    return views.view, ((*shape[:dim], *found, *shape[dim + 1 :]),)


@composed
def ravel(input: Tensor) -> Any:
    """All elements as a vector: a view of a contiguous tensor, of a copy otherwise.

    >>> tk.ravel(tk.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    need_tensor("ravel", input)
    if input._is_contiguous:
        return views.view, ((-1,),)
    return views.view(copying.contiguous(input), (-1,))


@composed
def movedim(input: Tensor, source: Any, destination: Any) -> Any:
    """View in which the dimensions ``source`` stand at the places ``destination``.

    >>> tk.movedim(tk.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    need_tensor("movedim", input)
    if isinstance(source, (tuple, list)) != isinstance(destination, (tuple, list)):
        raise no_such_call(
            "movedim",
            (source, destination),
            "(Tensor input, int source, int destination)",
            "(Tensor input, tuple of ints source, tuple of ints destination)",
        )
    n_dims = len(input.shape)
    places = []
    for name, dims in (("source", source), ("destination", destination)):
        if not isinstance(dims, (tuple, list)):
            dims = (need_int("movedim", name, 2, dims),)
        wrapped = [layout.wrap_dim(dim, max(n_dims, 1)) for dim in dims]
        if len(set(wrapped)) != len(wrapped):
            raise ShapeError(
                f"movedim: repeated dim in `{name}` ({bracketed(dims)})", a_shape=input.shape
            )
        places.append(wrapped)
    if len(places[0]) != len(places[1]):
        raise ShapeError(
            "movedim: Invalid source or destination dims: source "
            f"({bracketed(source)} dims) should contain the same number of dims as destination "
            f"({bracketed(destination)} dims)"
        )
    if not n_dims:
        return views.alias, ()
    moved = dict(zip(places[1], places[0], strict=True))
    others = iter(dim for dim in range(n_dims) if dim not in places[0])
    return views.permute, (
        tuple(moved[at] if at in moved else next(others) for at in range(n_dims)),
    )


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of all tensors in the shape to which they broadcast together.

    >>> [x.tolist() for x in tk.broadcast_tensors(tk.tensor([1, 2]), tk.tensor([[3], [4]]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    shape: Ints = ()
    need_tensors(tensors, 0)
    for x in tensors:
        shape = layout.broadcast_shapes(shape, tuple(x.shape))
    return tuple(x if x.shape == shape else views.expand(x, shape) for x in tensors)
