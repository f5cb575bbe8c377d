"""Tracebacks in the notebook end at the learner's own line.

An error of the library says in words what is wrong and how to repair it; five frames of the
library's code above the sentence hide both. `%tb` shows them.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any

import numpy as np

import tensorkit
from course.notebook import history

_COURSE = tuple(
    f"{folder}{os.sep}" for folder in (tensorkit.__path__[0], Path(__file__).parents[1])
)
# where Python's own modules lie, and the installed packages
_INSTALLED = tuple(
    f"{folder}{os.sep}" for folder in (Path(os.__file__).parent, Path(np.__file__).parents[1])
)


def shorten() -> None:
    """Begin to leave the library's frames out of this notebook's tracebacks."""
    shell = history.ipython()
    if shell is not None and not shell.custom_exceptions:  # a handler of the learner's own stays
        shell.set_custom_exc((Exception, KeyboardInterrupt), _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    if issubclass(kind, SyntaxError):  # IPython shows the line that Python could not read
        shell.showtraceback(running_compiled_code=_has_begun_to_run(trace))
        return
    if isinstance(error, AttributeError) and "has no attribute" in str(error):
        # Python's own traceback ends with this question, and IPython's does not
        with contextlib.suppress(Exception):  # a learner's own `__dir__` may raise
            for name in difflib.get_close_matches(str(error.name), dir(error.obj), n=1):
                error.add_note(f"Did you mean: '{name}'?")
    head, inner = trace, _without_library(trace.tb_next)  # the head is IPython's call of the cell
    short = TracebackType(inner, head.tb_frame, head.tb_lasti, head.tb_lineno) if inner else trace
    shell.showtraceback((kind, error, short), tb_offset, running_compiled_code=True)
    sys.last_traceback = trace  # what `%tb` and `%debug` look at


def _has_begun_to_run(trace: TracebackType | None) -> bool:
    """Whether the cell's own code is in a traceback; of a cell that Python cannot read it is not.

    A syntax error comes while a cell runs from `eval`, say, or from a module that it imports.
    """
    return any(not frame.f_code.co_filename.startswith(_INSTALLED) for frame, _ in walk_tb(trace))


def _without_library(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of `tensorkit` and `course`.

    What these call of Python or of an installed package goes too, up to the learner's own code.
    """
    kept, is_inside = [], False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        is_inside = file.startswith(_COURSE) or (is_inside and file.startswith(_INSTALLED))
        if not is_inside:
            kept.append(trace)
        trace = trace.tb_next
    short = None
    for frame in reversed(kept):
        short = TracebackType(short, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return short
