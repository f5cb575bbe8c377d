"""The class Tensor: Python's protocols, attributes, words of its errors."""

import copy
import inspect
import pickle
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from known_differences import KNOWN_DIFFERENCES
from tk_oracle import (
    assert_same,
    assert_same_outcome,
    outcome,
    strides_that_count,
    torch,
    twins,
)

import tensorkit as tk
from tensorkit import absent


def names(library):
    """What the expressions below are about."""
    return {
        "torch": library,
        "np": np,
        "t3": library.tensor([1.0, 2.0, 3.0]),
        "i3": library.tensor([1, 2, 3]),
        "b3": library.tensor([True, False, True]),
        "i8": library.tensor([1, 2, 3], dtype=library.int8),
        "u8": library.tensor([1, 2, 3], dtype=library.uint8),
        "s0": library.tensor(2.0),
        "m": library.arange(6.0).as_strided((2, 3), (3, 1)),
    }


SENTENCES = """
t3 + object()
torch.add(t3, object())
torch.add(2, 'a')
torch.eq(t3, None)
torch.pow(2, 3)
t3.add('a')
t3.mul_('a')
t3 + [1, 2, 3]
t3 == None
t3 < 'a'
b3 - b3
b3 - 1
1 - b3
-b3
+b3
abs(b3)
b3 // b3
b3 % b3
b3 ** b3
~t3
t3 & 1
i3 // 0
i3 % 0
i3 ** -1
b3 ** -1
i3 + 2 ** 64
torch.add(i3, i3, alpha=2.5)
i3.add_(1.5)
b3.add_(1)
t3.add_(m)
t3[:2].add_(t3)
t3.copy_([1, 2])
t3.copy_(m)
i8.fill_(300)
i3.fill_(float('nan'))
t3.fill_(1e39)
m + torch.zeros(4)
m.size(5)
m.size('a')
m.stride(2)
s0.size(0)
s0[0]
s0[1]
s0[:]
m[5]
m[0, 5]
m[0, 0, 0]
m[1.5]
m[0:2:-1]
m[0:2:0]
m['a':]
m[torch.tensor(1.)]
m[object()]
len(s0)
iter(s0)
bool(m)
bool(torch.tensor([]))
int(m)
float(m)
int(torch.tensor(float('nan')))
m.item()
range(5)[torch.tensor(2.)]
range(5)[torch.tensor([1, 2])]
format(m, '.4f')
'a' in t3
torch.tensor([[1, 2], [3]])
torch.tensor([[1], 2])
torch.tensor('abc')
torch.tensor(None)
torch.tensor(300, dtype=torch.int8)
torch.tensor([1], dtype='float32')
torch.tensor([1], device='foo')
torch.tensor([1], device='cuda')
torch.zeros(2.5)
torch.zeros((2, 2.5))
torch.full(2, 3)
torch.full((2,), 'a')
torch.arange(5, 1)
torch.arange(1, 5, 0)
torch.arange('a')
torch.arange(5, dtype=torch.bool)
torch.rand(2, dtype=torch.int64)
torch.randn(2, dtype=torch.int64)
torch.randint(5, 2, (2,))
torch.randint(5, 2)
torch.randperm(-1)
torch.zeros_like([1])
torch.from_numpy([1])
torch.from_numpy(np.array(['a']))
torch.from_numpy(np.array([1], dtype='>f4'))
torch.promote_types(torch.int8, 3)
t3.to('foo')
t3.cuda()
torch.device('cpu:a')
torch.equal(t3, 1)
torch.allclose(t3, i3)
torch.isclose(t3, t3, rtol=-1)
m.as_strided((2,), (1,), 5)
m.as_strided((2,), (-1,))
m.as_strided((2,), (1, 2))
m.select(0, 5)
t3.unsqueeze(3)
t3.__setitem__(0, [1])
m.__setitem__(0, np.float32(3))
m.__setitem__(0, torch.zeros(2))
m.__setitem__((0, 0), torch.zeros(2))
m.__delitem__(0)
t3.foo
""".strip().split("\n")


