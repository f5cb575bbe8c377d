"""A device of a user's own: an array library that is registered as a backend."""

import numpy as np
import pytest

import tensorkit as tk
from tensorkit import devices
from tensorkit.devices import Backend


class _Array(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of a device of our own, which holds NumPy's."""

    def __init__(self, inner):
        self.inner = inner

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        options = {name: _inner(value) for name, value in options.items()}
        return _Array(np.asarray(getattr(ufunc, method)(*_inner(inputs), **options)))

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        return (
            (lambda *args, **options: _Array(found(*args, **options))) if callable(found) else found
        )

    def __setitem__(self, index, value):
        self.inner[index] = _inner(value)


def _inner(value):
    if isinstance(value, tuple):
        return tuple(map(_inner, value))
    if isinstance(value, np.ndarray):
        raise TypeError("an array of the host")
    return value.inner if isinstance(value, _Array) else value


class _Library:
    __name__ = "mine"

    def __getattr__(self, name):
        found = getattr(np, name)
        if isinstance(found, (np.ufunc, type)):
            return found
        return lambda *args, **options: _Array(found(*_inner(args), **options))


class _Mine(Backend):
    kind, index, array = "own", 0, _Array

    def from_host(self, array, reason="to"):
        return _Array(array.copy())

    def to_host(self, array, reason="to"):
        return array.inner.copy()

    def asarray(self, value):
        return value if isinstance(value, _Array) else _Array(np.asarray(value))


def test_a_device_of_ones_own_is_registered_and_computes(monkeypatch):
    monkeypatch.setattr(devices, "_kinds", {**devices._kinds})  # for this test alone
    backend = _Mine(_Library())
    assert tk.register_device("own", lambda: backend) is None
    x = tk.tensor([1.0, 2.0], device="own", requires_grad=True)
    y = x * 2 + tk.ones(2, device="own")
    y.sum().backward()
    assert (str(x.device), str(y.device), y.is_cuda) == ("own:0", "own:0", False)
    assert isinstance(y._array, _Array)
    assert y.cpu().tolist() == [3.0, 5.0]
    assert x.grad.cpu().tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="two devices, own:0 and cpu!"):
        y + tk.ones(2)


class _Less(_Library):
    def __getattr__(self, name):
        if name == "tanh":
            raise AttributeError("mine has no tanh")
        return super().__getattr__(name)


@pytest.mark.parametrize("call", [tk.tanh, lambda x: tk.mm(x, x)], ids=["tanh", "mm"])
def test_what_its_library_lacks_is_refused_with_the_line_that_registers_it(monkeypatch, call):
    monkeypatch.setattr(devices, "_kinds", {**devices._kinds})
    backend = _Mine(_Less())
    tk.register_device("own", lambda: backend)
    line = r'(tanh|mm)\(\): .* no .*\n\nTry: tk.library.register_kernel\(tk.\1, "own", f\)'
    with pytest.raises(RuntimeError, match=line):
        call(tk.tensor([[1.0]], device="own"))
