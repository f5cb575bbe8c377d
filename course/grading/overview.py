"""`course report`: how a class did in a chapter, as one page and three tables.

    course/reports/CHAPTER/index.html      the page; no script, nothing from elsewhere
    course/reports/CHAPTER/learners.csv    points by learner and exercise
    course/reports/CHAPTER/exercises.csv   how each exercise went
    course/reports/CHAPTER/cases.csv       how each case of each check went

Learners have pseudonyms, the same ones each time; git ignores the folder. All of it is read from
the results that grading left in `course/graded/`.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from course.grading import batch, similar
from course.grading.result import Graded, Result
from course.grading.similar import Pair
from course.notebook import exercise, matching
from course.notebook.report import Report
from course.shared import files, paths
from course.shared.errors import CourseError

PASSED, PARTLY, FAILED, NOT_STARTED = "passed", "partly", "failed", "not started"
_FILES = re.compile(r", but '.*'(?=\. )")
"""What was handed in in place of a notebook: names of files, in which learners write their own."""
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


# from the folder of results, and into that of the report


def write(root: Path, chapter: str, *, names: bool = False, config: Any = None) -> Path:
    """Write the report of a chapter and say where its page lies.

    names: the learners' own, in place of pseudonyms. config: nbgrader's.
    Raises CourseError if nothing is graded.
    """
    from course.authoring.release import nbgrader_config
    from course.grading.gradebook import roster  # nbgrader takes a second to import
    from course.grading.overview_page import page

    known = roster(root, nbgrader_config(own=True) if config is None else config)
    results = list(_results(root, chapter))
    if not names:
        results = [replace(it, sentence=_FILES.sub("", it.sentence)) for it in results]
    overview = Overview(chapter, results, known, _given_cells(root, chapter))
    if not overview.results:
        raise CourseError(f"Nothing of {chapter} is graded yet: course grade {chapter}")
    secret = batch.secret_of(root)

    def name(learner: str) -> str:
        return _safe(learner) if names else pseudonym(secret, learner)

    folder = root / "course" / "reports" / chapter
    for file, rows in (
        ("learners.csv", _learners(overview, name)),
        ("exercises.csv", _exercises(overview)),
        ("cases.csv", _cases(overview)),
    ):
        files.write(folder / file, _csv(rows))
    files.write(folder / "index.html", page(overview, name, is_named=names))
    return folder / "index.html"


def _given_cells(root: Path, chapter: str) -> list[str]:
    """The code cells of the released notebook."""
    released = paths.notebook_in(paths.notebooks(root), chapter)
    if not released.is_file():
        return []
    cells = json.loads(released.read_text(encoding="utf-8"))["cells"]
    return ["".join(it["source"]) for it in cells if it["cell_type"] == "code"]


def pseudonym(secret: bytes, learner: str) -> str:
    """A name that stays the same for this learner in this course, and tells nothing."""
    digest = hmac.new(secret, b"pseudonym:" + learner.encode("utf-8", "replace"), hashlib.sha256)
    return f"learner-{digest.hexdigest()[:8]}"  # with 6 two of 2,000 are often the same


def _results(root: Path, chapter: str) -> Iterator[Result]:
    for file in sorted((root / "course" / "graded").glob(f"*/{chapter}.json")):
        try:
            yield Result.from_json(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # damaged, or of an older format; grading writes it again


def _learners(overview: Overview, name: Any) -> Iterator[list[object]]:
    ids = [it.id for it in overview.exercises]
    yield ["learner", "status", "points", "possible", *ids, "troubles", "repaired", "source"]
    for it in overview.results:
        points = {each.report.exercise_id: each.report.score for each in it.exercises}
        row = [points.get(id, "") for id in ids]
        rest = [len(it.troubles), len(it.repaired), it.source[:12]]
        yield [name(it.learner), it.status, it.score, it.possible, *row, *rest]
    for learner in overview.absent:
        yield [name(learner), "nothing", 0.0, overview.possible, *[""] * len(ids), 0, 0, ""]


def _exercises(overview: Overview) -> Iterator[list[object]]:
    statuses = (PASSED, PARTLY, FAILED, NOT_STARTED)
    yield [
        "exercise",
        "title",
        "possible",
        "mean",
        *statuses,
        "commonest mistake",
        "times",
        "hints",
    ]
    for it in overview.exercises:
        mistake = it.mistakes[0] if it.mistakes else ("", 0)
        shares = [round(it.share(status), 4) for status in statuses]
        yield [it.id, it.title, it.possible, round(it.mean, 3), *shares, *mistake, it.hints]


def _cases(overview: Overview) -> Iterator[list[object]]:
    yield ["exercise", "case", "passed", "ran"]
    for it in overview.exercises:
        for label, (passed, ran) in it.cases.items():
            yield [it.id, label, passed, ran]


def _csv(rows: Iterable[list[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [_safe(it) if isinstance(it, str) else it for it in row] for row in rows
    )
    return text.getvalue()


def _safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text
