"""Finds the learner's answer in the notebook, or says why there is none.

The check takes no answer: it reads the name that the exercise gives from the notebook's namespace,
and the history of cells, so that it can tell what a number or a traceback cannot: not started, not
run, deleted, renamed, or an older version because the last edit did not run.

Words: the runs *about* an exercise are those of its answer cell, and of any cell that defines its
name or gave it a value; the last of them is what the learner takes for their answer.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from course.notebook import answer_text, compare, plain
from course.notebook.exercise import Exercise, is_class, load
from course.notebook.history import (
    UNKNOWN,
    Run,
    changed_names,
    is_of_this_cell,
    running_cell,
    running_now,
)
from course.notebook.rules import parsed

MOST_READ = 20
"""Runs that are searched for the answer's new name: a bound, because they may be long."""


@dataclass(frozen=True)
class Answer:
    """The state of an answer: `not started`, `missing`, `unfit` or `ready`."""

    state: str
    value: Any = None
    sentence: str = ""
    """Why there is nothing to check; empty if there is something."""
    note: str = ""
    """What a learner should know although the answer was checked."""
    source: str | None = None
    mistake: str = ""
    """The exception that kept the answer from running; empty if none did."""


def find(
    exercise: Exercise,
    namespace: Mapping[str, Any],
    runs: Sequence[Run],
    source_of: Callable[[Any], str | None] | None = None,
) -> Answer:
    """The answer to `exercise` as it stands in `namespace` after `runs`.

    source_of: tells the text of a value; by default Python itself.
    """
    name = exercise.name
    about = [run for run in runs if run.is_about(exercise.id, name) or name in run.bound]
    if name not in namespace:
        error = about[-1].error if about else None
        mistake = "" if error in (None, UNKNOWN) else f"does not run: {error}"
        return Answer("missing", sentence=_why_missing(exercise, about, runs), mistake=mistake)
    value = namespace[name]
    # the last run about it, unless the cell that runs now has just made the answer itself
    is_made_now = is_of_this_cell(name, value)
    last = about[-1] if about and not is_made_now else None
    is_older = last is not None and name not in last.bound
    is_left_out = is_older and last is not None and last.error is None and last.leaves_out(name)
    if last is not None and is_left_out and not _changes_another(exercise, last, about):
        return Answer("missing", sentence=_renamed_now(exercise, last))
    note = ""
    if last is not None and last.error not in (None, UNKNOWN) and is_older:
        note = f"{_stopped(last)} This is the version before your last edit."
    elif is_made_now:
        note = _where_it_belongs(exercise, runs, running_cell())
    elif maker := _maker(exercise, about):
        note = _where_it_belongs(exercise, runs, maker.cell_id, maker)
    own_source = source = (source_of or plain.source_of)(value)
    if source is None or is_class(value):  # the text of a class is that of its cell
        ran = [run for run in about if run.error is None]
        source = ran[-1].source if ran else source
    note = note or _changed(exercise, runs)
    note = note or _overwritten(namespace, [*runs, *running_now()], source)
    unfit = exercise.is_answer(value)
    if unfit is not None:
        return Answer("unfit", value, sentence=unfit, note=note)
    if exercise.is_not_started(value, own_source or source):
        note = note or _replaced_by_stub(exercise, about)
        return Answer("not started", value, note=note, source=source)
    return Answer("ready", value, note=note, source=source)


def _changes_another(exercise: Exercise, last: Run, about: Sequence[Run]) -> bool:
    """Whether the answer cell changes in place what another cell made."""
    makers = (run for run in about if run.cell_id != exercise.id and exercise.name in run.bound)
    return exercise.name in changed_names(last.source) and any(makers)


def _maker(exercise: Exercise, about: Sequence[Run]) -> Run | None:
    """The run that made the answer, as far as that is known."""
    if about and about[-1].cell_id == exercise.id:
        return about[-1]  # whose value may be the same object as before
    return next((run for run in reversed(about) if exercise.name in run.bound), None)


def _has_known_ids(exercise: Exercise, runs: Sequence[Run]) -> bool:
    """Whether cells have the ids of the released notebook; some editors give others."""
    known = load(exercise.chapter)
    ids = (running_cell(), *(run.cell_id for run in runs))
    return any(str(id).removeprefix("check-") in known for id in ids)


def _where_it_belongs(
    exercise: Exercise, runs: Sequence[Run], cell: str | None, maker: Run | None = None
) -> str:
    """What to do with an answer that another cell than the answer cell made; else ""."""
    if cell in (None, exercise.id) or not _has_known_ids(exercise, runs):
        return ""
    in_place = [run for run in runs if run.cell_id == exercise.id][-1:]
    released = {"source": exercise.released_source}
    has_answer = in_place and not (
        in_place[0].leaves_out(exercise.name)
        or answer_text.is_untouched({"source": in_place[0].source}, released)
    )
    place = (maker.place if maker else "") or "another cell"
    if has_answer and maker is not None:
        if in_place[0].source.strip() == maker.source.strip():
            return ""
        return (
            f"`{exercise.name}` is defined twice: in its answer cell, and after that in {place}. "
            "The later one was checked. Keep one of them, in the answer cell."
        )
    deleted = f"`course reset {exercise.chapter} {exercise.id}` in a terminal brings it back."
    return (
        f"This answer stands in {place}. Move it into the answer cell, so that it is the one that "
        f"is graded.{'' if in_place else f' If that was deleted, {deleted}'}"
    )


