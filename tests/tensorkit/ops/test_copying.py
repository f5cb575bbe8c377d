"""Copies, conversions and writes against PyTorch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import (
    DTYPES,
    assert_same,
    assert_same_outcome,
    numbers,
    small_values_of,
    torch,
    twins,
)

import tensorkit as tk


@given(x=twins())
def test_clone_keeps_the_order_in_memory(x):
    assert_same(x.torch.clone(), x.tk.clone())


@given(x=twins())
def test_contiguous_copies_only_when_needed(x):
    assert_same(x.torch.contiguous(), x.tk.contiguous())
    assert (x.tk.contiguous() is x.tk) == x.tk.is_contiguous()


@given(x=twins(values=small_values_of), dtype=st.sampled_from(DTYPES), copy=st.booleans())
def test_to_converts_as_pytorch(x, dtype, copy):
    expected = x.torch.to(getattr(torch, dtype), copy=copy)
    actual = x.tk.to(getattr(tk, dtype), copy=copy)
    assert_same(expected, actual)
    assert (expected is x.torch) == (actual is x.tk)


@given(x=twins(), y=twins(values=small_values_of))
def test_copy_broadcasts_casts_and_refuses_as_pytorch(x, y):
    x = x.again()
    assert_same_outcome(lambda: x.torch.copy_(y.torch), lambda: x.tk.copy_(y.tk))


@given(x=twins(), number=numbers)
def test_fill_stores_or_refuses_as_pytorch(x, number):
    x = x.again()
    assert_same_outcome(lambda: x.torch.fill_(number), lambda: x.tk.fill_(number))


CASTS = ["float", "double", "half", "long", "int", "short", "char", "byte", "bool"]


@pytest.mark.parametrize("method", CASTS)
def test_the_short_names_of_casts(method):
    values = [0.0, 1.75, -2.0]
    if method == "byte":
        values = [0.0, 1.75]
    assert_same(getattr(torch.tensor(values), method)(), getattr(tk.tensor(values), method)())


def test_fill_refuses_a_tensor_of_several_elements():
    with pytest.raises(RuntimeError, match="0-dimension value tensor"):
        tk.zeros(2).fill_(tk.zeros(2))
