"""The random streams against PyTorch's, over seeds, sizes, dtypes and mixed sequences of calls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import torch

import tensorkit as tk

seeds = st.one_of(st.integers(0, 5), st.integers(-(2**63), 2**64 - 1))
shapes = st.one_of(
    st.integers(0, 70).map(lambda n: (n,)),
    st.lists(st.integers(0, 7), max_size=3).map(tuple),
)
floats = st.sampled_from(["float16", "float32", "float64"])

calls = st.one_of(
    st.tuples(st.just("rand"), shapes, floats),
    st.tuples(st.just("randn"), shapes, floats),
    st.tuples(
        st.just("randint"),
        shapes,
        st.tuples(st.integers(-(2**40), 100), st.integers(101, 2**40)),
    ),
    st.tuples(st.just("randint"), shapes, st.tuples(st.just(0), st.integers(1, 2**33))),
    st.tuples(st.just("randperm"), st.integers(0, 60), st.none()),
)


def _draw(library, call):
    name, size, more = call
    if name == "randperm":
        return library.randperm(size)
    if name == "randint":
        return library.randint(*more, size)
    return getattr(library, name)(size, dtype=getattr(library, more))


def _assert_drawn_alike(theirs, ours, call):
    # Normal numbers go through logarithms and cosines, whose last digits differ between
    # libraries; in half precision one last digit is 2**-11 of the value.
    tolerance = 0.0
    if call[0] == "randn":
        tolerance = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}[call[2]]
    assert repr(ours.dtype) == repr(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)


@given(seed=seeds, sequence=st.lists(calls, min_size=1, max_size=6))
def test_a_sequence_of_draws_is_pytorchs(seed, sequence):
    torch.manual_seed(seed)
    tk.manual_seed(seed)
    for call in sequence:
        _assert_drawn_alike(_draw(torch, call), _draw(tk, call), call)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 32, 33, 1000, 100_003])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_long_draws_are_pytorchs(name, size):
    torch.manual_seed(42)
    tk.manual_seed(42)
    call = (name, (size,), "float32")
    _assert_drawn_alike(_draw(torch, call), _draw(tk, call), call)


def test_the_like_functions_draw_in_memory_order():
    theirs = torch.zeros(3, 4).t()
    ours = tk.zeros(3, 4).as_strided((4, 3), (1, 4))
    for name in ("rand_like", "randn_like"):
        torch.manual_seed(1)
        tk.manual_seed(1)
        np.testing.assert_allclose(
            getattr(tk, name)(ours).numpy(), getattr(torch, name)(theirs).numpy(), rtol=2e-6
        )
    torch.manual_seed(1)
    tk.manual_seed(1)
    assert tk.randint_like(ours, 9).tolist() == torch.randint_like(theirs, 9).tolist()


def test_the_same_seed_gives_the_same_numbers():
    first = tk.manual_seed(5).initial_seed(), tk.randn(3).tolist()
    second = tk.manual_seed(5).initial_seed(), tk.randn(3).tolist()
    assert first == second


def test_seeds_out_of_range_are_refused():
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        tk.manual_seed(2**64)
