"""Plays a notebook against a sandboxed session, and decides at each check.

The cells run over there, in order; here the instructor's checks look at what came out, by the same
code as in the notebook. A cell that loops or ends its process costs what it defines and no more:
the session is started again without it, three times; after that each exercise left is graded alone.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from course.grading import asserts
from course.grading.intake import Submission
from course.grading.remote import Caller, run_case
from course.grading.result import Graded, Result
from course.grading.session import Died, MachineFault, Session, Warm
from course.notebook import answer, exercise, history, matching
from course.notebook.check import RunCase, nothing_to_check, with_note
from course.notebook.check import judge as check_with
from course.notebook.exercise import Case, Exercise
from course.notebook.matching import Cell, Refused, Source
from course.notebook.report import Report
from course.notebook.runner import Budget, Outcome
from course.sandbox.profiles import versions
from course.sandbox.wire import Message, WireError
from course.shared.errors import CourseError

MOST_RESTARTS = 3
MOST_SHOWN = 16 << 20
"""Characters of all outputs of one submission, as JSON; the learner's side has limits of its own,
which code that changes that side can lift."""
MOST_OUTPUTS = 1000
"""Outputs of one submission; the same holds for these."""
MOST_TOLD = 50
"""Sentences about the cells of one submission."""
MOST_ASKED = 1 << 20
"""Characters of the cells in one request, unless it is one cell."""


def seed_of(secret: bytes, submission: Submission) -> str:
    """The seed of a grade: a regrade draws the same numbers, another submission draws others."""
    text = "\n".join([submission.learner, submission.chapter, submission.digest])
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def grade(warm: Warm, source: Source, submission: Submission, seed: str) -> Result:
    """The result of one submission; never raises for what a learner handed in.

    Where this machine is to blame that it cannot be graded its status is "ungraded".
    """
    begun = time.perf_counter()
    try:
        repaired = matching.repair(submission.content, source)
    except Refused as refusal:
        return replace(refused(source, submission, seed, str(refusal)), profile=warm.profile)
    read = time.perf_counter()
    play = Play(warm, source, repaired.cells, seed)
    try:
        play.run()
    except (MachineFault, OSError) as fault:
        warm.stop()  # what is wrong with it may be gone when it is started again
        return ungraded(source, submission, seed, str(fault))
    return Result(
        **_common(source, submission, seed),
        profile=warm.profile,
        exercises=tuple(play.graded),
        repaired=(*submission.repaired, *repaired.notes),
        troubles=tuple(play.troubles),
        notebook={
            "cells": play.cells,
            "metadata": source.released["metadata"],
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        timings={
            "intake": read - begun,
            "cells": play.seconds["cells"],
            "cpu": play.seconds["cpu"],
            "checks": play.seconds["checks"],
            "total": time.perf_counter() - begun,
        },
    )


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
        exercises=tuple(_ungraded(source)),
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


def _ungraded(source: Source) -> list[Graded]:
    """No points for every check of a notebook that cannot be graded."""
    known = exercise.load(source.chapter)
    found = []
    for cell in source.released["cells"]:
        if matching.is_check(cell):
            it = _exercise_of(cell, known)
            title = it.title if it else str(matching.grade_id(cell))
            id = it.id if it else str(matching.grade_id(cell))
            report = Report(id, title, "missing", _points(cell), message="Nothing was graded.")
            found.append(Graded(str(matching.grade_id(cell)), report))
    return found


class Play:
    """One notebook, played from top to bottom."""

    def __init__(self, warm: Warm, source: Source, cells: list[Cell], seed: str) -> None:
        self.warm, self.source, self.seed, self.cells = warm, source, seed, cells
        self.graded: list[Graded] = []
        self.troubles: list[str] = []
        self.seconds = {"cells": 0.0, "cpu": 0.0, "checks": 0.0}
        self._exercises = exercise.load(source.chapter)
        self._names = {it.name for it in self._exercises.values()}
        self._left, self._left_outputs = MOST_SHOWN, MOST_OUTPUTS
        self._solved = {it["id"]: it for it in source.solved["cells"]}
        self._deadline = time.monotonic() + warm.limits.seconds
        self._dead: set[str] = set()
        self._restarts = 0
        self._session: Session | None = None
        self._runs: list[history.Run] = []

    def run(self) -> None:
        """Run every cell and grade every check."""
        try:
            waiting: list[int] = []  # cells that are run together, before the next check
            for position, cell in enumerate(self.cells):
                if matching.is_check(cell):
                    self._run_cells(waiting)
                    waiting.clear()
                    self._check(position, cell)
                elif cell["cell_type"] == "code":
                    cell["outputs"] = []
                    if self._is_unchanged_show(cell):
                        cell["outputs"] = self._solved[cell["id"]]["outputs"]
                    else:
                        waiting.append(position)
                        if cell["id"] == self.source.setup:
                            self._run_cells(waiting)
                            waiting.clear()
                            self._mend_setup(position)
            self._run_cells(waiting)
        finally:
            if self._session is not None:
                self._session.end()

    @property
    def _is_alone(self) -> bool:
        return self._restarts > MOST_RESTARTS

    @property
    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _is_unchanged_show(self, cell: Cell) -> bool:
        """A picture or demo as it was released: its outputs are known."""
        ours = self.source.by_id.get(cell["id"])
        shows = "show" in cell["metadata"].get("tags", [])
        return shows and ours is not None and ours["source"] == cell["source"]

    # cells

    def _fresh(self) -> Session:
        """A new session with the chapter's data beside it."""
        session = self.warm.fork()
        self._runs = []
        files = self.source.files
        if files:
            session.ask({"do": "files", "files": list(files)}, list(files.values()), seconds=10.0)
        session.deadline = self._deadline  # from here on: nothing of the learner's ran before
        return session

    def _run_cells(self, positions: Sequence[int]) -> None:
        """Run these cells; one that ends the process is dead, those after it run all the same."""
        left = list(positions)
        while left and not self._is_alone:
            if self._is_over:  # these are not to blame for that
                self._tell(
                    "The time for the whole notebook was over; cells after that did not run."
                )
                return
            try:
                if self._session is None:
                    self._session = self._fresh()
                for reply in self._ask_to_run(self._session, [self.cells[it] for it in left]):
                    self.cells[left.pop(0)]["outputs"] = self._outputs(reply)
            except Died as death:
                position = left.pop(0)
                self._buried(self.cells[position], death.sentence)
                self._again(position)

    def _mend_setup(self, position: int) -> None:
        """Where the learner's imports did not run, those that were released come next.

        Every other cell needs them: one slip there would cost all of the chapter.
        """
        cell, ours = self.cells[position], self.source.by_id[self.cells[position]["id"]]
        ran = next((it for it in reversed(self._runs) if it.cell_id == cell["id"]), None)
        if cell["source"] == ours["source"] or (ran is not None and ran.error is None):
            return
        why = f" ({ran.error}: {ran.message})" if ran is not None and ran.message else ""
        self._trouble(cell, f"It did not run{why}; the imports are those that were released.")
        released = {**ours, "id": f"{ours['id']}-released", "outputs": []}
        self.cells.insert(position + 1, released)  # `run` comes to it next

    def _ask_to_run(self, session: Session, cells: Sequence[Cell]) -> Iterator[Message]:
        """Run cells one after another; what each came to is noted as it comes."""
        limit = self.warm.limits.cell_seconds
        begun = time.perf_counter()
        try:
            for some in _in_requests(cells):
                sources = [it["source"] for it in some]
                message = {"do": "cells", "sources": sources, "seconds": limit}
                replies = session.ask_each(message, [limit] * len(some))
                for cell, (reply, _) in zip(some, replies, strict=True):
                    self._noted(cell, reply, limit)
                    yield reply
        finally:
            self.seconds["cells"] += time.perf_counter() - begun

    def _outputs(self, reply: Message) -> list[Any]:
        """What a cell showed, as far as it has the shape of outputs; `clean` makes it harmless."""
        outputs = reply.get("outputs")
        if not isinstance(outputs, list):
            return []
        self._left_outputs -= len(outputs)
        is_much = self._left_outputs < 0
        outputs = [] if is_much else [_flat(it) for it in outputs if isinstance(it, dict)]
        size = len(json.dumps(outputs)) if outputs else 0
        if is_much or size > self._left:
            text = "[What this cell showed is left out: all outputs together are too large.]\n"
            return [{"output_type": "stream", "name": "stdout", "text": text}]
        self._left -= size
        return outputs

    def _noted(self, cell: Cell, reply: Message, limit: float) -> None:
        cpu = reply.get("cpu")
        self.seconds["cpu"] += cpu if type(cpu) is float and 0 <= cpu < limit + 1 else 0.0
        if reply.get("stopped") is True:
            sentence = f"It did not end within {limit:g} seconds and was stopped."
            self._trouble(cell, sentence)
            self._note(cell, "TimeLimit", sentence)
        else:
            bound = reply.get("bound")
            names = [it for it in bound[:1000] if type(it) is str] if type(bound) is list else []
            said = reply.get("error"), reply.get("message"), reply.get("source")
            error, told, text = (it if type(it) is str else None for it in said)
            self._note(cell, error and error[:200], told or "", names, text)

    def _note(
        self,
        cell: Cell,
        error: str | None,
        message: str = "",
        bound: Sequence[str] = (),
        text: str | None = None,
    ) -> None:
        """Add to the history, as IPython would have told it."""
        number, source = len(self._runs) + 1, cell["source"]
        if text is not None and len(text) <= 2 * len(source) + 10_000:  # magics made longer
            source = text
        names = self._names & set(bound)
        run = history.Run(number, source, cell["id"], error, message[:300], frozenset(names))
        self._runs.append(run)
        cell["execution_count"] = number  # what messages call it

    def _trouble(self, cell: Cell, sentence: str) -> None:
        # a terminal and Formgrader show it, and what a learner's code said may be in it
        plain = "".join(it if it.isprintable() else " " for it in sentence)
        self._tell(f"{matching.named(cell)}: {' '.join(plain.split())}")

    def _tell(self, text: str) -> None:
        if len(self.troubles) < MOST_TOLD and text not in self.troubles:
            is_last = len(self.troubles) == MOST_TOLD - 1
            self.troubles.append("What happened to other cells is left out." if is_last else text)

    def _buried(self, cell: Cell, sentence: str) -> None:
        """This cell is not run again."""
        self._dead.add(cell["id"])
        self._trouble(cell, sentence)
        if cell["cell_type"] == "code":
            error = {"output_type": "error", "ename": "Ended", "evalue": sentence, "traceback": []}
            cell["outputs"] = [] if matching.is_check(cell) else [error]

    def _again(self, position: int) -> None:
        """A new session with everything up to `position` but what is dead; outputs are known."""
        self._session = None
        while not self._is_over:
            self._restarts += 1
            if self._is_alone:
                self.troubles.append("The exercises after this were graded each on its own.")
                return
            cells = [it for it in self.cells[: position + 1] if self._runs_again(it)]
            self._session = self._replayed(cells)
            if self._session is not None:
                return

    def _runs_again(self, cell: Cell) -> bool:
        return (
            cell["cell_type"] == "code"
            and not matching.is_check(cell)
            and not self._is_unchanged_show(cell)
        )

    def _replayed(self, cells: list[Cell]) -> Session | None:
        """A session in which these cells ran; None if one of them ended it, which is then dead."""
        session = self._fresh()
        left = list(cells)
        while left:
            if left[0]["id"] in self._dead:
                self._note(left.pop(0), "Ended", "it ended its process, or did not stop in time")
                continue
            alive = list(itertools.takewhile(lambda it: it["id"] not in self._dead, left))
            try:
                for _ in self._ask_to_run(session, alive):
                    left.pop(0)
            except Died as death:
                self._dead.add(left[0]["id"])
                self._trouble(left[0], death.sentence)
                return None
        return session

    # checks

    def _check(self, position: int, cell: Cell) -> None:
        begun = time.perf_counter()
        cell["outputs"] = []
        name = str(matching.grade_id(cell))
        it = _exercise_of(cell, self._exercises)
        known = it.id if it else name
        report: Report | None = None
        if self._is_over:
            text = "The time for the whole notebook was over before this check."
            report = Report(known, it.title if it else name, "stopped", _points(cell), message=text)
        else:
            report = self._judged(position, cell, it, name)
        # the gradebook's points, whatever the definition has become since
        self.graded.append(Graded(name, report, it.witness if it else "checker"))
        self.seconds["checks"] += time.perf_counter() - begun

    def _judged(self, position: int, cell: Cell, it: Exercise | None, name: str) -> Report:
        alone = self._is_alone
        session = self._alone(position) if alone else self._session
        if session is None and not alone:
            session = self._session = self._fresh()
        if session is None:
            text = "The cells that this exercise needs did not run."
            return Report(it.id if it else name, it.title if it else name, "stopped",
                          _points(cell), message=text)  # fmt: skip
        try:
            report, death = self._asked(session, cell, it, name)
        finally:
            if alone:
                session.end()
        if death is not None:
            self._trouble(cell, death)
            if not alone:
                session.end()
                again = self._once_more(position, cell, it, name)
                # alone it may lack a cell of the learner's own; what was earned before stands
                report = max(report, again or report, key=_worth)
                self._again(position)
        elif not alone and report.earned < report.possible and (names := self._overwritten()):
            runs = self._runs  # of this session, which goes on
            again = self._once_more(position, cell, it, name)
            self._runs = runs
            if again is not None and _worth(again) > _worth(report):
                report = again
                words = " and ".join(f"`{each}`" for each in names)
                self._trouble(cell, f"It was checked without the cells that overwrite {words}.")
        return report

    def _overwritten(self) -> list[str]:
        """Names of the library and of Python to which a cell before this check gave a value."""
        defined = {each for run in self._runs if "=" in run.source for each in run.defines()}
        return sorted(defined & answer.LIBRARY)

    def _asked(
        self, session: Session, cell: Cell, it: Exercise | None, name: str
    ) -> tuple[Report, str | None]:
        """The report of one check, and how the session ended in it, if it did."""
        judging = Judging(session, it.without if it else (), self._runs, self.seed)
        budget = self.warm.limits.check_seconds
        if it is not None:
            try:
                return judging.exercise(it, budget), judging.death
            except Exception as problem:  # as in the notebook; the other exercises are checked
                text = f"The answer could not be checked ({type(problem).__name__})."
                session.end()
                return Report(it.id, it.title, "stopped", it.points, message=text), text
        source = self._solved.get(cell["id"], cell)["source"]
        cells = self.source.solved["cells"]
        report = asserts.judge(judging.caller(budget), source, name, _points(cell), cells)
        return report, report.message if session.is_over else None

    def _once_more(
        self, position: int, cell: Cell, it: Exercise | None, name: str
    ) -> Report | None:
        """The check with its own cells alone: another cell may have left running what ended it."""
        session = None if self._is_over else self._alone(position)
        if session is None:
            return None
        try:
            report, death = self._asked(session, cell, it, name)
        finally:
            session.end()
        return report if death is None else None

    def _alone(self, position: int) -> Session | None:
        """A session with the setup and the answer cell of the check at `position` only."""
        code = [it for it in self.cells[:position] if self._runs_again(it)]
        answers = [n for n, it in enumerate(code) if matching.is_answer(it)]
        setup = code[: answers[0]] if answers else code
        own = code[answers[-1] :] if answers else []
        return self._replayed([it for it in [*setup, *own] if it["id"] not in self._dead])


