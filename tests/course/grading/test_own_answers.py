"""Answers in cells of the learner's own: what ran in the learner's notebook is what is graded."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from classroom import CHAPTER, FILE, ROOT, Class, Notebook, cell_of

import tensorkit as tk
from course.cli import doctor
from course.grading.session import Warm
from course.notebook import answer, answer_text, exercise, matching
from course.notebook.history import Run

COPY = exercise.load()["private-copy"]
TYPES = exercise.load()["which-dtype"]
RIGHT = TYPES.reference if isinstance(TYPES.reference, dict) else {}
HALF = len(RIGHT) // 2
FIRST, REST = dict([*RIGHT.items()][:HALF]), dict([*RIGHT.items()][HALF:])


def changes(answers: dict[str, Any]) -> str:
    """A cell that writes these predictions into the dictionary, one by one."""
    return "\n".join(f'dtypes["{key}"] = "{value}"' for key, value in answers.items())


ABOVE, BETWEEN, BELOW = 0, 1, 2
"""Where a cell of the learner's own stands: above the answer cell, above the check, below it."""
LAYOUTS: dict[str, list[tuple[int, str]]] = {
    "calls the released one": [
        (BELOW, "old = private_copy\ndef private_copy(array):\n    return old(array).clone()")
    ],
    "keeps the released one in another cell": [
        (BETWEEN, "old = private_copy"),
        (BETWEEN, "def private_copy(array):\n    return old(array).clone()"),
    ],
    "keeps the released one above its answer": [
        (ABOVE, "old = private_copy"),
        (BELOW, "def private_copy(array):\n    return old(array).clone()"),
    ],
    "checked again without a cell that overwrites a name": [
        (ABOVE, "list = 3"),
        (BELOW, "old = private_copy\ndef private_copy(a):\n    return list([old(a).clone()])[0]"),
    ],
    "above a copy of the released one": [
        (ABOVE, COPY.solution_source),
        (BETWEEN, COPY.released_source),
    ],
    "above a text that names it": [
        (BELOW, COPY.solution_source),
        (BELOW, '"""\nprivate_copy, mended:\nprivate_copy = view and copy\n"""'),
    ],
    "extends the dictionary": [(BELOW, f"dtypes = {{**dtypes, **{RIGHT!r}}}")],
    "fills the keys": [(BETWEEN, f"dtypes = dict(zip(dtypes, {[*RIGHT.values()]!r}))")],
    "in two halves": [(BETWEEN, f"dtypes = dtypes | {FIRST!r}"), (BETWEEN, f"dtypes |= {REST!r}")],
    "entry by entry": [(BELOW, changes(FIRST)), (BELOW, changes(REST))],
    "by an update": [(BELOW, f"answers = {RIGHT!r}"), (BELOW, "dtypes.update(answers)")],
    "by an update above the check": [(BETWEEN, f"dtypes.update({RIGHT!r})")],
    "in a loop": [
        (BELOW, f"for key, value in {RIGHT!r}.items():\n    dtypes[key] = value"),
    ],
    "as a lambda": [(BELOW, "private_copy = lambda array: tk.tensor(array[::2, ::2]).float()")],
    "as another name": [
        (
            BELOW,
            "def f(array):\n    return tk.tensor(array[::2, ::2]).float()\nprivate_copy = f  # it",
        )
    ],
    "as a dictionary of another name": [(BELOW, f"answers = {RIGHT!r}\ndtypes = answers")],
    "both in one cell": [
        (
            BELOW,
            f"old = private_copy\ndtypes = {{**dtypes, **{RIGHT!r}}}\n"
            "def private_copy(array):\n    return old(array).clone()",
        )
    ],
}


def put(notebook: Notebook, id: str, own: list[tuple[int, str]]) -> Notebook:
    """Put cells of the learner's own around an answer cell."""
    for number, (where, text) in enumerate(own):
        place = (f"exercise-{id}", id, f"check-{id}")[where]
        cell = {"cell_type": "code", "id": f"{id}-{number}", "metadata": {}, "source": text}
        ids = [each["id"] for each in notebook["cells"]]
        at = ids.index(f"{id}-{number - 1}" if (where, number) in _below(own) else place) + 1
        notebook["cells"].insert(at, cell)
    return notebook


