"""What a rule finds in the text of an answer."""

from __future__ import annotations

from course.notebook.rules import LAUNCH, SAME_BLOCKS, SUM_WITHOUT_BARRIER, Rule


def test_nothing_is_said_to_be_missing_that_another_function_may_do():
    rule = Rule("by a kernel", "Launch it.", needs=(LAUNCH,))
    assert rule.is_broken_by("def f(x):\n    return x.sum()")
    assert not rule.is_broken_by("def f(x):\n    return summed_by_a_kernel(x)")
    assert not rule.is_broken_by("def f(x):\n    return kernel[1, 32](x)")
    assert not rule.is_broken_by("def f(x:")


def test_a_rule_looks_at_code_and_not_at_words():
    rule = Rule("never through `.data`", "Write into the tensor.", refuses=(".data",))
    assert rule.is_broken_by("def f(x):\n    x.data += 1")
    assert not rule.is_broken_by('def f(x):\n    """Not x.data."""\n    data = 1  # x.data')


def test_a_loop_in_a_kernel_that_adds_elements_waits_in_each_round():
    rule = Rule("in four rounds", "Wait.", refuses=(SUM_WITHOUT_BARRIER,))
    loop = "def f(x):\n    for j in range(4):\n        total += x[j]\n"
    assert rule.is_broken_by(loop)
    assert not rule.is_broken_by(loop + "        cuda.syncthreads()")
    assert rule.is_broken_by("def f(x):\n    while j < 4:\n        total = total + x[j]")
    assert not rule.is_broken_by("def f(x):\n    for j in range(4):\n        y[j] = x[j + 1]")


def test_always_as_many_blocks_are_enough_only_for_threads_that_go_on_in_a_loop():
    rule = Rule("the number of blocks follows", "Count them.", refuses=(SAME_BLOCKS,))
    launch = "def f(x):\n    k[128, 64](x, n)\n"
    assert rule.is_broken_by(launch)
    for line in ("blocks = 128", "blocks = 4 * 32", "blocks, threads = 128, 64", "blocks = (9, 1)"):
        assert rule.is_broken_by(f"def f(x):\n    {line}\n    k[blocks, 64](x, n)")
    assert rule.is_broken_by("def f(x):\n    k[(4 * 5, 1), (64, 1)](x, n)")
    assert rule.is_broken_by("def f(x):\n    sizes = 20, 64\n    k[sizes](x, n)")
    assert not rule.is_broken_by("def f(x):\n    k[n // 64 + 1, 64](x, n)")
    assert not rule.is_broken_by("def f(x):\n    b = 1\n    b += n // 64\n    k[b, 64](x, n)")
    assert not rule.is_broken_by("def f(x):\n    b, t = n // 64 + 1, 64\n    k[b, t](x, n)")
    assert not rule.is_broken_by("def f(x, b):\n    k[b, 64](x, n)")
    assert not rule.is_broken_by("def f(x):\n    k[1, 64](x, n)")
    assert not rule.is_broken_by(launch + "    for i in range(n):\n        x[i] = 0")


def test_a_function_of_the_answers_own_may_have_a_name_that_is_refused():
    rule = Rule("by hand", "", refuses=("linspace", ".linspace"))
    own = "def linspace(n):\n    return tk.arange(n)\n"
    assert not rule.is_broken_by(f"{own}def answer(n):\n    return linspace(n)")
    assert rule.is_broken_by("def answer(n):\n    return linspace(n)")
    assert rule.is_broken_by(f"{own}def answer(n):\n    return np.linspace(0, 1, n)")
