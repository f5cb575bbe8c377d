"""The command `course`: its verbs, and sentences instead of tracebacks."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import nbformat
import pytest
import tiny
from tiny import DOUBLE, HALF
from typer.testing import CliRunner

from course.authoring import build
from course.cli import commands, copies
from course.shared import paths
from course.shared.errors import CourseError
from course.shared.settings import settings


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny course, not built, as the one that the command finds."""
    root = tiny.write_course(tmp_path / "course")
    tiny.register(monkeypatch, DOUBLE, HALF)
    monkeypatch.setenv("COURSE_ROOT", str(root))
    monkeypatch.chdir(tmp_path)
    return root


def _run(*arguments: str) -> str:
    """What a verb prints; what it raises is raised."""
    result = CliRunner().invoke(commands.app, arguments, catch_exceptions=False)
    return result.output


def test_every_verb_explains_itself() -> None:
    for verb in ("lab", "reset", "update", "progress", "build", "demo", "bundle"):
        assert verb in _run("--help")
        assert len(_run(verb, "--help").split()) > 10


@pytest.mark.rest
def test_build_check_reset_and_update_are_one_way(course: Path) -> None:
    assert "written: notebooks/01_numbers/01_numbers.ipynb" in _run("build")
    assert _run("build", "--check") == "Built as their texts say: 01_numbers.\n"
    assert "1 built, 0 files changed." in _run("build", "numbers")
    copies.make_copies(course)
    copy = paths.notebook_in(paths.work(course), "01_numbers")
    tiny.change(copy, "double-it", "mine = 1")
    assert "Your text is kept in" in _run("reset", "1", "double-it")
    assert _run("update", "1").startswith("You have the newest release already")
    tiny.change(copy, "double-it", "mine = 2")
    text = course / "solutions" / "01_numbers.py"
    text.write_text(text.read_text().replace("Two exercises", "Two short exercises"))
    _run("build")
    said = _run("update", "1")
    assert "with your answers to: double-it." in said
    assert "older" in said
    outbound = course / settings().exchange / settings().course_id / "outbound" / "01_numbers"
    shutil.copytree(paths.notebooks(course) / "01_numbers", outbound)
    (outbound / "01_numbers.ipynb").write_text(
        copy.read_text().replace('"release": "', '"release": "newer')
    )
    assert "has not released the newer one yet" in _run("update", "1")
    assert commands.app(["update", "1"], standalone_mode=False) == 1


def test_update_goes_on_below_a_broken_notebook_and_says_what_it_did(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the notebooks above a broken one were replaced, and not a word was printed
    def update(root: Path, chapter: str) -> copies.Updated | None:
        if chapter == "02_two":
            raise CourseError("02_two cannot be read")
        return copies.Updated(["one"], [], 1, root / chapter)

    monkeypatch.setattr(copies, "update", update)
    monkeypatch.setattr(copies, "chapters", lambda root: ["01_one", "02_two", "03_three"])
    for name in ("any_folder", "is_released_otherwise"):
        monkeypatch.setattr(copies, name, lambda *arguments: False)
    result = CliRunner().invoke(commands.app, ["update"], catch_exceptions=False)
    assert result.exit_code == 1
    for said in ("01_one is in work/", "02_two cannot be read", "03_three is in work/"):
        assert said in result.output


def test_update_says_of_a_broken_notebook_the_same_each_time(course: Path) -> None:
    for chapter in ("01_numbers", "02_more"):
        released = paths.notebook_in(paths.notebooks(course), chapter)
        released.parent.mkdir(parents=True)
        nbformat.write(nbformat.v4.new_notebook(metadata={"course": "newest"}), released)
        shutil.copytree(released.parent, paths.work(course) / chapter)
    paths.notebook_in(paths.work(course), "02_more").write_text("{")
    results = [CliRunner().invoke(commands.app, ["update"]) for _ in range(2)]
    assert [result.exit_code for result in results] == [1, 1]
    assert all("02_more.ipynb cannot be read as a notebook" in said.output for said in results)
    assert all("nothing was changed" not in said.output for said in results)


def test_a_chapter_that_is_written_and_not_built_is_told_so(course: Path) -> None:
    with pytest.raises(CourseError, match="01_numbers is not built: course build 01_numbers"):
        _run("export", "1", "--to", "csv")


def test_drift_ends_the_check_with_the_command_that_mends_it(course: Path) -> None:
    with pytest.raises(
        CourseError, match=r"01_numbers\.ipynb is missing; mend it with: course build"
    ):
        _run("build", "--check")
    assert list((course / "notebooks").iterdir()) == []


def test_a_mistake_is_one_sentence_and_exit_code_1(
    course: Path, environment: Mapping[str, str]
) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "course", "build", "9"],
        env={**environment, "COURSE_ROOT": str(course)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr == "course: There is no chapter '9'. The chapters: 01_numbers.\n"


def test_a_module_that_learners_lack_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "course.cli.demo", None)
    monkeypatch.setattr(sys, "argv", ["course", "demo"])
    with pytest.raises(SystemExit, match="1"):
        commands.main()
    assert "`course demo` is for authors" in capsys.readouterr().err


def test_a_bundles_help_lists_the_verbs_that_a_bundle_has(environment: Mapping[str, str]) -> None:
    program = (
        "import sys; from course.cli import commands; sys.argv[1:] = ['--help']; "
        "commands.find_spec = lambda module: None; commands.main()"
    )
    listed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "Learn" in listed
    assert commands.TEACH not in listed


CLOSED = PermissionError(errno.EACCES, "Permission denied", "/home/ada/.local")


@pytest.mark.parametrize(
    ("where", "problem", "sentence"),
    [
        ("course.cli.commands.app", CLOSED, "/home/ada/.local cannot be read or written by you"),
        ("course.shared.paths.course_root", CLOSED, "/home/ada/.local cannot be read or written"),
        ("course.cli.commands.app", MemoryError(), "This machine, or a limit of it (ulimit -v)"),
    ],
)
def test_what_the_machine_refuses_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
    problem: Exception,
    sentence: str,
) -> None:
    def fails(*_: object) -> None:
        raise problem

    monkeypatch.setattr(where, fails)
    with pytest.raises(SystemExit, match="1"):
        commands.main()
    said = capsys.readouterr().err
    assert said.startswith(f"course: {sentence}")
    assert said.endswith("Mend that, and use the same command again.\n")


def test_help_starts_no_heavy_module(environment: Mapping[str, str]) -> None:
    program = (
        "import sys; from course import cli\n"
        "heavy = {'jupyterlab', 'matplotlib', 'nbformat', 'nbgrader'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_progress_is_a_line_for_each_chapter_and_needs_a_copy(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for verb in ("progress", "doctor", "update"):
        with pytest.raises(CourseError, match="no copy of a chapter yet"):
            _run(verb)
    build.build(course, ["01_numbers"])
    copies.make_copies(course)
    monkeypatch.undo()
    monkeypatch.setenv("COURSE_ROOT", str(course))
    assert "exercises done" in _run("progress")
    assert "not started" in _run("progress", "01")
