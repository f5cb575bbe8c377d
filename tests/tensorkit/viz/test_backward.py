"""viz.backward: the engine's own numbers and order, and where the naive recursion goes wrong."""

import re

import tensorkit as tk
from tensorkit import viz


def _diamond():
    x = tk.tensor([1.0, 2.0], requires_grad=True)
    a = x * 3.0
    b = a.sin()
    return x, a, b, (a * b + a).sum()


def test_gradients_are_the_engines():
    x, _, _, loss = _diamond()
    (gradient,) = tk.autograd.grad(loss, x, retain_graph=True)
    first, second = (f"{value:.4g}" for value in gradient.tolist())
    assert viz.backward(loss).alt.endswith(
        f"x.grad gets [{first}, {second}] (x: (2,) float32, [1., 2.])"
    )


def test_steps_are_in_the_engines_order():
    _x, a, b, loss = _diamond()
    seen = []
    for name, tensor in (("a", a), ("b", b)):
        tensor.register_hook(lambda _, name=name: seen.append(name))
    drawn = re.findall(r"Backward0 \((a|b)\), .* receives", viz.backward(loss).alt)
    loss.backward()
    assert drawn == seen


def test_a_step_tells_gradient_derivative_product_and_sum():
    x = tk.tensor(2.0, requires_grad=True)
    text = viz.backward(x * x + x * 5.0).alt
    assert "to x: local derivative 2., product 2., first" not in text.partition("2.")[0]
    assert "local derivative 5., product 5." in text
    assert "x.grad gets 9. (x: " in text


def test_the_naive_recursion_is_wrong_on_a_diamond_and_right_on_a_chain():
    x, _, _, loss = _diamond()
    assert re.search(r"\nx .*wrong +3", viz.backward(loss, naive=True).alt)
    chain = viz.backward((x * 2.0).sin().sum(), naive=True).alt
    assert "right" in chain
    assert "wrong" not in chain


def test_the_naive_recursion_is_stopped():
    x = tk.ones(1, requires_grad=True)
    y = x
    for _ in range(30):
        y = y + y
    assert "then it was stopped" in viz.backward(y.sum(), naive=True).alt


def test_broadcasting_is_undone_in_words():
    b = tk.zeros(3, requires_grad=True)
    assert "summed over what was broadcast" in viz.backward((tk.ones(2, 3) + b).sum()).alt


def test_a_large_graph_gets_a_sentence():
    x = tk.ones(2, requires_grad=True)
    y = x
    for _ in range(300):
        y = y.sin()
    text = viz.backward(y.sum()).alt
    assert "302 operations and leaves, more than 40. Try: viz.graph(loss)" in text


def test_steps_fold_without_script():
    x = tk.ones(2, requires_grad=True)
    html = viz.backward((x * x).sum()).html
    assert html.count("<details>") == 2


def test_what_cannot_run_gets_a_sentence():
    x = tk.ones(2, requires_grad=True)
    assert "Try: viz.backward(loss.sum())" in viz.backward(x * 2).alt
    assert "does not require grad" in viz.backward(tk.ones(1)).alt
    y = (x * x).sum()
    y.backward()
    assert viz.backward(y).alt.startswith("Backward cannot run")
    nan = tk.tensor([float("nan")], requires_grad=True)
    assert "nan" in viz.backward((nan * nan).sum()).alt
    empty = tk.zeros(0, 3, requires_grad=True)
    assert "(0, 3)" in viz.backward((empty * 2).sum()).svg


def test_hooks_are_not_called_and_that_is_said():
    x = tk.tensor([1.0, 2.0], requires_grad=True)
    h = x * 2.0
    loss = h.sum()
    h.retain_grad()
    called = []
    with h.register_hook(called.append), x.register_hook(called.append):
        picture = viz.backward(loss)
    for text in (picture.alt, picture.svg):
        assert "Hooks are not called." in text
    assert called == []


def test_the_rule_of_a_step_is_said_in_words_and_above_the_folds():
    x = tk.tensor(2.0, requires_grad=True)
    picture = viz.backward(x * x)
    for text in (picture.alt, picture.html.partition("<details>")[0].rpartition("<p>")[2]):
        assert "incoming gradient × local derivative" in text
    assert "gradients back up" in picture.svg


def test_the_naive_recursion_says_which_visits_it_counts():
    text = viz.backward(_diamond()[-1], naive=True).alt
    assert re.search(r"All nodes and leaves together got \d+ visits; in order each gets one", text)
