"""What is measured: one function per workload, written once for tensorkit and PyTorch.

A function gets the library and prepares the workload; it returns what one round runs. What a round
returns is compared between the libraries before anything is timed. ``numpy`` prepares the same
work by hand on arrays. ``must`` and ``stretch`` are the goals: the time divided by PyTorch's.
"""

import gc
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

STEADY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184"}


class Row(NamedTuple):
    """One line of the table."""

    must: float
    stretch: float
    prepare: Callable[[Any], Callable[[], Any]]
    numpy: Callable[[], Callable[[], Any]] | None = None
    unit: str = "us"  # other units: ``prepare`` gives the number itself, in a new process
    steady: bool = False  # with malloc told to keep freed memory


ROWS: dict[str, Row] = {}


def numbers(*shape: int, seed: int = 0) -> Any:
    """The same numbers for everybody."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)


def tensor(m: Any, *shape: int, seed: int = 0, grad: bool = False) -> Any:
    """``numbers`` as a tensor of its own."""
    x = m.tensor(numbers(*shape, seed=seed).tolist() if shape else float(numbers(1, seed=seed)[0]))
    return x.requires_grad_() if grad else x


def big(m: Any, *shape: int, seed: int = 0, grad: bool = False) -> Any:
    """``numbers`` as a tensor on memory that the library allocated."""
    x = m.from_numpy(numbers(*shape, seed=seed)).clone()
    return x.requires_grad_() if grad else x


def row(label: str, must: float, stretch: float, **more: Any) -> Any:
    """Add a workload to the table."""

    def add(prepare: Any) -> Any:
        ROWS[label] = Row(must, stretch, prepare, **more)
        return prepare

    return add


def fixed(value: Any) -> Callable[[], Any]:
    """A function without arguments: what NumPy's side of a row prepares."""
    return lambda: value


