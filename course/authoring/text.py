"""Reads an author's text, `solutions/NN_topic.py`, into the cells of its notebook.

The text is in jupytext's py:percent format. A cell marked `exercise="strides-of"` is empty: the
statement, the answer and the check come from the exercise's definition. A cell marked
`role="show"` draws or demonstrates and is nothing that grading needs.

Data in words: a *cell* here is a plain nbformat cell without outputs; its id is the exercise's id
or follows from its content, so that the same text gives the same notebook on every machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import nbformat
from nbformat import NotebookNode

from course.notebook import built_notebook
from course.shared import extras
from course.shared.errors import CourseError

MARKS = {"exercise", "role", "tags"}
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,48}")
MARKER_CELL = re.compile(r"# %%")
SOLUTION_MARKER = re.compile(r"(BEGIN|END) SOLUTION")
NBGRADER = {"schema_version": 3, "task": False}


class Definition(Protocol):
    """What a text needs to know of an exercise; `course.notebook.exercise.Exercise` has it."""

    id: str
    chapter: str
    points: float

    @property
    def statement(self) -> str: ...
    @property
    def answer_source(self) -> str: ...
    @property
    def released_source(self) -> str: ...


@dataclass(frozen=True)
class TextCell:
    """A cell as the author wrote it, and the line on which it begins."""

    line: int
    kind: str
    source: str
    marks: Mapping[str, Any]


@dataclass(frozen=True)
class Chapter:
    """A chapter's notebook without outputs, and the line of the text behind each cell's id."""

    text: Path
    notebook: NotebookNode
    lines: Mapping[str, int]


def chapter_from(text: Path, exercises: Mapping[str, Definition]) -> Chapter:
    """The notebook of a chapter with its answers, not yet executed.

    text: `solutions/NN_topic.py`; its name without the ending is the chapter.
    exercises: all that are registered, by id.

    Raises CourseError that names file and line of everything an author has to mend.
    """
    cells = read(text)
    if problems := _problems(text, cells, exercises):
        raise CourseError("\n".join(problems))
    notebook = nbformat.v4.new_notebook()
    lines = []
    seen: Counter[str] = Counter()
    for cell in cells:
        id = cell.marks.get("exercise")
        made = [_plain(cell, seen)] if id is None else exercise_cells(exercises[id])
        notebook.cells += made
        lines += [cell.line] * len(made)
    notebook.metadata = {
        "course": {"chapter": text.stem, "release": _fingerprint(notebook.cells, exercises)},
        "kernelspec": {
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    ids = [cell.id for cell in notebook.cells]
    return Chapter(text, nbformat.from_dict(notebook), dict(zip(ids, lines, strict=True)))


def read(text: Path) -> list[TextCell]:
    """The cells of a text, in order."""
    jupytext = extras.needed("jupytext", "teach", "Reading a chapter's text")
    try:
        written = text.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise CourseError(f"{text} cannot be read: {problem}.") from None
    cells = jupytext.reads(written, fmt="py:percent").cells
    starts = [n for n, line in enumerate(written.splitlines(), 1) if MARKER_CELL.match(line)]
    # aligned from the end: what stands above the first marker is a cell of its own, on line 1
    lines = [1] * (len(cells) - len(starts)) + starts[-len(cells) :] if cells else []
    return [
        TextCell(line, cell.cell_type, cell.source, _marks(cell))
        for line, cell in zip(lines, cells, strict=True)
    ]


def exercise_cells(exercise: Definition) -> list[NotebookNode]:
    """The three cells of an exercise: its statement, its answer, its check."""
    statement = nbformat.v4.new_markdown_cell(exercise.statement, id=f"exercise-{exercise.id}")
    answer = nbformat.v4.new_code_cell(exercise.answer_source, id=exercise.id)
    answer.metadata.nbgrader = {
        **NBGRADER,
        "grade": False,
        "grade_id": exercise.id,
        "locked": False,
        "solution": True,
    }
    check = nbformat.v4.new_code_cell(f'check("{exercise.id}")', id=f"check-{exercise.id}")
    check.metadata.nbgrader = {
        **NBGRADER,
        "grade": True,
        "grade_id": f"check-{exercise.id}",
        "locked": True,
        "points": exercise.points,
        "solution": False,
    }
    return [statement, answer, check]


def _marks(cell: NotebookNode) -> dict[str, Any]:
    """What the author wrote behind `# %%`; jupytext adds how many empty lines follow."""
    return {mark: value for mark, value in cell.metadata.items() if mark != "lines_to_next_cell"}


def _plain(cell: TextCell, seen: Counter[str]) -> NotebookNode:
    new = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }[cell.kind]
    tags = list(cell.marks.get("tags", []))
    if "role" in cell.marks:
        tags.append(cell.marks["role"])
    id = _name(cell.kind, cell.source, seen)
    return new(cell.source, id=id, metadata={"tags": tags} if tags else {})


def _name(kind: str, source: str, seen: Counter[str]) -> str:
    """An id that follows from a cell's content, numbered where the same content stands again."""
    name = built_notebook.id_of(kind, source)
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}-{seen[name]}"


def _fingerprint(cells: list[NotebookNode], exercises: Mapping[str, Definition]) -> str:
    """Names what learners get: it changes if and only if the released cells do."""
    released = [
        (
            cell.cell_type,
            exercises[cell.id].released_source if cell.id in exercises else cell.source,
            cell.metadata,
        )
        for cell in cells
    ]
    return hashlib.sha256(json.dumps(released, sort_keys=True).encode()).hexdigest()[:12]


def _problems(text: Path, cells: list[TextCell], exercises: Mapping[str, Definition]) -> list[str]:
    """One sentence, with file and line, for everything that the author has to mend."""
    chapter = text.stem
    first_line: dict[str, int] = {}
    problems = []
    for cell in cells:
        said = _problem(cell, chapter, exercises, first_line)
        problems += [f"{text}:{cell.line}: {said}"] if said else []
    missing = [
        id
        for id, exercise in exercises.items()
        if exercise.chapter == chapter and id not in first_line
    ]
    problems += [
        f"{text}: the exercise {id!r} of this chapter has no place in the text; "
        f'add a cell `# %% exercise="{id}"`.'
        for id in missing
    ]
    return problems


def _problem(
    cell: TextCell, chapter: str, exercises: Mapping[str, Definition], first_line: dict[str, int]
) -> str | None:
    """What is wrong with one cell; notes in `first_line` where each exercise stands."""
    if unknown := sorted(set(cell.marks) - MARKS):
        return f"a cell cannot be marked {unknown[0]!r}; there are {', '.join(sorted(MARKS))}."
    if SOLUTION_MARKER.search(cell.source):
        return "a solution marker stands here; answers are written in the exercise's definition."
    if "exercise" not in cell.marks:
        role = cell.marks.get("role", "show")
        return None if role == "show" else f'there is no role {role!r}, only role="show".'
    id = cell.marks["exercise"]
    if id not in exercises:
        return f"there is no exercise {id!r} in course/exercises/ch{chapter}/."
    if not CELL_ID.fullmatch(id):
        return f"the id {id!r} can have letters, digits, '-' and '_' only, and at most 48 of them."
    if exercises[id].chapter != chapter:
        return f"the exercise {id!r} belongs to chapter {exercises[id].chapter}."
    if id in first_line:
        return f"the exercise {id!r} stands here again; the first time is on line {first_line[id]}."
    first_line[id] = cell.line
    if cell.source.strip():
        return f"the cell of the exercise {id!r} must be empty; its definition fills it."
    return None
