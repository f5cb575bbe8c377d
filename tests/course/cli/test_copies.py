"""The learner's copies: made once, never overwritten, nothing of them ever lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import tiny
from nbformat import NotebookNode
from tiny import DOUBLE, HALF, TinyExercise

from course.authoring import release
from course.authoring.build import _write
from course.authoring.text import chapter_from
from course.cli import copies, doctor
from course.notebook import exercise, matching
from course.shared import files, paths
from course.shared.errors import CourseError
from course.shared.settings import settings

ANSWER = "def double(n):\n    return n + n"
STUB = DOUBLE.released_source


def _release(root: Path, *exercises: TinyExercise, text: str = tiny.TEXT) -> None:
    """Release the tiny chapter as these exercises and this text make it."""
    with pytest.MonkeyPatch.context() as patch:
        tiny.register(patch, *exercises)
        source = root / "solutions" / "01_numbers.py"
        source.write_text(text, encoding="utf-8")
        chapter = chapter_from(source, exercise.load())
        _write(paths.notebook_in(paths.solutions(root), "01_numbers"), chapter.notebook)
        release.generate(root, ["01_numbers"])


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tiny.write_course(tmp_path_factory.mktemp("learner") / "course")
    _release(root, DOUBLE, HALF)
    return root


@pytest.fixture
def course(released: Path, tmp_path: Path) -> Path:
    """A course whose learner has a copy and has answered the first exercise."""
    root = Path(shutil.copytree(released, tmp_path / "course"))
    copies.make_copies(root)
    tiny.change(_mine(root), "double-it", ANSWER)
    return root


def _mine(root: Path) -> Path:
    return paths.notebook_in(paths.work(root), "01_numbers")


def _source(root: Path, id: str) -> str:
    return str(tiny.cell(tiny.read(_mine(root)), id).source)


def _said(root: Path) -> list[str]:
    said: list[str] = []
    copies.make_copies(root, said.append)
    return said


# copies


def test_copies_are_made_with_the_data(released: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(released, tmp_path / "course"))
    assert _said(root) == []
    assert _mine(root).read_bytes() == (root / "notebooks/01_numbers/01_numbers.ipynb").read_bytes()
    assert (root / "work/01_numbers/data.csv").read_text() == "1,2\n"


def test_a_copy_is_never_overwritten(course: Path) -> None:
    before = _mine(course).read_bytes()
    assert _said(course) == []
    assert _mine(course).read_bytes() == before


def test_a_missing_file_comes_back(course: Path) -> None:
    (course / "work/01_numbers/data.csv").unlink()
    copies.make_copies(course)
    assert (course / "work/01_numbers/data.csv").exists()


def test_a_newer_release_is_mentioned_and_changes_nothing(course: Path) -> None:
    before = _mine(course).read_bytes()
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    (said,) = _said(course)
    assert said.endswith("course update 01_numbers")
    assert _mine(course).read_bytes() == before


def test_a_new_answer_of_the_author_is_no_newer_release(course: Path) -> None:
    _release(course, replace(DOUBLE, answer_source=DOUBLE.answer_source.replace("2", "3")), HALF)
    assert _said(course) == []


def test_a_copy_that_is_no_notebook_is_left_and_named(course: Path) -> None:
    _mine(course).write_text("<<<<<<< not JSON", encoding="utf-8")
    (said,) = _said(course)
    assert "cannot be read as a notebook (NotJSONError). It was left as it is" in said
    assert _mine(course).read_text(encoding="utf-8") == "<<<<<<< not JSON"


# reset


def test_reset_restores_the_stub_and_keeps_the_text(course: Path) -> None:
    kept = copies.reset(course, "01_numbers", "double-it")
    assert kept == course / "work/01_numbers/older/double-it.1.py"
    assert kept.read_text() == ANSWER + "\n"
    assert _source(course, "double-it") == STUB


def test_a_second_reset_keeps_both_texts(course: Path) -> None:
    copies.reset(course, "01_numbers", "double-it")
    tiny.change(_mine(course), "double-it", "second = 2")
    kept = copies.reset(course, "01_numbers", "double-it")
    assert kept is not None
    assert kept.name == "double-it.2.py"
    assert (kept.parent / "double-it.1.py").read_text() == ANSWER + "\n"


def test_reset_of_a_stub_changes_nothing(course: Path) -> None:
    before = _mine(course).read_bytes()
    assert copies.reset(course, "01_numbers", "half-it") is None
    assert _mine(course).read_bytes() == before


def test_reset_clears_the_output_of_the_old_text(course: Path) -> None:
    notebook = tiny.read(_mine(course))
    answer = tiny.cell(notebook, "double-it")
    answer.execution_count = 7
    answer.outputs = [nbformat.v4.new_output("stream", text="old")]
    nbformat.write(notebook, _mine(course))
    copies.reset(course, "01_numbers", "double-it")
    restored = tiny.cell(tiny.read(_mine(course)), "double-it")
    assert (restored.outputs, restored.execution_count) == ([], None)


def test_reset_brings_back_a_deleted_cell_above_its_check(course: Path) -> None:
    notebook = tiny.read(_mine(course))
    notebook.cells.remove(tiny.cell(notebook, "half-it"))
    nbformat.write(notebook, _mine(course))
    assert copies.reset(course, "01_numbers", "half-it") is None
    ids = [cell.id for cell in tiny.read(_mine(course)).cells]
    assert ids.index("half-it") + 1 == ids.index("check-half-it")


def test_reset_of_an_unknown_exercise_names_those_there_are(course: Path) -> None:
    with pytest.raises(CourseError, match=r"'treble-it' in 01_numbers\. Its exercises: double-it"):
        copies.reset(course, "01_numbers", "treble-it")


def test_reset_without_a_folder_for_jupyters_data_says_which(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUPYTER_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", "/proc")
    before = _mine(course).read_bytes()
    with pytest.raises(CourseError, match=r"trusted notebooks: /proc/\.local .* Set HOME"):
        copies.reset(course, "01_numbers", "double-it")
    assert _mine(course).read_bytes() == before


def test_reset_leaves_a_file_that_is_no_notebook(course: Path) -> None:
    _mine(course).write_text('{"cells": 3}', encoding="utf-8")
    with pytest.raises(CourseError, match="cannot be read as a notebook"):
        copies.reset(course, "01_numbers", "double-it")
    assert _mine(course).read_text(encoding="utf-8") == '{"cells": 3}'


# update


def test_update_of_the_newest_release_changes_nothing(course: Path) -> None:
    before = _mine(course).read_bytes()
    assert copies.update(course, "01_numbers") is None
    assert _mine(course).read_bytes() == before


def test_update_carries_answers_over_and_keeps_the_old_notebook(course: Path) -> None:
    old = _mine(course).read_bytes()
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    done = copies.update(course, "01_numbers")
    assert done is not None
    assert (done.carried, done.left_behind) == (["double-it"], [])
    assert done.kept == course / "work/01_numbers/older/01_numbers.1.ipynb"
    assert done.kept.read_bytes() == old
    assert _source(course, "double-it") == ANSWER
    assert _source(course, "exercise-double-it") == "Clearer."
    assert _said(course) == []


def test_of_two_copies_of_a_cell_update_carries_the_one_with_an_answer(course: Path) -> None:
    notebook = tiny.read(_mine(course))
    copy = nbformat.from_dict(
        {**tiny.cell(notebook, "double-it"), "id": "pasted", "source": "pass"}
    )
    notebook.cells.append(copy)
    nbformat.write(notebook, _mine(course))
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    done = copies.update(course, "01_numbers")
    assert done is not None
    assert done.carried == ["double-it"]
    assert _source(course, "double-it") == ANSWER


def test_another_release_in_the_exchange_is_noticed(course: Path) -> None:
    outbound = course / settings().exchange / settings().course_id / "outbound" / "01_numbers"
    shutil.copytree(paths.notebooks(course) / "01_numbers", outbound)
    assert not copies.is_released_otherwise(course, "01_numbers")
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    assert copies.is_released_otherwise(course, "01_numbers")
    paths.notebook_in(outbound.parent, "01_numbers").write_text("no notebook")
    assert not copies.is_released_otherwise(course, "01_numbers")


def _own(text: str, kind: str = "code") -> NotebookNode:
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}[kind]
    return make(text)


def _order(root: Path) -> list[str]:
    """The notebook's cells: released ones of exercises by their ids, others by their texts."""
    cells = tiny.read(_mine(root)).cells
    return [each.id if "-it" in each.id else each.source for each in cells]


