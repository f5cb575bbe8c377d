"""What learners' code may try, and that it earns nothing, stops nothing and leaves nothing behind.

Beside each attack stands what it got from stock nbgrader 0.9.6, measured or read off its code. Each
runs under both sandbox profiles. An attack is a cell before everything else, in a notebook whose
answers are all untouched, or one answer: no exercise may get points.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from classroom import CHAPTER, LIMITS, Class, cell_of, put_first

import tensorkit as tk
from course.grading import remote, writer
from course.grading.result import Result
from course.grading.session import FIRST_UID, Died, Session, Warm
from course.notebook.matching import Source
from course.notebook.report import Report
from course.sandbox import profiles
from course.sandbox.values import Decoder, Encoder
from course.sandbox.wire import Message, WireError

REPOSITORY = Path(__file__).parents[3]

# name: (the learner's cell, what stock nbgrader gave)
EARN_NOTHING = {
    "run the sources": (
        "import glob, json\n"
        f"for path in glob.glob({str(REPOSITORY)!r} + '/**/*.ipynb', recursive=True):\n"
        "    for cell in json.load(open(path))['cells']:\n"
        "        exec(''.join(cell['source']), globals())\n",
        "11 of 11",
    ),
    "import the definitions": (
        "from course.exercises.ch01_tensors import checkerboard, to_unit_range, private_copy",
        "full points",
    ),
    "import the definitions through another path": (
        f"import sys; sys.path[:0] = [{str(REPOSITORY)!r}]\n"
        "for name in [it for it in sys.modules if it.startswith('course')]: del sys.modules[name]\n"
        "from course.exercises.ch01_tensors import *",
        "full points",
    ),
    "a transformer of later cells": (
        "get_ipython().input_transformers_cleanup.append(lambda lines: ['6.0\\n'])",
        "11 of 11",
    ),
    "a transformer of syntax trees": (
        "import ast\n"
        "class Strip(ast.NodeTransformer):\n"
        "    def visit_Assert(self, node): return None\n"
        "get_ipython().ast_transformers.append(Strip())",
        "2",
    ),
    "patched comparisons": (
        "import numpy as np, tensorkit as tk\n"
        "np.testing.assert_allclose = np.allclose = np.array_equal = lambda *a, **k: True\n"
        "tk.Tensor.__eq__ = tk.equal = lambda *a: True\n"
        "class Right:\n"
        "    def __eq__(self, other): return True\n"
        "    __hash__ = None\n"
        "def checkerboard(rows, columns): return Right()\n"
        "to_unit_range = private_copy = evenly_spaced = lambda *a: Right()",
        "7",
    ),
    "a patched course": (
        "import course\n"
        "course.check = check = lambda *a, **k: 6.0\n"
        "import builtins; builtins.check = check",
        "full points",
    ),
    "a result that prints points": (
        "class Points(float):\n"
        "    def __repr__(self): return '6.0'\n"
        "def checkerboard(rows, columns): return Points(6.0)",
        "full points where it is the value of the check cell",
    ),
    "an import hook": (
        "import sys\n"
        "class Hook:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        raise SystemExit\n"
        "sys.meta_path.insert(0, Hook())",
        "nothing by itself",
    ),
    "a lying class": (
        "class Lies:\n"
        "    shape, dtype, ndim = (), None, 0\n"
        "    __class__ = property(lambda self: type(tk.ones(1)))\n"
        "    def __array__(self, *a, **k): return [[0, 1]] * 4\n"
        "    def __eq__(self, other): return True\n"
        "    def __getattr__(self, name): return self\n"
        "    def __call__(self, *a, **k): return self\n"
        "    def __bool__(self): return True\n"
        "    def all(self): return True\n"
        "import tensorkit as tk\n"
        "checkerboard = to_unit_range = private_copy = lambda *a: Lies()",
        "7",
    ),
    "the expected values in frames": (
        "import sys\n"
        "def checkerboard(rows, columns):\n"
        "    frame = sys._getframe()\n"
        "    while frame is not None:\n"
        "        for value in list(frame.f_locals.values()):\n"
        "            if type(value).__name__ == 'Tensor' and value.shape == (rows, columns):\n"
        "                return value\n"
        "        frame = frame.f_back",
        "passes the hidden test",
    ),
    "the expected values on the heap": (
        "import gc\n"
        "def to_unit_range(image):\n"
        "    for found in gc.get_objects():\n"
        "        if type(found).__name__ == 'Tensor' and found.shape == image.shape:\n"
        "            if found is not image: return found\n"
        "    for found in gc.get_objects():\n"
        "        name = getattr(found, '__name__', '')\n"
        "        if name == 'to_unit_range' and found is not to_unit_range: return found(image)",
        "finds whatever the warm process held",
    ),
    "all bytes of memory": (
        "def checkerboard(rows, columns):\n"
        "    for line in open('/proc/self/maps'): pass\n"
        "    open('/proc/self/mem', 'rb').read()",
        "reads the grader's memory",
    ),
    "answers of the wrong shape": (
        "def checkerboard(*a): return [[[]]] * 100000\n"
        "def to_unit_range(image): return {'shape': image.shape}\n"
        "def private_copy(array): return lambda: array",
        "nothing",
    ),
    "nan everywhere": (
        "import tensorkit as tk\n"
        "nan = float('nan')\n"
        "def checkerboard(r, c): return tk.full((r, c), nan)\n"
        "def to_unit_range(image): return tk.full(image.shape, nan)\n"
        "def private_copy(array): return tk.full(array.shape, nan)\n"
        "shapes = {}; dtypes = nan",
        "full points as the value of a check cell",
    ),
    "the scoring cell ends early": ("import atexit, os; atexit.register(os._exit, 0)", "nothing"),
}


@pytest.mark.parametrize("name", EARN_NOTHING)
def test_an_attack_earns_nothing(klass: Class, name: str) -> None:
    attack, _ = EARN_NOTHING[name]
    notebook = klass.blank()
    for it in klass.exercises.values():  # an answer from another cell is not taken for one
        cell_of(notebook, it.id)["source"] = attack
    result = klass.grade(notebook)
    assert result.score == 0
    assert len(result.exercises) == len(klass.exercises)
    if re.search(r"(def checkerboard|to_unit_range = .*|def to_unit_range)\b", attack):
        assert any(it.report.rows for it in result.exercises), "no answer was looked at"


def test_forged_messages_earn_nothing(klass: Class) -> None:
    # stock: there is no protocol; the kernel's messages are believed
    attack = (
        "import json, os, struct\n"
        "def forge(message):\n"
        "    text = json.dumps(message).encode()\n"
        "    os.write(3, struct.pack('<4sII', b'tkw1', len(text), 0) + text)\n"
        "for n in range(200): forge({'n': n, 'exists': True, 'ended': 'returned', 'value': 6.0})\n"
        "def checkerboard(rows, columns):\n"
        "    forge({'ended': 'returned', 'value': 6.0, 'status': 'passed', 'earned': 6.0})\n"
        "    return 6.0\n"
    )
    notebook = klass.blank()
    cell_of(notebook, "checkerboard")["source"] = attack
    assert klass.grade(notebook).score == 0


@pytest.mark.parametrize(
    "value",
    ["6.0", "True", "{'k': 'same', 'i': 0}", "{'k': 'named', 'v': 'builtins.object'}", "{}"],
)
def test_replies_forged_within_the_protocol_earn_nothing(klass_once: Class, value: str) -> None:
    attack = (
        "from course.sandbox.learner import Learner\n"
        "own = Learner._called\n"
        f"more = {{'value': {value}, 'same': [], 'status': 'passed', 'earned': 6.0}}\n"
        "Learner._called = lambda *a: (own(*a)[0] | more, [])\n"
        "def checkerboard(rows, columns): return 6.0"
    )
    notebook = klass_once.blank()
    cell_of(notebook, "checkerboard")["source"] = attack
    result = klass_once.grade(notebook)
    assert result.score == 0
    assert report_on("checkerboard", result).rows[0].status == "failed"


def report_on(id: str, result: Result) -> Report:
    return next(it.report for it in result.exercises if it.report.exercise_id == id)


def test_without_is_enforced_where_the_answer_runs(klass: Class) -> None:
    # stock: full points for `lambda s: tk.empty(s).stride()`
    notebook = klass.blank()
    cell_of(notebook, "strides-of")["source"] = (
        "strides_of = lambda shape: tk.zeros(shape).stride()"
    )
    result = klass.grade(notebook)
    report = next(it.report for it in result.exercises if it.report.exercise_id == "strides-of")
    assert {it.status for it in report.rows} == {"failed"}
    assert "what you are asked to write" in report.rows[0].got


def test_a_library_function_under_the_answers_name_runs_over_there(klass: Class) -> None:
    # its name alone would let the checker call it on this side, where `without` is not enforced
    notebook = klass.blank()
    cell_of(notebook, "linspace-by-hand")["source"] = "evenly_spaced = tk.linspace"
    result = klass.grade(notebook)
    report = next(
        it.report for it in result.exercises if it.report.exercise_id == "linspace-by-hand"
    )
    assert {it.status for it in report.rows} == {"failed"}


# What they may reach: each cell sets `reached` to what it got, or raises.

REACHES = {
    "the gradebook": f"reached = open({str(REPOSITORY / 'course' / 'cli.py')!r}).read()",
    "the sources": f"import os; reached = os.listdir({str(REPOSITORY / 'solutions')!r})",
    "the bundle's definitions": "import course.notebook.exercise as reached",
    "the grading code of the checker": "import course.grading.judge as reached",
    "passwords": "reached = open('/etc/passwd').read()",
    "the processes": "import os; reached = os.listdir('/proc')",
    "the grader's environment": "import os; reached = open(f'/proc/{os.getppid()}/environ').read()",
    "loopback": "import socket; reached = socket.create_connection(('127.0.0.1', PORT), 2)",
    "a udp socket": "import socket; reached = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "dns": "import socket; reached = socket.gethostbyname('example.com')",
    "a unix socket": "import socket; reached = socket.socket(socket.AF_UNIX)",
    "a new process": "import os; reached = os.fork() or os._exit(0)",
    "a program": "import subprocess; reached = subprocess.run(['/bin/true'])",
    "a shell": "reached = !ls\nassert reached and 'denied' not in str(reached)",
    "an exec": "import os; os.execv('/bin/sh', ['sh'])",
    "a user namespace": (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "reached = libc.unshare(0x10000000) == 0 or 1 / 0"
    ),
    "a mount": (
        "import ctypes; libc = ctypes.CDLL(None)\n"
        "reached = libc.mount(b'tmpfs', b'/', b'tmpfs', 0, None) == 0 or 1 / 0"
    ),
    "ptrace": "import ctypes; reached = ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0 or 1 / 0",
    "bpf": "import ctypes; reached = ctypes.CDLL(None).syscall(321, 0, 0, 0) >= 0 or 1 / 0",
    "keys": "import ctypes; reached = ctypes.CDLL(None).syscall(250, 0, -3, 1) >= 0 or 1 / 0",
    "io_uring": "import ctypes; reached = ctypes.CDLL(None).syscall(425, 1, 0) >= 0 or 1 / 0",
    "the calls of another architecture": (
        "import ctypes; reached = ctypes.CDLL(None).syscall(0x40000000 + 57) >= 0 or 1 / 0"
    ),
    "a signal to its parent": "import os; reached = os.kill(os.getppid(), 0) is None",
    "a signal to all": "import os; reached = os.kill(-1, 0) is None",
    "the limits of its parent": (
        "import os, resource\n"
        "reached = resource.prlimit(os.getppid() or 2, resource.RLIMIT_CPU, (30, 30))"
    ),
    "the cores of its parent": (
        "import os; reached = os.sched_setaffinity(os.getppid() or 2, {0}) is None"
    ),
    "signals about a file": "import fcntl, os; reached = fcntl.fcntl(3, fcntl.F_SETOWN, 2) == 0",
    "watching folders": "import ctypes; reached = ctypes.CDLL(None).inotify_init1(0) >= 0 or 1 / 0",
    "flags of a file": (
        "import fcntl, numpy\n"
        "reached = fcntl.ioctl(open(numpy.__file__), 0x80086601, bytes(8)) or 1"
    ),
    "writing the library": "import tensorkit; open(tensorkit.__file__, 'a').write(''); reached = 1",
    "writing NumPy": "import numpy; open(numpy.__file__, 'a').write(''); reached = 1",
    "writing the root": "open('/mark', 'w').write(''); reached = 1",
    "a device": "import os; os.mknod('d', 0o666 | 0o20000, os.makedev(1, 1)); reached = 1",
    "root": "import os; os.setuid(0); reached = 1",
    "another descriptor": (
        "import os\n"
        "found = []\n"
        "for n in range(4, 256):\n"
        "    try: os.fstat(n); found.append(n)\n"
        "    except OSError: pass\n"
        "reached = found or 1 / 0"
    ),
}


def shares_the_user(warm: Warm) -> bool:
    """Whether learners' code runs as the grader: only root, or a namespace, makes another."""
    return warm.profile == profiles.LANDLOCK and os.getuid() != 0


