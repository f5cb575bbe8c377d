"""`check` and `judge`: points, usual mistakes, what is refused, what a report says."""

from __future__ import annotations

import numpy as np
import pytest
import sample
from checked_cells import NEGATED, STRIDES, Pretender, _run_in_python, checked

import tensorkit as tk
from course.notebook import helpers, record
from course.notebook.check import check, judge
from course.notebook.exercise import Exercise, case, exercise, load

WHICH = load()["sample-dtype"]


def test_the_reference_gets_full_points():
    report = judge(STRIDES, sample.strides_of)
    assert report.score == 3.0
    assert report.status == "passed"
    assert repr(report) == "3.0"


def test_a_usual_mistake_is_recognised_and_named():
    report = judge(STRIDES, sample.bytes_apart)
    assert report.mistake == "counts bytes"
    assert report.message == "These are bytes: divide by the element size."
    assert report.score == 0.0


def test_a_warning_comes_before_the_words_about_a_finished_chapter(monkeypatch):
    # they replaced it: the answer was in another cell, and was not graded
    monkeypatch.setattr(helpers, "note", lambda *_: "Move it.")
    monkeypatch.setattr(record, "note_check", lambda *_: "Well done.")
    assert checked(strides_of=sample.strides_of).message == "Move it. Well done."


def test_a_mistake_is_not_named_on_one_agreement_alone():
    # agrees with "column-major" on the matrix and with nothing elsewhere
    report = judge(STRIDES, lambda shape: (1, 3) if shape == (3, 4) else None)
    assert report.mistake == ""


def test_points_follow_the_weights_of_the_cases():
    report = judge(STRIDES, lambda shape: (1,) if len(shape) == 1 else None)
    assert report.status == "partly"
    assert report.score == pytest.approx(3 * 0.5 / 3)


def test_cases_with_fixed_numbers_count_once_a_drawn_one_passes():
    report = judge(STRIDES, lambda shape: (4, 1) if shape == (3, 4) else None)
    assert [row.status for row in report.rows] == ["passed", "failed", "failed"]
    assert (report.score, report.status) == (0.0, "failed")
    assert report.notes[0].startswith("The cases that pass have the same numbers")
    with_a_vector = judge(STRIDES, lambda shape: {1: (1,), 2: (4, 1)}.get(len(shape)))
    assert with_a_vector.score == pytest.approx(3 * 1.5 / 3)
    assert with_a_vector.notes == ()


def test_points_do_not_depend_on_the_draw():
    # a square, or a single row, may be drawn again as the notebook has it
    board = load()["checkerboard"]
    only_even_rows = next(
        mistake.answer for mistake in board.mistakes() if mistake.name == "only even rows"
    )
    points = {judge(board, only_even_rows, seed=f"grade {n}").score for n in range(40)}
    assert points == {judge(board, only_even_rows).score} == {2.0}


def test_the_same_seed_gives_the_same_report_and_another_seed_other_numbers():
    def rows(seed: int) -> str:
        return str(judge(STRIDES, lambda shape: None, seed=seed).rows)

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_an_answer_that_changes_its_argument_is_told_so():
    report = judge(NEGATED, sample.broken_negated)
    assert report.score == 0.0
    assert "changes argument 1" in str(report)


def test_an_argument_counts_as_left_alone_if_all_its_bits_are_put_back():
    def rounded(fahrenheit):
        fahrenheit -= 32
        celsius = fahrenheit / 1.8
        fahrenheit += 32
        return celsius

    def exact(fahrenheit):
        kept = fahrenheit.clone()
        celsius = fahrenheit.sub_(32) / 1.8
        fahrenheit.copy_(kept)
        return celsius

    celsius = load()["celsius"]
    assert "It changes argument 1" in str(judge(celsius, rounded))
    assert judge(celsius, exact).status == "passed"


def left_requiring(t):
    return -t.requires_grad_().detach()


def left_with_a_grad(t):
    t.grad = tk.ones(t.shape)
    return -t


@pytest.mark.parametrize(
    ("answer", "what"),
    [(left_requiring, "`requires_grad` of argument 1"), (left_with_a_grad, "`grad` of argument 1")],
)
def test_an_answer_that_leaves_a_mark_for_autograd_on_its_argument_fails(answer, what):
    report = judge(NEGATED, answer)
    assert report.score == 0.0
    assert f"It changes {what}, which still belongs to the caller" in report.rows[0].tip


def test_the_report_shows_arguments_as_they_were_before_the_answer_changed_them():
    report = judge(NEGATED, sample.broken_negated)
    assert report.rows[0].call == "negated(tk.tensor([ 1., -2.]))"


def test_a_case_of_which_nothing_else_is_known_says_how_to_go_on():
    report = judge(load()["position-of"], lambda index, stride, offset: 1000)
    assert report.mistake == ""
    assert "Work this case out on paper" in str(report)
    assert 'hint("position-of")' in str(report)


def test_a_mistake_that_raises_is_not_named_for_another_exception_of_its_class():
    def detached_and_written_to(x):
        raise RuntimeError("of something else")

    report = judge(load()["channels-first"], detached_and_written_to)
    assert report.mistake == ""


