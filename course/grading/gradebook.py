"""The entries of nbgrader's gradebook about one chapter, by nbgrader's own tables and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.plugins import LateSubmissionPlugin
from sqlalchemy import Table, bindparam, create_engine, insert, inspect, make_url, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool
from traitlets.config import Config

from course.grading import agreement, intake
from course.grading.result import Result
from course.notebook.matching import Source
from course.shared import paths
from course.shared.errors import CourseError
from course.shared.words import listed

_SUBMISSIONS, _NOTEBOOKS = SubmittedAssignment.__table__, SubmittedNotebook.__table__
_GRADES, _COMMENTS, _STUDENTS = Grade.__table__, Comment.__table__, Student.__table__


class ChapterEntries:
    """What the gradebook holds of one chapter; it may be SQLite or PostgreSQL.

    config: nbgrader's. Raises CourseError if the gradebook does not know the chapter.
    """

    def __init__(self, root: Path, chapter: str, config: Config) -> None:
        self._book, self._config = opened(root, config), config
        try:
            notebook = self._book.find_notebook(chapter, chapter)
        except MissingEntry:
            self.close()
            raise CourseError(
                f"The gradebook {make_url(_url(root, config))!r} does not know {chapter} yet. Run: "
                f"{agreement.generate(chapter)}"
            ) from None
        assignment = notebook.assignment
        self._name, self._id, self._due = chapter, assignment.id, assignment.duedate
        self._notebooks = {entry.id for entry in assignment.notebooks}
        self._notebook = notebook.id
        extra = [entry for entry in assignment.notebooks if entry.name != notebook.name]
        self.extra_notebooks = [entry.name for entry in extra if entry.max_score]
        """Notebooks of another name whose points the gradebook counts in this chapter."""
        answers = {cell.name for cell in notebook.solution_cells}
        self.checks = {
            cell.name: float(cell.max_score)
            for cell in notebook.grade_cells
            if cell.cell_type == "code" and cell.name not in answers
        }
        """The points of the cells that are graded by running them."""
        self.tasks = frozenset(cell.name for cell in notebook.task_cells)
        """Cells that describe a task, whose work stands elsewhere in the notebook."""
        graded = [*notebook.grade_cells, *notebook.task_cells]
        known = {cell.name: (cell.max_score, cell.cell_type) for cell in graded}
        self.cells = {
            name: agreement.in_words(
                *known.get(name, (None,)), is_answer=name in answers, is_task=name in self.tasks
            )
            for name in {*known, *answers}
        }
        """What each cell is: an answer, worth points, both, or a task."""
        self.graded = {cell.id: cell.name for cell in graded}
        """The names of the cells that have points, by their ids in the gradebook."""
        self.commented = {
            cell.id: cell.name for cell in (*notebook.solution_cells, *notebook.task_cells)
        }
        """The names of the cells that may have a comment, by their ids in the gradebook."""
        self._book.db.commit()

    def close(self) -> None:
        """Leave the gradebook."""
        self._book.close()

    def has(self, result: Result) -> bool:
        """Whether all of a result is entered, and the penalty for late work is that of now.

        The gradebook may be another or an older one, restored; the due date may have changed.
        """
        book, of = self._book, (self._name, self._name, result.learner)
        try:
            notebook = book.find_submission_notebook(*of)
        except MissingEntry:
            return False
        rows = select(BaseCell.name, Grade.auto_score).join(Grade, Grade.cell_id == BaseCell.id)
        rows = rows.where(Grade.notebook_id == notebook.id)
        points = {tuple(row) for row in book.db.execute(rows)}
        is_there = (
            points.issuperset((check.cell, check.report.score) for check in result.exercises)
            and _moment(result.timestamp) in (None, notebook.assignment.timestamp)
            and (notebook.late_submission_penalty or 0) == (_penalty(notebook, self._config) or 0)
        )
        book.db.rollback()  # what was read is not kept: others may change it
        return is_there

    def check(self, results: Sequence[Result]) -> None:
        """Raises CourseError unless the gradebook has all of these results, with its points.

        No points by hand, of anybody's, may be more than their cell has now.
        """
        agreement.check_results(self._name, results, self.checks)
        above = (Grade.cell_id.in_(self.graded), Grade.manual_score > Grade.max_score)
        for grade in self._book.db.execute(select(Grade).where(*above)).scalars():
            raise CourseError(
                f"{grade.student.id!a} has more points by hand in {grade.name} than there are now. "
                "Lower them in Formgrader. Nothing was written."
            )
        if missing := [ascii(result.learner) for result in results if not self.has(result)]:
            raise CourseError(
                "The gradebook lacks grades that were given: "
                f"{listed(missing, intake.MOST_NAMED)}. It may be an "
                "older one, or another, or the due date or the policy for late work has changed. "
                f"course grade {self._name} enters them; a submission that has left "
                "course/submitted/ has to be put back before. Nothing was written."
            )

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
            notebook = self._submission(learner, timestamp)
            of_hand = (_GRADES.c.notebook_id == notebook, _GRADES.c.manual_score.is_not(None))
            by_hand = {*database.execute(select(_GRADES.c.cell_id).where(*of_hand)).scalars()}
            grades = {
                id: {
                    "auto_score": scores[name],
                    "needs_manual_grade": id in by_hand or scores[name] is None,
                }
                for id, name in self.graded.items()
            }
            self._write(_GRADES, notebook, grades)
            self._write(
                _COMMENTS,
                notebook,
                {id: {"auto_comment": comments[name]} for id, name in self.commented.items()},
            )
            self._penalise(notebook)
            database.commit()
        except BaseException:
            database.rollback()
            raise
        finally:
            database.expunge_all()  # otherwise thousands of objects stay in memory

    def _write(self, table: Table, notebook: str, entries: Mapping[str, dict[str, Any]]) -> None:
        """Write some columns of the entries about these cells; new ones where there are none.

        Statements about many rows at once: as objects of nbgrader's they take thrice the time.
        """
        database, of = self._book.db, table.c.notebook_id == notebook
        known = {*database.execute(select(table.c.cell_id).where(of)).scalars()}
        rows = [{"cell": id, **columns} for id, columns in entries.items() if id in known]
        if rows:
            changes: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "cell"}
            of_cell = table.c.cell_id == bindparam("cell")
            database.execute(update(table).where(of, of_cell).values(changes), rows)
        if new := [
            {"cell_id": id, "notebook_id": notebook, **columns}
            for id, columns in entries.items()
            if id not in known
        ]:
            database.execute(insert(table), new)

    def extend(self, learner: str, days: float) -> None:
        """Extend a learner's due date by some days; this replaces an earlier extension.

        The penalty of what is graded already is computed again. Raises CourseError where there
        is no due date, or where the gradebook does not know the learner.
        """
        if self._due is None:
            raise CourseError("This chapter has no due date, so there is nothing to extend.")
        database = self._book.db
        if database.get(Student, learner) is None:
            raise CourseError(f"The gradebook does not know {learner}: nbgrader db student add.")
        notebook = self._submission(learner, None)
        self._book.grant_extension(self._name, learner, days=days)
        self._penalise(notebook)
        database.commit()

    def _submission(self, learner: str, timestamp: str | None) -> str:
        """The id of the entry of a submission's notebook, made with all above it where needed."""
        database, moment = self._book.db, _moment(timestamp)
        wanted = {"assignment_id": self._id, "student_id": learner}
        id = database.execute(select(_SUBMISSIONS.c.id).filter_by(**wanted)).scalar()
        if id is None:
            known = select(_STUDENTS.c.id).where(_STUDENTS.c.id == learner)
            if database.execute(known).scalar() is None:
                self._add(_STUDENTS, id=learner)
            id = self._add(_SUBMISSIONS, **wanted, timestamp=moment)
        elif moment:
            submission = _SUBMISSIONS.c.id == id
            database.execute(update(_SUBMISSIONS).where(submission).values(timestamp=moment))
        of = _NOTEBOOKS.c.assignment_id == id
        columns = select(_NOTEBOOKS.c.notebook_id, _NOTEBOOKS.c.id).where(of)
        notebooks = {row.notebook_id: row.id for row in database.execute(columns)}
        for notebook in self._notebooks - notebooks.keys():
            notebooks[notebook] = self._add(_NOTEBOOKS, notebook_id=notebook, assignment_id=id)
        return notebooks[self._notebook]

    def _add(self, table: Table, **columns: Any) -> str:
        """The key of a new row."""
        return str(self._book.db.execute(insert(table), columns).inserted_primary_key[0])

    def _penalise(self, notebook: str) -> None:
        """Take off what lateness costs now."""
        penalty = None
        if self._due is not None:
            entry = self._book.db.get_one(SubmittedNotebook, notebook, populate_existing=True)
            penalty = _penalty(entry, self._config)
        of = _NOTEBOOKS.c.id == notebook
        self._book.db.execute(update(_NOTEBOOKS).where(of).values(late_submission_penalty=penalty))


