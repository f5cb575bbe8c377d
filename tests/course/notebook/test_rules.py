"""What a rule finds in the text of an answer."""

from __future__ import annotations

import pytest

from course.notebook.rules import GRADIENT_IN_LOOP, LOOP, SUM_WITHOUT_BARRIER, Rule


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


@pytest.mark.parametrize(
    ("body", "is_broken"),
    [
        ("    y.backward()\n    slope = x.grad\n    return 2 * x", True),
        ("    y.backward()\n    return x.grad", False),
        ("    y.backward()\n    slope = x.grad\n    return slope.item(), 2 * x", False),
        ("    (slope,) = tk.autograd.grad(y, x)\n    return slope", False),
        ("    found = []\n    found.append(tk.autograd.grad(y, x)[0])\n    return found", False),
        ("    found = {}\n    found['slope'] = x.grad\n    return found", False),
        ("    total = 0\n    for p in x:\n        total += p.grad\n    return total", False),
        ("    def slope():\n        return x.grad\n    return slope()", False),
        ("    if (slope := x.grad) is not None:\n        return slope", False),
        ("    slope: float = getattr(x, 'grad').item()\n    return slope", False),
        (
            "    def put(a, b):\n        a.append(b)\n    put(found, x.grad)\n    return found",
            False,
        ),
        ("    return slope_of(x)", False),
    ],
)
def test_what_is_computed_counts_if_it_is_returned(body, is_broken):
    rule = Rule("as autograd finds it", "Return it.", returns=(".grad",))
    assert rule.is_broken_by(f"def f(x):\n{body}") == is_broken


def test_a_loop_in_a_kernel_that_adds_elements_waits_in_each_round():
    rule = Rule("in four rounds", "Wait.", refuses=(SUM_WITHOUT_BARRIER,))
    loop = "def f(x):\n    for j in range(4):\n        total += x[j]\n"
    assert rule.is_broken_by(loop)
    assert not rule.is_broken_by(loop + "        cuda.syncthreads()")
    assert rule.is_broken_by("def f(x):\n    while j < 4:\n        total = total + x[j]")
    assert not rule.is_broken_by("def f(x):\n    for j in range(4):\n        y[j] = x[j + 1]")
