"""Nobody is graded while definitions, notebooks and gradebook give a chapter other points."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from classroom import CHAPTER, PIXELS, Notebook, School, cell_of

from course.grading import agreement, batch
from course.notebook import exercise, matching
from course.shared.errors import CourseError

CHECK = "check-pixels"
BUILD = rf"Run: course build {CHAPTER}, then nbgrader generate_assignment {CHAPTER}"


def _other_points(notebook: Notebook) -> None:
    cell_of(notebook, CHECK)["metadata"]["nbgrader"]["points"] += 1


def _other_name(notebook: Notebook) -> None:
    cell_of(notebook, CHECK)["metadata"]["nbgrader"]["grade_id"] = "check-other"


def _no_cell(notebook: Notebook) -> None:
    notebook["cells"].remove(cell_of(notebook, CHECK))


def _no_answer_cell(notebook: Notebook) -> None:
    notebook["cells"].remove(cell_of(notebook, "pixels"))


def _answer_below_its_check(notebook: Notebook) -> None:
    answer = cell_of(notebook, "pixels")
    notebook["cells"].remove(answer)
    notebook["cells"].insert(notebook["cells"].index(cell_of(notebook, CHECK)) + 1, answer)


def _answer_as_text(notebook: Notebook) -> None:
    cell_of(notebook, "pixels")["cell_type"] = "markdown"


def _other_check(notebook: Notebook) -> None:
    cell_of(notebook, CHECK)["source"] = 'check("celsius")'


def _other_function(notebook: Notebook) -> None:
    answer = cell_of(notebook, "pixels")
    answer["source"] = "".join(answer["source"]).replace("to_unit_range", "to_unit")


CHANGES = [_other_points, _other_name, _no_cell]
CELLS = [_no_answer_cell, _answer_below_its_check, _answer_as_text]


def _change(school: School, folder: str, change: Callable[[Notebook], None]) -> None:
    path = school.root / folder / CHAPTER / f"{CHAPTER}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    change(notebook)
    path.write_text(json.dumps(notebook), "utf-8")


def _refused(school: School, command: str) -> str:
    with pytest.raises(CourseError, match=command) as refused:
        batch.grade(school.root, CHAPTER, workers=1)
    assert school.scores() == {}
    return str(refused.value)


@pytest.fixture(autouse=True)
def handed_in(school: School, honest: bytes) -> None:
    school.submit("ada", honest)  # for 20 points, if it were graded


@pytest.mark.parametrize("change", CHANGES)
def test_a_released_notebook_that_is_not_the_one_with_the_answers(
    school: School, change: Callable[[Notebook], None]
) -> None:
    _change(school, "notebooks", change)
    said = _refused(school, BUILD)
    assert f"{CHECK} ({PIXELS:g} points and " in said


@pytest.mark.parametrize("change", CHANGES)
def test_notebooks_that_are_not_the_definitions(
    school: School, change: Callable[[Notebook], None]
) -> None:
    for folder in ("notebooks", "solutions"):
        _change(school, folder, change)
    assert f"{CHECK} ({PIXELS:g} points and " in _refused(school, BUILD)


@pytest.mark.parametrize("change", [*CELLS, _other_check])
def test_a_released_notebook_with_other_cells(
    school: School, change: Callable[[Notebook], None]
) -> None:
    # a perfect learner had 14 of 20 points, and nobody was told why
    _change(school, "notebooks", change)
    assert "do not agree on the cell " in _refused(school, BUILD)


@pytest.mark.parametrize("change", [*CELLS, _other_function])
def test_notebooks_without_the_answer_that_the_definition_asks_for(
    school: School, change: Callable[[Notebook], None]
) -> None:
    for folder in ("notebooks", "solutions"):
        _change(school, folder, change)
    assert "has no cell pixels above its check that defines" in _refused(school, BUILD)


def test_definitions_that_are_newer_than_the_notebooks(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exercise.load()["pixels"], "points", PIXELS + 2)
    assert f"{CHECK} ({PIXELS + 2:g} points and {PIXELS:g} points)" in _refused(school, BUILD)


def test_an_exercise_that_is_not_defined_any_more(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {id: it for id, it in exercise.load(CHAPTER).items() if id != "pixels"}
    monkeypatch.setattr(exercise, "load", lambda chapter=None: known)
    assert f"{CHECK} (not there and {PIXELS:g} points)" in _refused(school, BUILD)


@pytest.mark.parametrize(
    "change",
    [
        "update grade_cells set max_score = max_score + 1",
        f"update base_cell set name = 'check-other' where name = '{CHECK}'",
    ],
)
def test_an_older_gradebook(school: School, change: str) -> None:
    # its old maxima capped new points: perfect learners had 18 of 20
    with school.gradebook() as book:
        book.db.connection().exec_driver_sql(change)
        book.db.commit()
    said = _refused(school, rf"Run: nbgrader generate_assignment {CHAPTER}")
    assert "The released notebook and the gradebook do not agree" in said


@pytest.mark.rest
def test_nbgraders_own_command_refuses_too(school: School) -> None:
    with school.gradebook() as book:
        book.db.connection().exec_driver_sql("update grade_cells set max_score = max_score + 1")
        book.db.commit()
    command = [sys.executable, "-m", "nbgrader", "autograde", CHAPTER, "--create"]
    done = subprocess.run(command, cwd=school.root, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"Run: nbgrader generate_assignment {CHAPTER}" in done.stderr
    assert school.scores() in ({}, {"ada": 0.0})


def test_a_cell_of_the_instructors_own_needs_no_definition(school: School) -> None:
    def with_asserts(notebook: Notebook) -> None:
        cell_of(notebook, CHECK)["source"] = "assert pixels is not None"
        _other_points(notebook)

    for folder in ("notebooks", "solutions"):
        _change(school, folder, with_asserts)
    agreement.check_notebooks(matching.source_of(Path(school.root), CHAPTER))