@pytest.mark.parametrize("expression", SENTENCES)
def test_an_error_has_pytorchs_class_and_first_line(expression):
    assert_same_outcome(lambda: eval(expression, names(torch)), lambda: eval(expression, names(tk)))


@pytest.mark.parametrize("expression", KNOWN_DIFFERENCES)
def test_a_known_difference_is_still_one(expression):
    with pytest.raises(AssertionError):
        assert_same_outcome(
            lambda: eval(expression, names(torch)), lambda: eval(expression, names(tk))
        )


@given(x=twins())
def test_numbers_come_out_as_in_pytorch(x):
    for convert in (lambda t: t.item(), lambda t: t.tolist(), bool, int, float):
        expected = outcome(lambda convert=convert: convert(x.torch))
        actual = outcome(lambda convert=convert: convert(x.tk))
        assert actual[0] == expected[0]
        assert repr(actual[-1]) == repr(expected[-1])


@given(x=twins())
def test_attributes_are_pytorchs(x):
    assert repr(x.tk.shape) == repr(x.torch.shape)
    for name in ("ndim", "itemsize", "nbytes", "is_cuda"):
        assert getattr(x.tk, name) == getattr(x.torch, name)
    for name in ("dim", "numel", "element_size", "is_floating_point"):
        assert getattr(x.tk, name)() == getattr(x.torch, name)()
    assert (x.tk.data_ptr() == 0) == (x.torch.data_ptr() == 0)


@given(x=twins())
def test_iterating_gives_views_along_the_first_dimension(x):
    if x.tk.ndim:
        assert len(x.tk) == len(x.torch)
        for expected, actual in zip(x.torch, x.tk, strict=True):
            assert_same(expected, actual)


@given(x=twins())
def test_pickle_and_deepcopy_keep_values_and_layout(x):
    for again in (pickle.loads(pickle.dumps(x.tk)), copy.deepcopy(x.tk)):
        assert_same(x.torch, again)
        if again.numel():
            assert again.data_ptr() != x.tk.data_ptr()


def test_deepcopy_keeps_views_of_one_storage_together():
    x = tk.zeros(4)
    a, b = copy.deepcopy([x, x[2:]])
    a.fill_(7)
    assert b.tolist() == [7.0, 7.0]
    assert x.tolist() == [0.0] * 4


def test_augmented_assignment_keeps_the_object():
    x = tk.zeros(3)
    before = x
    x += 1
    assert x is before


def test_a_view_sees_writes_to_its_base_and_back():
    x = tk.arange(6)
    tail = x[2:]
    x[3] = 30
    assert tail[1].item() == 30
    tail.add_(1)
    assert x.tolist() == [0, 1, 3, 31, 5, 6]


def test_a_result_is_not_changed_by_a_later_write_to_its_input():
    x = tk.ones(3)
    y = x + 0
    x.fill_(5)
    assert y.tolist() == [1.0, 1.0, 1.0]


def test_tensors_are_hashed_by_identity_and_compared_by_element():
    x = tk.zeros(2)
    assert x in {x: "found"}


def test_asarray_shares_memory_and_converts_on_request():
    x = tk.tensor([1.5, 2.5])
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert np.array(x, dtype=int).tolist() == [1, 2]
    assert not np.shares_memory(np.array(x), x.numpy())


def test_the_old_constructor_is_refused_with_a_way_out():
    with pytest.raises(TypeError, match=r"tk\.tensor\(data\)"):
        tk.Tensor([1, 2])


@given(x=twins())
def test_reversed_is_pytorchs(x):
    expected, actual = reversed(x.torch), reversed(x.tk)
    assert strides_that_count(actual) == strides_that_count(expected)
    assert repr(reversed(x.tk)) == repr(reversed(x.torch))


CONVERSIONS = """
m.to()
m.to(torch.float64)
m.to('cpu', torch.int32)
m.to(i3)
m.to(dtype=torch.float16, copy=True)
m.to('cpu', non_blocking=True) is m
m.to(torch.float32, copy=True) is m
m.to('cpu') is m
m.to(None) is m
m.cpu() is m
m.t().double()
torch.numel(m)
torch.is_floating_point(i3)
torch.newaxis
torch.e
m.requires_grad_().numpy(force=True).tolist()
torch.get_default_device()
torch.as_tensor(i3, dtype=torch.int64) is i3
torch.as_tensor([1, 2], device='cpu')
m.to('nonsense')
""".strip().split("\n")


