"""What a rule finds in the text of an answer."""

from __future__ import annotations

import pytest

from course.notebook.rules import GRADIENT_IN_LOOP, LOOP, Rule


def test_nothing_is_said_to_be_missing_that_another_function_may_do():
    rule = Rule("in pieces", "Use a loop.", needs=(LOOP,))
    assert rule.is_broken_by("def f(x):\n    return x.sum()")
    assert not rule.is_broken_by("def f(x):\n    return summed_in_pieces(x)")
    assert not rule.is_broken_by("def f(x):\n    return sum(row for row in x)")
    assert not rule.is_broken_by("def f(x:")


def test_a_walk_back_in_a_function_that_a_loop_calls_is_in_the_loop():
    rule = Rule("in pieces", "A backward for each.", needs=(GRADIENT_IN_LOOP,))
    inner = "    def piece(p):\n        p.sum().backward()\n"
    assert not rule.is_broken_by(f"def f(x):\n{inner}    for p in x:\n        piece(p)")
    assert rule.is_broken_by(f"def f(x):\n{inner}    piece(sum(p for p in x))")


@pytest.mark.parametrize(
    ("source", "has_one_round"),
    [
        ("range(1)", True),
        ("[x]", True),
        ("range(0, len(x), len(x))", True),
        ("x", False),
        ("[*x]", False),
        ("range(0, len(x), 2)", False),
    ],
)
def test_a_loop_of_one_round_does_nothing_in_pieces(source, has_one_round):
    rule = Rule("in pieces", "Use a loop.", needs=(LOOP,))
    assert rule.is_broken_by(f"def f(x):\n    for p in {source}:\n        p.sum()") == has_one_round
    assert rule.is_broken_by(f"def f(x):\n    return [p.sum() for p in {source}]") == has_one_round


def test_a_loop_without_a_gradient_makes_no_hessian():
    rule = Rule("without the Hessian", "No rows.", refuses=(GRADIENT_IN_LOOP,))
    assert rule.is_broken_by("def f(x):\n    return [tk.autograd.grad(y, x) for y in x]")
    assert not rule.is_broken_by(
        "def f(x):\n    return sum(a * a for a in tk.autograd.grad(x, x)[0])"
    )


def test_a_rule_looks_at_code_and_not_at_words():
    rule = Rule("never through `.data`", "Write into the tensor.", refuses=(".data",))
    assert rule.is_broken_by("def f(x):\n    x.data += 1")
    assert not rule.is_broken_by('def f(x):\n    """Not x.data."""\n    data = 1  # x.data')
