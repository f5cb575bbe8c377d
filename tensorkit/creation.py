"""New tensors from sizes and ranges, and tensors like another one.

Every function takes ``dtype``, ``device`` and ``requires_grad`` by name. ``@factory`` reads these,
once for all, and passes them on as ``Options``. Data come in ``tensorkit.data``, random numbers in
``tensorkit.sampling``.

``arange`` and ``linspace`` round as PyTorch's kernels do, which multiply and add with one rounding.
``arange`` works in blocks as wide as 32 bytes: the first number of a block is rounded before the
others are counted from it (aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp).
"""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorkit import base, dtypes
from tensorkit.autograd.hooks import make_leaf
from tensorkit.autograd.node import finished
from tensorkit.base import Tensor
from tensorkit.devices import Device, as_device
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import DTypeError, ShapeError, message
from tensorkit.layout import Ints
from tensorkit.ops import copying
from tensorkit.ops.arguments import as_scalar, check_value, need_tensor, no_kernel

_BLOCK_BYTES = 32
# in which a product and a sum are computed before they are rounded to the dtype
_WIDE = {"e": np.float16, "f": np.float64, "d": np.longdouble}


class Options(NamedTuple):
    """What the caller of a factory asks for by name; None where they ask for nothing."""

    function: str
    dtype: DType | None
    device: Device | None

    @property
    def dtype_or_default(self) -> DType:
        """The dtype asked for, or the default one."""
        return self.dtype or dtypes.get_default_dtype()

    def empty(self, shape: Ints, dtype: DType | None = None) -> Tensor:
        """A contiguous tensor whose values are not set."""
        numpy = (dtype or self.dtype_or_default).numpy
        try:
            return base.new(as_device(self.device).backend.xp.empty(shape, numpy))
        except ValueError as error:  # sizes that no array has
            raise ShapeError(f"{self.function}(): {error}", a_shape=shape) from None

    def like(self, x: Any) -> Tensor:
        """The same, in the shape, dtype and order in memory of ``x``, and on its device."""
        need_tensor(self.function, x)
        dtype, shape = self.dtype or x.dtype, x._array.shape
        device = x.device if self.device is None else as_device(self.device)
        return base.new(device.backend.allocate(dtype.numpy, shape, x._strides))

    def holding(self, array: Any) -> Tensor:
        """A tensor of the values of a fresh NumPy array, which is kept or sent to the device."""
        return base.new(as_device(self.device).backend.from_host(array, self.function))


