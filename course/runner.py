"""Runs an answer on one case and says what happened, whatever it does.

An answer may raise, print, warn, loop, exit or change its arguments. None of that leaves this
module: the result is an `Outcome`. Data in words: a *budget* is the time left to all cases of one
check together, so that an endless loop costs a learner a few seconds and not a few per case.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import io
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import tensorkit as tk
from course import compare
from course.errors import TimeLimit
from course.exercise import Case, Exercise
from course.plain import plain

PRINTED_LIMIT = 2000


class NotAllowed(Exception):
    """Raised inside an answer that calls what it is asked to write."""


@dataclass
class Outcome:
    """What an answer did in one case."""

    ended: str = "returned"
    """`returned`, `raised`, `timed out` or `not run`."""
    value: Any = None
    error: BaseException | None = None
    message: tuple[str, str] = ("", "")
    """First line of the exception's text, and what follows it."""
    where: str = ""
    """The line of the learner's code that raised, as it can be shown."""
    changed: list[int] = field(default_factory=list)
    """Positions of the arguments that the answer changed."""
    printed: str = ""
    warned: list[str] = field(default_factory=list)

    def agrees_with(self, other: Outcome) -> bool:
        """True if both did the same: equal values, or exceptions of the same class."""
        if self.ended != other.ended:
            return False
        if self.ended == "raised":
            return type(self.error) is type(other.error)
        if self.changed != other.changed:
            return False
        return compare.difference(self.value, other.value) is None


class Budget:
    """Seconds left to the cases of one check."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())


def run_case(
    exercise: Exercise, answer: Any, given: Case, untouched: Case, budget: Budget
) -> Outcome:
    """The outcome of `answer` in the case `given`, as plain data.

    untouched: the same case drawn again, to see whether the arguments were changed.
    Raises KeyboardInterrupt only: whoever presses Stop means the whole check.
    """
    if not budget.left:
        return Outcome("not run")
    outcome = Outcome()
    printed = _Bounded(PRINTED_LIMIT)
    arguments: list[Any] = []

    def run() -> None:
        try:
            outcome.value = plain(exercise.run(answer, *given.args))
            arguments[:] = map(plain, given.args)
        except (KeyboardInterrupt, TimeLimit):
            raise
        except BaseException as error:
            outcome.ended, outcome.error = "raised", error
            outcome.message, outcome.where = compare.text_of(error), _where(error)
        outcome.warned = [f"{w.category.__name__}: {compare.text_of(w.message)[0]}" for w in caught]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _quiet(printed), _refused(exercise.without):
                limited(run, budget.left)
        except TimeLimit:
            outcome.ended = "timed out"
    outcome.printed = printed.getvalue()
    if outcome.ended == "returned" and not exercise.changes_arguments:
        outcome.changed = [
            position
            for position, (now, before) in enumerate(zip(arguments, untouched.args, strict=True))
            if compare.difference(now, before) is not None
        ]
    return outcome


def _where(error: BaseException) -> str:
    """The innermost line of the learner's own code: `line 3: return a + b`."""
    if isinstance(error, RecursionError):
        return ""
    own = (tk.__path__[0], __file__.rpartition("runner")[0])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        is_own = frame.filename.startswith(own) or "site-packages" in frame.filename
        if frame.line and not is_own:
            return f"line {frame.lineno}: {frame.line}"
    return ""


class _Bounded(io.StringIO):
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
def _quiet(stream: _Bounded) -> Iterator[None]:
    """Send to `stream` what is printed, logged or displayed.

    nbgrader takes any text on stderr for a failure, and the first displayed number for the score;
    a logger that was set up in another cell still holds the kernel's own stream.
    """
    kernel_streams = [it for it in (sys.stdout, sys.stderr) if hasattr(it, "pub_thread")]
    own = [vars(it).get("write") for it in kernel_streams]
    displayhook = sys.displayhook
    sys.displayhook = lambda value: None
    for it in kernel_streams:
        it.write = stream.write  # type: ignore[method-assign]
    try:
        with (
            contextlib.redirect_stdout(stream),
            contextlib.redirect_stderr(stream),
            _mute_descriptors() if kernel_streams else contextlib.nullcontext(),
        ):
            yield
    finally:
        for it, write in zip(kernel_streams, own, strict=True):
            if write is None:
                del it.write
            else:  # IPython's own, which copies what is printed
                it.write = write  # type: ignore[method-assign]
        sys.displayhook = displayhook


