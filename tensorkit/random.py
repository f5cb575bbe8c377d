"""Random numbers: PyTorch's CPU streams, bit by bit where the arithmetic allows it.

The source is the Mersenne Twister MT19937, which gives 32-bit words. How many words one number
takes, and in which order, is what makes two libraries agree after the same ``manual_seed``:

* float32: the low 24 bits of one word, as a fraction; float16: the same, rounded;
* float64: two words, the high one first, of which the low 53 bits count;
* integers: a word modulo the number of possible values (two words from 2**28 possible values on);
* normal numbers, fewer than 16: double-precision Box-Muller pairs; the second of a pair is kept
  for the next call; 16 or more: blocks of 16, and the last 16 are drawn again if the count is no
  multiple of 16.
"""

import os
from typing import Any

import numpy as np

from tensorkit.dtypes import DType, float16, float32, float64

_FRACTION_BITS = {"float16": 24, "float32": 24, "float64": 53}


class Generator:
    """A source of random numbers with a state of its own.

    >>> tk.manual_seed(0).initial_seed()
    0
    """

    def __init__(self) -> None:
        # Not seeded yet: NumPy's random package is only imported when a number is drawn.
        self._seed = int.from_bytes(os.urandom(8), "little") >> 1
        self._words: Any = None
        self._spare_normal: float | None = None

    def manual_seed(self, seed: int) -> "Generator":
        """Start the stream that belongs to ``seed``.

        >>> tk.manual_seed(0).manual_seed(1).initial_seed()
        1
        """
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._seed = seed % 2**64
        self._words = None
        self._spare_normal = None
        return self

    def initial_seed(self) -> int:
        """The seed this stream was started with.

        >>> tk.manual_seed(3).initial_seed()
        3
        """
        return self._seed

    def words(self, count: int) -> Any:
        """The next ``count`` 32-bit words, as an array of uint64."""
        if self._words is None:
            self._words = np.random.MT19937()
            self._words._legacy_seeding(self._seed % 2**32)
        return self._words.random_raw(count)

    def long_words(self, count: int) -> Any:
        """The next ``count`` 64-bit words; the first of two words is the high half."""
        high, low = self.words(2 * count).reshape(count, 2).T
        return (high << np.uint64(32)) | low

    def uniform(self, count: int, dtype: DType) -> Any:
        """``count`` numbers in [0, 1), an array of ``dtype``."""
        bits = _FRACTION_BITS[dtype.name]
        words = self.long_words(count) if dtype is float64 else self.words(count)
        return ((words & np.uint64(2**bits - 1)) * 2.0**-bits).astype(dtype.numpy)

    def normal(self, count: int, dtype: DType) -> Any:
        """``count`` numbers of mean 0 and standard deviation 1, an array of ``dtype``."""
        if count < 16:
            return np.array([self._one_normal() for _ in range(count)], dtype.numpy)
        if dtype is float16:  # block by block, in single precision, rounded at the end
            blocks = [self.uniform(count - count % 16, float32)]
        else:
            blocks = [self.uniform(count, dtype)[: count - count % 16]]
        if count % 16:
            blocks.append(self.uniform(16, float32 if dtype is float16 else dtype))
        values = np.empty(count, dtype.numpy)
        values[: len(blocks[0])] = _box_muller_blocks(blocks[0])
        if count % 16:
            values[-16:] = _box_muller_blocks(blocks[1])
        return values

    def _one_normal(self) -> float:
        if self._spare_normal is not None:
            value, self._spare_normal = self._spare_normal, None
            return value
        angle, length = self.uniform(2, float64)
        radius = np.sqrt(-2.0 * np.log1p(-length))
        self._spare_normal = float(radius * np.sin(2.0 * np.pi * angle))
        return float(radius * np.cos(2.0 * np.pi * angle))

    def integers(self, low: int, high: int, count: int) -> Any:
        """``count`` integers in [low, high), an array of int64."""
        n_values = high - low
        words = self.long_words(count) if n_values >= _LONG_RANGE else self.words(count)
        # In Python's arithmetic low may be negative; the sum wraps around as in PyTorch.
        return (words % np.uint64(n_values)).astype(np.int64) + low

    def permutation(self, n: int) -> Any:
        """The integers 0 to n - 1 in random order (Fisher-Yates, forwards), as int64."""
        order = list(range(n))
        draws = self.words(max(n - 1, 0)).tolist()
        for place, word in enumerate(draws):
            other = place + word % (n - place)
            order[place], order[other] = order[other], order[place]
        return np.array(order, np.int64)


_LONG_RANGE = 2**28


def _box_muller_blocks(values: Any) -> Any:
    """Blocks of 16 uniform numbers as 16 normal ones: 8 cosines, then 8 sines."""
    first, second = values.reshape(-1, 2, 8).transpose(1, 0, 2)
    # 1 - u lies in (0, 1], where the logarithm is finite.
    radius = np.sqrt(-2 * np.log(1 - first))
    theta = (2.0 * np.pi * second.astype(np.float64)).astype(values.dtype)
    return np.stack([radius * np.cos(theta), radius * np.sin(theta)], axis=1).reshape(-1)


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the stream of random numbers that belongs to ``seed``; the same as PyTorch's on a CPU.

    >>> _ = tk.manual_seed(0)
    >>> tk.rand(3)
    tensor([0.4963, 0.7682, 0.0885])
    """
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed that the stream of random numbers was started with.

    >>> _ = tk.manual_seed(7)
    >>> tk.initial_seed()
    7
    """
    return default_generator.initial_seed()
