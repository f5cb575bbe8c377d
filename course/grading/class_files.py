"""`course report`: how a class did in a chapter, as a page and a table.

    course/reports/CHAPTER/index.html      the page; no script, nothing from elsewhere
    course/reports/CHAPTER/learners.csv    points by learner and exercise

Learners have pseudonyms, the same ones each time; git ignores the folder. Points are read from the
gradebook, all else from the results that grading left in `course/graded/`.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from course.grading import batch
from course.grading.class_page import page
from course.grading.class_report import ClassReport, Name
from course.grading.result import all_stored
from course.notebook import matching
from course.shared import files
from course.shared.errors import CourseError

_FILES = re.compile(r", but '.*'(?=\. )")
"""The names of files that were handed in instead of a notebook: learners put their own in them."""


def write(
    root: Path, chapter: str, *, names: bool = False, config: Any = None
) -> tuple[Path, ClassReport]:
    """Write the report of a chapter; where its page lies, and what it says.

    names: the learners' own, in place of pseudonyms. config: nbgrader's.
    Raises CourseError if nothing is graded, or if something is graded by other points, or if the
    gradebook has points without a result.
    """
    from course.authoring.release import nbgrader_config
    from course.grading import gradebook, grades  # nbgrader takes a second to import

    config = nbgrader_config(own=True) if config is None else config
    known = gradebook.roster(root, config)
    results = all_stored(root, chapter)
    if not names:
        results = [replace(result, sentence=_FILES.sub("", result.sentence)) for result in results]
    handed_in = [folder.name for folder in batch.folders(root, chapter)]
    source = matching.source_of(root, chapter)
    given = [cell["source"] for cell in source.released["cells"] if cell["cell_type"] == "code"]
    counted = [result for result in results if result.learner in {*known, *handed_in}]
    gradebook.check_current(root, source, counted, config)
    waiting = batch.not_graded(root, chapter)  # what was graded of them is not the last
    results = [result for result in results if result.learner not in waiting]
    if not results:
        raise CourseError(f"Nothing of {chapter} is graded yet: course grade {chapter}")
    with gradebook.opened(root, config) as book:
        grades.check_given(book, chapter, {result.learner for result in counted})
    entered = grades.by_learner(root, chapter, config)
    report = ClassReport(chapter, results, known, given, handed_in, entered)
    secret = batch.secret_of(root)

    def name(learner: str) -> str:
        return _safe(learner) if names else pseudonym(secret, learner)

    folder = root / "course" / "reports" / chapter
    files.write(folder / "learners.csv", _csv(_learners(report, name)))
    files.write(folder / "index.html", page(report, source.title, name, is_named=names))
    return folder / "index.html", report


def pseudonym(secret: bytes, learner: str) -> str:
    """A name that stays the same for this learner in this course, and tells nothing."""
    digest = hmac.new(secret, b"pseudonym:" + learner.encode("utf-8", "replace"), hashlib.sha256)
    return f"learner-{digest.hexdigest()[:8]}"  # of 6 signs two among 2,000 are often the same


def _learners(report: ClassReport, name: Name) -> Iterator[list[object]]:
    ids = [exercise.id for exercise in report.exercises]
    yield ["learner", "status", "points", "possible", *ids, "troubles", "repaired", "source"]
    for result in report.results:
        points = {row.report.exercise_id: report.points(result, row) for row in result.exercises}
        first = [name(result.learner), result.status, report.points(result), report.possible]
        last = [len(result.troubles), len(result.repaired), result.source[:12]]
        yield [*first, *[points.get(id, "") for id in ids], *last]
    without = [(learner, "nothing") for learner in report.absent]
    without += [(learner, "not graded") for learner in report.not_graded]
    for learner, status in without:
        yield [name(learner), status, 0.0, report.possible, *[""] * len(ids), 0, 0, ""]


def _csv(rows: Iterable[list[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [_safe(value) if isinstance(value, str) else value for value in row] for row in rows
    )
    return text.getvalue()


def _safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text
