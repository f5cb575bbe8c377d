"""viz.training, gradients, benchmark and landscape: what they tell, and odd input."""

import math

import pytest

import tensorkit as tk
from tensorkit import viz
from tensorkit.viz.chart import span, ticks

NAN = math.nan


@pytest.mark.parametrize("low", [-7.0, 0.0, 1e-6, 12345.0])
@pytest.mark.parametrize("width", [1e-5, 0.3, 1.0, 77.0, 1e9])
def test_ticks_are_few_round_and_inside(low, width):
    found = ticks(low, low + width)
    assert 3 <= len(found) <= 8
    assert all(low - 1e-6 * width <= it <= low + width * 1.000001 for it in found)


def test_the_range_of_nothing_or_of_one_number_can_be_drawn():
    for values in ([], [NAN], [3.0], [0.0, 0.0], [math.inf]):
        low, high = span(values)
        assert low < high
        assert 0 < span(values, log=True)[0] < span(values, log=True)[1]


@pytest.mark.parametrize(
    "history",
    [{"loss": [2.0, 1.0]}, [{"loss": 2.0}, {"loss": 1.0}], [2.0, 1.0], tk.tensor([2.0, 1])],
)
def test_histories_of_each_kind_say_the_same(history):
    assert "loss: begins at 2., ends at 1., lowest 1. in epoch 1" in viz.training(history).alt


def test_a_loss_that_is_nan_is_told():
    text = viz.training([1.0, NAN, NAN]).alt
    assert "2 values not finite, first in epoch 1" in text


def test_long_histories_stay_small():
    picture = viz.training([1 / (1 + step) for step in range(100_000)])
    assert len(picture.svg) < 30_000
    assert "100,000 epochs" in picture.alt


def test_empty_and_wrong_histories_get_a_sentence():
    assert viz.training({}).title == "No training yet"
    assert viz.training([]).title == "No training yet"
    with pytest.raises(TypeError, match="wants numbers"):
        viz.training({"loss": ["high"]})
    with pytest.raises(TypeError, match="wants numbers"):
        viz.training(3.0)


def test_gradients_that_are_missing_or_odd_are_told_in_words():
    def parameter(gradient):
        it = tk.ones(2, requires_grad=True)
        it.grad = None if gradient is None else tk.tensor(gradient)
        return it

    text = viz.gradients(
        {"none": parameter(None), "zero": parameter([0.0, 0.0]), "nan": parameter([NAN, 1.0])}
    ).alt
    for name, told in (("none", "None"), ("zero", "all 0"), ("nan", "nan")):
        assert f"{name} " in text
        assert told in text


def test_gradients_of_a_large_module_are_shown_by_layer():
    module = tk.nn.Sequential(*(tk.nn.Linear(2, 2) for _ in range(30)))
    module(tk.ones(1, 2)).sum().backward()
    assert len(viz.gradients(module).alt.splitlines()) == 32
    with pytest.raises(TypeError, match="wants a module"):
        viz.gradients(3)


def test_the_benchmark_tells_where_the_curves_cross():
    times = {"cpu": {1: 1.0, 10: 10.0, 100: 100.0}, "cuda": {1: 5.0, 10: 5.0, 100: 6.0}}
    assert "cuda is faster than cpu from 10 elements on, there 2 times." in viz.benchmark(times).alt
    records = [
        {"device": device, "size": size, "seconds": seconds}
        for device, each in times.items()
        for size, seconds in each.items()
    ]
    assert viz.benchmark(records).svg == viz.benchmark(times).svg
    assert viz.benchmark({}).title == "Nothing was measured"
    with pytest.raises(TypeError, match="wants"):
        viz.benchmark([1, 2])


def test_the_landscape_evaluates_the_function():
    text = viz.landscape(lambda x, y: (x - 1) ** 2 + y, x=(0, 2), y=(0, 1)).alt
    assert text.splitlines()[2].split() == ["0.", "0.5", "1.", "1.5", "2."]
    assert text.splitlines()[3].split() == ["0.", "1.", "0.25", "0.", "0.25", "1."]


def test_a_landscape_of_a_function_on_numbers_only_is_drawn():
    picture = viz.landscape(lambda x, y: math.sin(float(x)) * float(y), x=(0, 1), y=(0, 1))
    assert "M" in picture.svg


def test_a_landscape_without_finite_values_gets_a_sentence():
    assert "no finite value" in viz.landscape(lambda x, y: x * NAN).alt
    for path in (3, [1.0, 2.0], [(1.0, 2.0, 3.0)], [None], tk.ones(3)):
        with pytest.raises(TypeError, match=r"Try: path\.append"):
            viz.landscape(lambda x, y: x, path)
    with pytest.raises(TypeError, match="wants a function"):
        viz.landscape([(1.0, 2.0)])


def test_two_charts_fit_a_notebooks_page():
    picture = viz.training({"training loss": [2.0, 1.0], "test accuracy": [0.5, 0.9]})
    assert "min-width" not in picture.html


@pytest.mark.parametrize(
    ("names", "label"),
    [(["accuracy"], "accuracy"), (["rate"], "rate"), (["accuracy", "b", "c"], "other values")],
)
def test_the_second_chart_is_called_what_it_shows(names, label):
    svg = viz.training({"loss": [2.0, 1.0], **{name: [1.0, 2.0] for name in names}}).svg
    assert "accuracy and others" not in svg
    assert f">{label}<" in svg
