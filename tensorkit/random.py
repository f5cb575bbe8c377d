"""Random numbers: PyTorch's CPU streams, bit by bit where the arithmetic allows it.

The source is the Mersenne Twister MT19937, which gives 32-bit words. How many words one number
needs, and in which order, is what makes two libraries agree after the same ``manual_seed``:

* float32: the low 24 bits of one word, as a fraction; float16: the same, rounded by its user;
* float64: two words, the high one first, of which the low 53 bits count;
* integers: a word modulo the number of possible values (two words from 2**28 possible values on);
* normal numbers, fewer than 16: double-precision Box-Muller pairs; the second of a pair is kept
  for the next call; 16 or more: blocks of 16, and the last 16 are drawn again if the count is no
  multiple of 16.
"""

import math
import os
import threading
from operator import index
from typing import Any, NoReturn

import numpy as np

from tensorkit import absent, dtypes, errors, layout
from tensorkit.base import Tensor
from tensorkit.creation import Options, empty_like, factory, need_sizes, shape_of
from tensorkit.devices import CPU, Device, as_device
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.dtypes import DType, float16, float32, float64
from tensorkit.ops.arguments import check_value, no_kernel

_one_thread = threading.Lock()


class Generator:
    """A source of random numbers with a state of its own. It draws on the CPU.

    >>> tk.Generator().manual_seed(0).initial_seed()
    0
    """

    device: Device = CPU

    def __init__(self, device: Any = "cpu") -> None:
        if as_device(device) is not CPU:
            raise errors.NotSupportedError(
                "Generators of tensorkit draw on the CPU; what they draw is sent to the device",
                repair="tk.Generator()",
            )
        self._start(67280421310721)  # what PyTorch starts a new generator with

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(absent.sentence("torch.Generator", name, "Generator"))

    def _start(self, seed: int) -> None:
        self._seed = seed
        self._twister: Any = None  # NumPy's random package is imported when a number is drawn
        self._spare_normal = math.nan  # the second of a pair, if it was not used yet

    def manual_seed(self, seed: int) -> "Generator":
        """Start the stream that belongs to ``seed``.

        >>> tk.manual_seed(0).manual_seed(1).initial_seed()
        1
        """
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._start(seed % 2**64)
        return self

    def seed(self) -> int:
        """Start a stream that nobody can foresee, and return its seed.

        >>> tk.seed() == tk.initial_seed()
        True
        """
        return self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)._seed

    def initial_seed(self) -> int:
        """The seed this stream was started with.

        >>> tk.manual_seed(3).initial_seed()
        3
        """
        return self._seed

    def _stream(self) -> Any:
        with _one_thread:
            if self._twister is None:
                twister: Any = np.random.MT19937()
                twister._legacy_seeding(self._seed % 2**32)
                self._twister = twister
        return self._twister

    def words(self, count: int) -> Any:
        """The next ``count`` 32-bit words, an array of uint64."""
        return self._stream().random_raw(count)

    def long_words(self, count: int) -> Any:
        """The next ``count`` 64-bit words; the first of two words is the high half."""
        high, low = self.words(2 * count).reshape(count, 2).T
        return (high << np.uint64(32)) | low

    def uniform(self, count: int, dtype: DType) -> Any:
        """``count`` numbers in [0, 1), an array of ``dtype``, float32 or float64."""
        if dtype is float64:
            return (self.long_words(count) & np.uint64(2**53 - 1)) * 2.0**-53
        fractions = (self.words(count) & np.uint64(2**24 - 1)).astype(np.float32)
        return fractions * np.float32(2.0**-24)

    def normal(self, count: int, dtype: DType) -> Any:
        """``count`` numbers of mean 0 and standard deviation 1, for a tensor of ``dtype``.

        They have the precision in which PyTorch scales them before they are rounded: fewer than 16
        are float64, and those for float16 are float32.
        """
        if count < 16:
            return np.array(self.pairs(count), np.float64)
        precision, rest = (float32 if dtype is float16 else dtype), count % 16
        # PyTorch draws all at once, and the last 16 anew; of float16 it leaves the rest out first
        drawn = self.uniform(count - rest if dtype is float16 else count, precision)
        values = _box_muller(drawn[: count - rest])
        if not rest:
            return values
        return np.concatenate([values[: count - 16], _box_muller(self.uniform(16, precision))])

    def pairs(self, count: int) -> list[float]:
        """``count`` normal numbers, the first of them the one that was left over last time."""
        values = [] if math.isnan(self._spare_normal) or not count else [self._spare_normal]
        n_pairs = (count - len(values) + 1) // 2
        for angle, length in self.uniform(2 * n_pairs, float64).reshape(-1, 2).tolist():
            radius = math.sqrt(-2.0 * math.log1p(-length))
            values.append(radius * math.cos(2.0 * math.pi * angle) + 0.0)  # of -0.0 it is 0.0
            values.append(radius * math.sin(2.0 * math.pi * angle) + 0.0)
        if count:
            self._spare_normal = values.pop() if len(values) > count else math.nan
        return values

    def integers(self, low: int, high: int, count: int) -> Any:
        """``count`` integers in [low, high), an array of int64."""
        n_values = high - low
        words = self.long_words(count) if n_values >= 2**28 else self.words(count)
        # In Python's arithmetic low may be negative; the sum wraps around as in PyTorch.
        return (words % np.uint64(n_values)).view(np.int64) + low

    def permutation(self, n: int) -> Any:
        """The integers 0 to n - 1 in random order (Fisher-Yates, forwards), as int64."""
        order = list(range(n))
        for position, word in enumerate(self.words(max(n - 1, 0)).tolist()):
            other = position + word % (n - position)
            order[position], order[other] = order[other], order[position]
        return np.array(order, np.int64)


