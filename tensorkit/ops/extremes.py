"""Largest and smallest: of two tensors (maximum, clamp), of one (max, amax, argmax).

Where several elements are equal the gradient goes half and half to the arguments of ``maximum``,
in equal shares to all of them from ``max()`` and ``amax``, and to the one whose index is reported
from ``max(dim)``.
"""

from functools import partial
from math import copysign
from typing import Any

from tensorkit.autograd import history
from tensorkit.base import Tensor, TensorBase
from tensorkit.dtypes import bool_
from tensorkit.errors import DTypeError, must_be
from tensorkit.layout import Ints
from tensorkit.ops import general, writing
from tensorkit.ops.along import axes, named_result, need_elements, one_dim, restore, some_dims
from tensorkit.ops.arguments import as_int, need_bool, need_tensor, no_such_call
from tensorkit.ops.gathering import add_along
from tensorkit.ops.notation import Operation, op, planned
from tensorkit.ops.operands import as_operand
from tensorkit.ops.reduction import sum
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


# Of all elements, or along dimensions


@planned(1)
def amax(input: Tensor, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest element along ``dim``: one dimension, a tuple of them, or () for all.

    >>> tk.amax(tk.tensor([[1., 2.], [3., 4.]]), dim=1)
    tensor([2., 4.])
    """
    return _extreme_along("amax", _amax, input, dim, keepdim)


@planned(1)
def amin(input: Tensor, dim: Any = (), keepdim: bool = False) -> Any:
    """The smallest element along ``dim``: one dimension, a tuple of them, or () for all.

    >>> tk.amin(tk.tensor([[1., 2.], [3., 4.]]), dim=1)
    tensor([1., 3.])
    """
    return _extreme_along("amin", _amin, input, dim, keepdim)


def _extreme_along(function: str, operation: Operation, x: Any, dim: Any, keepdim: Any) -> Any:
    dims = some_dims(function, x, dim)
    written = dim or () if dim is None or isinstance(dim, (tuple, list)) else (dim,)
    need_elements(function, x, written or None)  # in the words of the caller, -1 as -1
    return operation, (x,), {"dim": dims, "keepdim": need_bool(function, "keepdim", 3, keepdim)}


@op(kind="function")
def _amax(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return x.max(axis=axes(x, dim), keepdims=keepdim)


@op(kind="function")
def _amin(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return x.min(axis=axes(x, dim), keepdims=keepdim)


def _equal_shares(g: Any, x: Any, out: Any, shape: Ints, dim: Ints, keepdim: bool) -> Any:
    is_extreme = x == restore(out, shape, dim, keepdim)
    g = restore(g, shape, dim, keepdim)
    return g * is_extreme / sum(is_extreme, dim, True)


_amax.grad(x=_equal_shares)
_amin.grad(x=_equal_shares)


def max(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """The largest element; with ``dim`` values and indices along it; with a tensor ``maximum``.

    >>> x = tk.tensor([[1., 5.], [3., 2.]])
    >>> tk.max(x), tk.max(x, dim=1).indices, tk.max(x, x.t())
    (tensor(5.), tensor([1, 0]), tensor([[1., 5.],
            [5., 2.]]))
    """
    dim = dim if axis is None else axis
    return _extreme("max", input, dim, keepdim or keepdims, other)


def min(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """The smallest element; with ``dim`` values and indices along it; with a tensor ``minimum``.

    >>> x = tk.tensor([[1., 5.], [3., 2.]])
    >>> tk.min(x), tk.min(x, dim=1).values
    (tensor(1.), tensor([1., 2.]))
    """
    dim = dim if axis is None else axis
    return _extreme("min", input, dim, keepdim or keepdims, other)


def _extreme(function: str, x: Any, dim: Any, keepdim: Any, other: Any) -> Any:
    whole, along, of_two, index_of, named = _EXTREMES[function]
    if dim is None and other is None and keepdim is False:
        return whole(x)
    need_tensor(function, x)
    if isinstance(dim, TensorBase):
        if keepdim is not False:
            raise must_be(function, "dim", 1, "int", dim)
        other = dim
    if other is not None:
        return of_two(x, other)
    if as_int(dim) is None:
        raise no_such_call(function, (dim,), "()", "(Tensor other)", "(int dim, bool keepdim)")
    place, keepdim = one_dim(function, x, dim), need_bool(function, "keepdim", 3, keepdim)
    need_elements(function, x, (place,))
    indices = index_of(x, dim=place, keepdim=keepdim)
    return named(along(x, indices, dim=place, keepdim=keepdim), indices)


@planned(1)
def _max_of_all(x: Tensor) -> Any:
    need_tensor("max", x)
    need_elements("max", x, None)
    return _max, (x,), {}


@planned(1)
def _min_of_all(x: Tensor) -> Any:
    need_tensor("min", x)
    need_elements("min", x, None)
    return _min, (x,), {}


@op(kind="function")
def _max(xp: Any, x: Any) -> Any:
    return x.max()


@op(kind="function")
def _min(xp: Any, x: Any) -> Any:
    return x.min()


def _shares_of_all(g: Any, x: Any, out: Any) -> Any:
    is_extreme = (x == out) | ((x != x) & (out != out))  # nan is the extreme of what has nan
    return where(is_extreme, g / sum(is_extreme), 0.0)


_max.grad(node="MaxBackward1", x=_shares_of_all)
_min.grad(node="MinBackward1", x=_shares_of_all)


@op(kind="function")
def _max_along(xp: Any, x: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
    return x.max(axis=dim if x.ndim else None, keepdims=keepdim)


@op(kind="function")
def _min_along(xp: Any, x: Any, indices: Any, *, dim: int, keepdim: bool) -> Any:
    return x.min(axis=dim if x.ndim else None, keepdims=keepdim)


def _put_back(g: Any, indices: Any, shape: Ints, dim: int, keepdim: bool) -> Any:
    g, indices = (restore(each, shape, (dim,), keepdim) for each in (g, indices))
    return add_along(g, indices, dim=dim, size=shape)


_max_along.grad(node="MaxBackward0", x=_put_back)
_min_along.grad(node="MinBackward0", x=_put_back)


@planned(1)
def argmax(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The index of the largest element, along ``dim`` or in the flattened tensor.

    >>> tk.argmax(tk.tensor([[1., 5.], [3., 2.]])), tk.argmax(tk.tensor([[1., 5.], [3., 2.]]), 0)
    (tensor(1), tensor([1, 0]))
    """
    return _index_of("argmax", _argmax, input, dim, keepdim)


@planned(1)
def argmin(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The index of the smallest element, along ``dim`` or in the flattened tensor.

    >>> tk.argmin(tk.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([0, 1])
    """
    return _index_of("argmin", _argmin, input, dim, keepdim)


def _index_of(function: str, operation: Operation, x: Any, dim: Any, keepdim: Any) -> Any:
    need_tensor(function, x)
    if x.dtype is bool_:
        raise DTypeError(f"{function}(): does not support bool input", repair="x.int()")
    place = None if dim is None else one_dim(function, x, dim)
    need_elements(function, x, None if place is None else (place,))
    keepdim = need_bool(function, "keepdim", 3, keepdim)
    return operation, (x,), {"dim": place, "keepdim": keepdim}


@op(kind="function")
def _argmax(xp: Any, x: Any, *, dim: int | None, keepdim: bool) -> Any:
    return _position(x.argmax, x, dim, keepdim)


@op(kind="function")
def _argmin(xp: Any, x: Any, *, dim: int | None, keepdim: bool) -> Any:
    return _position(x.argmin, x, dim, keepdim)


def _position(search: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    found = search(axis=dim if x.ndim else None)
    if not keepdim:
        return found
    shape = tuple(1 if dim in (None, place) else size for place, size in enumerate(x.shape))
    return found.reshape(shape)


_EXTREMES = {
    "max": (_max_of_all, _max_along, maximum, _argmax, named_result("max", "values", "indices")),
    "min": (_min_of_all, _min_along, minimum, _argmin, named_result("min", "values", "indices")),
}