def _changed(exercise: Exercise, runs: Sequence[Run]) -> str:
    """A sentence about predictions that another cell wrote into what the answer cell made."""
    ran = [number for number, run in enumerate(runs) if run.cell_id == exercise.id]
    later = runs[ran[-1] + 1 :] if ran and exercise.kind == "predict" else []
    for run in later:
        if exercise.name in changed_names(run.source):
            return (
                f"`{exercise.name}` was changed in {run.place or 'another cell'}. Write the "
                "predictions in the answer cell: grading may not find them elsewhere."
            )
    return ""


def _replaced_by_stub(exercise: Exercise, about: Sequence[Run]) -> str:
    """A sentence about an answer above the released code, in its cell or in another."""
    if not about:
        return ""
    last, released = {"source": about[-1].source}, {"source": exercise.released_source}
    if answer_text.ends_as_released(last, released):
        return (
            f"The answer cell defines `{exercise.name}` twice. The second definition is as it was "
            "released, and replaced your answer: delete it, and run the cell again."
        )
    others = [run for run in about if run.cell_id != exercise.id and exercise.name in run.bound]
    makers = [run for run in others if not run.imports(exercise.name)]
    if not makers or about[-1].cell_id != exercise.id:
        return ""
    return (
        f"`{exercise.name}` was defined in {makers[-1].place or 'another cell'}. After that the "
        "answer cell ran, which is as it was released, and replaced it. Move the answer into the "
        "answer cell."
    )


LIBRARY = frozenset(
    {"tk", "np"} | {name for name, value in vars(builtins).items() if callable(value)}
)
"""Names that belong to the library and to Python, which a cell may give another value."""


def library_names(runs: Sequence[Run]) -> list[str]:
    """The names of the library that a cell has bound."""
    return sorted(LIBRARY & {name for run in runs for name in run.bound})


def _overwritten(namespace: Mapping[str, Any], runs: Sequence[Run], source: str | None) -> str:
    """A sentence about a name of the library that the answer uses and that means a value now."""
    tree = parsed(source)
    names = [] if tree is None else [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    assigned = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    used = {name.id for name in names} - assigned
    bound = {name for run in runs for name in run.bound}
    for name in sorted(used & bound):
        value = namespace.get(name, print)
        if compare.kind(value) == "a module" or callable(value):
            continue
        *before, last = [run for run in runs if name in run.bound]
        is_imported = any(run.imports(name) for run in before) and not last.imports(name)
        if name not in LIBRARY and not is_imported:
            continue
        again = f"run `del {name}` in a new cell"
        if is_imported or name in ("tk", "np"):
            again = "run the cell with the imports again"
        return (
            f"`{name}` is no longer what it was: {last.place or 'a cell'} gave it "
            f"another value. Use another name there, then {again}."
        )
    return ""


def _stopped(run: Run) -> str:
    """What kept a cell from running, as a sentence with what to do."""
    error = f"{run.error}: {run.message}" if run.message else str(run.error)
    mend = "Mend it and run the cell again."
    overwritten = [name for name in run.defines() if name in LIBRARY]
    if run.error in ("EOFError", "StdinNotImplementedError") and "input(" in run.source:
        mend = "`input()` asks a person: write the value in its place and run the cell again."
    elif overwritten:
        mend = f"It gives `{overwritten[0]}` another value. Use another name for that."
    place = f" in {run.place}" if run.place else ""
    return f"Your edit{place} did not run ({error}). {mend}"


def _why_missing(exercise: Exercise, about: Sequence[Run], runs: Sequence[Run]) -> str:
    name = exercise.name
    if about and about[-1].error not in (None, UNKNOWN):
        return f"`{name}` does not exist yet. {_stopped(about[-1])}"
    renamed = _renamed(exercise, runs)
    if renamed is not None:
        return (
            f"Your cell defines `{renamed}`; this exercise is called `{name}`. "
            f"Give it back its name and run the cell again."
        )
    if about and about[-1].error is None and name not in _made(about[-1]):
        return (
            f"Your cell ran and makes no `{name}`. `course reset {exercise.chapter} {exercise.id}` "
            f"in a terminal brings the released cell back."
        )
    if about and about[-1].error is None:
        return (
            f"`{name}` was defined in {about[-1].place or 'a cell'} and is gone now (`del`?). "
            f"Run that cell again."
        )
    return (
        f"`{name}` does not exist yet: run the answer cell above (Shift+Enter), then this one. "
        f"If the cell was deleted, `course reset {exercise.chapter} {exercise.id}` in a terminal "
        f"brings it back."
    )


def _made(run: Run) -> set[str]:
    """The names that a cell made, those that it has deleted again too."""
    return {*run.bound, *run.defines()}


def _renamed_now(exercise: Exercise, last: Run) -> str:
    defined = last.defines()
    words = f"defines `{defined[0]}`" if defined else "no longer defines it"
    return (
        f"Your cell {words}; this exercise is called `{exercise.name}`. An older `{exercise.name}` "
        f"is still in memory and was not checked. Give it back its name and run the cell again."
    )


def _renamed(exercise: Exercise, runs: Sequence[Run]) -> str | None:
    """The name under which the answer was defined, if its cell or its docstring gives it away.

    Where cells have no ids, as when nbgrader runs them, the cell before the check is taken for the
    answer cell.
    """
    head = ast.parse(exercise.released_source).body[0]
    told = ast.get_docstring(head) if isinstance(head, ast.FunctionDef | ast.ClassDef) else None
    first_line = told.partition("\n")[0] if told is not None else None

    def is_candidate(run: Run) -> bool:
        same_text = first_line is not None and first_line in run.source
        just_before = run is runs[-1] and run.cell_id is None
        return same_text or just_before or run.is_about(exercise.id, exercise.name)

    for run in islice(filter(is_candidate, reversed(runs)), MOST_READ):
        defined = run.defines()
        if defined and exercise.name not in defined:
            return defined[0]
    return None
