"""How a difference is put into words."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tensorkit as tk
from course.notebook.compare import difference, show, text_of

SAME = [
    ((4, 1), [4, 1]),
    (tk.zeros(2, 3), tk.zeros(2, 3)),
    (tk.tensor(float("nan")), tk.tensor(float("nan"))),
    (0.1 + 0.2, 0.3),
    (np.int64(3), 3),
    (np.float32(0.5), 0.5),
    (3, 3.0),
    (tk.float32, tk.float32),
    (tk.zeros(2, 3).shape, (2, 3)),
    (tk.tensor([float("inf")]), tk.tensor([float("inf")])),
    (tk.ones(2, requires_grad=True), tk.ones(2, requires_grad=True)),
    (None, None),
]

DIFFERENT = [
    ({"a": 1, "b": 2}, {"a": 1}, "The entry 'b' does not belong there."),
    (None, 3, "It is None; a value is expected."),
    (..., 3, "still a `...`"),
    (tk.tensor(3), 3, "`.item()`"),
    (True, 1, "expected is a whole number"),
    (1, True, "expected is True or False"),
    (2.5, 2, "expected is a whole number"),
    ("3", 3, "a string"),
    (np.zeros(3), tk.zeros(3), "It is a NumPy array; expected is a tensor: `tk.from_numpy(...)`"),
    ([0.0], tk.zeros(1), "It is a list; expected is a tensor: `tk.tensor(...)`"),
    (tk.zeros(3, 2), tk.zeros(2, 3), "Its shape is [3, 2]; expected is [2, 3]."),
    (tk.zeros(2, dtype=tk.int64), tk.zeros(2), "Its dtype is torch.int64"),
    (tk.tensor([1, 2, 3]), tk.tensor([1, 5, 5]), "2 of 3 elements differ; the first at [1] is 2"),
    (tk.tensor(1), tk.tensor(2), "It is 1 where 2 is expected."),
    ((1, 2, 3), (1, 2), "Its length is 3; expected is 2."),
    ((1, 3), (1, 2), "Entry 1: It is 3 where 2 is expected."),
    ({"a": [[1], [3]]}, {"a": [[1], [2]]}, "a, entry 1, entry 0: It is 3 where 2 is expected."),
    ({"a": 1}, {"b": 1}, "The entry 'b' is missing."),
    (print, 1, "a function that nobody called: are its parentheses missing?"),
    ({"a": 2}, {"a": 1}, "a: It is 2 where 1 is expected."),
    (float("nan"), 1.0, "It is nan where 1 is expected."),
    (tk.float64, tk.float32, "torch.float64 where torch.float32 is expected"),
    (tk.zeros(2), np.zeros(2), "expected is a NumPy array"),
    (tk.zeros(0), tk.zeros(0, 3), "Its shape is [0]; expected is [0, 3]."),
]


@pytest.mark.parametrize(("got", "expected"), SAME)
def test_equal_values_have_no_difference(got, expected):
    assert difference(got, expected) is None


@pytest.mark.parametrize(("got", "expected", "words"), DIFFERENT)
def test_a_difference_is_named(got, expected, words):
    assert words in str(difference(got, expected))


def test_numbers_agree_within_the_tolerance_of_their_dtype():
    assert difference(tk.tensor(1.0 + 1e-7), tk.tensor(1.0)) is None
    assert (
        difference(tk.tensor(1.0 + 1e-7, dtype=tk.float64), tk.tensor(1.0, dtype=tk.float64))
        is None
    )
    assert difference(tk.tensor(1.0001), tk.tensor(1.0)) is not None


def test_a_liar_in_eq_does_not_pass():
    class Liar:
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

    for expected in (3, 3.0, "a", (1,), True, {"a": 1}, tk.zeros(2), tk.float32, None):
        assert difference(Liar(), expected) is not None


def test_what_is_shown_is_short():
    assert len(show("x" * 10**7)) < 400
    assert len(show(list(range(10**6)))) < 400
    assert len(show({i: i for i in range(10**6)})) < 400


def test_many_short_axes_are_told_and_not_printed():
    # what is printed of them grows by the axis, and takes hours
    array = np.zeros((2,) * 16, bool)
    assert show(array).startswith("<a NumPy array of shape [2, 2,")
    assert show([tk.from_numpy(array)]).startswith("[<a tensor of shape [2, 2,")


def test_of_lists_in_lists_no_more_is_printed_than_is_shown():
    printed = []

    class Noted(np.ndarray):
        def __repr__(self):
            printed.append(1)
            return "x" * 40

    value = np.zeros(1).view(Noted)
    for _ in range(4):
        value = [value] * 12
    assert len(show(value)) <= 300
    assert len(printed) < 100


def test_the_file_of_a_cell_is_left_out_of_a_message():
    error = SyntaxError("odd: ipykernel_12/345.py, line 2, beside other.py, line 3")
    assert text_of(error)[0] == "odd: line 2, beside other.py, line 3"


def test_a_message_made_to_take_long_does_not():
    begun = time.process_time()
    text_of(ValueError("ipykernel_" * 500))
    assert time.process_time() - begun < 0.5
