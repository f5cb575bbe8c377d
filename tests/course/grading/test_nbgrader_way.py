"""Grading by nbgrader's own commands, and what they need of a batch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from classroom import CHAPTER, WITH_WORKERS, School, grade
from nbgrader.apps import NbGraderAPI

from course.authoring.release import nbgrader_config
from course.cli import commands
from course.grading import batch, nbgrader_way
from course.grading.result import result_file
from course.notebook import matching
from course.shared.errors import CourseError

pytestmark = WITH_WORKERS


def test_nbgraders_own_command_passes_over_what_it_would_fail_at(
    school: School, half: bytes
) -> None:
    # stock: no grade for whoever has a pipe, a link, very deep folders or the 30th of February
    folder = school.submit("bob", half)
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "timestamp.txt").write_text("2026-02-30 10:00:00 UTC")
    here = folder
    for _ in range(400):
        here /= "d"
    here.mkdir(parents=True)
    nbgrader_way.without_links(CHAPTER, "bob", [str(folder / f"{CHAPTER}.ipynb")])
    left = {path.name for path in folder.rglob("*")}
    assert left == {f"{CHAPTER}.ipynb", "timestamp.unreadable", "d"}
    assert not (folder / Path(*"d" * 10)).exists()


def _autograde(school: School, **options: object) -> None:
    """As the command `nbgrader autograde` does."""
    from nbgrader.converters import Autograde
    from nbgrader.coursedir import CourseDirectory

    config = nbgrader_config()
    config.CourseDirectory.assignment_id = CHAPTER
    Autograde(coursedir=CourseDirectory(config=config), config=config, **options).start()


@pytest.mark.parametrize("fault", [CourseError("No sandbox."), KeyboardInterrupt()])
def test_nbgraders_own_way_keeps_the_earlier_page_where_nothing_is_graded(
    school: School, half: bytes, honest: bytes, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    # nbgrader removes it before, and after a failure once more
    school.submit("ada", half)
    grade(school)
    page = school.root / "course" / "autograded" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    before = page.read_bytes()
    school.submit("ada", honest)

    def fail(*_: object, **__: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(batch, "results", fail)
        with pytest.raises(SystemExit, match=r"\nada has the grade of before, .*course grade 01"):
            _autograde(school, force=True)
    assert page.read_bytes() == before

    def not_built(*_: object) -> None:
        raise CourseError("not built")

    with monkeypatch.context() as patch:
        patch.setattr(matching, "source_of", not_built)
        with pytest.raises(SystemExit, match=r"not built\n.*others may be left"):
            _autograde(school, force=True)
    _autograde(school, force=True)
    assert school.scores() == {"ada": 20}


def test_nbgraders_own_way_grades_what_is_renamed_or_broken(school: School, honest: bytes) -> None:
    # stock: a traceback and no grade for either
    ada = school.submit("ada", honest, name="ada (2).ipynb")
    (ada / "submission_secret.txt").write_bytes(b"\xde\xad")  # at which `release_feedback` stops
    school.submit("bob", honest[:5000])
    _autograde(school)
    assert school.scores() == {"ada": 20, "bob": 0}
    file = result_file(school.root, "ada", CHAPTER)
    before = file.stat().st_mtime_ns
    grade(school)
    assert file.stat().st_mtime_ns == before, "`course grade` has nothing more to do"
    for learner in ("ada", "bob"):
        beside = school.root / "course" / "autograded" / learner / CHAPTER
        assert len((beside / "submission_secret.txt").read_text("ascii")) == 32
        assert (beside / "timestamp.txt").exists()


def test_what_release_feedback_needs_lies_beside_the_notebook(
    school: School, honest: bytes
) -> None:
    folder = school.submit("ada", honest)
    (folder / "submission_secret.txt").write_text("s3cret")
    (folder / "timestamp.txt").write_text("2026-03-01 10:00:00 UTC")
    linked = school.submit("eve", honest)
    (linked / "submission_secret.txt").symlink_to("/etc/hostname")
    grade(school)
    autograded = school.root / "course" / "autograded"
    found = {who: autograded / who / CHAPTER for who in ("ada", "eve")}
    assert (found["ada"] / "submission_secret.txt").read_text() == "s3cret"
    assert "2026" in (found["ada"] / "timestamp.txt").read_text()
    assert len((found["eve"] / "submission_secret.txt").read_text()) == 32
    assert (found["eve"] / "timestamp.txt").exists()


@pytest.mark.rest
def test_whose_feedback_is_older_than_the_grade_is_named(
    school: School, half: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ann", "bob"):
        school.submit(name, half)
    page = school.root / "course" / "feedback" / "ann" / CHAPTER / f"{CHAPTER}.html"
    page.parent.mkdir(parents=True)
    page.touch()
    commands.app(["grade", CHAPTER], standalone_mode=False)
    said = capsys.readouterr().out
    assert f"the grade or comments of ann: nbgrader generate_feedback {CHAPTER} --force" in said


@pytest.mark.filterwarnings("ignore:Passing unrecognized arguments")  # nbgrader's own slip
@pytest.mark.parametrize("button", ["autograde", "generate_feedback", "release_feedback"])
def test_formgrader_shows_a_refusal_as_one_sentence(
    school: School, half: bytes, button: str
) -> None:
    school.submit("ada", half)
    if button != "autograde":
        grade(school)
    with school.gradebook() as book:
        book.find_notebook(CHAPTER, CHAPTER).grade_cells[0].max_score += 1
        book.db.commit()
    config = nbgrader_config()
    config.Exchange.root = str(school.root)
    answer = getattr(NbGraderAPI(config=config), button)(CHAPTER, "ada")
    assert not answer["success"]
    assert not answer.get("error")
    assert answer["log"].startswith("course: ")
    assert f"Run: nbgrader generate_assignment {CHAPTER} --force\n" in answer["log"]
