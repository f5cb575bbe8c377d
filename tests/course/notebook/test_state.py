"""A check leaves nothing behind, whatever the answer changed, and says what that was."""

from __future__ import annotations

import builtins
import decimal
import gc
import io
import itertools
import logging
import math
import os
import random
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import sample

import course
import tensorkit as tk
from course.notebook.check import check, judge
from course.notebook.exercise import load
from course.notebook.state import OWNERS, SETTINGS

STRIDES = load()["sample-strides"]


def odd(*args):
    return 0


def other_environment():
    del os.environ["PATH"]
    os.environ["HOME"] = os.environ["ANOTHER"] = "/"
    os.environ = {}  # noqa: B003


CHANGES = {
    "the default dtype": lambda: tk.set_default_dtype(tk.float64),
    "whether operations are recorded": lambda: tk.set_grad_enabled(False),
    "tensorkit's print options": lambda: tk.set_printoptions(precision=1),
    "NumPy's print options": lambda: np.set_printoptions(precision=1),
    "NumPy's error handling": lambda: np.seterr(all="raise"),
    "the recursion limit": lambda: sys.setrecursionlimit(9000),
    "the hooks of Python": lambda: setattr(sys, "excepthook", odd),
    "the working directory": lambda: os.chdir("/"),
    "NumPy's function for errors": lambda: np.seterrcall(odd),
    "`sys.stdin`": lambda: setattr(sys, "stdin", io.StringIO()),
    "when garbage is collected": lambda: gc.set_threshold(1),
    "which levels are logged": lambda: logging.root.setLevel(logging.DEBUG),
    "where modules are looked for": lambda: sys.path.append("/"),
    "which warnings are shown": lambda: warnings.simplefilter("ignore"),
    "`len`": lambda: setattr(builtins, "len", odd),
    "the digits of `decimal`": lambda: setattr(decimal.getcontext(), "prec", 3),
    "the environment variables": other_environment,
    "what an interrupt does": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    "`print`": lambda: setattr(builtins, "print", odd),
    "`np.sqrt`": lambda: setattr(np, "sqrt", odd),
    "`math.sqrt`": lambda: setattr(math, "sqrt", odd),
    "`decimal.getcontext`": lambda: setattr(decimal, "getcontext", None),
    "`itertools.count`": lambda: setattr(itertools, "count", None),
    "`tk.relu`": lambda: setattr(tk, "relu", odd),
    "`np.linalg.solve`": lambda: setattr(np.linalg, "solve", odd),
    "`random.randint`": lambda: setattr(random, "randint", odd),
    "`tk.linalg.solve`": lambda: setattr(tk.linalg, "solve", odd),
    "`tk.nn.Linear.forward`": lambda: setattr(tk.nn.Linear, "forward", odd),
    "`tk.optim.SGD`": lambda: setattr(tk.optim, "SGD", odd),
    "`tk.Tensor.sum`": lambda: setattr(tk.Tensor, "sum", odd),
    "`tk.autograd.grad`": lambda: setattr(tk.autograd, "grad", None),  # loaded when asked
    "`tk.no_grad.__enter__`": lambda: setattr(tk.no_grad, "__enter__", None),  # inherited
    "`tk.cuda.is_available`": lambda: setattr(tk.cuda, "is_available", None),
    "`tk.Generator.manual_seed`": lambda: setattr(tk.Generator, "manual_seed", None),
    "`course.check`": lambda: setattr(course, "check", None),
    "`course.engine.grad_mode.enabled`": lambda: setattr(course.engine.grad_mode, "enabled", False),
    "`course.engine.Tensor.sum`": lambda: setattr(course.engine.Tensor, "sum", None),
}


def everything():
    settings = {words: read() for words, (read, _) in SETTINGS.items()}
    names = {home: dict(vars(where)) for home, where in OWNERS.items()}
    return settings, names


@pytest.mark.parametrize("words", CHANGES)
def test_what_an_answer_changes_is_put_back_and_reported(words):
    def answer(shape):
        CHANGES[words]()
        return sample.strides_of(shape)

    before = everything()
    report = judge(STRIDES, answer)
    settings, names = everything()
    assert settings == before[0]
    for home, known in before[1].items():
        assert all(names[home][name] is value for name, value in known.items())
    assert report.status == "passed"
    assert report.notes == (
        f"Your code changes {words} and leaves it so. After the check it is as it was before.",
    )


def test_no_name_is_exchanged_while_an_answer_runs():
    # else each of them is compared after each case, which takes longer than most cases
    before, seen = everything()[1], []

    def answer(shape):
        seen.append(everything()[1] == before)
        return sample.strides_of(shape)

    judge(STRIDES, answer)
    assert seen
    assert all(seen)


