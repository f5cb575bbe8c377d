"""Writing and adding along one dimension at the positions that a tensor holds.

Every function has a form that copies and one, with a trailing underscore, that writes in place.
"""

from typing import Any

from tensorkit import dtypes, layout
from tensorkit.autograd import history
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import DTypeError, NotSupportedError, ShapeError, sizes
from tensorkit.ops import copying, results, writing
from tensorkit.ops.arguments import (
    as_number,
    as_scalar,
    check_value,
    need_int,
    need_tensor,
    no_such_call,
)
from tensorkit.ops.gathering import (
    add_along,
    add_slices,
    coordinates,
    first_outside,
    need_index,
    take_along,
    take_slices,
)
from tensorkit.ops.moving import joining
from tensorkit.ops.notation import Operation, op, planned
from tensorkit.ops.places import refuse_position


def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, **more: Any) -> Tensor:
    """A copy of ``input`` with elements of ``src`` at the positions that ``index`` names.

    For two dimensions and ``dim=1``: ``out[i, index[i, j]] = src[i, j]``. ``src`` is a tensor of
    the dtype of ``input``, or one number (``value=``). Where positions repeat, one of them wins.

    >>> tk.zeros(2, 3).scatter(1, tk.tensor([[2], [0]]), 1.)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if isinstance(src, TensorBase) and not more:
        return _with_tensor(input, index, src, dim)
    operation, inputs, options = _scattered("scatter", input, dim, index, src, more)
    return operation(*inputs, **options)


@planned(3)
def _with_tensor(input: Tensor, index: Any, src: Any, dim: Any) -> Any:
    operation, inputs, options = _scattered("scatter", input, dim, index, src, {})
    return operation(*inputs, **options)


def scatter_(input: Tensor, dim: int, index: Tensor, src: Any = None, **more: Any) -> Tensor:
    """``scatter`` in place."""
    if not more and _is_plain(input, dim, index, src):
        array = scatter(input, dim, index, src)._array
        if writing.write_plainly(input, array, "scatter_"):
            return input
    return _in_place("scatter", *_scattered("scatter_", input, dim, index, src, more))


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of ``input`` to which elements of ``src`` are added; positions may repeat.

    >>> tk.zeros(3).scatter_add(0, tk.tensor([0, 2, 2]), tk.tensor([1., 2., 3.]))
    tensor([1., 0., 5.])
    """
    return _with_sums(input, index, src, dim)


@planned(3)
def _with_sums(input: Tensor, index: Any, src: Any, dim: Any) -> Any:
    operation, inputs, options = _added("scatter_add", input, dim, index, src)
    return operation(*inputs, **options)


def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``scatter_add`` in place."""
    if _is_plain(input, dim, index, src):
        array = scatter_add(input, dim, index, src)._array
        if writing.write_plainly(input, array, "scatter_add_"):
            return input
    return _in_place("scatter_add", *_added("scatter_add_", input, dim, index, src))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy of ``input`` to whose slices at ``index`` those of ``source`` are added.

    >>> tk.zeros(3).index_add(0, tk.tensor([0, 0]), tk.tensor([1., 2.]))
    tensor([3., 0., 0.])
    """
    return _with_slices(input, index, source, dim, alpha)


@planned(3)
def _with_slices(input: Tensor, index: Any, source: Any, dim: Any, alpha: Any) -> Any:
    operation, inputs, options = _slices_added(input, dim, index, source, alpha)
    return operation(*inputs, **options)


def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """``index_add`` in place."""
    return _in_place("index_add", *_slices_added(input, dim, index, source, alpha))


def _is_plain(x: Any, dim: Any, *others: Any) -> bool:
    """Whether these are a dimension and tensors of which nothing is recorded or shared."""
    return (
        dim.__class__ is int
        and isinstance(x, TensorBase)
        and all(writing.is_apart(each, x) for each in others)
    )


_Call = tuple[Operation, tuple[Any, ...], dict[str, Any]]


def _in_place(
    name: str, operation: Operation, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Tensor:
    x, definition = inputs[0], operation.definition
    if any(each.device is not x.device for each in inputs):
        inputs = joining(*inputs)
    tracked = history.check_write(x, *inputs[1:])
    writing.check_overlap(x)
    xp = x.device.backend.xp
    array = results.run(definition.forward, xp, *[each._array for each in inputs], **options)
    values = {**dict(zip(definition.inputs, inputs, strict=True)), **options}
    writing.write(x, array, name, definition.rules[None] if tracked else None, values)
    return x


def _scattered(
    function: str, x: Tensor, dim: int, index: Any, src: Any, more: dict[str, Any]
) -> _Call:
    if "reduce" in more:
        raise NotSupportedError(
            "tensorkit's scatter has no reduce=", repair="x.scatter_add(dim, index, src)"
        )
    src = more.get("value", src)
    number = None if isinstance(src, TensorBase) else as_number(src)
    if number is None and not isinstance(src, TensorBase):
        raise no_such_call(
            function,
            (dim, index, src),
            "(int dim, Tensor index, Tensor src)",
            "(int dim, Tensor index, Number value)",
        )
    dim = _checked(function, x, dim, index, src)
    if number is None:
        return _scatter, (x, index, src), {"dim": dim}
    check_value(number, x.dtype)
    return _scatter_number, (x, index), {"dim": dim, "value": copying.stored(number, x.dtype)[()]}


def _added(function: str, x: Tensor, dim: int, index: Any, src: Any) -> _Call:
    need_tensor(function, src, "src", 3)
    return _scatter_add, (x, index, src), {"dim": _checked("scatter", x, dim, index, src)}


def _slices_added(x: Tensor, dim: int, index: Any, source: Any, alpha: Any) -> _Call:
    need_tensor("index_add_", x)
    for place, (name, value) in enumerate((("index", index), ("source", source)), start=2):
        need_tensor("index_add_", value, name, place)
    dim = layout.wrap_dim(need_int("index_add_", "dim", 1, dim), max(x.dim(), 1))
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError(
            f"index_add_(): Expected dtype int32/int64 for index but got: {index.dtype.word}"
        )
    if x.dtype is not source.dtype:
        raise DTypeError(
            f"index_add_(): self ({x.dtype.word}) and source ({source.dtype.word}) must have "
            "the same scalar type",
            repair=f"source.to(tk.{x.dtype.name})",
        )
    length = source.shape[dim] if source.dim() else 1
    if index.numel() != length:
        raise ShapeError(
            f"index_add_(): Number of indices ({index.numel()}) should be equal to "
            f"source.size(dim): ({length}), for dim: {dim}"
        )
    own, other = list(x.shape), list(source.shape)
    if own[:dim] != other[:dim] or own[dim + 1 :] != other[dim + 1 :]:
        raise ShapeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {own} source.shape = {other}",
            a_shape=tuple(own),
            b_shape=tuple(other),
        )
    _refuse_outside(x, dim, index)
    return _index_add, (x, index, source), {"dim": dim, "alpha": as_scalar(alpha)}


