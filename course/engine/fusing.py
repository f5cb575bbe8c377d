"""Several operations as one launch: the kernel that chapter 11 gives to those who fuse."""

from __future__ import annotations

import math
from typing import Any, no_type_check

import tensorkit as tk
from tensorkit import cuda

FUSABLE = {"neg": 1, "exp": 2, "relu": 3, "tanh": 4, "abs": 5, "sqrt": 6}
"""The operations that `one_launch` knows, and the digit by which the kernel is told of each.

A kernel takes numbers, so several operations are one number in decimal: its last digit is the first
operation. An int64 holds 18 digits of any value.
"""

THREADS = 128


@cuda.kernel
@no_type_check
def _several(x, out, n, program):
    i = cuda.grid(1)
    if i < n:
        value = x[i]
        rest = program
        while rest > 0:
            code = rest % 10
            if code == 1:
                value = -value
            if code == 2:
                value = math.exp(value)
            if code == 3:
                value = max(value, 0.0)
            if code == 4:
                value = math.tanh(value)
            if code == 5:
                value = abs(value)
            if code == 6:
                value = math.sqrt(value)
            rest = rest // 10
        out[i] = value


def one_launch(names: list[str], x: Any, out: tk.Tensor) -> None:
    """Write into `out` what the operations `names`, one after the other, make of `x`.

    x, out: float32 tensors of one shape on a CUDA device, both contiguous. At most 18 names, those
    of `FUSABLE`.
    """
    if len(names) > 18:
        raise ValueError(f"one_launch() takes at most 18 operations, not {len(names)}.")
    program = sum(FUSABLE[name] * 10**at for at, name in enumerate(names))
    if n := x.numel():
        _several[-(-n // THREADS), THREADS](x.reshape(-1), out.reshape(-1), n, program)
