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
from course.notebook.answer_tree import Slip
from course.notebook.plain import Seen
from course.notebook.runner import Outcome

MOST = 10_000
"""The most elements of a result that is compared."""


def first_relation(failed: Sequence[tuple[Outcome, Outcome]], source: str) -> Slip | None:
    """The first relation that holds in every failed case with a result; None if there is none.

    failed: what the answer and a right one did in these cases, the one that is shown in front.
    """
    returned = [pair for pair in failed if all(outcome.ended == "returned" for outcome in pair)]
    if not returned or returned[0] is not failed[0]:
        return None
    if all(given.changed for given, _ in returned):
        position, change = next(iter(returned[0][0].changed.items()))
        of = f"`{change}` of a" if change != "values" else "A"
        words = f"{of}rgument {position + 1} is not as it was before the call."
        return Slip("an argument is changed", words)
    places, parts = [], []
    for given, right in returned:
        place, *part = _differing(given.value, right.value)
        places.append(place)
        parts.append(part)
    if any(given is ... for given, _ in parts):
        return None
    slip = _of_other_kinds(parts, places) or _of_numbers(parts, source)
    if slip is None:
        return None
    place = places[0] if len(set(places)) == 1 else ""
    place_said = f"In “{place}”: " if place and place not in slip.sentence else ""
    if len(returned) < len(failed):
        place_said = f"Some of the failed cases raise an error. About the others: {place_said}"
    return Slip(slip.name, f"{place_said}{slip.sentence}")


def _of_numbers(parts: Sequence[Sequence[Any]], source: str) -> Slip | None:
    if not all(_is_array(given) and _is_array(right) for given, right in parts):
        return None
    arrays = [(_array(given), _array(right)) for given, right in parts]
    for name, holds, sentence in _RELATIONS:
        if all(holds(given, right) for given, right in arrays):
            cause = _cause(name, *arrays[0], source)
            if cause or name not in _SAID_BY_THE_ROW:
                return Slip(name, f"{sentence}{cause}")
    return None


def _of_other_kinds(parts: Sequence[Sequence[Any]], places: Sequence[str]) -> Slip | None:
    """A slip that shows without numbers: another kind of value, a part, a demand not met."""
    given, right = parts[0]
    if places[0] and len(set(places)) == 1 and {type(given), type(right)} == {bool}:
        is_met, asked = bool(given), bool(right)
        return Slip("a demand not met", f"“{places[0]}” is {is_met}, and should be {asked}.")
    if isinstance(right, Seen) and not isinstance(given, Seen):
        return _not_seen(given, right)
    if all(
        type(given_part) is dict and type(right_part) is dict for given_part, right_part in parts
    ):
        return _of_keys(parts)
    if all(
        isinstance(right_part, tuple) and _position(given_part, right_part) is not None
        for given_part, right_part in parts
    ):
        n = len(right)
        return Slip("only one of several", f"This is one of the {n} values that are asked for.")
    if all(_are_sequences(given_part, right_part) for given_part, right_part in parts):
        if all(
            compare.difference(tuple(given_part[::-1]), tuple(right_part)) is None
            for given_part, right_part in parts
        ):
            return Slip("in reverse order", "The values are right and stand in reverse order.")
        parts = [
            (given_part[0], right_part[0])
            for given_part, right_part in parts
            if given_part and right_part
        ]
    if not parts or any(
        given_part is None or _is_of_kind(given_part, right_part)
        for given_part, right_part in parts
    ):
        return None
    whole = "This" if places[0] else "What comes back"
    subject = whole if parts[0][0] is given else "The first entry"
    given, right = parts[0]
    sentence = f"{subject} is {compare.kind(given)}, and {compare.kind(right)} is asked for."
    is_number = type(right) in (int, float)
    if is_number and isinstance(given, tk.Tensor) and given.numel() == 1:
        sentence = f"{subject} is still a tensor: `.item()` takes the number out."
    return Slip("a value of another kind", sentence)


