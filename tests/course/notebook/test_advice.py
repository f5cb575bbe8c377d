"""What a learner is advised to look at, and that no sentence says what is not so."""

from __future__ import annotations

import operator
import textwrap

import numpy as np
import pytest
import sample
from checked_cells import CHECK, STRIDES, words

import tensorkit as tk
from course.authoring.audit import _as_in_a_notebook
from course.notebook.check import judge
from course.notebook.compare import difference
from course.notebook.exercise import load


def misspelt(shape):
    return shpae  # noqa: F821


def with_too_few_parameters():
    return None


def strides_of(shape):
    return strides_of()


def beyond_the_end(shape):
    return shape[9]


class EndlessMessage(Exception):
    def __str__(self):
        while True:
            pass


def raises_without_end(shape):
    raise EndlessMessage


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (misspelt, "Is the name spelled"),
        (with_too_few_parameters, "Compare the `def` line with the call above"),
        (beyond_the_end, "which index does the line ask for"),
        (lambda shape: 1 // 0, "makes the divisor 0"),
        (lambda shape: {}["no"], "Print the keys of the dictionary"),
        (lambda shape: (lambda a: a)(1, 2), "how many arguments, and under which names"),
        (lambda shape: int("no"), "Make this call yourself"),
        (lambda shape: shape.__setitem__(0, 1), "Is the name behind the dot spelled"),
        (lambda shape: operator.setitem(shape, 0, 1), "make a `tuple(...)` at the end"),
        (lambda shape: shape * shape, "Go through them in a loop"),
        (lambda shape: None + 1, "Something that is used here is None"),
        (lambda shape: ... + 1, "A gap is still open"),
        (lambda shape: tk.zeros(2).tolist.sum(), "Parentheses are missing"),
        (lambda shape: [a + b for a, b in {"key": 1}], "`.items()` gives pairs"),
        (lambda shape: tk.zeros(4).unfold(0, 2, 1), "what this chapter and those before it"),
        (lambda shape: tk.zeros(4).as_strided((2,), ((1,),)), "Print the arguments"),
        (strides_of, "Compare this call of `strides_of` with its `def` line"),
        (lambda shape: tk.zeros(2) + tk.zeros(3), "The size of tensor a (2)"),
    ],
)
def test_an_exception_is_answered_by_what_to_look_at(answer, words):
    assert words in " ".join(str(judge(STRIDES, answer)).split())


def test_an_exception_whose_message_never_ends_is_stopped():
    assert "did not end within" in str(judge(STRIDES, raises_without_end, seconds=0.2))


# No sentence says what is not so


def advice(source, name="strides_of"):
    """What the first failure of an answer with this source is advised."""
    namespace = {"sample": sample, "tk": tk}
    exec(source, namespace)
    report = judge(load()["sample-strides"], namespace[name], source=source)
    return next(row.tip for row in report.rows if row.status == "failed")


def report(id, source):
    """The report on an answer with this source."""
    namespace = {"tk": tk, "np": np}
    exec(source, namespace)
    return judge(load()[id], namespace[load()[id].name], source=source)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("shape * 2", "is a `return` missing?"),
        ("x = None\n    return x", "print what stands behind `return`"),
        ("if not shape:\n        return ()", "or the function ends before it comes there"),
    ],
)
def test_where_a_none_comes_from_is_looked_up(body, said):
    assert said in advice(f"def strides_of(shape):\n    {body}")


def test_a_while_is_named_only_where_there_is_one():
    endless = "for x in iter(int, 1): pass"
    assert "`while`" not in advice(f'def strides_of(shape):\n    """A while."""\n    {endless}')
    assert "`while`" in advice("def strides_of(shape):\n    while True: pass")


def test_who_asks_a_person_is_not_sent_to_a_hint():
    tip = advice("def strides_of(shape):\n    return input('shape?')")
    assert tip.startswith("Leave `input()` out")
    assert "hint(" not in tip


