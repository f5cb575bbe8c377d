"""What `course report` says of a class in a chapter, as data: `Overview`, made from its results."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from course.grading import similar
from course.grading.result import Graded, Result
from course.grading.similar import Pair
from course.notebook import exercise, matching
from course.notebook.report import Report

PASSED, PARTLY, FAILED, NOT_STARTED = "passed", "partly", "failed", "not started"
_HINT = re.compile(r"""\bhint\(\s*["']([\w-]+)["']""")


@dataclass(frozen=True)
class Asked:
    """One exercise, in the results of a class."""

    id: str
    found: Sequence[tuple[str, Graded]]
    """Learner and what was found."""
    hints: int
    """Cells that open a hint, in all notebooks; what learners left there, no more."""

    @property
    def title(self) -> str:
        return self.found[0][1].report.title

    @property
    def possible(self) -> float:
        return self.found[0][1].report.possible

    @property
    def mean(self) -> float:
        return statistics.fmean(it.report.score for _, it in self.found)

    def share(self, status: str) -> float:
        """The part of the class whose answer has this status."""
        return sum(_status(it) == status for _, it in self.found) / len(self.found)

    @cached_property
    def cases(self) -> dict[str, tuple[int, int]]:
        """By label: how many passed, of how many where it ran."""
        rows = [row for _, it in self.found for row in it.report.rows if row.status != "not run"]
        ran, passed = Counter(it.label for it in rows), Counter[str]()
        passed.update(it.label for it in rows if it.status == "passed")
        return {label: (passed[label], number) for label, number in ran.items()}

    @cached_property
    def mistakes(self) -> list[tuple[str, int]]:
        """Usual mistakes that were recognised, the commonest first."""
        return Counter(it.report.mistake for _, it in self.found if it.report.mistake).most_common()

    @cached_property
    def outputs(self) -> list[tuple[tuple[str, str], int]]:
        """Wrong outputs that no usual mistake explains, by case and output."""
        unknown = [it.report for _, it in self.found if not it.report.mistake]
        first = [next((row for row in it.rows if row.status == FAILED), None) for it in unknown]
        return Counter((it.label, it.got) for it in first if it is not None).most_common()


def _status(it: Graded) -> str:
    status = it.report.status
    if status in (PASSED, PARTLY):
        return status
    return NOT_STARTED if status == NOT_STARTED else FAILED


class Overview:
    """The results of one chapter."""

    def __init__(
        self,
        chapter: str,
        results: Sequence[Result],
        roster: Sequence[str] = (),
        given_cells: Sequence[str] = (),
    ) -> None:
        self.chapter, self.results = chapter, results
        self.given_cells = given_cells
        """The code of the released notebook, which everybody has."""
        there = {it.learner for it in results}
        self.absent = [it for it in roster if it not in there]
        """Whom the gradebook knows, and who handed nothing in."""
        self.graded = [it for it in results if it.status == "graded"]

    @cached_property
    def exercises(self) -> list[Asked]:
        found: dict[str, list[tuple[str, Graded]]] = {}
        for result in self.graded:
            for it in result.exercises:
                found.setdefault(it.report.exercise_id, []).append((result.learner, it))
        hints = Counter(
            id for it in self.graded for text in _code(it) for id in _HINT.findall(text)
        )
        return [Asked(id, its, hints[id]) for id, its in found.items()]

    @cached_property
    def possible(self) -> float:
        return max((it.possible for it in self.graded), default=0.0)

    def need_help(self) -> list[tuple[Result, str]]:
        """Who has less than half of the points, or nothing that could be graded, and why."""
        found = []
        for it in sorted(self.results, key=lambda it: (it.score, it.learner)):
            if it.status != "graded":
                found.append((it, it.sentence or it.status))
            elif it.score < self.possible / 2:
                found.append((it, _why(it)))
        return found

    @cached_property
    def alike(self) -> list[Pair]:
        """Answers like another's or like the library's, the most alike first."""
        found: list[Pair] = []
        for id, definition in exercise.load(self.chapter).items():
            if isinstance(definition, exercise.Prediction):
                continue  # a table of predictions: there are few ways to be wrong
            answers = {it.learner: text for it in self.graded if (text := _answer(it, id))}
            given = similar.given_code(definition, self.given_cells)
            found += similar.pairs(id, answers, given)
            found += similar.from_library(id, answers, given)
        return sorted(found, key=lambda it: (-it.likeness, -it.shared, it.exercise, it.one))


def _why(result: Result) -> str:
    parts = []
    for words, status in (("not started", NOT_STARTED), ("failing", FAILED), ("in part", PARTLY)):
        counted = [it for it in result.exercises if it.report.possible]
        its = [it.report for it in counted if _status(it) == status]
        if its:
            names = [f"{it.title} ({why})" if (why := _what(it)) else it.title for it in its]
            what = ", ".join(names)
            is_all = status == NOT_STARTED and len(its) == len(counted) > 1
            parts.append(f"{words}: {'everything' if is_all else what}")
    return "; ".join([*parts, *result.troubles])


def _what(report: Report) -> str:
    if report.status == FAILED and any(it.status == PASSED for it in report.rows):
        return report.mistake or "right only where all have the same numbers"
    return "not defined" if report.status == "missing" else report.mistake


def _code(result: Result) -> Iterator[str]:
    for cell in result.notebook.get("cells", []):
        if cell["cell_type"] == "code":
            yield cell["source"]


def _answer(result: Result, id: str) -> str:
    cells = result.notebook.get("cells", [])
    return next((it["source"] for it in cells if matching.grade_id(it) == id), "")
