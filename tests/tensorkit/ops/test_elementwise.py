"""Elementwise functions against PyTorch: values, dtypes, strides, errors, in-place forms."""

import math
from functools import partial

import numpy as np
import pytest
import tk_oracle
from hypothesis import assume, given
from hypothesis import strategies as st
from tk_oracle import (
    FLOATS,
    INTEGERS,
    broadcastable_pairs,
    numbers,
    torch,
    twins,
)

import tensorkit as tk
from tensorkit.ops import pointwise

# Approximations: NumPy and PyTorch agree up to the last digits of a dtype.
RTOL = {"float16": 2e-3, "float64": 1e-11}
APPROXIMATE = [
    name
    for name, operation in vars(pointwise).items()
    if hasattr(operation, "definition") and operation.definition.to_floating
]
EXACT = """
    abs neg sign square floor ceil trunc round isnan isinf isfinite logical_not reciprocal
    absolute relu
""".split()  # noqa: SIM905
WITH_IN_PLACE = [
    name
    for name in (*APPROXIMATE, *EXACT)
    if name not in ("isnan", "isinf", "isfinite", "logical_not", "square")
]

assert_same_outcome = partial(tk_oracle.assert_same_outcome, is_laid_out=False)


def _angles(dtype):
    """Numbers whose sine does not depend on how 2 pi was rounded."""
    if dtype == "bool":
        return st.booleans()
    if "int" in dtype:
        return st.integers(0 if dtype == "uint8" else -20, 20)
    return st.one_of(
        st.integers(-9, 9).map(float), st.sampled_from([math.inf, -0.0, math.nan, 0.5])
    )


def _rtol(x):
    return RTOL.get(str(x.tk.dtype).removeprefix("torch."), 1e-5)


@pytest.mark.parametrize("name", APPROXIMATE)
@given(x=twins(values=_angles))
def test_a_function_gives_what_pytorch_gives(name, x):
    rtol = _rtol(x)
    assert_same_outcome(
        lambda: getattr(torch, name)(x.torch), lambda: getattr(tk, name)(x.tk), rtol
    )


@pytest.mark.parametrize("name", EXACT)
@given(x=twins())
def test_an_exact_function_gives_what_pytorch_gives(name, x):
    assume(not (name.startswith("is") and 0 in x.tk.shape))  # strides of nothing
    assert_same_outcome(lambda: getattr(torch, name)(x.torch), lambda: getattr(tk, name)(x.tk))


@pytest.mark.parametrize("name", WITH_IN_PLACE)
@given(x=twins(values=_angles))
def test_an_in_place_form_writes_or_refuses_as_pytorch(name, x):
    x = x.again()
    assert_same_outcome(
        lambda: getattr(x.torch, f"{name}_")(), lambda: getattr(x.tk, f"{name}_")(), _rtol(x)
    )


PAIRS = ["maximum", "minimum", "logical_and", "logical_or", "logical_xor"]
ALIASES = ["true_divide", "subtract", "multiply", "divide"]


@pytest.mark.parametrize("name", PAIRS + ALIASES)
@given(pair=broadcastable_pairs())
def test_a_function_of_two_tensors_gives_what_pytorch_gives(name, pair):
    x, y = pair
    reference, function = getattr(torch, name), getattr(tk, name)
    assert_same_outcome(lambda: reference(x.torch, y.torch), lambda: function(x.tk, y.tk))


@pytest.mark.parametrize("name", ["subtract_"])
@given(pair=broadcastable_pairs())
def test_a_method_in_place_writes_or_refuses_as_pytorch(name, pair):
    x, y = pair
    x = x.again()
    assert_same_outcome(lambda: getattr(x.torch, name)(y.torch), lambda: getattr(x.tk, name)(y.tk))


@pytest.mark.parametrize("name", ["maximum", "logical_and"])
def test_a_number_is_refused_where_pytorch_wants_a_tensor(name):
    def run(module):
        return getattr(module, name)(module.ones(2), 2)

    assert_same_outcome(lambda: run(torch), lambda: run(tk))


limits = st.one_of(st.none(), numbers)


@given(x=twins([*FLOATS, *INTEGERS]), low=limits, high=limits)
def test_clamp_with_numbers_is_pytorchs(x, low, high):
    assert_same_outcome(lambda: x.torch.clamp(low, high), lambda: x.tk.clamp(low, high))
    if x.tk.is_floating_point() or not any(isinstance(each, float) for each in (low, high)):
        assert_clamp_writes(x.again(), low, high)


def assert_clamp_writes(x, low, high):
    assert_same_outcome(lambda: x.torch.clamp_(low, high), lambda: x.tk.clamp_(low, high))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erf_is_exact_to_the_last_digits(dtype):
    places = np.concatenate([np.linspace(-7, 7, 20001), [0.46875, 1e-30, np.inf, -np.inf]])
    x = tk.tensor(places.tolist(), dtype=getattr(tk, dtype))
    wanted = np.array([math.erf(value) for value in x.tolist()])
    rtol = 1e-15 if dtype == "float64" else 3e-7
    np.testing.assert_allclose(tk.erf(x).numpy(), wanted, rtol=rtol, atol=0)
    assert math.isnan(tk.erf(tk.tensor(tk.nan)))


def _gelu_and_derivatives(x):
    y = tk.nn.functional.gelu(x)
    (slope,) = tk.autograd.grad(y.sum(), x, create_graph=True)
    (curvature,) = tk.autograd.grad((slope**2).sum(), x)
    (plain,) = tk.autograd.grad(tk.nn.functional.gelu(x).sum(), x)
    return [each.detach() for each in (y, slope, curvature, plain)]


def test_gelu_of_many_numbers_has_the_derivatives_of_gelu_of_few():
    # of many, backward finds what forward kept; of few, it computes it again
    many = tk.linspace(-6, 6, 5000, dtype=tk.float64, requires_grad=True)
    few = many.detach()[::100].clone().requires_grad_()
    pairs = zip(_gelu_and_derivatives(many), _gelu_and_derivatives(few), strict=True)
    assert all(tk.allclose(one[::100], other) for one, other in pairs)
