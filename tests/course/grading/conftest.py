"""Fixtures of the tests of grading: a sandbox of each profile, a class, a school."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from classroom import CHAPTER, LIMITS, ROOT, Class, KeptWorker, School

from course.grading import pool
from course.grading.session import Session, Warm
from course.notebook import matching
from course.notebook.matching import Source
from course.sandbox import profiles
from course.sandbox.profiles import Limits
from course.shared import paths

paths.scripts_on_path()  # every new gradebook starts `alembic`, whichever test is the first

for profile in (profiles.NAMESPACES, profiles.LANDLOCK):
    if (reason := profiles.why_not(profile)) is not None:
        print(f"not tested here: {profile}: {reason}")


@pytest.fixture(scope="session")
def source() -> Source:
    """The instructor's notebook of the first chapter."""
    return matching.source_of(ROOT, CHAPTER)


@pytest.fixture(
    scope="session",
    params=[profiles.NAMESPACES, pytest.param(profiles.LANDLOCK, marks=pytest.mark.rest)],
)
def warm(request: pytest.FixtureRequest) -> Iterator[Warm]:
    """A warm process, under each of the two profiles that this machine has."""
    reason = profiles.why_not(request.param)
    if reason is not None:
        pytest.skip(reason)
    with Warm(request.param, LIMITS, number=7) as started:
        yield started


@pytest.fixture(scope="session")
def warm_once() -> Iterator[Warm]:
    """A warm process under the strongest profile, where the profile makes no difference."""
    profile = profiles.best()
    if profile is None:
        pytest.skip("this machine has no sandbox")
    with Warm(profile, LIMITS, number=8) as started:
        yield started


@pytest.fixture(scope="module")
def warm_with_the_usual_limits() -> Iterator[Warm]:
    """A warm process with the limits that grading has, under the strongest profile."""
    profile = profiles.best()
    if profile is None:
        pytest.skip("this machine has no sandbox")
    with Warm(profile, number=9) as started:
        yield started


@pytest.fixture
def session(warm_once: Warm) -> Iterator[Session]:
    """The process of one submission."""
    started = warm_once.fork()
    yield started
    started.end()


@pytest.fixture(scope="session")
def _workers() -> Iterator[dict[object, KeptWorker]]:
    started: dict[object, KeptWorker] = {}
    yield started
    for worker in started.values():
        pool.Worker.close(worker)


@pytest.fixture
def kept_workers(_workers: dict[object, KeptWorker], monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of batches are started once: their imports take longer than what a test does."""

    def worker(number: int, source: Source, profile: str, limits: Limits, core: int) -> KeptWorker:
        key = number, source.digest, profile, limits
        return _workers.setdefault(key, KeptWorker(number, source, profile, limits, core))

    monkeypatch.setattr(pool, "Worker", worker)


@pytest.fixture
def klass(warm: Warm, source: Source) -> Class:
    """The class under both profiles."""
    return Class(warm, source)


@pytest.fixture
def klass_once(warm_once: Warm, source: Source) -> Class:
    """The class under one profile."""
    return Class(warm_once, source)


@pytest.fixture
def honest(source: Source) -> bytes:
    """A submission with all answers."""
    return json.dumps(Class(None, source).honest()).encode()  # type: ignore[arg-type]


@pytest.fixture
def half(source: Source) -> bytes:
    """A submission with one answer, for `PIXELS` points."""
    return json.dumps(Class(None, source).honest("pixels")).encode()  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def _empty_school(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose gradebook knows the chapter; made once, by nbgrader itself."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    from course.authoring.release import nbgrader_config

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
