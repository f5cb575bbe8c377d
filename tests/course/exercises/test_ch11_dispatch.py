"""Chapter 11. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
import pytest

import tensorkit as tk
from course.engine.counting import Counting
from course.exercises.ch11_dispatch.autograd_layer import mul_with_autograd
from course.exercises.ch11_dispatch.count_cost import cost
from course.exercises.ch11_dispatch.promotion_layer import promoted
from course.exercises.ch11_dispatch.which_layers import logged
from course.notebook.check import judge
from course.notebook.exercise import load
from tensorkit import nn, optim
from tensorkit.nn import functional as F


def kernel_by_trying(kernels, operation, device):
    for name in (device, "default"):
        try:
            return kernels[name]
        except KeyError:
            continue
    raise NotImplementedError("no kernel of " + operation + " on " + device)


def kernel_by_get(kernels, operation, device):
    kernel = kernels.get(device) or kernels.get("default")
    if kernel is None:
        raise NotImplementedError(f"register a kernel of {operation!r} for {device!r}")
    return kernel


def promoted_by_questions(x, y):
    order = [tk.bool, tk.int8, tk.int16, tk.int32, tk.int64, tk.float16, tk.float32, tk.float64]

    def kind(t):
        return (order.index(t.dtype) > 0) + (order.index(t.dtype) > 4)

    if kind(x) != kind(y):
        winner = x if kind(x) > kind(y) else y
    elif bool(x.ndim) != bool(y.ndim):
        winner = x if x.ndim else y
    else:
        winner = x if order.index(x.dtype) > order.index(y.dtype) else y
    return x.to(winner.dtype), y.to(winner.dtype)


def promoted_by_sorting(x, y):
    def rank(t):
        letter = str(t.dtype).removeprefix("torch.")[0]
        return "bif".index(letter), t.dim() > 0, t.element_size()

    *_, winner = sorted([x, y], key=rank)
    return tuple(t.to(winner.dtype) for t in (x, y))


def layer_under_no_grad(x, y, recording):
    with tk.no_grad():
        product = x * y
    asks = {"x": x.requires_grad, "y": y.requires_grad}
    if not recording or not any(asks.values()):
        return product, None
    other = {"x": y, "y": x}
    return product, {name: other[name] if asks[name] else None for name in asks}


def layer_with_saved_values(x, y, recording):
    a, b = x.detach(), y.detach()
    node = None
    if recording and True in (x.requires_grad, y.requires_grad):
        node = {"x": None, "y": None}
        if x.requires_grad:
            node["x"] = b
        if y.requires_grad:
            node["y"] = a
    return a * b, node


def logged_after_the_call(x, y, w):
    names = []

    class Log(tk.utils.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **kwargs)
            names.append(func.__name__)
            return result

    w = w.clone().requires_grad_()
    with Log():
        loss = ((x * w).add(y, alpha=-1) ** 2).sum()
        loss.backward()
    return w.grad, names


def logged_in_the_mode(x, y, w):
    class Log(tk.utils.DispatchMode):
        def __init__(self):
            self.names = ()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names += (func.__name__,)
            options = kwargs or {}
            return func(*args, **options)

    w = w.clone().requires_grad_()
    with Log() as log:
        loss = ((x * w).add(y, alpha=-1) ** 2).sum()
        loss.backward()
    return w.grad, list(log.names)


def cost_by_match(name, shapes, shape):
    moved = sum(math.prod(size) for size in [*shapes, shape])
    match name:
        case "matmul":
            (n, k), (_, m) = shapes
            return 2 * n * k * m, moved
        case "sum" | "max":
            return math.prod(shapes[0]), moved
    return math.prod(shape), moved


def cost_by_loops(name, shapes, shape):
    def n(sizes):
        return functools.reduce(operator.mul, sizes, 1)

    each = {"matmul": 2 * shapes[0][-1] if shapes[0] else 0}.get(name, 1)
    total = n(shapes[0]) if name in {"sum", "max"} else each * n(shape)
    return total, n(shape) + sum(map(n, shapes))


def softsign_from_the_result(x, upstream):
    @tk.library.custom_op("mine::softsign", mutates_args=())
    def operation(x):
        return x / (x.abs() + 1)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y.abs()) ** 2

    operation.register_autograd(backward, setup_context=setup_context)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    return y.detach(), gradient, tk.autograd.gradcheck(operation, x, raise_exception=False)


def softsign_saving_the_slope(x, upstream):
    operation = tk.library.custom_op(
        "mine::softsign", lambda x: tk.where(x > 0, x / (1 + x), x / (1 - x)), mutates_args=()
    )

    def setup_context(ctx, inputs, output):
        ctx.slope = 1 / (1 + inputs[0].detach().abs()).square()

    operation.register_autograd(lambda ctx, g: g * ctx.slope, setup_context=setup_context)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    return y.detach(), gradient, tk.autograd.gradcheck(operation, x, raise_exception=False)


def fused_with_a_dictionary(names, x):
    from course.engine.fusing import FUSABLE, one_launch

    class Fuse(tk.utils.DispatchMode):
        chain = None

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.__name__ not in FUSABLE:
                self.run()
                return func(*args, **kwargs)
            if self.chain is None:
                self.chain = {"names": [], "x": args[0]}
            self.chain["names"].append(func.__name__)
            self.chain["out"] = out = tk.empty(args[0].shape, device=args[0].device)
            return out

        def run(self):
            if self.chain is not None:
                one_launch(**self.chain)
            self.chain = None

    with tk.cuda.record() as ledger:
        with Fuse() as mode:
            for name in names:
                x = getattr(tk, name)(x)
        mode.run()
    return x, len(ledger.launches)


def fused_by_what_each_result_is_made_of(names, x):
    from course.engine import fusing

    class Fuse(tk.utils.DispatchMode):
        def __init__(self):
            self.made_of = {}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.__name__ not in fusing.FUSABLE:
                self.run()
                return func(*args, **(kwargs or {}))
            source, before = self.made_of.get(id(args[0]), (args[0], []))
            out = tk.empty_like(source)
            self.made_of = {id(out): (source, [*before, func.__name__])}
            self.last = out
            return out

        def run(self):
            for source, waiting in self.made_of.values():
                fusing.one_launch(waiting, source, self.last)
            self.made_of.clear()

    with tk.cuda.record() as ledger:
        mode = Fuse()
        with mode:
            for name in names:
                x = getattr(tk, name)(x)
        mode.run()
    return x, len(ledger.launches)


RIGHT = [
    ("find-kernel", kernel_by_trying),
    ("find-kernel", kernel_by_get),
    ("promotion-layer", promoted_by_questions),
    ("promotion-layer", promoted_by_sorting),
    ("autograd-layer", layer_under_no_grad),
    ("autograd-layer", layer_with_saved_values),
    ("logged-step", logged_after_the_call),
    ("logged-step", logged_in_the_mode),
    ("fused-chain", fused_with_a_dictionary),
    ("fused-chain", fused_by_what_each_result_is_made_of),
    ("count-cost", cost_by_match),
    ("count-cost", cost_by_loops),
    ("custom-op", softsign_from_the_result),
    ("custom-op", softsign_saving_the_slope),
]


LAYERS = {
    "b * b": "cpu",
    "a * b": "autograd cpu",
    "b * n": "promotion cpu",
    "no_grad(mul)(a, b)": "cpu",
    "no_grad(mul)(a, n)": "promotion cpu",
    "logged(mul)(b, b)": "modes cpu",
    "logged(mul)(a, n)": "autograd modes promotion cpu",
    "c * c": "cuda",
    "c * two": "promotion cuda",
}


def test_the_layers_are_those_that_the_chapter_teaches():
    assert judge(load()["which-layers"], LAYERS, seconds=20).status == "passed"


def test_the_promotion_that_is_taught_is_the_librarys():
    dtypes = [tk.bool, tk.int32, tk.int64, tk.float16, tk.float32, tk.float64]
    tensors = [tk.ones(shape, dtype=dtype) for dtype in dtypes for shape in ((), (2,))]
    for x in tensors:
        for y in tensors:
            assert promoted(x, y)[0].dtype is tk.result_type(x, y)


def test_what_an_answer_registers_ends_with_its_check():
    def leaves_everything(x, y, recording):
        tk.library.register_kernel(tk.mul, "cpu", lambda x, y, **_: x + y)
        tk.register_device("mine", lambda: None)
        logged.__globals__["tk"].utils.DispatchMode().__enter__()
        return mul_with_autograd(x, y, recording)

    judge(load()["autograd-layer"], leaves_everything)
    assert (tk.tensor(3.0) * 5).item() == 15
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        tk.device("mine")


def _trained(device):
    tk.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.ReLU(), nn.Linear(5, 3)).to(device)
    x, y = tk.randn(8, 6).to(device), tk.randint(0, 3, (8,)).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [parameter.detach().cpu().numpy() for parameter in model.parameters()]


def test_the_device_that_counts_computes_what_the_cpu_computes():
    counting = Counting(cost)
    with tk.library.scope():
        tk.register_device("counting", lambda: counting)
        for found, expected in zip(_trained("counting"), _trained("cpu"), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert counting.calls["matmul"] == 3 * 5  # two forward, three backward: no gradient of x
    assert not counting.problem


def test_the_books_count_a_product():
    counting = Counting(cost)
    with tk.library.scope():
        tk.register_device("counting", lambda: counting)
        x = tk.ones(2, 3, device="counting") @ tk.ones(3, 5, device="counting")
        _ = x.T  # a view: nothing is computed
    assert counting.flops == {"matmul": 60}
    assert counting.moved == {"matmul": 6 + 15 + 10}
    assert "matmul" in repr(counting)


def test_a_cost_that_is_not_written_is_said_and_stops_nothing():
    counting = Counting(lambda name, shapes, shape: None)
    with tk.library.scope():
        tk.register_device("counting", lambda: counting)
        assert (tk.ones(2, device="counting") * 3).tolist() == [3, 3]
    assert "TypeError" in repr(counting)


def test_a_chain_that_never_runs_is_not_right_by_what_memory_held_before():
    def fused(names, x):
        result = x
        for name in names:
            result = getattr(tk, name)(result)
        del result  # its memory is the next one's
        return tk.empty_like(x), 1

    report = judge(load()["fused-chain"], fused)
    assert {row.status for row in report.rows} == {"failed"}
