"""Every registered exercise is complete, and the audit that says so notices what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest
import sample

import tensorkit as tk
from course.authoring.audit import faults
from course.exercises.ch10_engine.part import Part
from course.exercises.ch12_kernels.kernel_exercise import KernelExercise
from course.notebook.check import judge
from course.notebook.compare import difference
from course.notebook.exercise import KINDS, Case, Draw, Exercise, Prediction, case, chapters, load
from course.notebook.plain import Seen
from course.notebook.runner import Budget, run_case
from course.notebook.trials import SEED, fixed_cases, trials

EXERCISES = [exercise for chapter in chapters() for exercise in load(chapter).values()]
WRITTEN = [exercise for exercise in EXERCISES if not isinstance(exercise, Prediction)]


@pytest.mark.parametrize("draws", [1, pytest.param(30, marks=pytest.mark.rest)])
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_exercise_is_complete(exercise, draws):
    found = faults(exercise, seeds=range(draws))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("exercise", WRITTEN, ids=lambda exercise: exercise.id)
def test_typed_off_answers_earn_nothing(exercise):
    def typed_off(exercise, answer, given, untouched, budget):
        knows = given.label in fixed_cases(exercise)
        answer = exercise.reference if knows else answer
        return run_case(exercise, answer, given, untouched, budget)

    def unknown(*_: Any) -> None:
        raise LookupError

    report = judge(exercise, unknown, run=typed_off)
    assert report.earned == 0
    if fixed_cases(exercise):
        told = any(note.startswith("The cases that pass have the same") for note in report.notes)
        assert told == (exercise.points > 0)  # a further exercise has no points to lose


ROUNDED = "sine-slope"  # what the check sees is what is returned, with fewer digits
LOOKED_AT = [
    exercise
    for exercise in WRITTEN
    if type(exercise).run is not Exercise.run and exercise.id != ROUNDED
    if not isinstance(exercise, Part | KernelExercise)  # programs use it, or launch it
]


@pytest.mark.parametrize("exercise", LOOKED_AT, ids=lambda exercise: exercise.id)
def test_an_answer_cannot_return_what_the_check_sees_of_it(exercise):
    def run(exercise, answer, given, untouched, budget):
        returned = []

        def right(*args: Any, **options: Any) -> Any:
            returned.append(answer(*args, **options))
            return returned[-1]

        outcome = run_case(exercise, right, given, untouched, budget)
        seen = as_learners_have_it(outcome.value)
        for forged in (seen, *(seen.values() if type(seen) is dict else ())):
            if returned and difference(returned[0], forged) is not None:
                told = run_case(
                    exercise, lambda *_, value=forged: value, untouched, untouched, budget
                )
                assert not told.agrees_with(outcome), f"{given.label}: {forged}"
        return outcome

    assert all(
        trial.is_passed
        for trial in trials(exercise, exercise.reference, "seed", Budget(20), run=run)
    )


def as_learners_have_it(value: Any) -> Any:
    """What comes back from a learner's process: no dictionary of the course's own kind."""
    if type(value) in (dict, Seen):
        return {key: as_learners_have_it(each) for key, each in value.items()}
    return [as_learners_have_it(each) for each in value] if type(value) is list else value


def test_the_order_of_a_dictionary_is_no_order_of_backward():
    exercise = load()["backward-order"]
    assert judge(exercise, lambda graph, root: list(graph)).earned <= exercise.points / 2


@pytest.mark.parametrize("exercise", WRITTEN, ids=lambda exercise: exercise.id)
def test_a_table_of_what_the_notebook_shows_earns_nothing(exercise):
    shown = [case.args for case in exercise.cases(Draw(f"{exercise.id} {SEED}"))]

    def table(exercise, answer, given, untouched, budget):
        knows = any(difference(given.args, args) is None for args in shown)
        answer = exercise.reference if knows else answer
        return run_case(exercise, answer, given, untouched, budget)

    def unknown(*_: Any) -> None:
        raise LookupError

    assert [judge(exercise, unknown, seed=seed, run=table).earned for seed in "abcdef"] == [0] * 6


def test_the_course_has_exercises_of_every_kind():
    assert {exercise.kind for exercise in EXERCISES} == set(KINDS)


class Doubled(Exercise):
    """Double a number

    Input: a whole number `n`. Output: twice that number. One worked case: `doubled(3)` is 6, and
    `doubled(-1)` is -2. Nothing else is asked for, which is why this statement is so long.
    """

    hints = ("What is twice 3?", "There is an operator for it.")
    usual_mistakes: ClassVar[Mapping[str, tuple[Any, str]]] = {
        "squares": (lambda n: n * n, "That is the square: add the number to itself."),
        "adds two": (lambda n: n + 2, "That adds two: add the number to itself."),
        "unchanged": (lambda n: n, "The number comes back unchanged: use an operator."),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(3, label="three")
        yield case(draw.integer(4, 9), label="one digit")
        yield case(-draw.integer(3, 9), label="negative")
        yield case(draw.integer(10, 99), label="two digits")


def doubled(n):
    """Twice `n`."""
    return 2 * n


def doubled_in_steps(n):
    """Twice `n`."""
    pair = [n]
    pair.append(n)
    assert pair
    return sum(pair)


def a_step_less(n):
    pair = [n]
    assert pair
    return ...  # the sum


def always_six(n):
    return 6


def audited(
    answer: Callable[..., Any] = doubled,
    stub: Callable[..., Any] | None = None,
    kind: str = "write",
    **body: Any,
) -> list[str]:
    """The faults of `Doubled` with another class body."""
    exercise = type("Changed", (Doubled,), {"__doc__": Doubled.__doc__, **body})()
    exercise.id, exercise.points = "doubled", 1.0
    exercise.difficulty, exercise.minutes = 1, 1
    exercise.kind = kind
    exercise.chapter, exercise.further = "sample", False
    exercise.without, exercise.reference = (), answer
    exercise._stub = stub
    return faults(exercise, seeds=range(20))


def mistakes(**more: tuple[Any, str]) -> Mapping[str, tuple[Any, str]]:
    return {**Doubled.usual_mistakes, **more}


def test_a_complete_exercise_has_no_fault():
    assert audited() == []


def vague(self: Exercise, draw: Draw) -> Iterator[Case]:
    yield case(3, label=f"case {draw.integer(0, 9)}")
    yield case(4, label="four")


def lucky(self: Exercise, draw: Draw) -> Iterator[Case]:
    # 2 is where doubling, squaring and adding two agree
    yield case(draw.integer(2, 3), label="small")
    yield case(-1, label="negative")
    yield case(5, label="five")


def fixed(self: Exercise, draw: Draw) -> Iterator[Case]:
    yield from (case(n, label=f"case {n}") for n in range(3, 6))


def narrow(self: Exercise, draw: Draw) -> Iterator[Case]:
    yield from (case(draw.integer(4, 5), label=f"case {n}") for n in range(12))


def on_tensors(self: Exercise, draw: Draw) -> Iterator[Case]:
    yield from (case(tk.ones(draw.integer(2, 9)), label=f"case {n}") for n in range(3))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cases": on_tensors}, "no label of its cases marks an edge case"),
        ({"cases": fixed}, "0 of its 3 cases have drawn numbers"),
        ({"cases": narrow}, "twenty draws have each a number of the notebook's"),
        ({"usual_mistakes": {}}, "it has 0 usual mistakes"),
        ({"hints": ("One.",)}, "it has 1 hint;"),
        ({"hints": ("One.", "One.")}, "two of its hints are the same"),
        ({"usual_mistakes": mistakes(one=(abs, "A" * 40), other=(abs, "A" * 40))}, "same function"),
        ({"__doc__": "Double\n\nDo it."}, "the statement says input"),
        ({"usual_mistakes": mistakes(twice=(lambda n: n + n, "A" * 40))}, "'twice' passes"),
        ({"usual_mistakes": mistakes(short=(lambda n: 0, "Wrong."))}, "is shorter than 30"),
        (
            {
                "usual_mistakes": mistakes(
                    same=(lambda n: n**2, "A different text, as it should not be.")
                )
            },
            "'same' is taken for 'squares'",
        ),
        (
            {
                "usual_mistakes": mistakes(
                    once=(lambda n: 2 * n + (n == 3), "Wrong in one case only, that is too few.")
                )
            },
            "'once' is taken for 'no mistake'",
        ),
        ({"cases": vague}, "labels and weights of its cases depend on the draw"),
        ({"cases": lucky}, "the points of the mistake 'squares' depend on the draw"),
        ({"expected": lambda self, n: 3 * n}, "the reference does not pass"),
        ({"answer": sample.strides_of}, "the reference raises TypeError"),
        ({"stub": always_six}, "its untouched stub passes a case"),
        ({"stub": doubled, "kind": "repair"}, "its untouched stub passes"),
        ({"stub": always_six, "kind": "complete"}, "a program to complete has gaps"),
        ({"answer": doubled_in_steps, "stub": a_step_less, "kind": "complete"}, "pair.append(n)"),
    ],
)
def test_what_is_missing_is_noticed(changes, words):
    assert any(words in sentence for sentence in audited(**changes)), audited(**changes)
