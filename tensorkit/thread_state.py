"""What a thread has switched on: ``state`` has values of its own in every thread."""

import threading
from typing import Any


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
