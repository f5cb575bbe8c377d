"""What a learner types about `no_grad`, `inference_mode` and their like, as in PyTorch."""

import pytest
from programs import assert_program_agrees, programs_in

PROGRAMS = """
    with tk.no_grad(): y = x * 2
    with tk.no_grad(): x.add_(1); (x, x._version)
    with tk.no_grad(): x[0] = 0.; x
    with tk.no_grad(): x -= 1; x
    with tk.no_grad(): y = tk.ones(2, requires_grad=True); y
    with tk.no_grad(): v = x[0];\\nv.add_(1)
    with tk.no_grad(): v = b[0];\\nv.add_(1)
    c = tk.zeros(3)\\nwith tk.no_grad(): v = c[:2]\\nv.mul_(x[0, 0])
    with tk.no_grad():\\n with tk.enable_grad(): y = x * 2\\ny
    with tk.set_grad_enabled(False): y = x * 2\\ny, tk.is_grad_enabled()
    with tk.inference_mode(): y = x * 2\\ny, y.is_inference(), y.requires_grad
    with tk.inference_mode(): y = tk.ones(2, 3)\\nx * y
    with tk.inference_mode(): y = tk.ones(2, 3)\\nx + y
    with tk.inference_mode(): y = tk.ones(2, 3)\\ny.add_(1)
    with tk.inference_mode(): y = tk.ones(2, 3)\\nwith tk.no_grad(): y.add_(1.0)
    with tk.inference_mode(): y = tk.ones(2, 3)\\ny.requires_grad_()
    with tk.inference_mode(): y = tk.ones(2, 3)\\ny._version
    with tk.inference_mode(): y = tk.ones(2, 3); y.add_(1)\\ny.clone().is_inference()
    with tk.inference_mode(): v = x[0]\\nv.is_inference()
    with tk.inference_mode(False): y = x * 2\\ny
    tk.is_grad_enabled(), tk.is_inference_mode_enabled()
    tk.no_grad()(lambda: x * 2)().requires_grad
    tk.enable_grad()(lambda: x * 2)().requires_grad
    tk.inference_mode()(lambda: x * 2)().is_inference()
    tk.set_grad_enabled(False)(lambda: x * 2)().requires_grad, tk.is_grad_enabled()
    tk.no_grad(lambda: x * 2)().requires_grad
    tk.inference_mode(lambda: x * 2)().requires_grad
    tk.set_grad_enabled(3)
    tk.set_grad_enabled('a')
    with tk.inference_mode(): y = x * 2\\ny.requires_grad_()
    with tk.inference_mode(): y = x * 2\\ny.requires_grad = True
    with tk.inference_mode(): y = x * 2\\ny.requires_grad_(False)
    with tk.inference_mode(): y = tk.ones(2, requires_grad=True)\\n(y * 2).sum().backward()
    with tk.inference_mode(): y = x * 2\\n(y * x)
    with tk.inference_mode(): y = x * 2\\n(y + x).sum().backward(); x.grad
    with tk.inference_mode(): y = x * 2\\ny[0]
    with tk.inference_mode(): y = x * 2\\ny[0].is_inference()
    with tk.inference_mode(): y = x * 2\\ny.view(-1).add_(1)
    with tk.inference_mode(): y = x * 2\\ny.detach().is_inference()
    with tk.inference_mode(): y = x * 2\\ny.clone().is_inference()
    with tk.inference_mode(): y = x * 2\\n(y * 2).is_inference()
    with tk.inference_mode(): y = x * 2\\nx.grad = y; x.grad.is_inference()
    with tk.inference_mode(): b.add_(1)\\nb._version
    with tk.inference_mode(): b.add_(1)\\nb.sum().backward(); x.grad
    with tk.inference_mode(): x.add_(1)\\nx
    with tk.inference_mode(): v = b[0]; v.add_(1)\\nb
    with tk.inference_mode(): y = tk.ones(2); y.add_(1); y._version
    with tk.inference_mode(): y = tk.ones(2)\\ny.copy_(tk.zeros(2))
    with tk.inference_mode(): y = tk.ones(2,3)\\nz = tk.zeros(2,3); z.copy_(y); z.is_inference()
    with tk.inference_mode(): y = tk.ones(2,3)\\nb.copy_(y); b.sum().backward(); x.grad
    with tk.inference_mode(): y = tk.ones(2,3)\\nb.mul_(y)
    with tk.inference_mode(): (x * 2).sum().backward()
    with tk.no_grad(): (x * 2).sum().backward()
    with tk.no_grad(): b.sum().backward()
    with tk.no_grad(): y = b.sum()\\nb.sum().backward(); x.grad
    with tk.no_grad(): v = x.view(-1)\\nv.is_leaf, v._is_view()
    with tk.no_grad(): x[0] = 5.\\nx, x._version
    with tk.no_grad(): x.data.add_(1)\\nx
    with tk.no_grad(): b.add_(1)\\nb.grad_fn.name(), b._version
    with tk.no_grad(): b.zero_()\\nb.sum().backward(); x.grad
    with tk.no_grad(): v = b[0]; v.zero_()\\n(b*b).sum().backward(); x.grad
    with tk.no_grad(): y = x.requires_grad_()\\ny.requires_grad
    with tk.no_grad(): y = tk.nn.Parameter(tk.ones(2))\\ny.requires_grad
    with tk.no_grad(): y = x.clone().requires_grad_()\\n(y*2).sum().backward(); y.grad
    with tk.no_grad(): y = x.detach().requires_grad_(); z = y * 2\\nz.requires_grad
    x.t()._version; x.is_inference(), b.is_inference()
"""


@pytest.mark.parametrize("program", list(programs_in(PROGRAMS)))
def test_a_program_gives_what_it_gives_in_pytorch(program):
    assert_program_agrees(program)
