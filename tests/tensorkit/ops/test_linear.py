"""The node of a layer stands for two, until somebody looks: nobody may tell the difference."""

import pytest

import tensorkit as tk
from tensorkit.nn.functional import linear


@pytest.fixture
def layer():
    """x (3, 4) and weight (2, 4), bias (2,), after a first call: from then on the call is short."""
    tk.manual_seed(0)
    x = tk.randn(3, 4, requires_grad=True)
    weight, bias = tk.randn(2, 4, requires_grad=True), tk.randn(2, requires_grad=True)
    linear(x, weight, bias)
    return x, weight, bias


def in_parts(x, weight, bias):
    """The same with every node."""
    return tk.addmm(bias, x, weight.t())


def gradients(function, layer):
    """Of a loss of its result."""
    return tk.autograd.grad((function(*layer) ** 2).sum(), layer)


def same(found, wanted):
    return all(tk.allclose(one, other) for one, other in zip(found, wanted, strict=True))


def test_backward_gives_the_gradients_of_the_parts(layer):
    (linear(*layer) ** 2).sum().backward()
    assert same([each.grad for each in layer], gradients(in_parts, layer))


def test_grad_gives_the_gradients_of_the_parts(layer):
    assert same(gradients(linear, layer), gradients(in_parts, layer))


@pytest.mark.parametrize("places", [[0], [1], [2], [0, 2], [1, 2]], ids=str)
@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_of_some_goes_past_what_leads_nowhere(layer, places, create_graph):
    # two layers: what is behind the first is of no use where only the second is asked for
    wanted = [layer[place] for place in places]
    found = []
    for function in (linear, in_parts):
        first = function(*layer)
        loss = (
            function(first, tk.ones(3, 2, requires_grad=True), layer[2].sum() * tk.ones(3))
        ).sum()
        found.append(tk.autograd.grad(loss, [*wanted, first], create_graph=create_graph))
    assert same(*found)


def test_hooks_of_what_leads_nowhere_are_not_called(layer):
    first, weight = linear(*layer), tk.ones(2, 2, requires_grad=True)
    first.retain_grad()
    tk.autograd.grad(linear(first, weight, layer[2].detach()).sum(), weight)
    assert first.grad is None


def test_a_node_that_a_hook_looks_at_still_passes_its_gradient(layer):
    x, weight, bias = layer
    result = linear(x * 1, weight, bias)
    result.register_hook(lambda g: result.grad_fn.next_functions and None)
    (found,) = tk.autograd.grad(result.sum(), weight)
    assert tk.allclose(found, x.sum(0).expand(2, 4))


def test_second_derivatives_are_those_of_the_parts(layer):
    assert tk.autograd.gradgradcheck(
        linear, tuple(each.detach().double().requires_grad_() for each in layer)
    )


def test_the_nodes_are_those_of_the_parts(layer):
    node = linear(*layer).grad_fn
    bias, x, turned = (edge for edge, _ in node.next_functions)
    assert (bias.variable, x.variable) == (layer[2], layer[0])
    assert repr(turned) == "<TBackward0>"
    assert turned.next_functions[0][0].variable is layer[1]


def test_the_node_of_t_is_older_than_its_own(layer):
    loss = linear(*layer)
    node = loss.grad_fn
    assert node.next_functions[2][0].order < node.order


def test_a_retained_gradient_arrives(layer):
    result = linear(*layer)
    result.retain_grad()
    result.sum().backward()
    assert tk.equal(result.grad, tk.ones(3, 2))
    assert layer[1].grad.shape == (2, 4)


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


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((None,), "argument 'weight' \\(position 2\\) must be Tensor, not NoneType"),
        ((None, 1), "argument 'weight' \\(position 2\\) must be Tensor, not NoneType"),
        (([1.0], 1), "argument 'weight' \\(position 2\\) must be Tensor, not list"),
        ((tk.ones(2, 4), 1), "argument 'bias' \\(position 3\\) must be Tensor, not int"),
    ],
)
def test_what_is_no_tensor_is_refused(layer, args, sentence):
    with pytest.raises(TypeError, match=f"linear\\(\\): {sentence}"):
        linear(layer[0], *args)


def test_a_second_backward_is_refused(layer):
    result = linear(*layer).sum()
    result.backward(retain_graph=True)
    result.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        result.backward()


def test_without_grad_nothing_is_recorded(layer):
    with tk.no_grad():
        assert linear(*layer).grad_fn is None


def test_in_inference_mode_it_is_an_inference_tensor(layer):
    with tk.inference_mode():
        assert linear(*layer).is_inference()


def test_an_input_of_inference_mode_is_refused(layer):
    with tk.inference_mode():
        x = tk.ones(3, 4)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        linear(x, *layer[1:])


def test_a_layer_of_other_features_is_told_which_it_should_have():
    swapped = tk.nn.Linear(3, 2)  # for a matrix product x @ y.t() would help
    with pytest.raises(RuntimeError, match=r"\(4x2 and 3x2\)[^$]*Try: tk.nn.Linear\(2, 2\)"):
        swapped(tk.ones(4, 2))
