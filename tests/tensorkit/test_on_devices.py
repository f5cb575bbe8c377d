"""What holds on every device: cpu, simulated and, where there is one, cuda (make test-gpu).

The CPU is the oracle: values, dtypes, strides, printed text and gradients are those that the same
program has there. On the simulated device the ledger says that nothing moved unasked.
"""

import numpy as np
import pytest
from cases import BINARY, MATRIX, UNARY

import tensorkit as tk
from tensorkit.devices import cuda

CASES = {
    **{("unary", name): (run, 1) for name, run in UNARY.items()},
    **{("binary", name): (run, 2) for name, run in BINARY.items()},
    **{("matrix", name): (run, run.__code__.co_argcount - 1) for name, run in MATRIX.items()},
}
LAYOUTS = {"contiguous": lambda x: x, "transposed": lambda x: x.t(), "sliced": lambda x: x[:, ::2]}
# These choose how much to compute by looking at values, on any device.
LOOKS = ("inv", "solve", "prod")
# What sends data when a program says so: data given as lists, numbers drawn on the host.
ASKED = ("index", "tensor", "0-d tensor", "arange")


@pytest.fixture(params=["simulated", "cuda"])
def gpu(request):
    """A CUDA device for the test: simulated, and the real one where there is one."""
    if request.param == "simulated":
        with tk.cuda.simulate():
            yield request.param
        return
    before = cuda.use(None)
    try:
        if not tk.cuda.is_available() or tk.cuda.is_simulated():
            pytest.skip("there is no CUDA device: make test-gpu runs this where there is one")
        yield request.param
    finally:
        cuda.use(before)


def _values(place, dtype):
    values = np.linspace(-1.63, 2.05, 12).reshape(3, 4)[::-1] * (1 + 0.037 * place) + 0.011
    return tk.from_numpy(values.astype(dtype))


def _run(run, n_inputs, layout, dtype, device):
    """Result and gradients, and the ledger of what happened in between."""
    with tk.device(device):
        leaves = [
            LAYOUTS[layout](_values(place, dtype).to(device)).detach().requires_grad_()
            for place in range(n_inputs)
        ]
        seed = None
        with tk.cuda.record() as ledger:
            result = run(tk, *leaves)
            if result.is_floating_point() and result.requires_grad:
                seed = tk.full_like(result, 0.5)
                result.backward(seed)
    return result, [leaf.grad for leaf in leaves], ledger


def _agree(ours, theirs, rtol):
    if theirs is None:
        assert ours is None
        return
    assert (ours.shape, ours.dtype, ours.stride()) == (theirs.shape, theirs.dtype, theirs.stride())
    np.testing.assert_allclose(
        ours.detach().cpu().numpy(), theirs.detach().numpy(), rtol=rtol, atol=rtol
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_operation_gives_there_what_it_gives_on_the_cpu(gpu, kind, name, layout):
    run, n_inputs = CASES[kind, name]
    if kind == "matrix" and layout == "sliced":
        layout = "contiguous"
    for dtype, rtol in (("float64", 1e-12), ("float32", 2e-6)):
        try:
            expected, slopes, _ = _run(run, n_inputs, layout, dtype, "cpu")
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue  # not of these shapes
        result, gradients, ledger = _run(run, n_inputs, layout, dtype, "cuda")
        _agree(result, expected, rtol)
        for ours, theirs in zip(gradients, slopes, strict=True):
            _agree(ours, theirs, rtol)
        if gpu == "simulated":
            # it is as long as the line, but for the breaks before what stands at its end
            text = repr(result).replace(", device='cuda:0'", "").replace("device='cuda:0', ", "")
            assert text.split() == repr(expected).split()
            looks = ["if"] if any(each in name for each in LOOKS) else []
            unasked = [each for each in ledger.transfers if each.name not in [*ASKED, *looks]]
            assert not unasked, f"{name}: {unasked} {[each.line for each in unasked]}"