@contextlib.contextmanager
def _mute_descriptors() -> Iterator[None]:
    """Lose what is written below Python, to the descriptors 1 and 2: the kernel reads those too."""
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
def _refused(names: tuple[str, ...]) -> Iterator[None]:
    """While it runs, the functions called `names` ("linspace", "Tensor.stride") refuse to work.

    So does `input`: a person would be asked in the middle of a check.
    """
    refusals: list[tuple[Any, str, str]] = [(builtins, "input", ASKS)]
    for name in names:
        owner, _, attribute = name.rpartition(".")
        sentence = f"{name} is what you are asked to write here: do it without this call."
        refusals.append((getattr(tk, owner) if owner else tk, attribute, sentence))
    originals = [vars(owner)[attribute] for owner, attribute, _ in refusals]
    for owner, attribute, sentence in refusals:
        setattr(owner, attribute, _refusal(sentence))
    try:
        yield
    finally:
        for (owner, attribute, _), original in zip(refusals, originals, strict=True):
            setattr(owner, attribute, original)


ASKS = "`input()` asks a person. Here the values arrive as arguments of the function: use those."


def _refusal(sentence: str) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        raise NotAllowed(sentence)

    return refuse


# The time limit


def limited(run: Callable[[], None], seconds: float) -> None:
    """Call `run`, and raise TimeLimit in it when `seconds` are over.

    The exception is raised again and again until it gets through: code may catch it, on purpose or
    by a bare `except`. What it cannot stop is a single call into C that never returns, a recursion
    that catches everything at every level and, where there is no alarm signal, a loop that sleeps
    within a `try` and catches everything.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        _with_alarm(run, seconds)
    else:
        _with_timer_thread(run, seconds)


def _inside(run: Callable[[], None]) -> None:
    """Calls `run`. Only frames below this one are interrupted, never what cleans up after it."""
    run()


def _is_inside(frame: FrameType | None) -> bool:
    while frame is not None:
        frame = frame.f_back
        if frame is not None and frame.f_code is _inside.__code__:
            return True
    return False


def _again() -> float:
    """Seconds to the next raise: short and uneven, so that one of them falls outside any `try`."""
    return float(10 ** random.uniform(-6, -3))


def _with_alarm(run: Callable[[], None], seconds: float) -> None:
    over = False

    def ring(number: int, frame: FrameType | None) -> None:
        if not over:
            _wind(_again())
        if _is_inside(frame):
            raise TimeLimit

    begun = time.monotonic()
    outer, _ = signal.getitimer(signal.ITIMER_REAL)  # of a check in which this one was called
    before = signal.signal(signal.SIGALRM, ring)
    _wind(max(seconds, 0.001))
    try:
        _inside(run)
    finally:
        over = True  # first, so that a late ring does not wind the clock up again
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:
            _wind(max(outer - (time.monotonic() - begun), 0.001))


def _wind(seconds: float) -> None:
    """Let the alarm ring after `seconds`, and go on: the first ring may find no stack left."""
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.01)


def _with_timer_thread(run: Callable[[], None], seconds: float) -> None:
    """The same where there is no SIGALRM (Windows) or where this is not the main thread."""
    own = threading.get_ident()
    thread = ctypes.c_ulong(own)
    switch_interval = sys.getswitchinterval()
    finished = threading.Event()
    raising = threading.Lock()

    def ring() -> None:
        wait = seconds
        while not finished.wait(wait):
            sys.setswitchinterval(1e-6)  # or this thread gets its turn only where the other waits
            with raising:
                if not finished.is_set() and _is_inside(sys._current_frames().get(own)):
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeLimit))
            wait = _again()

    timer = threading.Thread(target=ring, daemon=True)
    timer.start()
    try:
        _inside(run)
    finally:
        with raising:
            finished.set()
            sys.setswitchinterval(switch_interval)
            # a raise that was asked for and not yet delivered must not hit the code after this
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)
