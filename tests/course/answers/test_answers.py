"""What beginners typed is right or wrong as `typed_answers` says, and is told why."""

from __future__ import annotations

import itertools
import linecache
from pathlib import Path

import numpy as np
import pytest
from typed_answers import CHAPTERS, Typed, typed

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.exercise import load
from course.notebook.report import Report

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.rest


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
        elif "Seen" in str(report):
            surprises.append(f"{one.exercise} ({one.meaning}) is shown a class of the course")
        elif not one.is_right and one.told not in ("-", told(report, one)):
            surprises.append(
                f"{one.exercise} ({one.meaning}) is told {told(report, one)!r}, not {one.told!r}:\n"
                f"{one.source}"
            )
    assert not surprises, "\n\n".join(surprises)


@pytest.mark.parametrize(
    "chapters",
    [[chapter for chapter in CHAPTERS if chapter < "10"], *([each] for each in CHAPTERS[10:])],
    ids=lambda chapters: chapters[0],
)
def test_four_of_five_wrong_answers_are_named(chapters):
    wrong = [one for chapter in chapters for one in typed(chapter) if not one.is_right]
    written = [one for one in wrong if load()[one.exercise].kind != "predict"]
    assert len(written) > 60
    assert sum(one.told != "-" for one in written) >= 0.8 * len(written)


def test_a_second_barrier_is_advised_although_there_is_a_first():
    body = """    s = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    s[t] = x[0, t]
    out[0, t] = s[3 - t]
    cuda.syncthreads()"""
    source = f"@cuda.kernel\ndef softmax(x, out, columns):\n{body}"
    row = report_on(Typed("softmax-rows", False, "", "", source)).rows[0]
    assert "cuda.syncthreads() between line" in row.tip
