"""The printed text against PyTorch's, character for character."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import outcome, torch, twins

import tensorkit as tk

options = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 6),
        "threshold": st.sampled_from([0, 5, 20]),
        "edgeitems": st.integers(0, 3),
        "linewidth": st.sampled_from([20, 40, 80, 120]),
        "sci_mode": st.sampled_from([True, False, None]),
        "profile": st.sampled_from(["default", "short", "full", None]),
    },
)


@given(x=twins())
def test_repr_is_pytorchs(x):
    assert repr(x.tk) == repr(x.torch)
    assert str(x.tk) == str(x.torch)
    assert f"{x.tk}" == f"{x.torch}"


@given(x=twins(), chosen=options)
def test_print_options_have_pytorchs_effect(x, chosen):
    try:
        torch.set_printoptions(**chosen)
        tk.set_printoptions(**chosen)
        assert repr(x.tk) == repr(x.torch)
    finally:
        torch.set_printoptions(profile="default")
        tk.set_printoptions(profile="default")


@pytest.mark.parametrize(
    "shape", [(1001,), (2000, 2), (7, 200), (10, 11, 12), (2, 3, 400), (1, 1001)]
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "float64"])
def test_large_tensors_are_shortened_as_in_pytorch(shape, dtype):
    count = torch.Size(shape).numel()
    expected = torch.arange(count, dtype=getattr(torch, dtype)).reshape(shape) / 3
    actual = tk.from_numpy(expected.numpy())
    assert repr(actual) == repr(expected)


@pytest.mark.parametrize(
    "values",
    [
        [1e-5],
        [1e8, 1.0],
        [1e9],
        [1.0, 1e3],
        [1.0, 1001.0],
        [0.1, 200.0],
        [float("nan"), float("inf"), -float("inf")],
        [float("nan"), 1.5],
        [0.0, -0.0],
        [0.5, float("inf")],
        [3.0, float("-inf")],
        [1e-40, 1.0],
        [],
    ],
)
def test_formats_at_their_borders(values):
    assert repr(tk.tensor(values)) == repr(torch.tensor(values))
    assert repr(tk.tensor([values])) == repr(torch.tensor([values]))


def test_the_dtype_is_shown_unless_it_is_the_default():
    tk.set_default_dtype(tk.float64)
    assert repr(tk.tensor([0.5])) == "tensor([0.5000])"
    assert repr(tk.tensor([0.5], dtype=tk.float32)) == "tensor([0.5000], dtype=torch.float32)"


@given(x=twins(max_dims=1), spec=st.sampled_from(["", ".4f", "8.2e", "d", ">9"]))
def test_formatting_is_pytorchs(x, spec):
    expected, actual = outcome(lambda: format(x.torch, spec)), outcome(lambda: format(x.tk, spec))
    assert actual[0] == expected[0]
    assert actual[-1] == expected[-1]


@pytest.mark.parametrize("magnitude", [1e-30, 1e-5, 1e-3, 1.0, 1e4, 1e7, 1e9, 1e30])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_special_values_among_numbers_of_any_size_print_as_in_pytorch(magnitude, dtype):
    draw = np.random.default_rng(3)
    values = (draw.standard_normal((4, 9)) * magnitude).round(2 if magnitude == 1 else 40)
    values[1, ::4], values[2, ::3], values[3, 5:] = np.nan, np.inf, -np.inf
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    for part in (values, values[:1], values[0].reshape(3, 3, 1), values[:, :0]):
        assert repr(tk.from_numpy(part)) == repr(torch.from_numpy(part))


def test_a_single_number_has_no_edges():
    for library in (torch, tk):
        library.set_printoptions(edgeitems=0, threshold=0)
    try:
        assert repr(tk.tensor(2)) == repr(torch.tensor(2))
    finally:
        for library in (torch, tk):
            library.set_printoptions(profile="default")
