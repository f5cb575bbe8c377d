"""Grades one submission: its cells run in a sandbox, each check is decided here.

`grade` is the way of a submission from its bytes to its result. The instructor's checks look at
what came out of the learner's process, by the same code as in the notebook.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from course.grading import asserts, clean
from course.grading.cells import CellRunner
from course.grading.intake import Submission
from course.grading.remote import Caller, run_case
from course.grading.result import Graded, Result
from course.grading.session import Died, MachineFault, Session, Warm, needs_memory
from course.notebook import answer, exercise, history, matching
from course.notebook.check import judge as check_with
from course.notebook.check import nothing_to_check, with_note
from course.notebook.exercise import Case, Exercise
from course.notebook.matching import Cell, Refused, Source
from course.notebook.report import Report
from course.notebook.runner import Budget, Outcome
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
    begun = time.perf_counter()
    deadline = time.monotonic() + warm.limits.seconds - PAGE_SECONDS
    busy_before = _busy(warm)
    try:
        repaired = matching.repair(submission.notebook(), source)
    except Refused as refusal:
        return replace(refused(source, submission, seed, str(refusal)), profile=warm.profile)
    definitions = exercise.load_for(submission.learner, source.chapter)
    answers = {definition.name for definition in definitions.values()}
    runner = CellRunner(warm, source, repaired.cells, answers, deadline)
    judge = Judge(runner, definitions, seed)
    try:
        graded = tuple(judge.graded())
        warm.check_room()
    except (MachineFault, OSError) as fault:
        warm.stop()  # a process that is started again may work
        return ungraded(source, submission, seed, str(fault))
    is_cut_short = judge.is_late or runner.is_over or runner.troubles
    stalled = time.perf_counter() - begun - (_busy(warm) - busy_before)
    if stalled > STALL_LIMIT_S and is_cut_short:
        return ungraded(source, submission, seed, _STOOD_STILL)
    return Result(
        **_common(source, submission, seed),
        profile=warm.profile,
        exercises=graded,
        repaired=(*submission.repaired, *repaired.notes),
        troubles=tuple(runner.troubles),
        cells=clean.kept_cells(runner.cells),
        timings={"total": time.perf_counter() - begun, "cpu": runner.cpu},
    )


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
    return Result(
        **_common(source, submission, seed),
        status="refused",
        sentence=sentence,
        repaired=submission.repaired,
        exercises=tuple(_without_points(source)),
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


def _without_points(source: Source) -> Iterator[Graded]:
    """No points for every check of a notebook that cannot be graded."""
    known = exercise.load(source.chapter)
    for cell in filter(matching.is_check, source.released["cells"]):
        definition = known.get(matching.checked_exercise(cell) or "")
        report = _no_points(cell, definition, "missing", "Nothing was graded.")
        yield Graded(str(matching.grade_id(cell)), report)


def _no_points(cell: Cell, definition: Exercise | None, status: str, text: str) -> Report:
    """The report of a check that did not run, or not to its end."""
    name = str(matching.grade_id(cell))
    id, title = (definition.id, definition.title) if definition else (name, name)
    return Report(id, title, status, _points(cell), message=text)


class Judge:
    """Decides at each check of one notebook."""

    def __init__(self, runner: CellRunner, definitions: Mapping[str, Exercise], seed: str) -> None:
        self.runner, self.definitions, self.seed = runner, definitions, seed
        self.is_late = False
        """Whether a check took as long as its time limit: then cases may not have run."""

    def graded(self) -> Iterator[Graded]:
        """Run the notebook from top to bottom; what each check came to."""
        with closing(self.runner.checks()) as checks:
            for position, cell in checks:
                definition = self.definitions.get(matching.checked_exercise(cell) or "")
                begun = time.monotonic()
                report = self._report(position, cell, definition)
                self.is_late |= time.monotonic() - begun >= self.runner.warm.limits.check_seconds
                witness = definition.witness if definition else "checker"
                yield Graded(str(matching.grade_id(cell)), report, witness)

    def _report(self, position: int, cell: Cell, definition: Exercise | None) -> Report:
        runner = self.runner
        was_alone = runner.is_alone
        checked = self._checked(position, cell, definition)
        if checked is None:
            text = "The cells that this exercise needs did not run."
            if runner.is_over:
                text = "The time for the whole notebook was over before this check."
            return _no_points(cell, definition, "stopped", text)
        report, death = checked
        if death is not None:
            runner.note_trouble(cell, death)
        if report.status == "unfit" and definition is not None and definition.learner:
            runner.note_trouble(cell, report.message)  # the numbers of another learner or login
        names = self._overwritten() if not death and report.earned < report.possible else []
        if was_alone or not (death or names):
            return report
        # Once more with the exercise's own cells alone: another cell may have started what ended
        # the process. The better report counts, because the exercise may need another cell.
        runs = runner.runs
        again = self._checked(position, cell, definition, alone=True)
        is_better = again is not None and again[1] is None and _worth(again[0]) > _worth(report)
        if death is not None:
            runner.restart(position)
        else:
            runner.runs = runs  # of the session that goes on
            if is_better:
                words = " and ".join(f"`{name}`" for name in names)
                sentence = f"It was checked without the cells that overwrite {words}."
                runner.note_trouble(cell, sentence)
        return again[0] if again is not None and is_better else report

    def _overwritten(self) -> list[str]:
        """Names of the library and of Python to which a cell before this check gave a value."""
        defined = {name for run in self.runner.runs if "=" in run.source for name in run.defines()}
        return sorted(defined & answer.LIBRARY)

    def _checked(
        self, position: int, cell: Cell, definition: Exercise | None, *, alone: bool = False
    ) -> tuple[Report, str | None] | None:
        """The report of one check, and how the session ended in it, if it did.

        alone: with its own cells alone. None where the cells that it needs did not run.
        """
        if self.runner.is_over:
            return None
        with self.runner.session_for(position, alone=alone) as session:
            if session is None:
                return None
            seconds = self.runner.warm.limits.check_seconds
            try:
                if definition is not None:
                    return check_exercise(session, definition, self.runner.runs, self.seed, seconds)
                report = self._checked_by_asserts(Caller(session, budget=Budget(seconds)), cell)
                return report, report.message if session.is_over else None
            except OSError:
                raise  # an error of this process: those of an answer are caught before
            except (Died, WireError) as problem:  # before the first case
                text = str(problem)
            except MemoryError:
                text = "What it returned fills the memory that a check has."
            except Exception as problem:  # as in the notebook; the other exercises are checked
                text = f"The answer could not be checked ({type(problem).__name__})."
            session.end()
            needs_memory()  # now that what was returned is gone
            return _no_points(cell, definition, "stopped", text), text

    def _checked_by_asserts(self, caller: Caller, cell: Cell) -> Report:
        """A plain check of the instructor's own."""
        solved = self.runner.source.solved["cells"]
        solved_check = next((check for check in solved if check["id"] == cell["id"]), cell)
        name = str(matching.grade_id(cell))
        return asserts.judge(caller, solved_check["source"], name, _points(cell), solved)


