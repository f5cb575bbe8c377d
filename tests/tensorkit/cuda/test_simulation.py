"""A simulated device: when it begins and ends, and what a default device is meanwhile."""

import os
import subprocess
import sys
import threading

import pytest

import tensorkit as tk


def test_any_whole_number_is_simulated():
    with tk.cuda.simulate(total_memory=1e9):
        total = tk.cuda.get_device_properties().total_memory
        assert (total, type(total)) == (10**9, int)


def test_a_tensor_outlives_its_simulation_and_does_not_mix_with_the_next():
    with tk.cuda.simulate():
        x = tk.ones(2, device="cuda", requires_grad=True)
        y = x * 2
    y.sum().backward()
    assert x.grad.cpu().tolist() == [2, 2]
    with tk.cuda.simulate():
        with pytest.raises(RuntimeError, match="One of them is from another simulation"):
            x + tk.ones(2, device="cuda")
        assert (x.to("cuda") + tk.ones(2, device="cuda")).tolist() == [2, 2]


def test_after_an_inner_simulation_the_outer_one_goes_on():
    with tk.cuda.simulate():
        x = tk.ones(2, device="cuda")
        with tk.cuda.simulate():
            assert x.device is not tk.ones(2, device="cuda").device
        assert x.device == tk.device("cuda:0")
        assert (x + tk.ones(2, device="cuda")).tolist() == [2, 2]


def test_a_device_named_before_there_is_one_is_that_of_its_tensors():
    device = tk.device("cuda:0")
    with tk.cuda.simulate():
        assert tk.ones(1, device=device).device == device


def test_each_thread_has_a_default_device_as_in_pytorch():
    found = []

    def choose():
        tk.set_default_device("cuda")
        found.append(tk.ones(1).device.type)

    with tk.cuda.simulate():
        thread = threading.Thread(target=choose)
        thread.start()
        thread.join()
        assert found == ["cuda"]
        assert tk.ones(1).device.type == "cpu"


def test_the_default_device_ends_with_its_simulation():
    with tk.cuda.simulate():
        tk.set_default_device("cuda")
        with tk.cuda.simulate():
            assert tk.zeros(1).device.type == "cpu"
        assert tk.zeros(1).is_cuda
    assert tk.zeros(1).device.type == tk.get_default_device().type == "cpu"
    tk.set_default_device(None)


def test_a_simulated_device_says_so_and_ends_with_its_block():
    before = tk.cuda.is_available()
    with tk.cuda.simulate():
        assert tk.cuda.is_available()
        assert tk.cuda.is_simulated()
        assert "Simulated" in tk.cuda.get_device_name()
        assert "Simulated" in repr(tk.cuda.get_device_properties(0))
        assert tk.version.cuda is None
    assert tk.cuda.is_available() == before


def _program(code, **variables):
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


def test_a_variable_of_the_environment_simulates_a_device():
    code = "import tensorkit as tk; print(tk.ones(1, device='cuda'), tk.cuda.is_simulated())"
    for value in ("1", " 1 "):
        shown = _program(code, TENSORKIT_SIMULATE_CUDA=value)
        assert shown == "tensor([1.], device='cuda:0') True"
    refused = (
        "import tensorkit as tk\n"
        "try: tk.cuda.is_available()\n"
        "except ValueError as error: print(str(error).split('\\n')[0])"
    )
    for value in ("2", "false"):
        assert _program(refused, TENSORKIT_SIMULATE_CUDA=value) == (
            f"TENSORKIT_SIMULATE_CUDA={value!r} does not say whether to simulate a device"
        )


def test_cupy_is_imported_when_a_cuda_device_is_asked_for():
    code = (
        "import sys, tensorkit as tk; x = tk.ones(2) + 1; tk.device('cpu'); "
        "print([name in sys.modules for name in ('cupy', 'tensorkit.cuda')])"
        "; tk.cuda.is_available(); print('tensorkit.cuda.cupy_backend' in sys.modules)"
    )
    assert _program(code, TENSORKIT_SIMULATE_CUDA="0").split("\n") == [
        "[False, False]",
        "True",
    ]
