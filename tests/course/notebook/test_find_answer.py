"""Which of a notebook's cells holds the answer, and what a learner is told where none does."""

from __future__ import annotations

import ast
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
import sample
from checked_cells import CHECK, STRIDES, _run_in_python, words

from course.notebook.answer import find
from course.notebook.exercise import load
from course.notebook.history import UNKNOWN, Run


def test_none_alone_is_not_not_started():
    text = _run_in_python("def strides_of(shape):\n    x = 1\n# %%\ncheck('sample-strides')")
    assert "is a `return` missing?" in text
    text = _run_in_python("def strides_of(shape):\n    return None\n# %%\ncheck('sample-strides')")
    assert "missing" not in text
    assert "print what stands behind `return`" in " ".join(text.split())


RIGHT = "def strides_of(shape):\n    return sample.strides_of(shape)\n"


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        ("def strides_of(shape:\n    return 1\n", "SyntaxError"),
        ("print(undefined)\ndef strides_of(shape):\n    return 1\n", "NameError"),
    ],
)
def test_an_edit_that_did_not_run_is_noted_and_the_older_version_checked(edit, error):
    text = words(RIGHT, edit, "check('sample-strides')")
    assert "3 of 3 points" in text
    assert f"Your edit in cell [3] did not run ({error}" in text
    assert "This is the version before your last edit" in text


def test_an_edit_whose_function_was_defined_before_the_error_is_the_one_checked():
    text = words(
        "def strides_of(shape):\n    return 1\n",
        RIGHT + "print(undefined)\n",
        "check('sample-strides')",
    )
    assert "3 of 3 points" in text
    assert "did not run" not in text


def test_a_prediction_cell_that_stopped_is_noted():
    released = load()["sample-dtype"].released_source
    first = released.replace("...", '"int64"', 3)
    second = released.replace("...", "int64", 3)
    text = words(first, second, "check('sample-dtype')")
    assert "Your edit in cell [3] did not run (NameError: name 'int64' is not defined)" in text


def test_a_first_edit_that_did_not_run_is_told_so():
    text = words("def strides_of(shape:\n    return 1\n", "check('sample-strides')")
    assert "`strides_of` does not exist yet. Your edit in cell [2] did not run (SyntaxError" in text
    assert "does not run (0 of 3 points)" in text


def test_a_renamed_answer_is_told_its_name():
    cell = load()["sample-strides"].released_source.replace(
        "strides_of(shape)", "my_strides(shape)"
    )
    text = words(cell + "\n", "check('sample-strides')")
    assert "Your cell defines `my_strides`; this exercise is called `strides_of`" in text


def test_of_many_cells_a_few_are_read_for_the_name_of_an_answer(monkeypatch):
    # each may be long, and grading waits for it
    sample, read = load()["sample-strides"], []
    head = ast.parse(sample.released_source).body[0]
    text = f"# {ast.get_docstring(head).splitlines()[0]}"
    runs = [Run(n, f"{text} {n}", f"own-{n}", None) for n in range(500)]
    own = Run.defines
    monkeypatch.setattr(Run, "defines", lambda run: read.append(run) or own(run))
    assert find(sample, {}, runs).state == "missing"
    assert 0 < len(read) < 50


def test_an_answer_without_docstring_under_another_name_is_told_its_name():
    text = words("def my_strides(shape): return 1\n", "check('sample-strides')")
    assert "Your cell defines `my_strides`; this exercise is called `strides_of`" in text


def in_cells(*cells: str, cell_id: str = "sample-strides", check_id: str = "other") -> str:
    """The same with the ids of a notebook: every cell is the answer cell, but for the last."""
    program = "\n".join(
        [
            "import sys; sys.path.insert(0, sys.argv[1])",
            "from IPython.core.interactiveshell import InteractiveShell",
            "shell = InteractiveShell.instance()",
            "first = 'import tensorkit as tk, sample; from course import check'",
            "shell.run_cell(first, store_history=True)",
            "for number, cell in enumerate(sys.argv[4:]):",
            "    own = sys.argv[2 if number < len(sys.argv) - 5 else 3]",
            "    shell.run_cell(cell, store_history=True, cell_id=own)",
        ]
    )
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", program, here, cell_id, check_id, *cells]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(
    "cell",
    [
        "def board(rows): return 1",
        "def stride_of(shape): return 1\nstrides_of((2, 3))",
        "%timeit -n1 -r1 pass\ndef board(rows): return 1",
    ],
)
def test_an_older_answer_is_not_checked_when_the_cell_defines_another_name(cell):
    text = in_cells(RIGHT, cell, CHECK)
    assert "An older `strides_of` is still in memory and was not checked" in text


