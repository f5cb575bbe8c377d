"""Chapter 07. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations

import tensorkit as tk
from tensorkit.autograd import functional


def second_by_hessian(coefficients, x):
    def polynomial(t):
        return sum((c * t**k for k, c in enumerate(coefficients)), t * 0)

    return functional.hessian(polynomial, tk.tensor(x, dtype=tk.float64)).item()


def second_by_horner(coefficients, x):
    t = tk.tensor([x], dtype=tk.float64, requires_grad=True)
    y = 0 * t**2
    for c in reversed(coefficients):
        y = y * t + c
    (slope,) = tk.autograd.grad(y.sum(), t, create_graph=True)
    slope.sum().backward()
    return t.grad.item()


def penalty_by_backward(x, w):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    slope = tk.autograd.grad(tk.tanh(x @ w).sum(), [x], create_graph=True)[0]
    return tk.autograd.grad(slope.square().sum(), w)[0]


def penalty_by_formula(x, w):
    w = w.clone().requires_grad_()
    slope = (1 - tk.tanh(x @ w) ** 2).unsqueeze(1) * w
    (slope**2).sum().backward()
    return w.grad


def sigmoid_expanded(upstream, out):
    return upstream * (out - out**2)


def sigmoid_with_mul(upstream, out):
    return tk.mul(upstream, out).mul(1 - out)


def hessian_by_library(x):
    return functional.hessian(lambda x: (x**3).sum() + x.sum() ** 2, x)


def hessian_by_hand(x):
    return tk.eye(len(x), dtype=x.dtype) * (6 * x) + 2


def product_by_library(x, v):
    return functional.hvp(lambda x: (x**3).sum() + x.sum() ** 2, x, v)[1]


def product_with_grad_outputs(x, v):
    x = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad((x**3).sum() + x.sum() ** 2, x, create_graph=True)
    return tk.autograd.grad(gradient, x, grad_outputs=v)[0]


def newton_by_inverse(x, gradient, hessian):
    return x - tk.linalg.inv(hessian) @ gradient


def newton_as_a_column(x, gradient, hessian):
    return x - tk.linalg.solve(hessian, gradient.unsqueeze(1)).squeeze(1)


RIGHT = [
    ("second-derivative", second_by_hessian),
    ("second-derivative", second_by_horner),
    ("gradient-penalty", penalty_by_backward),
    ("gradient-penalty", penalty_by_formula),
    ("sigmoid-gradient", sigmoid_expanded),
    ("sigmoid-gradient", sigmoid_with_mul),
    ("hessian-rows", hessian_by_library),
    ("hessian-rows", hessian_by_hand),
    ("hessian-vector", product_by_library),
    ("hessian-vector", product_with_grad_outputs),
    ("newton-step", newton_by_inverse),
    ("newton-step", newton_as_a_column),
]
