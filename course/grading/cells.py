"""Runs the cells of a notebook in sandboxed processes, and gives the judge one for each check.

A cell that loops is stopped. A cell that ends its process is *dead*: it is left out, and the cells
before it run again in a new process, three times at most. After that each remaining exercise has a
process of its own, in which only its own cells run.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from course.grading import clean
from course.grading.session import Died, MachineFault, Session, Warm
from course.notebook import history, matching
from course.notebook.answer import LIBRARY
from course.notebook.exercise import Exercise
from course.notebook.matching import Cell, Source
from course.notebook.report import Report
from course.sandbox.wire import Message

MOST_RESTARTS = 3
MOST_ASKED = 1 << 20
"""Characters of the cells that are run in one request, unless it is one cell."""
MOST_TROUBLES = 50
"""Sentences about the cells of one submission."""


@dataclass(frozen=True)
class Check:
    """A cell that is graded by running it, and the exercises of its chapter by id."""

    cell: Cell
    definitions: Mapping[str, Exercise]
    position: int = 0
    """Its place among the cells."""

    @property
    def exercise(self) -> Exercise | None:
        """What it checks; None if it is a plain check of the instructor's own."""
        return self.definitions.get(matching.checked_exercise(self.cell) or "")

    @property
    def name(self) -> str:
        """Its name in the gradebook."""
        return str(matching.grade_id(self.cell))

    @property
    def points(self) -> float:
        """What nbgrader gives for it."""
        return float(self.cell["metadata"]["nbgrader"].get("points", 0))

    def without_points(self, status: str, text: str) -> Report:
        """The report where it did not run, or not to its end."""
        known, name = self.exercise, self.name
        id, title = (known.id, known.title) if known else (name, name)
        return Report(id, title, status, self.points, message=text)


