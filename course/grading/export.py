"""Grades of a chapter as the file that a learning platform reads: export plugins of nbgrader.

`course export` calls them, as `nbgrader export --exporter=course.grading.export.CanvasExport` does.
Which learner is which person there is said by a file of identities: a CSV file with a column
`learner` and any of the platform's own columns of a person.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin, ExportPlugin
from traitlets import Unicode

from course.grading import intake
from course.grading.gradebook import opened
from course.grading.grades import Grade, check_grades, grades_of
from course.notebook import exercise
from course.shared import files, paths
from course.shared.errors import CourseError
from course.shared.words import listed


class NbgraderExport(ExportPlugin):
    """What `nbgrader export` calls, and `write`, which `course export` calls."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the file. nbgrader would print a CourseError with its traceback."""
        try:
            self.write(gradebook)
        except CourseError as problem:
            raise SystemExit(f"course: {problem}") from None

    def write(self, gradebook: Gradebook) -> None:
        """Write the file. Raises CourseError if a grade is missing or a value is unsafe."""
        raise NotImplementedError


class PlatformExport(NbgraderExport):
    """What all platforms have in common: one chapter, one row for each learner."""

    identities = Unicode(help="a CSV file: learner, and columns of the platform").tag(config=True)
    column = Unicode(help="what the chapter is called on the platform").tag(config=True)
    person_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that say who somebody is; a file of identities may give each of them."""

    def write(self, gradebook: Gradebook) -> None:
        """Write one row for each learner."""
        if len(self.assignment) != 1:
            raise CourseError("Export one chapter at a time: its rows are those of persons.")
        chapter = str(self.assignment[0])
        check_grades(gradebook, chapter, self.config)
        grades = grades_of(gradebook, chapter)
        if self.student:
            grades = [grade for grade in grades if grade.learner in map(str, self.student)]
        persons = self._persons(grades)
        rows = [[*self.person_columns, *self.points_columns(self.column or chapter)]]
        rows += self.rows_above(grades, len(self.person_columns))
        by_learner = {}
        for grade in grades:
            person = persons[grade.learner]
            columns = [person[column] for column in self.person_columns]
            by_learner[grade.learner] = [*columns, *self.points(grade)]
        _check_safe(by_learner)
        rows += by_learner.values()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        files.write(Path(self.to or "grades.csv"), text.getvalue())

    def _persons(self, grades: list[Grade]) -> dict[str, dict[str, str]]:
        """The columns of each person: by default from the gradebook, else from the identities."""
        persons = {grade.learner: self.person(grade) for grade in grades}
        if not self.identities:
            return persons
        known = _identities(Path(self.identities), self.person_columns)
        missing = sorted(persons.keys() - known.keys())
        if missing:
            names = listed(missing, intake.MOST_NAMED)
            raise CourseError(f"{self.identities} does not name {names}. Nothing was written.")
        return {learner: {**columns, **known[learner]} for learner, columns in persons.items()}

    def person(self, grade: Grade) -> dict[str, str]:
        """What the gradebook knows of a person, by `person_columns`."""
        raise NotImplementedError

    def points_columns(self, title: str) -> list[str]:
        """The columns after those of the person."""
        return [title]

    def points(self, grade: Grade) -> list[str]:
        """The values of `points_columns`."""
        return [f"{grade.points:.10g}"]

    def rows_above(self, grades: list[Grade], width: int) -> list[list[str]]:
        """Rows between the names of the columns and the learners."""
        return []


_RUN = ("=", "+", "-", "@", "\t", "\r")
_SHARED = {"Student", "First name", "Last name", "First Name", "Last Name", "Section", "Sections"}
"""Columns that are alike for several persons."""


def _check_safe(rows: Mapping[str, Iterable[str | None]]) -> None:
    """Raises CourseError if a spreadsheet would run a value. rows: by learner."""
    unsafe = [
        f"{value!a} of {learner!a}"
        for learner, row in rows.items()
        for value in row
        if value and value.startswith(_RUN)
    ]
    if unsafe:
        raise CourseError(
            "A spreadsheet runs what begins with =, +, - or @: "
            f"{listed(unsafe, intake.MOST_NAMED)}. Nothing was written. Write it otherwise in the "
            "file of --identities if it is from there, else in the gradebook: nbgrader db student "
            "add LEARNER --first-name=... --last-name=... --email=..."
        )


def _identities(file: Path, columns: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """The platform's columns of each learner, as the file of identities has them."""
    try:
        reader = csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig")))
        rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise CourseError(f"{file} cannot be read: {problem}.") from None
    names = reader.fieldnames or []
    unknown = [name for name in names if name not in ("learner", *columns)]
    if "learner" not in names or unknown or len(names) < 2:
        raise CourseError(
            f"{file} needs a column `learner` and some of {', '.join(columns)}, no others; "
            f"it has {', '.join(map(str, names)) or 'none'}."
            + " A comma has to stand between them."
            * any(";" in name for name in names)
        )
    identities: dict[str, dict[str, str]] = {}
    owners: dict[tuple[str, str], str] = {}
    for row in rows:
        learner = row.pop("learner")
        if learner in identities or None in row or None in row.values():
            raise CourseError(f"{file}: {learner} stands there twice, or its row is not whole.")
        identities[learner] = row
        for column in sorted(row.keys() - _SHARED):
            value = row[column].strip().casefold()
            owner = owners.setdefault((column, value), learner) if value else learner
            if owner != learner:
                raise CourseError(
                    f"{file}: {owner} and {learner} have the same {column}, {row[column]!a}. The "
                    "points of one would go to the other. Nothing was written."
                )
    return identities


