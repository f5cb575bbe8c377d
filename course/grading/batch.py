"""Many submissions: workers beside each other, one writer, no submission lost.

What a run has written stays when it is broken off: the next run keeps those results and grades the
rest.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from course.grading import agreement, intake, judge
from course.grading.intake import Submission
from course.grading.pool import WORKER_ENDED, Job, results
from course.grading.result import Result, stored
from course.grading.writer import Writer
from course.notebook import matching
from course.notebook.matching import Refused, Source
from course.sandbox import profiles
from course.sandbox.profiles import Limits
from course.shared import extras, files, paths
from course.shared.errors import CourseError
from course.shared.words import listed

MOST_FAULTS = 3
"""Submissions in a row that the machine could not grade, after which no others are tried.

Those that ended their workers are not counted.
"""
LONGEST_NAME = 128
"""Characters of a learner's id in nbgrader's tables."""

_HANDED_IN = (".ipynb", ".ipynb.txt", ".ipynb.json", ".zip")
"""How the files end that learners hand in."""

Watch = Callable[[Result, int, int], None]
"""Called with each result, the number of results so far, and the number of submissions."""


def secret_of(root: Path) -> bytes:
    """The secret of the course, from which seeds are made; made when first asked for.

    It lies in `course/.secret`, which git ignores; keep it, and a regrade draws the same numbers.
    """
    file = root / "course" / ".secret"
    try:
        if not file.exists():
            files.write(file, secrets.token_hex(32))
            file.chmod(0o600)
        secret = files.read(file)
    except OSError as problem:
        raise CourseError(
            f"{file} cannot be read or written ({problem.strerror}). What is no file has to go."
        ) from None
    if len(secret) < 16 or len({*secret}) < 6:  # a power cut may leave zeros
        raise CourseError(
            f"{file} holds no secret: whoever knows that foresees the numbers of every check. "
            "Restore it from a copy, or remove it: then all are graded again, with other numbers."
        )
    return secret


def profile_for(*, unsafe: bool = False) -> str:
    """The strongest sandbox of this machine; CourseError with the reasons if it has none."""
    if unsafe:
        return profiles.UNSAFE
    profile = profiles.best()
    if profile is None:
        reasons = [profiles.why_not(name) for name in profiles.SAFE]
        raise CourseError(
            "This machine has no sandbox for learners' code, so nothing was graded.\n"
            + "\n".join(f"- {reason}" for reason in reasons)
            + "\nOn a machine that holds nothing of value, --unsafe grades without one."
        )
    return profile


def submissions(root: Path, chapter: str, learners: Iterable[str] = ()) -> list[tuple[str, Path]]:
    """The learners who handed the chapter in, and the folders of their submissions."""
    wanted = set(learners)
    sound = [folder for folder in folders(root, chapter) if why_left_out(folder, chapter) is None]
    named = [(path.name, path / chapter) for path in sound]
    missing = wanted - {name for name, _ in named}
    if missing:
        sentence = f"No submission of {chapter} by {', '.join(sorted(missing))}."
        raise CourseError("\n".join([sentence, *left_out(root, chapter)]))
    return [(name, path) for name, path in named if not wanted or name in wanted]


def folders(root: Path, chapter: str) -> list[Path]:
    """The folders of learners who handed the chapter in, those that are not graded included."""
    folder = root / "course" / "submitted"
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [folder for folder in entries if _is_there(folder / chapter)]


def _is_there(folder: Path) -> bool:
    """Whether this is a folder; True if that cannot be seen, since reading it says why."""
    try:
        return stat.S_ISDIR(folder.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def why_left_out(folder: Path, chapter: str) -> str | None:
    """Why a learner's folder is left out; None if it is not."""
    if folder.is_symlink():
        return "it is a link"
    if strangers := _foreign_owners(folder, chapter):
        names = ", ".join(map(intake.account, strangers))
        return f"it belongs to {names}, and others may write there (chmod -R go-w)"
    try:
        folder.name.encode()
    except UnicodeEncodeError:
        if (encoding := sys.getfilesystemencoding()) != "utf-8":
            return f"this locale reads names as {encoding}; run it again with PYTHONUTF8=1"
        return "its name is not UTF-8, which a gradebook needs"
    if folder.name.startswith(".") or not folder.name.isprintable():
        return "its name begins with a dot, or holds what cannot be printed"
    if len(folder.name) > LONGEST_NAME:
        return f"its name is longer than the {LONGEST_NAME} characters that a gradebook takes"
    return None