class CellRunner:
    """The cells of one notebook.

    definitions: the chapter's exercises. deadline: of all cells and checks.
    """

    def __init__(
        self,
        warm: Warm,
        source: Source,
        cells: list[Cell],
        definitions: Mapping[str, Exercise],
        deadline: float,
    ) -> None:
        self.warm, self.source, self.cells = warm, source, cells
        self.runs: list[history.Run] = []
        """What ran in the present session, as IPython would have noted it."""
        self.troubles: list[str] = []
        """Sentences about cells that were stopped, ended their process or did not run."""
        self.cpu = 0.0
        """Seconds of CPU that the cells took, as far as their processes said so."""
        self.solved = {cell["id"]: cell for cell in source.solved["cells"]}
        """The cells of the notebook with the answers, by their ids."""
        self._known = {defined.name for defined in definitions.values()} | LIBRARY
        self._definitions = definitions
        self._quota = clean.Quota()
        self._deadline = deadline
        self._is_late = False
        """Whether a check took as long as its time limit: then cases may not have run."""
        self._dead: set[str] = set()
        self._restarts = 0
        self._session: Session | None = None

    @property
    def is_alone(self) -> bool:
        """Whether each exercise has a process of its own from now on."""
        return self._restarts > MOST_RESTARTS

    @property
    def is_over(self) -> bool:
        """Whether the time of the submission is over."""
        return time.monotonic() >= self._deadline

    @property
    def is_cut_short(self) -> bool:
        """Whether a time limit, or the end of a process, may have cost points."""
        return self._is_late or self.is_over or bool(self.troubles)

    @property
    def overwritten(self) -> list[str]:
        """Names of the library and of Python to which a cell above gave a value."""
        defined = {name for run in self.runs if "=" in run.source for name in run.defines()}
        return sorted(defined & LIBRARY)

    def checks(self) -> Generator[Check]:
        """Run the cells in order; each check, once the cells above it ran."""
        try:
            waiting: list[int] = []  # cells that are run together, before the next check
            for position, cell in enumerate(self.cells):
                if cell["cell_type"] != "code":
                    continue
                cell["outputs"] = []
                if matching.is_check(cell):
                    self._run(waiting)
                    yield Check(cell, self._definitions, position)
                elif self._is_unchanged_show(cell):
                    cell["outputs"] = self.solved[cell["id"]]["outputs"]
                else:
                    waiting.append(position)
                if cell["id"] == self.source.setup:
                    self._run(waiting)
                    self._mend_setup(position)
            self._run(waiting)
        finally:
            if self._session is not None:
                self._session.end()

    @contextmanager
    def session_for(self, position: int, *, alone: bool = False) -> Iterator[Session | None]:
        """The process for the check at this position; None if the cells that it needs did not run.

        alone: one in which only the setup and the exercise's own cells ran; `runs` are those until
        the check is done.
        """
        if self.is_over:
            yield None
            return
        runs, alone = self.runs, alone or self.is_alone
        if alone:
            session = self._alone(position)
        else:
            session = self._session = self._session or self._fresh()
        begun = time.monotonic()
        try:
            yield session
        finally:
            self._is_late |= time.monotonic() - begun >= self.warm.limits.check_seconds
            if alone:
                self.runs = runs
                if session is not None:
                    session.end()

    def restart(self, position: int) -> None:
        """A new process in which the cells up to `position` ran, dead ones left out."""
        if self._session is not None:
            self._session.end()
            self._session = None
        while not self.is_over:
            self._restarts += 1
            if self.is_alone:
                self.troubles.append("The exercises after this were graded each on its own.")
                return
            cells = [cell for cell in self.cells[: position + 1] if self._runs_again(cell)]
            self._session = self._replayed(cells)
            if self._session is not None:
                return

    def note_trouble(self, cell: Cell, sentence: str) -> None:
        """Add a sentence about a cell; a terminal shows it, and a learner's text may be in it."""
        plain = "".join(sign if sign.isprintable() else " " for sign in sentence)
        self._add_trouble(f"{matching.named(cell)}: {' '.join(plain.split())}")

    def _add_trouble(self, text: str) -> None:
        if len(self.troubles) < MOST_TROUBLES and text not in self.troubles:
            is_last = len(self.troubles) == MOST_TROUBLES - 1
            self.troubles.append("What happened to other cells is left out." if is_last else text)

    def _run(self, waiting: list[int]) -> None:
        """Run cells until none waits; where one ends the process, the others run in a new one."""
        while waiting and not self.is_alone:
            if self.is_over:  # none of these cells is to blame
                self._add_trouble(
                    "The time for the whole notebook was over; cells after that did not run."
                )
                break
            try:
                if self._session is None:
                    self._session = self._fresh()
                for reply in self._ask_to_run(self._session, [self.cells[n] for n in waiting]):
                    cell = self.cells[waiting.pop(0)]
                    cell["outputs"] = clean.clean_outputs(reply.get("outputs"), self._quota)
            except Died as death:
                position = waiting.pop(0)
                self._mark_dead(self.cells[position], str(death))
                error = {"ename": "Ended", "evalue": str(death), "traceback": []}
                self.cells[position]["outputs"] = [{"output_type": "error", **error}]
                self.restart(position)
        waiting.clear()

    def _mark_dead(self, cell: Cell, sentence: str) -> None:
        """Note that this cell ended its process: it is not run again."""
        self._dead.add(cell["id"])
        self.note_trouble(cell, sentence)

    def _fresh(self) -> Session:
        """A new session with the chapter's data beside it."""
        session = self.warm.fork()
        self.runs = []
        files = self.source.files
        if files:
            message: Message = {"do": "files", "files": list(files)}
            try:
                session.ask(message, list(files.values()), seconds=10.0)
            except Died as death:  # nothing of the learner's has run
                raise MachineFault(f"The chapter's data cannot be written: {death}") from None
        session.deadline = self._deadline  # holds for learners' code, not for the files
        return session

    def _alone(self, position: int) -> Session | None:
        """A session in which only the cells that the check at `position` needs ran.

        These are the cells above the first answer cell, with the imports; the answer cell of this
        check and the cells between both. An answer that was taken from a cell of the learner's own
        may call the released code of its answer cell. `own_answers.take` has put a copy of that
        code above the answer. The copy has no id: it is found by its text, and runs first.
        """
        code = [cell for cell in self.cells[:position] if self._runs_again(cell)]
        answers = [at for at, cell in enumerate(code) if matching.is_answer(cell)]
        needed = code[answers[-1] :] if answers else []
        texts = [self.source.by_id[cell["id"]]["source"] for cell in needed[:1]]
        copies = [cell for cell in code if cell["source"] in texts][:1]
        setup = code[: answers[0]] if answers else code
        needed = [*setup, *copies, *needed]
        return self._replayed([cell for cell in needed if cell["id"] not in self._dead])

    def _replayed(self, cells: list[Cell]) -> Session | None:
        """A session in which these cells ran; None if a cell ended it, and is dead now."""
        session = self._fresh()
        for cell in cells:
            if cell["id"] in self._dead:
                self._note(cell, "Ended", "it ended its process, filled memory or did not stop")
                continue
            try:
                for _ in self._ask_to_run(session, [cell]):
                    pass
            except Died as death:
                self._mark_dead(cell, str(death))
                return None
        return session

    def _runs_again(self, cell: Cell) -> bool:
        return (
            cell["cell_type"] == "code"
            and not matching.is_check(cell)
            and not self._is_unchanged_show(cell)
        )

    def _is_unchanged_show(self, cell: Cell) -> bool:
        """Whether this is a picture or demo as it was released, whose outputs are known."""
        released = self.source.by_id.get(cell["id"])
        shows = "show" in cell["metadata"].get("tags", [])
        return shows and released is not None and released["source"] == cell["source"]

    def _mend_setup(self, position: int) -> None:
        """Run the released imports next, if the learner's did not run.

        Every other cell needs them: one slip there would cost the whole chapter.
        """
        cell = self.cells[position]
        released = self.source.by_id[cell["id"]]
        ran = next((run for run in reversed(self.runs) if run.cell_id == cell["id"]), None)
        if cell["source"] == released["source"] or (ran is not None and ran.error is None):
            return
        cause = f" ({ran.error}: {ran.message})" if ran is not None and ran.message else ""
        self.note_trouble(cell, f"It did not run{cause}; the imports are those that were released.")
        added = {**released, "id": f"{cell['id']}-released", "outputs": []}
        self.cells.insert(position + 1, added)  # the loop in `checks` takes this cell next

    def _ask_to_run(self, session: Session, cells: Sequence[Cell]) -> Iterator[Message]:
        """The replies to running these cells, as they come; what each came to is noted."""
        if sum(len(cell["source"]) for cell in cells) > MOST_ASKED:
            cells = cells[:1]
        limit = self.warm.limits.cell_seconds
        message = {"do": "cells", "sources": [cell["source"] for cell in cells], "seconds": limit}
        replies = session.replies(message, len(cells), seconds=limit)
        for cell, (reply, _) in zip(cells, replies, strict=True):
            self._note_reply(cell, reply, limit)
            yield reply

    def _note_reply(self, cell: Cell, reply: Message, limit: float) -> None:
        cpu = reply.get("cpu")
        self.cpu += cpu if type(cpu) is float and 0 <= cpu < limit + 1 else 0.0
        if reply.get("stopped") is True:
            sentence = f"It did not end within {limit:g} seconds and was stopped."
            self.note_trouble(cell, sentence)
            self._note(cell, "TimeLimit", sentence)
        else:
            bound = reply.get("bound")
            bound = bound[:1000] if type(bound) is list else []
            names = [name for name in bound if type(name) is str]
            texts = reply.get("error"), reply.get("message"), reply.get("source")
            error, message, text = (value if type(value) is str else None for value in texts)
            self._note(cell, error and error[:200], message or "", names, text)

    def _note(
        self,
        cell: Cell,
        error: str | None,
        message: str = "",
        bound: Sequence[str] = (),
        text: str | None = None,
    ) -> None:
        """Add to the history, as IPython in the notebook would have."""
        source = cell["source"]
        if text is not None and len(text) <= 2 * len(source) + 10_000:  # magics make a cell longer
            source = text
        names = self._known & set(bound)
        run = history.Run(None, source, cell["id"], error, message[:300], frozenset(names))
        self.runs.append(run)
        cell["execution_count"] = len(self.runs)
