"""Helpers that an answer calls, and whose cells run too late when it is graded.

Grading runs the cells from top to bottom. In the learner's notebook an answer finds whatever ran
before, wherever that stands: `check` says where it would not be found, and `course doctor` too.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from pathlib import Path

from course.notebook import matching
from course.notebook.answer import Answer
from course.notebook.exercise import Exercise
from course.notebook.history import LONGEST, Run, global_names, without_magics
from course.notebook.matching import Cell, Refused


def needed(answer: str, runs: Sequence[Run]) -> Iterator[tuple[str, Run]]:
    """The global names that an answer uses, and those that its helpers use in turn.

    Each comes with the last run that gave it a value; a name without such a run is left out.
    """
    names = sorted(names_in(answer)[1])
    for name in names:  # those that a helper uses are appended meanwhile
        maker = next((run for run in reversed(runs) if name in run.bound), None)
        if maker is not None:
            yield name, maker
            names += sorted(names_in(maker.source)[1] - {*names})


def names_in(cell: str) -> tuple[set[str], set[str]]:
    """The global names that a cell binds, and those that it needs from others, Python's left out.

    None of a cell that is too long or that Python cannot read.
    """
    program = without_magics(cell) if len(cell) <= LONGEST else ""
    try:
        bound, read = global_names(program)
        return bound, read - bound - {*dir(builtins)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: too deep
        return set(), set()


def note(exercise: Exercise, found_answer: Answer, runs: Sequence[Run]) -> str:
    """A sentence about a helper whose cell does not stand above the check; "" if all do.

    Where cells stand is read from the learner's notebook as it was saved last.
    """
    try:
        cells = matching.cells_of(Path(f"{exercise.chapter}.ipynb").read_bytes())
    except (OSError, Refused):
        return ""
    in_time = _in_time(exercise, runs, cells)
    for name, run in needed(found_answer.source or "", runs):
        if in_time and run.cell_id not in (None, *in_time) and name in run.source:
            return (
                f"`{name}`, which your answer uses, comes from {run.place or 'another cell'}. "
                "Unless that cell stands above this check, the answer fails when it is graded: "
                f"move `{name}` into the answer cell."
            )
    return ""


def _in_time(exercise: Exercise, runs: Sequence[Run], cells: Sequence[Cell]) -> list[str]:
    """The ids of the cells that run before the answer is checked; none where that is not known."""
    ids = [cell["id"] for cell in cells if cell["cell_type"] == "code"]
    check = f"check-{exercise.id}"
    makers = [run.cell_id for run in runs if exercise.name in run.bound]
    if check not in ids or not makers or makers[-1] is None:
        return []
    last = ids.index(check)
    # an answer in an own cell below the check is graded with the cells before it; the answer cell
    # itself, moved below the check, is put back without them
    own_ids = [cell["id"] for cell in cells if matching.grade_id(cell) != exercise.id != cell["id"]]
    if makers[-1] in own_ids and makers[-1] in ids:
        last = max(last, ids.index(makers[-1]) + 1)
    return [*(id for id in ids[:last] if id != check), makers[-1]]
