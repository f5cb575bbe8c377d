"""One comment for all answers that are wrong in the same way; grading again keeps it."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
from classroom import CHAPTER, LIMITS, PIXELS, WITH_WORKERS, Class, School, cell_of, put_first

from course.authoring.release import nbgrader_config
from course.cli import commands
from course.grading import batch, class_files, class_report, result
from course.grading.comments import comment
from course.notebook import exercise
from course.notebook.matching import Source
from course.shared.errors import CourseError

pytestmark = WITH_WORKERS


@pytest.fixture
def graded(school: School, source: Source) -> School:
    """Ada and bob give 0, cem gives the picture as it is, dan is right; eve and fay forgot a colon.

    Fay has a cell of her own above.
    """
    klass = Class(None, source)  # type: ignore[arg-type]
    for name, value in (("ada", "0"), ("bob", "0"), ("cem", "pixels[0]")):
        notebook = klass.honest()
        cell_of(notebook, "pixels")["source"] = f"def to_unit_range(*pixels):\n    return {value}"
        school.submit(name, json.dumps(notebook).encode())
    school.submit("dan", json.dumps(klass.honest()).encode())
    notebook = klass.honest()
    cell_of(notebook, "pixels")["source"] = "def to_unit_range(*pixels)\n    return 0"
    school.submit("eve", json.dumps(notebook).encode())
    school.submit("fay", json.dumps(put_first(notebook, "print(1)")).encode())
    batch.grade(school.root, CHAPTER, workers=1, limits=LIMITS)
    return school


def write(school: School, like: str, text: str, **options: Any) -> tuple[list[str], list[str]]:
    options = {"replace": False, "config": nbgrader_config(own=True), **options}
    return comment(school.root, CHAPTER, "pixels", like, text, **options)


def comments(school: School) -> dict[str, str]:
    with school.gradebook() as book:
        found = {
            name: book.find_comment("pixels", CHAPTER, CHAPTER, name).comment
            for name in ("ada", "bob", "cem", "dan")
        }
    return {name: text for name, text in found.items() if text}


def test_the_same_error_is_one_reason_whatever_cells_stand_above(graded: School) -> None:
    assert write(graded, "eve", "A colon.") == (["eve", "fay"], [])
    found = class_report.ClassReport(CHAPTER, result.all_stored(graded.root, CHAPTER)).exercises
    reasons = {kind.reason for each in found if each.id == "pixels" for kind in each.wrong}
    assert "does not run: SyntaxError" in reasons


@pytest.mark.rest
def test_the_commands_say_who_needs_help_what_is_hardest_and_where_the_grades_are(
    graded: School, capsys: pytest.CaptureFixture[str]
) -> None:
    with graded.gradebook() as book:
        book.add_student("gil")
    commands.app(["report", CHAPTER], standalone_mode=False)
    said = capsys.readouterr().out
    title = exercise.load()["pixels"].title
    assert f"Need help: 0. Handed nothing in: 1.\nMost points were lost in: {title}\n" in said
    commands.app(["export", CHAPTER, "--to", "csv"], standalone_mode=False)
    assert capsys.readouterr().out == f"{graded.root}/course/{CHAPTER}-grades.csv\n"


@pytest.mark.rest
def test_the_report_has_the_gradebooks_points_and_counts_no_grade_of_an_earlier_submission(
    graded: School, source: Source
) -> None:
    with graded.gradebook() as book:
        grades = book.find_submission(CHAPTER, "ada").notebooks[0].grades
        of = next(grade for grade in grades if grade.name == "check-pixels")
        of.manual_score, of.extra_credit = PIXELS, 2.0
        book.db.commit()
    graded.submit("bob", Class(None, source).honest())  # type: ignore[arg-type]
    class_files.write(graded.root, CHAPTER, names=True)
    text = (graded.root / "course" / "reports" / CHAPTER / "learners.csv").read_text("utf-8")
    rows = {row["learner"]: row for row in csv.DictReader(text.splitlines())}
    found = {
        name: tuple(rows[name][key] for key in ("status", "points", "pixels")) for name in rows
    }
    assert found["ada"] == ("graded", "22.0", f"{PIXELS + 2.0}")
    assert found["bob"] == ("not graded", "0.0", "")
    assert found["dan"] == ("graded", "20.0", f"{float(PIXELS)}")
    with pytest.raises(CourseError, match="Handed in and not graded: 'bob'"):
        write(graded, "ada", "Divide.")


@pytest.mark.rest
def test_answers_that_are_wrong_in_the_same_way_have_one_comment(graded: School) -> None:
    assert write(graded, "ada", "Divide.") == (["ada", "bob"], [])
    assert comments(graded) == {"ada": "Divide.", "bob": "Divide."}
    batch.grade(graded.root, CHAPTER, workers=1, limits=LIMITS, force=True)
    assert comments(graded) == {"ada": "Divide.", "bob": "Divide."}, "kept on regrading"
    with graded.gradebook() as book:
        book.find_comment("pixels", CHAPTER, CHAPTER, "bob").manual_comment = "By hand."
        book.db.commit()
    assert write(graded, "ada", "By 255.") == ([], ["ada", "bob"])
    assert write(graded, "ada", "By 255.", replace=True) == (["ada", "bob"], [])
    assert comments(graded) == {"ada": "By 255.", "bob": "By 255."}
    for like, words in (("dan", "is right or not started"), ("zoe", "Nothing by zoe is graded")):
        with pytest.raises(CourseError, match=words):
            write(graded, like, "x")
    with pytest.raises(CourseError, match="needs a text"):
        write(graded, "ada", " ")
    with pytest.raises(CourseError, match="has no graded exercise nothing; it has"):
        comment(graded.root, CHAPTER, "nothing", "ada", "x", replace=False, config=None)
