"""Tracebacks in the notebook end at the learner's own line.

An error of the library says in words what is wrong and how to repair it; five frames of the
library's code above the sentence hide both. `%tb` shows them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import tensorkit
from course.notebook import history

_HIDDEN = tuple(f"{it}{os.sep}" for it in (tensorkit.__path__[0], Path(__file__).parents[1]))
_KINDS = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, MemoryError)
"""What the library raises; the others, SyntaxError among them, are IPython's own business."""


def shorten() -> None:
    """Begin to leave the library's frames out of this notebook's tracebacks."""
    shell = history.ipython()
    if shell is not None and not shell.custom_exceptions:  # a handler of the learner's own stays
        shell.set_custom_exc(_KINDS, _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    head, own = trace, _without_library(trace.tb_next)  # the head is IPython's call of the cell
    short = TracebackType(own, head.tb_frame, head.tb_lasti, head.tb_lineno) if own else trace
    shell.showtraceback((kind, error, short), tb_offset, running_compiled_code=True)
    sys.last_traceback = trace  # what `%tb` and `%debug` look at


def _without_library(trace: TracebackType | None) -> TracebackType | None:
    """The same traceback without the frames of `tensorkit` and `course`."""
    kept = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_HIDDEN):
            kept.append(trace)
        trace = trace.tb_next
    short = None
    for it in reversed(kept):
        short = TracebackType(short, it.tb_frame, it.tb_lasti, it.tb_lineno)
    return short
