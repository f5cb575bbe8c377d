"""Silence around an answer while it is checked, and the calls that it must do without."""

from __future__ import annotations

import builtins
import contextlib
import io
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pkgutil import resolve_name
from types import CodeType
from typing import Any

import tensorkit as tk
from course.notebook.limited import limited
from course.notebook.plain import str_of
from course.notebook.state import restored
from course.shared.errors import TimeLimit

PRINTED_LIMIT, MOST_WARNINGS = 2000, 20


class NotAllowed(Exception):
    """Raised in an answer that calls a function which it should do without."""


@dataclass
class Observed:
    """What was seen around an answer while it ran."""

    printed: str = ""
    warned: list[str] = field(default_factory=list)
    left_changed: list[str] = field(default_factory=list)
    """Settings and names that the answer changed and that were put back, in words."""
    is_late: bool = False
    """Whether the answer was stopped because its time was up."""


def run_quietly(
    run: Callable[[], object],
    seconds: float,
    without: Sequence[str],
    *,
    compares_all: bool = True,
) -> Observed:
    """Run a function that calls an answer: silent, in time, what the process shares kept as it was.

    without: the functions that refuse to work meanwhile. compares_all: as `restored` takes it.
    """
    observed, printed = Observed(), Bounded(PRINTED_LIMIT)

    def work() -> None:
        run()
        observed.warned = [  # within the time limit: an answer's own class may make the text
            f"{warning.category.__name__}: {str_of(warning.message)}"
            for warning in caught[:MOST_WARNINGS]
        ]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            # what an answer registers in the library is taken out when the answer ends; all that
            # runs after the answer may call what it has replaced, so that is put back first
            with (
                tk.library.scope(),
                quiet(printed),
                restored(compares_all=compares_all) as observed.left_changed,
                refused(without),
            ):
                limited(work, seconds)
        except TimeLimit:
            observed.is_late = True
        except Exception:
            if not observed.left_changed:  # else the report has met what the answer replaced
                raise
    observed.printed = printed.getvalue()
    return observed


class Bounded(io.StringIO):
    """A text stream that keeps the first characters, forgets the rest and cannot be closed."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def write(self, text: str) -> int:
        room = self._limit - self.tell()
        if room > 0:
            super().write(text[:room])
        return len(text)

    def close(self) -> None:
        """Stay open: an answer may close what it takes for its standard output."""


@contextlib.contextmanager
def quiet(stream: Bounded) -> Iterator[None]:
    """Send to `stream` what is printed, logged or displayed.

    nbgrader takes any text on stderr for a failure, and the first displayed number for the score;
    a logger that was set up in another cell still holds the kernel's own stream.
    """
    kernel_streams = [
        kernel_stream
        for kernel_stream in (sys.stdout, sys.stderr)
        if hasattr(kernel_stream, "pub_thread")
    ]
    writers = [vars(kernel_stream).get("write") for kernel_stream in kernel_streams]
    displayhook = sys.displayhook
    sys.displayhook = lambda value: None
    for kernel_stream in kernel_streams:
        kernel_stream.write = stream.write  # type: ignore[method-assign]
    try:
        with (
            contextlib.redirect_stdout(stream),
            contextlib.redirect_stderr(stream),
            _mute_descriptors() if kernel_streams else contextlib.nullcontext(),
        ):
            yield
    finally:
        for kernel_stream, write in zip(kernel_streams, writers, strict=True):
            if write is None:
                del kernel_stream.write
            else:  # IPython's own, which copies what is printed
                kernel_stream.write = write  # type: ignore[method-assign]
        sys.displayhook = displayhook


@contextlib.contextmanager
def _mute_descriptors() -> Iterator[None]:
    """Discard what C code writes to the descriptors 1 and 2, which the kernel reads, too."""
    kept = [(number, os.dup(number)) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


@contextlib.contextmanager
def refused(names: Sequence[str]) -> Iterator[None]:
    """Let the functions of these names raise NotAllowed in the body, and `input` as well.

    names: as `owner_and_name` reads them. A function raises under every other name, too, and in
    every list or default that holds it, because its code is exchanged.
    """
    functions = [getattr(home, attribute) for home, attribute in map(owner_and_name, names)]
    codes = [(function, function.__code__) for function in functions]
    asks, builtins.input = builtins.input, _asked
    try:
        for (function, code), name in zip(codes, names, strict=True):
            function.__code__ = _refusal(name).replace(co_freevars=code.co_freevars)
        yield
    finally:  # without a function of Python's: the body may have replaced it
        for function, code in codes:
            function.__code__ = code
        builtins.input = asks


def owner_and_name(name: str) -> tuple[Any, str]:
    """Where a function lives, and its name there: "linspace" and "Tensor.stride" in tensorkit,
    "course.engine.result" in a module of the course.
    """
    owner, _, attribute = name.rpartition(".")
    if owner.startswith("course."):
        return resolve_name(owner), attribute
    return operator.attrgetter(owner)(tk) if owner else tk, attribute


ASKS = "`input()` asks a person. Here the values arrive as arguments of the function: use those."


def _asked(*args: Any, **options: Any) -> Any:
    raise NotAllowed(ASKS)


@cache
def _refusal(name: str) -> CodeType:
    """The code of a function that raises NotAllowed, which works in every module."""
    sentence = f"{name} is switched off while your answer runs: do it without this call."
    lines = ["def refuse(*_, **__):", f"from {__name__} import NotAllowed", "raise NotAllowed"]
    made: dict[str, Any] = {}
    exec("\n    ".join(lines) + f"({sentence!r})", made)
    code: CodeType = made["refuse"].__code__
    return code
