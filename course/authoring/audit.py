"""What an exercise still lacks: the grader's own test, run for every registered exercise.

An exercise is complete if its reference passes in full, its untouched stub is 'not started' and
earns nothing, and every usual mistake fails, is recognised and gets its own message; and if none
of this depends on the numbers that are drawn.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import re
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence, Sized
from types import CodeType
from typing import Any

import numpy as np

import tensorkit as tk
from course.authoring.new import UNWRITTEN
from course.notebook.check import judge
from course.notebook.exercise import EDGES, Draw, Exercise, Mistake, Prediction, load
from course.notebook.quiet import owner_and_name
from course.notebook.runner import Budget, Outcome
from course.notebook.trials import fixed_cases, meets_the_notebook, right_outcomes, trials

SECONDS = 30.0


def faults(exercise: Exercise, seeds: Sequence[int] = range(200)) -> list[str]:
    """Sentences that say what is missing or wrong; empty for a complete exercise.

    seeds: of the draws that are tried. The mistakes take longest: they are tried in every third
    draw, and with kernels in every fifth. Whether they are recognised is tried in a tenth of those.
    """
    return [f"{exercise.id}: {sentence}" for sentence in _faults(exercise, seeds)]


def lacking(chapter: str) -> list[str]:
    """What the exercises of a chapter lack, in 20 draws; of one that raises, its own line."""
    sentences = []
    for exercise in load(chapter).values():
        try:
            sentences += faults(exercise, range(20))
        except Exception as error:  # whatever a definition that is being written raises
            sentences.append(f"{exercise.id}: trying it raised {_described(exercise, error)}")
    return sentences


def raised_by(exercise: Exercise) -> str:
    """The error that checking the reference of an exercise raises, and where; "" if it has none."""
    try:
        judge(exercise, exercise.reference, seconds=SECONDS)
    except Exception as error:  # whatever a definition that is being written raises
        return _described(exercise, error)
    return ""


def _described(exercise: Exercise, error: Exception) -> str:
    """An error, and the last line of the exercise's module that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    module = inspect.getfile(type(exercise))
    place = [frame for frame in frames if frame.filename == module] or frames
    return f"{type(error).__name__}: {error} ({place[-1].filename}, line {place[-1].lineno})"


def _faults(exercise: Exercise, seeds: Sequence[int]) -> Iterator[str]:
    yield from _incomplete(exercise)
    yield from _repeated(exercise)
    for part in UNWRITTEN:
        if part in exercise.statement + exercise.released_source:
            yield f"it still says {part!r}, as `course new exercise` wrote it: say what is returned"
    yield from _unsteady_cases(exercise, seeds)
    yield from _few_drawn(exercise)
    yield from _without_edge(exercise)
    if broken := list(_wrong_raises(exercise)):
        yield from broken
        return
    right = {seed: right_outcomes(exercise, seed) for seed in seeds}
    for seed in seeds:
        if not all(_passes(exercise, exercise.reference, seed, right[seed])):
            yield f"the reference does not pass on seed {seed}"
            break
    yield from _wrong_cells(exercise)
    for mistake in exercise.mistakes():
        yield from _weak_mistake(exercise, mistake, right)


def _incomplete(exercise: Exercise) -> Iterator[str]:
    if not re.fullmatch(r"[a-z][a-z0-9-]{2,40}", exercise.id):
        yield "an id has small letters, digits and hyphens"
    if not (exercise.minutes > 0 and 1 <= exercise.difficulty <= 5):
        yield "minutes are positive, difficulty lies between 1 and 5"
    if (exercise.points > 0) == exercise.further:
        yield "an exercise of the core has points, a further one has none"
    if len(exercise.statement) < 150:
        yield "the statement says input, output and one worked case"
    for name in exercise.without:
        if not callable(getattr(*owner_and_name(name))):
            yield f"`without` names {name}, which is no function"
    if len(exercise.hints) < 2:
        yield f"it has {_counted(exercise.hints, 'hint')}; two are needed"
    if len(exercise.usual_mistakes) < 3:
        yield f"it has {_counted(exercise.usual_mistakes, 'usual mistake')}; three are needed"


def _repeated(exercise: Exercise) -> Iterator[str]:
    if len(set(exercise.hints)) < len(exercise.hints):
        yield "two of its hints are the same"
    answers = [mistake.answer for mistake in exercise.mistakes() if not mistake.code]
    if len({id(answer) for answer in answers}) < len(answers):
        yield "two of its usual mistakes are the same function, with nothing that tells them apart"


def _counted(entries: Sized, name: str) -> str:
    return f"{len(entries)} {name}" if len(entries) == 1 else f"{len(entries)} {name}s"


def _unsteady_cases(exercise: Exercise, seeds: Sequence[int]) -> Iterator[str]:
    drawn = {
        tuple((case.label, case.weight) for case in exercise.drawn(Draw(seed))) for seed in seeds
    }
    if len(drawn) != 1:
        yield "labels and weights of its cases depend on the draw"
    labels = [label for label, _ in drawn.pop()]
    if len(labels) != len(set(labels)):
        yield "two of its cases have the same label"


