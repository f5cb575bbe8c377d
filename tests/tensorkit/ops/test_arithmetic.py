"""Arithmetic against PyTorch: values, dtypes, strides and errors on random tensors."""

import operator
import threading
import warnings
from functools import partial

import numpy as np
import pytest
import tk_oracle
from hypothesis import assume, given
from hypothesis import strategies as st
from tk_oracle import (
    DTYPES,
    broadcastable_pairs,
    numbers,
    small_values_of,
    torch,
    twins,
)

import tensorkit as tk

assert_same_outcome = partial(tk_oracle.assert_same_outcome, is_laid_out=False)


def _is_rounded_first(x, number):
    """Whether NumPy rounds a number to float16, in which PyTorch computes with all its digits."""
    is_exact = not isinstance(number, float) and abs(number) < 2**11
    return x.tk.dtype is tk.float16 and not is_exact


def _may_be_refused(x, y):
    """Whether a product or a quotient has a number that float16 may not hold."""
    return any(
        half.tk.dtype is tk.float16 and other.tk.dtype.itemsize > 2 and not other.tk.ndim
        for half, other in ((x, y), (y, x))
    )


HELD = [
    "x * 0.5",
    "x / 60000",
    "x // 0.25",
    "x * tk.tensor(0.25)",
    "x * float('inf')",
    "x + 65536",
    "x > 1e-8",
]
NOT_HELD = [
    "x / 65536", "x * 1e-8", "x * 65536.", "65536 / x", "x[0] * 1e-8", "x.div_(65536)",
    "x * tk.tensor(1e-8)", "x.mul_(tk.tensor(65536.))", "x * tk.tensor(1e-8, dtype=tk.float64)",
    "x // 0.1", "x // 1e-8", "x // tk.tensor(0.1)", "x.floor_divide_(0.1)", "70000 // x",
]  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_number_that_float16_does_not_hold_is_no_factor(device):
    with tk.cuda.simulate():
        x = tk.tensor([0.0, 1000.0], dtype=tk.float16, device=device)
        for text in NOT_HELD:
            with pytest.raises(
                tk.errors.ConversionError,
                match=r"(no number near|not hold) [\d.e-]+\s+Try: x\.float\(\)",
            ):
                eval(text, {"tk": tk, "x": x})


@pytest.mark.parametrize("text", HELD)
def test_a_number_that_float16_holds_is_a_factor_as_in_pytorch(text):
    def run(m):
        return eval(text, {"tk": m, "x": m.tensor([0.0, 1000.0]).half()})

    assert_same_outcome(lambda: run(torch), lambda: run(tk))


OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod"]
BITWISE = ["and_", "or_", "xor"]


@pytest.mark.parametrize("name", OPERATORS)
@given(pair=broadcastable_pairs())
def test_an_operator_on_two_tensors_gives_what_pytorch_gives(name, pair):
    x, y = pair
    assume(name not in ("mul", "truediv", "floordiv") or not _may_be_refused(x, y))
    run = getattr(operator, name)
    assert_same_outcome(lambda: run(x.torch, y.torch), lambda: run(x.tk, y.tk))


@pytest.mark.parametrize("name", OPERATORS)
@given(x=twins(), number=numbers, number_first=st.booleans())
def test_an_operator_on_a_tensor_and_a_number_gives_what_pytorch_gives(
    name, x, number, number_first
):
    assume(not _is_rounded_first(x, number))
    run = getattr(operator, name)
    if number_first:
        assert_same_outcome(lambda: run(number, x.torch), lambda: run(number, x.tk))
    else:
        assert_same_outcome(lambda: run(x.torch, number), lambda: run(x.tk, number))


@pytest.mark.parametrize("name", BITWISE)
@given(pair=broadcastable_pairs(), number=numbers)
def test_bitwise_operators_give_what_pytorch_gives(name, pair, number):
    x, y = pair
    run = getattr(operator, name)
    assert_same_outcome(lambda: run(x.torch, y.torch), lambda: run(x.tk, y.tk))
    assert_same_outcome(lambda: run(x.torch, number), lambda: run(x.tk, number))


exponents = st.one_of(st.integers(-3, 5), st.sampled_from([-2.0, -0.5, 0.25, 0.5, 1.0, 2.0, 3.0]))