def _foreign_owners(folder: Path, chapter: str) -> list[int]:
    """Users who may have put a submission here for somebody else, where others may write.

    A group that may write is one of graders if the bit setgid says that new files are the group's
    too, as with nbgrader's option `groupshared`. Otherwise the umask opened the folder.
    """
    above = (folder.stat(), folder.parent.stat())
    modes = [status.st_mode for status in above]
    # a folder that the grader may not read is named later
    with contextlib.suppress(PermissionError):
        modes.append((folder / chapter).stat().st_mode)
    by_umask = any(mode & (stat.S_IWGRP | stat.S_ISGID) == stat.S_IWGRP for mode in modes)
    if not by_umask and not any(mode & stat.S_IWOTH for mode in modes):
        return []
    owners = {above[0].st_uid}
    with contextlib.suppress(OSError):
        owners |= intake.owners_of(folder / chapter)
    known = {os.getuid(), 0, above[1].st_uid}
    return sorted(uid for uid in owners - known if intake.account(uid) != folder.name)


def left_out(root: Path, chapter: str) -> list[str]:
    """A sentence for each folder of a submission, and each file beside them, that is not graded."""
    left = [(folder, why_left_out(folder, chapter)) for folder in folders(root, chapter)]
    place = "it belongs into a chapter's folder: course/submitted/LEARNER/CHAPTER/"
    left += [(file, place) for file in _misplaced(root)]
    submitted = root / "course" / "submitted"
    named = [(ascii(file.relative_to(submitted).as_posix())[:150], text) for file, text in left]
    return [f"{name} is not graded: {reason}." for name, reason in named if reason]


def _misplaced(root: Path) -> list[Path]:
    """Notebooks and archives that lie in no chapter's folder of a learner."""
    submitted, chapters = root / "course" / "submitted", {*paths.released_chapters(root)}
    files: list[Path] = []
    for folder, inner, names in os.walk(submitted):
        if Path(folder).parent == submitted:
            inner[:] = [name for name in inner if name not in chapters]
        files += [
            Path(folder, name)
            for name in names
            if name in chapters or name.lower().endswith(_HANDED_IN)
        ]
    return sorted(files)


def taken_in(name: str, folder: Path, source: Source) -> Submission | Result:
    """A submission's notebook, or the result that says why there is none."""
    unread = Submission(name, source.chapter, b"")
    try:
        intake.set_aside_timestamp(folder)
        return intake.read(folder, name, source.chapter)
    except Refused as refusal:
        return judge.refused(source, unread, "", str(refusal))
    except OSError as problem:
        sentence = f"{folder} cannot be read by you ({problem.strerror})"
        return judge.ungraded(source, unread, "", sentence)


def not_graded(root: Path, chapter: str) -> list[str]:
    """The learners whose submission has no grade, and the paths of misplaced submissions.

    That is a submission that was never graded, could not be graded, or is newer than its grade.
    """
    source = matching.source_of(root, chapter)
    submitted = root / "course" / "submitted"
    waiting = [path.relative_to(submitted).as_posix() for path in _misplaced(root)]
    for folder in folders(root, chapter):
        submission = taken_in(folder.name, folder / chapter, source)
        earlier = stored(root, folder.name, chapter)
        if isinstance(submission, Submission):
            is_graded = earlier is not None and is_of(earlier, submission, source)
        else:
            is_graded = earlier == submission
        if not is_graded:
            waiting.append(folder.name)
    return waiting


class Ungraded(CourseError):
    """Submissions that this machine could not grade. `results` are all others."""

    def __init__(self, results: list[Result], faults: list[Result], n_not_tried: int) -> None:
        self.results = results
        reasons = dict.fromkeys(fault.sentence.rstrip(".") for fault in faults)
        names = listed([fault.learner for fault in faults], intake.MOST_NAMED)
        not_tried = f" {n_not_tried} others were not tried." if n_not_tried else ""
        super().__init__(
            f"Ungraded because of this machine, not of the learners: {names}.{not_tried} "
            f"{'. '.join(reasons)}. They got no points and lost none. Mend that, and run the same "
            "command again; `course doctor --server` says whether a sandbox works."
        )