def factory(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that makes tensors: ``make`` behind the keywords that all of them take."""

    @functools.wraps(make)
    def call(
        *args: Any,
        dtype: DType | type | None = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        **named: Any,
    ) -> Tensor:
        options = Options(
            make.__name__,
            None if dtype is None else as_dtype(make.__name__, dtype),
            None if device is None else as_device(device),
        )
        result = make(options, *args, **named)
        return make_leaf(result) if requires_grad else finished(result)

    del call.__dict__["__wrapped__"]  # its first parameter is not the caller's
    return call


def new(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The method ``x.new_...``: ``make`` with the dtype and the device of ``x``."""

    def method(self: Tensor, *args: Any, **named: Any) -> Tensor:
        own = {"dtype": self.dtype, "device": self.device}
        named |= {name: value for name, value in own.items() if named.get(name) is None}
        return make(*args, **named)

    method.__doc__ = f"``tk.{make.__name__}`` with the dtype and the device of this tensor."
    return method


# From sizes


def shape_of(function: str, args: tuple[Any, ...], size: Any = None) -> Ints:
    """The shape that a call such as zeros(2, 3), zeros((2, 3)) or zeros(size=(2, 3)) asks for."""
    given = args if size is None else (*args, size)
    is_one = len(given) == 1 and isinstance(given[0], (tuple, list))
    sizes = given[0] if is_one else given
    try:
        if not given or any(isinstance(each, bool) for each in sizes):
            raise TypeError
        shape = tuple(map(operator.index, sizes))
    except TypeError:
        got = ", ".join(type(each).__name__ for each in sizes) or "nothing"
        first = f"{function}(): size must be ints or a tuple of ints, not {got}"
        raise TypeError(message(first, repair=f"tk.{function}(2, 3)")) from None
    for each in shape:
        if each < 0:
            first = f"Trying to create tensor with negative dimension {each}: {list(shape)}"
            raise ShapeError(first, a_shape=shape)
        if each >= 2**63:
            raise ValueError("Overflow when unpacking long long")
    return shape


def _filled(x: Tensor, value: Any) -> Tensor:
    x._array.fill(value)
    return x


def _number(function: str, value: Any) -> Any:
    """A Python number, also from a tensor without dimensions."""
    number = as_scalar(value)
    if number is None:
        kind = type(value).__name__
        raise TypeError(f"{function}() takes numbers, not {kind}")
    return number


@factory
def zeros(options: Options, *args: Any, size: Any = None) -> Tensor:
    """A tensor of zeros; the sizes come one by one or as one tuple.

    >>> tk.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _filled(options.empty(shape_of("zeros", args, size)), 0)


@factory
def ones(options: Options, *args: Any, size: Any = None) -> Tensor:
    """A tensor of ones; the sizes come one by one or as one tuple.

    >>> tk.ones(3)
    tensor([1., 1., 1.])
    """
    return _filled(options.empty(shape_of("ones", args, size)), 1)


@factory
def empty(options: Options, *args: Any, size: Any = None) -> Tensor:
    """A tensor whose values are not set: whatever the memory held. Write before you read.

    >>> tk.empty(2, 3).shape
    torch.Size([2, 3])
    """
    return options.empty(shape_of("empty", args, size))


@factory
def full(options: Options, size: Any, fill_value: Any) -> Tensor:
    """A tensor filled with one number, whose kind decides the dtype.

    >>> tk.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    number = _number("full", fill_value)
    dtype = options.dtype or dtypes.of_number(number)
    check_value(number, dtype)
    x = options.empty(shape_of("full", (), size), dtype)
    return _filled(x, copying.stored(number, dtype)[()])


@factory
def eye(options: Options, n: int, m: int | None = None) -> Tensor:
    """A matrix of ``n`` rows and ``m`` columns (default ``n``) with ones on the diagonal.

    >>> tk.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    n, m = shape_of("eye", (n, n if m is None else m))
    result = _filled(options.empty((n, m)), 0)
    result._array.reshape(-1)[: m * min(n, m) : m + 1] = 1
    return result


# Like another tensor: same shape, dtype, device and order in memory


@factory
def empty_like(options: Options, input: Tensor) -> Tensor:
    """A tensor of the shape and dtype of ``input`` whose values are not set.

    >>> tk.empty_like(tk.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return options.like(input)


@factory
def zeros_like(options: Options, input: Tensor) -> Tensor:
    """Zeros, in the shape and dtype of ``input``.

    >>> tk.zeros_like(tk.tensor([5, 6]))
    tensor([0, 0])
    """
    return _filled(options.like(input), 0)


@factory
def ones_like(options: Options, input: Tensor) -> Tensor:
    """Ones, in the shape and dtype of ``input``.

    >>> tk.ones_like(tk.tensor([5, 6]))
    tensor([1, 1])
    """
    return _filled(options.like(input), 1)


@factory
def full_like(options: Options, input: Tensor, fill_value: Any) -> Tensor:
    """One number everywhere, in the shape and dtype of ``input``.

    >>> tk.full_like(tk.tensor([5., 6.]), 3)
    tensor([3., 3.])
    """
    x, number = options.like(input), _number("full_like", fill_value)
    check_value(number, x.dtype)
    return _filled(x, copying.stored(number, x.dtype)[()])


# Ranges


@factory
def arange(options: Options, start: Any = None, end: Any = None, step: Any = 1) -> Tensor:
    """The numbers from ``start`` (default 0) up to, not including, ``end``, ``step`` apart.

    Integers give int64, anything with a point the default dtype.

    >>> tk.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> tk.arange(1., 2., 0.5)
    tensor([1.0000, 1.5000])
    """
    bounds = (0, start, step) if end is None else (0 if start is None else start, end, step)
    first, last, gap = (_number("arange", each) for each in bounds)
    has_point = any(isinstance(number, float) for number in (first, last, gap))
    dtype = options.dtype or (dtypes.get_default_dtype() if has_point else dtypes.int64)
    if dtype is dtypes.bool_:
        raise no_kernel("arange_cpu", dtype)
    n = _count(first, last, gap, dtype)
    if dtype.is_floating_point:
        return options.holding(_counted(first, gap, n, dtype))
    xp = as_device(options.device).backend.xp
    return base.new((int(first) + int(gap) * xp.arange(n, dtype=np.int64)).astype(dtype.numpy))


def _count(first: Any, last: Any, gap: Any, dtype: DType) -> int:
    """How many numbers ``arange`` gives; raises for bounds and steps that make no range."""
    wide = dtypes.float64 if dtype.is_floating_point else dtypes.int64
    for value in (first, last, gap):
        check_value(value, wide)
    if not (math.isfinite(first) and math.isfinite(last)):
        raise DTypeError(f"unsupported range: {first:g} -> {last:g}")
    number = int if dtype is dtypes.int64 else float
    first, last, gap = number(first), number(last), number(gap)
    if not (gap > 0 or gap < 0):
        raise DTypeError("step must be nonzero")
    if (last - first) * gap < 0:
        raise DTypeError(
            "upper bound and lower bound inconsistent with step sign",
            f"From {first}, steps of {gap} never reach {last}.",
        )
    n = -((first - last) // gap) if dtype is dtypes.int64 else (last - first) / gap
    if n >= 2**63:
        raise DTypeError("invalid size, possible overflow?", f"From {first} to {last} by {gap}.")
    return math.ceil(n)


def _counted(first: Any, gap: Any, n: int, dtype: DType) -> Any:
    """``first``, ``first + gap``, ...: ``n`` numbers of a floating-point dtype."""
    inner = np.float32 if dtype is dtypes.float16 else np.float64
    start, step = (np.longdouble(inner(number)) for number in (first, gap))
    block = _BLOCK_BYTES // dtype.itemsize
    n_in_blocks = n - n % (2 * block)
    bases = (start + step * np.arange(0, n_in_blocks, block)).astype(inner).astype(dtype.numpy)
    blocks = (bases[:, np.newaxis] + step * np.arange(block)).astype(inner)
    rest = (start + step * np.arange(n_in_blocks, n)).astype(inner)
    return np.concatenate([blocks.ravel(), rest]).astype(dtype.numpy)


@factory
def linspace(options: Options, start: Any, end: Any, steps: int) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, at equal distances.

    For integer dtypes the ends and the numbers are cut off to integers.

    >>> tk.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    (n,), dtype = shape_of("linspace", (steps,)), options.dtype_or_default
    if dtype is dtypes.bool_ and n > 1:
        raise no_kernel("linspace_cpu", dtype)
    ends = [_number("linspace", value) for value in (start, end)][:n]
    for number in ends:
        check_value(number, dtype)
    stored = np.array([copying.stored(number, dtype) for number in ends], dtype.numpy)
    return options.holding(stored if n < 2 else _spaced(stored[0], stored[1], n, dtype))


def _spaced(first: Any, last: Any, n: int, dtype: DType) -> Any:
    """``n`` numbers from ``first`` to ``last``, counted from both ends, so that both are exact."""
    inner = dtype.numpy if dtype.is_floating_point else np.dtype(np.float64)
    wide, index = _WIDE[inner.char], np.arange(n)
    start, stop = inner.type(first), inner.type(last)
    step = (stop - start) / inner.type(n - 1)
    forwards = (wide(start) + wide(step) * index.astype(wide)).astype(inner)
    backwards = (wide(stop) - wide(step) * index[::-1].astype(wide)).astype(inner)
    return np.where(index < n // 2, forwards, backwards).astype(dtype.numpy)
