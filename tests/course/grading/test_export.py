"""Grades as files for Canvas, Moodle, Gradescope: their exact columns, and who is who there."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from classroom import CHAPTER, LIMITS, PIXELS, School
from nbgrader.api import Gradebook

from course.authoring.release import nbgrader_config
from course.grading import batch, export, intake, judge
from course.grading.gradebook import ChapterEntries
from course.grading.intake import Submission
from course.grading.result import result_file
from course.notebook import exercise
from course.notebook.matching import Source
from course.shared.errors import CourseError

# nbgrader's own use of its database
pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")

Write = Callable[..., list[list[str]]]


@pytest.fixture
def graded(school: School) -> School:
    """A class of three: ada was in time, bob was late, cem handed nothing in."""
    with school.gradebook() as book:
        book.update_or_create_assignment(CHAPTER, duedate=datetime(2027, 3, 1))
        book.add_student("ada", first_name="Ada", last_name="Lovelace", email="ada@example.org")
        for name in ("bob", "cem"):
            book.add_student(name)
        book.add_submission(CHAPTER, "ada", timestamp=datetime(2027, 2, 28, 22, 10))
        book.add_submission(CHAPTER, "bob", timestamp=datetime(2027, 3, 2, 1, 0, 5))
        for learner, score in (("ada", 6.0), ("bob", 4.5)):
            _grade(book, learner, score)
        book.find_submission(CHAPTER, "bob").notebooks[0].late_submission_penalty = 1.0
        book.db.commit()
    return school


def _grade(book: Gradebook, learner: str, score: float) -> None:
    """As a person does it, so that no result has to say how."""
    grades = book.find_submission(CHAPTER, learner).notebooks[0].grades
    for grade in grades:
        grade.needs_manual_grade = False
    worth = max(grades, key=lambda grade: grade.max_score)
    worth.manual_score = score
    book.db.commit()


@pytest.fixture
def write(graded: School) -> Write:
    """The rows of an export."""

    def written(platform: str, **options: object) -> list[list[str]]:
        file = graded.root / "grades.csv"
        export.export(
            graded.root, CHAPTER, platform, file, config=nbgrader_config(own=True), **options
        )
        with file.open(newline="", encoding="utf-8") as text:
            return list(csv.reader(text))

    return written


def test_canvas_reads_the_header_the_points_and_each_login(write: Write) -> None:
    assert write("canvas", column="Chapter 01 (4711)") == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Chapter 01 (4711)"],
        ["    Points Possible", "", "", "", "", "20"],
        ["Lovelace, Ada", "", "", "ada", "", "6"],
        ["bob", "", "", "bob", "", "3.5"],
        ["cem", "", "", "cem", "", "0"],
    ]


def test_moodle_finds_a_person_by_any_of_three_columns(write: Write) -> None:
    header, ada, *_ = write("moodle")
    assert header == [
        *("Username", "First name", "Last name", "ID number", "Email address"),
        CHAPTER,
    ]
    assert ada == ["ada", "Ada", "Lovelace", "ada", "ada@example.org", "6"]


def test_gradescopes_columns_are_those_of_its_own_download(write: Write) -> None:
    header, ada, bob, cem = write("gradescope")
    assert ",".join(header) == (
        "First Name,Last Name,SID,Email,Sections,Total Score,Max Points,Status,Submission ID,"
        "Submission Time,Lateness (H:M:S),View Count,Submission Count"
    )
    begin = ["6", "20", "Graded", "", "2027-02-28 22:10:00 +0000", "00:00:00", "", ""]
    assert ada == ["Ada", "Lovelace", "ada", "ada@example.org", "", *begin]
    assert bob[5:11] == ["3.5", "20", "Graded", "", "2027-03-02 01:00:05 +0000", "25:00:05"]
    assert cem[5:8] == ["", "20", "Missing"]


def test_csv_is_nbgraders_own(write: Write) -> None:
    header, *rows = write("csv")
    assert header[:4] == ["assignment", "duedate", "timestamp", "student_id"]
    assert {row[3]: row[-2:] for row in rows}["ada"] == ["6.0", "20.0"]


def test_a_file_of_identities_says_who_is_who(write: Write, tmp_path: Path) -> None:
    file = tmp_path / "who.csv"
    file.write_text("\ufefflearner,ID,Section\nada,11,A\nbob,12,B\ncem,13,B\n", encoding="utf-8")
    _, _, ada, bob, _ = write("canvas", identities=file)
    assert ada == ["Lovelace, Ada", "11", "", "ada", "A", "6"]
    assert bob[:2] == ["bob", "12"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learner,ID\nada,11\n", "does not name bob, cem. Nothing was written"),
        ("learner,ID\nada,11\nada,12\n", "ada stands there twice"),
        ("learner,ID\nada\n", "its row is not whole"),
        ("login,ID\nada,11\n", "needs a column `learner` and some of Student, ID,"),
        ("learner,Mail\nada,11\n", "no others; it has learner, Mail"),
        ("learner;ID\nada;11\n", "it has learner;ID. A comma has to stand between them"),
        ("learner,ID\nada,x1\nbob,12\ncem,X1 \n", "ada and cem have the same ID, 'X1 '"),
        ("learner,Section\nada,=1+1\nbob,\ncem,\n", "A spreadsheet runs .*: '=1.1' of 'ada'."),
    ],
)
def test_a_file_of_identities_that_is_none_writes_nothing(
    write: Write, graded: School, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "who.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match=words):
        write("canvas", identities=file)
    assert not (graded.root / "grades.csv").exists()


@pytest.mark.parametrize("platform", export.PLATFORMS)
def test_a_name_that_a_spreadsheet_runs_is_not_exported(
    write: Write, graded: School, platform: str
) -> None:
    with graded.gradebook() as book:
        book.update_or_create_student("bob", last_name="=1+1")
    with pytest.raises(CourseError, match=r"'=1\+1' of 'bob'\. .*nbgrader db student add LEARNER"):
        write(platform)
    assert not (graded.root / "grades.csv").exists()


def test_who_is_not_graded_by_hand_yet_is_named(graded: School) -> None:
    with graded.gradebook() as book:
        book.find_submission(CHAPTER, "bob").notebooks[0].grades[0].needs_manual_grade = True
        book.db.commit()
    config = nbgrader_config(own=True)
    file = graded.root / "grades.csv"
    assert export.export(graded.root, CHAPTER, "moodle", file, config=config) == ["bob"]


@pytest.mark.parametrize("change", [99.0, None])
def test_nobody_is_exported_who_was_graded_by_other_points(
    write: Write, graded: School, source: Source, change: float | None
) -> None:
    # after points were changed, and after an exercise was added, until all are graded again
    result = judge.refused(source, Submission("ada", CHAPTER, b""), "", "")
    first, *rest = result.exercises
    other = replace(first, report=replace(first.report, possible=change or 0.0))
    older = replace(result, exercises=(other, *rest) if change else tuple(rest))
    for learner, found in (("ada", result), ("bob", older), ("gone", older)):
        file = result_file(graded.root, learner, CHAPTER)
        file.parent.mkdir(parents=True)
        file.write_text(replace(found, learner=learner).to_json(), encoding="utf-8")
    with pytest.raises(CourseError, match=f"bob was graded by other .*Run: course grade {CHAPTER}"):
        write("canvas")
    assert not (graded.root / "grades.csv").exists()


def _store(school: School, source: Source, submission: Submission) -> None:
    """A result without points, as the gradebook has it."""
    result = judge.refused(source, submission, "", "")
    file = result_file(school.root, submission.learner, CHAPTER)
    file.parent.mkdir(parents=True)
    file.write_text(result.to_json(), encoding="utf-8")
    with school.gradebook() as book:
        notebook = book.update_or_create_submission(CHAPTER, submission.learner).notebooks[0]
        for grade in notebook.grades:
            grade.auto_score = 0.0
        book.db.commit()


def test_definitions_with_other_points_than_the_gradebook_are_not_exported(
    write: Write, graded: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exercise.load()["pixels"], "points", PIXELS + 2)
    with pytest.raises(CourseError, match=f"definitions .* Run: course build {CHAPTER}, then nbg"):
        write("csv")
    monkeypatch.undo()
    monkeypatch.setenv("COURSE_ROOT", str(graded.root))
    with graded.gradebook() as book:
        book.find_grade_cell("check-pixels", CHAPTER, CHAPTER).max_score = PIXELS + 2
        book.db.commit()
    with pytest.raises(CourseError, match=f"Run: nbgrader generate_assignment {CHAPTER} --force"):
        write("moodle")
    assert not (graded.root / "grades.csv").exists()


def test_points_by_hand_above_a_maximum_that_was_lowered_are_not_exported(
    write: Write, graded: School
) -> None:
    with graded.gradebook() as book:
        grades = book.find_submission(CHAPTER, "bob").notebooks[0].grades
        next(grade for grade in grades if grade.name == "check-pixels").manual_score = 16.0
        book.db.commit()
    with pytest.raises(CourseError, match=r"'bob' has more points by hand in check-pixels"):
        write("csv")
    assert not (graded.root / "grades.csv").exists()


def test_definitions_that_are_not_installed_are_not_exported(write: Write, graded: School) -> None:
    file = graded.root / "course" / "exercises" / "ch01_tensors" / "pixels.py"
    file.parent.mkdir(parents=True)
    file.write_text("# with other points", encoding="utf-8")
    with pytest.raises(CourseError, match="is not what is installed"):
        write("csv")


def test_a_chapter_of_which_only_the_due_date_is_known_stops_no_export(graded: School) -> None:
    with graded.gradebook() as book:
        book.add_assignment("02_operations", duedate=datetime(2027, 4, 1))
    folder = graded.root / "notebooks" / "02_operations"
    folder.mkdir()
    (folder / "02_operations.ipynb").touch()
    export.CsvExport(to=str(graded.root / "all.csv"), config=nbgrader_config(own=True)).export(
        graded.gradebook()
    )
    assert "02_operations" in (graded.root / "all.csv").read_text("utf-8")


def test_who_has_an_extension_and_handed_nothing_in_is_missing(
    write: Write, graded: School
) -> None:
    with closing(ChapterEntries(graded.root, CHAPTER, nbgrader_config(own=True))) as entries:
        entries.extend("cem", 1)
    assert write("gradescope")[3][5:8] == ["", "20", "Missing"]


def test_a_grade_of_an_older_release_is_not_exported(
    write: Write, graded: School, source: Source
) -> None:
    # with the same points: an instructor's own check may have changed
    graded.submit("ada", b"{}")
    collected = intake.read(graded.root / "course" / "submitted" / "ada" / CHAPTER, "ada", CHAPTER)
    file = result_file(graded.root, "ada", CHAPTER)
    file.parent.mkdir(parents=True)
    result = judge.refused(source, collected, "", "")
    file.write_text(replace(result, source="older").to_json(), encoding="utf-8")
    with pytest.raises(CourseError, match="another version of 01_tensors: ada"):
        write("csv")


def test_a_learner_whom_an_older_gradebook_does_not_know_is_not_left_out(
    write: Write, graded: School, source: Source
) -> None:
    graded.submit("new", b"{}")
    collected = intake.read(graded.root / "course" / "submitted" / "new" / CHAPTER, "new", CHAPTER)
    file = result_file(graded.root, "new", CHAPTER)
    file.parent.mkdir(parents=True)
    file.write_text(judge.refused(source, collected, "", "").to_json(), encoding="utf-8")
    with pytest.raises(CourseError, match="lacks grades that were given: 'new'"):
        write("csv")


@pytest.mark.parametrize(
    ("due", "timestamp"),
    [(datetime(2027, 2, 1), "2027-02-28T22:10:00+00:00"), (None, "2027-03-09T10:00:00+00:00")],
)
def test_a_penalty_that_is_not_that_of_now_is_not_exported(
    graded: School, source: Source, due: datetime | None, timestamp: str
) -> None:
    # the due date was moved after grading; an older gradebook has another moment of handing in
    config = nbgrader_config(own=True)
    config.LateSubmissionPlugin.penalty_method = "zero"
    _store(graded, source, Submission("ada", CHAPTER, b"", timestamp))
    with graded.gradebook() as book:
        if due is not None:
            book.find_assignment(CHAPTER).duedate = due
            for grade in book.find_submission(CHAPTER, "ada").notebooks[0].grades:
                grade.manual_score = 1.0 if grade.name == "check-pixels" else None
        book.db.commit()
    file = graded.root / "grades.csv"
    with pytest.raises(CourseError, match=r"'ada'.*the due date or the policy for late work"):
        export.export(graded.root, CHAPTER, "moodle", file, config=config)
    assert not file.exists()


@pytest.mark.rest
def test_nbgrader_itself_takes_the_plugin(graded: School) -> None:
    from nbgrader.apps import ExportApp

    app = ExportApp(config=nbgrader_config(own=True))
    file = graded.root / "by-nbgrader.csv"
    plugin = "--exporter=course.grading.export.CanvasExport"
    app.initialize([plugin, "--to", str(file), "--assignment", CHAPTER])
    app.start()
    assert file.read_text(encoding="utf-8").startswith("Student,ID,SIS User ID,SIS Login ID,")


@pytest.mark.parametrize("learner", ["ada", "cem", "new"])
def test_what_is_handed_in_and_not_graded_is_no_zero(graded: School, learner: str) -> None:
    graded.submit(learner, b"{}")
    file = graded.root / "grades.csv"
    with pytest.raises(CourseError, match=f"not graded: '{learner}'.*Nothing was written"):
        export.export(graded.root, CHAPTER, "csv", file, config=nbgrader_config(own=True))
    assert not file.exists()


@pytest.mark.parametrize("learner", ["ada", "cem"])
def test_a_gradebook_without_the_points_of_a_result_is_not_exported(
    write: Write, graded: School, source: Source, learner: str
) -> None:
    # an older gradebook was restored: ada has other points there, cem has none
    result = judge.refused(source, Submission(learner, CHAPTER, b""), "", "")
    file = result_file(graded.root, learner, CHAPTER)
    file.parent.mkdir(parents=True)
    file.write_text(result.to_json(), encoding="utf-8")
    with pytest.raises(CourseError, match=f"lacks grades that were given: '{learner}'"):
        write("csv")
    assert not (graded.root / "grades.csv").exists()


def test_points_of_which_no_result_is_left_are_not_exported(
    write: Write, graded: School, source: Source
) -> None:
    # points were changed after grading, and what was handed in and graded was moved away
    _store(graded, source, Submission("ada", CHAPTER, b""))
    write("csv")
    result_file(graded.root, "ada", CHAPTER).unlink()
    (graded.root / "grades.csv").unlink()
    with pytest.raises(CourseError, match=f"'ada' has points .* Run: course grade {CHAPTER}"):
        write("csv")
    assert not (graded.root / "grades.csv").exists()


def test_a_submission_collected_again_later_is_not_exported_with_its_old_penalty(
    write: Write, graded: School, source: Source
) -> None:
    graded.submit("ada", b"{}")
    folder = graded.root / "course" / "submitted" / "ada" / CHAPTER
    _store(graded, source, intake.read(folder, "ada", CHAPTER))
    assert batch.not_graded(graded.root, CHAPTER) == []
    (folder / intake.TIMESTAMP).write_text("2027-03-09 10:00:00 UTC", encoding="utf-8")
    with pytest.raises(CourseError, match="not graded: 'ada'"):
        write("csv")


def test_a_notebook_in_the_wrong_place_is_no_zero(write: Write, graded: School) -> None:
    misplaced = graded.root / "course" / "submitted" / "cem" / CHAPTER
    misplaced.parent.mkdir(parents=True)
    misplaced.write_text("{}", encoding="utf-8")
    with pytest.raises(CourseError, match=f"not graded: 'cem/{CHAPTER}'"):
        write("csv")
    assert f"'cem/{CHAPTER}' is not graded" in " ".join(batch.left_out(graded.root, CHAPTER))


@pytest.mark.parametrize("exporter", [(), ("--exporter=course.grading.export.CanvasExport",)])
def test_nbgraders_own_export_refuses_too(graded: School, exporter: tuple[str, ...]) -> None:
    from nbgrader.apps import ExportApp

    graded.submit("ada", b"{}")
    app = ExportApp(config=nbgrader_config(own=True))
    file = graded.root / "grades.csv"
    app.initialize([*exporter, "--to", str(file), "--assignment", CHAPTER])
    with pytest.raises(SystemExit, match=r"^course: Handed in and not graded: 'ada'"):
        app.start()
    assert not file.exists()


def test_grades_of_a_chapter_whose_released_notebook_is_gone_are_not_exported(
    graded: School,
) -> None:
    shutil.rmtree(graded.root / "notebooks" / CHAPTER)
    file = graded.root / "all.csv"
    everything = export.CsvExport(to=str(file), config=nbgrader_config(own=True))
    with pytest.raises(SystemExit, match=f"^course: .* not built, .*: course build {CHAPTER}"):
        everything.export(graded.gradebook())
    assert not file.exists()


@pytest.mark.usefixtures("kept_workers")
def test_who_is_graded_or_refused_is_exported(school: School, half: bytes) -> None:
    school.submit("ada", half)
    school.submit("bob", b"", "notes.txt")
    config = nbgrader_config(own=True)
    batch.grade(school.root, CHAPTER, workers=1, limits=LIMITS)
    file = school.root / "grades.csv"
    export.export(school.root, CHAPTER, "moodle", file, config=config)
    assert file.exists()
