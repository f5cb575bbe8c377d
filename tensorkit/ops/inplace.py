"""Writes in place: what is checked before, and the function that writes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd.node import Node, Rule, add_node, edge_of
from tensorkit.autograd.versions import bump_version, check_write, rebase_history, save_result
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, check_same_device
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.dtypes import DType
from tensorkit.errors import AutogradError, DTypeError, OverlapError, ShapeError, sizes
from tensorkit.ops.arguments import need_tensor
from tensorkit.thread_state import state


def write(
    x: TensorBase,
    array: Any,
    operation: str,
    rule: Rule | None = None,
    values: dict[str, Any] | None = None,
    at: Any = ...,
) -> None:
    """Copy ``array`` into the memory of ``x``, converting and broadcasting it.

    ``at`` is a NumPy index of the elements to write; without it, all are. Comes after all checks:
    it makes a new version, and with a ``rule`` ``x`` gets a node; ``values`` are those that
    ``add_node`` takes. The formulas need neither the old values nor the new ones. Some write by
    themselves: ``x += y`` (dispatch), ``copy_`` from the CPU (indexing), the engine where it adds
    to a leaf's gradient, optimizers, and what fills new tensors (creation, random).
    """
    if x.device is CPU and not x._array.flags.writeable:
        storage = base.storage_of(x)
        if not storage.flat.flags.writeable:
            raise DTypeError(
                "The given NumPy array is not writable",
                "This tensor shares memory with a read-only NumPy array.",
                repair="x = x.clone()",
            )
        # a part of an expanded tensor, which NumPy takes for read-only
        x._array = storage.device.backend.view(storage.flat, *base.layout_of(x))
    node = None if rule is None else add_node(rule, base.same_memory(x), values or {})._node
    if state.origin_recorders:
        state.origin_recorders[-1].writes(x)
    if array.__class__ is np.ndarray and x.device is not CPU and not array.ndim:
        x._array[at] = array[()]  # a number is an argument of the launch
    else:
        without_warnings(x._array.__setitem__, at, array)
    bump_version(x, f"{operation}_")
    if node is not None:
        rebase_history(x, node)


def in_place(
    operation: Callable[..., Any], name: str = "", check: Callable[..., object] | None = None
) -> Callable[..., Any]:
    """The in-place form of an operation: compute, write, and let the tensor have the new history.

    What a formula needs of the old values is a copy of them. ``check`` is called first, as
    the operation is, and may raise.
    """
    name = f"{name or operation.__name__}_"  # autograd.recording reads this variable

    def inplace(input: Tensor, *args: Any, **options: Any) -> Tensor:
        need_tensor(name, input)
        others = (*args, *options.values())
        if input.device is CPU:  # it stays where it is
            devices = [x.device for x in others if isinstance(x, TensorBase)]
            check_same_device(CPU, *devices, into=CPU)
        tracked = check_write(input, *others)
        check_overlap(input, *others)
        if check is not None:
            check(input, *args, **options)
        old: Any = input
        if tracked:
            old = base.new(input._array.copy(order="K"))
            old._node = edge_of(input)
        result = operation(old, *args, **options)
        check_output_shape(tuple(input.shape), tuple(result.shape))
        check_output_dtype(result.dtype, input.dtype)
        if tracked and not isinstance(result._node, Node):
            raise AutogradError(f"{name} has no gradient", repair=f"x = x.{name[:-1]}(...)")
        write(input, result._array, name.removesuffix("_"))
        if tracked:
            if "out" in result._node.rule.saved_names:
                save_result(result._node, input)
            rebase_history(input, result._node)
        return input

    inplace.__qualname__ = inplace.__name__ = name
    inplace.__wrapped__ = operation  # type: ignore[attr-defined] # has its options
    inplace.__doc__ = f"``{name.removesuffix('_')}``, in place."
    return seen_by_modes(inplace)


def check_output_shape(own: layout.Ints, wanted: layout.Ints) -> None:
    """ShapeError unless a result of shape ``wanted`` fits into a tensor of shape ``own``."""
    if own != wanted:
        raise ShapeError(
            f"output with shape {sizes(own)} doesn't match the broadcast shape {sizes(wanted)}",
            "An in-place operation cannot change the shape of the tensor it writes to.",
            repair="x = x + y    # a new tensor",
        )


def check_output_dtype(result: DType, own: DType) -> None:
    """DTypeError unless a result of dtype ``result`` may be stored as ``own``."""
    if not dtypes.can_cast(result, own):
        raise DTypeError(
            f"result type {result.word} can't be cast to the desired output type {own.word}",
            f"An in-place operation keeps the dtype {own}, which cannot hold the result.",
            repair="the operation without _, as in x = x / y: a new tensor of the result's dtype",
        )


def check_overlap(x: TensorBase, *others: Any) -> None:
    """OverlapError if a write to ``x`` would be read again by the operands."""
    own = base.layout_of(x)
    if layout.overlaps_itself(own.shape, own.strides):
        raise OverlapError(
            "unsupported operation: more than one element of the written-to tensor refers to "
            "a single memory location. Please clone() the tensor before performing the "
            "operation.",
            f"Strides {own.strides}: a stride of 0 repeats one element.",
            repair="x = x.clone()",
        )
    for other in others:
        if not isinstance(other, TensorBase) or other is x or x._storage is None:
            continue
        if other._storage is not x._storage:
            continue
        if layout.overlap_partially(own, base.layout_of(other)):
            raise OverlapError(
                "unsupported operation: some elements of the input tensor and the written-to "
                "tensor refer to a single memory location. Please clone() the tensor before "
                "performing the operation.",
                repair="y = y.clone()",
            )