def test_update_carries_own_cells_to_where_they_stood(course: Path) -> None:
    notebook = tiny.read(_mine(course))
    ids = [cell.id for cell in notebook.cells]
    notebook.cells.insert(ids.index("half-it") + 1, _own("def half(n):\n    return n / 2"))
    notebook.cells.insert(ids.index("half-it"), _own("def helper(n):\n    return n"))
    notebook.cells.insert(0, _own("My notes", "markdown"))
    notebook.cells.append(_own("  "))
    nbformat.write(notebook, _mine(course))
    _release(
        course, replace(DOUBLE, statement="Clearer."), HALF, text=tiny.TEXT.replace("Two", "2")
    )
    done = copies.update(course, "01_numbers")
    assert done is not None
    assert (done.carried, done.n_own) == (["double-it"], 3)
    found = _order(course)
    at = found.index("half-it")
    assert found[0] == "My notes"
    assert found[at - 1] == "def helper(n):\n    return n"
    assert found[at + 1] == "def half(n):\n    return n / 2"
    assert not any("Two exercises" in text for text in found)  # of the older release
    nbformat.validate(tiny.read(_mine(course)))


def test_update_carries_what_the_learner_changed_in_a_released_cell(course: Path) -> None:
    notebook = tiny.read(_mine(course))
    setup = next(cell for cell in notebook.cells if cell.cell_type == "code")
    setup.source += "\nimport math"
    nbformat.write(notebook, _mine(course))
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    copies.update(course, "01_numbers")
    first, second = [c for c in tiny.read(_mine(course)).cells if c.cell_type == "code"][:2]
    assert first.id == setup.id
    assert second.source == first.source + "\nimport math"
    assert second.id != first.id


