"""Floods and odd texts cost the exercise that they stand in, and no other."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attacked import report_on
from classroom import LIMITS, PIXELS, Class, cell_of, put_first

import tensorkit as tk
from course.grading import judge, remote, session
from course.grading.session import Warm
from course.notebook import matching
from course.notebook.matching import Source
from course.sandbox.values import Decoder, Encoder
from course.sandbox.wire import WireError

# Floods: the exercise with the flood gets nothing, the others all they earn.

FLOODS = {
    "an endless loop": "while True: pass",
    "a stubborn loop": "while True:\n    try:\n        while True: pass\n    except: pass",
    "sleep": "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
    "the end of the process": "import os; os._exit(0)",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "an abort": "import os; os.abort()",
    "exit": "raise SystemExit",
    "memory": "x = []\nwhile True: x.append(bytearray(50_000_000))",
    "output": "while True: print('x' * 100_000)",
    "displays": "from IPython.display import display\nwhile True: display('x' * 100_000)",
    "a large file": "open('big', 'wb').truncate(10 << 30)",
    "disk": "n = 0\nwhile True:\n    open(f'f{n}', 'wb').write(b'x' * 4_000_000); n += 1",
    "many files": "n = 0\nwhile True:\n    open(f'f{n}', 'w').close(); n += 1",
    "deep folders": "import os\nwhile True: os.mkdir('d'); os.chdir('d')",
    "a folder that is gone": "import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('../d')",
    "a fork bomb": "import os\nwhile True: os.fork()",
    "threads": (
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(60,)).start()"
    ),
    "deep recursion": "def f(): f()\nimport sys; sys.setrecursionlimit(10**9); f()",
    "the wire closed": "import os; os.close(3)",
    "rubbish on the wire": "import os; os.write(3, b'rubbish' * 1000)",
    "a huge message": "import os, struct; os.write(3, struct.pack('<4sII', b'tkw1', 2**32 - 1, 9))",
    "deep json": (
        "import os, struct\n"
        "text = b'[' * 2_000_000\n"
        "data = struct.pack('<4sII', b'tkw1', len(text), 0) + text\n"
        "while data:\n"
        "    try: data = data[os.write(3, data):]\n"
        "    except BlockingIOError: pass"
    ),
    "all signals": (
        "import signal\n"
        "for n in range(1, 60):\n"
        "    try: signal.raise_signal(n)\n"
        "    except BaseException: pass"
    ),
    "alarms off": (
        "import signal\n"
        "signal.signal(signal.SIGALRM, signal.SIG_IGN); signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "while True: pass"
    ),
    "a thread that prints on": (
        "import threading\n"
        "def chatter():\n"
        "    while True: print('x' * 1000)\n"
        "threading.Thread(target=chatter, daemon=True).start()"
    ),
}


@pytest.mark.rest
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_costs_no_other_exercise(klass: Class, name: str) -> None:
    # stock: a crash loses the submission, a loop costs 30 s each, output 0.5 GB of memory
    notebook = klass.honest()
    cell_of(notebook, "checkerboard")["source"] = FLOODS[name]
    points = klass.points(notebook)
    assert points.pop("checkerboard") == 0
    assert points == {id: klass.exercises[id].points for id in points}


def test_who_writes_files_and_bytes_of_a_message_is_measured(
    klass: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    remove = session.remove

    def measure_and_remove(folder: Path) -> None:
        written.append(session._size(folder)[0])
        remove(folder)

    monkeypatch.setattr(session, "remove", measure_and_remove)
    flood = (
        "import os, struct, time\n"
        "os.write(3, struct.pack('<4sII', b'tkw1', 8_000_000, 0))\n"
        "n = 0\n"
        "while n < 8:\n"
        "    file = os.open(f'f{n}', os.O_CREAT | os.O_WRONLY); n += 1\n"
        "    for _ in range(240):\n"
        "        os.write(3, b' '); os.write(file, bytes(1 << 18)); time.sleep(0.0005)\n"
    )
    result = klass.grade(put_first(klass.honest("pixels"), flood))
    assert (result.status, result.score) == ("graded", PIXELS)
    assert max(written) < 300 << 20


@pytest.mark.rest
@pytest.mark.parametrize("name", ["an endless loop", "the end of the process", "memory"])
def test_a_flood_inside_an_answer_costs_no_other_exercise(klass: Class, name: str) -> None:
    notebook = klass.honest()
    body = FLOODS[name].replace("\n", "\n    ")
    cell_of(notebook, "checkerboard")["source"] = f"def checkerboard(rows, columns):\n    {body}"
    points = klass.points(notebook)
    assert points.pop("checkerboard") == 0
    assert points == {id: klass.exercises[id].points for id in points}


# Texts that are harmless to run, and that a program which looks at them may choke on.
ODD_TEXTS = {
    "half a surrogate, printed": r"print('\ud800')",
    "half a surrogate, raised": r"raise ValueError('\ud83d')",
    "a million lines": "\n" * 1_000_000 + "'checkerboard'",
    "many annotations": "checkerboard:\n" * 70_000,
    "a long chain": "x = a" + ".a" * 100_000,
    "a long sum": "def checkerboard(rows, columns):\n    return " + "+".join(["1"] * 3000),
}


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_an_odd_text_costs_no_other_exercise(klass_once: Class, name: str) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, "checkerboard")["source"] = ODD_TEXTS[name]
    begun = time.monotonic()
    result = klass_once.grade(notebook)
    assert time.monotonic() - begun < 20
    result.to_json().encode()
    assert result.score == 20 - klass_once.exercises["checkerboard"].points


def test_the_same_each_time_are_chance_and_the_names_of_folders(klass: Class) -> None:
    source = "import random, tempfile; print(random.random())\ntk.zeros(2) @ tk.zeros(3)"
    notebook = klass.honest()
    cell = {"cell_type": "code", "metadata": {}, "id": "mine", "source": source}
    notebook["cells"].append(cell)
    first, second = (klass.grade(notebook).to_json() for _ in range(2))
    assert first == second
    assert "ShapeError" in first
    assert session._PREFIX not in first


@pytest.mark.rest
def test_all_outputs_together_have_a_size(klass_once: Class) -> None:
    forge = (
        "from course.sandbox.learner import Learner\n"
        "own = Learner._run_cell\n"
        "many = [{'output_type': 'stream', 'name': 'stdout', 'text': 'x' * 7_000_000}]\n"
        "Learner._run_cell = lambda *a: own(*a) | {'outputs': many}"
    )
    result = klass_once.grade(put_first(klass_once.honest(), forge))
    assert len(result.to_json()) < 5_000_000
    assert "the notebook's outputs are too large" in result.to_json()
    assert result.score == 20


@pytest.mark.rest
def test_cells_that_had_no_time_left_are_not_to_blame(warm_once: Warm, source: Source) -> None:
    # each had a process of its own that was ended at once, and a sentence: hundreds of them
    limits = replace(LIMITS, seconds=judge.PAGE_SECONDS + 2, cell_seconds=5.0)
    with Warm(warm_once.profile, limits, number=9) as hurried:
        klass = Class(hurried, source)
        notebook = put_first(klass.honest(), "while True: pass")
        for n in range(50):
            cell = {"cell_type": "code", "metadata": {}, "id": f"own-{n}", "source": f"x = {n}"}
            notebook["cells"].insert(5, cell)
        result = klass.grade(notebook)
    loop, over = result.troubles
    assert "while True" in loop
    assert "time for the whole notebook was over" in over
    assert all(
        "whole notebook was over" in exercise.report.message for exercise in result.exercises
    )


@pytest.mark.rest
def test_reading_a_notebook_takes_of_its_time(
    warm_once: Warm, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the time of a submission began with its first cell, and its page came on top
    repair = matching.repair

    def repair_late(content: bytes, source: Source) -> matching.Repaired:
        time.sleep(1.1)
        return repair(content, source)

    monkeypatch.setattr(matching, "repair", repair_late)
    limits = replace(LIMITS, seconds=judge.PAGE_SECONDS + 1)
    with Warm(warm_once.profile, limits, number=9) as hurried:
        klass = Class(hurried, source)
        result = klass.grade(klass.honest())
    (over,) = result.troubles
    assert "time for the whole notebook was over" in over


def test_arrays_that_need_no_memory_are_not_given_any() -> None:
    # an expanded one is a few bytes that say how large it is; whoever looks at it needs all of it
    encoder = Encoder(lambda value: 0)
    coded = encoder.encode([tk.zeros(1).expand(1 << 20) for _ in range(1000)])
    blocks = [np.frombuffer(bytearray(block), np.uint8) for block in encoder.blocks]
    with pytest.raises(WireError):
        Decoder(blocks, lambda coded: None).decode(coded)


def test_a_check_keeps_no_gigabytes_of_them(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "MOST_RECEIVED", 1 << 20)  # of all cases of a check together
    notebook = klass_once.blank()
    cell_of(notebook, "private-copy")["source"] = (
        "import tensorkit as tk\n"
        "def private_copy(array):\n    return tk.zeros(1).bool().expand(1 << 10, 1 << 9)"
    )
    report = report_on("private-copy", klass_once.grade(notebook))
    assert any("more data than a check looks at" in row.got for row in report.rows)
    assert report.score == 0


def test_many_long_cells_are_no_death(klass_once: Class) -> None:
    # together they are more than one message may hold
    notebook = klass_once.honest()
    for n in range(10):
        cell = {"cell_type": "code", "metadata": {}, "id": f"long-{n}", "source": "#" * 1_000_000}
        notebook["cells"].insert(3, cell)
    result = klass_once.grade(notebook)
    assert (result.score, result.troubles) == (20, ())
