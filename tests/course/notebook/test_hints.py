"""Hints, worked solutions and progress."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta

import pytest
import sample

from course import hint, progress, solution
from course.notebook import record
from course.notebook.check import judge
from course.notebook.exercise import load
from course.notebook.report import Report
from course.shared.settings import settings

STRIDES = load()["sample-strides"]


@pytest.fixture(autouse=True)
def _in_a_learners_folder(tmp_path, monkeypatch):
    """A chapter folder of a learner; the notes go to the folder that holds it."""
    (tmp_path / "01_tensors").mkdir()
    monkeypatch.chdir(tmp_path / "01_tensors")
    monkeypatch.setattr(record, "chapters", lambda: ("01_tensors",))
    monkeypatch.setattr(record, "_in_memory", {})
    monkeypatch.delenv("COURSE_BUILD", raising=False)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


def note(answer: object, source: str) -> None:
    record.note_check(STRIDES, judge(STRIDES, answer), source)


def test_hints_unfold_one_at_a_time():
    assert "Hint 1 of 2: How far apart" in repr(hint("sample-strides"))
    assert "Hint 2 of 2: Walk" in repr(hint("sample-strides"))
    assert "Hint 2 of 2: Walk" in repr(hint("sample-strides"))


def test_an_unknown_exercise_gives_a_sentence():
    assert "There is no exercise 'nope'" in repr(hint("nope"))
    assert "takes the name of an exercise in quotes" in repr(solution(3))
    assert 'Did you mean `hint("sample-strides")`' in repr(hint("sample-stride"))


def test_the_last_core_exercise_says_once_that_the_chapter_is_finished():
    core = [exercise for exercise in load("01_tensors").values() if not exercise.further]
    reports = [
        Report(exercise.id, exercise.title, "passed", exercise.points, exercise.points)
        for exercise in core
    ]
    pairs = list(zip(core, reports, strict=True))
    said = [record.note_check(exercise, report, "source") for exercise, report in pairs + pairs]
    assert [bool(words) for words in said] == [n == len(core) - 1 for n in range(2 * len(core))]
    assert "You have finished chapter 01" in said[len(core) - 1]


def test_the_solution_opens_after_passing():
    assert "opens when the exercise is passed" in repr(solution("sample-strides"))
    note(sample.strides_of, "right")
    assert "strides.insert(0, step)" in repr(solution("sample-strides"))
    assert "BEGIN SOLUTION" not in repr(solution("sample-strides"))


def test_the_solution_opens_after_three_different_attempts():
    note(sample.bytes_apart, "one")
    note(sample.bytes_apart, "one")
    note(sample.bytes_apart, "two")
    assert "so far 2" in repr(solution("sample-strides"))
    assert "may help" in repr(solution("sample-strides"))
    for _ in STRIDES.hints:
        hint("sample-strides")
    assert "may help" not in repr(solution("sample-strides"))
    note(sample.from_the_left, "three")
    assert "strides.insert(0, step)" in repr(solution("sample-strides"))


def test_the_instructor_can_switch_solutions_off(monkeypatch):
    note(sample.strides_of, "right")
    off = replace(settings(), solutions_open=False)
    monkeypatch.setattr("course.notebook.hints.settings", lambda: off)
    assert "switched worked solutions off" in repr(solution("sample-strides"))


@pytest.mark.parametrize(("days", "is_open"), [(1, False), (0, True), (-1, True)])
def test_solutions_open_on_a_date_whatever_was_tried(monkeypatch, days, is_open):
    note(sample.strides_of, "right")
    opens = date.today() + timedelta(days=days)
    dated = replace(settings(), solutions_open=opens)
    monkeypatch.setattr("course.notebook.hints.settings", lambda: dated)
    for id in ("sample-strides", next(other for other in load() if other != "sample-strides")):
        shown = repr(solution(id))
        assert shown.startswith("One way to write") == is_open
        assert (f"Worked solutions open on {opens}." in shown) != is_open


def test_progress_survives_a_restart_of_the_kernel(tmp_path, monkeypatch):
    note(sample.strides_of, "right")
    monkeypatch.setattr(record, "_in_memory", {})
    assert record.points(STRIDES) == 3.0
    assert json.loads((tmp_path / record.FILE).read_text())["sample-strides"]["points"] == 3.0


def test_progress_shows_the_answer_as_it_stands_and_the_solution_stays_open():
    note(sample.strides_of, "right")
    note(sample.bytes_apart, "wrong")
    assert record.points(STRIDES) == 0.0
    assert record.has_passed(STRIDES)
    assert "strides.insert(0, step)" in repr(solution("sample-strides"))


def test_a_damaged_file_of_notes_is_kept_beside_and_replaced(tmp_path):
    (tmp_path / record.FILE).write_text("{ not json")
    note(sample.strides_of, "right")
    assert record.points(STRIDES) == 3.0
    assert (tmp_path / f"{record.FILE}.damaged").read_text() == "{ not json"


@pytest.mark.parametrize(
    "notes",
    [
        '{"sample-strides": 5}',
        '{"sample-strides": {"hints": -5}}',
        '{"sample-strides": {"points": NaN}}',
        '{"sample-strides": {"points": 1e999}}',
        "[" * 100_000,
    ],
)
def test_notes_that_make_no_sense_are_put_aside(tmp_path, notes):
    (tmp_path / record.FILE).write_text(notes)
    assert "Hint 1 of 2" in repr(hint("sample-strides"))
    assert "0 of" in repr(progress())
    assert (tmp_path / f"{record.FILE}.damaged").read_text() == notes


@pytest.mark.parametrize("variable", ["NBGRADER_EXECUTION", "COURSE_BUILD"])
def test_nothing_is_written_while_graded_or_built(tmp_path, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    note(sample.strides_of, "right")
    assert not (tmp_path / record.FILE).exists()


@pytest.mark.parametrize("name", ["01_tensors", "01", "1", "tensors"])
def test_progress_takes_every_name_of_a_chapter(name):
    assert len(progress(name).rows) == len(load("01_tensors"))


def test_progress_is_a_table_of_chapters():
    text = repr(progress())
    assert "01_tensors" in text
    assert "of 20" in text
    assert "<caption" in progress()._repr_html_()
