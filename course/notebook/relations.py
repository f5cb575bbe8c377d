"""What the values of a wrong answer have to do with those that are expected.

Rows and columns exchanged, the last entry missing, the right numbers in another dtype: such a
relation is named where it holds in every case that fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorkit as tk
from course.notebook import compare
from course.notebook.runner import Outcome
from course.notebook.slips import Slip

MOST = 10_000
"""Elements of a result that is looked into."""


def first_relation(failed: Sequence[tuple[Outcome, Outcome]], source: str) -> Slip | None:
    """The first relation that holds in every failed case; None if there is none.

    failed: what the answer and a right one did in these cases, the one that is shown in front.
    """
    if any(mine.ended != "returned" or right.ended != "returned" for mine, right in failed):
        return None
    if all(mine.changed for mine, _ in failed):
        return Slip("an argument is changed", "")  # the row of the case says it
    places, parts = [], []
    for mine, right in failed:
        place, *part = _differing(mine.value, right.value)
        places.append(place)
        parts.append(part)
    if any(mine is None or mine is ... for mine, _ in parts):
        return None
    if all(compare.kind(mine) != compare.kind(right) for mine, right in parts):
        return Slip("a value of another kind", "")
    if not all(_is_array(mine) and _is_array(right) for mine, right in parts):
        return None
    arrays = [(_array(mine), _array(right)) for mine, right in parts]
    for name, holds, sentence in _RELATIONS:
        if all(holds(mine, right) for mine, right in arrays):
            words = f"In “{places[0]}”: {sentence}" if places[0] else sentence
            return Slip(name, f"{words}{_cause(name, source)}")
    return None


def _differing(mine: Any, right: Any) -> tuple[str, Any, Any]:
    """The only part in which two containers of the same size differ; else both as they are.

    In front stands the name of the part, if it has one.
    """
    if isinstance(mine, dict) and isinstance(right, dict) and mine.keys() == right.keys():
        parts = [(str(key), mine[key], right[key]) for key in right]
    elif _is_structure(mine) and _is_structure(right) and len(mine) == len(right):
        parts = [("", *pair) for pair in zip(mine, right, strict=True)]
    else:
        return "", mine, right
    different = [part for part in parts if compare.difference(*part[1:]) is not None]
    if len(different) != 1:
        return "", mine, right
    name, one, other = different[0]
    inner, one, other = _differing(one, other)
    return name or inner, one, other


def _is_structure(value: Any) -> bool:
    """Whether this is a sequence of anything but numbers, which is an array."""
    return isinstance(value, list | tuple) and not _is_array(value)


def _is_array(value: Any) -> bool:
    if isinstance(value, tk.Tensor):
        return value.numel() <= MOST
    if isinstance(value, np.ndarray):
        return value.size <= MOST and value.dtype.kind in "biuf"
    entries = value if isinstance(value, list | tuple) else [value]
    return all(type(each) in (int, float) and abs(each) < 2**62 for each in entries)


def _array(value: Any) -> np.ndarray:
    array = value.detach().cpu().numpy() if isinstance(value, tk.Tensor) else np.asarray(value)
    return array.astype(np.int8) if array.dtype == bool else array


def _is_same(mine: np.ndarray, right: np.ndarray) -> bool:
    """Whether shapes and numbers agree, as closely as the coarser dtype allows."""
    if mine.shape != right.shape:
        return False
    names = {array.dtype.name for array in (mine, right)}
    relative, absolute = max(compare.TOLERANCES.get(name, (0.0, 0.0)) for name in names)
    one, other = (array.astype(np.float64) for array in (mine, right))
    return bool(np.allclose(one, other, rtol=relative, atol=absolute, equal_nan=True))


def _same_in_another_dtype(mine: np.ndarray, right: np.ndarray) -> bool:
    return mine.dtype != right.dtype and _is_same(mine, right)


def _same_in_another_shape(mine: np.ndarray, right: np.ndarray) -> bool:
    return mine.shape != right.shape and _is_same(mine.reshape(-1), right.reshape(-1))


def _exchanged(mine: np.ndarray, right: np.ndarray) -> bool:
    return mine.ndim > 1 and _is_same(mine.swapaxes(-1, -2), right)


def _reversed(mine: np.ndarray, right: np.ndarray) -> bool:
    return mine.ndim == 1 and len(mine) > 1 and _is_same(mine[::-1], right)


def _negative(mine: np.ndarray, right: np.ndarray) -> bool:
    return bool(mine.any()) and _is_same(-mine.astype(np.float64), right)


def _rounded_down(mine: np.ndarray, right: np.ndarray) -> bool:
    return not _is_same(mine, right) and _is_same(mine, np.floor(right))


def _rounded(mine: np.ndarray, right: np.ndarray) -> bool:
    exact = right.astype(np.float64)
    return right.size > 0 and any(_is_same(mine, exact.round(digits)) for digits in range(5))


def _one_factor(mine: np.ndarray, right: np.ndarray) -> bool:
    if mine.shape != right.shape or mine.size < 2 or not mine.all() or not right.all():
        return False
    ratios = mine.astype(np.float64) / right
    is_one = bool(np.allclose(ratios, ratios.flat[0], rtol=1e-3))
    return is_one and float(np.ptp(right)) > 0 and not _is_same(mine, right)


def _only(end: int) -> Callable[[np.ndarray, np.ndarray], bool]:
    def holds(mine: np.ndarray, right: np.ndarray) -> bool:
        is_many = right.ndim > 0 and len(right) > 1
        return is_many and (_is_same(mine, right[end]) or _is_same(mine, right[end][None]))

    return holds


def _without_last(mine: np.ndarray, right: np.ndarray) -> bool:
    return right.ndim > 0 and len(right) > 0 and _is_same(mine, right[:-1])


def _without_first(mine: np.ndarray, right: np.ndarray) -> bool:
    return right.ndim > 0 and len(right) > 0 and _is_same(mine, right[1:])


def _one_more(mine: np.ndarray, right: np.ndarray) -> bool:
    return mine.ndim > 0 and right.ndim > 0 and len(mine) > 0 and _is_same(mine[:-1], right)


_RELATIONS: tuple[tuple[str, Callable[[np.ndarray, np.ndarray], bool], str], ...] = (
    ("another dtype", _same_in_another_dtype, "The numbers are right, in another dtype."),
    ("another shape", _same_in_another_shape, "The numbers are right, in another shape."),
    (
        "rows and columns exchanged",
        _exchanged,
        "These are the expected numbers with rows and columns exchanged.",
    ),
    ("in reverse order", _reversed, "The numbers are right and stand in reverse order."),
    ("the opposite sign", _negative, "Each number has the opposite sign."),
    (
        "rounded down",
        _rounded_down,
        "The numbers are those expected, rounded down to whole numbers.",
    ),
    ("rounded", _rounded, "The numbers are those expected, rounded."),
    ("only the first", _only(0), "This is the first entry alone of what is expected."),
    ("only the last", _only(-1), "This is the last entry alone of what is expected."),
    ("the last is missing", _without_last, "The last entry is missing."),
    ("the first is missing", _without_first, "The first entry is missing."),
    ("one entry too many", _one_more, "There is one entry too many, at the end."),
    ("a factor", _one_factor, "In each case all numbers are the expected ones, times one factor."),
)
"""Name, relation between an answer's numbers and those expected, sentence."""

