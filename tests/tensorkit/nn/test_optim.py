"""Optimizers: twenty steps give PyTorch's parameters; texts, states and refusals are PyTorch's."""

import copy
import gc
import tracemalloc

import numpy as np
import pytest
from tk_oracle import torch

import tensorkit as tk

OPTIMIZERS = {
    "sgd": lambda m, p: m.optim.SGD(p, lr=0.1),
    "sgd decay": lambda m, p: m.optim.SGD(p, lr=0.001, weight_decay=0.01),
    "momentum": lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda m, p: m.optim.Adam(p, lr=0.01),
    "adam decay": lambda m, p: m.optim.Adam(p, 0.01, (0.8, 0.99), 1e-6, 0.1),
    "adamw": lambda m, p: m.optim.AdamW(p, lr=0.01),
    "adamw decay": lambda m, p: m.optim.AdamW(p, 0.01, weight_decay=0.3),
}


def _model(m):
    m.manual_seed(0)
    return m.nn.Sequential(
        m.nn.Linear(5, 8), m.nn.ReLU(), m.nn.LayerNorm(8), m.nn.Linear(8, 8), m.nn.GELU(),
        m.nn.Linear(8, 3),
    )  # fmt: skip


def _train(m, net, optimizer, steps=20):
    m.manual_seed(1)
    x, y = m.randn(16, 5), m.randint(0, 3, (16,))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = m.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    return loss


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps_give_pytorchs_parameters(name):
    found = []
    for m in (torch, tk):
        net = _model(m)
        optimizer = OPTIMIZERS[name](m, net.parameters())
        loss = _train(m, net, optimizer)
        found.append((net, optimizer, loss.item()))
    (expected, expected_optimizer, expected_loss), (actual, actual_optimizer, actual_loss) = found
    # Adam divides gradients by their size: the rounding of small ones is seen
    for p, q in zip(expected.parameters(), actual.parameters(), strict=True):
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=0, atol=4e-6)
    assert abs(actual_loss - expected_loss) < 1e-6
    # PyTorch's have settings besides, which are not part of tensorkit
    assert {*repr(actual_optimizer).splitlines()} <= {*repr(expected_optimizer).splitlines()}
    expected, actual = expected_optimizer.state_dict(), actual_optimizer.state_dict()
    for got, wanted in zip(actual["param_groups"], expected["param_groups"], strict=True):
        assert got == {name: wanted[name] for name in got}
    assert {k: list(v) for k, v in actual["state"].items()} == {
        k: list(v) for k, v in expected["state"].items()
    }


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_number_can_be_trained(name):
    found = []
    for m in (torch, tk):
        x = m.tensor(2.0, requires_grad=True)
        optimizer = OPTIMIZERS[name](m, [x])
        for _ in range(3):
            optimizer.zero_grad()
            (x * x).backward()
            optimizer.step()
        found.append(x.item())
    np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize("name", ["momentum", "adam decay"])
def test_a_large_parameter_is_changed_as_a_small_one(name):
    values = tk.randn(300, 200)
    for make in (lambda x: x, lambda x: x.t().contiguous().t()):
        whole = make(values.clone()).detach().requires_grad_()
        rows = [row.clone().requires_grad_() for row in values]
        for leaves in ([whole], rows):
            optimizer = OPTIMIZERS[name](tk, leaves)
            for _ in range(3):
                optimizer.zero_grad()
                sum((x * x).sum() for x in leaves).backward()
                optimizer.step()
        assert tk.equal(whole.detach(), tk.stack([row.detach() for row in rows]))


def test_training_goes_on_from_a_saved_state():
    net = _model(tk)
    optimizer = OPTIMIZERS["adam"](tk, net.parameters())
    _train(tk, net, optimizer, 3)
    twin = copy.deepcopy(net)
    other = OPTIMIZERS["adam"](tk, twin.parameters())
    other.load_state_dict(optimizer.state_dict())
    _train(tk, net, optimizer, 3)
    _train(tk, twin, other, 3)
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        assert tk.equal(p, q)


def test_a_step_without_gradient_changes_nothing():
    x = tk.ones(2, requires_grad=True)
    tk.optim.SGD([x], lr=0.5).step()
    assert x.tolist() == [1, 1]


def test_zeroed_gradients_are_kept_where_asked():
    x = tk.ones(2, requires_grad=True)
    optimizer = tk.optim.SGD([x])
    (x * x).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert x.grad is None


def test_a_step_between_forward_and_backward_is_noticed_and_named():
    x = tk.ones(2, requires_grad=True)
    optimizer = tk.optim.Adam([x])
    (x * x).sum().backward()
    loss = (x * x).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match=r"Adam\.step changed it: .*test_optim\.py"):
        loss.backward()


