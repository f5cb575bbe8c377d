"""Order and counting: the largest and the smallest, sort, topk, unique, bincount."""

from collections import namedtuple
from collections.abc import Callable
from functools import cache, partial
from operator import index
from typing import Any

from tensorkit.base import Tensor, TensorBase
from tensorkit.dispatch import op
from tensorkit.errors import IndexRangeError, NotSupportedError, ShapeError
from tensorkit.layout import Ints
from tensorkit.ops.comparison import maximum, minimum, where
from tensorkit.ops.gathering import elements
from tensorkit.ops.reductions import Dims, axes, count, restored, sum
from tensorkit.ops.views import zeros_with

# The largest and the smallest. Equal ones get equal shares of the gradient, but where an index is
# reported that one gets all.


def _need_elements(
    input: Tensor, dim: Dims = None, keepdim: bool = False, whole: Any = ShapeError
) -> None:
    if count(tuple(input.shape), dim) == 0:
        error = whole if dim is None or dim == () else IndexRangeError
        raise error(
            "Expected reduction dim to have non-zero size.",
            f"The tensor has shape {tuple(input.shape)}: there is no largest or smallest element.",
        )


@op(check=_need_elements)
def amax(xp: Any, input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """The largest element, or the largest ones along ``dim``: one dimension or a tuple of them.

    >>> tk.amax(tk.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([5., 3.])
    """
    return input.max(axis=axes(input, dim), keepdims=keepdim)


@op(check=_need_elements)
def amin(xp: Any, input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """The smallest element, or the smallest ones along ``dim``.

    >>> tk.amin(tk.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([1., 2.])
    """
    return input.min(axis=axes(input, dim), keepdims=keepdim)


def _equal_shares(g: Any, input: Any, out: Any, shape: Ints, dim: Dims, keepdim: bool) -> Any:
    is_extreme = input == restored(out, shape, dim, keepdim)
    return restored(g, shape, dim, keepdim) * is_extreme / sum(is_extreme, dim, True)


amax.grad(input=_equal_shares)
amin.grad(input=_equal_shares)


@op(dtypes="numeric", check=partial(_need_elements, whole=IndexRangeError))
def argmax(xp: Any, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index of the largest element, along ``dim`` or in the flattened tensor.

    >>> tk.argmax(tk.tensor([[1., 5.], [3., 2.]])), tk.argmax(tk.tensor([[1., 5.], [3., 2.]]), 0)
    (tensor(1), tensor([1, 0]))
    """
    return input.argmax(axis=dim, keepdims=keepdim)


@op(dtypes="numeric", check=partial(_need_elements, whole=IndexRangeError))
def argmin(xp: Any, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index of the smallest element, along ``dim`` or in the flattened tensor.

    >>> tk.argmin(tk.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([0, 1])
    """
    return input.argmin(axis=dim, keepdims=keepdim)


_tuple_of: Any = cache(namedtuple)  # of most the fields are the same


def named_result(name: str, *fields: str) -> Any:
    """A class of named tuples that prints as PyTorch's ``torch.return_types`` do."""

    def __repr__(self: Any) -> str:
        parts = (f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n" + ",\n".join(parts) + ")"

    body = {
        "__slots__": (),
        "__module__": "torch.return_types",
        "__repr__": __repr__,
        "__reduce__": lambda self: (_made_again, (name, fields, tuple(self))),
    }
    return type(name, (_tuple_of("return_types", fields),), body)


def _made_again(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return named_result(name, *fields)(*values)


def picked(xp: Any, x: Any, indices: Any, dim: int, keepdim: bool = True) -> tuple[Any, Any]:
    """The elements at these positions along a dimension, and the positions."""
    values = xp.take_along_axis(x, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def put_back(g: Any, indices: Any, shape: Ints, dim: int, keepdim: bool | None) -> Any:
    """The gradient of what was picked, where it was picked; zeros elsewhere."""
    if not shape:
        return g
    if keepdim is False:  # None: the operation has no such option
        g, indices = (restored(each, shape, dim, keepdim) for each in (g, indices))
    return zeros_with(g, size=shape, index=elements(indices, dim % len(shape)))


def _extreme(name: str, of_two: Any) -> Callable[..., Any]:
    """``max`` or ``min``, each of which is three operations."""

    def of_all(xp: Any, input: Any) -> Any:
        return getattr(input, name)()

    def with_dim(xp: Any, input: Any, dim: int, keepdim: bool = False) -> Any:
        indices = getattr(input, f"arg{name}")(axis=index(dim), keepdims=True)
        return picked(xp, input, indices, dim, keepdim)

    def shares(g: Any, input: Any, out: Any) -> Any:
        is_nan = (input != input) & (out != out)  # nan is the extreme of what has nan
        is_extreme = (input == out) | is_nan
        return where(is_extreme, g / sum(is_extreme), 0.0)

    of_all.__name__ = with_dim.__name__ = name
    whole = op(name=name, check=_need_elements)(of_all)
    whole.grad(node=f"{name.title()}Backward1", input=shares)
    outputs = named_result(name, "values", "indices")
    named = op(tensors=1, name=name, outputs=outputs, check=_need_elements)(with_dim)
    named.grad(input=put_back)

    def call(input: Any, dim: Any, keepdim: Any, options: dict[str, Any]) -> Any:
        if isinstance(options.get("other", dim), TensorBase) and not keepdim:
            return of_two(input, options.get("other", dim))
        if dim is None and not options:
            return whole(input)
        return named(input, *([] if dim is None else [dim]), keepdim=keepdim, **options)

    return call


_max, _min = _extreme("max", maximum), _extreme("min", minimum)


def max(input: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The largest element; with ``dim`` values and indices along it; with a tensor ``maximum``.

    >>> x = tk.tensor([[1., 5.], [3., 2.]])
    >>> tk.max(x), tk.max(x, dim=1).indices, tk.max(x, x.t())
    (tensor(5.), tensor([1, 0]), tensor([[1., 5.],
            [5., 2.]]))
    """
    return _max(input, dim, keepdim, options)


def min(input: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The smallest element; with ``dim`` values and indices along it; with a tensor ``minimum``.

    >>> x = tk.tensor([[1., 5.], [3., 2.]])
    >>> tk.min(x), tk.min(x, dim=1).values
    (tensor(1.), tensor([1., 2.]))
    """
    return _min(input, dim, keepdim, options)


def _order(xp: Any, x: Any, dim: int, descending: bool) -> Any:
    """The indices that sort an array; equal elements keep their order."""
    if not descending:
        return xp.argsort(x, dim, kind="stable")
    # from the other end twice, so that equal elements keep their order
    return x.shape[dim] - 1 - xp.flip(_order(xp, xp.flip(x, dim), dim, False), dim)


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


def _check_k(input: Tensor, k: int, dim: int, **_: Any) -> None:
    size = input.shape[dim] if input.shape else 1
    if not 0 <= k <= size:
        raise ShapeError("selected index k out of range", f"k is {k}; the dimension has {size}.")


@op(tensors=1, outputs=named_result("topk", "values", "indices"), dtypes="numeric", check=_check_k)
def topk(
    xp: Any, input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim``, and where they were.

    They come in order, whatever ``sorted`` says.

    >>> tk.topk(tk.tensor([3., 1., 2.]), 2).indices
    tensor([0, 2])
    """
    if not 0 <= k <= input.shape[dim]:
        raise ValueError("k is out of range")
    first = (*[slice(None)] * (dim % input.ndim), slice(k))
    return picked(xp, input, _order(xp, input, dim, largest)[first], dim)


sort.grad(input=put_back)
topk.grad(input=put_back)


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


_unique2.grad(node="UniqueDimBackward0", without_options="Unique2Backward0", input=None)


@op(ndim={"input": 1}, dtypes="integral")
def bincount(xp: Any, input: Any, *, minlength: int = 0) -> Any:
    """How often 0, 1, 2, ... occur.

    Raises RuntimeError unless ``input`` has one dimension of integers that are not negative.

    >>> tk.bincount(tk.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    if input.dtype == bool:
        raise NotSupportedError("\"bincount_cpu\" not implemented for 'Bool'", repair="x.long()")
    if input.size and input.max() >= 2**60:  # NumPy would write outside of its memory
        raise OverflowError("maximum value of input overflowed")
    return xp.bincount(input, None, minlength)
