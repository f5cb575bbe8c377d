"""From the notebook with the answers to the one that is released, by nbgrader's own converter.

`nbgrader generate_assignment`, Formgrader's button and `course build` all come through
`ReleaseStubs` and `SaveChapterCells`, which the configuration puts in the places of nbgrader's
ClearSolutions and SaveCells.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbgrader.api import Comment, Grade, MissingEntry, Notebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearSolutions, SaveCells
from traitlets import Dict
from traitlets.config import Config

from course.notebook import exercise
from course.shared.errors import CourseError


class ReleaseStubs(ClearSolutions):
    """Replaces an exercise's answer by its stub, and any other solution by one that does nothing.

    nbgrader's own stub raises NotImplementedError, which stops Run All at the first exercise.
    """

    code_stub = Dict(
        {"python": "# YOUR CODE HERE\npass"},
        help="What takes the place of a solution that is no exercise's answer.",
    ).tag(config=True)

    def preprocess_cell(
        self, cell: Any, resources: dict[str, Any], cell_index: int
    ) -> tuple[Any, dict[str, Any]]:
        """The cell as it is released: for an answer cell, as its exercise says."""
        marks = cell.metadata.get("nbgrader", {})
        known = exercise.load().get(marks.get("grade_id", ""))
        if known is None or not marks.get("solution"):
            return super().preprocess_cell(cell, resources, cell_index)
        cell.source = known.released_source
        return cell, resources


class SaveChapterCells(SaveCells):
    """Enters the cells of a chapter in the gradebook, also after exercises were added or removed.

    nbgrader's own refuses that as soon as somebody has handed in. Points and comments stay; those
    of an exercise that was removed go with it, and a new one has none until it is graded.
    """

    def _create_notebook(self, nb: Any) -> None:
        try:
            known = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        except MissingEntry:
            pass
        else:
            if known.submissions:
                self._reconcile(known)
        super()._create_notebook(nb)

    def _reconcile(self, known: Notebook) -> None:
        book, of = self.gradebook, {"notebook": known.name, "assignment": self.assignment_id}
        for row in (
            row
            for submission in known.submissions
            for row in [*submission.grades, *submission.comments]
        ):
            if row.cell is None:  # deleted by hand; nbgrader would count its points still
                book.db.delete(row)
        for kind, new in (
            ("grade", self.new_grade_cells),
            ("solution", self.new_solution_cells),
            ("task", self.new_task_cells),
            ("source", self.new_source_cells),
        ):
            old = {cell.name: cell for cell in getattr(known, f"{kind}_cells")}
            for gone in old.keys() - new.keys():
                for row in [
                    *getattr(old[gone], "grades", ()),
                    *getattr(old[gone], "comments", ()),
                ]:
                    book.db.delete(row)
                book.db.delete(old[gone])
            for name in sorted(new.keys() - old.keys()):
                cell = getattr(book, f"add_{kind}_cell")(name, **of, **new[name])
                for submitted in known.submissions:
                    if kind in ("grade", "task"):
                        book.db.add(Grade(cell_id=cell.id, notebook=submitted))
                    if kind in ("solution", "task"):
                        book.db.add(Comment(cell_id=cell.id, notebook=submitted))
        book.db.commit()


def generate(root: Path, chapters: Iterable[str]) -> None:
    """Write `notebooks/` of the course folder `root` from its `solutions/`.

    As `nbgrader generate_assignment --force --no-db` does: no gradebook is read or written.

    Raises CourseError with nbgrader's own words if a chapter cannot be released.
    """
    config = nbgrader_config()
    config.CourseDirectory.root = str(root)
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    log, said = _error_log()
    for chapter in chapters:
        config.CourseDirectory.assignment_id = chapter
        folder = CourseDirectory(config=config)
        converter = GenerateAssignment(coursedir=folder, config=config, log=log, force=True)
        try:
            converter.start()
        except Exception as problem:
            text = "\n".join(said) or str(problem)
            raise CourseError(f"nbgrader could not release {chapter}:\n{text}") from None


def nbgrader_config(*, own: bool = False) -> Config:
    """The configuration that the nbgrader commands of this course have.

    own: whether the instructor's own files nbgrader_config.py are read too, as nbgrader does.
    """
    from nbgrader.apps.baseapp import NbGrader
    from traitlets.config.loader import PyFileConfigLoader

    folder = Path(__file__).parents[1] / "jupyter"
    config = PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config()
    if own:
        command = NbGrader()
        command.log.setLevel(logging.ERROR)
        command.load_config_file()
        config.merge(command.config)
    return config


def _error_log() -> tuple[logging.Logger, list[str]]:
    """A logger that prints nothing, and the list of the errors that it gets."""
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    log = logging.getLogger("course.authoring.release")
    log.handlers[:] = [Keep(level=logging.ERROR)]
    log.propagate = False
    return log, said
