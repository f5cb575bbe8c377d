"""Many submissions: workers beside each other, one writer, no submission lost.

A worker that ends is started again and its submission tried once more; one that ends two workers is
set aside with no points and reported. Whatever was written when a run is broken off stays written:
the next run takes up the results that lie there and grades the rest.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import stat
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course import extras, files, paths
from course.errors import CourseError
from course.grading import agreement, intake, judge, sandbox, worker
from course.grading.intake import Handed, Refused, Source
from course.grading.result import Result
from course.grading.sandbox import Limits
from course.grading.session import NO_MEMORY, ended_for_memory
from course.grading.wire import Closed, Message, Wire, WireError

if TYPE_CHECKING:
    from course.grading.writer import Writer

TRIES = 2
"""How often a submission may end its worker, or be ungraded because of the machine."""
MOST_FAULTS = 3
"""Submissions in a row that the machine could not grade, after which no others are tried."""
LONGEST_NAME = 128
"""Characters of a learner's id in nbgrader's tables."""
PATIENCE = 60.0
"""Seconds that a worker may take beyond the time that a submission has."""

Watch = Callable[[Result, int, int], None]
"""Told each result, how many there are by now, and how many there will be."""


def secret_of(root: Path) -> bytes:
    """The secret of the course, from which seeds are made; made when first asked for.

    It lies in `course/.secret`, which git ignores; keep it, and a regrade draws the same numbers.
    """
    file = root / "course" / ".secret"
    try:
        if not file.exists():
            files.write(file, secrets.token_hex(32))
            file.chmod(0o600)
        secret = file.read_bytes()
    except OSError as problem:
        raise CourseError(f"{file} cannot be read or written ({problem.strerror}).") from None
    if len(secret) < 16:
        raise CourseError(
            f"{file} holds no secret: whoever knows that foresees the numbers of every check. "
            "Restore it from a copy, or remove it: then all are graded again, with other numbers."
        )
    return secret


def profile_for(*, unsafe: bool = False) -> str:
    """The strongest sandbox of this machine; CourseError with the reasons if it has none."""
    if unsafe:
        return sandbox.UNSAFE
    found = sandbox.best()
    if found is None:
        reasons = [sandbox.why_not(it) for it in (sandbox.NAMESPACES, sandbox.LANDLOCK)]
        raise CourseError(
            "This machine has no sandbox for learners' code, so nothing was graded.\n"
            + "\n".join(f"- {it}" for it in reasons)
            + "\nOn a machine that holds nothing of value, --unsafe grades without one."
        )
    return found


def submissions(root: Path, chapter: str, learners: Iterable[str] = ()) -> list[tuple[str, Path]]:
    """The learners who handed the chapter in, and the folders of their submissions."""
    wanted = set(learners)
    sound = [it for it in _folders(root, chapter) if why_not(it, chapter) is None]
    found = [(it.name, it / chapter) for it in sound]
    missing = wanted - {name for name, _ in found}
    if missing:
        raise CourseError(f"No submission of {chapter} by {', '.join(sorted(missing))}.")
    return [(name, it) for name, it in found if not wanted or name in wanted]


def _folders(root: Path, chapter: str) -> list[Path]:
    folder = root / "course" / "submitted"
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [it for it in found if (it / chapter).is_dir()]


def why_not(folder: Path, chapter: str) -> str | None:
    """Why a learner's folder is left out; None if it is not."""
    if folder.is_symlink():
        return "it is a link"
    if others := _others(folder, chapter):
        return (
            f"it belongs to {', '.join(map(intake.account, others))}, and everybody may write there"
        )
    try:
        folder.name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, which a gradebook needs"
    if folder.name.startswith(".") or not folder.name.isprintable():
        return "its name begins with a dot, or holds what cannot be printed"
    if len(folder.name) > LONGEST_NAME:
        return f"its name is longer than the {LONGEST_NAME} characters that a gradebook takes"
    return None


