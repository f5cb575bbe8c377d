"""What a device must agree on with the CPU, and what it may be asked to move meanwhile."""

import re

import numpy as np

import tensorkit as tk
from tensorkit.base import TensorBase

# What sends data when a program says so: data given as lists, numbers drawn on the host.
ASKED = ("index", "tensor", "0-d tensor", "arange", "uniform", "random")


def agree(actual, expected, rtol):
    """The same values, dtypes, shapes, strides of views, also within lists, tuples and dicts."""
    if isinstance(expected, TensorBase):
        assert _kind(actual) == _kind(expected)
        np.testing.assert_allclose(
            actual.detach().cpu().numpy(), expected.detach().numpy(), rtol=rtol, atol=rtol
        )
        agree(
            actual.grad if actual.is_leaf else None,
            expected.grad if expected.is_leaf else None,
            rtol,
        )
    elif isinstance(expected, (list, tuple)):
        assert type(actual) is type(expected)
        assert len(actual) == len(expected)
        for each, other in zip(actual, expected, strict=True):
            agree(each, other, rtol)
    elif isinstance(expected, dict):
        agree([*actual.items()], [*expected.items()], rtol)
    elif isinstance(expected, float):
        np.testing.assert_allclose(actual, expected, rtol=rtol)
    else:
        assert actual == expected


def _kind(x):
    # a view has the strides of its base; other results lie as the array library lays them
    steps = [step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1]
    steps = steps if x._is_view() and x.numel() else None
    return type(x), x.shape, x.dtype, steps, x.requires_grad, x.is_leaf


def words(text):
    """Printed text without the device: the line breaks before what stands at its end move."""
    return re.sub(r",\s+device='cuda:\d'", "", text).split()


def unasked(ledger, *also):
    """The transfers and waits of a block that its program did not ask for, with their lines."""
    found = [*ledger.transfers, *ledger.synchronisations]
    return [(each, each.line) for each in found if each.name not in (*ASKED, *also)]


def on_both(program):
    """What ``program(device)`` prepares and then computes, on the CPU and on a CUDA device.

    ``program`` gives a function; what that gives is compared, and only it is recorded.
    """
    tk.manual_seed(0)
    expected = program("cpu")()
    tk.manual_seed(0)
    run = program("cuda")
    with tk.cuda.record() as ledger:
        found = run()
    return expected, found, ledger
