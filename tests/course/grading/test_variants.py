"""Grading asks each learner the questions that the check asked in their notebook."""

from __future__ import annotations

from dataclasses import replace

import pytest
from classroom import Class, Notebook, cell_of

from course.grading import judge
from course.grading.intake import Submission
from course.notebook import varied
from course.notebook.exercise import load
from course.shared.settings import settings

SHAPES = load()["what-shape"]


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    on = replace(settings(), variants="spring")
    for module in (varied, judge):
        monkeypatch.setattr(module, "settings", lambda: on)


def with_answers_of(klass: Class, learner: str) -> Notebook:
    notebook = klass.honest()
    cell_of(notebook, SHAPES.id)["source"] = SHAPES.variant_for(learner).solution_source
    return notebook


def test_the_own_answer_gets_full_marks(klass_once: Class) -> None:
    result = klass_once.grade(with_answers_of(klass_once, "ada"))
    assert result.score == result.possible
    assert result.troubles == ()


@pytest.mark.parametrize("other", ["eve", ""])
def test_an_answer_to_other_questions_gets_nothing_and_is_named(
    klass_once: Class, other: str
) -> None:
    result = klass_once.grade(with_answers_of(klass_once, other))
    assert result.score == result.possible - SHAPES.points
    (trouble,) = result.troubles
    assert "is no question of `ada`" in trouble


def test_a_mistake_is_recognised_as_in_the_notebook(klass_once: Class) -> None:
    own = SHAPES.variant_for("ada")
    mistake = own.mistakes()[0]
    notebook = klass_once.honest()
    cell_of(notebook, SHAPES.id)["source"] = f"{own.name} = {mistake.answer!r}"
    found = next(
        graded.report
        for graded in klass_once.grade(notebook).exercises
        if graded.report.exercise_id == SHAPES.id
    )
    assert (found.mistake, found.message) == (mistake.name, mistake.message)


def test_what_was_not_started_is_not_started(klass_once: Class) -> None:
    result = klass_once.grade(klass_once.blank())
    assert {graded.report.status for graded in result.exercises} == {"not started"}
    assert result.troubles == ()


def test_other_numbers_are_another_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    submission = Submission("ada", "01_tensors", b"")
    before = judge.seed_of(b"secret", submission)
    monkeypatch.setattr(judge, "settings", lambda: replace(settings(), variants="autumn"))
    assert judge.seed_of(b"secret", submission) != before
