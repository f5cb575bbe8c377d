"""Programs on every device: modules, optimizers, loaders, files, derivatives, random numbers.

As in test_on_devices the CPU is the oracle, and what the program did not ask for is not moved.
"""

import io
import re

import pytest
from on_devices import agree, on_both, unasked, words
from second_order import gradgradcheck

import tensorkit as tk
from tensorkit import nn

OPTIMIZERS = {
    "sgd": lambda p: tk.optim.SGD(p, lr=0.1),
    "sgd decay": lambda p: tk.optim.SGD(p, lr=0.01, weight_decay=0.01),
    "momentum": lambda p: tk.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: tk.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "adamw": lambda p: tk.optim.AdamW(p, lr=0.01),
}
MODULES = {
    "linear": lambda: nn.Linear(4, 3),
    "linear without bias": lambda: nn.Linear(4, 3, bias=False),
    "layer norm": lambda: nn.LayerNorm(4),
    "flatten": lambda: nn.Flatten(0),
    "dropout": lambda: nn.Dropout(0.4),
    "dropout in place": lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.4, inplace=True)),
    "dropout all": lambda: nn.Dropout(1.0),
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "relu": nn.ReLU,
    "leaky relu": lambda: nn.LeakyReLU(0.2),
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "softmax": lambda: nn.Softmax(1),
    "list": lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)),
}


def _net():
    return nn.Sequential(
        nn.Linear(5, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 3)
    )


def _holds(program, rtol=2e-6, asked=(), to_the_digit=True):
    """``program`` gives on the CUDA device what it gives on the CPU, and moves nothing unasked."""
    expected, found, ledger = on_both(program)
    # a GPU has functions and orders of its own
    agree(found, expected, rtol if tk.cuda.is_simulated() else max(rtol, 2e-5))
    if tk.cuda.is_simulated():
        texts = [words(repr(value)) for value in (found, expected)]
        if not to_the_digit:  # the numbers were compared; here is what stands around them
            texts = [[re.sub(r"[-+]?\d[\d.e+-]*", "#", word) for word in text] for text in texts]
        assert texts[0] == texts[1]
        assert not unasked(ledger, *asked)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_gives_there_what_it_gives_on_the_cpu(gpu, name):
    def program(device):
        module = MODULES[name]().to(device)
        x = tk.randn(3, 4).to(device).requires_grad_()

        def run():
            result = module(x)
            # to a power that leaves something: a sum of squares of normalised rows has no slope
            (result**3 if name == "layer norm" else result * result).sum().backward()
            return result, x, module.state_dict(), [*module.parameters()]

        return run

    _holds(program)


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_trains_there_as_on_the_cpu(gpu, name, large):
    def program(device):
        net = (nn.Linear(5, 4000) if large else _net()).to(device)
        optimizer = OPTIMIZERS[name](net.parameters())
        x, y = tk.randn(16, 5).to(device), tk.randint(0, 3, (16,)).to(device)

        def run():
            for _ in range(3):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(x), y)
                loss.backward()
                optimizer.step()
            return loss, net.state_dict(), optimizer.state_dict()

        return run

    _holds(program, to_the_digit=False)  # the host adds few numbers in another order


def test_the_state_of_an_optimizer_follows_its_parameters(gpu):
    x = tk.ones(3, device="cuda", requires_grad=True)
    for make in OPTIMIZERS.values():
        optimizer = make([x])
        (x * x).sum().backward()
        optimizer.step()
        for name, state in optimizer.state[x].items():
            assert state.device == (tk.device("cpu") if name == "step" else x.device), name


def test_a_state_that_was_saved_on_the_cpu_goes_to_the_device_of_its_parameter(gpu):
    x = tk.ones(3, requires_grad=True)
    optimizer = OPTIMIZERS["adam"]([x])
    x.sum().backward()
    optimizer.step()
    y = tk.ones(3, device="cuda", requires_grad=True)
    other = OPTIMIZERS["adam"]([y])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[y]["exp_avg"].device == y.device
    assert other.state[y]["step"].device == tk.device("cpu")
    y.sum().backward()
    other.step()


def test_a_state_that_was_loaded_to_the_device_is_stepped_without_waiting(gpu):
    x = tk.ones(3, device="cuda", requires_grad=True)
    optimizer = OPTIMIZERS["adam"]([x])
    x.sum().backward()
    optimizer.step()
    file = io.BytesIO()
    tk.save(optimizer.state_dict(), file)
    file.seek(0)
    optimizer.load_state_dict(tk.load(file, map_location="cuda"))
    with tk.cuda.record() as ledger:
        optimizer.step()
    assert not [*ledger.transfers, *ledger.synchronisations]


