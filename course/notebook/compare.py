"""How two values differ, in words for a learner; `None` if they do not.

Values are what exercises return: tensors, arrays, numbers, strings, sequences, dictionaries,
dtypes. What the learner's code made has become plain data before (`plain`), but may be very large.
"""

from __future__ import annotations

import itertools
import math
import re
import reprlib
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tensorkit as tk
from course.notebook.plain import Opaque, Seen, str_of

SHOWN = 300
"""Characters of a value that a report shows."""
MOST_PRINTED = 10_000
"""Numbers of a tensor that `repr` may write before the text is cut to `SHOWN` characters."""


def difference(got: Any, expected: Any) -> str | None:
    """The first thing in which `got` differs from `expected`, as a sentence; None if in nothing.

    Numbers agree within PyTorch's default tolerances for their dtype; dtypes and shapes must be
    equal; lists and tuples count as the same.

    >>> difference([4, 1], (4, 1)) is None
    True
    >>> difference(12, 3)
    'It is 12 where 3 is expected.'
    """
    if got is None and expected is not None:
        return "It is None; a value is expected."
    if got is ... and expected is not ...:
        return "Here is still a `...`."
    if kind(got) in _CALLABLE and isinstance(expected, str):
        return "It is a function; expected is a string. `__name__` is the name of a function."
    if kind(got) in _CALLABLE and kind(expected) not in _CALLABLE:
        return "It is a function that nobody called: are its parentheses missing?"
    if (words := _unfinished(got)) is not None:
        return words
    for types, compared in _BY_TYPE:
        if isinstance(expected, types):
            return compared(got, expected)
    if type(got) is not type(expected):
        return f"It is {kind(got)}; expected is {kind(expected)}."
    return None if got == expected else f"It is {show(got)} where {show(expected)} is expected."


def _unfinished(got: Any) -> str | None:
    """About what `async def` and `yield` make of a function's result."""
    kind_of = kind(got) if isinstance(got, Opaque) else ""
    if kind_of == "a coroutine":
        return "It is a coroutine, which `async def` makes of a function. Write `def`."
    if kind_of == "a generator":
        return "It is a generator, which `yield` makes of a function. Give a value back: `return`."
    return None


_CALLABLE = ("a function", "a method", "a builtin_function_or_method")


def kind(value: Any) -> str:
    """What sort of thing a value is, in words: "a tensor", "a list", "the type int"."""
    if isinstance(value, Opaque):
        return value.kind
    if isinstance(value, tk.Tensor):
        return "a tensor"
    if isinstance(value, np.ndarray):
        return "a NumPy array"
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the type {value.__name__}"
    names = {"str": "a string", "bool": "a bool", "int": "a whole number", "function": "a function"}
    name = type(value).__name__
    article = "an" if name[:1].lower() in tuple("aeiou") else "a"
    return names.get(name, f"{article} {name}")


def show(value: Any, limit: int = SHOWN) -> str:
    """`repr(value)` of plain data, without addresses, cut to `limit` characters."""
    if isinstance(value, tk.Tensor | np.ndarray):
        text = _printed(value)
    elif isinstance(value, dict):
        first = itertools.islice(value.items(), 12)
        rows = (
            (key, _SHORT.repr(entry) if type(entry) is dict else show(entry, limit))
            for key, entry in first
        )
        text = "\n".join(f"{key}: {shown}" for key, shown in rows)
    else:
        text = _SHORT.repr(value)
    return cut(re.sub(r" at 0x[0-9a-fA-F]+", "", text), limit)


def as_code(value: Any) -> str:
    """The value as a learner would type it: `tk.tensor([1, 2])`, `tk.float32`.

    What is too long to be typed is described instead, in angle brackets.
    """
    if type(value) in (list, tuple):
        inner = ", ".join([*map(as_code, value[:12]), *["..."] * (len(value) > 12)])
        if type(value) is list:
            return cut(f"[{inner}]", SHOWN)
        return cut(f"({inner},)" if len(value) == 1 else f"({inner})", SHOWN)
    if type(value) is dict:
        return cut(f"{{{', '.join(f'{k!r}: {as_code(v)}' for k, v in value.items())}}}", SHOWN)
    text = show(value, 10 * SHOWN).replace("torch.", "tk.")
    if not isinstance(value, tk.Tensor | np.ndarray):
        return cut(text, SHOWN)
    if len(text) > SHOWN:
        return _described(value)
    return f"tk.{text}" if isinstance(value, tk.Tensor) else f"np.{text}"


def _described(value: tk.Tensor | np.ndarray) -> str:
    dtype = str(value.dtype).removeprefix("torch.")
    return f"<{kind(value)} of shape {list(value.shape)}, {dtype}>"


