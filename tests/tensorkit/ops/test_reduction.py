"""Reductions, softmax and sorting against PyTorch: values, dtypes, strides, errors, texts."""

import copy
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tk_oracle import (
    FLOATS,
    INTEGERS,
    assert_same,
    assert_same_outcome,
    outcome,
    small_values_of,
    torch,
    twins,
)

import tensorkit as tk

dims = st.one_of(st.none(), st.integers(-3, 2))
several = st.one_of(dims, st.lists(st.integers(-2, 1), max_size=2).map(tuple))
RTOL = {"torch.float16": 3e-3, "torch.float32": 1e-5, "torch.float64": 1e-11}


def _same(name, x, *args, **options):
    """Function and method give what they give in PyTorch, a pair of named results included."""
    rtol = RTOL.get(repr(x.tk.dtype), 0)
    expected = outcome(lambda: getattr(torch, name)(x.torch, *args, **options))
    for run in (
        lambda: getattr(tk, name)(x.tk, *args, **options),
        lambda: getattr(x.tk, name)(*args, **options),
    ):
        if expected[0] == "value" and isinstance(expected[1], tuple):
            actual = run()
            assert len(actual) == len(expected[1])
            for wanted, got in zip(expected[1], actual, strict=True):
                assert_same(wanted, got, rtol)
        else:
            assert_same_outcome(lambda: getattr(torch, name)(x.torch, *args, **options), run, rtol)


@pytest.mark.parametrize("name", ["sum", "mean", "all", "any", "amax", "amin"])
@given(x=twins(values=small_values_of), dim=several, keepdim=st.booleans())
def test_a_reduction_along_several_dimensions_is_pytorchs(name, x, dim, keepdim):
    # of two mistakes, integers and a dimension that is not there, PyTorch names the other one
    assume(name != "mean" or x.tk.is_floating_point())
    _same(name, x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("name", ["sum", "prod", "amin", "argmax", "logsumexp"])
def test_a_second_dimension_is_no_keepdim(name):
    x = np.ones((2, 3))
    assert_same_outcome(
        lambda: getattr(torch, name)(torch.tensor(x), 0, 1),
        lambda: getattr(tk, name)(tk.tensor(x), 0, 1),
    )


@pytest.mark.parametrize("name", ["prod", "max", "min", "argmax", "argmin"])
@given(x=twins(values=small_values_of), dim=dims, keepdim=st.booleans())
def test_a_reduction_along_one_dimension_is_pytorchs(name, x, dim, keepdim):
    assume("arg" not in name or x.tk.dtype is not tk.bool)  # which of two mistakes is named
    _same(name, x, **({} if dim is None else {"dim": dim, "keepdim": keepdim}))


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "argmax", "argmin"])
@given(x=twins(FLOATS), dim=st.integers(-2, 1))
def test_nan_and_infinity_are_treated_as_pytorch_treats_them(name, x, dim):
    _same(name, x, dim=dim)


@pytest.mark.parametrize("name", ["var", "std"])
@given(
    x=twins(FLOATS, values=small_values_of),
    dim=several,
    keepdim=st.booleans(),
    correction=st.sampled_from([0, 1, 2, 0.5]),
)
def test_var_and_std_are_pytorchs(name, x, dim, keepdim, correction):
    _same(name, x, dim=dim, keepdim=keepdim, correction=correction)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@given(x=twins(values=small_values_of), dim=st.integers(-2, 1))
def test_softmax_is_pytorchs(name, x, dim):
    assume(x.tk.numel() or x.tk.is_floating_point())  # PyTorch lets nothing of integers pass
    _same(name, x, dim)
    _same(name, x, dim, dtype=None)


@given(x=twins(values=small_values_of), dim=several, keepdim=st.booleans())
def test_logsumexp_is_pytorchs(x, dim, keepdim):
    if dim not in (None, ()):  # PyTorch fails with ()
        _same("logsumexp", x, dim, keepdim)