def _are_sequences(*values: Any) -> bool:
    return all(isinstance(value, list | tuple) for value in values)


_TAKEN_FOR: dict[type, tuple[type, ...]] = {
    bool: (np.bool_,),
    int: (np.integer,),
    float: (int, np.integer, np.floating),
}
"""By the kind of a right number: other kinds that are accepted in its place."""


def _is_of_kind(given: Any, right: Any) -> bool:
    if _are_sequences(given, right) or compare.kind(given) == compare.kind(right):
        return True
    taken_for = _TAKEN_FOR.get(type(right), ())
    return isinstance(given, taken_for) and not isinstance(given, bool)


def _not_seen(given: Any, right: Seen) -> Slip | None:
    """What comes back where an exercise has looked at something in a right answer."""
    if "raises" in right:
        return Slip(
            "nothing is raised",
            f"In this case {right['raises']} is expected, and {compare.kind(given)} comes back.",
        )
    asked = next((value for value in right.values() if type(value) is not bool), None)
    if asked is None or given is None or _is_of_kind(given, asked):
        return None
    words = f"What comes back is {compare.kind(given)}, and {compare.kind(asked)} is asked for."
    return Slip("a value of another kind", words)


def _position(value: Any, whole: tuple[Any, ...]) -> int | None:
    places = (n for n, part in enumerate(whole) if compare.difference(value, part) is None)
    return next(places, None)


def _of_keys(parts: Sequence[Sequence[Any]]) -> Slip | None:
    given, right = parts[0]
    if all(right_part.keys() - given_part.keys() for given_part, right_part in parts):
        key = next(key for key in right if key not in given)
        return Slip("an entry is missing", f"The entry {key!r} is missing in the dictionary.")
    if all(given_part.keys() - right_part.keys() for given_part, right_part in parts):
        key = next(key for key in given if key not in right)
        return Slip("an entry too many", f"The entry {key!r} does not belong in the dictionary.")
    return None


def _differing(given: Any, right: Any) -> tuple[str, Any, Any]:
    """The only part in which two containers of the same size differ; else both as they are.

    Where an exercise has seen several parts of an answer, the first that differs. The first of the
    three values is the name of the part, or "".
    """
    are_seen = isinstance(given, Seen) and isinstance(right, Seen)
    are_dicts = isinstance(given, dict) and isinstance(right, dict)
    if are_seen or (are_dicts and given.keys() == right.keys()):
        parts = [(str(key), given[key], right[key]) for key in right if key in given]
    elif _is_structure(given) and _is_structure(right) and len(given) == len(right):
        pairs = enumerate(zip(given, right, strict=True))
        parts = [(f"entry {n}", *pair) for n, pair in pairs]
    else:
        return "", given, right
    different = [part for part in parts if compare.difference(*part[1:]) is not None]
    if not different or (len(different) > 1 and not are_seen):
        return "", given, right
    name, given_part, right_part = different[0]
    inner, given_part, right_part = _differing(given_part, right_part)
    return name or inner, given_part, right_part


def _is_structure(value: Any) -> bool:
    """Whether this is a sequence of anything but numbers, which is an array."""
    return isinstance(value, list | tuple) and not _is_array(value)


def _is_array(value: Any) -> bool:
    if isinstance(value, tk.Tensor):
        return value.numel() <= MOST
    if isinstance(value, np.ndarray):
        return value.size <= MOST and value.dtype.kind in "biuf"
    entries = value if isinstance(value, list | tuple) else [value]
    return all(type(entry) in (int, float) and abs(entry) < 2**62 for entry in entries)


def _array(value: Any) -> np.ndarray:
    array = value.detach().cpu().numpy() if isinstance(value, tk.Tensor) else np.asarray(value)
    return array.astype(np.int8) if array.dtype == bool else array


