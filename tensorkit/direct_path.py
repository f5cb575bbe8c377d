"""Two things that meet in ``run``: NumPy without its warnings, and whether the direct path is open.

``without_warnings`` calls a function of NumPy's without warnings anywhere. ``run`` does so on the
direct path, whose own code is in ``tensorkit.dispatch``: a call takes the arrays of its arguments,
computes by ``run``, and wraps the result. While every operation must be seen (inference mode, a
recording of origins, an override, a ``DispatchMode``, a kernel of the user's), the path is closed
in all threads: ``run`` raises ``NotDirect``, and calls go through the layers of
``tensorkit.dispatch_layers``.
"""

import contextvars
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

# PyTorch never warns of division by zero, overflow or nan, so NumPy does not either: what runs in
# this context gets no warnings. The user's NumPy settings and the warning filters stay as they are.
quiet_context = contextvars.Context()
quiet_context.run(np.seterr, all="ignore")
# NumPy's context variable for what it warns of, and its value when everything is ignored
((warning_state, NO_WARNINGS),) = quiet_context.items()


def without_warnings(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ``function`` with NumPy's warnings off, in the context that is current."""
    before = warning_state.set(NO_WARNINGS)
    try:
        return function(*args, **kwargs)
    finally:
        warning_state.reset(before)


class NotDirect(Exception):
    """A call is not for the direct path; the layers compute it, or refuse it in words."""


def _refuse(function: Callable[..., Any], *args: Any, **options: Any) -> NoReturn:
    raise NotDirect


# ``run(function, *args)`` calls a function with NumPy's warnings off. A context cannot be entered
# twice: RuntimeError while another thread is inside, or the operation that this one interrupts.
run: Callable[..., Any] = quiet_context.run
is_open = True
_lock, _n_closed = threading.Lock(), 0


def close() -> None:
    """Send the calls of every thread through the layers, until ``reopen``."""
    _change(1)


def reopen() -> None:
    """Undo one ``close``; the path is open when all are undone."""
    _change(-1)


def _change(n_closed: int) -> None:
    global run, is_open, _n_closed
    with _lock:
        _n_closed += n_closed
        is_open = not _n_closed
        run = quiet_context.run if is_open else _refuse