@given(
    x=twins(FLOATS, values=small_values_of),
    p=st.sampled_from([2, None, "fro"]),
    dim=several,
    keepdim=st.booleans(),
)
def test_norm_is_pytorchs(x, p, dim, keepdim):
    _same("norm", x, p, dim, keepdim)


def test_other_norms_are_refused_with_a_formula():
    x, p = tk.tensor([1.0, -2.0]), 3
    with pytest.raises(NotImplementedError) as refused:
        x.norm(p)
    repair = str(refused.value).partition("Try: ")[2]
    assert eval(repair) == pytest.approx(9 ** (1 / 3))


@given(x=twins(values=small_values_of), dim=st.integers(-2, 1))
def test_cumsum_is_pytorchs(x, dim):
    _same("cumsum", x, dim)


@given(x=twins(), dim=st.integers(-2, 1), descending=st.booleans())
def test_sort_is_pytorchs(x, dim, descending):
    assume(x.tk.is_contiguous())  # the strides of the result: see known_differences
    _same("sort", x, dim=dim, descending=descending, stable=True)
    _same("argsort", x, dim=dim, descending=descending, stable=True)


@given(x=twins(), dim=st.integers(-2, 1), descending=st.booleans())
def test_sort_of_any_layout_has_pytorchs_elements(x, dim, descending):
    run = [lambda each=each: each.sort(dim=dim, descending=descending, stable=True)
           for each in (x.torch, x.tk)]  # fmt: skip
    expected, actual = map(outcome, run)
    assert actual[0] == expected[0]
    for wanted, got in zip(expected[1], actual[1], strict=True) if expected[0] == "value" else ():
        assert_same(wanted.contiguous(), got)


@given(
    x=twins([*FLOATS, *INTEGERS]),
    k=st.integers(0, 3),
    dim=st.integers(-2, 1),
    largest=st.booleans(),
)
def test_topk_finds_pytorchs_values_at_its_indices(x, k, dim, largest):
    assume(k or x.tk.dim())  # of a number PyTorch gives one for k = 0, too
    expected = outcome(lambda: torch.topk(x.torch, k, dim, largest).values)
    assert_same_outcome(
        lambda: torch.topk(x.torch, k, dim, largest).values,
        lambda: tk.topk(x.tk, k, dim, largest).values,
    )
    if expected[0] == "value":
        values, indices = x.tk.topk(k, dim, largest)
        assert_same(expected[1], x.tk.gather(dim, indices) if x.tk.dim() else x.tk.clone())
        assert indices.dtype is tk.int64
        assert values.shape == indices.shape


@given(x=twins(values=small_values_of), as_tuple=st.booleans())
def test_nonzero_is_pytorchs(x, as_tuple):
    expected, actual = x.torch.nonzero(as_tuple=as_tuple), x.tk.nonzero(as_tuple=as_tuple)
    for wanted, got in zip(expected, actual, strict=True) if as_tuple else [(expected, actual)]:
        assert_same(wanted.clone().contiguous(), got.contiguous())


@given(x=twins(values=small_values_of))
def test_where_of_a_condition_alone_is_pytorchs(x):
    for wanted, got in zip(torch.where(x.torch), tk.where(x.tk), strict=True):
        assert_same(wanted.clone(), got)


@given(x=twins(values=small_values_of), inverse=st.booleans(), counts=st.booleans())
def test_unique_is_pytorchs(x, inverse, counts):
    _same("unique", x, return_inverse=inverse, return_counts=counts)


@given(
    values=st.lists(st.integers(-1, 6), max_size=6),
    length=st.integers(-1, 9),
    dtype=st.sampled_from(["int64", "uint8", "int8", "float32"]),
)
def test_bincount_is_pytorchs(values, length, dtype):
    values = [abs(value) for value in values] if dtype == "uint8" else values

    def run(module):
        return module.bincount(
            module.tensor(values, dtype=getattr(module, dtype)), minlength=length
        )

    assert_same_outcome(lambda: run(torch), lambda: run(tk))


