"""Logic on bool tensors and on the bits of integers: & | ^ ~."""

from typing import Any

from tensorkit.dtypes import DType
from tensorkit.errors import message
from tensorkit.ops.notation import op
from tensorkit.ops.operands import Operand


@op(kind="binary", symbol="&", dtypes="integral", takes="one tensor")
def bitwise_and(xp: Any, x: Any, y: Any) -> Any:
    """And: of bools, or of the bits of integers.

    >>> tk.tensor([True, True]) & tk.tensor([True, False])
    tensor([ True, False])
    """
    return xp.bitwise_and(x, y)


@op(kind="binary", symbol="|", dtypes="integral", takes="one tensor")
def bitwise_or(xp: Any, x: Any, y: Any) -> Any:
    """Or: of bools, or of the bits of integers.

    >>> tk.tensor([4, 2]) | 1
    tensor([5, 3])
    """
    return xp.bitwise_or(x, y)


@op(kind="binary", symbol="^", dtypes="integral", takes="one tensor")
def bitwise_xor(xp: Any, x: Any, y: Any) -> Any:
    """Exclusive or: of bools, or of the bits of integers.

    >>> tk.tensor([True, True]) ^ tk.tensor([True, False])
    tensor([False,  True])
    """
    return xp.bitwise_xor(x, y)


def _check_inversion(operands: tuple[Operand, ...], promoted: DType) -> None:
    if promoted.is_floating_point:
        raise TypeError(
            message(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
                repair="~(x != 0)",
            )
        )


@op(kind="unary", symbol="~", refuse=_check_inversion)
def bitwise_not(xp: Any, x: Any) -> Any:
    """Not: of bools, or of the bits of integers.

    >>> ~tk.tensor([True, False])
    tensor([False,  True])
    """
    return xp.invert(x)