def _others(folder: Path, chapter: str) -> list[int]:
    """Users who put a submission here for somebody else, where everybody may write."""
    above = (folder.stat(), folder.parent.stat())
    if not any(it.st_mode & stat.S_IWOTH for it in above):
        return []
    found = intake.owners_of(folder / chapter) | {above[0].st_uid}
    known = {os.getuid(), 0, above[1].st_uid}
    return sorted(it for it in found - known if intake.account(it) != folder.name)


def left_out(root: Path, chapter: str) -> list[str]:
    """A sentence for each folder of a submission that is not graded."""
    found = ((it, why_not(it, chapter)) for it in _folders(root, chapter))
    return [f"{ascii(it.name)[:150]} is not graded: {why}." for it, why in found if why]


def taken_in(name: str, folder: Path, source: Source) -> Handed | Result:
    """A submission's notebook, or the result that says why there is none."""
    try:
        intake.set_aside_timestamp(folder)
        return intake.read(folder, name, source.chapter)
    except Refused as refusal:
        sentence = str(refusal)
    except OSError as problem:
        sentence = f"The folder cannot be read ({problem.strerror})."
    return judge.refused(source, Handed(name, source.chapter, b""), "", sentence)


@dataclass
class Job:
    """A submission on its way."""

    handed: Handed
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
    rest = iter(jobs)
    waiting = deque(islice(rest, workers))
    pool = [
        Hand(number, source, profile, limits or Limits(), core=number)
        for number in range(len(waiting))
    ]
    done: list[Result] = []
    try:
        for hand in pool:
            hand.start()
        while True:
            for hand in pool:
                if hand.job is None:
                    waiting.extend(islice(rest, 0 if waiting else 1))
                    if waiting:
                        hand.take(waiting.popleft())
            if not any(it.job for it in pool):
                break
            yield from done  # while they are written, the next ones are on their way
            done = list(_finished(pool, waiting, source))
        yield from done
    finally:
        for hand in pool:
            hand.close()


def one(hand: Hand, job: Job) -> Result:
    """The result of one job, from a worker that is kept."""
    waiting = deque([job])
    while True:
        if waiting:
            hand.take(waiting.popleft())
        for result in _finished([hand], waiting, hand.source):
            return result


def _finished(pool: Sequence[Hand], waiting: deque[Job], source: Source) -> Iterator[Result]:
    busy = {it.descriptor: it for it in pool if it.job is not None}
    poll = select.poll()
    for descriptor in busy:
        poll.register(descriptor, select.POLLIN)
    ready = {descriptor for descriptor, _ in poll.poll(500)}
    for descriptor, hand in busy.items():
        if descriptor not in ready and not hand.is_late:
            continue
        job = hand.job
        assert job is not None
        try:
            result = hand.finish()
            if result is None:
                continue
            if result.status == "ungraded" and job.tries + 1 < TRIES:
                job.tries += 1
                waiting.append(job)
            else:
                yield result
            continue
        except (Closed, WireError, TimeoutError, ValueError):
            hand.close()  # it ended, or does not end: another one is started
        job.tries += 1
        if job.tries < TRIES:
            waiting.append(job)
        elif ended_for_memory() > hand.ended_for_memory:
            yield judge.ungraded(source, job.handed, job.seed, NO_MEMORY)
        elif any(it.was_ready for it in pool):
            yield set_aside(job, source)
        else:  # it is not the submission's fault
            raise CourseError("A worker does not start.")


class Ungraded(CourseError):
    """Submissions that this machine could not grade. `results` are all others."""

    def __init__(self, results: list[Result], faults: list[Result], n_not_tried: int) -> None:
        self.results = results
        reasons = dict.fromkeys(it.sentence.rstrip(".") for it in faults)
        names = ", ".join(it.learner for it in faults[:20]) + ", ..." * (len(faults) > 20)
        others = f" {n_not_tried} others were not tried." if n_not_tried else ""
        super().__init__(
            f"Ungraded because of this machine, not of the learners: {names}.{others} "
            f"{'. '.join(reasons)}. They got no points and lost none. `course doctor --server` "
            "says what this machine lacks; then run the same command again."
        )


