"""Compositions: functions made of operations, without a definition of their own."""

from typing import Any

import numpy as np

from tensorkit import base, layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.dispatch import Operation
from tensorkit.dtypes import DType, bool_
from tensorkit.errors import DTypeError
from tensorkit.ops import arithmetic
from tensorkit.ops.arguments import need_tensor, need_two, no_such_call, read
from tensorkit.ops.moving import together
from tensorkit.ops.operands import as_operand, promoted_type
from tensorkit.quiet import quietly

_DIVISIONS: dict[str | None, Operation] = {
    None: arithmetic.div,
    "floor": arithmetic.floor_of_quotient,
    "trunc": arithmetic.trunc_divide,
}


def division(rounding_mode: str | None) -> Operation:
    """The division that ``rounding_mode`` names."""
    if rounding_mode not in _DIVISIONS:
        raise DTypeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' "
            f"but found '{rounding_mode}'"
        )
    return _DIVISIONS[rounding_mode]


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient, element by element; ``rounding_mode`` is None, "trunc" or "floor".

    Without rounding, integers give the default dtype; with it they stay integers.

    >>> tk.div(tk.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> tk.div(tk.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    return division(rounding_mode)(input, other)


def pow(input: Any, exponent: Any) -> Tensor:
    """Power ``input ** exponent``: ``arithmetic.pow`` under PyTorch's name of the exponent.

    Raises RuntimeError for an integer tensor with a negative integer number as exponent.

    >>> tk.pow(tk.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    return arithmetic.pow(input, exponent)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same values (one answer, not one each).

    >>> tk.equal(tk.tensor([1, 2]), tk.tensor([1, 2]))
    True
    """
    need_two("equal", input, other)
    if input.shape != other.shape:
        return False
    return bool(input.device.backend.item((input == other)._array.all(), "equal"))


def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether ``|input - other| <= atol + rtol * |other|``, element by element.

    >>> tk.isclose(tk.tensor([1., 2.]), tk.tensor([1., 2.1]))
    tensor([ True, False])
    """
    need_two("isclose", input, other)
    if input.dtype is not other.dtype:
        raise DTypeError(
            f"{input.dtype.word} did not match {other.dtype.word}",
            "Both tensors must have the same dtype.",
            repair=f"other.to(tk.{input.dtype.name})",
        )
    rtol, atol = read(rtol), read(atol)
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise DTypeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    input, other = together(input, other)
    xp = input._xp
    shape = layout.broadcast_shapes(tuple(input.shape), tuple(other.shape))

    def run() -> Any:
        x, y = input._array, other._array
        close = xp.equal(x, y)
        if input.dtype.is_floating_point:
            if equal_nan:
                close = close | (xp.isnan(x) & xp.isnan(y))
            allowed = y.dtype.type(atol) + xp.absolute(y.dtype.type(rtol) * y)
            close = close | (xp.isfinite(y) & (xp.absolute(x - y) <= allowed))
        elif input.dtype is not bool_ and (rtol or atol):
            x, y = x.astype(np.float64), y.astype(np.float64)
            close = close | (xp.absolute(x - y) <= atol + xp.absolute(rtol * y))
        return xp.asarray(close)

    strides = layout.result_strides(shape, [(tuple(x.shape), x._strides) for x in (input, other)])
    return base.place(quietly(run), strides)


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether ``isclose`` holds for all elements.

    >>> tk.allclose(tk.tensor([0.1]) + 0.2, tk.tensor([0.3]))
    True
    """
    need_two("allclose", input, other)
    close = isclose(input, other, rtol, atol, equal_nan)
    return bool(close.device.backend.item(close._array.all(), "allclose"))


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
