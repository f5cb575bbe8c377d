"""Tensors in words: numbers, shapes, values, bytes, and the names a caller gave them."""

import importlib
import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from tensorkit import call_stack
from tensorkit.autograd.grad_mode import state
from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.errors import importing

MOST_VALUES, MOST_READ = 6, 10_000_000
_PLURALS = {"leaf": "leaves", "matrix": "matrices", "entry": "entries", "launch": "launches"}


def number(value: Any) -> str:
    """A number in at most four digits; floats keep a point, as tensors print them."""
    if isinstance(value, float):
        text = f"{value:.4g}"
        return text + "." if text.lstrip("-").isdigit() else text
    return str(value)


def count(n: int, noun: str) -> str:
    """``1 element``, ``6 elements``."""
    plural = _PLURALS.get(noun, f"{noun}s")
    return f"{n:,} {noun if n == 1 else plural}"


def n_bytes(n: float) -> str:
    """A number of bytes for people: ``96 bytes``, ``1.5 KiB``."""
    units = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
    large = (f"{n / size:.4g} {unit}" for size, unit in units if n >= size)
    return next(large, count(int(n), "byte"))


def duration(seconds: float) -> str:
    """A time for people: ``20 µs``, ``1.5 ms``."""
    unit, per_second = time_unit(seconds)
    return f"{seconds * per_second:.4g} {unit}"


def time_unit(seconds: float) -> tuple[str, float]:
    """The unit in which a time is at least 1, and how many of it are a second."""
    units = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))
    return next((it for it in units if seconds * it[1] >= 1), ("ns", 1e9))


def form(x: Any) -> str:
    """Shape and dtype of a tensor, and its device if that is not the CPU: ``(2, 3) float32``."""
    device = "" if x.device.type == "cpu" else f" on {x.device}"
    return f"{tuple(x.shape)} {str(x.dtype).removeprefix('torch.')}{device}"


def values(x: Tensor) -> str:
    """The values of a small tensor; of a large one its range, its mean and what is not finite."""
    if x.numel() > MOST_READ:
        return count(x.numel(), "value")
    x = x.detach().cpu()  # of a CUDA device: one transfer, which a ledger shows
    if x.numel() <= MOST_VALUES:
        return _nested(x.tolist())
    array = x.numpy()
    if array.dtype.kind == "b":
        return f"{int(array.sum()):,} of {array.size:,} True"
    if array.dtype.kind != "f":
        return f"{array.min()} … {array.max()}"
    finite = array[np.isfinite(array)].astype("float64")
    n_nan, n_inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    facts = [f"{n} {word}" for n, word in ((n_nan, "nan"), (n_inf, "inf")) if n]
    if finite.size:
        low, high, mean = (number(float(it(finite))) for it in (np.min, np.max, np.mean))
        facts.insert(0, f"all {low}" if low == high else f"{low} … {high}, mean {mean}")
    return ", ".join(facts)


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    return number(value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of text."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    ]


def must_be_tensor(function: str, value: Any, name: str = "this") -> None:
    """TypeError with a sentence unless ``value`` is a tensor."""
    if not is_tensor(value):
        kind = type(value).__name__
        # None is what backward() returns, and what .grad is at first
        repair = "the tensor itself (w, not w.grad or w.item()), or tk.tensor(...)"
        raise TypeError(f"{function}() wants a tensor; {name} is of class {kind}. Try: {repair}")


def library(name: str) -> Any:
    """A module of a library that draws; ImportError with a sentence where it is not installed."""
    with importing("This picture"):
        return importlib.import_module(name)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Context in which no recording notes what a picture does to look at tensors."""
    before, state.watching = state.watching, ()
    try:
        yield
    finally:
        state.watching = before


def source(file: str, line: int) -> str:
    """The text of a line of code."""
    return linecache.getline(file, line).strip()


def code_line(file: str, line: int) -> str:
    """A line of code in words: its file, unless that is a notebook's cell; number; text."""
    text = source(file, line)
    is_cell = "ipykernel" in file or file.startswith("<")
    where = f"line {line}" if is_cell else f"{Path(file).name}, line {line}"
    return f"{where}: {text}" if text else where


# The caller's names


def caller() -> FrameType:
    """The first frame outside tensorkit: where the names are that a learner gave."""
    return call_stack.of_user(sys._getframe(1))


def as_code(name: str) -> str:
    """The name of a module's parameter as code: ``model[0].weight``."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", name)


def named_tensors(frame: FrameType) -> Iterator[tuple[str, Tensor]]:
    """Every tensor that has a name in ``frame``, also as a module's parameter: name, tensor.

    Names that begin with an underscore are left out: they are how IPython remembers outputs.
    """
    modules = []
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if name.startswith("_") or not name.isidentifier():
            continue
        if is_tensor(value):
            yield name, value
        elif hasattr(type(value), "named_parameters"):
            modules.append((name, value))
    for name, module in modules:
        for inner, parameter in module.named_parameters():
            yield f"{name}.{inner}", parameter
