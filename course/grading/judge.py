"""Grades one submission: its cells run in a sandbox, each check is decided here.

`grade` is the way of a submission from its bytes to its result. The instructor's checks look at
what came out of the learner's process, by the same code as in the notebook.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from course.grading import asserts, clean
from course.grading.cells import CellRunner, Check
from course.grading.intake import Submission
from course.grading.remote import Caller, run_case
from course.grading.result import Graded, Result
from course.grading.session import Died, MachineFault, Session, Warm, needs_memory
from course.notebook import answer, exercise, history, matching
from course.notebook.check import judge as check_with
from course.notebook.check import nothing_to_check, with_note
from course.notebook.exercise import Exercise
from course.notebook.matching import Refused, Source
from course.notebook.report import Report
from course.notebook.runner import Budget
from course.sandbox.profiles import versions
from course.sandbox.wire import WireError
from course.shared.settings import settings

PAGE_SECONDS = 5.0
"""Of the time of a submission: kept for the page, and for the end of what is under way before."""
STALL_LIMIT_S = 4.0
"""Seconds of one submission in which this process neither worked nor waited for the learner's."""


def seed_of(secret: bytes, submission: Submission) -> str:
    """The seed of a grade: a regrade draws the same numbers, another submission draws others."""
    variants = filter(None, [settings().variants])  # other numbers may give other points
    text = "\n".join([submission.learner, submission.chapter, submission.digest, *variants])
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def grade(warm: Warm, source: Source, submission: Submission, seed: str) -> Result:
    """The result of one submission; never raises for what a learner handed in.

    Its status is "ungraded" where this machine is to blame.
    """
    begun, busy_before = time.perf_counter(), _busy(warm)
    deadline = time.monotonic() + warm.limits.seconds - PAGE_SECONDS
    try:
        repaired = matching.repair(submission.notebook(), source)
        definitions = exercise.load_for(submission.learner, source.chapter)
        runner = CellRunner(warm, source, repaired.cells, definitions, deadline)
        with closing(runner.checks()) as checks:
            graded = tuple(_graded(runner, check, seed) for check in checks)
        warm.check_room()
        stalled = time.perf_counter() - begun - (_busy(warm) - busy_before)
        if stalled > STALL_LIMIT_S and runner.is_cut_short:
            raise MachineFault(_STOOD_STILL)
        result = Result(
            **_common(source, submission, seed),
            profile=warm.profile,
            exercises=graded,
            repaired=(*submission.repaired, *repaired.notes),
            troubles=tuple(runner.troubles),
            cells=clean.kept_cells(runner.cells),
            timings={"total": time.perf_counter() - begun, "cpu": runner.cpu},
        )
    except Refused as refusal:
        result = replace(refused(source, submission, seed, str(refusal)), profile=warm.profile)
    except (MachineFault, OSError) as fault:
        warm.stop()  # a process that is started again may work
        result = ungraded(source, submission, seed, str(fault))
    return result


_STOOD_STILL = (
    "Grading stood still (Ctrl-Z, a machine that slept, or too much else on it), while a learner's "
    f"time went on, for more than {STALL_LIMIT_S:g} seconds"
)


def _busy(warm: Warm) -> float:
    """Seconds so far in which this process worked, or waited for a learner's."""
    return time.process_time() + warm.waited


def ungraded(source: Source, submission: Submission, seed: str, sentence: str) -> Result:
    """The result where this machine is to blame: it gives no points and takes none."""
    return Result(**_common(source, submission, seed), status="ungraded", sentence=sentence)


def refused(source: Source, submission: Submission, seed: str, sentence: str) -> Result:
    """The result of a submission that is not graded: no points, and why."""
    known = exercise.load(source.chapter)
    checks = [Check(cell, known) for cell in source.released["cells"] if matching.is_check(cell)]
    return Result(
        **_common(source, submission, seed),
        status="refused",
        sentence=sentence,
        repaired=submission.repaired,
        exercises=tuple(
            Graded(check.name, check.without_points("missing", "Nothing was graded."))
            for check in checks
        ),
    )


