"""The grades of a chapter as the gradebook has them: what is exported, reported and fed back."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Gradebook, Student, SubmittedAssignment
from traitlets.config import Config

from course.grading import agreement, batch, intake
from course.grading.gradebook import check_current, opened
from course.grading.result import all_stored
from course.notebook import matching
from course.shared import paths
from course.shared.errors import CourseError
from course.shared.words import listed


@dataclass(frozen=True)
class Grade:
    """What one learner has in one chapter."""

    learner: str
    first_name: str
    last_name: str
    email: str
    points: float
    possible: float
    handed_in: datetime | None
    """The moment in UTC; None if nothing was handed in, and where the moment is not known."""
    seconds_late: float
    is_missing: bool
    """Whether nothing was handed in."""
    is_complete: bool
    """Whether everything that a person must grade is graded."""
    points_by_cell: Mapping[str, float]
    """The points, with what was entered by hand, before the penalty for lateness."""
    comments: Mapping[str, str | None]
    """By cell, in the order of their names, as `points_by_cell` is."""


def grades_of(book: Gradebook, chapter: str) -> list[Grade]:
    """The grades of everybody whom the gradebook knows, penalties for lateness taken off."""
    possible = book.find_assignment(chapter).max_score
    entries = {entry.student_id: entry for entry in book.assignment_submissions(chapter)}
    students = sorted(book.students, key=lambda student: student.id)
    return [grade_of(student, entries.get(student.id), possible) for student in students]


def by_learner(root: Path, chapter: str, config: Config) -> dict[str, Grade]:
    """The grades of a chapter, by learner. config: nbgrader's."""
    with opened(root, config) as book:
        return {grade.learner: grade for grade in grades_of(book, chapter)}


def grade_of(student: Student, entry: SubmittedAssignment | None, possible: float) -> Grade:
    """The grade of one person. entry: what the gradebook has of them in the chapter."""
    if entry and not any(notebook.grades for notebook in entry.notebooks):
        entry = None  # it only extends the due date
    moment = entry.timestamp.replace(tzinfo=UTC) if entry and entry.timestamp else None
    notebooks = entry.notebooks if entry else []
    points = {grade.name: grade.score for notebook in notebooks for grade in notebook.grades}
    comments = {row.name: row.comment for notebook in notebooks for row in notebook.comments}
    return Grade(
        student.id,
        student.first_name or "",
        student.last_name or "",
        student.email or "",
        max(0.0, entry.score - (entry.late_submission_penalty or 0.0)) if entry else 0.0,
        possible,
        moment,
        entry.total_seconds_late if entry else 0.0,
        entry is None,
        entry is None or not entry.needs_manual_grade,
        dict(sorted(points.items())),
        dict(sorted(comments.items())),
    )


def check_grades(book: Gradebook, chapter: str, config: Config) -> None:
    """Raises CourseError if somebody has no grade of what is handed in, or one of other points.

    config: nbgrader's.
    """
    root = paths.course_root()
    learners = {student.id for student in book.students}
    learners |= {folder.name for folder in batch.folders(root, chapter)}
    results = [result for result in all_stored(root, chapter) if result.learner in learners]
    check_current(root, matching.source_of(root, chapter), results, config)
    if waiting := batch.not_graded(root, chapter):
        raise CourseError(
            f"Handed in and not graded: {listed([*map(ascii, waiting)], intake.MOST_NAMED)}. They "
            f"would have too few points, or none. First course grade {chapter}, which grades them, "
            "or says why not. What is not to be graded has to leave course/submitted/. Nothing was "
            "written."
        )
    check_given(book, chapter, {result.learner for result in results})


def check_given(book: Gradebook, chapter: str, learners: Set[str]) -> None:
    """Raises CourseError if anybody but these learners, who have a result, has points of a check.

    Without a result nobody can tell by which version of the chapter they were given.
    """
    for entry in book.assignment_submissions(chapter):
        grades = [grade for notebook in entry.notebooks for grade in notebook.grades]
        if entry.student_id not in learners and any(row.auto_score is not None for row in grades):
            raise CourseError(
                f"{entry.student_id!a} has points in the gradebook, but course/graded/ has no "
                f"result that says how. Nothing was written. Run: {agreement.again(chapter)}"
            )
