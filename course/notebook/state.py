"""What a whole Python process shares, kept while an answer runs and put back afterwards.

An answer may change the default dtype, leave recording off, draw random numbers, put a function of
its own in the place of one of the library. Neither the next case nor the learner's other cells may
notice.
"""

from __future__ import annotations

import builtins
import contextlib
import decimal
import gc
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
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
    hooks = [sys.excepthook, sys.unraisablehook, threading.excepthook]
    return [*hooks, sys.gettrace(), sys.getprofile(), threading.gettrace()]


def _set_hooks(hooks: list[Any]) -> None:
    sys.excepthook, sys.unraisablehook, threading.excepthook, *traces = hooks
    trace, profile, of_threads = traces
    sys.settrace(trace)
    sys.setprofile(profile)
    threading.settrace(of_threads)


def _interrupts() -> Any:
    return signal.getsignal(signal.SIGINT)


def _set_interrupts(handler: Any) -> None:
    if threading.current_thread() is threading.main_thread():  # no other may
        signal.signal(signal.SIGINT, handler)


def _environment() -> tuple[Any, Any]:
    """The mapping, which may be replaced, and its entries, encoded: to copy these is quick."""
    return os.environ, getattr(os.environ, "_data", {}).copy()


def _set_environment(saved: tuple[Any, Any]) -> None:
    os.environ, encoded = saved
    variables = {os.environ.decodekey(k): os.environ.decodevalue(v) for k, v in encoded.items()}
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _collecting() -> tuple[bool, tuple[int, int, int]]:
    return gc.isenabled(), gc.get_threshold()


def _set_collecting(saved: tuple[bool, tuple[int, int, int]]) -> None:
    is_on, threshold = saved
    (gc.enable if is_on else gc.disable)()
    gc.set_threshold(*threshold)


def _levels() -> tuple[int, int]:
    return logging.root.manager.disable, logging.root.level


def _set_levels(levels: tuple[int, int]) -> None:
    disabled, of_the_root = levels
    logging.disable(disabled)
    logging.root.setLevel(of_the_root)


def _warnings() -> tuple[list[Any], Any]:
    return [*warnings.filters], warnings.showwarning


def _set_warnings(saved: tuple[list[Any], Any]) -> None:
    warnings.filters[:], warnings.showwarning = saved  # type: ignore[index]


def _set_path(folders: list[str]) -> None:
    sys.path[:] = folders


def _digits() -> int:
    return decimal.getcontext().prec


def _set_digits(digits: int) -> None:
    decimal.getcontext().prec = digits


SETTINGS: dict[str, Setting] = {
    "the default dtype": (tk.get_default_dtype, tk.set_default_dtype),
    "the default device": (tk.get_default_device, tk.set_default_device),
    "whether operations are recorded": (_modes, _set_modes),
    "tensorkit's print options": (get_printoptions, lambda options: tk.set_printoptions(**options)),
    "NumPy's print options": (np.get_printoptions, lambda options: np.set_printoptions(**options)),
    "NumPy's error handling": (np.geterr, lambda options: np.seterr(**options)),
    "NumPy's function for errors": (np.geterrcall, np.seterrcall),
    "the recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    "the hooks of Python": (_hooks, _set_hooks),
    "the working directory": (os.getcwd, os.chdir),
    "`sys.stdin`": (lambda: sys.stdin, lambda stream: setattr(sys, "stdin", stream)),
    "the environment variables": (_environment, _set_environment),
    "what an interrupt does": (_interrupts, _set_interrupts),
    "when garbage is collected": (_collecting, _set_collecting),
    "which levels are logged": (_levels, _set_levels),
    "where modules are looked for": (lambda: [*sys.path], _set_path),
    "the digits of `decimal`": (_digits, _set_digits),
    "which warnings are shown": (_warnings, _set_warnings),
}
"""What an answer should leave as it is, in words that follow "your code changes"."""


def _generator_state() -> tuple[Any, ...]:
    """The state of tensorkit's generator."""
    source = tk.default_generator
    twister = source._twister
    state = None if twister is None else twister.state
    return source._seed, source._spare_normal, twister, state


def _set_generator_state(saved: tuple[Any, ...]) -> None:
    source = tk.default_generator
    source._seed, source._spare_normal, source._twister, state = saved
    if state is not None:
        source._twister.state = state


def _numpy_generator() -> Any:
    return np.random.mtrand._rand._bit_generator


def _set_numpy_state(state: Any) -> None:
    _numpy_generator().state = state


_RANDOM: tuple[Setting, ...] = (
    (_generator_state, _set_generator_state),
    (lambda: _numpy_generator().state, _set_numpy_state),
    (random.getstate, random.setstate),
)


def random_state() -> list[Any]:
    """The states of the random generators of tensorkit, NumPy and Python.

    To draw numbers is no mistake: the states are put back and not reported.
    """
    return [read() for read, _ in _RANDOM]


def set_random_state(state: list[Any]) -> None:
    """Put the generators back into the states that `random_state` gave."""
    for (_, put), value in zip(_RANDOM, state, strict=True):
        put(value)


OWNERS: dict[str, Any] = {}
"""The modules and classes whose names an answer might replace, by what a learner calls them."""
_KEPT: dict[str, dict[str, Any]] = {}
"""What these held before any code of a learner ran."""
_OF_PYTHON = vars(builtins)
_UNSAID: list[str] = []
"""Names that were put back and that no report has said yet."""