class Judging:
    """One check on one session."""

    def __init__(
        self, session: Session, without: tuple[str, ...], runs: list[history.Run], seed: str
    ) -> None:
        self.session, self.without, self.runs, self.seed = session, without, runs, seed
        self.death: str | None = None

    def caller(self, seconds: float, *, probes: bool = False) -> Caller:
        """What makes calls for this check."""
        return Caller(self.session, self.without, probes, Budget(seconds))

    def exercise(self, it: Exercise, seconds: float) -> Report:
        """The report on one exercise, found and decided as `check` does in the notebook."""
        caller = self.caller(seconds, probes=type(it).run is not Exercise.run)
        try:
            exists, value, source = caller.look(it.name)
        except (Died, WireError) as problem:
            self.death = str(problem)
            return Report(it.id, it.title, "stopped", it.points, message=str(problem))
        namespace = {it.name: value} if exists else {}
        found = answer.find(it, namespace, self.runs, lambda _: source)
        if found.state != "ready":
            report = nothing_to_check(it, found)
        else:
            run = self._runner(caller)
            report = check_with(
                it, value, seed=self.seed, seconds=seconds, run=run, source=found.source
            )
        return with_note(report, found)

    def _runner(self, caller: Caller) -> RunCase:
        def run(it: Exercise, value: Any, given: Case, untouched: Case, budget: Budget) -> Outcome:
            if self.death is not None:
                return Outcome("not run")
            try:
                return run_case(caller, it, value, given, untouched, budget)
            except (Died, WireError) as problem:
                self.death = str(problem)
                return Outcome("raised", error=Ended(), message=(self.death, ""))

        return run