def run_there(session: Session, source: str) -> Message:
    """What a cell came to in the sandbox."""
    ran, _ = session.ask({"do": "cells", "sources": [source], "seconds": 5}, seconds=5)
    return ran


@pytest.fixture
def port() -> object:
    """A server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("name", REACHES)
def test_learners_code_does_not_reach(warm: Warm, name: str, port: int) -> None:
    session = warm.fork()
    try:
        source = "reached = None\n" + REACHES[name].replace("PORT", str(port))
        run_there(session, "ready = 1")
        ran = run_there(session, source)
        assert ran["error"] is not None, ran
    finally:
        session.end()


def test_modes_and_times_of_the_graders_files_stay(warm: Warm, tmp_path: Path) -> None:
    # stock: whatever the instructor may do. Landlock alone does not look at these calls.
    file = tmp_path / "gradebook.db"
    file.touch(0o600)
    if os.getuid() == 0:
        os.chown(file, FIRST_UID + 7, -1)
    before = file.stat()
    session = warm.fork()
    try:
        calls = [f"os.{call}" for call in ("chmod(it, 0o666)", "utime(it, (1, 1))")]
        calls += ["os.setxattr(it, 'user.x', b'1')", "os.fchmod(os.open(it, os.O_PATH), 0)"]
        for call in calls:
            source = f"import os; it = {str(file)!r}; {call}"
            run_there(session, source)
    finally:
        session.end()
    after = file.stat()
    assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)
    assert os.listxattr(file) == []


def test_a_home_is_removed_whatever_is_in_it(warm: Warm) -> None:
    session = warm.fork()
    source = (
        "import os\n"
        "os.mkdir('closed', 0o300); open('closed/x', 'w').close(); os.mkdir('shut', 0)\n"
        "for n in range(2000): os.mkdir('d'); os.chdir('d')"
    )
    # a grader who may not look into a closed folder takes it for too large, and ends the process
    with contextlib.suppress(Died) if shares_the_user(warm) else contextlib.nullcontext():
        assert run_there(session, source)["error"] is None
    session.end()
    assert not list(warm.folder.glob("home-*"))


def test_files_without_a_name_have_a_size_too(warm: Warm) -> None:
    session = warm.fork()
    source = (
        "import os, time; kept = []\n"
        "for n in range(20):\n"
        "    kept.append(open('x', 'wb')); os.unlink('x'); kept[-1].write(bytes(20_000_000))\n"
        "time.sleep(1)"
    )
    try:
        ran = run_there(session, source)
        assert ran["error"] == "OSError"
    except Died:
        pass
    finally:
        session.end()


def test_learners_code_runs_as_nobody_of_this_machine(warm: Warm) -> None:
    session = warm.fork()
    try:
        source = "import os; print(os.getuid(), dict(os.environ).keys())"
        ran = run_there(session, source)
    finally:
        session.end()
    text = ran["outputs"][0]["text"]
    assert text.startswith(f"{os.getuid()} ") == shares_the_user(warm)
    assert "PATH" not in text
    assert "COURSE" not in text


def test_nothing_stays_from_one_submission_to_the_next(warm: Warm) -> None:
    first = warm.fork()
    source = "open('left', 'w').write('x'); import numpy; numpy.left = 1"
    ran = run_there(first, source)
    assert ran["error"] is None
    first.end()
    second = warm.fork()
    try:
        source = "import os, numpy; print(os.path.exists('left'), hasattr(numpy, 'left'))"
        ran = run_there(second, source)
    finally:
        second.end()
    assert ran["outputs"][0]["text"] == "False False\n"
    assert not list(warm.folder.rglob("left"))


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


FORGED = {
    "names": "bound=7",
    "names of names": "bound=[[1], {}, 'x' * 10**6]",
    "a text": "source='-' * 10**6, error='x' * 10**6, message=[1]",
    "outputs": "outputs=[{'output_type': ['x'], 'text': {}}, 7, {'data': 3}]",
    "seconds": "cpu=float('nan')",
    "half a surrogate": r"outputs=[{'output_type': 'stream', 'text': '\ud800'}]",
}


@pytest.mark.parametrize("name", FORGED)
def test_replies_of_the_wrong_shape_change_nothing(klass_once: Class, name: str) -> None:
    forge = (
        "from course.sandbox.learner import Learner\n"
        "own = Learner._run_cell\n"
        f"Learner._run_cell = lambda *a: own(*a) | dict({FORGED[name]})"
    )
    result = klass_once.grade(put_first(klass_once.honest(), forge))
    result.to_json().encode()
    assert result.score == 20


def test_a_forged_message_is_no_markdown(klass_once: Class) -> None:
    # which Formgrader renders, and a picture from elsewhere tells who looks, and when
    forge = (
        "from course.sandbox.learner import Learner\n"
        "own = Learner._run_cell\n"
        "forged = {'error': 'E', 'message': '\\n\\n![](https://elsewhere.org/x)'}\n"
        "Learner._run_cell = lambda *a: own(*a) | forged"
    )
    notebook = klass_once.honest()
    cell_of(notebook, str(klass_once.source.setup))["source"] += "\npass"
    result = klass_once.grade(put_first(notebook, forge))
    note = writer.notebook(result, klass_once.source)["cells"][0]["source"]
    assert "elsewhere" in note
    assert "\n" not in note


def test_a_message_moves_nothing_in_a_terminal(klass_once: Class) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, str(klass_once.source.setup))["source"] = (
        r"raise ValueError('\x1b[2J\u202eno')"
    )
    result = klass_once.grade(notebook)
    assert "[2J" in result.troubles[0]
    assert result.troubles[0].isprintable()
    assert result.score == 20


def test_a_forged_output_is_not_deep(klass_once: Class) -> None:
    # the worker reads it, and whoever has a few frames more on the stack cannot
    forge = (
        "from course.grading import learner, wire\n"
        "import json, types\n"
        "deep = '[' * 900 + ']' * 900\n"
        "dumps = lambda it: json.dumps(it).replace('\"deep\"', deep)\n"
        "wire.json = types.SimpleNamespace(dumps=dumps, loads=json.loads)\n"
        "own = learner.Learner._run_cell\n"
        "outputs = [{'output_type': 'display_data', 'data': {'text/plain': 'deep'}}]\n"
        "learner.Learner._run_cell = lambda *a: own(*a) | {'outputs': outputs}"
    )
    result = klass_once.grade(put_first(klass_once.honest(), forge))
    assert result.score == 20
    assert "[" * 20 not in result.to_json()


def test_the_same_each_time_are_chance_and_the_names_of_folders(klass: Class) -> None:
    source = "import random, tempfile; print(random.random())\ntk.zeros(2) @ tk.zeros(3)"
    notebook = klass.honest()
    cell = {"cell_type": "code", "metadata": {}, "id": "mine", "source": source}
    notebook["cells"].append(cell)
    first, second = (klass.grade(notebook).to_json() for _ in range(2))
    assert first == second
    assert "ShapeError" in first
    assert "course-grading-" not in first


@pytest.mark.rest
def test_all_outputs_together_have_a_size(klass_once: Class) -> None:
    forge = (
        "from course.sandbox.learner import Learner\n"
        "own = Learner._run_cell\n"
        "many = [{'output_type': 'stream', 'name': 'stdout', 'text': 'x' * 7_000_000}]\n"
        "Learner._run_cell = lambda *a: own(*a) | {'outputs': many}"
    )
    result = klass_once.grade(put_first(klass_once.honest(), forge))
    assert len(result.to_json()) < 20 << 20
    assert "all outputs together are too large" in result.to_json()
    assert result.score == 20


@pytest.mark.rest
def test_cells_that_had_no_time_left_are_not_to_blame(warm_once: Warm, source: Source) -> None:
    # each had a process of its own that was ended at once, and a sentence: hundreds of them
    limits = replace(LIMITS, seconds=2.0, cell_seconds=5.0)
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
    assert all("whole notebook was over" in it.report.message for it in result.exercises)


def test_arrays_that_need_no_memory_are_not_given_any() -> None:
    # an expanded one is a few bytes that say how large it is; whoever looks at it needs all of it
    encoder = Encoder(lambda value: 0)
    coded = encoder.encode([tk.zeros(1).expand(1 << 20) for _ in range(1000)])
    blocks = [np.frombuffer(bytearray(it), np.uint8) for it in encoder.blocks]
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
    assert any("more data than a check looks at" in it.got for it in report.rows)
    assert report.score == 0


def test_many_long_cells_are_no_death(klass_once: Class) -> None:
    # together they are more than one message may hold
    notebook = klass_once.honest()
    for n in range(10):
        cell = {"cell_type": "code", "metadata": {}, "id": f"long-{n}", "source": "#" * 1_000_000}
        notebook["cells"].insert(3, cell)
    result = klass_once.grade(notebook)
    assert (result.score, result.troubles) == (20, ())


ODD_SIDES = "rows % 2 and columns % 2 and 1 < rows < columns"
"""True in the second case of the checkerboard alone, whatever is drawn."""


def test_points_earned_before_the_end_of_the_process_stand(klass: Class) -> None:
    notebook = klass.honest()
    solution = klass.exercises["checkerboard"].solution_source
    dies = solution.replace(
        "    board = ", f"    if {ODD_SIDES}: import os; os._exit(1)\n    board = ", 1
    )
    assert dies != solution
    cell_of(notebook, "checkerboard")["source"] = dies
    points = klass.points(notebook)
    assert 0 < points["checkerboard"] < klass.exercises["checkerboard"].points
    assert points["pixels"] == klass.exercises["pixels"].points


def test_they_stand_too_where_a_cell_of_the_learners_own_ended_it(klass_once: Class) -> None:
    # the check is asked once more without that cell, which the answer needs
    notebook = klass_once.honest()
    answer = cell_of(notebook, "checkerboard")
    helper = answer["source"].replace("checkerboard", "helper", 1)
    dies = helper.replace(
        "    board = ", f"    if {ODD_SIDES}: import os; os._exit(1)\n    board = ", 1
    )
    cell = {"cell_type": "code", "metadata": {}, "id": "mine", "source": dies}
    notebook["cells"].insert(notebook["cells"].index(answer), cell)
    answer["source"] = "def checkerboard(rows, columns):\n    return helper(rows, columns)"
    report = report_on("checkerboard", klass_once.grade(notebook))
    assert 0 < report.earned < report.possible
    assert "ended its own process" in report.rows[1].got


def test_five_deaths_and_the_rest_is_graded_alone(klass: Class) -> None:
    notebook = klass.honest("private-copy", "pixels")
    for n in range(5):
        cell = {"cell_type": "code", "metadata": {}, "source": f"import os; os._exit({n})"}
        notebook["cells"].insert(3, cell)
    result = klass.grade(notebook)
    points = {it.report.exercise_id: it.report.score for it in result.exercises}
    for name in ("private-copy", "pixels"):
        assert points[name] == klass.exercises[name].points
    assert any("each on its own" in it for it in result.troubles)


def test_a_process_does_not_outlive_its_submission(klass: Class) -> None:
    before = processes_in(klass.warm.folder)
    klass.points(
        put_first(klass.blank(), "import threading; threading.Thread(target=input).start()")
    )
    assert not list(klass.warm.folder.glob("home-*"))
    assert processes_in(klass.warm.folder) == before


SLEEPS = (
    "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64)); time.sleep(99)"
)
REMAINS = {
    "a sleep without signals": SLEEPS,
    "no signal when the parent ends": f"import ctypes; ctypes.CDLL(None).prctl(1, 0); {SLEEPS}",
    "without its first thread": (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=[99]).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    ),
}


@pytest.mark.parametrize("name", REMAINS)
def test_a_process_cannot_remain_when_it_is_ended(klass: Class, name: str) -> None:
    # stock: the notebook's children live on, and edited the gradebook after grading: 14 of 14
    before = processes_in(klass.warm.folder)
    session = klass.warm.fork()
    with pytest.raises(Died):
        session.ask({"do": "cells", "sources": [REMAINS[name]], "seconds": 0.1}, seconds=0.1)
    for _ in range(20):
        if processes_in(klass.warm.folder) == before:
            break
        time.sleep(0.1)
    assert processes_in(klass.warm.folder) == before


def processes_in(folder: Path) -> set[int]:
    """The warm process of this folder and all that came of it: they share its command line."""
    found = set()
    for it in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if bytes(folder) in it.read_bytes():
                found.add(int(it.parent.name))
    return found


# What is handed in

HANDED_IN = {
    "nothing": b"",
    "not JSON": b"PK\x03\x04 certainly not",
    "a list": b"[]",
    "no cells": b'{"nbformat": 4}',
    "cells that are none": b'{"nbformat": 4, "cells": [1, null, "x"]}',
    "deep": b"[" * 1_000_000,
    "NaN": b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": NaN}]}',
    "half a surrogate": rb'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\ud800"}]}',
    "strange types": json.dumps(
        {
            "nbformat": 4,
            "cells": [
                {"cell_type": ["code"], "source": {}},
                {"cell_type": "code", "id": {"x": 1}, "metadata": [], "source": ["a", 1]},
                {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": ["x"]}}, "source": "1"},
                {"cell_type": "code", "metadata": {"nbgrader": 7}, "id": "../../x", "source": "1"},
            ],
        }
    ).encode(),
    "thousands of cells": json.dumps(
        {"nbformat": 4, "cells": [{"cell_type": "code", "source": "1"}] * 5000}
    ).encode(),
}


@pytest.mark.parametrize("name", HANDED_IN)
def test_whatever_is_handed_in_has_a_result(klass_once: Class, name: str) -> None:
    # stock: an exception; a duplicated id stops the whole batch
    result = klass_once.grade(HANDED_IN[name])
    assert result.chapter == CHAPTER
    assert result.score == 0
    assert result.possible == 20


def test_changed_points_earn_nothing(klass_once: Class) -> None:
    notebook = klass_once.honest("pixels")
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("grade"):
            marks["points"] = 1000.0
    result = klass_once.grade(notebook)
    assert (result.score, result.possible) == (6, 20)


def test_a_changed_check_earns_nothing(klass_once: Class) -> None:
    notebook = klass_once.blank()
    for cell in notebook["cells"]:
        if cell["id"].startswith("check-"):
            cell["source"] = "6.0"
    assert klass_once.grade(notebook).score == 0


@pytest.mark.parametrize(
    "key",
    [
        "def strides_of(shape, _key=[tk.Tensor.stride]): return _key[0](tk.zeros(shape))",
        "from functools import partial\n"
        "strides_of = partial(lambda f, s: f(tk.zeros(s)), tk.Tensor.stride)",
        "class Keys: stride = tk.Tensor.stride\ndef strides_of(s): return Keys.stride(tk.zeros(s))",
    ],
)
def test_without_is_enforced_under_every_name(klass: Class, key: str) -> None:
    notebook = klass.blank()
    cell_of(notebook, "strides-of")["source"] = key
    result = klass.grade(notebook)
    report = next(it.report for it in result.exercises if it.report.exercise_id == "strides-of")
    assert {it.status for it in report.rows} == {"failed"}
    assert "what you are asked to write" in report.rows[0].got
