"""What a learner types about hooks and `retain_grad()`, in PyTorch and in tensorkit."""

import pytest
from programs import assert_program_agrees, programs_in

PROGRAMS = """
    b.retain_grad(); b.sum().backward(); b.grad, x.grad
    b.retain_grad(); b.retains_grad, x.retains_grad
    tk.tensor([1.]).retain_grad()
    h = b.register_hook(lambda g: g * 2); b.sum().backward(); x.grad
    h = x.register_hook(lambda g: g * 2); b.sum().backward(); x.grad
    h = x.register_hook(lambda g: g * 2); h.remove(); b.sum().backward(); x.grad
    tk.zeros(2).register_hook(print)
    b.register_hook(lambda g: 1); b.sum().backward()
    b.retain_grad(); h = b.register_hook(lambda g: g * 2); b.sum().backward(); b.grad
    b.register_hook(lambda g: g.double()); b.sum().backward()
    b.register_hook(lambda g: g[0]); b.sum().backward()
    h = b.register_hook(lambda g: g * 2); b.add_(1); b.sum().backward(); x.grad
    b.retain_grad(); b.add_(1); (b * 3).sum().backward(); b.grad
    b.retain_grad(); b[0] = 5; (b * 3).sum().backward(); b.grad, b.retains_grad
    b.retain_grad(); b[0].mul_(5); b.retain_grad(); (b * b).sum().backward(); b.grad
    v = b[0]; v.retain_grad(); v.mul_(7); (b * 3).sum().backward(); v.grad, v.retains_grad
    v = b[0]; v.retain_grad(); v.mul_(7); (v * 3).sum().backward(); v.grad, v.retains_grad
    v = b[0]; v.retain_grad(); b.mul_(7); (v * 3).sum().backward(); v.grad, x.grad
    v = b[0]; v.retain_grad(); b.mul_(7); v.retain_grad(); (v * 3).sum().backward(); v.grad
    h = b.register_hook(lambda g: g * 2); tk.autograd.grad((b * 3).sum(), b)
    h = b.register_hook(lambda g: g * 2); tk.autograd.grad((b * 3).sum(), (x, b))
    h = b.register_hook(lambda g: g * 2); (b * 3).sum().backward(inputs=(x, b)); x.grad, b.grad
    b.retain_grad(); tk.autograd.grad((b * 3).sum(), (b, x)); b.grad
    with b.register_hook(lambda g: g * 2): b.sum().backward(retain_graph=True)\nx.grad
    x.retain_grad(); x.retains_grad
    b.retain_grad(); b.retain_grad(); b.sum().backward(); b.grad
    b.retain_grad(); c = b * 2; c.retain_grad(); c.sum().backward(); b.grad, c.grad, x.grad
    b.retain_grad(); (b.sum() + b.sum()).backward(); b.grad
    b.retain_grad(); b.sum().backward(retain_graph=True); b.sum().backward(); b.grad
    h = x.register_hook(lambda g: None); b.sum().backward(); x.grad
    h = x.register_hook(lambda g: g.zero_()); b.sum().backward(); x.grad
    r = []; h = x.register_hook(r.append); tk.autograd.grad(b.sum(), x); r
    r = []; h = b.register_hook(lambda g: g * 2); tk.autograd.grad(b.sum(), b)
    x.register_hook(lambda g: g * 2); x.grad = tk.ones(2,3); b.sum().backward(); x.grad
    h = x.register_hook(lambda g: 1/0); b.sum().backward()
    h = b.register_hook(lambda g: 1/0); b.sum().backward()
    h = b.register_hook(3); b.sum().backward()
    h = x.register_hook(lambda g: g * 2); x.requires_grad = False; b.sum().backward(); x.grad
"""


@pytest.mark.parametrize("program", list(programs_in(PROGRAMS)))
def test_a_program_gives_what_it_gives_in_pytorch(program):
    assert_program_agrees(program)
