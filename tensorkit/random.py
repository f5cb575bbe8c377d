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

import math
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tensorkit import philox
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Device, as_device
from tensorkit.dtypes import DType, float16, float32, float64, limits, uint8
from tensorkit.errors import DTypeError, NotSupportedError
from tensorkit.ops import results
from tensorkit.philox import Draw

# One thread at a time moves a stream on; one lock for all, for generators are copied and pickled.
_one_thread = threading.RLock()


class Generator:
    """A source of random numbers with a state of its own.

    >>> tk.manual_seed(0).initial_seed()
    0
    """

    device: Device

    def __new__(cls, device: Any = "cpu") -> "Generator":
        """One of the CPU, or of a CUDA device."""
        place = as_device(device)
        made = object.__new__(cls if place is CPU else OnDevice)
        made.device = place
        return made

    def __init__(self, device: Any = "cpu") -> None:
        self._seed = 67280421310721  # what PyTorch starts a new generator with
        # NumPy's random package is only imported when a number is drawn.
        self._words: Any = None
        self._marked: Any = None
        self._forget()

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
        self._forget()
        return self

    def _forget(self) -> None:
        self._made: dict[Any, Any] = {}  # of the words that are kept: what functions made of them
        self._lead = self._end = self._at = 0
        self._spare_normal: float | None = None

    def seed(self) -> int:
        """Start a stream that nobody can foresee, and tell its seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)._seed

    def get_state(self) -> Tensor:
        """Where the stream stands, as the bytes in which PyTorch writes it down.

        >>> generator = tk.Generator().manual_seed(0)
        >>> state = generator.get_state()
        >>> tk.rand(2, generator=generator), tk.rand(2, generator=generator.set_state(state))
        (tensor([0.4963, 0.7682]), tensor([0.4963, 0.7682]))
        """
        record = np.zeros((), _STATE)
        record["seed"], record["seeded"] = self._seed, 1
        if self._made:
            before, taken = divmod(self._at - self._lead - 1, _TWIST)
            first = self._lead + before * _TWIST
            record["words"] = _untempered(self._made[_words][first : first + _TWIST])
            record["next"], record["left"] = taken + 1, _TWIST - taken
        else:
            record["words"] = self._twister().state["state"]["key"]
            record["left"] = 1
        if self._spare_normal is not None:
            record["normal"], record["normal_is_valid"] = self._spare_normal, 1
        return results.contiguous_result(np.frombuffer(record.tobytes(), np.uint8).copy(), CPU)

    def set_state(self, new_state: Tensor) -> "Generator":
        """Go on from where ``get_state`` stood."""
        if not isinstance(new_state, TensorBase) or new_state.dtype is not uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state._array.size != _STATE.itemsize:
            raise DTypeError("RNG state is wrong size")
        record = np.frombuffer(new_state._array.tobytes(), _STATE)[0]
        taken = int(record["next"])
        twister = self.manual_seed(int(record["seed"]))._twister()
        twister.state = {
            "bit_generator": "MT19937",
            "state": {"key": record["words"], "pos": 0 if taken else _TWIST},
        }
        if taken:
            self._keep(twister.random_raw(_TWIST), taken)
        self._spare_normal = float(record["normal"]) if record["normal_is_valid"] else None
        return self

    def mark(self) -> None:
        """Remember where the stream stands, for ``rewind``; cheaper than ``get_state``."""
        twister = None if self._words is None else self._words.state
        self._marked = {**vars(self), "_marked": None}, twister

    def rewind(self) -> None:
        """Go back to the last ``mark``, once: there was no memory for what was drawn since."""
        if self._marked is not None:
            members, twister = self._marked
            vars(self).update(members)
            if twister is not None:
                self._words.state = twister
            self._marked = None

    def initial_seed(self) -> int:
        """The seed this stream was started with.

        >>> tk.manual_seed(3).initial_seed()
        3
        """
        return self._seed

    def _twister(self) -> Any:
        if self._words is None:
            self._words = np.random.MT19937()
            self._words._legacy_seeding(self._seed % 2**32)
        return self._words

    def words(self, count: int) -> Any:
        """The next ``count`` 32-bit words, an array of uint64 that must not be written to."""
        if count <= _KEPT:
            return self._next(count, _words) if count else np.zeros(0, np.uint64)
        with _one_thread:
            rest = self._rest()
            missing = count - len(rest)
            drawn = self._twister().random_raw(-(-missing // _KEPT) * _KEPT)
            self._keep(drawn[-_KEPT:].copy(), _KEPT - (len(drawn) - missing))
        return np.concatenate([rest, drawn[:missing]]) if len(rest) else drawn[:missing]

    def _keep(self, words: Any, taken: int = 0, lead: int = 0) -> None:
        """Let these words be the next ones, of which some are taken.

        Whole twists of words, behind some, the ``lead``, that were left over.
        """
        self._made = {_words: words}
        self._end, self._at, self._lead = len(words), taken, lead

    def _rest(self) -> Any:
        return self._made[_words][self._at :] if self._made else np.zeros(0, np.uint64)

    def _next(self, count: int, make: Callable[["Generator"], Any]) -> Any:
        """What ``make`` makes of the next ``count`` words, a number of each; they are not many.

        Words are drawn many at a time, and what is made of them is made of all at once: so a few
        numbers cost no more than their share.
        """
        with _one_thread:
            start, end = self._at, self._at + count
            if end <= self._end:
                self._at = end
                return self.of_kept(make)[start:end]
            rest = self.of_kept(make)[start:] if start < self._end else None
            self._keep(self._twister().random_raw(_KEPT), end - self._end)
            head = self.of_kept(make)[: self._at]
        return head if rest is None else np.concatenate([rest, head])

    def of_kept(self, make: Callable[["Generator"], Any]) -> Any:
        """What ``make`` makes of the words that are kept."""
        made = self._made.get(make)
        if made is None:
            made = self._made[make] = make(self)
        return made

    def long_words(self, count: int) -> Any:
        """The next ``count`` 64-bit words; the first of two words is the high half."""
        high, low = self.words(2 * count).reshape(count, 2).T
        return (high << np.uint64(32)) | low

    def uniform(self, count: int, dtype: DType) -> Any:
        """``count`` numbers in [0, 1), an array of ``dtype`` that must not be written to."""
        if dtype is float64:
            return (self.long_words(count) & np.uint64(2**53 - 1)) * 2.0**-53
        if 0 < count <= _KEPT:
            fractions = self._next(count, _fractions)
        else:
            fractions = _fractions_of(self.words(count))
        return fractions if dtype is float32 else fractions.astype(dtype.numpy)

    def normal(self, count: int, dtype: DType, one_by_one: bool = False) -> Any:
        """``count`` numbers of mean 0 and standard deviation 1, for a tensor of ``dtype``.

        They have the precision in which PyTorch scales them before they are rounded. It draws
        them ``one_by_one`` where it cannot write them in blocks.
        """
        if count < 16 or one_by_one:
            with _one_thread:
                return np.array(self._pairs(count), np.float64) + 0  # of -0.0 it is 0.0
        if dtype is float32 and count <= _KEPT:
            with _one_thread:
                return self._few_normal(count)
        # PyTorch draws float16 in single precision, and all anew that are rounded at the end
        own = float32 if dtype is float16 else dtype
        values, extra = np.empty(count, own.numpy), count % 16
        for start in range(0, count - extra, _BLOCK):
            part = values[start : min(start + _BLOCK, count - extra)]
            part[...] = _box_muller_blocks(self.uniform(len(part), own))
        if extra:
            if dtype is not float16:
                self.uniform(extra, own)
            values[-16:] = _box_muller_blocks(self.uniform(16, own))
        return values

    def _few_normal(self, count: int) -> Any:
        """``normal`` in float32, for not many numbers: what is made of the words is kept."""
        extra = count % 16
        if not extra and self._at + count <= self._end:
            return self._next(count, _NORMALS[self._at % 16])
        missing, pieces = count - extra, []
        while missing:
            taken = min(missing, (self._end - self._at) // 16 * 16)
            if taken:
                pieces.append(self._next(taken, _NORMALS[self._at % 16]))
                missing -= taken
            else:  # fewer than sixteen words are left over: they go before the next ones
                rest = self._rest()
                more = self._twister().random_raw(_KEPT)
                self._keep(np.concatenate([rest, more]), lead=len(rest))
        values = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if not extra:
            return values
        self.words(extra)
        return np.concatenate([values[: count - 16], self._few_normal(16)])

    def _pairs(self, count: int) -> list[float]:
        """``count`` normal numbers, the first of them the one that was left over last time."""
        values = [] if self._spare_normal is None or not count else [self._spare_normal]
        n_pairs = (count - len(values) + 1) // 2
        fractions = iter(self.uniform(2 * n_pairs, float64).tolist())
        for angle, length in zip(fractions, fractions, strict=True):
            radius = math.sqrt(-2.0 * math.log1p(-length))
            values.append(radius * math.cos(2.0 * math.pi * angle))
            values.append(radius * math.sin(2.0 * math.pi * angle))
        if count:
            self._spare_normal = values.pop() if len(values) > count else None
        return values

    def integers(self, low: int, high: int, count: int) -> Any:
        """``count`` integers in [low, high), an array of int64."""
        n_values = high - low
        words = self.long_words(count) if n_values >= _LONG_RANGE else self.words(count)
        # In Python's arithmetic low may be negative; the sum wraps around as in PyTorch.
        drawn = (words % np.uint64(n_values)).view(np.int64)
        return drawn + low if low else drawn

    def exponential(self, count: int) -> Any:
        """``count`` numbers of the exponential distribution of mean 1, as float64."""
        return -np.log1p(-self.uniform(count, float64))

    def any_integers(self, count: int, dtype: DType) -> Any:
        """``count`` whole numbers out of all those, from 0 on, that ``dtype`` holds exactly."""
        n_values = _n_values(dtype)
        words = self.words(count) if n_values <= 2**32 else self.long_words(count)
        return (words % np.uint64(n_values)).astype(dtype.numpy)

    def permutation(self, n: int) -> Any:
        """The integers 0 to n - 1 in random order (Fisher-Yates, forwards), as int64."""
        order = list(range(n))
        for place, word in enumerate(self.words(max(n - 1, 0)).tolist()):
            other = place + word % (n - place)
            order[place], order[other] = order[other], order[place]
        return np.array(order, np.int64)


class OnDevice(Generator):
    """A source of a CUDA device, which draws there: ``tk.Generator("cuda")``.

    Nothing is sent, but the numbers are other ones than the CPU's for this seed, and other ones
    than PyTorch's. A simulated device draws the same ones as a GPU.
    """

    _drawn = 0  # how many numbers were drawn since the seed was set

    def manual_seed(self, seed: int) -> "Generator":
        """Start the stream that belongs to ``seed``."""
        self._drawn = 0
        return super().manual_seed(seed)

    def words(self, count: int) -> Any:
        """Refuse: the words of a device's source are not to be seen."""
        raise NotSupportedError(
            "tensorkit draws this on the CPU only",
            repair="tk.Generator()    # of the CPU; without generator= numbers come from there",
        )

    def get_state(self) -> Tensor:
        """Where the stream stands, as PyTorch writes it down: seed and offset, 16 bytes.

        >>> with tk.cuda.simulate():
        ...     generator = tk.Generator("cuda").manual_seed(5)
        ...     generator.get_state()[:8]
        tensor([5, 0, 0, 0, 0, 0, 0, 0], dtype=torch.uint8)
        """
        # the offset counts words, of which each number takes four
        state = np.array([self._seed, 4 * self._drawn], np.uint64).view(np.uint8)
        return results.contiguous_result(state, CPU)

    def set_state(self, new_state: Tensor) -> "Generator":
        """Go on from where ``get_state`` stood."""
        if not isinstance(new_state, TensorBase) or new_state.dtype is not uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state._array.size != 16:
            raise DTypeError("RNG state is wrong size")
        seed, offset = np.frombuffer(new_state._array.tobytes(), np.uint64).tolist()
        self.manual_seed(seed)
        self._drawn = offset // 4
        return self

    def _draw(self, draw: Draw, count: int, dtype: Any, *numbers: Any) -> Any:
        backend, start = self.device.backend, self._drawn
        drawn = backend.draw(draw, self._seed, start, count, np.dtype(dtype), *numbers)
        self._drawn = start + count
        return drawn

    def uniform(self, count: int, dtype: DType) -> Any:
        """Numbers in [0, 1)."""
        return self._draw(philox.UNIFORM, count, dtype.numpy)

    def normal(self, count: int, dtype: DType, one_by_one: bool = False) -> Any:
        """Numbers of mean 0 and standard deviation 1."""
        return self._draw(philox.NORMAL, count, (float64 if dtype is float64 else float32).numpy)

    def integers(self, low: int, high: int, count: int) -> Any:
        """Integers in [low, high)."""
        # of more than 63 bits CuPy takes no Python number
        return self._draw(philox.INTEGERS, count, np.int64, low, np.uint64(high - low))

    def exponential(self, count: int) -> Any:
        """Numbers of the exponential distribution of mean 1."""
        return self._draw(philox.EXPONENTIAL, count, np.float64)

    def any_integers(self, count: int, dtype: DType) -> Any:
        """Whole numbers out of those, from 0 on, that ``dtype`` holds."""
        return self.integers(0, min(_n_values(dtype), 2**63 - 1), count)

    def permutation(self, n: int) -> Any:
        """The integers 0 to n - 1 in random order."""
        return self.uniform(n, float64).argsort()


