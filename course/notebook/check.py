"""`check("strides-of")`: runs every case of an exercise on the learner's answer and reports.

It takes no answer and never raises. What it finds it says in one report (`report`); the answer is
found by `answer`, run by `runner`, compared by `compare`.
"""

from __future__ import annotations

import ast
import itertools
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import tensorkit as tk
from course.notebook import answer, compare, history, live, record
from course.notebook.exercise import (
    Case,
    Draw,
    Exercise,
    Mistake,
    Prediction,
    load,
    no_such_exercise,
)
from course.notebook.quiet import ASKS, NotAllowed
from course.notebook.relations import first_relation
from course.notebook.report import Report, Row
from course.notebook.rules import parsed
from course.notebook.runner import Budget, Outcome, run_case
from course.notebook.slips import first_slip
from course.notebook.state import random_state, sentence, set_random_state
from course.notebook.varied import PUT_THESE
from course.shared.errors import TimeLimit
from course.shared.settings import settings

RunCase = Callable[[Exercise, Any, Case, Case, Budget], Outcome]
"""As `runner.run_case`: in this process, or wherever the answer is."""

SEED = 0
"""The notebook's own draw: the same numbers each time, so that a learner can work on one case."""


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
    rows = [_row(exercise, trial, seconds, source or "") for trial in counting]
    broken = [rule for rule in exercise.rules if source and rule.is_broken_by(source)]
    share = 0.0 if broken else _share(counting)
    may_be_typed_off = share < 1 and _may_be_typed_off(exercise, counting)
    if may_be_typed_off:
        share = 0.0
    is_wrong = not all(trial.is_passed for trial in counting)
    mistake = _recognised(exercise, tried, seed, seconds / 5, source) if is_wrong else None
    slip = None
    if is_wrong and not mistake and source and exercise.kind != "predict":
        failed = [(trial.outcome, trial.right) for trial in counting if not trial.is_passed]
        slip = first_slip(source, *failed[0]) or first_relation(failed, source)
    if is_wrong and not (mistake or slip):
        first = next(n for n, row in enumerate(rows) if row.status != "passed")
        rows[first] = replace(rows[first], tip=rows[first].tip or _first_idea(exercise))
    return Report(
        exercise.id,
        exercise.title,
        "passed" if share == 1 else "partly" if share else "failed",
        possible=exercise.points,
        earned=_in_quarters(exercise.points * share),
        message=mistake.message if mistake else slip.sentence if slip else "",
        mistake=mistake.name if mistake else slip.name if slip else "",
        rows=(*(Row(f"“{rule.words}”", "failed", tip=rule.advice) for rule in broken), *rows),
        notes=(*([_TYPED_OFF] if may_be_typed_off else []), *_notes(exercise, tried)),
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
    """Whether all that passed has the notebook's numbers in every draw, though others have not."""
    passed = {trial.case.label for trial in tried if trial.is_passed}
    fixed = fixed_cases(exercise)
    return bool(passed) and passed <= fixed and len(fixed) < len(tried)


@lru_cache(maxsize=256)  # in a class each learner may have other numbers
def fixed_cases(exercise: Exercise) -> frozenset[str]:
    """The labels of the cases that count and have the same arguments in every draw."""
    first, *others = [_cases(exercise, seed) for seed in range(6)]
    return frozenset(
        one.label
        for n, one in enumerate(first)
        if one.weight
        and all(compare.difference(one.args, other[n].args) is None for other in others)
    )


_TYPED_OFF = (
    "The cases that pass have the same numbers for everybody, so they give no points alone. They "
    "count as soon as a case passes whose numbers are drawn anew when it is graded."
)


@dataclass(frozen=True)
class Trial:
    """One case, what the answer did in it, what a right answer does."""

    case: Case
    outcome: Outcome
    right: Outcome

    @cached_property
    def is_passed(self) -> bool:
        return self.outcome.agrees_with(self.right)


def _reported(exercise_id: object, namespace: Mapping[str, Any]) -> Report:
    exercise: Exercise | None = None
    try:
        released = load().get(exercise_id) if type(exercise_id) is str else None
        if released is None:
            return _unknown(exercise_id)
        exercise = released.variant_for(record.owner())
        with _ONE_AT_A_TIME:
            found = answer.find(exercise, namespace, history.runs())
            if found.state == "ready":
                drawn = random_state()
                try:
                    report = judge(
                        exercise, found.value, seconds=settings().seconds, source=found.source
                    )
                finally:
                    set_random_state(drawn)
            else:
                report = nothing_to_check(exercise, found)
            report = with_note(report, found)
            finished = record.note_check(released, report, found.source)
            if finished:
                report = replace(report, message=finished)
            if shown := live.note(exercise, report):
                report = replace(report, notes=(*report.notes, shown))
    except KeyboardInterrupt:
        return _without_rows(exercise, "stopped", "You stopped this check before it was done.")
    except TimeLimit:  # of the check in which this one was called
        raise
    except BaseException as error:
        # what an answer does is caught case by case: this is a library that was changed from
        # within the notebook, an odd object, or a fault of ours
        what = f"{type(error).__name__}: {compare.text_of(error)[0]}"
        text = f"The answer could not be checked ({what}). Restart the kernel and try once more."
        return _without_rows(exercise, "stopped", text)
    return report


_ONE_AT_A_TIME = threading.RLock()
"""Standard output is redirected for all threads together."""


def trials(
    exercise: Exercise,
    value: Any,
    seed: object,
    budget: Budget,
    run: RunCase = run_case,
    right: Sequence[Outcome] | None = None,
) -> Iterator[Trial]:
    """Every case of one draw with what the answer and the reference do in it, one by one.

    right: what the reference does, where that is known already.
    """
    # three draws: the answer and the reference may both change their arguments
    right = right or right_outcomes(exercise, seed)
    given, untouched = _drawn(exercise, seed), _drawn(exercise, seed)
    for one, same, outcome in zip(given, untouched, right, strict=True):
        yield Trial(same, run(exercise, value, one, same, budget), outcome)


def right_outcomes(exercise: Exercise, seed: object) -> list[Outcome]:
    """What the reference does in every case of one draw."""
    return [_right(exercise, case) for case in _drawn(exercise, seed)]


def _drawn(exercise: Exercise, seed: object) -> list[Case]:
    return _cases(exercise, seed if seed == SEED else _unlike_the_notebook(exercise, seed))


def _cases(exercise: Exercise, seed: object) -> list[Case]:
    return exercise.drawn(_draw(exercise, seed))


def _draw(exercise: Exercise, seed: object) -> Draw:
    return Draw(f"{exercise.id} {seed}")


@lru_cache(maxsize=256)
def _unlike_the_notebook(exercise: Exercise, seed: object) -> object:
    """A seed, made of this one, whose draw repeats no case of the notebook by chance.

    A case with the notebook's numbers does not count alone, so a right answer could lose points.
    """
    others = (f"{seed} {again}" for again in range(1, 100))
    return next(
        (one for one in (seed, *others) if not meets_the_notebook(exercise, one)),
        seed,  # the audit finds such an exercise
    )


def meets_the_notebook(exercise: Exercise, seed: object) -> bool:
    """Whether a case whose numbers are drawn has those of a case of the notebook."""
    fixed = fixed_cases(exercise)
    counting = [case for case in _cases(exercise, seed) if case.weight]
    drawn = [case.args for case in counting if case.label not in fixed]
    return any(
        key == _key(one) and compare.difference(one, own) is None
        for key, own in _in_the_notebook(exercise)
        for one in drawn
    )


@lru_cache(maxsize=256)  # in a class each learner may have other numbers
def _in_the_notebook(exercise: Exercise) -> list[tuple[list[object], tuple[Any, ...]]]:
    """The arguments that the notebook shows, each with its key."""
    return [(_key(case.args), case.args) for case in _cases(exercise, SEED)]


def _key(args: tuple[Any, ...]) -> list[object]:
    """What is compared first, because it is quick: numbers, texts, shapes, types."""
    return [
        argument
        if isinstance(argument, int | float | str)
        else getattr(argument, "shape", type(argument))
        for argument in args
    ]


def _right(exercise: Exercise, case: Case) -> Outcome:
    try:
        return Outcome(value=exercise.expected(*case.args))
    except Exception as error:
        if not case.raises:  # the library is broken, or the exercise
            raise
        return Outcome("raised", error=error)


def _recognised(
    exercise: Exercise, tried: list[Trial], seed: object, seconds: float, source: str | None
) -> Mistake | None:
    """The usual mistake with which the answer agrees wherever that differs from a right answer.

    At least two such cases are needed, and the first failure, which is shown in full, is one of
    them. Of several mistakes the one that explains most is named. What a mistake says of the code
    is looked up in the source.
    """
    tree = parsed(source)
    code = "" if tree is None else ast.unparse(tree)  # without comments
    first = next(n for n, trial in enumerate(tried) if trial.case.weight and not trial.is_passed)
    found: list[tuple[int, Mistake]] = []
    right = [trial.right for trial in tried]
    for mistake in exercise.mistakes():
        if code and not re.search(mistake.code, code):
            continue
        again = trials(exercise, mistake.answer, seed, Budget(seconds), right=right)
        wrong_trials = list(itertools.islice(again, first + 1))
        # most are told apart by the first failure alone
        wrong = wrong_trials[first]
        if wrong.is_passed or not tried[first].outcome.agrees_with(wrong.outcome):
            continue
        wrong_trials += again
        pairs = list(zip(tried, wrong_trials, strict=True))
        telling = [(own.outcome, wrong.outcome) for own, wrong in pairs if not wrong.is_passed]
        if len(telling) >= 2 and _err_alike(telling):
            # an exception tells little: then they agree in all cases
            if all(wrong.ended == "raised" for _, wrong in telling) and not all(
                own.outcome.agrees_with(wrong.outcome) for own, wrong in pairs
            ):
                continue
            found.append((len(telling), mistake))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _err_alike(telling: list[tuple[Outcome, Outcome]]) -> bool:
    """True if both did the same in every case; where all raised, with the same words too.

    A mistake that prints is not that of an answer that prints nothing.
    """
    if not all(outcome.agrees_with(wrong) for outcome, wrong in telling):
        return False
    if any(wrong.printed.strip() and not outcome.printed.strip() for outcome, wrong in telling):
        return False
    if any(wrong.ended == "returned" for _, wrong in telling):
        return True
    return all(_without_numbers(outcome) == _without_numbers(wrong) for outcome, wrong in telling)


def _without_numbers(outcome: Outcome) -> str:
    return re.sub(r"\d+", "", outcome.message[0])


# Words


def _row(exercise: Exercise, trial: Trial, seconds: float, source: str) -> Row:
    label, outcome, right = trial.case.label, trial.outcome, trial.right
    call = exercise.describe_call(trial.case.args, compare.as_code) + _layouts(trial.case.args)
    if trial.is_passed:
        return Row(label, "passed", call)
    if outcome.ended == "not run":
        return Row(label, "not run", call)
    if isinstance(exercise, Prediction):
        tip = exercise.advice(*trial.case.args) or ""
        if outcome.value is ...:
            return Row(label, "failed", "", "", "", "Replace this `...` by your prediction.")
        tip = _another_kind(outcome.value, right.value) or f"{tip} {exercise.how_to_look(label)}"
        return Row(label, "failed", "", _shown(outcome), "", tip)
    tip = _advice(exercise, trial, seconds, source)
    return Row(label, "failed", call, _shown(outcome), _shown(right), tip)


def _another_kind(predicted: Any, right: Any) -> str | None:
    """What to write, where a prediction is of another kind than the right one."""
    written = {
        bool: "`True` or `False`, without quotes",
        str: "a text in quotes",
        int: "a number, without quotes",
        list: "a list in brackets, such as `[2, 3]`, without quotes",
    }
    if type(predicted) is float and type(right) is int and predicted == right:
        return f"This prediction is a float; write a whole number: `{right}`."
    kinds = {float: int, tuple: list, tk.Size: list}
    predicted_kind, asked = (kinds.get(type(value), type(value)) for value in (predicted, right))
    if predicted_kind is asked or asked not in written:
        return None
    return f"This prediction is {compare.kind(predicted)}; write {written[asked]}."


def _shown(outcome: Outcome) -> str:
    """What happened, for the rows "got" and "expected"."""
    if outcome.ended == "returned":
        return compare.show(outcome.value)
    if outcome.ended == "timed out":
        return "no answer"
    text, _ = outcome.message
    named = type(outcome.error).__name__ + (f": {text}" if text else "")
    return f"{named}\n{outcome.where}" if outcome.where else named


def _advice(exercise: Exercise, trial: Trial, seconds: float, source: str) -> str:
    outcome, right = trial.outcome, trial.right
    if stopped := _about_stop(exercise, outcome, seconds, source):
        return stopped
    own = _unless_there(exercise.advice(*trial.case.args), source)
    if outcome.ended == "raised":
        repair = _unless_there(outcome.message[1].removeprefix("Try: "), source)
        return own or repair or _about_error(outcome, exercise.name)
    if right.ended == "raised":
        return own or f"Here it should raise {type(right.error).__name__}."
    if outcome.changed:
        return _about_changes(outcome.changed, trial.case.args)
    found = compare.difference(outcome.value, right.value)
    if outcome.value is None and right.value is not None:
        found = f"It is None: {_why_none(source, exercise.name)}"
    if isinstance(right.value, bool | int | float | str) and isinstance(
        outcome.value, type(right.value)
    ):
        found = None  # "got" and "expected" say it already
    return " ".join(filter(None, [found, own]))


def _about_changes(changed: Mapping[int, str], args: tuple[Any, ...]) -> str:
    """What the answer changed in its arguments, and how to leave them alone."""
    parts = [
        f"`{what}` of argument {n + 1}" if what != "values" else f"argument {n + 1}"
        for n, what in changed.items()
    ]
    belongs = "which still belongs" if len(parts) == 1 else "which still belong"
    mend = _work_on([args[position] for position in changed])
    if "values" not in changed.values():
        mend = "`x.detach()` has the same numbers, and a `requires_grad` and a `grad` of its own."
    return f"It changes {' and '.join(parts)}, {belongs} to the caller. {mend}"


def _work_on(values: list[Any]) -> str:
    """How to leave arguments of these kinds alone."""
    if all(isinstance(value, tk.Tensor) for value in values):
        return "Write into a tensor of your own, such as a `.clone()`."
    if all(isinstance(value, list) for value in values):
        return "Write into a list of your own: `list(...)` makes one."
    return "Make something new in place of writing into it."


def _about_stop(exercise: Exercise, outcome: Outcome, seconds: float, source: str) -> str | None:
    """What to do where the answer was not allowed to go on."""
    if outcome.ended == "timed out":
        stopped = f"It did not end within {seconds:g} seconds and was stopped."
        tree = parsed(source)
        if tree and any(isinstance(node, ast.While) for node in ast.walk(tree)):
            return f"{stopped} Does the condition of the `while` ever become false?"
        return f"{stopped} Print something in each step, and see which step comes again and again."
    if isinstance(outcome.error, NotAllowed):
        if outcome.message[0] == ASKS:
            return "Leave `input()` out; the call above shows which arguments arrive."
        return f'`hint("{exercise.id}")` in a new cell says how to begin without it.'
    if isinstance(outcome.error, SystemExit):
        return "This ends the whole program (`SystemExit`). A function ends with `return`."
    if isinstance(outcome.error, RecursionError):
        return (
            "Calls inside of calls went deeper than Python allows. Either no case ends them, or "
            "there are too many steps for calls: a loop has no such limit."
        )
    return None


def _unless_there(advice: str | None, source: str) -> str | None:
    """Advice, if it is true of this source.

    A call or an option that it recommends does not stand in the answer already, and what it calls
    "your `exp`" does. A second barrier is no contradiction to a first one.
    """
    recommended = re.findall(r"\.(?!syncthreads)\w+_?\((?=\))|\w+=True", advice or "")
    if any(each in source.replace(" ", "") for each in recommended):
        return None
    assumed = re.findall(r"[Yy]our `(\w+)`", advice or "")
    return advice if all(re.search(rf"\b{each}\b", source) for each in assumed) else None


def _why_none(source: str, name: str) -> str:
    """Where the None comes from that a function with this source gave."""
    function = next(
        (
            node
            for node in ast.walk(parsed(source) or ast.Module([], []))
            if isinstance(node, ast.FunctionDef) and node.name == name
        ),
        None,
    )
    if function is None:
        return "a function gives None where it ends without `return` and a value."
    returned = [node for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
    if not returned:
        return "is a `return` missing?"
    if isinstance(function.body[-1], ast.Return):
        return "print what stands behind `return` before it is returned."
    return "either what stands behind `return` is None, or the function ends before it comes there."


_LOOK_AT = {
    "'ellipsis'": "A gap is still open, here or above: put something in place of every `...`.",
    "NoneType": (
        "Something that is used here is None. A function without `return` gives None, and so does "
        "`.grad` as long as no backward came by."
    ),
    "'tuple' object does not support item assignment": (
        "A tuple cannot be changed: work on `list(...)` of it, and make a `tuple(...)` at the end."
    ),
    "can't multiply sequence|can only concatenate (tuple|list)|operand type.*'(tuple|list)'": (
        "Tuples and lists do not compute element by element. Go through them in a loop; `zip` goes "
        "through two at once."
    ),
    "'(function|method|builtin_function_or_method)' object": (
        "A function is used here as if it were a value. Are parentheses missing behind a name? "
        "`x.cpu` is the method, `x.cpu()` calls it."
    ),
    "is not part of": "Do it with what this chapter and those before it have shown.",
    "can be implicitly created only for scalar": (
        "Backward begins at one number. Add the numbers up, or take their mean, before it."
    ),
    "values to unpack": (
        "How many values come at a time, and how many names are there for them? A loop over a "
        "dictionary gives keys alone; `.items()` gives pairs."
    ),
    "^(Name|UnboundLocal)Error": (
        "Is the name spelled as where you made it, and made before this line runs?"
    ),
    r"^TypeError.*(takes|missing|unexpected|multiple values).*\bargument": (
        "Compare this call with what the function takes: how many arguments, and under which names?"
    ),
    "^TypeError.*argument": (
        "Print the arguments of this call just before it: is each of the kind that it should be?"
    ),
    "^AttributeError": (
        "Is the name behind the dot spelled as in the text, and does it belong to what stands "
        "before the dot?"
    ),
    "^ZeroDivisionError": "What makes the divisor 0 in this case?",
    r"^Index\w*Error": (
        "How many entries are there in this case, and which index does the line ask for?"
    ),
    "^KeyError": "Print the keys of the dictionary just before this line: this one is not there.",
    "": "Make this call yourself in a new cell and take the line apart, piece by piece.",
}
"""What to look at first, by a piece of the exception's class and message; the first that fits."""


def _about_error(outcome: Outcome, name: str) -> str:
    said = f"{type(outcome.error).__name__}: {outcome.message[0]}"
    if said.startswith("TypeError") and "argument" in said and not outcome.where:
        return "Compare with the call above, and keep the `def` line as it was released."
    if said.startswith(f"TypeError: {name}()"):
        return f"Compare this call of `{name}` with its `def` line."
    return next(look for piece, look in _LOOK_AT.items() if re.search(piece, said))


def _first_idea(exercise: Exercise) -> str:
    """What to do about a case of which nothing else is known."""
    return (
        "Work this case out on paper, then go through your code line by line. "
        f'`hint("{exercise.id}")` in a new cell gives an idea.'
    )


def _layouts(args: tuple[Any, ...]) -> str:
    """Comments on arguments that the call as it is shown would make with another layout."""
    return "".join(
        f"\n# argument {position} is a view: strides {argument.stride()}, offset "
        f"{argument.storage_offset()}"
        for position, argument in enumerate(args, 1)
        if isinstance(argument, tk.Tensor)
        if not (argument.is_contiguous() and argument.storage_offset() == 0)
    )


def _notes(exercise: Exercise, tried: list[Trial]) -> list[str]:
    """What is worth knowing and costs no points: edge cases, changes, warnings, prints."""
    notes = []
    beyond = next((trial for trial in tried if not (trial.case.weight or trial.is_passed)), None)
    if beyond is not None and all(trial.is_passed for trial in tried if trial.case.weight):
        call = exercise.describe_call(beyond.case.args, compare.as_code)
        notes.append(
            f"Not asked for, and it costs nothing: {beyond.case.label}. For `{call}` your answer "
            f"gives `{_shown(beyond.outcome)}`; the course's own gives `{_shown(beyond.right)}`."
        )
    changed = [words for trial in tried for words in trial.outcome.left_changed]
    if changed:
        notes.append(sentence(changed))
    warned = [text for trial in tried for text in trial.outcome.warned]
    if warned:
        notes.append(f"Python warned while your code ran: {compare.cut(warned[0], 200)}")
    printed = next((trial.outcome.printed for trial in tried if trial.outcome.printed.strip()), "")
    if printed:
        first, *more = printed.strip().splitlines()
        text = compare.cut(first + " ..." * bool(more), 80).strip()
        notes.append(f"Your code prints `{text}`; the check does not read what is printed.")
    return notes


def with_note(report: Report, found: answer.Answer) -> Report:
    """The report with what a learner should know about their answer in front."""
    if not found.note:
        return report
    # where there is nothing to check, the note says already what to do
    message = f"{found.note} {report.message}".strip() if found.state == "ready" else found.note
    return replace(report, message=message)


def nothing_to_check(exercise: Exercise, found: answer.Answer) -> Report:
    if found.state == "not started":
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
        report = _without_rows(exercise, found.state, found.sentence)
        report = replace(report, mistake=found.mistake)
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
