"""Order and counting: sort, topk, unique, bincount."""

from typing import Any, NoReturn

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.base import Tensor
from tensorkit.devices import refuse_mix
from tensorkit.errors import DTypeError, IndexRangeError, NotSupportedError, ShapeError
from tensorkit.ops import results
from tensorkit.ops.along import named_result, one_dim
from tensorkit.ops.arguments import need_bool, need_int, need_tensor, no_kernel
from tensorkit.ops.gathering import add_along, take_along
from tensorkit.ops.notation import op, planned
from tensorkit.quiet import quietly

_Sorted = named_result("sort", "values", "indices")
_Top = named_result("topk", "values", "indices")


def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Any:
    """The elements in order along ``dim``: values and where each one was.

    Equal elements keep their order. nan counts as the largest number.

    >>> tk.sort(tk.tensor([3., 1., 2.])).values, tk.sort(tk.tensor([3., 1., 2.])).indices
    (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    place, found = _sorted_places("sort", input, dim, descending, stable)
    strides, take = found._strides, take_along.definition.forward
    values = results.run(take, input._xp, input._array, found._array, dim=place)
    operation = _sort if stable is None else _sort_stable
    made = base.place(values, strides)
    known = {"x": input, "indices": found, "dim": place, "shape": tuple(input.shape)}
    return _Sorted(results.recorded(operation.definition, made, known), found)


def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: Any = None
) -> Tensor:
    """The indices that ``sort`` gives: where the smallest element is, the second smallest, ...

    >>> tk.argsort(tk.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return _sorted_places("argsort", input, dim, descending, stable)[1]


def _sorted_places(
    function: str, x: Tensor, dim: Any, descending: Any, stable: Any
) -> tuple[int, Tensor]:
    """The dimension, and where each element in order was; they lie in memory as ``x`` does."""
    place = one_dim(function, x, dim)
    descending = need_bool(function, "descending", 3, descending)
    if stable is not None:
        need_bool(function, "stable", 4, stable)
    indices = results.run(_order, x._xp, x._array, place, descending)
    strides = layout.dense_strides(tuple(x.shape), x._strides)
    return place, results.finished(base.place(indices, strides))


def _order(xp: Any, x: Any, dim: int, descending: bool) -> Any:
    if not x.ndim:
        return xp.zeros((), xp.int64)
    if not descending:
        return x.argsort(axis=dim, kind="stable") if xp is np else xp.argsort(x, dim, kind="stable")
    # from the other end twice, so that equal elements keep their order
    turned = layout.backwards(x.ndim, (dim,))
    return x.shape[dim] - 1 - _order(xp, x[turned], dim, False)[turned]


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim``, and where they were.

    They come in order, whatever ``sorted`` says.

    >>> tk.topk(tk.tensor([3., 1., 2.]), 2).indices
    tensor([0, 2])
    """
    indices = _places_of_first(input, k, dim, largest)
    return _Top(_first_elements(input, indices, dim), indices)


@planned(1)
def _places_of_first(input: Tensor, k: int, dim: int, largest: bool) -> Any:
    place = one_dim("topk", input, dim)
    k = need_int("topk", "k", 1, k)
    if input.dtype is dtypes.bool_:
        raise DTypeError("topk does not support bool dtypes on CPU", repair="x.int()")
    size = input.shape[place] if input.shape else 1
    if not 0 <= k <= size:
        raise ShapeError(
            "selected index k out of range", f"k is {k}; the dimension has {size}.", dim=place
        )
    largest = need_bool("topk", "largest", 4, largest)
    return _first, (input,), {"dim": place, "k": k, "largest": largest}


@planned(2)
def _first_elements(input: Tensor, indices: Tensor, dim: int) -> Any:
    return _topk, (input, indices), {"dim": one_dim("topk", input, dim)}


@op(kind="function")
def _first(xp: Any, x: Any, *, dim: int, k: int, largest: bool) -> Any:
    if not x.ndim:
        return xp.zeros((), xp.int64)
    first = (*[slice(None)] * dim, slice(k))
    size = x.shape[dim]
    if not 0 < k < size // 16:
        return _order(xp, x, dim, largest)[first]
    # far fewer than all: find them first, then sort only those
    found = xp.argpartition(x, size - k if largest else k - 1, axis=dim)
    found = found[(*first[:-1], slice(size - k, None))] if largest else found[first]
    order = _order(xp, xp.take_along_axis(x, found, dim), dim, largest)
    return xp.take_along_axis(found, order, dim)


@op(kind="function")
def _sort(xp: Any, x: Any, indices: Any, *, dim: int) -> Any:
    return take_along.definition.forward(xp, x, indices, dim=dim)


@op(kind="function")
def _sort_stable(xp: Any, x: Any, indices: Any, *, dim: int) -> Any:
    return take_along.definition.forward(xp, x, indices, dim=dim)


@op(kind="function")
def _topk(xp: Any, x: Any, indices: Any, *, dim: int) -> Any:
    return take_along.definition.forward(xp, x, indices, dim=dim)


for _ordered, _node in ((_sort, "Sort"), (_sort_stable, "Sort"), (_topk, "Topk")):
    _ordered.grad(
        node=f"{_node}Backward{int(_ordered is _sort_stable)}",
        x=lambda g, indices, dim, shape: add_along(g, indices, dim=dim, size=shape),
    )


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
    place = None if dim is None else one_dim("unique", input, dim)
    need_tensor("unique", input)
    shape = input.shape
    if place is not None and not shape:
        raise IndexRangeError(f"Dimension specified as {dim} but tensor has no dimensions")
    if place is not None and shape[place] and 0 in shape:
        raise ShapeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
            a_shape=tuple(shape),
        )
    device = input.device
    values, inverse, counts = quietly(_distinct, device.backend.xp, input._array, place)
    wanted = [results.contiguous_result(values, device)]
    operation = _unique2 if place is None else _unique_dim
    results.recorded(operation.definition, wanted[0], {"x": input})
    for asked, array in ((return_inverse, inverse), (return_counts, counts)):
        if asked:
            wanted.append(results.contiguous_result(array, device))
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def _distinct(xp: Any, x: Any, axis: int | None) -> tuple[Any, Any, Any]:
    shape = x.shape if axis is None else (x.shape[axis],)
    values, inverse, counts = xp.unique(
        x, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    return values, inverse.reshape(shape), counts


@op(kind="function")
def _unique2(xp: Any, x: Any) -> Any:
    return _distinct(xp, x, None)[0]


@op(kind="function")
def _unique_dim(xp: Any, x: Any) -> Any:
    raise NotImplementedError  # only its node is used


def _refuse(name: str) -> NoReturn:
    raise NotSupportedError(
        f"the derivative for '{name}' is not implemented.",
        repair="x.detach().unique()",
    )


_unique2.grad(x=lambda g: _refuse("_unique2"))
_unique_dim.grad(x=lambda g: _refuse("unique_dim"))


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often 0, 1, 2, ... occur; with ``weights`` the sum of theirs.

    Raises RuntimeError unless ``input`` has one dimension of integers that are not negative.

    >>> tk.bincount(tk.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    need_tensor("bincount", input)
    dtype, array, device = input.dtype, input._array, input.device
    if dtype.is_floating_point or dtype is dtypes.bool_:
        raise no_kernel("bincount_cpu", dtype, "x.long()")
    if minlength < 0:
        raise DTypeError("minlength should be >= 0")
    if weights is not None:
        need_tensor("bincount", weights, "weights")
        refuse_mix(device, weights.device)
    if array.ndim != 1 or (array.size and array.min() < 0):
        raise ShapeError(
            "bincount only supports 1-d non-negative integral inputs.",
            f"The tensor has shape {tuple(array.shape)}.",
            a_shape=tuple(array.shape),
        )
    if weights is not None and weights.shape != input.shape:
        raise ShapeError(
            "weights should be 1-d and have the same length as input",
            a_shape=tuple(array.shape),
            b_shape=tuple(weights.shape),
        )
    xp = device.backend.xp
    if weights is None or not array.size:
        return results.contiguous_result(xp.bincount(array, minlength=minlength), device)
    sums = xp.bincount(array, weights._array.astype(xp.float64), minlength)
    single = weights.dtype is dtypes.float32
    return results.contiguous_result(sums.astype(xp.float32) if single else sums, device)
