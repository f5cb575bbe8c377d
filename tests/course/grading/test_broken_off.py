"""A batch that is broken off, by a worker, a person or the machine, is finished by the next."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from classroom import CHAPTER, PIXELS, ROOT, WITH_WORKERS, KeptWorker, School, grade

from course.cli import commands
from course.grading import batch, pool
from course.grading.result import Result, stored
from course.grading.writer import Writer
from course.shared.errors import CourseError

pytestmark = WITH_WORKERS


@pytest.mark.rest
def test_what_cannot_be_written_is_said_and_done_by_the_next_run(
    school: School, half: bytes
) -> None:
    school.submit("bob", half)
    in_the_way = school.root / "course" / "graded"
    in_the_way.mkdir()
    (in_the_way / "bob").write_text("a file")
    with pytest.raises(CourseError, match=r"bob\. A result was not written .* Nothing is lost"):
        grade(school)
    (in_the_way / "bob").unlink()
    with sqlite3.connect(school.root / "course" / "gradebook.db") as other:
        other.execute("begin exclusive")
        with pytest.raises(CourseError, match=r"cannot be opened .* locked"):
            grade(school)
    grade(school)
    assert school.scores() == {"bob": PIXELS}


@pytest.mark.rest
def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(
    school: School, honest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = []
    take = KeptWorker.take

    def take_and_kill(worker: pool.Worker, job: pool.Job) -> None:
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

    def take_and_kill(worker: pool.Worker, job: pool.Job) -> None:
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


@pytest.mark.parametrize("step", ["write_page", "Writer._grade", "Result.to_json"])
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
    assert school.scores() == dict.fromkeys(names, PIXELS)
    for name in names:
        assert stored(school.root, name, CHAPTER) is not None