def _below(own: list[tuple[int, str]]) -> list[tuple[int, int]]:
    """The cells that stand directly below the one before, with their numbers."""
    return [(own[n][0], n) for n in range(1, len(own)) if own[n][0] == own[n - 1][0]]


def ids_in(own: list[tuple[int, str]]) -> list[str]:
    """The exercises that these cells answer."""
    text = "\n".join(text for _, text in own)
    return [each.id for each in (COPY, TYPES) if each.name in text]


def found_by_the_doctor(notebook: Notebook, folder: Path) -> list[str]:
    (folder / FILE).write_text(json.dumps(notebook), "utf-8")
    return [
        f"{each.kind} {each.sentence}"
        for each in doctor.read_through(folder, doctor.source_for(ROOT, CHAPTER))
    ]


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_answer_in_own_cells_is_graded_as_it_ran(
    klass_once: Class, tmp_path: Path, name: str
) -> None:
    own = LAYOUTS[name]
    ids = ids_in(own)
    notebook = put(klass_once.blank(), ids[0], own)
    points = klass_once.points(notebook)
    assert {id: points[id] for id in ids} == {id: exercise.load()[id].points for id in ids}
    found = found_by_the_doctor(notebook, tmp_path)
    for id in ids:
        assert any(id in each and "as released; what another cell" in each for each in found)
        assert not any("without an answer" in each and id in each for each in found)


@pytest.mark.parametrize(
    ("right", "later"),
    [
        (COPY, "private_copy = 5"),
        (COPY, "def private_copy(array):\n    return 0"),
        (COPY, "class Copies:\n    def private_copy(self):\n        return 0"),
        (COPY, "private_copy = private_copy(array)"),
        (TYPES, "dtypes = [tk.float32]"),
        (TYPES, f"dtypes[{next(iter(RIGHT))!r}] = 99"),
    ],
)
def test_an_answer_above_the_check_counts_whatever_later_has_its_name(
    klass_once: Class, right: exercise.Exercise, later: str
) -> None:
    own = [(BETWEEN, right.solution_source), (BELOW, later)]
    notebook = put(klass_once.blank(), right.id, own)
    # this answer to an exercise above may use all cells before it
    id = "what-shape"
    last = {"cell_type": "code", "metadata": {}, "source": exercise.load()[id].solution_source}
    notebook["cells"].append({**last, "id": "last"})
    points = klass_once.points(notebook)
    assert (points[right.id], points[id]) == (right.points, exercise.load()[id].points)


@pytest.mark.parametrize(
    "other",
    [
        "dict(\nprivate_copy=4)",
        "print({\nprivate_copy: 4})",
        "class Copies:\n    def private_copy(self):\n        return 0",
        "private_copy = 3",
        "a, private_copy = 1, 2",
    ],
)
def test_a_name_of_something_else_replaces_no_answer(klass_once: Class, other: str) -> None:
    notebook = put(klass_once.blank(), COPY.id, [(BELOW, COPY.solution_source), (BELOW, other)])
    assert klass_once.points(notebook)[COPY.id] == COPY.points


