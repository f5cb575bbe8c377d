"""``make bench-gpu``: tensorkit beside CuPy by hand and PyTorch on one GPU, workload by workload.

    python tests/benchmarks/on_gpu.py [--rows TEXT ...] [--write]

Of every workload two times are taken. *Enqueue*: how long the host is busy asking for it. *Whole*:
until the device has done it, with a synchronisation before and after. Kernels are compiled and
memory pools filled before; rounds of the contestants alternate; the figure is the median. Results
are compared before anything is timed. ``--write`` puts the table and a picture into ``docs/``.
"""

import argparse
import contextlib
import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import bench
import numpy as np

import tensorkit as tk
from course.exercises.ch12_kernels.tiled_matmul import matmul
from course.exercises.ch12_kernels.tree_sum import block_sums
from tensorkit.cuda import cupy_backend

DOCS = Path(__file__).resolve().parents[2] / "docs"
RTOL = 2e-4
ROUNDS, MOST = 15, 50  # so few calls a round that the queue of a device never fills
ENOUGH = 0.04  # seconds of a round: more calls would only take longer
Run = Callable[[], Any]


class Row(NamedTuple):
    """A workload; ``prepare`` takes a library and a device, ``by_hand`` an array library."""

    prepare: Callable[[Any, str], Run]
    by_hand: Callable[[Any], Run] | None = None
    rtol: float = RTOL


class Contestant(NamedTuple):
    """Whose time is taken."""

    name: str
    prepare: Callable[[Row], Run | None]
    cuda: Any  # who synchronises and counts memory
    inside: Callable[[], Any] = contextlib.nullcontext  # a context to be measured in


class Times(NamedTuple):
    """What was measured of one contestant: seconds a call, and bytes at the peak."""

    enqueue: float
    whole: float
    peak: int


# Workloads


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    """The same numbers for everybody."""
    drawn = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
    return (drawn - (drawn > 1.0)).astype(dtype)


def places(count: int, below: int) -> Any:
    """Positions, the same for everybody."""
    return np.random.default_rng(1).integers(0, below, count)


def call(run: Any, *arrays: Any, grad: bool = False, raw: Any = "same", rtol: float = RTOL) -> Row:
    """One call on tensors, with ``grad`` and the way back; ``raw`` does it on arrays by hand."""

    def prepare(m: Any, device: str) -> Run:
        given = [m.from_numpy(array).to(device) for array in arrays]
        if not grad:
            return lambda: run(m, *given)
        leaves = [x.requires_grad_() for x in given if x.is_floating_point()]
        found = run(m, *given).detach()
        seed = found * found  # for one seed everywhere softmax and layer norm have no slope

        def there_and_back() -> Any:
            for leaf in leaves:
                leaf.grad = None
            run(m, *given).backward(seed)
            return leaves[0].grad

        return there_and_back

    def by_hand(xp: Any) -> Run:
        own = [xp.array(array) for array in arrays]
        return lambda: (run if raw == "same" else raw)(xp, *own)

    return Row(prepare, None if grad or raw is None else by_hand, rtol)


def training(width: int, depth: int, batch: int, optimizer: str, rtol: float = RTOL) -> Row:
    """A step of a network: forward, backward, update."""

    def prepare(m: Any, device: str) -> Run:
        m.manual_seed(0)
        sizes = [width] * depth
        layers = [layer for n in sizes for layer in (m.nn.Linear(n, n), m.nn.ReLU())]
        net = m.nn.Sequential(*layers, m.nn.Linear(width, 10)).to(device)
        for place, p in enumerate(net.parameters()):
            p.data = m.from_numpy(numbers(*p.shape, seed=place) * (1 / width)).to(device)
        x = m.from_numpy(numbers(batch, width)).to(device)
        y = m.from_numpy(places(batch, 10)).to(device)
        steps = getattr(m.optim, optimizer)(net.parameters(), lr=1e-4)

        def run() -> Any:
            steps.zero_grad()
            loss = m.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            steps.step()
            return loss.detach()

        return run

    return Row(prepare, rtol=rtol)


def heads(m: Any, q: Any, k: Any) -> Any:
    """The scores of attention: (batch, time, heads, width) permuted, not copied."""
    return q.swapaxes(1, 2) @ k.swapaxes(1, 2).swapaxes(2, 3)


