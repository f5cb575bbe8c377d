"""Along dimensions: what reductions share. Which dimensions, which dtype, and the way back.

A reduction's public function asks here for its dimensions (always counted from the front), calls
an operation of ``kind="function"`` with them, and gives the formula ``spread`` for its gradient.
"""

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.base import Tensor
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import IndexRangeError, ShapeError, must_be
from tensorkit.layout import Ints, wrap_dim
from tensorkit.ops import copying
from tensorkit.ops.arguments import as_int, need_int, need_tensor
from tensorkit.ops.views import expand, unsqueeze, wrap_dims


def some_dims(function: str, x: Tensor, dim: Any) -> Ints:
    """The dimensions that an int, a tuple or None (all) names; no dimensions mean all of them."""
    need_tensor(function, x)
    n_dims = len(x.shape)
    if dim.__class__ is int and -n_dims <= dim < n_dims:  # nearly always
        return (dim % n_dims,)
    if dim is None:
        return tuple(range(n_dims))
    for each in dim if isinstance(dim, (tuple, list)) else (dim,):
        if as_int(each) is None:
            raise must_be(function, "dim", 1, "tuple of ints", dim)
    return wrap_dims(dim, n_dims) or tuple(range(n_dims))


def one_dim(function: str, x: Tensor, dim: Any) -> int:
    """The dimension that an int names; a 0-d tensor takes 0 and -1."""
    need_tensor(function, x)
    return wrap_dim(need_int(function, "dim", 1, dim), max(len(x.shape), 1))


def need_elements(function: str, x: Tensor, dims: Sequence[int] | None) -> None:
    """Raise where there is no largest or first element, because there is none at all."""
    shape = x.shape
    if 0 not in shape:
        return
    if dims is None:
        first = f"{function}(): Expected reduction dim to be specified for input.numel() == 0." + (
            "" if "arg" in function else " Specify the reduction dim with the 'dim' argument."
        )
        if "arg" in function:
            raise IndexRangeError(first)
        raise ShapeError(first, a_shape=tuple(shape))
    for dim in dims:
        if shape[dim] == 0:
            raise IndexRangeError(
                f"{function}(): Expected reduction dim {dim} to have non-zero size.",
                f"The tensor has shape {tuple(shape)}.",
                dim=dim,
                size=0,
            )


def as_dtype_of(function: str, x: Tensor, dtype: Any, *, integers: DType | None = None) -> Any:
    """``x`` converted to ``dtype``; without one, integers and bools to ``integers``."""
    need_tensor(function, x)
    own = x.dtype
    if dtype is not None:
        wanted = as_dtype(function, dtype)
    else:
        wanted = own if own.is_floating_point else integers or own
    return x if wanted is own else copying.to_dtype(x, wanted)


def summable(function: str, x: Tensor, dtype: Any) -> Any:
    """``x`` as sums and products take it: integers and bools count in int64."""
    return as_dtype_of(function, x, dtype, integers=dtypes.int64)


# On arrays

# Vectors of ones by length and dtype, never written to: a product with one is the fastest sum.
ones: Callable[[int, str], Any] = lru_cache(1000)(np.ones)


FEW = 1024  # elements, up to which products with ones are faster than NumPy's sums


def is_small_matrix(x: Any) -> bool:
    """Whether ``row_sums`` are for this array of NumPy's."""
    if x.__class__ is not np.ndarray or x.ndim != 2:
        return False
    return 0 < x.size <= FEW and x.dtype.char in "fd"


def row_sums(x: Any) -> Any:
    """The sums of the rows of a small matrix, as a column: BLAS has them first."""
    return x.dot(ones(x.shape[1], x.dtype.char))[:, None]


@lru_cache(100)
def first_of_rows(n_rows: int, n_columns: int) -> Any:
    """The number of the first element of each row of a row-major matrix; not to be written to."""
    return np.arange(0, n_rows * n_columns, n_columns)


def wide(xp: Any, x: Any) -> Any:
    """float16 as float32, in which it is computed, also where only sums are meant; else ``x``."""
    return x.astype(xp.float32) if x.dtype == xp.float16 else x


def axes(x: Any, dim: Ints | None) -> Any:
    """The axes of an array to reduce, as NumPy is fastest with them: an int, or None for all."""
    if dim is None or len(dim) == x.ndim or not x.ndim:
        return None
    return dim[0] if len(dim) == 1 else dim


def count(shape: Ints, dim: Ints | None) -> int:
    """How many elements a reduction takes together."""
    if dim is None:
        return prod(shape)
    return prod([size for place, size in enumerate(shape) if place in dim])


# In formulas, on tensors and arrays


def restore(x: Any, shape: Ints, dim: Ints | None, keepdim: bool) -> Any:
    """A reduced result or its gradient with the reduced dimensions back, of size 1."""
    if not keepdim and shape and dim is not None:
        for place in sorted(dim):
            x = unsqueeze(x, place)
    return x


def spread(g: Any, shape: Ints, dim: Ints | None, keepdim: bool) -> Any:
    """The gradient of a sum: repeated along the dimensions that were added up."""
    return expand(restore(g, shape, dim, keepdim), shape)


# Named results


def named_result(name: str, *fields: str) -> Any:
    """A class of named tuples that prints as PyTorch's ``torch.return_types`` do."""

    def __repr__(self: Any) -> str:
        parts = (f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n" + ",\n".join(parts) + ")"

    tuple_of: Any = namedtuple  # a checker wants to know the fields
    body = {
        "__slots__": (),
        "__module__": "torch.return_types",
        "__repr__": __repr__,
        "__reduce__": lambda self: (_made_again, (name, fields, tuple(self))),
    }
    return type(name, (tuple_of(name, fields),), body)


def _made_again(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return named_result(name, *fields)(*values)
