"""The one writer: puts results into nbgrader's gradebook, and writes the autograded notebooks.

For each result, in this order, so that a run that is broken off is finished by the next one:

    course/graded/LEARNER/CHAPTER.json       the result, as it came
    course/autograded/LEARNER/CHAPTER/       the notebook that Formgrader and feedback show
    the gradebook                            one transaction
    course/graded/LEARNER/CHAPTER.applied    the hash of the result: all of it is done

Each step gives the same when it is done twice. What people entered by hand is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import html
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from nbgrader.api import (
    Assignment,
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
from traitlets.config import Config

from course import files
from course.errors import CourseError
from course.grading import clean, intake
from course.grading.intake import Cell, Source
from course.grading.result import Graded, Result


def graded_folder(root: Path) -> Path:
    """Where results lie."""
    return root / "course" / "graded"


def result_file(root: Path, learner: str, chapter: str) -> Path:
    """Where the result of a submission lies."""
    return graded_folder(root) / learner / f"{chapter}.json"


def stored(root: Path, learner: str, chapter: str) -> Result | None:
    """The result of the last run, or None."""
    try:
        return Result.from_json(result_file(root, learner, chapter).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


class Writer:
    """Writes the results of one chapter. Use it in one process at a time.

    config: nbgrader's; its gradebook may be SQLite or PostgreSQL.
    Raises CourseError if another process writes, or if the gradebook does not know the chapter.
    """

    def __init__(self, root: Path, source: Source, config: Config) -> None:
        self.root, self.source, self.config = root, source, config
        self._lock = _locked(graded_folder(root))
        course = config.CourseDirectory
        url = course.db_url if "db_url" in course else f"sqlite:///{root}/course/gradebook.db"
        self._gradebook = Gradebook(str(url), str(course.get("course_id", "")) or "default_course")
        # flushed and refreshed where it is needed: by default each commit forgets all that was read
        session = self._gradebook.db()
        session.autoflush = session.expire_on_commit = False
        late = config.AssignLatePenalties.get("plugin_class", LateSubmissionPlugin)
        self._late = late(config=config)
        try:
            self._assignment: Assignment = self._gradebook.find_assignment(source.chapter)
        except MissingEntry:
            self.close()
            raise CourseError(
                f"The gradebook does not know {source.chapter} yet: "
                f"nbgrader generate_assignment {source.chapter}"
            ) from None

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the gradebook."""
        self._gradebook.close()
        os.close(self._lock)

    def is_applied(self, result: Result) -> bool:
        """Whether everything about this result is written already."""
        marker = self._marker(result)
        autograded = self._notebook_file(result)
        return (
            marker.is_file()
            and autograded.is_file()
            and marker.read_text(encoding="ascii") == _hash(result.to_json())
            and self._is_entered(result)
        )

    def _is_entered(self, result: Result) -> bool:
        """Whether the gradebook has these points: it may be another, or an older one, restored."""
        found = self._entered.get(result.learner, {})
        return all(it.cell in found for it in result.exercises) and all(
            found[it.cell] == min(it.report.score, self._most[it.cell]) for it in result.exercises
        )

    @cached_property
    def _entered(self) -> dict[str, dict[str, float | None]]:
        """The points of earlier runs in the gradebook, by learner and cell."""
        rows = (
            self._gradebook.db.query(
                SubmittedAssignment.student_id, BaseCell.name, Grade.auto_score
            )
            .select_from(Grade)
            .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
            .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(BaseCell, Grade.cell_id == BaseCell.id)
            .filter(SubmittedAssignment.assignment_id == self._assignment.id)
        )
        found: dict[str, dict[str, float | None]] = {}
        for learner, cell, score in rows:
            found.setdefault(learner, {})[cell] = score
        return found

    @cached_property
    def _most(self) -> dict[str, float]:
        cells = (cell for it in self._assignment.notebooks for cell in it.grade_cells)
        return {it.name: float(it.max_score) for it in cells}

    def apply(self, result: Result) -> None:
        """Write everything about a result."""
        file = result_file(self.root, result.learner, result.chapter)
        text = result.to_json()
        self._marker(result).unlink(missing_ok=True)
        files.write(file, text)
        if result.timings:
            beside = file.with_suffix(".timings.json")
            files.write(beside, json.dumps({k: round(v, 4) for k, v in result.timings.items()}))
        self._write_notebook(result)
        self._grade(result)
        files.write(self._marker(result), _hash(text))

    def _marker(self, result: Result) -> Path:
        return result_file(self.root, result.learner, result.chapter).with_suffix(".applied")

    # the notebook

    def _notebook_file(self, result: Result) -> Path:
        folder = self.root / "course" / "autograded" / result.learner / result.chapter
        return folder / f"{result.chapter}.ipynb"

    def _write_notebook(self, result: Result) -> None:
        """The folder of the autograded notebook, whole or not at all."""
        folder = self._notebook_file(result).parent
        beside = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        # on one line: with an indent it is not the part of json in C that writes it
        text = json.dumps(notebook(result, self.source), ensure_ascii=False)
        (beside / f"{result.chapter}.ipynb").write_text(text + "\n", encoding="utf-8")
        # both travel with the feedback: without them `release_feedback` stops, for everybody
        (beside / "timestamp.txt").write_text(result.timestamp or "", encoding="ascii")
        handed = self.root / "course" / "submitted" / result.learner / result.chapter
        secret = intake.exchange_secret(handed) or secrets.token_hex(16)
        (beside / "submission_secret.txt").write_text(secret, encoding="ascii")
        for name, content in self.source.files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _remove(folder)
        beside.rename(folder)

    # the gradebook

    def _grade(self, result: Result) -> None:
        database = self._gradebook.db
        try:
            submission = self._submission(result.learner)
            if result.timestamp:
                moment = datetime.fromisoformat(result.timestamp)
                submission.timestamp = moment.astimezone(UTC).replace(tzinfo=None)
            entry = next(it for it in submission.notebooks if it.name == result.chapter)
            cells = {intake.grade_id(it): it for it in result.notebook.get("cells", [])}
            graded = {it.cell: it for it in result.exercises}
            for grade in entry.grades:
                self._enter(grade, graded.get(grade.name), cells.get(grade.name))
            for comment in entry.comments:
                unchanged = self._is_unchanged(cells.get(comment.name))
                comment.auto_comment = "No response." if unchanged else None
            database.flush()
            database.refresh(entry)
            self._penalise(submission, entry)
            database.commit()
        except BaseException:
            database.rollback()
            raise

    def _submission(self, learner: str) -> SubmittedAssignment:
        """The learner's entry for this chapter, made if it is not there."""
        database = self._gradebook.db
        try:
            return self._gradebook.find_submission(self.source.chapter, learner)
        except MissingEntry:
            pass
        student = database.get(Student, learner)
        if student is None:
            student = Student(id=learner)
            database.add(student)
            database.flush()
        # by number: the assignment would collect them all
        made = SubmittedAssignment(assignment_id=self._assignment.id, student_id=learner)
        for each in self._assignment.notebooks:
            entry = SubmittedNotebook(notebook_id=each.id, assignment=made)
            for cell in each.grade_cells:
                Grade(cell_id=cell.id, notebook=entry)
            for cell in each.solution_cells:
                Comment(cell_id=cell.id, notebook=entry)
            for cell in each.task_cells:
                Comment(cell_id=cell.id, notebook=entry)
                Grade(cell_id=cell.id, notebook=entry)
        database.add(made)
        database.flush()
        database.refresh(made)
        return made

    def _enter(self, grade: Any, found: Graded | None, cell: Cell | None) -> None:
        """One grade, by nbgrader's rules: what a person entered stays and is looked at again."""
        if found is not None:
            grade.auto_score = min(found.report.score, float(grade.max_score))
        else:  # read by a person, unless nothing was written
            grade.auto_score = 0.0 if cell is None or self._is_unchanged(cell) else None
        is_open = grade.manual_score is not None or grade.auto_score is None
        grade.needs_manual_grade = is_open

    def _is_unchanged(self, cell: Cell | None) -> bool:
        ours = None if cell is None else self.source.by_id.get(cell["id"])
        return cell is None or (ours is not None and ours["source"] == cell["source"])

    def _penalise(self, submission: SubmittedAssignment, entry: SubmittedNotebook) -> None:
        entry.late_submission_penalty = None
        late = submission.total_seconds_late
        if late > 0:
            penalty = self._late.late_submission_penalty(submission.student_id, entry.score, late)
            if penalty is not None:
                entry.late_submission_penalty = min(max(penalty, 0), entry.score)


