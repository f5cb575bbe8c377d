"""The pages of feedback: their heading, and that they need no network, as Formgrader's.

`Heading` writes at the top whose submission it is, when it was handed in, how late, and the points,
and beside each answer whether it is right. Formulas become MathML when a page is made.

nbgrader leaves formulas to MathJax, which its pages load from elsewhere. `Formulas` writes them as
MathML, which browsers draw themselves; the template `offline` then needs no script, and forbids
the browser to run any.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Set
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import tostring

from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import Preprocessor
from nbgrader.api import Gradebook
from nbgrader.preprocessors import GetGrades
from traitlets import Bool
from traitlets.config import Config

from course.grading import class_report
from course.grading.gradebook import check_current
from course.grading.grades import Grade, by_learner, grade_of
from course.grading.result import all_stored, autograded_file, stored
from course.notebook import exercise, matching
from course.notebook.limited import limited
from course.shared import extras, files
from course.shared.errors import CourseError, TimeLimit
from course.shared.words import duration

_TEMPLATES = Path(__file__).with_name("templates")
NOTE = "shown.txt"
"""The file beside a page with a digest of what the page shows."""
MOST = 2000
"""Characters of one formula."""
LONGEST, _LEFT = 2.0, "seconds for formulas"
"""Seconds for the formulas of one notebook, of which each text has at least a twentieth; the key in
nbconvert's resources for the seconds that are left."""

_FORMULA = re.compile(
    r"(?P<code>```.*?```|~~~.*?~~~|`[^`\n]*`|<(?P<tag>pre|code)\b.*?</(?P=tag)>|\\\$"
    r"|</?[a-z][a-z0-9]*(?:\s[^<>]*)?>)"
    r"|\$\$(?P<block>.+?)\$\$|(?<!\$)\$(?=\S)(?P<inline>[^$\n]+?)(?<=\S)\$(?!\d)",
    re.DOTALL | re.IGNORECASE,
)
_TAGS = """
math menclose mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mroot mrow mspace msqrt
mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none
"""
_ATTRIBUTES = """
accent columnalign display displaystyle fence form height linethickness lspace mathvariant maxsize
minsize movablelimits notation rowspacing rspace scriptlevel separator stretchy width
"""


def check_or_exit(root: Path, chapter: str, learners: Set[str], config: Config) -> None:
    """Raises SystemExit if grades or autograded notebooks of these learners are not those of now.

    nbgrader would print a CourseError with its traceback. config: nbgrader's.
    """
    try:
        results = [result for result in all_stored(root, chapter) if result.learner in learners]
        check_current(root, matching.source_of(root, chapter), results, config)
        whole = {result.learner for result in results if result.has_page(root)}
        if changed := sorted(learners - whole):
            sentence = f"The autograded notebook of {changed[0]} is not that of the grade"
            raise CourseError(f"{sentence}: course grade {chapter} writes it again.")
    except CourseError as problem:
        raise SystemExit(f"course: {problem}") from None


class FeedbackPage(HTMLExporter):
    """The page that a learner gets back, without a script and without anything from elsewhere."""

    def __init__(self, **options: Any) -> None:
        """Refuse grades that are not those of now, before nbgrader removes pages with `--force`."""
        super().__init__(**options)
        converter = options["parent"]  # of `nbgrader generate_feedback`
        learners = {Path(folder).parent.name for folder in converter.assignments}
        directory = converter.coursedir
        check_or_exit(Path(directory.root), directory.assignment_id, learners, self.config)

    @property
    def default_config(self) -> Config:
        """nbgrader sets a template for all HTML; one for this very class is preferred."""
        config = Config()
        config.FeedbackPage.template_name = "offline"
        config.FeedbackPage.extra_template_basedirs = [str(_TEMPLATES)]
        config.merge(super().default_config)
        return config


class Heading(GetGrades):
    """Notes what the page says of the submission, and of each answer and check in it.

    Grades are read here, too, and not by nbgrader before: where the gradebook lacks a cell, that
    would end in a traceback.
    """

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The notebook, with titles, signs and targets of links in nbgrader's metadata."""
        names = resources["nbgrader"]
        chapter, learner = names["assignment"], names["student"]
        known = exercise.load(chapter)
        root = Path(self.config.CourseDirectory.root)
        result = stored(root, learner, chapter)
        folder = root / "course" / "feedback" / learner / chapter
        assert result is not None  # `check_or_exit` has looked
        nb, resources = super().preprocess(nb, resources)
        with Gradebook(names["db_url"]) as book:
            handed = book.find_submission(chapter, learner)
            grade = grade_of(handed.student, handed, handed.assignment.max_score)
        files.write(folder / NOTE, _shown(root, chapter, grade))
        title = matching.source_of(root, chapter).title
        names["heading"] = {"title": title, **_heading(grade, is_due=bool(handed.duedate))}
        statuses = {check.cell: class_report.status_of(check) for check in result.exercises}
        answer = ""  # a check stands below the answer that it is about
        for cell in nb.cells:
            marks = cell.metadata.get("nbgrader", {})
            if not (marks.get("grade") or marks.get("solution") or marks.get("task")):
                continue
            id = str(marks["grade_id"])
            definition = known.get(id.removeprefix("check-"))
            marks["title"] = definition.title.replace("`", "") if definition else id
            if marks.get("solution") or marks.get("task"):
                answer = id
            if marks.get("grade") or marks.get("task"):
                marks["answer"] = answer or id
                status = _status(marks.get("score"), marks.get("points"), statuses.get(id))
                marks["state"], marks["sign"] = _SIGNS[class_report.STATUSES.index(status)]
        return nb, resources