def _moment(timestamp: str | None) -> datetime | None:
    """A moment of a result as the gradebook has it."""
    moment = datetime.fromisoformat(timestamp) if timestamp else None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment else None


def _penalty(notebook: SubmittedNotebook, config: Config) -> float | None:
    """The penalty of nbgrader's plugin for late work, between 0 and the points."""
    submission = notebook.assignment
    late = submission.total_seconds_late if submission.assignment.duedate else 0
    if late <= 0:
        return None
    plugin = config.AssignLatePenalties.get("plugin_class", LateSubmissionPlugin)(config=config)
    penalty = plugin.late_submission_penalty(submission.student_id, notebook.score, late)
    return None if penalty is None else min(max(penalty, 0), notebook.score)


def check_current(root: Path, source: Source, results: Sequence[Result], config: Config) -> None:
    """Raises CourseError unless these results are of the chapter and the gradebook of now.

    source: the chapter. config: nbgrader's.
    """
    paths.check_exercises(root)
    agreement.check_notebooks(source)
    with closing(ChapterEntries(root, source.chapter, config)) as entries:
        # before the versions: `course grade`, the command for these, would refuse
        agreement.check_gradebook(source, entries.cells, entries.extra_notebooks)
        agreement.check_versions(source, results)
        entries.check(results)


