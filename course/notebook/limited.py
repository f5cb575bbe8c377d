"""A time limit on a call, whatever the code in it does: `limited`."""

from __future__ import annotations

import contextlib
import ctypes
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import tensorkit as tk
from course.shared.errors import TimeLimit


def limited(run: Callable[[], None], seconds: float) -> None:
    """Call `run`, and raise TimeLimit in it when `seconds` are over.

    The exception is raised again and again until it gets through: code may catch it, on purpose or
    by a bare `except`. What it cannot stop is a single call into C that never returns, as
    `sum(iter(int, 1))`, a recursion that catches everything at every level and, where there is no
    alarm signal, a loop that spends its time within a `try` and catches everything. Ctrl-C does not
    end such a call either: Python runs handlers of signals between its own instructions only. While
    tensorkit enters or leaves a `with` block it waits.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        _with_alarm(run, seconds)
    else:
        _with_timer_thread(run, seconds)


def _inside(run: Callable[[], None]) -> None:
    """Calls `run`. Only frames below this one are interrupted, never what cleans up after it."""
    run()


_CONTEXTS = (str(Path(tk.__file__).parent), contextlib.__file__, __file__)


def _may_raise(frame: FrameType | None) -> bool:
    """Whether this frame is below `_inside`, and not where tensorkit enters or leaves a `with`.

    A raise there would leave undone what the block undoes. A ring may interrupt another one.
    """
    is_in_library, depth = True, 0
    while frame is not None and frame.f_code is not _inside.__code__:
        is_in_library = is_in_library and frame.f_code.co_filename.startswith(_CONTEXTS)
        if is_in_library and frame.f_code.co_name in ("__enter__", "__exit__"):
            return False
        frame, depth = frame.f_back, depth + 1
    return frame is not None and depth > 0


def _again() -> float:
    """Seconds to the next raise: short and uneven, so that one of them falls outside any `try`."""
    return float(10 ** random.uniform(-6, -3))


def _with_alarm(run: Callable[[], None], seconds: float) -> None:
    over = False

    def ring(number: int, frame: FrameType | None) -> None:
        if not over:
            _start_alarm(_again())
        is_in_hook = frame is not None and frame.f_code is ignored.__code__
        if _may_raise(frame) and not is_in_hook:
            raise TimeLimit

    def ignored(unraisable: sys.UnraisableHookArgs) -> None:
        # a TimeLimit that is raised in a destructor is ignored: the alarm rings again
        if unraisable.exc_type is not TimeLimit:
            previous_hook(unraisable)

    begun, previous_hook = time.monotonic(), sys.unraisablehook
    outer, _ = signal.getitimer(signal.ITIMER_REAL)  # of the check that has called this one
    before = signal.signal(signal.SIGALRM, ring)
    sys.unraisablehook = ignored
    _start_alarm(max(seconds, 0.001))
    try:
        _inside(run)
    finally:
        over = True  # first, so that a late ring does not start the alarm again
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = previous_hook
        if outer:
            _start_alarm(max(outer - (time.monotonic() - begun), 0.001))


def _start_alarm(seconds: float) -> None:
    """Let the alarm ring after `seconds`, and go on: the first ring may find no stack left."""
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.01)


def _with_timer_thread(run: Callable[[], None], seconds: float) -> None:
    """As `_with_alarm`, where there is no SIGALRM (Windows) or this is not the main thread."""
    caller = threading.get_ident()
    thread = ctypes.c_ulong(caller)
    switch_interval = sys.getswitchinterval()
    finished = threading.Event()
    raising = threading.Lock()

    def ring() -> None:
        wait = seconds
        while not finished.wait(wait):
            # otherwise this thread might run only while the other one waits
            sys.setswitchinterval(1e-6)
            with raising:
                frame = sys._current_frames().get(caller)
                if not finished.is_set() and _may_raise(frame):
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeLimit))
            wait = _again()

    timer = threading.Thread(target=ring, daemon=True)
    timer.start()
    try:
        _inside(run)
    finally:
        # A raise that was asked for and not yet delivered must not hit the code after this. To take
        # it back (PyThreadState_SetAsyncExc with NULL) leaves Python 3.11 so that the next function
        # under a profiler waits for ever; so it is let through here, where it does no harm.
        is_over = False
        while not is_over:
            try:
                with raising:
                    finished.set()
                sys.setswitchinterval(switch_interval)
                for _ in range(100):  # each turn looks whether a raise is waiting
                    pass
                is_over = True
            except TimeLimit:
                pass