def test_a_failed_in_place_operation_leaves_its_tensor_as_it_was():
    x = tk.tensor([5, 7])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.floor_divide_(tk.tensor([2, 0]))
    assert x.tolist() == [5, 7]


# Powers are compared up to the last digits: PyTorch and NumPy use different approximations.
@given(pair=broadcastable_pairs(values=small_values_of))
def test_powers_of_tensors_are_pytorchs(pair):
    x, y = pair
    assert_same_outcome(lambda: x.torch**y.torch, lambda: x.tk**y.tk, rtol=1e-3)


@given(x=twins(values=small_values_of), number=exponents)
def test_powers_with_numbers_are_pytorchs(x, number):
    assert_same_outcome(lambda: x.torch**number, lambda: x.tk**number, rtol=2e-3)


@pytest.mark.parametrize("base", [*DTYPES])
@pytest.mark.parametrize("exponent", ["float32", "float64"])
def test_the_slope_of_an_exponent_has_the_digits_of_its_own_dtype(base, exponent):
    found = []
    for m in (torch, tk):
        x = m.tensor([7, 3, 1, 0], dtype=getattr(m, base))
        y = m.tensor([1.7, 0.3, 2.0, 1.0], dtype=getattr(m, exponent), requires_grad=True)
        (x**y).sum().backward()
        found.append(y.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6 if exponent == "float32" else 1e-7)


@given(x=twins())
def test_reciprocal_is_pytorchs(x):
    assert_same_outcome(lambda: x.torch.reciprocal(), lambda: x.tk.reciprocal())


@pytest.mark.parametrize("name", ["neg", "abs", "invert", "pos"])
@given(x=twins())
def test_unary_operators_give_what_pytorch_gives(name, x):
    run = getattr(operator, name)
    assert_same_outcome(lambda: run(x.torch), lambda: run(x.tk))


def test_a_number_in_place_wraps_as_those_of_longer_tensors_do():
    x, y = tk.tensor(-64, dtype=tk.int8), tk.tensor(-2, dtype=tk.int16)
    assert x.mul_(y).item() == -128


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_"])
@given(pair=broadcastable_pairs())
def test_in_place_methods_write_or_refuse_as_pytorch(name, pair):
    x, y = pair
    assume(name not in ("mul_", "div_", "floor_divide_") or not _may_be_refused(x, y))
    x = x.again()
    assert_same_outcome(lambda: getattr(x.torch, name)(y.torch), lambda: getattr(x.tk, name)(y.tk))


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ior"])
@given(x=twins(), number=numbers)
def test_augmented_assignment_writes_in_place_as_pytorch(name, x, number):
    assume(not _is_rounded_first(x, number))
    x = x.again()
    run = getattr(operator, name)
    assert_same_outcome(lambda: run(x.torch, number), lambda: run(x.tk, number))


@given(
    pair=broadcastable_pairs(values=small_values_of),
    alpha=numbers.filter(lambda number: not isinstance(number, bool)),
)
def test_alpha_scales_the_second_argument(pair, alpha):
    x, y = pair
    for name in ("add", "sub"):
        assert_same_outcome(
            lambda name=name: getattr(torch, name)(x.torch, y.torch, alpha=alpha),
            lambda name=name: getattr(tk, name)(x.tk, y.tk, alpha=alpha),
            rtol=1e-3,
        )


def test_a_root_in_the_denominator_keeps_the_sign_of_zero():
    values = [-tk.inf, -0.0, 0.0, 4.0, tk.inf]
    assert_same_outcome(lambda: torch.tensor(values) ** -0.5, lambda: tk.tensor(values) ** -0.5)
    assert_same_outcome(
        lambda: torch.tensor(values).half() ** 0.5, lambda: tk.tensor(values).half() ** 0.5
    )


def test_div_does_not_round_and_says_what_does():
    with pytest.raises(tk.errors.NotSupportedError, match="x // y"):
        tk.div(tk.ones(2), 2, rounding_mode="floor")


@given(x=twins(), y=twins())
def test_shapes_that_do_not_fit_are_refused_with_pytorchs_words(x, y):
    assert_same_outcome(lambda: x.torch * y.torch, lambda: x.tk * y.tk)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_are_arrays_even_for_single_numbers(dtype):
    x = tk.tensor(1, dtype=getattr(tk, dtype))
    for result in (x + x, x == x, x * 2, x + 0.5):
        assert type(result._array) is np.ndarray


