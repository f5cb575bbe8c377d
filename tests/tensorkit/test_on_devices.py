"""What holds on every device: cpu, simulated and, where there is one, cuda (make test-gpu).

The CPU is the oracle: values, dtypes, strides, printed text and gradients are those that the same
program has there. On the simulated device the ledger says that nothing moved unasked.
"""

import numpy as np
import pytest
from cases import BINARY, MATRIX, UNARY
from function_cases import CASES as FUNCTIONS
from function_cases import leaves_of
from on_devices import agree, unasked, words

import tensorkit as tk
from tensorkit.cuda.cupy_backend import missing

CASES = {
    **{("unary", name): (run, 1) for name, run in UNARY.items()},
    **{("binary", name): (run, 2) for name, run in BINARY.items()},
    **{("matrix", name): (run, run.__code__.co_argcount - 1) for name, run in MATRIX.items()},
}
LAYOUTS = {"contiguous": lambda x: x, "transposed": lambda x: x.t(), "sliced": lambda x: x[:, ::2]}
# What the host waits for where a size or a choice depends on values: the operations' names
LOOKS = {"if": ("inv", "solve", "prod"), "mask": ("mask",)}


INTEGERS = ("int64", "uint8")


def _values(place, dtype):
    values = np.linspace(-1.63, 2.05, 12).reshape(3, 4)[::-1] * (1 + 0.037 * place) + 0.011
    return tk.from_numpy(values.astype(dtype))


def _record(run, leaves, device):
    """Result and gradients, and the ledger of what happened in between."""
    with tk.device(device), tk.cuda.record() as ledger:
        result = run(tk, *leaves)
        if result.is_floating_point() and result.requires_grad:
            result.backward(tk.full_like(result, 0.5))
    return result, [leaf.grad for leaf in leaves], ledger


def _compare(run, leaves_on, rtol, looks=()):
    expected, slopes, _ = _record(run, leaves_on("cpu"), "cpu")
    result, gradients, ledger = _record(run, leaves_on("cuda"), "cuda")
    rtol *= 1 if tk.cuda.is_simulated() else 10  # a GPU has functions and orders of its own
    agree([result, *gradients], [expected, *slopes], rtol)
    if tk.cuda.is_simulated():
        assert words(repr(result)) == words(repr(expected))
        assert not unasked(ledger, *looks)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_operation_gives_there_what_it_gives_on_the_cpu(gpu, kind, name, layout):
    run, n_inputs = CASES[kind, name]
    if kind == "matrix" and layout == "sliced":
        layout = "contiguous"
    for dtype, rtol in (("float64", 1e-12), ("float32", 2e-6)):

        def leaves_on(device, dtype=dtype):
            given = [_values(place, dtype).to(device) for place in range(n_inputs)]
            return [LAYOUTS[layout](x).detach().requires_grad_() for x in given]

        try:
            run(tk, *leaves_on("cpu"))
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue  # not of these shapes
        looks = [reason for reason, names in LOOKS.items() if any(each in name for each in names)]
        _compare(run, leaves_on, rtol, looks)


@pytest.mark.parametrize("dtype", ["float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_operation_computes_there_with_other_dtypes_too(gpu, kind, name, dtype):
    run, n_inputs = CASES[kind, name]
    if (name, dtype) in {(each, kind) for each in ("remainder", "div floor") for kind in INTEGERS}:
        return  # the CPU refuses these divisors at once

    def leaves_on(device):
        values = [_values(place, "float64").numpy() for place in range(n_inputs)]
        if dtype in INTEGERS:
            values = [np.abs(each * 3) for each in values]
        return [tk.from_numpy(each.astype(dtype)).t().to(device) for each in values]

    try:
        run(tk, *leaves_on("cpu"))
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        with pytest.raises(type(error)), tk.device("cuda"):
            run(tk, *leaves_on("cuda"))
        return
    looks = [reason for reason, names in LOOKS.items() if any(each in name for each in names)]
    _compare(run, leaves_on, 0 if tk.cuda.is_simulated() else 2e-3, looks)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_layer_and_loss_gives_there_what_it_gives_on_the_cpu(gpu, name):
    shapes, run = FUNCTIONS[name]
    for dtype, rtol in (("float64", 1e-12), ("float32", 2e-6)):

        def leaves_on(device, dtype=dtype):
            return [x.detach().to(device).requires_grad_() for x in leaves_of(tk, shapes, dtype)]

        _compare(run, leaves_on, rtol)


def test_the_gradient_of_a_remainder_of_integers_has_the_infinities_of_the_cpu(gpu):
    def gradient(device):
        y = tk.tensor([-0.3, 1.4, 0.0, 2.0, 0.0], dtype=tk.float64, device=device)
        y.requires_grad_()
        tk.remainder(tk.tensor([0, 1, 3, -1, -3], device=device), y).sum().backward()
        return y.grad

    assert words(repr(gradient("cuda"))) == words(repr(gradient("cpu")))


@pytest.mark.parametrize("view", [lambda x: x.expand(1, 2, 2), tk.Tensor.diagonal])
@pytest.mark.parametrize("write", [lambda x: x.mul_(2), lambda x: x.fill_(3), tk.Tensor.relu_])
def test_a_view_that_numpy_takes_for_read_only_can_be_written_to(gpu, write, view):
    def written(device):
        x = tk.tensor([[1.0, -2.0], [3.0, -4.0]], device=device)
        write(view(x))
        return x

    agree(written("cuda"), written("cpu"), 0)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_number_is_written_through_a_mask_without_waiting(gpu, dtype, rows):
    def written(device):
        x = _values(0, "float32").to(getattr(tk, dtype)).contiguous().to(device)
        mask = x[:, 0] > 0 if rows else x > 0
        with tk.cuda.record() as ledger:
            x[mask] = 7
        return x, [*ledger.transfers, *ledger.synchronisations]

    (found, moved), (expected, _) = written("cuda"), written("cpu")
    agree(found, expected, 0)
    assert not moved


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_sign_of_zero_passes_a_relu(dtype):
    with tk.cuda.simulate():  # of two zeros a GPU takes the one that it likes
        for device in ("cpu", "cuda"):
            x = tk.tensor([-1.0, -0.0, 0.0], dtype=getattr(tk, dtype), device=device)
            assert [str(each) for each in tk.relu(x).tolist()] == ["0.0", "-0.0", "0.0"]


def test_a_gpu_is_tested_where_there_is_one():
    if reason := missing():
        pytest.skip(f"{reason} These tests ran on the simulated device (make test-gpu)")
