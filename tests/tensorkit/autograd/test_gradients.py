"""Every gradient: against finite differences to second order, and against PyTorch."""

import numpy as np
import pytest
from cases import BINARY, MATRIX, UNARY
from second_order import gradgradcheck
from tk_oracle import strides_that_count, torch

import tensorkit as tk

# Away from the kinks of abs and relu, the jumps of remainder, and from 0.
_VALUES = np.array([0.83, -0.59, 1.37, -1.21, 0.47, 2.05, -0.367, 1.741, 0.913, -1.63, 0.55, 1.18])

LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[:, ::2],
    "row": lambda x: x[1],
    "expanded": lambda x: x[:1].expand(3, 4),
    "zero dimensional": lambda x: x[1, 2],
    "empty": lambda x: x[:, :0],
    "three dimensions": lambda x: x.reshape(2, 3, 2),
}
MATRICES = ("contiguous", "transposed", "sliced")


def _leaf(module, layout, place=0):
    """A leaf in this layout; the second of a pair has other values, so that no two are equal."""
    values = _VALUES.reshape(3, 4) * (1 + 0.037 * place)
    return LAYOUTS[layout](module.tensor(values)).detach().requires_grad_()


def _leaves(module, layouts):
    return [_leaf(module, layout, place) for place, layout in enumerate(layouts)]


def _agree(actual, expected, what):
    assert tuple(actual.shape) == tuple(expected.shape), what
    assert repr(actual.dtype) == repr(expected.dtype), what
    np.testing.assert_allclose(
        actual.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-12, err_msg=what
    )


def _compare(run, *names, nodes=True):
    """Result, node, text, first and second derivatives are those of PyTorch."""
    found = []
    for module in (torch, tk):
        leaves = _leaves(module, names)
        result = run(module, *leaves)
        weights = module.ones_like(result) * 0.5
        first = module.autograd.grad(result, leaves, weights, create_graph=True)
        total = sum((g * g * x).sum() for g, x in zip(first, leaves, strict=True))
        second = module.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
        leaves = _leaves(module, names)
        again = run(module, *leaves)
        again.sum().backward()
        found.append((result, first, second, [leaf.grad for leaf in leaves]))
    (expected_result, *expected), (actual_result, *actual) = found
    _agree(actual_result, expected_result, "result")
    if nodes and len({*names}) == 1:  # operands in several orders: NumPy chooses
        assert strides_that_count(actual_result) == strides_that_count(expected_result)
    if nodes:
        assert _chain(actual_result.grad_fn) == _chain(expected_result.grad_fn)
    for what, *groups in zip(("first", "second", "grad"), actual, expected, strict=True):
        for got, wanted in zip(*groups, strict=True):
            _agree(got, wanted, what)
    for got, wanted in zip(actual[2], expected[2], strict=True):
        assert strides_that_count(got) == strides_that_count(wanted), "strides of .grad"


def _chain(node, depth=4):
    """The names of the nodes below, so far as they are seen from here."""
    if node is None:
        return None
    below = [] if depth == 0 else [_chain(each, depth - 1) for each, _ in node.next_functions]
    return [node.name().rsplit("::")[-1], *below]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", UNARY)
def test_a_gradient_is_pytorchs(name, layout):
    _compare(UNARY[name], layout)


# see known_differences
OTHER_NODES = ("einsum", "sort", "solve", "inv", "matrix folded", "vector folded")


@pytest.mark.parametrize("layout", MATRICES)
@pytest.mark.parametrize("name", MATRIX)
def test_a_gradient_of_a_matrix_is_pytorchs(name, layout):
    _compare(MATRIX[name], layout, nodes=not name.startswith(OTHER_NODES))


PAIRS = [
    ("contiguous", "contiguous"),
    ("contiguous", "zero dimensional"),
    ("zero dimensional", "contiguous"),
    ("contiguous", "row"),
    ("expanded", "contiguous"),
    ("transposed", "zero dimensional"),
    ("empty", "zero dimensional"),
]


@pytest.mark.parametrize("layouts", PAIRS)
@pytest.mark.parametrize("name", BINARY)
def test_a_gradient_of_two_tensors_is_pytorchs(name, layouts):
    _compare(BINARY[name], *layouts)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [name for name in UNARY if name != "double"])
def test_finite_differences_confirm_a_gradient(name, layout):
    x = _leaf(tk, layout)
    assert tk.autograd.gradcheck(lambda x: UNARY[name](tk, x), x)
    assert gradgradcheck(lambda x: UNARY[name](tk, x), x)


@pytest.mark.parametrize("layout", MATRICES)
@pytest.mark.parametrize("name", MATRIX)
def test_finite_differences_confirm_a_gradient_of_a_matrix(name, layout):
    x = _leaf(tk, layout)
    assert tk.autograd.gradcheck(lambda x: MATRIX[name](tk, x), x)
    assert gradgradcheck(lambda x: MATRIX[name](tk, x), x)


@pytest.mark.parametrize("layouts", PAIRS)
@pytest.mark.parametrize("name", BINARY)
def test_finite_differences_confirm_a_gradient_of_two_tensors(name, layouts):
    inputs = _leaves(tk, layouts)
    assert tk.autograd.gradcheck(lambda x, y: BINARY[name](tk, x, y), inputs)
    assert gradgradcheck(lambda x, y: BINARY[name](tk, x, y), inputs)


@pytest.mark.parametrize("operation", [tk.mul, tk.addmm])
def test_what_was_saved_is_looked_at_in_the_order_of_the_formulas(operation):
    """So an error names the same value in every process."""
    for rule in operation.definition.rules.values():
        asked = dict.fromkeys(name for needs in rule.needs for name in needs)
        assert [*rule.saved_names] == [*asked]
