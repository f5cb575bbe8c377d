"""Joining and rearranging, always as copies: cat, stack, repeat, flip, tril."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import index as as_index
from typing import Any

from tensorkit import base, layout
from tensorkit.autograd.node import Node, Rule, edge_of, mark_inference
from tensorkit.base import Tensor, TensorBase
from tensorkit.definition import unpacked
from tensorkit.devices import check_same_device
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch import op
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.errors import NotSupportedError, ShapeError, must_be, sizes
from tensorkit.layout import Ints
from tensorkit.ops import copying, views
from tensorkit.ops.arguments import as_array, need_tensor, need_tensors, result_type
from tensorkit.thread_state import state


@seen_by_modes
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after the other along ``dim``; their other sizes are equal.

    Their dtypes are promoted. Vectors without elements are left out.

    >>> tk.cat([tk.tensor([1, 2]), tk.tensor([3])])
    tensor([1, 2, 3])
    """
    arrays = _arrays_of("cat", tensors)
    used = [each for each in arrays if each.shape != (0,)] or arrays
    shapes = [each.shape for each in arrays]
    if () in shapes:
        raise ShapeError(
            f"zero-dimensional tensor (at position {shapes.index(())}) cannot be concatenated",
            repair="tk.stack(tensors)",
        )
    dim = layout.wrap_dim(as_index(dim), used[0].ndim)
    try:
        array = without_warnings(tensors[0]._xp.concatenate, used, dim)
    except ValueError:
        _refuse_shapes(shapes, used[0].shape, dim)
        raise
    ends = accumulate([0 if shape == (0,) else shape[dim] for shape in shapes], initial=0)
    return _recorded(array, tensors, _CAT, dim, [slice(*each) for each in pairwise(ends)])


@seen_by_modes
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new dimension ``dim``.

    >>> tk.stack([tk.tensor([1, 2]), tk.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    arrays = _arrays_of("stack", tensors)
    shape = arrays[0].shape
    dim = layout.wrap_dim(as_index(dim), len(shape) + 1)
    for number, each in enumerate(arrays):
        if each.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {sizes(shape)} at entry "
                f"0 and {sizes(each.shape)} at entry {number}",
                repair="tk.cat(tensors), where sizes may differ along one dimension",
            )
    array = without_warnings(tensors[0]._xp.stack, arrays, dim)
    return _recorded(array, tensors, _STACK, dim, range(len(tensors)))


def _arrays_of(function: str, tensors: Any) -> list[Any]:
    """The arrays of these tensors, of one device and at least one, in the dtype of all."""
    if not isinstance(tensors, (tuple, list)):
        raise must_be(function, "tensors", 1, "tuple of Tensors", tensors)
    need_tensors(tensors, 0)
    if not tensors:
        raise ShapeError(f"{function} expects a non-empty list of Tensors")
    check_same_device(*(x.device for x in tensors))
    dtype = tensors[0].dtype
    if any(x.dtype is not dtype for x in tensors):
        dtype = result_type(*tensors)
    return [as_array(x, dtype) for x in tensors]


def _refuse_shapes(shapes: list[Ints], model: Ints, dim: int) -> None:
    """Raise where a shape is not ``model`` but for the size of ``dim``."""
    for number, shape in enumerate(shapes):
        if shape != (0,) and len(model) != len(shape):
            n_dims = f"got {len(model)} and {len(shape)}"
            raise ShapeError(f"Tensors must have same number of dimensions: {n_dims}") from None
        for at, (wanted, size) in enumerate(zip(model, shape, strict=False)):
            if shape != (0,) and at != dim and wanted != size:
                raise ShapeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size "
                    f"{wanted} but got size {size} for tensor number {number} in the list.",
                    f"Tensor 0 has shape {model}, tensor {number} has {shape}.",
                    repair=f"tk.cat(tensors, {at}), if they differ there alone",
                ) from None


def _recorded(array: Any, tensors: Any, rule: Rule, dim: int, parts: Sequence[Any]) -> Tensor:
    result = mark_inference(base.new(base.contiguous(array, tensors[0].device)))
    if state.grad and result.dtype.is_floating_point:
        edges = tuple([None if x._node is None else edge_of(x) for x in tensors])
        if any(edge is not None for edge in edges):
            indices = [(*[slice(None)] * dim, each, ...) for each in parts]
            result._node = Node(rule, result, edges, (indices, [x._array.shape for x in tensors]))
    return result