def test_a_module_that_is_moved_takes_parameters_and_gradients_with_it(gpu):
    net = _net()
    net.mean = nn.Parameter(tk.zeros(2), requires_grad=False)
    net(tk.ones(2, 5)).sum().backward()
    before = [*net.parameters()]
    assert net.cuda() is net
    params = [*net.parameters()]
    tensors = [*params, *(p.grad for p in params if p.grad is not None)]
    assert {x.device for x in tensors} == {tk.empty(0).cuda().device}
    assert all(old is new for old, new in zip(before, net.parameters(), strict=True))
    assert {p.device for p in net.cpu().parameters()} == {tk.device("cpu")}


def test_a_loader_gives_batches_that_the_program_sends(gpu):
    def program(device):
        data = tk.utils.data.TensorDataset(tk.arange(10.0), tk.arange(10))
        loader = tk.utils.data.DataLoader(data, batch_size=4, shuffle=True)
        return lambda: [(x.to(device), y.to(device)) for x, y in loader]

    _holds(program, asked=["to"])


def test_a_loader_of_data_on_the_device_gives_batches_there(gpu):
    def program(device):
        data = tk.utils.data.TensorDataset(tk.arange(10.0).to(device), tk.arange(10).to(device))
        loader = tk.utils.data.DataLoader(data, batch_size=4, shuffle=True)
        parts = tk.utils.data.random_split(data, [7, 3])
        return lambda: ([*loader], parts[1][0])

    _holds(program)


def test_what_is_saved_there_comes_back_there_or_where_map_location_says(gpu):
    net = _net().cuda()
    optimizer = OPTIMIZERS["adam"](net.parameters())
    net(tk.ones(2, 5, device="cuda")).sum().backward()
    optimizer.step()
    flat = tk.arange(6.0).cuda()
    saved = {"net": net.state_dict(), "state": optimizer.state_dict(), "t": flat.view(2, 3).t()}
    file = io.BytesIO()
    tk.save(saved, file)

    def load(where):
        return tk.load(io.BytesIO(file.getvalue()), map_location=where)

    here = str(flat.device)
    for where, device in [(None, here), ("cpu", "cpu")]:
        again = load(where)
        assert again["t"].device == tk.device(device)
        assert {x.device for x in again["net"].values()} == {tk.device(device)}
        agree(
            {name: x.cpu() for name, x in again["net"].items()},
            {name: x.cpu() for name, x in saved["net"].items()},
            0,
        )
        assert again["t"].stride() == (1, 3)
    assert again["state"]["state"][0]["step"].device == tk.device("cpu")


@pytest.mark.parametrize("dtype", ["float16", "int64", "uint8"])
@pytest.mark.parametrize(
    "shapes", [((40, 70), (70, 30)), ((2, 40, 70), (2, 70, 30)), ((70,), (70,))]
)
def test_products_of_halves_and_integers_are_there_what_they_are_on_the_cpu(gpu, dtype, shapes):
    def program(device):
        x, y = (tk.randn(shape).mul(8).to(getattr(tk, dtype)).to(device) for shape in shapes)
        return lambda: x @ y

    # float16 shows three digits; on a GPU sums are added in another order
    _holds(program, 2e-3 if dtype == "float16" else 0)


# What a GPU does by kernels of its own; see test_kernels for their arithmetic
ROWS = {
    "softmax": lambda x, dim: tk.softmax(x, dim),
    "log softmax": lambda x, dim: tk.log_softmax(x * 9, dim),
    "layer norm": lambda x, dim: nn.functional.layer_norm(
        x.transpose(dim, -1), x.shape[dim : dim + 1], x.transpose(dim, -1)[0, 0].detach()
    ),
    "cross entropy": lambda x, dim: nn.functional.cross_entropy(
        x.transpose(dim, -1)[0], tk.arange(x.transpose(dim, -1).shape[1], device=x.device) % 5
    ),
}


@pytest.mark.parametrize("length", [5, 31, 33, 257, 3000])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_any_length_along_any_dimension_give_there_what_they_give_on_the_cpu(
    gpu, name, dim, length
):
    def program(device):
        shape = [3, 4, 2]
        shape[dim] = length
        x = tk.randn(shape).to(device).requires_grad_()
        slopes = tk.randn(24 * length).to(device)

        def run():
            result = ROWS[name](x, dim)
            result.backward(slopes[: result.numel()].view(result.shape))
            return result, x

        return run

    _holds(program, 2e-5, to_the_digit=False)  # long sums are made in another order


