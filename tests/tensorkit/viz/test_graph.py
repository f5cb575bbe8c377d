"""viz.graph: what it says, how large graphs fold, and what it does with bad input."""

import itertools
import shutil
import time

import graphviz
import pytest
from hypothesis import given
from hypothesis import strategies as st
from svg_text import texts

import tensorkit as tk
from tensorkit import viz
from tensorkit.viz import boxes


def _chain(n, x):
    for _ in range(n):
        x = (x * 2.0).sin()
    return x


def test_names_are_those_of_the_caller():
    weight = tk.tensor([1.0, 2.0], requires_grad=True)
    product = weight * 3.0
    text = viz.graph(product.sum()).alt
    assert "1. weight: leaf, (2,) float32; [1., 2.]; gradient → .grad" in text
    assert "MulBackward0 (product) of 1: (2,) float32; [3., 6.]; keeps other" in text


def test_repeated_blocks_fold_into_one_box():
    x = tk.ones(2, requires_grad=True)
    text = viz.graph(_chain(100, x).sum()).alt
    assert "100 times the block: MulBackward0, SinBackward0; (2,) float32" in text
    assert len(text.splitlines()) == 3


def test_any_large_graph_becomes_few_boxes():
    tk.manual_seed(1)
    x = y = tk.rand(3, requires_grad=True)
    for choice in tk.randint(0, 3, (5000,)).tolist():
        y = (y.sin(), y * 0.5, y + x)[choice]
    start = time.perf_counter()
    picture = viz.graph(y.sum())
    assert time.perf_counter() - start < 5.0  # measured: 0.5 s on two shared cores
    assert picture.alt.startswith("Autograd graph: 5,001 operations, 1 leaf")
    assert len(picture.alt.splitlines()) < 45


PLAIN = """graph 1 3 2.5
node 0 1 2 1 0.5 0 solid box black lightgrey
node 1 1 1 1 0.5 1 solid box black lightgrey
edge 0 1 4 0.9 1.75 0.9 1.6 0.9 1.4 0.9 1.25 solid black
edge 0 1 4 1.1 1.75 1.1 1.6 1.1 1.4 1.1 1.25 solid black
stop
"""


def _texts(picture):
    return sorted(each.text for each in texts(picture))


@pytest.fixture(autouse=True)
def _dot_may_be_called(monkeypatch):
    monkeypatch.delenv("TENSORKIT_DOT", raising=False)


def test_dot_places_the_same_boxes(monkeypatch):
    x = tk.ones(2, requires_grad=True)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    own = viz.graph(x * x)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(graphviz.Digraph, "pipe", lambda self, **options: PLAIN)
    placed = viz.graph(x * x)
    assert placed.alt == own.alt
    assert _texts(placed) == _texts(own)
    assert placed.svg != own.svg


def test_dot_itself_is_read(monkeypatch):
    if shutil.which("dot") is None:
        pytest.skip("needs the program dot: apt install graphviz")
    x = tk.ones(2, requires_grad=True)
    y = (x * x + x.sin()).sum()
    placed = viz.graph(y)
    monkeypatch.setenv("TENSORKIT_DOT", "0")
    assert _texts(placed) == _texts(viz.graph(y))


@pytest.mark.parametrize("variable", ["PATH", "TENSORKIT_DOT"])
def test_without_dot_a_picture_is_the_same_on_every_machine(variable, monkeypatch):
    x = tk.ones(2, requires_grad=True)
    monkeypatch.setattr(graphviz.Digraph, "pipe", lambda self, **options: pytest.fail("called"))
    monkeypatch.setenv(variable, "" if variable == "PATH" else "0")
    once = viz.graph(x * x).svg
    monkeypatch.setenv("TENSORKIT_DOT", "0")
    assert viz.graph(x * x).svg == once


@given(st.data())
def test_no_box_lies_on_another_and_edges_point_down(data):
    n = data.draw(st.integers(1, 12))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    edges = data.draw(st.lists(st.sampled_from(pairs), max_size=20)) if pairs else []
    sizes = [(60.0 + 10 * (node % 3), 40.0) for node in range(n)]
    places, routes = boxes.layout(sizes, edges)
    drawn = [(x - w / 2, y, x + w / 2, y + h) for (x, y), (w, h) in zip(places, sizes, strict=True)]
    for a, b in itertools.combinations(drawn, 2):
        assert min(a[2], b[2]) - max(a[0], b[0]) < 0.01 or min(a[3], b[3]) - max(a[1], b[1]) < 0.01
    for (upper, lower), route in zip(edges, routes, strict=True):
        assert route[0][1] == drawn[upper][3] < route[-1][1] == drawn[lower][1]


def test_a_tensor_without_graph_gets_a_sentence():
    assert "does not require grad" in viz.graph(tk.ones(2)).alt
    assert "leaf" in viz.graph(tk.ones(2, requires_grad=True)).alt


def test_a_freed_graph_says_so():
    x = tk.ones(2, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    assert "freed by an earlier backward" in viz.graph(loss).alt


def test_a_changed_saved_tensor_says_so():
    x = tk.ones(2, requires_grad=True)
    y = x.exp()
    loss = (y * y).sum()
    with tk.no_grad():
        y += 1
    assert "changed since it was saved" in viz.graph(loss).alt


@pytest.mark.parametrize("shape", [(0,), (1000, 1000), (1, 2, 1, 2, 1, 2, 1, 2)])
def test_unusual_tensors_are_summarised(shape):
    x = tk.full(shape, float("nan")).requires_grad_()
    text = viz.graph((x * 2).sum()).alt
    assert str(shape) in text
    assert len(text) < 1000


def test_what_is_no_tensor_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match=r"viz\.graph\(\) wants a tensor"):
        viz.graph([1.0])
