"""Pairs of equal tensors in PyTorch and tensorkit, and how to compare what becomes of them."""

import contextlib
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from other_words import same_words

import tensorkit as tk
from tensorkit.devices import register_device


class _Absent:
    """Stands for PyTorch where it is not installed: whoever asks it for anything is skipped."""

    def __getattr__(self, name):
        if name.startswith("_") or "pytest" in name:  # pytest looks at all names of a module
            raise AttributeError(name)
        reason = "needs PyTorch: pip install torch==2.13.0"
        pytest.skip(reason, allow_module_level=True)


try:
    import torch
except ImportError:
    torch = _Absent()

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
FLOATS, INTEGERS = DTYPES[:3], DTYPES[3:8]


class Twin:
    """The same tensor twice: ``torch`` and ``tk``, equal in values, dtype, strides and offset."""

    def __init__(self, values, dtype, shape, strides, offset):
        self.torch = torch.tensor(values, dtype=getattr(torch, dtype)).as_strided(
            shape, strides, offset
        )
        self.tk = tk.tensor(values, dtype=getattr(tk, dtype)).as_strided(shape, strides, offset)
        self.args = (values, dtype, shape, strides, offset)

    def again(self):
        """A fresh pair that an in-place operation may change."""
        return Twin(*self.args)

    def __repr__(self):
        return f"Twin{self.args}"


def values_of(dtype):
    """Numbers that ``dtype`` holds, the special ones included."""
    if dtype == "bool":
        return st.booleans()
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        # The smallest value is left out: dividing it by -1 ends PyTorch's process (SIGFPE).
        low = info.min + 1 if info.min else 0
        return st.one_of(st.integers(-4 if low else 0, 4), st.integers(low, info.max))
    width = {"float16": 16, "float32": 32, "float64": 64}[dtype]
    return st.one_of(st.integers(-4, 4).map(float), st.floats(width=width))


def small_values_of(dtype):
    """Small whole numbers, on which every result is exact."""
    if dtype == "bool":
        return st.booleans()
    return st.integers(0 if dtype == "uint8" else -4, 4)


@st.composite
def layouts(draw, max_dims=4):
    """(shape, strides, offset, number of stored elements): permuted, sliced, expanded, empty."""
    sizes = draw(st.lists(st.integers(0, 4), max_size=max_dims))
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in sizes]
    order = draw(st.permutations(range(len(sizes)))) if draw(st.booleans()) else range(len(sizes))
    full = torch.empty([size * step for size, step in zip(sizes, steps, strict=True)])
    view = full.permute(tuple(order))
    for dim, place in enumerate(order):
        view = view[(slice(None),) * dim + (slice(None, None, steps[place]),)]
    if sizes and draw(st.integers(0, 5)) == 0:
        dim = draw(st.integers(0, len(sizes) - 1))
        if view.shape[dim] >= 1:
            target = list(view.shape)
            view = view.narrow(dim, 0, 1)
            target[dim] = draw(st.integers(1, 3))
            view = view.expand(target)
    offset = draw(st.sampled_from([0, 0, 2]))
    return tuple(view.shape), tuple(view.stride()), offset, full.numel() + offset


@st.composite
def twins(draw, dtypes=DTYPES, max_dims=4, values=values_of, layout=None):
    """Any tensor, twice."""
    dtype = draw(st.sampled_from(dtypes))
    shape, strides, offset, count = draw(layout or layouts(max_dims))
    pool = draw(st.lists(values(dtype), min_size=1, max_size=6))
    data = [pool[place % len(pool)] for place in range(count)]
    return Twin(data, dtype, shape, strides, offset)


@st.composite
def broadcastable_pairs(draw, dtypes=DTYPES, values=values_of):
    """Two tensors whose shapes fit together."""
    first = draw(twins(dtypes, values=values))
    shape = [1 if draw(st.integers(0, 3)) == 0 else size for size in first.tk.shape]
    shape = shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]
    order = draw(st.permutations(range(len(shape))))
    strides = (
        torch.empty([shape[dim] for dim in order])
        .permute(tuple(order.index(dim) for dim in range(len(shape))))
        .stride()
    )
    count = int(np.prod(shape, dtype=int))
    dtype = draw(st.sampled_from(dtypes))
    pool = draw(st.lists(values(dtype), min_size=1, max_size=6))
    data = [pool[place % len(pool)] for place in range(max(count, 1))]
    second = Twin(data, dtype, tuple(shape), tuple(strides), 0)
    return (first, second) if draw(st.booleans()) else (second, first)


