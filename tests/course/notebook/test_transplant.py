"""A learner's function really runs inside the library, and leaves no trace."""

from __future__ import annotations

import pytest

import tensorkit as tk
from course.exercises.ch01_tensors.strides_of import strides_of
from course.exercises.ch03_memory.contiguous_by_hand import contiguous_by_hand
from course.exercises.ch04_broadcasting.broadcast_shape import broadcast_shape
from course.exercises.ch05_autograd.backward_order import backward_order
from course.exercises.ch05_autograd.tanh_gradient import tanh_gradient
from course.exercises.ch05_autograd.unbroadcast import unbroadcast
from course.exercises.ch06_gradient_control.sgd_step import sgd_step
from course.exercises.ch07_higher_order.sigmoid_gradient import sigmoid_gradient
from course.exercises.ch09_training.momentum_step import momentum_step
from course.exercises.ch11_dispatch.find_kernel import find_kernel
from course.notebook.transplant import PLACES, transplant
from course.shared.errors import CourseError
from tensorkit import optim


def strides():
    return tk.zeros(2, 3).stride(), (tk.zeros(4, 5) + 1).stride()


def contiguity():
    x = tk.zeros(2, 3)
    return x.is_contiguous(), x.T.is_contiguous(), x.T.contiguous().stride()


def sums():
    x = tk.ones(3, 1) + tk.arange(4.0)
    return x.tolist(), (x * x[0]).tolist()


def slopes():
    w = tk.tensor([0.5, -1.0], requires_grad=True)
    (tk.tanh(w) ** 2).sum().backward()
    return w.grad.tolist()


def curvatures():
    x = tk.tensor([0.5, -1.0], requires_grad=True)
    (slope,) = tk.autograd.grad(tk.sigmoid(x).sum(), x, create_graph=True)
    slope.sum().backward()
    return [round(number, 5) for number in (*slope.tolist(), *x.grad.tolist())]


def several_ways():
    x = tk.tensor(3.0, requires_grad=True)
    u = x * 2
    (u * u + u).backward()
    (slope,) = tk.autograd.grad(x**3, x, create_graph=True)
    (curvature,) = tk.autograd.grad(slope, x)
    return x.grad.item(), slope.item(), curvature.item()


def stretched():
    bias = tk.tensor([0.1, 0.2], requires_grad=True)
    scale = tk.tensor([[1.0], [2.0]], requires_grad=True)
    (tk.ones(2, 2) * scale + bias).sum().backward()
    return bias.grad.tolist(), scale.grad.tolist()


def steps():
    w = tk.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([w, tk.ones(1, requires_grad=True)], lr=0.25)
    (w * w).sum().backward()
    optimizer.step()
    return w.tolist()


def steps_with_momentum():
    w = tk.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([w, tk.ones(1, requires_grad=True)], lr=0.25, momentum=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    return w.tolist()


USES = {
    "strides_of": (strides_of, strides),
    "contiguous_by_hand": (contiguous_by_hand, contiguity),
    "broadcast_shape": (broadcast_shape, sums),
    "tanh_gradient": (tanh_gradient, slopes),
    "sigmoid_gradient": (sigmoid_gradient, curvatures),
    "backward_order": (backward_order, several_ways),
    "unbroadcast": (unbroadcast, stretched),
    "sgd_step": (sgd_step, steps),
    "momentum_step": (momentum_step, steps_with_momentum),
    "find_kernel": (find_kernel, steps_with_momentum),
}


def test_an_engine_in_the_learners_order_gives_gradients_of_results_on_the_way():
    x = tk.tensor([1.0, 2.0], requires_grad=True)
    with transplant(backward_order):
        y = x * x
        found = tk.autograd.grad((y * y).sum(), [y, x])
    assert [gradient.tolist() for gradient in found] == [[2.0, 8.0], [4.0, 32.0]]


def test_every_place_is_tried_here():
    assert set(USES) == set(PLACES)


@pytest.mark.parametrize("name", PLACES)
def test_the_library_asks_the_function_and_gives_the_same(name):
    function, use = USES[name]
    expected = use()
    with transplant(function) as asked:
        assert use() == expected
    assert asked.times > 0
    assert repr(asked) == f"tensorkit asked your `{name}`."
    times = asked.times
    assert use() == expected
    assert asked.times == times, "the function was asked after its block"


@pytest.mark.parametrize("name", PLACES)
def test_a_wrong_function_shows_and_leaves_no_trace(name):
    _, use = USES[name]
    expected = use()

    def wrong(*args):
        raise ZeroDivisionError("by design")

    wrong.__name__ = name
    with transplant(wrong) as asked:
        use()
    assert "ZeroDivisionError: by design" in repr(asked)
    assert use() == expected


WRONG = {
    "strides_of": lambda shape: tuple(range(len(shape))),
    "contiguous_by_hand": lambda shape, strides: True,
    "broadcast_shape": lambda a, b: (1, *broadcast_shape(a, b)),
    "tanh_gradient": lambda g, out: g * out,
    "sigmoid_gradient": lambda g, out: g * out,
    "backward_order": lambda graph, root: backward_order(graph, root)[::-1],
    "unbroadcast": lambda g, shape: unbroadcast(g, shape) * 2,
    "sgd_step": lambda parameters, gradients, lr: None,
    "momentum_step": lambda parameters, gradients, velocities, lr, momentum: None,
    "find_kernel": lambda kernels, operation, device: tk.add.definition.kernels["default"],
}


@pytest.mark.parametrize("name", PLACES)
def test_a_wrong_answer_changes_the_result(name):
    _, use = USES[name]
    expected = use()

    def wrong(*args):
        return WRONG[name](*args)

    wrong.__name__, found = name, []
    with transplant(wrong) as asked:
        found.append(use())
    assert asked.times > 0
    assert found != [expected]
    assert use() == expected


def test_wrong_strides_do_not_outlive_their_block():
    def strides_of(shape):
        return tuple(range(len(shape)))

    with transplant(strides_of):
        tk.zeros(7, 9)
    assert tk.zeros(7, 9).stride() == (9, 1)
    assert (tk.zeros(7, 9) + 1).stride() == (9, 1)


def test_a_function_that_is_not_written_changes_nothing():
    def unbroadcast(gradient, shape):
        # YOUR CODE HERE
        pass

    with transplant(unbroadcast) as asked:
        assert stretched() == ([2.0, 2.0], [[2.0], [2.0]])
    assert "not written yet" in repr(asked)


def test_a_function_without_a_place_is_refused():
    with pytest.raises(CourseError, match="no place for a function called 'sums'"):
        transplant(sums).__enter__()