def _checked(function: str, x: Tensor, dim: Any, index: Any, src: Any) -> int:
    """``dim``, counted from the front, after the checks of index and ``src``."""
    name = function.removesuffix("_")
    need_tensor(function, x)
    need_index(function, index, 2)
    dim = layout.wrap_dim(need_int(function, "dim", 1, dim), max(x.dim(), 1))
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError(f"{name}(): Expected dtype int32/int64 for index", repair="index.long()")
    if isinstance(src, TensorBase) and src.dtype is not x.dtype:
        raise DTypeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype",
            repair=f"src.to(tk.{x.dtype.name})",
        )
    if not index.numel():
        return dim
    shapes = {"self": tuple(x.shape) or (1,)}
    if isinstance(src, TensorBase):
        shapes["src"] = tuple(src.shape) or (1,)
    own = tuple(index.shape) or (1,)
    for which, shape in shapes.items():
        if len(shape) != len(own):
            raise ShapeError(
                f"Index tensor must have the same number of dimensions as {which} tensor",
                a_shape=shape,
                b_shape=own,
            )
    if any(
        size > most and (which == "src" or place != dim)
        for which, shape in shapes.items()
        for place, (size, most) in enumerate(zip(own, shape, strict=True))
    ):
        source = f" and to be no larger size than src {sizes(shapes['src'])}"
        raise ShapeError(
            f"Expected index {sizes(own)} to be no larger than self {sizes(shapes['self'])} apart "
            f"from dimension {dim}{source if 'src' in shapes else ''}",
            a_shape=shapes["self"],
            b_shape=own,
        )
    _refuse_outside(x, dim, index)
    return dim


def _refuse_outside(x: Tensor, dim: int, index: Tensor) -> None:
    size = x.shape[dim] if x.dim() else 1
    position = first_outside(index._array, size)
    if position is not None:
        refuse_position(position, dim, size, ShapeError)


@op(kind="function")
def _scatter(xp: Any, x: Any, index: Any, y: Any, *, dim: int) -> Any:
    copy = x.copy()
    if index.size:
        whole = copy.reshape(-1) if not x.ndim else copy
        index, y = _as_vector(index), _as_vector(y)
        whole[coordinates(xp, index, dim)] = _like(y, index)
    return copy


def _as_vector(array: Any) -> Any:
    """A number counts as a vector of one element."""
    return array if array.ndim else array.reshape(1)


def _like(y: Any, index: Any) -> Any:
    """The part of ``y`` that has the shape of ``index``."""
    return y[tuple(slice(size) for size in index.shape)]


@op(kind="function")
def _scatter_number(xp: Any, x: Any, index: Any, *, dim: int, value: Any) -> Any:
    full = xp.empty(index.shape, x.dtype)
    full[...] = value
    return _scatter.definition.forward(xp, x, index, full, dim=dim)


@op(kind="function")
def _scatter_add(xp: Any, x: Any, index: Any, y: Any, *, dim: int) -> Any:
    if not x.ndim:
        return x + y.sum(dtype=x.dtype)
    index, y = _as_vector(index), _as_vector(y)
    return x + add_along.definition.forward(xp, _like(y, index), index, dim=dim, size=x.shape)


@op(kind="function")
def _index_add(xp: Any, x: Any, index: Any, y: Any, *, dim: int, alpha: Any) -> Any:
    if alpha != 1:
        y = y * y.dtype.type(alpha)
    if not x.ndim:
        return x + y.reshape(())
    return x + add_slices.definition.forward(xp, y, index, dim=dim, size=x.shape)


_scatter.grad(
    x=lambda g, index, dim: _scatter_number(g, index, dim=dim, value=0),
    y=lambda g, index, dim: take_along(g, index, dim=dim),
)
_scatter_number.grad(
    node="ScatterBackward1",
    x=lambda g, index, dim: _scatter_number(g, index, dim=dim, value=0),
)
_scatter_add.grad(x=lambda g: g, y=lambda g, index, dim: take_along(g, index, dim=dim))
_index_add.grad(
    x=lambda g: g,
    y=lambda g, index, dim, alpha: take_slices(g, index, dim=dim) * alpha,
)
