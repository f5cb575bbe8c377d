"""Chapter 06. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations

import tensorkit as tk
from tensorkit import optim


def slope_with_grad(x, y, steps, lr):
    w = tk.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        (slope,) = tk.autograd.grad(((w * x - y) ** 2).mean(), w)
        with tk.no_grad():
            w -= lr * slope
    return float(w)


def slope_with_an_optimizer(x, y, steps, lr):
    w = tk.zeros((), requires_grad=True)
    optimizer = optim.SGD([w], lr=lr)
    for _ in range(steps):
        (w * x - y).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return w.item()


def step_with_sub(parameters, gradients, lr):
    for p, g in zip(parameters, gradients, strict=True):
        if g is None:
            continue
        with tk.no_grad():
            p.sub_(g, alpha=lr)


def step_with_copy(parameters, gradients, lr):
    with tk.no_grad():
        for i in range(len(parameters)):
            if gradients[i] is not None:
                parameters[i].copy_(parameters[i] - lr * gradients[i])


def square_after_a_clone(x):
    x = x.clone().requires_grad_()
    y = x.exp().clone()
    y += 1
    (y * y).sum().backward()
    return x.grad


def square_in_one_line(x):
    x = x.detach().clone().requires_grad_()
    ((x.exp() + 1) ** 2).sum().backward()
    return x.grad


def batches_of_sums(pieces, w):
    w = w.clone().requires_grad_()
    for x, y in pieces:
        (((x @ w - y) ** 2).sum() / sum(len(x) for x, _ in pieces)).backward()
    return w.grad


def batches_without_grad(pieces, w):
    w, total = w.clone().requires_grad_(), tk.zeros_like(w)
    for x, y in pieces:
        total += tk.autograd.grad((x @ w - y).square().sum(), w)[0]
    return total / len(tk.cat([y for _, y in pieces]))


def straight_through_by_data_flow(x):
    with tk.no_grad():
        difference = x.round() - x
    return x + difference


def straight_through_by_function(x):
    class Round(tk.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    return Round.apply(x)


def train_only_in_two_steps(parameters, names):
    for p in parameters.values():
        p.requires_grad = False
    for name in names:
        if name in parameters:
            parameters[name].requires_grad = True
    return [name for name in parameters if parameters[name].requires_grad]


def train_only_by_a_set(parameters, names):
    wanted = set(names)
    return [n for n, p in parameters.items() if p.requires_grad_(n in wanted).requires_grad]


RIGHT = [
    ("forgotten-zero", slope_with_grad),
    ("forgotten-zero", slope_with_an_optimizer),
    ("sgd-step", step_with_sub),
    ("sgd-step", step_with_copy),
    ("saved-and-changed", square_after_a_clone),
    ("saved-and-changed", square_in_one_line),
    ("micro-batches", batches_of_sums),
    ("micro-batches", batches_without_grad),
    ("straight-through", straight_through_by_data_flow),
    ("straight-through", straight_through_by_function),
    ("train-only", train_only_in_two_steps),
    ("train-only", train_only_by_a_set),
]
