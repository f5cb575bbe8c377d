"""Joining tensors: cat and stack. Results are always copies."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tensorkit import layout
from tensorkit.autograd.graph import Node
from tensorkit.autograd.history import edge_of
from tensorkit.autograd.modes import state
from tensorkit.autograd.rules import Rule
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import refuse_mix
from tensorkit.errors import ShapeError, sizes, type_name
from tensorkit.ops import results
from tensorkit.ops.arguments import need_int, need_tensors
from tensorkit.ops.operands import as_array, as_operand, promoted_type


def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Tensors one after the other along ``dim``; their other sizes are equal.

    Their dtypes are promoted. Vectors without elements are left out.

    >>> tk.cat([tk.tensor([1, 2]), tk.tensor([3])])
    tensor([1, 2, 3])
    """
    dim = dim if axis is None else axis
    _need_tensors("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    dim = need_int("cat", "dim", 2, dim)
    shapes = [tuple(x.shape) for x in tensors]
    if () in shapes:
        at = shapes.index(())
        raise ShapeError(
            f"zero-dimensional tensor (at position {at}) cannot be concatenated",
            repair="tk.stack(tensors)",
        )
    refuse_mix(*(x.device for x in tensors))
    model = next((shape for shape in shapes if shape != (0,)), (0,))
    dim = layout.wrap_dim(dim, len(model))
    for number, shape in enumerate(shapes):
        if shape not in (model, (0,)):
            _check_alike(model, shape, dim, number)
    xp = tensors[0]._xp
    used = tensors
    if (0,) in shapes and model != (0,):
        used = [x for x, shape in zip(tensors, shapes, strict=True) if shape != (0,)]
    array = results.run(xp.concatenate, _promoted(tensors, used), dim)
    result = results.contiguous_result(array, tensors[0].device)
    ends = list(accumulate(0 if shape == (0,) else shape[dim] for shape in shapes))
    parts: list[Any] = list(zip([0, *ends], ends, strict=False))
    if len(model) > 1:
        parts = [None if x == (0,) else part for x, part in zip(shapes, parts, strict=True)]
    return _recorded(result, tensors, _CAT, dim, parts)


def stack(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Tensors of one shape side by side along a new dimension ``dim``.

    >>> tk.stack([tk.tensor([1, 2]), tk.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    dim = dim if axis is None else axis
    _need_tensors("stack", tensors)
    if not tensors:
        raise ShapeError("stack expects a non-empty TensorList")
    shape = tuple(tensors[0].shape)
    dim = layout.wrap_dim(need_int("stack", "dim", 2, dim), len(shape) + 1)
    for number, x in enumerate(tensors):
        if x.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {sizes(shape)} at entry "
                f"0 and {sizes(x.shape)} at entry {number}",
                a_shape=shape,
                b_shape=tuple(x.shape),
            )
    refuse_mix(*(x.device for x in tensors))
    xp = tensors[0]._xp
    array = results.run(xp.stack, _promoted(tensors, tensors), dim)
    result = results.contiguous_result(array, tensors[0].device)
    parts = list(range(len(tensors)))
    return _recorded(result, tensors, _STACK, dim, parts)


def _need_tensors(function: str, tensors: Any) -> None:
    if not isinstance(tensors, (tuple, list)):
        kind = "Tensor" if isinstance(tensors, TensorBase) else type_name(tensors)
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}"
        )
    need_tensors(tensors, 0)


def _check_alike(model: Any, shape: Any, dim: int, number: int) -> None:
    """Raise unless ``shape`` is ``model`` but for the size of ``dim``."""
    if len(model) != len(shape):
        first = f"Tensors must have same number of dimensions: got {len(model)} and {len(shape)}"
        raise ShapeError(first, a_shape=model, b_shape=shape)
    for place, (wanted, size) in enumerate(zip(model, shape, strict=True)):
        if place != dim and wanted != size:
            raise ShapeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size "
                f"{wanted} but got size {size} for tensor number {number} in the list.",
                f"Tensor 0 has shape {model}, tensor {number} has {shape}.",
                a_shape=model,
                b_shape=shape,
                dim=place,
            )


def _promoted(tensors: Any, used: Any) -> list[Any]:
    """The arrays of ``used`` in the dtype that all ``tensors`` share after promotion."""
    first = tensors[0].dtype
    if all(x.dtype is first for x in tensors):
        return [x._array for x in used]
    dtype = promoted_type(tuple(as_operand(x) for x in tensors))  # type: ignore[misc]
    return [as_array(as_operand(x), dtype) for x in used]  # type: ignore[arg-type]


def _recorded(result: Tensor, tensors: Any, rule: Rule, dim: int, parts: list[Any]) -> Tensor:
    result = results.finished(result)
    if not state.grad or not result.dtype.is_floating_point:
        return result
    if all(x._node is None for x in tensors):
        return result
    edges = tuple([None if x._node is None else edge_of(x) for x in tensors])
    if any(edge is not None for edge in edges):
        result._node = Node(rule, result, edges, (dim, parts))
    return result


class _Joined(Rule):
    """Of ``cat`` and ``stack``: each input's gradient is its part of the whole one.

    ``parts``, for each input: begin and end along ``dim``, or its position; None of one that was
    left out.
    """

    keeps, frees = ("dim", "parts"), (False, False)

    def __init__(self, name: str, node: str) -> None:
        self.name, self.node, self.inputs, self.option = name, node, (), None

    def gradients(self, node: Node, g: Any, as_tensors: bool) -> Any:
        """The parts of the gradient; of a tensor as views."""
        dim, parts = node.saved
        lead = (slice(None),) * dim
        return [
            None
            if edge is None
            else g.reshape(-1)[:0]
            if part is None
            else g[(*lead, slice(*part) if type(part) is tuple else part)]
            for edge, part in zip(node.edges, parts, strict=True)
        ]


_CAT, _STACK = _Joined("cat", "CatBackward0"), _Joined("stack", "StackBackward0")
