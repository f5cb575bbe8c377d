"""What grading one submission came to, as plain data and as JSON.

    {
      "format": 3,
      "checksum": "5a0e...",       SHA-256 of all else, so that no damaged or edited result counts
      "learner": "ada", "chapter": "01_tensors",
      "status": "graded",          or "refused" (nothing to grade), or
                                   "ungraded" (the machine is to blame; such a result is not kept)
      "sentence": "",              why it is not graded
      "submission": "3f9a...",     SHA-256 of the notebook as it was handed in
      "source": "b771...",         SHA-256 of the chapter: notebooks, data, definitions
      "timestamp": "2026-03-01T10:00:00+00:00",     when it was collected; null if unknown
      "seed": "81c2...",           of the draws
      "profile": "namespaces+seccomp",              or "landlock+seccomp", or "unsafe"
      "versions": {"python": "3.11.7", "numpy": "2.4.0", "tensorkit": "0.1.0"},
      "exercises": [               one report for each exercise, in the order of the chapter
        {"cell": "check-checkerboard", "witness": "checker",
         "report": {"exercise_id": "checkerboard", "title": "A checkerboard",
          "status": "partly", "possible": 6.0, "earned": 4.5, "message": "...",
          "mistake": "only even rows", "notes": ["..."], "code": "",
          "rows": [{"label": "a square board", "status": "passed", "call": "...", "got": "...",
                    "expected": "...", "tip": "..."}]}}
      ],
      "repaired": ["..."],         what intake mended, a sentence each
      "troubles": ["..."],         cells that looped or ended the process, a sentence each
      "autograded": "91d0...",     SHA-256 of the notebook that Formgrader and feedback show
      "cells": [...]               of the notebook as executed; its code is as it was written, and
                                   a part of each cell where that is more than a megabyte
    }

The same submission gives the same bytes. What differs from run to run, the seconds that each step
took, stands apart in `timings`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course.notebook.report import Report, Row
from course.shared import files
from course.shared.errors import CourseError

FORMAT = 3


@dataclass(frozen=True)
class Graded:
    """One check: the cell that holds its points, what was found, and who saw it."""

    cell: str
    """The grade id of the check's cell in nbgrader's gradebook."""
    report: Report
    witness: str = "checker"
    """`checker`, or `inside` where only the learner's own process could see it."""


@dataclass(frozen=True)
class Result:
    """What grading one submission came to."""

    learner: str
    chapter: str
    status: str = "graded"
    """`graded`, `refused` or `ungraded`."""
    sentence: str = ""
    submission: str = ""
    source: str = ""
    timestamp: str | None = None
    seed: str = ""
    profile: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    exercises: tuple[Graded, ...] = ()
    repaired: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    cells: list[dict[str, Any]] = field(default_factory=list)
    timings: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Seconds in all, and those of CPU that the learner's cells took; not part of the JSON."""
    page: str = field(default="", repr=False, compare=False)
    """The autograded notebook, if a worker has written it; not part of the JSON either."""
    autograded: str = field(default="", compare=False)
    """SHA-256 of the autograded notebook, once it is written."""

    @property
    def score(self) -> float:
        """The points of all checks together."""
        return sum(exercise.report.score for exercise in self.exercises)

    @property
    def possible(self) -> float:
        return sum(exercise.report.possible for exercise in self.exercises)

    def has_page(self, root: Path) -> bool:
        """Whether the autograded notebook that lies there is the one of this result."""
        try:
            page = files.read(autograded_file(root, self.learner, self.chapter))
        except OSError:  # writing it anew says why
            return False
        return hashlib.sha256(page).hexdigest() == self.autograded

    def to_json(self) -> str:
        """The result as text, the same for the same submission."""
        values = {name: value for name, value in vars(self).items() if name not in _APART}
        body = _dumped(values)  # written once: it takes as long as the gradebook
        checksum = hashlib.sha256(body.encode()).hexdigest()
        return f'{{"checksum": "{checksum}", "format": {FORMAT}, {body[1:]}'

    @classmethod
    def from_json(cls, text: str) -> Result:
        """The result that `to_json` wrote.

        Raises ValueError for a text that is none, one of another format or a changed one.
        """
        try:
            values = json.loads(text)
            if values.pop("format", None) != FORMAT:
                raise ValueError(f"This is no grading result of format {FORMAT}.")
            if values.pop("checksum", None) != hashlib.sha256(_dumped(values).encode()).hexdigest():
                raise ValueError("This grading result was changed after it was written.")
            for name, kind in (("exercises", _graded), ("repaired", str), ("troubles", str)):
                values[name] = tuple(map(kind, values[name]))
            return cls(**values)
        except (AttributeError, KeyError, TypeError, RecursionError) as problem:
            raise ValueError(f"This grading result is damaged: {problem}.") from None


_APART = ("timings", "page")


def _dumped(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, sort_keys=True, default=vars)


def _graded(values: dict[str, Any]) -> Graded:
    report = values["report"]
    report["rows"] = tuple(Row(**row) for row in report["rows"])
    report["notes"] = tuple(report["notes"])
    return Graded(values["cell"], Report(**report), values["witness"])


def result_file(root: Path, learner: str, chapter: str) -> Path:
    """Where the result of a submission lies."""
    return root / "course" / "graded" / learner / f"{chapter}.json"


def autograded_file(root: Path, learner: str, chapter: str) -> Path:
    """Where the autograded notebook of a submission lies."""
    return root / "course" / "autograded" / learner / chapter / f"{chapter}.ipynb"


def stored(root: Path, learner: str, chapter: str) -> Result | None:
    """The result of the last run; None if it is not there or cannot be read."""
    try:
        return _read(result_file(root, learner, chapter))
    except CourseError:
        return None


def all_stored(root: Path, chapter: str) -> list[Result]:
    """The results of a chapter, by learner. Raises CourseError if one cannot be read."""
    return [_read(file) for file in sorted((root / "course" / "graded").glob(f"*/{chapter}.json"))]


def _read(file: Path) -> Result:
    """Raises CourseError if it is missing, damaged, of an older format or of another learner."""
    try:
        result = Result.from_json(files.read(file).decode())
        if (result.learner, result.chapter) != (file.parent.name, file.stem):
            raise ValueError(f"It is the result of {result.learner!a} in {result.chapter!a}.")
    except (OSError, ValueError) as problem:
        raise CourseError(
            f"{file} cannot be read ({str(problem).rstrip('.')}). course grade {file.stem} writes "
            "it anew if that submission is still there; otherwise remove it."
        ) from None
    return result
