"""The engine: deep graphs, memory, threads, hooks, errors on the way, sums of gradients."""

import _thread
import gc
import sys
import threading
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest
from tk_oracle import torch

import tensorkit as tk


def test_a_chain_of_a_million_nodes_runs_and_is_freed_without_recursion():
    x = tk.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    depth = sys.getrecursionlimit()
    y.backward()
    assert x.grad.item() == 1
    del y
    assert sys.getrecursionlimit() == depth


def test_a_node_takes_at_most_300_bytes():
    y, z = tk.ones(1), tk.ones(1, requires_grad=True)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10_000):
            z = z * y
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert z.requires_grad
    assert grown / 10_000 <= 300


def test_a_deep_graph_of_views_and_writes_is_freed_without_recursion():
    x = tk.ones(2, requires_grad=True)
    y = x * 1
    for _ in range(20_000):
        y[0].mul_(1)
        y = y.view(2)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _graph():
    x = tk.ones(3, requires_grad=True)
    y = (x * x).exp() @ x.tanh()
    z = x * 2
    z[0] = y
    z.retain_grad()
    row = z[1:]
    row.mul_(x[0])
    return x, y, z, row


@pytest.mark.parametrize("walk", ["no backward", "backward", "error"])
def test_a_graph_is_freed_by_reference_counting(no_collector, walk):
    x, y, z, row = _graph()
    arrays = [weakref.ref(each) for each in (y, z, row, x)]
    if walk == "backward":
        z.sum().backward()
    if walk == "error":
        row.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            (row * 2).sum().backward()
    del x, y, z, row
    assert [ref() for ref in arrays] == [None] * 4


def test_create_graph_through_grad_makes_no_cycle(no_collector):
    x = tk.ones(3, requires_grad=True)
    (g,) = tk.autograd.grad((x**3).sum(), x, create_graph=True)
    refs = [weakref.ref(g), weakref.ref(x)]
    tk.autograd.grad(g.sum(), x)
    del x, g
    assert [ref() for ref in refs] == [None, None]


def test_asking_for_the_gradient_of_what_is_no_leaf_warns_as_in_pytorch():
    warned = []
    for m in (torch, tk):
        x = m.ones(2, requires_grad=True)
        y, kept = x * 2, x * 2
        kept.retain_grad()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            asked = [each.grad for each in (x, kept, m.ones(2), y, y.detach())]
        assert asked == [None] * 5
        first = [str(each.message).split("\n")[0].partition(" If you indeed")[0] for each in caught]
        warned.append([each.category for each in caught] + first)
    assert len(warned[0]) == 2
    assert warned[1] == warned[0]


def test_backward_with_create_graph_warns_of_its_cycle():
    x = tk.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="reference cycle") as caught:
        (x * x).backward(create_graph=True)
    assert caught[0].filename == __file__
    assert x.grad.requires_grad
    x.grad = None


def test_training_steps_leave_no_objects_behind(no_collector):
    w = tk.ones(4, 4, requires_grad=True)
    x = tk.ones(2, 4)

    def step():
        loss = ((x @ w).tanh() ** 2).mean()
        loss.backward()
        with tk.no_grad():
            w.sub_(w.grad, alpha=0.1)
        w.grad = None

    for _ in range(10):
        step()
    before = len(gc.get_objects())
    for _ in range(100):
        step()
    assert len(gc.get_objects()) <= before + 5
    assert gc.collect() == 0


def test_a_thousand_training_steps_do_not_grow(no_collector):
    w1, w2 = tk.rand(8, 16, requires_grad=True), tk.rand(16, 4, requires_grad=True)
    x = tk.rand(4, 8)

    def step():
        hidden = (x @ w1).relu()
        loss = ((hidden @ w2)[1:] ** 2).mean() + hidden.T[0].sum() * 0.1
        loss.backward()
        with tk.no_grad():
            for w in (w1, w2):
                w -= 0.001 * w.grad
                w.grad = None

    for _ in range(50):
        step()
    tracemalloc.start()
    step()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(1000):
        step()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 500_000  # the lists of free tuples that Python keeps, which have a limit
    assert gc.collect() == 0


