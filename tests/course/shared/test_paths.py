"""The course is found from any folder, and where it is not, a sentence says what to do."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
from pathlib import Path

import pytest
from typer.testing import CliRunner

from course.cli import commands
from course.shared import paths
from course.shared.errors import CourseError


class _Distribution:
    def __init__(self, noted: object) -> None:
        self._noted = noted

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._noted is None else json.dumps(self._noted)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    root = tmp_path / "a course"
    (root / "notebooks").mkdir(parents=True)
    return root


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable, not installed from a folder, started in a folder without a course."""
    monkeypatch.delenv("COURSE_ROOT")
    _install(monkeypatch, None)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


def _install(monkeypatch: pytest.MonkeyPatch, noted: object) -> None:
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: _Distribution(noted))


def test_the_variable_comes_first(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, {"url": Path.cwd().as_uri(), "dir_info": {}})
    monkeypatch.setenv("COURSE_ROOT", str(course))
    assert paths.course_root() == course


def test_a_variable_that_names_no_course_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_ROOT", str(Path.cwd()))
    with pytest.raises(CourseError, match=r"COURSE_ROOT is .*elsewhere, but there is no folder"):
        paths.course_root()


def test_who_stands_in_another_course_is_told(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = course.with_name("other")
    for folder in ("notebooks", "solutions", "docs"):
        (other / folder).mkdir(parents=True)
    monkeypatch.chdir(other / "docs")
    paths.tell_of_another.cache_clear()
    assert paths.tell_of_another(course)
    assert paths.tell_of_another(course)
    said = capsys.readouterr().err
    assert said.count("export COURSE_ROOT=") == 1
    assert f"This works in {course}" in said
    assert f"not in {other}" in said


def test_who_stands_in_the_course_itself_is_told_nothing(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "solutions").mkdir()
    paths.tell_of_another.cache_clear()
    paths.tell_of_another(course)  # from a folder of none
    monkeypatch.chdir(course)
    paths.tell_of_another.cache_clear()
    assert not paths.tell_of_another(course)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("new", "chapter", "77_shapes"),
        ("new", "exercise", "first-shape", "--chapter", "77"),
        ("build",),
        ("grade", "1"),
        ("extend", "1", "ada", "--days", "1"),
        ("export", "1", "--to", "csv"),
        ("comment", "1", "pixels", "Mind the type.", "--like", "ada"),
        ("report", "1"),
        ("bundle",),
        ("hosted",),
    ],
)
def test_who_stands_in_another_course_changes_nothing(
    course: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    _install(monkeypatch, {"url": course.as_uri(), "dir_info": {"editable": True}})
    other = course.with_name("other")
    for folder in ("notebooks", "solutions"):
        (other / folder).mkdir(parents=True)
    monkeypatch.chdir(other)
    paths.tell_of_another.cache_clear()
    before = sorted(course.rglob("*"))
    with pytest.raises(CourseError, match="Nothing was written"):
        CliRunner().invoke(commands.app, arguments, catch_exceptions=False)
    assert sorted(course.rglob("*")) == before


@pytest.mark.parametrize("editable", [True, False])
def test_a_checkout_is_found_by_what_pip_noted(
    course: Path, monkeypatch: pytest.MonkeyPatch, editable: bool
) -> None:
    _install(monkeypatch, {"url": course.as_uri(), "dir_info": {"editable": editable}})
    assert paths.course_root() == course


def test_a_bundle_is_found_by_its_wheel(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = course / "tensorkit_course-0.1.0-py3-none-any.whl"
    wheel.touch()
    _install(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    assert paths.course_root() == course


def test_a_folder_above_is_found(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (course / "work" / "01_tensors").mkdir(parents=True)
    monkeypatch.chdir(course / "work" / "01_tensors")
    assert paths.course_root() == course


def test_a_checkout_that_is_gone_is_passed_over(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(monkeypatch, {"url": (course.parent / "moved").as_uri(), "dir_info": {}})
    monkeypatch.chdir(course)
    assert paths.course_root() == course


def test_a_course_that_may_only_be_read_has_a_folder_at_home(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != course)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    _install(monkeypatch, {"url": course.as_uri(), "dir_info": {}})
    for _ in range(2):
        assert paths.course_root() == tmp_path / "tensorkit-course"
    (course / "notebooks" / "01_new").mkdir()
    assert (paths.notebooks(paths.course_root()) / "01_new").is_dir()


def test_a_changed_exercise_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    module = "ch12_kernels/add_bias.py"
    folder = tmp_path / "course" / "exercises"
    shutil.copytree(Path(paths.__file__).parents[1] / "exercises", folder)
    paths.check_exercises(tmp_path)
    with (folder / module).open("a") as file:
        file.write("# other points\n")
    with pytest.raises(CourseError, match=rf"{module} is not what is installed.*pip install"):
        paths.check_exercises(tmp_path)


def test_no_course_is_said_in_a_sentence() -> None:
    with pytest.raises(CourseError, match=r"change into it .* or name it in the variable"):
        paths.course_root()


@pytest.mark.parametrize("name", ["02_shapes", "2", "02", "shapes"])
def test_a_chapter_is_meant_by_name_number_or_topic(name: str) -> None:
    assert paths.chapter_named(name, ["01_tensors", "02_shapes", "12_more"]) == "02_shapes"


@pytest.mark.parametrize("name", ["0", "00", "start"])
def test_the_chapter_before_the_first_has_a_number_too(name: str) -> None:
    assert paths.chapter_named(name, ["00_start", "01_tensors", "exam"]) == "00_start"


def test_an_unknown_chapter_names_those_there_are() -> None:
    with pytest.raises(CourseError, match=r"no chapter '3'. The chapters: 01_tensors, 02_shapes\."):
        paths.chapter_named("3", ["01_tensors", "02_shapes"])


def test_the_environments_programs_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    paths.scripts_on_path()
    paths.scripts_on_path()
    found = shutil.which("course")
    assert found is not None
    assert Path(found).parent == Path(sysconfig.get_path("scripts"))
    assert os.environ["PATH"].count(sysconfig.get_path("scripts")) == 1
