"""What functions are given: numbers, integers, sizes, and PyTorch's words for all else.

``as_...`` gives None for what is not of that kind, ``need_...`` and ``check_...`` raise.
"""

from operator import index
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.base import TensorBase
from tensorkit.devices import Device, as_device
from tensorkit.dtypes import DType
from tensorkit.errors import ConversionError, NotSupportedError, message, must_be, type_name
from tensorkit.layout import Ints

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
    for place, value in enumerate(values):
        if not isinstance(value, TensorBase):
            kind = type_name(value)
            raise TypeError(
                f"expected Tensor as element {place} in argument {argument}, but got {kind}"
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


def read(value: Any) -> Any:
    """The number that a 0-d tensor of any device holds; anything else as it is."""
    return as_scalar(value) if isinstance(value, TensorBase) and not value.shape else value


def as_int(value: Any) -> int | None:
    """An integer, also from a 0-d integer tensor, or None if ``value`` is neither."""
    if isinstance(value, (bool, float)) or not hasattr(value, "__index__"):
        return None
    try:
        number = index(value)
    except TypeError:  # an array or tensor of several elements
        return None
    if not -(2**63) <= number < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return number


def need_int(function: str, argument: str, position: int, value: Any) -> int:
    """``as_int``, or TypeError with PyTorch's words."""
    number = as_int(value)
    if number is None:
        raise must_be(function, argument, position, "int", value)
    return number


def need_sizes(function: str, argument: str, values: Any) -> Ints:
    """A tuple or list of integers as a tuple; TypeError for all else."""
    try:
        return tuple([index(value) for value in values])
    except TypeError:
        raise TypeError(
            message(
                f"{function}(): {argument} must be a tuple of ints, not {values!r}.",
                repair=f"{argument}=(2, 3)",
            )
        ) from None


def no_kernel(kernel: str, dtype: DType, repair: str | None = None) -> NotSupportedError:
    """PyTorch's sentence for a dtype that an operation does not work on."""
    first = f"\"{kernel}\" not implemented for '{dtype.word}'"
    return NotSupportedError(first, repair=repair, dtype=dtype)


def renamed(options: dict[str, Any]) -> dict[str, Any]:
    """The options, those given under NumPy's names under PyTorch's: it takes both."""
    return {_OF_NUMPY.get(name, name): value for name, value in options.items()}


_OF_NUMPY = {"axis": "dim", "axis0": "dim0", "axis1": "dim1", "keepdims": "keepdim"}


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
    elif value != value or value in (np.inf, -np.inf):
        fits = False
    else:
        low, high = dtypes.limits(dtype)
        wraps = low == 0 and not isinstance(value, float)
        fits = (-high if wraps else low) <= value <= high
    if not fits:
        range_ = "" if dtype.is_floating_point else f"{dtype} holds {low_high(dtype)}."
        raise ConversionError(
            f"value cannot be converted to type {name or dtype.c_name} without overflow",
            f"The value is {value}. {range_}".strip(),
            value=value,
            dtype=dtype,
        )


def low_high(dtype: DType) -> str:
    """The range of an integer dtype in words."""
    low, high = dtypes.limits(dtype)
    return f"{low} to {high}"


def conversion(args: tuple[Any, ...], dtype: Any, device: Any) -> tuple[Any, Any]:
    """dtype and device that the arguments of ``to`` name; None where they name none."""
    refusal = TypeError(
        message(
            f"to(): takes a dtype, a device or a tensor, not {', '.join(map(kind_of, args))}.",
            repair='x.to(tk.float64), x.to("cuda")',
        )
    )
    if len(args) > 1 and not (
        len(args) == 2
        and (args[0] is None or isinstance(args[0], (str, Device)) or type(args[0]) is int)
        and (args[1] is None or isinstance(args[1], (DType, type)))
    ):
        raise refusal
    for value in args:
        if isinstance(value, TensorBase):
            dtype, device = value.dtype, value.device
        elif isinstance(value, (DType, type)):
            dtype = value
        elif isinstance(value, (str, Device)) or type(value) is int:
            device = as_device(value)
        elif value is not None:
            raise refusal
    return (None if dtype is None else dtypes.as_dtype("to", dtype)), device


def without_flags(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments of ``to``, and the flags ``non_blocking`` and ``copy`` that may follow them."""
    n = next((at for at, value in enumerate(args) if isinstance(value, bool)), len(args))
    return args[:n], args[n:]