LAYOUTS = {
    "as it is": lambda x: x,
    "turned": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "a part": lambda x: tk.cat([x, x], 2)[:, :, : x.shape[2]],
    "one for all": lambda x: x[:1].expand(x.shape),
    "neither": lambda x: tk.stack([x, x], 3)[..., 0],
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_products_in_pairs_are_there_what_they_are_on_the_cpu_however_they_lie(
    gpu, left, right, dtype
):
    def program(device):
        x, y = (
            tk.randn(shape).to(getattr(tk, dtype)).to(device)
            for shape in ((5, 33, 70), (5, 70, 17))
        )
        return lambda: (LAYOUTS[left](x) @ LAYOUTS[right](y), LAYOUTS[left](x)[1] @ y[2])

    _holds(program, {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12}[dtype])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_many_parameters_are_changed_there_as_on_the_cpu(gpu, name):
    def program(device):
        shapes = [(2, 3), (), (0,), (5000,), (7,)] * 40
        leaves = [tk.randn(shape).to(device).requires_grad_() for shape in shapes]
        optimizer = OPTIMIZERS[name](leaves)
        for x in leaves:
            x.grad = x.detach().cos()

        def run():
            for _ in range(3):
                optimizer.step()
            return leaves

        return run

    _holds(program)


def _cubes(x, y):
    return (x * x * x).sum() + (x.sin() * y).sum()


DERIVATIVES = {
    "jacobian": lambda f, x, y: f.jacobian(lambda x, y: x * y + x.exp(), (x, y)),
    "hessian": lambda f, x, y: f.hessian(_cubes, (x, y)),
    "hvp": lambda f, x, y: f.hvp(_cubes, (x, y), (y, x)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_derivative_of_a_function_is_there_what_it_is_on_the_cpu(gpu, name):
    def program(device):
        x, y = tk.randn(2, 3).to(device), tk.randn(2, 3).to(device)
        return lambda: DERIVATIVES[name](tk.autograd.functional, x, y)

    _holds(program)


def test_finite_differences_confirm_derivatives_there(gpu):
    x, y = (tk.randn(2, 3, dtype=tk.float64).cuda().requires_grad_() for _ in range(2))
    assert tk.autograd.gradcheck(lambda x, y: (x * y).sin(), (x, y))
    assert gradgradcheck(lambda x, y: (x * y).sin(), (x, y))
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0"):
        tk.autograd.gradcheck(lambda x: x * x.detach(), x)


@pytest.mark.parametrize(("dtype", "equal_nan"), [("float32", 0), ("float32", 1), ("int64", 0)])
def test_closeness_is_there_what_it_is_on_the_cpu(gpu, dtype, equal_nan):
    def program(device):
        kind = getattr(tk, dtype)
        x = tk.tensor([1, 2, 3, 4], device=device).to(kind)
        y = tk.tensor([1, 2, 3, 5], device=device).to(kind)
        if kind is tk.float32:
            x[2] = y[2] = float("nan")
            y[1] = 2.00001
        return lambda: (
            tk.isclose(x, y, equal_nan=bool(equal_nan)),
            tk.isclose(x[:, None], y),
            tk.allclose(x[:2], y[:2]),
            tk.equal(x, y),
        )

    _holds(program, asked=["allclose", "equal"])


@pytest.mark.parametrize(
    "name",
    ["uniform_", "normal_", "ones_", "zeros_"],
)
def test_first_values_are_there_what_they_are_on_the_cpu(gpu, name):
    _holds(
        lambda device: lambda: getattr(nn.init, name)(tk.empty(5, 7, device=device)),
        asked=["uniform", "normal"],
    )


RANDOM = {
    "rand": lambda device: tk.rand(2, 3, device=device),
    "randn": lambda device: tk.randn(20, device=device),
    "randint": lambda device: tk.randint(0, 9, (4,), device=device),
    "randperm": lambda device: tk.randperm(7, device=device),
    "rand_like": lambda device: tk.rand_like(tk.empty(3, device=device)),
    "linear": lambda device: nn.Linear(3, 2, device=device).weight.detach(),
}


@pytest.mark.parametrize("name", RANDOM)
def test_a_seed_gives_there_the_numbers_that_it_gives_on_the_cpu(gpu, name):
    def program(device):
        return lambda: [RANDOM[name](device) for _ in range(2)][1]  # also of a known call

    expected, found, _ = on_both(program)
    assert found.is_cuda
    agree(found, expected, 1e-6)
