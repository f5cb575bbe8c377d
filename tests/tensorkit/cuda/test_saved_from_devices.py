"""Files and pickles of tensors that lay on a device."""

import copy
import io
import pickle

import pytest
from tk_oracle import first_line, torch, without_cuda

import tensorkit as tk


def _saved_on(device, value=None):
    file = io.BytesIO()
    tk.save({"x": tk.ones(2, device=device) if value is None else value}, file)
    return io.BytesIO(file.getvalue())


def test_a_file_from_a_device_that_is_not_here_says_how_to_load_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with tk.cuda.simulate():
        file = _saved_on("cuda:0")
    with without_cuda():
        with pytest.raises(RuntimeError) as e:
            tk.load(file)
        _, line = first_line(lambda: torch.serialization._validate_device("cuda:0", "cuda"))
        assert str(e.value).split("\n")[0] == line
        assert "map_location='cpu'" in str(e.value)
        file.seek(0)
        assert tk.load(file, map_location="cpu")["x"].tolist() == [1, 1]


def test_a_file_from_a_device_beyond_the_one_here_says_how_to_load_it():
    file = _saved_on("cpu")
    with tk.cuda.simulate():
        with pytest.raises(RuntimeError, match="CUDA error: invalid device ordinal"):
            tk.load(file, map_location="cuda:1")
        file.seek(0)
        assert tk.load(file, map_location=0)["x"].device.index == 0


def test_a_map_location_that_is_none_is_refused_and_not_the_file():
    for wrong, kind in ((3.5, TypeError), ("gpu", RuntimeError), ({"cpu": "cuda"}, TypeError)):
        with pytest.raises(kind, match=r"device\(\) wants a name|device type at start of dev"):
            tk.load(_saved_on("cpu"), map_location=wrong)


def test_a_pickle_holds_the_numbers_and_brings_them_back_to_their_device(gpu):
    x = tk.arange(6.0, device="cuda").view(2, 3).t()
    with tk.cuda.record() as ledger:
        back = pickle.loads(pickle.dumps(x))
    assert [(each.name, each.direction) for each in ledger.transfers] == [
        ("pickle", "device to host"),
        ("pickle", "host to device"),
    ]
    assert (back.device, back.stride()) == (x.device, x.stride())
    assert tk.equal(back, x)
    shared = copy.copy(x)
    shared[0, 0] = 7
    assert x[0, 0] == 7
    assert back[0, 0] == 0
