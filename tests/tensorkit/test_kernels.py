"""Kernels for GPUs give what their NumPy forms give: their code, compiled for the host.

That shows the arithmetic, not CuPy's launch of it: `make test-gpu` does where there is a GPU.
"""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from kernel_sources import parameters, source

import tensorkit as tk
from tensorkit import kernels
from tensorkit.devices import quietly

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler: apt install g++")


class _Cupy:
    """NumPy under CuPy's name: kernels are launched on it by compiling them for the host."""

    __name__ = "cupy"

    def __init__(self, folder):
        self.folder, self.launched = folder, []

    def __getattr__(self, name):
        return getattr(np, name)

    def ElementwiseKernel(self, *told):
        return lambda *arrays: self._run(told, arrays)

    def ReductionKernel(self, *told):
        def run(*arrays, axis, keepdims):
            assert (axis, keepdims) == (-1, True)
            spread = np.broadcast_arrays(*arrays)
            rows = [self._run(told, each) for each in zip(*spread, strict=True)]
            return np.array(rows).reshape(*spread[0].shape[:-1], 1)

        return run

    def _run(self, told, arrays):
        kernel = next(each for each in kernels.ALL if f"tensorkit_{each.name}" == told[-1])
        assert told[:-1] == (kernel.inputs, kernel.outputs, *kernel.code)
        self.launched.append(kernel.name)
        given = parameters(kernel)
        read = [each for each, (_, _, written) in zip(arrays, given, strict=False) if not written]
        kind = next(each.dtype for each in arrays if hasattr(each, "dtype") and each.ndim)
        shape = np.broadcast_shapes(*(np.shape(each) for each in arrays))
        held = [
            np.ascontiguousarray(np.broadcast_to(each, shape), "u1" if word == "bool" else kind)
            for each, (word, _, _) in zip(read, given, strict=False)
        ]
        is_sum = isinstance(kernel, kernels.Reduction)
        written = [*arrays[len(read) :]] or [np.empty(() if is_sum else shape, kind)]
        assert len(held) + len(written) == len(given)
        assert all(each.flags.c_contiguous and each.dtype == kind for each in written)
        size = ctypes.c_long(int(np.prod(shape)))
        run = self._compiled(kernel, {"f": "float", "d": "double"}[kind.char])
        run(size, *(each.ctypes.data_as(ctypes.c_void_p) for each in [*held, *written]))
        return written[0]

    def _compiled(self, kernel, kind):
        name = self.folder / f"{kernel.name}_{kind}"
        if not name.with_suffix(".so").exists():
            code = source(kernel, kind, "#include <cmath>\nusing namespace std;")
            name.with_suffix(".cpp").write_text(code)
            arguments = ["-shared", "-fPIC", "-O1", "-o", f"{name}.so", f"{name}.cpp"]
            subprocess.run([COMPILER, *arguments], check=True)
        return ctypes.CDLL(f"{name}.so").run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def cupy(folder):
    return _Cupy(folder)


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
    assert {each.name for each in kernels.ALL} == named | {"sgd", "sgd_momentum", "adam", "amsgrad"}
