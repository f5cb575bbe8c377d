"""``make bench-gpu``, tried out with tiny workloads where there is no GPU: nothing is measured."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import on_gpu
import pytest

import tensorkit as tk
from tensorkit.cuda import cupy_backend

sys.path.append(str(Path(__file__).parents[1] / "tensorkit"))
import fake_cupy

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch==2.13.0")
pytestmark = pytest.mark.rest  # PyTorch is one of those that are measured

ROWS = on_gpu.rows(tiny=True)
_HOST = SimpleNamespace(
    synchronize=lambda: None,
    reset_peak_memory_stats=lambda: None,
    memory_allocated=lambda: 0,
    max_memory_allocated=lambda: 0,
)
NUMPY = on_gpu.Contestant("CuPy", lambda row: row.by_hand and row.by_hand(np), _HOST)


@pytest.fixture(autouse=True)
def _simulated(monkeypatch):
    monkeypatch.setattr(on_gpu, "MOST", 2)
    with tk.cuda.simulate():
        yield


def _players():
    tensorkit = on_gpu.Contestant("tensorkit", lambda row: row.prepare(tk, "cuda"), tk.cuda)
    pytorch = on_gpu.Contestant("PyTorch", lambda row: row.prepare(torch, "cpu"), _HOST)
    return [tensorkit, NUMPY, pytorch]


@pytest.mark.parametrize("label", ROWS)
def test_a_workload_gives_everybody_the_same(label):
    found = on_gpu.measure(ROWS[label], _players(), rounds=1)
    assert not isinstance(found, str), found
    assert {"tensorkit", "PyTorch"} <= set(found)
    assert all(0 < times.enqueue <= times.whole for times in found.values())


def test_a_wrong_result_is_not_timed():
    wrong = on_gpu.Contestant("PyTorch", lambda row: lambda: np.zeros(8), _HOST)
    found = on_gpu.measure(ROWS["small: x + y"], [*_players()[:2], wrong], rounds=1)
    assert found == "WRONG: PyTorch and tensorkit differ"


def test_the_hosts_part_and_the_whole_are_told_apart():
    slow = SimpleNamespace(synchronize=lambda: time.sleep(0.003))
    enqueue, whole, count = on_gpu.calls(lambda: time.sleep(0.001), slow)
    assert count == on_gpu.MOST
    assert 0.001 <= enqueue < whole - 0.0005


def test_the_page_has_a_line_for_each_workload_and_a_picture_with_a_bar():
    known = {label: ROWS[label] for label in ("small: x + y", "step: small network, Adam")}
    results = {label: on_gpu.measure(row, _players(), rounds=1) for label, row in known.items()}
    results["odd"] = "PyTorch: RuntimeError: no"
    page = on_gpu.text(results, "a machine")
    assert sum(line.startswith("| ") for line in page.splitlines()) == 4
    assert "Measured on a machine." in page
    assert on_gpu.picture(results).count("<rect") == 3


def test_the_whole_script_runs_on_the_stand_in_for_cupy(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(on_gpu, "rows", lambda: ROWS)
    monkeypatch.setattr(on_gpu, "ROUNDS", 1)
    monkeypatch.setattr(on_gpu, "DOCS", tmp_path)
    monkeypatch.setattr("sys.argv", ["on_gpu.py", "--write"])
    with fake_cupy.installed():
        on_gpu.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(ROWS)
    assert not [line for line in lines if "Error" in line or "WRONG" in line]
    page = (tmp_path / "benchmark-gpu.md").read_text()
    assert "Measured on A fake, CUDA 12.9, CuPy 14." in page
    assert (tmp_path / "benchmark-gpu.svg").exists()


@pytest.mark.skipif(cupy_backend.missing() is None, reason="there is a GPU")
def test_without_a_gpu_one_sentence_says_so(monkeypatch):
    monkeypatch.setattr("sys.argv", ["on_gpu.py"])
    with pytest.raises(SystemExit, match=r"^Nothing can be measured: CuPy"):
        on_gpu.main()
