"""Small changes of a reference fail its check, and the search for them finds what it should."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import size

import tensorkit as tk
from course.authoring.form import SHIPPED
from course.authoring.mutants import rewritten, survivors, variants
from course.notebook.check import judge
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, load

WRITTEN = [  # other tests may have loaded exercises of their own
    exercise
    for exercise in load().values()
    if exercise.chapter in SHIPPED and not isinstance(exercise, Prediction)
]


@pytest.mark.rest
@pytest.mark.parametrize("exercise", WRITTEN, ids=lambda exercise: exercise.id)
def test_no_wrong_variant_of_a_reference_passes(exercise):
    # written anew without any change it is right: a variant fails for what was changed in it
    source = ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(exercise.reference))))
    assert judge(exercise, rewritten(exercise.reference, source), seconds=60).status == "passed"
    assert [str(each) for each in survivors(exercise)] == []


def nearest(points: tk.Tensor, centre: tk.Tensor) -> tk.Tensor:
    """The number of the point that is nearest to the centre."""
    away = points - centre
    return (away**2).sum(dim=1).argmin()


class Nearest(Exercise):
    """The nearest point

    **Input:** `points` and `centre`. **Output:** the number of the nearest point.
    """

    def cases(self, draw: Draw) -> Iterator[Case]:
        x, y = draw.floats(2, 1, 9)
        points = tk.tensor([[x + 9, y], [x, y - 1], [x - 20, y + 20]])
        yield case(points, tk.tensor([x, y]), label="three points")


class NearestAlongTheDiagonal(Nearest):
    """The nearest point

    **Input:** `points` and `centre`. **Output:** the number of the nearest point.
    """

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield from super().cases(draw)
        x, y = draw.floats(2, 1, 9)
        points = tk.tensor([[x, y - 5], [x + 3, y + 3], [x - 20, y + 20]])
        yield case(points, tk.tensor([x, y]), label="along the diagonal")


def described(definition: type[Exercise], answer: Any) -> Exercise:
    exercise = definition()
    exercise.id, exercise.reference = "nearest", answer
    exercise.without, exercise.points = (), 1.0
    exercise.kind = "write"
    exercise.further, exercise.difficulty, exercise.minutes = False, 1, 1
    return exercise


def test_a_wrong_variant_that_passes_is_found_until_a_case_fails_it():
    found = [variant.kind for variant in survivors(described(Nearest, nearest))]
    assert "absolute value" in found
    assert "absolute value" not in [
        variant.kind for variant in survivors(described(NearestAlongTheDiagonal, nearest))
    ]


def scaled(x: tk.Tensor, factor: float) -> tk.Tensor:
    """Every element of `x`, times the factor."""
    return x.clone() * factor


class Scaled(Exercise):
    """Times a factor

    **Input:** `x`, a float tensor, and `factor`. **Output:** a new tensor, `x` times `factor`.
    """

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor(draw.floats(3, 1, 9)), draw.number(2, 5), label="three numbers")


def test_a_variant_that_is_right_is_no_survivor():
    kinds = {variant.kind: variant.text for variant in variants(scaled)}
    assert "x * factor" in kinds["dropped call"]  # the product is a new tensor by itself
    assert survivors(described(Scaled, scaled)) == []


def every_kind(x: tk.Tensor, y: tk.Tensor, n: int) -> tk.Tensor:
    """A function in which there is something for every kind of change."""
    total = tk.zeros(2, dtype=tk.int64)
    for i in range(n):
        if i > 0 and n >= 2:
            total += 1
    with tk.no_grad():
        mean = (x.clone() - y).mean(dim=1, keepdim=True)
    return mean[:1] ** 2 + total


def test_variants_are_of_all_kinds_and_the_same_each_time():
    found = variants(every_kind)
    assert [variant.text for variant in found] == [variant.text for variant in variants(every_kind)]
    assert len({variant.text for variant in found}) == len(found) <= 40
    assert {variant.kind for variant in found} >= {
        *("operator", "comparison", "constant", "axis", "order", "keepdim", "dtype lost"),
        *("dropped step", "doubled step", "dropped call", "block dropped", "argument changed"),
        *("some of the elements", "loop bound", "argument ignored", "absolute value"),
    }


class Counter:
    """Counts up."""

    def __init__(self) -> None:
        self.n = 0

    def step(self, by: int) -> int:
        self.n += by
        return self.n


def test_the_search_has_at_most_300_lines_of_code():
    text = inspect.getsource(sys.modules[variants.__module__])
    assert size.code_lines(text) <= 300


def test_methods_of_a_class_have_variants_too():
    found = {variant.kind: variant for variant in variants(Counter)}
    assert "self.n -= by" in found["operator"].text
    assert found["argument ignored"].answer().step(5) == 1
