"""Where a tensor is made or moved to, and that its numbers are those of the CPU."""

import numpy as np
import pytest

import tensorkit as tk
from tensorkit import nn


def test_random_numbers_are_drawn_on_the_host_and_sent(gpu):
    with pytest.raises(NotImplementedError, match=r"draw on the CPU.*\n\nTry: tk.Generator\(\)"):
        tk.Generator("cuda")
    with tk.cuda.record() as ledger:
        tk.rand(3, device="cuda")
        nn.functional.dropout(tk.ones(5, device="cuda"))
    assert [(each.name, each.bytes) for each in ledger.transfers] == [
        ("uniform", 12),
        ("uniform", 40),
    ]


MOVES = {
    "device": lambda x, y: x.to("cuda"),
    "index": lambda x, y: x.to("cuda:0"),
    "number": lambda x, y: x.to(0),
    "object": lambda x, y: x.to(tk.device("cuda", 0)),
    "keyword": lambda x, y: x.to(device="cuda"),
    "dtype": lambda x, y: x.to(tk.float64),
    "both": lambda x, y: x.to("cuda", tk.float64),
    "both by name": lambda x, y: x.to(dtype=tk.int32, device="cuda"),
    "other": lambda x, y: x.to(y),
    "same": lambda x, y: x.to("cpu"),
    "non_blocking": lambda x, y: x.to("cuda", non_blocking=True),
    "copy": lambda x, y: x.to("cpu", copy=True),
    "cuda": lambda x, y: x.cuda(),
    "cuda 0": lambda x, y: x.cuda(0, non_blocking=True),
    "cpu": lambda x, y: y.cpu(),
    "there and back": lambda x, y: x.cuda().cpu(),
    "zeros": lambda x, y: tk.zeros(2, 3, device="cuda:0"),
    "full": lambda x, y: tk.full((2,), 7, device="cuda"),
    "eye": lambda x, y: tk.eye(2, device="cuda"),
    "arange": lambda x, y: tk.arange(3, device="cuda"),
    "linspace": lambda x, y: tk.linspace(0, 1, 3, device="cuda"),
    "tensor": lambda x, y: tk.tensor([1, 2], device="cuda"),
    "as_tensor": lambda x, y: tk.as_tensor(np.ones(2), device="cuda"),
    "zeros_like": lambda x, y: tk.zeros_like(y),
    "like elsewhere": lambda x, y: tk.ones_like(y, device="cpu"),
    "module": lambda x, y: nn.Linear(2, 2, device="cuda:0").weight.detach() * 0,
}


# device and dtype of the result, whether it is x itself
PLACES = {
    "device": "cuda:0 float32", "index": "cuda:0 float32", "number": "cuda:0 float32",
    "object": "cuda:0 float32", "keyword": "cuda:0 float32", "dtype": "cpu float64",
    "both": "cuda:0 float64", "both by name": "cuda:0 int32", "other": "cuda:0 float64",
    "same": "cpu float32 itself", "non_blocking": "cuda:0 float32", "copy": "cpu float32",
    "cuda": "cuda:0 float32", "cuda 0": "cuda:0 float32", "cpu": "cpu float64",
    "there and back": "cpu float32", "zeros": "cuda:0 float32",
    "full": "cuda:0 int64", "eye": "cuda:0 float32", "arange": "cuda:0 int64",
    "linspace": "cuda:0 float32", "tensor": "cuda:0 int64", "as_tensor": "cuda:0 float64",
    "zeros_like": "cuda:0 float64", "like elsewhere": "cpu float64",
    "module": "cuda:0 float32",
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_a_tensor_is_made_or_moved_where_it_is_asked_for(name):
    with tk.cuda.simulate():
        x, y = tk.ones(2, 3), tk.ones(2, dtype=tk.float64, device="cuda:0")
        found = MOVES[name](x, y)
        suffix = " itself" if found is x else ""
        dtype = str(found.dtype).removeprefix("torch.")
        assert f"{found.device} {dtype}{suffix}" == PLACES[name]
        assert found.is_cuda == (found.device.type == "cuda")


@pytest.mark.parametrize("bounds", [(5,), (2, 9, 3), (7, -2, -4), (0,), (2**62, 2**62 + 3)])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int32"])
def test_whole_numbers_are_counted_on_the_device(gpu, bounds, dtype):
    kind = {"dtype": getattr(tk, dtype)}
    with tk.cuda.record() as ledger:
        found = tk.arange(*bounds, device="cuda", **kind)
    expected = tk.arange(*bounds, **kind)
    assert not ledger.transfers
    assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
    assert found.tolist() == expected.tolist()


def test_a_gradient_goes_back_to_where_its_tensor_is(gpu):
    x = tk.ones(2, requires_grad=True)
    (x.cuda() * 3).sum().backward()
    assert x.grad.device == tk.device("cpu")
    assert x.grad.tolist() == [3, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, t: tk.manual_seed(0) and x.uniform_(t, 2),
        lambda x, t: x.fill_(t),
        lambda x, t: tk.full((3,), t, device=x.device),
    ],
)
def test_a_tensor_of_the_device_may_stand_for_a_number(call):
    expected = call(tk.ones(3), tk.tensor(0.5))
    with tk.cuda.simulate():
        found = call(tk.ones(3, device="cuda"), tk.tensor(0.5, device="cuda"))
        assert found.is_cuda
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_std_of_numbers_whose_squares_are_no_float32_is_that_of_the_cpu(gpu, size):
    x = tk.tensor([1.0, 2.0, 4.0]) * size
    assert x.cuda().std().cpu().item() == pytest.approx(x.std().item())
    assert 0 < x.std().item() < tk.inf
