"""What values have in common with those expected is named where it holds, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import tensorkit as tk
from course.notebook.plain import Seen
from course.notebook.relations import first_relation
from course.notebook.runner import Outcome

ROWS = tk.tensor([[1.5, 2.0, 3.0], [4.0, 5.5, 7.0]])


def named(source, *pairs):
    """The name and the sentence of the relation between answers and right ones."""
    found = first_relation([(Outcome(value=a), Outcome(value=b)) for a, b in pairs], source)
    return (found.name, found.sentence) if found else ("", "")


@pytest.mark.parametrize(
    ("given", "right", "name"),
    [
        (ROWS.double(), ROWS, "another dtype"),
        (ROWS.unsqueeze(0), ROWS, "another shape"),
        (ROWS.T, ROWS, "rows and columns exchanged"),
        ((3, 2, 1), (1, 2, 3), "in reverse order"),
        (-ROWS, ROWS, "the opposite sign"),
        (ROWS.floor(), ROWS, "rounded down"),
        (tk.tensor([0.33]), tk.tensor([1 / 3]), "rounded"),
        (tk.zeros(2), tk.tensor([0.25, 0.75]), ""),
        (tk.zeros(2), tk.tensor([0.25, 0.1875]), ""),
        (ROWS[0], ROWS, "only the first"),
        (ROWS[-1:], ROWS, "only the last"),
        (tk.tensor([1.0, 2.0]), tk.tensor([1.0, 2.0, 4.0]), "the last is missing"),
        (tk.tensor([2.0, 4.0]), tk.tensor([1.0, 2.0, 4.0]), "the first is missing"),
        (tk.tensor([1.0, 2.0, 4.0]), tk.tensor([1.0, 2.0]), "one entry too many"),
        (3 * ROWS, ROWS, "a factor"),
        ([1.5], ROWS, "a value of another kind"),
        ((5, ROWS.T), (5, ROWS), "rows and columns exchanged"),
        (ROWS + 1, ROWS, ""),
        ((np.int64(3), 1), (5, 1), ""),
        ((3, 1.5), (2.5, 1.5), ""),
        ((2.5, 1), (3, 1), "a value of another kind"),
        (None, ROWS, ""),
        ((6, ROWS.T), (5, ROWS), ""),
        (tk.zeros(2, 3), ROWS, ""),
        (tk.tensor([-1, 2]), tk.tensor([-1.5, 2.5]), "cut to whole numbers"),
        (tk.tensor([1.0, float("nan")]), tk.tensor([1.0, 2.0]), "not a number"),
        (
            tk.tensor([1.0, 2.0, 0.0, 0.0]),
            tk.tensor([1.0, 2.0, 3.0, 4.0]),
            "only the first elements",
        ),
        (tk.tensor([1.0, float("inf")]), tk.tensor([1.0, 2.0]), "too large for its dtype"),
        (1.0001 * ROWS + 1e-4, ROWS, "nearly right"),
        (ROWS, (ROWS, 5), "only one of several"),
        ({"a": 1}, {"a": 1, "b": 2}, "an entry is missing"),
        ({"a": 1, "b": 2}, {"a": 1}, "an entry too many"),
        ({"a leaf": False}, {"a leaf": True}, "a demand not met"),
        (tk.zeros(2, 1, 3), tk.zeros(1, 3, 2) + 1, "dimensions exchanged"),
        (Seen({"a": "yes", "b": "no"}), Seen({"a": True, "b": False}), "a value of another kind"),
    ],
)
def test_a_relation_is_named(given, right, name):
    assert named("", (given, right))[0] == name


def test_a_relation_holds_in_every_case_that_fails():
    assert named("", (-ROWS, ROWS), (ROWS + 1, ROWS)) == ("", "")
    assert named("", (-ROWS, ROWS), (-ROWS, ROWS))[0] == "the opposite sign"


@pytest.mark.parametrize(
    ("given", "right", "source", "cause"),
    [
        (ROWS.double(), ROWS, "tk.from_numpy(np.ones(3))", "NumPy computes in float64"),
        (ROWS.double(), ROWS, "return x", ""),
        (ROWS[:, :1], ROWS[:, 0], "x.sum(dim=1, keepdim=True)", "`keepdim=True` keeps"),
        (ROWS + 1, tk.tensor(5.0), "x.sum(dim=1, keepdim=True)", ""),
        (ROWS[:, 0], ROWS[:, :1], "x.squeeze().unsqueeze(0)", "`squeeze()` without a number"),
        (ROWS[:, 0], ROWS[:, :1], "x.sum(dim=1)", "`keepdim=True` keeps it"),
        (
            tk.tensor([1, 2, 3]),
            tk.tensor([3, 2, 1]),
            "return sorted(x)",
            "in the order of their size",
        ),
        (tk.tensor([1, 2, 3]), tk.tensor([3, 2, 1]), "return x", ""),
        (tk.tensor([1, 3, 2]), tk.tensor([2, 3, 1]), "return sorted(x)", ""),
    ],
)
def test_the_cause_is_looked_up_in_the_source_and_fits_the_shapes(given, right, source, cause):
    name, sentence = named(source, (given, right))
    assert cause in sentence
    assert cause or not sentence.partition(". ")[2], (name, sentence)


@pytest.mark.parametrize(
    "given",
    [
        10**400,
        [2**70, 1],
        tk.tensor([True, False]),
        tk.tensor([60000.0, 1.0]).half(),
        tk.zeros(1).expand(10**12),
        tk.tensor([200, 1], dtype=tk.uint8),
        float("nan"),
    ],
    ids=["huge", "huge entry", "bool", "half", "expanded", "uint8", "nan"],
)
@pytest.mark.parametrize("right", [tk.tensor([3.0, 4.0]).half(), tk.tensor([True, True]), 5])
def test_no_value_is_too_odd(given, right):
    assert isinstance(named("", (given, right)), tuple)
