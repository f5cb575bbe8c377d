"""What a statement demands beyond a value is checked: an answer that ignores it does not pass."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tensorkit as tk
from course.authoring.audit import _as_in_a_notebook
from course.notebook.check import judge
from course.notebook.exercise import Draw, Exercise, load
from course.notebook.rules import LONGEST
from course.notebook.runner import Budget, run_case

HERE = Path(__file__).parent


def _broken() -> Iterator[tuple[str, str, str]]:
    """The exercise, words of its statement, and an answer that ignores them."""
    text = (HERE / "broken_answers.md").read_text(encoding="utf-8")
    for entry in text.split("\n## ")[1:]:
        head, _, code = entry.partition("\n```python\n")
        id, words = head.split(" | ")
        yield id, words, code.partition("\n```")[0]


BROKEN = list(_broken())
EXERCISES = load()


def report_on(exercise: Exercise, source: str):
    source = textwrap.dedent(source)
    names = {"tk": tk, "np": np}
    exec(exercise.imports, names)
    exec(_as_in_a_notebook(source), names)  # a kernel is read from its text
    return judge(exercise, names[exercise.name], source=source)


def words_of(exercise: Exercise) -> str:
    return " ".join(f"{exercise.title} {exercise.statement}".split()).lower()


@pytest.mark.parametrize(("id", "words", "source"), BROKEN, ids=lambda value: str(value)[:30])
def test_an_answer_that_ignores_a_demand_does_not_pass(id, words, source):
    exercise = EXERCISES[id]
    assert words.lower() in words_of(exercise)
    assert report_on(exercise, source).status != "passed"


def test_softmax_by_one_thread_earns_less_than_half():
    source = next(source for id, _, source in BROKEN if id == "softmax-rows")
    report = report_on(EXERCISES["softmax-rows"], source)
    assert report.earned < report.possible / 2


def test_every_rule_stands_in_its_statement_and_has_an_answer_that_breaks_it():
    known = {(id, words.lower()) for id, words, _ in BROKEN}
    for exercise in EXERCISES.values():
        for rule in exercise.rules:
            assert rule.words.lower() in words_of(exercise)
            assert (exercise.id, rule.words.lower()) in known or exercise.chapter.startswith("10")


def written_over(value):
    """Gives tensors and arrays, also in lists, other values; empties lists and dictionaries."""
    if isinstance(value, tk.Tensor):
        with tk.no_grad():
            value.fill_(~value.flatten()[0] if value.dtype is tk.bool else value.flatten()[0] + 1)
    elif isinstance(value, np.ndarray):
        value.fill(value.flat[0] + 1)
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            written_over(each)
        value.clear()


# with arguments that were written over these raise: they use them after the answer has ended
USED_LATER = {"another-answer-each-time", "own-operations", "own-tensor"}
USED_LATER |= {"record-result", "sigmoid-gradient", "stale-value"}


@pytest.mark.parametrize(
    "exercise",
    [
        each
        for each in EXERCISES.values()
        if each.kind != "predict"
        and not each.changes_arguments
        and each.id not in USED_LATER
        and each.chapter != "12_kernels"  # its answers are launched: test_ch12_kernels
    ],
    ids=lambda exercise: exercise.id,
)
def test_a_change_of_an_argument_counts_only_where_the_statement_says_so(exercise):
    def spoiling(*args):
        value = exercise.reference(*args)
        written_over(list(args))
        return value

    given, same = exercise.drawn(Draw("0"))[0], exercise.drawn(Draw("0"))[0]
    outcome = run_case(exercise, spoiling, given, same, Budget(5))
    says_so = re.search("stays? as (it|they)|is not changed|leaves `", words_of(exercise))
    assert not outcome.changed or says_so
    assert outcome.ended == "returned", outcome.message


FREE = {
    "straight-through": """
        def rounded_straight_through(x):
            return x if (x == x.round()).all() else x + (x.round() - x).detach()
        """,
    "cleaned": """
        def cleaned(readings):
            faulty = readings < 0
            if not faulty.any():
                return readings
            return tk.where(faulty, readings[~faulty].mean(), readings)
        """,
    "sgd-step": """
        def sgd_step(parameters, gradients, lr):
            with tk.no_grad():
                for p, g in zip(parameters, gradients):
                    if g is not None:
                        p -= lr * g
            return parameters
        """,
    "micro-batches": """
        def micro_batch_gradient(pieces, w):
            w = w.clone().requires_grad_()
            n = sum(len(x) for x, y in pieces)
            list(map(lambda one: (((one[0] @ w - one[1]) ** 2).sum() / n).backward(), pieces))
            return w.grad
        """,
    "sine-slope": """
        def sine_slope(value):
            import math

            x = tk.tensor(value, requires_grad=True)
            tk.sin(x**2).backward()
            return [x.grad.item(), 2 * value * math.cos(value**2)]
        """,
    "custom-op": """
        def softsign(x, upstream):
            def keep(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            def backward(ctx, g):
                return g / (1 + ctx.saved_tensors[0].abs()) ** 2

            f = tk.library.custom_op("mine::softsign", lambda x: x / (1 + x.abs()), mutates_args=())
            tk.library.register_autograd(f, backward, setup_context=keep)
            y = f(x)
            says = tk.autograd.gradcheck(f, x, raise_exception=False)
            return y.detach(), tk.autograd.grad(y, x, upstream)[0], says
        """,
}
"""Answers that do what the statement leaves free."""


@pytest.mark.parametrize("id", FREE)
def test_what_a_statement_leaves_free_passes(id):
    report = report_on(EXERCISES[id], FREE[id])
    assert report.status == "passed", str(report)


@pytest.mark.parametrize(
    "exercise",
    [exercise for exercise in EXERCISES.values() if exercise.rules],
    ids=lambda exercise: exercise.id,
)
def test_the_worked_solution_keeps_the_rules(exercise):
    report = report_on(exercise, exercise.solution_source)
    assert report.status == "passed", str(report)


def test_what_breaks_a_rule_earns_nothing_and_is_said_first():
    words = "without `.cpu()`, `.numpy()` or `.tolist()`"
    source = next(source for _, other, source in BROKEN if other == words)
    report = report_on(EXERCISES["any-device"], source)
    assert (report.earned, report.status) == (0, "failed")
    assert report.rows[0].label == f"“{words}”"
    assert report.rows[0].tip.startswith("These bring numbers to the CPU")


def test_an_answer_too_long_to_be_read_breaks_the_rules():
    filled = "def my_relu(x):\n    # {}\n    return tk.where(x > 0, x, tk.zeros_like(x))\n"
    report = report_on(EXERCISES["own-relu"], filled.format("x" * LONGEST))
    assert (report.earned, report.status) == (0, "failed")
    assert report.rows[0].tip.startswith("The answer is longer than 10,000 characters, so what is")
