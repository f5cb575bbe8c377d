"""How a call finds its kernel: the table, kernels and operations of the user's."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import tensorkit as tk
from tensorkit import overrides
from tensorkit.nn import functional as F


@pytest.fixture(autouse=True)
def _scope():
    with tk.library.scope(), tk.cuda.simulate():
        yield


def _spy(op, device, compute):
    """Register ``compute`` for ``op``, and give the list of what it is called with."""
    calls = []

    def kernel(*args, **options):
        calls.append((args, options))
        return compute(*args, **options)

    tk.library.register_kernel(op, device, kernel)
    return calls


def test_a_registered_kernel_computes_on_its_device_and_nowhere_else():
    calls = _spy(tk.relu, "cuda", lambda x: tk.full_like(x, 7))
    assert tk.relu(tk.ones(2, device="cuda")).tolist() == [7, 7]
    assert tk.ones(2, device="cuda").relu().tolist() == [7, 7]
    assert tk.relu(tk.ones(2)).tolist() == [1, 1]
    assert len(calls) == 2


@pytest.mark.parametrize("device", ["cpu", "cuda", None])
def test_all_forms_of_an_operation_end_in_its_kernel(device):
    calls = _spy(tk.add, device, lambda x, y, **_: x - y)
    x, y = (tk.full((2, 3), n, device=device or "cuda") for n in (5.0, 3.0))
    results = [x + y, tk.add(x, y), x.add(y), x.clone().add_(y)]
    z = x.clone()
    z += y
    assert all((each == 2).all() for each in [*results, z])
    assert len(calls) == 5


def test_a_kernel_gets_contiguous_operands_of_one_shape_and_dtype():
    calls = _spy(tk.mul, "cuda", lambda x, y: tk.where(x > y, x, y))
    x = tk.ones(3, 2, device="cuda").t()
    _ = x * tk.ones(2, 1, dtype=tk.int64, device="cuda")
    (a, b), _ = calls[0]
    assert a.shape == b.shape == (2, 3)
    assert a.dtype is b.dtype is tk.float32
    assert a.is_contiguous()
    assert b.is_contiguous()


def test_a_kernel_gets_numbers_and_options_as_they_were_given():
    calls = _spy(tk.sum, "cpu", lambda x, **options: tk.zeros(2))
    others = _spy(tk.mul, "cpu", lambda x, y: y if isinstance(y, tk.Tensor) else x.clone())
    tk.ones(2, 3).sum(1)
    tk.ones(2) * 2.5
    assert calls[0][1] == {"dim": 1, "keepdim": False, "dtype": None}
    assert others[0][0][1] == 2.5
    assert type(others[0][0][1]) is float


def test_what_a_kernel_calls_is_not_recorded_and_its_result_is():
    seen = []
    tk.library.register_kernel(tk.relu, "cpu", lambda x: seen.append((x * 2).grad_fn) or x * 2)
    x = tk.tensor([-1.0, 2.0], requires_grad=True)
    y = tk.relu(x)
    assert seen == [None]
    assert y.grad_fn.name() == "ReluBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]  # the formula sees the result: [-2, 4]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_gradient_formulas_use_registered_kernels(device):
    calls = _spy(tk.mul, device, lambda x, y: x + 0)
    x = tk.tensor([3.0], device=device, requires_grad=True)
    x.pow(2).sum().backward()
    assert calls


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_training_with_a_registered_kernel_gives_the_same_numbers(device):
    def train():
        tk.manual_seed(0)
        model = tk.nn.Sequential(tk.nn.Linear(4, 8), tk.nn.ReLU(), tk.nn.Linear(8, 3)).to(device)
        optimizer = tk.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x, y = tk.randn(6, 4).to(device), tk.tensor([0, 1, 2, 0, 1, 2]).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        return [p.detach().cpu().numpy() for p in model.parameters()]

    expected = train()
    calls = _spy(tk.relu, device, lambda x: tk.where(x > 0, x, 0.0))
    for got, want in zip(train(), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    assert len(calls) == 3


IN_PLACE = {
    "x *= y": (tk.mul, lambda x: x.__imul__(tk.full_like(x, 2))),
    "x /= 2.0": (tk.div, lambda x: x.__itruediv__(2.0)),
    "x.add_(1.0)": (tk.add, lambda x: x.add_(1.0)),
    "x.exp_()": (tk.exp, lambda x: x.exp_()),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("registered", ["own", None])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_registered_kernel_computes_the_form_in_place_too(device, registered, name):
    op, change = IN_PLACE[name]
    calls = _spy(op, device if registered else None, lambda x, *_, **__: tk.full_like(x, 7))
    x = tk.ones(2, device=device)
    assert change(x) is x
    assert x.tolist() == [7, 7]
    assert len(calls) == 1


def test_scope_ends_what_was_registered_inside():
    with tk.library.scope():
        tk.library.register_kernel(tk.relu, "cpu", lambda x: x * 100)
        tk.library.register_kernel(tk.relu, "cpu", lambda x: x * 200)
        tk.register_device("mine", lambda: None)
        assert tk.relu(tk.tensor(1.0)).item() == 200
    assert tk.relu(tk.tensor(1.0)).item() == 1
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        tk.device("mine")


@pytest.mark.parametrize(
    ("op", "device", "error", "words"),
    [
        (tk.matmul, "cpu", TypeError, "matmul is no operation with kernels"),
        ("relu", "cpu", TypeError, "str is no operation"),
        (tk.t, "cpu", NotImplementedError, "t is a view"),
        (tk.relu, "gpu", RuntimeError, "Expected one of cpu, cuda"),
        (tk.relu, "cuda:0", TypeError, "for one kind of device"),
    ],
)
def test_register_kernel_refuses(op, device, error, words):
    with pytest.raises(error, match=words):
        tk.library.register_kernel(op, device, lambda x: x)


def test_a_kernel_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="A kernel is a function"):
        tk.library.register_kernel(tk.relu, "cpu", 3)


@pytest.mark.parametrize(
    ("kernel", "error", "words"),
    [
        (lambda x: None, TypeError, "a kernel of relu, returned NoneType, not a Tensor"),
        (lambda x: x, RuntimeError, "returned one of its inputs"),
        (lambda x: x.view(1, 2).view(2), RuntimeError, "or a view of it"),
        (lambda x: x.cpu(), RuntimeError, "Expected all tensors to be on the same device"),
    ],
)
def test_a_kernel_returns_a_new_tensor_on_its_device(kernel, error, words):
    tk.library.register_kernel(tk.relu, "cuda", kernel)
    with pytest.raises(error, match=words):
        tk.relu(tk.ones(2, device="cuda"))


@pytest.mark.parametrize(
    ("op", "kernel", "words"),
    [
        (tk.relu, lambda x: x.double(), r"float32 with shape \(2, 3\).*float64 of shape \(2, 3\)"),
        (tk.relu, lambda x: x.flatten() + 0, r"float32 with shape \(2, 3\).*shape \(6,\)"),
        (tk.sum, lambda x, **_: x + 0, r"float32 with ndim 0.*shape \(2, 3\)"),
        (tk.isnan, lambda x: x * 0, "bool with shape .*float32"),
    ],
)
def test_a_kernel_gives_the_dtype_and_the_shape_that_its_operation_gives(op, kernel, words):
    tk.library.register_kernel(op, "cuda", kernel)
    with pytest.raises(TypeError, match=words):
        op(tk.ones(2, 3, device="cuda"))


def test_sizes_of_results_that_are_not_element_by_element_are_the_kernels_matter():
    tk.library.register_kernel(tk.topk, "cuda", lambda x, **options: (x[:2] + 0, x[:2].long()))
    assert tk.topk(tk.arange(3.0, device="cuda"), 2).values.tolist() == [0, 1]


def test_an_error_of_a_kernel_passes_as_it_is():
    def kernel(x):
        raise ValueError("mine")

    tk.library.register_kernel(tk.relu, "cpu", kernel)
    with pytest.raises(ValueError, match=r"^mine$"):
        tk.relu(tk.ones(2))


# Operations of the user's


def _cube(**options):
    return tk.library.custom_op("mine::cube", lambda x, n=3: x**n, mutates_args=(), **options)


def _by_name_only(x, *, n=3):
    return x**n


def _first():
    return tk.library.custom_op("mine::first", lambda x: x[0], mutates_args=())


def test_a_custom_operation_is_refused_by_name_where_it_has_no_kernel():
    cube = _cube(device_types="cpu")
    assert cube(tk.tensor(2.0)).item() == 8
    with pytest.raises(NotImplementedError) as caught:
        cube(tk.ones(2, device="cuda"))
    assert "Could not run 'mine::cube' with arguments from the 'CUDA' backend" in str(caught.value)
    assert 'tk.library.register_kernel(cube, "cuda", f)' in str(caught.value)
    cube.register_kernel("cuda")(lambda x, n: x * 0)
    assert cube(tk.ones(2, device="cuda")).tolist() == [0, 0]


def test_a_kernel_for_a_device_comes_before_the_default():
    cube = _cube()
    tk.library.register_kernel(cube, "cuda", lambda x, n: x + n)
    assert cube(tk.tensor(2.0), n=2).item() == 4
    assert cube(tk.tensor(2.0, device="cuda"), n=2).item() == 4
    assert cube(tk.tensor(3.0, device="cuda")).item() == 6


def test_a_custom_operation_with_its_gradient_passes_gradcheck():
    cube = _cube()
    tk.library.register_autograd(
        cube,
        lambda ctx, g: (g * ctx.n * ctx.saved_tensors[0] ** (ctx.n - 1), None),
        setup_context=lambda ctx, inputs, output: (
            ctx.save_for_backward(inputs[0]),
            setattr(ctx, "n", inputs[1]),
        ),
    )
    x = tk.tensor([0.5, 2.0], dtype=tk.float64, requires_grad=True)
    assert tk.autograd.gradcheck(lambda x: cube(x, 2), x)
    assert tk.autograd.gradcheck(cube, x)


def test_a_kernel_may_compute_with_numpy_on_what_requires_grad():
    op = tk.library.custom_op("mine::c", lambda x: tk.from_numpy(x.numpy() + 1), mutates_args=())
    assert op(tk.ones(2, requires_grad=True)).tolist() == [2, 2]


def test_backward_through_a_custom_operation_without_a_formula_is_refused():
    y = _cube()(tk.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="mine::cube but no autograd formula was registered"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: tk.library.custom_op("cube", abs, mutates_args=()), ValueError, "mine::cube"),
        (
            lambda: tk.library.custom_op("a::b", abs, mutates_args=("x",)),
            NotImplementedError,
            "returns new tensors",
        ),
        (lambda: _cube(device_types=("cpu", "cuda")), TypeError, "for one kind of device"),
        (
            lambda: tk.library.custom_op("a::b", _by_name_only, mutates_args=()),
            NotImplementedError,
            "keyword-only",
        ),
        (lambda: tk.library.register_autograd(tk.relu, abs), TypeError, "not relu"),
        (lambda: _cube()(), TypeError, "mine::cube.*missing"),
        (lambda: _first()(tk.ones(2, 3)), RuntimeError, "or a view of it"),  # as in PyTorch
    ],
)
def test_custom_operations_refuse(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "relu"])
def test_a_gradient_of_the_users_is_used_with_default_options_too(name):
    operation = getattr(tk, name)
    x = tk.tensor([2.0, 3.0], requires_grad=True)
    with overrides.override_gradient(operation, input=lambda g, input: input * 0 + 7):
        result = operation(x)
        result.backward(tk.ones_like(result))
    assert x.grad.tolist() == [7, 7]
    (own,) = tk.autograd.grad(operation(x).sum(), x)
    assert own.tolist() != [7, 7]


def test_a_function_that_switches_recording_off_itself_is_told_as_one():
    a = tk.ones(2, requires_grad=True)
    (route,) = tk.explain.dispatch(tk.no_grad()(tk.mul), a, 2).routes
    assert route.layers[0].reason == "made inside no_grad"


@pytest.mark.parametrize("name", ["softmax", "cumsum", "unsqueeze", "topk"])
def test_a_forgotten_option_is_named(name):
    with pytest.raises(TypeError, match=r"missing a required argument: '(dim|k)'"):
        getattr(tk.ones(2, 2), name)()


def test_the_repair_for_two_dtypes_is_the_wider_one():
    whole, half, single = tk.ones(2, 2, dtype=tk.int64), tk.ones(2, 2).half(), tk.ones(2, 2)
    for a, b, repair in (
        (whole, single, "input.to(tk.float32)"),
        (half, single, "input.to(tk.float32)"),
        (single, half, "mat2.to(tk.float32)"),
    ):
        with pytest.raises(RuntimeError, match=re.escape(repair)):
            a @ b


def test_overrides_that_end_in_another_order_leave_nothing_behind():
    first = overrides.override("broadcast_shapes", lambda a, b: (2,))
    second = overrides.override("broadcast_shapes", lambda a, b: (3,))
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert (tk.ones(1) + 1).shape == (3,)
    second.__exit__()
    assert (tk.ones(1) + 1).shape == (1,)


def test_overrides_of_two_attributes_that_end_in_another_order_restore_both():
    owner = SimpleNamespace(a=1, b=2)
    first, second = overrides.replaced(owner, a=10), overrides.replaced(owner, b=20)
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert (owner.a, owner.b) == (1, 20)
    second.__exit__()
    assert (owner.a, owner.b) == (1, 2)