def _few_drawn(exercise: Exercise) -> Iterator[str]:
    fixed = fixed_cases(exercise)
    cases = [case for case in exercise.drawn(Draw(0)) if case.weight]
    drawn = [case.weight for case in cases if case.label not in fixed]
    if isinstance(exercise, Prediction):
        return
    if len(drawn) < 3 or sum(drawn) < sum(case.weight for case in cases) / 2:
        yield (
            f"{len(drawn)} of its {len(cases)} cases have drawn numbers: three are needed, and "
            "half of the points, or its answers can be typed off"
        )
    if all(meets_the_notebook(exercise, seed) for seed in range(1, 21)):
        yield "twenty draws have each a number of the notebook's: let them vary more"


def _without_edge(exercise: Exercise) -> Iterator[str]:
    cases = list(exercise.cases(Draw(0)))
    # a number is neither empty nor of any layout
    of_numbers = all(isinstance(arg, int | float) for case in cases for arg in case.args)
    if isinstance(exercise, Prediction) or of_numbers:
        return
    if not any(edge in case.label for case in cases for edge in EDGES):
        yield f"no label of its cases marks an edge case, as one of these does: {', '.join(EDGES)}"


def _wrong_raises(exercise: Exercise) -> Iterator[str]:
    for case in exercise.cases(Draw(f"{exercise.id} 0")):
        error = None
        try:
            exercise.expected(*case.args)
        except Exception as caught:
            error = caught
        if (error is not None) != case.raises:
            raised = "nothing" if error is None else repr(error)
            yield f"the reference raises {raised} in the case {case.label!r}"


def _wrong_cells(exercise: Exercise) -> Iterator[str]:
    released: dict[str, Any] = {"tk": tk, "np": np}
    exec(exercise.imports, released)
    exec(_as_in_a_notebook(exercise.released_source), released)
    stub = released[exercise.name]
    if not exercise.is_not_started(stub, exercise.released_source):
        yield "its released cell is not recognised as not started"
    if exercise.kind == "complete" and "..." not in exercise.stub:
        yield "a program to complete has gaps, each a `...` with a comment"
    elif exercise.kind == "complete" and (lines := _outside_of_gaps(exercise)):
        yield f"its program differs from the answer outside of the gaps: {lines[0]}"
    if exercise.kind != "repair" and any(_passes(exercise, stub, 0)):
        yield "its untouched stub passes a case"
    if all(_passes(exercise, stub, 0)):
        yield "its untouched stub passes"
    solved: dict[str, Any] = {"tk": tk, "np": np}
    exec(exercise.imports, solved)
    exec(_as_in_a_notebook(exercise.solution_source), solved)
    if not all(_passes(exercise, solved[exercise.name], 0)):
        yield "the solution that learners read does not pass"


def _outside_of_gaps(exercise: Exercise) -> list[str]:
    """The lines that only one of a program with gaps and its answer has, where there is no gap."""
    cells = exercise.solution_source, exercise.released_source
    a, b = (ast.unparse(ast.parse(cell)).splitlines() for cell in cells)
    blocks = difflib.SequenceMatcher(a=a, b=b, autojunk=False).get_opcodes()
    return [
        line.strip()
        for kind, a_start, a_end, b_start, b_end in blocks
        if kind != "equal" and not any("..." in line for line in b[b_start:b_end])
        for line in (*a[a_start:a_end], *b[b_start:b_end])
    ]


def _as_in_a_notebook(source: str) -> CodeType:
    """The code of a cell as a notebook compiles it, which evaluates its annotations."""
    linecache.cache["<cell>"] = len(source), None, source.splitlines(keepends=True), "<cell>"
    return compile(source, "<cell>", "exec", dont_inherit=True)


def _weak_mistake(
    exercise: Exercise, mistake: Mistake, right: dict[int, list[Outcome]]
) -> Iterator[str]:
    if len(mistake.message) < 30:
        yield (
            f"the message of the mistake {mistake.name!r} is shorter than 30 characters: "
            "say what the answer does and what to do"
        )
    seeds = [*right][:: 5 if "cuda" in exercise.imports else 3]
    patterns = defaultdict(list)
    for seed in seeds:
        patterns[_passes(exercise, mistake.answer, seed, right[seed])].append(seed)
    if len(patterns) > 1:
        yield f"the points of the mistake {mistake.name!r} depend on the draw: {_two_of(patterns)}"
    if any(all(passed) for passed in patterns):
        yield f"the mistake {mistake.name!r} passes"
        return
    for seed in seeds[::10]:
        report = judge(exercise, mistake.answer, seed=seed, seconds=SECONDS)
        if report.message != mistake.message and mistake.code:  # then the text of the answer tells
            text = inspect.getsource(mistake.answer)
            report = judge(exercise, mistake.answer, seed=seed, seconds=SECONDS, source=text)
        if report.message != mistake.message:
            named = report.mistake or "no mistake"
            yield f"the mistake {mistake.name!r} is taken for {named!r} on seed {seed}"
            break


def _passes(
    exercise: Exercise, answer: Any, seed: int, right: Sequence[Outcome] | None = None
) -> tuple[bool, ...]:
    tried = trials(exercise, answer, seed, Budget(SECONDS), right=right)
    return tuple(trial.is_passed for trial in tried if trial.case.weight)


def _two_of(patterns: dict[tuple[bool, ...], list[int]]) -> str:
    return "; ".join(
        f"{sum(pattern)} of {len(pattern)} cases on seed {seeds[0]}"
        for pattern, seeds in list(patterns.items())[:2]
    )