numbers = st.one_of(
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-300, 300),
    st.sampled_from(
        [0.0, -0.0, 0.5, -1.5, 2.0, 3.0, 0.1, 0.3, 2.7, 1e5, 1e6, float("inf"), float("nan")]
    ),
)


def outcome(function):
    """("value", result) or ("error", names of the error's classes, first line of its text)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ("value", function())
        except Exception as error:
            names = [cls.__name__ for cls in type(error).__mro__]
            return ("error", names, str(error).split("\n")[0])


def strides_that_count(x):
    """The strides by which elements are found: those of sizes 0 and 1 are the array library's."""
    if 0 in x.shape:
        return None
    return [step if size > 1 else None for size, step in zip(x.shape, x.stride(), strict=True)]


def assert_same(expected, actual, rtol=0.0, is_laid_out=True):
    """Same values, dtype, strides and offset; or the same numbers, texts, sequences.

    ``is_laid_out``: also a result that is no view has PyTorch's strides. Not where shapes
    broadcast, where two operands lie in memory in different orders, or where masks and positions
    pick: there results are laid out as NumPy's are.
    """
    if isinstance(expected, torch.Tensor):
        assert isinstance(actual, tk.Tensor), actual
        assert repr(actual.dtype) == repr(expected.dtype)
        assert tuple(actual.shape) == tuple(expected.shape)
        assert actual.storage_offset() == expected.storage_offset()
        if expected._is_view() or is_laid_out:
            assert strides_that_count(actual) == strides_that_count(expected)
            assert actual.is_contiguous() == expected.is_contiguous()
        assert type(actual._array) is np.ndarray
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=rtol, atol=0)
        if actual.dtype.is_floating_point and rtol == 0:
            zero = actual.numpy() == 0
            np.testing.assert_array_equal(
                np.signbit(actual.numpy()[zero]), np.signbit(expected.numpy()[zero])
            )
    elif isinstance(expected, (torch.dtype, torch.device)):
        assert repr(actual) == repr(expected)
    elif isinstance(expected, float) and expected != expected:
        assert actual != actual
    else:
        assert type(actual).__name__ == type(expected).__name__
        assert actual == expected


@contextlib.contextmanager
def without_cuda():
    """No CUDA device, whatever there is."""
    before = register_device("cuda", lambda: None)
    try:
        yield
    finally:
        register_device("cuda", before)


NO_CUDA = (
    "Torch not compiled with CUDA enabled",
    "Cannot access accelerator device when none is available.",
)


def first_line(run):
    """The type of the exception that this raises, and the first line of what it says."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        run()
    return type(caught.value), str(caught.value).split("\n")[0]


def assert_same_outcome(expected, actual, rtol=0.0, is_laid_out=True):
    """Both give the same value, or both raise the same class with the same first line.

    Gives "value" or "error".
    """
    expected = outcome(expected)
    if expected[0] == "error" and expected[2] in NO_CUDA:  # nor is there any for tensorkit
        with without_cuda():
            actual = outcome(actual)
    else:
        actual = outcome(actual)
    if expected[0] == "error":
        assert actual[0] == "error", f"PyTorch: {expected}; tensorkit: {actual}"
        assert same_words(actual[2], expected[2])
        assert expected[1][0] in actual[1]
    else:
        assert actual[0] == "value", f"PyTorch: {expected}; tensorkit: {actual}"
        assert_same(expected[1], actual[1], rtol, is_laid_out)
    return expected[0]


def assert_same_or_refused(expected, actual):
    """Both give the same value, or both raise the same class, each in its own words."""
    wanted, got = outcome(expected), outcome(actual)
    assert wanted[0] == got[0], f"PyTorch: {wanted}; tensorkit: {got}"
    if wanted[0] == "value":
        assert_same(wanted[1], got[1])
    else:
        assert wanted[1][0] in got[1]
