"""Grading on other machines, by way of a scheduler of dask.distributed.

A worker gets bytes and gives a result; it needs neither the gradebook nor a shared disk,
only this package and a sandbox of its own. Who can reach the scheduler can run programs on the
workers: keep it on a private network, or use TLS (`tls://`, configured as dask describes).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Generator, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from course import exercises
from course.grading import judge, pool
from course.grading.pool import Job, Worker
from course.grading.result import Result
from course.notebook.matching import Source
from course.sandbox import profiles
from course.sandbox.profiles import Limits
from course.shared import extras
from course.shared.errors import CourseError
from course.shared.settings import settings

AHEAD = 2
"""How many submissions each thread of the workers has beside the one that it grades."""
SECONDS = 15

_kept = threading.local()
"""For each thread its worker, and what that was started for."""


class Cluster:
    """The workers behind a scheduler, all with the same sandbox and the same release.

    address: `tcp://host:8786`, or the file `.json` that a scheduler wrote.
    Raises CourseError if nothing answers there, or if a worker could not give the results that
    this machine would.
    """

    def __init__(self, address: str, *, unsafe: bool = False) -> None:
        Client = extras.needed("distributed", "teach", "Grading on a cluster").Client
        try:
            at = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
            self._client: Any = Client(**at, timeout=SECONDS, set_as_default=False)
            self._client.wait_for_workers(1, timeout=SECONDS)
            workers: dict[str, Any] = self._client.run(_described)
        except (OSError, TimeoutError, ValueError) as problem:
            raise CourseError(f"No worker answers at {address} ({problem}).") from None
        expected, _ = _described()
        for name, (versions, _) in workers.items():
            if versions != expected:
                self.close()
                raise CourseError(
                    f"{name} has {versions}, this machine {expected}: install the same."
                )
        self.profile = profiles.UNSAFE if unsafe else _common([has for _, has in workers.values()])

    def close(self) -> None:
        """Leave the scheduler; the workers stay."""
        self._client.close()

    def results(
        self, source: Source, jobs: Iterable[Job], limits: Limits | None = None
    ) -> Generator[Result]:
        """The result of every job, in the order in which they are done.

        No more is sent than the workers can take soon. A worker that dies is replaced by another.
        The submissions with which several died are sent again at the end, one at a time: dask
        counts a death for every submission that waited there. One that kills again is ungraded.
        """
        from distributed import KilledWorker, as_completed

        waiting, bounds = iter(jobs), limits or Limits()
        sent: dict[str, Job] = {}

        def send(job: Job) -> Any:
            future = self._client.submit(_graded, source, job, self.profile, bounds, pure=False)
            sent[future.key] = job
            return future

        done = as_completed(loop=self._client.loop)

        def fill() -> None:
            threads = sum(self._client.nthreads().values())  # workers come and go
            room = max(1, threads) * (AHEAD + 1) - len(sent)
            done.update([send(job) for job in islice(waiting, max(0, room))])

        def result_of(future: Any) -> Result | None:
            """The result; None if workers died with the submission."""
            try:
                result: Result = future.result()
            except KilledWorker:
                return None
            except Exception as problem:  # a worker cannot start, or the scheduler is gone
                raise CourseError(f"The cluster does not grade: {problem}") from None
            return result

        suspects = list[Job]()
        fill()
        for future in done:
            job, result = sent.pop(future.key), result_of(future)
            if result is None:
                suspects.append(job)
            else:
                yield result
            fill()
        for job in suspects:
            ended = judge.ungraded(source, job.submission, job.seed, pool.WORKER_ENDED)
            yield result_of(send(job)) or ended


def _common(offered: list[list[str]]) -> str:
    """The strongest sandbox that all workers have, so that all results name the same."""
    for profile in profiles.SAFE:
        if all(profile in has for has in offered):
            return profile
    raise CourseError(
        "A worker of this cluster has no sandbox: run `course doctor --server` on each."
    )


# what runs on a worker


def _described() -> tuple[dict[str, str], list[str]]:
    """This machine's versions, those of the exercises among them, and the sandboxes that work."""
    digest = hashlib.sha256(settings().variants.encode())
    for file in sorted(Path(exercises.__path__[0]).rglob("*.py")):
        digest.update(file.read_bytes())
    versions = {**profiles.versions(), "exercises": digest.hexdigest()[:12]}
    return versions, [name for name in profiles.SAFE if profiles.why_not(name) is None]


def _graded(source: Source, job: Job, profile: str, limits: Limits) -> Result:
    """One result, from a checker that stays for this thread's next submission."""
    wanted = (source.digest, profile, limits)
    if getattr(_kept, "wanted", None) != wanted:
        if hasattr(_kept, "worker"):
            _kept.worker.close()
        # A number for each thread of a machine, from which its user follows; identifiers of
        # threads are addresses of which the last 12 bits (4096) are alike.
        number = (os.getpid() * 7 + threading.get_ident() // 4096) % 4000
        _kept.worker, _kept.wanted = Worker(number, source, profile, limits), wanted
    return pool.grade_one(_kept.worker, job)
