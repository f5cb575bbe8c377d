"""Nobody is graded while definitions, notebooks and gradebook give a chapter other points."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from classroom import CHAPTER, PIXELS, Notebook, School, cell_of
from typer.testing import CliRunner

from course.cli import commands
from course.grading import agreement, batch, class_files, grades, judge
from course.grading.pool import Job
from course.grading.result import Result
from course.notebook import exercise, matching
from course.notebook.matching import Source
from course.shared.errors import CourseError

CHECK = "check-pixels"
GENERATE = f"nbgrader generate_assignment {CHAPTER} --force"
BUILD = f"Run: course build {CHAPTER}, then {GENERATE}"


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


def _other_arguments(notebook: Notebook) -> None:
    answer = cell_of(notebook, "pixels")
    answer["source"] = "".join(answer["source"]).replace("(image", "(picture")


def _answer_that_is_graded(notebook: Notebook) -> None:
    cell_of(notebook, CHECK)["metadata"]["nbgrader"]["solution"] = True


def _check_that_asserts(notebook: Notebook) -> None:
    cell_of(notebook, CHECK)["source"] = "assert True"


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


@pytest.mark.parametrize("change", [*CHANGES, _check_that_asserts])
def test_notebooks_that_are_not_the_definitions(
    school: School, change: Callable[[Notebook], None]
) -> None:
    for folder in ("notebooks", "solutions"):
        _change(school, folder, change)
    assert f"{CHECK} ({PIXELS:g} points and " in _refused(school, BUILD)


@pytest.mark.parametrize("change", [*CELLS, _other_check, _answer_that_is_graded])
def test_a_released_notebook_with_other_cells(
    school: School, change: Callable[[Notebook], None]
) -> None:
    # a perfect learner had 14 of 20 points, and nobody was told why
    _change(school, "notebooks", change)
    assert "do not agree on " in _refused(school, BUILD)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *((change, "it has no cell pixels above its check") for change in CELLS),
        (_other_function, "another text in the cell pixels above its check"),
        (_other_arguments, "another text in the cell pixels above its check"),
    ],
)
def test_notebooks_without_the_answer_that_the_definition_asks_for(
    school: School, change: Callable[[Notebook], None], said: str
) -> None:
    for folder in ("notebooks", "solutions"):
        _change(school, folder, change)
    assert said in _refused(school, BUILD)


@pytest.mark.parametrize("change", [_other_function, _other_arguments])
def test_a_released_notebook_whose_stub_is_another(
    school: School, change: Callable[[Notebook], None]
) -> None:
    # learners wrote the older arguments, and perfect ones lost points
    _change(school, "notebooks", change)
    assert "The released notebook differs from the definition: it has another" in _refused(
        school, BUILD
    )


def test_a_damaged_notebook(school: School) -> None:
    file = school.root / "notebooks" / CHAPTER / f"{CHAPTER}.ipynb"
    file.write_text("<<<<<<< HEAD\n" + file.read_text("utf-8"), "utf-8")
    _refused(school, f"{file} is damaged: course build {CHAPTER}")


def _without_ids(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        del cell["id"]


def _points_as_text(notebook: Notebook) -> None:
    cell_of(notebook, CHECK)["metadata"]["nbgrader"]["points"] = "6"


@pytest.mark.parametrize("folder", ["notebooks", "solutions"])
@pytest.mark.parametrize("change", [dict.clear, _without_ids, _points_as_text])
def test_json_that_is_no_built_notebook(
    school: School, folder: str, change: Callable[[Notebook], None]
) -> None:
    _change(school, folder, change)
    file = school.root / folder / CHAPTER / f"{CHAPTER}.ipynb"
    _refused(school, f"{file} is damaged: course build {CHAPTER}")
    file.write_text("[]", "utf-8")
    _refused(school, f"{file} is damaged: course build {CHAPTER}")


def test_definitions_that_are_newer_than_the_notebooks(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exercise.load()["pixels"], "points", PIXELS + 2)
    assert f"{CHECK} ({PIXELS + 2:g} points and {PIXELS:g} points)" in _refused(school, BUILD)


def test_an_exercise_that_is_not_defined_any_more(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {id: each for id, each in exercise.load(CHAPTER).items() if id != "pixels"}
    monkeypatch.setattr(exercise, "load", lambda chapter=None: known)
    assert f"{CHECK} (not there and {PIXELS:g} points)" in _refused(school, BUILD)


def _nbgrader(school: School, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nbgrader", *arguments]
    return subprocess.run(command, cwd=school.root, capture_output=True, text=True, check=False)


def _change_gradebook(school: School, *statements: str) -> None:
    with school.gradebook() as book:
        for statement in statements:
            book.db.connection().exec_driver_sql(statement)
        book.db.commit()


@pytest.mark.parametrize(
    "change",
    [
        "update grade_cells set max_score = max_score + 1",
        f"update base_cell set name = 'check-other' where name = '{CHECK}'",
        "update base_cell set name = 'other' where name = 'pixels'",
        "update grade_cells set cell_type = 'markdown'",
    ],
)
def test_an_older_gradebook(school: School, change: str) -> None:
    # its old maxima capped new points: perfect learners had 18 of 20
    _change_gradebook(school, change)
    said = _refused(school, f"Run: {GENERATE}")
    assert "The released notebook and the gradebook do not agree" in said


def test_a_gradebook_to_which_only_the_due_date_was_told(school: School) -> None:
    _change_gradebook(
        school, *(f"delete from {name}" for name in ("source_cell", "base_cell", "notebook"))
    )
    _refused(school, f"does not know {CHAPTER} yet. Run: {GENERATE}")


def test_a_gradebook_that_counts_a_copy_of_the_notebook(school: School) -> None:
    # nbgrader takes in every notebook of the folder: perfect learners had 20 of 40
    with school.gradebook() as book:
        book.add_notebook(f"{CHAPTER}-Copy1", CHAPTER)
        book.add_grade_cell(CHECK, f"{CHAPTER}-Copy1", CHAPTER, max_score=4, cell_type="code")
    said = _refused(school, f"rm solutions/{CHAPTER}/{CHAPTER}-Copy1.ipynb, then {GENERATE}")
    assert "The gradebook counts the points of other notebooks" in said


@pytest.mark.rest
def test_the_command_that_is_named_mends_the_gradebook(school: School) -> None:
    # without --force nbgrader skips a chapter whose notebook is there, and ends with 0
    _change_gradebook(school, "update grade_cells set max_score = max_score + 1")
    _refused(school, GENERATE)
    _nbgrader(school, *GENERATE.split()[1:])
    assert [each.score for each in batch.grade(school.root, CHAPTER, workers=1)] == [20.0]


@pytest.mark.rest
def test_points_of_a_cell_that_was_deleted_by_hand_are_not_counted(school: School) -> None:
    # the next grading entered them a second time, and ended in a TypeError
    batch.grade(school.root, CHAPTER, workers=1)
    _change_gradebook(
        school,
        f"delete from grade_cells where id in (select id from base_cell where name = '{CHECK}')",
        f"delete from base_cell where name = '{CHECK}'",
    )
    with pytest.raises(CourseError, match=f"Run: {GENERATE}"):
        batch.grade(school.root, CHAPTER, workers=1)
    assert _nbgrader(school, *GENERATE.split()[1:]).returncode == 0
    batch.grade(school.root, CHAPTER, workers=1)
    with school.gradebook() as book:
        (ada,) = [each for each in grades.grades_of(book, CHAPTER) if each.learner == "ada"]
    assert (ada.points, sum(ada.points_by_cell.values())) == (20.0, 20.0)


def test_a_result_of_other_points_is_not_written(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as a worker gives it whose definitions are of another version
    def results(source: Source, jobs: Iterable[Job], **options: object) -> Generator[Result]:
        for job in jobs:
            refused = judge.refused(source, job.submission, job.seed, "")
            first, *rest = refused.exercises
            dear = replace(first, report=replace(first.report, possible=9.0, earned=9.0))
            yield replace(refused, status="graded", exercises=(dear, *rest))

    monkeypatch.setattr(batch, "results", results)
    with pytest.raises(batch.Ungraded, match="ada was graded by other points"):
        batch.grade(school.root, CHAPTER, workers=1)
    assert school.scores() == {}


@pytest.mark.rest
def test_nbgraders_own_command_refuses_too(school: School) -> None:
    _change_gradebook(school, "update grade_cells set max_score = max_score + 1")
    done = _nbgrader(school, "autograde", CHAPTER, "--create")
    assert done.returncode != 0
    assert f"Run: {GENERATE}" in done.stderr
    assert school.scores() in ({}, {"ada": 0.0})


@pytest.mark.parametrize("verb", ["bundle", "hosted"])
def test_learners_get_no_notebooks_of_older_points(
    school: School, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    # with a wheel that has the newer definitions
    monkeypatch.setattr(exercise.load()["pixels"], "points", PIXELS + 2)
    with pytest.raises(CourseError, match=BUILD):
        CliRunner().invoke(commands.app, [verb], catch_exceptions=False)


@pytest.mark.rest
def test_a_chapter_that_is_not_built_as_defined_is_not_released(school: School) -> None:
    for folder in ("notebooks", "solutions"):
        _change(school, folder, _other_points)
    done = _nbgrader(school, "release_assignment", CHAPTER, "--force")
    assert done.returncode == 1
    assert BUILD in done.stderr
    assert "Traceback" not in done.stderr
    assert list((school.root / "course" / "exchange").rglob("*.ipynb")) == []


def test_the_gradebook_is_told_before_anybody_is_graded_again(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the command for older results, `course grade`, refuses before that
    batch.grade(school.root, CHAPTER, workers=1)
    for folder in ("notebooks", "solutions"):
        _change(school, folder, _other_points)
    monkeypatch.setattr(exercise.load()["pixels"], "points", PIXELS + 1)
    with pytest.raises(CourseError, match=f"Run: {GENERATE}"):
        class_files.write(school.root, CHAPTER)


def test_a_cell_of_the_instructors_own_needs_no_definition(school: School) -> None:
    def with_asserts(notebook: Notebook) -> None:
        own = copy.deepcopy(cell_of(notebook, CHECK))
        own |= {"id": "mine", "source": "assert pixels is not None"}
        own["metadata"]["nbgrader"]["grade_id"] = "check-mine"
        notebook["cells"].append(own)

    for folder in ("notebooks", "solutions"):
        _change(school, folder, with_asserts)
    agreement.check_notebooks(matching.source_of(Path(school.root), CHAPTER))


def _graded(school: School) -> None:
    """Grade and make a page of feedback; then the chapter is built again with other points."""
    batch.grade(school.root, CHAPTER, workers=1)
    assert _nbgrader(school, "generate_feedback", CHAPTER).returncode == 0
    for folder in ("notebooks", "solutions"):
        _change(school, folder, _other_points)
    _change_gradebook(school, "update grade_cells set max_score = max_score + 1")


@pytest.mark.rest
@pytest.mark.parametrize("arguments", [["generate_feedback", "--force"], ["release_feedback"]])
def test_no_page_of_feedback_has_points_of_an_older_definition(
    school: School, arguments: list[str]
) -> None:
    _graded(school)
    folder = school.root / "course" / "feedback" / "ada" / CHAPTER
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = _nbgrader(school, *arguments, CHAPTER)
    assert done.returncode == 1
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert f"{CHECK} ({PIXELS:g} points and {PIXELS + 1:g} points)" in done.stderr
    assert BUILD in done.stderr
    assert "Traceback" not in done.stderr
    assert list((school.root / "course" / "exchange").rglob("*.html")) == []


def test_no_report_has_points_of_an_older_definition(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch.grade(school.root, CHAPTER, workers=1)
    monkeypatch.setattr(exercise.load()["pixels"], "points", PIXELS + 2)
    with pytest.raises(CourseError, match=BUILD):
        class_files.write(school.root, CHAPTER)
    assert not (school.root / "course" / "reports").exists()


def test_no_report_leaves_out_points_whose_result_is_lost(school: School, honest: bytes) -> None:
    # it said that bob had handed nothing in, and the export refused him
    school.submit("bob", honest)
    batch.grade(school.root, CHAPTER, workers=1)
    (school.root / "course" / "graded" / "bob" / f"{CHAPTER}.json").unlink()
    shutil.rmtree(school.root / "course" / "submitted" / "bob")
    with pytest.raises(CourseError, match="'bob' has points in the gradebook, but course/graded/"):
        class_files.write(school.root, CHAPTER)