REFUSED = {
    "nothing": lambda m, x: m.optim.SGD([]),
    "no leaf": lambda m, x: m.optim.SGD([x * 1]),
}
# The same classes of errors, with sentences of our own.
WRONG = {
    "another number of parameter groups": lambda m, x: m.optim.SGD([x]).load_state_dict(
        {"state": {}, "param_groups": []}
    ),
    "One group of 1 would fit": lambda m, x: m.optim.SGD([x]).load_state_dict(
        {"state": {}, "param_groups": [{"params": [0, 1]}]}
    ),
    "should be tensors": lambda m, x: m.optim.SGD(x),
    "is given twice": lambda m, x: m.optim.SGD(
        [{"params": x}, {"params": x}] if m is torch else [x, x]
    ),
    "an optimizer takes tensors": lambda m, x: m.optim.SGD([1]),
    r"takes tensors\s+Try: model\.parameters": lambda m, x: m.optim.SGD(["weight"]),
    r"takes tensors\s": lambda m, x: m.optim.SGD([[x]]),
    "Invalid lr: -1.0": lambda m, x: m.optim.SGD([x], -1.0),
    "Invalid momentum: -1.0": lambda m, x: m.optim.SGD([x], momentum=-1.0),
    "Invalid weight_decay: -1.0": lambda m, x: m.optim.SGD([x], weight_decay=-1.0),
    "Invalid lr: -0.1": lambda m, x: m.optim.Adam([x], -0.1),
    "Invalid eps: -0.1": lambda m, x: m.optim.Adam([x], eps=-0.1),
    r"Invalid betas: \(1.0, 0.9\)": lambda m, x: m.optim.Adam([x], betas=(1.0, 0.9)),
    r"Invalid betas: \(0.9, 1.5\)": lambda m, x: m.optim.AdamW([x], betas=(0.9, 1.5)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_refused_as_in_pytorch(name):
    found = []
    for m in (torch, tk):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            REFUSED[name](m, m.ones(2, requires_grad=True))
        found.append(caught.value)
    expected, actual = found
    assert isinstance(actual, type(expected)), actual
    assert str(actual).splitlines()[0] == str(expected).splitlines()[0]


@pytest.mark.parametrize("sentence", WRONG)
def test_a_wrong_setting_is_refused_as_soon_as_in_pytorch(sentence):
    with pytest.raises((TypeError, ValueError)) as expected:
        WRONG[sentence](torch, torch.ones(2, requires_grad=True))
    with pytest.raises(expected.type, match=sentence):
        WRONG[sentence](tk, tk.ones(2, requires_grad=True))


def test_groups_of_parameters_are_refused_with_an_optimizer_for_each():
    groups = [{"params": [tk.ones(1, requires_grad=True)]} for _ in range(2)]
    groups[0]["lr"] = 0.1
    with pytest.raises(tk.errors.NotSupportedError, match="one group of parameters") as caught:
        tk.optim.AdamW(groups)
    names = {"tk": tk, "groups": groups, "options": {"lr": 0.2}}
    made = eval(str(caught.value).partition("Try: ")[2], names)
    assert [(type(each), each.param_groups[0]["lr"]) for each in made] == [
        (tk.optim.AdamW, 0.1),
        (tk.optim.AdamW, 0.2),
    ]


def _with_a_setting(optimizer, **setting):
    optimizer.param_groups[0].update(setting, initial_lr=0.1)  # the second is the user's own
    return optimizer


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tk.optim.SGD([x], momentum=0.9, nesterov=True),
        lambda x: tk.optim.SGD([x], maximize=True),
        lambda x: tk.optim.SGD([x], dampening=0.5),
        lambda x: tk.optim.Adam([x], amsgrad=True),
        lambda x: tk.optim.AdamW([x], capturable=True),
        lambda x: _with_a_setting(tk.optim.SGD([x]), nesterov=True).step(),
        lambda x: tk.optim.SGD([x]).load_state_dict(
            {"state": {}, "param_groups": [{"params": [0], "nesterov": True}]}
        ),
    ],
)
def test_settings_that_are_not_part_of_tensorkit_are_refused(make):
    with pytest.raises(tk.errors.NotSupportedError, match=r"has lr, .* is not part of tensorkit"):
        make(tk.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tk.optim.SGD([x], momentum=np.float64(0.9), weight_decay=np.float64(0.1)),
        lambda x: tk.optim.Adam(
            [x], weight_decay=np.float64(0.1), betas=tuple(np.array([0.9, 0.99]))
        ),
    ],
)
def test_numbers_of_numpys_keep_the_dtype(make):
    x = tk.ones(2, requires_grad=True)
    optimizer = make(x)
    x.sum().backward()
    optimizer.step()
    assert {each.dtype for each in (x, *optimizer.state[x].values())} == {tk.float32}


def test_settings_that_ask_for_speed_only_change_nothing():
    x = tk.ones(1, requires_grad=True)
    optimizer = tk.optim.SGD([x], lr=0.5, foreach=True, fused=True)
    x.sum().backward()
    optimizer.step()
    assert x.item() == 0.5


def test_a_training_loop_leaves_nothing_behind():
    """With the garbage collector off memory stays level, and the collector finds nothing."""
    net = _model(tk)
    optimizer = tk.optim.Adam(net.parameters(), lr=0.01)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        _train(tk, net, optimizer, 400)  # until all caches and plans are there
        assert gc.collect() == 0  # which also empties Python's lists of free tuples
        before = tracemalloc.get_traced_memory()[0]
        _train(tk, net, optimizer, 200)
        assert gc.collect() == 0
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    assert grown < 20_000


def test_a_parameter_without_a_state_has_an_empty_one():
    for m in (tk, torch):
        x = m.ones(2, requires_grad=True)
        optimizer = m.optim.SGD([x])
        x.sum().backward()
        optimizer.step()
        assert optimizer.state_dict()["state"] == {}
        assert optimizer.state[x] == {}


def test_a_parameter_that_was_never_trained_is_left_alone():
    frozen = tk.nn.Parameter(tk.ones(2), requires_grad=False)
    optimizer = tk.optim.SGD([frozen, tk.nn.Parameter(tk.ones(1))], lr=0.5)
    optimizer.zero_grad()
    optimizer.step()
    assert frozen.tolist() == [1, 1]
