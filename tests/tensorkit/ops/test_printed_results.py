"""What operations print, or how they refuse, at their edges, in PyTorch and in tensorkit."""

import pytest
from programs import assert_program_agrees, programs_in

PROGRAMS = """
    tk.tensor([1, 2]).mean()
    tk.tensor([1, 2]).sum(), tk.tensor([True, True]).sum(), tk.tensor([1, 2]).sum(dtype=tk.float64)
    x.sum(2)
    x.sum(1.5)
    tk.tensor(1.).sum(0), tk.tensor(1.).sum(-1), tk.zeros(0).sum(), tk.zeros(0).mean()
    tk.zeros(2, 0).sum(1), tk.zeros(2, 0).mean(0), tk.tensor([1.]).half().sum()
    x.mm(x[0])
    x[0].mm(x)
    x.mv(x)
    x.mv(x[0, :2])
    x.dot(x)
    x[0].dot(x[0, :2])
    tk.mm(x, 3)
    tk.zeros(2, 2, 3) @ tk.zeros(2, 2, 3)
    tk.zeros(3, 2, 3) @ tk.zeros(2, 3, 3)
    tk.zeros(2, 2, 3) @ tk.zeros(2)
    tk.ones(2, dtype=tk.int64) @ tk.ones(2)
    tk.ones(2, 2, dtype=tk.bool) @ tk.ones(2, 2, dtype=tk.bool)
    tk.ones(2, 2, dtype=tk.int64) @ tk.ones(2, 2, dtype=tk.int64)
    (tk.ones(2, 3, 4) @ tk.ones(4)).shape, (tk.ones(3) @ tk.ones(2, 3, 4)).shape
    (tk.ones(5, 1, 2, 3) @ tk.ones(4, 3, 2)).shape, (tk.ones(2, 3) @ tk.ones(4, 3, 2)).stride()
    x.view(4)
    x.t().view(6)
    x.view(-1, -1)
    x.view(4, -1)
    x.view(2.5)
    x.view()
    x.view((3, 2)).stride(), x.view([6]).shape, x.t().view(3, 2, 1).stride()
    tk.arange(24).reshape(2, 3, 4).transpose(0, 1).view(3, 2, 2, 2).stride()
    tk.zeros(2, 0).view(-1, 0)
    tk.zeros(2, 0).view(0, 5).stride(), tk.zeros(()).view(1, 1).stride()
    x.transpose(0, 5)
    x.permute(0)
    x.permute(0, 0)
    x.permute(1, 5)
    x.expand(3, 3)
    x.expand(-1, 4)
    x.expand(3)
    x.expand(2, -1, -1).stride()
    x.flatten(1, 0)
    tk.tensor(1.).flatten().shape, x.flatten(0, 0) is x
    x.squeeze(5)
    x.squeeze((0, 0))
    tk.zeros(2, 2, 2).t()
    tk.zeros(2).mT
    tk.zeros(2).t().shape, tk.tensor(1.).t().shape, tk.tensor(1.).transpose(0, -1).shape
    tk.sin(tk.tensor([1, 2])), tk.exp(tk.tensor([True])), tk.sqrt(tk.tensor([-1., 4.]))
    tk.relu(tk.tensor([1, -2])), tk.relu(tk.tensor([tk.nan, -tk.inf, tk.inf]))
    tk.relu(tk.tensor([True]))
    tk.exp(3)
    tk.where(tk.tensor([1, 2]), 1, 2)
    tk.where(tk.tensor([True, False]), 1, 2.5), tk.where(tk.tensor([True]), tk.tensor([1]), 2.5)
    tk.where(tk.tensor([True, False]), tk.zeros(3), 0.)
    tk.where(3, x, x)
    tk.zeros(2, dtype=tk.uint8).masked_fill(tk.tensor([True, False]), tk.tensor(-3))
    tk.zeros(2, dtype=tk.uint8).masked_fill(tk.tensor([True, False]), tk.tensor(300))
    tk.zeros(2, dtype=tk.float16).masked_fill_(tk.tensor([True, False]), tk.tensor(1e9))
    tk.tensor([1e30, 2e30, -4e30]).std(), tk.tensor([[1e30, 3e30]]).std(1), tk.zeros(3).std()
    tk.tensor([1e-30, 2e-30]).std(), tk.tensor([1e30, 2.]).norm(), tk.tensor([tk.inf, 2.]).std()
    tk.unique(tk.tensor(3)), tk.unique(tk.zeros(0, 3), dim=0)
    tk.detach(x), tk.movedim(x, 0, 1).shape
    tk.tensor([-0., 0., -1.]).clamp(min=0.), tk.tensor([-0., 0., 1.]).clamp(max=-0.)
"""


@pytest.mark.parametrize("program", list(programs_in(PROGRAMS)))
def test_a_program_gives_what_it_gives_in_pytorch(program):
    assert_program_agrees(program)