def set_aside(job: Job, source: Source) -> Result:
    """The result of a submission that ends whatever grades it."""
    refused = judge.refused(source, job.handed, job.seed, "")
    sentence = f"It ended the worker that graded it, {TRIES} times, and was set aside."
    return replace(refused, status="set aside", sentence=sentence)


@dataclass
class Hand:
    """One worker, as the batch sees it; its program is started when there is something to do."""

    number: int
    source: Source
    profile: str
    limits: Limits
    core: int | None = None
    """Which core is its own; None if it shares all of them."""
    job: Job | None = None
    was_ready: bool = False
    """Whether it has ever started."""
    ended_for_memory: int = 0
    """Processes that the kernel had ended for lack of memory when it was given its job."""
    _begins: Message | None = None
    """What it is still to be told first."""
    _wire: Wire | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _until: float = 0.0

    @property
    def descriptor(self) -> int:
        """What becomes readable when the worker has something to say."""
        assert self._wire is not None
        return self._wire.descriptor

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._until

    def take(self, job: Job) -> None:
        """Give this worker a submission; it is started if need be, and not waited for."""
        handed = job.handed
        message = {
            "learner": handed.learner,
            "chapter": handed.chapter,
            "timestamp": handed.timestamp,
            "repaired": list(handed.repaired),
            "seed": job.seed,
        }
        self.job, self.ended_for_memory = job, ended_for_memory()
        self._until = time.monotonic() + self.limits.seconds + PATIENCE
        with contextlib.suppress(Closed, TimeoutError):  # then `finish` finds that it is gone
            self.start()
            assert self._wire is not None
            if self._begins is not None:
                self._until += PATIENCE
                self._wire.send(self._begins, [self.source.to_json().encode()], until=self._until)
                self._begins = None
            self._wire.send(message, [handed.content], until=self._until)

    def start(self) -> None:
        """Start the program, unless it runs; it imports what it needs while others do the same."""
        if self._wire is not None:
            return
        mine, its = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "course.grading.worker"], stdin=its.fileno()
        )
        its.close()
        self._wire = Wire(mine.detach())
        self._begins = worker.begin(self.number, self.profile, self.limits, self.core)

    def finish(self) -> Result | None:
        """The result, or None if what arrived is something else.

        Raises Closed, WireError, TimeoutError or ValueError if the worker is of no use any more.
        """
        assert self._wire is not None
        said, blocks = self._wire.receive(until=self._until)
        if "problem" in said:
            raise CourseError(str(said["problem"]))
        if not blocks:
            self.was_ready = True
            return None
        self.job = None
        text, page = (it.tobytes().decode() for it in blocks)
        return Result.from_json(text, timings=said, page=page)

    def close(self) -> None:
        """End the program; it is started again with the next job."""
        self.job = None
        if self._wire is not None:
            os.close(self._wire.descriptor)
            self._wire = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2.0)  # it ends by itself, and removes its folders
            self._process.kill()
            self._process.wait()
            self._process = None


