"""``tk.cuda``: what is refused and in which words, the ledger, the books, exchange.

PyTorch's own sentences are asked of PyTorch where a machine without a GPU can say them.
"""

import copy
import gc
import io
import operator
import os
import pickle
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from tk_oracle import torch, without_cuda

import tensorkit as tk
from tensorkit import devices, nn
from tensorkit.devices import Backend


def _first_line(run):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        run()
    return type(caught.value), str(caught.value).split("\n")[0]


# Devices that are not there


@pytest.mark.parametrize(
    "name", ["gpu", "cuda:x", "cuda:-1", "cuda:01", "CUDA", "cuda:", ":0", "cuda0", "0"]
)
def test_a_string_that_names_no_device_is_refused_as_in_pytorch(gpu, name):
    kind, line = _first_line(lambda: torch.zeros(1).to(name))
    for run in (lambda: tk.zeros(1).to(name), lambda: tk.zeros(1, device=name)):
        ours, our_line = _first_line(run)
        assert issubclass(ours, kind)
        assert our_line == line


def test_a_second_device_is_refused_with_the_one_there_is(gpu):
    for run in (
        lambda: tk.zeros(1, device="cuda:1"),
        lambda: tk.zeros(1).cuda(1),
        lambda: nn.Linear(2, 2).to("cuda:1"),
        lambda: tk.cuda.set_device(1),
    ):
        with pytest.raises(RuntimeError, match=r"^CUDA error: invalid device ordinal\n") as e:
            run()
        assert str(e.value).endswith("tensorkit computes on one CUDA device.\nTry: .to('cuda')")
    assert tk.cuda.current_device() == 0


@pytest.mark.skipif(tk.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize(
    "run",
    [
        lambda m: m.zeros(1, device="cuda"),
        lambda m: m.zeros(1).cuda(),
        lambda m: m.zeros(1).to("cuda:0"),
        lambda m: m.nn.Linear(1, 1).cuda(),
        lambda m: m.cuda.current_device(),
        lambda m: m.cuda.synchronize(),
    ],
)
def test_without_a_device_the_sentence_is_pytorchs_and_the_repair_works(run):
    kind, line = _first_line(lambda: run(torch))
    ours, our_line = _first_line(lambda: run(tk))
    assert issubclass(ours, kind)
    assert our_line == line
    with pytest.raises(kind, match=r"Try: device=\"cpu\", or tk.cuda.simulate\(\) before"):
        run(tk)
    with tk.cuda.simulate():
        run(tk)


@pytest.mark.skipif(tk.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_the_questions_have_answers():
    for m in (tk, torch):
        assert not m.cuda.is_available()
        assert m.cuda.device_count() == 0
        assert m.cuda.memory_allocated() == 0
    assert tk.version.cuda is None
    assert not tk.backends.mps.is_available()


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (lambda: tk.ones(1).cuda("cpu"), RuntimeError),
        (lambda: tk.ones(1).cuda(1.5), TypeError),
        (lambda: tk.ones(1).cuda(-1), RuntimeError),
        (lambda: tk.ones(1).cuda("gpu"), RuntimeError),
        (lambda: tk.device("cuda", 1.0), RuntimeError),
        (lambda: tk.device("cuda:0", 0), RuntimeError),
        (lambda: tk.Generator("gpu"), RuntimeError),
        (lambda: tk.cuda.set_device("cpu"), ValueError),
    ],
)
def test_what_is_no_cuda_device_is_refused(gpu, run, kind):
    with pytest.raises(kind):
        run()


def test_any_whole_number_is_simulated():
    with tk.cuda.simulate(total_memory=1e9):
        assert tk.cuda.mem_get_info() == (10**9, 10**9)
        assert type(tk.cuda.mem_get_info()[0]) is int


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

    def from_host(self, array, why="to"):
        return _Array(array.copy())

    def to_host(self, array, why="to"):
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


@pytest.mark.parametrize(
    "use",
    [
        lambda x, mask: x[mask],
        lambda x, mask: x[:, mask[0]],
    ],
)
def test_no_kernel_looks_whether_the_positions_of_a_mask_lie_inside(use):
    with tk.cuda.simulate():
        x = tk.arange(6.0, device="cuda").reshape(2, 3)
        mask = x > 1
        with tk.cuda.record() as ledger:
            use(x, mask)
        assert not {"greater_equal", "ge", "lt", "le", "less", "and", "all"} & {*ledger.counts()}
        assert ledger.counts("synchronise") in ({}, {"mask": 1})