def grade(
    root: Path,
    chapter: str,
    *,
    learners: Iterable[str] = (),
    workers: int | None = None,
    unsafe: bool = False,
    force: bool = False,
    limits: Limits | None = None,
    cluster: str | None = None,
    watch: Watch = lambda result, done, total: None,
    config: Any = None,
) -> list[Result]:
    """Grade a chapter's submissions; all results, those of earlier runs included, less notebooks.

    learners: by default all. workers: by default one for each core. unsafe: without a sandbox.
    force: grade again what is graded.
    cluster: the address of a scheduler, whose workers grade instead of this machine's.
    config: nbgrader's; by default that of the course.

    Raises CourseError if there is no sandbox, nothing to grade, or no entry in the gradebook;
    Ungraded if this machine could not grade some of them, after all others are written.
    """
    from course.authoring.release import nbgrader_config
    from course.grading.cluster import Cluster

    extras.needed("nh3", "teach", "Grading")
    paths.check_exercises(root)
    source = matching.source_of(root, chapter)
    agreement.check_notebooks(source)
    agreement.check_definitions(source)
    found = submissions(root, chapter, learners)
    if not found:
        sentence = f"There is no submission of {chapter} in {root / 'course/submitted'}."
        raise CourseError("\n".join([sentence, *left_out(root, chapter)]))
    secret = secret_of(root)

    with contextlib.ExitStack() as stack:
        run: Callable[..., Generator[Result]]
        if cluster is not None:
            machines = stack.enter_context(contextlib.closing(Cluster(cluster, unsafe=unsafe)))
            profile, run = machines.profile, machines.results
        else:
            profile = profile_for(unsafe=unsafe)
            count = workers or len(os.sched_getaffinity(0))
            run = partial(results, workers=count, profile=profile)
        with _as_course_error("The gradebook, or the folder of results, cannot be opened"):
            config = config or nbgrader_config(own=True)
            writer = stack.enter_context(contextlib.closing(Writer(root, source, config)))

        sink = ResultSink(writer, watch, len(found), force=force)

        def jobs() -> Iterator[Job]:
            for name, folder in found:
                submission = taken_in(name, folder, source)
                if isinstance(submission, Result):
                    sink(submission)
                    continue
                job = Job(submission, judge.seed_of(secret, submission))
                earlier = None if force else stored(root, name, chapter)
                if (
                    earlier is not None
                    and is_of(earlier, submission, source)
                    and earlier.seed == job.seed
                    and (earlier.profile == profile or earlier.status == "refused")
                    and writer.is_applied(earlier)
                ):
                    sink(earlier)
                else:  # also a result whose page was not written: the worker makes both again
                    yield job

        with contextlib.closing(run(source, jobs(), limits=limits)) as coming:
            in_a_row = 0
            for result in coming:
                # a notebook that ends its workers is no fault of the machine, and is not counted
                in_a_row = 0 if sink(result) else in_a_row + (result.sentence != WORKER_ENDED)
                if in_a_row >= MOST_FAULTS:
                    break
    done, faults = sink.done, sink.faults
    if faults:
        raise Ungraded(done, faults, len(found) - len(done) - len(faults))
    return done


@dataclass
class ResultSink:
    """Writes results as they come; what cannot be written, or was not graded, is a fault."""

    writer: Writer
    watch: Watch
    total: int
    force: bool
    done: list[Result] = field(default_factory=list)
    faults: list[Result] = field(default_factory=list)

    def __call__(self, result: Result) -> bool:
        """Write one result; whether that is done."""
        try:
            with _as_course_error("A result was not written"):
                is_graded = result.status != "ungraded"
                if is_graded and (self.force or not self.writer.is_applied(result)):
                    self.writer.apply(result)
        except CourseError as problem:
            result = replace(result, status="ungraded", sentence=str(problem))
        result = replace(result, cells=[], page="")  # thousands of them are kept
        if result.status == "ungraded":
            self.faults.append(result)
            return False
        self.done.append(result)
        self.watch(result, len(self.done), self.total)
        return True


@contextlib.contextmanager
def _as_course_error(sentence: str) -> Iterator[None]:
    """Turn an error of the disk or of the gradebook into a sentence.

    That of a full disk names no file, so that it is the same for all.
    """
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (OSError, SQLAlchemyError) as problem:
        is_full = getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        reason = getattr(problem, "strerror" if is_full else "orig", None) or problem
        way_out = "" if is_full else " If something else lies in its place, move it away."
        raise CourseError(f"{sentence} ({reason}). Nothing is lost.{way_out}") from problem


def is_of(result: Result, submission: Submission, source: Source) -> bool:
    """Whether a result is of this submission as it lies there, graded as the chapter is now."""
    of = (submission.digest, submission.timestamp, source.digest)
    return of == (result.submission, result.timestamp, result.source)