def keep_names() -> None:
    """Keep what Python, NumPy, tensorkit and the course offer, to be put back: at their import."""
    for name in ("cuda", "library", "load", "nn", "optim", "utils"):
        getattr(tk, name)  # what is loaded later would be new
    for name in tk.autograd.__all__:
        getattr(tk.autograd, name)
    modules = {"np": np, "np.linalg": np.linalg, "np.random": np.random}
    modules |= {path: import_module(path) for path in _MODULES}
    for path, module in sorted(sys.modules.items(), key=lambda entry: entry[0].count(".")):
        first, dot, inner = path.partition(".")
        if (first == "tensorkit" and inner in _PUBLIC) or path in _OF_COURSE:
            modules["tk" + dot + inner if first == "tensorkit" else path] = module
    OWNERS.update(modules)
    for path, module in modules.items():
        for name, value in vars(module).items():
            is_ours = isinstance(value, type) and value.__module__.startswith(_OURS)
            is_ours = (is_ours and name[0] != "_") or type(value).__module__ == "course.engine"
            if is_ours and not any(value is owner for owner in OWNERS.values()):
                OWNERS[f"{path}.{name}"] = value
    _KEPT.update({path: dict(vars(owner)) for path, owner in OWNERS.items()})


_PUBLIC = {
    "",
    "autograd",
    "backends",
    "cuda",
    "explain",
    "library",
    "linalg",
    "nn",
    "optim",
    "utils",
}
_PUBLIC |= {"nn.functional", "nn.init", "utils.data", "viz"}
"""The modules of tensorkit that learners use. To compare all of them takes three times as long."""
_MODULES = ["cmath", "collections", "copy", "decimal", "fractions", "functools", "itertools"]
_MODULES += ["json", "math", "operator", "random", "re", "statistics", "string", "textwrap", "time"]
"""Python's modules that answers use; not those in which other programs exchange functions: a
notebook in `sys` and `threading`, a debugger in `os` and `signal`."""
_OFTEN = ["tk", "tk.Tensor", "tk.nn", "tk.nn.functional", "tk.optim", "np"]
_OFTEN += ["decimal", "math", "random"]
"""What grading compares after each case; the rest it compares after each cell."""
_OF_COURSE = ("course", "course.engine")
_OURS = ("tensorkit", "course.engine")


@contextlib.contextmanager
def restored(*, compares_all: bool = True) -> Iterator[list[str]]:
    """Put back at the end what the body changes, and fill the list with words for it.

    The list also has the names that `put_names_back` put back before. Random numbers are left as
    they are: see `random_state`.

    compares_all: False compares only the names that are often replaced; the comparison after the
    next cell finds the others.

    >>> with restored() as changed:
    ...     tk.set_default_dtype(tk.float64)
    >>> changed, tk.get_default_dtype()
    (['the default dtype'], torch.float32)
    """
    changed: list[str] = []
    before = {words: read() for words, (read, _) in SETTINGS.items()}
    of_python = _OF_PYTHON.copy()  # a kernel gives each cell an `input` of its own
    try:
        yield changed
    finally:
        # Python's own first, because all that follows calls them, and so without a call of any
        were = _OF_PYTHON.copy()
        _OF_PYTHON.update(of_python)
        changed += [f"`{name}`" for name, value in of_python.items() if were.get(name) is not value]
        put_names_back(OWNERS if compares_all else _OFTEN)
        changed += _UNSAID
        _UNSAID.clear()
        for words, (read, put) in SETTINGS.items():
            if read() != before[words]:
                put(before[words])
                changed.append(words)


def put_names_back(paths: Iterable[str] = OWNERS) -> None:
    """Put back the functions that were replaced; the next `restored` gives their names.

    A new name stays, as nothing of the library calls it. It is removed where it hides a method that
    its class inherits.

    paths: the owners that are compared.
    """
    if _is_same([vars(OWNERS[path]) for path in paths], [_KEPT[path] for path in paths]):
        return
    for path, known in _KEPT.items():
        owner = OWNERS[path]
        now = dict(vars(owner))
        for name, value in known.items():
            if name in now and (now[name] is value or _is_equal(now[name], value)):
                continue
            if name[0] == "_" != name[-1] and name in now:  # a note of the library's own
                known[name] = now[name]
            else:
                setattr(owner, name, value)
                _UNSAID.append(f"`{path}.{name}`")
        for name in now.keys() - known.keys():
            bases = owner.__mro__[1:] if isinstance(owner, type) else ()
            if any(hasattr(vars(base).get(name), "__get__") for base in bases):
                delattr(owner, name)
                _UNSAID.append(f"`{path}.{name}`")
            elif isinstance(now[name], ModuleType):  # loaded since
                known[name] = now[name]


def _is_equal(now: object, known: object) -> bool:
    """Whether both are the same number or the same tuple: `time.tzset` makes its names anew."""
    return type(now) in (int, tuple) and type(now) is type(known) and _is_same(now, known)


def _is_same(now: object, known: object) -> bool:
    """Whether both hold the same objects, or equal ones; no error where a comparison raises one."""
    try:
        return bool(now == known)  # calls no `__eq__` where both are one object
    except Exception:
        return False


def sentence(changed: list[str]) -> str:
    """The sentence of a report about what was changed."""
    *names, last = dict.fromkeys(changed)
    words = f"{', '.join(names)} and {last}" if names else last
    return f"Your code changes {words} and leaves it so. After the check it is as it was before."
