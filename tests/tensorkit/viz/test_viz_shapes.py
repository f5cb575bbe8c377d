"""viz.broadcast, viz.indexing and viz.saved: what they say is what the library does."""

import re
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorkit as tk
from tensorkit import explain, layout, viz

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def _joined(a, b):
    try:
        return layout.broadcast_shapes(a, b)
    except RuntimeError:
        return None


@given(a=SHAPES, b=SHAPES)
def test_the_verdict_on_broadcasting_is_the_librarys(a, b):
    text = viz.broadcast(a, b).alt
    together = _joined(a, b)
    if together is None:
        assert "They do not fit" in text
    else:
        assert f"Together: {together}" in text


@given(a=SHAPES, b=SHAPES)
def test_repairs_of_broadcasting_are_true(a, b):
    x, y = tk.zeros(a), tk.zeros(b)
    repairs = explain.broadcast(a=x, b=y).repairs
    assert not repairs or _joined(a, b) is None
    for code in repairs:
        changed = eval(code, {"a": x, "b": y})
        other = y if code.startswith("a") else x
        assert _joined(tuple(changed.shape), tuple(other.shape)) is not None


def test_stretched_values_are_drawn_as_copies():
    text = viz.broadcast(tk.tensor([[1], [2]]), tk.tensor([10, 20])).alt
    assert "  1 1\n  2 2" in text
    assert "  10 20\n  10 20" in text


def test_operands_that_are_called_alike_are_all_drawn():
    a = tk.ones(3)
    for explanation in (explain.broadcast(a, tk.ones(4)), viz.broadcast(a, a), viz.broadcast(a, 4)):
        assert (
            len([line for line in explanation.alt.splitlines() if line.startswith(("a ", "b "))])
            >= 2
        )
    assert "They do not fit in dimension 0 (also -1): a has 3, b has 4" in (
        explain.broadcast(a, tk.ones(4)).alt
    )


def test_broadcasting_takes_names_and_refuses_what_has_no_shape():
    assert "weight" in viz.broadcast(weight=(2, 1)).alt
    for value in ("text", -1, None, [1.5]):
        with pytest.raises(TypeError, match="wants shapes or tensors"):
            viz.broadcast(value)


def test_an_index_marks_what_it_takes():
    t = tk.arange(6).reshape(2, 3)
    text = viz.indexing(t, np.s_[:, 1]).alt
    assert "  0 (1) 2\n  3 (4) 5\nresult, shape (2,)\n  1 4" in text
    assert "a view of shape (2,), strides (3,), offset 1" in text


@pytest.mark.parametrize("index", [9, (0, 0, 0), "text", 1.5])
def test_an_index_that_does_not_work_gets_its_error_as_a_sentence(index):
    assert "does not work" in viz.indexing(tk.arange(6), index).alt


@pytest.mark.parametrize("shape", [(), (0, 3), (1500, 1000), (1, 2, 1, 2, 1, 2, 1, 2)])
def test_unusual_tensors_are_indexed(shape):
    text = viz.indexing(tk.zeros(shape), ...).alt
    assert str(shape) in text
    assert len(text) < 3000


def test_saved_bytes_are_those_of_the_saved_storages():
    x = tk.ones(100, requires_grad=True)
    loss = (x.exp().exp()).sum()
    text = viz.saved(loss).alt
    assert "Kept for backward: 800 bytes by 3 operations; besides, leaves hold 0 bytes" in text
    assert text.count("(100,) float32  400 bytes") == 2


def test_a_storage_saved_twice_counts_once():
    x = tk.ones(10, requires_grad=True)
    y = x * 2.0
    assert "Kept for backward: 40 bytes" in viz.saved((y * y + y * y).sum()).alt


def test_after_backward_nothing_is_kept():
    x = tk.ones(10, requires_grad=True)
    loss = x.exp().sum()
    loss.backward()
    assert "Nothing is kept any more" in viz.saved(loss).alt
    assert "Nothing is kept" in viz.saved(tk.ones(3)).alt


def test_an_element_taken_twice_is_said():
    text = viz.indexing(tk.arange(3), tk.tensor([0, 0, 2, 2])).alt
    assert "takes 2 of 3 elements, some several times: a copy of shape (4,)" in text
    assert "  (0) 1 (2)" in text


def test_a_long_index_is_not_written_out():
    assert viz.indexing(tk.arange(100), list(range(60))).title.startswith("t[[0, 1, 2, 3")
    assert len(viz.indexing(tk.arange(100), list(range(60))).title) < 120


@pytest.mark.parametrize(
    ("shape", "index"),
    [((40,), np.s_[12:20]), ((40,), 25), ((20, 30), np.s_[12, 15]), ((10, 2, 2), np.s_[8, 1, 0])],
)
def test_what_an_index_takes_of_a_large_tensor_is_drawn(shape, index):
    x = tk.arange(prod(shape)).reshape(shape)
    first = x[index].reshape(-1)[0].item()
    picture = viz.indexing(x, index)
    assert f"({first})" in picture.alt
    assert f">{first}<" in picture.svg


def test_an_index_that_takes_every_other_one_keeps_its_neighbours_in_sight():
    assert "  (0) 1 (2) 3 (4) 5 (6) 7 ... 39" in viz.indexing(tk.arange(40), np.s_[::2]).alt


def test_an_indexed_tensor_has_the_callers_name():
    scores = tk.arange(3)
    picture = viz.indexing(scores, 1)
    assert picture.title.startswith("scores[1] takes 1 of 3 elements")
    assert "scores, shape (3,)" in picture.alt
    drawn = " ".join(re.findall(">([^<]+)</text>", picture.svg))
    assert "seen in scores." in drawn
