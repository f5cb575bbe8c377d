"""What a learner types who writes in place: views, versions, `data`, `detach()`, as in PyTorch."""

import pytest
from programs import assert_program_agrees, programs_in
from tk_oracle import torch

import tensorkit as tk

PROGRAMS = """
    x.data
    i = tk.zeros(3, dtype=tk.int64); i.copy_(x[0]), i.requires_grad
    i = tk.zeros(3, dtype=tk.int64); i[:] = x[1]; i, i.grad_fn
    i = tk.zeros(3, dtype=tk.int64); i[0] = x[1, 2]; i[tk.tensor([1])] = x[1, 1]; i, i.is_leaf
    v = tk.ones(4).view(2, 2).requires_grad_(); v += 1
    v = tk.ones(4).view(2, 2).clone().requires_grad_(); v += 1
    v = tk.ones(4)[1:].detach().requires_grad_(); v.add_(1)
    x.add_(1)
    x += 1
    x[0] = 1.
    x[...] = 1.
    x[0].add_(1)
    x.exp_()
    x.fill_(0)
    x.zero_()
    x.copy_(tk.ones(2, 3))
    x.t().mul_(2)
    x.view(-1)[0] = 1.
    b.add_(1); b, b._version
    b *= x; b
    b.exp_(); b.sum().backward(); x.grad
    b.pow_(2); b.sum().backward(); x.grad
    b.mul_(b); b.sum().backward()
    b.fill_(2); b.sum().backward(); b, x.grad
    b.zero_(); b.sum().backward(); b, x.grad
    b.copy_(x); b, b.grad_fn.next_functions
    b.copy_(x.double() * 3); b.sum().backward(); x.grad
    b[0] = 1.; b, b.grad_fn.next_functions
    b[0] = x[1]; b, b.grad_fn.next_functions
    b[0] = x[1]; (b * b).sum().backward(); x.grad
    b[:] = 1.; b
    b[...] = 1.; b
    b[:, 1] = x[:, 0]; b.sum().backward(); x.grad
    b[0].add_(1); b, b.grad_fn.next_functions
    v = b[0]; v.add_(1); v, v.grad_fn.next_functions, b, b.grad_fn.next_functions
    v = b[0]; v.mul_(x[1]); (b * 2).sum().backward(); x.grad
    v = b[0]; b.mul_(3); v, v.grad_fn.next_functions
    v = b[0]; b.mul_(3); v.sum().backward(); x.grad
    v = b.t(); w = b[0]; w.mul_(2); (v * v).sum().backward(); x.grad
    v = b[0][1:]; v.mul_(5); b.sum().backward(); x.grad
    c = tk.zeros(3); c[1] = x[0, 0]; c, c.grad_fn.next_functions
    c = tk.zeros(3); v = c[1]; c.mul_(x[0]); v
    c = tk.zeros(2, 3); v = c[0]; v.copy_(x[0]); c.sum().backward(); c, x.grad
    c = tk.zeros(2); c.add_(x[0, :2]); c, c.is_leaf
    c = tk.zeros(3).expand(2, 3); c.add_(x)
    e = b.exp(); e.add_(1); e.sum().backward()
    e = b * b; b.add_(1); e.sum().backward()
    e = b * 3; b.add_(1); e.sum().backward(); x.grad
    e = x * b; b.detach().add_(1); e.sum().backward()
    e = x * b; b.data.add_(1); e.sum().backward(); x.grad
    e = b * b; b[0].zero_(); e.sum().backward()
    y = b.detach(); y.add_(1); b._version, y._version
    y = b.data; y.add_(1); b._version, b
    x.data = tk.zeros(2, dtype=tk.float64); x
    x.data = tk.zeros(2, dtype=tk.int64)
    b.data = tk.zeros(2, dtype=tk.int64)
    b._is_view(), b[0]._is_view(), b.detach()._is_view()
    x.data = 3
    x.data = tk.ones(5); x, x.shape
    x.data = tk.ones(2,3)*2; x, x._version
    x.add_; b.data = tk.zeros(2,3); b.sum().backward(); x.grad
    b.data.fill_(0); b, b._version
    x.data.fill_(0); x, x._version
    y = x.data; y.requires_grad, y.is_leaf
    v = b[0]; v.data = tk.zeros(3); v, b
    d = b.detach(); d.zero_(); b
    d = b.detach(); d.fill_(1.); b.sum().backward(); x.grad
    c = b * b; d = b.detach(); d += 1; c.sum().backward()
    x._version, b._version, b.add_(1)._version, b[0]._version, b.detach()._version
    v = b[0]; v.mul_(2); b._version, v._version
    b.add_(tk.ones(5))
    try: b.add_(tk.ones(5))\\nexcept RuntimeError: pass\\nb, b._version
    try: x.add_(1)\\nexcept RuntimeError: pass\\nx, x._version
    try: b.mul_(tk.ones(2,3).double().long().bool())\\nexcept Exception: pass\\nb, b._version
    c = tk.ones(3).long()\\ntry: c.add_(1.5)\\nexcept RuntimeError: pass\\nc, c._version
    c = tk.ones(1).expand(3)\\ntry: c.add_(1.5)\\nexcept RuntimeError: pass\\nc, c._version
    c = tk.zeros(4)\\ntry: c[5] = 1\\nexcept IndexError: pass\\nc, c._version
    c = tk.zeros(4)\\ntry: c[:2] = tk.ones(3)\\nexcept RuntimeError: pass\\nc, c._version
    c = tk.zeros(4)\\ntry: c.copy_(tk.ones(3))\\nexcept RuntimeError: pass\\nc, c._version
    c = tk.zeros(4)\\ntry: c.fill_(tk.ones(3))\\nexcept RuntimeError: pass\\nc, c._version
    c = tk.zeros(4)\\ntry: c[c > 1] = tk.ones(3)\\nexcept Exception: pass\\nc, c._version
    b.data.grad
    x.sum().backward(); x.grad.zero_(); x.sum().backward(); x.grad
    x.copy_(x)
    b.copy_(b); b._version
    v = x.sum(0) ** x[0]; e = v * v; v.data; v.fill_(v.sum()); e.sum().backward()
    c = tk.zeros(3); c.expand(2, 3)[1:] = 5.; c
    b.sum(-1, True)[0] = b.sum(-1, True)[0] * 2
    e = b.sum(-1, True); e[0] = e[0] * 2; e.grad_fn.next_functions
    tk.tensor([1, 2]).exp_()
    x._base, b[0]._base is b, b[0][1]._base is b, b.exp()._base, x.detach()._base
    x.round(), (b * 1).round_()
"""


@pytest.mark.parametrize("program", list(programs_in(PROGRAMS)))
def test_a_program_gives_what_it_gives_in_pytorch(program):
    assert_program_agrees(program)


@pytest.mark.parametrize("operation", ["mul_", "div_", "pow_", "add_"])
def test_a_view_that_a_wider_tensor_changed_has_pytorchs_second_derivatives(operation):
    found = []
    for m in (torch, tk):
        x = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
        w = m.tensor([2.0, 3.0], dtype=m.float64, requires_grad=True)
        y = x.clone()
        getattr(y[:2], operation)(w)
        first = m.autograd.grad((y * y).sum(), [x, w], create_graph=True)
        (first[0].sum() + first[1].sum()).backward()
        found.append([(str(g.dtype), g.tolist()) for g in (*first, x.grad, w.grad)])
    for (own_dtype, own), (dtype, expected) in zip(found[1], found[0], strict=True):
        assert own_dtype == dtype
        assert own == pytest.approx(expected, rel=1e-5, abs=1e-7)