def test_one_number_of_the_host_is_written_through_a_mask_without_waiting():
    with tk.cuda.simulate():
        x = tk.arange(4.0, device="cuda")
        with tk.cuda.record() as ledger:
            x[x > 1] = tk.tensor(9.0)
        assert ledger.counts("synchronise") == {}
        assert x.tolist() == [0.0, 1.0, 9.0, 9.0]


# Memory that runs out


def test_memory_that_runs_out_is_told_in_pytorchs_words_with_the_numbers():
    with tk.cuda.simulate(total_memory=2**20):
        kept = tk.zeros(2**17, device="cuda")
        with pytest.raises(tk.cuda.OutOfMemoryError) as e:
            tk.zeros(2**18, device="cuda")
        assert str(e.value).startswith(
            "CUDA out of memory. Tried to allocate 1.00 MiB. GPU 0 has a total capacity of "
            "1.00 MiB of which 512.00 KiB is free. Of the allocated memory 512.00 KiB is "
            "allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.\n"
        )
        assert isinstance(e.value, RuntimeError)
        del kept
        assert tk.zeros(2**18, device="cuda").shape == (2**18,)


def test_what_the_computer_cannot_allocate_is_refused_as_what_the_device_cannot():
    for total in (2**30, 2**60):
        with tk.cuda.simulate(total_memory=total):
            with pytest.raises(tk.cuda.OutOfMemoryError) as e:
                tk.zeros(2**48, device="cuda")
            assert "Tried to allocate 1048576.00 GiB. GPU 0" in str(e.value)
            assert "lies in this computer's" in str(e.value)
            assert tk.cuda.memory_allocated() == 0


def test_a_tensor_that_does_not_fit_leaves_the_books_and_the_ledger_as_they_were():
    with tk.cuda.simulate(total_memory=2**12), tk.cuda.record() as ledger:
        x = tk.ones(2**12)
        with pytest.raises(tk.cuda.OutOfMemoryError):
            x.cuda()
        assert (tk.cuda.memory_allocated(), tk.cuda.memory_reserved(), len(ledger)) == (0, 0, 0)
        assert x.device == tk.device("cpu")


def test_a_model_that_does_not_fit_stays_where_it_was():
    with tk.cuda.simulate(total_memory=2**13):
        net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(64, 64))
        before = [p.tolist() for p in net.parameters()]
        with pytest.raises(tk.cuda.OutOfMemoryError):
            net.cuda()
        assert {p.device.type for p in net.parameters()} == {"cpu"}
        assert [p.tolist() for p in net.parameters()] == before
        assert tk.cuda.memory_allocated() == 0


def test_an_operation_in_place_that_does_not_fit_changes_nothing():
    with tk.cuda.simulate(total_memory=2**12):
        x = tk.ones(512, device="cuda")
        with pytest.raises(tk.cuda.OutOfMemoryError):
            x.add_(tk.ones(512, device="cuda")[:, None].expand(512, 512).sum(0) + 1)
        assert x.sum().item() == 512
        assert x._version == 0


def _trained():
    """A network that was trained for a step where there is memory, and its optimizer."""
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).cuda()
    optimizer = tk.optim.Adam(net.parameters())
    net(tk.ones(1, 8, device="cuda")).sum().backward()
    return net, optimizer


def _left(units):
    """Tensors that leave so many units of memory."""
    free = (tk.cuda.mem_get_info()[1] - tk.cuda.memory_allocated()) // 512
    return [tk.zeros(1, device="cuda") for _ in range(free - units)]


def test_a_step_without_memory_for_its_state_changes_nothing():
    with tk.cuda.simulate(total_memory=2**14):
        net, optimizer = _trained()
        before = [p.tolist() for p in net.parameters()]
        full = _left(3)
        with pytest.raises(tk.cuda.OutOfMemoryError):
            optimizer.step()
        assert [p.tolist() for p in net.parameters()] == before
        assert not optimizer.state
        del full
        optimizer.step()
        assert {int(state["step"]) for state in optimizer.state.values()} == {1}