TEXTS = """
    x.max(0)
    x.min(1, keepdim=True)
    x.sort(descending=True)
    x.topk(1)
    x.max(0).values, x.max(0)[1], x.max(dim=-1)
    type(x.max(0)), type(x.sort()), isinstance(x.max(0), tuple)
    x.var(correction=0), x.std(0, correction=0, keepdim=True), x.var(0, correction=5)
    x.norm(), x.norm(dim=0), x.norm(p=2, dim=(0, 1), keepdim=True), x.double().norm()
    x.all(), x.any(0), x.all((0, 1)), x.to(tk.uint8).all()
    x.sum(dtype=tk.float64), x.long().sum(dtype=tk.bool), (x > 2).cumsum(0), (x > 2).prod()
    tk.max(x, x * 2), x.max(other=x)
    tk.tensor([2., tk.nan]).max(), tk.tensor([tk.nan, 2.]).min(0), tk.tensor([1., tk.nan]).argmax()
    tk.tensor([tk.nan, 1., -tk.inf]).sort(), tk.tensor([tk.nan, 1.]).sort(descending=True)
    tk.tensor([3, 1, 3]).unique(return_inverse=True)
    tk.tensor([[1, 2], [1, 2], [0, 2]]).unique(dim=0, return_counts=True)
    tk.logsumexp(tk.tensor([-tk.inf, -tk.inf]), 0), tk.logsumexp(tk.tensor([tk.inf, 1.]), 0)
    tk.zeros(2, 0).sum(1), tk.zeros(2, 0).prod(1), tk.zeros(0).var(), tk.zeros(0).norm()
    tk.zeros(2, 0).max(1)
    tk.zeros(0).max()
    tk.zeros(0).amax()
    tk.zeros(0).argmin()
    tk.zeros(2, 0).argmax(1)
    tk.zeros(2, 0).max(0)
    tk.tensor([True]).argmax()
    x.long().var()
    x.long().mean()
    x.long().norm()
    x.long().softmax(0)
    x.long().log_softmax(-1)
    x.max(5)
    x.max("a")
    x.max((0, 1))
    x.amax(1.5)
    x.argmax(1.5)
    x.argmax((0, 1))
    x.prod((0, 1))
    x.sum((0, 0))
    x.softmax(2)
    tk.zeros(0, 3).softmax(2)
    tk.zeros(0, 3).log_softmax(-3)
    x.sum(np.int64(1)), x.mean(np.int64(0)), x.amax(np.int64(1)), x.var(np.int64(1))
    x.max(np.int64(0)), x.softmax(np.int64(1)), x.logsumexp(np.int64(0)), x.sum((np.int64(1),))
    tk.autograd.grad(x.requires_grad_().prod(np.int64(1)).sum(), x)
    tk.nn.functional.leaky_relu(-x, np.float64(0.2)), tk.nn.LeakyReLU(np.float64(0.2))(-x)
    x.cumsum(1.5)
    x.topk(5)
    x.topk(-1)
    x.sort(3)
    tk.tensor([True]).topk(1)
    tk.max(3)
    tk.softmax(3, 0)
    tk.bincount(tk.tensor([[1]]))
    tk.bincount(tk.tensor([-1]))
    tk.bincount(tk.tensor([1.]))
    tk.bincount(tk.tensor([True]))
""".strip().split("\n")


@pytest.mark.parametrize("text", [line.strip() for line in TEXTS])
def test_an_expression_shows_what_it_shows_in_pytorch(text):
    def run(module):
        x = module.tensor([[1.0, 3.0, 2.0], [6.0, 4.0, 5.0]])
        return repr(eval(text, {"tk": module, "x": x, "np": np}))

    assert_same_outcome(lambda: run(torch), lambda: run(tk))


@pytest.mark.parametrize("largest", [2**63 - 1, 2**60])
def test_bincount_refuses_what_no_memory_holds(largest):
    with pytest.raises(RuntimeError, match="maximum value of input overflowed"):
        tk.bincount(tk.tensor([1, largest]))


def test_named_results_are_tuples_that_can_be_copied():
    found = tk.tensor([1.0, 3.0]).max(0)
    values, indices = found
    assert found == (values, indices)
    assert copy.copy(found).indices.item() == 1
    assert pickle.loads(pickle.dumps(found)).values.item() == 3


