"""Answers that loop, lie, exit, raise or are very large get a short report and no points."""

from __future__ import annotations

import enum
import math
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import sample
from checked_cells import NEGATED, STRIDES, Pretender, checked, words

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.report import Report


def test_an_endless_loop_is_stopped_and_the_other_cases_are_not_run():
    def endless(shape):
        while True:
            pass

    report = judge(STRIDES, endless, seconds=0.2)
    assert [row.status for row in report.rows] == ["failed", "not run", "not run"]
    assert "did not end within 0.2 seconds" in str(report)


def bare_except(shape):
    i = 0
    while True:
        try:
            for _ in range(1000):
                i += 1
        except:  # noqa: E722
            pass


def sleeper(shape):
    while True:
        try:  # noqa: SIM105
            time.sleep(0.05)
        except BaseException:
            pass


def _finally_continue():
    source = """
def answer(shape):
    while True:
        try:
            sum(range(1000))
        finally:
            continue
"""
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of Python 3.14
        exec(source, made)
    return made["answer"]


class EndlessLength(tuple):
    def __len__(self):
        while True:
            pass


class EndlessText:
    def __repr__(self):
        while True:
            pass


STUBBORN = [
    bare_except,
    sleeper,
    _finally_continue(),
    lambda shape: EndlessText(),
]


@pytest.mark.parametrize(
    ("stubborn", "in_a_thread"),
    [(one, False) for one in STUBBORN]
    # without the alarm signal a sleeping loop is not reached; see `limited`
    + [(one, True) for one in STUBBORN if one is not sleeper],
)
def test_an_endless_loop_that_catches_everything_is_stopped_too(stubborn, in_a_thread):
    reports: list[Report] = []

    def work() -> None:
        reports.append(judge(STRIDES, stubborn, seconds=0.2))

    if in_a_thread:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(timeout=60)
        assert not thread.is_alive()
    else:
        work()
    assert "did not end within 0.2 seconds" in str(reports[0])
    time.sleep(0.05)  # no late raise may hit what comes after


def test_a_container_that_lies_about_its_length_is_taken_apart_by_its_base_class():
    assert judge(STRIDES, lambda shape: EndlessLength(sample.strides_of(shape))).score == 3.0


class Liar(tuple):
    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


@pytest.mark.parametrize("odd", [lambda shape: Liar(shape), lambda shape: Pretender()])
def test_an_object_that_lies_earns_nothing(odd):
    assert judge(STRIDES, odd).score == 0.0


def test_what_an_answer_displays_or_logs_reaches_neither_score_nor_stderr(capsys):
    def noisy(shape):
        sys.displayhook(99.0)
        sys.stdout.close()
        return sample.strides_of(shape)

    assert judge(STRIDES, noisy).score == 3.0
    assert capsys.readouterr() == ("", "")


def test_an_endless_loop_is_stopped_where_there_is_no_alarm_signal():
    def endless(shape):
        while True:
            pass

    reports: list[Report] = []
    thread = threading.Thread(target=lambda: reports.append(judge(STRIDES, endless, seconds=0.2)))
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert "did not end within 0.2 seconds" in str(reports[0])


def test_exit_is_answered_with_a_sentence():
    report = judge(STRIDES, lambda shape: sys.exit())
    assert "SystemExit" in str(report)
    assert "This ends the whole program (`SystemExit`)" in " ".join(str(report).split())


def test_a_stop_by_the_learner_stops_the_check(monkeypatch):
    def interrupted(shape):
        raise KeyboardInterrupt

    report = checked(strides_of=interrupted)
    assert report.status == "stopped"
    assert report.score == 0.0


def test_an_exception_is_shown_with_the_line_that_raised_it():
    def broken(shape):
        return 1 / 0

    text = str(judge(STRIDES, broken))
    assert "ZeroDivisionError: division by zero" in text
    assert "return 1 / 0" in text


def test_an_object_that_raises_in_repr_gives_a_sentence():
    class Odd:
        def __repr__(self):
            raise ValueError("no")

    assert "whose __repr__ raises ValueError" in str(judge(STRIDES, lambda shape: Odd()))


