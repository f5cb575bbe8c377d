"""The rehearsal class: three made-up learners of a chapter, one of them in trouble.

What they write and the points they should get follow from the exercises' definitions. Data in
words: a *learner* is a name, the text of each answer and the points that it should get.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import nbformat
import numpy as np

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.exercise import BEGIN, END, Exercise, Mistake, Prediction
from course.shared import files
from course.shared.errors import CourseError


@dataclass(frozen=True)
class Learner:
    """A made-up learner: what they write in which answer cell, and the points it should get."""

    name: str
    story: str
    answers: Mapping[str, str]
    """Text of the answer cell by exercise id; all other cells stay as they were released."""
    expected: Mapping[str, float]
    """Points by exercise id, of every exercise of the chapter."""


def class_of(exercises: Sequence[Exercise]) -> list[Learner]:
    """The learners *perfect*, *partial* and *troubled* of a chapter with these exercises.

    Raises CourseError for a chapter that has too few exercises for the troubles.
    """
    made = {"perfect": _perfect, "partial": _partial, "troubled": _troubled}
    return [
        make([exercise.variant_for(name) for exercise in exercises]) for name, make in made.items()
    ]


def _perfect(exercises: Sequence[Exercise]) -> Learner:
    return Learner(
        "perfect",
        "every worked solution",
        {exercise.id: exercise.solution_source for exercise in exercises},
        {exercise.id: exercise.points for exercise in exercises},
    )


def _partial(exercises: Sequence[Exercise]) -> Learner:
    slip = mistaken_in(exercises)
    unmistaken = [exercise for exercise in exercises if exercise is not slip.exercise]
    right = unmistaken[: len(unmistaken) // 2]
    return Learner(
        "partial",
        f"{len(right)} right, a usual mistake in {slip.exercise.id}, the rest untouched",
        {exercise.id: exercise.solution_source for exercise in right}
        | {slip.exercise.id: slip.text},
        {exercise.id: exercise.points if exercise in right else 0.0 for exercise in exercises}
        | {slip.exercise.id: slip.points},
    )


@dataclass(frozen=True)
class Slip:
    """A usual mistake as a learner would type it, and the points that it gets."""

    exercise: Exercise
    mistake: Mistake
    text: str
    points: float


def mistaken_in(exercises: Sequence[Exercise]) -> Slip:
    """The slip of the learner *partial*: the first that earns some points and not all, if any does.

    Raises CourseError if no usual mistake of these exercises stands alone in a cell.
    """
    slips = [
        mistaken
        for exercise in exercises
        for mistake in exercise.mistakes()
        if (mistaken := slip(exercise, mistake))
    ]
    if not slips:
        raise CourseError("None of these exercises has a usual mistake that stands alone.")
    return min(slips, key=lambda slip: not 0 < slip.points < slip.exercise.points)


def slip(definition: Exercise, mistake: Mistake) -> Slip | None:
    """A usual mistake as it is typed.

    None for a mistake that is no function, or that needs more than stands in its own lines.
    """
    function = mistake.answer
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        return None
    text = _as_typed(function, definition.name)
    namespace: dict[str, Any] = {"np": np, "tk": tk}
    exec(text, namespace)
    report = judge(definition, namespace[definition.name])
    # recognised: so the text stands alone, and does what the mistake does
    return Slip(definition, mistake, text, report.score) if report.mistake == mistake.name else None


def _as_typed(function: FunctionType, name: str) -> str:
    """The source of a function under another name."""
    source = textwrap.dedent(inspect.getsource(function))
    return source.replace(f"def {function.__name__}(", f"def {name}(", 1).rstrip()


def are_enough(exercises: Sequence[Exercise]) -> bool:
    """Whether a chapter with these exercises has room for all the troubles of a class."""
    core, programs = _with_points(exercises)
    return len(programs) >= 3 and len(core) >= 4


def _with_points(exercises: Sequence[Exercise]) -> tuple[list[Exercise], list[Exercise]]:
    """The exercises with points, and those of them whose answer is a function."""
    core = [exercise for exercise in exercises if exercise.points]
    return core, [exercise for exercise in core if not isinstance(exercise, Prediction)]


def _troubled(exercises: Sequence[Exercise]) -> Learner:
    core, programs = _with_points(exercises)
    if not are_enough(exercises):
        raise CourseError(
            "The rehearsal's troubles need four exercises with points, three of them functions."
        )
    raises, unreadable, noisy = programs[:3]
    untouched = next(exercise for exercise in core if exercise not in (raises, unreadable, noisy))
    trouble = {
        raises.id: "undefined_name\n\n" + raises.solution_source,
        unreadable.id: unreadable.solution_source.replace(":", "", 1),
        noisy.id: _noisy(noisy),
    }
    right = {
        exercise.id: exercise.solution_source for exercise in exercises if exercise is not untouched
    }
    lost = (raises.id, unreadable.id, untouched.id)
    return Learner(
        "troubled",
        f"an exception in {raises.id}, a SyntaxError in {unreadable.id}, "
        f"{untouched.id} untouched, warnings in {noisy.id}, the rest right",
        right | trouble,
        {exercise.id: 0.0 if exercise.id in lost else exercise.points for exercise in exercises},
    )


def _noisy(definition: Exercise) -> str:
    """The right answer of an exercise, with a warning and lines on stderr in every call."""
    noise = (
        "import os, sys, warnings",
        'warnings.warn("I am not sure about this")',
        'print("debugging", file=sys.stderr)',
        'logging.info("through the stream that the kernel had before the check")',
        'os.write(2, b"below Python")',
    )
    lines = ["import logging", "", "logging.basicConfig(level=logging.INFO)", ""]
    for line in definition.answer_source.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines += [indent + noise_line for noise_line in noise] if line.strip() == BEGIN else [line]
    return "\n".join(line for line in lines if line.strip() != END)


def fill_in(notebook: Path, learner: Learner) -> None:
    """Write a learner's answers into their copy of the notebook."""
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("solution") and marks["grade_id"] in learner.answers:
            cell.source = learner.answers[marks["grade_id"]]
    files.write(notebook, nbformat.writes(content))
