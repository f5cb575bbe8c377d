"""Comparisons and logic: bool tensors from two tensors, or a tensor and a number."""

from functools import partial
from typing import Any

from tensorkit.dispatch import op

_logic = partial(op, promote=True, numbers=False)
_comparison = partial(op, promote=True)


@_comparison(symbol="==", ufunc="equal")
def eq(xp: Any, input: Any, other: Any) -> Any:
    """Whether elements are equal. A nan is equal to nothing.

    >>> tk.eq(tk.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return xp.equal(input, other)


@_comparison(symbol="!=", ufunc="not_equal")
def ne(xp: Any, input: Any, other: Any) -> Any:
    """Whether elements differ.

    >>> tk.ne(tk.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return xp.not_equal(input, other)


@_comparison(symbol="<", ufunc="less")
def lt(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is less than ``y``, element by element.

    >>> tk.lt(tk.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return xp.less(input, other)


@_comparison(symbol="<=", ufunc="less_equal")
def le(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is less than or equal to ``y``, element by element.

    >>> tk.le(tk.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return xp.less_equal(input, other)


@_comparison(symbol=">", ufunc="greater")
def gt(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is greater than ``y``, element by element.

    >>> tk.gt(tk.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return xp.greater(input, other)


@_comparison(symbol=">=", ufunc="greater_equal")
def ge(xp: Any, input: Any, other: Any) -> Any:
    """Whether ``x`` is greater than or equal to ``y``, element by element.

    >>> tk.ge(tk.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return xp.greater_equal(input, other)


@_logic(ufunc="logical_and")
def logical_and(xp: Any, input: Any, other: Any) -> Any:
    """Whether both elements are true, that is, not zero.

    >>> tk.logical_and(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([ True, False])
    """
    return xp.logical_and(input, other)


@_logic(ufunc="logical_or")
def logical_or(xp: Any, input: Any, other: Any) -> Any:
    """Whether one of the elements, or both, are true, that is, not zero.

    >>> tk.logical_or(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([True, True])
    """
    return xp.logical_or(input, other)


@_logic(ufunc="logical_xor")
def logical_xor(xp: Any, input: Any, other: Any) -> Any:
    """Whether exactly one of the elements is true, that is, not zero.

    >>> tk.logical_xor(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([False,  True])
    """
    return xp.logical_xor(input, other)


@op(elementwise=True)
def logical_not(xp: Any, input: Any) -> Any:
    """Whether each element is zero.

    >>> tk.logical_not(tk.tensor([0., 2.]))
    tensor([ True, False])
    """
    return (
        xp.logical_not(input) if input.dtype.kind == "b" else xp.equal(input, 0)
    )  # which is faster
