"""No chapter uses a name of the library before the section that introduces it.

A name counts as introduced once the text of a section has written it between backticks, in this
chapter or in an earlier one. Cells marked `role="show"` may look ahead: they are pictures and
promises.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tensorkit as tk
from course.authoring.text import TextCell, read
from course.notebook.exercise import load
from course.shared import paths

BETWEEN_BACKTICKS = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*")
# every Python programmer knows these, or the operator that they stand for
PLAIN = {"T", "count", "index", "real", "values", "indices", "data", "name", "names", "type"}
MEMBERS = {name for name in dir(tk.Tensor) if not name.startswith("_")} - PLAIN


def used_before(root: Path, chapter: str) -> list[str]:
    """A sentence for each name that a chapter's code uses before a text has introduced it."""
    names = [name for name in paths.written_chapters(root) if name <= chapter]
    texts = [read(paths.solutions(root) / f"{name}.py") for name in names]
    return [f"{use}, before a text has it between backticks" for use in _too_early(texts)]


def _uses(code: str) -> Iterator[str]:
    """The library's names in some code: `tk.name`, `tk.nn.Name`, and members of tensors."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            of_library = isinstance(root, ast.Name) and root.id in ("tk", "nn", "F", "optim")
            if of_library or node.attr in MEMBERS:
                yield node.attr


def _introduced(markdown: str) -> set[str]:
    return {name for code in BETWEEN_BACKTICKS.findall(markdown) for name in NAME.findall(code)}


def _in_sections(chapter: list[TextCell]) -> Iterator[tuple[TextCell, str]]:
    """Each cell with the whole text of its section, from its `##` heading to the next."""
    sections: list[list[TextCell]] = [[]]
    for cell in chapter:
        if cell.kind == "markdown" and cell.source.startswith("## "):
            sections.append([])
        sections[-1].append(cell)
    for section in sections:
        text = "\n".join(cell.source for cell in section if cell.kind == "markdown")
        yield from ((cell, text) for cell in section)


def _too_early(chapters: list[list[TextCell]]) -> list[str]:
    """Each name that the last chapter's code uses before any text has introduced it, and where."""
    known: set[str] = set()
    exercises = load()
    uses: list[str] = []
    for chapter in chapters:
        uses = []
        for cell, section in _in_sections(chapter):
            known |= _introduced(section)
            if cell.kind == "markdown":
                continue
            code, place = cell.source, f"line {cell.line}"
            if (exercise := exercises.get(cell.marks.get("exercise", ""))) is not None:
                code, place = exercise.solution_source, f"the exercise {exercise.id!r}"
                known |= _introduced(exercise.statement)
            elif cell.marks.get("role") == "show":
                continue
            uses += [f"{place} uses `{name}`" for name in _uses(code) if name not in known]
            known |= set(_uses(code))  # once is enough
    return uses
