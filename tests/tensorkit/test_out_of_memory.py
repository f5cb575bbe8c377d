"""Where memory runs out nothing is half changed: every allocation of a call fails once.

From the first, second, ... allocation on a simulated device has no memory. What the call would
change is then as it was: values, versions, state, the books of the devices, the random numbers.
"""

import gc
import weakref

import pytest

import tensorkit as tk
from tensorkit import nn
from tensorkit.base import TensorBase
from tensorkit.cuda import simulated

HALF, SINGLE = tk.float16, tk.float32
OPTIMIZERS = {
    "SGD": lambda params: tk.optim.SGD(params, 0.1),
    "momentum": lambda params: tk.optim.SGD(params, 0.1, momentum=0.9, weight_decay=0.1),
    "Adam": lambda params: tk.optim.Adam(params, 0.1, weight_decay=0.1),
    "AdamW": lambda params: tk.optim.AdamW(params, 0.1),
}


def _parameters(dtype):
    """On the device and the CPU, of several sizes and layouts, with gradients."""
    shapes = [((3, 4), "cuda"), ((5,), "cpu"), ((6,), "cuda"), ((), "cuda"), ((2, 2), "cuda")]
    params = [tk.randn(shape, dtype=dtype, device=device) for shape, device in shapes]
    params.append(tk.randn(4, 6, dtype=dtype, device="cuda").t()[::2])
    for param in params:
        param.requires_grad_().grad = tk.randn_like(param)
    return params


def _stepping(name, steps):
    def program(dtype):
        params = _parameters(dtype)
        optimizer = OPTIMIZERS[name](params)
        for _ in range(steps):
            optimizer.step()
        return [params, optimizer], optimizer.step

    return program


def _model(device, dtype):
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)).to(device, dtype)
    for param in net.parameters():
        param.grad = tk.ones_like(param)
    return net


def _with_model(change, device="cuda"):
    def program(dtype):
        net = _model(device, dtype)
        return net, lambda: change(net)

    return program


def _loading(dtype):
    net, saved = _model("cuda", dtype), _model("cpu", tk.float64).state_dict()
    return net, lambda: net.load_state_dict(saved)


def _loading_optimizer(dtype):
    (things, _), ((_, other), _) = (_stepping("Adam", 1)(dtype) for _ in range(2))
    return things, lambda: things[1].load_state_dict(other.state_dict())


def _views(name):
    def program(dtype):
        x = tk.randn(3, 4, dtype=dtype, device="cuda")
        params = [x[:2].detach().requires_grad_(), x.detach().requires_grad_()]
        for param in params:
            param.grad = tk.randn_like(param)
        optimizer = OPTIMIZERS[name](params)
        return [params, optimizer], optimizer.step

    return program


def _in_place(change):
    def program(dtype):
        x, y = (tk.randn(3, 4, dtype=dtype, device="cuda") for _ in range(2))
        return [x, y], lambda: change(x, y)

    return program


PROGRAMS = {
    **{f"{name}, step {n + 1}": _stepping(name, n) for name in OPTIMIZERS for n in (0, 2)},
    **{f"{name}, views": _views(name) for name in OPTIMIZERS},
    "cuda": _with_model(lambda net: net.cuda(), "cpu"),
    "double": _with_model(lambda net: net.to(tk.float64)),
    "load_state_dict": _loading,
    "load_state_dict of an optimizer": _loading_optimizer,
    **{
        name: _in_place(change)
        for name, change in {
            "add_": lambda x, y: x.add_(y, alpha=2),
            "add_ of another dtype": lambda x, y: x.add_(y.int()),
            "mul_ by a number of the host": lambda x, y: x.mul_(tk.tensor(2.0)),
            "an operation in another layout": lambda x, y: x.t().sub_(y.t().contiguous()),
            "copy_": lambda x, y: x.copy_(y.cpu().double()),
            "a mask": lambda x, y: x.__setitem__(y > 0, y[y > 0]),
            "positions": lambda x, y: x.__setitem__([0, 1], y[:2]),
            "index_add_": lambda x, y: x.index_add_(0, tk.tensor([0, 0], device="cuda"), y[:2]),
            "scatter_": lambda x, y: x.scatter_(0, (y > 0).long(), y),
            "normal_": lambda x, y: x.normal_(),
            "uniform_": lambda x, y: x.uniform_(-1, 1),
            "randperm": lambda x, y: tk.randperm(5, device="cuda"),
            "dropout": lambda x, y: nn.functional.dropout(x),
            "dropout in place": lambda x, y: nn.functional.dropout(x, inplace=True),
        }.items()
    },
}