class Ended(Exception):
    """Stands in a report where the learner's process was gone."""


def _worth(report: Report) -> tuple[float, int]:
    return report.earned, sum(it.status == "passed" for it in report.rows)


def _exercise_of(cell: Cell, known: dict[str, Exercise]) -> Exercise | None:
    """The exercise that a check cell is about."""
    id = matching.checked_exercise(cell)
    return None if id is None else known.get(id)


def _points(cell: Cell) -> float:
    return float(cell["metadata"]["nbgrader"].get("points", 0))


def _flat(output: Message) -> Message:
    """An output without what no notebook has in it: a forged one may be as deep as JSON can be."""
    kept: Message = {}
    for name, value in output.items():
        if isinstance(value, dict):
            value = {kind: it for kind, it in value.items() if isinstance(it, str)}
        elif isinstance(value, list):
            value = [it for it in value if isinstance(it, str)]
        kept[name] = value
    return kept


def _in_requests(cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    """The cells in as few runs as may be asked for at once."""
    some: list[Cell] = []
    size = 0
    for it in cells:
        if some and size + len(it["source"]) > MOST_ASKED:
            yield some
            some, size = [], 0
        some.append(it)
        size += len(it["source"])
    if some:
        yield some


def check_definitions(source: Source) -> None:
    """Raises CourseError if a chapter's checks cannot be trusted.

    That is if more than a tenth of the points hang on what only the learner's own process can see,
    or if an instructor's plain check could be answered by other names than those of answers.
    """
    known = exercise.load(source.chapter)
    points = sum(it.points for it in known.values())
    inside = sum(it.points for it in known.values() if it.witness == "inside")
    if inside > points / 10:
        raise CourseError(
            f"{inside:g} of {points:g} points of {source.chapter} are witnessed inside the "
            f"learner's process, where they can be forged; a tenth may be."
        )
    for cell in source.released["cells"]:
        if matching.is_check(cell) and _exercise_of(cell, known) is None:
            _check_asserts(cell, source)


def _check_asserts(cell: Cell, source: Source) -> None:
    solved = {it["id"]: it for it in source.solved["cells"]}
    try:
        asserts.read(solved.get(cell["id"], cell)["source"], source.solved["cells"])
    except asserts.Broken as problem:
        raise CourseError(
            f"The check {matching.grade_id(cell)} of {source.chapter} cannot be graded: {problem}."
        ) from None