@pytest.mark.parametrize("expression", CONVERSIONS)
def test_conversions_and_relatives_are_pytorchs(expression):
    assert_same_outcome(lambda: eval(expression, names(torch)), lambda: eval(expression, names(tk)))


OPTIONS = """
x.var(unbiased=False) | correction=0
x.sum(out=x) | result.copy_
x.norm(dtype=tk.int64) | x.to(dtype)
x.round(decimals=2) | 10**n
x.matmul(x, out=x) | result.copy_
x.gather(0, x.long(), sparse_grad=True) | leave it out
x.scatter_(0, x.long(), x, reduce="add") | scatter_add
tk.cat([x], out=x) | result.copy_
tk.zeros(2, layout=True) | leave it out
tk.zeros_like(x, memory_format=True) | leave it out
tk.ones(2, pin_memory=True) | leave it out
tk.addmm(x, x, x, beta=0) | a @ b
x.bincount(weights=x) | index_add
tk.nn.functional.mse_loss(x, x, weight=x) | reduction="none"
tk.nn.functional.binary_cross_entropy(x, x, pos_weight=x) | reduction="none"
tk.nn.Linear(2, 2).parameters(recurse=False) | named_parameters()
tk.nn.Linear(2, 2).named_parameters(prefix="a") | named_parameters()
tk.nn.Linear(2, 2).named_modules(prefix="a") | named_parameters()
tk.nn.Linear(2, 2).state_dict(keep_vars=True) | named_parameters()
tk.nn.MSELoss(size_average=False) | reduction="none"
tk.nn.functional.mse_loss(x, x, reduce=False) | reduction="none"
tk.nn.functional.embedding(x.long(), x[None], padding_idx=0) | which is 0 there
tk.nn.init.normal_(x, generator=1) | manual_seed
tk.autograd.grad(x, x, is_grads_batched=True) | a call for each
x.softmax(0, dtype=tk.float64) | x.to(dtype)
tk.nn.functional.log_softmax(x, 0, dtype=tk.float64) | x.to(dtype)
x.mean(dtype=tk.float64) | x.to(dtype)
x.prod(0, dtype=tk.float64) | x.to(dtype)
x.cumsum(0, dtype=tk.float64) | x.to(dtype)
tk.autograd.functional.hessian(print, x, vectorize=True) | leave it out
tk.autograd.functional.hvp(print, x, strict=True) | leave it out
tk.optim.SGD([x], lr=1.0).step(closure=print) | loss.backward()
tk.autograd.functional.jacobian(print, x, vectorize=True) | leave it out
""".strip().split("\n")


@pytest.mark.parametrize("line", OPTIONS)
def test_an_option_of_pytorchs_that_is_missing_is_refused_with_a_repair(line):
    call, repair = line.split(" | ")
    with pytest.raises(tk.errors.NotSupportedError, match=r"; \w+ is not part of") as caught:
        eval(call, {"tk": tk, "x": tk.zeros(2)})
    assert repair in str(caught.value).partition("Try: ")[2]
    assert caught.value.__suppress_context__


def test_an_option_of_nobodys_is_refused_as_python_does_and_defaults_change_nothing():
    x = tk.tensor([1.0, 3.0])
    for call in (x.sum, tk.zeros_like, tk.nn.functional.mse_loss, tk.optim.SGD):
        with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
            call(x, nonsense=0) if call is not tk.optim.SGD else call([x], nonsense=0)
    assert x.var(unbiased=True, out=None).item() == 2.0
    assert tk.ones(1, pin_memory=False, layout=None).item() == 1.0
    with pytest.raises(TypeError, match="Parameters: input, dim, correction, keepdim"):
        x.var(0, False)
    with pytest.raises(TypeError, match="Parameters: params, lr, momentum, weight_decay"):
        tk.optim.SGD([x], 0.1, 0, 0, 0)
    for call in (tk.nn.Linear(2, 2).parameters, tk.optim.SGD([x.requires_grad_()]).step):
        with pytest.raises(TypeError, match=r"Parameters: none\.$"):
            call(print)


