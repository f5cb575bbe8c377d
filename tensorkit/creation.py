"""New tensors from sizes and ranges, and tensors like another one.

Every function takes ``dtype``, ``device`` and ``requires_grad`` by name. ``@factory`` reads these,
once for all, and hands them to the function as a ``Wanted``; here is also the only place where
the memory of a new tensor is asked for. Data come in ``tensorkit.data``, random numbers in
``tensorkit.sampling``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorkit import base, dtypes, layout, ranges
from tensorkit.autograd.leaves import make_leaf
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Device, as_device
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import DTypeError, NotSupportedError, ShapeError, message, must_be, type_name
from tensorkit.layout import Ints
from tensorkit.ops import copying, results
from tensorkit.ops.arguments import (
    as_int,
    as_scalar,
    check_value,
    given_sizes,
    need_int,
    need_sizes,
    need_tensor,
    no_kernel,
    no_such_call,
)
from tensorkit.quiet import quietly

_ABSENT: Any = object()  # an argument that was not given, where None is refused


class Wanted(NamedTuple):
    """What the caller of a factory asks for by name; None where they ask for nothing."""

    function: str
    dtype: DType | None
    device: Device | None

    @property
    def place(self) -> Device:
        """The device asked for, or the default one."""
        return as_device(self.device)

    @property
    def dtype_or_default(self) -> DType:
        """The dtype asked for, or the default one."""
        return self.dtype or dtypes.get_default_dtype()

    def empty(self, shape: Ints, dtype: DType | None = None) -> Tensor:
        """A contiguous tensor whose values are not set."""
        dtype, device = dtype or self.dtype_or_default, self.place
        _refuse_negative(self.function, shape)
        layout.check_size(shape, dtype.itemsize)
        array = device.backend.xp.empty(shape, dtype.numpy)
        return base.new(array)

    def sized(self, *args: Any, size: Any = _ABSENT, **unknown: Any) -> Tensor:
        """The same, of the sizes that a call such as zeros(2, 3) or zeros((2, 3)) asks for."""
        if unknown:
            unexpected = next(iter(unknown))
            raise TypeError(f"{self.function}() got an unexpected keyword argument '{unexpected}'")
        return self.empty(_size(self.function, args, size))

    def like(self, x: Any) -> Tensor:
        """The same, in the shape, dtype and order in memory of ``x``, and on its device."""
        need_tensor(self.function, x)
        dtype, shape = self.dtype or x.dtype, x._array.shape
        device = x.device if self.device is None else self.place
        strides = layout.dense_strides(shape, x._strides)
        return base.place(device.backend.allocate(dtype.numpy, shape, strides), strides)

    def holding(self, array: Any, dtype: DType) -> Tensor:
        """A tensor of the values of a fresh NumPy array, which is kept or sent to the device."""
        device = self.place
        strides = layout.contiguous_strides(array.shape)
        sent = device.backend.from_host(array, self.function)
        return base.place(sent, strides)


def factory(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that makes tensors: ``make`` behind the keywords that all of them take."""
    name = make.__name__

    def call(
        *args: Any,
        dtype: DType | type | None = None,
        device: Device | str | None = None,
        requires_grad: Any = False,
        layout: None = None,
        pin_memory: bool = False,
        memory_format: None = None,
        **named: Any,
    ) -> Tensor:
        if layout or pin_memory or memory_format:
            given = {"layout": layout, "memory_format": memory_format, "pin_memory": pin_memory}
            unknown = next(option for option, value in given.items() if value)
            raise NotSupportedError(
                f"{name}(): tensorkit has no {unknown}={given[unknown]!r}",
                "All tensors are strided, in PyTorch's contiguous format, in ordinary memory.",
                repair=f"leave {unknown}= out",
            )
        wanted = Wanted(
            name,
            None if dtype is None else as_dtype(name, dtype),
            None if device is None else as_device(device),
        )
        if requires_grad and requires_grad is not True:
            kind = type_name(requires_grad)
            raise TypeError(f"{name}(): argument 'requires_grad' must be bool, not {kind}")
        result = make(wanted, *args, **named)
        return make_leaf(result) if requires_grad else results.finished(result)

    call.__name__ = call.__qualname__ = name
    call.__module__, call.__doc__ = make.__module__, make.__doc__
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


