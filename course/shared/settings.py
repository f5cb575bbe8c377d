"""The instructor's switches, read from `settings.toml` beside this file.

Each setting is explained there. What this module adds is that a wrong value is answered with a
sentence, and that a hub can name its exchange folder by the variable COURSE_EXCHANGE.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from course.shared.errors import CourseError

FILE = Path(__file__).parents[1] / "settings.toml"


@dataclass(frozen=True)
class Settings:
    """The values in `settings.toml`, under the same names."""

    course_id: str
    exchange: str
    solutions_open: bool | date
    solution_after_attempts: int
    seconds: float
    variants: str
    watch_folder: str
    repository: str


@cache
def settings() -> Settings:
    """The settings of this installation; COURSE_EXCHANGE, if set, names the exchange folder.

    >>> settings().solution_after_attempts > 0
    True
    """
    return read(FILE, exchange=os.environ.get("COURSE_EXCHANGE"))


def read(file: Path, *, exchange: str | None = None) -> Settings:
    """The settings that `file` gives; `exchange`, if not empty, takes the place of its own.

    Raises CourseError for a file that is not TOML, a setting that is missing or unknown, and a
    value of the wrong type or size.
    """
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise CourseError(f"{file} cannot be read: {problem}.") from None
    if exchange:
        values["exchange"] = exchange
    names = [field.name for field in fields(Settings)]
    for name in values:
        if name not in names:
            raise CourseError(f"{file}: there is no setting {name!r}; there are {_list(names)}.")
    for name in names:
        if name not in values:
            raise CourseError(f"{file}: the setting {name!r} is missing.")
        if wrong := _wrong(name, values[name]):
            raise CourseError(f"{file}: {name} must be {wrong}, not {values[name]!r}.")
    return Settings(**{**values, "seconds": float(values["seconds"])})


def _wrong(name: str, value: Any) -> str | None:
    """What a value should have been, or None if it is good."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    good, wanted = {
        # the name becomes a folder of the exchange, where nbgrader joins names by "+"
        "course_id": (
            isinstance(value, str) and re.fullmatch(r"[\w.-]+", value) is not None,
            "a name of letters, digits, '-', '_' and '.'",
        ),
        "exchange": (isinstance(value, str) and value.strip() != "", "the path of a folder"),
        # its exact type: a datetime of Python is a date as well
        "solutions_open": (type(value) in (bool, date), "true, false or a date (2027-03-08)"),
        "solution_after_attempts": (
            is_number and isinstance(value, int) and value >= 1,
            "a whole number of at least 1",
        ),
        # negated, so that nan is refused too
        "seconds": (is_number and 0 < value < 3600, "a number between 0 and 3600"),
        "variants": (isinstance(value, str), "a text"),
        "watch_folder": (
            isinstance(value, str) and (value == "" or Path(value).is_absolute()),
            "empty or the absolute path of a folder",
        ),
        "repository": (
            isinstance(value, str) and re.fullmatch(r"([\w.-]+/[\w.-]+)?", value) is not None,
            "empty or of the form 'owner/name'",
        ),
    }[name]
    return None if good else wanted


def _list(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]
