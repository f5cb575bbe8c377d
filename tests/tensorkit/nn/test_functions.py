"""``nn.functional``: results, nodes and both derivatives are PyTorch's."""

import warnings

import numpy as np
import pytest
from function_cases import CASES, leaves_of
from other_words import same_words
from second_order import gradgradcheck
from tk_oracle import assert_same_outcome, torch

import tensorkit as tk

# PyTorch has no second derivative for the target of these
ONCE = {"bce", "mse", "mse sum", "mse none", "bce with logits"}
# PyTorch computes these in C++, where a number makes nodes of other names; or, with one item or
# items that have places, in a node of its own
OTHER_NODES = {
    "leaky relu in place",
    "cross entropy one",
}


def _F(m):
    return m.nn.functional


def _chain(node, depth=3):
    if node is None:
        return None
    below = [] if depth == 0 else [_chain(each, depth - 1) for each, _ in node.next_functions]
    return [node.name().rsplit("::")[-1], *below]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_a_function_and_its_derivatives_are_pytorchs(name, dtype):
    shapes, run = CASES[name]
    found = []
    for m in (torch, tk):
        leaves = leaves_of(m, shapes, dtype)
        result = run(m, *leaves)
        first = m.autograd.grad((result * result).sum(), leaves, create_graph=name not in ONCE)
        second = ()
        if name not in ONCE:
            # squares, so that it depends on the leaves where the first derivative does not
            total = sum((g * g * x * x).sum() for g, x in zip(first, leaves, strict=True))
            second = m.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
        run(m, *leaves).sum().backward()
        found.append((result, [*first, *second, *(leaf.grad for leaf in leaves)]))
    (expected, expected_gradients), (actual, actual_gradients) = found
    assert actual.stride() == expected.stride()
    assert name in OTHER_NODES or _chain(actual.grad_fn) == _chain(expected.grad_fn)
    # float32: PyTorch's fused kernels round in another order
    tolerance = (
        {"rtol": 1e-9, "atol": 1e-11} if dtype == "float64" else {"rtol": 3e-5, "atol": 3e-6}
    )
    pairs = zip([actual, *actual_gradients], [expected, *expected_gradients], strict=True)
    for got, wanted in pairs:
        assert repr(got.dtype) == repr(wanted.dtype)
        np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), **tolerance)


@pytest.mark.parametrize("name", CASES)
def test_finite_differences_confirm_the_derivatives(name):
    shapes, run = CASES[name]
    leaves = leaves_of(tk, shapes, "float64")
    assert tk.autograd.gradcheck(lambda *xs: run(tk, *xs), leaves)
    assert gradgradcheck(lambda *xs: run(tk, *xs), leaves)