ELSEWHERE: dict[str, tuple[exercise.Exercise, str]] = {
    "a number": (COPY, "private_copy = 3"),
    "a text": (COPY, "private_copy = 'x'"),
    "a list": (COPY, "private_copy = [1, 2]"),
    "a tensor": (COPY, "private_copy = tk.ones(2)\nprivate_copy[0] = 3"),
    "a number with its type": (COPY, "private_copy: int = 3"),
    "a loop": (COPY, "for private_copy in range(3):\n    pass"),
    "a list in place of a dictionary": (TYPES, "dtypes = [tk.float32]"),
    "a call in place of a dictionary": (TYPES, "dtypes = list(range(3))"),
    "unpacked": (COPY, "a, private_copy = 1, lambda array: tk.tensor(array[::2, ::2]).float()"),
    "unpacked, the name first": (
        COPY,
        "private_copy, a = (lambda array: tk.tensor(array[::2, ::2]).float()), 1",
    ),
    "an entry of globals": (
        COPY,
        "globals()['private_copy'] = lambda array: tk.tensor(array[::2, ::2]).float()",
    ),
    "predictions, unpacked": (TYPES, f"a, dtypes = 1, {RIGHT!r}"),
}
"""What gives the name of an exercise a value, and is taken for no answer."""


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_not_taken_for_an_answer_is_told_by_the_check_and_the_doctor(
    klass_once: Class, tmp_path: Path, name: str
) -> None:
    asked, text = ELSEWHERE[name]
    notebook = put(klass_once.blank(), asked.id, [(BELOW, text)])
    assert klass_once.points(notebook)[asked.id] == 0
    found = found_by_the_doctor(notebook, tmp_path)
    told = f"is your own and gives `{asked.name}` a value. If that is the answer, write it into"
    assert any(each.startswith("look") and told in each for each in found)
    assert any("without an answer" in each and asked.id in each for each in found)
    assert not any("counts as the answer" in each for each in found)
    namespace: dict[str, Any] = {"tk": tk}
    exec(text, namespace)
    bound = frozenset({asked.name})
    cells = ((asked.id, asked.released_source), ("mine", text))
    runs = [Run(n, source, id, None, bound=bound) for n, (id, source) in enumerate(cells, 1)]
    assert "This answer stands in cell [2]" in answer.find(asked, namespace, runs).note


@pytest.mark.parametrize("rest", [f"dtypes.update({REST!r})", changes(REST)])
def test_predictions_below_the_check_beside_a_filled_cell_are_told(
    klass_once: Class, tmp_path: Path, rest: str
) -> None:
    # the check says it, too: "`dtypes` was changed in ..."
    notebook = put(klass_once.blank(), TYPES.id, [(BELOW, rest)])
    cell_of(notebook, TYPES.id)["source"] = f"dtypes = {FIRST!r}"
    assert klass_once.points(notebook)[TYPES.id] < TYPES.points
    both = f"look The cell {TYPES.id} is not as it was released, and a cell of your own"
    assert any(each.startswith(both) for each in found_by_the_doctor(notebook, tmp_path))


@pytest.mark.parametrize("chapter", exercise.chapters())
def test_an_answer_may_read_the_released_code(chapter: str, warm_with_the_usual_limits: Warm):
    klass = Class(warm_with_the_usual_limits, matching.source_of(ROOT, chapter))
    notebook = klass.blank()
    for id, each in klass.exercises.items():
        put(notebook, id, [(BELOW, f"released = {each.name}\n{each.solution_source}")])
    reports = [each.report for each in klass.grade(notebook).exercises]
    assert [report.exercise_id for report in reports if report.status != "passed"] == []


@pytest.mark.parametrize("is_own", [False, True])
def test_methods_put_onto_the_released_class_are_graded(
    is_own: bool, warm_with_the_usual_limits: Warm
) -> None:
    # the check said "as it was released", the doctor nothing, and it was graded 0
    klass = Class(warm_with_the_usual_limits, matching.source_of(ROOT, "10_engine"))
    notebook, asked = klass.blank(), klass.exercises["nested-no-grad"]
    assert klass.points(notebook)[asked.id] == 0
    methods = asked.solution_source.replace("class no_grad:", "class Mine:")
    methods += "\nno_grad.__enter__, no_grad.__exit__ = Mine.__enter__, Mine.__exit__"
    if is_own:
        put(notebook, asked.id, [(BETWEEN, methods)])
    else:
        cell_of(notebook, asked.id)["source"] += f"\n\n{methods}"
    assert klass.points(notebook)[asked.id] == asked.points


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_copies_that_above_the_check_counts(
    klass_once: Class, tmp_path: Path, order: tuple[int, int]
) -> None:
    # the answer cell was cut and pasted; a wrong version of it was left below the check
    notebook = klass_once.blank()
    cell = cell_of(notebook, COPY.id)
    right = {**deepcopy(cell), "id": "pasted", "source": COPY.solution_source}
    wrong = {**deepcopy(cell), "id": "older", "source": COPY.solution_source + " + 1"}
    at = notebook["cells"].index(cell)
    notebook["cells"][at : at + 2] = [right, notebook["cells"][at + 1], wrong]
    if order == (1, 0):
        notebook["cells"][at], notebook["cells"][at + 2] = wrong, right
    is_right = order == (0, 1)
    assert (klass_once.points(notebook)[COPY.id] == COPY.points) == is_right
    found = found_by_the_doctor(notebook, tmp_path)
    assert f"repaired The cell {COPY.id} was there 2 times; number 1 from the top counts." in found


