"""Random numbers from a key and a counter: Philox4x32-10 (Salmon et al. 2011), as GPUs draw them.

Number ``i`` of a seed is computed from ``i`` alone, so that a GPU draws all at once, and where a
source stands is one number. Each draw is a kernel with its NumPy form beside it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorkit.kernels import Kernel

_MASK = np.uint64(0xFFFFFFFF)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_WORDS = """
__device__ __forceinline__ void philox(
    unsigned long long seed, unsigned long long at, unsigned int* word) {
    unsigned int one = seed, two = seed >> 32;
    word[0] = at, word[1] = at >> 32, word[2] = word[3] = 0;
    for (int round = 0; round < 10; ++round) {
        unsigned int left = word[0], right = word[2];
        word[0] = __umulhi(0xCD9E8D57u, right) ^ word[1] ^ one;
        word[1] = 0xCD9E8D57u * right;
        word[2] = __umulhi(0xD2511F53u, left) ^ word[3] ^ two;
        word[3] = 0xD2511F53u * left;
        one += 0x9E3779B9u, two += 0xBB67AE85u;
    }
}
__device__ __forceinline__ unsigned long long longer(unsigned int high, unsigned int low) {
    return (unsigned long long)high << 32 | low;
}
__device__ __forceinline__ float fraction(float, unsigned int high, unsigned int) {
    return (high >> 8) * 5.9604644775390625e-08f;
}
__device__ __forceinline__ double fraction(double, unsigned int high, unsigned int low) {
    return (longer(high, low) >> 11) * 1.1102230246251565e-16;
}
"""


def words(seed: int, start: int, count: int) -> Any:
    """Four words of 32 bits for each of ``count`` numbers, an array of uint64 (4, count)."""
    at = np.arange(start, start + count, dtype=np.uint64)
    word = [at & _MASK, at >> np.uint64(32), np.zeros_like(at), np.zeros_like(at)]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(_ROUNDS):
        one, two = (np.uint64(key) for key in keys)
        left, right = word[0] * _FACTORS[0], word[2] * _FACTORS[1]
        word = [
            (right >> np.uint64(32)) ^ word[1] ^ one,
            right & _MASK,
            (left >> np.uint64(32)) ^ word[3] ^ two,
            left & _MASK,
        ]
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _STEPS, strict=True)]
    return np.stack(word)


def _longer(high: Any, low: Any) -> Any:
    return (high << np.uint64(32)) | low


def _fraction(high: Any, low: Any, dtype: Any) -> Any:
    """Numbers in [0, 1) of all the bits that ``dtype`` holds."""
    if dtype == np.float32:
        return (high >> np.uint64(8)).astype(dtype) * np.float32(2.0**-24)
    return (_longer(high, low) >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Draw(NamedTuple):
    """A kernel, and its NumPy form, a function of the words, a dtype, and the kernel's numbers."""

    kernel: Kernel
    form: Callable[..., Any]


def _draw(name: str, numbers: str, output: str, code: str, form: Callable[..., Any]) -> Draw:
    inputs = "uint64 seed, uint64 start" + numbers
    code = "unsigned int word[4]; philox(seed, start + i, word); " + code
    return Draw(Kernel(f"draw_{name}", inputs, output, code, _WORDS), form)


UNIFORM = _draw(
    "uniform", "", "T y", "y = fraction(T(), word[0], word[1]);",
    lambda w, dtype: _fraction(w[0], w[1], dtype),
)  # fmt: skip
NORMAL = _draw(
    "normal",
    "",
    "T y",
    "y = sqrt(T(-2) * log(T(1) - fraction(T(), word[0], word[1])))"
    " * cos(T(6.283185307179586) * fraction(T(), word[2], word[3]));",
    lambda w, dtype: (
        np.sqrt(dtype.type(-2) * np.log(dtype.type(1) - _fraction(w[0], w[1], dtype)))
        * np.cos(dtype.type(2 * np.pi) * _fraction(w[2], w[3], dtype))
    ),
)
EXPONENTIAL = _draw(
    "exponential", "", "T y", "y = -log1p(-fraction(T(), word[0], word[1]));",
    lambda w, dtype: -np.log1p(-_fraction(w[0], w[1], dtype)),
)  # fmt: skip
# integers in [low, low + n)
INTEGERS = _draw(
    "integers",
    ", int64 low, uint64 n",
    "int64 y",
    "y = low + (long long)(longer(word[0], word[1]) % n);",
    lambda w, dtype, low, n: (_longer(w[0], w[1]) % np.uint64(n)).astype(np.int64) + low,
)
