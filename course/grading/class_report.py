"""What `course report` says of a class in a chapter, as data: `ClassReport`."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from course.grading import similar
from course.grading.result import Graded, Result
from course.grading.similar import Pair
from course.notebook import exercise, matching
from course.notebook.report import Report
from course.shared.words import duration

if TYPE_CHECKING:
    from course.grading.grades import Grade

PASSED, PARTLY, FAILED, NOT_STARTED = "passed", "partly", "failed", "not started"
STATUSES = (PASSED, PARTLY, FAILED, NOT_STARTED)
LONGEST_ANSWER = 1200
"""Characters of an answer that is shown."""
_HINT = re.compile(r"""\bhint\(\s*["']([\w-]+)["']""")

Name = Callable[[str], str]
"""What a learner is called in the report."""


@dataclass(frozen=True)
class WrongAnswers:
    """The answers to one exercise that are wrong in one way."""

    reason: str
    """The usual mistake, or the first failing case and what came back."""
    message: str
    """What the learners were told; empty where nothing explains the answer."""
    learners: Sequence[str]
    example: str
    """One of the answers."""


@dataclass(frozen=True)
class ExerciseSummary:
    """One exercise, in the results of a class."""

    id: str
    answers: Sequence[tuple[Result, Graded]]
    points: Sequence[float]
    """The points of each learner, as the gradebook has them."""
    hints: int
    """Cells that open a hint, in all notebooks; what learners left there, no more."""

    @property
    def title(self) -> str:
        return self.answers[0][1].report.title

    @property
    def possible(self) -> float:
        return self.answers[0][1].report.possible

    @property
    def mean(self) -> float:
        return statistics.fmean(self.points)

    @property
    def lost(self) -> float:
        """Points that the whole class lost here."""
        return sum(self.possible - points for points in self.points)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many answers have each of `STATUSES`."""
        counted = Counter(status_of(graded) for _, graded in self.answers)
        return {status: counted[status] for status in STATUSES}

    @cached_property
    def cases(self) -> dict[str, tuple[int, int]]:
        """By label: how many passed, of how many where it ran."""
        rows = [row for _, graded in self.answers for row in graded.report.rows]
        ran = Counter(row.label for row in rows if row.status != "not run")
        passed = Counter(row.label for row in rows if row.status == "passed")
        return {label: (passed[label], number) for label, number in ran.items()}

    @cached_property
    def wrong(self) -> list[WrongAnswers]:
        """The ways in which answers are wrong, the commonest first."""
        groups: dict[tuple[str, str], list[Result]] = {}
        for result, graded in self.answers:
            if status_of(graded) in (PARTLY, FAILED):
                groups.setdefault(_reason(graded.report), []).append(result)
        kinds = [
            WrongAnswers(
                *reason, [result.learner for result in results], answer_of(results[0], self.id)
            )
            for reason, results in groups.items()
        ]
        return sorted(kinds, key=lambda kind: -len(kind.learners))


def status_of(graded: Graded) -> str:
    """Which of `STATUSES` an answer has."""
    status = graded.report.status
    return status if status in (PASSED, PARTLY, NOT_STARTED) else FAILED


def _reason(report: Report) -> tuple[str, str]:
    """In which way an answer is wrong, and what its learner was told of it."""
    if report.mistake:
        return report.mistake, report.message
    row = next((row for row in report.rows if row.status == FAILED), None)
    if row is None:
        return report.message or report.status, ""
    return f"{row.label}: {row.got[:400]}", ""


class ClassReport:
    """The results of one chapter.

    roster: the learners whom the gradebook knows. given_cells: the code of the released notebook.
    handed_in: the learners who have a folder of this chapter. grades: of each learner, as the
    gradebook has them; where there is none, points are those that the checks gave.
    """

    def __init__(
        self,
        chapter: str,
        results: Sequence[Result],
        roster: Sequence[str] = (),
        given_cells: Sequence[str] = (),
        handed_in: Sequence[str] = (),
        grades: Mapping[str, Grade] | None = None,
    ) -> None:
        self.chapter, self.results, self._given_cells = chapter, results, given_cells
        self._grades = grades or {}
        with_result = {result.learner for result in results}
        self.not_graded = sorted({*handed_in} - with_result)
        """Learners whose submission has no result: it was not tried, or this machine could not."""
        present = with_result.union(handed_in)
        self.absent = [learner for learner in roster if learner not in present]
        """Learners whom the gradebook knows and who handed nothing in."""
        self.graded = [result for result in results if result.status == "graded"]

    def points(self, result: Result, graded: Graded | None = None) -> float:
        """The points of a learner, or those of one of their exercises."""
        grade = self._grades.get(result.learner)
        if graded is None:
            return result.score if grade is None else grade.points
        computed = graded.report.score
        return computed if grade is None else grade.points_by_cell.get(graded.cell, computed)

    @cached_property
    def exercises(self) -> list[ExerciseSummary]:
        """The exercises in the order of the chapter."""
        by_exercise: dict[str, list[tuple[Result, Graded]]] = {}
        for result in self.graded:
            for graded in result.exercises:
                by_exercise.setdefault(graded.report.exercise_id, []).append((result, graded))
        cells = [cell for result in self.graded for cell in result.cells]
        code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        hints = Counter(id for text in code for id in _HINT.findall(text))
        return [
            ExerciseSummary(id, answers, [self.points(*answer) for answer in answers], hints[id])
            for id, answers in by_exercise.items()
        ]

    @property
    def hardest(self) -> list[ExerciseSummary]:
        """The exercises, those first in which most points were lost."""
        return sorted(self.exercises, key=lambda summary: (-summary.lost, -summary.counts[FAILED]))

    @cached_property
    def possible(self) -> float:
        of_checks = [result.possible for result in self.graded]
        return max([grade.possible for grade in self._grades.values()] or of_checks, default=0.0)

    @property
    def median(self) -> float:
        """Of the points of those who were graded."""
        return statistics.median(map(self.points, self.graded)) if self.graded else 0.0

    @cached_property
    def need_help(self) -> list[tuple[Result, str]]:
        """Who has less than half of the points, or nothing that could be graded, and why."""
        learners = []
        for result in sorted(self.results, key=lambda item: (self.points(item), item.learner)):
            if result.status != "graded":
                learners.append((result, result.sentence or result.status))
            elif self.points(result) < self.possible / 2:
                reasons = filter(None, [self._lateness(result), _faults(result)])
                learners.append((result, "; ".join(reasons)))
        return learners

    def _lateness(self, result: Result) -> str:
        """How late a submission was and what that took off; empty if it took nothing."""
        grade = self._grades.get(result.learner)
        lost = sum(grade.points_by_cell.values()) - grade.points if grade else 0.0
        if grade is None or grade.seconds_late <= 0 or lost < 1e-9:
            return ""
        return f"handed in {duration(grade.seconds_late)} late, which took {lost:.10g} points"

    @cached_property
    def alike(self) -> list[Pair]:
        """Answers like another's or like the library's, the most alike first."""
        pairs: list[Pair] = []
        definitions = exercise.load(self.chapter)
        solutions = [definition.solution_source for definition in definitions.values()]
        for id, definition in definitions.items():
            if isinstance(definition, exercise.Prediction):
                continue  # a table of predictions: there are few ways to be wrong
            answers = {
                result.learner: text for result in self.graded if (text := answer_of(result, id))
            }
            given = similar.given_code(definition, [*self._given_cells, *solutions])
            pairs += similar.pairs(id, answers, given)
            pairs += similar.from_library(id, answers, given)
        return sorted(
            pairs, key=lambda pair: (-pair.likeness, -pair.shared, pair.exercise, pair.learner)
        )


def _faults(result: Result) -> str:
    """What went wrong in one submission, in a line."""
    parts = []
    counted = [graded for graded in result.exercises if graded.report.possible]
    for words, status in (("not started", NOT_STARTED), ("failing", FAILED), ("in part", PARTLY)):
        reports = [graded.report for graded in counted if status_of(graded) == status]
        if not reports:
            continue
        names = [
            f"{report.title} ({fault})" if (fault := _fault(report)) else report.title
            for report in reports
        ]
        is_all = status == NOT_STARTED and len(reports) == len(counted) > 1
        parts.append(f"{words}: {'everything' if is_all else ', '.join(names)}")
    return "; ".join([*parts, *result.troubles])


def _fault(report: Report) -> str:
    if report.status == FAILED and any(row.status == PASSED for row in report.rows):
        return report.mistake or "right only where all have the same numbers"
    return report.mistake or ("not defined" if report.status == "missing" else "")


def answer_of(result: Result, id: str) -> str:
    """What a learner wrote in the answer cell of an exercise."""
    return next((cell["source"] for cell in result.cells if matching.grade_id(cell) == id), "")


def shown_answer(answer: str, *, is_named: bool) -> str:
    """The beginning of an answer; without its comments, where its author is not to be named."""
    text = answer.strip()
    if not is_named:
        text = "\n".join(similar.statements(text[: 4 * LONGEST_ANSWER]))
    return text if len(text) <= LONGEST_ANSWER else f"{text[:LONGEST_ANSWER]}\n..."