def test_a_state_that_does_not_fit_is_not_taken_over():
    with tk.cuda.simulate(total_memory=2**14):
        _net, optimizer = _trained()
        optimizer.step()
        saved = optimizer.state_dict()
        saved["state"] = {
            number: {name: x.cpu().clone() for name, x in state.items()}
            for number, state in saved["state"].items()
        }
        saved["param_groups"][0]["lr"] = 7.0
        steps = [state["exp_avg"] for state in optimizer.state.values()]
        full = _left(3)
        with pytest.raises(tk.cuda.OutOfMemoryError):
            optimizer.load_state_dict(saved)
        assert optimizer.param_groups[0]["lr"] == 1e-3
        for old, state in zip(steps, optimizer.state.values(), strict=True):
            assert state["exp_avg"] is old
        del full


def test_memory_is_given_back_when_the_last_tensor_on_it_goes():
    with tk.cuda.simulate():
        x = tk.zeros(1000, device="cuda")
        view = x[::2]
        assert tk.cuda.memory_allocated() == 4096
        del x
        assert tk.cuda.memory_allocated() == 4096
        del view
        assert tk.cuda.memory_allocated() == 0
        assert tk.cuda.memory_reserved() == 4096
        tk.cuda.empty_cache()
        assert tk.cuda.mem_get_info() == (16 * 2**30, 16 * 2**30)
        assert tk.cuda.max_memory_allocated() == 4096
        tk.cuda.reset_peak_memory_stats()
        assert tk.cuda.max_memory_allocated() == 0


def test_a_graph_is_given_back_without_the_garbage_collector():
    with tk.cuda.simulate():
        net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
        optimizer = tk.optim.Adam(net.parameters())
        x = tk.ones(4, 8, device="cuda")
        found = []
        gc.disable()
        try:
            for _ in range(4):
                optimizer.zero_grad()
                net(x).sum().backward()
                optimizer.step()
                found.append(tk.cuda.memory_allocated())
        finally:
            gc.enable()
        assert len(set(found[1:])) == 1


def test_what_a_graph_needs_outlives_the_names_of_its_tensors(gpu):
    x = tk.ones(1000, device="cuda", requires_grad=True)
    leaf, part = x, (x * 3)[10:20]
    result = (part.exp() * part).sum()
    del x, part
    result.backward()
    assert leaf.grad[10].item() == leaf.grad[19].item() == pytest.approx(12 * np.exp(3), rel=1e-5)
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second"):
        result.backward()


def test_what_an_error_left_on_the_way_is_given_back(gpu):
    def program():
        x = tk.ones(1000, device="cuda")
        y = x * 2
        return x.exp() @ y[:10]

    before = tk.cuda.memory_allocated()
    with pytest.raises(RuntimeError, match=r"inconsistent tensor size|not aligned"):
        program()
    gc.collect()  # pytest keeps the traceback in a cycle
    assert tk.cuda.memory_allocated() == before


