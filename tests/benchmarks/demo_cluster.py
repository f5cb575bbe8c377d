"""A cluster on this machine: a scheduler, two workers, a class graded into PostgreSQL.

    pg_virtualenv python tests/benchmarks/demo_cluster.py     # what `make demo-cluster` calls

One worker is killed on the way. Without PostgreSQL's variables the gradebook is SQLite.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import synthetic

from course.grading import batch
from course.grading.result import Result

CHAPTER, LEARNERS = "01_tensors", int(os.environ.get("LEARNERS", "200"))


@contextmanager
def program(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of dask's programs, with one BLAS thread, until the block ends."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "dask", *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, **quiet)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def cluster(workers: int = 2) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler on loopback, and its workers' processes."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder, "scheduler.json")
        where = ("--host", "127.0.0.1", "--no-dashboard")
        stack.enter_context(program("scheduler", *where, "--port", "0", f"--scheduler-file={file}"))
        while not file.exists():
            time.sleep(0.1)
        flags = ("worker", f"--scheduler-file={file}", *where[:2], "--no-dashboard", "--nthreads=1")
        flags += (f"--local-directory={folder}",)
        yield str(file), [stack.enter_context(program(*flags)) for _ in range(workers)]


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(number) for number in found.split()]


def main() -> None:
    url = "postgresql://" if "PGHOST" in os.environ else None
    with (
        tempfile.TemporaryDirectory(prefix="course-cluster-") as name,
        cluster() as (file, workers),
    ):
        root = Path(name)
        os.environ["COURSE_ROOT"] = name
        (root / "notebooks").mkdir()
        config = synthetic.school(root, CHAPTER, db_url=url)
        synthetic.submit(root, CHAPTER, LEARNERS, troubled=4)
        begun = time.perf_counter()

        def watch(result: Result, done: int, total: int) -> None:
            if done == LEARNERS // 4:
                for child in children(workers[0].pid):  # its keeper starts another one
                    os.kill(child, signal.SIGKILL)
                print("A worker was killed.")
            if done % 50 == 0:
                rate = done / (time.perf_counter() - begun)
                print(f"{done} of {total}, {rate:.1f} a second, {(total - done) / rate:.0f} s left")

        results = batch.grade(root, CHAPTER, cluster=file, config=config, watch=watch)
        seconds = time.perf_counter() - begun
        from nbgrader.api import Gradebook

        with Gradebook(config.CourseDirectory.db_url) as book:
            entries = book.assignment_submissions(CHAPTER)
            scores = {entry.student_id: entry.score for entry in entries}
            kind = book.db.get_bind().dialect.name
    wrong = [result.learner for result in results if scores.get(result.learner) != result.score]
    assert len(entries) == len(scores) == len(results) == LEARNERS, "lost or doubled"
    assert not wrong, wrong
    statuses = [result.status for result in results]
    print(
        f"{LEARNERS} submissions in {kind}, none lost, none doubled: {seconds:.1f} s, "
        f"{LEARNERS / seconds:.1f} a second; {statuses.count('graded')} graded, "
        f"{statuses.count('refused')} refused."
    )


if __name__ == "__main__":
    main()
