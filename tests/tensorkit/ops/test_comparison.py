"""Comparisons against PyTorch."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import assert_same_outcome, broadcastable_pairs, numbers, twins

NAMES = ["eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("name", NAMES)
@given(pair=broadcastable_pairs())
def test_comparing_tensors_gives_what_pytorch_gives(name, pair):
    x, y = pair
    run = getattr(operator, name)
    assert_same_outcome(lambda: run(x.torch, y.torch), lambda: run(x.tk, y.tk))


@pytest.mark.parametrize("name", NAMES)
@given(x=twins(), number=numbers, number_first=st.booleans())
def test_comparing_with_a_number_gives_what_pytorch_gives(name, x, number, number_first):
    run = getattr(operator, name)
    if number_first:
        assert_same_outcome(lambda: run(number, x.torch), lambda: run(number, x.tk))
    else:
        assert_same_outcome(lambda: run(x.torch, number), lambda: run(x.tk, number))


@pytest.mark.parametrize("name", ["eq_", "lt_", "ge_"])
@given(pair=broadcastable_pairs())
def test_in_place_comparisons_write_zeros_and_ones(name, pair):
    x, y = pair
    x = x.again()
    assert_same_outcome(lambda: getattr(x.torch, name)(y.torch), lambda: getattr(x.tk, name)(y.tk))
