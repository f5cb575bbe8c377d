"""Order and counting: sort, topk, unique, bincount."""

from typing import Any, NoReturn

import numpy as np

from tensorkit import layout
from tensorkit.base import Tensor
from tensorkit.dispatch import op
from tensorkit.errors import NotSupportedError, ShapeError
from tensorkit.ops.reductions import named_result, picked, put_back


def _order(xp: Any, x: Any, dim: int, descending: bool) -> Any:
    """The indices that sort an array; equal elements keep their order."""
    if not descending:
        return x.argsort(axis=dim, kind="stable") if xp is np else xp.argsort(x, dim, kind="stable")
    # from the other end twice, so that equal elements keep their order
    turned = layout.backwards(x.ndim, (dim % x.ndim,))
    return x.shape[dim] - 1 - _order(xp, x[turned], dim, False)[turned]


@op(outputs=named_result("sort", "values", "indices"))
def sort(
    xp: Any,
    input: Any,
    dim: int = -1,
    descending: bool = False,
    stable: bool | None = None,
) -> Any:
    """The elements in order along ``dim``: values and where each one was.

    Equal elements keep their order, whatever ``stable`` says. nan counts as the largest number.

    >>> tk.sort(tk.tensor([3., 1., 2.])).values, tk.sort(tk.tensor([3., 1., 2.])).indices
    (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    return picked(xp, input, _order(xp, input, dim, descending), dim)


@op()
def argsort(
    xp: Any,
    input: Any,
    dim: int = -1,
    descending: bool = False,
    stable: bool | None = None,
) -> Any:
    """The indices that ``sort`` gives: where the smallest element is, the second smallest, ...

    >>> tk.argsort(tk.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return _order(xp, input, dim, descending)


def _k_is_too_large(input: Tensor, k: int, dim: int, **_: Any) -> None:
    size = input.shape[dim] if input.shape else 1
    if not 0 <= k <= size:
        raise ShapeError(
            "selected index k out of range", f"k is {k}; the dimension has {size}.", dim=dim
        )


@op(
    tensors=1,
    outputs=named_result("topk", "values", "indices"),
    dtypes="numeric",
    explain=_k_is_too_large,
)
def topk(
    xp: Any, input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim``, and where they were.

    They come in order, whatever ``sorted`` says.

    >>> tk.topk(tk.tensor([3., 1., 2.]), 2).indices
    tensor([0, 2])
    """
    size, first = input.shape[dim], (*[slice(None)] * (dim % input.ndim), slice(k))
    if not 0 <= k <= size:
        raise ValueError("k is out of range")
    if not 0 < k < size // 16:
        return picked(xp, input, _order(xp, input, dim, largest)[first], dim)
    # far fewer than all: find them first, then sort only those
    found = xp.argpartition(input, size - k if largest else k - 1, axis=dim)
    found = found[(*first[:-1], slice(size - k, None))] if largest else found[first]
    order = _order(xp, xp.take_along_axis(input, found, dim), dim, largest)
    return picked(xp, input, xp.take_along_axis(found, order, dim), dim)


for _each in (sort, topk):
    _each.grad(input=lambda g, indices, shape, dim: put_back(g, indices, shape, dim))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements, in order; with ``dim`` the different slices along it.

    ``return_inverse`` adds where each element of the input is found in the result,
    ``return_counts`` how often each occurs.

    >>> tk.unique(tk.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    found = _unique2(input, dim)
    chosen = (True, return_inverse, return_counts)
    wanted = tuple(each for each, asked in zip(found, chosen, strict=True) if asked)
    return wanted if len(wanted) > 1 else wanted[0]


@op(name="unique", outputs=named_result("unique", "values", "inverse", "counts"))
def _unique2(xp: Any, input: Any, dim: int | None = None) -> Any:
    values, inverse, counts = xp.unique(
        input, return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    return values, inverse.reshape(input.shape if dim is None else -1), counts


def _refuse(dim: int | None) -> NoReturn:
    name = "_unique2" if dim is None else "unique_dim"
    raise NotSupportedError(
        f"the derivative for '{name}' is not implemented.", repair="x.detach().unique()"
    )


_unique2.grad(
    node="UniqueDimBackward0", plain="Unique2Backward0", input=lambda g, dim: _refuse(dim)
)


@op(
    tensors=2,
    ndim={"input": 1, "weights": 1},
    dtypes={"input": "integral", "weights": "numeric"},
)
def bincount(xp: Any, input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often 0, 1, 2, ... occur; with ``weights`` the sum of theirs.

    Raises RuntimeError unless ``input`` has one dimension of integers that are not negative.

    >>> tk.bincount(tk.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    if weights is None or not input.size:
        return xp.bincount(input, None, minlength)
    sums = xp.bincount(input, weights.astype(xp.float64), minlength)
    return sums.astype(xp.float32) if weights.dtype == xp.float32 else sums