X = [[0.5, -1.0, 2.0], [0.1, 0.2, 0.3], [1.0, 0.0, -1.0], [0.4, 0.5, 0.9]]
# What is refused, or answered in an unusual way; x is (4, 3), t its four classes.
EDGES = {
    "dropout module": lambda m, x, t: m.nn.Dropout(1.5)(x),
    "dropout": lambda m, x, t: _F(m).dropout(x, -0.1),
    "target too large": lambda m, x, t: _F(m).cross_entropy(x, t + 1),
    "target negative": lambda m, x, t: _F(m).cross_entropy(x, t - 1),
    "target short": lambda m, x, t: _F(m).cross_entropy(x, t[:2]),
    "target of one": lambda m, x, t: _F(m).cross_entropy(x, t[0]),
    "target float": lambda m, x, t: _F(m).cross_entropy(x, t.float()),
    "target int32": lambda m, x, t: _F(m).cross_entropy(x, t.int()),
    "target column": lambda m, x, t: _F(m).cross_entropy(x, t[:, None]),
    "target list": lambda m, x, t: _F(m).cross_entropy(x, [0, 1, 2, 0]),
    "scores array": lambda m, x, t: _F(m).cross_entropy(np.array(X), t),
    "nll target list": lambda m, x, t: _F(m).nll_loss(x, [0, 1, 2, 0]),
    "mse number": lambda m, x, t: _F(m).mse_loss(x, 3),
    "l1 list": lambda m, x, t: _F(m).l1_loss(x, X),
    "linear list": lambda m, x, t: m.nn.Linear(3, 2)(X),
    "linear array": lambda m, x, t: m.nn.Linear(3, 2)(np.array(X)),
    "dropout list": lambda m, x, t: _F(m).dropout(X),
    "layer norm list": lambda m, x, t: _F(m).layer_norm(X, (3,)),
    "embedding list": lambda m, x, t: _F(m).embedding([0], x),
    "embedding list of rows": lambda m, x, t: _F(m).embedding(t, [[1.0]]),
    "one hot list": lambda m, x, t: _F(m).one_hot([0]),
    "reduction": lambda m, x, t: _F(m).cross_entropy(x, t, reduction="avg"),
    "integer scores": lambda m, x, t: _F(m).cross_entropy(x.long(), t),
    "nll vector": lambda m, x, t: _F(m).nll_loss(x[0], t),
    "nll empty": lambda m, x, t: _F(m).nll_loss(x[:0], t[:0]),
    "nll empty sum": lambda m, x, t: _F(m).nll_loss(x[:0], t[:0], reduction="sum"),
    "zeros of a slope": lambda m, x, t: [
        1 / m.autograd.grad(sign * _F(m).nll_loss(x.requires_grad_(), t), x)[0] for sign in (1, -1)
    ],
    "mse broadcast": lambda m, x, t: _F(m).mse_loss(x, x[:, :1]),
    "mse shapes": lambda m, x, t: _F(m).mse_loss(x, x[:2]),
    "mse integers": lambda m, x, t: _F(m).mse_loss(x.long(), x.long()),
    "mse promoted": lambda m, x, t: _F(m).mse_loss(x, x.double() + 1),
    "l1 broadcast": lambda m, x, t: _F(m).l1_loss(x, x[:, :1]),
    "bce shapes": lambda m, x, t: _F(m).binary_cross_entropy(x.sigmoid(), x[:, :1]),
    "bce range": lambda m, x, t: _F(m).binary_cross_entropy(x, x),
    "bce certain": lambda m, x, t: _F(m).binary_cross_entropy(m.ones(2), m.tensor([0.0, 1.0])),
    "bce integers": lambda m, x, t: _F(m).binary_cross_entropy(x.sigmoid(), m.ones_like(x).long()),
    "bce logits shapes": lambda m, x, t: _F(m).binary_cross_entropy_with_logits(x, x[:, :1]),
    "bce logits far": lambda m, x, t: _F(m).binary_cross_entropy_with_logits(
        m.tensor([1e4, -1e4]), m.tensor([0.0, 1.0])
    ),
    "softplus of a list": lambda m, x, t: _F(m).softplus(x, [0]),
    "layer norm with a list": lambda m, x, t: _F(m).layer_norm(x, (3,), None, None, [1e-5]),
    "one hot": lambda m, x, t: _F(m).one_hot(t),
    "one hot wide": lambda m, x, t: _F(m).one_hot(t[:, None], 5),
    "one hot few": lambda m, x, t: _F(m).one_hot(t, 2),
    "one hot negative": lambda m, x, t: _F(m).one_hot(t - 1),
    "one hot float": lambda m, x, t: _F(m).one_hot(x),
    "one hot empty": lambda m, x, t: _F(m).one_hot(t[:0]),
    "embedding outside": lambda m, x, t: _F(m).embedding(m.tensor([5]), x),
    "embedding negative": lambda m, x, t: _F(m).embedding(m.tensor([-1]), x),
    "embedding float": lambda m, x, t: _F(m).embedding(x, x),
    "embedding vector": lambda m, x, t: _F(m).embedding(t, x[0]),
    "layer norm shape": lambda m, x, t: _F(m).layer_norm(x, (4,)),
    "layer norm weight": lambda m, x, t: _F(m).layer_norm(x, (3,), x[0][:2]),
    "layer norm int": lambda m, x, t: _F(m).layer_norm(x, 3),
    "layer norm nothing": lambda m, x, t: _F(m).layer_norm(x, ()),
    "layer norm integers": lambda m, x, t: _F(m).layer_norm(x.long(), (3,)),
    "linear shapes": lambda m, x, t: _F(m).linear(x, m.ones(2, 4)),
    "linear batch shapes": lambda m, x, t: _F(m).linear(x[None], m.ones(2, 4)),
    "linear dtypes": lambda m, x, t: _F(m).linear(x, m.ones(2, 3).double(), m.ones(2)),
    "linear bias": lambda m, x, t: _F(m).linear(x, m.ones(2, 3), m.ones(3)),
    "linear bias dtype": lambda m, x, t: _F(m).linear(x, m.ones(2, 3), m.ones(2).double()),
    "linear integers": lambda m, x, t: m.nn.Linear(3, 2)(x.long()),
    "linear weight vector": lambda m, x, t: _F(m).linear(x, m.ones(3)),
    "linear number": lambda m, x, t: _F(m).linear(m.tensor(1.0), m.ones(2, 3)),
    "gelu integers": lambda m, x, t: _F(m).gelu(x.long()),
    "silu integers": lambda m, x, t: _F(m).silu(x.long()),
    "softplus integers": lambda m, x, t: _F(m).softplus(x.long()),
    "leaky integers": lambda m, x, t: _F(m).leaky_relu(x.long()),
    "silu far": lambda m, x, t: _F(m).silu(m.tensor([-200.0, 200.0])),
    "softplus far": lambda m, x, t: _F(m).softplus(m.tensor([-200.0, 200.0])),
    "softmax dim": lambda m, x, t: _F(m).softmax(x, 3),
}


