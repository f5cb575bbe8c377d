"""The one writer: puts results into nbgrader's gradebook, and writes the autograded notebooks.

For each result, in this order, so that a run that is broken off is finished by the next one:

    course/autograded/LEARNER/CHAPTER/       the notebook that Formgrader and feedback show
    the gradebook                            one transaction
    course/graded/LEARNER/CHAPTER.json       the result: where this exists, all is written

Each step gives the same when it is done twice. What people entered by hand is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from traitlets.config import Config

from course.grading import agreement, clean, intake
from course.grading.result import Graded, Result, autograded_file, result_file, stored
from course.grading.session import remove
from course.grading.template import template
from course.notebook import matching
from course.notebook.matching import Cell, Source
from course.shared import files
from course.shared.errors import CourseError


class Writer:
    """Writes the results of one chapter. Use it in one process at a time.

    config: nbgrader's; its gradebook may be SQLite or PostgreSQL.
    Raises CourseError if another process writes, or if the gradebook does not know the chapter.
    """

    def __init__(self, root: Path, source: Source, config: Config) -> None:
        self.root, self.source = root, source
        self._lock = _locked(root / "course" / "graded")
        try:
            from course.grading.gradebook import ChapterEntries  # nbgrader takes a second

            self._entries = ChapterEntries(root, source.chapter, config)
            agreement.check_gradebook(source, self._entries.cells, self._entries.extra_notebooks)
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Leave the gradebook."""
        self._entries.close()
        os.close(self._lock)

    def is_applied(self, result: Result) -> bool:
        """Whether everything about this result is written already."""
        known = stored(self.root, result.learner, result.chapter)
        return known == result and known.has_page(self.root) and self._entries.has(result)

    def apply(self, result: Result) -> None:
        """Write everything about a result.

        Raises CourseError if it was graded by other points than the gradebook's, which would be
        capped: by a worker with other definitions, for instance.
        """
        agreement.check_results(result.chapter, [result], self._entries.checks)
        file = result_file(self.root, result.learner, result.chapter)
        file.unlink(missing_ok=True)
        written = write_page(self.root, self.source, result)
        self._grade(result)
        if result.timings:
            seconds = {step: round(seconds, 4) for step, seconds in result.timings.items()}
            files.write(file.with_suffix(".timings.json"), json.dumps(seconds))
        files.write(file, replace(result, autograded=written).to_json())

    def _grade(self, result: Result) -> None:
        cells = {matching.grade_id(cell): cell for cell in result.cells}
        points = {exercise.cell: exercise.report.score for exercise in result.exercises}
        entries = self._entries
        graded, commented = entries.graded.values(), entries.commented.values()
        unchanged = {name for name in entries.cells if self._is_unchanged(cells.get(name))}
        unchanged -= entries.tasks & cells.keys()  # a task's own text is never changed
        # a cell without a check is graded by a person, unless nothing was written in it
        scores = {name: points.get(name, 0.0 if name in unchanged else None) for name in graded}
        silent = unchanged if result.status == "graded" else set()
        comments = {name: "No response." if name in silent else None for name in commented}
        entries.enter(result.learner, result.timestamp, scores, comments)

    def _is_unchanged(self, cell: Cell | None) -> bool:
        return cell is None or self.source.by_id.get(cell["id"], {}).get("source") == cell["source"]


def write_page(root: Path, source: Source, result: Result) -> str:
    """Write the folder of the autograded notebook, whole or not at all; the notebook's hash.

    Raises CourseError if the learner's folder is a link: what it leads to may be anything.
    """
    page = result.page or autograded(result, source)
    folder = autograded_file(root, result.learner, result.chapter).parent
    if folder.parent.is_symlink():
        raise CourseError(f"{folder.parent} is a link; put a folder in its place.")
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    files.write(beside / f"{result.chapter}.ipynb", page)
    # without both of these `release_feedback` stops for everybody
    (beside / "timestamp.txt").write_text(result.timestamp or "", encoding="ascii")
    handed = root / "course" / "submitted" / result.learner / result.chapter
    secret = intake.exchange_secret(handed) or secrets.token_hex(16)
    (beside / "submission_secret.txt").write_text(secret, encoding="ascii")
    for name, content in source.files.items():
        files.write(beside / name, content)
    remove(folder)  # nbgrader makes its files read-only
    beside.rename(folder)
    return hashlib.sha256(page.encode()).hexdigest()


def _locked(folder: Path) -> int:
    """The descriptor of a file that one process at a time can lock, until it ends."""
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


def autograded(result: Result, source: Source) -> str:
    """The autograded notebook as JSON: what a learner wrote in it is clean."""
    graded = {exercise.cell: exercise for exercise in result.exercises}
    cells = result.cells if result.status == "graded" else source.released["cells"]
    quota = clean.Quota()
    cells = [_written(cell, source, graded, quota) for cell in cells]
    content = {
        "cells": _note(result) + cells,
        "metadata": source.released["metadata"],
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    # on one line: with an indent it is not the part of json in C that writes it
    return json.dumps(content, ensure_ascii=False, sort_keys=True) + "\n"


def _written(cell: Cell, source: Source, graded: Mapping[str, Graded], quota: clean.Quota) -> Cell:
    released = source.by_id.get(cell["id"], {})
    is_released = released.get("source") == cell["source"]
    written: Cell = {name: cell[name] for name in ("id", "cell_type", "source")}
    written["metadata"] = released.get("metadata", {})
    if cell["cell_type"] == "code":
        if not is_released:
            written["source"] = clean.cut_code(cell["source"], quota)
        count = cell.get("execution_count")
        written["execution_count"] = count if type(count) is int else None
        written["outputs"] = _outputs(cell, graded)
    elif not is_released:
        written["cell_type"] = "markdown"  # a raw cell may hold whatever a browser runs
        written["source"] = clean.clean_markdown(cell["source"], quota)
    return written


def _outputs(cell: Cell, graded: Mapping[str, Graded]) -> list[clean.Output]:
    check = graded.get(str(matching.grade_id(cell)))
    if check is None:
        return list(cell.get("outputs", []))
    data = {"text/plain": repr(check.report), "text/html": check.report.html()}
    result: clean.Output = {"output_type": "execute_result", "execution_count": None}
    return [{**result, "metadata": {}, "data": data}]


def _note(result: Result) -> list[Cell]:
    """What the learner and the instructor should know, as a cell above the notebook."""
    sentences = [result.sentence, *result.repaired, *result.troubles]
    if result.profile == "unsafe":
        sentences.append("This was graded without a sandbox.")
    if not any(sentences):
        return []
    # one block of HTML: names of files stand in these sentences, and are no markdown
    text = template("about_submission.html.j2").render(sentences=filter(None, sentences))
    return [{"id": "about-this", "cell_type": "markdown", "metadata": {}, "source": text}]
