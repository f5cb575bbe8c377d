"""Blocks: a long computation on large arrays, one cache-sized part after the other."""

from collections.abc import Callable
from typing import Any

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
