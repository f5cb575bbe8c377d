"""Reductions: sum and mean, over all elements or along dimensions."""

from math import prod
from typing import TYPE_CHECKING, Any

from tensorkit import dtypes
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import DTypeError, message
from tensorkit.layout import Ints
from tensorkit.ops import copying, general
from tensorkit.ops.notation import op
from tensorkit.ops.views import expand, unsqueeze, wrap_dims

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor


def sum(
    input: "Tensor", dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> "Tensor":
    """Sum of all elements, or along ``dim``: one dimension or a tuple of them.

    With ``keepdim`` the summed dimensions stay, with size 1. Integers and bools give int64;
    ``dtype`` converts before adding.

    >>> x = tk.tensor([[1., 2.], [3., 4.]])
    >>> tk.sum(x), tk.sum(x, dim=0)
    (tensor(10.), tensor([4., 6.]))
    """
    general.need_tensor("sum", input)
    if dtype is not None:
        dtype = as_dtype("sum", dtype)
    elif not input._form.dtype.is_floating_point:
        dtype = dtypes.int64
    if dtype is not None and dtype is not input._form.dtype:
        input = copying.to_dtype(input, dtype)
    if dim is None:
        return _sum(input)
    return _sum_along(input, dim=_dims("sum", input, dim), keepdim=bool(keepdim))


def mean(
    input: "Tensor", dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> "Tensor":
    """Mean of all elements, or along ``dim``: one dimension or a tuple of them.

    Raises RuntimeError for integers and bools, unless ``dtype`` is a floating-point one.

    >>> tk.mean(tk.tensor([[1., 2.], [3., 4.]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    general.need_tensor("mean", input)
    wanted = input._form.dtype if dtype is None else as_dtype("mean", dtype)
    if not wanted.is_floating_point:
        what = "Input dtype" if dtype is None else "Optional dtype"
        raise DTypeError(
            message(
                f"mean(): could not infer output dtype. {what} must be either a floating point "
                f"or complex dtype. Got: {wanted.word}",
                "The mean of integers is a fraction.",
                repair="x.float().mean()",
            )
        )
    if wanted is not input._form.dtype:
        input = copying.to_dtype(input, wanted)
    if dim is None:
        return _mean(input)
    return _mean_along(input, dim=_dims("mean", input, dim), keepdim=bool(keepdim))


def _dims(function: str, x: "Tensor", dim: Any) -> Ints:
    """The dimensions to reduce; no dimensions mean all of them."""
    if isinstance(dim, (str, float)):
        raise general.no_such_call(function, (dim,), "()", "(tuple of ints dim, bool keepdim)")
    n_dims = len(x._form.shape)
    return wrap_dims(dim, n_dims) or tuple(range(n_dims))


def _total(xp: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The sum, added up precisely enough.

    Along the last axis NumPy adds in pairs; along others one after the other, which loses digits
    in float32. float16 cannot even count to 4096.
    """
    if not x.ndim:
        return x.copy()
    if x.dtype == xp.float16:
        return xp.add.reduce(x, axis=axis, dtype=xp.float32, keepdims=keepdims).astype(x.dtype)
    if x.dtype == xp.float32 and not (axis is None or x.ndim - 1 in axis):
        return xp.add.reduce(x, axis=axis, dtype=xp.float64, keepdims=keepdims).astype(x.dtype)
    return xp.add.reduce(x, axis=axis, keepdims=keepdims)


@op(kind="function")
def _sum(xp: Any, x: Any) -> Any:
    return _total(xp, x)


_sum.grad(node="SumBackward0", x=lambda g, shape: expand(g, shape))


@op(kind="function")
def _sum_along(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return _total(xp, x, dim, keepdim) if x.ndim else x.copy()


_sum_along.grad(
    node="SumBackward1",
    x=lambda g, shape, dim, keepdim: _spread(g, shape, dim, keepdim),
)


def _spread(g: Any, shape: Ints, dim: Ints, keepdim: bool) -> Any:
    """The gradient of a reduction: repeated along the dimensions that were summed."""
    if not keepdim and shape:
        for place in sorted(dim):
            g = unsqueeze(g, place)
    return expand(g, shape)


@op(kind="function")
def _mean(xp: Any, x: Any) -> Any:
    return _divided(xp, _total(xp, x), x.size)


_mean.grad(node="MeanBackward0", x=lambda g, shape: expand(g / prod(shape), shape))


@op(kind="function")
def _mean_along(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    if not x.ndim:
        return x.copy()
    return _divided(xp, _total(xp, x, dim, keepdim), _count(x.shape, dim))


_mean_along.grad(
    node="MeanBackward1",
    x=lambda g, shape, dim, keepdim: _spread(g / _count(shape, dim), shape, dim, keepdim),
)


def _count(shape: Ints, dim: Ints) -> int:
    """How many elements a reduction along ``dim`` takes together."""
    return prod(shape[place] for place in dim) if shape else 1


def _divided(xp: Any, total: Any, count: int) -> Any:
    return xp.divide(total, xp.asarray(count, total.dtype))


@op(kind="function")
def sum_to_shape(xp: Any, x: Any, *, to: Ints) -> Any:
    """What broadcasting from ``to`` repeated, added up again: the engine's way back."""
    lead = x.ndim - len(to)
    axes = (*range(lead), *(lead + dim for dim, size in enumerate(to) if size == 1))
    repeated = tuple(axis for axis in axes if axis < lead or x.shape[axis] != 1)
    return _total(xp, x, repeated, True).reshape(to)


sum_to_shape.grad(node="SumBackward1", x=lambda g, shape: expand(g, shape))
