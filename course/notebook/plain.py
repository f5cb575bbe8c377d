"""Makes plain data of whatever a learner's code returned.

An object of the learner's own may lie or never end in `__eq__`, `__len__`, `__repr__`, `__class__`.
So it is looked at once, here, while the time limit runs; what compares and shows values afterwards
meets only types that are known, and `Opaque` for all others.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass
from types import BuiltinFunctionType, EllipsisType, FunctionType, NoneType
from typing import Any

import numpy as np

import tensorkit as tk
from course.shared.errors import TimeLimit

MOST_ENTRIES = 10_000
"""The most entries of a container that is rebuilt; a larger one is only described."""

MOST_BITS = 4000

_KEPT = {
    bool,
    bytes,
    complex,
    float,
    int,
    str,
    type,
    range,
    slice,
    BuiltinFunctionType,
    EllipsisType,
    FunctionType,
    NoneType,
    tk.Size,
    tk.Tensor,
    tk.device,
    tk.dtype,
}


@dataclass(frozen=True)
class Opaque:
    """An object that is not looked into: what it is, and its text."""

    kind: str
    text: str

    def __repr__(self) -> str:
        return self.text


class Seen(dict[str, Any]):
    """What an exercise has observed of an answer; a plain dict is one that the answer returned."""


def plain(value: Any, depth: int = 6) -> Any:
    """The value as plain data: containers rebuilt, tensors and numbers kept, the rest `Opaque`.

    >>> plain([1, (2.5, None)])
    [1, (2.5, None)]
    """
    kind = type(value)
    if kind is int and value.bit_length() > MOST_BITS:  # Python itself refuses to print these
        return Opaque("a whole number", f"<a whole number of {value.bit_length()} bits>")
    if kind in _KEPT:
        return value
    if issubclass(kind, np.generic) and kind.__module__ == "numpy":
        return value
    if kind is np.ndarray and value.dtype.kind != "O":
        return value
    if issubclass(kind, Opaque):  # it stays where it is
        return Opaque(value.kind, value.text)
    if issubclass(kind, int):  # an IntEnum, say
        return plain(int.__add__(value, 0))
    if issubclass(kind, float):
        return float.__add__(value, 0.0)
    for base in (list, tuple, dict):
        if issubclass(kind, base):
            return _rebuilt(base, value, depth)
    return Opaque(named(kind), repr_of(value))


def _rebuilt(base: type, value: Any, depth: int) -> Any:
    # the methods of the base class: those of a subclass may do anything
    length = base.__len__(value)  # type: ignore[attr-defined]
    if length > MOST_ENTRIES or depth == 0:
        return Opaque(f"a {base.__name__} of length {length}", f"<a {base.__name__} of {length}>")
    if base is dict:
        rebuilt = {_key(key): plain(entry, depth - 1) for key, entry in dict.items(value)}
        return Seen(rebuilt) if type(value) is Seen else rebuilt
    return base(plain(entry, depth - 1) for entry in base.__iter__(value))  # type: ignore[attr-defined]


def _key(key: Any) -> Any:
    if type(key) in (bool, int, float, str, NoneType):
        return key
    return repr_of(key)


def named(kind: type) -> str:
    """A kind of object in words: `a list`."""
    name = type.__getattribute__(kind, "__name__")
    return f"{'an' if name[:1].lower() in tuple('aeiou') else 'a'} {name}"


def repr_of(value: Any) -> str:
    """`repr`, whatever a learner's class makes of it."""
    try:
        text = repr(value)
    except (KeyboardInterrupt, TimeLimit):
        raise
    except BaseException as error:
        return f"<{named(type(value))} whose __repr__ raises {type(error).__name__}>"
    return str.__str__(text)[:1000]


def str_of(value: object) -> str:
    """`str` of an exception or a warning, whatever a learner's class makes of it."""
    try:
        return str.__str__(str(value))
    except (KeyboardInterrupt, TimeLimit):
        raise
    except BaseException:
        return ""


def source_of(value: Any) -> str | None:
    """The text of a function, a kernel or a class; None for all else, and where it is in no file.

    The text of a class is what it has now, its bases first: methods, wherever they were written,
    and in place of any other attribute a line with `...`.

    >>> class Greeting:
    ...     pass
    >>> Greeting.language = "en"
    >>> print(source_of(Greeting))
    class Greeting:
        language = ...
    """
    if type(value) is type:
        members = [_member(*item) for kind in value.mro()[-2::-1] for item in vars(kind).items()]
        body = "\n".join(filter(None, members)) or "pass"
        return f"class {value.__name__}:\n{textwrap.indent(body, '    ')}"
    function = getattr(value, "__wrapped__", value)  # of a kernel
    if type(function) is not FunctionType:
        return None
    try:
        return inspect.getsource(function)
    except (OSError, TypeError, SyntaxError):
        return None


def _member(name: str, value: Any) -> str:
    """The text of an attribute of a class; "" if every class has it."""
    text = textwrap.dedent(source_of(value) or "") if type(value) is FunctionType else ""
    if text.startswith(("def ", "@")):
        return text
    return "" if name in vars(_Empty) else f"{name} = ..."


class _Empty:
    """A class without attributes but those that every class has."""
