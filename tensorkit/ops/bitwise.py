"""Logic on bool tensors and on the bits of integers: & | ^ ~."""

from typing import Any

from tensorkit.base import Tensor
from tensorkit.dispatch import op
from tensorkit.errors import message


@op(promote=True, symbol="&", dtypes="integral")
def bitwise_and(xp: Any, input: Any, other: Any) -> Any:
    """And: of bools, or of the bits of integers.

    >>> tk.tensor([True, True]) & tk.tensor([True, False])
    tensor([ True, False])
    """
    return xp.bitwise_and(input, other)


@op(promote=True, symbol="|", dtypes="integral")
def bitwise_or(xp: Any, input: Any, other: Any) -> Any:
    """Or: of bools, or of the bits of integers.

    >>> tk.tensor([4, 2]) | 1
    tensor([5, 3])
    """
    return xp.bitwise_or(input, other)


@op(promote=True, symbol="^", dtypes="integral")
def bitwise_xor(xp: Any, input: Any, other: Any) -> Any:
    """Exclusive or: of bools, or of the bits of integers.

    >>> tk.tensor([True, True]) ^ tk.tensor([True, False])
    tensor([False,  True])
    """
    return xp.bitwise_xor(input, other)


def _check_inversion(input: Tensor) -> None:
    if input.dtype.is_floating_point:
        raise TypeError(
            message(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
                repair="~(x != 0)",
            )
        )


@op(ufunc="invert", dtypes="integral", explain=_check_inversion)
def bitwise_not(xp: Any, input: Any) -> Any:
    """Not: of bools, or of the bits of integers.

    >>> ~tk.tensor([True, False])
    tensor([False,  True])
    """
    return xp.invert(input)
