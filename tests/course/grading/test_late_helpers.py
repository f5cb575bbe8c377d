"""Helpers of an answer in other cells: what `check` and the doctor say, and what the grade is.

What costs points is told by both before the notebook is handed in, and nothing else is told.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from classroom import CHAPTER, FILE, PIXELS, ROOT, Class, Notebook, cell_of

from course.cli import doctor
from course.notebook import exercise, matching

ID, CHECK = "pixels", "check-pixels"
SOLUTION = exercise.load()[ID].solution_source
HELPER = SOLUTION.replace("def to_unit_range", "def helper") + "\n"
ANSWER = "def to_unit_range(image):\n    return helper(image)\n"
WRONG = "def helper(image):\n    return image\n"
THROUGH = "def helper(image):\n    return deeper(image)\n"
DEEPER = SOLUTION.replace("def to_unit_range", "def deeper")
IMPORT = "from math import pi as helper"


@dataclass(frozen=True)
class Layout:
    """Which cells of a notebook have which text."""

    is_graded: bool
    own: tuple[tuple[str, str], ...] = ()
    """Cells of the learner's own, each with the id of the cell above; they run in this order."""
    edited: tuple[tuple[str, str], ...] = ((ID, ANSWER),)
    """Texts of released cells, by id; these run after the own cells."""
    moved: bool = False
    """Whether the answer cell stands at the end of the notebook, below the last own cell."""
    kind: str = "code"
    """What the own cells are when the notebook is saved: a cell can be changed after it ran."""


LAYOUTS = {
    "in the answer cell": Layout(True, edited=((ID, ANSWER + HELPER),)),
    "above the answer": Layout(True, own=(("exercise-pixels", HELPER),)),
    "between the answer and its check": Layout(True, own=((ID, HELPER),)),
    "below the check": Layout(False, own=((CHECK, HELPER),)),
    "below the check, under a magic": Layout(False, own=((CHECK, f"%precision 3\n{HELPER}"),)),
    "in a cell that became text": Layout(False, own=((ID, HELPER),), kind="markdown"),
    "imported below the check": Layout(
        False, own=((CHECK, IMPORT),), edited=((ID, f"{SOLUTION} * helper / helper"),)
    ),
    "imported above, and again below": Layout(
        True, own=((ID, IMPORT), (CHECK, IMPORT)), edited=((ID, f"{SOLUTION} * helper / helper"),)
    ),
    "wrong above, right below": Layout(False, own=((ID, WRONG), (CHECK, HELPER))),
    "a helper of the helper": Layout(False, own=((ID, THROUGH), (CHECK, DEEPER))),
    "in the cell of the check": Layout(
        False, edited=((ID, ANSWER), (CHECK, f'{HELPER}\ncheck("{ID}")'))
    ),
    "in an answer cell above": Layout(True, edited=(("which-dtype", HELPER), (ID, ANSWER))),
    "in an answer cell below": Layout(False, edited=(("half-precision", HELPER), (ID, ANSWER))),
    "with the answer, below the check": Layout(True, own=((CHECK, HELPER + ANSWER),), edited=()),
    "above an answer that stands below the check": Layout(
        True, own=((CHECK, HELPER), ("own-0", ANSWER)), edited=()
    ),
    "above the answer cell, which was moved to the end": Layout(
        False, own=((CHECK, HELPER),), moved=True
    ),
    "below an answer that stands below the check": Layout(
        False, own=((CHECK, ANSWER), ("own-0", HELPER)), edited=()
    ),
}


def written(notebook: Notebook, layout: Layout) -> list[str]:
    """Put a layout into a notebook; the ids of its cells in the order in which they run."""
    for number, (above, text) in enumerate(layout.own):
        cell = {"cell_type": layout.kind, "id": f"own-{number}", "metadata": {}, "source": text}
        at = notebook["cells"].index(cell_of(notebook, above)) + 1
        notebook["cells"].insert(at, cell)
    for id, text in layout.edited:
        cell_of(notebook, id)["source"] = text
    if layout.moved:
        notebook["cells"].remove(answer := cell_of(notebook, ID))
        notebook["cells"].append(answer)
    own = [f"own-{number}" for number in range(len(layout.own))]
    return [*own, *(id for id, _ in layout.edited if id != CHECK), CHECK]


RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for id, text in json.load(sys.stdin):
    shell.run_cell(text, store_history=True, cell_id=id)
"""


def checked(folder: Path, notebook: Notebook, ids: list[str]) -> str:
    """What the check says in a saved notebook after the cells with these ids ran."""
    (folder / CHAPTER).mkdir()
    (folder / CHAPTER / FILE).write_text(json.dumps(notebook), "utf-8")
    cells = [(id, cell_of(notebook, id)["source"]) for id in ids]
    command = [sys.executable, "-c", RUN]
    options = {"cwd": folder / CHAPTER, "capture_output": True, "text": True, "check": True}
    done = subprocess.run(command, input=json.dumps(cells), **options)  # type: ignore[call-overload]
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("where", LAYOUTS)
def test_a_helper_that_costs_points_is_told_by_the_check_and_the_doctor(
    klass_once: Class, tmp_path: Path, where: str
) -> None:
    notebook, layout = klass_once.blank(), LAYOUTS[where]
    ids = written(notebook, layout)
    said = checked(tmp_path, notebook, [str(klass_once.source.setup), *ids])
    assert f"{PIXELS:g} of {PIXELS:g} points" in said  # as long as the kernel runs
    assert ("which your answer uses, comes from cell [" in said) != layout.is_graded
    findings = doctor.read_through(tmp_path / CHAPTER, doctor.source_for(ROOT, CHAPTER))
    told = [each for each in findings if f"The cell {ID} uses `" in each.sentence]
    assert bool(told) != layout.is_graded
    points = klass_once.points(notebook)[ID]
    assert points == (PIXELS if layout.is_graded else 0)


@pytest.mark.parametrize("chapter", exercise.chapters())
def test_no_worked_solution_is_said_to_use_a_helper(chapter: str, tmp_path: Path) -> None:
    solved = matching.source_of(ROOT, chapter).solved
    (tmp_path / f"{chapter}.ipynb").write_text(json.dumps(solved), "utf-8")
    found = doctor.read_through(tmp_path, doctor.source_for(ROOT, chapter))
    assert [each.sentence for each in found if " uses `" in each.sentence] == []
