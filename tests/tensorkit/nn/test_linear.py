"""The graph of a linear layer, and what it refuses."""

import pytest
from second_order import gradgradcheck

import tensorkit as tk
from tensorkit.nn.functional import linear


@pytest.fixture
def layer():
    """x (3, 4) and weight (2, 4), bias (2,)."""
    tk.manual_seed(0)
    x = tk.randn(3, 4, requires_grad=True)
    weight, bias = tk.randn(2, 4, requires_grad=True), tk.randn(2, requires_grad=True)
    return x, weight, bias


def test_second_derivatives_are_those_of_the_parts(layer):
    assert gradgradcheck(linear, tuple(each.detach().double().requires_grad_() for each in layer))


def test_the_nodes_are_those_of_the_parts(layer):
    node = linear(*layer).grad_fn
    bias, x, turned = (edge for edge, _ in node.next_functions)
    assert (bias.variable, x.variable) == (layer[2], layer[0])
    assert repr(turned) == "<TBackward0>"
    assert turned.next_functions[0][0].variable is layer[1]


@pytest.mark.parametrize(("place", "made_by"), [(0, ""), (1, ", which is output 0 of AsStrided,")])
def test_what_was_saved_may_not_change(layer, place, made_by):
    result = linear(*layer)
    with tk.no_grad():
        layer[place].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as refused:
        result.sum().backward()
    sizes = ("3, 4", "4, 2")[place]
    assert f"[torch.FloatTensor [{sizes}]]{made_by} is at version 1" in str(refused.value)


def test_a_weight_may_change_where_only_it_is_trained(layer):
    x, weight, bias = layer
    result = linear(x.detach(), weight, bias)
    with tk.no_grad():
        weight.zero_()
    result.sum().backward()
    assert tk.allclose(weight.grad, x.detach().sum(0).expand(2, 4))


def test_a_weight_that_looks_at_other_memory_was_saved_as_it_was(layer):
    x, weight, _ = layer
    before = weight.detach()
    result = linear(*layer)
    weight.data = tk.zeros(2, 4)
    result.sum().backward()
    assert tk.allclose(x.grad, before.sum(0).expand(3, 4))


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((None,), r"t\(\): argument 'input' \(position 1\) must be Tensor, not NoneType"),
        (([1.0], 1), r"t\(\): argument 'input' \(position 1\) must be Tensor, not list"),
        ((tk.ones(2, 4), 1), r"addmm\(\): argument 'input' \(position 1\) must be Tensor, not int"),
    ],
)
def test_what_is_no_tensor_is_refused(layer, args, sentence):
    with pytest.raises(TypeError, match=sentence):
        linear(layer[0], *args)


def test_a_layer_of_other_features_is_told_which_it_should_have():
    swapped = tk.nn.Linear(3, 2)  # for a matrix product x @ y.t() would help
    with pytest.raises(RuntimeError, match=r"\(4x2 and 3x2\)[^$]*Try: tk.nn.Linear\(2, 2\)"):
        swapped(tk.ones(4, 2))