def roster(root: Path, config: Config) -> list[str]:
    """The learners whom the gradebook knows; none where there is no gradebook yet."""
    url = _url(root, config)
    file = url.removeprefix("sqlite:///")
    if file != url and not Path(file).is_file():
        return []  # opening it would make one
    with opened(root, config) as book:
        return sorted(book.db.execute(select(Student.id)).scalars())


def class_list(root: Path, config: Config) -> set[str]:
    """The learners who have a name or an address in the gradebook; all learners if nobody has one.

    Grading adds every learner who handed something in, with an id alone. So an id alone may be the
    mistyped name of a folder.
    """
    if not (known := roster(root, config)):
        return set()
    with opened(root, config) as book:
        persons = [row for row in book.students if row.first_name or row.last_name or row.email]
        return {row.id for row in persons} or {*known}


def opened(root: Path, config: Config) -> Gradebook:
    """The gradebook. Raises CourseError if it is locked, damaged or of another program."""
    url = _url(root, config)
    try:
        course = str(config.CourseDirectory.get("course_id", "")) or "default_course"
        if make_url(url).get_backend_name() == "sqlite":
            tables = inspect(create_engine(url, poolclass=NullPool)).get_table_names()
            if tables and _SUBMISSIONS.name not in tables:  # nbgrader would make its own there
                raise SQLAlchemyError("it has tables of another program")
        book = Gradebook(url, course)
        book.db.execute(select(Student.id).limit(1))
    except SQLAlchemyError as problem:
        raise CourseError(
            f"The gradebook {make_url(url)!r} cannot be opened "
            f"({getattr(problem, 'orig', None) or problem}). Where another program holds it, wait "
            "for that; where you may not read or write it, ask who may. Where it is damaged or not "
            "nbgrader's, put a copy in its place, or move it away and make a new one: nbgrader "
            "generate_assignment CHAPTER --force, then course grade CHAPTER, for each chapter. "
            "Nothing of what was graded is lost; points and comments by hand are in the gradebook "
            "alone."
        ) from None
    return book


def _url(root: Path, config: Config) -> str:
    course = config.CourseDirectory
    return str(course.db_url if "db_url" in course else f"sqlite:///{root}/course/gradebook.db")
