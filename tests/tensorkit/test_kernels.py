"""Kernels for GPUs give what their NumPy forms give: their code, compiled for the host.

That shows the arithmetic, not CuPy's launch of it: `make test-gpu` does where there is a GPU.
"""

import numpy as np
import pytest
from fake_cupy import COMPILER, Cupy

import tensorkit as tk
from tensorkit import kernels
from tensorkit.devices import quietly

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler: apt install g++")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def cupy(folder):
    return Cupy(folder)


def _values(dtype):
    return np.linspace(-4, 4, 35, dtype=dtype).reshape(5, 7)


FORWARDS = {
    "erf": (lambda xp, x: tk.erf.definition.forward(xp, x), ["erf"]),
    "gelu": (lambda xp, x: _inner("activations", "_gelu").definition.forward(xp, x), ["gelu"]),
    "gelu slope": (
        lambda xp, x: _inner("activations", "_gelu_slope_of_block")(xp, x),
        ["gelu_slope"],
    ),
    "softmax": (
        lambda xp, x: _inner("normalising", "_softmax").definition.forward(xp, x * 20, dim=1),
        [*["powers"] * 5, "softmax"],
    ),
    "log softmax": (
        lambda xp, x: _inner("normalising", "_log_softmax").definition.forward(xp, x * 20, dim=0),
        [*["powers"] * 7, "log_softmax"],
    ),
}


def _inner(module, name):
    return getattr(getattr(__import__(f"tensorkit.ops.{module}").ops, module), name)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORWARDS)
def test_a_forward_by_kernels_is_the_numpy_form(cupy, name, dtype):
    run, launched = FORWARDS[name]
    expected = quietly(run, np, _values(dtype))
    found = run(cupy, _values(dtype))
    assert cupy.launched == launched
    assert found.dtype == expected.dtype
    # erfc keeps digits where 1 + erf loses them
    rtol = 1e-12 if dtype == "float64" else 3e-6
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol / 10)


STEPS = {
    "sgd": lambda p: tk.optim.SGD(p, lr=0.1),
    "sgd decay": lambda p: tk.optim.SGD(p, lr=0.1, weight_decay=0.5, maximize=True),
    "momentum": lambda p: tk.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, maximize=True),
    "nesterov": lambda p: tk.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda p: tk.optim.Adam(p, lr=0.01, weight_decay=0.1, maximize=True),
    "amsgrad": lambda p: tk.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: tk.optim.AdamW(p, lr=0.01, weight_decay=0.5),
}


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_by_kernels_are_those_of_the_numpy_form(cupy, name, dtype):
    found = []
    for xp in (np, cupy):
        x = tk.from_numpy(_values(dtype)).clone().requires_grad_()
        optimizer = STEPS[name]([x])
        group, state = optimizer.param_groups[0], {}
        for step in range(4):
            count, tensors = optimizer.prepare(group, state, x)
            g = np.cos(_values(dtype) * (step + 1))
            quietly(optimizer.update, xp, group, count, x._array, g, *(t._array for t in tensors))
        found.append([x._array, *(t._array for t in tensors)])
    assert len(cupy.launched) == 4
    rtol = 1e-12 if dtype == "float64" else 2e-6
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


def test_every_kernel_is_tested_here():
    named = {name for _, names in FORWARDS.values() for name in names}
    named |= {"sgd", "sgd_momentum", "adam", "amsgrad"}
    named |= {"nll", "nll_spread", "count", "squares", "layer_norm"}  # in test_gpu_backend
    assert {each.name for each in kernels.ALL} == named