def small(label: str, must: float, stretch: float, run: Any, *shapes: Any, **more: Any) -> None:
    """A row of one call on small tensors; a shape in a list requires grad, an int is a 0-d one."""

    def prepare(m: Any) -> Any:
        given = []
        for seed, shape in enumerate(shapes):
            grad = isinstance(shape, list)
            given.append(tensor(m, *shape, seed=seed, grad=grad))
        return lambda: run(*given)

    arrays = [numbers(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    more.setdefault("numpy", fixed(lambda: run(*arrays)))
    ROWS[label] = Row(must, stretch, prepare, **more)


# a: one small operation

EIGHT, SQUARE = (8,), (8, 8)
for _how, _shape, _must, _stretch in (("", (8,), 0.85, 0.62), (", grad", [8], 0.75, 0.55)):
    small(f"a: x + y{_how}", _must, _stretch, lambda x, y: x + y, _shape, _shape)
    small(f"a: x * y{_how}", _must, _stretch, lambda x, y: x * y, _shape, _shape)
    small(f"a: exp{_how}", _must, _stretch, lambda x: x.exp(), _shape, numpy=None)
small("a: x + y, one with grad", 0.75, 0.55, lambda x, y: x + y, [8], EIGHT)
small("a: matrix + row", 0.85, 0.62, lambda x, y: x + y, SQUARE, EIGHT)
small("a: matrix + row, grad", 0.75, 0.55, lambda x, y: x + y, [8, 8], [8])
small("a: transposed + matrix", 0.85, 0.62, lambda x, y: x.T + y, SQUARE, SQUARE)
small("a: 0-d + 0-d", 0.85, 0.62, lambda x, y: x + y, (), ())
small("a: x > y", 0.85, 0.62, lambda x, y: x > y, EIGHT, EIGHT)
small("a: x > 1.", 0.65, 0.40, lambda x: x > 1.0, EIGHT)
small("a: x += y", 0.85, 0.62, lambda x, y: x.__iadd__(y) is None, EIGHT, EIGHT)
small("a: x *= 1.", 0.85, 0.62, lambda x: x.__imul__(1.0) is None, EIGHT)
small("a: x.T", 0.75, 0.42, lambda x: x.T, SQUARE)
small("a: x.T, grad", 0.75, 0.42, lambda x: x.T, [8, 8])
small("a: reshape", 0.75, 0.42, lambda x: x.reshape(64), SQUARE)
small("a: x[3]", 0.75, 0.42, lambda x: x[3], SQUARE)
small("a: x[3, 2]", 0.75, 0.42, lambda x: x[3, 2], SQUARE, numpy=None)
small("a: x[1:3]", 0.50, 0.25, lambda x: x[1:3], SQUARE)
small("a: x[:, 1:3]", 0.50, 0.25, lambda x: x[:, 1:3], SQUARE)
small("a: x[1:3], grad", 0.50, 0.25, lambda x: x[1:3], [8, 8])
small("a: x * 2.", 0.65, 0.40, lambda x: x * 2.0, EIGHT)
small("a: 1 - x, grad", 0.65, 0.40, lambda x: 1 - x, [8])
small("a: 8x8 @ 8x8", 0.95, 0.60, lambda x, y: x @ y, SQUARE, SQUARE)
small("a: 8x8 @ 8x8, grad", 0.80, 0.50, lambda x, y: x @ y, [8, 8], [8, 8])
small("a: sum", 1.15, 0.93, lambda x: x.sum(), EIGHT)
small("a: sum, grad", 1.15, 0.93, lambda x: x.sum(), [8])
small("a: mean(0)", 1.15, 0.93, lambda x: x.mean(0), SQUARE)


@row("a: integers, x + y", 0.85, 0.62)
def _(m: Any) -> Any:
    x, y = m.arange(8), m.arange(8)
    return lambda: x + y


@row("a: integers, x * 2", 0.65, 0.40)
def _(m: Any) -> Any:
    x = m.arange(8)
    return lambda: x * 2


# b and g: chains


def chain(length: int, both: bool, walk: bool = True) -> Any:
    """A chain of products, forward and backward."""

    def prepare(m: Any) -> Any:
        x, y = tensor(m, 8, grad=True), m.tensor([1.000001] * 8, requires_grad=both)
        ones = m.ones(8)

        def run() -> Any:
            z = x
            for _ in range(length):
                z = z * y
            if walk:
                z.backward(ones)
                gradient, x.grad, y.grad = x.grad, None, None
                return gradient
            return z

        return run

    return prepare


def numpy_chain(length: int) -> Any:
    """The same by hand."""
    x, y = numbers(8), np.full(8, 1.000001, np.float32)

    def run() -> Any:
        z, g, kept = x, np.ones_like(x), []
        for _ in range(length):
            kept.append(z)
            z = z * y
        for _ in kept:
            g = g * y
        return g

    return run


row("b: chain of 100", 0.60, 0.50, numpy=lambda: numpy_chain(100))(chain(100, False))
row("b: chain of 100, both with grad", 0.65, 0.55)(chain(100, True))


# c: large elementwise


def sin_exp(size: int, walk: bool) -> Any:
    """``sin(x^2) exp(-x)``."""

    def prepare(m: Any) -> Any:
        x = big(m, size, grad=walk)
        ones = m.ones(size)

        def run() -> Any:
            y = (x * x).sin() * (-x).exp()
            if not walk:
                return y[:8]
            y.backward(ones)
            gradient, x.grad = x.grad, None
            return gradient[:8]

        return run

    return prepare


def numpy_sin_exp(size: int, walk: bool) -> Any:
    """The same by hand."""
    x, g = numbers(size), np.ones(size, np.float32)

    def run() -> Any:
        square, e = x * x, np.exp(-x)
        s = np.sin(square)
        if not walk:
            return (s * e)[:8]
        s * e
        return ((g * e) * np.cos(square) * x * 2 - (g * s) * e)[:8]

    return run


for _size, _goals in (
    (10**6, ((0.65, 0.50), (0.75, 0.35), (0.60, 0.48))),
    (10**7, ((0.45, 0.16), (0.35, 0.10), (0.70, 0.55))),
):
    for (_must, _stretch), (_what, _walk, _steady) in zip(
        _goals,
        (
            ("forward", False, False),
            ("+ backward", True, False),
            ("+ backward, steady", True, True),
        ),
        strict=True,
    ):
        row(
            f"c: sin(x²)exp(-x), {_size:.0e}, {_what}".replace("e+0", "e"),
            _must,
            _stretch,
            steady=_steady,
            numpy=lambda size=_size, walk=_walk: numpy_sin_exp(size, walk),
        )(sin_exp(_size, _walk))


# d: broadcasting and reductions on (4096, 1024)


def biased(operation: Callable[[Any, Any], Any], walk: bool) -> Any:
    """A matrix and a row."""

    def prepare(m: Any) -> Any:
        x, b = big(m, 4096, 1024, grad=walk), big(m, 1024, seed=1, grad=walk)
        g = big(m, 4096, 1024, seed=2)

        def run() -> Any:
            y = operation(x, b)
            if not walk:
                return y[0, :8]
            y.backward(g)
            gradient, x.grad, b.grad = b.grad, None, None
            return gradient

        return run

    return prepare


def numpy_biased(operation: Callable[[Any, Any], Any]) -> Any:
    """The forward by hand."""
    x, b = numbers(4096, 1024), numbers(1024, seed=1)
    return lambda: operation(x, b)[0, :8]


for _name, _operation, _goals in (
    ("x + b", lambda x, b: x + b, ((1.0, 0.65), (2.2, 1.6))),
    ("x * b", lambda x, b: x * b, ((1.05, 0.80), (1.7, 1.2))),
):
    row(f"d: {_name}, + backward", *_goals[0])(biased(_operation, True))
    row(
        f"d: {_name}, forward, steady",
        *_goals[1],
        steady=True,
        numpy=lambda operation=_operation: numpy_biased(operation),
    )(biased(_operation, False))


def reducing(run: Callable[[Any], Any]) -> Any:
    """A reduction of a large matrix."""

    def prepare(m: Any) -> Any:
        x = big(m, 4096, 1024)
        return lambda: run(x)

    return prepare


for _name, _must, _stretch, _run in (
    ("softmax(1)", 2.4, 1.9, lambda x: x.softmax(1)[0]),
    ("mean(1)", 0.8, 0.5, lambda x: x.mean(1)),
    ("sum(0)", 0.8, 0.5, lambda x: x.sum(0)),
    ("var(1)", 0.4, 0.16, lambda x: x.var(1)),
    ("max(1)", 0.5, 0.2, lambda x: x.max(1).values),
    ("logsumexp(1)", 0.9, 0.65, lambda x: x.logsumexp(1)),
):
    row(f"d: {_name}", _must, _stretch)(reducing(_run))


@row("d: relu, + backward", 2.5, 1.5)
def _(m: Any) -> Any:
    x = (big(m, 1000, 1000) - 1).requires_grad_()
    g = big(m, 1000, 1000, seed=2)

    def run() -> Any:
        x.relu().backward(g)
        gradient, x.grad = x.grad, None
        return gradient[0]

    return run


@row("d: x ** 3, + backward", 2.5, 1.5)
def _(m: Any) -> Any:
    x, g = big(m, 1000, 1000, grad=True), big(m, 1000, 1000, seed=2)

    def run() -> Any:
        (x**3).backward(g)
        gradient, x.grad = x.grad, None
        return gradient[0]

    return run


# e: products


def product(name: str, *shape: int) -> Any:
    """A product and its two gradients."""

    def prepare(m: Any) -> Any:
        x, y = big(m, *shape, grad=True), big(m, *shape, seed=1, grad=True)
        g = big(m, *shape, seed=2)

        def run() -> Any:
            getattr(m, name)(x, y).backward(g)
            gradient, x.grad, y.grad = x.grad, None, None
            return gradient[0]

        return run

    return prepare


def numpy_product(*shape: int) -> Any:
    """The same by hand."""
    x, y, g = (numbers(*shape, seed=seed) for seed in range(3))

    def run() -> Any:
        x @ y
        x.swapaxes(-1, -2) @ g
        return (g @ y.swapaxes(-1, -2))[0]

    return run


row("e: matmul 1024", 1.08, 0.97, numpy=lambda: numpy_product(1024, 1024))(
    product("matmul", 1024, 1024)
)
row("e: bmm 16x128x128", 1.10, 0.90, numpy=lambda: numpy_product(16, 128, 128))(
    product("bmm", 16, 128, 128)
)


# f: training steps


def numpy_regression() -> Any:
    """Linear regression by hand."""
    x, y, w, b = numbers(32, 3), numbers(32, 1, seed=1), numbers(3, 1, seed=2), np.zeros(1, "f")

    def run() -> Any:
        error = x.dot(w) + b - y
        g = error * np.float32(2 / 32)
        loss = (error * error).sum() / 32
        np.subtract(w, 0.01 * x.T.dot(g), w)
        np.subtract(b, 0.01 * g.sum(0), b)
        return loss

    return run


def numpy_perceptron() -> Any:
    """The tiny MLP by hand."""
    w1, w2, x = numbers(8, 16), numbers(16, 4, seed=1), numbers(4, 8, seed=2)
    g = np.full((4, 4), 1 / 16, "f")

    def run() -> Any:
        h = np.maximum(x.dot(w1), 0)
        loss = h.dot(w2).sum() / 16
        slope = x.T.dot(g.dot(w2.T) * (h > 0))
        np.subtract(w2, 1e-6 * h.T.dot(g), w2)
        np.subtract(w1, 1e-6 * slope, w1)
        return loss

    return run


def numpy_classifier(*sizes: int, batch: int) -> Any:
    """A step of a multilayer perceptron by hand."""
    x, rows, labels = numbers(batch, sizes[0]), np.arange(batch), np.arange(batch) % sizes[-1]
    shapes = [(after, before) for before, after in itertools.pairwise(sizes)]
    layers = [
        (
            numbers(*shape, seed=2 * at) / 30 - 1 / 30,
            numbers(shape[0], seed=2 * at + 1) / 30 - 1 / 30,
        )
        for at, shape in enumerate(shapes)
    ]

    def run() -> Any:
        inputs = [x]
        for at, (w, b) in enumerate(layers):
            h = inputs[-1].dot(w.T)
            h += b
            inputs.append(h if at == len(layers) - 1 else np.maximum(h, 0, h))
        scores = inputs.pop()
        scores -= scores.max(1)[:, None]
        powers = np.exp(scores)
        sums = powers.sum(1)
        loss = (np.log(sums) - scores[rows, labels]).sum() / batch
        g = powers / sums[:, None]
        g[rows, labels] -= 1
        g /= batch
        for w, b in reversed(layers):
            h = inputs.pop()
            slope = g.T.dot(h)
            np.subtract(b, 0.01 * g.sum(0), b)
            if inputs:
                g = g.dot(w)
                g *= h > 0
            slope *= 0.01
            np.subtract(w, slope, w)
        return loss

    return run


@row("f: linear regression, by hand", 0.55, 0.32, numpy=numpy_regression)
def _(m: Any) -> Any:
    x, y = tensor(m, 32, 3), tensor(m, 32, 1, seed=1)
    w, b = tensor(m, 3, 1, seed=2, grad=True), m.zeros(1, requires_grad=True)

    def run() -> Any:
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with m.no_grad():
            for parameter in (w, b):
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        return loss

    return run


def trained(m: Any, model: Any, optimizer: Any, loss_of: Any, x: Any, y: Any) -> Any:
    """One step of training a module."""
    for seed, parameter in enumerate(model.parameters()):
        parameter.data.copy_(m.from_numpy(numbers(*parameter.shape, seed=seed) / 30 - 1 / 30))
    optimizer = optimizer(model.parameters())

    def run() -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run


@row("f: linear regression, nn", 0.30, 0.12)
def _(m: Any) -> Any:
    return trained(
        m,
        m.nn.Linear(3, 1),
        lambda p: m.optim.SGD(p, lr=0.01),
        m.nn.MSELoss(),
        tensor(m, 32, 3),
        tensor(m, 32, 1, seed=1),
    )


@row("f: tiny MLP, by hand", 0.45, 0.28, numpy=numpy_perceptron)
def _(m: Any) -> Any:
    w1, w2 = tensor(m, 8, 16, grad=True), tensor(m, 16, 4, seed=1, grad=True)
    x = tensor(m, 4, 8, seed=2)

    def run() -> Any:
        loss = ((x @ w1).relu() @ w2).mean()
        loss.backward()
        with m.no_grad():
            for w in (w1, w2):
                w -= 1e-6 * w.grad
                w.grad = None
        return loss.detach()

    return run


def classifier(*sizes: int, batch: int, adam: bool = False) -> Any:
    """A step of a multilayer perceptron."""

    def prepare(m: Any) -> Any:
        layers: list[Any] = []
        for before, after in itertools.pairwise(sizes):
            layers += [m.nn.Linear(before, after), m.nn.ReLU()]
        labels = m.from_numpy(np.arange(batch) % sizes[-1])
        optimizer = (lambda p: m.optim.Adam(p)) if adam else (lambda p: m.optim.SGD(p, lr=0.01))
        model = m.nn.Sequential(*layers[:-1])
        return trained(
            m, model, optimizer, m.nn.CrossEntropyLoss(), big(m, batch, sizes[0]), labels
        )

    return prepare


for _label, _goals, _sizes, _batch in (
    ("8-16-4, nn", (0.45, 0.28), (8, 16, 4), 4),
    ("784-128-10, SGD", (0.90, 0.70), (784, 128, 10), 64),
    ("512x1024x3", (1.05, 1.0), (512, 1024, 1024, 1024), 512),
):
    row(
        f"f: MLP {_label}",
        *_goals,
        numpy=lambda sizes=_sizes, batch=_batch: numpy_classifier(*sizes, batch=batch),
    )(classifier(*_sizes, batch=_batch))
row("f: MLP 784-128-10, Adam", 0.90, 0.70)(classifier(784, 128, 10, batch=64, adam=True))


@row("f: transformer block", 1.40, 1.10)
def _(m: Any) -> Any:
    batch, time_, width, heads = 8, 64, 128, 4
    norm = m.nn.LayerNorm(width)
    qkv, out = (
        big(m, width, 3 * width, grad=True),
        big(m, width, width, seed=1, grad=True),
    )
    up, down = (
        big(m, width, 4 * width, seed=2, grad=True),
        big(m, 4 * width, width, seed=3, grad=True),
    )
    x = big(m, batch, time_, width, seed=4)

    def run() -> Any:
        parts = (norm(x) @ (qkv * 0.01)).view(batch, time_, 3, heads, width // heads)
        q, k, v = (parts[:, :, place].transpose(1, 2) for place in range(3))
        weights = (q @ k.transpose(-2, -1) * (width // heads) ** -0.5).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, time_, width)
        y = x + mixed @ (out * 0.01)
        y = y + m.nn.functional.gelu(norm(y) @ (up * 0.01)) @ (down * 0.01)
        y.sum().backward()
        gradient = qkv.grad
        for parameter in (qkv, out, up, down, *norm.parameters()):
            parameter.grad = None
        return gradient.abs().mean()

    return run


# g: deep graphs


@row("g: chain of 10,000, backward", 0.45, 0.35)
def _(m: Any) -> Any:
    x, y, ones = tensor(m, 8, grad=True), m.tensor([1.000001] * 8), m.ones(8)
    z = x
    for _ in range(10_000):
        z = z * y

    def run() -> Any:
        z.backward(ones, retain_graph=True)
        gradient, x.grad = x.grad, None
        return gradient

    return run


row("g: chain of 10,000", 0.60, 0.50, numpy=lambda: numpy_chain(10_000))(chain(10_000, False))
row("g: chain of 1,000,000", 0.60, 0.40)(chain(1_000_000, False))


def resident() -> float:
    """Memory in use now, in bytes."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return float(pages) * resource.getpagesize()


@row("g: memory of a node", 0.60, 0.25, unit="bytes")
def _(m: Any) -> Any:
    build = chain(200_000, False, walk=False)(m)
    chain(1000, False, walk=False)(m)()
    gc.collect()
    before = resident()
    z = build()
    return (resident() - before) / 200_000 + 0 * len(z)


# h: gather, scatter, join


def indexed(run: Callable[[Any, Any, Any], Any], walk: bool = False, *shape: int) -> Any:
    """``run(library, x, positions)`` on large x."""

    def prepare(m: Any) -> Any:
        shape_ = shape or (10**6,)
        x = big(m, *shape_, grad=walk)
        generator = np.random.default_rng(1)
        positions = m.from_numpy(
            generator.integers(0, shape_[0], min(shape_[0], 8192 if walk else 10**6))
        )

        def once() -> Any:
            y = run(m, x, positions)
            if not walk:
                return y[:8]
            y.sum().backward()
            gradient, x.grad = x.grad, None
            return gradient.sum()

        return once

    return prepare


row("h: x[positions]", 1.0, 0.7)(indexed(lambda m, x, at: x[at]))
row("h: x[mask]", 0.6, 0.3)(indexed(lambda m, x, at: x[x > 1]))
row("h: where", 0.8, 0.3)(indexed(lambda m, x, at: m.where(x > 1, x, 0.0)))
row("h: slice, + backward", 1.2, 0.65)(indexed(lambda m, x, at: x[1000:-1000:2], True))
row("h: rows of an embedding, + backward", 1.8, 0.5)(
    indexed(lambda m, x, at: x[at], True, 10_000, 64)
)
row("h: 100 rows, + backward", 0.30, 0.05)(
    indexed(lambda m, x, at: sum((x[i] for i in range(1, 100)), x[0]), True, 1000, 256)
)
row("h: cat", 1.1, 0.75)(indexed(lambda m, x, at: m.cat([x, x, x])))


# i and j: memory, import


def mlp_by_hand(m: Any, steps: int) -> Any:
    """Training steps with intermediate results of 4 MB each."""
    w1, w2 = big(m, 256, 1024, grad=True), big(m, 1024, 16, seed=1, grad=True)
    x = big(m, 1024, 256, seed=2)

    def run() -> None:
        for _ in range(steps):
            ((x @ w1).relu() @ w2).mean().backward()
            with m.no_grad():
                for w in (w1, w2):
                    w.sub_(w.grad, alpha=1e-6)
                    w.grad = None

    return run


@row("i: peak memory of training", 1.15, 0.95, unit="MB")
def _(m: Any) -> Any:
    mlp_by_hand(m, 1)  # what the library itself needs is not counted
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mlp_by_hand(m, 10)()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


@row("i: growth in 1,000 steps, collector off", 1.0, 1.0, unit="KB")
def _(m: Any) -> Any:
    run = ROWS["f: tiny MLP, by hand"].prepare(m)
    for _ in range(3000):  # in the first ones the allocators still take some pages
        run()
    gc.collect()
    gc.disable()
    before = resident()
    for _ in range(1000):
        run()
    return (resident() - before) / 1024


@row("j: import", 0.2, 0.1, unit="ms")
def _(m: Any) -> Any:
    code = (
        f"import time; t = time.process_time(); import {m.__name__}; print(time.process_time() - t)"
    )
    with tempfile.TemporaryDirectory() as cache:  # the first import compiles, as an installer does
        env = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONPATH": m.__path__[0] + "/.."}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", code]
        for _ in range(2):
            shown = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return float(shown.stdout) * 1000


# k: second order


@row("k: Hessian-vector product of an MLP", 0.70, 0.40)
def _(m: Any) -> Any:
    w1, w2 = tensor(m, 8, 16, grad=True), tensor(m, 16, 4, seed=1, grad=True)
    x, v1, v2 = tensor(m, 4, 8, seed=2), tensor(m, 8, 16, seed=3), tensor(m, 16, 4, seed=4)

    def run() -> Any:
        loss = (((x @ w1) * 0.1).tanh() @ w2).tanh().mean()
        g1, g2 = m.autograd.grad(loss, (w1, w2), create_graph=True)
        along = (g1 * v1).sum() + (g2 * v2).sum()
        return m.autograd.grad(along, (w1, w2))[0]

    return run


def measured(run: Callable[[], Any], seconds: float = 0.03) -> tuple[int, float]:
    """How many rounds take ``seconds`` of CPU time, and the time of one in microseconds."""
    count = 1
    while True:
        spent = timed(run, count)
        if spent * count > seconds * 1e6 / 2 or spent > seconds * 1e6:
            return max(1, round(seconds * 1e6 / spent)), spent
        count *= 4


def timed(run: Callable[[], Any], count: int) -> float:
    """CPU time of one call in microseconds, from ``count`` calls."""
    start = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - start) / count * 1e6