def _locked(folder: Path) -> int:
    """An open file that one process at a time can have; it is given back when that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        raise CourseError(
            "Another `course grade` is at work on this course; wait for it."
        ) from None
    return opened


def notebook(result: Result, source: Source) -> dict[str, Any]:
    """The autograded notebook: ours where it is ours, clean where it is the learner's."""
    graded = {it.cell: it for it in result.exercises}
    cells = [_written(it, source, graded) for it in result.notebook.get("cells", [])]
    if result.status != "graded":
        cells = [_written(dict(it), source, graded) for it in source.released["cells"]]
    note = _note(result)
    return {
        "cells": ([note] if note else []) + cells,
        "metadata": source.released["metadata"],
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _written(cell: Cell, source: Source, graded: Mapping[str, Graded]) -> Cell:
    ours = source.by_id.get(cell["id"])
    is_ours = ours is not None and ours["source"] == cell["source"]
    written: Cell = {
        "id": cell["id"],
        "cell_type": cell["cell_type"],
        "metadata": ours["metadata"] if ours is not None else {},
        "source": cell["source"],
    }
    if cell["cell_type"] == "code":
        count = cell.get("execution_count")
        written["execution_count"] = count if type(count) is int else None
        written["outputs"] = _outputs(cell, source, is_ours, graded)
    elif not is_ours:
        written["cell_type"] = "markdown"  # a raw cell may hold whatever a browser runs
        written["source"] = clean.clean_markdown(cell["source"])
    return written


def _outputs(
    cell: Cell, source: Source, is_ours: bool, graded: Mapping[str, Graded]
) -> list[clean.Output]:
    found = graded.get(str(intake.grade_id(cell)))
    if found is not None:
        data = {"text/plain": repr(found.report), "text/html": found.report.html()}
        return [
            {
                "output_type": "execute_result",
                "execution_count": None,
                "data": data,
                "metadata": {},
            }
        ]
    if is_ours and "show" in cell["metadata"].get("tags", []):
        solved: Cell = next((it for it in source.solved["cells"] if it["id"] == cell["id"]), {})
        return list(solved.get("outputs", []))
    return clean.clean_outputs(cell.get("outputs", []))


def _note(result: Result) -> Cell | None:
    """What the learner and the instructor should know, above the notebook."""
    said = [result.sentence, *result.repaired, *result.troubles]
    if result.profile == "unsafe":
        said.append("This was graded without a sandbox.")
    lines = [f"<li>{html.escape(it)}</li>" for it in said if it]
    if not lines:
        return None
    # one block of HTML: names of files stand in these sentences, and are no markdown
    text = f"<div><strong>About this submission</strong><ul>{''.join(lines)}</ul></div>"
    return {"id": "about-this", "cell_type": "markdown", "metadata": {}, "source": text}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _remove(folder: Path) -> None:
    """nbgrader makes its files read-only."""
    if folder.exists():
        for path in folder.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(folder)
