"""The rows of nbgrader's gradebook about one chapter: read and written many at a time.

nbgrader's own objects load each grade by itself, which for a class of some hundreds takes longer
than to grade it. Here a submission is a handful of statements, in one transaction; the tables, and
the rules by which a person's work is kept, are nbgrader's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.plugins import LateSubmissionPlugin
from sqlalchemy import bindparam, func, insert, make_url, select, update
from sqlalchemy.exc import SQLAlchemyError
from traitlets.config import Config

from course.grading import agreement
from course.shared.errors import CourseError

_STUDENT, _ASSIGNMENT, _NOTEBOOK, _GRADE, _COMMENT = (
    model.__table__ for model in (Student, SubmittedAssignment, SubmittedNotebook, Grade, Comment)
)


class ChapterEntries:
    """What the gradebook holds of one chapter; it may be SQLite or PostgreSQL.

    config: nbgrader's. Raises CourseError if the gradebook does not know the chapter.
    """

    def __init__(self, root: Path, chapter: str, config: Config) -> None:
        self._book = opened(root, config)
        late = config.AssignLatePenalties.get("plugin_class", LateSubmissionPlugin)
        self._late = late(config=config)
        try:
            assignment = self._book.find_assignment(chapter)
            notebook = self._book.find_notebook(chapter, chapter)
        except MissingEntry:
            self.close()
            raise CourseError(
                f"The gradebook {make_url(_url(root, config))!r} does not know {chapter} yet: "
                f"{agreement.generate(chapter)}"
            ) from None
        self._name, self._id, self._due = chapter, assignment.id, assignment.duedate
        self._notebooks = {each.id for each in assignment.notebooks}
        self._notebook = notebook.id
        self.others = [
            each.name
            for each in assignment.notebooks
            if each.name != notebook.name and each.max_score
        ]
        """Notebooks of another name whose points the gradebook counts in this chapter."""
        graded = [*notebook.grade_cells, *notebook.task_cells]
        self.points = {cell.name: float(cell.max_score) for cell in graded}
        """Points that each graded cell is worth."""
        self.checks = checks_of(notebook)
        self._graded = {cell.id: cell.name for cell in graded}
        commented = [*notebook.solution_cells, *notebook.task_cells]
        self._commented = {cell.id: cell.name for cell in commented}
        self.commented = frozenset(self._commented.values())
        """The cells that a person may say something about."""
        self.tasks = frozenset(cell.name for cell in notebook.task_cells)
        """Those of which a person reads what learners made elsewhere in the notebook."""
        kinds: dict[str, list[str]] = {}
        for kind, cells in (
            ("a task", notebook.task_cells),
            ("graded", notebook.grade_cells),
            ("an answer", notebook.solution_cells),
        ):
            for cell in cells:
                kinds.setdefault(cell.name, []).append(kind)
        self.kinds = {name: " and ".join(words) for name, words in kinds.items()}
        """What each cell is: an answer, graded, both, or a task."""
        self._book.db.commit()

    def close(self) -> None:
        """Leave the gradebook."""
        self._book.close()

    @cached_property
    def scores(self) -> dict[str, dict[str, float | None]]:
        """The automatic points of earlier runs, by learner and cell."""
        rows = self._book.db.execute(
            select(SubmittedAssignment.student_id, BaseCell.name, Grade.auto_score)
            .select_from(Grade)
            .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
            .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(BaseCell, Grade.cell_id == BaseCell.id)
            .where(SubmittedAssignment.assignment_id == self._id)
        )
        found: dict[str, dict[str, float | None]] = {}
        for learner, cell, score in rows:
            found.setdefault(learner, {})[cell] = score
        return found

    def enter(
        self,
        learner: str,
        timestamp: str | None,
        scores: Mapping[str, float | None],
        comments: Mapping[str, str | None],
    ) -> None:
        """All of one submission, in one transaction; what a person entered by hand stays.

        scores: the automatic points by cell, None where a person is to read it. comments: by cell.
        """
        database = self._book.db
        try:
            id, is_late_by = self._submission(learner, timestamp)
            self._enter_scores(id, scores)
            self._enter_comments(id, comments)
            self._penalise(learner, id, is_late_by)
            database.commit()
        except BaseException:
            database.rollback()
            raise

    def extend(self, learner: str, days: float) -> None:
        """Give a learner so many days more, from the due date on; another extension gives way.

        What was graded already loses its penalty, or gets it back. Raises CourseError where there
        is no due date, or where the gradebook does not know the learner.
        """
        if self._due is None:
            raise CourseError("This chapter has no due date, so there is nothing to extend.")
        database = self._book.db
        if not self._knows(learner):
            raise CourseError(f"The gradebook does not know {learner}: nbgrader db student add.")
        self._book.update_or_create_submission(self._name, learner)
        self._book.grant_extension(self._name, learner, days=days)
        database.commit()
        id, is_late_by = self._submission(learner, None)
        self._penalise(learner, id, is_late_by)
        database.commit()

    def _knows(self, learner: str) -> bool:
        found = self._book.db.execute(select(_STUDENT.c.id).where(_STUDENT.c.id == learner))
        return found.one_or_none() is not None

    def _submission(self, learner: str, timestamp: str | None) -> tuple[str, float]:
        """The id of the submitted notebook, made if it is not there, and the seconds it is late."""
        run = self._book.db.execute
        moment = None
        if timestamp:
            moment = datetime.fromisoformat(timestamp).astimezone(UTC).replace(tzinfo=None)
        table = _ASSIGNMENT.c
        found = run(
            select(table.id, table.timestamp, table.extension).where(
                table.assignment_id == self._id, table.student_id == learner
            )
        ).one_or_none()
        extension = None
        if found is None:
            if not self._knows(learner):
                run(insert(_STUDENT), [{"id": learner}])
            row = {"assignment_id": self._id, "student_id": learner, "timestamp": moment}
            made = run(insert(_ASSIGNMENT), row).inserted_primary_key[0]
        else:
            made, before, extension = found
            if moment is None:
                moment = before
            elif moment != before:
                run(update(_ASSIGNMENT).where(table.id == made).values(timestamp=moment))
        known = self._pairs(_NOTEBOOK.c.notebook_id, _NOTEBOOK.c.id, assignment_id=made)
        for notebook in self._notebooks - known.keys():
            row = {"notebook_id": notebook, "assignment_id": made}
            known[notebook] = run(insert(_NOTEBOOK), row).inserted_primary_key[0]
        late = 0.0
        if moment is not None and self._due is not None:
            due = self._due if extension is None else self._due + extension
            late = max(0.0, (moment - due).total_seconds())
        return known[self._notebook], late

    def _enter_scores(self, id: str, scores: Mapping[str, float | None]) -> None:
        by_hand = self._pairs(_GRADE.c.cell_id, _GRADE.c.manual_score, notebook_id=id)
        rows = {}
        for cell, name in self._graded.items():
            is_for_a_person = by_hand.get(cell) is not None or scores[name] is None
            rows[cell] = {"auto_score": scores[name], "needs_manual_grade": is_for_a_person}
        self._write(_GRADE, id, rows)

    def _enter_comments(self, id: str, comments: Mapping[str, str | None]) -> None:
        named = self._commented.items()
        self._write(_COMMENT, id, {cell: {"auto_comment": comments[name]} for cell, name in named})

    def _write(self, table: Any, id: str, rows: Mapping[str, dict[str, Any]]) -> None:
        """Write these columns of a notebook's rows, by cell; a row that is not there is made."""
        known = self._pairs(table.c.cell_id, table.c.id, notebook_id=id)
        changed = [{"row": known[cell], **row} for cell, row in rows.items() if cell in known]
        made = [
            {"cell_id": cell, "notebook_id": id, **row}
            for cell, row in rows.items()
            if cell not in known
        ]
        if changed:
            self._book.db.execute(update(table).where(table.c.id == bindparam("row")), changed)
        if made:
            self._book.db.execute(insert(table), made)

    def _pairs(self, key: Any, value: Any, **where: str) -> dict[str, Any]:
        """Two columns of a table, as a dictionary, of the rows with these values in others."""
        rows = select(key, value).filter_by(**where)
        return {row[0]: row[1] for row in self._book.db.execute(rows)}

    def _penalise(self, learner: str, id: str, late: float) -> None:
        run = self._book.db.execute
        penalty = None
        if late > 0:
            scores = select(func.coalesce(func.sum(Grade.score), 0.0))
            score = run(scores.where(Grade.notebook_id == id)).scalar_one()
            penalty = self._late.late_submission_penalty(learner, score, late)
            if penalty is not None:
                penalty = min(max(penalty, 0), score)
        row = update(_NOTEBOOK).where(_NOTEBOOK.c.id == id)
        run(row.values(late_submission_penalty=penalty))


