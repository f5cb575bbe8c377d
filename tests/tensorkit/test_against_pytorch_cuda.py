"""On a GPU: results and gradients are PyTorch's there. Skipped where either has none.

Strides are not compared: CuPy lays results row by row (docs/cuda.md).

Tried out on the stand-in for CuPy, it compares with PyTorch on the CPU.
"""

import os
import warnings

import numpy as np
import pytest
from cases import BINARY, MATRIX, UNARY
from function_cases import CASES, leaves_of
from tk_oracle import torch

import tensorkit as tk
from tensorkit.cuda import cupy_backend

with warnings.catch_warnings(action="ignore"):  # of a driver that is too old for this PyTorch
    sees_gpu = torch.cuda.is_available()
TORCH_DEVICE = "cuda" if sees_gpu else "cpu" if "GPU_STAND_IN" in os.environ else None
if cupy_backend.missing() or not TORCH_DEVICE:
    pytest.skip("no GPU that CuPy and PyTorch can use", allow_module_level=True)

DEVICE = "cuda"
PROGRAMS = {
    **{("function", name): case for name, case in CASES.items()},
    **{("unary", name): ([(3, 4)], run) for name, run in UNARY.items()},
    **{("binary", name): ([(3, 4)] * 2, run) for name, run in BINARY.items()},
    **{
        ("matrix", name): ([(3, 4)] * (run.__code__.co_argcount - 1), run)
        for name, run in MATRIX.items()
    },
}
TOLERANCE = {"float64": 1e-9, "float32": 5e-5}


def _run(m, device, shapes, run, dtype):
    """Result and gradients on the host; the class of the error where there is one."""
    leaves = [x.detach().to(device).requires_grad_() for x in leaves_of(m, shapes, dtype)]
    m.set_default_device(device)
    try:
        result = run(m, *leaves)
        if result.requires_grad:
            result.backward(m.full_like(result, 0.5))
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return type(error)
    finally:
        m.set_default_device("cpu")
    return result, [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("program", PROGRAMS, ids=" ".join)
def test_a_program_gives_on_a_gpu_what_pytorch_gives_there(program, dtype):
    shapes, run = PROGRAMS[program]
    expected = _run(torch, TORCH_DEVICE, shapes, run, dtype)
    actual = _run(tk, DEVICE, shapes, run, dtype)
    if isinstance(expected, type):
        assert issubclass(actual, expected)
        return
    for own, other in zip([actual[0], *actual[1]], [expected[0], *expected[1]], strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            np.testing.assert_allclose(
                own.detach().cpu().numpy(),
                other.detach().cpu().numpy(),
                rtol=TOLERANCE[dtype],
                atol=TOLERANCE[dtype],
            )
