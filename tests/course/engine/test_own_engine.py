"""The engine of chapter 10 finds the gradients that the source texts print, and tensorkit's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorkit as tk
from course import engine


def leaf(value):
    return engine.Tensor(value, requires_grad=True)


def linear_model():
    w, b = leaf([[0.5], [1.5]]), leaf([0.1])
    y = engine.Tensor([[1.0, 2.0]]) @ w + b
    loss = (y - 5.0) * (y - 5.0)
    loss.backward()
    return y, loss, w.grad, b.grad


def polynomial():
    x = leaf(3.0)
    (x * x + x * 2.0 + 1.0).backward()
    vector = leaf([1.0, 2.0, 3.0])
    (vector * vector).sum().backward()
    return x.grad, vector.grad


def added_up():
    x = leaf(2.0)
    (x * x).backward()
    first = x.grad
    (x * x * x).backward()
    second = x.grad
    x.zero_grad()
    (x * x * x).backward()
    return first, second, x.grad


def two_weights():
    w1, w2, b = leaf(3.0), leaf(-2.0), leaf(1.0)
    y = w1 * 4.0 + w2 * 5.0 + b
    loss = (y - 10.0) * (y - 10.0)
    loss.backward()
    return y, loss, w1.grad, w2.grad, b.grad


def never_cleared():
    w = leaf(2.0)
    found = []
    for _ in range(3):
        (w * 3.0 * w * 3.0).backward()
        found.append(w.grad)
    return found


def slope_of_a_slope():
    x = leaf(3.0)
    y = x * x * x
    y.backward(create_graph=True)
    slope = x.grad
    x.zero_grad()
    slope.backward()
    return y, slope, x.grad


def sine_of_a_square():
    x = leaf(math.pi)
    (x * x).sin().backward()
    return [x.grad]


@pytest.mark.parametrize(
    ("example", "printed"),
    [
        (linear_model, [[[3.6]], [[1.96]], [[-2.8], [-5.6]], [-2.8]]),
        (polynomial, [8.0, [2.0, 4.0, 6.0]]),
        (added_up, [4.0, 16.0, 12.0]),
        (two_weights, [3.0, 49.0, -56.0, -70.0, -14.0]),
        (never_cleared, [36.0, 72.0, 108.0]),
        (slope_of_a_slope, [27.0, 27.0, 18.0]),
        (sine_of_a_square, [-5.67174]),
    ],
)
def test_the_engine_finds_what_the_source_texts_print(example, printed):
    for found, expected in zip(example(), printed, strict=True):
        np.testing.assert_allclose(found.data, expected, atol=1e-5)


def test_the_engine_finds_what_tensorkit_finds():
    random = np.random.default_rng(0)
    shapes = {"x": (4, 3), "w": (3, 5), "b": (5,), "v": (5, 2), "s": (4, 1)}
    values = {name: random.normal(size=shape) for name, shape in shapes.items()}

    def program(x, w, b, v, s):
        out = ((x @ w + b).relu() * s) @ v
        return (out * out).sum() + (b * b).sum()

    own_leaves = {name: leaf(value) for name, value in values.items()}
    references = {name: tk.from_numpy(value).requires_grad_() for name, value in values.items()}
    program(**own_leaves).backward()
    program(**references).backward()
    for name in shapes:
        np.testing.assert_allclose(own_leaves[name].grad.data, references[name].grad.numpy())


def test_a_graph_of_twenty_thousand_operations_is_walked():
    x = y = leaf(1.0)
    for _ in range(10_000):
        y = y * 1.0 + 1.0
    y.backward()
    assert x.grad.item() == 1.0


def test_numpy_on_the_left_gives_a_tensor():
    product = np.ones(2) * leaf([2.0, 3.0])
    assert product.requires_grad
    assert repr(product) == "Tensor([2., 3.])"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: engine.Tensor(1.0).backward(), "does not require grad"),
        (lambda: leaf([1.0, 2.0]).backward(), "only for scalar outputs"),
    ],
)
def test_backward_says_what_it_needs(wrong, words):
    with pytest.raises(RuntimeError, match=words):
        wrong()
