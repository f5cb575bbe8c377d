"""The larger and the smaller of two: maximum, minimum, clamp."""

from functools import partial
from math import copysign
from typing import Any

from tensorkit.autograd import history
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import DTypeError
from tensorkit.ops import general, writing
from tensorkit.ops.arguments import need_tensor, no_such_call
from tensorkit.ops.notation import op, planned
from tensorkit.ops.operands import as_operand
from tensorkit.ops.selection import where

# Of two


@op(kind="binary", ufunc="maximum", takes="tensors")
def maximum(xp: Any, x: Any, y: Any) -> Any:
    """The larger of two elements; nan if one of them is nan.

    >>> tk.maximum(tk.tensor([1., 5.]), tk.tensor([3., 2.]))
    tensor([3., 5.])
    """
    return xp.maximum(x, y)


@op(kind="binary", ufunc="minimum", takes="tensors")
def minimum(xp: Any, x: Any, y: Any) -> Any:
    """The smaller of two elements; nan if one of them is nan.

    >>> tk.minimum(tk.tensor([1., 5.]), tk.tensor([3., 2.]))
    tensor([1., 2.])
    """
    return xp.minimum(x, y)


def _share_of_winner(g: Any, loses: Any, ties: Any) -> Any:
    return where(loses, 0.0, where(ties, g / 2, g))


maximum.grad(
    x=lambda g, x, y: _share_of_winner(g, x < y, x == y),
    y=lambda g, x, y: _share_of_winner(g, x > y, x == y),
)
minimum.grad(
    x=lambda g, x, y: _share_of_winner(g, x > y, x == y),
    y=lambda g, x, y: _share_of_winner(g, x < y, x == y),
)


# Within limits


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``min`` below ``min``, ``max`` above ``max``, each element itself between them.

    The limits are numbers or tensors that broadcast, or None; where they cross, ``max`` wins.

    >>> tk.clamp(tk.tensor([-2., 0.5, 9.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if isinstance(min, TensorBase) and isinstance(max, TensorBase):
        return _between(input, min, max)
    for limit in (min, max):
        if limit.__class__ is float and not limit and copysign(1.0, limit) < 0:
            return _clamped_by_any("clamp", input, min, max)  # its sign counts
    return _clamped(input, min, max)


def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``clamp`` in place.

    >>> tk.tensor([-2., 9.]).clamp_(max=1)
    tensor([-2.,  1.])
    """
    if isinstance(input, TensorBase) and _is_easy(input, min, max):
        clamp_into = partial(_clamp_into, input._xp, min, max)
        if writing.write_plainly(input, clamp_into, "clamp_"):
            return input
        if not history.check_write(input):
            writing.check_overlap(input)
            writing.write(input, clamp_into, "clamp")
            return input
    return _clamped_by_any("clamp_", input, min, max, into=input)


@planned(1)
def _clamped(x: Tensor, low: Any, high: Any) -> Any:
    need_tensor("clamp", x)
    if x._is_contiguous and _is_easy(x, low, high):
        return _clamp_to_numbers, (x,), {"low": low, "high": high}
    return _clamped_by_any("clamp", x, low, high)


@planned(3)
def _between(x: Any, low: Any, high: Any) -> Any:
    need_tensor("clamp", x)
    if _are_alike(low, x) and _are_alike(high, x) and x._is_contiguous:
        return _clamp, (x, low, high), {}
    return _clamped_by_any("clamp", x, low, high)


def _are_alike(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors have one shape, order in memory, dtype and device."""
    a, b = x._array, y._array
    same = a.__class__ is b.__class__ and a.shape == b.shape and a.dtype is b.dtype
    return same and a.strides == b.strides and x.device is y.device


def _clamped_by_any(function: str, x: Any, low: Any, high: Any, into: Any = None) -> Tensor:
    need_tensor(function, x)
    given = [limit for limit in (low, high) if limit is not None]
    n_tensors = len([limit for limit in given if isinstance(limit, TensorBase)])
    if not given:
        raise DTypeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if n_tensors not in (0, len(given)) or None in [as_operand(each) for each in given]:
        raise no_such_call(
            function, (low, high), "(Tensor min, Tensor max)", "(Number min, Number max)"
        )
    operation = _clamp if n_tensors else _clamp_to_numbers
    values = {"x": x, "low": low, "high": high}
    return general.elementwise(operation.definition, values, {}, into)


def _clamp_into(xp: Any, low: Any, high: Any, x: Any) -> None:
    if low is not None:
        xp.maximum(low, x, out=x)
    if high is not None:
        xp.minimum(high, x, out=x)


def _is_easy(x: Tensor, *limits: Any) -> bool:
    """Whether there is nothing to promote or check: every floating-point dtype holds the limits."""
    if limits == (None, None) or not x.dtype.is_floating_point:
        return False
    return all(
        limit is None or (limit.__class__ in (int, float) and -65504 <= limit <= 65504)
        for limit in limits
    )


def _within(xp: Any, x: Any, low: Any, high: Any) -> Any:
    if low is not None:
        x = xp.maximum(low, x)  # the second of two zeros is taken: x keeps its sign
    return x if high is None else xp.minimum(high, x)


@op(kind="function")
def _clamp(xp: Any, x: Any, low: Any, high: Any) -> Any:
    return _within(xp, x, low, high)


@op(kind="function")
def _clamp_to_numbers(xp: Any, x: Any, low: Any, high: Any) -> Any:
    return _within(xp, x, low, high)


def _pass_inside(g: Any, x: Any, low: Any, high: Any) -> Any:
    if low is None:
        return where(x <= high, g, 0.0)
    return where(x >= low if high is None else (x >= low) & (x <= high), g, 0.0)


def _pass_below(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(x < low if high is None else (x < low) & (low < high), g, 0.0)


def _pass_above(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(x > high if low is None else (x > high) | (high < low), g, 0.0)


_clamp.grad(
    x=_pass_inside,
    low=_pass_below,
    high=_pass_above,
)
_clamp_to_numbers.grad(node="ClampBackward1", x=_pass_inside)
