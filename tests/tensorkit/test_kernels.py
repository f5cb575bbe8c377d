"""Kernels for GPUs give what their NumPy forms give: their code, compiled for the host.

That shows the arithmetic, not CuPy's launch of it: `make test-gpu` does where there is a GPU.
"""

import numpy as np
import pytest
from fake_cupy import installed
from kernel_sources import COMPILER

import tensorkit as tk
from tensorkit import kernels, philox
from tensorkit.nn import functional as F

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler: apt install g++")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def cupy(folder):
    """CuPy's stand-in as the CUDA device."""
    with installed(folder) as made:
        yield made


def _class_of(x):
    return tk.arange(len(x), device=x.device) % x.shape[1]


def _scaled(x):
    return F.layer_norm(x, (7,), tk.arange(7.0).to(x), tk.arange(7.0).to(x))


# what a program calls; the kernels of the way there and of the way back
CALLS = {
    "erf": (tk.erf, ["erf"], []),
    "tanh": (tk.tanh, [], ["tanh_slope"]),
    "sigmoid": (tk.sigmoid, [], ["sigmoid_slope"]),
    "relu": (tk.relu, [], ["relu_slope"]),
    "divisor": (lambda x: x[:1] / (x + 9), [], ["divisor_slope"]),
    "leaky relu": (F.leaky_relu, [], ["leaky_slope"]),
    "silu": (F.silu, ["silu"], ["silu_slope"]),
    "gelu": (F.gelu, ["gelu"], ["gelu_slope"]),
    "gelu tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        ["gelu_by_tanh"],
        ["gelu_by_tanh_slope"],
    ),
    "softmax": (lambda x: tk.softmax(x * 9, 1), ["softmax"], ["softmax_slope"]),
    "softmax of columns": (lambda x: tk.softmax(x, 0), ["softmax"], ["softmax_slope"]),
    "softmax amidst": (
        lambda x: tk.softmax(x.view(5, 7, 1).expand(5, 7, 3) * tk.arange(3.0).to(x), 1),
        ["softmax"],
        ["softmax_slope"],
    ),
    "softmax of a number": (lambda x: tk.softmax(x[0, 0], 0), ["softmax"], ["softmax_slope"]),
    "softmax transposed": (lambda x: tk.softmax(x.t(), 1), ["softmax"], ["softmax_slope"]),
    "log softmax": (lambda x: tk.log_softmax(x * 9, 1), ["log_softmax"], ["log_softmax_slope"]),
    "long rows": (
        lambda x: tk.log_softmax(x.reshape(1, 35).expand(60, 35).reshape(2, 1050), 1),
        ["log_softmax"],
        ["log_softmax_slope"],
    ),
    "cross entropy": (
        lambda x: F.cross_entropy(x, _class_of(x)),
        ["log_softmax", "outside", "nll_total"],
        ["nll_share", "nll_spread", "log_softmax_slope"],
    ),
    "cross entropy, one ignored": (
        lambda x: F.cross_entropy(x, _class_of(x), ignore_index=2),
        ["log_softmax", "outside", "nll_total"],
        ["nll_share", "nll_spread", "log_softmax_slope"],
    ),
    "sum of losses": (
        lambda x: F.nll_loss(x, _class_of(x), reduction="sum"),
        ["outside", "nll_total"],
        ["nll_spread"],
    ),
    "picked": (lambda x: x[tk.tensor([[1, -1], [0, 4]], device=x.device)], ["outside"], []),
    "gathered": (
        lambda x: x.gather(1, tk.tensor([[1, 6], [0, 4]], device=x.device)),
        ["outside"],
        [],
    ),
    "losses": (
        lambda x: F.nll_loss(x, _class_of(x), reduction="none"),
        ["outside", "nll"],
        ["nll_spread"],
    ),
    "layer norm": (lambda x: F.layer_norm(x, (7,)), ["layer_norm"], ["layer_norm_slope"]),
    "layer norm of all": (lambda x: F.layer_norm(x, (5, 7)), ["layer_norm"], ["layer_norm_slope"]),
    "layer norm, scaled": (_scaled, ["layer_norm"], ["layer_norm_slope"]),
}  # fmt: skip


def _there_and_back(run, device, dtype):
    x = tk.linspace(-4, 4, 35, dtype=getattr(tk, dtype)).view(5, 7).to(device).requires_grad_()
    y = run(x)
    launched = tk.devices.cuda.backends()[0].cupy.launched
    there = launched[:]
    y.backward(tk.linspace(1, 2, y.numel()).to(y).view(y.shape))
    return y.detach().cpu().numpy(), x.grad.cpu().numpy(), there, launched[len(there) :]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_by_kernels_is_the_numpy_form(cupy, name, dtype):
    run, there, back = CALLS[name]
    expected, slope, *none = _there_and_back(run, "cpu", dtype)
    found, found_slope, *launched = _there_and_back(run, "cuda", dtype)
    assert none == [[], []]
    assert launched == [there, back]
    assert found.dtype == expected.dtype
    # erfc keeps digits where 1 + erf loses them; rows are added in another order
    rtol = 1e-12 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found_slope, slope, rtol=rtol, atol=rtol)


@needs_compiler
def test_the_weight_of_layer_norm_gets_its_gradient_by_a_kernel(cupy):
    found = []
    for device in ("cpu", "cuda"):
        x = tk.linspace(-4, 4, 35).view(5, 7).to(device) ** 2
        weight = tk.linspace(1, 2, 7).to(device).requires_grad_()
        (F.layer_norm(x, (7,), weight) * x).sum().backward()
        found.append(weight.grad.cpu().numpy())
    assert cupy.launched == ["layer_norm", "layer_norm_weight"]
    np.testing.assert_allclose(*found, rtol=2e-5)


