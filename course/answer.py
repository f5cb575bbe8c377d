"""Finds the learner's answer in the notebook, or says why there is none.

The check takes no answer: it reads the name that the exercise gives from the notebook's namespace,
and the history of cells, so that it can tell what a number or a traceback cannot: not started, not
run, deleted, renamed, or an older version because the last edit did not run.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course.exercise import Exercise
from course.history import Run


@dataclass(frozen=True)
class Answer:
    """The state of an answer: `not started`, `missing`, `unfit` or `ready`."""

    state: str
    value: Any = None
    sentence: str = ""
    """Why there is nothing to check; empty if there is."""
    note: str = ""
    """What a learner should know although the answer was checked."""
    source: str | None = None


def find(exercise: Exercise, namespace: Mapping[str, Any], runs: Sequence[Run]) -> Answer:
    """The answer to `exercise` as it stands in `namespace` after `runs`."""
    about = [run for run in runs if run.is_about(exercise.id, exercise.name)]
    note = _last_edit_did_not_run(exercise, about)
    if exercise.name not in namespace:
        return Answer("missing", sentence=_why_missing(exercise, about, runs))
    value = namespace[exercise.name]
    unfit = exercise.is_answer(value)
    if unfit is not None:
        return Answer("unfit", value, sentence=unfit, note=note)
    source = _source(exercise, value, about)
    if exercise.is_not_started(value, source):
        return Answer("not started", value, note=note, source=source)
    return Answer("ready", value, note=note, source=source)


def _last_edit_did_not_run(exercise: Exercise, about: Sequence[Run]) -> str:
    # a cell without valid syntax defines nothing; any other defines its function and then fails
    if not about or about[-1].error is None or exercise.name in about[-1].defines():
        return ""
    last = about[-1]
    return (
        f"Your last edit did not run ({last.error}, cell [{last.number}]); "
        f"this is the version before it. Mend the cell and run it again."
    )


def _why_missing(exercise: Exercise, about: Sequence[Run], runs: Sequence[Run]) -> str:
    name = exercise.name
    if about and about[-1].error is not None:
        last = about[-1]
        return (
            f"Your cell did not run ({last.error}, cell [{last.number}]), so `{name}` does not "
            f"exist yet. Python says in its message which line it could not read."
        )
    renamed = _renamed(exercise, about, runs)
    if renamed is not None:
        return (
            f"Your cell defines `{renamed}`; this exercise is called `{name}`. "
            f"Give it back its name and run the cell again."
        )
    if about:
        return (
            f"`{name}` was defined in cell [{about[-1].number}] and is gone now (`del`?). "
            f"Run that cell again."
        )
    return (
        f"`{name}` does not exist yet: run the answer cell above (Shift+Enter), then this one. "
        f"If the cell was deleted, `course reset {exercise.chapter} {exercise.id}` brings it back."
    )


def _renamed(exercise: Exercise, about: Sequence[Run], runs: Sequence[Run]) -> str | None:
    """The name under which the answer was defined, if its cell or its docstring gives it away."""
    head = ast.parse(exercise.released_source).body[0]
    told = ast.get_docstring(head) if isinstance(head, ast.FunctionDef) else None
    for run in reversed(runs):
        defined = run.defines()
        if exercise.name in defined or not defined:
            continue
        same_cell = run in about
        same_text = told is not None and told.partition("\n")[0] in run.source
        if same_cell or same_text:
            return defined[0]
    return None


def _source(exercise: Exercise, value: Any, about: Sequence[Run]) -> str | None:
    try:
        return inspect.getsource(value)
    except Exception:  # not a function, typed at a prompt, or an object made to be odd
        ran = [run for run in about if run.error is None]
        return ran[-1].source if ran else None
