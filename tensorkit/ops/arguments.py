"""What functions are given: numbers, integers, sizes; the dtype that operands have together.

``as_...`` gives None for what is not of that kind; ``need_...`` and ``check_...`` raise, in
PyTorch's words.
"""

from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.base import TensorBase
from tensorkit.devices import Device, as_device
from tensorkit.direct_path import without_warnings
from tensorkit.dtypes import DType
from tensorkit.errors import ConversionError, NotSupportedError, message, must_be, type_name

Number = bool | int | float


def need_tensor(function: str, value: Any, argument: str = "input", position: int = 1) -> None:
    """TypeError with PyTorch's words unless ``value`` is a tensor."""
    if not isinstance(value, TensorBase):
        raise must_be(function, argument, position, "Tensor", value)


def need_two(function: str, input: Any, other: Any, name: str = "other") -> None:
    """TypeError with PyTorch's words unless both are tensors."""
    need_tensor(function, input)
    need_tensor(function, other, name, 2)


def need_tensors(values: Any, argument: int) -> None:
    """TypeError with PyTorch's words unless all elements of an argument are tensors."""
    for position, value in enumerate(values):
        if not isinstance(value, TensorBase):
            kind = type_name(value)
            raise TypeError(
                f"expected Tensor as element {position} in argument {argument}, but got {kind}"
            )


def as_number(value: Any) -> Number | None:
    """A Python number, or None if ``value`` is not one. NumPy scalars count as Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        negative = "can't convert negative int to unsigned"
        raise OverflowError(negative if value < 0 else "int too big to convert")
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, complex):
        dtypes.refuse("complex64")
    return None


def as_scalar(value: Any) -> Number | None:
    """A Python number, also from a 0-d tensor, or None if ``value`` is neither."""
    if isinstance(value, TensorBase):
        return None if value.shape else value.device.backend.item(value._array, "item")
    return as_number(value)


def no_kernel(kernel: str, dtype: DType, repair: str | None = None) -> NotSupportedError:
    """PyTorch's sentence for a dtype that an operation does not work on."""
    first = f"\"{kernel}\" not implemented for '{dtype.word}'"
    return NotSupportedError(first, repair=repair)


def kind_of(value: Any) -> str:
    return "Tensor" if isinstance(value, TensorBase) else type_name(value)


def check_value(value: Number, dtype: DType, name: str | None = None) -> None:
    """ConversionError if storing ``value`` as ``dtype`` would lose it.

    Negative numbers may wrap into uint8, as in PyTorch. ``name`` is the dtype's name in the
    sentence, where PyTorch uses another one than the C type.
    """
    if dtype is dtypes.bool_ or (dtype.is_floating_point and -60_000 < value < 60_000):
        return
    if dtype.is_floating_point:
        fits = not np.isfinite(value) or abs(value) <= float(np.finfo(dtype.numpy).max)
    else:
        low, high = dtypes.limits(dtype)
        wraps = low == 0 and not isinstance(value, float)
        fits = (-high if wraps else low) <= value <= high
    if not fits:
        range_ = "" if dtype.is_floating_point else f"{dtype} holds {low} to {high}."
        raise ConversionError(
            f"value cannot be converted to type {name or dtype.c_name} without overflow",
            f"The value is {value}. {range_}".strip(),
        )


def conversion(args: tuple[Any, ...], dtype: Any, device: Any) -> tuple[Any, Any]:
    """dtype and device that the arguments of ``to`` name; None where they name none."""
    n_dtypes = sum(isinstance(value, (DType, type)) for value in args)
    if max(n_dtypes, len(args) - n_dtypes) > 1:
        raise TypeError(message("to() takes one device and one dtype", repair="x.to(tk.float64)"))
    for value in args:
        if isinstance(value, TensorBase):
            dtype, device = value.dtype, value.device
        elif isinstance(value, (DType, type)):
            dtype = value
        elif isinstance(value, (str, Device)) or type(value) is int:
            device = as_device(value)
        elif value is not None:
            first = f"to(): expected a dtype, a device or a tensor, not {kind_of(value)}"
            raise TypeError(message(first, repair="x.to(tk.float64)"))
    return (None if dtype is None else dtypes.as_dtype("to", dtype)), device


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
    is_large = False
    for value in values:
        if not is_operand(value):
            raise TypeError(f"result_type() takes tensors and numbers, not {type(value).__name__}")
        is_tensor = isinstance(value, TensorBase)
        rank = 2 if not is_tensor else 0 if value.shape else 1
        number = None if is_tensor else as_number(value)
        own = value.dtype if number is None else dtypes.of_number(number)
        is_large = is_large or (isinstance(number, int) and number >= 2**63)
        present = ranked[rank]
        ranked[rank] = own if present is None else dtypes.promote(present, own)
    with_dims, without_dims, numbers = ranked
    if is_large and dtypes.combine(with_dims, without_dims) is dtypes.bool_:
        first = "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote"
        raise ConversionError(f"{first} Bool and UInt64", repair="x.long()")
    found = dtypes.combine(with_dims, dtypes.combine(without_dims, numbers))
    assert found is not None
    return found


def promoted_dtype(operands: list[Any], to_floating: bool) -> DType:
    """The dtype that an operation computes in; ``to_floating``: the default one for integers."""
    dtype = result_type(*[x for x in operands if x is not None])
    is_converted = to_floating and not dtype.is_floating_point
    return dtypes.get_default_dtype() if is_converted else dtype


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


def stored(number: Number, dtype: DType) -> Any:
    """A 0-d array of ``number`` as ``dtype`` stores it: truncated, wrapped, or as a truth value."""
    return without_warnings(number_array, number, dtype)


def check_factor(input: Any, other: Any, most: float = 1 / 1024) -> None:
    """ConversionError for a number that float16 would change much: 65536, or 1e-8.

    ``most`` is what part of itself a number may change by.
    PyTorch multiplies and divides by such a number in float32, and rounds once.
    """
    for x in (input, other) if result_type(input, other) is dtypes.float16 else ():
        if getattr(x, "dtype", None) is dtypes.float16 or getattr(x, "shape", None):
            continue
        number: Any = as_scalar(x)
        held = float(stored(number, dtypes.float16))
        if abs(held - number) > abs(number) * most:
            repair = "x.float() in place of x, and .half() of the result"
            first = f"float16 {'holds no number near' if most else 'does not hold'} {number}"
            raise ConversionError(first, repair=repair)