def _filled(x: Tensor, value: Any) -> Tensor:
    x._array.fill(value)
    return x


@factory
def zeros(wanted: Wanted, *args: Any, **size: Any) -> Tensor:
    """A tensor of zeros; the sizes come one by one or as one tuple.

    >>> tk.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _filled(wanted.sized(*args, **size), 0)


@factory
def ones(wanted: Wanted, *args: Any, **size: Any) -> Tensor:
    """A tensor of ones; the sizes come one by one or as one tuple.

    >>> tk.ones(3)
    tensor([1., 1., 1.])
    """
    return _filled(wanted.sized(*args, **size), 1)


@factory
def empty(wanted: Wanted, *args: Any, **size: Any) -> Tensor:
    """A tensor whose values are not set: whatever the memory held. Write before you read.

    >>> tk.empty(2, 3).shape
    torch.Size([2, 3])
    """
    return wanted.sized(*args, **size)


@factory
def full(wanted: Wanted, size: Any, fill_value: Any) -> Tensor:
    """A tensor filled with one number, whose kind decides the dtype.

    >>> tk.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    shape = need_sizes("full", "size", 1, size)
    _refuse_negative("full", shape)
    number = _fill_number("full", fill_value)
    dtype = wanted.dtype or dtypes.of_number(number)
    check_value(number, dtype)
    return _filled(wanted.empty(shape, dtype), copying.stored(number, dtype)[()])


