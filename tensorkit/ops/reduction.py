"""Reductions: sum, mean, var, prod, all, norm and their like, of all elements or along some."""

from math import inf
from typing import TYPE_CHECKING, Any

from tensorkit.devices import CPU
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import DTypeError, message
from tensorkit.layout import Ints
from tensorkit.ops import copying, general
from tensorkit.ops.along import axes, count, restore, some_dims, spread, summable, wide
from tensorkit.ops.notation import op
from tensorkit.ops.selection import where
from tensorkit.ops.views import expand

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor

_xp = CPU.backend.xp


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
    input = summable("sum", input, dtype)
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
    if isinstance(dim, (str, float)):
        raise general.no_such_call(function, (dim,), "()", "(tuple of ints dim, bool keepdim)")
    return some_dims(function, x, dim)


def total(xp: Any, x: Any, axis: Ints | None = None, keepdims: bool = False) -> Any:
    """The sum of an array, added up precisely enough.

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


def _mean_of(xp: Any, x: Any, axis: Ints | None = None, keepdims: bool = False) -> Any:
    sums = total(xp, x, axis, keepdims)
    return xp.divide(sums, xp.asarray(count(x.shape, axis), sums.dtype))


# In formulas: PyTorch counts a bool in int64, and so does NumPy.
sum.on_arrays = lambda x, dim=None, keepdim=False: total(_xp, x, dim, keepdim)  # type: ignore[attr-defined]
mean.on_arrays = lambda x, dim=None, keepdim=False: _mean_of(_xp, x, axes(x, dim), keepdim)  # type: ignore[attr-defined]


@op(kind="function")
def _sum(xp: Any, x: Any) -> Any:
    return total(xp, x)


_sum.grad(node="SumBackward0", x=lambda g, shape: expand(g, shape))


@op(kind="function")
def _sum_along(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return total(xp, x, dim, keepdim)


_sum_along.grad(
    node="SumBackward1",
    x=lambda g, shape, dim, keepdim: spread(g, shape, dim, keepdim),
)


@op(kind="function")
def _mean(xp: Any, x: Any) -> Any:
    return _mean_of(xp, x)


_mean.grad(node="MeanBackward0", x=lambda g, shape: expand(g / count(shape, None), shape))


@op(kind="function")
def _mean_along(xp: Any, x: Any, *, dim: Ints, keepdim: bool) -> Any:
    return _mean_of(xp, x, axes(x, dim), keepdim)


_mean_along.grad(
    node="MeanBackward1",
    x=lambda g, shape, dim, keepdim: spread(g / count(shape, dim), shape, dim, keepdim),
)


# How far apart the elements are


def var(
    input: "Tensor",
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> "Tensor":
    """Variance: the sum of squared distances from the mean, divided by n less ``correction``.

    ``correction`` is 1 unless told otherwise; ``unbiased=False`` is an older word for 0.

    >>> tk.var(tk.tensor([1., 2., 3., 4.])), tk.var(tk.tensor([1., 2., 3., 4.]), correction=0)
    (tensor(1.6667), tensor(1.2500))
    """
    return _var(input, **_spread_options("var", input, dim, unbiased, keepdim, correction))


def std(
    input: "Tensor",
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> "Tensor":
    """Standard deviation: the square root of ``var``.

    >>> tk.std(tk.tensor([[1., 2.], [3., 6.]]), dim=1)
    tensor([0.7071, 2.1213])
    """
    return _std(input, **_spread_options("std", input, dim, unbiased, keepdim, correction))


def _spread_options(
    function: str, x: "Tensor", dim: Any, unbiased: Any, keepdim: Any, correction: Any
) -> dict[str, Any]:
    general.need_tensor(function, x)
    if not x._form.dtype.is_floating_point:
        raise DTypeError(
            message(
                "std and var only support floating point and complex dtypes",
                repair=f"x.float().{function}()",
            )
        )
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return {
        "dim": some_dims(function, x, dim),
        "correction": correction,
        "keepdim": bool(keepdim),
    }


def _variance(xp: Any, x: Any, dim: Ints, correction: Any, keepdim: bool) -> Any:
    x, axis = wide(xp, x), axes(x, dim)
    distances = xp.asarray(xp.subtract(x, _mean_of(xp, x, axis, True)))
    distances *= distances
    sums = total(xp, distances, axis, keepdim)
    return xp.divide(sums, xp.asarray(max(count(x.shape, axis) - correction, 0), sums.dtype))


@op(kind="function")
def _var(xp: Any, x: Any, *, dim: Ints, correction: Any, keepdim: bool) -> Any:
    return _variance(xp, x, dim, correction, keepdim).astype(x.dtype)


@op(kind="function")
def _std(xp: Any, x: Any, *, dim: Ints, correction: Any, keepdim: bool) -> Any:
    return xp.sqrt(_variance(xp, x, dim, correction, keepdim)).astype(x.dtype)


def _var_slope(g: Any, x: Any, shape: Ints, dim: Ints, correction: Any, keepdim: bool) -> Any:
    freedom = count(shape, dim) - correction
    scale = 2 / freedom if freedom else inf
    return scale * restore(g, shape, dim, keepdim) * (x - mean(x, dim, True))


_var.grad(
    x=lambda g, x, shape, dim, correction, keepdim: _var_slope(
        g, x, shape, dim, correction, keepdim
    )
)
_std.grad(
    x=lambda g, x, out, shape, dim, correction, keepdim: _var_slope(
        where(out == 0, 0.0, g / (2 * out)), x, shape, dim, correction, keepdim
    )
)


@op(kind="function")
def sum_to_shape(xp: Any, x: Any, *, to: Ints) -> Any:
    """What broadcasting from ``to`` repeated, added up again: the engine's way back."""
    lead = x.ndim - len(to)
    axes = (*range(lead), *(lead + dim for dim, size in enumerate(to) if size == 1))
    repeated = tuple(axis for axis in axes if axis < lead or x.shape[axis] != 1)
    return total(xp, x, repeated, True).reshape(to)


sum_to_shape.grad(node="SumBackward1", x=lambda g, shape: expand(g, shape))
