"""The points of a submission are those of the checks in the notebook."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from classroom import PIXELS, Class, Notebook, cell_of, put_first

import tensorkit as tk
from course.cli import demo_learners
from course.grading.agreement import check_definitions
from course.notebook import exercise
from course.notebook.check import judge as check_here
from course.notebook.exercise import Exercise
from course.notebook.matching import Source
from course.shared.errors import CourseError


def test_what_only_the_learners_process_sees_is_worth_a_tenth_at_most(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_definitions(source)
    known = exercise.load(source.chapter)
    monkeypatch.setattr(known["which-dtype"], "witness", "inside")
    check_definitions(source)
    monkeypatch.setattr(known["pixels"], "witness", "inside")
    with pytest.raises(CourseError, match=f"{PIXELS + 1:g} of 20 points"):
        check_definitions(source)


def test_a_check_that_fails_itself_costs_no_other_exercise(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise OverflowError

    known = exercise.load(klass_once.source.chapter)
    monkeypatch.setattr(known["pixels"], "is_not_started", fails)
    report = {
        each.report.exercise_id: each.report
        for each in klass_once.grade(klass_once.honest()).exercises
    }
    possible = klass_once.exercises["private-copy"].points
    assert (report["pixels"].score, report["private-copy"].score) == (0, possible)
    assert "could not be checked" in report["pixels"].message


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("import tensorkit as tk\nfrom course import check hint", "SyntaxError"),
        ("import torch as tk", "No module named 'torch'"),
        ("import os; os._exit(1)", "ended its process"),
    ],
)
def test_imports_that_do_not_run_cost_no_exercise(
    klass_once: Class, setup: str, words: str
) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, klass_once.source.setup or "")["source"] = setup
    result = klass_once.grade(notebook)
    assert result.score == result.possible
    assert any(words in trouble for trouble in result.troubles)
    assert any("the imports are those that were released" in trouble for trouble in result.troubles)


def test_other_imports_that_run_are_left_alone(klass_once: Class) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, klass_once.source.setup or "")["source"] += "\nimport math"
    result = klass_once.grade(notebook)
    assert (result.score, result.troubles) == (result.possible, ())


@pytest.mark.parametrize("turn", range(4))
def test_points_are_those_of_the_check_in_the_notebook(klass_once: Class, turn: int) -> None:
    """Every exercise with one of its usual mistakes, on another draw each time."""
    notebook = klass_once.honest()
    texts: dict[str, str] = {}
    for asked in klass_once.exercises.values():
        texts[asked.id] = typed(asked, turn)
        cell_of(notebook, asked.id)["source"] = texts[asked.id]
    seed = f"seed {turn}"
    for found in klass_once.grade(notebook, seed).exercises:
        asked = klass_once.exercises[found.report.exercise_id]
        namespace: dict[str, Any] = {"np": np, "tk": tk}
        exec(texts[asked.id], namespace)
        here = check_here(asked, namespace[asked.name], seed=seed)
        if found.report.status == "not started":  # the mistake is the code as it was released
            continue
        assert (found.report.score, found.report.mistake) == (here.score, here.mistake), asked.id
        assert [row.status for row in found.report.rows] == [row.status for row in here.rows]


ANSWER = "def to_unit_range(image):\n    return {} / {}\n"


RIGHT = ANSWER.format("image.float().sum(2)", "(3 * 255)")


WRONG = ANSWER.format("image.float()", "2")


SUMMED = "def summed(image):\n    return image.float().sum(2)\n"


@pytest.mark.parametrize(
    ("above", "below", "is_right"),
    [
        ([RIGHT], [], True),
        ([], [RIGHT], True),
        ([], [SUMMED, ANSWER.format("summed(image)", "(3 * 255)")], True),
        ([], ["scale = 3 * 255", ANSWER.format("image.float().sum(2)", "scale")], True),
        ([SUMMED], ["%time scale = 765", ANSWER.format("summed(image)", "scale")], True),
        ([WRONG, RIGHT], [], True),
        ([RIGHT, WRONG], [], False),
        ([], [WRONG, RIGHT], True),
    ],
)
def test_an_answer_in_own_cells_has_the_points_of_its_check_in_the_notebook(
    klass_once: Class, above: list[str], below: list[str], is_right: bool
) -> None:
    notebook, shown = typed_around_the_check(klass_once, above, below)
    assert (FULL in shown) is is_right
    assert klass_once.points(notebook)["pixels"] == (PIXELS if is_right else 0)


@pytest.mark.parametrize(
    ("above", "below", "is_right"), [([WRONG], [RIGHT], False), ([RIGHT], [WRONG], True)]
)
def test_of_answers_above_and_below_the_check_that_above_is_graded_and_the_learner_is_told(
    klass_once: Class, above: list[str], below: list[str], is_right: bool
) -> None:
    notebook, shown = typed_around_the_check(klass_once, above, below)
    assert "Move it into the answer cell, so that it is the one that is graded." in shown
    assert klass_once.points(notebook)["pixels"] == (PIXELS if is_right else 0)


def typed_around_the_check(
    klass: Class, above: list[str], below: list[str]
) -> tuple[Notebook, str]:
    """A notebook with own cells beside a check, and what it says at last in a kernel."""
    notebook = klass.blank()
    cells, check = notebook["cells"], cell_of(notebook, "check-pixels")
    typed_in = [
        {"cell_type": "code", "id": f"mine-{n}", "metadata": {}, "source": text}
        for n, text in enumerate([*above, *below])
    ]
    at = cells.index(check)
    cells[at : at + 1] = [*typed_in[: len(above)], check, *typed_in[len(above) :]]
    setup = cell_of(notebook, klass.source.setup or "")
    run = [setup, *cells[cells.index(cell_of(notebook, "pixels")) :][: len(typed_in) + 2], check]
    return notebook, " ".join(in_a_kernel(run).split())


FULL = f"{PIXELS:g} of {PIXELS:g} points"


@pytest.mark.parametrize(
    ("left", "own"),
    [
        ("pass", RIGHT),
        ("...", RIGHT),
        ("print('see above')\nprint(3)", RIGHT),
        ('"""See\nbelow."""', RIGHT),
        ("def to_unit_range(image): pass", RIGHT),
        ('def to_unit_range(image):\n    """Gray."""\n    ...', RIGHT),
        (None, f"{RIGHT.replace('to_unit_range', 'gray')}\nto_unit_range: object = gray"),
        (None, "if True:\n    " + RIGHT.replace("\n", "\n    ")),
    ],
)
def test_an_answer_in_an_own_cell_counts_where_the_answer_cell_has_no_code_of_an_answer(
    klass_once: Class, left: str | None, own: str
) -> None:
    notebook = klass_once.blank()
    answer = cell_of(notebook, "pixels")
    answer["source"] = answer["source"] if left is None else left
    assert klass_once.points(put_first(notebook, own))["pixels"] == PIXELS


def test_code_of_an_answer_in_the_answer_cell_counts_before_an_answer_above(
    klass_once: Class,
) -> None:
    notebook = put_first(klass_once.blank(), RIGHT)
    cell_of(notebook, "pixels")["source"] = "def to_unit_range(image):\n    print(image)"
    assert klass_once.points(notebook)["pixels"] == 0


def in_a_kernel(cells: list[dict[str, Any]]) -> str:
    """What a learner reads who runs these cells."""
    program = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    print("# cell")
    shell.run_cell(cell["source"], store_history=True, cell_id=cell["id"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.rpartition("# cell")[2]


def test_own_cells_that_came_along_run_where_they_stand_too(klass_once: Class) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, "pixels")["source"] = klass_once.source.by_id["pixels"]["source"]
    own = {"cell_type": "code", "metadata": {}}
    at = notebook["cells"].index(cell_of(notebook, "check-private-copy"))
    copy = cell_of(notebook, "private-copy")
    notebook["cells"].insert(at - 1, {**own, "id": "side", "source": "side = strides_of((2, 3))"})
    copy["source"] = "side\n" + copy["source"]
    notebook["cells"].append({**own, "id": "last", "source": RIGHT})
    points = klass_once.points(notebook)
    possible = klass_once.exercises["private-copy"].points
    assert (points["pixels"], points["private-copy"]) == (PIXELS, possible)


def typed(asked: Exercise, turn: int) -> str:
    """The answer cell of a learner who makes the exercise's next usual mistake."""
    if isinstance(asked, exercise.Prediction):
        mistake = random.Random(turn).choice(asked.mistakes())
        return f"{asked.name} = {mistake.answer!r}"
    slips = [
        slip for one in asked.mistakes() if (slip := demo_learners.slip(asked, one)) is not None
    ]
    return slips[turn % len(slips)].text if slips else asked.solution_source
