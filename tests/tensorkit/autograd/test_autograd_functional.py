"""Jacobians, Hessians and their products, in PyTorch and in tensorkit alike."""

import pytest
from tk_oracle import torch

import tensorkit

PROGRAMS = """
    f.jacobian(lambda x: x * x, x)
    f.jacobian(lambda x: x.sum(), x)
    f.jacobian(lambda x: (x.sum(), x * 2), x)
    f.jacobian(lambda x, y: x * y, (x, y))
    f.jacobian(lambda x, y: (x * y, x.sum()), (x, y))
    f.jacobian(lambda x: x @ x.t(), m.ones(2, 2) * y[:2])
    f.jacobian(lambda x: m.ones(2), x)
    f.jacobian(lambda x, y: x * 2, (x, y))
    f.jacobian(lambda x: x ** 3, w, create_graph=True).sum().backward(), w.grad
    f.jacobian(lambda x: x * 2, 3)
    f.jacobian(lambda x: x * 2, [x])
    f.jacobian(lambda x: x * 2, (x, 3))
    f.jacobian(lambda x: 3, x)
    f.hessian(lambda x: (x ** 3).sum(), x)
    f.hessian(lambda x, y: (x * x * y).sum(), (x, y))
    f.hessian(lambda x: x.sum(), x)
    f.hessian(lambda x: x * 2, x)
    f.hessian(lambda x: (x.sum(), 1), x)
    f.hessian(lambda x: (x.sum(), x.sum()), x)
    f.hessian(lambda x: (x ** 4).sum(), w, create_graph=True).sum().backward(), w.grad
    f.hessian(lambda x: x ** 3, s)
    f.hvp(lambda x: (x ** 3).sum(), x, y)
    f.hvp(lambda x, y: (x * x * y).sum(), (x, y), (y, x))
    f.hvp(lambda x: x * 2, x, y)
    f.hvp(lambda x: x.sum(), x, y)
    f.hvp(lambda x: (x ** 3).sum(), x)
    f.hvp(lambda x: x ** 3, s)
    f.hvp(lambda x: (x ** 3).sum(), x, m.ones(2))
    f.hvp(lambda x: (x ** 4).sum(), w, y, create_graph=True)[1].sum().backward(), w.grad
    no_grad(lambda: f.jacobian(lambda x: x * x, x))
    no_grad(lambda: f.hessian(lambda x: (x ** 3).sum(), x))
"""


def _run(m, program):
    values = [1.0, 2.0, 3.0]
    scope = {
        "m": m,
        "f": m.autograd.functional,
        "x": m.tensor(values),
        "y": m.tensor([0.5, -1.0, 2.0]),
        "w": m.tensor(values, requires_grad=True),
        "s": m.tensor(2.0),
        "no_grad": lambda function: m.no_grad()(function)(),
    }
    try:
        return "value", repr(eval(program, scope))
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        text = str(error).split("\n")[0].replace("torch.Tensor", "Tensor")
        return "error", kinds, text


@pytest.mark.parametrize("program", PROGRAMS.strip().split("\n"))
def test_derivatives_of_functions_are_those_of_pytorch(program):
    expected, actual = _run(torch, program.strip()), _run(tensorkit, program.strip())
    assert actual[0] == expected[0], (expected, actual)
    if expected[0] == "error":
        assert expected[1][0] in actual[1]
    else:
        assert actual[-1] == expected[-1]
