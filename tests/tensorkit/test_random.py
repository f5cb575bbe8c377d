"""The random streams against PyTorch's, over seeds, sizes, dtypes and mixed sequences of calls."""

import itertools
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tk_oracle import assert_same_outcome, outcome, torch

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


def _assert_drawn_alike(expected, actual, call):
    # Normal numbers go through logarithms and cosines, whose last digits differ between
    # libraries; in half precision one last digit is 2**-11 of the value.
    tolerance = 0.0
    if call[0] == "randn":
        tolerance = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}[call[2]]
    assert repr(actual.dtype) == repr(expected.dtype)
    assert tuple(actual.shape) == tuple(expected.shape)
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


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
    reference = torch.zeros(3, 4).t()
    tensor = tk.zeros(3, 4).as_strided((4, 3), (1, 4))
    for name in ("rand_like", "randn_like"):
        torch.manual_seed(1)
        tk.manual_seed(1)
        np.testing.assert_allclose(
            getattr(tk, name)(tensor).numpy(), getattr(torch, name)(reference).numpy(), rtol=2e-6
        )


def test_the_same_seed_gives_the_same_numbers():
    first = tk.manual_seed(5).initial_seed(), tk.randn(3).tolist()
    second = tk.manual_seed(5).initial_seed(), tk.randn(3).tolist()
    assert first == second


def test_seeds_out_of_range_are_refused():
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        tk.manual_seed(2**64)


sizes = st.one_of(
    st.integers(0, 40).map(lambda n: (n,)),
    st.lists(st.integers(0, 6), max_size=3).map(tuple),
)
probabilities = st.sampled_from([0, 0.3, 0.5, 1])
# (expression on x and on the library, whether whole numbers come out)
FILLINGS = [
    "x.uniform_()",
    "x.uniform_(-3, 5)",
    "x.uniform_(to=2)",
    "x.normal_()",
    "x.normal_(2, 3)",
    "x.normal_(mean=1)",
    "torch.nn.functional.dropout(x + 1, 0.3)",
    "torch.rand(3, dtype=x.dtype)",
    "torch.randn(20, dtype=x.dtype)",
    "torch.randn_like(x)",
    "torch.rand_like(x)",
    "torch.randint(7, (3,))",
    "torch.randperm(9)",
]


def _same_after(seed, run):
    """The values are the same, and so is where the streams stand afterwards."""
    torch.manual_seed(seed)
    tk.manual_seed(seed)
    expected, actual = run(torch), run(tk)
    tolerance = {"torch.float16": 4e-3, "torch.float32": 4e-6}.get(repr(actual.dtype), 1e-13)
    assert repr(actual.dtype) == repr(expected.dtype)
    assert actual.stride() == expected.stride()
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
    for name in ("randn", "rand"):  # a normal number may be left over
        np.testing.assert_allclose(
            getattr(tk, name)(3).numpy(), getattr(torch, name)(3).numpy(), rtol=4e-6, atol=4e-6
        )


@pytest.mark.parametrize("expression", FILLINGS)
@settings(max_examples=12)
@given(size=sizes, dtype=floats, seed=st.integers(0, 99), laid=st.sampled_from(["t", "step", ""]))
def test_fillings_are_pytorchs_in_values_and_in_what_they_leave(
    expression, size, dtype, seed, laid
):
    def run(library):
        if laid == "t" and 0 not in size:
            x = library.zeros(size[::-1], dtype=getattr(library, dtype))
            x = x.permute(*range(x.dim() - 1, -1, -1)) if size else x
        elif laid == "step" and size and 0 not in size:
            x = library.zeros((2 * size[0], *size[1:]), dtype=getattr(library, dtype))[::2]
        else:
            x = library.zeros(size, dtype=getattr(library, dtype))
        return eval(expression, {"torch": library, "x": x})

    _same_after(seed, run)