def _box_muller(uniform: Any) -> Any:
    """Blocks of 16 uniform numbers as 16 normal ones: 8 cosines, then 8 sines."""
    lengths, turns = uniform.reshape(-1, 2, 8).swapaxes(0, 1)
    radius = np.sqrt(-2 * np.log(1 - lengths))  # 1 - u lies in (0, 1], where log is finite
    angle = (turns * np.float64(2 * np.pi)).astype(uniform.dtype)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel() + 0


default_generator = Generator()
default_generator._seed = int.from_bytes(os.urandom(8), "little") >> 1
manual_seed, initial_seed = default_generator.manual_seed, default_generator.initial_seed
seed = default_generator.seed

# Random tensors. All functions take ``generator``. Numbers are drawn on the CPU and sent to the
# device of their tensor, whose memory is asked for first: where there is none, nothing is drawn.


def _source(generator: Any, x: Tensor) -> Generator:
    """Where the numbers for ``x`` come from."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            errors.message(
                f"generator must be a tk.Generator, not {type(generator).__name__}",
                repair="generator=tk.Generator().manual_seed(0)",
            )
        )
    if x.device is not CPU:
        raise errors.DeviceMismatchError(
            f"Expected a '{x.device.type}' device type for generator but found 'cpu'",
            repair=f"draw without device=, then .to('{x.device.type}')",
        )
    return generator


def _need_floating(dtype: DType, kernel: str) -> None:
    if not dtype.is_floating_point:
        raise no_kernel(kernel, dtype, "tk.randint(0, 10, size) draws integers")


def _filled(x: Tensor, values: Any, reason: str) -> Tensor:
    """``x``, which is new, with these values, the first ones first in memory."""
    order = layout.slowest_first(x._strides)
    values = values.reshape([x.shape[dim] for dim in order]).transpose(layout.inverse(order))
    values = values.astype(x.dtype.numpy, copy=False)
    x.device.backend.write_from_host(x._array, values, reason)
    return x


# New tensors; ``x`` is one whose values are not set


def _uniform(x: Tensor, low: float, high: float, generator: Any) -> Tensor:
    _need_floating(x.dtype, "check_uniform_bounds")
    for bound in (low, high):
        check_value(bound, x.dtype)
    if low > high:
        raise errors.DTypeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    precision = float64 if x.dtype is float64 else float32
    values = _source(generator, x).uniform(x.numel(), precision)
    if (low, high) != (0, 1) or x.dtype is float16:
        values = _scaled(values, high - low, low).astype(x.dtype.numpy)
        values[values == x.dtype.numpy.type(high)] = low  # what rounding carried out of the range
    return _filled(x, values, "uniform")


def _normal(x: Tensor, mean: float, std: float, generator: Any, in_blocks: bool) -> Tensor:
    _need_floating(x.dtype, "normal_kernel_cpu")
    if not std >= 0:
        raise errors.DTypeError(f"normal expects std >= 0.0, but found std {std:g}")
    source, count = _source(generator, x), x.numel()
    # PyTorch draws one after the other what it cannot write in blocks
    values = source.normal(count, x.dtype) if in_blocks else np.array(source.pairs(count))
    values = values if (mean, std) == (0, 1) else _scaled(values, std, mean)
    return _filled(x, values, "normal")


def _scaled(values: Any, scale: float, shift: float) -> Any:
    """``values * scale + shift``, rounded once, as PyTorch's kernels do."""
    number = values.dtype.type
    wide = values.astype(np.float64) * np.float64(number(scale)) + np.float64(number(shift))
    return wide.astype(number)


