"""Random tensors: new ones, and the methods that fill a tensor in place.

What is drawn, and in which order, is the business of ``tensorkit.random``. Numbers are drawn on
the CPU and sent to the device of their tensor, whose memory is asked for first: where there is
none, nothing is drawn. All functions take ``generator``.
"""

from operator import index
from typing import Any

import numpy as np

from tensorkit import dtypes, layout
from tensorkit.base import Tensor
from tensorkit.creation import Options, empty_like, factory, need_sizes, shape_of
from tensorkit.devices import CPU
from tensorkit.dtypes import DType
from tensorkit.errors import ConversionError, DeviceMismatchError, DTypeError, message
from tensorkit.ops.arguments import check_value, no_kernel
from tensorkit.random import Generator, default_generator


def _source(generator: Any, x: Tensor) -> Generator:
    """Where the numbers for ``x`` come from."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            message(
                f"generator must be a tk.Generator, not {type(generator).__name__}",
                repair="generator=tk.Generator().manual_seed(0)",
            )
        )
    if x.device is not CPU:
        raise DeviceMismatchError(
            f"Expected a '{x.device.type}' device type for generator but found 'cpu'",
            repair=f"draw without device=, then .to('{x.device.type}')",
        )
    return generator


def _need_floating(dtype: DType, kernel: str) -> None:
    if not dtype.is_floating_point:
        raise no_kernel(kernel, dtype, "tk.randint(0, 10, size) draws integers")


def _filled(x: Tensor, values: Any, why: str) -> Tensor:
    """``x``, which is new, with these values, the first ones first in memory."""
    order = layout.slowest_first(x._strides)
    values = values.reshape([x.shape[dim] for dim in order]).transpose(layout.inverse(order))
    values = values.astype(x.dtype.numpy, copy=False)
    x.device.backend.write_from_host(x._array, values, why)
    return x


# New tensors; ``x`` is one whose values are not set


def _uniform(x: Tensor, low: float, high: float, generator: Any, why: str) -> Tensor:
    _need_floating(x.dtype, "check_uniform_bounds")
    for bound in (low, high):
        check_value(bound, x.dtype)
    if low > high:
        raise DTypeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    precision = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    values = _source(generator, x).uniform(x.numel(), precision)
    if (low, high) != (0, 1) or x.dtype is dtypes.float16:
        values = _scaled(values, high - low, low).astype(x.dtype.numpy)
        values[values == x.dtype.numpy.type(high)] = low  # what rounding carried out of the range
    return _filled(x, values, why)


def _normal(
    x: Tensor, mean: float, std: float, generator: Any, why: str, in_blocks: bool
) -> Tensor:
    _need_floating(x.dtype, "normal_kernel_cpu")
    if not std >= 0:
        raise DTypeError(f"normal expects std >= 0.0, but found std {std:g}")
    source, count = _source(generator, x), x.numel()
    # PyTorch draws one after the other what it cannot write in blocks
    values = source.normal(count, x.dtype) if in_blocks else np.array(source.pairs(count))
    return _filled(x, values if (mean, std) == (0, 1) else _scaled(values, std, mean), why)


def _scaled(values: Any, scale: float, shift: float) -> Any:
    """``values * scale + shift``, rounded once, as PyTorch's kernels do."""
    number = values.dtype.type
    wide = values.astype(np.float64) * np.float64(number(scale)) + np.float64(number(shift))
    return wide.astype(number)


def _integers(x: Tensor, low: int, high: int, generator: Any, why: str) -> Tensor:
    if low >= high:
        raise DTypeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}",
            "'to' itself is never drawn.",
        )
    if high >= 2**63:
        raise ValueError("Overflow when unpacking long long")
    _need_range(x.dtype, low, high - 1)
    return _filled(x, _source(generator, x).integers(low, high, x.numel()), why)


def _need_range(dtype: DType, low: int, high: int) -> None:
    """ConversionError unless the dtype holds all integers from ``low`` to ``high``."""
    if dtype.is_floating_point:
        most = 2 ** (np.finfo(dtype.numpy).nmant + 1)
        least = -most
    else:
        least, most = dtypes.limits(dtype)
    if low < least or high > most:
        raise ConversionError(
            f"{dtype} does not hold all integers from {low} to {high}",
            repair="dtype=tk.int64",
            value=high,
            dtype=dtype,
        )


