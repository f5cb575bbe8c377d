"""Damaged files of a course: a sentence with the file and the way out, and the rest is graded."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from classroom import CHAPTER, PIXELS, ROOT, WITH_WORKERS, School, grade

from course.authoring.release import nbgrader_config
from course.cli import commands
from course.grading import batch, class_files
from course.grading.batch import Ungraded
from course.grading.export import export
from course.grading.gradebook import roster
from course.grading.result import result_file
from course.shared.errors import CourseError

pytestmark = WITH_WORKERS


def foreign(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("create table student (name text)")


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def zeros(file: Path) -> None:
    file.write_bytes(bytes(64))


def noise(file: Path) -> None:
    file.write_bytes(b"\xff\xfe" * 500)


def folder(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.mkdir(parents=True)
    (file / "x").touch()


def of_another_program(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("create table songs (name text)")


@pytest.mark.parametrize("change", [foreign, of_another_program, noise, folder])
def test_a_gradebook_that_is_none_is_named(
    school: School, half: bytes, change: Callable[[Path], None]
) -> None:
    school.submit("bob", half)
    book = school.root / "course" / "gradebook.db"
    change(book)
    before = None if change is folder else book.read_bytes()
    with pytest.raises(
        CourseError, match=r"gradebook\.db.* cannot be opened.*put a copy.*assignment CHAPTER --fo"
    ):
        grade(school)
    if change is not folder:
        with pytest.raises(CourseError, match=r"gradebook\.db.* cannot be opened"):
            roster(school.root, nbgrader_config())
        assert book.read_bytes() == before, "no table is made in what is another program's"


@pytest.mark.rest
def test_the_gradebook_of_another_course_is_named(school: School, half: bytes) -> None:
    school.submit("bob", half)
    (school.root / "course" / "gradebook.db").unlink()
    with pytest.raises(CourseError, match=r"gradebook\.db does not know .*generate_assignment"):
        grade(school)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (emptied, "holds no secret.*remove it"),
        (zeros, "holds no secret.*remove it"),
        (folder, "cannot be read.*What is no file has to go"),
    ],
)
def test_a_secret_that_is_none_is_refused(
    school: School, half: bytes, change: Callable[[Path], None], words: str
) -> None:
    # with an empty one everybody can draw the numbers of every grade
    school.submit("bob", half)
    change(school.root / "course" / ".secret")
    with pytest.raises(CourseError, match=rf"\.secret {words}"):
        grade(school)
    assert school.scores() == {}


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        (".secret", "batch.secret_of(root)"),
        (f"graded/ada/{CHAPTER}.json", f"result.all_stored(root, '{CHAPTER}')"),
    ],
)
def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    tmp_path: Path, name: str, statement: str
) -> None:
    file = tmp_path / "course" / name
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    program = "import pathlib\nfrom course.grading import batch, result\n"
    program += f"root = pathlib.Path({str(tmp_path)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", program + statement],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    *_, last = done.stderr.strip().split("\n")
    assert f"CourseError: {file} cannot be read" in last
    assert "It is no file" in last


def test_a_damaged_autograded_notebook_is_written_again(school: School, half: bytes) -> None:
    school.submit("bob", half)
    grade(school)
    file = school.root / "course" / "autograded" / "bob" / CHAPTER / f"{CHAPTER}.ipynb"
    before = file.read_bytes()
    noise(file)
    grade(school)
    assert file.read_bytes() == before


def in_place_of_all(school: School) -> Path:
    file = school.root / "course" / "graded"
    shutil.rmtree(file, ignore_errors=True)
    file.touch()
    return file


def in_place_of_the_lock(school: School) -> Path:
    folder = school.root / "course" / "graded" / ".lock"
    folder.mkdir(parents=True)
    return folder


def as_a_link(school: School) -> Path:
    link = school.root / "course" / "autograded" / "bob"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(school.root / "course" / "submitted")
    return link


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (in_place_of_all, "folder of results, cannot be opened .*{path}.* move it away"),
        (in_place_of_the_lock, "folder of results, cannot be opened .*{path}.* move it away"),
        (as_a_link, "{path} is a link; put a folder"),
    ],
)
def test_what_lies_in_place_of_a_folder_of_results_is_named(
    school: School, half: bytes, make: Callable[[School], Path], words: str
) -> None:
    school.submit("bob", half)
    path = make(school)
    with pytest.raises(CourseError, match=words.format(path=path)):
        grade(school)
    assert not Path(school.root, "course", "submitted", CHAPTER).exists()


def of_ada(file: Path) -> None:
    file.write_bytes(result_file(file.parents[3], "ada", CHAPTER).read_bytes())


@pytest.mark.parametrize("change", [emptied, noise, of_ada])
def test_a_result_that_is_damaged_or_anothers_is_named_and_written_again(
    school: School, half: bytes, change: Callable[[Path], None]
) -> None:
    for name in ("ada", "bob"):
        school.submit(name, half)
    grade(school)
    file = result_file(school.root, "bob", CHAPTER)
    before = file.read_bytes()
    change(file)
    named = r"bob/01_tensors\.json cannot be read .* course grade 01_tensors writes it anew"
    with pytest.raises(CourseError, match=named):
        class_files.write(school.root, CHAPTER, config=nbgrader_config())
    with pytest.raises(CourseError, match=named):
        export(school.root, CHAPTER, "csv", school.root / "x.csv", config=nbgrader_config(own=True))
    assert batch.not_graded(school.root, CHAPTER) == ["bob"]
    grade(school)
    assert file.read_bytes() == before
    assert school.scores() == {"ada": PIXELS, "bob": PIXELS}


def test_a_folder_in_place_of_a_result_costs_nobody_else_a_grade(
    school: School, half: bytes
) -> None:
    for name in ("ada", "bob", "cem"):
        school.submit(name, half)
    file = result_file(school.root, "bob", CHAPTER)
    folder(file)
    with pytest.raises(Ungraded, match=rf"bob\..* A result was not written .*{file.name}"):
        grade(school)
    assert school.scores() == {"ada": PIXELS, "cem": PIXELS}
    shutil.rmtree(file)
    grade(school)
    assert school.scores() == {"ada": PIXELS, "bob": PIXELS, "cem": PIXELS}


AT_TEN = b"2027-03-01 22:10:00 UTC"


@pytest.mark.parametrize(
    "moment",
    [
        b"2026-02-30 10:00:00 UTC",
        b"0001-01-01 00:00:00 UTC",
        b"now",
        b"\0",
        b"9999-12-31",
        b"\xef\xbb\xbf" + AT_TEN,  # as Notepad of Windows saves it
        AT_TEN + b" " * 200 + b"garbage",
        AT_TEN + b" " * 200 + b"\xff",
        AT_TEN + b" " * (21 << 20),
        b"2027-W09-1T22:10",
    ],
)
def test_no_moment_costs_a_grade(school: School, half: bytes, moment: bytes) -> None:
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    folder = school.submit("bob", half)
    (folder / "timestamp.txt").write_bytes(moment)
    if moment == b"now":  # nor does what lies where it is put aside
        (folder / "timestamp.unreadable" / "x").mkdir(parents=True)
    grade(school)
    assert school.scores() == {"bob": PIXELS}
    config = nbgrader_config(own=True)
    listed = NbGraderAPI(CourseDirectory(config=config), config=config).get_submissions(CHAPTER)
    assert [each["score"] for each in listed] == [PIXELS], "Formgrader's list of the class"
    before = result_file(school.root, "bob", CHAPTER).read_bytes()
    grade(school)
    assert result_file(school.root, "bob", CHAPTER).read_bytes() == before


def test_names_of_every_kind_are_graded_or_named(school: School, half: bytes) -> None:
    for name in ("bob", "zoë", "a b", "x" * 255, ".eve", "two\nlines", "o'hara"):
        school.submit(name, half)
    grade(school)
    assert school.scores() == dict.fromkeys(("bob", "zoë", "a b", "o'hara"), PIXELS)
    told = batch.left_out(school.root, CHAPTER)
    assert len(told) == 3
    assert all(each.isascii() and each.isprintable() for each in told)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "settings"),
    [("zoë", {}), ("y" * 128, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})],  # it ends in "…"
)
def test_names_that_do_not_fit_a_terminal_are_graded_under_the_locale_c(
    school: School, half: bytes, name: str, settings: dict[str, str]
) -> None:
    school.submit(name, half)
    settings = {**settings, "COURSE_ROOT": str(school.root), "PYTHONPATH": str(ROOT), "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "course", "grade", CHAPTER, "--workers", "1"],
        env={**os.environ, **settings},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert school.scores() == {name: PIXELS}


def test_a_notebook_in_no_chapters_folder_is_named(
    school: School, half: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted = school.submit("bob", half).parents[1]
    paths = (
        "Group A/ada/01_tensors/01_tensors.ipynb",
        "ada/01-tensors/01_tensors.ipynb",
        "ada/01_tensor/01_tensors.ipynb.txt",
        "ada/01_tensors (1)/01_tensors.ipynb",
        "ada/Submission/01_tensors/01_tensors.ipynb",
        "bob/ada.ipynb",
        "cem.ZIP",
        f"dan/{CHAPTER}",
    )
    for path in paths:
        (submitted / path).parent.mkdir(parents=True, exist_ok=True)
        (submitted / path).write_bytes(half)
    place = "is not graded: it belongs into a chapter's folder: course/submitted/LEARNER/CHAPTER/."
    named = [f"'{path}' {place}" for path in paths]
    assert batch.left_out(school.root, CHAPTER) == named
    assert batch.not_graded(school.root, CHAPTER) == [*paths, "bob"]
    assert commands.app(["doctor", "--submitted"], standalone_mode=False) == 1
    assert capsys.readouterr().out.splitlines()[-len(named) :] == named
    shutil.rmtree(submitted / "bob" / CHAPTER)
    with pytest.raises(CourseError, match=r"There is no submission of .*\n'Group A/ada/01_tensors"):
        grade(school)