def _printed(value: Any) -> str:
    """`repr(value)`; a description of an array with so many axes that its text would be too long.

    Of each axis `repr` writes the ends only, but of ten axes that are millions of numbers.
    """
    if isinstance(value, tk.Tensor | np.ndarray):
        ends = 6  # the three numbers at either end of an axis
        if math.prod(min(size, ends) for size in value.shape) > MOST_PRINTED:
            return _described(value)
    return repr(value)


_FILE = re.compile(r"(?<!\S)\S+\.py, ")


def text_of(error: object) -> tuple[str, str]:
    """The first line of an exception's message and what follows it, whatever its `__str__` does."""
    # without the temporary file of a cell; the pattern finds single words, in linear time
    text = _FILE.sub(
        lambda match: "" if "ipykernel_" in match[0] else match[0], str_of(error)[:5000]
    )
    return first_and_rest(text)


def first_and_rest(text: str) -> tuple[str, str]:
    """The first line of a message and what follows it, whose lines may stand below one another."""
    first, *following = text.strip().splitlines() or [""]
    lines = [line.rstrip() for line in following if line.strip()]
    return cut(first.strip(), SHOWN), cut(textwrap.dedent("\n".join(lines)), SHOWN)


def cut(text: str, limit: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 5] + " ... "


class _Short(reprlib.Repr):
    """Long containers are cut while they are written, not after."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = SHOWN
        self.maxlist = self.maxtuple = self.maxdict = 12
        self.maxlevel = 5
        self._room = 0

    def repr(self, x: Any) -> str:
        self._room = 10 * SHOWN  # more is never shown
        return super().repr(x)

    def repr1(self, x: Any, level: int) -> str:
        if self._room < 0:
            return "..."
        text = super().repr1(x, level)
        self._room -= 0 if isinstance(x, list | tuple | dict) else len(text)
        return text

    def repr_instance(self, x: Any, level: int) -> str:
        return _printed(x)  # reprlib's own hides what __repr__ raises and shows an address


_SHORT = _Short()


def _tensors(got: Any, expected: tk.Tensor) -> str | None:
    if isinstance(got, np.ndarray):
        return f"It is a NumPy array; expected is a tensor{_made_by(got, tk.from_numpy, expected)}."
    if not isinstance(got, tk.Tensor):
        is_sequence = isinstance(got, list | tuple)
        has_tensors = is_sequence and any(isinstance(entry, tk.Tensor) for entry in got)
        made = _made_by(got, tk.stack if has_tensors else tk.tensor, expected)
        return f"It is {kind(got)}; expected is a tensor{made}."
    if tuple(got.shape) != tuple(expected.shape):
        return f"Its shape is {list(got.shape)}; expected is {list(expected.shape)}."
    if got.dtype != expected.dtype:
        return f"Its dtype is {got.dtype}; expected is {expected.dtype}."
    return _elements(got.detach().cpu().numpy(), expected.detach().cpu().numpy())


def _made_by(got: Any, function: Callable[[Any], tk.Tensor], expected: tk.Tensor) -> str:
    """What makes a tensor of this value, if it does and the shape is the expected one."""
    if not isinstance(got, np.ndarray | list | tuple | float) or len(show(got)) >= SHOWN:
        return ""
    entries = got if isinstance(got, list | tuple) else ()
    if any(isinstance(entry, tk.Tensor) and entry.numel() > MOST_PRINTED for entry in entries):
        return ""  # a copy of these entries may be larger than memory
    try:
        fits = tuple(function(got).shape) == tuple(expected.shape)
    except Exception:  # a list of words, say
        return ""
    if not fits:
        return ""
    return f": `tk.{function.__name__}(...)` makes one of it"


def _arrays(got: Any, expected: np.ndarray) -> str | None:
    if not isinstance(got, np.ndarray):
        return f"It is {kind(got)}; expected is a NumPy array."
    if got.shape != expected.shape:
        return f"Its shape is {got.shape}; expected is {expected.shape}."
    if got.dtype != expected.dtype:
        return f"Its dtype is {got.dtype}; expected is {expected.dtype}."
    return _elements(got, expected)


TOLERANCES = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""Relative and absolute, by dtype: those of torch.testing.assert_close."""


def _elements(got: np.ndarray, expected: np.ndarray) -> str | None:
    is_equal = got == expected
    if not is_equal.all() and expected.dtype.name in TOLERANCES:
        relative, absolute = TOLERANCES[expected.dtype.name]
        is_equal = np.isclose(
            got.astype(np.float64),
            expected.astype(np.float64),
            rtol=relative,
            atol=absolute,
            equal_nan=True,
        )
    if is_equal.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~is_equal)[0])
    given, wanted = got[index].item(), expected[index].item()
    place = f"at {list(index)} " if index else ""
    subject = (
        f"{int((~is_equal).sum())} of {is_equal.size} elements differ; the first "
        if index
        else "It "
    )
    return f"{subject}{place}is {_apart(given, wanted)} is expected."


