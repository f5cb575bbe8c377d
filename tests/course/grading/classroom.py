"""A way to hand notebooks in and to have them graded, which tests of grading share."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from course.grading import batch, judge, pool
from course.grading.intake import Submission
from course.grading.result import Result
from course.grading.session import Session, Warm
from course.notebook import exercise
from course.notebook.matching import Source
from course.sandbox import profiles
from course.sandbox.profiles import Limits

ROOT = Path(__file__).parents[3]
CHAPTER = "01_tensors"
FILE = f"{CHAPTER}.ipynb"
PIXELS = exercise.load()["pixels"].points
"""What the one answer of a notebook `half` is worth."""
LIMITS = Limits(cell_seconds=1.0, check_seconds=2.0, seconds=35.0)
WITH_WORKERS = [
    pytest.mark.skipif(profiles.best() is None, reason="this machine has no sandbox"),
    pytest.mark.usefixtures("kept_workers"),
]
"""The marks of tests that grade a school."""


class KeptWorker(pool.Worker):
    """A worker that stays for the next test, unless it is of no use any more."""

    def close(self) -> None:
        if self.job is not None:
            super().close()


Notebook = dict[str, Any]


class Class:
    """Hands in notebooks and has them graded, without a gradebook."""

    def __init__(self, warm: Warm, source: Source) -> None:
        self.warm, self.source = warm, source
        self.exercises = exercise.load(source.chapter)

    def honest(self, *ids: str) -> Notebook:
        """The released notebook with the worked solutions to these exercises, by default to all."""
        notebook = deepcopy(self.source.released)
        for id in ids or self.exercises:
            cell_of(notebook, id)["source"] = self.exercises[id].solution_source
        return notebook

    def blank(self) -> Notebook:
        """The notebook as it was released."""
        return deepcopy(self.source.released)

    def grade(self, notebook: Notebook | bytes, seed: str = "seed") -> Result:
        """What it is given."""
        content = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
        return judge.grade(
            self.warm, self.source, Submission("ada", self.source.chapter, content), seed
        )

    def points(self, notebook: Notebook | bytes) -> dict[str, float]:
        """Points by exercise, those without points left out."""
        result = self.grade(notebook)
        return {
            each.report.exercise_id: each.report.score
            for each in result.exercises
            if each.report.possible
        }


def cell_of(notebook: Notebook, id: str) -> dict[str, Any]:
    """The cell with this id."""
    return next(cell for cell in notebook["cells"] if cell["id"] == id)


def put_first(notebook: Notebook, source: str) -> Notebook:
    """A cell of the learner's own before everything else."""
    cell = {"cell_type": "code", "id": "mine", "metadata": {}, "source": source, "outputs": []}
    notebook["cells"].insert(0, cell)
    return notebook


class School:
    """A course folder with a gradebook, in which submissions lie."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def submit(
        self, learner: str, notebook: Notebook | bytes, name: str = f"{CHAPTER}.ipynb"
    ) -> Path:
        folder = self.root / "course" / "submitted" / learner / CHAPTER
        folder.mkdir(parents=True, exist_ok=True)
        content = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
        (folder / name).write_bytes(content)
        return folder

    def gradebook(self) -> Any:
        from nbgrader.api import Gradebook

        return Gradebook(f"sqlite:///{self.root}/course/gradebook.db")

    def scores(self) -> dict[str, float]:
        """What stands in the gradebook, by learner."""
        with self.gradebook() as book:
            found = book.assignment_submissions(CHAPTER)
            names = [student.student_id for student in found]
            assert len(names) == len(set(names)), "a submission was doubled"
            return {student.student_id: student.score for student in found}


def grade(school: School, **options: Any) -> dict[str, Result]:
    """The results of what lies in a school and is not graded yet, by learner."""
    options = {"workers": 1, "limits": LIMITS, **options}
    return {each.learner: each for each in batch.grade(school.root, CHAPTER, **options)}


def run(session: Session, source: str) -> None:
    """A cell of the learner's, after the imports; it raises nothing."""
    source = "import tensorkit as tk\nimport numpy as np\n" + source
    ran, _ = session.ask({"do": "cells", "sources": [source], "seconds": 5}, seconds=5)
    assert ran["error"] is None, ran
