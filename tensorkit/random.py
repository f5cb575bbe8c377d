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
from typing import Any

import numpy as np

from tensorkit import base
from tensorkit.base import Tensor
from tensorkit.devices import CPU, Device, as_device
from tensorkit.dtypes import DType, float16, float32, float64
from tensorkit.errors import NotSupportedError

_one_thread = threading.Lock()
_STATE = np.dtype([("seed", "u8"), ("words", "u4", 624), ("next", "i8"), ("normal", "f8")])


class Generator:
    """A source of random numbers with a state of its own. It draws on the CPU.

    >>> tk.Generator().manual_seed(0).initial_seed()
    0
    """

    device: Device = CPU

    def __init__(self, device: Any = "cpu") -> None:
        if as_device(device) is not CPU:
            raise NotSupportedError(
                "Generators of tensorkit draw on the CPU; what they draw is sent to the device",
                repair="tk.Generator()",
            )
        self._start(67280421310721)  # what PyTorch starts a new generator with

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
        """Start a stream that nobody can foresee, and return its seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)._seed

    def initial_seed(self) -> int:
        """The seed this stream was started with.

        >>> tk.manual_seed(3).initial_seed()
        3
        """
        return self._seed

    def get_state(self) -> Tensor:
        """Where the stream stands, as bytes for ``set_state``.

        >>> generator = tk.Generator().manual_seed(0)
        >>> state = generator.get_state()
        >>> tk.rand(2, generator=generator), tk.rand(2, generator=generator.set_state(state))
        (tensor([0.4963, 0.7682]), tensor([0.4963, 0.7682]))
        """
        stream = self._stream().state["state"]
        record = np.zeros(1, _STATE)
        record[0] = self._seed, stream["key"], stream["pos"], self._spare_normal
        return base.new(record.view(np.uint8))

    def set_state(self, new_state: Tensor) -> "Generator":
        """Go on from where ``get_state`` stood."""
        array = np.asarray(new_state)
        if array.dtype != np.uint8 or array.size != _STATE.itemsize:
            raise NotSupportedError("This state is not tensorkit's own", repair="tk.manual_seed(0)")
        record = np.frombuffer(array.tobytes(), _STATE)[0]
        stream = {"key": record["words"], "pos": int(record["next"])}
        self._start(int(record["seed"]))
        self._stream().state = {"bit_generator": "MT19937", "state": stream}
        self._spare_normal = float(record["normal"])
        return self

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
        for place, word in enumerate(self.words(max(n - 1, 0)).tolist()):
            other = place + word % (n - place)
            order[place], order[other] = order[other], order[place]
        return np.array(order, np.int64)


def _box_muller(uniform: Any) -> Any:
    """Blocks of 16 uniform numbers as 16 normal ones: 8 cosines, then 8 sines."""
    lengths, turns = uniform.reshape(-1, 2, 8).swapaxes(0, 1)
    radius = np.sqrt(-2 * np.log(1 - lengths))  # 1 - u lies in (0, 1], where log is finite
    angle = (turns * np.float64(2 * np.pi)).astype(uniform.dtype)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel() + 0


default_generator = Generator()
default_generator._seed = int.from_bytes(os.urandom(8), "little") >> 1


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


def seed() -> int:
    """Start a stream of random numbers that nobody can foresee, and return its seed.

    >>> tk.seed() == tk.initial_seed()
    True
    """
    return default_generator.seed()


def get_rng_state() -> Tensor:
    """Where the stream of random numbers stands: see ``Generator.get_state``.

    >>> state = tk.get_rng_state()
    >>> first = tk.rand(3)
    >>> tk.set_rng_state(state)
    >>> tk.equal(first, tk.rand(3))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Let the stream of random numbers go on from where ``get_rng_state`` stood.

    >>> tk.set_rng_state(tk.get_rng_state())
    """
    default_generator.set_state(new_state)
