"""Blocks: a long computation on large arrays, one cache-sized part after the other."""

from collections.abc import Callable
from typing import Any

import numpy as np

_SIZE = 2**15  # elements that stay in the processor's cache from step to step


def in_blocks(xp: Any, kernel: Callable[..., Any], *arrays: Any) -> Any:
    """``kernel(xp, *arrays)``, element by element, of arrays of one shape and dtype."""
    first = arrays[0]
    if first.size <= _SIZE or xp.__name__ != "numpy" or not first.flags.c_contiguous:
        return kernel(xp, *arrays)
    result = xp.empty(first.shape, first.dtype)
    target, sources = result.reshape(-1), [each.reshape(-1) for each in arrays]
    for start in range(0, first.size, _SIZE):
        part = slice(start, start + _SIZE)
        target[part] = kernel(xp, *[each[part] for each in sources])
    return result


def by_rows(xp: Any, kernel: Callable[..., Any], axis: Any, *arrays: Any) -> Any:
    """``kernel(xp, *arrays, axis)`` of arrays of one shape; it may reduce ``axis`` to size 1."""
    first = arrays[0]
    last = first.ndim - 1
    if axis not in (-1, last) or not 0 < first.shape[-1] < _SIZE < first.size or xp is not np:
        return kernel(xp, *arrays, axis)
    rows = [each.reshape(-1, first.shape[-1]) for each in arrays]
    step = _SIZE // first.shape[-1]
    begin = kernel(xp, *[each[:step] for each in rows], 1)
    result = xp.empty((len(rows[0]), begin.shape[1]), begin.dtype)
    result[:step] = begin
    for start in range(step, len(result), step):
        part = slice(start, start + step)
        result[part] = kernel(xp, *[each[part] for each in rows], 1)
    return result.reshape(*first.shape[:-1], begin.shape[1])