@pytest.mark.parametrize("metadata", [{}, {"nbgrader": {"grade_id": COPY.id}}])
def test_a_copy_of_the_released_cell_replaces_no_answer(
    klass_once: Class, metadata: dict[str, Any]
) -> None:
    notebook = klass_once.blank()
    cell = cell_of(notebook, COPY.id)
    copy = {**deepcopy(cell), "id": "copy", "metadata": metadata}
    cell["source"] = COPY.solution_source
    notebook["cells"].insert(notebook["cells"].index(cell) + 1, copy)
    assert klass_once.points(notebook)[COPY.id] == COPY.points


def test_in_a_notebook_without_ids_a_number_of_its_name_is_not_taken_for_the_answer_cell(
    klass_once: Class,
) -> None:
    notebook = put(klass_once.honest(), COPY.id, [(ABOVE, "private_copy = 3")])
    for cell in notebook["cells"]:
        cell.update(id="", metadata={})
    repaired = matching.repair(json.dumps(notebook).encode(), klass_once.source)
    (found,) = (cell for cell in repaired.cells if matching.grade_id(cell) == COPY.id)
    assert found["source"] == COPY.solution_source


@pytest.mark.parametrize("count", [100, 1800])
def test_answers_that_need_too_many_copies_of_own_cells_are_not_taken(count: int) -> None:
    # 1,850 cells with all names became 18,652, and a page of 7.6 MB
    source = matching.source_of(ROOT, "12_kernels")
    names = [each.name for each in exercise.load("12_kernels").values()]
    text = "".join(f"def {name}(): return 1\n" for name in names)
    own = {"cell_type": "code", "metadata": {}, "source": text}
    notebook = {**source.released, "cells": [*source.released["cells"], *[own] * count]}
    repaired = matching.repair(json.dumps(notebook).encode(), source)
    is_told = any("answers in cells of your own were not taken" in note for note in repaired.notes)
    assert is_told == (count == 1800)
    assert count < len(repaired.cells) < matching.MOST_CELLS + len(source.released["cells"])
    own_texts = [cell["source"] for cell in repaired.cells if matching.is_answer(cell)]
    assert (text in own_texts) != is_told


def test_a_head_on_several_lines_is_no_answer() -> None:
    released = {"source": "def f(\n    shape, stride=(1, 2)\n):\n    pass"}
    for text in ("def f(shape,\n  stride=(1, 2),\n) -> int:\n    ...", "def f(a, b):\n    ..."):
        assert answer_text.is_untouched({"source": text}, released)
    written = {"source": "def f(\n    shape, stride=(1, 2)\n):\n    return shape"}
    assert not answer_text.is_untouched(written, released)


@pytest.mark.parametrize(
    "text",
    [
        'dtypes["a"]      = "b"',
        'dtypes["a"]\t= "b"',
        'dtypes [key] = "b"',
        'dtypes[\n    "a"\n] = "b"',
        'dtypes.update ({"a": "b"})',
    ],
)
def test_an_entry_may_have_white_space_where_python_allows_it(text: str) -> None:
    released = {"source": TYPES.released_source}
    assert answer_text.begin({"source": text}, released)
    assert not answer_text.begin({"source": text.replace("dtypes", "types")}, released)
    # such a cell does not run in the notebook
    assert not answer_text.begin({"source": f"%%writefile mine.py\n{text}"}, released)
    assert answer_text.begin({"source": f"%%time\n{text}"}, released)
