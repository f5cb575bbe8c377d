"""The workers of this machine: each is a process that grades one submission after the other.

A worker that ends is started again and its submission tried once more; a submission whose worker
ends twice is ungraded. The program of a worker is `worker`.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from multiprocessing.connection import Connection, wait

from course.grading import judge
from course.grading.intake import Submission
from course.grading.result import Result
from course.grading.session import BY_WHOM
from course.notebook.matching import Source
from course.sandbox.profiles import Limits
from course.shared.errors import CourseError

TRIES = 2
"""How often a submission may end its worker, or be ungraded because of the machine."""
WORKER_ENDED = f"The process that was to grade it was ended, at every try, {BY_WHOM}"
PATIENCE = 60.0
"""Seconds that a worker may take beyond the time that a submission has."""


@dataclass
class Job:
    """A submission on its way."""

    submission: Submission
    seed: str
    tries: int = 0


def results(
    source: Source,
    jobs: Iterable[Job],
    *,
    workers: int,
    profile: str,
    limits: Limits | None = None,
) -> Generator[Result]:
    """The result of every job, in the order in which they are done.

    A job is asked for when there is a worker for it: a class's notebooks may be gigabytes.
    """
    waiting = iter(jobs)
    first = list(islice(waiting, workers))
    pool = [
        Worker(number, source, profile, limits or Limits(), core=number)
        for number in range(len(first))
    ]
    try:
        for worker in pool:
            worker.start()
        yield from _graded(pool, chain(first, waiting))
    finally:
        for worker in pool:
            worker.close()


def grade_one(worker: Worker, job: Job) -> Result:
    """The result of one job, from a worker that is kept."""
    return next(_graded([worker], iter([job])))


def _graded(pool: Sequence[Worker], jobs: Iterator[Job]) -> Generator[Result]:
    again: deque[Job] = deque()
    done: list[Result] = []
    while True:
        for worker in pool:
            job = None
            if worker.job is None:
                job = again.popleft() if again else next(jobs, None)
            if job is not None:
                worker.take(job)
        if not any(worker.job for worker in pool):
            break
        yield from done  # these are written while the next ones are graded
        done = list(_finished(pool, again))
    yield from done


def _finished(pool: Sequence[Worker], again: deque[Job]) -> Iterator[Result]:
    busy = [(worker, worker.job) for worker in pool if worker.job is not None]
    ready = wait([worker.fileno() for worker, _ in busy], 0.5)
    for worker, job in busy:
        if worker.fileno() not in ready and time.monotonic() <= worker.until:
            continue
        result = worker.finish()
        job.tries += 1
        if result.status == "ungraded" and job.tries < TRIES:
            again.append(job)
        else:
            yield result


@dataclass(eq=False)
class Worker:
    """One worker, as the batch sees it; its program is started with its first job."""

    number: int
    source: Source
    profile: str
    limits: Limits
    core: int | None = None
    """The core on which it runs; None for all of them."""
    job: Job | None = None
    _connection: Connection | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _has_begun: bool = False
    until: float = 0.0
    """When it is ended if it has no result, by the monotonic clock."""

    def fileno(self) -> int:
        """The descriptor that becomes readable when the worker has a result."""
        assert self._connection is not None
        return self._connection.fileno()

    def take(self, job: Job) -> None:
        """Give this worker a submission; it is started if need be, and not waited for."""
        self.job = job
        self.until = time.monotonic() + self.limits.seconds + PATIENCE
        with contextlib.suppress(OSError):  # then `finish` finds that it is gone
            self.start()
            assert self._connection is not None
            if not self._has_begun:
                self._has_begun = True
                self.until += PATIENCE
                begin = self.source, self.profile, self.limits, self.number, self.core
                self._connection.send(begin)
            self._connection.send((job.submission, job.seed))

    def start(self) -> None:
        """Start the program, unless it runs; it imports what it needs while others do the same."""
        if self._connection is not None:
            return
        own_end, workers_end = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "course.grading.worker"], stdin=workers_end.fileno()
        )
        workers_end.close()
        self._connection, self._has_begun = Connection(own_end.detach()), False

    def finish(self) -> Result:
        """The result, once there is one or the time is up.

        A worker that has ended, or does not end, is closed, and started again with its next job.
        """
        job = self.job
        assert job is not None
        assert self._connection is not None
        try:
            if not self._connection.poll():
                raise TimeoutError
            result: Result | CourseError = self._connection.recv()
        except (EOFError, OSError):
            self.close()
            return judge.ungraded(self.source, job.submission, job.seed, WORKER_ENDED)
        if isinstance(result, CourseError):
            raise result
        self.job = None
        return result

    def close(self) -> None:
        """End the program; it is started again with the next job."""
        self.job = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2.0)  # it ends by itself, and removes its folders
            self._process.kill()
            self._process.wait()
            self._process = None