def test_gradients_of_rows_add_into_one_array():
    x = tk.ones(100, 1000, requires_grad=True)
    total = x[0]
    for i in range(1, 100):
        total = total + x[i]
    loss = total.sum()
    tracemalloc.start()
    loss.backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert x.grad.eq(1).all()
    assert peak < 3 * x.untyped_storage().nbytes()


def test_rows_that_also_get_other_gradients_keep_them_apart():
    x = tk.ones(3, 2, requires_grad=True)
    y = x * 1
    start = tk.ones(3, 2)
    tk.autograd.backward([y, y[0], y, y[1:]], [start, tk.ones(2), start, tk.ones(2, 2)])
    assert x.grad.tolist() == [[3, 3], [3, 3], [3, 3]]
    assert start.tolist() == [[1, 1], [1, 1], [1, 1]]


def test_saved_tensors_are_freed_by_backward():
    x = tk.ones(3, requires_grad=True)
    middle = x * 2
    y = (middle * middle).sum()
    ref = weakref.ref(middle)
    del middle
    assert ref() is not None
    y.backward()
    assert ref() is None


def test_gradients_of_different_leaves_never_share_memory():
    x, y = tk.ones(3, requires_grad=True), tk.ones(3, requires_grad=True)
    start = tk.ones(3)
    (x + y).backward(start)
    assert not np.shares_memory(x.grad._array, y.grad._array)
    assert not np.shares_memory(x.grad._array, start._array)
    (x.view(3) + y.expand(3)).backward(start)
    assert start.tolist() == [1, 1, 1]
    a, b = tk.autograd.grad(x + y, (x, y), start)
    assert not np.shares_memory(a._array, b._array)
    assert not np.shares_memory(a._array, start._array)
    (same,) = tk.autograd.grad(x + y, x, start)
    assert not np.shares_memory(same._array, start._array)


def test_a_gradient_that_nobody_else_holds_is_not_copied():
    x = tk.ones(3, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g))
    (y * 3).sum().backward()
    first = x.grad._array
    (x * 2).sum().backward()
    assert x.grad._array is first
    assert first.tolist() == [8, 8, 8]


def test_sums_of_many_gradients_do_not_change_the_gradients_they_came_from():
    x = tk.ones(3, requires_grad=True)
    y = x * 1
    start = tk.ones(3)
    tk.autograd.backward([y, y, y, y * 2], [start, start, start, start])
    assert x.grad.tolist() == [5, 5, 5]
    assert start.tolist() == [1, 1, 1]


def test_single_numbers_add_up():
    x = tk.tensor(2.0, requires_grad=True)
    y = x * 1
    (y + y + y * y + y).backward()
    assert x.grad.item() == 7
    assert type(x.grad._array) is np.ndarray


def test_the_gradient_of_a_number_that_was_broadcast_adds_up_over_two_calls():
    w, x = tk.tensor(2.0, requires_grad=True), tk.tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        ((w * x) ** 2).mean().backward()
    assert w.grad.shape == ()
    assert round(w.grad.item(), 3) == 37.333  # twice 2 * 2 * (1 + 4 + 9) / 3


def test_an_error_on_the_way_changes_no_gradient():
    x = tk.ones(3, requires_grad=True)
    y = x * 2
    e = y.sin()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        (e.sum() + x.sum()).backward()
    assert x.grad is None
    assert tk.is_grad_enabled()


def test_a_stale_tensor_names_the_node_and_the_line():
    x = tk.ones(3, requires_grad=True)
    y = x * 2
    e = y.sin()
    y.add_(1)  # this line
    with pytest.raises(RuntimeError) as caught:
        e.sum().backward()
    line = test_a_stale_tensor_names_the_node_and_the_line.__code__.co_firstlineno + 4
    text = str(caught.value)
    assert "<SinBackward0> needs the values of its input" in text
    assert f"add_ changed it: {__file__}, line {line}." in text
    assert (caught.value.version, caught.value.expected) == (1, 0)


def test_backward_inside_a_hook():
    x, w = tk.ones(2, requires_grad=True), tk.ones(2, requires_grad=True)

    def hook(g):
        with tk.enable_grad():
            (w * 3).sum().backward()
        return g * 2

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.tolist() == [4, 4]
    assert w.grad.tolist() == [3, 3]


def test_hooks_run_without_recording():
    x = tk.ones(2, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append((tk.is_grad_enabled(), (g * x).requires_grad)))
    y.sum().backward()
    assert seen == [(False, False)]


