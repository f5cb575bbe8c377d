"""Comparisons and logic: bool tensors from two tensors, or a tensor and a number."""

from functools import partial
from typing import Any

from tensorkit.autograd.rules import Rule
from tensorkit.ops.notation import op
from tensorkit.ops.selection import zeros_as

_logic = partial(op, kind="binary", result="bool", takes="tensors")
_comparison = partial(op, kind="binary", result="bool", takes="tensor first")


@_comparison(symbol="==", ufunc="equal")
def eq(xp: Any, x: Any, y: Any) -> Any:
    """Whether elements are equal. A nan is equal to nothing.

    >>> tk.eq(tk.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return xp.equal(x, y)


@_comparison(symbol="!=", ufunc="not_equal")
def ne(xp: Any, x: Any, y: Any) -> Any:
    """Whether elements differ.

    >>> tk.ne(tk.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return xp.not_equal(x, y)


@_comparison(symbol="<", ufunc="less")
def lt(xp: Any, x: Any, y: Any) -> Any:
    """Whether ``x`` is less than ``y``, element by element.

    >>> tk.lt(tk.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return xp.less(x, y)


@_comparison(symbol="<=", ufunc="less_equal")
def le(xp: Any, x: Any, y: Any) -> Any:
    """Whether ``x`` is less than or equal to ``y``, element by element.

    >>> tk.le(tk.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return xp.less_equal(x, y)


@_comparison(symbol=">", ufunc="greater")
def gt(xp: Any, x: Any, y: Any) -> Any:
    """Whether ``x`` is greater than ``y``, element by element.

    >>> tk.gt(tk.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return xp.greater(x, y)


@_comparison(symbol=">=", ufunc="greater_equal")
def ge(xp: Any, x: Any, y: Any) -> Any:
    """Whether ``x`` is greater than or equal to ``y``, element by element.

    >>> tk.ge(tk.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return xp.greater_equal(x, y)


def _forgets(definition: Any, number: str | None, overload: int) -> None:
    """In place the answers, 0 and 1, replace numbers, on which they do not depend smoothly."""
    node = f"{definition.name.title()}Backward{overload}"
    zeros: Any = dict.fromkeys("xy", lambda g: zeros_as(g))
    rule = Rule(definition.name, node, ("x", "y"), zeros, number)
    definition.write_rules[number] = rule


for _each in (eq, ne, lt, le, gt, ge):
    _forgets(_each.definition, "y", 0)
    _forgets(_each.definition, None, 1)


@_logic(ufunc="logical_and")
def logical_and(xp: Any, x: Any, y: Any) -> Any:
    """Whether both elements are true, that is, not zero.

    >>> tk.logical_and(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([ True, False])
    """
    return xp.logical_and(x, y)


@_logic(ufunc="logical_or")
def logical_or(xp: Any, x: Any, y: Any) -> Any:
    """Whether one of the elements, or both, are true, that is, not zero.

    >>> tk.logical_or(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([True, True])
    """
    return xp.logical_or(x, y)


@_logic(ufunc="logical_xor")
def logical_xor(xp: Any, x: Any, y: Any) -> Any:
    """Whether exactly one of the elements is true, that is, not zero.

    >>> tk.logical_xor(tk.tensor([1, 2]), tk.tensor([3, 0]))
    tensor([False,  True])
    """
    return xp.logical_xor(x, y)


@op(kind="unary", result="bool")
def logical_not(xp: Any, x: Any) -> Any:
    """Whether each element is zero.

    >>> tk.logical_not(tk.tensor([0., 2.]))
    tensor([ True, False])
    """
    return xp.logical_not(x) if x.dtype.kind == "b" else xp.equal(x, 0)  # which is faster