def _n_values(dtype: DType) -> int:
    """How many whole numbers, from 0 on, a dtype holds exactly."""
    if dtype.is_floating_point:
        return int(2 ** (np.finfo(dtype.numpy).nmant + 1)) + 1
    return int(limits(dtype)[1]) + 1


def _words(generator: Generator) -> Any:
    return generator.of_kept(_words)


def _fractions(generator: Generator) -> Any:
    return _fractions_of(generator.of_kept(_words))


def _fractions_of(words: Any) -> Any:
    """A float32 in [0, 1) of each word: its low 24 bits."""
    fractions = (words.astype(np.uint32) & _LOW_BITS).view(np.int32).astype(np.float32)
    fractions *= _UNIT
    return fractions


def _normals(first: int, generator: Generator) -> Any:
    """A normal float32 of each word from ``first`` on, as long as there are sixteen."""
    fractions = generator.of_kept(_fractions)
    values = np.empty(len(fractions), np.float32)
    end = first + (len(fractions) - first) // 16 * 16
    values[first:end] = _box_muller_blocks(fractions[first:end])
    return values


_NORMALS = [partial(_normals, first) for first in range(16)]
_LOW_BITS, _UNIT = np.array(2**24 - 1, np.uint32), np.array(2.0**-24, np.float32)
_TWIST = 624  # so many words the twister finds at a time
_KEPT = 4 * _TWIST  # so many are drawn
_BLOCK = 2**13  # so many normal numbers stay in the processor's cache
_LONG_RANGE = 2**28
_STATE = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "words", "normal", "normal_is_valid"],
        "formats": ["u8", "i4", "i4", "u8", ("u8", 624), "f8", "i4"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040],
        "itemsize": 5056,
    }
)