def test_what_changes_nothing_is_the_default_in_pytorch():
    found = {}
    functions = [*torch.overrides.get_testing_overrides().values()]
    parts = torch.nn.functional, torch.nn, torch.nn.Module, torch.optim, torch.utils.data
    for module in (*parts, torch.autograd):
        functions += [each for each in vars(module).values() if callable(each)]
    for function in functions:
        with suppress(TypeError, ValueError):  # some tell no signature
            for each in inspect.signature(function).parameters.values():
                if each.name in absent.OPTIONS and each.default is not each.empty:
                    found.setdefault(each.name, set()).add(each.default)
    assert {"reduce", "size_average", "recurse", "padding_idx"} <= found.keys()
    means_something = {"max_norm", "padding_idx", "reduce", "size_average"}
    for name in found.keys() - {"layout", "memory_format", "generator"}:  # of objects
        defaults = found[name]
        for value in (True, False, None, 0, 1, -100, 2.0):
            with suppress(tk.errors.NotSupportedError):
                absent.known_options("f", [], {name: value})
                is_default = any(value is each or value == each for each in defaults)
                is_nothing = not value and defaults & {None, False, ""}
                assert is_default or (is_nothing and name not in means_something), (name, value)


MISFITS = """
x + tk.zeros(4) | tk.explain.broadcast
(x > 0) ** True | x.int()
x.norm(0) | (x != 0).sum().to(x.dtype)
x.norm(1, 0) | x.abs().sum(0)
x.norm(3, (0, 1)) | (x.abs() ** 3).sum((0, 1)) ** (1 / 3)
x.norm(tk.inf) | x.abs().amax()
x.norm("nuc") | numpy.linalg.norm(x.numpy(), 'nuc')
tk.nn.functional.leaky_relu(x.half(), 1e-8) | .half() of the result
x @ x | x @ y.t()
x @ tk.zeros(4, 5) | with a y of shape (3, 5)
tk.cat([x, tk.zeros(2, 4)]) | tk.cat(tensors, 1)
tk.stack([x, tk.zeros(2, 4)]) | tk.cat(tensors)
x.view(4, 2) | (-1, 2)
x.expand(4, 3) | whose size there is 1 or 4
x[[0, 5]] | 1 for the last
x.gather(1, tk.tensor([[0], [3]])) | 2 for the last
tk.nn.functional.cross_entropy(x, tk.tensor([0])) | x[:n], y[:n]
tk.nn.functional.cross_entropy(x, tk.tensor([0, 3])) | 4 scores per item
tk.nn.functional.cross_entropy(x, x) | -(y * x.log_softmax(1)).sum(1).mean()
tk.nn.functional.embedding(tk.tensor([2]), x) | tk.nn.Embedding(3, 3)
tk.nn.functional.linear(x, tk.zeros(3, 4)) | tk.nn.Linear(3, 3)
x.requires_grad_().exp().backward(tk.ones(3)) | tk.ones_like(y)
""".strip().split("\n")


@pytest.mark.parametrize("line", MISFITS)
def test_what_does_not_fit_is_refused_with_a_repair(line):
    call, repair = line.split(" | ")
    with pytest.raises((RuntimeError, IndexError, ValueError)) as caught:
        eval(call, {"tk": tk, "x": tk.zeros(2, 3)})
    assert repair in str(caught.value).partition("\nTry: ")[2]


@pytest.mark.parametrize(
    "fails",
    [
        lambda: tk.nn.functional.cross_entropy(tk.ones(2, 3), tk.tensor([0, 3])),
        lambda: tk.nn.functional.nll_loss(tk.ones(2, 3), tk.tensor([0, 3]), reduction="sum"),
        lambda: tk.ones(2, 3)[[5]],
        lambda: tk.ones(2, 3).__setitem__([5], 1.0),
    ],
)
def test_an_error_is_shown_alone_not_after_one_of_our_own_or_numpys(fails):
    with pytest.raises(IndexError) as caught:
        fails()
    assert caught.value.__context__ is None or caught.value.__suppress_context__
