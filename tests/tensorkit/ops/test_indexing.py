"""Basic indexing against PyTorch: views, writes and error messages on random index expressions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import assert_same, assert_same_outcome, numbers, outcome, torch, twins

import tensorkit as tk

ints = st.integers(-5, 5)
slices = st.builds(
    slice,
    st.one_of(st.none(), ints),
    st.one_of(st.none(), ints),
    st.one_of(st.none(), st.integers(1, 3), st.integers(-1, 0)),
)
parts = st.one_of(ints, slices, slices, st.just(...), st.none())
indices = st.one_of(parts, st.lists(parts, max_size=5).map(tuple))


@given(x=twins(), index=indices)
def test_an_index_gives_pytorchs_view(x, index):
    assert_same_outcome(lambda: x.torch[index], lambda: x.tk[index])


@given(x=twins(), index=indices)
def test_an_index_shares_the_storage(x, index):
    kind, *got = outcome(lambda: x.tk[index])
    if kind == "value":
        assert got[0].untyped_storage() is x.tk.untyped_storage()


@given(x=twins(), index=indices, number=numbers)
def test_assigning_a_number_writes_or_refuses_as_pytorch(x, index, number):
    x = x.again()
    assert_same_outcome(
        lambda: x.torch.__setitem__(index, number), lambda: x.tk.__setitem__(index, number)
    )
    assert_same(x.torch, x.tk)


@given(x=twins(), index=indices, value=twins(max_dims=3))
def test_assigning_a_tensor_broadcasts_and_casts_as_pytorch(x, index, value):
    x = x.again()
    if x.args[1] not in ("float16", "float32", "float64") and "float" in value.args[1]:
        value = x.again()  # C leaves the cast of a large float to an integer undefined
    assert_same_outcome(
        lambda: x.torch.__setitem__(index, value.torch),
        lambda: x.tk.__setitem__(index, value.tk),
    )
    assert_same(x.torch, x.tk)


def test_a_zero_dimensional_integer_tensor_is_an_index():
    x, y = torch.arange(6).reshape(2, 3), tk.arange(6).as_strided((2, 3), (3, 1))
    assert_same(x[torch.tensor(1)], y[tk.tensor(1)])
    assert_same(x[torch.tensor(0) : torch.tensor(1)], y[tk.tensor(0) : tk.tensor(1)])


@pytest.mark.parametrize("index", [[0, 1], True, tk.tensor([0, 1]), tk.tensor([True, False])])
def test_masks_and_lists_are_refused_with_a_sentence(index):
    with pytest.raises(NotImplementedError, match="does not support"):
        _ = tk.zeros(2)[index]


def test_numbers_of_an_index_error_are_attributes():
    with pytest.raises(IndexError) as caught:
        _ = tk.zeros(2, 3)[0, 7]
    assert (caught.value.index, caught.value.dim, caught.value.size) == (7, 0, 3)
