"""What tests of grading share: a sandbox of each profile, and a way to hand something in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from course import exercise
from course.grading import batch, intake, judge, sandbox
from course.grading.intake import Handed, Source
from course.grading.result import Result
from course.grading.sandbox import Limits
from course.grading.session import Warm

ROOT = Path(__file__).parents[3]
CHAPTER = "01_tensors"
FILE = f"{CHAPTER}.ipynb"
LIMITS = Limits(cell_seconds=1.0, check_seconds=2.0, seconds=30.0)

for profile in (sandbox.NAMESPACES, sandbox.LANDLOCK):
    if (reason := sandbox.why_not(profile)) is not None:
        print(f"not tested here: {profile}: {reason}")


@pytest.fixture(scope="session")
def source() -> Source:
    """The instructor's notebook of the first chapter."""
    return intake.source_of(ROOT, CHAPTER)


@pytest.fixture(scope="session", params=[sandbox.NAMESPACES, sandbox.LANDLOCK])
def warm(request: pytest.FixtureRequest) -> Iterator[Warm]:
    """A warm process, under each of the two profiles that this machine has."""
    reason = sandbox.why_not(request.param)
    if reason is not None:
        pytest.skip(reason)
    with Warm(request.param, LIMITS, number=7) as started:
        yield started


@pytest.fixture(scope="session")
def warm_once() -> Iterator[Warm]:
    """A warm process under the strongest profile, where the profile makes no difference."""
    profile = sandbox.best()
    if profile is None:
        pytest.skip("this machine has no sandbox")
    with Warm(profile, LIMITS, number=8) as started:
        yield started


class KeptHand(batch.Hand):
    """A worker that stays for the next test, unless it is of no use any more."""

    def close(self) -> None:
        if self.job is not None:
            super().close()


@pytest.fixture(scope="session")
def _workers() -> Iterator[dict[object, KeptHand]]:
    started: dict[object, KeptHand] = {}
    yield started
    for it in started.values():
        batch.Hand.close(it)


@pytest.fixture
def kept_workers(_workers: dict[object, KeptHand], monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of batches are started once: their imports take longer than what a test does."""

    def hand(number: int, source: Source, profile: str, limits: Limits) -> KeptHand:
        key = number, source.digest, profile, limits
        return _workers.setdefault(key, KeptHand(number, source, profile, limits))

    monkeypatch.setattr(batch, "Hand", hand)


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
            self.warm, self.source, Handed("ada", self.source.chapter, content), seed
        )

    def points(self, notebook: Notebook | bytes) -> dict[str, float]:
        """Points by exercise, those without points left out."""
        result = self.grade(notebook)
        return {
            it.report.exercise_id: it.report.score for it in result.exercises if it.report.possible
        }


def cell_of(notebook: Notebook, id: str) -> dict[str, Any]:
    """The cell with this id."""
    return next(it for it in notebook["cells"] if it["id"] == id)


def put_first(notebook: Notebook, source: str) -> Notebook:
    """A cell of the learner's own before everything else."""
    cell = {"cell_type": "code", "id": "mine", "metadata": {}, "source": source, "outputs": []}
    notebook["cells"].insert(0, cell)
    return notebook


@pytest.fixture
def klass(warm: Warm, source: Source) -> Class:
    """The class under both profiles."""
    return Class(warm, source)


@pytest.fixture
def klass_once(warm_once: Warm, source: Source) -> Class:
    """The class under one profile."""
    return Class(warm_once, source)


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
            names = [it.student_id for it in found]
            assert len(names) == len(set(names)), "a submission was doubled"
            return {it.student_id: it.score for it in found}


@pytest.fixture(scope="session")
def _empty_school(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose gradebook knows the chapter; made once, by nbgrader itself."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    from course.release import nbgrader_config

    root = tmp_path_factory.mktemp("school")
    for folder in ("notebooks", "solutions"):
        shutil.copytree(ROOT / folder / CHAPTER, root / folder / CHAPTER)
    (root / "course").mkdir()
    config = nbgrader_config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = f"sqlite:///{root}/course/gradebook.db"
    config.CourseDirectory.assignment_id = CHAPTER
    directory = CourseDirectory(config=config)
    GenerateAssignment(coursedir=directory, config=config, force=True).start()
    return root


@pytest.fixture
def school(_empty_school: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> School:
    """A fresh course, with nothing handed in."""
    root = tmp_path / "school"
    shutil.copytree(_empty_school, root)
    monkeypatch.setenv("COURSE_ROOT", str(root))
    return School(root)
