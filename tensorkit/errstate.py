"""NumPy without its warnings: PyTorch never warns of division by zero, overflow or nan.

``direct_path.run`` calls a function in a context in which NumPy's warnings are off. It changes
neither the user's NumPy settings nor the warning filters.
"""

import contextvars
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np


class _DirectPath:
    """``run(function, *args)`` with NumPy's floating-point warnings off.

    A context cannot be entered twice: while another thread, or a finalizer's caller, is inside,
    ``run`` raises RuntimeError, and the slow way with ``without_warnings`` takes the call.
    """

    __slots__ = ("_lock", "_n_closed", "_run", "is_open", "run")

    run: Callable[..., Any]
    is_open: bool

    def __init__(self, context: contextvars.Context) -> None:
        self.run = self._run = context.run
        self._n_closed, self.is_open = 0, True
        self._lock = threading.Lock()

    def close(self) -> None:
        """From now on raise RuntimeError in every thread: all calls then take the slow way."""
        with self._lock:
            self._n_closed += 1
            self.run, self.is_open = _refuse, False

    def open(self) -> None:
        """Run functions again, unless somebody else has closed it."""
        with self._lock:
            self._n_closed -= 1
            self.is_open = not self._n_closed
            self.run = self._run if self.is_open else _refuse


def _refuse(function: Callable[..., Any], *args: Any, **options: Any) -> NoReturn:
    raise RuntimeError("the direct path is closed")


_context = contextvars.Context()
_context.run(np.seterr, all="ignore")
direct_path = _DirectPath(_context)
# NumPy's context variable for what it warns of, and its value for "of nothing"
((warning_state, NO_WARNINGS),) = _context.items()


def without_warnings(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ``function`` with NumPy's warnings off, also inside of ``direct_path.run``."""
    before = warning_state.set(NO_WARNINGS)
    try:
        return function(*args, **kwargs)
    finally:
        warning_state.reset(before)
