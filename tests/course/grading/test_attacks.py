"""What a learner may write in place of an answer earns nothing.

Beside each attack stands what it got from stock nbgrader 0.9.6, measured or read off its code. Each
runs under both sandbox profiles. An attack is a cell before everything else, in a notebook whose
answers are all untouched, or one answer: no exercise may get points.
"""

from __future__ import annotations

import re

import pytest
from attacked import REPOSITORY, report_on
from classroom import PIXELS, Class, cell_of

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
        "from course.exercises.ch01_tensors.checkerboard import checkerboard\n"
        "from course.exercises.ch01_tensors.pixels import to_unit_range\n"
        "from course.exercises.ch01_tensors.private_copy import private_copy",
        "full points",
    ),
    "import the definitions through another path": (
        f"import sys; sys.path[:0] = [{str(REPOSITORY)!r}]\n"
        "for name in [m for m in sys.modules if m.startswith('course')]: del sys.modules[name]\n"
        "from course.exercises.ch01_tensors.checkerboard import *\n"
        "from course.exercises.ch01_tensors.pixels import *\n"
        "from course.exercises.ch01_tensors.private_copy import *",
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
    for exercise in klass.exercises.values():  # an answer from another cell is not taken for one
        cell_of(notebook, exercise.id)["source"] = attack
    result = klass.grade(notebook)
    assert result.score == 0
    assert len(result.exercises) == len(klass.exercises)
    if re.search(r"(def checkerboard|to_unit_range = .*|def to_unit_range)\b", attack):
        assert any(exercise.report.rows for exercise in result.exercises), "no answer was looked at"


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
        "def forged(self, message, blocks):\n"
        "    reply, memory = own(self, message, blocks)\n"
        "    is_answer = type(message['function']) is int\n"
        "    return (reply | more, []) if is_answer else (reply, memory)\n"
        "Learner._called = forged\n"
        "def checkerboard(rows, columns): return 6.0"
    )
    notebook = klass_once.blank()
    cell_of(notebook, "checkerboard")["source"] = attack
    result = klass_once.grade(notebook)
    assert result.score == 0
    assert report_on("checkerboard", result).rows[0].status == "failed"


def test_without_is_enforced_where_the_answer_runs(klass: Class) -> None:
    # stock: full points for `lambda s: tk.empty(s).stride()`
    notebook = klass.blank()
    cell_of(notebook, "strides-of")["source"] = (
        "strides_of = lambda shape: tk.zeros(shape).stride()"
    )
    result = klass.grade(notebook)
    report = next(
        exercise.report
        for exercise in result.exercises
        if exercise.report.exercise_id == "strides-of"
    )
    assert {row.status for row in report.rows} == {"failed"}
    assert "is switched off while your answer runs" in report.rows[0].got


def test_a_library_function_under_the_answers_name_runs_over_there(klass: Class) -> None:
    # its name alone would let the checker call it on this side, where `without` is not enforced
    notebook = klass.blank()
    cell_of(notebook, "linspace-by-hand")["source"] = "evenly_spaced = tk.linspace"
    result = klass.grade(notebook)
    report = next(
        exercise.report
        for exercise in result.exercises
        if exercise.report.exercise_id == "linspace-by-hand"
    )
    assert {row.status for row in report.rows} == {"failed"}


def test_changed_points_earn_nothing(klass_once: Class) -> None:
    notebook = klass_once.honest("pixels")
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("grade"):
            marks["points"] = 1000.0
    result = klass_once.grade(notebook)
    assert (result.score, result.possible) == (PIXELS, 20)


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
    report = next(
        exercise.report
        for exercise in result.exercises
        if exercise.report.exercise_id == "strides-of"
    )
    assert {row.status for row in report.rows} == {"failed"}
    assert "is switched off while your answer runs" in report.rows[0].got
