"""`course watch`: how far a class is while it works, as its checks note it (`notebook.live`).

Learners write in that folder, so nothing in it is trusted: a file counts only if it is a regular
one of the user whom its name names (or of whoever watches, where all have one user); its end alone
is read; of each line only what has the type and size that a check writes.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from course.grading import intake
from course.notebook import exercise
from course.notebook.live import SUFFIX
from course.notebook.matching import Refused
from course.shared.errors import CourseError
from course.shared.settings import settings

MOST_ENTRIES, MOST_FILES = 50_000, 2000
"""The most entries of the folder, and files of one user: on some hubs all are the same user."""
MOST_READ, MOST_CHECKS = 32 << 10, 300
"""The most bytes that are read at the end of a learner's file, and lines of these bytes."""
LONGEST_NAME = 40
MOST_NAMED = 10
"""Learners who are named as in need of help, and files that do not count."""
SECONDS = 2.0
"""Seconds from one look into the folder to the next."""
AHEAD = 60
"""Seconds by which a learner's clock may be ahead."""


@dataclass(frozen=True)
class Check:
    """One check of one learner."""

    time: float
    exercise: str
    passed: bool
    attempt: int


Checks = dict[str, dict[str, list[Check]]]
"""By learner, then by exercise, in the order in which they were noted."""


def show(chapter: str, *, minutes: float, once: bool = False) -> None:
    """Print the view of a chapter; unless `once`, draw it again and again until Ctrl-C.

    Raises CourseError if the setting is empty, or its folder cannot be read.
    """
    folder = settings().watch_folder
    if not folder:
        raise CourseError(
            "Checks are not shown: name a folder as watch_folder in course/settings.toml, and give "
            "that setting to the learners (docs/instructors.md, Watch a class)."
        )

    def drawn() -> Group:
        return view(chapter, *read(Path(folder), chapter), minutes=minutes)

    if once:
        Console().print(drawn())
        return
    with suppress(KeyboardInterrupt), Live(drawn(), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(SECONDS)
            live.update(drawn(), refresh=True)


def read(folder: Path, chapter: str) -> tuple[Checks, list[str]]:
    """What learners' checks have noted of a chapter, and a sentence for each file that is left out.

    Raises CourseError if the folder cannot be read.
    """
    known, latest = exercise.load(chapter), time.time() + AHEAD
    checks: Checks = {}
    names, left_out = _names(folder)
    for name in names:
        learner = name.removesuffix(SUFFIX) if name.endswith(SUFFIX) else ""
        try:
            lines = _end(folder / name, learner).splitlines()[-MOST_CHECKS:]
        except (OSError, Refused) as problem:
            left_out.append(f"{name[:LONGEST_NAME]!a}: {problem}")
            continue
        for check in map(_check, lines):
            if check is not None and check.exercise in known and 0 < check.time < latest:
                checks.setdefault(learner, {}).setdefault(check.exercise, []).append(check)
    return checks, left_out


def _names(folder: Path) -> tuple[list[str], list[str]]:
    """The names of the files that are read, and a sentence about each user who has too many."""
    owners: Counter[int] = Counter()
    names = []
    try:
        with os.scandir(folder) as entries:
            for entry in itertools.islice(entries, MOST_ENTRIES):
                with suppress(FileNotFoundError):  # it has gone meanwhile
                    owner = entry.stat(follow_symlinks=False).st_uid
                    owners[owner] += 1
                    if owners[owner] <= MOST_FILES:
                        names.append(entry.name)
    except OSError as problem:
        raise CourseError(f"{folder} cannot be read ({problem.strerror}).") from None
    left_out = [
        f"{intake.account(owner)} has {count} files, of which {MOST_FILES} are read."
        for owner, count in owners.items()
        if count > MOST_FILES
    ]
    if owners.total() >= MOST_ENTRIES:
        left_out.append(f"There are {MOST_ENTRIES} files or more; the rest is not read.")
    return sorted(names), left_out


def _end(file: Path, learner: str) -> bytes:
    """The end of a learner's file. Raises Refused for what is not theirs, or no file."""
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise Refused("It is no file.")
        owner = intake.account(status.st_uid)
        if status.st_uid != os.getuid() and owner != learner:
            raise Refused(f"It belongs to {owner}.")
        if not (learner and learner.isprintable() and len(learner) <= LONGEST_NAME):
            raise Refused("Its name is no learner's.")
        return os.pread(opened, MOST_READ, max(status.st_size - MOST_READ, 0))
    finally:
        os.close(opened)


def _check(line: bytes) -> Check | None:
    """What a line says; None for one that no check has written, and for a part of one."""
    try:
        values = json.loads(line)
        moment, attempt = float(values["time"]), int(values["attempt"])
        return Check(moment, str(values["exercise"]), values["passed"] is True, attempt)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def view(chapter: str, checks: Checks, left_out: list[str], *, minutes: float) -> Group:
    """A table of the exercises, one of the learners who need help, and what was left out."""
    parts = [Text(f"{chapter}, {time.strftime('%H:%M:%S')}, learners: {len(checks)}")]
    parts += [Text(f"Left out: {sentence}") for sentence in left_out[:MOST_NAMED]]
    if len(left_out) > MOST_NAMED:
        parts.append(Text(f"Left out: {len(left_out) - MOST_NAMED} more."))
    return Group(*parts, _exercises(chapter, checks), _need_help(checks, minutes))


def _exercises(chapter: str, checks: Checks) -> Table:
    """For each exercise how many have tried it, passed it, and are stuck."""
    attempts = settings().solution_after_attempts
    table = Table("Exercise", "tried", "passed", f"stuck ({attempts} attempts or more)")
    for id in exercise.load(chapter):
        tried = [tried_by[id] for tried_by in checks.values() if id in tried_by]
        open_ones = [tried_checks for tried_checks in tried if _is_open(tried_checks)]
        stuck = sum(tried_checks[-1].attempt >= attempts for tried_checks in open_ones)
        table.add_row(id, str(len(tried)), str(len(tried) - len(open_ones)), str(stuck))
    return table


def _is_open(tried: list[Check]) -> bool:
    return not any(check.passed for check in tried)


def _need_help(checks: Checks, minutes: float) -> Table:
    """Who checked an exercise most often of late without passing it."""
    now = time.time()
    rows = []
    for learner, exercises in checks.items():
        for id, tried in exercises.items():
            count = sum(check.time > now - minutes * 60 for check in tried)
            if count and _is_open(tried):
                rows.append((-count, learner, id, f"{max(now - tried[-1].time, 0) / 60:.0f}"))
    table = Table("Needs help", "exercise", f"checks in {minutes:g} minutes", "minutes since")
    for count, learner, id, ago in sorted(rows)[:MOST_NAMED]:
        table.add_row(Text(learner), id, str(-count), ago)
    return table
