"""Comparisons against PyTorch."""

import operator
from functools import partial

import pytest
import tk_oracle
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import broadcastable_pairs, numbers, twins

assert_same_outcome = partial(tk_oracle.assert_same_outcome, is_laid_out=False)

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
