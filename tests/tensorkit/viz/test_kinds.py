"""Every kind of node can be drawn and explained, and the walk gives the engine's numbers."""

import re

import pytest

import tensorkit as tk
from tensorkit import explain, viz
from tensorkit.viz import words


class Twice(tk.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def _slices(x):
    y = x.clone()
    y[1] = 5.0
    y[:, 1].mul_(3)
    return y * y


KINDS = {
    "leaf": lambda x: x,
    "a Function": Twice.apply,
    "split": lambda x: x.split(2, 1)[0] * x.split(2, 1)[1],
    "unbind": lambda x: x.unbind(0)[0] * x.unbind(0)[1],
    "write to a part": _slices,
    "cat": lambda x: tk.cat([x, x * 2]),
    "advanced index": lambda x: x[tk.tensor([0, 2, 0])],
    "max": lambda x: x.max(1)[0],
    "softmax": lambda x: x.softmax(1)[:, 0],
    "where": lambda x: tk.where(x > 0.5, x, 0 * x),
    "matmul": lambda x: x @ x.T,
    "linear": lambda x: tk.nn.functional.linear(x, x.detach()),
    "loss": lambda x: tk.nn.functional.cross_entropy(x, tk.tensor([0, 1, 2])),
    "view": lambda x: x.view(4, 3).T,
    "second order": lambda x: tk.autograd.grad((x**3).sum(), x, create_graph=True)[0],
}


@pytest.fixture(params=KINDS)
def made(request):
    tk.manual_seed(0)
    x = tk.rand(3, 4, requires_grad=True)
    return x, KINDS[request.param](x)


def test_the_walk_gives_the_engines_gradient(made):
    x, y = made
    y = y.sum() if y.ndim else y
    (wanted,) = tk.autograd.grad(y, x, retain_graph=True)
    text = viz.backward(y, naive=True).alt
    shown = re.search(r"x.grad gets (.*) \(x: ", text)[1]
    assert shown == words.values(wanted)


def test_everything_else_is_drawn_too(made):
    _, y = made
    for look in (viz.graph, viz.saved, viz.memory, explain.no_grad, explain.inplace):
        assert look(y).svg
