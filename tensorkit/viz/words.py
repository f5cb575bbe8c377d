"""Tensors in words: numbers, shapes, values, bytes, and the names a caller gave them."""

import importlib
import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.errors import importing
from tensorkit.thread_state import of_user, state

MOST_VALUES, MOST_READ = 6, 10_000_000


def number(value: Any) -> str:
    """A number in at most four digits; floats keep a point, as tensors print them."""
    if isinstance(value, float):
        text = f"{value:.4g}"
        return text + "." if text.lstrip("-").isdigit() else text
    return str(value)


def count(n: int, noun: str) -> str:
    """``1 element``, ``6 elements``."""
    plural = "leaves" if noun == "leaf" else f"{noun}s"
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
    return next((unit for unit in units if seconds * unit[1] >= 1), ("ns", 1e9))


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
    if array.dtype.kind != "f":
        return f"{array.min()} … {array.max()}"
    finite = array[np.isfinite(array)].astype("float64")
    n_nan, n_inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    facts = [f"{n} {word}" for n, word in ((n_nan, "nan"), (n_inf, "inf")) if n]
    if finite.size:
        low, high, mean = (number(float(f(finite))) for f in (np.min, np.max, np.mean))
        facts.insert(0, f"all {low}" if low == high else f"{low} … {high}, mean {mean}")
    return ", ".join(facts)


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    return number(value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of text."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (header, *rows)]


def shown(size: int, most: int, wanted: Sequence[int] = ()) -> list[int | None]:
    """The indices along a dimension that are shown; None stands for those left out.

    Of many these are the first and the last, the ``wanted`` ones, and more from the beginning.
    """
    if size <= most:
        return list(range(size))
    found: list[int | None] = []
    for index in sorted([*dict.fromkeys([0, size - 1, *wanted, *range(most)])][: most - 1]):
        found += [None, index] if found and index - 1 != found[-1] else [index]
    return found


def shortened(text: str, most: int) -> str:
    """``text``, or as much of it as ``most`` characters hold, ending in …."""
    return text if len(text) <= most else text[: most - 1] + "…"


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
def reading(wanted: str) -> Iterator[None]:
    """Context in which values are read, unrecorded; TypeError with this sentence if they cannot."""
    try:
        with unrecorded():
            yield
    except (AttributeError, TypeError, ValueError, RuntimeError):
        raise TypeError(wanted) from None


@contextmanager
def unrecorded() -> Iterator[None]:
    """Context in which no recording notes what a picture does to look at tensors."""
    before, state.origin_recorders = state.origin_recorders, ()
    try:
        yield
    finally:
        state.origin_recorders = before


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


def named_values() -> dict[str, Any]:
    """What has a name in the user's code: in the first frame outside of tensorkit."""
    frame = of_user(sys._getframe(1))
    known = {**frame.f_globals, **frame.f_locals}
    return {name: value for name, value in known.items() if name.isidentifier() and name[0] != "_"}


def named_tensors() -> list[tuple[str, Tensor]]:
    """The tensors that have a name in the user's code, also as a module's parameter, with it.

    A parameter's name is code: ``model[0].weight``. Names that begin with an underscore are left
    out: they are how IPython remembers outputs.
    """
    known = named_values()
    found = [pair for pair in known.items() if is_tensor(pair[1])]
    for name, value in known.items():
        if hasattr(type(value), "named_parameters"):
            found += [(_as_code(f"{name}.{path}"), x) for path, x in value.named_parameters()]
    return found


def _as_code(name: str) -> str:
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", name)


def names() -> dict[int, str]:
    """The first name of each of these tensors, by the tensor's id."""
    return {id(x): name for name, x in reversed(named_tensors())}
