"""Whole batches: nothing lost, nothing doubled, whatever is handed in and whenever they stop."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from classroom import CHAPTER, LIMITS, PIXELS, ROOT, Class, KeptWorker, School, cell_of, put_first

from course.authoring.release import nbgrader_config
from course.cli import commands
from course.grading import batch, nbgrader_way, workers
from course.grading.gradebook import ChapterEntries
from course.grading.result import Result, result_file, stored
from course.grading.writer import Writer
from course.notebook import exercise
from course.notebook.matching import Source
from course.sandbox import profiles
from course.shared.errors import CourseError

PROFILE = profiles.best()
pytestmark = [
    pytest.mark.skipif(PROFILE is None, reason="this machine has no sandbox"),
    pytest.mark.usefixtures("kept_workers"),
]


def grade(school: School, **options: object) -> dict[str, Result]:
    options = {"workers": 1, "limits": LIMITS, **options}
    return {each.learner: each for each in batch.grade(school.root, CHAPTER, **options)}  # type: ignore[arg-type]


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


def test_a_folder_that_no_gradebook_takes_stops_nobody(school: School, half: bytes) -> None:
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
        with pytest.raises(SystemExit, match=r"The page of ada is as it was; .*course grade 01"):
            _autograde(school, force=True)
    assert page.read_bytes() == before
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


@pytest.mark.rest
def test_what_cannot_be_written_is_said_and_done_by_the_next_run(
    school: School, half: bytes
) -> None:
    school.submit("bob", half)
    in_the_way = school.root / "course" / "graded"
    in_the_way.mkdir()
    (in_the_way / "bob").write_text("a file")
    with pytest.raises(CourseError, match=r"of bob was not written .* Nothing is lost"):
        grade(school)
    (in_the_way / "bob").unlink()
    with sqlite3.connect(school.root / "course" / "gradebook.db") as other:
        other.execute("begin exclusive")
        with pytest.raises(CourseError, match=r"cannot be opened .* locked"):
            grade(school)
    grade(school)
    assert school.scores() == {"bob": PIXELS}


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


def test_what_a_person_entered_is_kept(school: School, half: bytes) -> None:
    school.submit("bob", half)
    grade(school)
    with school.gradebook() as book:
        entry = book.find_submission_notebook(CHAPTER, CHAPTER, "bob")
        grades = {grade.name: grade for grade in entry.grades}
        grades["check-checkerboard"].manual_score = 4.5
        grades["check-pixels"].extra_credit = 1.0
        next(
            comment for comment in entry.comments if comment.name == "pixels"
        ).manual_comment = "Well done."
        book.db.commit()
    grade(school, force=True)
    assert school.scores() == {"bob": PIXELS + 1 + 4.5}
    with school.gradebook() as book:
        entry = book.find_submission_notebook(CHAPTER, CHAPTER, "bob")
        assert (
            next(comment for comment in entry.comments if comment.name == "pixels").comment
            == "Well done."
        )
        assert {grade.name: grade for grade in entry.grades}[
            "check-checkerboard"
        ].needs_manual_grade


@pytest.mark.rest
def test_a_person_reads_tasks_and_essays(school: School, source: Source) -> None:
    # as stock: a task's own text never changes, an essay that was not begun has no points
    marks = {"schema_version": 3, "points": 3, "locked": False}
    essay = {**marks, "grade_id": "essay", "grade": True, "solution": True, "task": False}
    task = {**marks, "grade_id": "task", "grade": False, "solution": False, "task": True}
    for folder in ("notebooks", "solutions"):
        file = school.root / folder / CHAPTER / f"{CHAPTER}.ipynb"
        notebook = json.loads(file.read_text(encoding="utf-8"))
        notebook["cells"] += [
            {
                "cell_type": "markdown",
                "id": cell["grade_id"],
                "source": "?",
                "metadata": {"nbgrader": cell},
            }
            for cell in (essay, task)
        ]
        file.write_text(json.dumps(notebook), encoding="utf-8")
        if folder == "notebooks":
            school.submit("ada", notebook)
            cell_of(notebook, "essay")["source"] = "Because."
            school.submit("bob", notebook)
            school.submit("eve", b"not JSON")
    with school.gradebook() as book:
        for add in (book.add_grade_cell, book.add_task_cell):
            name = "essay" if add == book.add_grade_cell else "task"
            add(name, CHAPTER, CHAPTER, max_score=3, cell_type="markdown")
        book.add_solution_cell("essay", CHAPTER, CHAPTER)
    grade(school)
    found = {}
    with school.gradebook() as book:
        for learner in ("ada", "bob", "eve"):
            entry = book.find_submission_notebook(CHAPTER, CHAPTER, learner)
            grades = {
                grade.name: (grade.auto_score, grade.needs_manual_grade) for grade in entry.grades
            }
            comments = {comment.name: comment.auto_comment for comment in entry.comments}
            found[learner] = [(*grades[name], comments[name]) for name in ("essay", "task")]
    assert found == {
        "ada": [(0, False, "No response."), (None, True, None)],
        "bob": [(None, True, None), (None, True, None)],
        "eve": [(0, False, None), (0, False, None)],
    }


def test_a_gradebook_that_lost_grades_gets_them_back(school: School, half: bytes) -> None:
    for learner in ("ada", "bob"):
        school.submit(learner, half)
    grade(school)
    scores = school.scores()
    with school.gradebook() as book:
        book.remove_submission(CHAPTER, "ada")
        entry = book.find_submission_notebook(CHAPTER, CHAPTER, "bob")
        entry.grades[0].auto_score = entry.grades[-1].auto_score = 0.5
        book.db.commit()
    grade(school)
    assert school.scores() == scores


@pytest.mark.rest
def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(
    school: School, honest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = []
    take = KeptWorker.take

    def take_and_kill(worker: workers.Worker, job: workers.Job) -> None:
        take(worker, job)
        if job.submission.learner == "bob" and not killed:
            assert worker._process is not None
            worker._process.send_signal(signal.SIGKILL)
            killed.append(job)

    monkeypatch.setattr(KeptWorker, "take", take_and_kill)
    for name in ("ada", "bob", "eve"):
        school.submit(name, honest)
    grade(school, workers=2)
    assert killed
    assert school.scores() == {"ada": 20, "bob": 20, "eve": 20}


@pytest.mark.rest
def test_a_submission_that_kills_workers_is_ungraded_and_tried_again(
    school: School, honest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = KeptWorker.take

    def take_and_kill(worker: workers.Worker, job: workers.Job) -> None:
        take(worker, job)
        if job.submission.learner == "bob":
            assert worker._process is not None
            worker._process.send_signal(signal.SIGKILL)

    monkeypatch.setattr(KeptWorker, "take", take_and_kill)
    for name in ("ada", "bob", "eve"):
        school.submit(name, honest)
    with pytest.raises(batch.Ungraded, match=r"learners: bob\. The process .* ended"):
        grade(school)
    assert school.scores() == {"ada": 20, "eve": 20}
    monkeypatch.setattr(KeptWorker, "take", take)
    grade(school)
    assert school.scores() == {"ada": 20, "bob": 20, "eve": 20}


@pytest.mark.parametrize("step", ["write_page", "Writer._grade", "Writer._write_result"])
def test_a_run_broken_off_while_it_writes_is_finished_by_the_next(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    school.submit("bob", half)

    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"course.grading.writer.{step}", break_off)
        with pytest.raises(KeyboardInterrupt):
            grade(school)
    grade(school)
    assert school.scores() == {"bob": PIXELS}
    assert not list((school.root / "course" / "autograded" / "bob").glob(".*"))


@pytest.mark.rest
def test_ctrl_c_is_told_what_is_kept(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bob"):
        school.submit(name, half)
    apply, applied = Writer.apply, []

    def stopped(writer: Writer, result: Result) -> None:
        if applied:
            raise KeyboardInterrupt
        apply(writer, result)
        applied.append(result.learner)

    monkeypatch.setattr(Writer, "apply", stopped)
    with pytest.raises(CourseError, match=r"Graded and kept: 1 of 2\. The same command goes on\."):
        commands.app(["grade", CHAPTER], standalone_mode=False)


@pytest.mark.rest
def test_whose_feedback_is_older_than_the_grade_is_named(
    school: School, half: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, moment in (("ann", 0), ("bob", time.time() + 1000)):
        school.submit(name, half)
        page = school.root / "course" / "feedback" / name / CHAPTER / f"{CHAPTER}.html"
        page.parent.mkdir(parents=True)
        page.touch()
        os.utime(page, (moment, moment))
    commands.app(["grade", CHAPTER], standalone_mode=False)
    said = capsys.readouterr().out
    assert f"the grade of ann: nbgrader generate_feedback {CHAPTER} --force" in said


@pytest.mark.rest
def test_whom_the_gradebook_did_not_know_is_named(
    school: School, half: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with school.gradebook() as book:
        book.add_student("ann")
    for name in ("ann", "amn"):
        school.submit(name, half)
    commands.app(["grade", CHAPTER], standalone_mode=False)
    said = capsys.readouterr().out
    assert "New in the gradebook: amn. Is a name mistyped?" in said
    # what stays in autograded/ makes every later generate_feedback fail
    assert "rm -rf course/{graded,autograded,feedback}/NAME" in said


@pytest.mark.rest
def test_a_run_that_is_killed_is_finished_by_the_next(school: School, half: bytes) -> None:
    names = [f"learner{n}" for n in range(3)]
    for name in names:
        school.submit(name, half)
    command = [sys.executable, "-m", "course", "grade", CHAPTER, "--workers", "1"]
    environment = {**os.environ, "COURSE_ROOT": str(school.root), "PYTHONPATH": str(ROOT)}
    draw = random.Random(1)
    graded = school.root / "course" / "graded"
    # at 20 random moments: tests/benchmarks/many.py
    for wanted in (1, 2):  # killed while it writes, at some moment after so many results
        started = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while len(list(graded.glob("*/*.json"))) < wanted and started.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(0.0, 0.1))
        started.kill()
        started.wait()
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 0
    assert school.scores() == dict.fromkeys(names, 6)
    for name in names:
        assert stored(school.root, name, CHAPTER) is not None


@pytest.fixture
def late(school: School, half: bytes) -> Any:
    """nbgrader's configuration of a course in which bob's work came a day late and lost all."""
    folder = school.submit("bob", half)
    (folder / "timestamp.txt").write_text("2026-03-02 00:00:00 UTC", encoding="ascii")
    with school.gradebook() as book:
        book.find_assignment(CHAPTER).duedate = datetime(2026, 3, 1)
        book.db.commit()
    config = nbgrader_config()
    config.CourseDirectory.db_url = f"sqlite:///{school.root}/course/gradebook.db"
    config.LateSubmissionPlugin.penalty_method = "zero"
    grade(school, config=config)
    return config


@pytest.mark.rest
@pytest.mark.usefixtures("late")
def test_late_work_gets_the_penalty_that_nbgrader_is_told(school: School) -> None:
    with school.gradebook() as book:
        entry = book.find_submission(CHAPTER, "bob")
        assert entry.total_seconds_late == 86400
        assert entry.late_submission_penalty == 6


def test_a_due_date_that_was_moved_counts_at_the_next_run(school: School, late: Any) -> None:
    with school.gradebook() as book:
        book.find_assignment(CHAPTER).duedate = datetime(2026, 3, 5)
        book.db.commit()
    grade(school, config=late)
    with school.gradebook() as book:
        assert book.find_submission(CHAPTER, "bob").late_submission_penalty == 0


def test_all_are_graded_again_after_a_change_of_the_definitions(
    school: School, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a check was corrected, and everybody kept the grade of the wrong one
    school.submit("bob", half)
    before = grade(school)["bob"]
    assert grade(school)["bob"].source == before.source
    monkeypatch.setattr(exercise, "digest", lambda chapter: "of another text")
    assert grade(school)["bob"].source != before.source


def test_an_extension_takes_the_penalty_back(school: School, late: Any) -> None:
    entries = ChapterEntries(school.root, CHAPTER, late)
    penalties = []
    for days in (2, 0):
        entries.extend("bob", days)
        with school.gradebook() as book:
            penalties.append(book.find_submission(CHAPTER, "bob").late_submission_penalty)
    with pytest.raises(CourseError, match="does not know eve"):
        entries.extend("eve", 1)
    entries.close()
    assert penalties == [0, 6]


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
    assert (result.profile, result.score) == ("unsafe", 6)
    folder = school.root / "course" / "autograded" / "bob" / CHAPTER
    assert "without a sandbox" in (folder / f"{CHAPTER}.ipynb").read_text(encoding="utf-8")


@pytest.mark.rest
@pytest.mark.skipif(
    shutil.which("pg_virtualenv") is None, reason="needs PostgreSQL: apt install postgresql"
)
def test_the_gradebook_may_be_postgresql(school: School, half: bytes, tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'psycopg[binary]'")
    school.submit("bob", half)
    program = tmp_path / "program.py"
    program.write_text(POSTGRES.format(root=str(school.root), chapter=CHAPTER), encoding="utf-8")
    command = ["pg_virtualenv", sys.executable, str(program)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "[('bob', 6.0)]" in done.stdout.splitlines(), done.stdout + done.stderr


POSTGRES = """
import os
from pathlib import Path
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from course.grading import batch
from course.authoring.release import nbgrader_config

root, chapter = {root!r}, {chapter!r}
it = os.environ
url = f"postgresql://{{it['PGUSER']}}:{{it['PGPASSWORD']}}@{{it['PGHOST']}}:{{it['PGPORT']}}/postgres"
os.environ["COURSE_ROOT"] = root
config = nbgrader_config()
config.CourseDirectory.root, config.CourseDirectory.db_url = root, url
config.CourseDirectory.assignment_id = chapter
folder = CourseDirectory(config=config)
GenerateAssignment(coursedir=folder, config=config, force=True).start()
for _ in range(2):
    batch.grade(Path(root), chapter, workers=1, config=config, force=True)
with Gradebook(url) as book:
    print([(it.student_id, it.score) for it in book.assignment_submissions(chapter)])
"""


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