def _box_muller_blocks(values: Any) -> Any:
    """Blocks of 16 uniform numbers as 16 normal ones: 8 cosines, then 8 sines."""
    # the first halves of all blocks, then the second ones, so that loops are long; NumPy is
    # fast to transpose what is as large as a complex128
    size = values.itemsize
    halves = values.view(np.complex128).reshape(-1, size).T.copy().view(values.dtype).reshape(2, -1)
    radius, theta = halves[0], (halves[1] * _TURN).astype(values.dtype)
    # 1 - u lies in (0, 1], where the logarithm is finite.
    np.log(np.subtract(1, radius, radius), radius)
    radius *= -2
    np.sqrt(radius, radius)
    np.multiply(radius, np.sin(theta), halves[1])
    radius *= np.cos(theta, theta)
    halves += 0  # of -0.0 it is 0.0
    return halves.view(np.complex128).reshape(size, -1).T.copy().view(values.dtype).reshape(-1)


def _untempered(words: Any) -> Any:
    """The twister's state, from the words that it made of it: the inverse of its tempering."""
    words = words ^ words >> _UINT[18]
    words ^= words << _UINT[15] & np.uint64(0xEFC60000)
    before = words
    for _ in range(4):  # seven more bits are right each time
        words = before ^ words << _UINT[7] & np.uint64(0x9D2C5680)
    before = words
    for _ in range(2):
        words = before ^ words >> _UINT[11]
    return words


_UINT = [np.uint64(number) for number in range(19)]
_TURN = np.full(1, 2.0 * np.pi)  # as an array, so that products with it are float64


default_generator = Generator()
default_generator._seed = int.from_bytes(os.urandom(8), "little") >> 1


# The sources of CUDA devices that draw where a caller names none; see ``tk.cuda.use_generator``.
of_devices: dict[Device, Generator] = {}


def source_for(device: Device) -> Generator:
    """The source for a tensor of ``device`` whose caller names none: nearly always the CPU's."""
    return of_devices.get(device, default_generator) if of_devices else default_generator


def manual_seed(seed: int) -> Generator:
    """Start the stream of random numbers that belongs to ``seed``; the same as PyTorch's on a CPU.

    >>> _ = tk.manual_seed(0)
    >>> tk.rand(3)
    tensor([0.4963, 0.7682, 0.0885])
    """
    for each in of_devices.values():
        each.manual_seed(seed)
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed that the stream of random numbers was started with.

    >>> _ = tk.manual_seed(7)
    >>> tk.initial_seed()
    7
    """
    return default_generator.initial_seed()


def seed() -> int:
    """Start a stream of random numbers that nobody can foresee, and tell its seed.

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