@factory
def rand(options: Options, *args: Any, size: Any = None, generator: Any = None) -> Tensor:
    """Random numbers, uniform in [0, 1).

    >>> _ = tk.manual_seed(0)
    >>> tk.rand(2)
    tensor([0.4963, 0.7682])
    """
    return _uniform(options.empty(shape_of("rand", args, size)), 0, 1, generator, "uniform")


@factory
def randn(options: Options, *args: Any, size: Any = None, generator: Any = None) -> Tensor:
    """Random numbers, normal with mean 0 and standard deviation 1.

    >>> _ = tk.manual_seed(0)
    >>> tk.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    x = options.empty(shape_of("randn", args, size))
    return _normal(x, 0, 1, generator, "normal", True)


@factory
def randint(
    options: Options,
    *args: Any,
    low: int = 0,
    high: int | None = None,
    size: Any = None,
    generator: Any = None,
) -> Tensor:
    """Random integers from ``low`` (default 0) up to, not including, ``high``, as int64.

    Call it as ``randint(high, size)`` or ``randint(low, high, size)``.

    >>> _ = tk.manual_seed(0)
    >>> tk.randint(10, (5,))
    tensor([4, 9, 3, 0, 3])
    """
    given = [*args, *([] if high is None else [high]), *([] if size is None else [size])]
    if len(given) == 2:
        given.insert(0, low)
    if len(given) != 3:
        first = f"randint() takes high and size, or low, high and size, not {len(given)} arguments"
        raise TypeError(message(first, repair="tk.randint(0, 10, (3,))"))
    x = options.empty(
        shape_of("randint", (), need_sizes("randint", given[2])), options.dtype or dtypes.int64
    )
    return _integers(x, index(given[0]), index(given[1]), generator, "random")


@factory
def randperm(options: Options, n: int, *, generator: Any = None) -> Tensor:
    """The integers 0 to ``n - 1`` in random order.

    >>> _ = tk.manual_seed(0)
    >>> tk.randperm(4)
    tensor([0, 1, 3, 2])
    """
    x = options.empty(shape_of("randperm", (n,)), options.dtype or dtypes.int64)
    _need_range(x.dtype, 0, n - 1)
    return _filled(x, _source(generator, x).permutation(n), "randperm")


@factory
def rand_like(options: Options, input: Tensor, *, generator: Any = None) -> Tensor:
    """Random numbers, uniform in [0, 1), in the shape and dtype of ``input``.

    >>> _ = tk.manual_seed(0)
    >>> tk.rand_like(tk.zeros(2))
    tensor([0.4963, 0.7682])
    """
    return _uniform(options.like(input), 0, 1, generator, "uniform")


@factory
def randn_like(options: Options, input: Tensor, *, generator: Any = None) -> Tensor:
    """Random normal numbers in the shape and dtype of ``input``.

    >>> _ = tk.manual_seed(0)
    >>> tk.randn_like(tk.zeros(2))
    tensor([ 1.5410, -0.2934])
    """
    x = options.like(input)
    return _normal(x, 0, 1, generator, "normal", x._is_contiguous)


# Filling in place: drawn into a new tensor, which is copied


def uniform_(x: Tensor, start: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """Fill with random numbers, uniform in [start, to).

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(2).uniform_(-1, 1)
    tensor([-0.0075,  0.5364])
    """
    return x.copy_(_uniform(empty_like(x), float(start), float(to), generator, "uniform"))


def normal_(x: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Fill with random numbers, normal with this mean and standard deviation.

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(2).normal_(10, 2)
    tensor([13.0820,  9.4131])
    """
    in_blocks = x._is_contiguous
    return x.copy_(_normal(empty_like(x), float(mean), float(std), generator, "normal", in_blocks))


def bernoulli_(x: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    """Fill with ones, each with probability ``p``, and zeros.

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(8).bernoulli_(0.5)
    tensor([0., 0., 1., 0., 0., 0., 1., 1.])
    """
    p = float(p)
    if not 0 <= p <= 1:
        raise DTypeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    drawn = empty_like(x)
    ones = _source(generator, x).uniform(x.numel(), dtypes.float64) < p
    return x.copy_(_filled(drawn, ones, "bernoulli"))
