"""`check("strides-of")`: runs every case of an exercise on the learner's answer and reports.

It takes no answer and never raises. The answer is found by `answer`, run case by case by `trials`,
and what is found is said in one `report`, whose sentences about a case come from `advice`.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from course.notebook import advice, answer, compare, helpers, history, live, record
from course.notebook.exercise import Exercise, load, no_such_exercise
from course.notebook.relations import first_relation
from course.notebook.report import Report, Row
from course.notebook.runner import Budget, run_case
from course.notebook.slips import first_slip
from course.notebook.state import random_state, set_random_state
from course.notebook.trials import SEED, RunCase, Trial, fixed_cases, recognised, trials
from course.notebook.varied import PUT_THESE
from course.shared.errors import TimeLimit
from course.shared.settings import settings


def check(exercise_id: object = None, *_: object, **__: object) -> Report:
    """The report on the learner's answer to an exercise, as it stands in this notebook.

    exercise_id: as in the cell below the exercise. The answer is read by its name from the
    namespace of the caller. Never raises: whatever the answer does becomes a sentence.
    """
    report = _reported(exercise_id, sys._getframe(1).f_globals)
    _print_where_it_is_needed(report)
    return report


def judge(
    exercise: Exercise,
    value: Any,
    *,
    seed: object = SEED,
    seconds: float = 5.0,
    run: RunCase = run_case,
    source: str | None = None,
) -> Report:
    """The report on `value` as the answer to `exercise`, without any notebook.

    seed: of the draw. seconds: for all cases together. run: what runs the answer in one case.
    source: the answer's program, where it is known: what a sentence says of it is looked up there.
    """
    tried = list(trials(exercise, value, seed, Budget(seconds), run))
    counting = [trial for trial in tried if trial.case.weight]
    rows = [advice.row(exercise, trial, seconds, source or "") for trial in counting]
    broken = [rule for rule in exercise.rules if source and rule.is_broken_by(source)]
    demands = [Row(f"“{rule.words}”", "failed", tip=rule.tip(source or "")) for rule in broken]
    share = 0.0 if broken else _share(counting)
    may_be_typed_off = share < 1 and bool(exercise.points) and _may_be_typed_off(exercise, counting)
    if may_be_typed_off:
        share = 0.0
    mistake, slip = None, None
    failed = [(trial.outcome, trial.right) for trial in counting if not trial.is_passed]
    text = "" if exercise.kind == "predict" else source
    if failed and text:  # a line that does nothing is named before a mistake that values show
        slip = first_slip(text, *failed[0], is_certain=True)
    if failed and not slip:
        mistake = recognised(exercise, tried, seed, seconds / 5, source)
    if failed and text and not (mistake or slip):
        slip = first_slip(text, *failed[0]) or first_relation(failed, text)
    if failed and not (mistake or slip):
        first = next(n for n, row in enumerate(rows) if row.status != "passed")
        rows[first] = replace(rows[first], tip=rows[first].tip or advice.first_idea(exercise))
    return Report(
        exercise.id,
        exercise.title,
        "passed" if share == 1 else "partly" if share else "failed",
        possible=exercise.points,
        earned=_in_quarters(exercise.points * share),
        message=mistake.message if mistake else slip.sentence if slip else "",
        mistake=mistake.name if mistake else slip.name if slip else "",
        rows=(*demands, *rows),
        notes=(*[_TYPED_OFF] * may_be_typed_off, *advice.notes(exercise, tried, source or "")),
    )


def _share(counting: Sequence[Trial]) -> float:
    """The share of the points that the passed cases give, by their weights."""
    if all(trial.is_passed for trial in counting):
        return 1.0  # exactly, however the weights add up
    passed = sum(trial.case.weight for trial in counting if trial.is_passed)
    return passed / sum(trial.case.weight for trial in counting)


def _in_quarters(points: float) -> float:
    """Points rounded down to quarters.

    >>> _in_quarters(4.38), _in_quarters(3.0)
    (4.25, 3.0)
    """
    return math.floor(points * 4 + 1e-9) / 4


def _may_be_typed_off(exercise: Exercise, tried: Sequence[Trial]) -> bool:
    """Whether only cases with fixed numbers passed, in an exercise that also has drawn cases."""
    passed = {trial.case.label for trial in tried if trial.is_passed}
    fixed = fixed_cases(exercise)
    return bool(passed) and passed <= fixed and len(fixed) < len(tried)


_TYPED_OFF = (
    "The cases that pass have the same numbers for everybody, so they give no points alone. They "
    "count as soon as a case passes whose numbers are drawn anew when it is graded."
)


def _reported(exercise_id: object, namespace: Mapping[str, Any]) -> Report:
    exercise: Exercise | None = None
    try:
        released = load().get(exercise_id) if type(exercise_id) is str else None
        if released is None:
            return _unknown(exercise_id)
        exercise = released.variant_for(record.owner())
        with _ONE_AT_A_TIME:
            found_answer = answer.find(exercise, namespace, history.runs())
            if found_answer.state == "ready":
                late = helpers.note(exercise, found_answer, history.runs_until_now())
                found_answer = replace(found_answer, note=f"{found_answer.note} {late}".strip())
                drawn = random_state()
                try:
                    report = judge(
                        exercise,
                        found_answer.value,
                        seconds=settings().seconds,
                        source=found_answer.source,
                    )
                finally:
                    set_random_state(drawn)
            else:
                report = nothing_to_check(exercise, found_answer)
            report = with_note(report, found_answer)
            finished = record.note_check(released, report, found_answer.source)
            if finished:
                report = replace(report, message=f"{report.message} {finished}".strip())
            if shown := live.note(exercise, report):
                report = replace(report, notes=(*report.notes, shown))
    except KeyboardInterrupt:
        return _without_rows(exercise, "stopped", "You stopped this check before it was done.")
    except TimeLimit:  # of another check, whose answer called this one
        raise
    except BaseException as error:
        # what an answer does is caught case by case: this is a library that was changed from
        # within the notebook, an odd object, or a fault of ours
        words = f"{type(error).__name__}: {compare.text_of(error)[0]}"
        text = f"The answer could not be checked ({words}). Restart the kernel and try once more."
        return _without_rows(exercise, "stopped", text)
    return report


_ONE_AT_A_TIME = threading.RLock()
"""Standard output is redirected for all threads together."""


def with_note(report: Report, found_answer: answer.Answer) -> Report:
    """The report with what a learner should know about their answer in front."""
    if not found_answer.note:
        return report
    # where there is nothing to check, the note says already what to do
    message = report.message if found_answer.state == "ready" else ""
    return replace(report, message=f"{found_answer.note} {message}".strip())


def nothing_to_check(exercise: Exercise, found_answer: answer.Answer) -> Report:
    if found_answer.state == "not started":
        begin = "Write your answer in the cell above"
        if exercise.kind == "repair":
            begin = (
                "This is the code as it was released. Call it in a new cell, as in the example, "
                "and see what comes back. Change it"
            )
        elif exercise.kind == "complete":
            begin = "This is the program as it was released. Fill its gaps"
        if exercise.learner:
            begin = f"Everybody has numbers of their own here. {PUT_THESE}"
        text = (
            f"{begin}, run it, then run this cell again. "
            f'`hint("{exercise.id}")` in a new cell gives a first idea.'
        )
        report = _without_rows(exercise, "not started", text)
    else:
        report = _without_rows(exercise, found_answer.state, found_answer.sentence)
        report = replace(report, mistake=found_answer.mistake)
    return replace(report, code=exercise.released_source if exercise.learner else "")


def _without_rows(exercise: Exercise | None, status: str, message: str) -> Report:
    if exercise is None:
        return Report("", "This check", status, 0.0, message=message)
    return Report(exercise.id, exercise.title, status, exercise.points, message=message)


def _unknown(exercise_id: object) -> Report:
    text = no_such_exercise(exercise_id, "check")
    return Report("", "No such exercise", "unknown", 0.0, message=text)


def _print_where_it_is_needed(report: Report) -> None:
    """Text where no table is shown; for Validate, on stderr, whatever is not full marks."""
    if os.environ.get("NBGRADER_EXECUTION") == "validate":
        if report.status != "passed":
            print(report, file=sys.stderr)
    elif not history.is_notebook():
        print(report)
