"""The report about a class: what it counts, whom it names, what it must not run."""

from __future__ import annotations

import csv
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from classroom import CHAPTER, ROOT
from traitlets.config import Config

from course.grading import class_files, class_report, gradebook, grades, intake
from course.grading.class_page import groups_of
from course.grading.result import Graded, Result, result_file
from course.grading.similar import Pair
from course.notebook import exercise, matching
from course.notebook.report import Report, Row
from course.shared import files
from course.shared.errors import CourseError

EXERCISES = exercise.load(CHAPTER)


@pytest.fixture(autouse=True)
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A course whose results are made up, so that no gradebook has them."""
    for folder in ("notebooks", "solutions"):
        shutil.copytree(ROOT / folder / CHAPTER, tmp_path / folder / CHAPTER)
    monkeypatch.setattr(gradebook, "check_current", lambda *arguments: None)
    monkeypatch.setattr(gradebook, "opened", lambda *arguments: nullcontext())
    monkeypatch.setattr(grades, "check_given", lambda *arguments: None)
    monkeypatch.setattr(grades, "by_learner", lambda *arguments: {})


def result(learner: str, earned: float, answer: str = "", got: str = "", hints: int = 0) -> Result:
    passed = earned == 4
    row = Row("a square", "passed" if passed else "failed", got=got)
    status = "passed" if passed else "partly" if earned else "failed"
    mistake = "" if passed or got else "columns first"
    message = "Rows come first." if mistake else ""
    one = Report("pixels", "A `title`", status, 4.0, earned, message, rows=(row,))
    untouched = Report("nothing", "Nothing", "not started", 2.0)
    cells = [{"cell_type": "code", "source": 'hint("pixels")', "metadata": {}}] * hints
    cells.append(
        {
            "cell_type": "code",
            "source": answer,
            "metadata": {"nbgrader": {"grade_id": "pixels", "solution": True}},
        }
    )
    exercises = (
        Graded("check-pixels", replace(one, mistake=mistake)),
        Graded("check-nothing", untouched),
    )
    return Result(learner, CHAPTER, exercises=exercises, cells=cells)


def written(root: Path, *results: Result, **options: bool) -> str:
    for each in results:
        files.write(result_file(root, each.learner, CHAPTER), each.to_json())
    page, _ = class_files.write(root, CHAPTER, config=Config(), **options)
    return page.read_text(encoding="utf-8")


CLASS = (
    result("ada", 4.0),
    result("bob", 0.0, hints=2),
    result("cyd", 2.0, got="<script>alert(1)</script>"),
    result("dan", 2.0, got="<script>alert(1)</script>"),
    Result("eve", CHAPTER, status="refused", sentence="It is not a notebook."),
)


def rows(root: Path, name: str) -> list[dict[str, str]]:
    text = (root / "course" / "reports" / CHAPTER / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_page_and_table_count_what_was_graded(tmp_path: Path) -> None:
    page = written(tmp_path, *CLASS)
    for text in ("2.0 of 4 points on average", "2 hints opened", "Rows come first.", "1 of 4"):
        assert text in page
    assert [row["points"] for row in rows(tmp_path, "learners.csv")] == [
        "4.0",
        "0.0",
        "2.0",
        "2.0",
        "0",
    ]


def test_the_page_names_nobody_and_runs_nothing(tmp_path: Path) -> None:
    page = written(tmp_path, *CLASS)
    assert not re.search(r"\b(ada|bob|cyd|dan|eve)\b", page)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert not re.search(r"https?://", page)
    assert page == written(tmp_path)  # the same pseudonyms the next time


def test_the_names_of_files_are_no_pseudonyms(tmp_path: Path) -> None:
    (tmp_path / "handed" / "in").mkdir(parents=True)
    (tmp_path / "handed" / "in" / "Eve Lovelace (1).pdf").touch()
    with pytest.raises(matching.Refused) as refused:
        intake.read(tmp_path / "handed" / "in", "eve", CHAPTER)
    assert "Lovelace" in str(refused.value)
    eve = Result("eve", CHAPTER, status="refused", sentence=str(refused.value))
    page = written(tmp_path, eve)
    assert "There is no notebook" in page
    assert "Lovelace" not in page
    assert "Lovelace" in written(tmp_path, names=True)


def test_two_learners_have_two_pseudonyms() -> None:
    for course in range(5):
        secret = bytes([course]) * 32
        names = {class_files.pseudonym(secret, f"learner {n}") for n in range(5000)}
        assert len(names) == 5000


def test_names_are_shown_when_they_are_asked_for(tmp_path: Path) -> None:
    assert "bob" in written(tmp_path, *CLASS, names=True)


def test_wrong_answers_are_grouped_with_who_gave_them_and_one_of_them() -> None:
    mistaken = result("bob", 0.0, answer="return 1")
    odd = [result(name, 2.0, answer="return 2", got="<b>") for name in ("cyd", "dan")]
    found = class_report.ClassReport(CHAPTER, [mistaken, *odd]).exercises[0].wrong
    assert [(each.reason, each.message, each.learners, each.example) for each in found] == [
        ("a square: <b>", "", ["cyd", "dan"], "return 2"),
        ("columns first", "Rows come first.", ["bob"], "return 1"),
    ]


def test_an_answer_on_a_page_without_names_has_no_comment(tmp_path: Path) -> None:
    bob = result("bob", 0.0, answer="# by Bob B.\nx = 1")
    page = written(tmp_path, bob)
    assert "<pre>x = 1</pre>" in page
    assert "Bob" not in page
    assert "# by Bob B." in written(tmp_path, names=True)


def test_an_answer_that_python_cannot_read_is_promised_with_names_alone(tmp_path: Path) -> None:
    # its comments cannot be told from the rest
    page = written(tmp_path, result("bob", 0.0, answer="def f(:"))
    assert "one of these answers if Python can read it." in page
    assert "<pre>def f(:" not in page
    named = written(tmp_path, names=True)
    assert "one of these answers.</p>" in named
    assert "<pre>def f(:" in named


def test_the_first_lines_say_where_most_points_were_lost(tmp_path: Path) -> None:
    page = written(tmp_path, *CLASS)
    said = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page[page.index("Most points") :]))
    assert said.startswith("Most points were lost in A title: 2.0 of 4 on average, 3 wrong,")


def test_who_needs_help_is_listed_with_the_reason(tmp_path: Path) -> None:
    found = class_report.ClassReport(CHAPTER, CLASS).need_help
    assert [(each.learner, reason) for each, reason in found][:2] == [
        ("bob", "not started: Nothing; failing: A `title` (columns first)"),
        ("eve", "It is not a notebook."),
    ]


def test_an_answer_that_did_not_run_is_no_answer_not_started() -> None:
    broken = Report("pixels", "A `title`", "missing", 4.0, message="It did not run.")
    untouched = Report("nothing", "Nothing", "not started", 2.0)
    graded = (Graded("check-pixels", broken), Graded("check-nothing", untouched))
    found = class_report.ClassReport(CHAPTER, [Result("ada", CHAPTER, exercises=graded)])
    assert found.exercises[0].counts["failed"] == 1
    assert found.need_help[0][1] == "not started: Nothing; failing: A `title` (not defined)"
    graded = (Graded("check-pixels", replace(broken, mistake="does not run: SyntaxError")),)
    found = class_report.ClassReport(CHAPTER, [Result("ada", CHAPTER, exercises=graded)])
    assert found.need_help[0][1] == "failing: A `title` (does not run: SyntaxError)"


def test_who_started_nothing_is_told_in_a_word() -> None:
    graded = tuple(Graded(id, Report(id, id, "not started", 2.0)) for id in ("one", "two"))
    found = class_report.ClassReport(CHAPTER, [Result("ada", CHAPTER, exercises=graded)])
    assert found.need_help[0][1] == "not started: everything"


def test_who_handed_nothing_in_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradebook, "roster", lambda *arguments: ["bob", "zoe"])
    page = written(tmp_path, *CLASS, names=True)
    assert "Handed nothing in: zoe." in page
    text = (tmp_path / "course" / "reports" / CHAPTER / "learners.csv").read_text()
    assert "zoe,nothing,0.0" in text


def test_a_cell_that_was_stopped_is_listed_whatever_the_points(tmp_path: Path) -> None:
    page = written(tmp_path, replace(result("ada", 4), troubles=("It did not end.",)), names=True)
    assert '<th scope="row">ada</th><td>It did not end.</td>' in page


def test_every_chart_has_a_text_alternative(tmp_path: Path) -> None:
    page = written(tmp_path, *CLASS)
    alternatives = re.findall(r'<img src="data:image/svg[^"]*" alt="([^"]*)">', page)
    assert alternatives == [
        "Learners by points. 1 with 0 to 0.6, 2 with 1.8 to 2.4, 1 with 3.6 to 4.2.",
        "Answers to each exercise. A title: 1 passed, 2 partly, 1 failed; Nothing: 4 not started.",
    ]


@pytest.mark.parametrize("count", [1, 400])
def test_the_page_stays_short(tmp_path: Path, count: int) -> None:
    lines = "".join(f"    x = x * {n} + tk.ones({n}) - x.sum() / x.numel()\n" for n in range(9))
    answers = (f"def f(x):\n{lines}    return x", "pass", "", "x = 2")
    found = [result(f"l{n}", n % 5, got=f"wrong {n}", answer=answers[n % 4]) for n in range(count)]
    page = written(tmp_path, *found)
    assert len(re.sub('data:[^"]*', "", page)) < 30_000
    assert len(page) < 200_000
    assert len(rows(tmp_path, "learners.csv")) == count


def test_without_results_a_sentence_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="course grade 01_tensors"):
        class_files.write(tmp_path, CHAPTER)


def test_similar_answers_are_listed_by_group_and_not_by_pair() -> None:
    def pair(one: str, other: str, likeness: float) -> Pair:
        return Pair("sum", one, other, likeness, 20)

    pairs = [pair("ada", "bob", 1.0), pair("eve", "tk.sum", 0.9), pair("bob", "dan", 0.7)]
    assert groups_of(pairs) == [
        ("sum", ["ada", "bob", "dan"], 1.0),
        ("sum", ["eve", "tk.sum"], 0.9),
    ]


def test_worked_solutions_of_other_exercises_in_a_cell_are_no_likeness() -> None:
    pasted = "\n\n".join(definition.solution_source for definition in EXERCISES.values())
    results = [result(learner, 4.0, answer=pasted) for learner in ("ada", "bob")]
    assert class_report.ClassReport(CHAPTER, results).alike == []


def test_the_page_says_the_median(tmp_path: Path) -> None:
    page = written(tmp_path, result("ada", 4.0), result("bob", 1.0))
    assert "<dt>median</dt><dd>2.5 <small>of 6 points</small></dd>" in page


def test_who_passes_only_what_everybody_has_is_told_so() -> None:
    bob = result("bob", 0.0)
    rows = (Row("shown", "passed"), Row("drawn", "failed"))
    report = replace(bob.exercises[0].report, rows=rows, mistake="")
    found = class_report.ClassReport(
        CHAPTER, [replace(bob, exercises=(Graded("check-pixels", report),))]
    )
    assert found.need_help[0][1].startswith("failing: A `title` (right only where all have the")


def test_who_lost_points_to_lateness_is_told_so() -> None:
    points = {"check-pixels": 4.0, "check-nothing": 0.0}
    late = grades.Grade("ada", "", "", "", 1.0, 6.0, None, 93_600.0, False, True, points, {})
    found = class_report.ClassReport(CHAPTER, [result("ada", 4.0)], grades={"ada": late})
    reason = "handed in 1 day 2 hours late, which took 3 points; not started: Nothing"
    assert found.need_help == [(found.results[0], reason)]


def test_the_page_says_whether_it_names_learners(tmp_path: Path) -> None:
    assert "pseudonyms" in written(tmp_path, *CLASS)
    assert "This page names learners" not in written(tmp_path, *CLASS)
    assert "This page names learners" in written(tmp_path, *CLASS, names=True)


def test_who_handed_in_and_is_not_graded_is_not_said_to_have_handed_nothing_in(
    tmp_path: Path,
) -> None:
    (tmp_path / "course" / "submitted" / "flo" / CHAPTER).mkdir(parents=True)
    page = written(tmp_path, *CLASS, names=True)
    assert "Handed in and not graded: flo." in page
    assert rows(tmp_path, "learners.csv")[-1]["status"] == "not graded"
