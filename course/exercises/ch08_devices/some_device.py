"""What the exercises of chapter 08 share: a CUDA device, simulated where there is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorkit as tk


def some_cuda() -> AbstractContextManager[Any]:
    """A CUDA device, simulated where there is none."""
    return nullcontext() if tk.cuda.is_available() else tk.cuda.simulate()


def shown_on(device: str, value: Any, show: Callable[[Any], str]) -> str:
    """A tensor of the CPU as the learner would type it for this device."""
    return show(value) + ("" if device == "cpu" else f'.to("{device}")')
