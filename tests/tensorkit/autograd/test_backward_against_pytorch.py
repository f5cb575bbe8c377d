"""What a learner types about leaves, `backward()` and `grad()`, in PyTorch and in tensorkit."""

import pytest
from programs import assert_program_agrees, programs_in

PROGRAMS = """
    x
    b
    b[0, 1]
    tk.tensor(2., requires_grad=True)
    tk.zeros(0, requires_grad=True)
    tk.ones(2, 2, dtype=tk.float64, requires_grad=True)
    tk.rand(30, 30, requires_grad=True).shape
    x.double()
    x > 1
    x.long().requires_grad
    x.detach()
    x.is_leaf, b.is_leaf, b.detach().is_leaf, tk.zeros(2).is_leaf
    x.requires_grad, b.requires_grad, b.detach().requires_grad
    x.grad_fn, x.grad
    b.grad_fn.name(), b.grad_fn.next_functions[0][0].variable is x
    x.floor_divide(2)
    2 % x
    (x // 2).sum().backward()
    (2 % x).sum().backward()
    1 - x, 2 / x, 2 ** x, x ** 2, x ** x, x % 2, x % x, -x, abs(x)
    x.t(), x.T, x.mT, x.view(-1), x.flatten(), x.squeeze(), x.squeeze(0), x.reshape(3, 2)
    x.t().reshape(6), x.expand(2, 2, 3), x.unsqueeze(0), x.transpose(0, 1), x.permute(1, 0)
    x[0], x[0, 1], x[:, 1:], x[None], x[...], x[:], x[()]
    x.sum(), x.sum(0), x.mean(), x.mean(0), x.sum((0, 1)), x.sum(-1, True), x.sum(())
    x @ x.t(), x @ x[0], x[0] @ x[0], x[0] @ x.t()
    tk.exp(x), tk.log(x), tk.sqrt(x), tk.sin(x), tk.cos(x), tk.tanh(x), tk.sigmoid(x), tk.relu(x)
    x.clone(), x.contiguous(), x.t().contiguous()
    tk.where(x > 2, x, 0.)
    y = (x * tk.tensor([1., tk.nan, -1.])).relu(); y.backward(x / (x - 1)); x.grad
    (x ** tk.tensor([-2, 3, 0])).sum().backward(); x.grad
    (x ** tk.tensor(-1, dtype=tk.int8)).sum().backward(); x.grad
    x.grad = tk.ones(2, 3, dtype=tk.int64)
    x.grad = tk.ones(2, 3, dtype=tk.uint8)
    x.sum().backward(); x.grad
    x.sum().backward(); x.sum().backward(); x.grad
    (b * b).sum().backward(); x.grad
    b.backward(tk.ones(2, 3)); x.grad
    b.sum().backward(gradient=tk.ones((), dtype=tk.float64)); x.grad
    x.double().sum().backward(); x.grad
    tk.autograd.backward([x.sum(), b.sum()]); x.grad
    y = x[0, 0] * tk.tensor([1., 2.], dtype=tk.float64); y.sum().backward(); y, x.grad
    z = tk.tensor(3., dtype=tk.float64, requires_grad=True); (x * z).sum().backward(); z.grad
    b.grad
    tk.tensor([1.]).backward()
    b.backward()
    x.backward()
    x.sum().backward(tk.ones(2))
    x.sum().backward(tk.ones(1))
    x.sum().backward(inputs=[])
    x.sum().backward(inputs=[tk.zeros(1)])
    b.sum().backward(inputs=[b]); b.grad, x.grad
    e = x.exp(); e.sum().backward(); e.sum().backward()
    e = x * x; e.sum().backward(retain_graph=True); e.sum().backward(); x.grad
    e = x + 1; e.sum().backward(); e.sum().backward(); x.grad
    e = x[[0, 0]]; e.sum().backward(); e.sum().backward()
    e = x[x > 0]; e.sum().backward(); e.sum().backward()
    e = x.masked_select(x > 0); e.sum().backward(); e.sum().backward()
    e = x.index_select(0, tk.tensor([0])); e.sum().backward(); e.sum().backward()
    e = x.gather(1, tk.tensor([[0], [1]])); e.sum().backward(); e.sum().backward()
    e = x.take_along_dim(tk.tensor([[0], [1]]), 1); e.sum().backward(); e.sum().backward()
    e = x.scatter(1, tk.tensor([[0], [1]]), 1.); e.sum().backward(); e.sum().backward()
    e = tk.ones(2, 3).scatter_add(1, tk.tensor([[0]]), x); e.sum().backward(); e.sum().backward()
    e = x.scatter_add(1, tk.tensor([[0]]), tk.ones(1,1)); [e.sum().backward() for _ in 'ab']; x.grad
    e = tk.ones(2, 3).index_add(0, tk.tensor([0, 0]), x); e.sum().backward(); e.sum().backward()
    e = x.index_add(0, tk.tensor([0]), tk.ones(1, 3)); [e.sum().backward() for _ in 'ab']; x.grad
    e = b.clone(); e[[0]] = 1.; e.sum().backward(); e.sum().backward()
    e = b.clone(); e[b > 1] = 1.; e.sum().backward(); e.sum().backward()
    e = x[0, 1:]; e.sum().backward(); e.sum().backward(); x.grad
    e = x.t()[1:]; [e.sum().backward() for _ in 'ab']; x.grad
    e = tk.where(x > 1, x, 0.); [e.sum().backward() for _ in 'ab']; x.grad
    e = x.masked_fill(x > 1, 0.); [e.sum().backward() for _ in 'ab']; x.grad
    e = x.amax(1); e.sum().backward(); e.sum().backward()
    a = tk.tensor([0., 0., tk.nan, 1.], requires_grad=True); a.prod().backward(); a.grad
    a = tk.tensor([0., tk.inf, 0., 2.], requires_grad=True); a.prod().backward(); a.grad
    tk.autograd.grad(x.sum(), x)
    tk.autograd.grad(b.sum(), b)
    tk.autograd.grad(b.sum(), [b, x])
    tk.autograd.grad(x.sum(), [x, b])
    tk.autograd.grad(x.sum(), [x, b], allow_unused=True)
    tk.autograd.grad(x.sum(), [x, b], materialize_grads=True)
    tk.autograd.grad(x.sum(), tk.zeros(1))
    tk.autograd.grad(b, x)
    tk.autograd.grad(b, x, tk.ones(2, 3) * 3)
    tk.autograd.grad((x ** 3).sum(), x, create_graph=True)
    tk.autograd.grad(x.sum(), x, create_graph=True)[0].requires_grad
    (g,) = tk.autograd.grad((x ** 3).sum(), x, create_graph=True); g.sum().backward(); x.grad
    a = tk.zeros(1, requires_grad=True); tk.autograd.grad(a.tanh(), a, create_graph=True)
    (x ** 3).sum().backward(create_graph=True); x.grad.requires_grad
    tk.tensor([1]).requires_grad_()
    tk.tensor([1], requires_grad=True)
    tk.zeros(2, dtype=tk.int64, requires_grad=True)
    tk.arange(3, requires_grad=True)
    tk.arange(3., requires_grad=True)
    tk.full((2,), 1., requires_grad=True), tk.eye(2, requires_grad=True)
    tk.zeros_like(x), tk.ones_like(x, requires_grad=True), tk.empty_like(b).requires_grad
    x.requires_grad_(False)
    b.requires_grad_(False)
    b.requires_grad = False
    b.requires_grad = True; b
    x.grad = 1
    x.grad = tk.zeros(2)
    x.grad = tk.zeros(2, 3, dtype=tk.float64)
    x.grad = x
    x.grad = tk.ones(2, 3); x.sum().backward(); x.grad
    x.grad = tk.ones(2, 3); x.grad = None; x.grad
    c = tk.ones(2); c.grad = tk.ones(2); c.grad
    x.sum().backward(); del x.grad; x.grad
    x.numpy()
    b.numpy()
    b.tolist(), x.sum().item(), bool(x.sum()), float(x.sum()), int(x.sum())
    tk.autograd.grad(tk.autograd.grad((x - 3).relu().sum(), x, create_graph=True)[0].sum(), x)
    tk.autograd.grad((x * tk.tensor([-0., tk.nan, 1.])).relu().sum(), x, create_graph=True)[0] * 1
    x.requires_grad_('a')
    x.requires_grad_(1)
    x.requires_grad = 1
    x.requires_grad = 'a'
    x.requires_grad = None
    x.requires_grad_(requires_grad=False)
    x.grad = 3
    x.grad = tk.ones(3,2)
    x.grad = tk.ones(2,3, requires_grad=True); x.grad
    x.grad = [1.]
    b.grad = tk.ones(2,3); b.grad
    x.is_leaf; x.grad_fn
    x.backward(tk.ones(2,3), True); x.grad
    x.backward(gradient=[1])
    x.backward(3)
    b.sum().backward(1.)
    b.sum().backward(tk.tensor(1)); x.grad
    b.sum().backward(retain_graph=True, create_graph=False, inputs=x); x.grad
    b.sum().backward(inputs=[x, b]); x.grad, b.grad
    b.sum().backward(inputs=(x,)); x.grad
    b.sum().backward(inputs=3)
    b.sum().backward(inputs=[3])
    tk.autograd.backward([b, x.sum()], [tk.ones(2,3), None]); x.grad
    tk.autograd.backward([b, x.sum()], [tk.ones(2,3)])
    tk.autograd.backward([], [])
    tk.autograd.backward(b.sum(), grad_tensors=tk.tensor(2.)); x.grad
    tk.autograd.backward((b.sum(), b.sum())); x.grad
    tk.autograd.grad(b.sum(), [x, x])
    tk.autograd.grad([b.sum(), x.sum()], x)
    tk.autograd.grad(b.sum(), x, tk.tensor(3.))
    tk.autograd.grad([b], [x], [tk.ones(2,3)])
    tk.autograd.grad(b, x, grad_outputs=[None])
    tk.autograd.grad(b.sum(), 3)
    tk.autograd.grad(b.sum(), [])
    tk.autograd.grad([], x)
    tk.autograd.grad(b.sum(), x, retain_graph=False); b.sum().backward(); x.grad
    tk.autograd.grad(b.sum(), x, allow_unused=True, materialize_grads=True)
    tk.autograd.grad(3, x)
    d = b.detach(); d.requires_grad_(); d.is_leaf, d.requires_grad
    d = (b*b).detach(); d
    c = tk.tensor([1.]); c.is_leaf, c.requires_grad_(), c.is_leaf
    c = tk.tensor([1,2]); c.requires_grad = True
    c = tk.tensor([1,2]); c.requires_grad = False
    c = tk.tensor([True]).requires_grad_(); c
    c = x.long(); c.requires_grad_()
    x.half().sum().backward(); x.grad
    x.double().mean().backward(); x.grad, x.grad.dtype
    b.grad_fn.next_functions[0][0].variable.grad
    x.sum().grad_fn.next_functions, (x.sum()*2).grad_fn.next_functions[1]
    tk.tensor(x).requires_grad
    tk.as_tensor(x) is x
    tk.from_numpy(x.detach().numpy()).requires_grad
    x.tolist(), b.sum().item(), float(b.sum())
    bool(b.sum() > 0), int(b.sum()), len(b), [r.requires_grad for r in b]
    tk.zeros_like(b).requires_grad, tk.zeros_like(b, requires_grad=True).is_leaf
    (x == b).requires_grad, (x > b).grad_fn
    x.sum().backward(); g = x.grad; x.sum().backward(create_graph=True); g is x.grad, g, x.grad
    x.sum().backward(); x.requires_grad_(False); x.grad
    tk.autograd.grad(tk.zeros(1), tk.zeros(1))
    tk.zeros(1).backward(inputs=[tk.zeros(1)])
    r = x[0, :1].expand(3); r.sum().backward(); x.grad
    (0 ** x[0]).sum().backward(); x.grad
    y = x / 0; y.sum().backward(); x.grad
    (x - x).sqrt().sum().backward(); x.grad
    [row.sum().backward() for row in x.detach().requires_grad_().clone()]
    e = tk.zeros(0, requires_grad=True); y = tk.cat([b, e]); y.sum().backward(); y, e.grad, x.grad
    tk.cat([tk.zeros(0, requires_grad=True), tk.ones(1, 2)])
    tk.einsum("ij,jk->ik", x[:, :0], tk.zeros(0, 4)).sum().backward(); x.grad
    r = tk.einsum("ij,jk", x[:0], x.mT); r.sum().backward(); r.shape, r.requires_grad, x.grad
    tk.einsum("ij,j->i", tk.zeros(0, 2), tk.zeros(2)).requires_grad
    x.requires_grad_(False); b.sum().backward(); x.grad
    x.requires_grad_(False).requires_grad_(); b.sum().backward(); x.grad
    x.unique().grad_fn, x.unique(dim=0).grad_fn
    x.unique().sum().backward()
    x.unique(dim=1).sum().backward()
"""


@pytest.mark.parametrize("program", list(programs_in(PROGRAMS)))
def test_a_program_gives_what_it_gives_in_pytorch(program):
    assert_program_agrees(program)
