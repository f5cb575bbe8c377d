"""viz.training, gradients, benchmark and landscape: what they tell, and odd input."""

import math
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

import tensorkit as tk
from tensorkit import viz

NAN = math.nan
ROOT = Path(tk.__file__).parents[1]


@pytest.mark.parametrize("losses", [[2.0, 1.0], tk.tensor([2.0, 1])])
def test_a_history_of_numbers_or_tensors_says_the_same(losses):
    text = viz.training({"loss": losses}).alt
    assert "loss: begins at 2., ends at 1., lowest 1. in epoch 1" in text


def test_a_loss_that_is_nan_is_told():
    text = viz.training({"loss": [1.0, NAN, NAN]}).alt
    assert "2 values not finite, first in epoch 1" in text


def test_long_histories_stay_small():
    picture = viz.training({"loss": [1 / (1 + step) for step in range(100_000)]})
    assert len(picture.svg) < 30_000
    assert "100,000 epochs" in picture.alt


def test_empty_and_wrong_histories_get_a_sentence():
    assert viz.training({}).title == "No training yet"
    for history in ({"loss": ["high"]}, {"loss": 3.0}, [2.0, 1.0], 3.0):
        with pytest.raises(TypeError, match="wants a dict of lists of numbers"):
            viz.training(history)


def test_gradients_that_are_missing_or_odd_are_told_in_words():
    def parameter(gradient):
        parameter = tk.ones(2, requires_grad=True)
        parameter.grad = None if gradient is None else tk.tensor(gradient)
        return parameter

    text = viz.gradients(
        {"none": parameter(None), "zero": parameter([0.0, 0.0]), "nan": parameter([NAN, 1.0])}
    ).alt
    for name, told in (("none", "None"), ("zero", "all 0"), ("nan", "nan")):
        assert f"{name} " in text
        assert told in text


def test_the_benchmark_tells_every_time():
    times = {"cpu": {1: 1.0, 10: 10.0, 100: 100.0}, "cuda": {10: 5.0, 100: 6e-3}}
    rows = [line.split("  ") for line in viz.benchmark(times).alt.splitlines()[1:]]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["elements", "cpu", "cuda"],
        ["1", "1 s"],
        ["10", "10 s", "5 s"],
        ["100", "100 s", "6 ms"],
    ]
    for odd in ({}, {"cpu": {}}, {"cpu": {1: 0.0}}, [1, 2]):
        with pytest.raises(TypeError, match=r"wants .* all above 0"):
            viz.benchmark(odd)


def test_the_landscape_evaluates_the_function():
    text = viz.landscape(lambda x, y: (x - 1) ** 2 + y, x=(0, 2), y=(0, 1)).alt
    assert text.splitlines()[2].split() == ["0.", "0.5", "1.", "1.5", "2."]
    assert text.splitlines()[3].split() == ["0.", "1.", "0.25", "0.", "0.25", "1."]


def test_a_landscape_of_a_function_on_numbers_only_is_drawn():
    picture = viz.landscape(lambda x, y: math.sin(float(x)) * float(y), x=(0, 1), y=(0, 1))
    assert "Landscape" in picture.svg


@pytest.mark.parametrize(("x", "anchor"), [(2.0, "end"), (-2.0, "start")])
def test_the_word_end_does_not_stand_on_the_path(x, anchor):
    path = [(x, 1.0), (x / 4, 0.2), (0.0, 0.0)]
    svg = viz.landscape(lambda x, y: x * x + y * y, path, x=(-3, 3), y=(-1, 2)).svg
    assert re.search(r"text-anchor: (\w+)[^>]*> *end *<", svg)[1] == anchor


def test_a_landscape_without_finite_values_gets_a_sentence():
    assert "no finite value" in viz.landscape(lambda x, y: x * NAN).alt
    for path in (3, [1.0, 2.0], [(1.0, 2.0, 3.0)], [None], tk.ones(3)):
        with pytest.raises(TypeError, match=r"Try: path\.append"):
            viz.landscape(lambda x, y: x, path)
    with pytest.raises(TypeError, match=r"wants a function of two numbers, and a path"):
        viz.landscape([(1.0, 2.0)])


def test_charts_leave_the_users_matplotlib_alone():
    code = (
        "import matplotlib\nbefore = dict(matplotlib.rcParams)\n"
        "from tensorkit import viz\nviz.training({'loss': [2.0, 1.0]}).svg\n"
        "assert dict(matplotlib.rcParams) == before\n"
        "import matplotlib.pyplot as plt\nassert not plt.get_fignums()"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=ROOT)


def test_charts_do_not_depend_on_the_users_settings():
    history = {"loss": [2.0, 1.0], "accuracy": [0.25, 0.5]}
    usual = viz.training(history).svg
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "x"}):
        assert viz.training(history).svg == usual


def test_a_name_in_a_chart_is_no_tex():
    assert ">a$b$c<" in viz.training({"a$b$c": [1.0, 2.0], "b_2": [1.0, 2.0]}).svg


def test_two_charts_stand_below_one_another_and_fit_a_telephone():
    picture = viz.training({"training loss": [2.0, 1.0], "test accuracy": [0.5, 0.9]})
    assert "min-width" not in picture.html
    assert "tabindex" not in picture.html


def test_a_wide_picture_is_scrolled_by_keyboard_too():
    with tk.cuda.simulate(), tk.cuda.record() as ledger:
        tk.ones(2, device="cuda").exp()
    html = viz.timeline(ledger).html
    box = re.search(r'<div style="overflow-x:auto;--tk-least:(.+)" class="tk-scroll" (.*)>', html)
    assert re.match(r'tabindex="0" role="group" aria-label="\w', box[2])
    assert f"min-width:{box[1]};max-width:100%" in html


@pytest.mark.parametrize(
    ("names", "label"),
    [(["accuracy"], "accuracy"), (["rate"], "rate"), (["accuracy", "b", "c"], "other values")],
)
def test_the_second_chart_is_called_what_it_shows(names, label):
    svg = viz.training({"loss": [2.0, 1.0], **{name: [1.0, 2.0] for name in names}}).svg
    assert "accuracy and others" not in svg
    assert f">{label}<" in svg


def test_a_last_digit_does_not_move_a_chart():
    losses = [1 / (n + 1) for n in range(40)]
    moved = [loss * (1 + 1e-6) for loss in losses]
    assert viz.training({"loss": losses}).svg == viz.training({"loss": moved}).svg
    assert ">0.22<" in viz.training({"loss": [0.25, 0.22, 0.3]}).svg, "text keeps its digits"