@factory
def eye(wanted: Wanted, n: int, m: int = _ABSENT) -> Tensor:
    """A matrix of ``n`` rows and ``m`` columns (default ``n``) with ones on the diagonal.

    >>> tk.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if m is not _ABSENT and (as_int(n) is None or as_int(m) is None):
        raise no_such_call("eye", (n, m), "(int n)", "(int n, int m)")
    n = need_int("eye", "n", 1, n)
    m = n if m is _ABSENT else need_int("eye", "m", 2, m)
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise ShapeError(f"{name} must be greater or equal to 0, got {value}")
    if n * m >= 2**63:
        raise ShapeError("numel: integer multiplication overflow", a_shape=(n, m))
    result = _filled(wanted.empty((n, m)), 0)
    result._array.reshape(-1)[: m * min(n, m) : m + 1] = 1
    return result


def _fill_number(function: str, value: Any) -> Any:
    number = as_scalar(value)
    if number is None:
        raise must_be(function, "fill_value", 2, "Number", value)
    return number


def _size(function: str, args: tuple[Any, ...], size: Any) -> Ints:
    """The shape that a call such as zeros(2, 3), zeros((2, 3)) or zeros(size=(2, 3)) asks for."""
    if size is _ABSENT:
        size = given_sizes(function, "size", args)
        if not size or -(2**63) <= min(size) <= max(size) < 2**63:
            return size
    elif args:
        raise TypeError(f"{function}() got multiple values for argument 'size'")
    elif not isinstance(size, (tuple, list)):
        kind = type_name(size)
        raise TypeError(f"{function}(): argument 'size' must be tuple of ints, not {kind}")
    return need_sizes(function, "size", 1, size)


def _refuse_negative(function: str, shape: Ints) -> None:
    for size in shape:
        if size < 0:
            first = f"Trying to create tensor with negative dimension {size}: {list(shape)}"
            if function == "zeros":
                first = "zeros: Dimension size must be non-negative."
            raise ShapeError(first, f"The shape asked for is {shape}.", a_shape=shape)


# Like another tensor: same shape, dtype, device and order in memory


@factory
def empty_like(wanted: Wanted, input: Tensor) -> Tensor:
    """A tensor of the shape and dtype of ``input`` whose values are not set.

    >>> tk.empty_like(tk.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return wanted.like(input)


@factory
def zeros_like(wanted: Wanted, input: Tensor) -> Tensor:
    """Zeros, in the shape and dtype of ``input``.

    >>> tk.zeros_like(tk.tensor([5, 6]))
    tensor([0, 0])
    """
    return _filled(wanted.like(input), 0)


@factory
def ones_like(wanted: Wanted, input: Tensor) -> Tensor:
    """Ones, in the shape and dtype of ``input``.

    >>> tk.ones_like(tk.tensor([5, 6]))
    tensor([1, 1])
    """
    return _filled(wanted.like(input), 1)


@factory
def full_like(wanted: Wanted, input: Tensor, fill_value: Any) -> Tensor:
    """One number everywhere, in the shape and dtype of ``input``.

    >>> tk.full_like(tk.tensor([5., 6.]), 3)
    tensor([3., 3.])
    """
    return wanted.like(input).fill_(_fill_number("full_like", fill_value))


# Ranges


@factory
def arange(wanted: Wanted, start: Any = _ABSENT, end: Any = _ABSENT, step: Any = _ABSENT) -> Tensor:
    """The numbers from ``start`` (default 0) up to, not including, ``end``, ``step`` apart.

    Integers give int64, anything with a point the default dtype.

    >>> tk.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> tk.arange(1., 2., 0.5)
    tensor([1.0000, 1.5000])
    """
    bounds = first, _, gap = _bounds(start, end, step)
    has_point = any(isinstance(number, float) for number in bounds)
    dtype = wanted.dtype or (dtypes.get_default_dtype() if has_point else dtypes.int64)
    if dtype is dtypes.bool_:
        raise no_kernel("arange_cpu", dtype)
    n = ranges.count(*bounds, dtype)
    layout.check_size((n,), dtype.itemsize)
    if (
        wanted.place is not CPU and not dtype.is_floating_point
    ):  # of others PyTorch's digits are sent
        counted = ranges.whole(wanted.place.backend.xp, first, gap, n, dtype)
        return base.place(counted, (1,))
    return wanted.holding(quietly(ranges.counted, first, gap, n, dtype), dtype)


def _bounds(start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
    """First number, end and step of ``arange``, whose only argument is the end."""
    if end is _ABSENT and step is _ABSENT and start is not _ABSENT:
        number = as_scalar(start)
        if number is None:
            raise must_be("arange", "end", 1, "Number", start)
        return 0, number, 1
    bounds = [as_scalar(value) for value in (start, end, step)]
    if start is _ABSENT and step is _ABSENT:
        bounds[0] = 0
    if step is _ABSENT:
        bounds[2] = 1
    if any(number is None for number in bounds):
        named = "step=" if end is _ABSENT else ""
        given = (("", start), ("", end), (named, step))
        got = [name + type_name(value) for name, value in given if value is not _ABSENT]
        raise TypeError(
            message(
                "arange() received an invalid combination of arguments - "
                f"got ({', '.join(got)}), but expected one of:",
                " * (Number end)",
                " * (Number start, Number end, Number step = 1)",
            )
        )
    return bounds[0], bounds[1], bounds[2]


@factory
def linspace(wanted: Wanted, start: Any, end: Any, steps: int) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, at equal distances.

    For integer dtypes the ends and the numbers are cut off to integers.

    >>> tk.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    _refuse_dimensions(start, end)
    first, last, n = as_scalar(start), as_scalar(end), as_int(steps)
    if first is None or last is None or n is None:
        signature = "(Number or 0-d Tensor start, Number or 0-d Tensor end, int steps)"
        raise no_such_call("linspace", (start, end, steps), signature)
    if n < 0:
        raise DTypeError("number of steps must be non-negative")
    dtype = wanted.dtype_or_default
    if dtype is dtypes.bool_ and n > 1:
        raise no_kernel("linspace_cpu", dtype)
    layout.check_size((n,), dtype.itemsize)
    return wanted.holding(quietly(ranges.spaced, first, last, n, dtype), dtype)


def _refuse_dimensions(start: Any, end: Any) -> None:
    wrong = [
        f"{name} with {len(value.shape)} dimension(s)"
        for name, value in (("start", start), ("end", end))
        if isinstance(value, TensorBase) and value.shape
    ]
    if wrong:
        raise DTypeError(
            "linspace only supports 0-dimensional start and end tensors, "
            f"but got {' and '.join(wrong)}."
        )
