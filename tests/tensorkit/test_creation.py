"""New tensors against PyTorch: data, shapes, ranges, shared memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import DTYPES, assert_same, assert_same_outcome, outcome, torch, twins

import tensorkit as tk

leaves = st.one_of(
    st.booleans(),
    st.integers(-300, 300),
    st.floats(width=32),
    st.sampled_from([None, "a", 2**63, np.float32(1.5), np.int8(3)]),
)
nested = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=8)
good = st.one_of(st.booleans(), st.integers(-100, 100), st.floats(width=32))


@given(data=nested)
def test_nested_lists_become_pytorchs_tensor_or_its_error(data):
    assert_same_outcome_or_type_error(lambda: torch.tensor(data), lambda: tk.tensor(data))


def assert_same_outcome_or_type_error(theirs, ours):
    """As assert_same_outcome; a number beside a list is a TypeError, whatever its words.

    PyTorch's words there depend on the dtype it had inferred ("must be real number, not list").
    """
    wanted, got = outcome(theirs), outcome(ours)
    if wanted[0] == got[0] == "error" and wanted[1][0] == "TypeError":
        assert "TypeError" in got[1] or "ValueError" in got[1]
    else:
        assert_same_outcome(theirs, ours)


@given(data=st.lists(good, max_size=5), dtype=st.sampled_from(DTYPES))
def test_a_wanted_dtype_converts_or_refuses_as_pytorch(data, dtype):
    assert_same_outcome(
        lambda: torch.tensor(data, dtype=getattr(torch, dtype)),
        lambda: tk.tensor(data, dtype=getattr(tk, dtype)),
    )


@given(x=twins())
def test_arrays_are_copied_with_their_dtype(x):
    array = x.torch.numpy()
    assert_same(torch.tensor(array), tk.tensor(array))


@given(x=twins())
def test_from_numpy_and_numpy_share_memory_both_ways(x):
    array = x.torch.numpy().copy(order="K")[..., ::2] if x.tk.ndim else x.torch.numpy().copy()
    theirs, ours = torch.from_numpy(array), tk.from_numpy(array)
    assert_same(theirs, ours)
    assert np.shares_memory(ours.numpy(), array) or not array.size
    if array.size:
        ours.fill_(1)
        assert (array == 1).all()
        back = ours.numpy()
        back[...] = 0
        assert (array == 0).all()
        assert not ours.numpy().any()


def test_reversed_arrays_are_refused_with_pytorchs_words():
    array = np.arange(3.0)[::-1]
    assert_same_outcome(lambda: torch.from_numpy(array), lambda: tk.from_numpy(array))
    assert_same_outcome(lambda: torch.tensor(array), lambda: tk.tensor(array))


def test_a_read_only_array_is_shared_with_a_warning_and_cannot_be_written():
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        shared = tk.from_numpy(array)
    with pytest.raises(RuntimeError, match="not writable"):
        shared.add_(1)
    assert array.tolist() == [0.0, 1.0, 2.0]


SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3), (-1,), (2.5,), ("a",), ((2, 3),), ([2],), ((2, 2.5),)]


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
@pytest.mark.parametrize("args", SHAPES)
def test_shapes_are_taken_and_refused_as_in_pytorch(name, args):
    def shape_of(library):
        return lambda: tuple(getattr(library, name)(*args).shape)

    assert_same_outcome(shape_of(torch), shape_of(tk))


@given(x=twins(), dtype=st.one_of(st.none(), st.sampled_from(DTYPES)))
def test_the_like_functions_keep_shape_and_order(x, dtype):
    def options(library):
        return {} if dtype is None else {"dtype": getattr(library, dtype)}

    for name in ("zeros_like", "ones_like"):
        theirs = getattr(torch, name)(x.torch, **options(torch))
        assert_same(theirs, getattr(tk, name)(x.tk, **options(tk)))
    assert_same(torch.full_like(x.torch, 1, **options(torch)), tk.full_like(x.tk, 1, **options(tk)))
    assert tk.empty_like(x.tk).stride() == torch.empty_like(x.torch).stride()


bounds = st.one_of(st.integers(-9, 9), st.sampled_from([-2.5, 0.0, 0.1, 0.3, 1.5, 7.0]))


@given(start=bounds, end=bounds, step=bounds, dtype=st.sampled_from([None, *DTYPES]))
def test_arange_counts_as_pytorch(start, end, step, dtype):
    def run(library):
        options = {} if dtype is None else {"dtype": getattr(library, dtype)}
        return lambda: library.arange(start, end, step, **options)

    if dtype == "uint8" and (start < 0 or end < 0 or step < 0):
        return  # out of the dtype's range: PyTorch leaves the result undefined
    # PyTorch adds up in blocks of the processor's vector width: the last digit may differ.
    try:
        assert_same_outcome(run(torch), run(tk))
    except AssertionError:
        np.testing.assert_allclose(run(tk)().numpy(), run(torch)().numpy(), rtol=1e-3, atol=1e-6)


@given(
    start=bounds,
    end=bounds,
    steps=st.integers(-1, 12),
    dtype=st.sampled_from([None, "float64", "int64", "float16"]),
)
def test_linspace_is_pytorchs_up_to_the_last_digit(start, end, steps, dtype):
    def run(library):
        options = {} if dtype is None else {"dtype": getattr(library, dtype)}
        return lambda: library.linspace(start, end, steps, **options)

    if steps < 0:
        assert_same_outcome(run(torch), run(tk))
        return
    theirs, ours = run(torch)(), run(tk)()
    assert repr(ours.dtype) == repr(theirs.dtype)
    atol = {"int64": 1, "float16": 1e-2}.get(dtype, 1e-6)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=atol)


@pytest.mark.parametrize("args", [(3,), (2, 3), (0,), (3, 1), (-1,), (2, -1), (2.5,)])
def test_eye_is_pytorchs(args):
    assert_same_outcome(lambda: torch.eye(*args), lambda: tk.eye(*args))


@pytest.mark.parametrize("value", [3, 2.5, True, float("inf")])
def test_full_takes_its_dtype_from_the_number(value):
    assert_same(torch.full((2, 3), value), tk.full((2, 3), value))


def test_size_is_also_a_keyword():
    assert tk.zeros(size=(2, 3)).shape == (2, 3)
    assert tk.randint(low=0, high=5, size=(4,)).shape == (4,)
    assert tk.rand(size=(2,)).shape == (2,)


def test_as_tensor_copies_only_when_it_must():
    x = tk.zeros(2)
    assert tk.as_tensor(x) is x
    assert tk.as_tensor(x, dtype=tk.float64) is not x
    array = np.zeros(2)
    assert np.shares_memory(tk.as_tensor(array).numpy(), array)


def test_a_tensor_of_a_tensor_is_a_copy_and_warns_as_in_pytorch():
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        copy = tk.tensor(tk.ones(2))
    assert copy.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_is_refused_with_pytorchs_words_and_a_way_out(device):
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled") as caught:
        tk.zeros(2, device=device)
    assert 'device="cpu"' in str(caught.value)
