"""The program of one worker: takes submissions from standard input, answers with results.

It is a checker: it runs no learner's code, and holds neither the gradebook nor the secret of the
course. Messages are those of `wire`, over the socket that is its standard input:

    in   begin   {number, profile, limits, core} and the source of the chapter
    in   grade   {learner, chapter, timestamp, repaired, seed} and the notebook
    out          the timings, and as JSON the result and the autograded notebook
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from dataclasses import asdict

from course.grading import judge, writer
from course.grading.intake import Submission
from course.grading.result import Result
from course.grading.session import Warm
from course.notebook.matching import Source
from course.sandbox.profiles import Limits
from course.sandbox.wire import Closed, Wire
from course.shared.errors import CourseError

MEMORY = 600 << 20
"""Bytes of this process: of what was imported, and of what reading one submission takes."""


def main() -> None:
    """Until the other side hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who pressed it means the batch, which ends this
    wire = Wire(os.dup(0))
    try:
        begun, (text,) = wire.receive()
        source = Source.from_json(text.tobytes().decode())
        limits = Limits(**begun["limits"])
        if begun["core"] is not None:
            _stay(begun["core"])
        with Warm(begun["profile"], limits, number=begun["number"]) as warm:
            wire.send({"ready": True}, [])
            _, most = resource.getrlimit(resource.RLIMIT_DATA)  # `settle` takes it back
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, most))
            gc.freeze()  # nothing of what was imported is looked through again
            while True:
                message, (content,) = wire.receive()
                message["repaired"] = tuple(message["repaired"])
                seed = message.pop("seed")
                submission = Submission(content=content.tobytes(), **message)
                result = _graded(warm, source, submission, seed)
                texts = result.to_json(), writer.autograded(result, source)
                wire.send(dict(result.timings), [text.encode() for text in texts])
    except Closed:
        pass
    except (CourseError, OSError) as problem:  # a full disk, no open files left
        wire.send({"problem": str(problem)}, [])
        sys.exit(1)


def _graded(warm: Warm, source: Source, submission: Submission, seed: str) -> Result:
    """The result of one submission, within the memory that one has."""
    try:
        return judge.grade(warm, source, submission, seed)
    except MemoryError:
        warm.stop()  # it may stand within a message
        sentence = "Reading it takes more memory than a submission has."
        return judge.refused(source, submission, seed, sentence)


def _stay(core: int) -> None:
    """Keep this worker, and the learners' processes that it starts, on one core.

    They take turns; across two cores each turn would wait until the other one has woken up.
    """
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def begin(number: int, profile: str, limits: Limits, core: int | None) -> dict[str, object]:
    """The first message. core: where to stay; None where others choose what runs beside it."""
    return {"number": number, "profile": profile, "limits": asdict(limits), "core": core}


if __name__ == "__main__":
    main()
