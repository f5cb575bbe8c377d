"""Two things that are asked of the thread that runs: its switches, and its call stack.

``state`` has values of its own in every thread. ``is_library_code`` and ``of_user`` tell the frames
of the library from those of the user, whose lines errors, recordings and profiles name.
"""

import threading
from types import FrameType
from typing import Any

PACKAGE = __file__.removesuffix("thread_state.py")


class ThreadState(threading.local):
    """The switches of one thread."""

    grad = True  # operations are recorded; see autograd.grad_mode
    inference = False
    on_arrays = False  # a plain backward runs: formulas give arrays to operations
    origin_recorders: tuple[Any, ...] = ()  # those that are on; see autograd.recording
    dispatch_modes: tuple[Any, ...] = ()  # those that are on, the innermost last
    trace: list[Any] | None = None  # what the layers of dispatch do, for explain.dispatch
    words: dict[str, Any] | None = None  # what CUDA's words mean in a kernel, while one is run


state = ThreadState()


def is_library_code(frame: FrameType) -> bool:
    """Whether a frame runs code of this library."""
    return frame.f_code.co_filename.startswith(PACKAGE)


def of_user(frame: FrameType) -> FrameType:
    """The first frame, from ``frame`` outwards, that runs code of the user."""
    while frame.f_back is not None and is_library_code(frame):
        frame = frame.f_back
    return frame