def _is_same(given: np.ndarray, right: np.ndarray) -> bool:
    """Whether shapes and numbers agree, as closely as the coarser dtype allows."""
    return given.shape == right.shape and bool(_are_close(given, right).all())


def _are_close(given: np.ndarray, right: np.ndarray) -> Any:
    """Of each element, whether the numbers agree, as closely as the coarser dtype allows."""
    names = {array.dtype.name for array in (given, right)}
    relative, absolute = max(compare.TOLERANCES.get(name, (0.0, 0.0)) for name in names)
    left, right_array = (array.astype(np.float64) for array in (given, right))
    return np.isclose(left, right_array, rtol=relative, atol=absolute, equal_nan=True)


def _same_in_another_dtype(given: np.ndarray, right: np.ndarray) -> bool:
    return given.dtype != right.dtype and _is_same(given, right)


def _same_in_another_shape(given: np.ndarray, right: np.ndarray) -> bool:
    return given.shape != right.shape and _is_same(given.reshape(-1), right.reshape(-1))


def _exchanged(given: np.ndarray, right: np.ndarray) -> bool:
    return given.ndim > 1 and _is_same(given.swapaxes(-1, -2), right)


def _reversed(given: np.ndarray, right: np.ndarray) -> bool:
    return given.ndim == 1 and len(given) > 1 and _is_same(given[::-1], right)


def _first_ones_only(given: np.ndarray, right: np.ndarray) -> bool:
    """Whether all elements from one on are the same number, where others are expected."""
    if given.shape != right.shape or given.ndim == 0:
        return False
    wrong = np.flatnonzero(~_are_close(given, right))
    if not wrong.size or wrong[0] == 0:
        return False
    after = given.reshape(-1)[wrong[0] :].astype(np.float64)
    return len(after) > 1 and bool(np.isnan(after).all() or (after == after[0]).all())


def _negative(given: np.ndarray, right: np.ndarray) -> bool:
    return bool(given.any()) and _is_same(-given.astype(np.float64), right)


def _rounded_down(given: np.ndarray, right: np.ndarray) -> bool:
    return bool(given.any()) and not _is_same(given, right) and _is_same(given, np.floor(right))


def _cut(given: np.ndarray, right: np.ndarray) -> bool:
    return bool(given.any()) and not _is_same(given, right) and _is_same(given, np.trunc(right))


def _all_zero(given: np.ndarray, right: np.ndarray) -> bool:
    is_fraction = right.dtype.kind == "f"
    return is_fraction and given.size > 0 and not given.any() and given.shape == right.shape


def _contains(
    value: Callable[[np.ndarray], np.ndarray],
) -> Callable[[np.ndarray, np.ndarray], bool]:
    """A test of whether there is a nan, or inf, where a number is expected."""

    def holds(given: np.ndarray, right: np.ndarray) -> bool:
        if given.shape != right.shape or given.dtype.kind != "f":
            return False
        return bool((value(given) & np.isfinite(right)).any())

    return holds


def _nearly(given: np.ndarray, right: np.ndarray) -> bool:
    if given.shape != right.shape or given.size == 0 or right.dtype.kind != "f":
        return False
    return bool(right.any()) and bool(np.allclose(given.astype(float), right, rtol=1e-3, atol=0))


def _more_dimensions(sign: int) -> Callable[[np.ndarray, np.ndarray], bool]:
    return lambda given, right: sign * (given.ndim - right.ndim) > 0


def _in_another_order(given: np.ndarray, right: np.ndarray) -> bool:
    return given.shape != right.shape and sorted(given.shape) == sorted(right.shape)


def _rounded(given: np.ndarray, right: np.ndarray) -> bool:
    exact = right.astype(np.float64)
    if right.any() and not given.any():
        return False  # zeros have more causes than rounding
    return right.size > 0 and any(_is_same(given, exact.round(digits)) for digits in range(5))


