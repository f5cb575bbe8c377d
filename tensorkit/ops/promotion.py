"""Tensors and numbers as operands: the dtype they have together, and their arrays in it."""

from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.base import TensorBase
from tensorkit.dtypes import DType
from tensorkit.errstate import silently
from tensorkit.ops.arguments import Number, as_number


def is_operand(value: Any) -> bool:
    """Whether ``value`` is a tensor or a number."""
    return isinstance(value, TensorBase) or as_number(value) is not None


def result_type(*values: Any) -> DType:
    """The dtype that an operation on these tensors and numbers would give.

    Tensors with dimensions count most, tensors without less, numbers least.

    >>> tk.result_type(tk.tensor([1, 2]), 1.0)
    torch.float32
    """
    ranked: list[DType | None] = [None, None, None]
    for value in values:
        if not is_operand(value):
            raise TypeError(f"result_type() takes tensors and numbers, not {type(value).__name__}")
        is_tensor = isinstance(value, TensorBase)
        rank = 2 if not is_tensor else 0 if value.shape else 1
        number = None if is_tensor else as_number(value)
        own = value.dtype if number is None else dtypes.of_number(number)
        present = ranked[rank]
        ranked[rank] = own if present is None else dtypes.promote(present, own)
    with_dims, without_dims, numbers = ranked
    found = dtypes.combine(with_dims, dtypes.combine(without_dims, numbers))
    assert found is not None
    return found


def promoted(values: list[Any], to_floating: bool) -> tuple[list[Any], DType]:
    """Tensors and numbers as arrays of the dtype that they have together, and that dtype.

    None stays None; ``to_floating``: integers become the default dtype.
    """
    dtype = result_type(*[x for x in values if x is not None])
    if to_floating and not dtype.is_floating_point:
        dtype = dtypes.get_default_dtype()
    return [None if x is None else silently(as_array, x, dtype) for x in values], dtype


def as_array(value: Any, dtype: DType) -> Any:
    """The array of a tensor or number in this dtype."""
    if not isinstance(value, TensorBase):  # a NumPy scalar, by which a forward can tell it
        return number_array(value, dtype)[()]
    array = value._array
    return array if array.dtype == dtype.numpy else array.astype(dtype.numpy)


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