class CanvasExport(PlatformExport):
    """Canvas: Grades > Import. `column` is the assignment as Canvas exports it: `Name (4711)`.

    Source: `lib/gradebook_importer.rb` of canvas-lms.
    """

    person_columns = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")

    def person(self, grade: Grade) -> dict[str, str]:
        """Canvas looks for a person by ID, then by the two of the SIS, then by name."""
        name = ", ".join(filter(None, [grade.last_name, grade.first_name])) or grade.learner
        ids = {"ID": "", "SIS User ID": "", "SIS Login ID": grade.learner, "Section": ""}
        return {"Student": name, **ids}

    def rows_above(self, grades: list[Grade], width: int) -> list[list[str]]:
        """Canvas's row of the possible points."""
        possible = f"{grades[0].possible:g}" if grades else ""
        return [["    Points Possible", *[""] * (width - 1), possible]]


class MoodleExport(PlatformExport):
    """Moodle: Grades > Import > CSV file. `column` is the name of the grade item.

    Source: `grade/import/csv` of Moodle, where the columns are mapped by who imports: a person
    from `Username`, `ID number` or `Email address`.
    """

    person_columns = ("Username", "First name", "Last name", "ID number", "Email address")

    def person(self, grade: Grade) -> dict[str, str]:
        """Moodle finds a person by the one column that is mapped."""
        return {
            "Username": grade.learner,
            "First name": grade.first_name,
            "Last name": grade.last_name,
            "ID number": grade.learner,
            "Email address": grade.email,
        }


class GradescopeExport(PlatformExport):
    """Gradescope: the columns of its own *Download Grades*; it imports no grades."""

    person_columns = ("First Name", "Last Name", "SID", "Email", "Sections")

    def person(self, grade: Grade) -> dict[str, str]:
        """Gradescope's number of a student is the login here."""
        return {
            "First Name": grade.first_name,
            "Last Name": grade.last_name,
            "SID": grade.learner,
            "Email": grade.email,
            "Sections": "",
        }

    def points_columns(self, title: str) -> list[str]:
        """As Gradescope names them; it does not name the assignment."""
        begin = ["Total Score", "Max Points", "Status", "Submission ID", "Submission Time"]
        return [*begin, "Lateness (H:M:S)", "View Count", "Submission Count"]

    def points(self, grade: Grade) -> list[str]:
        """Columns that only Gradescope can fill, left empty."""
        if grade.is_missing:
            return ["", f"{grade.possible:.10g}", "Missing", "", "", "", "", ""]
        minutes, seconds = divmod(round(grade.seconds_late), 60)
        hours, minutes = divmod(minutes, 60)
        status = "Graded" if grade.is_complete else "Ungraded"
        moment = f"{grade.handed_in:%Y-%m-%d %H:%M:%S %z}" if grade.handed_in else ""
        late = f"{hours:02}:{minutes:02}:{seconds:02}"
        points = [f"{grade.points:.10g}", f"{grade.possible:.10g}"]
        return [*points, status, "", moment, late, "", ""]


class CsvExport(NbgraderExport, CsvExportPlugin):
    """nbgrader's own columns, of chapters whose grades are whole."""

    def write(self, gradebook: Gradebook) -> None:
        """Write what nbgrader's own plugin writes."""
        known = {entry.name for entry in gradebook.assignments if entry.notebooks}
        # a gradebook may have assignments that are no chapters of this course
        graded = {*exercise.chapters(), *paths.released_chapters(paths.course_root())}
        for chapter in map(str, self.assignment or sorted(known & graded)):
            check_grades(gradebook, chapter, self.config)
        persons = gradebook.students
        _check_safe({row.id: (row.id, row.first_name, row.last_name, row.email) for row in persons})
        CsvExportPlugin.export(self, gradebook)


PLATFORMS: Mapping[str, type[NbgraderExport]] = {
    "canvas": CanvasExport,
    "moodle": MoodleExport,
    "gradescope": GradescopeExport,
    "csv": CsvExport,
}


def export(
    root: Path,
    chapter: str,
    platform: str,
    to: Path,
    *,
    identities: Path | None = None,
    column: str = "",
    config: Any,
) -> list[str]:
    """Write the grades of a chapter; the learners whose grading by hand is not done yet.

    platform: one of `PLATFORMS`. config: nbgrader's. Raises CourseError where nothing is written.
    """
    options: dict[str, Any] = {}
    if platform != "csv":
        options = {"identities": str(identities or ""), "column": column}
    elif identities or column:
        raise CourseError("--to csv has nbgrader's columns: no --identities, no --column.")
    with opened(root, config) as book:
        plugin = PLATFORMS[platform](to=str(to), assignment=[chapter], config=config, **options)
        to.parent.mkdir(parents=True, exist_ok=True)
        plugin.write(book)
        return [grade.learner for grade in grades_of(book, chapter) if not grade.is_complete]