def check_exercise(
    session: Session, exercise: Exercise, runs: list[history.Run], seed: str, seconds: float
) -> tuple[Report, str | None]:
    """The report on one exercise, found and decided as `check` does in the notebook.

    runs: what ran in the session. With it: how the session ended meanwhile, if it did.
    Raises Died or WireError if it had ended before.
    """
    probes = type(exercise).run is not Exercise.run
    caller = Caller(session, exercise.without, probes, Budget(seconds))
    death: str | None = None

    def run(
        exercise: Exercise, value: Any, given: Case, untouched: Case, budget: Budget
    ) -> Outcome:
        nonlocal death
        if death is not None:
            return Outcome("not run")
        try:
            return run_case(caller, exercise, value, given, untouched, budget)
        except (Died, WireError) as problem:
            death = str(problem)
            return Outcome("raised", error=Ended(), message=(death, ""))

    looked = caller.look(exercise.name, answer.library_names(runs))
    namespace: dict[str, Any] = dict.fromkeys(looked.overwritten)  # None cannot be called either
    if looked.exists:
        namespace[exercise.name] = looked.value
    found_answer = answer.find(exercise, namespace, runs, lambda _: looked.source)
    if found_answer.state != "ready":
        report = nothing_to_check(exercise, found_answer)
    else:
        report = check_with(
            exercise, looked.value, seed=seed, seconds=seconds, run=run, source=found_answer.source
        )
    return with_note(report, found_answer), death


class Ended(Exception):
    """Stands in a report where the learner's process was gone."""


def _worth(report: Report) -> tuple[float, int]:
    return report.earned, sum(row.status == "passed" for row in report.rows)


def _points(cell: Cell) -> float:
    return float(cell["metadata"]["nbgrader"].get("points", 0))