class _Joined(Rule):
    """Of ``cat`` and ``stack``: each input's gradient is its part of the whole one."""

    def gradients(self, node: Node, g: Any, as_tensors: bool) -> Any:
        """The parts of the gradient, of a tensor or an array."""
        return [
            None if edge is None else g[index].reshape(shape)
            for edge, index, shape in zip(node.edges, *node.saved, strict=True)
        ]


_CAT, _STACK = _Joined("cat", "CatBackward0", (), {}), _Joined("stack", "StackBackward0", (), {})
for _rule in (_CAT, _STACK):
    _rule.set_saved(("indices", "shapes"))


# Copies in another arrangement


@op(dim=("dims",), elementwise=True)
def flip(xp: Any, input: Any, *dims: int) -> Any:
    """The elements in reverse order along ``dims``, as a copy.

    >>> tk.flip(tk.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    if not dims:
        raise TypeError("dims are missing")
    vector = input.reshape(input.shape or (1,))  # a number counts as one
    order = "C" if 0 in input.strides else "K"  # what is repeated has no order
    return xp.flip(vector, unpacked(dims)).reshape(input.shape).copy(order=order)


@op()
def repeat(xp: Any, input: Any, *repeats: int) -> Any:
    """The whole tensor, ``repeats`` times along each dimension, as a copy.

    There may be more repeats than dimensions: new ones come in front.

    >>> tk.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if not repeats:
        raise TypeError("repeats are missing")
    counts = unpacked(repeats)
    if len(counts) < input.ndim:
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor",
        )
    shape = (1,) * (len(counts) - input.ndim) + input.shape
    size = [count * own for count, own in zip(counts, shape, strict=True)]
    if min(size, default=0) < 0:
        negative = next(each for each in size if each < 0)
        raise ShapeError(f"Trying to create tensor with negative dimension {negative}: {size}")
    return xp.tile(input, counts)


def _sum_of_repeats(g: Any, repeats: Ints, shape: Ints) -> Any:
    """The sum of all copies that ``repeat`` made of a tensor of this shape."""
    own = (1,) * (len(repeats) - len(shape)) + shape
    apart = g.reshape([each for pair in zip(repeats, own, strict=True) for each in pair])
    return apart.sum(tuple(range(0, 2 * len(own), 2))).reshape(shape) if own else g


flip.grad(input=lambda g, dims: flip(g, dims))
repeat.grad(input=lambda g, repeats, shape: _sum_of_repeats(g, repeats, shape))


def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Each entry along ``dim`` ``repeats`` times in a row; without ``dim``, each element.

    >>> tk.repeat_interleave(tk.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    need_tensor("repeat_interleave", input)
    if dim is None:
        input, dim = views.flatten(input), 0
    dim = layout.wrap_dim(as_index(dim), input.dim())
    shape = tuple(input.shape)
    if isinstance(repeats, TensorBase) and repeats._array.size != 1:
        raise NotSupportedError(
            "repeat_interleave takes one number of repeats for all entries",
            repair="x.index_select(dim, positions), with a position as often as it is wanted",
        )
    count = as_index(repeats)
    if count < 0:
        raise ShapeError("repeats can not be negative")
    apart = (*shape[: dim + 1], count, *shape[dim + 1 :])
    spread = views.expand(views.unsqueeze(input, dim + 1), apart)
    spread = copying.with_strides(spread, layout.contiguous_strides(apart))
    return views.view(spread, (*shape[:dim], shape[dim] * count, *shape[dim + 1 :]))


@op()
def tril(xp: Any, input: Any, diagonal: int = 0) -> Any:
    """The lower triangle of each matrix, zeros above; ``diagonal`` moves the border up.

    >>> tk.tril(tk.ones(3, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.],
            [1., 1., 1.]])
    """
    _need_matrices("tril", input)
    return xp.tril(input, diagonal)


@op()
def triu(xp: Any, input: Any, diagonal: int = 0) -> Any:
    """The upper triangle of each matrix, zeros below; ``diagonal`` moves the border up.

    >>> tk.triu(tk.ones(2, 3), 1)
    tensor([[0., 1., 1.],
            [0., 0., 1.]])
    """
    _need_matrices("triu", input)
    return xp.triu(input, diagonal)


def _need_matrices(function: str, x: Any) -> None:
    if x.ndim < 2:
        raise ShapeError(f"{function}: input tensor must have at least 2 dimensions")


tril.grad(input=lambda g, diagonal: tril(g, diagonal))
triu.grad(input=lambda g, diagonal: triu(g, diagonal))
