"""The doctor runs a learner's notebook, and says which checks give fewer points than it shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from classroom import CHAPTER, FILE, PIXELS, ROOT, Class, Notebook, cell_of

from course.cli import doctor, whole_run
from course.notebook import exercise
from course.notebook.matching import Source

EXERCISES = exercise.load(CHAPTER)
ID, TYPES, COPY = "pixels", "which-dtype", "private-copy"
REFERENCE = EXERCISES[TYPES].reference
RIGHT: dict[str, str] = REFERENCE if isinstance(REFERENCE, dict) else {}
SOLUTION = "def to_unit_range(image):\n    return image.float().sum(dim=2) / {}\n"
ABOVE, BETWEEN, BELOW = "exercise-{}", "{}", "check-{}"
"""Below which cell of an exercise a cell of the learner's own stands."""
WRITTEN = f"%%writefile mine.py\n{SOLUTION.format(765)}"
FILLED = "".join(f'other["{key}"] = "{value}"\n' for key, value in RIGHT.items())
SWAPPED = f"{SOLUTION.replace('to_unit_range', 'f')}\nto_unit_range.__code__ = f.__code__"

LAYOUTS: dict[str, tuple[str, dict[str, str], list[tuple[str, str]]]] = {
    "a variable that is changed below": (
        ID,
        {ID: SOLUTION.format("SETTINGS['most']")},
        [(ABOVE, "SETTINGS = {'most': 1}"), (BELOW, "SETTINGS['most'] = 765")],
    ),
    "predictions under another name below": (
        TYPES,
        {TYPES: "dtypes = {" + ", ".join(f"{key!r}: ..." for key in RIGHT) + "}"},
        [(BELOW, f"other = dtypes\n{FILLED}")],
    ),
    "a call that overwrites the answer": (
        COPY,
        {COPY: EXERCISES[COPY].solution_source},
        [(BETWEEN, "private_copy = private_copy(np.ones((4, 4)))")],
    ),
    "a helper that is overwritten": (
        ID,
        {ID: SOLUTION.format("top()")},
        [(ABOVE, "def top():\n    return 765"), (BETWEEN, "def top():\n    return 1")],
    ),
    "a file that was deleted": (
        ID,
        {ID: SOLUTION.format("float(open('most.txt').read())")},
        [],
    ),
    "a file that is written below": (
        ID,
        {},
        [(BELOW, "%run mine.py"), (BELOW, WRITTEN)],
    ),
    "the code of a function": (ID, {}, [(BELOW, SWAPPED.format(765))]),
    "a cell that ends the kernel": (
        ID,
        {ID: SOLUTION.format(765)},
        [(ABOVE, "import os\nos._exit(0)")],
    ),
}


def saved(klass: Class, id: str, edited: dict[str, str], own: list[tuple[str, str]]) -> Notebook:
    """A notebook with these texts and cells of the learner's own, which shows all points."""
    notebook = klass.blank()
    for number, (place, text) in enumerate(own):
        at = notebook["cells"].index(cell_of(notebook, place.format(id))) + 1
        cell = {"cell_type": "code", "id": f"own-{number}", "metadata": {}, "source": text}
        notebook["cells"].insert(at, cell)
    for edited_id, text in edited.items():
        cell_of(notebook, edited_id)["source"] = text
    show(notebook, id, EXERCISES[id].points)
    return notebook


def show(notebook: Notebook, id: str, points: float) -> None:
    """Let the notebook show these points."""
    data = {"text/plain": [repr(points)], "text/html": ["<div>...</div>"]}
    output = {"output_type": "execute_result", "metadata": {}, "execution_count": 2, "data": data}
    cell_of(notebook, f"check-{id}")["outputs"] = [output]


def said(folder: Path, notebook: Notebook) -> list[str]:
    (folder / FILE).write_text(json.dumps(notebook), "utf-8")
    found = doctor.examine(folder, doctor.source_for(ROOT, CHAPTER), doctor.from_own_folder)
    return [str(each) for each in found]


@pytest.mark.rest
@pytest.mark.parametrize("name", LAYOUTS)
def test_points_that_a_run_from_the_top_does_not_give_are_named(
    source: Source, tmp_path: Path, name: str
) -> None:
    id, edited, own = LAYOUTS[name]
    notebook = saved(Class(None, source), id, edited, own)  # type: ignore[arg-type]
    (tmp_path / "most.txt").write_text("765")
    first = said(tmp_path, notebook)[0]
    points = f"{EXERCISES[id].points:g}"
    shown = f"wrong     {id}: the notebook shows {points} of {points} points, and run from the top "
    assert first.startswith(f"{shown}in an empty folder it gets 0. ")
    assert ("The cell 'import os' ends the kernel." in first) == ("kernel" in name)


def test_a_notebook_whose_points_hold_gets_no_finding(source: Source, tmp_path: Path) -> None:
    klass = Class(None, source)  # type: ignore[arg-type]
    notebook = klass.honest()
    for id, each in EXERCISES.items():
        show(notebook, id, each.points)
    # in its cell of imports, and in a cell below the check, which grading finds
    cell_of(notebook, str(source.setup))["source"] = "import tensorkit as tk("
    answer, stub = cell_of(notebook, ID), cell_of(klass.blank(), ID)
    notebook["cells"].append({**answer, "id": "mine", "metadata": {}})
    answer["source"] = stub["source"]
    assert {each.split()[0] for each in said(tmp_path, notebook)} == {"repaired"}


def test_an_answer_without_all_points_is_named_where_no_outputs_are_saved(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_run, "SECONDS_PER_CELL", 1)
    notebook = saved(
        Class(None, source),  # type: ignore[arg-type]
        ID,
        {ID: SOLUTION.format("MOST")},
        [(ABOVE, "import time\ntime.sleep(60)\nMOST = 765")],
    )
    cell_of(notebook, f"check-{ID}")["outputs"] = []
    first = said(tmp_path, notebook)[0]
    assert first == (
        f"look      {ID}: run from the top in an empty folder it gets 0 of {PIXELS:g} points. "
        "The cell 'import time' is stopped after 1 seconds."
    )


@pytest.mark.parametrize("left", ["", "My answer is above", SOLUTION.format(1)])
def test_of_an_answer_with_all_points_nothing_is_said_that_the_run_contradicts(
    source: Source, tmp_path: Path, left: str
) -> None:
    # "not started", or "Python cannot read it", and it was graded in full
    text = SOLUTION.format(765).replace("to_unit_range", "mine")
    own = [(BETWEEN, f"{text}\nglobals()['to_unit_range'] = mine")]
    notebook = saved(Class(None, source), ID, {ID: left} if left else {}, own)  # type: ignore[arg-type]
    if left == "My answer is above":
        cell_of(notebook, ID)["cell_type"] = "markdown"
    found = [each for each in said(tmp_path, notebook) if not each.startswith("repaired")]
    (only,) = found
    assert only.startswith("look      Answer cells without an answer, ")
    assert ID not in only