def test_what_is_called_yours_stands_in_the_answer():
    def tip(returned):
        source = f"def mean_cross_entropy(logits, labels):\n    return {returned}"
        rows = report("cross-entropy-by-hand", source).rows
        return next(row.tip for row in rows if row.label == "a large score")

    assert "Print what your `exp` gives" in tip("logits.exp().sum()")
    assert "`exp`" not in tip("logits.sum()")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "return [(x, y), 3]",
            "a list of pairs `(inputs, labels)`, one for each batch: It is False",
        ),
        ("return x", "It is a tensor; expected is a list."),
        ("return [(x, y)]", "sizes: Its length is 1"),
    ],
)
def test_batches_are_called_no_pairs_only_where_they_are_none(body, said):
    source = f"def batches_of_pairs(x, y, size, seed):\n    {body}"
    text = " ".join(str(report("shuffled-apart", source)).split())
    assert said in text
    assert "look at yours" not in text


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("list(batch.values())", 'returned: It is "[tensor('),
        ("tuple(batch)", "returned: It is \"('x', 'name')\""),
    ],
)
def test_a_structure_is_called_what_it_is(returned, said):
    source = "def to_device(batch, device):\n    if type(batch) is tk.Tensor:\n"
    source += f"        return batch.to(device)\n    return {returned}"
    (first, *_) = [row for row in report("to-device", source).rows if row.status == "failed"]
    assert first.tip.startswith(said)


def test_the_code_of_a_mistake_stands_in_the_answer():
    body = "    if (pixels + amount > 255):\n        return pixels\n    return pixels + amount"
    found = report("brighter", f"def brighter(pixels, amount):\n{body}")
    assert found.mistake == "if of a mask"
    source = "def fit_slope(x, y, steps, lr):\n    w = tk.tensor(0.0, requires_grad=True)\n"
    source += "    for _ in range(steps):\n        loss = ((w * x - y) ** 2).mean()\n"
    source += "        with tk.no_grad():\n            w -= lr * w.grad\n    return w.item()"
    assert report("forgotten-zero", source).mistake == ""


def test_a_repair_of_a_value_is_said_where_it_works():
    expected = tk.tensor([1.0, 2.0])
    assert "`tk.tensor(...)`" in difference([1.0, 2.0], expected)
    assert "`tk.stack(...)`" in difference([tk.ones(2), tk.ones(2)], tk.ones(2, 2))
    for broken in (
        [tk.ones(2), tk.ones(2)],
        [[1.0], 2.0],
        ["a"],
        [tk.ones(2), tk.ones(3)],
        [tk.ones(2), 1],
    ):
        assert "makes one" not in difference(broken, expected)
    assert "makes one" not in difference(np.array(["a"]), expected)


def test_deep_calls_are_not_called_endless():
    tip = advice("def strides_of(shape, n=0):\n    return strides_of(shape, n + 1)")
    assert "deeper than Python allows" in tip
    assert "without end" not in tip


@pytest.mark.parametrize(
    ("line", "is_said"),
    [("x.backward()", True), ("x.requires_grad_(); tk.ones(2).sum().backward()", False)],
)
def test_a_repair_that_stands_in_the_answer_is_not_said(line, is_said):
    tip = advice(f"def strides_of(shape):\n    x = tk.ones(())\n    {line}")
    assert ("requires_grad_()" in tip) == is_said


def test_a_repair_is_not_about_another_tensor_of_that_name():
    exercise = load()["any-device"]
    names = {"tk": tk}
    exec(exercise.released_source, names)
    said = str(judge(exercise, names[exercise.name], source=exercise.released_source))
    assert "on different devices" in said
    assert "the tensor on cpu" not in said


def test_the_line_that_is_named_is_one_of_the_learners():
    answer = "import statistics\ndef strides_of(shape):\n    return statistics.mean([])"
    assert "got" not in advice(answer)
    text = words(answer + "\n", "check('sample-strides')")
    assert "line 3: return statistics.mean([])" in text


def test_a_line_of_another_cell_is_said_to_be_one():
    text = words("def other(): return 1 / 0\n", "strides_of = lambda shape: other()\n", CHECK)
    assert "line 1: strides_of = lambda shape: other()" in text


@pytest.mark.parametrize(
    ("predicted", "said"),
    [
        (4, "a whole number; write a text in quotes"),
        (["int64"], "a list; write a text in quotes"),
        ("float64", "Whole numbers become int64."),
    ],
)
def test_a_prediction_of_another_kind_is_told_how_to_write_it(predicted, said):
    predictions = dict.fromkeys(load()["sample-dtype"].questions, predicted)
    assert said in judge(load()["sample-dtype"], predictions).rows[0].tip


def tip_of(id, predicted):
    exercise = load()[id]
    return judge(exercise, dict.fromkeys(exercise.questions, predicted)).rows[-1].tip


