"""Learners get stubs that run, and nbgrader's own steps otherwise."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import nbformat
import pytest
import tiny
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from tiny import DOUBLE, HALF

from course.authoring import release
from course.authoring.build import _write
from course.authoring.text import chapter_from
from course.notebook import exercise
from course.shared import paths
from course.shared.errors import CourseError

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.register(monkeypatch, DOUBLE, HALF)


@pytest.fixture
def course(tmp_path: Path, _registered: None) -> Path:
    """The tiny course with the notebook of its answers, not executed, nothing released."""
    root = tiny.write_course(tmp_path / "course")
    chapter = chapter_from(root / "solutions" / "01_numbers.py", exercise.load())
    _write(paths.notebook_in(paths.solutions(root), "01_numbers"), chapter.notebook)
    return root


def _released(root: Path) -> NotebookNode:
    release.generate(root, ["01_numbers"])
    return tiny.read(paths.notebook_in(paths.notebooks(root), "01_numbers"))


def test_learners_get_the_stub_of_each_exercise(course: Path) -> None:
    notebook = _released(course)
    assert tiny.cell(notebook, "double-it").source == DOUBLE.released_source
    assert tiny.cell(notebook, "half-it").source == HALF.released_source
    assert "SOLUTION" not in nbformat.writes(notebook)


def test_checks_cannot_be_edited_and_answers_not_deleted(course: Path) -> None:
    notebook = _released(course)
    assert tiny.cell(notebook, "check-half-it").metadata["editable"] is False
    assert tiny.cell(notebook, "half-it").metadata["deletable"] is False
    assert "editable" not in tiny.cell(notebook, "half-it").metadata


def test_a_solution_without_an_exercise_becomes_a_silent_stub(course: Path) -> None:
    path = paths.notebook_in(paths.solutions(course), "01_numbers")
    notebook = tiny.read(path)
    extra = nbformat.v4.new_code_cell(
        "if True:\n    ### BEGIN SOLUTION\n    x = 1\n    ### END SOLUTION", id="extra"
    )
    extra.metadata.nbgrader = {**tiny.cell(notebook, "half-it").metadata.nbgrader}
    extra.metadata.nbgrader["grade_id"] = "extra"
    notebook.cells.append(extra)
    nbformat.write(notebook, path)
    assert tiny.cell(_released(course), "extra").source == (
        "if True:\n    # YOUR CODE HERE\n    pass"
    )


def test_what_nbgrader_refuses_is_said_in_its_words(course: Path) -> None:
    tiny.change(
        paths.notebook_in(paths.solutions(course), "01_numbers"),
        "check-half-it",
        "### BEGIN SOLUTION",
    )
    with pytest.raises(CourseError, match=r"could not release 01_numbers:(.|\n)*solution"):
        release.generate(course, ["01_numbers"])


def test_only_two_steps_differ_from_what_nbgrader_does() -> None:
    usual = [
        f"nbgrader.preprocessors.{preprocessor.__name__}"
        for preprocessor in GenerateAssignment().preprocessors
    ]
    steps = release.nbgrader_config().GenerateAssignment.preprocessors
    assert steps == [REPLACED.get(mistake, mistake) for mistake in usual]


REPLACED = {
    "nbgrader.preprocessors.ClearSolutions": "course.authoring.release.ReleaseStubs",
    "nbgrader.preprocessors.SaveCells": "course.authoring.release.SaveChapterCells",
}


# the real chapters; `make test` executes their notebooks once, by nbval


@pytest.fixture(scope="module", params=paths.released_chapters(REPOSITORY))
def untouched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NotebookNode:
    """A released notebook after Run All."""
    from nbclient import NotebookClient

    released = paths.notebook_in(paths.notebooks(REPOSITORY), request.param)
    notebook = tiny.read(released)
    folder = tmp_path_factory.mktemp("learner") / request.param
    shutil.copytree(released.parent, folder)  # data files lie beside the notebook
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, resources=resources, allow_errors=True, timeout=60).execute()
    return notebook


def _checks(notebook: NotebookNode) -> Mapping[str, list[NotebookNode]]:
    return {
        cell.id.removeprefix("check-"): cell.outputs
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }


@pytest.mark.rest
def test_a_released_notebook_runs_from_top_to_bottom(untouched: NotebookNode) -> None:
    raised = {
        cell.id: output.ename
        for cell in untouched.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", [])
    }
    assert raised == {}


@pytest.mark.rest
def test_every_exercise_of_a_released_notebook_is_not_started(untouched: NotebookNode) -> None:
    chapter = untouched.metadata["course"]["chapter"]
    checks = _checks(untouched)
    assert set(checks) == set(exercise.load(chapter))
    for id, outputs in checks.items():
        (report,) = [output for output in outputs if output.output_type == "execute_result"]
        assert float(report.data["text/plain"]) == 0.0, id
        assert "not started" in report.data["text/html"].lower(), id
        assert not [output for output in outputs if output.get("name") == "stderr"], id


@pytest.mark.rest  # of one chapter, the round trip tells it too
def test_the_program_nbgrader_releases_the_same_bytes(
    repository: Path, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    for chapter in paths.released_chapters(repository)[::6]:  # `course build --check` has them all
        root = tmp_path / "course"
        paths.notebooks(root).mkdir(parents=True, exist_ok=True)
        shutil.copytree(paths.solutions(repository) / chapter, paths.solutions(root) / chapter)
        program = Path(sysconfig.get_path("scripts")) / "nbgrader"
        subprocess.run(
            [program, "generate_assignment", chapter],
            cwd=tmp_path,
            env={**environment, "COURSE_ROOT": str(root)},
            check=True,
            capture_output=True,
        )
        made, committed = (
            paths.notebook_in(paths.notebooks(folder), chapter) for folder in (root, repository)
        )
        assert made.read_bytes() == committed.read_bytes()


def _told_to_the_gradebook(root: Path, without: tuple[str, ...] = ()) -> str:
    """The gradebook's address, once it was told a chapter that lacks some cells."""
    file = paths.notebook_in(paths.solutions(root), "01_numbers")
    whole = file.read_text(encoding="utf-8")
    notebook = nbformat.reads(whole, as_version=4)
    marked = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    notebook.cells = [
        cell for cell, id in zip(notebook.cells, marked, strict=True) if id not in without
    ]
    nbformat.write(notebook, file)
    config = release.nbgrader_config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = f"sqlite:///{root}/gradebook.db"
    config.CourseDirectory.assignment_id = "01_numbers"
    folder = CourseDirectory(config=config)
    GenerateAssignment(coursedir=folder, config=config, force=True).start()
    file.write_text(whole, encoding="utf-8")
    return str(folder.db_url)


def _graded_cells(book: Gradebook) -> dict[str, float | None]:
    (submitted,) = book.notebook_submissions("01_numbers", "01_numbers")
    return {grade.name: grade.manual_score for grade in submitted.grades}


@pytest.mark.rest
def test_an_exercise_may_come_and_go_after_somebody_has_handed_in(course: Path) -> None:
    half = ("half-it", "check-half-it")
    url = _told_to_the_gradebook(course, without=half)
    with Gradebook(url) as book:
        book.add_student("ada")
        book.add_submission("01_numbers", "ada")
        grade = book.find_grade("check-double-it", "01_numbers", "01_numbers", "ada")
        grade.manual_score = 1.5
        book.db.commit()
    with Gradebook(_told_to_the_gradebook(course)) as book:
        assert _graded_cells(book) == {"check-double-it": 1.5, "check-half-it": None}
        assert book.find_comment("half-it", "01_numbers", "01_numbers", "ada").comment is None
    with Gradebook(_told_to_the_gradebook(course, without=half)) as book:
        assert _graded_cells(book) == {"check-double-it": 1.5}