def test_threads_walk_one_graph_each():
    w = tk.ones(50, requires_grad=True)
    leaves = [tk.ones(50, requires_grad=True) for _ in range(8)]

    def work(x):
        for _ in range(50):
            y = x
            for _ in range(20):
                y = y * w.detach() + x
            y.sum().backward()

    threads = [threading.Thread(target=work, args=(x,)) for x in leaves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(x.grad.tolist() == [21.0 * 50] * 50 for x in leaves)


def test_the_mode_belongs_to_the_thread():
    seen = []
    with tk.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tk.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_gradcheck_finds_a_wrong_gradient():
    x = tk.tensor([0.3, 0.5], dtype=tk.float64, requires_grad=True)
    wrong = lambda x: x * x.detach()  # noqa: E731  (the function under test)
    assert not tk.autograd.gradcheck(wrong, x, raise_exception=False)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0"):
        tk.autograd.gradcheck(wrong, x)
    with pytest.raises(ValueError, match="at least one input"):
        tk.autograd.gradcheck(wrong, x.detach())


def test_the_first_derivative_of_zero_to_the_power_is_zero():
    x = tk.tensor([0.0, 1.5], dtype=tk.float64, requires_grad=True)
    (0**x).sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_the_youngest_node_is_run_next_as_in_pytorch():
    def order(m):
        x, seen = m.ones(2, requires_grad=True), []
        first = x * 2
        second = x * 3
        third = first.exp()
        for name, each in (("first", first), ("second", second), ("third", third)):
            each.register_hook(lambda g, name=name: seen.append(name))
        (second * first + third).sum().backward()
        return seen

    assert order(tk) == order(torch)


def test_a_gradient_that_repeats_one_number_gets_memory_of_its_own():
    class Repeated(tk.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return (tk.zeros(4) + 5)[:1].expand(4)

    x = tk.ones(4, requires_grad=True)
    for _ in range(2):
        Repeated.apply(x).sum().backward()
    assert x.grad.tolist() == [10.0] * 4
    assert x.grad.stride() == (1,)


CHECKED = {
    "detached": lambda m, x: m.autograd.gradcheck(lambda t: t.detach() * 2, x),
    "constant": lambda m, x: m.autograd.gradcheck(lambda t: t.detach() * 0, x),
    "one of two": lambda m, x: m.autograd.gradcheck(lambda t: (t.detach(), t * t), x),
    "detached silently": lambda m, x: m.autograd.gradcheck(
        lambda t: t.detach(), x, raise_exception=False
    ),
    "nothing": lambda m, x: m.autograd.gradcheck(lambda t: t, x.detach()),
}


@pytest.mark.parametrize("name", CHECKED)
def test_gradcheck_of_what_is_cut_off_says_what_pytorch_says(name):
    found = []
    for m in (torch, tk):
        x = m.tensor([0.5, 2.0], dtype=m.float64, requires_grad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                answer = CHECKED[name](m, x)
            except (RuntimeError, ValueError) as error:
                answer = type(error).__name__, str(error).split("\n")[0]
        found.append((answer, [str(each.message) for each in caught]))
    assert found[1] == found[0]


def test_a_view_made_under_no_grad_is_no_constant_once_its_base_was_written_to():
    w = tk.ones(2, requires_grad=True)
    with tk.no_grad():
        first = w[:1]
    (first * w).sum().backward()
    assert w.grad.tolist() == [1, 1]
    with tk.no_grad():
        w.sub_(0.5)
        assert first.tolist() == [0.5]
        assert not (first * 2).requires_grad
    with pytest.raises(RuntimeError, match="its base or another view of its base"):
        first * w
    assert str(first) == "tensor([0.5000])"
    assert (first.detach() * w).requires_grad


@pytest.mark.parametrize("name", ["add_", "exp_"])
def test_a_write_in_a_thread_without_a_function_of_python_is_done_once(name):
    x = tk.zeros(2)
    done = threading.Event()
    _thread.start_new_thread(getattr(x, name), (1.0,) if name == "add_" else ())
    for _ in range(500):
        if x._version:
            break
        done.wait(0.01)
    assert (x.tolist(), x._version) == ([1.0, 1.0], 1)
