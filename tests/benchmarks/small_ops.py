"""Small operations and chains against PyTorch: process CPU time, interleaved rounds, medians.

    python tests/benchmarks/small_ops.py [other checkout of tensorkit, to compare with]

Each contestant is a process of its own with one thread; rounds alternate. Results are checked in
the tests, not here.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 11


def workloads(m):
    a, b = m.tensor([1.0] * 8), m.tensor([2.0] * 8)
    yield "a + b, no grad", lambda: a + b, 20000
    yield "-a, no grad", lambda: -a, 20000
    yield "a * 2.0, no grad", lambda: a * 2.0, 5000
    yield "a[1:3], no grad", lambda: a[1:3], 5000
    if not hasattr(m, "no_grad"):
        return
    x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
    square, other = m.ones(8, 8), m.ones(8, 8)
    root = m.ones(8, 8, requires_grad=True)
    yield "exp(a), no grad", lambda: a.exp(), 20000
    yield "x + y, grad", lambda: x + y, 20000
    yield "x * y, grad", lambda: x * y, 20000
    yield "exp(x), grad", lambda: x.exp(), 20000
    yield "8x8 @, no grad", lambda: square @ other, 5000
    yield "8x8 @, grad", lambda: root @ other, 5000
    yield "sum, no grad", lambda: a.sum(), 5000
    yield "a.t, no grad", lambda: square.t(), 5000
    yield "reshape, no grad", lambda: square.reshape(64), 5000
    one = m.tensor([1.0001] * 8)
    ones = m.ones(8)

    def chain(operand, length):
        def run():
            z = x
            for _ in range(length):
                z = z * operand
            z.backward(ones)
            x.grad = None
            y.grad = None

        return run

    yield "chain of 100, fwd+bwd", chain(one, 100), 30
    yield "chain of 100, both grad", chain(y, 100), 30
    yield "chain of 10000, fwd+bwd", chain(one, 10000), 1
    w1, w2 = m.rand(8, 16), m.rand(16, 4)
    w1.requires_grad_()
    w2.requires_grad_()
    data = m.rand(4, 8)

    def train():
        loss = ((data @ w1).relu() @ w2).mean()
        loss.backward()
        with m.no_grad():
            for w in (w1, w2):
                w.sub_(w.grad, alpha=0.01)
                w.grad = None

    yield "tiny MLP step", train, 200
    rows = m.rand(100, 64, requires_grad=True)

    def row_views():
        total = rows[0]
        for i in range(1, 100):
            total = total + rows[i]
        total.sum().backward()
        rows.grad = None

    yield "100 row views, fwd+bwd", row_views, 5


def serve(name):
    if name == "torch":
        import torch as m

        m.set_num_threads(1)
    else:
        sys.path.insert(0, name)
        import tensorkit as m
    cases = {label: (run, n) for label, run, n in workloads(m)}
    print(json.dumps(list(cases)), flush=True)
    for line in sys.stdin:
        run, n = cases[json.loads(line)]
        run()
        start = time.process_time()
        for _ in range(n):
            run()
        print(json.dumps((time.process_time() - start) / n * 1e6), flush=True)


def main():
    here = str(Path(__file__).resolve().parent.parent)
    names = ["torch", here, *sys.argv[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    servers = [
        subprocess.Popen(
            [sys.executable, __file__, "--serve", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for name in names
    ]
    known = [json.loads(server.stdout.readline()) for server in servers]
    print(f"{'microseconds, median':28}" + "".join(f"{Path(n).name:>12}" for n in names))
    for label in known[0]:
        times = [[] for _ in names]
        for _ in range(ROUNDS):
            for place, server in enumerate(servers):
                if label in known[place]:
                    server.stdin.write(json.dumps(label) + "\n")
                    server.stdin.flush()
                    times[place].append(json.loads(server.stdout.readline()))
        medians = [statistics.median(each) if each else float("nan") for each in times]
        shown = "".join(f"{each:12.3f}" for each in medians)
        print(f"{label:28}{shown}   {medians[1] / medians[0]:.2f}x of torch")
    for server in servers:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main()
