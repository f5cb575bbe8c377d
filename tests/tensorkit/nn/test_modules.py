"""Modules: first values, names, texts, state and refusals are PyTorch's."""

import copy
import pickle

import numpy as np
import pytest
from tk_oracle import torch

import tensorkit as tk


def _model(m):
    """Some of everything, with a shared layer and a buffer."""

    class Block(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = m.nn.Linear(4, 4)
            self.act = m.nn.GELU()
            self.scale = m.nn.Parameter(m.ones(4))
            self.nothing = None

        def forward(self, x):
            return self.act(self.linear(x)) * self.scale

    m.manual_seed(0)
    block = Block()
    return m.nn.Sequential(
        m.nn.Embedding(7, 4),
        block,
        m.nn.LayerNorm(4),
        m.nn.ModuleList([m.nn.Linear(4, 4, bias=False) for _ in range(2)])[0],
        m.nn.Dropout(0.2),
        block,
        m.nn.Linear(4, 3),
    )


# What a line of a program shows; ``net`` is the model above.
SHOWN = {
    "text": lambda m, net: net,
    "parameters": lambda m, net: [(n, p.shape) for n, p in net.named_parameters()],
    "modules": lambda m, net: [n for n, _ in net.named_modules()],
    "state": lambda m, net: net.state_dict(),
    "weights": lambda m, net: [p.tolist() for p in net.parameters()],
    "one weight": lambda m, net: net[6].bias,
    "list": lambda m, net: m.nn.ModuleList([m.nn.ReLU(), m.nn.ReLU(), m.nn.Tanh()]),
    "empty list": lambda m, net: m.nn.ModuleList(),
    "layers": lambda m, net: [
        m.nn.Linear(2, 3, bias=False),
        m.nn.Embedding(4, 2),
        m.nn.Softmax(-1),
        m.nn.Dropout(inplace=True),
        m.nn.LayerNorm(3),
        m.nn.Flatten(),
        m.nn.SiLU(),
        m.nn.LeakyReLU(0.2, True),
        m.nn.Sigmoid(),
        m.nn.CrossEntropyLoss(),
        m.nn.BCEWithLogitsLoss(),
    ],
    "double": lambda m, net: [p.dtype for p in net.to(m.float64).state_dict().values()],
    "to": lambda m, net: {p.dtype for p in net.to(m.float64).parameters()},
    "to device": lambda m, net: {p.device for p in net.to("cpu", m.float16).parameters()},
    "frozen": lambda m, net: [p.requires_grad for p in net.requires_grad_(False).parameters()],
    "modes": lambda m, net: [each.training for each in net.eval().modules()],
    "load": lambda m, net: net.load_state_dict(net.state_dict()),
    "load part": lambda m, net: net.load_state_dict({"no": m.ones(1)}, strict=False),
    "output": lambda m, net: net.eval()(m.tensor([[1, 2, 6]])),
    "flatten": lambda m, net: m.nn.Flatten()(m.zeros(2, 3, 4)).shape,
    "parameter": lambda m, net: m.nn.Parameter(m.ones(2), requires_grad=False),
    "no data": lambda m, net: m.nn.Parameter(),
    "append": lambda m, net: m.nn.Sequential(m.nn.ReLU()).append(m.nn.Tanh()),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_line_shows_what_it_shows_in_pytorch(name):
    actual, expected = (repr(SHOWN[name](m, _model(m))) for m in (tk, torch))
    if name in ("output", "weights"):
        _close(actual, expected)
    else:
        assert actual == expected


def _close(actual, expected):
    def numbers(text):
        return [float(x) for x in "".join(c if c in "0123456789.e-" else " " for c in text).split()
                if any(c.isdigit() for c in x)]  # fmt: skip

    np.testing.assert_allclose(numbers(actual), numbers(expected), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "init",
    [
        lambda m, x: m.nn.init.uniform_(x, -0.3, 0.45),
        lambda m, x: m.nn.init.normal_(x, 1, 0.3),
        lambda m, x: m.nn.init.constant_(x, 3),
        lambda m, x: m.nn.init.ones_(x),
        lambda m, x: m.nn.init.zeros_(x),
    ],
)
@pytest.mark.parametrize("shape", [(3, 4), (20, 30), (2, 3, 5)])
def test_first_values_are_pytorchs(init, shape):
    found = []
    for m in (torch, tk):
        m.manual_seed(7)
        x = m.empty(shape, requires_grad=True)
        assert init(m, x) is x
        found.append(x.detach().numpy())
    # logarithms and cosines of normal numbers differ in the last digit between libraries
    np.testing.assert_allclose(found[1], found[0], rtol=2e-6, atol=1e-6)


def test_uniform_weights_are_exactly_pytorchs():
    found = []
    for m in (torch, tk):
        m.manual_seed(0)
        layer = m.nn.Linear(30, 40)
        found.append((layer.weight.tolist(), layer.bias.tolist()))
    assert found[0] == found[1]


def _set(obj, name, value):
    setattr(obj, name, value)


class _Forgetful:
    """A module that does not call ``super().__init__()``."""

    def __init__(self, m, value):
        class Bad(m.nn.Module):
            def __init__(self):
                self.child = value

        Bad()


REFUSED = {
    "attribute": lambda m, net: net[6].wieght,
    "parameter": lambda m, net: _set(net[6], "weight", m.ones(2)),
    "parameter text": lambda m, net: _set(net[6], "weight", "no"),
    "child": lambda m, net: _set(net[1], "linear", m.ones(2)),
    "before init": lambda m, net: _Forgetful(m, m.nn.ReLU()),
    "before init parameter": lambda m, net: _Forgetful(m, m.nn.Parameter(m.ones(1))),
    "no forward": lambda m, net: m.nn.Module()(1),
    "sequence": lambda m, net: m.nn.Sequential(1),
    "class": lambda m, net: m.nn.Sequential(_Forgetful),
    "function": lambda m, net: m.nn.Sequential(_set),
    "index": lambda m, net: net[9],
    "list index": lambda m, net: m.nn.ModuleList()[0],
    "mode": lambda m, net: net.train("yes"),
    "integer dtype": lambda m, net: net.to(m.int64),
    "integer parameter": lambda m, net: m.nn.Parameter(m.tensor([1])),
    "missing key": lambda m, net: net[6].load_state_dict({"weight": m.zeros(3, 4)}),
    "unexpected key": lambda m, net: net[6].load_state_dict({**net[6].state_dict(), "x": 1}),
    "deep keys": lambda m, net: net.load_state_dict({"9.y": 2, "1.x": 1}),
    "shape": lambda m, net: net[6].load_state_dict({"weight": m.zeros(2, 4), "bias": m.zeros(3)}),
    "no tensor": lambda m, net: net[6].load_state_dict({"weight": [1.0], "bias": m.zeros(3)}),
}


# Refused with PyTorch's class and words of our own: arguments of a wrong kind.
OTHER_WORDS = {
    "parameter text", "child", "class", "function",
    "integer parameter", "no tensor", "index", "list index",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_refused_as_in_pytorch(name):
    found = []
    for m in (torch, tk):
        net = _model(m)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            REFUSED[name](m, net)
        found.append(caught.value)
    expected, actual = found
    assert isinstance(actual, type(expected)), actual
    text, wanted = str(actual), str(expected)
    if name in OTHER_WORDS:
        assert text
    elif "state_dict" in wanted:
        assert text.replace("tensorkit", "torch") == wanted
    else:
        assert (
            text.splitlines()[0].replace("tensorkit._tensor.", "torch.") == wanted.splitlines()[0]
        )


@pytest.mark.parametrize("arguments", [("sum",), (None, None, "sum"), (tk.ones(2), tk.ones(2))])
def test_a_loss_takes_its_settings_by_name(arguments):
    # PyTorch takes "sum" for size_average, and gives the mean
    with pytest.raises(TypeError, match=r"L1Loss\(\) was given \d settings without a name"):
        tk.nn.L1Loss(*arguments)


def test_a_refused_state_copies_what_fits():
    net = tk.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        net.load_state_dict({"weight": tk.zeros(3, 2), "bias": tk.ones(2)})
    assert net.bias.tolist() == [1, 1]


def test_a_copy_of_a_model_is_independent_and_of_the_same_kind():
    net = _model(tk)
    for twin in (copy.deepcopy(net[6]), pickle.loads(pickle.dumps(net[6]))):
        assert type(twin.weight) is tk.nn.Parameter
        assert twin.weight.requires_grad
        assert tk.equal(twin.weight, net[6].weight)
        with tk.no_grad():
            twin.weight.add_(1)
        assert not tk.equal(twin.weight, net[6].weight)


def test_a_parameter_shares_the_memory_of_its_data():
    data = tk.zeros(2)
    parameter = tk.nn.Parameter(data)
    data.fill_(3)
    assert parameter.tolist() == [3, 3]
    assert parameter.is_leaf


def test_a_change_between_forward_and_backward_is_noticed():
    layer = tk.nn.Linear(2, 2)
    x = tk.ones(1, 2, requires_grad=True)
    loss = layer(x).sum()
    with tk.no_grad():
        layer.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_moving_a_module_moves_gradients_too():
    layer = tk.nn.Linear(2, 2)
    layer(tk.ones(1, 2)).sum().backward()
    weight = layer.weight
    assert layer.to(tk.float64).weight is weight
    assert weight.grad.dtype is tk.float64


def test_a_layer_finds_what_takes_the_place_of_its_weight() -> None:
    layer = tk.nn.Linear(2, 2)
    del layer.weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weight'"):
        layer.weight  # noqa: B018
    layer.weight = plain = tk.ones(2, 2)
    assert layer.weight is plain


@pytest.mark.parametrize("name", ["register_buffer", "register_parameter", "buffers"])
def test_a_missing_method_of_a_module_has_a_repair(name) -> None:
    with pytest.raises(AttributeError, match=rf"Module\.{name} is not part .* use tk\.nn\.Par"):
        getattr(tk.nn.ReLU(), name)


def test_a_class_of_layers_has_no_weight() -> None:
    assert not hasattr(tk.nn.Linear, "weight")
