"""Predictions whose numbers differ from learner to learner: fair, and of no use to another one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checked_cells import checked

from course import solution
from course.authoring.audit import faults
from course.notebook import hints, record, varied
from course.notebook.check import judge
from course.notebook.exercise import Prediction, load
from course.shared import identity
from course.shared.settings import settings

VARIED = [
    exercise for exercise in load().values() if isinstance(exercise, Prediction) and exercise.varied
]
SHAPES = load()["what-shape"]
LEARNERS = [f"learner {n}" for n in range(40)]


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    on = replace(settings(), variants="spring", solutions_open=True)
    for module in (varied, hints):
        monkeypatch.setattr(module, "settings", lambda: on)
    monkeypatch.delenv("COURSE_BUILD", raising=False)
    monkeypatch.setattr(record, "_in_memory", {})
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=VARIED, ids=lambda exercise: exercise.id)
def exercise(request: pytest.FixtureRequest) -> Prediction:
    return request.param


def of(exercise: Prediction, learner: str) -> Any:
    return exercise.variant_for(learner)


@pytest.mark.parametrize("count", [2, pytest.param(40, marks=pytest.mark.rest)])
def test_every_learners_variant_is_a_complete_exercise(exercise: Prediction, count: int) -> None:
    # the audit: the reference passes, usual mistakes are wrong and recognised, labels differ
    variants = [of(exercise, learner) for learner in LEARNERS[:count]]
    assert [sentence for variant in variants for sentence in faults(variant, [0])] == []


def test_as_many_questions_of_the_same_form(exercise: Prediction) -> None:
    def forms(asked: Prediction) -> list[str]:
        return [re.sub(r"\d+", "0", expression) for expression in asked.questions]

    for learner in LEARNERS[:20]:
        assert forms(of(exercise, learner)) == forms(exercise)
        assert of(exercise, learner).points == exercise.points


def test_what_another_learner_hands_in_earns_nothing(exercise: Prediction) -> None:
    variants = [of(exercise, learner) for learner in LEARNERS[:40]]
    for own in variants:
        assert own.is_answer(own.reference) is None
        assert own.is_answer(exercise.reference)  # nor what is released
    pairs = [(own, other) for own in variants for other in variants if own is not other]
    taken = [other for own, other in pairs if own.is_answer(other.reference) is None]
    assert len(taken) < len(pairs) / 10  # two learners may draw the same numbers


def test_a_learner_keeps_the_numbers_and_another_term_has_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spring = of(SHAPES, "ada").questions
    assert of(SHAPES, "ada").questions == spring
    autumn = replace(settings(), variants="autumn")
    monkeypatch.setattr(varied, "settings", lambda: autumn)
    assert of(SHAPES, "ada").questions != spring
    off = replace(settings(), variants="")
    monkeypatch.setattr(varied, "settings", lambda: off)
    assert of(SHAPES, "ada") is SHAPES


def test_the_check_gives_the_own_questions_and_takes_their_answer() -> None:
    own = of(SHAPES, identity.learner())
    begun: dict[str, Any] = {}
    exec(SHAPES.released_source, begun)
    first = checked("what-shape", **begun)
    assert first.status == "not started"
    assert first.code == own.released_source
    assert first.code in str(first).replace("\n  ", "\n")
    assert "tk.zeros(8, 3, " in first.html()
    released = checked("what-shape", shapes=SHAPES.reference)
    assert (released.status, released.score, released.code) == ("unfit", 0.0, first.code)
    assert f"is no question of `{identity.learner()}`" in released.message
    given: dict[str, Any] = {}
    exec(first.code, given)
    answer = {asked: own.reference[asked] for asked in given["shapes"]}
    assert checked("what-shape", shapes=answer).score == SHAPES.points
    assert own.solution_source in repr(solution("what-shape"))


def test_the_notebook_with_the_answers_keeps_the_released_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COURSE_BUILD", "1")
    assert checked("what-shape", shapes=SHAPES.reference).score == SHAPES.points


def test_a_recognised_mistake_is_named_in_the_own_numbers() -> None:
    own = of(SHAPES, "ada")
    rows_first = next(each for each in own.mistakes() if each.name == "columns before rows")
    assert judge(own, rows_first.answer).mistake == "columns before rows"


def test_the_page_for_instructors_lists_the_exercises_that_vary() -> None:
    page = Path(__file__).parents[3] / "docs" / "instructors.md"
    text = page.read_text(encoding="utf-8").partition("## Numbers of each learner's own")[2]
    listed = re.findall(r"\| `([a-z-]+)` \|.*in (\d+) of (\d+)", text)
    counts = [
        (sum(any(each.is_in(asked) for each in one.varied) for asked in one.questions), one)
        for one in VARIED
    ]
    assert listed == [(one.id, str(count), str(len(one.questions))) for count, one in counts]