def _everything_numpy_warns_about():
    x = tk.tensor([1.0, -1.0, 0.0, 3e38])
    zero = tk.zeros(4)
    _ = x / zero, x / 0, x * x, zero / zero, x // zero, x % zero, x - tk.full((4,), tk.inf)
    _ = (x / 0).long(), x.half(), x**0.5, zero**-1, tk.tensor([1e300]), tk.tensor(tk.nan) + 1
    x *= 1e38
    x.add_(tk.inf)


@pytest.mark.parametrize("action", ["error", "always", "default"])
def test_no_warning_of_numpy_escapes_whatever_the_filters_say(action):
    caught = []

    def run():
        try:
            _everything_numpy_warns_about()
        except Warning as warning:
            caught.append(warning)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        run()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert not caught
    assert not seen


def test_the_settings_of_numpy_stay_the_users():
    before = np.geterr()
    _everything_numpy_warns_about()
    assert np.geterr() == before


def test_numpy_scalars_count_as_python_numbers():
    x = tk.tensor([1.0, 2.0])
    for number in (np.float64(2), np.float32(2), np.int64(2), np.int8(2)):
        assert (x * number).dtype is tk.float32
        assert (number * x).dtype is tk.float32


def test_writing_to_memory_seen_twice_is_refused():
    x = tk.zeros(3).as_strided((2, 3), (0, 1))
    with pytest.raises(tk.errors.OverlapError, match="more than one element"):
        x.add_(1)
    y = tk.arange(5)
    with pytest.raises(tk.errors.OverlapError, match="some elements of the input"):
        y[1:].add_(y[:-1])


def test_mixing_with_an_array_names_from_numpy():
    for run in (lambda a, t: a * t, lambda a, t: t * a, lambda a, t: t < a):
        with pytest.raises(TypeError, match=r"tk\.from_numpy"):
            run(np.ones(3), tk.ones(3))


def test_a_new_default_dtype_is_used_at_once():
    a = tk.arange(3)
    assert [(a / 2).dtype, (a * 1.5).dtype, a.exp().dtype] == [tk.float32] * 3
    try:
        tk.set_default_dtype(tk.float64)
        assert [(a / 2).dtype, (a * 1.5).dtype, a.exp().dtype] == [tk.float64] * 3
    finally:
        tk.set_default_dtype(tk.float32)
    assert [(a / 2).dtype, (a * 1.5).dtype, a.exp().dtype] == [tk.float32] * 3


def test_numbers_that_are_equal_but_not_the_same_are_told_apart():
    x = tk.ones(2)
    for _ in range(2):  # the second time by the plan of the first
        assert (x / 0.0).tolist() == [float("inf")] * 2
        assert (x / -0.0).tolist() == [float("-inf")] * 2
        assert (tk.arange(2) * 1).dtype is tk.int64
        assert (tk.arange(2) * 1.0).dtype is tk.float32
        assert (tk.arange(2) * True).dtype is tk.int64
        assert (x * 1e300).tolist() == [float("inf")] * 2


def test_a_number_that_is_another_in_every_call_is_the_number_of_that_call():
    x = tk.tensor([0.3, -2.0, 5.0], requires_grad=True)
    reference = torch.tensor([0.3, -2.0, 5.0])
    for step in range(300):  # more than are kept one by one
        number = 0.37 * step - 20
        assert (x * number).tolist() == (reference * number).tolist()
        assert (x > number).tolist() == (reference > number).tolist()


def test_an_operation_meets_any_number_of_shapes():
    for size in range(300):  # more than are kept one by one
        assert tk.ones(size).tanh().shape == (size,)
        assert (tk.ones(size) * tk.ones(size)).shape == (size,)


@pytest.mark.parametrize("shape", [(4, 3), ()])
def test_results_of_transposed_and_0d_tensors_lie_as_in_pytorch(shape):
    tensor, reference = tk.ones(shape), torch.ones(shape)
    for _ in range(2):  # the second time by the plan of the first
        assert (tensor.t() + tensor.t()).stride() == (reference.t() + reference.t()).stride()
        assert (tensor + tensor).shape == reference.shape
