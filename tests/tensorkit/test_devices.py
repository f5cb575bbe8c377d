"""Devices: names, equality, and the quiet context."""

import numpy as np
import pytest
from tk_oracle import assert_same_outcome, torch, without_cuda

import tensorkit as tk
from tensorkit import direct_path


@pytest.mark.parametrize("name", ["cpu", "cpu:0", "cuda", "cuda:1", "foo", "cpu:a"])
def test_device_names_are_read_as_in_pytorch(name):
    assert_same_outcome(lambda: str(torch.device(name)), lambda: str(tk.device(name)))
    assert_same_outcome(lambda: repr(torch.device(name)), lambda: repr(tk.device(name)))


def test_devices_are_equal_by_type_and_index():
    assert tk.device("cpu") == tk.device("cpu")
    assert tk.device("cpu") != tk.device("cpu:0")
    assert hash(tk.device("cpu")) == hash(tk.device("cpu"))
    assert tk.zeros(1, device="cpu:0").device == tk.device("cpu")


def test_an_operation_inside_the_direct_path_still_works():
    # A finalizer may run while NumPy computes; the context cannot be entered twice.
    x = tk.ones(2)
    assert direct_path.run(lambda: (x + x).tolist()) == [2.0, 2.0]


def test_the_direct_path_changes_only_its_own_context():
    before = np.geterr()
    direct_path.run(np.divide, np.ones(1), np.zeros(1))
    assert np.geterr() == before


def test_a_device_is_the_default_inside_its_block():
    before = tk.get_default_device()
    with tk.device("cpu") as device:
        assert tk.get_default_device() is device
        assert tk.zeros(2).device is device
    assert tk.get_default_device() is before


def test_a_device_that_is_not_there_does_not_become_the_default():
    before = tk.get_default_device()
    words = "not compiled with CUDA"
    with without_cuda(), pytest.raises(AssertionError, match=words):
        tk.set_default_device("cuda")
    assert tk.get_default_device() is before