def _apart(given: Any, wanted: Any) -> str:
    """Both numbers, with as many digits as it takes to tell them apart.

    >>> _apart(1.0, 1.5), _apart(48.505322, 48.505323)
    ('1 where 1.5', '48.505322 where 48.505323')
    """
    for digits in (6, 9, 12, 17):
        given_text, wanted_text = _plain(given, digits), _plain(wanted, digits)
        if given_text != wanted_text:
            break
    return f"{given_text} where {wanted_text}"


def _plain(number: Any, digits: int) -> str:
    return f"{number:.{digits}g}" if isinstance(number, float) else repr(number)


def _exact(got: Any, expected: Any, types: tuple[type, ...], words: str) -> str | None:
    if isinstance(got, tk.Tensor):
        return f"It is a tensor; expected is {words}.{_taken_out(got)}"
    if not isinstance(got, types) or (isinstance(got, bool) and bool not in types):
        return f"It is {kind(got)}, {show(got, 80)}; expected is {words}."
    if got == expected:
        return None
    return f"It is {show(got, 80)} where {show(expected, 80)} is expected."


def _taken_out(got: tk.Tensor) -> str:
    """What helps with a tensor where a number is expected; `item` of several elements raises."""
    if got.numel() == 1:
        return " (`.item()` takes the number out of a tensor.)"
    return f" It has {got.numel()} elements."


def _number(got: Any, expected: float) -> str | None:
    if isinstance(got, tk.Tensor):
        return f"It is a tensor; expected is a number.{_taken_out(got)}"
    if isinstance(got, bool) or not isinstance(got, int | float | np.integer | np.floating):
        return f"It is {kind(got)}, {show(got, 80)}; expected is a number."
    try:
        float(got)
    except OverflowError:
        return f"It is {show(got, 80)} where {_plain(expected, 6)} is expected."
    if math.isnan(got) and math.isnan(expected):
        return None
    if math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-9):
        return None
    return f"It is {_apart(float(got), expected)} is expected."


def _sequences(got: Any, expected: list[Any] | tuple[Any, ...]) -> str | None:
    if not isinstance(got, list | tuple):
        word = "tuple" if isinstance(expected, tuple) else "list"
        return f"It is {kind(got)}; expected is a {word}."
    if len(got) != len(expected):
        return f"Its length is {len(got)}; expected is {len(expected)}."
    for position, (entry, wanted) in enumerate(zip(got, expected, strict=True)):
        sentence = difference(entry, wanted)
        if sentence is not None:
            return _within(f"Entry {position}", sentence)
    return None


def _mappings(got: Any, expected: Mapping[Any, Any]) -> str | None:
    if isinstance(expected, Seen) and not isinstance(got, Seen):
        return _unseen(got, expected)
    if not isinstance(got, Mapping):
        return f"It is {kind(got)}; expected is a dictionary."
    is_looked_at = isinstance(expected, Seen)  # then the entries before show why one is missing
    missing = [key for key in expected if key not in got]
    if missing and not is_looked_at:
        return f"The entry {show(missing[0], 80)} is missing."
    for key, value in expected.items():
        sentence = difference(got.get(key, value), value)
        if sentence is not None:
            return _within(str(key), sentence)
    if missing:
        return f"There is no {missing[0]}."
    more = [key for key in got if key not in expected]
    return f"The entry {show(more[0], 80)} does not belong there." if more else None


def _unseen(got: Any, expected: Seen) -> str:
    """A sentence about an answer that returned something else than what the exercise looks at."""
    if "raises" in expected:
        return f"It is {kind(got)}; expected is a {expected['raises']} that is raised."
    asked = next((value for value in expected.values() if type(value) is not bool), None)
    return difference(got, asked) or f"It is {kind(got)}, and not what is asked for."


def _within(place: str, sentence: str) -> str:
    """A difference inside a container, with the way to it: "values, entry 0: It is 2 where"."""
    return f"{place}, e{sentence[1:]}" if sentence.startswith("Entry ") else f"{place}: {sentence}"


def _truths(got: Any, expected: bool) -> str | None:
    return _exact(got, bool(expected), (bool, np.bool_), "True or False")


def _whole_numbers(got: Any, expected: int) -> str | None:
    return _exact(got, int(expected), (int, np.integer), "a whole number")


def _strings(got: Any, expected: str) -> str | None:
    return _exact(got, expected, (str,), "a string")


_BY_TYPE: list[tuple[Any, Callable[[Any, Any], str | None]]] = [
    (tk.Tensor, _tensors),
    (np.ndarray, _arrays),
    (bool | np.bool_, _truths),  # before the whole numbers: a bool is an int to Python
    (int | np.integer, _whole_numbers),
    (float | np.floating, _number),
    (str, _strings),
    (Mapping, _mappings),
    (list | tuple, _sequences),
]