@needs_compiler
def test_other_dtypes_and_higher_derivatives_take_the_formula(cupy):
    x = tk.linspace(-1, 1, 6).cuda().requires_grad_()
    (slope,) = tk.autograd.grad(tk.tanh(x).sum(), x, create_graph=True)
    assert slope.requires_grad
    half = tk.linspace(-1, 1, 6).cuda().half().requires_grad_()
    half.tanh().sum().backward()
    assert "tanh_slope" not in cupy.launched
    assert half.grad.dtype is tk.float16


STEPS = {
    "sgd": lambda p: tk.optim.SGD(p, lr=0.1, weight_decay=0.5),
    "momentum": lambda p: tk.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: tk.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "adamw": lambda p: tk.optim.AdamW(p, lr=0.01, weight_decay=0.5),
}
SHAPES = [(5, 7), (), (0,), (4097,), (3,)]


def _leaves(device, dtype, shapes=SHAPES):
    made = [np.linspace(-4, 4, int(np.prod(shape))).reshape(shape) for shape in shapes]
    return [tk.from_numpy(each.astype(dtype)).to(device).requires_grad_() for each in made]


def _train(optimizer, leaves, steps=3):
    for step in range(steps):
        for place, x in enumerate(leaves):
            x.grad = (x.detach() * (step + 1)).cos() + place
        optimizer.step()
    states = [optimizer.state[x] for x in leaves]
    return [*leaves, *(value for state in states for value in state.values())]


def _agree(found, expected, rtol):
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = (x.detach().cpu().numpy() for x in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", STEPS)
def test_parameters_are_changed_there_as_on_the_cpu(cupy, name, dtype):
    expected, found = (
        _train(STEPS[name](leaves), leaves)
        for leaves in (_leaves("cpu", dtype), _leaves("cuda", dtype))
    )
    _agree(found, expected, 1e-12 if dtype == "float64" else 2e-6)


def test_layouts_and_dtypes_may_differ_between_parameters(cupy):
    found = []
    for device in ("cpu", "cuda"):
        leaves = _leaves(device, "float32", [(3, 4)] * 6)
        leaves[0] = leaves[0].detach().t().requires_grad_()  # dense, unlike its gradient
        leaves[1] = leaves[1].detach()[:, ::2].requires_grad_()
        leaves[2] = leaves[2].detach().half().requires_grad_()
        leaves[3] = leaves[3].detach().double().requires_grad_()
        for x in leaves:
            x.grad = tk.ones(x.shape, dtype=x.dtype, device=device)
        optimizer = tk.optim.Adam([{"params": leaves[:5]}, {"params": leaves[5:], "lr": 0.1}])
        optimizer.step()
        found.append(leaves)
    _agree(*found, 1e-3)


def test_a_parameter_that_is_listed_twice_changes_twice(cupy):
    found = []
    for device in ("cpu", "cuda"):
        (x, y) = leaves = _leaves(device, "float64", [(3,), (4,)])
        found.append(_train(tk.optim.Adam([x, y, x]), leaves, 2))
    _agree(*found, 1e-12)


# Random numbers


def test_the_words_are_those_of_the_authors():
    """The answers that come with Philox4x32-10 for a counter and a key of zeros, and another."""
    assert [hex(w) for w in philox.words(0, 0, 1)[:, 0]] == [
        "0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8",
    ]  # fmt: skip
    seed, at = 0x299F31D0A4093822, 0x85A308D3243F6A88
    known = philox.words(seed, at, 2)
    assert np.array_equal(known[:, 1:], philox.words(seed, at + 1, 1))
    assert known.max() < 2**32


DRAWS = {
    "uniform": lambda **kind: tk.rand(50, **kind),
    "uniform of float64": lambda **kind: tk.rand(50, dtype=tk.float64, **kind),
    "normal": lambda **kind: tk.randn(50, **kind),
    "normal of float64": lambda **kind: tk.randn(50, dtype=tk.float64, **kind),
    "integers": lambda **kind: tk.randint(-5, 2**60, (50,), **kind),
    "integers of all": lambda **kind: tk.randint(-(2**63), 2**63 - 1, (50,), **kind),
    "exponential": lambda **kind: tk.empty(50, device="cuda").exponential_(
        generator=kind["generator"]
    ),
}


@needs_compiler
@pytest.mark.parametrize("name", DRAWS)
def test_a_gpu_draws_the_numbers_of_the_simulated_device(cupy, name):
    def drawn():
        generator = tk.Generator("cuda").manual_seed(2**63 + 5)
        tk.rand(3, device="cuda", generator=generator)
        return DRAWS[name](device="cuda", generator=generator).cpu().numpy()

    found = drawn()
    assert cupy.launched[-1] == f"draw_{name.split()[0]}"
    with tk.cuda.simulate():
        expected = drawn()
    rtol = {"float32": 1e-5, "float64": 1e-12, "int64": 0}[str(found.dtype)]
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol / 10)


def test_every_kernel_is_tested_here():
    named = {name for _, there, back in CALLS.values() for name in [*there, *back]}
    named |= {"layer_norm_weight", *(f"draw_{name.split()[0]}" for name in DRAWS)}
    assert {each.name for each in kernels.ALL} == named
