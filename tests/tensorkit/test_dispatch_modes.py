"""Modes see every operation; ``explain.dispatch`` says what ran."""

import itertools

import numpy as np
import pytest

import tensorkit as tk
from tensorkit import explain, overrides, viz
from tensorkit.nn import functional as F


class Log(tk.utils.DispatchMode):
    """Notes the name of every operation."""

    def __init__(self):
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def _scope():
    with tk.library.scope(), tk.cuda.simulate():
        yield


def _train(model, x, y, steps=2):
    optimizer = tk.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return [p.detach().cpu().numpy() for p in model.parameters()]


def _network(device):
    tk.manual_seed(0)
    model = tk.nn.Sequential(
        tk.nn.Linear(4, 8), tk.nn.LayerNorm(8), tk.nn.GELU(), tk.nn.Linear(8, 3)
    ).to(device)
    return model, tk.randn(6, 4).to(device), tk.tensor([0, 1, 2, 0, 1, 2]).to(device)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_mode_that_passes_everything_on_changes_no_number(device):
    expected = _train(*_network(device))
    with Log() as log:
        got = _train(*_network(device))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
    assert {"addmm", "nll_loss", "mm", "add_", "step", "randn", "zero_"} <= set(log.names)


SEEN = {
    "add": lambda x: x + 1,
    "add_": lambda x: x.add_(1),
    "mul_": lambda x: x.__imul__(2),
    "getitem": lambda x: x[0],
    "setitem": lambda x: x.__setitem__(0, 1),
    "clone": lambda x: x.clone(),
    "to": lambda x: x.double(),
    "cat": lambda x: tk.cat([x, x]),
    "where": lambda x: tk.where(tk.ones(1, dtype=tk.bool), x, 0),
    "permute": lambda x: x.T,
    "view": lambda x: x.reshape(4),
    "detach": lambda x: x.detach(),
    "zeros": lambda x: tk.zeros(2),
    "rand": lambda x: tk.rand(2),
    "max": lambda x: x.max(),
    "copy_": lambda x: x.copy_(tk.zeros(2, 2)),
    "split": lambda x: x.split(1),
    "uniform_": lambda x: x.uniform_(),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_mode_sees(name):
    x = tk.ones(2, 2)
    with Log() as log:
        SEEN[name](x)
    assert name in log.names


@pytest.mark.parametrize("target", ["cuda", tk.float64])
def test_a_mode_sees_a_gradient_that_is_sent_or_cast_back(target):
    x = tk.ones(2, requires_grad=True)
    with Log() as log:
        x.to(target).sum().backward()
    assert log.names.count("to") == 2


def test_a_mode_is_called_below_autograd_with_what_the_caller_gave():
    seen = []

    class Look(tk.utils.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            seen.append((types, args, kwargs, result.grad_fn))
            return result

    x = tk.ones(2, requires_grad=True)
    with Look():
        y = tk.sum(x, dim=0)
    ((types, args, kwargs, node),) = seen
    assert types == ()
    assert args[0] is x
    assert kwargs == {"dim": 0}
    assert node is None
    assert y.grad_fn.name() == "SumBackward1"


def test_what_a_mode_gives_back_gets_the_history():
    class Double(tk.utils.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func.__name__ == "exp" else result

    x = tk.zeros(2, requires_grad=True)
    with Double():
        y = x.exp()
    y.sum().backward()
    assert y.tolist() == [2, 2]
    assert x.grad.tolist() == [2, 2]  # the formula of exp is g * out


def test_of_modes_inside_of_one_another_the_innermost_is_called_first():
    order = []

    class Named(tk.utils.DispatchMode):
        def __init__(self, name):
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    with Named("outer"), Named("inner"):
        tk.ones(2).exp()
    assert order == ["inner", "outer"] * 2


def test_an_error_leaves_no_mode_behind():
    class Broken(tk.utils.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"), Broken():
        tk.ones(2).exp()
    assert tk.ones(1).exp().item() == pytest.approx(np.e)


@pytest.mark.parametrize("answer", [None, 1.0, "x"])
def test_a_mode_gives_a_tensor(answer):
    class Wrong(tk.utils.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return answer

    x = tk.ones(2)
    with pytest.raises(TypeError, match=r"Wrong gives .*, no Tensor, for exp"), Wrong():
        x.exp()


def test_a_mode_without_the_method_says_what_to_write():
    x = tk.ones(2)
    words = "def __torch_dispatch__"
    with pytest.raises(NotImplementedError, match=words), tk.utils.DispatchMode():
        x.exp()


def test_the_look_up_of_another_dispatches_forward_and_backward():
    asked = []

    def find_kernel(kernels, operation, device):
        asked.append((operation, device))
        return kernels.get(device, kernels["default"])

    expected = _train(*_network("cpu"))
    with overrides.override("find_kernel", find_kernel):
        got = _train(*_network("cpu"))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
    assert {("addmm", "cpu"), ("nll_loss_backward", "cpu")} <= set(asked)


# explain.dispatch

DEVICES, DTYPES = ("cpu", "cuda"), (tk.float32, tk.int64)
GRADS, MODES = ("grad", "no_grad", "none"), (0, 1, 2)


@pytest.mark.parametrize(
    ("device", "dtype", "grad", "n_modes"), [*itertools.product(DEVICES, DTYPES, GRADS, MODES)]
)
def test_what_is_explained_is_what_ran(device, dtype, grad, n_modes):
    ran = []

    def kernel(x, y, **options):
        ran.append((x.dtype, x.device.type))
        return tk.add(x.cpu(), y.cpu()).to(device)

    x = tk.ones(2, 3, device=device, requires_grad=grad != "none")
    y = tk.ones(3, dtype=dtype, device=device)
    logs = [Log() for _ in range(n_modes)]
    tk.library.register_kernel(tk.add, "cuda", kernel)
    for log in logs:
        log.__enter__()
    try:
        with tk.no_grad() if grad == "no_grad" else tk.enable_grad():
            result = x + y
            before = [list(log.names) for log in logs]
            (route,) = explain.dispatch(tk.add, x, y).routes
    finally:
        for log in reversed(logs):
            log.__exit__()
    passed = {layer.name: layer.is_passed for layer in route.layers}
    reason = {layer.name: layer.reason for layer in route.layers}
    assert list(passed) == ["autograd", "modes", "promotion", "device"]
    assert passed["autograd"] == result.requires_grad == (grad == "grad")
    assert passed["modes"] == bool(n_modes)
    assert all(names == ["add"] for names in before)
    assert reason["modes"].count("Log") == n_modes
    assert passed["promotion"]
    assert ("int64 become float32" in reason["promotion"]) == (dtype is tk.int64)
    assert reason["device"].startswith(device)
    if device == "cuda":
        assert route.kernel == "kernel(), registered by you"
        assert ran == [(tk.float32, "cuda")] * 2  # for the call, and for the explanation
    else:
        assert route.kernel == "numpy.add"
        assert not ran


def test_a_mode_that_the_explained_function_turns_on_is_a_layer_of_its_calls():
    def logged(x):
        with Log():
            return x.mul(x).sum()

    routes = explain.dispatch(logged, tk.ones(3)).routes
    assert [route.operation for route in routes] == ["mul", "sum"]
    assert all({layer.name: layer.is_passed for layer in route.layers}["modes"] for route in routes)


def test_a_mode_that_answers_by_itself_ends_in_no_kernel():
    class Cache(tk.utils.DispatchMode):
        answers = True

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.answers = not self.answers
            return func(*args) if self.answers else args[0]

    x = tk.ones(2)
    with Cache():
        route, passed_on = explain.dispatch(lambda x: (x.exp(), x.exp()), x).routes
    assert route.kernel.startswith("no kernel")
    assert [layer.name for layer in route.layers] == ["autograd", "modes"]
    assert passed_on.kernel == "numpy.exp"


def test_a_number_has_no_dtype_of_its_own_in_the_explanation():
    assert "float32 and the number 2 become float32" in str(explain.dispatch(tk.mul, tk.ones(2), 2))


def test_a_custom_operation_is_explained():
    cube = tk.library.custom_op("mine::cube", lambda x: x**3, mutates_args=())
    (route,) = explain.dispatch(cube, tk.ones(2)).routes
    assert route.operation == "cube"
    assert route.kernel.endswith("registered by you")


def test_a_module_is_explained_operation_by_operation():
    found = explain.dispatch(tk.nn.Linear(3, 2), tk.ones(4, 3))
    assert [route.operation for route in found.routes] == ["t", "addmm"]
    assert "addmm" in viz.dispatch(tk.nn.Linear(3, 2), tk.ones(4, 3)).alt


def test_a_function_without_a_table_of_kernels_is_refused():
    with pytest.raises(NotImplementedError, match="clone calls no operation"):
        explain.dispatch(tk.clone, tk.ones(2))
    assert (tk.ones(2) + 1).tolist() == [2, 2]