def test_an_edit_that_begins_as_the_older_version_did_is_not_taken_for_it():
    longer = "undefined_name\ndef strides_of(shape):\n    return sample.strides_of(shape)[:9]"
    text = in_cells(RIGHT.rstrip(), longer, CHECK)
    assert "This is the version before your last edit" in text


def test_a_definition_before_the_line_that_failed_is_the_last_edit():
    edit = "dtypes = {'tk.tensor([1, 2])': 'int64'}\nundefined_name"
    text = in_cells("dtypes = {}", edit, "check('sample-dtype')", cell_id="sample-dtype")
    assert "before your last edit" not in text
    assert "1 of 3 cases" in text


FORMS = [
    "(strides_of, other) = sample.strides_of, 1",
    "other, strides_of = 1, sample.strides_of",
    "globals()['strides_of'] = sample.strides_of",
    "from sample import strides_of",
    "for strides_of in [sample.strides_of]: pass",
    "(strides_of := sample.strides_of)",
    "if True:\n    strides_of = sample.strides_of",
]
"""How a cell can bind a name so that no line of it begins with a definition."""


def test_an_answer_beside_the_answer_cell_is_checked_with_a_note():
    sample, name = load()["sample-strides"], "strides_of"

    def answer(shape):
        return shape

    stub = Run(1, sample.released_source, sample.id, None, bound=frozenset([name]))
    own = Run(2, RIGHT, "own", None, bound=frozenset([name]))
    assert "Move it into the answer cell" in find(sample, {name: answer}, [stub, own]).note
    assert not find(sample, {name: answer}, [own]).note  # a host may give other ids
    assert not find(sample, {name: answer}, [own, stub]).note
    empty = replace(stub, source="def strides_of(shape): pass")
    others = ("print('see above')", "x = 1", "import math")  # such a line is no answer either
    for left in (empty, *(Run(1, text, sample.id, None) for text in others)):
        for form in (RIGHT, *FORMS):
            own = Run(2, form, "own", None, bound=frozenset([name, "other"]))
            assert "Move it into the answer cell" in find(sample, {name: answer}, [left, own]).note
    other = Run(2, RIGHT, "sample-dtype", None, bound=frozenset([name]))
    assert "Move it into the answer cell" in find(sample, {name: answer}, [other]).note


@pytest.mark.parametrize(
    "cells",
    [
        *([form] for form in FORMS),
        [f"!true\n{RIGHT}"],
        [RIGHT, "class Other:\n    def strides_of(self): return 1"],
    ],
)
def test_an_answer_of_another_cell_is_told_although_the_answer_cell_never_ran(cells):
    check = {"check_id": "check-sample-strides"}
    text = in_cells(*cells, CHECK, cell_id="own", **check)
    assert "3 of 3 points" in text
    assert "This answer stands in cell [2]. Move it into the answer cell" in text
    assert "If that was deleted, `course reset" in text
    assert "Move it" not in in_cells(*cells[:1], CHECK, **check)
    # an editor that gives cells ids of its own: nothing tells which is the answer cell
    assert "Move it" not in in_cells(*cells, CHECK, cell_id="own")


def test_an_answer_that_the_stub_replaced_is_named():
    stub = load()["sample-strides"].released_source
    text = in_cells(stub, CHECK)
    assert "was defined in" not in text
    name, sample = "strides_of", load()["sample-strides"]
    own = Run(2, RIGHT, "own", None, bound=frozenset([name]))
    released = Run(3, stub, sample.id, None, bound=frozenset([name]))
    made: dict[str, object] = {}
    exec(stub, made)
    found = find(sample, {name: made[name]}, [own, released], lambda value: stub)
    assert found.state == "not started"
    assert found.note.startswith("`strides_of` was defined in cell [2]. After that the answer cell")
    assert not find(sample, {name: made[name]}, [released], lambda value: stub).note


def test_an_answer_above_the_released_code_in_its_cell_is_named():
    stub = load()["sample-strides"].released_source
    text = in_cells(f"{RIGHT}\n{stub}", CHECK)
    assert "not started" in text
    assert "The answer cell defines `strides_of` twice. The second definition is as it was" in text
    assert "twice" not in in_cells(f"{stub}\n{stub}", CHECK)


IMPORTS = "from course.engine import grad_mode, no_grad"
BLOCK = load()["nested-no-grad"]
METHODS = """
def enter(self):
    self.before = grad_mode.enabled
    grad_mode.enabled = False

def leave(self, *error):
    grad_mode.enabled = self.before

no_grad.__enter__ = enter
no_grad.__exit__ = leave
"""
PATCHED = f"{BLOCK.released_source}\n{METHODS}"


