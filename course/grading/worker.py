"""The program of one worker: takes submissions from standard input, answers with results.

It is a checker: it runs no learner's code, and holds neither the gradebook nor the secret of the
course. Its standard input is a connection of `multiprocessing`, on which objects cross:

    in    the source of the chapter, profile, limits, number of the worker, its core or None
    in    a submission and its seed
    out   the result with the autograded notebook, or the CourseError for which it ends
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import sys
from dataclasses import replace
from multiprocessing.connection import Connection

from course.grading import judge, writer
from course.grading.intake import Submission
from course.grading.result import Result
from course.grading.session import MEMORY, MachineFault, Warm, needs_memory
from course.notebook.matching import Source
from course.shared.errors import CourseError


def main() -> None:
    """Grade submissions until the batch closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the batch, which ends this
    connection = Connection(os.dup(0))
    try:
        source, profile, limits, number, core = connection.recv()
        if core is not None:
            _pin_to_core(core)
        with Warm(profile, limits, number=number) as warm:
            _, limit = resource.getrlimit(resource.RLIMIT_DATA)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, limit))
            gc.freeze()  # the collector leaves out what was imported
            while True:
                submission, seed = connection.recv()
                connection.send(_graded(warm, source, submission, seed))
    except (EOFError, MachineFault, MemoryError):  # the batch is done, or finds that this has ended
        pass
    except (CourseError, OSError) as problem:  # a full disk, no open files left
        with contextlib.suppress(OSError):
            connection.send(CourseError(str(problem)))
        sys.exit(1)


def _graded(warm: Warm, source: Source, submission: Submission, seed: str) -> Result:
    """The result of one submission, with its page, within the memory that one has."""
    needs_memory()  # what the submission before left is gone then
    sentence = "Reading it takes more memory than a submission has."
    result = judge.refused(source, submission, seed, sentence)
    try:
        result = judge.grade(warm, source, submission, seed)
    except MemoryError:
        warm.stop()  # the error may have come within a message
    needs_memory()  # else this worker ends, and another one tries the submission
    try:
        return replace(result, page=writer.autograded(result, source))
    except Exception as problem:  # with no memory left, an import may raise any
        sentence = f"Its page cannot be made ({type(problem).__name__})"
    return judge.ungraded(source, submission, seed, sentence)


def _pin_to_core(core: int) -> None:
    """Keep this worker, and the learners' processes that it starts, on one core.

    They take turns; across two cores each turn would wait until the other one has woken up.
    """
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


if __name__ == "__main__":
    main()
