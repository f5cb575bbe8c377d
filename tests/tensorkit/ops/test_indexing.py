"""Indexing against PyTorch: views, copies, writes, gradients, errors on random index expressions.

In a random index a NumPy array stands for a tensor of either library.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import (
    assert_same,
    assert_same_outcome,
    numbers,
    outcome,
    small_values_of,
    torch,
    twins,
)

import tensorkit as tk

ints = st.integers(-5, 5)
slices = st.builds(
    slice,
    st.one_of(st.none(), ints),
    st.one_of(st.none(), ints),
    st.one_of(st.none(), st.integers(1, 3), st.integers(-1, 0)),
)
positions = st.lists(st.integers(-3, 2), max_size=4)
masks = st.lists(st.booleans(), min_size=1, max_size=4)
arrays = st.one_of(
    positions.map(lambda p: np.array(p, np.int64)),
    st.integers(-2, 1).map(lambda p: np.array([[p, 0, -1], [1, p, 0]])),
    st.integers(-2, 1).map(lambda p: np.array([[p], [0]], np.int32)),
    st.integers(-2, 1).map(np.array),
    masks.map(np.array),
    st.integers(1, 4).map(lambda n: np.arange(2 * n).reshape(2, n) % 3 == 0),
    st.booleans().map(np.array),
)
parts = st.one_of(ints, slices, slices, st.just(...), st.none())
indices = st.one_of(parts, st.lists(parts, max_size=5).map(tuple))


fancy_parts = st.one_of(arrays, arrays, positions, masks, st.booleans(), slices, parts)
fancy = st.one_of(fancy_parts, st.lists(fancy_parts, max_size=4).map(tuple))


def _for(library, index):
    """The index with tensors of ``library`` in place of arrays."""
    if isinstance(index, tuple):
        return tuple(_for(library, part) for part in index)
    return library.from_numpy(index.copy()) if isinstance(index, np.ndarray) else index


@given(x=twins(), index=fancy)
def test_masks_and_positions_give_pytorchs_copy(x, index):
    def picked(library, x):
        return x[_for(library, index)]

    expected, actual = outcome(lambda: picked(torch, x.torch)), outcome(lambda: picked(tk, x.tk))
    if expected[0] == "value" and 0 in expected[1].shape:
        # PyTorch lets positions that lie outside pass where nothing is picked
        refused = actual[0] == "error" and "IndexError" in actual[1]
        assert refused or tuple(actual[1].shape) == tuple(expected[1].shape)
        return
    assert_same_outcome(lambda: picked(torch, x.torch), lambda: picked(tk, x.tk), is_laid_out=False)


def _assert_written_alike(x, write):
    """What is refused leaves tensorkit's tensor as it was, PyTorch's perhaps half written."""
    before = x.tk.numpy().copy()
    kind = assert_same_outcome(lambda: write(torch, x.torch), lambda: write(tk, x.tk))
    if kind == "error":
        np.testing.assert_array_equal(x.tk.numpy(), before)
    elif 0 not in x.torch.stride():
        assert_same(x.torch, x.tk)


@given(x=twins(), index=fancy, number=numbers)
def test_a_number_is_written_at_masks_and_positions(x, index, number):
    x = x.again()
    if 0 in x.tk.shape:
        return
    _assert_written_alike(x, lambda library, y: y.__setitem__(_for(library, index), number))


@given(x=twins(), index=fancy, data=st.data())
def test_a_tensor_is_written_at_masks_and_positions(x, index, data):
    x = x.again()
    if 0 in x.tk.shape:  # PyTorch does not look at positions in nothing, NumPy does
        return
    kind, *got = outcome(lambda: x.torch[_for(torch, index)])
    shape = got[0].shape if kind == "value" else (2,)
    drop = data.draw(st.integers(0, 2))
    values = (
        np.arange(math.prod(shape)).reshape(shape)[
            (0,) * min(drop, len(shape) - 1) if 0 not in shape else ()
        ]
        % 2
    )
    dtype = data.draw(st.sampled_from([x.args[1], x.args[1], "float32"]))
    expected, actual = (
        library.from_numpy(np.asarray(values)).to(getattr(library, dtype))
        for library in (torch, tk)
    )
    values = {torch: expected, tk: actual}
    _assert_written_alike(
        x, lambda library, y: y.__setitem__(_for(library, index), values[library])
    )


@given(x=twins(["float64"], values=small_values_of), index=fancy)
def test_gradients_of_masks_and_positions_are_pytorchs(x, index):
    found = []
    for library, leaf in ((torch, x.torch), (tk, x.tk)):
        leaf = leaf.detach().requires_grad_()
        kind, *got = outcome(lambda leaf=leaf, library=library: leaf[_for(library, index)])
        if kind == "error":
            return
        (result,) = got
        (first,) = library.autograd.grad((result**3).sum(), leaf, create_graph=True)
        (second,) = library.autograd.grad((first * first).sum(), leaf)
        written = leaf * 1
        written[_for(library, index)] = result.detach() * 2
        (kept,) = library.autograd.grad((written * leaf).sum(), leaf)
        found.append((result.detach(), first.detach(), second, kept))
    for expected, actual in zip(*found, strict=True):
        np.testing.assert_allclose(actual.numpy(), expected.numpy())


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


def test_numbers_of_an_index_error_are_attributes():
    with pytest.raises(IndexError) as caught:
        _ = tk.zeros(2, 3)[0, 7]
    assert "index 7 is out of bounds for dimension 1 with size 3" in str(caught.value)
