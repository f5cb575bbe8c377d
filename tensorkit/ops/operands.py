"""Tensors and numbers as operands: the dtype they have together, and their arrays in it."""

from typing import Any, NamedTuple

import numpy as np

from tensorkit import dtypes
from tensorkit.base import TensorBase
from tensorkit.dtypes import DType
from tensorkit.layout import Ints
from tensorkit.ops.arguments import Number, as_number


class Operand(NamedTuple):
    """A tensor's array, or a number that has no dtype of its own yet."""

    array: Any
    dtype: DType
    shape: Ints
    strides: Ints
    is_number: bool


def as_operand(value: Any) -> Operand | None:
    """A tensor or number as an Operand; None for everything else."""
    if isinstance(value, TensorBase):
        return Operand(value._array, value.dtype, tuple(value.shape), value._strides, False)
    number = as_number(value)
    if number is None:
        return None
    return Operand(number, dtypes.of_number(number), (), (), True)


def promoted_type(operands: tuple[Operand, ...]) -> DType:
    """The promoted dtype: tensors with dimensions count most, 0-d tensors less, numbers least."""
    ranked: list[DType | None] = [None, None, None]
    for operand in operands:
        rank = 2 if operand.is_number else 0 if operand.shape else 1
        present = ranked[rank]
        ranked[rank] = operand.dtype if present is None else dtypes.promote(present, operand.dtype)
    with_dims, without_dims, numbers = ranked
    found = dtypes.combine(with_dims, dtypes.combine(without_dims, numbers))
    assert found is not None
    return found


def promoted_dtype(*values: Any) -> DType:
    """The dtype in which an operation computes with these tensors and numbers."""
    operands = [as_operand(each) for each in values]
    return promoted_type(tuple([each for each in operands if each is not None]))


def as_array(operand: Operand, dtype: DType) -> Any:
    """The array of an operand in this dtype."""
    if operand.is_number:  # as a NumPy scalar, by which a forward can tell it from a tensor
        return number_array(operand.array, dtype)[()]
    if operand.array.dtype == dtype.numpy:
        return operand.array
    return operand.array.astype(dtype.numpy)


def number_array(value: Number, dtype: DType) -> Any:
    """A 0-d array of a number; integers wrap around as in PyTorch's arithmetic."""
    if dtype.category == dtypes.INTEGER:
        value = int(value)
        if not -(2**63) <= value < 2**64:
            raise OverflowError("int too big to convert")
        value &= 2 ** (8 * dtype.itemsize) - 1
        unsigned = np.array(value, f"u{dtype.itemsize}")
        return unsigned.view(dtype.numpy)
    return np.array(value, dtype.numpy)


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype that an operation on two tensors or numbers would give.

    >>> tk.result_type(tk.tensor([1, 2]), 1.0)
    torch.float32
    """
    operands = as_operand(tensor1), as_operand(tensor2)
    if None in operands:
        raise TypeError("result_type() takes tensors and numbers")
    return promoted_type(operands)  # type: ignore[arg-type]