def test_sums_of_many_numbers_keep_their_digits():
    many = tk.full((200_000, 8), 0.1)
    np.testing.assert_allclose(many.sum(0).numpy(), 20_000, rtol=1e-6)
    np.testing.assert_allclose(many.mean(0).numpy(), 0.1, rtol=1e-6)
    np.testing.assert_allclose(many[:, 0].cumsum(0)[-1].item(), 20_000, rtol=1e-6)
    assert tk.ones(5000, dtype=tk.float16).sum().item() == 5000
    assert tk.ones(5000, dtype=tk.float16).mean().item() == 1


LARGE = [(70_001,), (3, 9_000), (9_000, 3), (513, 65), (30, 20, 50), (40, 1, 600)]


@pytest.mark.parametrize("shape", LARGE)
def test_large_sums_are_pytorchs_along_any_dimensions(shape):
    x = tk.rand(shape) + 0.1
    reference = torch.from_numpy(x.numpy())
    dims = [(0,), (len(shape) - 1,), tuple(range(len(shape))), (0, len(shape) - 1)]
    dims = dims[: 3 if len(shape) == 1 else 4]
    for dim in dims:
        for keepdim in (False, True):
            for name in ("sum", "mean", "norm", "logsumexp"):
                run = [getattr(m, name) for m in (torch, tk)]
                options = {"dim": dim, "keepdim": keepdim, **({"p": 2} if name == "norm" else {})}
                assert_same(run[0](reference, **options), run[1](x, **options), 1e-6)
    for dim in range(len(shape)):
        for name in ("softmax", "log_softmax"):
            run = [getattr(m, name) for m in (torch, tk)]
            assert_same(run[0](reference, dim), run[1](x, dim), 1e-5)


def test_topk_of_many_is_pytorchs():
    x = tk.rand(5, 700)
    reference = torch.from_numpy(x.numpy())
    for largest in (True, False):
        want, got = (m.topk(each, 9, largest=largest) for m, each in ((torch, reference), (tk, x)))
        assert_same(want.values, got.values)
        assert_same(want.indices, got.indices)


TIES = ["x.max()", "x.amax()", "x.amax(0)", "x.max(0).values", "x.min()", "tk.maximum(x, y)"]


@pytest.mark.parametrize("text", [*TIES, "x.min(1)[0]", "tk.minimum(y, x)", "x.clamp(1, 3)"])
@pytest.mark.parametrize("values", [[[3.0, 3.0, 1.0], [3.0, 1.0, 1.0]], [[1.0, float("nan")]]])
def test_a_gradient_is_shared_among_equals_as_in_pytorch(text, values):
    def run(module):
        x = module.tensor(values, requires_grad=True)
        scope = {"tk": module, "x": x, "y": module.tensor(values, requires_grad=True)}
        eval(text, scope).sum().backward()
        return x.grad

    assert_same(run(torch), run(tk))


@pytest.mark.parametrize("dim", [1.0, "0", None, (0, 1), [1]])
def test_a_plan_for_one_dim_serves_no_other(dim):
    tensor, reference = tk.ones(2, 3), torch.ones(2, 3)
    tensor.sum(1), tensor.sum(dim=1)
    try:
        expected = reference.sum(dim).tolist()
    except TypeError:
        with pytest.raises(TypeError):
            tensor.sum(dim)
    else:
        assert tensor.sum(dim).tolist() == expected


@pytest.mark.parametrize("far", [0.0, 100.0])
def test_softmax_of_many_numbers_near_and_far_from_zero_is_pytorchs(far):
    x = np.linspace(-3, 3, 64 * 100, dtype=np.float32).reshape(64, 100) + np.float32(far)
    for name in ("softmax", "logsumexp"):
        actual = getattr(tk.from_numpy(x), name)(1).numpy()
        expected = getattr(torch.from_numpy(x), name)(1).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


