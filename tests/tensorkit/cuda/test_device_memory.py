"""Memory of a device: what happens where it runs out, and when it is given back."""

import gc

import numpy as np
import pytest

import tensorkit as tk
from tensorkit import nn


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
    free = (tk.cuda.get_device_properties().total_memory - tk.cuda.memory_allocated()) // 512
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
        assert tk.cuda.memory_reserved() == 0
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
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
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