def grade(
    root: Path,
    chapter: str,
    *,
    learners: Iterable[str] = (),
    workers: int | None = None,
    unsafe: bool = False,
    force: bool = False,
    profile: str | None = None,
    limits: Limits | None = None,
    cluster: str | None = None,
    watch: Watch = lambda result, done, total: None,
    config: Any = None,
) -> list[Result]:
    """Grade a chapter's submissions; all results, those of earlier runs included, less notebooks.

    learners: by default all. workers: by default one for each core. unsafe: without a sandbox.
    force: grade again what is graded. profile: of the sandbox, by default the strongest.
    cluster: the address of a scheduler, whose workers grade instead of this machine's.
    config: nbgrader's; by default that of the course.

    Raises CourseError if there is no sandbox, nothing to grade, or no entry in the gradebook;
    Ungraded if this machine could not grade some of them, after all others are written.
    """
    from course.grading.cluster import Cluster
    from course.grading.writer import Writer, stored  # nbgrader takes a second to import
    from course.release import nbgrader_config

    extras.needed("nh3", "teach", "Grading")
    paths.check_exercises(root)
    source = intake.source_of(root, chapter)
    agreement.check_notebooks(source)
    judge.check_definitions(source)
    found = submissions(root, chapter, learners)
    if not found:
        raise CourseError(f"There is no submission of {chapter} in {root / 'course/submitted'}.")
    secret = secret_of(root)

    with contextlib.ExitStack() as stack:
        run: Callable[..., Generator[Result]]
        if cluster is not None:
            there = stack.enter_context(Cluster(cluster, unsafe=unsafe))
            profile, run = there.profile, there.results
        else:
            profile = profile or profile_for(unsafe=unsafe)
            count = workers or len(os.sched_getaffinity(0))
            run = partial(results, workers=count, profile=profile)
        with _told("The gradebook cannot be opened"):
            own = config or nbgrader_config(own=True)
            writer = stack.enter_context(Writer(root, source, own))

        finish = Finish(writer, watch, len(found), force=force)

        def jobs() -> Iterator[Job]:
            for name, folder in found:
                handed = taken_in(name, folder, source)
                if isinstance(handed, Result):
                    finish(handed)
                    continue
                job = Job(handed, judge.seed_of(secret, handed))
                earlier = None if force else stored(root, name, chapter)
                is_known = earlier and is_of(earlier, job, source, profile)
                if earlier and is_known and writer.is_applied(earlier):
                    finish(earlier)
                else:  # a run that was broken off: the worker writes its page, too
                    yield job

        with contextlib.closing(run(source, jobs(), limits=limits)) as coming:
            for result in coming:
                finish(result)
                if finish.in_a_row >= MOST_FAULTS:
                    break
    done, faults = finish.done, finish.faults
    if faults:
        raise Ungraded(done, faults, len(found) - len(done) - len(faults))
    return done


@dataclass
class Finish:
    """Writes results as they come; what cannot be written, or was not graded, is a fault."""

    writer: Writer
    watch: Watch
    total: int
    force: bool
    done: list[Result] = field(default_factory=list)
    faults: list[Result] = field(default_factory=list)
    in_a_row: int = 0

    def __call__(self, result: Result) -> None:
        """Write one result."""
        try:
            with _told(f"The result of {result.learner} was not written"):
                is_graded = result.status != "ungraded"
                if is_graded and (self.force or not self.writer.is_applied(result)):
                    self.writer.apply(result)
        except CourseError as problem:
            result = replace(result, status="ungraded", sentence=str(problem))
        result = replace(result, notebook={}, page="")  # thousands of them are kept
        if result.status == "ungraded":
            self.faults.append(result)
            self.in_a_row += 1
        else:
            self.done.append(result)
            self.in_a_row = 0
            self.watch(result, len(self.done), self.total)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """A full disk, a gradebook that another program holds: as a sentence that says what to do."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (OSError, SQLAlchemyError) as problem:
        why = str(getattr(problem, "orig", None) or problem)
        raise CourseError(
            f"{what} ({why}). Nothing is lost: mend that, and run the same command again."
        ) from problem


def is_of(result: Result, job: Job, source: Source, profile: str) -> bool:
    """Whether a result is what grading this submission again would give."""
    return (
        result.submission == job.handed.digest
        and result.source == source.digest
        and result.timestamp == job.handed.timestamp
        and result.seed == job.seed
        and result.status != "set aside"
        and (result.profile == profile or result.status == "refused")
    )


def chapter_in(root: Path, name: str) -> str:
    """The chapter that a name or number means, among those that are built."""
    return paths.chapter_named(name, paths.released_chapters(root))