def checks_of(notebook: Notebook) -> dict[str, float]:
    """The points of the cells of a notebook that are graded by running them."""
    answers = {cell.name for cell in notebook.solution_cells}
    return {
        cell.name: float(cell.max_score)
        for cell in notebook.grade_cells
        if cell.cell_type == "code" and cell.name not in answers
    }


def roster(root: Path, config: Config) -> list[str]:
    """The learners whom the gradebook knows; none where there is no gradebook yet."""
    url = _url(root, config)
    file = url.removeprefix("sqlite:///")
    if file != url and not Path(file).is_file():
        return []  # to ask would make one
    with opened(root, config) as book:
        return sorted(book.db.execute(select(_STUDENT.c.id)).scalars())


def opened(root: Path, config: Config) -> Gradebook:
    """The gradebook. Raises CourseError if it is locked, damaged or of another program."""
    url = _url(root, config)
    try:
        book = Gradebook(url, _course_id(config))
        book.db.execute(select(_STUDENT.c.id).limit(1))
    except SQLAlchemyError as problem:
        raise CourseError(
            f"The gradebook {make_url(url)!r} cannot be opened "
            f"({getattr(problem, 'orig', None) or problem}). Where another program holds it, wait "
            "for that. Where it is damaged or not nbgrader's, put a copy in its place, or move it "
            "away and make a new one: nbgrader generate_assignment --force, then course grade. "
            "Nothing of what was graded is lost; points and comments by hand are in the gradebook "
            "alone."
        ) from None
    return book


def _url(root: Path, config: Config) -> str:
    course = config.CourseDirectory
    return str(course.db_url if "db_url" in course else f"sqlite:///{root}/course/gradebook.db")


def _course_id(config: Config) -> str:
    return str(config.CourseDirectory.get("course_id", "")) or "default_course"
