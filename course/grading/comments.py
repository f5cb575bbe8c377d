"""`course comment`: one comment for all answers that are wrong in the same way as one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbgrader.api import MissingEntry

from course.grading.class_report import ClassReport
from course.grading.gradebook import opened
from course.grading.grades import check_grades
from course.grading.result import all_stored
from course.shared.errors import CourseError


def comment(
    root: Path, chapter: str, exercise: str, like: str, text: str, *, replace: bool, config: Any
) -> tuple[list[str], list[str]]:
    """Write a comment to each answer that is wrong as this learner's is.

    The learners who have it now, and those who have another one by hand, which they keep unless
    replace. It is the comment that a person writes in Formgrader, so grading again keeps it.
    config: nbgrader's.

    Raises CourseError where there is no such answer, where it is not wrong, and where grades are
    missing or not those of now.
    """
    if not text.strip():
        raise CourseError("A comment needs a text.")
    learners = _wrong_in_the_same_way(root, chapter, exercise, like)
    written, kept = [], []
    with opened(root, config) as book:
        check_grades(book, chapter, config)
        for learner in learners:
            try:
                entry = book.find_comment(exercise, chapter, chapter, learner)
            except MissingEntry:
                raise CourseError(
                    f"The gradebook has no answer of {learner}'s to {exercise}: "
                    f"course grade {chapter}"
                ) from None
            if entry.manual_comment in (None, "", text) or replace:
                entry.manual_comment = text
                written.append(learner)
            else:
                kept.append(learner)
        book.db.commit()
    return written, kept


def _wrong_in_the_same_way(root: Path, chapter: str, exercise: str, like: str) -> list[str]:
    exercises = ClassReport(chapter, all_stored(root, chapter)).exercises
    summary = next((summary for summary in exercises if summary.id == exercise), None)
    if summary is None:
        names = ", ".join(exercise.id for exercise in exercises) or "nothing that is graded"
        raise CourseError(f"{chapter} has no graded exercise {exercise}; it has {names}.")
    if like not in [result.learner for result, _ in summary.answers]:
        raise CourseError(f"Nothing by {like} is graded in {chapter}.")
    for kind in summary.wrong:
        if like in kind.learners:
            return list(kind.learners)
    raise CourseError(
        f"The answer of {like} to {exercise} is right or not started, so there are none that are "
        "wrong in the same way. Formgrader takes a comment for one learner."
    )