@pytest.mark.parametrize("name", EDGES)
def test_an_edge_is_answered_as_in_pytorch(name):
    found = []
    for m in (torch, tk):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                answer = repr(EDGES[name](m, m.tensor(X), m.tensor([0, 1, 2, 0])))
            except Exception as error:
                answer = error
        found.append((answer, [str(each.message) for each in caught]))
    (expected, expected_warnings), (actual, actual_warnings) = found
    assert actual_warnings == expected_warnings
    if isinstance(expected, Exception):
        assert isinstance(actual, type(expected)), actual
        assert same_words(str(actual).splitlines()[0], str(expected).splitlines()[0])
    else:
        assert actual == expected


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3)])
@pytest.mark.parametrize(
    "layer", ["nn.Linear(3, 2)", "nn.Linear(3, 2, bias=False)", "nn.LayerNorm(3)"]
)
def test_an_input_of_another_dtype_is_refused_in_pytorchs_words_and_the_repair_works(
    layer, shape, dtype
):
    if (layer, dtype) == ("nn.LayerNorm(3)", "float16"):
        pytest.skip("PyTorch computes it")
    x = tk.ones(shape, dtype=getattr(tk, dtype))
    with pytest.raises(RuntimeError) as expected:
        eval(f"torch.{layer}", {"torch": torch})(torch.ones(shape, dtype=getattr(torch, dtype)))
    with pytest.raises(RuntimeError) as found:
        eval(f"tk.{layer}", {"tk": tk})(x)
    first, *_, repair = str(found.value).splitlines()
    assert first == str(expected.value)
    assert eval(f"tk.{layer}", {"tk": tk})(eval(repair.removeprefix("Try: "))).dtype is tk.float32


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_dropout_drops_what_pytorch_drops(p):
    found = []
    for m in (torch, tk):
        m.manual_seed(3)
        x = m.ones(50, 4, requires_grad=True)
        y = m.nn.Dropout(p)(x)
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist(), m.rand(1).tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["sigmoid", "silu", "softplus", "gelu"])
def test_float16_is_computed_with_more_digits(name):
    x = np.array([-12, -11.5, -4, -3, -1, 0, 1, 12, 19, 21, 60000], np.float16)
    expected = getattr(torch.nn.functional, name)(torch.from_numpy(x))
    actual = getattr(tk.nn.functional, name)(tk.from_numpy(x))
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("value", [1e-8, 1e-5, 1e-3, 0.5, -0.5])
@pytest.mark.parametrize("rows", [4095, 4096])
def test_the_logarithm_of_a_sum_near_1_keeps_its_digits(rows, value):
    expected = torch.full((rows, 1), value).logsumexp(1)
    found = tk.full((rows, 1), value).logsumexp(1)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


