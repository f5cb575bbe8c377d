"""What the answer does in every case of an exercise, beside what a right answer does.

Cases are drawn from a seed. A usual mistake is recognised by what it does in the same cases.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from course.notebook import compare
from course.notebook.exercise import Case, Draw, Exercise, Mistake
from course.notebook.rules import parsed
from course.notebook.runner import Budget, Outcome, run_case

RunCase = Callable[[Exercise, Any, Case, Case, Budget], Outcome]
"""As `runner.run_case`: in this process, or wherever the answer is."""

SEED = 0
"""The notebook's own draw: the same numbers each time, so that a learner can work on one case."""


@dataclass(frozen=True)
class Trial:
    """One case, what the answer did in it, what a right answer does."""

    case: Case
    outcome: Outcome
    right: Outcome

    @cached_property
    def is_passed(self) -> bool:
        return self.outcome.agrees_with(self.right)


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
    # draws of their own: the answer may change its arguments, and some references do
    given, untouched = _drawn(exercise, seed), _drawn(exercise, seed)
    if right is None and exercise.changes_arguments:
        right = right_outcomes(exercise, seed)
    right = right or [_right(exercise, case) for case in untouched]
    for drawn, fresh, outcome in zip(given, untouched, right, strict=True):
        yield Trial(fresh, run(exercise, value, drawn, fresh, budget), outcome)


def right_outcomes(exercise: Exercise, seed: object) -> list[Outcome]:
    """What the reference does in every case of one draw."""
    return [_right(exercise, case) for case in _drawn(exercise, seed)]


@lru_cache(maxsize=256)  # in a class each learner may have other numbers
def fixed_cases(exercise: Exercise) -> frozenset[str]:
    """The labels of the cases that count and have the same arguments in every draw."""
    first, *draws = [_cases(exercise, seed) for seed in range(6)]
    return frozenset(
        case.label
        for n, case in enumerate(first)
        if case.weight
        and all(compare.difference(case.args, draw[n].args) is None for draw in draws)
    )


def meets_the_notebook(exercise: Exercise, seed: object) -> bool:
    """Whether a case with drawn numbers has the same numbers as a case of the notebook."""
    fixed = fixed_cases(exercise)
    counting = [case for case in _cases(exercise, seed) if case.weight]
    shown = _in_the_notebook(exercise)
    return any(
        compare.difference(case.args, args) is None
        for case in counting
        if case.label not in fixed
        for args in shown.get(_key(case.args), ())
    )


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
    seeds = (f"{seed} {again}" for again in range(1, 100))
    return next(
        (candidate for candidate in (seed, *seeds) if not meets_the_notebook(exercise, candidate)),
        seed,  # every seed repeats a case of the notebook; the audit names such an exercise
    )


@lru_cache(maxsize=256)  # in a class each learner may have other numbers
def _in_the_notebook(exercise: Exercise) -> dict[tuple[object, ...], list[tuple[Any, ...]]]:
    """The arguments that the notebook shows, by their keys."""
    shown: dict[tuple[object, ...], list[tuple[Any, ...]]] = {}
    for case in _cases(exercise, SEED):
        shown.setdefault(_key(case.args), []).append(case.args)
    return shown


def _key(args: tuple[Any, ...]) -> tuple[object, ...]:
    """What is compared first, because it is quick: numbers, texts, shapes, types."""
    return tuple(
        argument
        if isinstance(argument, int | float | str)
        else getattr(argument, "shape", type(argument))
        for argument in args
    )


def _right(exercise: Exercise, case: Case) -> Outcome:
    try:
        return Outcome(value=exercise.expected(*case.args))
    except Exception as error:
        if not case.raises:  # the library is broken, or the exercise
            raise
        return Outcome("raised", error=error)


def recognised(
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
    candidates: list[tuple[int, Mistake]] = []
    untried: list[Case] = []
    for mistake in exercise.mistakes():
        if code and not re.search(mistake.code, code):
            continue
        given, budget = untried or _drawn(exercise, seed), Budget(seconds)
        run = partial(_beside, exercise, mistake.answer, budget)
        # most are told apart by the first failure alone
        wrong = run(tried[first], given[first])
        agrees = not wrong.is_passed and tried[first].outcome.agrees_with(wrong.outcome)
        untried = [] if agrees or _may_have_changed(exercise, wrong.outcome) else given
        if not agrees:
            continue
        outcomes = [wrong if n == first else run(tried[n], given[n]) for n in range(len(tried))]
        pairs = list(zip(tried, outcomes, strict=True))
        telling = [
            (trial.outcome, wrong.outcome)
            for trial, wrong in pairs
            if not (wrong.is_passed or _is_rounded_otherwise(trial, wrong))
        ]
        if len(telling) >= 2 and _err_alike(telling):
            # an exception tells little: then they agree in all cases
            if all(wrong.ended == "raised" for _, wrong in telling) and not all(
                trial.outcome.agrees_with(wrong.outcome) for trial, wrong in pairs
            ):
                continue
            candidates.append((len(telling), mistake))
    return max(candidates, key=lambda pair: pair[0])[1] if candidates else None


def _beside(exercise: Exercise, answer: Any, budget: Budget, trial: Trial, given: Case) -> Trial:
    """The trial of another answer in the case of a trial. given: that case, drawn again."""
    return replace(trial, outcome=run_case(exercise, answer, given, trial.case, budget))


def _may_have_changed(exercise: Exercise, outcome: Outcome) -> bool:
    """Whether the answer may have changed the arguments of a case after they were drawn."""
    return exercise.changes_arguments or outcome.ended != "returned" or bool(outcome.changed)


def _is_rounded_otherwise(trial: Trial, wrong: Trial) -> bool:
    """Whether two ways to the same number may differ here: float16 rounds after every step."""
    if "(float16)" not in trial.case.label or trial.is_passed:
        return False
    given, mistaken = trial.outcome, wrong.outcome
    return given.changed == mistaken.changed and not given.agrees_with(mistaken)


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