def test_a_name_that_another_cell_replaced_is_put_back_before_the_exercises_are_read():
    def answer(shape):
        return tuple(tk.tensor(sample.strides_of(shape)).tolist())

    before, tk.tensor = tk.tensor, [1, 2]
    try:
        assert load()["sample-strides"] is STRIDES
        assert tk.tensor is before
    finally:
        tk.tensor = before
    report = judge(STRIDES, answer)
    assert report.status == "passed"
    assert report.notes[0].startswith("Your code changes `tk.tensor` and leaves it so.")


def test_a_new_name_of_a_module_stays():
    tk.halved = odd
    try:
        assert judge(STRIDES, sample.strides_of).notes == ()
        assert tk.halved is odd
    finally:
        del tk.halved


def test_the_default_device_is_put_back():
    def answer(shape):
        tk.set_default_device("cuda")
        return sample.strides_of(shape)

    with tk.cuda.simulate():
        report = judge(STRIDES, answer)
        assert tk.get_default_device().type == "cpu"
    assert report.notes[0].startswith("Your code changes the default device")


def test_an_answer_that_raises_or_does_not_end_leaves_nothing_behind_either():
    def raises(shape):
        tk.set_default_dtype(tk.float64)
        raise ValueError

    def endless(shape):
        tk.set_grad_enabled(False)
        while True:
            pass

    judge(STRIDES, raises)
    judge(STRIDES, endless, seconds=0.2)
    assert tk.get_default_dtype() is tk.float32
    assert tk.is_grad_enabled()


def test_a_case_does_not_notice_what_the_case_before_it_changed():
    seen = []

    def answer(shape):
        seen.append(tk.get_default_dtype())
        tk.set_default_dtype(tk.float64)

    judge(STRIDES, answer)
    assert set(seen) == {tk.float32}


def test_several_changes_are_one_sentence():
    def answer(shape):
        for words in ("the default dtype", "`print`", "the recursion limit"):
            CHANGES[words]()

    (note,) = judge(STRIDES, answer).notes
    assert note.startswith(
        "Your code changes `print`, the default dtype and the recursion limit and leaves it so."
    )


def test_an_answer_that_puts_things_back_itself_gets_no_note():
    def answer(shape):
        with tk.no_grad():
            tk.rand(3)
        return sample.strides_of(shape)

    assert judge(STRIDES, answer).notes == ()


def test_random_numbers_go_on_as_if_nothing_had_been_checked(monkeypatch):
    def strides_of(shape):
        tk.manual_seed(1), tk.randn(3), np.random.rand(2), random.random()
        return sample.strides_of(shape)

    def numbers():
        return tk.randn(3).tolist(), np.random.rand(2).tolist(), random.random()

    def start():
        tk.manual_seed(5), np.random.seed(5), random.seed(5)
        tk.randn(1)

    start()
    expected = numbers()
    start()
    monkeypatch.setitem(globals(), "strides_of", strides_of)
    assert check("sample-strides").status == "passed"
    assert numbers() == expected


def test_a_seed_for_the_whole_notebook_is_said_and_one_of_an_own_generator_is_not():
    def notes(line):
        source = f"def strides_of(shape):\n    {line}\n    return ()"
        names = {"tk": tk, "np": np, "random": random}
        exec(source, names)
        return str(judge(STRIDES, names["strides_of"], source=source).notes)

    for line in ("tk.manual_seed(1)", "random.seed(1)", "np.random.seed(1)"):
        assert f"`{line}` in your code sets a seed for the whole notebook" in notes(line)
    for line in ("tk.Generator().manual_seed(1)", "tk.rand(1)", "np.random.default_rng(1)"):
        assert "seed" not in notes(line)


def test_an_answer_that_replaces_what_reports_call_is_reported():
    def answer(shape):
        builtins.len = builtins.isinstance = builtins.zip = odd
        raise ValueError

    report = judge(STRIDES, answer)
    assert report.status == "failed"
    assert "Your code changes `isinstance`, `len` and `zip` and leaves it so." in str(report.notes)


def test_an_input_that_each_cell_gets_anew_is_not_said_to_be_changed(monkeypatch):
    class Kernel:
        def input(self):
            return ""

    def answer(shape):
        CHANGES["`print`"]()
        return sample.strides_of(shape)

    kernel = Kernel()
    for _ in range(2):  # equal, and not the same object
        monkeypatch.setattr(builtins, "input", kernel.input)
        assert judge(STRIDES, answer).notes[0].startswith("Your code changes `print` and leaves")


def test_an_equal_new_value_is_no_change():
    def answer(shape):
        time.tzset()  # `datetime.strptime` calls it: `time.tzname` is a new tuple
        math.sqrt = odd
        return sample.strides_of(shape)

    assert judge(STRIDES, answer).notes == (
        "Your code changes `math.sqrt` and leaves it so. After the check it is as it was before.",
    )


def test_threads_are_as_before():
    judge(STRIDES, sample.strides_of)
    assert threading.excepthook is SETTINGS["the hooks of Python"][0]()[2]
