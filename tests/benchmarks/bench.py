"""``make bench``: tensorkit beside PyTorch eager and NumPy by hand, workload by workload.

    python tests/benchmarks/bench.py [--rows TEXT ...] [--rounds 11] [--write] [--also CHECKOUT]

Every contestant is a process of its own with one thread; their rounds alternate, so that whatever
else the machine does meets all of them. The clock is the process's CPU time; the figure is the
median of the rounds. Results are compared before they are timed. ``--also`` measures another
checkout of tensorkit too; ``--write`` puts the table and the picture into ``docs/``.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import workloads

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


# One contestant


def library(name: str) -> Any:
    """The library of a contestant: torch, or tensorkit from the checkout ``name``."""
    if name == "torch":
        import torch

        torch.set_num_threads(1)
        return torch
    sys.path.insert(0, name)
    import tensorkit

    return tensorkit


def fingerprint(result: Any) -> list[float]:
    """A few numbers that differ if results differ."""
    if hasattr(result, "detach"):
        result = result.detach()
    values = np.asarray(result, dtype=np.float64).reshape(-1)
    return [float(values.size), float(values.sum()), float(values @ np.cos(np.arange(values.size)))]


def serve(name: str) -> None:
    """Answer requests: ["prepare", label], ["time", count], ["number", label]."""
    m = None if name == "numpy" else library(name)
    run: Any = None
    for line in sys.stdin:
        what, value = json.loads(line)
        answer: Any
        try:
            if what == "number":
                answer = workloads.ROWS[value].prepare(m)
            elif what == "prepare":
                chosen = workloads.ROWS[value]
                run = None
                run = chosen.numpy() if m is None else chosen.prepare(m)  # type: ignore[misc]
                answer = [fingerprint(run()), *workloads.measured(run)]
            else:
                answer = workloads.timed(run, value)
        except (AttributeError, NotImplementedError, TypeError, RuntimeError, IndexError) as error:
            answer = {"missing": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
        print(json.dumps(answer), flush=True)


class Contestant:
    """A process that measures one library."""

    def __init__(self, name: str, steady: bool) -> None:
        self.name = name
        extra = workloads.STEADY if steady else {}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--serve", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD, **extra},
        )

    def ask(self, *request: Any) -> Any:
        """Send a request and wait for the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


# The contest


def contest(label: str, names: list[str], rounds: int, running: dict[Any, Contestant]) -> Any:
    """Medians by contestant, or a sentence why there are none."""
    row = workloads.ROWS[label]
    if row.numpy is not None:
        names = [*names, "numpy"]
    players = []
    for name in names:
        key = name, row.steady
        if key not in running:
            running[key] = Contestant(*key)
        players.append(running[key])
    ready = [player.ask("prepare", label) for player in players]
    for name, answer in zip(names, ready, strict=True):
        if isinstance(answer, dict):
            return f"not measured: {'tensorkit' if name == names[1] else name}: {answer['missing']}"
        if not np.allclose(answer[0], ready[0][0], rtol=1e-3, atol=1e-4):
            return f"WRONG: {name} gives {answer[0]}, PyTorch {ready[0][0]}"
    if ready[0][2] > 1e6:  # seconds per round
        rounds = min(rounds, 3)
    times: list[list[float]] = [[] for _ in names]
    for _ in range(rounds):
        for player, answer, own in zip(players, ready, times, strict=True):
            own.append(player.ask("time", answer[1]))
    return dict(zip(names, map(statistics.median, times), strict=True))


def numbers(label: str, names: list[str]) -> Any:
    """What a row that is no time gives, each time in a new process."""
    found: dict[str, Any] = {}
    for name in names:
        answers = []
        for _ in range(3):
            player = Contestant(name, False)
            answers.append(player.ask("number", label))
            player.close()
        if isinstance(answers[0], dict):
            return f"not measured: {answers[0]['missing']}"
        found[name] = statistics.median(answers)
    return found


# The report


def ratio_to_torch(found: dict[str, float], checkout: str) -> float:
    """What tensorkit takes divided by what PyTorch takes; of nothing, nothing is 0."""
    if found["torch"]:
        return found[checkout] / found["torch"]
    return math.inf if found[checkout] else 0.0


def verdict(ratio: float, row: workloads.Row) -> str:
    """Which goal is reached."""
    return "stretch" if ratio <= row.stretch else "must" if ratio <= row.must else "**no**"