def test_a_generator_has_a_stream_of_its_own():
    reference, generator = torch.Generator().manual_seed(3), tk.Generator().manual_seed(3)
    expected = tk.manual_seed(5).words(3).tolist()
    tk.manual_seed(5)
    for name, size in (("rand", 4), ("randn", 5), ("randperm", 6)):
        drawn = getattr(tk, name)(size, generator=generator).numpy()
        wanted = getattr(torch, name)(size, generator=reference).numpy()
        np.testing.assert_allclose(drawn, wanted, rtol=2e-6)
    assert tk.default_generator.words(3).tolist() == expected
    assert tk.Generator().initial_seed() == torch.Generator().initial_seed()


REFUSED = """
torch.zeros(2).uniform_(3, 1)
torch.zeros(2).normal_(0, -1)
torch.zeros(2, dtype=torch.int64).normal_()
torch.zeros(2, dtype=torch.int64).uniform_()
torch.randn(2, dtype=torch.int64)
torch.rand(2, dtype=torch.int64)
torch.randint(5, 5, (2,))
torch.ones(2, requires_grad=True).normal_()
torch.zeros(2, foo=1)
torch.zeros(2, dtype=torch.int64, requires_grad=True)
torch.zeros(2).expand(3, 2).normal_()
""".strip().split("\n")


@pytest.mark.parametrize("expression", REFUSED)
def test_refusals_have_pytorchs_words(expression):
    assert_same_outcome(
        lambda: eval(expression, {"torch": torch}), lambda: eval(expression, {"torch": tk})
    )


REFUSED_IN_OTHER_WORDS = """
torch.zeros(2).uniform_(0, 1e39)
torch.randint(300, (2,), dtype=torch.uint8)
torch.randint(5, (2,), dtype=torch.bool)
torch.randint(5)
torch.randint(1, 2, 3, (4,))
torch.randperm(3000, dtype=torch.float16)
torch.randperm(-1)
torch.rand()
torch.rand(2.5)
""".strip().split("\n")


@pytest.mark.parametrize("expression", REFUSED_IN_OTHER_WORDS)
def test_what_pytorch_refuses_is_refused(expression):
    expected, actual = (outcome(lambda m=m: eval(expression, {"torch": m})) for m in (torch, tk))
    assert expected[0] == actual[0] == "error"
    assert {"RuntimeError", "TypeError", "ValueError"} & {*actual[1]}


@pytest.mark.parametrize("filling", ["normal_()", "uniform_()"])
def test_no_gradient_passes_a_filling(filling):
    for library in (torch, tk):
        x = library.ones(3, requires_grad=True)
        y = eval(f"(x * 2).{filling}", {"x": x})
        (y * 5).sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_sizes_may_be_a_list():
    for make in (lambda m: m.rand([2, 3]), lambda m: m.randn([2, 3]), lambda m: m.randint(9, [2])):
        tk.manual_seed(1)
        torch.manual_seed(1)
        for _ in range(2):
            np.testing.assert_allclose(make(tk).numpy(), make(torch).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.rand(2, 5),
        lambda m: m.randn(2, 5, requires_grad=True),
        lambda m: m.randint(7, (2, 5)),
        lambda m: m.rand_like(m.ones(2, 5)),
        lambda m: m.randn_like(m.ones(2, 5)),
        lambda m: m.randperm(5),
    ],
)
def test_new_random_tensors_have_not_been_written_to(make):
    versions = [make(m)._version for m in (torch, tk, tk)]  # seen for the first time, and again
    assert versions == [0, 0, 0]


def test_threads_share_one_stream_of_which_each_number_comes_once():
    n_threads, times = 4, 1500
    tk.manual_seed(0)
    alone = tk.rand(n_threads * times * 25).numpy()
    tk.manual_seed(0)
    drawn = [[] for _ in range(n_threads)]

    def draw(numbers):
        for _ in range(times):
            numbers.append(tk.rand(25).numpy())

    threads = [threading.Thread(target=draw, args=(numbers,)) for numbers in drawn]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    found = np.concatenate(list(itertools.chain(*drawn)))
    assert np.array_equal(np.sort(found), np.sort(alone))
