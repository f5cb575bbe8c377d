"""Answers that four beginners typed, who had nothing but the released notebooks.

A file holds those of a chapter. Of each answer: the exercise, whether it is right, what a wrong one
is told, then what its author meant, and the code without its docstring. What is told is the name of
a mistake, a slip or a relation, or the words of the rule that it breaks; "the rule" of a prediction
is that of its question. "-" stands where nothing is named.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.exercise import load
from course.notebook.report import Report

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CHAPTERS = sorted(path.stem for path in HERE.glob("*.md"))

pytestmark = pytest.mark.rest


@dataclass(frozen=True)
class Typed:
    """One answer."""

    exercise: str
    is_right: bool
    told: str
    meaning: str
    source: str


def typed(chapter: str) -> Iterator[Typed]:
    """The answers of a chapter's file."""
    text = (HERE / f"{chapter}.md").read_text(encoding="utf-8")
    for entry in text.split("\n## ")[1:]:
        head, _, rest = entry.partition("\n")
        meaning, _, code = rest.partition("```python\n")
        exercise, label, *words = head.split(" | ")
        source = code.partition("\n```")[0]
        yield Typed(exercise, label == "right", "".join(words), meaning.strip(), source)


def imported(chapter: str) -> str:
    """The imports of a chapter's first cell."""
    text = (ROOT / "solutions" / f"{chapter}.py").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    return "\n".join(line for line in lines if not line.startswith("from course"))


_NUMBERS = itertools.count()


def report_on(one: Typed) -> Report:
    """The report on the answer, as if its cell had been run."""
    name = f"<answer {next(_NUMBERS)}>"
    linecache.cache[name] = len(one.source), None, one.source.splitlines(keepends=True), name
    names = {"tk": tk, "np": np}
    exercise = load()[one.exercise]
    exec(exercise.imports, names)
    exec(imported(exercise.chapter), names)
    exec(compile(one.source, name, "exec", dont_inherit=True), names)
    return judge(exercise, names[exercise.name], seconds=15, source=one.source)


def told(report: Report, one: Typed) -> str:
    """What a wrong answer is told, as the files write it."""
    rules = [row.label.strip("“”") for row in report.rows if row.label.startswith("“")]
    unnamed = "the rule" if load()[one.exercise].kind == "predict" else "-"
    return rules[0] if rules else report.mistake or unnamed


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_right_answers_pass_and_wrong_ones_are_told_why(chapter):
    surprises = []
    for one in typed(chapter):
        report = report_on(one)
        if (report.status == "passed") != one.is_right:
            surprises.append(f"{one.exercise} ({one.meaning}) is {report.status}:\n{one.source}")
        elif not one.is_right and report.mistake and not report.message:
            surprises.append(f"{one.exercise}: {report.mistake} has no sentence:\n{one.source}")
        elif not one.is_right and one.told not in ("-", told(report, one)):
            surprises.append(
                f"{one.exercise} ({one.meaning}) is told {told(report, one)!r}, not {one.told!r}:\n"
                f"{one.source}"
            )
    assert not surprises, "\n\n".join(surprises)


@pytest.mark.parametrize(
    "chapters",
    [[chapter for chapter in CHAPTERS if chapter < "10"], *([each] for each in CHAPTERS[10:12])],
    ids=lambda chapters: chapters[0],
)
def test_four_of_five_wrong_answers_are_named(chapters):
    wrong = [one for chapter in chapters for one in typed(chapter) if not one.is_right]
    written = [one for one in wrong if load()[one.exercise].kind != "predict"]
    assert len(written) > 60
    assert sum(one.told != "-" for one in written) >= 0.8 * len(written)
