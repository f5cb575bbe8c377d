"""Tensors of two devices do not mix; what may cross from one to the other, and how."""

import re

import numpy as np
import pytest

import tensorkit as tk
from tensorkit import nn

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
