"""Random programs about gradients, run in PyTorch and in tensorkit side by side.

After every line all tensors are compared: values, gradients, strides, versions, the names of the
nodes behind them; and where one library raises, the other must raise the same sentence.
"""

import random
import warnings

import numpy as np
import pytest
from other_words import same_words
from tk_oracle import torch

import tensorkit

RESULTS = """
    {a} * 2 | {a} + 1 | -{a} | {a}.exp() | {a}.tanh() | {a}.sin() | {a} ** 2 | {a}.relu() | 3 - {a}
    {a}.clone() | {a}.detach() | {a}.abs() | {a} / 4 | {a}.sum() | {a}.mean() | 2 / {a} | 1.5 ** {a}
    {a}.sum(0, keepdim=True) | {a}.sum(-1, keepdim=True) | {a}.sqrt() | {a}.softmax(-1)
    {a}.max(0, keepdim=True).values | {a}.cumsum(0) | {a}.double() | m.where({a} > 0.5, {a}, 0.)
    {a}.std() | {a}.logsumexp(0) | {a}.data | {a}.masked_fill({a} > 1, 0.) | {a}.flip(0)
    {a} * {b} | {a} + {b} | {a} - {b} | {a}.mm({b}) | m.where({a} > {b}, {a}, {b})
    m.stack([{a}, {b}]) | m.cat([{a}, {b}]) | {a}.sub({b}, alpha=2) | {a}.maximum({b})
"""
VIEWS = """
    {a}[0] | {a}[-1] | {a}[:, 0] | {a}[1:] | {a}[::2] | {a}.t() | {a}.view(-1) | {a}.reshape(-1)
    {a}.unsqueeze(0) | {a}.squeeze() | {a}.transpose(0, -1) | {a}[..., None] | {a}[None] | {a}[:]
    {a}.expand(2, *{a}.shape) | {a}.flatten() | {a}.narrow(0, 0, 1) | {a}.diagonal()
    {a}[[0, 0]] | {a}[{a} > 0.5]
"""
WRITES = """
    {a}.add_(1) | {a}.mul_(2) | {a}.mul_({b}) | {a}.add_({b}, alpha=2) | {a}.sub_({b}) | {a}.div_(3)
    {a}.exp_() | {a}.tanh_() | {a}.zero_() | {a}.fill_(2.) | {a}.copy_({b}) | {a}[0] = 1.
    {a}[0] = {b}[0] * 2 | {a}[:, 0] = 2. | {a}[1:] = {b}[:1] * 2 | {a}[...] = 0.5 | {a} += {b}
    {a} *= {b} | {a}.neg_() | {a}.pow_(2) | {a}[{a} > 1] = 0. | {a}.relu_() | {a}.fill_({b}.sum())
    {a}[0].mul_(2) | {a}.t().add_(1) | {a}.view(-1)[0] = 3. | {a}.detach().add_(1)
    {a}.data.mul_(2) | with m.no_grad(): {a}.mul_(2) | with m.no_grad(): {a}[0] = 1.
"""
GRADIENTS = """
    {a}.retain_grad() | {a}.register_hook(lambda g: g * 2) | {a}.sum().backward()
    {a}.register_hook(lambda g: log.append(g.sum().item())) | {a}.sum().backward(retain_graph=True)
    ({a} * {a}).sum().backward() | {a}.backward({a}.detach() * 2) | {a}.grad = None
    m.autograd.backward([{a}.sum(), {b}.sum()]) | {a}.backward(m.ones_like({a}), inputs=[{b}])
    g = m.autograd.grad({a}.sum(), {b}, allow_unused=True)[0]
    g = m.autograd.grad({a}.sum(), [x, y], create_graph=True, allow_unused=True)[0]
    (g * g).sum().backward()
"""


def _lines(table):
    return [part.strip() for line in table.strip().split("\n") for part in line.split(" | ")]


RESULTS, VIEWS, WRITES, GRADIENTS = map(_lines, (RESULTS, VIEWS, WRITES, GRADIENTS))


def _program(seed):
    chance = random.Random(seed)
    names, lines = ["x", "y", "c"], []
    for _ in range(chance.choice([5, 9, 14])):
        a, b = chance.choice([*names[-5:], "x", "y"]), chance.choice(names)
        table = chance.choice([RESULTS, RESULTS, VIEWS, WRITES, GRADIENTS])
        line = chance.choice(table).format(a=a, b=b)
        if table in (RESULTS, VIEWS):
            names.append(f"v{len(names)}")
            line = f"{names[-1]} = {line}"
        lines.append(line)
    lines.append(f"({names[-1]} * {names[-1]}).sum().backward()")
    return lines


def _scope(m):
    def values(start):
        return [[(i * 7 + j * 3 + start) % 11 / 5 + 0.1 for j in range(3)] for i in range(3)]

    x, y = (m.tensor(values(start), requires_grad=True) for start in (1, 4))
    return {"m": m, "x": x, "y": y, "c": m.tensor(values(2)), "g": m.ones(3), "log": []}


def _error(line, scope):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(line, scope)
        except Exception as error:
            return str(error).split("\n")[0].strip()
    return None


def _nodes(node, depth=3):
    if node is None or not depth:
        return None
    return node.name(), [(_nodes(each, depth - 1), number) for each, number in node.next_functions]


def _same_numbers(expected, actual):
    if expected is None or actual is None:
        return expected is actual
    expected, actual = expected.detach().numpy(), actual.detach().numpy()
    if expected.dtype != actual.dtype:
        return False
    return np.allclose(expected, actual, 2e-3, 1e-4, equal_nan=True)


def _compare(name, expected, actual):
    assert tuple(actual.shape) == tuple(expected.shape), name
    assert _same_numbers(expected, actual), (name, expected, actual)
    assert actual.requires_grad == expected.requires_grad, name
    assert actual.is_leaf == expected.is_leaf, name
    if expected.is_leaf or expected.retains_grad:
        with warnings.catch_warnings():  # of gradients that are None
            warnings.simplefilter("ignore")
            assert _same_numbers(expected.grad, actual.grad), (name, expected.grad, actual.grad)
    if name != "g":  # gradients differ in layout, and second derivatives in nodes: both known
        assert actual.stride() == expected.stride(), name
        assert actual._version == expected._version, name
        assert _nodes(actual.grad_fn) == _nodes(expected.grad_fn), name


@pytest.mark.parametrize("seed", range(120))
def test_a_random_program_does_what_it_does_in_pytorch(seed):
    expected, actual = _scope(torch), _scope(tensorkit)
    for line in _program(seed):
        error = _error(line, expected)
        assert same_words(_error(line, actual), error), line
        if "backward" in line and error is not None:
            return  # PyTorch has added to some leaves before it failed, tensorkit to none
        for name, tensor in expected.items():
            if isinstance(tensor, torch.Tensor):
                _compare(name, tensor, actual[name])
        np.testing.assert_allclose(actual["log"], expected["log"], 1e-3, 1e-4)