def shown(value: float | None, unit: str) -> str:
    """A number with its unit."""
    if value is None:
        return ""
    if unit == "us" and value >= 10_000:
        value, unit = value / 1000, "ms"
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def table(results: dict[str, Any], checkout: str) -> list[str]:
    """The lines of the table, in Markdown."""
    lines = [
        "| workload | PyTorch | tensorkit | NumPy by hand | ratio to PyTorch | must | stretch | |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for label, found in results.items():
        row = workloads.ROWS[label]
        if isinstance(found, str):
            lines.append(f"| {label} | | | | | {row.must} | {row.stretch} | {found} |")
            continue
        ratio = ratio_to_torch(found, checkout)
        cells = [shown(found.get(name), row.unit) for name in ("torch", checkout, "numpy")]
        lines.append(
            f"| {label} | {' | '.join(cells)} | {ratio:.2f} | {row.must} | {row.stretch} | "
            f"{verdict(ratio, row)} |"
        )
    return lines


def ratios(results: dict[str, Any], checkout: str) -> dict[str, float]:
    """Time divided by PyTorch's, of every row that was timed."""
    return {
        label: found[checkout] / found["torch"]
        for label, found in results.items()
        if isinstance(found, dict) and found["torch"] > 0 and found[checkout] > 0
    }


def picture(found: dict[str, float], goals: dict[str, float], title: str) -> str:
    """The ratios as an SVG: a bar for each workload, the goal as a tick, 1 as a line."""
    width, left, height = 860, 330, 17
    low, high = math.log(0.02), math.log(max([4.0, *found.values()]))

    def x(ratio: float) -> float:
        share = (math.log(max(ratio, 0.02)) - low) / (high - low)
        return round(left + share * (width - left - 60), 1)

    bottom = 40 + height * len(found)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 10}"',
        'font-family="sans-serif" font-size="12" role="img" aria-labelledby="title">',
        f'<title id="title">{title}</title>',
        f'<rect width="{width}" height="{bottom + 10}" fill="white"/>',
    ]
    for mark in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0):
        colour = "#222" if mark == 1 else "#ccc"
        parts.append(
            f'<line x1="{x(mark)}" x2="{x(mark)}" y1="24" y2="{bottom}" stroke="{colour}"/>'
            f'<text x="{x(mark)}" y="16" text-anchor="middle">{mark:g}</text>'
        )
    for place, (label, ratio) in enumerate(found.items()):
        y = 30 + height * place
        must = goals[label]
        colour = "#2a7f62" if ratio <= must else "#c0504d"
        name = label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        parts.append(
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{name}</text>'
            f'<rect x="{left}" y="{y + 2}" width="{round(x(ratio) - left, 1)}" '
            f'height="{height - 5}" fill="{colour}"/>'
            f'<line x1="{x(must)}" x2="{x(must)}" y1="{y}" y2="{y + height - 1}" '
            'stroke="#222" stroke-width="2"/>'
            f'<text x="{width - 52}" y="{y + 12}">{ratio:.2f}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def machine() -> str:
    """Where this was measured."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{model}, one thread, Python {platform.python_version()}, NumPy {np.__version__}"


def write(results: dict[str, Any], checkout: str, mean: float) -> None:
    """The table and the picture in ``docs/``."""
    docs = ROOT / "docs"
    docs.mkdir(exist_ok=True)
    text = [
        "# How fast it is",
        "",
        "Written by `make bench`. CPU time, median of alternating rounds, each contestant in a",
        "process of its own; results were compared before they were timed. A ratio below 1 means",
        "faster than PyTorch eager. *must* and *stretch* are the goals.",
        "",
        f"Measured on {machine()}.",
        "",
        f"Geometric mean of the ratios: **{mean:.2f}**. It differs between runs, on one machine",
        "too: PyTorch asks the system for the memory of large results each time, which is fast",
        "or slow as the machine has it free. Rows with small tensors (a) vary little.",
        "",
        "![Time divided by PyTorch's; the tick is the goal](benchmark.svg)",
        "",
        *table(results, checkout),
        "",
    ]
    (docs / "benchmark.md").write_text("\n".join(text))
    goals = {label: row.must for label, row in workloads.ROWS.items()}
    title = "Time of tensorkit divided by the time of PyTorch"
    (docs / "benchmark.svg").write_text(picture(ratios(results, checkout), goals, title))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", default=[""], help="only labels containing a text")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--also", help="another checkout of tensorkit")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    checkout = str(ROOT)
    names = ["torch", checkout, *([given.also] if given.also else [])]
    running: dict[Any, Contestant] = {}
    results: dict[str, Any] = {}
    for label, row in workloads.ROWS.items():
        if not any(text in label for text in given.rows):
            continue
        if row.unit == "us":
            found = contest(label, names, given.rounds, running)
        else:
            found = numbers(label, names)
        results[label] = found
        if isinstance(found, str):
            print(f"{label:40} {found}", flush=True)
            continue
        ratio = ratio_to_torch(found, checkout)
        cells = "".join(f"{found.get(n, math.nan):>12,.2f}" for n in [*names, "numpy"])
        print(
            f"{label:40}{cells} {row.unit:5} {ratio:6.2f} (must {row.must}, stretch "
            f"{row.stretch}) {verdict(ratio, row)}",
            flush=True,
        )
    for player in running.values():
        player.close()
    found = ratios(results, checkout)
    if found:
        mean = statistics.geometric_mean(found.values())
        print(f"geometric mean of {len(found)} rows: {mean:.3f}")
        if given.write:
            write(results, checkout, mean)


if __name__ == "__main__":
    main()
