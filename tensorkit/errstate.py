"""NumPy without its warnings: PyTorch never warns of division by zero, overflow or nan.

This changes neither the user's NumPy settings nor the warning filters.
"""

import contextvars
from collections.abc import Callable
from typing import Any

import numpy as np

quiet_context = contextvars.Context()  # what runs in it gets no warnings from NumPy
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
