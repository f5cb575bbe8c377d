"""Grading by way of dask.distributed: the same points, and no worker's death loses anything."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from classroom import CHAPTER, LIMITS, ROOT, Class, School, put_first

from course.grading import batch, cluster
from course.grading.intake import Submission
from course.grading.pool import Job
from course.notebook.matching import Source
from course.sandbox import profiles
from course.shared.errors import CourseError

distributed = pytest.importorskip(
    "distributed", reason="needs dask.distributed: pip install distributed"
)

pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(profiles.best() is None, reason="this machine has no sandbox"),
    # dask's own: it closes its sockets in threads, which end after the test
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A scheduler and two workers on loopback; a task that ends two of them is given up."""
    import dask

    quick = {"distributed.scheduler.allowed-failures": 1, "distributed.admin.log-format": ""}
    os.environ["PYTHONPATH"] = str(ROOT)
    with (
        dask.config.set(quick),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as started,
    ):
        yield started


def test_a_cluster_gives_the_points_that_this_machine_gives(
    school: School, source: Source, workers: Any
) -> None:
    klass = Class(None, source)  # type: ignore[arg-type]
    for number in range(4):
        school.submit(f"learner-{number}", klass.honest("pixels") if number % 2 else klass.honest())
    school.submit("crash", put_first(klass.honest(), "import os\nos._exit(1)"))
    school.submit("eve", b"not JSON")
    killed: list[int] = []

    def watch(result: object, done: int, total: int) -> None:
        if done == 2 and not killed:
            killed.append(next(iter(workers.workers.values())).process.pid)
            os.kill(killed[0], 9)

    there = batch.grade(
        school.root, CHAPTER, cluster=workers.scheduler_address, limits=LIMITS, watch=watch
    )
    assert killed
    scores = school.scores()
    here = batch.grade(school.root, CHAPTER, force=True, workers=1, limits=LIMITS)
    assert {each.learner: each.to_json() for each in there} == {
        each.learner: each.to_json() for each in here
    }
    assert scores == school.scores() == {each.learner: each.score for each in here}


def test_a_worker_with_other_exercises_grades_nobody(
    workers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # this machine's exercises differ from the worker's in one module of one chapter's folder
    folder = tmp_path / "exercises"
    shutil.copytree(cluster.exercises.__path__[0], folder)
    with (folder / "ch12_kernels" / "add_bias.py").open("a") as file:
        file.write("# other points\n")
    monkeypatch.setattr(cluster.exercises, "__path__", [str(folder)])
    with pytest.raises(CourseError, match=r"'exercises': .*this machine .* install the same"):
        cluster.Cluster(workers.scheduler_address)


def test_what_kills_workers_is_ungraded_and_the_others_are_graded(
    source: Source, workers: Any, monkeypatch: pytest.MonkeyPatch, honest: bytes
) -> None:
    def killing(source: Any, job: Any, *rest: Any) -> Any:
        from course.grading.cluster import _graded  # the worker's own

        if job.submission.learner == "killer":
            os._exit(1)
        return _graded(source, job, *rest)

    monkeypatch.setattr(cluster, "_graded", killing)
    names = ["ada", "killer", "bob"]
    jobs = [Job(Submission(each, CHAPTER, honest), "seed") for each in names]
    with closing(cluster.Cluster(workers.scheduler_address)) as there:
        found = {result.learner: result for result in there.results(source, jobs, LIMITS)}
    assert {name: each.status for name, each in found.items()} == {
        "ada": "graded",
        "killer": "ungraded",
        "bob": "graded",
    }
    assert found["ada"].score == found["ada"].possible


@pytest.fixture
def honest(source: Source) -> bytes:
    return json.dumps(Class(None, source).honest()).encode()  # type: ignore[arg-type]


def test_an_address_where_nothing_answers_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cluster, "SECONDS", 0.5)
    with pytest.raises(CourseError, match="No worker answers at tcp://127"):
        cluster.Cluster("tcp://127.0.0.1:9")
