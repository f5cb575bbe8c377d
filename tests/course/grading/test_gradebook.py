"""What stands in the gradebook besides the points of the checks: what a person or nbgrader adds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from classroom import CHAPTER, PIXELS, ROOT, WITH_WORKERS, School, cell_of, grade

from course.authoring.release import nbgrader_config
from course.cli import commands
from course.grading.gradebook import ChapterEntries
from course.notebook.matching import Source
from course.shared.errors import CourseError

pytestmark = WITH_WORKERS


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
def test_whom_the_gradebook_did_not_know_is_named(
    school: School, half: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with school.gradebook() as book:
        book.add_student("ann", first_name="Ann")
    for name in ("ann", "am n"):
        school.submit(name, half)
    (school.submit("ann", half) / "timestamp.txt").write_text("28.11.2026 00:10", encoding="ascii")
    for _ in range(2):  # the second time as after a run that was killed
        commands.app(["grade", CHAPTER], standalone_mode=False)
        said = capsys.readouterr().out
        assert "New in the gradebook, or there without a name: 'am n'. Is it mistyped?" in said
        # what stays in autograded/ makes every later generate_feedback fail
        assert "rm -rf course/{graded,autograded,feedback}/NAME" in said
        assert "in time, because their timestamp.txt names no moment: ann. Write it anew" in said


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


def test_a_due_date_that_was_moved_counts_at_the_next_run(school: School, late: Any) -> None:
    with school.gradebook() as book:
        book.find_assignment(CHAPTER).duedate = datetime(2026, 3, 5)
        book.db.commit()
    grade(school, config=late)
    with school.gradebook() as book:
        assert book.find_submission(CHAPTER, "bob").late_submission_penalty == 0


def test_late_work_gets_a_penalty_that_an_extension_takes_back(school: School, late: Any) -> None:
    def penalty() -> float:
        with school.gradebook() as book:
            return float(book.find_submission(CHAPTER, "bob").late_submission_penalty)

    entries = ChapterEntries(school.root, CHAPTER, late)
    penalties = [penalty()]
    for days in (2, 0):
        entries.extend("bob", days)
        penalties.append(penalty())
    with pytest.raises(CourseError, match="does not know eve"):
        entries.extend("eve", 1)
    entries.close()
    assert penalties == [PIXELS, 0, PIXELS]


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
    assert f"[('bob', {PIXELS:.1f})]" in done.stdout.splitlines(), done.stdout + done.stderr


POSTGRES = """
import os
from pathlib import Path
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from course.grading import batch
from course.authoring.release import nbgrader_config

root, chapter = {root!r}, {chapter!r}
server = os.environ
url = f"postgresql://{{server['PGUSER']}}:{{server['PGPASSWORD']}}@{{server['PGHOST']}}:{{server['PGPORT']}}/postgres"
os.environ["COURSE_ROOT"] = root
config = nbgrader_config()
config.CourseDirectory.root, config.CourseDirectory.db_url = root, url
config.CourseDirectory.assignment_id = chapter
folder = CourseDirectory(config=config)
GenerateAssignment(coursedir=folder, config=config, force=True).start()
for _ in range(2):
    batch.grade(Path(root), chapter, workers=1, config=config, force=True)
with Gradebook(url) as book:
    print([(each.student_id, each.score) for each in book.assignment_submissions(chapter)])
"""
