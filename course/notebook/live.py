"""What a check tells the instructor's live view (`course watch`); nothing while that is off.

Each check adds one line of JSON to the learner's own file in the folder that the setting
`watch_folder` names: exercise, attempt, whether it passes, time; neither code nor answers. A folder
that is slow, full, closed or gone costs no check more than `SECONDS`, and no points.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from pathlib import Path

from course.notebook import record
from course.notebook.exercise import Exercise
from course.notebook.report import Report
from course.shared import identity
from course.shared.settings import settings

SECONDS = 0.5
"""How long a check waits for the folder."""
MOST_BYTES = 1 << 20
"""The most bytes of a learner's file, enough for thousands of checks."""
SUFFIX = ".jsonl"

_writers: list[threading.Thread] = []
"""The thread that writes, or that still waits for a folder that does not answer."""
_complained: list[str] = []


def note(exercise: Exercise, report: Report) -> str:
    """Note one check, and give the sentence that tells its learner so.

    Empty where nothing is noted; once, where it cannot be noted, the sentence that says why.
    """
    folder = settings().watch_folder
    if not folder or not record.is_learners():
        return ""
    passed, attempt = report.status == "passed", record.attempts(exercise)
    values = {"time": int(time.time()), "exercise": exercise.id, "passed": passed}
    line = json.dumps({**values, "attempt": attempt})
    problem = _written(Path(folder), f"{line}\n".encode())
    if not problem:
        return (
            f"Your results of checks are shown to your instructor, in {folder}: exercise, attempt, "
            "whether it passes, time. Your code and your answers are not."
        )
    if _complained:
        return ""
    _complained.append(problem)
    return f"Your instructor's live view does not get your checks ({problem}). It costs no points."


def _written(folder: Path, line: bytes) -> str:
    """Why the line could not be written in time; empty if it is written."""
    if any(writer.is_alive() for writer in _writers):
        return f"{folder} does not answer"
    problems: list[str] = []
    # an operating system waits for a network's disk without end, and no signal ends that
    writer = threading.Thread(target=_append, args=(folder, line, problems), daemon=True)
    _writers[:] = [writer]
    writer.start()
    writer.join(SECONDS)
    return f"{folder} does not answer" if writer.is_alive() else "".join(problems)


def _append(folder: Path, line: bytes, problems: list[str]) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for name in ("O_NOFOLLOW", "O_NONBLOCK"):  # Windows has neither
        flags |= getattr(os, name, 0)
    file = folder / f"{identity.learner()}{SUFFIX}"
    try:
        opened = os.open(file, flags, 0o640)
        try:
            status = os.fstat(opened)
            is_own = status.st_uid == getattr(os, "getuid", lambda: status.st_uid)()
            if not (stat.S_ISREG(status.st_mode) and is_own and status.st_size < MOST_BYTES):
                problems.append(f"{file} is full, or no file of yours")
            else:
                if hasattr(os, "fchmod"):  # whatever a learner's umask says, its group may read it
                    os.fchmod(opened, 0o640)
                os.write(opened, line)
        finally:
            os.close(opened)
    except OSError as problem:
        problems.append(f"{file}: {problem.strerror}")