@pytest.mark.parametrize(
    ("id", "predicted", "said"),
    [
        ("which-dtype", int, "“int” is no possible answer. Replace each ... by the dtype"),
        ("which-dtype", "integer", "“integer” is no possible answer. Replace each ... by the"),
        ("which-device", "gpu", '“gpu” is no possible answer. Replace each ... by "cpu" or'),
        ("which-layout", int, "This prediction is the type int; write `True` or `False`"),
        ("which-index", int, "This prediction is the type int; write a list in brackets"),
        ("which-index", ["4"], "A list of numbers is asked for, such as `[2, 3]`; in yours"),
        ("which-index", [[4]], "A list of numbers is asked for, such as `[2, 3]`; in yours"),
        ("which-index", [9, 9, 9], "Run the expression and look."),
        ("which-dtype", "int32", "Run the expression and look."),
    ],
)
def test_a_wrong_form_of_a_prediction_is_told_before_the_concept(id, predicted, said):
    assert said in tip_of(id, predicted)


@pytest.mark.parametrize(
    ("id", "right", "written"),
    [
        ("which-dtype", "int64", "Int64"),
        ("which-dtype", "float32", tk.float32),
        ("which-device", "cpu", "CPU"),
        ("which-device", "cuda:0", "cuda"),
        ("which-index", [4, 3], (4, 3)),
    ],
)
def test_other_ways_to_write_a_right_prediction_pass(id, right, written):
    exercise = load()[id]
    predictions = {asked: written if r == right else r for asked, r in exercise.right.items()}
    assert written in predictions.values()
    assert judge(exercise, predictions).status == "passed"


def test_a_prediction_of_layers_is_told_how_to_see_them():
    exercise = load()["which-layers"]
    tip = judge(exercise, dict.fromkeys(exercise.questions, "cpu")).rows[1].tip
    assert "`explain.dispatch(lambda: a * b)` shows the layers" in tip


def test_the_right_number_as_a_float_is_told_to_be_a_whole_number():
    exercise = load()["what-is-remembered"]
    predictions = {asked: right + 0.0 for asked, right in exercise.right.items()}
    said = "This prediction is a float; write a whole number: `2`."
    assert judge(exercise, predictions).rows[0].tip == said
    exercise = load()["what-shape"]
    predictions = {asked: [size + 0.0 for size in right] for asked, right in exercise.right.items()}
    said = "There are floats in this prediction; write whole numbers: `[3]`."
    assert judge(exercise, predictions).rows[2].tip == said


def test_an_answer_that_prints_nothing_is_not_said_to_print():
    def silent(fahrenheit):
        fahrenheit - 32

    def printing(fahrenheit):
        print((fahrenheit - 32) / 1.8)

    celsius = load()["celsius"]
    assert judge(celsius, printing).mistake == "prints"
    assert judge(celsius, silent).mistake == ""


def test_no_repair_is_recommended_that_stands_in_the_answer():
    source = """
        def second_derivative(coefficients, x):
            t = tk.tensor(x, dtype=tk.float64, requires_grad=True)
            y = sum(c * t**k for k, c in enumerate(coefficients))
            y.backward()
            t.grad.backward()
            return t.grad.item()
        """
    report = str(judged("second-derivative", source))
    assert "has no history" in report
    assert "requires_grad_()" not in report


@pytest.mark.parametrize(
    ("line", "words"),
    [("slope = slope.detach()", "`slope.detach()` takes it off"), ("pass", "a call on the way")],
)
def test_what_takes_a_tensor_off_the_record_is_named_where_it_stands(line, words):
    source = f"""
        def second_derivative(coefficients, x):
            t = tk.tensor(x, dtype=tk.float64, requires_grad=True)
            y = 3 * t + 0 * sum(coefficients)
            (slope,) = tk.autograd.grad(y, t, create_graph=True)
            {line}
            return tk.autograd.grad(slope, t)[0].item()
        """
    report = str(judged("second-derivative", source))
    assert words in " ".join(report.split())


def test_a_function_that_returns_what_print_gives_is_told_so():
    source = """
        def celsius(fahrenheit):
            return print((fahrenheit - 32) / 1.8)
        """
    report = " ".join(str(judged("celsius", source)).split())
    assert "gives None. Return the value itself" in report


def judged(id, source):
    source = textwrap.dedent(source)
    names = {"tk": tk}
    exec(_as_in_a_notebook(source), names)
    exercise = load()[id]
    return judge(exercise, names[exercise.name], source=source)