_CAUSES = {
    "another dtype": {
        r"\.tolist\(\)|\.item\(\)": "Python numbers have forgotten the dtype of the tensor.",
        r"\.(float|double|half|long|int)\(\)": "A cast makes one dtype of all.",
        r"tk\.(zeros|ones|empty|eye|rand)\((?!.*dtype)": (
            "`tk.zeros`, `tk.ones` and `tk.eye` make float32 unless they are told a `dtype`."
        ),
        r"\bnp\.|numpy\(": "NumPy computes in float64.",
    },
    "another shape": {
        "keepdim=True": "`keepdim=True` keeps a dimension of size 1.",
        r"unsqueeze\(|\[None|None\]": "`unsqueeze` and `None` as an index add a dimension.",
    },
    "a factor": {
        r"\bsum\(": "Is a sum taken where a mean is asked for?",
        r"\bmean\(": "Is a mean taken where a sum is asked for?",
    },
    "rounded down": {"//": "`//` rounds down; `/` divides."},
    "only the first": {"return": "Does every entry come to its turn before the `return`?"},
}


def _cause(name: str, source: str) -> str:
    """What in the source makes this, where that is known."""
    causes = _CAUSES.get(name, {})
    return next((f" {words}" for code, words in causes.items() if re.search(code, source)), "")
