"""Compositions: functions made of operations, without a definition of their own."""

from typing import Any

from tensorkit.base import Tensor, TensorBase
from tensorkit.dtypes import DType
from tensorkit.ops.arguments import need_tensor, no_such_call
from tensorkit.ops.operands import as_operand, promoted_type


def numel(input: Tensor) -> int:
    """Number of elements.

    >>> tk.numel(tk.zeros(2, 3))
    6
    """
    need_tensor("numel", input)
    return input.shape.numel()


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating-point numbers.

    >>> tk.is_floating_point(tk.tensor([1, 2]))
    False
    """
    need_tensor("is_floating_point", input)
    return input.dtype.is_floating_point


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype that an operation on two tensors or numbers would give.

    >>> tk.result_type(tk.tensor([1, 2]), 1.0)
    torch.float32
    """
    if isinstance(tensor1, TensorBase) and isinstance(tensor2, TensorBase):  # noqa: SIM102
        if tensor1.dtype is tensor2.dtype:  # nearly always
            return tensor1.dtype
    first, second = as_operand(tensor1), as_operand(tensor2)
    if first is None or second is None:
        signature = "(Tensor or Number tensor1, Tensor or Number tensor2)"
        raise no_such_call("result_type", (tensor1, tensor2), signature)
    return promoted_type((first, second))
