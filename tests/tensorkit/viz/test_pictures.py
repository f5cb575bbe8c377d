"""What holds of every picture: the same bytes, words for it, no script, no network, no stack."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from svg_text import texts

import tensorkit as tk
from tensorkit import explain, viz


def _network():
    tk.manual_seed(3)
    x, w = tk.rand(4, 3), tk.rand(3, 2, requires_grad=True)
    b = tk.zeros(2, requires_grad=True)
    h = (x @ w + b).tanh()
    return (h * h).mean()


def _changed():
    x = tk.ones(2, requires_grad=True)
    y = x.exp()
    loss = (y * y).sum()
    y += 1
    return loss


def _trained():
    w = tk.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    return w


def _ledger():
    with tk.cuda.simulate(), tk.cuda.record() as ledger:
        tk.ones(3, device="cpu").to("cuda").sum().item()
    return ledger


@tk.cuda.kernel
def _summed(x, out, n):
    part = tk.cuda.shared(4, tk.float32)
    t = tk.cuda.threadIdx.x
    part[t] = 0.0
    for row in range(t, n, 4):
        part[t] += x[row, 1]
    tk.cuda.syncthreads()
    if t == 0:
        out[0] = part[0] + part[1] + part[2] + part[3]


def _launch():
    with tk.cuda.simulate():
        return _summed[1, 4](tk.ones(40, 9).cuda(), tk.zeros(1).cuda(), 40)


CHARTS = ("benchmark", "gradients", "landscape", "saved", "timeline", "training")

VIZ = {
    "benchmark": lambda: viz.benchmark({"cpu": {1: 1e-6, 100: 1e-4}, "cuda": {1: 1e-5, 100: 2e-5}}),
    "gradients": lambda: viz.gradients({"w": _trained(), "b": tk.ones(3)}),
    "landscape": lambda: viz.landscape(lambda x, y: x * x + y * y, [(1.0, 1.0), (0.5, 0.25)]),
    "timeline": lambda: viz.timeline(_ledger(), _ledger()),
    "training": lambda: viz.training({"loss": [2.0, 1.0, 0.75], "accuracy": [0.25, 0.5, 0.9]}),
    "backward": lambda: viz.backward(_network(), naive=True),
    "broadcast": lambda: viz.broadcast((4, 1), tk.arange(3)),
    "dispatch": lambda: viz.dispatch(tk.add, tk.ones(2, 3, requires_grad=True), tk.arange(3)),
    "graph": lambda: viz.graph(_network()),
    "indexing": lambda: viz.indexing(tk.arange(12).reshape(3, 4), (slice(1, None), 2)),
    "kernel": lambda: viz.kernel(_launch()),
    "memory": lambda: viz.memory(a=tk.arange(6)),
    "saved": lambda: viz.saved(_network()),
}
EXPLAIN = {
    "broadcast": lambda: explain.broadcast((3, 4), (3,)),
    "dispatch": lambda: explain.dispatch(tk.nn.Linear(3, 2), tk.ones(1, 3)),
    "inplace": lambda: explain.inplace(_changed()),
    "no_grad": lambda: explain.no_grad(tk.ones(3)),
}
PICTURES = VIZ | {f"explain {name}": make for name, make in EXPLAIN.items()}


@pytest.fixture(params=PICTURES, scope="module")
def name(request):
    return request.param


@pytest.fixture(scope="module")
def picture(name):
    return PICTURES[name]()


def test_every_function_is_in_the_table():
    assert set(VIZ) == set(viz.__all__) - {"Picture"}
    assert set(EXPLAIN) == set(explain.__all__) - {"Explanation", "Source", "source"}


def test_the_same_tensors_give_the_same_bytes(name, picture):
    again = PICTURES[name]()
    assert again.svg == picture.svg
    assert again.html == picture.html


def test_another_process_with_another_hash_seed_gives_the_same_bytes():
    code = (
        "import hashlib, test_pictures as t\n"
        "for name, make in t.PICTURES.items():\n"
        "    if name not in ('timeline', 'kernel'):  # which tell lines of this file\n"
        "        print(name, hashlib.sha256(make().svg.encode()).hexdigest())"
    )
    printed = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "TENSORKIT_DOT": "0"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
            env=environment,
        )
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    assert printed[0].count("\n") == len(PICTURES) - 2


@pytest.mark.parametrize("name", CHARTS)
def test_svg_and_png_of_a_chart_show_the_same_size(name, tmp_path):
    picture = PICTURES[name]()
    root = ET.fromstring(picture.svg)
    width, height = int(root.get("width")), int(root.get("height"))
    picture.save(tmp_path / "a.png")
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (2 * width, 2 * height)


def test_every_number_drawn_is_in_the_words(picture):
    drawn = " ".join(text.text for text in texts(picture, ticks=False))
    numbers = set(re.findall(r"(?<![\w.])\d+\.?\d*(?![\w…])", drawn))
    said = set(re.findall(r"\d+\.?\d*", picture.alt))
    assert numbers <= said


def test_no_text_reaches_beyond_the_picture(picture):
    width = float(ET.fromstring(picture.svg).get("width"))
    for text in texts(picture):
        assert text.x >= 0, text
        assert text.x + text.width <= width, text


def test_no_script_and_no_network(picture):
    for text in (picture.svg, picture.html):
        assert "<script" not in text
        assert not re.search(r"(href|src)=[\"'](?!data:|#)", text)  # but to a part of itself
        assert not re.search(r"\bon\w+=", text)
    assert not re.search(r"url\((?!#)", picture.svg)


def test_no_two_pictures_name_a_part_alike():
    names = [re.findall(r"(?:href=.|url\()#(\w+)", make().svg) for make in PICTURES.values()]
    different = [set(values) for values in names]
    assert sum(map(len, different)) == len(set().union(*different))


def test_a_notebook_gets_html_and_words(picture):
    bundle = picture._repr_mimebundle_()
    assert bundle["text/plain"] == repr(picture) == picture.alt
    assert "alt=" in bundle["text/html"] or "<p>" in bundle["text/html"]


def test_save_writes_each_kind(picture, tmp_path):
    for ending in ("svg", "html", "txt"):
        picture.save(tmp_path / f"a.{ending}")
        assert (tmp_path / f"a.{ending}").stat().st_size
    with pytest.raises(ValueError, match=r"Try: picture\.save"):
        picture.save(tmp_path / "a.gif")


def test_pictures_do_not_change_what_they_show():
    loss = _network()
    with tk.autograd.recording():
        for draw in (viz.graph, viz.backward, viz.saved, viz.memory, explain.no_grad):
            draw(loss)
        explain.inplace(loss)
        viz.broadcast(loss, tk.ones(2))
        explain.broadcast(loss, tk.ones(2))
        viz.training({"loss": [loss]})
        viz.landscape(lambda x, y: x + y, [tk.ones(2)])
    loss.backward()


def test_importing_tensorkit_does_not_import_pictures():
    code = (
        "import sys, tensorkit as tk; print(any('viz' in it or it == 'tensorkit.explain' for it "
        "in sys.modules)); tk.viz.graph; tk.explain.no_grad"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(tk.__file__).parents[1],
    )
    assert shown.stdout == "False\n"


def test_signs_that_no_file_may_hold_become_boxes(tmp_path):
    picture = viz.training({"loss\x1b[0m \x00 \ud800": [2.0, 1.0]})
    ET.fromstring(picture.svg)
    picture.save(tmp_path / "loss.html")
    ET.fromstring(explain.inplace(ValueError("\x1b[31mno\x1b[0m")).svg)
