"""Chapter 05. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations

import math
from collections import Counter

import tensorkit as tk


def numeric_by_rows(x, h):
    def f(rows):
        return (rows**3 + 2 * rows).sum(dim=1)

    steps = h * tk.eye(len(x), dtype=x.dtype)
    return (f(x + steps) - f(x - steps)) / (2 * h)


def numeric_by_element(x, h):
    def f(x):
        return x**3 + 2 * x

    return (f(x + h) - f(x - h)) / (2 * h)


def slopes_asked_later(values):
    x = tk.tensor(values, dtype=tk.float64)
    x.requires_grad_()
    x.pow(3).sum().backward()
    return x.grad


def slopes_by_grad(values):
    x = tk.tensor(values, dtype=tk.float64, requires_grad=True)
    (gradient,) = tk.autograd.grad((x * x * x).sum(), x)
    return gradient


def slopes_of_a_result_that_keeps_them(values):
    x = tk.tensor(values, dtype=tk.float64, requires_grad=True).clone()
    x.retain_grad()
    (x**3).sum().backward()
    return x.grad


def tanh_expanded(upstream, out):
    return upstream - upstream * out**2


def tanh_by_factors(upstream, out):
    return upstream.mul(1 - out).mul(1 + out)


def order_by_counting(graph, root):
    reached, waiting = {root}, [root]
    while waiting:
        for source in graph[waiting.pop()]:
            if source not in reached:
                reached.add(source)
                waiting.append(source)
    missing = Counter(source for node in reached for source in graph[node])
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            missing[source] -= 1
            if missing[source] == 0:
                ready.append(source)
    return order


def order_with_a_stack(graph, root):
    finished, seen, stack = [], set(), [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            finished.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(source, False) for source in graph[node]]
    return list(reversed(finished))


def visits_by_paths(graph, root):
    counts = Counter()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        counts[node] += 1
        waiting += graph[node]
    return dict(counts)


def visits_in_order(graph, root):
    counts = {root: 1}
    for node in order_by_counting(graph, root):
        for source in graph[node]:
            counts[source] = counts.get(source, 0) + counts[node]
    return counts


def unbroadcast_at_once(gradient, shape):
    missing = gradient.ndim - len(shape)
    stretched = [missing + i for i, size in enumerate(shape) if size == 1]
    dims = [*range(missing), *stretched]
    return (gradient.sum(dim=dims) if dims else gradient).reshape(shape)


def unbroadcast_by_grad(gradient, shape):
    operand = tk.zeros(shape, dtype=gradient.dtype, requires_grad=True)
    operand.expand(gradient.shape).backward(gradient)
    return operand.grad


def linear_with_mse_loss(x, target, w, b):
    w, b = (tensor.detach().clone().requires_grad_() for tensor in (w, b))
    loss = tk.nn.functional.mse_loss(x @ w + b, target)
    loss.backward()
    return loss.item(), w.grad, b.grad


def linear_by_hand(x, target, w, b):
    error = x @ w + b - target
    n = len(x)
    return error.square().mean().item(), 2 * x.T @ error / n, 2 * error.sum(dim=0) / n


def sine_by_grad(value):
    x = tk.tensor(value, requires_grad=True)
    (slope,) = tk.autograd.grad((x * x).sin(), x)
    return slope.item(), math.cos(value * value) * value * 2


def sine_in_steps(value):
    x = tk.tensor(float(value), requires_grad=True)
    inner = x.square()
    inner.sin().backward()
    return float(x.grad), 2 * value * math.cos(value**2)


RIGHT = [
    ("numeric-gradient", numeric_by_rows),
    ("numeric-gradient", numeric_by_element),
    ("lost-gradient", slopes_asked_later),
    ("lost-gradient", slopes_by_grad),
    ("lost-gradient", slopes_of_a_result_that_keeps_them),
    ("tanh-gradient", tanh_expanded),
    ("tanh-gradient", tanh_by_factors),
    ("backward-order", order_by_counting),
    ("backward-order", order_with_a_stack),
    ("visits", visits_by_paths),
    ("visits", visits_in_order),
    ("unbroadcast", unbroadcast_at_once),
    ("unbroadcast", unbroadcast_by_grad),
    ("linear-gradients", linear_with_mse_loss),
    ("linear-gradients", linear_by_hand),
    ("sine-slope", sine_by_grad),
    ("sine-slope", sine_in_steps),
]