UNDER_NUMPYS_NAMES = """
    x.sum(axis=0), x.mean(axis=(0, 1), keepdims=True), x.sum(1, keepdims=True), m.sum(x, axis=-1)
    x.var(axis=0), x.std(dim=0, keepdims=True), x.prod(axis=1), x.cumsum(axis=1), m.norm(x)
    x.amax(axis=0, keepdims=True), x.any(axis=1), m.all(x, axis=0), x.logsumexp(axis=(0,))
    m.softmax(x, axis=1), x.log_softmax(axis=0), x.argmax(axis=1), m.argmin(x, 0, keepdims=True)
    x.max(1, keepdims=True), m.max(x, axis=0), x.min(axis=1, keepdims=True), x.min(axis=0).values
    m.cat([x, x], axis=1), m.stack((x, x), axis=-1), x.unsqueeze(axis=1), x.select(axis=0, index=1)
    x.chunk(3, axis=1), x.unbind(axis=1), x.split(2, dim=0), m.unsqueeze(x, axis=0)
"""


@pytest.mark.parametrize("line", UNDER_NUMPYS_NAMES.strip().split("\n"))
def test_numpys_names_of_dimensions_are_taken_too(line):
    for _ in range(2):  # for the first time, and by a plan
        expected, actual = (
            eval(line, {"m": m, "x": m.arange(6.0).view(2, 3)}) for m in (torch, tk)
        )
        assert repr(actual) == repr(expected)


@pytest.mark.parametrize(
    "line", ["m.ones(1).var()", "m.ones(3, 1).std(1)", "m.ones(2).var(correction=2)",
             "m.ones(0).std()", "m.ones(1).var(correction=0)", "m.tensor(1.0).std()"]
)  # fmt: skip
def test_too_few_numbers_for_a_spread_are_warned_of_each_time(line):
    found = []
    for m in (torch, tk):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answers = [repr(eval(line, {"m": m})) for _ in range(2)]
        told = [(each.filename, str(each.message).split(" (Triggered")[0]) for each in caught]
        found.append((answers, told))
    assert found[1] == found[0]


def test_a_gradient_of_float16_does_not_overflow_on_its_way():
    x = tk.zeros(1, 1000, dtype=tk.float16, requires_grad=True)
    (x.log_softmax(1) * 300).float().sum().backward()
    assert x.grad.abs().max().item() < 1


def test_the_gradient_of_a_product_with_a_zero_takes_memory_for_each_number_not_each_pair():
    x = tk.ones(4000)
    x[7] = 0
    x.requires_grad_()
    y = x.prod()
    tracemalloc.start()
    try:
        y.backward()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert x.grad.sum() == 1
    assert most < 4000 * 100  # a byte for each pair would be 16,000,000


@pytest.mark.parametrize(
    ("line", "repair"),
    [
        ("x.var(False)", "x.var(correction=0)"),
        ("x.std(True)", "x.std(correction=1)"),
        ("x.clamp(min=min)", "tk.maximum(x, min)"),
        ("x.clamp(max=max)", "tk.minimum(x, max)"),
        ("x.clamp(min, max)", "tk.minimum(tk.maximum(x, min), max)"),
    ],
)
def test_the_repair_of_a_call_that_pytorch_takes_gives_what_pytorch_gives(line, repair):
    def values(m):
        pairs = {"x": [1.0, 2.0, 4.0], "min": [2.0, 1.0, 1.0], "max": [3.0, 3.0, 3.0]}
        return {"tk": tk} | {name: m.tensor(each) for name, each in pairs.items()}

    with pytest.raises(TypeError) as caught:
        eval(line, values(tk))
    assert f"Try: {repair.removeprefix('x.var(').removeprefix('x.std(')}"[:-1] in str(caught.value)
    assert_same(eval(line, values(torch)), eval(repair, values(tk)), rtol=1e-6)


def test_what_is_no_dtype_is_refused_with_the_name_of_the_operation_once():
    with pytest.raises(
        TypeError, match=r"^sum\(\): argument 'dtype' must be torch\.dtype, not str"
    ):
        tk.ones(2).sum(dtype="float")