def rows(tiny: bool = False) -> dict[str, Row]:
    """All workloads; ``tiny`` ones try this script out where nothing is to be measured."""

    def n(size: int) -> int:
        return max(size >> 20, 8) if tiny else size

    found: dict[str, Row] = {"small: x + y": call(lambda m, x, y: x + y, *[numbers(8)] * 2)}
    for power in (6, 7, 8):
        x, y = numbers(n(10**power)), numbers(n(10**power), seed=1)
        found[f"elementwise: x * y + x, 1e{power}"] = call(lambda m, x, y: x * y + x, x, y)
        found[f"elementwise: exp, 1e{power}"] = call(lambda m, x: m.exp(x), x)
    x = numbers(n(10**7))
    found["elementwise: sin(x^2) exp(-x), 1e7, back"] = call(
        lambda m, x: (x * x).sin() * (-x).exp(), x, grad=True
    )
    side = 16 if tiny else 4096
    matrix = numbers(side, side)
    for name in ("sum", "mean", "max"):
        found[f"reduction: {name} of all"] = call(
            lambda m, x, name=name: getattr(x, name)(), matrix, rtol=1e-3
        )
        if name != "max":
            for dim in (0, 1):
                found[f"reduction: {name}({dim})"] = call(
                    lambda m, x, name=name, dim=dim: getattr(x, name)(dim), matrix, rtol=2e-3
                )
    layer = numbers(side, 16 if tiny else 1024)
    classes = places(side, layer.shape[1])
    for name in ("softmax", "log_softmax"):
        found[f"rows: {name}"] = call(
            lambda m, x, name=name: getattr(m, name)(x, -1), layer, raw=None
        )
        found[f"rows: {name}, back"] = call(
            lambda m, x, name=name: getattr(m, name)(x, -1) * x, layer, grad=True
        )
    found["rows: cross entropy, back"] = call(
        lambda m, x, y: m.nn.functional.cross_entropy(x, y), layer, classes, grad=True
    )
    found["rows: layer norm, back"] = call(
        lambda m, x: m.nn.functional.layer_norm(x, x.shape[-1:]), layer, grad=True, rtol=1e-2
    )
    found["rows: gelu, back"] = call(lambda m, x: m.nn.functional.gelu(x), layer, grad=True)
    for size in (256, 1024, 4096, 8192):
        a, b = (numbers(*[16 if tiny else size] * 2, seed=seed) for seed in (0, 1))
        product = lambda m, x, y: x @ y  # noqa: E731
        found[f"matmul: {size}"] = call(product, a, b, rtol=2e-3)
        found[f"matmul: {size}, float16"] = call(
            product, a.astype("float16"), b.astype("float16"), rtol=2e-2
        )
        found[f"matmul: {size}, transposed"] = call(lambda m, x, y: x @ y.T, a, b, rtol=2e-3)
    shape = (2, 4, 2, 8) if tiny else (16, 512, 12, 64)
    for kind in ("float32", "float16"):
        q, k = (numbers(*shape, seed=seed, dtype=kind) for seed in (0, 1))
        found[f"matmul: heads, {kind}"] = call(heads, q, k, rtol=2e-2)
    table, index = numbers(n(50_000 << 5), 64), places(n(8192 << 7), n(50_000 << 5))
    found["gather: x[index] of 1e7"] = call(lambda m, x, i: x[i], x, places(n(10**6), len(x)))
    found["gather: rows of an embedding, back"] = call(
        lambda m, e, i: e[i], table, index, grad=True, rtol=1e-3
    )
    found["gather: x[mask] of 1e7"] = call(lambda m, x: x[x > 0.5], x)
    found["copy: transposed"] = call(lambda m, x: x.t().contiguous(), matrix, raw=None)
    found["copy: to the device, 1e7"] = Row(lambda m, device: _sent(m, x, device))
    found["copy: to the host, 1e7"] = call(lambda m, x: x.cpu(), x, raw=None)
    found |= {} if tiny else of_chapter_12()  # the stand-in for CuPy compiles nothing
    for optimizer in ("SGD", "Adam"):
        sizes = (8, 2, 4) if tiny else (128, 2, 64)
        found[f"step: small network, {optimizer}"] = training(*sizes, optimizer)
        sizes = (16, 2, 4) if tiny else (4096, 3, 4096)
        found[f"step: large network, {optimizer}"] = training(*sizes, optimizer, rtol=1e-3)
    return found