def test_an_argument_that_is_a_view_is_said_to_be_one():
    report = judge(load()["sliding-windows"], lambda x, size: None)
    calls = {row.label: row.call for row in report.rows}
    assert "# argument 1 is a view: strides (3,), offset 1" in calls["a step and an offset"]
    assert "#" not in calls["pairs"]


def test_a_list_of_tensors_is_shown_as_it_would_be_typed():
    report = judge(load()["sgd-step"], lambda parameters, gradients, lr: 1 / 0)
    call = "sgd_step([tk.tensor([1., 2.])], [tk.tensor([ 10., -10.])], 0.1)"
    assert report.rows[0].call == call


def test_a_question_keeps_its_mark_and_gets_no_colon():
    assert judge(load()["contiguous-by-hand"], lambda shape, stride: 1).headline.startswith(
        "Is it contiguous? 0 of 4 points"
    )


def test_a_wrong_prediction_shows_the_rule_and_not_the_value():
    wrong = {**WHICH.reference, "tk.tensor([1, 2])": "int32"}
    report = judge(WHICH, wrong)
    assert "Whole numbers become int64" in str(report)
    assert report.rows[0].expected == ""
    assert report.score == 0.5  # two thirds of a point, in quarters


def test_an_unanswered_prediction_says_so():
    report = judge(WHICH, {**WHICH.reference, "tk.tensor([1, 2])": ...})
    assert report.rows[0].tip == "Replace this `...` by your prediction."


def test_what_the_exercise_asks_for_cannot_be_called(monkeypatch):
    monkeypatch.setattr(STRIDES, "without", ("Tensor.stride", "zeros"))
    report = judge(STRIDES, lambda shape: tk.zeros(shape).stride())
    assert "zeros is switched off while your answer runs" in str(report)
    report = judge(STRIDES, lambda shape: tk.ones(shape).stride())
    assert "Tensor.stride is switched off while your answer runs" in str(report)
    assert tk.zeros(2, 3).stride() == (3, 1)


def test_check_reads_the_answer_from_the_callers_namespace():
    namespace = {"check": check, "strides_of": sample.strides_of}
    exec("report = check('sample-strides')", namespace)
    assert repr(namespace["report"]) == "3.0"


def test_an_unknown_id_suggests_the_nearest():
    report = checked("sample-stride")
    assert report.status == "unknown"
    assert 'Did you mean `check("sample-strides")`?' in report.message
    assert repr(report) == "0.0"


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: 3,
        lambda: sample.strides_of,
        lambda: np.zeros(3),
        lambda: tk.zeros(3),
        lambda: Pretender(),
    ],
)
def test_an_id_that_is_no_string_gives_a_sentence(make):
    assert "takes the name of an exercise in quotes" in checked(make()).message


def test_a_number_instead_of_a_function_gives_a_sentence():
    report = checked(strides_of=12)
    assert report.status == "unfit"
    assert "should be a function, and it is a whole number" in str(report)


def test_a_list_instead_of_a_dictionary_gives_a_sentence():
    assert "of the answer cell, and it is a list." in str(checked("sample-dtype", dtypes=[1]))


def test_a_name_that_does_not_exist_says_what_to_run():
    report = checked()
    assert report.status == "missing"
    assert "run the answer cell above" in str(report)


@pytest.mark.parametrize("exercise_id", ["sample-strides", "sample-negated", "sample-dtype"])
def test_the_released_cell_is_not_started(exercise_id):
    cell = load()[exercise_id].released_source
    report = _run_in_python(
        f"{cell}\nreport = check({exercise_id!r})\nprint(repr(report.status), report.score)"
    )
    assert report.endswith("'not started' 0.0\n")


def test_a_mistake_that_does_not_explain_the_first_failure_is_not_named(monkeypatch):
    # agrees with "column-major" on the later cases; the first fails otherwise
    def answer(shape):
        return "odd" if shape == (3, 4) else sample.from_the_left(shape)

    assert judge(STRIDES, answer).mistake == ""


def test_validate_lists_what_is_not_full_on_stderr(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    exec("check('sample-strides')", {"check": check, "strides_of": sample.bytes_apart})
    assert "These are bytes" in capsys.readouterr().err
    exec("check('sample-strides')", {"check": check, "strides_of": sample.strides_of})
    assert capsys.readouterr().err == ""


def test_a_check_calls_the_answer_once_for_each_case():
    calls = []
    judge(STRIDES, lambda shape: calls.append(shape) or sample.strides_of(shape))
    assert len(calls) == 3


@exercise("sample-without", answer=sample.strides_of, difficulty=1, minutes=1, without=("numel",))
class WithoutNumel(Exercise):
    """Without numel

    Nothing.
    """

    def cases(self, draw):
        yield case(tk.ones(2), label="a vector")

    def expected(self, t):
        return 2


counted = tk.numel


@pytest.mark.parametrize("answer", [lambda t: tk.numel(t), tk.numel, lambda t: counted(t)])
def test_a_refused_function_is_refused_under_every_name(answer):
    report = judge(load()["sample-without"], answer)
    assert "numel is switched off" in report.rows[0].got