def test_layer_norm_of_large_numbers_keeps_its_digits():
    x = tk.randn(8, 500, generator=tk.Generator().manual_seed(0)) + 1000
    exact = tk.nn.functional.layer_norm(x.double(), (500,))
    assert (tk.nn.functional.layer_norm(x, (500,)) - exact).abs().max() < 2e-4


LOSSES = [
    "F.layer_norm(tk.tensor([[1., 3.]]), (2,), eps='a')",
    "F.binary_cross_entropy(tk.tensor([0.5]), tk.tensor([2.0]))",
    "F.binary_cross_entropy(tk.tensor([2.0]), tk.tensor([0.5]))",
    *(
        f"F.binary_cross_entropy_with_logits(tk.ones(2).{x}(), tk.ones(2).{x}())"
        for x in ("float", "double")
    ),
]


@pytest.mark.parametrize("line", LOSSES)
def test_unusual_input_gives_what_pytorch_gives(line):
    def run(m):
        return eval(line, {"tk": m, "F": m.nn.functional})

    assert_same_outcome(lambda: run(torch), lambda: run(tk), rtol=1e-6)


NOT_PART = {
    "label_smoothing": lambda x, t: _F(tk).cross_entropy(x, t, label_smoothing=0.1),
    "ignore_index": lambda x, t: _F(tk).cross_entropy(x, t, ignore_index=0),
    "reduction; weight": lambda x, t: _F(tk).cross_entropy(x, t, weight=tk.ones(3)),
    r"one dimension, not \(4, 3\)": lambda x, t: _F(tk).layer_norm(x, (4, 3)),
    "eps, device; bias": lambda x, t: tk.nn.LayerNorm(3, bias=False),
    "reduction; ignore_index": lambda x, t: tk.nn.NLLLoss(ignore_index=0),
    r"\(N, C\) or \(C,\); others": lambda x, t: _F(tk).cross_entropy(x[:, :, None], t[:, None]),
    "padding_idx": lambda x, t: _F(tk).embedding(t, x, padding_idx=0),
    "max_norm": lambda x, t: tk.nn.Embedding(3, 2, max_norm=1.0),
    "pos_weight": lambda x, t: tk.nn.BCEWithLogitsLoss(pos_weight=tk.ones(3)),
    "embedding_dim, device; padding_idx": lambda x, t: tk.nn.Embedding(3, 2, padding_idx=0),
    r"no slices[^T]*Try: tk\.nn\.Sequential": lambda x, t: tk.nn.Sequential(tk.nn.ReLU())[:1],
    r"bias is not[^T]*Try: layer\.bias": lambda x, t: tk.nn.LayerNorm(3, bias=False),
    r"of view: tk\.from_numpy": lambda x, t: x.view(dtype=tk.int32),
    r"no dtype uint16[^T]*Try: array\.astype": lambda x, t: tk.tensor(np.ones(2, np.uint16)),
    "reduction; label_smoothing": lambda x, t: tk.nn.CrossEntropyLoss(label_smoothing=0.1),
}


@pytest.mark.parametrize("name", NOT_PART)
def test_what_is_not_part_of_tensorkit_says_so(name):
    with pytest.raises(tk.errors.NotSupportedError, match=name):
        NOT_PART[name](tk.tensor(X), tk.tensor([0, 1, 2, 0]))


def test_the_repair_for_scores_of_more_dimensions_gives_what_pytorch_gives():
    x, y = tk.randn(2, 3, 4), tk.tensor([[0, 1, 2, 0], [2, 1, 0, 1]])
    with pytest.raises(NotImplementedError) as found:
        _F(tk).cross_entropy(x, y)
    repaired = eval(f"cross_entropy({str(found.value).split('Try: ')[1]})", vars(_F(tk)), locals())
    expected = _F(torch).cross_entropy(torch.from_numpy(x.numpy()), torch.from_numpy(y.numpy()))
    np.testing.assert_allclose(repaired.numpy(), expected.numpy(), rtol=1e-6)