@pytest.mark.parametrize("used", [lambda p: p * 3, lambda p: p * p, lambda p: p.softmax(0)])
@pytest.mark.parametrize(("there", "then"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_parameter_that_moved_before_its_gradient_came_is_told(gpu, used, there, then):
    net = nn.Linear(2, 2, bias=False).to(there)
    result = used(net.weight).sum()
    net.to(then)
    with pytest.raises(RuntimeError, match=r"^Expected all tensors to be on the same.*cuda") as e:
        result.backward()
    assert "was moved after it had been computed with" in str(e.value)
    assert net.weight.grad is None


# Files


def _saved_on(device, value=None):
    file = io.BytesIO()
    tk.save({"x": tk.ones(2, device=device) if value is None else value}, file)
    return io.BytesIO(file.getvalue())


def test_a_file_from_a_device_that_is_not_here_says_how_to_load_it():
    with tk.cuda.simulate():
        file = _saved_on("cuda:0")
    with without_cuda():
        with pytest.raises(RuntimeError) as e:
            tk.load(file)
        _, line = _first_line(lambda: torch.serialization._validate_device("cuda:0", "cuda"))
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


# Mixing devices

MIXED = {
    "add": lambda x, y: x + y,
    "matmul": lambda x, y: x @ y,
    "cat": lambda x, y: tk.cat([x, y]),
    "where": lambda x, y: tk.where(x > 0, x, y),
    "in place": lambda x, y: x.add_(y),
    "linear": lambda x, y: nn.functional.linear(x, y),
    "mse": lambda x, y: nn.functional.mse_loss(x, y),
    "stack": lambda x, y: tk.stack([x, y]),
    "gather": lambda x, y: tk.gather(x, 0, y.long()),
    "layer norm": lambda x, y: nn.functional.layer_norm(x, (2,), y[0]),
    "embedding": lambda x, y: nn.functional.embedding(x.long(), y),
    "isclose": tk.isclose,
    "equal": tk.equal,
    "einsum": lambda x, y: tk.einsum("ij,jk", x, y),
    "cross entropy": lambda x, y: nn.functional.cross_entropy(x, y[0].long()),
    "dropped into": lambda x, y: x.copy_(x * y),
    "solve": tk.linalg.solve,
    "filled through a mask": lambda x, y: x.masked_fill_(y > 0, 2.0),
    "scatter_": lambda x, y: x.scatter_(0, tk.zeros_like(x, dtype=tk.int64), y),
    "scattered by": lambda x, y: x.scatter_(0, y.long(), 2.0),
    "scatter_add_": lambda x, y: x.scatter_add_(0, tk.zeros_like(x, dtype=tk.int64), y),
    "index_add_": lambda x, y: x.index_add_(0, tk.arange(2, device=x.device), y),
    "bincount": lambda x, y: tk.bincount(x[0].long(), y[0]),
}


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("devices", [("cuda:0", "cpu"), ("cpu", "cuda:0")])
def test_tensors_of_two_devices_do_not_mix_and_the_repair_is_told(name, devices):
    with tk.cuda.simulate(), tk.cuda.record() as ledger:
        x, y = (tk.ones(2, 2, device=device) for device in devices)
        n_before = len(ledger)
        with pytest.raises(RuntimeError, match=r"^Expected all tensors to be on the same") as e:
            MIXED[name](x, y)
        assert all(device in str(e.value).split("\n")[0] for device in devices)
        assert "Try: x.to('" in str(e.value)
        assert not [each for each in ledger.records[n_before:] if each.kind == "transfer"]
        assert x.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(("devices", "stays"), [(("cuda:0", "cpu"), 0), (("cpu", "cuda:0"), 1)])
def test_the_repair_of_a_mix_leaves_nothing_on_the_cpu_and_says_what_moves(devices, stays):
    with tk.cuda.simulate():
        x, y = (tk.ones(2, 2, device=device) for device in devices)
        repair = f"Try: x.to('{devices[stays]}')    # x: the tensor on {devices[1 - stays]}"
        for run in (lambda: x + y, lambda: tk.stack([x, y]), lambda: nn.functional.linear(x, y)):
            with pytest.raises(RuntimeError) as e:
                run()
            assert str(e.value).endswith(repair)


def test_the_repair_of_a_write_leaves_what_is_written_to():
    with tk.cuda.simulate(), pytest.raises(RuntimeError, match=r"Try: x\.to\('cpu'\) "):
        tk.ones(2).add_(tk.ones(2, device="cuda"))


class _Astray(tk.autograd.Function):
    """Its gradient is on the CPU."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g.cpu()


def _hooked(x):
    y = x * 2
    y.register_hook(lambda g: g.cpu())
    y.sum().backward()


GRADIENT = "invalid gradient at index 0 - expected device cuda:0 but got "
ASTRAY = {
    "positions": (
        lambda x: tk.ones(3)[tk.tensor([0], device="cuda")],
        "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
    ),
    "written at positions": (
        lambda x: x.detach().__setitem__(tk.tensor([0, 1]), tk.ones(2)),
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and",
    ),
    "a gradient": (lambda x: (x * 2).backward(tk.ones(3)), GRADIENT + "cpu"),
    "a gradient for grad": (lambda x: tk.autograd.grad(x * 2, x, tk.ones(3)), GRADIENT + "cpu"),
    "a gradient of a function": (
        lambda x: _Astray.apply(x).sum().backward(),
        f"Function _AstrayBackward returned an {GRADIENT}cpu",
    ),
    "a gradient of a hook": (
        _hooked,
        "the gradient from hook '<lambda>' has device cpu, but the tensor has cuda:0",
    ),
    "a generator": (
        lambda x: tk.rand(3, device="cuda:0", generator=tk.Generator()),
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
}


@pytest.mark.parametrize("name", ASTRAY)
def test_what_is_on_another_device_is_refused_in_a_sentence(name):
    run, line = ASTRAY[name]
    with tk.cuda.simulate():
        x = tk.ones(3, device="cuda:0", requires_grad=True)
        with pytest.raises(RuntimeError, match=f"^{re.escape(line)}"):
            run(x)
        assert x.grad is None
        assert x.tolist() == [1, 1, 1]


def test_one_number_goes_to_where_it_is_written_or_a_gradient_is_needed():
    with tk.cuda.simulate():
        x = tk.zeros(3, device="cuda:0", requires_grad=True)
        (x * 2).sum().backward(tk.tensor(3.0))
        assert x.grad.tolist() == [6, 6, 6]
        x.grad[tk.tensor([0, 1])] = tk.ones(())
        x.grad[2] = tk.tensor(2.0)
        assert x.grad.tolist() == [1, 1, 2]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: x.masked_fill_(y > 0, 7.0),
        lambda x, y: x.masked_fill_(x > 0, y),
    ],
)
def test_a_number_of_the_cpu_that_is_written_to_stays_there(write):
    with tk.cuda.simulate():
        x = tk.tensor(1.0)
        with pytest.raises(RuntimeError, match=r"^Expected all tensors to be on the same device"):
            write(x, tk.tensor(2.0, device="cuda"))
        assert x.item() == 1


@pytest.mark.parametrize(("there", "here"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_a_tensor_is_filled_with_a_number_of_any_device(there, here):
    with tk.cuda.simulate():
        assert tk.zeros(2, device=here).fill_(tk.tensor(3.0, device=there)).tolist() == [3, 3]


def test_the_state_of_an_optimizer_whose_parameters_moved_says_how_it_follows():
    with tk.cuda.simulate():
        for there, back in (("cuda", "cpu"), ("cpu", "cuda")):
            net = nn.Linear(2, 2).to(back)
            optimizer = tk.optim.Adam(net.parameters())

            def step(device, net=net, optimizer=optimizer):
                net(tk.ones(1, 2, device=device)).sum().backward()
                optimizer.step()

            step(back)
            net.to(there)
            before = net.weight.tolist()
            with pytest.raises(RuntimeError, match=r"^Expected all tensors") as e:
                step(there)
            assert "Try: optimizer.load_state_dict(optimizer.state_dict())" in str(e.value)
            assert net.weight.tolist() == before
            optimizer.load_state_dict(optimizer.state_dict())
            step(there)
            assert optimizer.state[net.weight]["exp_avg"].device.type == there
            assert net.weight.tolist() != before


@pytest.mark.parametrize(
    "args", [("float32", "float64"), ("cpu", "cpu"), ("cpu", "float64", "cpu")]
)
def test_what_is_said_twice_is_refused(args):
    with pytest.raises(TypeError, match=r"^to\(\) takes one device and one dtype"):
        tk.ones(1).to(*(getattr(tk, each, each) for each in args))


def test_a_number_of_the_cpu_may_mix_and_its_transfer_is_told():
    with tk.cuda.simulate():
        x, number = tk.ones(2, device="cuda"), tk.tensor(2.0)
        with tk.cuda.record() as ledger:
            assert (x * number).is_cuda
            assert (number * x).is_cuda
        assert [each.name for each in ledger.transfers] == ["0-d tensor"] * 2


def test_a_copy_crosses_devices_only_where_it_is_asked_for():
    with tk.cuda.simulate():
        x, y = tk.zeros(2, device="cuda"), tk.ones(2)
        with tk.cuda.record() as ledger:
            x.copy_(y)
            y[:] = x * 2
        assert x.tolist() == [1, 1]
        assert y.tolist() == [2, 2]
        assert [(each.direction, each.bytes) for each in ledger.transfers] == [
            ("host to device", 8),
            ("device to host", 8),
        ]


def test_a_model_is_loaded_from_the_cpu_without_memory_on_the_way():
    with tk.cuda.simulate(total_memory=2**12):
        net = nn.Linear(16, 16).cuda()
        saved = nn.Linear(16, 16).state_dict()
        full = _left(0)
        with tk.cuda.record() as ledger:
            net.load_state_dict(saved)
        assert net.weight.tolist() == saved["weight"].tolist()
        assert [(each.name, each.bytes) for each in ledger] == [("copy_", 1024), ("copy_", 64)]
        del full


def test_a_copy_that_is_recorded_or_converts_gives_what_it_gives_on_the_cpu(gpu):
    y = tk.ones(2, requires_grad=True)
    for source in (y, tk.ones(2, dtype=tk.int64), tk.ones(1), tk.ones(2, 2)[:, 0]):
        x = tk.zeros(2, device="cuda")
        x.copy_(source)
        assert (x.tolist(), x._version) == ([1, 1], 1)
        assert x.requires_grad == source.requires_grad
    (tk.zeros(2, device="cuda").copy_(y) * 3).sum().backward()
    assert y.grad.tolist() == [3, 3]


def test_an_array_of_numpy_is_made_only_on_the_cpu(gpu):
    x = tk.ones(2, device="cuda")
    for run in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match=r"can't convert cuda:\d device type tensor.*cpu\(\)"):
            run()
    assert x.cpu().numpy().tolist() == x.numpy(force=True).tolist() == [1, 1]


def test_the_repair_of_a_mix_with_numpy_says_how_the_device_is_crossed(gpu):
    tensor, array = tk.ones(2, device="cuda"), np.ones(2, np.float32)
    with pytest.raises(TypeError) as caught:
        tensor + array
    for repair in str(caught.value).split("Try: ")[1].split(", or "):
        found = eval(repair, {"tk": tk, "tensor": tensor, "array": array})
        assert (found + (tensor if isinstance(found, tk.Tensor) else array)).tolist() == [2, 2]


def test_a_gradient_of_another_device_is_refused(gpu):
    x = tk.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="assigned grad has device cpu"):
        x.grad = tk.ones(2)


# What kernels find: the host learns of it when it next waits

FOUND_LATER = {
    "index": lambda x: x[tk.tensor([5], device="cuda")],
    "index_select": lambda x: x.index_select(0, tk.tensor([9], device="cuda")),
    "write": lambda x: x.index_add_(0, tk.tensor([3], device="cuda"), x[:1] + 1),
    "gather": lambda x: x.gather(0, tk.tensor([7], device="cuda")),
    "embedding": lambda x: nn.functional.embedding(tk.tensor([3], device="cuda"), x[:, None]),
    "class": lambda x: nn.functional.cross_entropy(x[None], tk.tensor([3], device="cuda")),
    "divisor": lambda x: x.long() // tk.zeros(3, dtype=tk.int64, device="cuda"),
    "probability": lambda x: nn.functional.binary_cross_entropy(x + 1, x),
    "one hot": lambda x: nn.functional.one_hot(x.long() + 4, 3),
}


@pytest.mark.parametrize("name", FOUND_LATER)
def test_a_kernel_that_finds_a_mistake_is_heard_at_the_next_wait(gpu, name):
    x = tk.ones(3, device="cuda")
    FOUND_LATER[name](x)
    with pytest.raises(RuntimeError, match=r"^CUDA error: device-side assert triggered\n"):
        tk.cuda.synchronize()
    tk.cuda.synchronize()  # once


# The ledger


def test_a_transfer_has_direction_bytes_and_the_line_that_asked_for_it(gpu):
    x = tk.ones(3, 4)
    with tk.cuda.record() as ledger:
        line = sys._getframe().f_lineno + 1
        y = x.cuda()
        y.double().cpu()
    there, back = ledger.transfers
    assert (there.name, there.direction, there.bytes) == ("to", "host to device", 48)
    assert there.line == (__file__, line)
    assert (back.name, back.direction, back.bytes) == ("to", "device to host", 96)
    assert back.line == (__file__, line + 1)


WAITS = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "print": lambda x: str(x),
    "if": lambda x: bool(x[0]),
    "int": lambda x: int(x[0]),
    "float": lambda x: float(x[0]),
    "index": lambda x: [7, 8][x[0].long()],
    "in": lambda x: 1 in x,
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero(),
    "equal": lambda x: tk.equal(x, x),
    "allclose": lambda x: tk.allclose(x, x),
    "unique": lambda x: x.unique(),
    "one_hot": lambda x: nn.functional.one_hot(x.long()),
    "synchronize": lambda x: tk.cuda.synchronize(),
}


@pytest.mark.parametrize("name", WAITS)
def test_whoever_makes_the_host_wait_is_named(gpu, name):
    if gpu != "simulated" and name in ("mask", "nonzero", "unique"):
        pytest.skip("CuPy waits inside of these, which the library does not see")
    x = tk.ones(2, device="cuda")
    with tk.cuda.record() as ledger:
        WAITS[name](x)
    assert {each.name for each in ledger.synchronisations} == {name}
    assert {each.line[0] for each in ledger} == {__file__}


def test_what_waits_for_nothing_is_not_noted_as_waiting():
    with tk.cuda.simulate():
        x = tk.ones(2, 3, device="cuda")
        with tk.cuda.record() as ledger:
            y = (x @ x.t() + 1).relu()[:, 0].sum()
            assert y.shape == ()
            assert y.device.type == "cuda"
            assert ((x**y) ** (y / y)).shape == x.shape
        assert ledger.launches
        assert not ledger.synchronisations
        assert not ledger.transfers


def test_ledgers_nest_and_note_only_their_block():
    with tk.cuda.simulate():
        with tk.cuda.record() as outer:
            tk.ones(1).cuda()
            with tk.cuda.record() as inner:
                tk.ones(1).cuda()
        tk.ones(1).cuda()
    assert (len(outer.transfers), len(inner.transfers)) == (2, 1)


# Exchange with other libraries


STRAY = {
    "an array beside an operator": lambda xp, x: x + np.ones(2),
    "an array before an operator": lambda xp, x: np.ones(2) * x,
    "an array": lambda xp, x: xp.add(x, np.ones(2)),
    "an array among others": lambda xp, x: xp.concatenate([x, np.ones(2)]),
    "an array to choose from": lambda xp, x: xp.where(x > 0, x, np.ones(2)),
    "an array that is written": lambda xp, x: operator.setitem(x, slice(None), np.ones(2)),
    "positions": lambda xp, x: x[np.array([0])],
    "a list": lambda xp, x: xp.add(x, [1.0, 2.0]),
    "a list that is written": lambda xp, x: operator.setitem(x, slice(None), [1.0, 2.0]),
    "a list of positions": lambda xp, x: x[[0, 1]],
    "a list of positions to take": lambda xp, x: x.take([0, 1]),
    "a list that is turned into an array": lambda xp, x: xp.asarray([1.0]),
}


@pytest.mark.parametrize("stray", STRAY)
def test_a_simulated_device_refuses_what_lies_on_the_host(stray):
    with tk.cuda.simulate():
        x = tk.ones(2, device="cuda")._array
        with pytest.raises(TypeError):
            STRAY[stray](tk.device("cuda:0").backend.xp, x)


def test_memory_is_shared_with_cupy_without_a_copy(gpu):
    if gpu == "simulated":
        pytest.skip("only a GPU has memory to share")
    cupy = pytest.importorskip("cupy", reason="needs CuPy: pip install cupy-cuda12x")

    x = tk.arange(6.0).cuda().view(2, 3).t()
    array = cupy.arange(4)
    back = tk.as_tensor(array)
    assert back.data_ptr() == array.data.ptr
    assert back.device == x.device
    back[0] = 7
    assert array.tolist() == [7, 1, 2, 3]


# Random numbers


def test_random_numbers_are_drawn_on_the_host_and_sent(gpu):
    with pytest.raises(NotImplementedError, match=r"draw on the CPU.*\n\nTry: tk.Generator\(\)"):
        tk.Generator("cuda")
    with tk.cuda.record() as ledger:
        tk.rand(3, device="cuda")
        nn.functional.dropout(tk.ones(5, device="cuda"))
    assert [(each.name, each.bytes) for each in ledger.transfers] == [
        ("uniform", 12),
        ("bernoulli", 20),
    ]


# Where things are


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
        itself = " itself" if found is x else ""
        dtype = str(found.dtype).removeprefix("torch.")
        assert f"{found.device} {dtype}{itself}" == PLACES[name]
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


# That it is simulated


def test_a_simulated_device_says_so_and_ends_with_its_block():
    before = tk.cuda.is_available()
    with tk.cuda.simulate() as simulation:
        assert tk.cuda.is_available()
        assert tk.cuda.is_simulated()
        assert "Simulated" in tk.cuda.get_device_name()
        assert "Simulated" in repr(tk.cuda.get_device_properties(0))
        assert "Simulated" in repr(simulation)
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


NAMES = (
    "is_available device_count current_device set_device get_device_name get_device_properties "
    "memory_allocated max_memory_allocated reset_peak_memory_stats memory_reserved empty_cache "
    "synchronize mem_get_info Event manual_seed OutOfMemoryError"
)


def test_the_names_are_pytorchs():
    assert not [name for name in NAMES.split() if not hasattr(tk.cuda, name)]
    assert not [name for name in NAMES.split() if not hasattr(torch.cuda, name)]
    with tk.cuda.simulate():
        for name in ("name", "total_memory", "multi_processor_count", "major", "minor"):
            assert hasattr(tk.cuda.get_device_properties(0), name)


def test_what_of_cuda_is_missing_is_refused_with_what_there_is():
    for run, advice in (
        (lambda: tk.cuda.memory_stats, "use memory_allocated and memory_reserved instead"),
        (lambda: tk.cuda.Stream, "leave it out: there is one CUDA device, which has one stream"),
        (lambda: tk.set_float32_matmul_precision, "leave it out: float32 products are computed in"),
        (lambda: tk.cuda.amp, "there is no autocast"),
        (lambda: tk.ones(1).pin_memory(), "leave it out: all CPU memory is alike"),
    ):
        with pytest.raises(AttributeError, match=advice):
            run()


def test_settings_of_other_libraries_can_be_made_and_change_nothing():
    for m in (torch, tk):
        assert m.backends.cudnn.enabled
        assert not m.backends.cudnn.deterministic
        assert not m.backends.cuda.matmul.allow_tf32
    tk.backends.cudnn.benchmark = tk.backends.cuda.matmul.allow_tf32 = True
    tk.backends.cudnn.benchmark = tk.backends.cuda.matmul.allow_tf32 = False
    assert not tk.backends.cudnn.is_available()
    assert not tk.backends.mps.is_available()


def test_programs_that_name_no_cuda_find_it_as_the_accelerator():
    with without_cuda():
        assert tk.accelerator.current_accelerator() is None
        assert not tk.accelerator.is_available()
    with tk.cuda.simulate():
        device = tk.accelerator.current_accelerator()
        assert str(device) == device.type == "cuda"
        assert tk.ones(1, device=device).is_cuda
        for name in ("device_count", "synchronize", "empty_cache", "memory_allocated"):
            assert hasattr(torch.accelerator, name)
            assert hasattr(tk.accelerator, name)


def test_events_measure_the_time_of_the_model_which_is_the_same_each_time():
    found = []
    for _ in range(2):
        with tk.cuda.simulate():
            start, end = (tk.cuda.Event(enable_timing=True) for _ in range(2))
            x = tk.ones(1000, device="cuda")
            start.record()
            (x * 2).sum()
            end.record()
            assert not end.query()
            tk.cuda.synchronize()
            assert end.query()
            found.append(start.elapsed_time(end))
    assert found[0] == found[1] > 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        tk.cuda.Event().elapsed_time(end)


@pytest.fixture
def events():
    """Two events of a simulated device, before and after work that it has not done yet."""
    with tk.cuda.simulate():
        start, end = (tk.cuda.Event(enable_timing=True) for _ in range(2))
        x = tk.ones(10**6, device="cuda")
        start.record()
        x * 2
        end.record()
        yield start, end


def test_the_time_between_events_is_refused_while_the_device_is_at_work(events):
    start, end = events
    with pytest.raises(RuntimeError, match=r"^Both events must be completed before"):
        start.elapsed_time(end)


def test_who_asks_an_event_on_and_on_is_answered(events):
    assert any(events[1].query() for _ in range(1000))


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