def _seen(thing):
    """All that can be told of tensors, models and optimizers, to be compared."""
    if isinstance(thing, TensorBase):
        values = thing.detach().cpu()._array.tobytes()
        told = thing.device, thing.dtype, thing.shape, thing.stride(), thing._version
        return values, *told, thing.grad if thing.grad is None else _seen(thing.grad)
    if isinstance(thing, nn.Module):
        return _seen(dict(thing.named_parameters()))
    if isinstance(thing, tk.optim.Optimizer):
        return _seen(thing.state_dict())
    if isinstance(thing, dict):
        return {name: _seen(each) for name, each in thing.items()}
    return [_seen(each) for each in thing] if isinstance(thing, (list, tuple)) else thing


def _books():
    tk.cuda.synchronize()  # until then a question to a kernel keeps its answer's memory
    return tk.cuda.memory_allocated()


def _source():
    """Where the default generator stands."""
    source = tk.default_generator
    stream = source._stream().state["state"]
    return stream["key"].tobytes(), stream["pos"], repr(source._spare_normal)


@pytest.mark.parametrize("dtype", [SINGLE, HALF], ids=["float32", "float16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_without_memory_changes_nothing(monkeypatch, name, dtype):
    asked, fails_from = 0, None
    allocate = simulated.Pool.allocate

    def limited(pool, size):
        nonlocal asked
        asked += 1
        return None if fails_from is not None and asked >= fails_from else allocate(pool, size)

    monkeypatch.setattr(simulated.Pool, "allocate", limited)
    for n_before in range(100):
        tk.manual_seed(0)
        with tk.cuda.simulate():
            things, call = PROGRAMS[name](dtype)
            before, books, source = _seen(things), _books(), _source()
            asked, fails_from = 0, n_before + 1
            try:
                call()
            except tk.cuda.OutOfMemoryError:
                fails_from = None
            else:
                fails_from = None
                assert asked == n_before  # there was enough
                return
            assert _seen(things) == before
            assert _books() == books
            if "dropout" not in name:  # it draws before it asks for the memory of its result
                assert _source() == source
    raise AssertionError("it never had enough")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_known_of_a_float16_operation_keeps_no_tensor(device):
    with tk.cuda.simulate():
        x, y = (tk.ones(7, 11, dtype=tk.float16, device=device) for _ in range(2))
        arrays = [weakref.ref(each._array) for each in (x, y)]
        x.add_(y)
        _ = x * 3, x.exp(), x + y.int()
        del x, y
        gc.collect()
        assert [array() for array in arrays] == [None, None]


def test_an_operation_in_place_takes_one_launch_and_no_memory():
    with tk.cuda.simulate():
        x, y = tk.ones(3, 4, device="cuda"), tk.ones(3, 4, device="cuda")
        scale = tk.tensor(0.5, device="cuda")
        for change in (lambda: x.add_(y), lambda: x.mul_(scale)):
            tk.cuda.reset_peak_memory_stats()
            with tk.cuda.record() as ledger:
                change()
            assert len(ledger.launches) == 1
            assert tk.cuda.max_memory_allocated() == tk.cuda.memory_allocated()