def test_an_exception_that_raises_in_str_gives_a_sentence():
    class Odd(Exception):
        def __str__(self):
            raise ValueError("no")

    def raises(shape):
        raise Odd

    assert "got       Odd" in str(judge(STRIDES, raises))


@pytest.mark.parametrize("large", ["x" * 60_000_000, [0] * 8_000_000, np.zeros(15_000_000)])
def test_a_return_value_of_60_megabytes_gives_a_short_report(large):
    report = judge(STRIDES, lambda shape: large)
    assert report.score == 0.0
    assert len(str(report)) < 3000
    assert len(report.html()) < 20_000


def test_nan_is_an_answer_like_any_other():
    report = judge(STRIDES, lambda shape: math.nan)
    assert report.score == 0.0
    assert "expected is a tuple" in str(report)


def test_a_tensor_of_the_wrong_dtype_is_told_so():
    report = judge(NEGATED, lambda t: (-t).double())
    assert "Its dtype is torch.float64; expected is torch.float32." in str(report)


def test_warnings_and_prints_cost_nothing_and_are_noted(capsys):
    def noisy(shape):
        print("hello")
        print("again")
        print("oh", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        return sample.strides_of(shape)

    report = judge(STRIDES, noisy)
    assert report.score == 3.0
    assert any("careful" in note for note in report.notes)
    assert any("prints `hello ...`;" in note for note in report.notes)
    assert capsys.readouterr() == ("", "")


def test_a_library_that_was_changed_is_put_back_and_that_is_said(monkeypatch):
    monkeypatch.setattr(tk, "tensor", 5)
    report = checked("sample-negated", negated=lambda t: -t)
    assert report.status == "passed"
    assert "Your code changes `tk.tensor`" in str(report)


def test_a_library_that_was_changed_before_the_first_check_is_put_back():
    board = "def checkerboard(rows, columns):\n    return tk.zeros(rows, columns)\n"
    text = words(f"tk.zeros = 5\n{board}", "check('checkerboard')")
    assert "Your code changes `tk.zeros`" in text
    assert "not callable" not in text


def test_a_loop_at_the_recursion_limit_is_stopped():
    # in a process of its own: with no stack left, pytest's own hooks fail too
    text = words(
        "def at_the_limit(shape):\n"
        "    try:\n"
        "        return at_the_limit(shape)\n"
        "    except RecursionError:\n"
        "        while True:\n"
        "            pass\n",
        "from course.notebook.check import judge\nfrom course.notebook.exercise import load\n"
        "print(judge(load()['sample-strides'], at_the_limit, seconds=0.2))",
    )
    assert "did not end within 0.2 seconds" in text


def test_a_check_inside_an_answer_leaves_the_outer_limit_as_it_was():
    def nested(shape):
        judge(NEGATED, sample.negated, seconds=5.0)
        while True:
            pass

    assert "did not end within 0.3 seconds" in str(judge(STRIDES, nested, seconds=0.3))


def test_checks_in_several_threads_leave_standard_output_as_it_was():
    before = sys.stdout
    threads = [
        threading.Thread(target=checked, kwargs={"strides_of": sample.strides_of}) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sys.stdout is before


@pytest.mark.parametrize("answer", [lambda n: 10**5000, lambda n: sample.bytes_apart])
def test_a_huge_number_or_a_function_gives_a_short_report(answer):
    report = judge(STRIDES, answer)
    assert report.status == "failed"
    assert len(str(report)) < 1000


def test_an_enumeration_of_numbers_counts_as_its_numbers():
    sizes = enum.IntEnum("sizes", {"FOUR": 4, "ONE": 1})

    def answer(shape):
        right = sample.strides_of(shape)
        return (sizes.FOUR, sizes.ONE) if right == (4, 1) else right

    assert judge(STRIDES, answer).score == 3.0


def test_input_is_refused_with_a_sentence():
    report = judge(STRIDES, lambda shape: input("rows?"))
    assert "`input()` asks a person" in str(report)