def _need_range(dtype: DType, low: int, high: int) -> None:
    """ConversionError unless the dtype holds all integers from ``low`` to ``high``."""
    if dtype.is_floating_point:
        most = 2 ** (np.finfo(dtype.numpy).nmant + 1)
        least = -most
    else:
        least, most = dtypes.limits(dtype)
    if low < least or high > most:
        raise errors.ConversionError(
            f"{dtype} does not hold all integers from {low} to {high}",
            repair="dtype=tk.int64",
        )


@factory
def rand(options: Options, *args: Any, size: Any = None, generator: Any = None) -> Tensor:
    """Random numbers, uniform in [0, 1).

    >>> _ = tk.manual_seed(0)
    >>> tk.rand(2)
    tensor([0.4963, 0.7682])
    """
    return _uniform(options.empty(shape_of("rand", args, size)), 0, 1, generator)


@factory
def randn(options: Options, *args: Any, size: Any = None, generator: Any = None) -> Tensor:
    """Random numbers, normal with mean 0 and standard deviation 1.

    >>> _ = tk.manual_seed(0)
    >>> tk.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    x = options.empty(shape_of("randn", args, size))
    return _normal(x, 0, 1, generator, True)


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
        raise TypeError(errors.message(first, repair="tk.randint(0, 10, (3,))"))
    x = options.empty(
        shape_of("randint", (), need_sizes("randint", given[2])), options.dtype or dtypes.int64
    )
    start, stop = index(given[0]), index(given[1])
    if start >= stop:
        raise errors.DTypeError(
            f"random_ expects 'from' to be less than 'to', but got from={start} >= to={stop}",
            "'to' itself is never drawn.",
        )
    if stop >= 2**63:
        raise ValueError("Overflow when unpacking long long")
    _need_range(x.dtype, start, stop - 1)
    return _filled(x, _source(generator, x).integers(start, stop, x.numel()), "random")


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
    return _uniform(options.like(input), 0, 1, generator)


@factory
def randn_like(options: Options, input: Tensor, *, generator: Any = None) -> Tensor:
    """Random normal numbers in the shape and dtype of ``input``.

    >>> _ = tk.manual_seed(0)
    >>> tk.randn_like(tk.zeros(2))
    tensor([ 1.5410, -0.2934])
    """
    x = options.like(input)
    return _normal(x, 0, 1, generator, x._array.flags.c_contiguous)


# Filling in place: drawn into a new tensor, which is copied


@seen_by_modes
def uniform_(input: Tensor, start: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """Fill with random numbers, uniform in [start, to).

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(2).uniform_(-1, 1)
    tensor([-0.0075,  0.5364])
    """
    return input.copy_(_uniform(empty_like(input), float(start), float(to), generator))


@seen_by_modes
def normal_(input: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Fill with random numbers, normal with this mean and standard deviation.

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(2).normal_(10, 2)
    tensor([13.0820,  9.4131])
    """
    x, in_blocks = empty_like(input), input._array.flags.c_contiguous
    return input.copy_(_normal(x, float(mean), float(std), generator, in_blocks))
