"""Whole batches: nothing lost, nothing doubled, whatever is handed in."""

from __future__ import annotations

import json
import os
import sys

import pytest
from classroom import CHAPTER, PIXELS, WITH_WORKERS, Class, School, cell_of, grade, put_first

from course.grading import batch
from course.grading.result import result_file
from course.notebook import exercise
from course.notebook.matching import Source
from course.sandbox import profiles
from course.shared.errors import CourseError

pytestmark = WITH_WORKERS


def test_a_batch_with_everything_in_it_reaches_everybody(
    school: School, source: Source, honest: bytes, half: bytes
) -> None:
    klass = Class(None, source)  # type: ignore[arg-type]
    loops = put_first(klass.honest(), "while True: pass")
    doubled = klass.honest()
    doubled["cells"].append(dict(cell_of(doubled, "check-pixels"), id="double"))
    school.submit("ada", honest)
    school.submit("bob", half)
    school.submit("eve", b"not JSON")
    school.submit("fay", honest, name="renamed.ipynb")
    school.submit("gil", doubled)
    school.submit("hal", loops)
    school.submit("ivy", b"", name="notes.txt")
    (school.submit("jo", honest) / "link").symlink_to("/etc/passwd")
    results = grade(school, workers=2)
    scores = {
        "ada": 20,
        "bob": PIXELS,
        "eve": 0,
        "fay": 20,
        "gil": 20,
        "hal": 20,
        "ivy": 0,
        "jo": 20,
    }
    assert {name: each.score for name, each in results.items()} == scores
    assert school.scores() == scores
    assert results["eve"].status == results["ivy"].status == "refused"
    assert results["hal"].troubles
    for name in scores:
        notebook = school.root / "course" / "autograded" / name / CHAPTER / f"{CHAPTER}.ipynb"
        assert json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def test_a_folder_that_no_gradebook_takes_stops_nobody(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.submit("bob", half)
    for name in (os.fsdecode(b"\xff\xfe"), "x" * 129):
        school.submit(name, half)
    (school.root / "course" / "submitted" / "eve").symlink_to("bob")
    grade(school)
    assert school.scores() == {"bob": PIXELS}
    sentences = batch.left_out(school.root, CHAPTER)
    assert [sentence.partition(": ")[2] for sentence in sentences] == [
        "it is a link.",
        "its name is longer than the 128 characters that a gradebook takes.",
        "its name is not UTF-8, which a gradebook needs.",
    ]
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    (last,) = batch.left_out(school.root, CHAPTER)[2:]
    assert last.endswith("this locale reads names as ascii; run it again with PYTHONUTF8=1.")


def test_a_regrade_gives_the_same_bytes(school: School, half: bytes) -> None:
    school.submit("bob", half)
    grade(school)
    first = result_file(school.root, "bob", CHAPTER).read_bytes()
    grade(school, force=True)
    assert result_file(school.root, "bob", CHAPTER).read_bytes() == first


def test_what_is_graded_is_not_graded_again_and_a_newer_one_is(
    school: School, honest: bytes, half: bytes
) -> None:
    school.submit("bob", half)
    school.submit("ada", honest)
    grade(school)
    file = result_file(school.root, "ada", CHAPTER)
    before = file.stat().st_mtime_ns
    school.submit("bob", honest)
    grade(school)
    assert file.stat().st_mtime_ns == before
    assert school.scores() == {"ada": 20, "bob": 20}


def test_notebooks_are_read_as_they_are_graded(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # all at once they may be more than the memory that there is
    read: list[str] = []
    at_once: list[int] = []
    taken_in = batch.taken_in
    monkeypatch.setattr(batch, "taken_in", lambda *given: read.append(given[0]) or taken_in(*given))
    for n in range(6):
        school.submit(f"learner{n}", half)
    grade(school, watch=lambda result, done, total: at_once.append(len(read) - done))
    assert len(read) == 6
    assert max(at_once) <= 2


def test_all_are_graded_again_after_a_change_of_the_definitions(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a check was corrected, and everybody kept the grade of the wrong one
    school.submit("bob", half)
    before = grade(school)["bob"]
    assert grade(school)["bob"].source == before.source
    monkeypatch.setattr(exercise, "digest", lambda chapter: "of another text")
    assert grade(school)["bob"].source != before.source


@pytest.mark.rest
def test_a_chapter_that_the_gradebook_does_not_know_is_refused(school: School, half: bytes) -> None:
    school.submit("bob", half)
    (school.root / "course" / "gradebook.db").unlink()
    with pytest.raises(CourseError, match="nbgrader generate_assignment"):
        grade(school)


def test_without_a_sandbox_nothing_is_graded(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.submit("bob", half)
    monkeypatch.setattr(profiles, "why_not", lambda profile: f"No {profile} here.")
    with pytest.raises(CourseError, match="--unsafe"):
        grade(school)
    assert school.scores() == {}


@pytest.mark.rest
def test_unsafe_is_said_in_the_result_and_in_the_notebook(school: School, half: bytes) -> None:
    school.submit("bob", half)
    result = grade(school, unsafe=True)["bob"]
    assert (result.profile, result.score) == ("unsafe", PIXELS)
    folder = school.root / "course" / "autograded" / "bob" / CHAPTER
    assert "without a sandbox" in (folder / f"{CHAPTER}.ipynb").read_text(encoding="utf-8")


def test_an_instructors_own_configuration_counts(
    school: School, honest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (school.root / "nbgrader_config.py").write_text(
        "get_config().CourseDirectory.db_url = 'sqlite:///nowhere/gradebook.db'"
    )
    school.submit("ada", honest)
    monkeypatch.chdir(school.root)
    with pytest.raises(Exception, match="unable to open database file"):
        grade(school)