def in_tiles(m: Any, x: Any, y: Any) -> Any:
    """A product by the learner's kernel of chapter 12; others call their library."""
    if m is not tk:
        return x @ y
    out, n = tk.empty_like(x), len(x)
    matmul[(n // 4, n // 4), (4, 4)](x, y, out, n)
    return out


def by_trees(m: Any, x: Any) -> Any:
    """The sum of each eight neighbours, likewise."""
    if m is not tk:
        return x.reshape(-1, 8).sum(1)
    out, n = tk.empty(len(x) // 8, device=x.device), len(x)
    block_sums[n // 8, 8](x, out, n)
    return out


def of_chapter_12() -> dict[str, Row]:
    """Kernels that learners write."""
    a, b, x = numbers(1024, 1024), numbers(1024, 1024, seed=1), numbers(10**6)
    product = call(in_tiles, a, b, raw=lambda m, x, y: x @ y, rtol=2e-3)
    sums = call(by_trees, x, raw=lambda m, x: x.reshape(-1, 8).sum(1))
    return {
        "kernel of chapter 12: product in tiles, 1024": product,
        "kernel of chapter 12: sums by trees, 1e6": sums,
    }


def _sent(m: Any, array: Any, device: str) -> Run:
    x = m.from_numpy(array)
    return lambda: x.to(device)


# Measuring


def on_host(result: Any) -> Any:
    """A result as a flat NumPy array of float64; of many elements some."""
    if hasattr(result, "detach"):
        result = result.detach().cpu().numpy()
    flat = np.asarray(result.get() if hasattr(result, "get") else result).reshape(-1)
    return flat[:: max(flat.size // 10**6, 1)].astype(np.float64)


def calls(run: Run, cuda: Any) -> tuple[float, float, int]:
    """One round: seconds a call until asked, until done, and how many calls that were."""

    def timed(count: int) -> tuple[float, float]:
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            run()
        asked = time.perf_counter()
        cuda.synchronize()
        return (asked - start) / count, (time.perf_counter() - start) / count

    first = timed(1)
    count = min(MOST, int(ENOUGH / first[1]))
    return (*timed(count), count) if count > 1 else (*first, 1)


def peak(run: Run, cuda: Any) -> int:
    """The most bytes that a call uses beyond those in use before: several share CuPy's pool."""
    cuda.synchronize()
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    run()
    cuda.synchronize()
    return int(cuda.max_memory_allocated() - before)


def measure(row: Row, contestants: list[Contestant], rounds: int) -> Any:
    """Times by contestant, or a sentence about what went wrong."""
    runs = {}
    for each in contestants:
        try:
            run = each.prepare(row)
            if run is not None:
                runs[each.name] = each.cuda, run, on_host(run())
        except Exception as error:
            said = f"{error}".splitlines() or [""]
            return f"{each.name}: {type(error).__name__}: {said[0]}"
    (first, (_, _, expected)), *others = runs.items()
    for name, (_, _, found) in others:
        atol = row.rtol * np.abs(expected).mean() if expected.size else 0
        if found.shape != expected.shape or not np.allclose(found, expected, row.rtol, atol):
            return f"WRONG: {name} and {first} differ"
    peaks = {name: peak(run, cuda) for name, (cuda, run, _) in runs.items()}
    taken: dict[str, list[Any]] = {name: [] for name in runs}
    for _ in range(rounds):
        for each in contestants:
            if each.name in runs:
                with each.inside():
                    taken[each.name].append(calls(runs[each.name][1], each.cuda))
    return {
        name: Times(
            statistics.median(asked for asked, _, _ in found),
            statistics.median(done for _, done, _ in found),
            peaks[name],
        )
        for name, found in taken.items()
    }


# The report


def micro(times: Times | None) -> str:
    """Enqueue and whole time in microseconds."""
    return "" if times is None else f"{times.enqueue * 1e6:,.1f} / {times.whole * 1e6:,.1f}"


def ratio(found: dict[str, Times], name: str) -> str:
    """tensorkit's whole time divided by another one's."""
    return f"{found['tensorkit'].whole / found[name].whole:.2f}" if name in found else ""


def table(results: dict[str, Any]) -> list[str]:
    """The lines of the table, in Markdown."""
    lines = [
        "| workload | tensorkit | CuPy by hand | PyTorch | to CuPy | to PyTorch | peak |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for label, found in results.items():
        if isinstance(found, str):
            lines.append(f"| {label} | {found} | | | | | |")
            continue
        torch_peak = f" / {found['PyTorch'].peak / 2**20:,.1f}" if "PyTorch" in found else ""
        cells = [micro(found.get(name)) for name in ("tensorkit", "CuPy", "PyTorch")]
        cells += [ratio(found, "CuPy"), ratio(found, "PyTorch")]
        cells.append(f"{found['tensorkit'].peak / 2**20:,.1f}{torch_peak} MiB")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def text(results: dict[str, Any], machine: str) -> str:
    """The page of the documentation."""
    lines = [
        "# How fast it is on a GPU",
        "",
        "Written by `make bench-gpu`. Microseconds a call, *enqueue / whole*: the host's part, and",
        "until the device is done. Medians of alternating rounds; results were compared before.",
        "*Peak* is the most memory that a call uses beyond what was there before, tensorkit's and",
        "PyTorch's.",
        "",
        f"Measured on {machine}.",
        "",
        "![Whole time divided by PyTorch's](benchmark-gpu.svg)",
        "",
        *table(results),
        "",
    ]
    return "\n".join(lines)


def picture(results: dict[str, Any]) -> str:
    """The whole times divided by PyTorch's, as bars; by CuPy's where there is no PyTorch."""
    timed = {label: found for label, found in results.items() if isinstance(found, dict)}
    other = "PyTorch" if any("PyTorch" in found for found in timed.values()) else "CuPy"
    ratios = {
        label: found["tensorkit"].whole / found[other].whole
        for label, found in timed.items()
        if other in found
    }
    equal = dict.fromkeys(ratios, 1.0)
    return bench.picture(ratios, equal, f"Time of tensorkit on a GPU divided by that of {other}")


def contestants(device: str = "cuda") -> list[Contestant]:
    """tensorkit, CuPy and, where it can use the GPU, PyTorch."""
    import cupy

    # without tensorkit's books
    own = partial(cupy.cuda.using_allocator, cupy.get_default_memory_pool().malloc)
    found = [
        Contestant("tensorkit", lambda row: row.prepare(tk, device), tk.cuda),
        Contestant("CuPy", lambda row: row.by_hand and row.by_hand(cupy), tk.cuda, own),
    ]
    try:
        import torch
    except ImportError:
        return found
    if torch.cuda.is_available():
        found.append(Contestant("PyTorch", lambda row: row.prepare(torch, device), torch.cuda))
    return found


def machine() -> str:
    """Where this was measured, and with what."""
    import cupy

    cuda = f"CUDA {tk.version.cuda}, CuPy {cupy.__version__}"
    torch = sys.modules.get("torch")
    return f"{tk.cuda.get_device_name()}, {cuda}" + (
        f", PyTorch {torch.__version__}" if torch else ""
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", default=[""], help="only labels containing a text")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    missing = cupy_backend.missing()
    if missing:
        sys.exit(f"Nothing can be measured: {missing}")
    known = {
        label: row for label, row in rows().items() if any(part in label for part in given.rows)
    }
    players = contestants()
    results = {}
    for label, row in known.items():
        results[label] = measure(row, players, ROUNDS)
        print(table({label: results[label]})[-1], flush=True)
        for cuda in {each.cuda for each in players}:
            cuda.empty_cache()
    if given.write:
        (DOCS / "benchmark-gpu.md").write_text(text(results, machine()))
        (DOCS / "benchmark-gpu.svg").write_text(picture(results))
    speeds = [
        found["tensorkit"].whole / found["PyTorch"].whole
        for found in results.values()
        if isinstance(found, dict) and "PyTorch" in found
    ]
    if speeds:
        print(f"geometric mean of the ratios to PyTorch: {math.exp(np.mean(np.log(speeds))):.3f}")


if __name__ == "__main__":
    main()