def _one_factor(given: np.ndarray, right: np.ndarray) -> bool:
    if given.shape != right.shape or given.size < 2 or not given.all() or not right.all():
        return False
    ratios = given.astype(np.float64) / right
    is_one = bool(np.allclose(ratios, ratios.flat[0], rtol=1e-3))
    return is_one and float(np.ptp(right)) > 0 and not _is_same(given, right)


def _only(end: int) -> Callable[[np.ndarray, np.ndarray], bool]:
    """A test of whether the answer is one entry of the right one: the first, 0, or the last, -1."""

    def holds(given: np.ndarray, right: np.ndarray) -> bool:
        is_many = right.ndim > 0 and len(right) > 0
        return is_many and (_is_same(given, right[end]) or _is_same(given, right[end][None]))

    return holds


def _without_last(given: np.ndarray, right: np.ndarray) -> bool:
    return right.ndim > 0 and len(right) > 0 and _is_same(given, right[:-1])


def _without_first(given: np.ndarray, right: np.ndarray) -> bool:
    return right.ndim > 0 and len(right) > 0 and _is_same(given, right[1:])


def _one_more(given: np.ndarray, right: np.ndarray) -> bool:
    return given.ndim > 0 and right.ndim > 0 and len(given) > 0 and _is_same(given[:-1], right)


_RELATIONS: tuple[tuple[str, Callable[[np.ndarray, np.ndarray], bool], str], ...] = (
    ("another dtype", _same_in_another_dtype, "The numbers are right, in another dtype."),
    ("another shape", _same_in_another_shape, "The numbers are right, in another shape."),
    (
        "rows and columns exchanged",
        _exchanged,
        "These are the expected numbers with rows and columns exchanged.",
    ),
    ("in reverse order", _reversed, "The numbers are right and stand in reverse order."),
    (
        "only the first elements",
        _first_ones_only,
        (
            "The first elements are right, and from one on all have the same value, as if they "
            "had not been computed."
        ),
    ),
    ("the opposite sign", _negative, "Each number has the opposite sign."),
    (
        "rounded down",
        _rounded_down,
        "The numbers are those expected, rounded down to whole numbers.",
    ),
    (
        "cut to whole numbers",
        _cut,
        "The numbers are those expected, without what stands behind the decimal point.",
    ),
    ("rounded", _rounded, "The numbers are those expected, rounded."),
    ("only the first", _only(0), "This is the first entry alone of what is expected."),
    ("only the last", _only(-1), "This is the last entry alone of what is expected."),
    ("the last is missing", _without_last, "The last entry is missing."),
    ("the first is missing", _without_first, "The first entry is missing."),
    ("one entry too many", _one_more, "There is one entry too many, at the end."),
    (
        "nearly right",
        _nearly,
        "The numbers agree to three digits. Is a part computed in a dtype with fewer digits?",
    ),
    ("a factor", _one_factor, "In each case all numbers are the expected ones, times one factor."),
    ("all zeros", _all_zero, "Every number is 0."),
    (
        "not a number",
        _contains(np.isnan),
        (
            "There is a nan in it. 0 / 0, 0 * inf, inf - inf and inf / inf give one, and so does "
            "the root or the logarithm of a negative number."
        ),
    ),
    (
        "too large for its dtype",
        _contains(np.isinf),
        "There is an inf in it, where a number is expected.",
    ),
    ("too few dimensions", _more_dimensions(-1), "There are too few dimensions in the result."),
    ("too many dimensions", _more_dimensions(1), "There are too many dimensions in the result."),
    ("dimensions exchanged", _in_another_order, "The sizes are right and stand in another order."),
)
"""Name, relation between an answer's numbers and those expected, sentence."""

_SAID_BY_THE_ROW = ("all zeros", "too few dimensions", "too many dimensions")
"""Names of relations of which the report says enough unless the cause is known."""

