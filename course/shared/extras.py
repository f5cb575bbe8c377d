"""Packages that only some users have, imported where needed; the sentence about a missing one.

The distribution has an extra for each kind of user: `lab` for learners, `teach` for instructors,
`dev` for engineers. `pyproject.toml` lists what each brings.
"""

from __future__ import annotations

import importlib
from typing import Any

from course.shared.errors import CourseError


def needed(package: str, extra: str, purpose: str) -> Any:
    """The package, imported.

    purpose: the subject of the sentence, such as "Grading".

    Raises CourseError with the command that installs it, also where it may not be read.

    >>> needed("json", "lab", "Reading a notebook").loads("[1]")
    [1]
    """
    try:
        module: Any = importlib.import_module(package)
    except (ImportError, PermissionError):
        module = None
    # Python takes a folder that it may not read for a package without anything in it
    if module is None or module.__file__ is None:
        raise CourseError(missing(package, extra, purpose))
    return module


def missing(package: str, extra: str, purpose: str) -> str:
    """The sentence about a package that is not installed.

    >>> missing("nh3", "teach", "Grading")
    "Grading needs nh3, readable for you: make teach in a checkout, pip install
    'tensorkit-course[teach]' elsewhere, or chmod -R a+rX where it is installed."
    """
    return (
        f"{purpose} needs {package}, readable for you: make {extra} in a checkout, "
        f"pip install 'tensorkit-course[{extra}]' elsewhere, or chmod -R a+rX where it is "
        "installed."
    )
