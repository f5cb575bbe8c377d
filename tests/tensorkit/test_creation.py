"""New tensors against PyTorch: data, shapes, ranges, shared memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import (
    DTYPES,
    assert_same,
    assert_same_or_refused,
    assert_same_outcome,
    outcome,
    strides_that_count,
    torch,
    twins,
    without_cuda,
)

import tensorkit as tk

leaves = st.one_of(
    st.booleans(),
    st.integers(-300, 300),
    st.floats(width=32),
    st.sampled_from([None, "a", np.float32(1.5), np.int8(3)]),
)
nested = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=8)
good = st.one_of(st.booleans(), st.integers(-100, 100), st.floats(width=32))


@given(data=nested)
def test_nested_lists_become_pytorchs_tensor_or_its_error(data):
    assert_same_outcome_or_type_error(lambda: torch.tensor(data), lambda: tk.tensor(data))


def assert_same_outcome_or_type_error(expected, actual):
    """As assert_same_outcome; what holds no numbers in equal lists is an error, whatever its words.

    PyTorch's words there depend on the dtype it had inferred ("must be real number, not list").
    It gives an empty tensor for lists of unequal lengths of which the first is empty.
    """
    wanted, got = outcome(expected), outcome(actual)
    if wanted[0] == got[0] == "error" and wanted[1][0] == "TypeError":
        assert "TypeError" in got[1] or "ValueError" in got[1]
    elif wanted[0] == got[0] == "error" and "str" in wanted[2]:
        assert "TypeError" in got[1]
    elif wanted[0] == "value" and got[0] == "error":
        assert 0 in wanted[1].shape
        assert "not a sequence" in got[2] or "expected sequence of length 0" in got[2]
    else:
        assert_same_outcome(expected, actual)


def test_a_number_beyond_64_bits_is_refused():
    for data in (2**63, [1, -(2**63) - 1], [[2**64]]):
        with pytest.raises(RuntimeError, match="cannot be converted to type int64"):
            tk.tensor(data)
    assert tk.tensor([2**63, 0.5]).tolist() == [float(2**63), 0.5]


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
    reference, tensor = torch.from_numpy(array), tk.from_numpy(array)
    assert_same(reference, tensor)
    assert np.shares_memory(tensor.numpy(), array) or not array.size
    if array.size:
        tensor.fill_(1)
        assert (array == 1).all()
        back = tensor.numpy()
        back[...] = 0
        assert (array == 0).all()
        assert not tensor.numpy().any()


def test_reversed_arrays_are_refused_with_pytorchs_words():
    array = np.arange(3.0)[::-1]
    assert_same_outcome(lambda: torch.from_numpy(array), lambda: tk.from_numpy(array))
    assert_same_outcome(lambda: torch.tensor(array), lambda: tk.tensor(array))


def test_a_read_only_array_is_shared_and_cannot_be_written():
    array = np.arange(3.0)
    array.flags.writeable = False
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

    assert_same_or_refused(shape_of(torch), shape_of(tk))


@given(x=twins(), dtype=st.one_of(st.none(), st.sampled_from(DTYPES)))
def test_the_like_functions_keep_shape_and_order(x, dtype):
    def options(library):
        return {} if dtype is None else {"dtype": getattr(library, dtype)}

    for name in ("zeros_like", "ones_like"):
        expected = getattr(torch, name)(x.torch, **options(torch))
        assert_same(expected, getattr(tk, name)(x.tk, **options(tk)))
    assert_same(torch.full_like(x.torch, 1, **options(torch)), tk.full_like(x.tk, 1, **options(tk)))
    assert strides_that_count(tk.empty_like(x.tk)) == strides_that_count(torch.empty_like(x.torch))


bounds = st.one_of(
    st.integers(-9, 9),
    st.sampled_from([-2.5, 0.0, 0.1, 0.3, 1.5, 7.0, 1e39, 1e5, float("inf"), float("nan"), 300]),
    st.floats(-9, 9),
)
steps = st.one_of(st.integers(-9, 9), st.sampled_from([0.1, -0.3, 0.7, 0.01, float("nan")]))


@given(start=bounds, end=bounds, step=steps, dtype=st.sampled_from([None, *DTYPES]))
def test_arange_gives_pytorchs_numbers(start, end, step, dtype):
    def run(library):
        options = {} if dtype is None else {"dtype": getattr(library, dtype)}
        return lambda: library.arange(start, end, step, **options)

    if abs(end - start) > 1e4:
        end = start + 9  # few numbers: PyTorch divides long ranges among threads
    if dtype == "uint8" and (start < 0 or end < 0 or step < 0):
        return  # out of the dtype's range: PyTorch leaves the result undefined
    assert_same_or_refused(run(torch), run(tk))


@given(start=bounds, end=bounds, steps=st.integers(-1, 70), dtype=st.sampled_from([None, *DTYPES]))
def test_linspace_gives_pytorchs_numbers(start, end, steps, dtype):
    def run(library):
        options = {} if dtype is None else {"dtype": getattr(library, dtype)}
        return lambda: library.linspace(start, end, steps, **options)

    assert_same_or_refused(run(torch), run(tk))


RANGES = """
torch.linspace(18, 7.7, 7, dtype=torch.int32)
torch.linspace(-1, 1, 3, dtype=torch.uint8)
torch.linspace(1, float('inf'), 1)
torch.linspace(0, 1, torch.tensor(3))
torch.linspace(torch.tensor(1), torch.tensor(3), 3)
torch.linspace('a', 1, 3)
torch.linspace(0, 1, True)
torch.linspace(0, 1, 2 ** 63)
torch.linspace(2 ** 64, 1, 3)
torch.arange(-1, 1, .1)
torch.arange(2 ** 63)
torch.arange(2 ** 64)
torch.arange(1e20)
torch.arange()
torch.arange(None)
torch.arange(1, 2, None)
torch.arange(torch.tensor(3))
torch.arange(torch.tensor([3]))
torch.arange(start=1, end=5, step=2)
torch.arange(0, 1, float('nan'))
torch.arange(2 ** 53, 2 ** 53 + 3, dtype=torch.float64)
torch.arange(-2 ** 63, 2 ** 63 - 1)
torch.arange(0, 10, 2 ** 63)
""".strip().split("\n")


@pytest.mark.parametrize("expression", RANGES)
def test_ranges_take_and_refuse_what_pytorch_does(expression):
    assert_same_or_refused(
        lambda: eval(expression, {"torch": torch}), lambda: eval(expression, {"torch": tk})
    )


@pytest.mark.parametrize("args", [(3,), (2, 3), (0,), (3, 1), (-1,), (2, -1), (2.5,)])
def test_eye_is_pytorchs(args):
    assert_same_or_refused(lambda: torch.eye(*args), lambda: tk.eye(*args))


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
    words = "Torch not compiled with CUDA enabled"
    with without_cuda(), pytest.raises(AssertionError, match=words) as caught:
        tk.zeros(2, device=device)
    assert 'device="cpu"' in str(caught.value)