_CAUSES = {
    "another dtype": {
        r"(?s)^(?!.*dtype=).*(\.tolist\(\)|\.item\(\))": (
            "Python numbers have forgotten the dtype of the tensor."
        ),
        r"\.(float|double|half|long|int)\(\)": "A cast makes one dtype of all.",
        r"(?s)^float32.*tk\.(zeros|ones|empty|eye|rand)\((?!.*dtype)": (
            "`tk.zeros`, `tk.ones` and `tk.eye` make float32 unless they are told a `dtype`."
        ),
        r"(?s)^float64.*(\bnp\.|numpy\()": "NumPy computes in float64.",
    },
    "not a number": {
        r"\bexp\(": "`exp` of a large number is inf, and that of one far below 0 is 0.",
        r"\bmean\(": "`mean` of no elements is 0 / 0.",
    },
    "too large for its dtype": {r"\bexp\(": "`exp` of a large number is inf."},
    "nearly right": {
        r"\btk\.tensor\((?!.*dtype)": "`tk.tensor` makes float32 of Python's floats.",
        r"\.half\(|float16": "float16 has about three digits.",
    },
    "all zeros": {
        "//": "`//` rounds down.",
        "int64|long": "A whole number cannot hold a fraction.",
    },
    "too few dimensions": {
        r"\[0(, 0)*\]": "An index such as `[0]` removes a dimension.",
        r"\b(sum|mean)\((?!.*keepdim)": "A sum or a mean removes the dimension it goes over.",
    },
    "too many dimensions": {
        r"\bstack\(": "`stack` adds a dimension.",
        r"(?s)^\S+ added.*(unsqueeze\(|None\])": (
            "`unsqueeze` and `None` as an index add a dimension."
        ),
        r"(?s)^\S+ added.*keepdim=True": "`keepdim=True` keeps a dimension of size 1.",
    },
    "another shape": {
        r"(?s)^\S+ added.*keepdim=True": "`keepdim=True` keeps a dimension of size 1.",
        r"(?s)^\S+ added.*(unsqueeze\(|\[None|None\])": (
            "`unsqueeze` and `None` as an index add a dimension."
        ),
        r"(?s)^\S+ removed.*squeeze\(\)": (
            "`squeeze()` without a number removes every dimension of size 1."
        ),
        r"(?s)^\S+ removed.*\b(sum|mean)\((?!.*keepdim)": (
            "A sum or a mean removes the dimension it goes over; `keepdim=True` keeps it."
        ),
    },
    "a factor": {
        r"\bsum\(": "Is a sum taken where a mean is asked for?",
        r"\bmean\(": "Is a mean taken where a sum is asked for?",
    },
    "in reverse order": {
        r"(?s)^\S+ sorted.*sort(ed)?\(": "Sorted numbers stand in the order of their size.",
    },
    "rounded down": {"//": "`//` rounds down; `/` divides."},
    "only the first elements": {
        r"\.kernel\b": "Are there as many threads as elements? `-(-n // 64)` is rounded up.",
    },
    "only the first": {
        r"(?m)^( *)(for|while)\b.*\n(\1 +.*\n)*\1 +return\b": (
            "Does every entry come to its turn before the `return`?"
        ),
    },
}


def _cause(name: str, given: np.ndarray, right: np.ndarray, source: str) -> str:
    """What in the source causes this relation, if only one thing in it can.

    In front of the source stand the dtype, and whether dimensions of size 1 were added or removed,
    or the numbers are sorted.
    """
    added = (1 in given.shape and given.ndim > right.ndim) * "added"
    removed = (1 in right.shape and given.ndim < right.ndim) * "removed"
    is_sorted = given.ndim == 1 and any(
        (part[1:] >= part[:-1]).all() for part in (given, given[::-1])
    )
    text = f"{given.dtype} {added}{removed}{is_sorted * 'sorted'}\n{source}"
    causes = _CAUSES.get(name, {})
    applicable = [words for code, words in causes.items() if re.search(code, text)]
    return f" {applicable[0]}" if len(applicable) == 1 else ""
