"""A chapter's text becomes cells, and what an author has to mend is said with file and line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import jupytext
import pytest
import tiny
from tiny import DOUBLE, HALF

from course.authoring.text import chapter_from
from course.shared.errors import CourseError

REGISTERED = {definition.id: definition for definition in (DOUBLE, HALF)}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "01_numbers.py"
    path.write_text(tiny.TEXT, encoding="utf-8")
    return path


def _complaint(text: Path, old: str, new: str) -> str:
    """What is said after one change of a text that is right."""
    assert old in tiny.TEXT
    text.write_text(tiny.TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(CourseError) as caught:
        chapter_from(text, REGISTERED)
    return str(caught.value).replace(f"{text.parent}/", "")


def test_an_exercise_becomes_statement_answer_and_check(text: Path) -> None:
    cells = chapter_from(text, REGISTERED).notebook.cells
    ids = [cell.id for cell in cells]
    at = ids.index("double-it")
    statement, answer, check = cells[at - 1 : at + 2]
    assert statement.source == DOUBLE.statement
    assert answer.source == DOUBLE.answer_source
    assert answer.metadata.nbgrader["solution"]
    assert not answer.metadata.nbgrader["locked"]
    assert check.source == 'check("double-it")'
    assert check.metadata.nbgrader["points"] == 3.0
    assert check.metadata.nbgrader["grade_id"] == check.id == "check-double-it"


def test_ids_follow_from_the_content_and_differ(text: Path) -> None:
    first = [cell.id for cell in chapter_from(text, REGISTERED).notebook.cells]
    assert len(set(first)) == len(first)
    assert first == [cell.id for cell in chapter_from(text, REGISTERED).notebook.cells]
    assert sum(bool(re.fullmatch(r"\w+-2", id)) for id in first) == 1, "'Same.' stands twice"


def test_a_new_paragraph_leaves_the_other_ids(text: Path) -> None:
    before = {cell.id for cell in chapter_from(text, REGISTERED).notebook.cells}
    text.write_text("# %% [markdown]\n# New.\n\n" + tiny.TEXT, encoding="utf-8")
    assert before < {cell.id for cell in chapter_from(text, REGISTERED).notebook.cells}


def test_a_role_becomes_a_tag(text: Path) -> None:
    cells = chapter_from(text, REGISTERED).notebook.cells
    assert [cell.metadata.tags for cell in cells if "tags" in cell.metadata] == [
        ["raises-exception", "show"]
    ]


def test_the_notebook_names_neither_version_nor_jupytext(text: Path) -> None:
    notebook = chapter_from(text, REGISTERED).notebook
    assert notebook.metadata["language_info"] == {"name": "python"}
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert set(notebook.metadata) == {"course", "kernelspec", "language_info"}
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)


@pytest.mark.parametrize(
    ("changed", "is_released_anew"),
    [
        (replace(DOUBLE, answer_source=DOUBLE.answer_source.replace("2 * n", "n + n")), False),
        (replace(DOUBLE, released_source="def double(number):\n    pass"), True),
        (replace(DOUBLE, points=4.0), True),
        (replace(DOUBLE, statement="Clearer."), True),
    ],
)
def test_the_release_has_a_new_name_if_learners_get_something_new(
    text: Path, changed: tiny.TinyExercise, is_released_anew: bool
) -> None:
    before = chapter_from(text, REGISTERED).notebook.metadata["course"]["release"]
    exercises = {**REGISTERED, changed.id: changed}
    after = chapter_from(text, exercises).notebook.metadata["course"]["release"]
    assert (before != after) is is_released_anew


def test_an_unknown_exercise_is_named_with_its_line(text: Path) -> None:
    said = _complaint(text, 'exercise="half-it"', 'exercise="halve-it"')
    assert (
        "01_numbers.py:13: there is no exercise 'halve-it' in course/exercises/ch01_numbers/."
        in said
    )
    assert "01_numbers.py: the exercise 'half-it' of this chapter has no place in the text" in said


def test_the_same_exercise_twice_is_refused(text: Path) -> None:
    said = _complaint(text, 'exercise="half-it"', 'exercise="double-it"')
    assert "01_numbers.py:13: the exercise 'double-it' stands here again" in said
    assert "on line 8." in said


def test_an_exercise_of_another_chapter_is_refused(text: Path) -> None:
    exercises = {**REGISTERED, "half-it": replace(HALF, chapter="02_shapes")}
    with pytest.raises(CourseError, match=r":13: the exercise 'half-it' belongs to chapter 02_sh"):
        chapter_from(text, exercises)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("# Two exercises.", "# ### BEGIN SOLUTION", ":1: a solution marker stands here"),
        ('print("seen")', "### END SOLUTION", ":22: a solution marker stands here"),
        ('role="show"', 'role="answer"', ":18: there is no role 'answer', only role=\"show\"."),
        ('role="show"', 'points="3"', ":18: a cell cannot be marked 'points'"),
        ('exercise="half-it"\n', 'exercise="half-it"\nx = 1\n', ":13: the cell of the exercise"),
    ],
)
def test_other_slips_are_named_with_their_line(
    text: Path, old: str, new: str, sentence: str
) -> None:
    assert f"01_numbers.py{sentence}" in _complaint(text, old, new)


def test_saving_a_text_from_jupyterlab_changes_nothing(text: Path, repository: Path) -> None:
    config = jupytext.config.load_jupytext_configuration_file(str(repository / "pyproject.toml"))
    notebook = jupytext.reads(tiny.TEXT, fmt="py:percent", config=config)
    assert jupytext.writes(notebook, fmt="py:percent", config=config) == tiny.TEXT
