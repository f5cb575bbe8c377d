"""An edge case counts only where the statement names it; elsewhere it gives a note."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.exercise import EDGES, Case, Draw, Exercise, case


def mean_of_rows(x):
    """The mean of each row."""
    return x.mean(dim=1)


def loop(x):
    return tk.stack([row.mean() for row in x])  # raises without rows


class Unnamed(Exercise):
    """Means of rows

    **Input:** `x`, a float matrix. **Output:** the mean of each row.
    """

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.zeros(0, 3), label="no rows (empty)")
        yield case(tk.tensor([[1.0, 3.0]]), label="one row")
        yield case(tk.tensor([draw.floats(2, 1, 9)]), label="any row")
        yield case(tk.tensor([draw.floats(3, 1, 9)] * 2), label="two rows")


class Named(Unnamed):
    """Means of rows

    **Input:** `x`, a float matrix, possibly empty. **Output:** the mean of each row.
    """


def described(definition: type[Exercise]) -> Exercise:
    exercise = definition()
    exercise.id, exercise.reference = "means", mean_of_rows
    exercise.without, exercise.points = (), 2.0
    exercise.kind = "write"
    exercise.further, exercise.difficulty, exercise.minutes = False, 1, 1
    return exercise


def test_an_edge_that_the_statement_does_not_name_costs_nothing_and_gives_a_note():
    report = judge(described(Unnamed), loop)
    assert (report.status, report.earned) == ("passed", 2.0)
    assert [row.label for row in report.rows] == ["one row", "any row", "two rows"]
    (note,) = report.notes
    assert note.startswith("Not asked for, and it costs nothing: no rows (empty). For `mean_of_row")
    assert judge(described(Unnamed), mean_of_rows).notes == ()


def test_an_edge_that_the_statement_names_counts():
    report = judge(described(Named), loop)
    assert (report.status, report.earned) == ("partly", 1.5)
    assert report.rows[0].label == "no rows (empty)"


def test_nothing_is_said_of_an_edge_while_something_that_counts_is_wrong():
    assert judge(described(Unnamed), lambda x: x).notes == ()


def test_an_edge_that_does_not_count_takes_no_time_from_what_does():
    def endless(x: Any) -> Any:
        while not len(x):
            pass
        return mean_of_rows(x)

    report = judge(described(Unnamed), endless, seconds=0.3)
    assert (report.status, report.notes) == ("passed", ())  # what came too late is no answer


@pytest.mark.parametrize(
    ("edge", "words", "other"),
    [
        ("(empty)", "of at least 0 rows, 0 or larger", "a matrix with no row of equal numbers"),
        ("(size 1)", "with at least one row", "a number for one sensor"),
        ("(0-d)", "a tensor of any shape", "a tensor of shape [n]"),
        ("(non-contiguous)", "x may be a view", "a new tensor"),
        ("(float16)", "of any float dtype", "a float tensor"),
        ("float64", "all of the same dtype", "floats"),
        ("(int)", "floats or whole numbers", "numbers"),
    ],
)
def test_what_names_an_edge(edge, words, other):
    class Edge(Unnamed):
        def cases(self, draw: Draw) -> Iterator[Case]:
            yield case(tk.ones(1, 1), label=f"an edge {edge}")

    Edge.__doc__ = f"Title\n\n{words}"
    assert [case.weight for case in described(Edge).drawn(Draw(0))] == [1.0]
    Edge.__doc__ = f"Title\n\n{other}"
    assert [case.weight for case in described(Edge).drawn(Draw(0))] == [0.0]
    assert edge in EDGES


def test_points_are_quarters():
    board = described(Named)
    for points in (1.0, 3.0, 5.0, 7.0):
        board.points = points
        earned = judge(board, loop).earned
        assert math.isclose(earned * 4, round(earned * 4))
        assert 0 <= points * 0.75 - earned < 0.25


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("whole numbers (int)", "two matrices of the same dtype"),
        ("turned (non-contiguous)", "a contiguous tensor"),
        ("a single class (size 1)", "the mean of a single number"),
    ],
)
def test_words_about_something_else_do_not_name_an_edge(label, words):
    class Other(Unnamed):
        __doc__ = f"Means\n\n    **Input:** `x`. **Output:** {words}.\n    "

        def cases(self, draw: Draw) -> Iterator[Case]:
            yield case(tk.ones(1, 1), label=label)

    (edge,) = described(Other).drawn(Draw(0))
    assert edge.weight == 0