_SIGNS = (("good", "✓"), ("half", "◐"), ("bad", "✗"), ("open", "○"))
"""A class of the page's style and a sign, for each of `class_report.STATUSES`."""


def _status(score: float | None, possible: float | None, by_check: str | None) -> str:
    """How an answer is: by its points, which a person may have changed; else as its check found."""
    if score is None or not possible:
        return by_check or class_report.NOT_STARTED
    if score > 0:
        return class_report.PASSED if score >= possible else class_report.PARTLY
    return class_report.NOT_STARTED if by_check == class_report.NOT_STARTED else class_report.FAILED


def older_than_grades(root: Path, chapter: str, config: Config) -> list[str]:
    """The learners whose page shows other points, comments or answers than there are now.

    config: nbgrader's.
    """
    pages = sorted((root / "course" / "feedback").glob(f"*/{chapter}/{chapter}.html"))
    grades = by_learner(root, chapter, config) if pages else {}
    older = []
    for page in pages:
        learner, note = page.parents[1].name, page.with_name(NOTE)
        shown = note.read_text("ascii") if note.is_file() else ""
        if learner in grades and shown != _shown(root, chapter, grades[learner]):
            older.append(learner)
    return older


def _shown(root: Path, chapter: str, grade: Grade) -> str:
    """A digest of all that a page of feedback shows."""
    page = autograded_file(root, grade.learner, chapter)
    answers = page.read_bytes() if page.is_file() else b""
    return hashlib.sha256(repr(grade).encode() + answers).hexdigest()


def _heading(grade: Grade, *, is_due: bool) -> dict[str, Any]:
    """Whose submission it is, when it was handed in, and how late that is."""
    name = " ".join(filter(None, [grade.first_name, grade.last_name]))
    moment, seconds = grade.handed_in, grade.seconds_late
    lateness = "in time" if is_due and moment else ""
    return {
        "learner": f"{name} ({grade.learner})" if name else grade.learner,
        "handed_in": f"{moment:%d %B %Y, %H:%M} UTC".lstrip("0") if moment else "unknown",
        "is_late": seconds > 0,
        "lateness": f"{duration(seconds)} late" if seconds > 0 else lateness,
    }


class Formulas(Preprocessor):
    """Writes the formulas in texts and in graders' comments as MathML."""

    enabled = Bool(True).tag(config=True)

    def preprocess_cell(
        self, cell: Any, resources: dict[str, Any], index: int
    ) -> tuple[Any, dict[str, Any]]:
        """The cell, with MathML where it is markdown."""
        extras.needed("latex2mathml", "teach", "A page with formulas")
        if cell.cell_type == "markdown":
            cell.source = _in_time(cell.source, resources)
        marks = cell.metadata.get("nbgrader", {})
        if isinstance(marks.get("comment"), str):
            marks["comment"] = _in_time(marks["comment"], resources)
        return cell, resources


def _in_time(text: str, resources: dict[str, Any]) -> str:
    """A text with its formulas as MathML, as it was if a notebook's formulas take too long."""
    left = resources.get(_LEFT, LONGEST)
    begun, texts = time.monotonic(), [text]
    with suppress(TimeLimit):
        limited(lambda: texts.append(with_mathml(text)), max(left, LONGEST / 20))
    resources[_LEFT] = left - (time.monotonic() - begun)
    return texts[-1]


def with_mathml(text: str) -> str:
    r"""Markdown or HTML with its formulas as MathML; code, and what cannot be read, as it was.

    >>> with_mathml("Take $x$, not `$x$`.")
    'Take <math display="inline"><mrow><mi>x</mi></mrow></math>, not `$x$`.'
    """
    return _FORMULA.sub(_replaced, text)


def _replaced(match: re.Match[str]) -> str:
    if match["code"]:
        return match[0]
    latex = unescape(match["block"] or match["inline"])
    if len(latex) > MOST:
        return match[0]
    import nh3  # as the converter, of the extra `teach`
    from latex2mathml.converter import convert_to_element

    try:
        tree = convert_to_element(latex, display="block" if match["block"] else "inline")
        text = tostring(tree, "unicode").replace("&amp;#", "&#")  # the tree's signs are references
        # nothing that a formula does not need, and nothing that markdown reads
        allowed = {"*": set(_ATTRIBUTES.split())}
        clean = nh3.clean(text, tags=set(_TAGS.split()), attributes=allowed)
        return re.sub(r"[*_`~\[\]\\$\n^|!]", lambda sign: f"&#{ord(sign[0])};", clean)
    except (Exception, RecursionError):  # whatever the converter makes of a learner's formula
        return match[0]