def _common(source: Source, submission: Submission, seed: str) -> dict[str, Any]:
    return {
        "learner": submission.learner,
        "chapter": submission.chapter,
        "submission": submission.digest,
        "source": source.digest,
        "timestamp": submission.timestamp,
        "seed": seed,
        "versions": versions(),
    }


def _graded(runner: CellRunner, check: Check, seed: str) -> Graded:
    """What one check came to, in the process in which the cells above it ran.

    Where that process ended, or the cells had replaced a name of the library, the answer is checked
    once more after the exercise's own cells alone, and the better report counts: another cell may
    be to blame, but the exercise may need another cell as well.
    """
    report, death = _checked(runner, check, seed)
    if death:
        runner.note_trouble(check.cell, death)
    if report.status == "unfit" and check.exercise is not None and check.exercise.learner:
        runner.note_trouble(check.cell, report.message)  # it has the numbers of another learner
    overwritten = runner.overwritten if report.earned < report.possible and not death else []
    if (death or overwritten) and not runner.is_alone:
        again, second_death = _checked(runner, check, seed, alone=True)
        if death:
            runner.restart(check.position)
        if not second_death and _worth(again) > _worth(report):
            report = again
            if overwritten:
                names = " and ".join(f"`{name}`" for name in overwritten)
                sentence = f"It was checked without the cells that overwrite {names}."
                runner.note_trouble(check.cell, sentence)
    return Graded(check.name, report, check.exercise.witness if check.exercise else "checker")


def _worth(report: Report) -> tuple[float, int]:
    return report.earned, sum(row.status == "passed" for row in report.rows)


def _checked(
    runner: CellRunner, check: Check, seed: str, *, alone: bool = False
) -> tuple[Report, str]:
    """The report of one check, and why the learner's process ended in it; "" if it did not.

    alone: after the exercise's own cells alone.
    """
    with runner.session_for(check.position, alone=alone) as session:
        if session is not None:
            report = _report(runner, session, check, seed)
            return report, session.death
    reason = "The cells that this exercise needs did not run."
    if runner.is_over:
        reason = "The time for the whole notebook was over before this check."
    return check.without_points("stopped", reason), ""


def _report(runner: CellRunner, session: Session, check: Check, seed: str) -> Report:
    """The report of one check; whatever the answer does, the other exercises are checked."""
    seconds = runner.warm.limits.check_seconds
    try:
        if check.exercise is not None:
            return check_exercise(session, check.exercise, runner.runs, seed, seconds)
        caller = Caller(session, budget=Budget(seconds))
        source = runner.solved.get(check.cell["id"], check.cell)["source"]
        return asserts.judge(caller, source, check.name, check.points, runner.solved.values())
    except OSError:
        raise  # an error of this process: what an answer raises does not come here
    except (Died, WireError) as problem:  # while the answer was looked up
        reason = str(problem)
    except MemoryError:
        reason = "What it returned fills the memory that a check has."
    except Exception as problem:  # an error in the definition: `check` says the same of it
        reason = f"The answer could not be checked ({type(problem).__name__})."
    session.end_because(reason)
    needs_memory()  # what was returned is gone: its memory must be free again
    return check.without_points("stopped", reason)


def check_exercise(
    session: Session, exercise: Exercise, runs: list[history.Run], seed: str, seconds: float
) -> Report:
    """The report on one exercise, found and decided as `check` does in the notebook.

    runs: what ran in the session. Raises Died or WireError if it had ended before.
    """
    probes = type(exercise).run is not Exercise.run
    caller = Caller(session, exercise.without, probes, Budget(seconds))
    looked = caller.look(exercise.name, answer.library_names(runs))
    # names that no longer mean a function or a module: of their values `answer.find` asks only
    # whether they can be called, so None stands for each
    namespace: dict[str, Any] = dict.fromkeys(looked.overwritten)
    if looked.exists:
        namespace[exercise.name] = looked.value
    found = answer.find(exercise, namespace, runs, lambda _: looked.source)
    if found.state != "ready":
        report = nothing_to_check(exercise, found)
    else:
        run = partial(run_case, caller)
        report = check_with(
            exercise, found.value, seed=seed, seconds=seconds, run=run, source=found.source
        )
    return with_note(report, found)