@pytest.mark.parametrize(
    "cell",
    [
        PATCHED,
        f"{PATCHED}\nclass no_grad(no_grad):\n    pass",
        PATCHED.replace(METHODS, f"exec({METHODS!r})"),
    ],
)
def test_methods_put_onto_the_released_class_are_an_answer(cell):
    text = in_cells(IMPORTS, cell, "check('nested-no-grad')", cell_id="nested-no-grad")
    assert "2 of 2 points" in text


def test_a_released_class_is_not_started_and_nothing_was_defined_in_the_cell_with_the_imports():
    named = frozenset(["no_grad"])
    runs = [
        Run(1, IMPORTS, "imports", None, bound=named),
        Run(2, BLOCK.released_source, BLOCK.id, None, bound=named),
    ]
    released = type("no_grad", (), {})
    found = find(BLOCK, {"no_grad": released}, runs, lambda value: BLOCK.released_source)
    assert (found.state, found.note) == ("not started", "")


@pytest.mark.parametrize(
    "change",
    ["dtypes['a'] = 'int64'", "dtypes.update(a='int64')", "dtypes |= {}", "print(dtypes['a'])"],
)
def test_predictions_that_another_cell_writes_are_named(change):
    asked = load()["sample-dtype"]
    place = Run(1, "dtypes = {}", asked.id, None, bound=frozenset(["dtypes"]))
    own = Run(2, change, "own", None)
    note = find(asked, {"dtypes": {"a": "int64"}}, [place, own]).note
    said = "`dtypes` was changed in cell [2]. Write the predictions in the answer cell"
    assert note.startswith(said) == ("print" not in change)
    assert not find(asked, {"dtypes": {"a": "int64"}}, [own, place]).note


def test_an_answer_and_its_check_in_one_cell_are_checked():
    text = in_cells("def board(rows): return 1", RIGHT + CHECK)
    assert "3 of 3 points" in text


@pytest.mark.parametrize(
    "cell",
    [
        "%timeit pass\ndef strides_of(shape): ...\n",
        "if True:\n    def strides_of(shape): ...\n",
        "from sample import strides_of\n",
        "import sample as strides_of\n",
        "a, strides_of = 1, lambda shape: None\n",
        "strides_of: object = 1\n",
    ],
)
def test_an_unusual_definition_is_not_taken_for_another_name(cell):
    runs = [Run(3, cell, "sample-strides", None)]
    assert find(STRIDES, {"strides_of": sample.strides_of}, runs).state == "ready"


def test_a_deleted_answer_is_told_so():
    text = words("def strides_of(shape): return 1\n", "del strides_of\n", "check('sample-strides')")
    assert "was defined in cell [2] and is gone now" in text


def test_an_answer_cell_that_makes_nothing_is_not_said_to_have_defined_anything():
    found = find(STRIDES, {}, [Run(3, "", "sample-strides", None)])
    assert found.sentence.startswith("Your cell ran and makes no `strides_of`.")


def test_a_cell_that_ran_before_the_course_was_imported_is_not_said_to_have_defined_anything():
    found = find(STRIDES, {}, [Run(1, RIGHT, None, UNKNOWN)])
    assert "`strides_of` does not exist yet: run the answer cell above" in found.sentence


def test_no_cell_numbers_are_named_while_grading(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    found = find(STRIDES, {}, [Run(12, "def strides_of(\n", None, "SyntaxError", "never closed")])
    assert "Your edit did not run (SyntaxError: never closed)" in found.sentence


def test_a_cell_keeps_its_names_and_not_its_tree() -> None:
    runs = [Run(None, "def f(): 1\n" + "x = 1\n" * 3000, None, None) for _ in range(5)]
    tracemalloc.start()
    try:
        assert all("f" in run.defines() for run in runs)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000  # a notebook may have hundreds of such cells; a tree has millions


def test_a_name_of_the_library_is_said_to_be_overwritten_where_it_was():
    own = "import tensorkit as tk\ndef strides_of(shape):\n    return tk.zeros(1)\n"
    check = "check('sample-strides')"
    assert "`tk` is no longer what it was: cell [4] gave" in words(own, "1", f"tk = 5\n{check}")
    assert "`tk` is no longer what it was: cell [3] gave" in words(own, "tk = 5", check)
    gone = own.replace("tk.zeros(1)", "len(shape)")
    assert "`len` is no longer what it was: cell [3] gave" in words(gone, "len = None", check)


def test_an_imported_name_that_another_cell_gives_a_value_is_said_and_no_other():
    own = "def strides_of(shape):\n    return next(numbers)\n"
    imported, check = "from course.engine import numbers", "check('sample-strides')"
    said = "`numbers` is no longer what it was: cell [4] gave it another value."
    assert said in words(imported, own, "numbers = 3", check)
    assert "no longer" not in words(own, "numbers = 3", "numbers = 4", check)
    assert "no longer" not in words(imported, own, "numbers = 3", imported, check)
