"""What a whole Python process shares, kept while an answer runs and put back afterwards.

An answer may change the default dtype, leave recording off, draw random numbers, put a function of
its own in the place of one of the library. Neither the next case nor the learner's other cells may
notice.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorkit as tk
from tensorkit.printing import get_printoptions

Setting = tuple[Callable[[], Any], Callable[[Any], object]]
"""How a setting is read, and how it is set."""


def _modes() -> tuple[bool, bool]:
    return tk.is_grad_enabled(), tk.is_inference_mode_enabled()


def _set_modes(modes: tuple[bool, bool]) -> None:
    is_recording, is_inference = modes
    tk.inference_mode(is_inference).__enter__()
    tk.set_grad_enabled(is_recording)


def _hooks() -> list[Any]:
    return [sys.excepthook, sys.unraisablehook, threading.excepthook, sys.gettrace()]


def _set_hooks(hooks: list[Any]) -> None:
    sys.excepthook, sys.unraisablehook, threading.excepthook, trace = hooks
    sys.settrace(trace)


SETTINGS: dict[str, Setting] = {
    "the default dtype": (tk.get_default_dtype, tk.set_default_dtype),
    "the default device": (tk.get_default_device, tk.set_default_device),
    "whether operations are recorded": (_modes, _set_modes),
    "tensorkit's print options": (get_printoptions, lambda options: tk.set_printoptions(**options)),
    "NumPy's print options": (np.get_printoptions, lambda options: np.set_printoptions(**options)),
    "NumPy's error handling": (np.geterr, lambda options: np.seterr(**options)),
    "the recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    "the hooks of Python": (_hooks, _set_hooks),
    "the working directory": (os.getcwd, os.chdir),
}
"""What an answer should leave as it is, in words that follow "your code changes"."""


def _stream() -> tuple[Any, ...]:
    """Where tensorkit's random numbers stand."""
    source = tk.default_generator
    twister = source._twister
    state = None if twister is None else twister.state
    return source._seed, source._spare_normal, twister, state


def _go_on_from(stream: tuple[Any, ...]) -> None:
    source = tk.default_generator
    source._seed, source._spare_normal, source._twister, state = stream
    if state is not None:
        source._twister.state = state


def _numpys() -> Any:
    return np.random.mtrand._rand._bit_generator


def _set_numpys(state: Any) -> None:
    _numpys().state = state


_RANDOM: tuple[Setting, ...] = (
    (_stream, _go_on_from),
    (lambda: _numpys().state, _set_numpys),
    (random.getstate, random.setstate),
)


def random_state() -> list[Any]:
    """Where the streams of random numbers stand: tensorkit's, NumPy's and Python's.

    Who draws numbers changes them, and that is no mistake: it is put back and not reported.
    """
    return [read() for read, _ in _RANDOM]


def set_random_state(state: list[Any]) -> None:
    """Go on with the random numbers from where `random_state` stood."""
    for (_, put), value in zip(_RANDOM, state, strict=True):
        put(value)


HOMES: dict[str, Any] = {
    "builtins": builtins,
    "math": math,
    "np": np,
    "tk": tk,
    "tk.Tensor": tk.Tensor,
    "tk.nn.functional": tk.nn.functional,
    "tk.autograd": tk.autograd,
}
"""Where functions live that an answer might replace."""


@contextlib.contextmanager
def restored() -> Iterator[list[str]]:
    """Put back at the end what the body changes, and fill the list with words for it.

    Random numbers are left alone: see `random_state`.

    >>> with restored() as changed:
    ...     tk.set_default_dtype(tk.float64)
    >>> changed, tk.get_default_dtype()
    (['the default dtype'], torch.float32)
    """
    changed: list[str] = []
    before = {words: read() for words, (read, _) in SETTINGS.items()}
    names = {home: dict(vars(where)) for home, where in HOMES.items()}
    try:
        yield changed
    finally:
        changed += _names_put_back(names)
        for words, (read, put) in SETTINGS.items():
            if read() != before[words]:
                put(before[words])
                changed.append(words)


def _names_put_back(names: dict[str, dict[str, Any]]) -> list[str]:
    """The names that meant something else.

    What came new into a module disturbs nobody; in a class it hides what the class inherits.
    """
    found = []
    for home, known in names.items():
        where = HOMES[home]
        now = dict(vars(where))
        if _is_same(now, known):
            continue
        for name, value in known.items():
            if name not in now or now[name] is not value:
                setattr(where, name, value)
                found.append(f"`{name}`" if home == "builtins" else f"`{home}.{name}`")
        for name in now.keys() - known.keys() if isinstance(where, type) else ():
            delattr(where, name)
            found.append(f"`{home}.{name}`")
    return found


def _is_same(now: Any, known: dict[str, Any]) -> bool:
    try:
        return bool(now == known)  # of values that are the same object Python asks no more
    except Exception:
        return False


def sentence(changed: list[str]) -> str:
    """What a report says about it."""
    *others, last = dict.fromkeys(changed)
    words = f"{', '.join(others)} and {last}" if others else last
    return f"Your code changes {words} and leaves it so. After the check it is as it was before."
