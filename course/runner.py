"""Runs an answer on one case and says what happened, whatever it does.

An answer may raise, print, warn, loop, exit or change its arguments. None of that leaves this
module: the result is an `Outcome`. Data in words: a *budget* is the time left to all cases of one
check together, so that an endless loop costs a learner a few seconds and not a few per case.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorkit as tk
from course import compare
from course.exercise import Case, Exercise

PRINTED_LIMIT = 2000


class TimeLimit(BaseException):
    """Raised inside an answer whose time is up; no `except Exception` catches it."""


class NotAllowed(Exception):
    """Raised inside an answer that calls what it is asked to write."""


@dataclass
class Outcome:
    """What an answer did in one case."""

    ended: str = "returned"
    """`returned`, `raised`, `timed out` or `not run`."""
    value: Any = None
    error: BaseException | None = None
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
    """The outcome of `answer` in the case `given`.

    untouched: the same case drawn again, to see whether the arguments were changed.
    Raises KeyboardInterrupt only: whoever presses Stop means the whole check.
    """
    if not budget.left:
        return Outcome("not run")
    outcome = Outcome()
    printed = _Bounded(PRINTED_LIMIT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with (
                contextlib.redirect_stdout(printed),
                contextlib.redirect_stderr(printed),
                _refused(exercise.without),
                _limited_to(budget.left),
            ):
                outcome.value = exercise.run(answer, *given.args)
        except TimeLimit:
            outcome.ended = "timed out"
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            outcome.ended, outcome.error, outcome.where = "raised", error, _where(error)
    outcome.printed = printed.getvalue()
    outcome.warned = [f"{type(w.message).__name__}: {w.message}" for w in caught]
    if outcome.ended == "returned" and not exercise.changes_arguments:
        outcome.changed = [
            position
            for position, (now, before) in enumerate(zip(given.args, untouched.args, strict=True))
            if compare.difference(now, before) is not None
        ]
    return outcome


def _where(error: BaseException) -> str:
    """The innermost line of the learner's own code: `line 3: return a + b`."""
    if isinstance(error, RecursionError):
        return ""
    own = (tk.__path__[0], __file__.rpartition("runner")[0])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if (
            frame.line
            and not frame.filename.startswith(own)
            and "site-packages" not in (frame.filename)
        ):
            return f"line {frame.lineno}: {frame.line}"
    return ""


class _Bounded(io.StringIO):
    """A text stream that keeps the first characters and forgets the rest."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def write(self, text: str) -> int:
        room = self._limit - self.tell()
        if room > 0:
            super().write(text[:room])
        return len(text)


@contextlib.contextmanager
def _refused(names: tuple[str, ...]) -> Iterator[None]:
    """While it runs, the functions called `names` ("linspace", "Tensor.stride") refuse to work."""
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for name in names:
            owner_name, _, attribute = name.rpartition(".")
            owner = getattr(tk, owner_name) if owner_name else tk
            replaced.append((owner, attribute, vars(owner)[attribute]))
            setattr(owner, attribute, _refusal(name))
        yield
    finally:
        for owner, attribute, original in reversed(replaced):
            setattr(owner, attribute, original)


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        raise NotAllowed(f"{name} is what you are asked to write here: do it without this call.")

    return refuse


@contextlib.contextmanager
def _limited_to(seconds: float) -> Iterator[None]:
    """Raise TimeLimit in the block when `seconds` are over, again and again until it ends."""
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        with _alarm(seconds):
            yield
    else:
        with _timer_thread(seconds):
            yield


REPEAT = 0.2
"""Seconds between two raises: an answer may catch the first one with a bare `except`."""


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), REPEAT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _timer_thread(seconds: float) -> Iterator[None]:
    """The same where there is no SIGALRM (Windows) or where this is not the main thread."""
    thread = ctypes.c_ulong(threading.get_ident())
    finished = threading.Event()
    raising = threading.Lock()

    def ring() -> None:
        if not finished.wait(seconds):
            while True:
                with raising:
                    if finished.is_set():
                        return
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeLimit))
                if finished.wait(REPEAT):
                    return

    timer = threading.Thread(target=ring, daemon=True)
    timer.start()
    try:
        yield
    finally:
        with raising:
            finished.set()
            # a raise that was asked for and not yet delivered must not hit the code after the block
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)
