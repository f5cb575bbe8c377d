"""From 1 to 40 elements, nodes, parameters or steps: no text lies on another."""

import itertools
import math
import xml.etree.ElementTree as ET

import pytest
from svg_text import texts

import tensorkit as tk
from tensorkit import explain, viz


def _values(n):
    return tk.arange(n) * 37.125 - 500


def _chain(n):
    x = tk.ones(n, requires_grad=True)
    y = x
    for step in range(n - 1):
        y = y * x if step % 3 else y.sin()
    return y.sum()


def _star(n):
    x = tk.ones(3, requires_grad=True)
    return tk.stack([x * step for step in range(n)]).sum()


def _ledger(n):
    with tk.cuda.simulate(), tk.cuda.record() as ledger:
        for _ in range(n):
            tk.ones(3, device="cuda").sum().item()
    return ledger


def _trained(n):
    parameters = {f"layer{place}.weight": tk.ones(2, requires_grad=True) for place in range(n)}
    for place, parameter in enumerate(parameters.values()):
        parameter.grad = tk.full((2,), 10.0 ** (place - 20))
    return parameters


@tk.cuda.kernel
def _doubled(x, n):
    i = tk.cuda.grid(1)
    for _round in range(n):
        x[i] *= 2.0
        tk.cuda.syncthreads()


def _launch(n):
    with tk.cuda.simulate():
        return _doubled[1, min(32 * n, 160)](tk.ones(1280).cuda(), n)


PICTURES = {
    "memory": lambda n: viz.memory(a=_values(n), b=_values(n)[::2]),
    "memory of a matrix": lambda n: viz.memory(a=_values(n).reshape(1, n).T, b=tk.ones(1, n)),
    "indexing": lambda n: viz.indexing(_values(n), slice(None, None, 3)),
    "broadcast": lambda n: viz.broadcast(_values(n).reshape(n, 1), _values(n)),
    "graph": lambda n: viz.graph(_chain(n)),
    "star": lambda n: viz.graph(_star(n)),
    "backward": lambda n: viz.backward(_chain(n), naive=True),
    "saved": lambda n: viz.saved(_chain(n)),
    "timeline": lambda n: viz.timeline(_ledger(n), _ledger(2)),
    "training": lambda n: viz.training({f"loss {i}": [1.0, 2.0 + i] for i in range(min(n, 12))}),
    "epochs": lambda n: viz.training({"loss": [1e4 / (i + 1) for i in range(n)], "accuracy": [1]}),
    "gradients": lambda n: viz.gradients(_trained(n)),
    "landscape": lambda n: viz.landscape(lambda x, y: x * x + y, [(i, 1e3 * i) for i in range(n)]),
    "benchmark": lambda n: viz.benchmark({"cpu": {2**i: 1e-7 * 3.0**i for i in range(n)}}),
    "kernel": lambda n: viz.kernel(_launch(n)),
    "explain": lambda n: explain.broadcast(_values(n), _values(n + 1)),
}


def test_a_kernel_is_drawn_in_all_phases_and_threads_or_says_what_is_left_out():
    said = str(viz.kernel(_launch(5)))
    assert "phase 5 of 5" in said
    assert "of 5 phases" not in said
    assert "x[159]: thread 159" not in said
    assert "reads x, 4 of 5 warps: coalesced, 1 transaction for 32 threads of warp 3" in said
    assert "x[127]: thread 127" in said
    picture = viz.kernel(_launch(40))
    assert picture.title.endswith("16 of 40 phases")
    assert "phase 17" not in str(picture)


def _overlaps(picture):
    boxes = [
        (
            text.x,
            text.y - 0.7 * text.size,
            text.x + text.width,
            text.y + 0.15 * text.size,
            text.text,
        )
        for text in texts(picture)
    ]
    return [
        (a[4], b[4])
        for a, b in itertools.combinations(boxes, 2)
        if min(a[2], b[2]) - max(a[0], b[0]) > 0.5 and min(a[3], b[3]) - max(a[1], b[1]) > 0.5
    ]


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_lies_on_another(name):
    for n in (1, 2, 5, 12, 25, 40):
        picture = PICTURES[name](n)
        assert _overlaps(picture) == [], n
        assert math.isfinite(float(ET.fromstring(picture.svg).get("width")))
