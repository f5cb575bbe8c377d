"""How an answer computes is measured while it runs."""

from __future__ import annotations

import pytest

import tensorkit as tk
from course.engine.measuring import measured
from course.notebook.demands import is_by_autograd, seen


def slope_of_squares(x):
    x = x.clone().requires_grad_()
    (x * x).sum().backward()
    return x.grad


def by_a_formula(x):
    slope_of_squares(x)
    return 2 * x


def curvature_of_cubes(x):
    x = x.clone().requires_grad_()
    (slope,) = tk.autograd.grad((x**3).sum(), x, create_graph=True)
    return tk.autograd.grad(slope.sum(), x)[0]


@pytest.mark.parametrize(
    ("answer", "walks"), [(slope_of_squares, 1), (curvature_of_cubes, 2), (tk.exp, 0)]
)
def test_walks_back_are_counted(answer, walks):
    assert measured(answer, tk.ones(3))[1]["walks"] == walks


def test_a_gradient_is_told_from_a_formula():
    for answer, walks in ((slope_of_squares, 1), (curvature_of_cubes, 2)):
        result, work = measured(answer, tk.ones(3))
        assert is_by_autograd(result, work["doubled"], walks)
        assert not is_by_autograd(result, work["doubled"], 3 - walks)
    result, work = measured(by_a_formula, tk.ones(3))
    assert not is_by_autograd(result, work["doubled"])


def test_of_several_walks_it_is_told_what_each_makes_alone():
    def in_two(x):
        x = x.clone().requires_grad_()
        (x * x).sum().backward()
        (3 * x).sum().backward()
        return x.grad

    result, work = measured(in_two, tk.ones(1))
    assert (result.item(), [each.item() for each in work["alone"]]) == (5, [7, 8])
    assert measured(slope_of_squares, tk.ones(1))[1]["alone"] == []


def test_an_answer_that_compares_its_gradient_with_a_formula_is_no_formula():
    def careful(x):
        assert tk.equal(slope_of_squares(x), 2 * x)
        return slope_of_squares(x)

    result, work = measured(careful, tk.ones(3))
    assert is_by_autograd(result, work["doubled"])


def test_a_formula_that_is_compared_with_autograd_is_a_formula():
    def formula(x):
        assert tk.allclose(slope_of_squares(x), 2 * x)
        return 2 * x

    result, work = measured(formula, tk.ones(3))
    assert not is_by_autograd(result, work["doubled"])


@pytest.mark.parametrize("of", [tuple, lambda values: tuple(map(round, values))])
def test_a_gradient_that_is_kept_from_an_earlier_call_is_no_formula(of):
    kept = {}

    def keeping(values):
        if of(values) not in kept:
            kept[of(values)] = slope_of_squares(tk.tensor(values))
        return kept[of(values)]

    for _ in range(2 if of is tuple else 1):
        result, work = measured(keeping, [1.0, 2.0])
        assert is_by_autograd(result, work["doubled"])


def test_the_largest_tensor_and_the_sizes_of_factors_are_seen():
    _, work = measured(lambda x: (x[:, None] * x).sum(), tk.ones(3))
    assert (work["largest"], work["factors"]) == (9, [[3, 3]])
    _, work = measured(lambda x: tk.cat([x, x]) + x[:1], tk.ones(3))
    assert (work["largest"], work["factors"]) == (6, [])


def test_a_walk_is_fresh_where_it_begins_at_what_was_computed_after_another():
    def one_by_one(x):
        x = x.clone().requires_grad_()
        for number in x:
            (number * number).backward()

    def all_kept(x):
        x = x.clone().requires_grad_()
        for loss in [number * number for number in x]:
            loss.backward()

    for answer, fresh in ((one_by_one, 2), (all_kept, 0)):
        assert measured(answer, tk.ones(3))[1]["fresh"] == fresh


def test_demands_are_looked_at_where_the_value_is_right():
    assert seen("slope", 2.0, 2.0, {"by autograd": False}) == {"slope": 2.0, "by autograd": False}
    assert seen("slope", 3.0, 2.0, {"by autograd": False}) == {"slope": 3.0}
