"""A course of one short chapter with two exercises, for tests of building, releasing, learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from course.notebook import exercise

TEXT = """\
# %% [markdown]
# # Numbers
# Two exercises.

# %%
check = lambda id: __import__("IPython").display.HTML("1 of 1 cases passed")

# %% exercise="double-it"

# %% [markdown]
# Same.

# %% exercise="half-it"

# %% [markdown]
# Same.

# %% role="show" tags=["raises-exception"]
import json
json.loads("{")

# %%
print("seen")
{"two": 2}
"""


@dataclass
class TinyExercise:
    """An exercise as building sees it, apart from everything that checks need."""

    id: str
    points: float
    answer_source: str
    released_source: str
    chapter: str = "01_numbers"
    statement: str = "### Exercise: a number"

    @property
    def solution_source(self) -> str:
        """The answer; its markers are comments."""
        return self.answer_source


DOUBLE = TinyExercise(
    "double-it",
    3.0,
    "def double(n):\n    ### BEGIN SOLUTION\n    return 2 * n\n    ### END SOLUTION",
    "def double(n):\n    # YOUR CODE HERE\n    pass",
)
HALF = TinyExercise(
    "half-it",
    2.0,
    "def half(n):\n    ### BEGIN SOLUTION\n    return n / 2\n    ### END SOLUTION",
    "def half(n):\n    return n * 2",
)


def register(patch: pytest.MonkeyPatch, *exercises: TinyExercise) -> Mapping[str, TinyExercise]:
    """Let these be all the exercises that there are."""
    registered = {each.id: each for each in exercises}
    patch.setattr(exercise, "load", lambda chapter=None: registered)
    return registered


def write_course(root: Path, text: str = TEXT) -> Path:
    """The folders and the text of the course, nothing built."""
    (root / "notebooks").mkdir(parents=True)
    (root / "solutions" / "01_numbers").mkdir(parents=True)
    (root / "solutions" / "01_numbers.py").write_text(text, encoding="utf-8")
    (root / "solutions" / "01_numbers" / "data.csv").write_text("1,2\n", encoding="utf-8")
    return root


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def cell(notebook: NotebookNode, id: str) -> NotebookNode:
    return next(each for each in notebook.cells if each.id == id)


def change(path: Path, id: str, source: str) -> None:
    """Edit one cell of a notebook, as JupyterLab would."""
    notebook = read(path)
    cell(notebook, id).source = source
    nbformat.write(notebook, path)
