"""The numbers of ``arange`` and ``linspace`` as arrays, rounded as PyTorch's kernels round them.

PyTorch multiplies and adds with one rounding, and ``arange`` works in blocks as wide as 32 bytes:
the first number of a block is rounded before the others are counted from it.
(aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp.)
"""

import math
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.dtypes import DType
from tensorkit.errors import DTypeError, message
from tensorkit.ops.arguments import check_value
from tensorkit.ops.operands import number_array
from tensorkit.rounding import multiply_add

_BLOCK_BYTES = 32


def count(first: Any, last: Any, gap: Any, dtype: DType) -> int:
    """How many numbers ``arange`` gives; raises for bounds and steps that make no range."""
    if not (gap > 0 or gap < 0):
        raise DTypeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise DTypeError(f"unsupported range: {first:g} -> {last:g}")
    if (last - first) * gap < 0:
        raise DTypeError(
            "upper bound and lower bound inconsistent with step sign",
            f"From {first}, steps of {gap} never reach {last}.",
        )
    for value in (first, last, gap):
        check_value(value, _accumulator(dtype))
    if dtype is dtypes.int64 and not int(gap):
        raise ValueError(
            message("step must be nonzero", f"As {dtype}, the step {gap} is truncated to 0.")
        )
    if dtype is dtypes.int64:
        n = -((int(first) - int(last)) // int(gap))
    else:
        quotient = (float(last) - float(first)) / float(gap)
        n = math.ceil(quotient) if math.isfinite(quotient) else 2**63
    if n >= 2**63:
        raise DTypeError("invalid size, possible overflow?", f"From {first} to {last} by {gap}.")
    return n


def _accumulator(dtype: DType) -> DType:
    """The dtype in which PyTorch counts: wider than that of the result."""
    if dtype is dtypes.float16:
        return dtypes.float32
    return dtypes.float64 if dtype.is_floating_point else dtypes.int64


def whole(xp: Any, first: Any, gap: Any, n: int, dtype: DType) -> Any:
    """``counted`` for integers, by any array library."""
    return (int(first) + int(gap) * xp.arange(n, dtype=np.int64)).astype(dtype.numpy)


def counted(first: Any, gap: Any, n: int, dtype: DType) -> Any:
    """``first``, ``first + gap``, ...: ``n`` numbers."""
    accumulator = _accumulator(dtype).numpy
    if accumulator.kind == "i":
        return whole(np, first, gap, n, dtype)
    start, step = (np.float64(accumulator.type(number)) for number in (first, gap))
    block = _BLOCK_BYTES // dtype.itemsize
    n_in_blocks = n - n % (2 * block)

    def from_(base: Any, index: Any) -> Any:
        return multiply_add(np, step, index.astype(np.float64), base, accumulator)

    bases = from_(start, np.arange(0, n_in_blocks, block)).astype(dtype.numpy).astype(np.float64)
    blocks = from_(bases[:, np.newaxis], np.arange(block))
    rest = from_(start, np.arange(n_in_blocks, n))
    return np.concatenate([blocks.ravel(), rest]).astype(dtype.numpy)


def spaced(first: Any, last: Any, n: int, dtype: DType) -> Any:
    """``n`` numbers from ``first`` to ``last``, both included."""
    ends = []
    for value in (first, last)[:n]:
        check_value(value, dtype)
        ends.append(number_array(value, dtype))
    if n < 2:
        return np.array(ends, dtype.numpy)
    inner = dtype.numpy if dtype.is_floating_point else np.dtype(np.float64)
    start, stop = (end.astype(inner) for end in ends)
    step = ((stop - start) / np.asarray(n - 1, inner)).astype(inner)
    index = np.arange(n)
    # Counted from both ends, so that the last number is exactly `last`.
    forwards = _stepped(step, index, start)
    backwards = _stepped(-step, n - 1 - index, stop)
    return np.where(index < n // 2, forwards, backwards).astype(dtype.numpy)


def _stepped(step: Any, index: Any, start: Any) -> Any:
    dtype = start.dtype
    if dtype == np.float16:
        return start + step * index.astype(dtype)
    step, index, start = (each.astype(np.float64) for each in (step, index, start))
    return multiply_add(np, step, index, start, dtype)