def test_what_a_notebook_gives_is_the_same_after_update(course: Path) -> None:
    # an answer in a cell of the learner's own was counted before, and not started afterwards
    notebook = tiny.read(_mine(course))
    at = [cell.id for cell in notebook.cells].index("check-half-it")
    notebook.cells.insert(at, _own("def half(n):\n    return quarter(n) * 2"))
    notebook.cells.insert(2, _own("def quarter(n):\n    return n / 4"))
    nbformat.write(notebook, _mine(course))
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    source = doctor.source_for(course, "01_numbers")
    before = matching.repair(_mine(course).read_bytes(), source)
    copies.update(course, "01_numbers")
    after = matching.repair(_mine(course).read_bytes(), source)
    assert after.notes == before.notes != ()
    code = [
        [cell["source"] for cell in each.cells if cell["cell_type"] == "code"]
        for each in (before, after)
    ]
    assert code[0] == code[1]


def test_the_notebook_that_was_saved_last_is_found(course: Path) -> None:
    assert copies.notebook_saved_last(course) == _mine(course)
    for name in ("00_before", "02_after"):  # new chapters, of which a start makes copies
        for file in (
            paths.notebook_in(folder(course), name) for folder in (paths.notebooks, paths.work)
        ):
            file.parent.mkdir()
            file.write_text("{}")
    assert copies.notebook_saved_last(course) == _mine(course)
    _mine(course).write_bytes(paths.notebook_in(paths.notebooks(course), "01_numbers").read_bytes())
    assert copies.notebook_saved_last(course) == paths.notebook_in(paths.work(course), "00_before")
    for name in copies.chapters(course):
        paths.notebook_in(paths.work(course), name).unlink()
    assert copies.notebook_saved_last(course) is None


def test_update_takes_the_new_stub_where_nothing_was_written(course: Path) -> None:
    new_stub = "def half(n):\n    return n - 2"
    _release(course, DOUBLE, replace(HALF, released_source=new_stub))
    copies.update(course, "01_numbers")
    assert _source(course, "half-it") == new_stub


@pytest.mark.parametrize("text", ["pass", "def half(n):\n    pass", "# later\n", ""])
def test_update_carries_no_cell_over_that_holds_no_answer(course: Path, text: str) -> None:
    tiny.change(_mine(course), "half-it", text)
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    done = copies.update(course, "01_numbers")
    assert done is not None
    assert done.carried == ["double-it"]
    assert _source(course, "half-it") == HALF.released_source


def test_update_names_an_answer_whose_exercise_is_gone(course: Path) -> None:
    text = tiny.TEXT.replace('# %% exercise="double-it"\n', "")
    _release(course, HALF, text=text)
    done = copies.update(course, "01_numbers")
    assert done is not None
    assert (done.carried, done.left_behind) == ([], ["double-it"])
    assert ANSWER.splitlines()[1] in done.kept.read_text()
    (own,) = [cell for cell in tiny.read(_mine(course)).cells if cell.source == ANSWER]
    assert "nbgrader" not in own.metadata


def test_update_keeps_data_that_the_learner_changed(course: Path) -> None:
    (course / "work/01_numbers/data.csv").write_text("mine\n")
    (course / "solutions/01_numbers/data.csv").write_text("new\n")
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    copies.update(course, "01_numbers")
    assert (course / "work/01_numbers/data.csv").read_text() == "new\n"
    assert (course / "work/01_numbers/older/data.1.csv").read_text() == "mine\n"


def test_a_copied_answer_cell_counts_if_it_is_the_changed_one(course: Path) -> None:
    notebook = tiny.read(_mine(course))
    copy = nbformat.from_dict(tiny.cell(notebook, "half-it"))
    copy = nbformat.from_dict({**copy, "id": "copied", "source": "def half(n):\n    return n / 2"})
    notebook.cells.append(copy)
    nbformat.write(notebook, _mine(course))
    _release(course, replace(DOUBLE, statement="Clearer."), HALF)
    done = copies.update(course, "01_numbers")
    assert done is not None
    assert set(done.carried) == {"double-it", "half-it"}
    assert _source(course, "half-it") == "def half(n):\n    return n / 2"


# files


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notebook.ipynb"
    path.write_text("old")

    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write(path, "new")
    assert path.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["notebook.ipynb"]


def test_a_chapter_without_a_copy_says_how_to_get_one(released: Path) -> None:
    with pytest.raises(CourseError, match="no copy of 01_numbers yet: course lab makes one"):
        copies.chapter_in_work(released, "numbers")


def test_a_file_in_the_place_of_the_copies_is_said(course: Path) -> None:
    shutil.rmtree(course / "work")
    (course / "work").write_text("mine")
    with pytest.raises(CourseError, match="work is a file, but a folder of yours belongs there"):
        copies.any_folder(course)
    with pytest.raises(CourseError, match="work is a file, but a folder of yours belongs there"):
        copies.chapter_in_work(course, "numbers")
