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

import pytest

import tensorkit as tk
from course.authoring.text import TextCell, read
from course.notebook.exercise import load

TEXTS = sorted((Path(__file__).parents[3] / "solutions").glob("*.py"))
BETWEEN_BACKTICKS = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*")
# every Python programmer knows these, or the operator that they stand for
PLAIN = {"T", "count", "index", "real", "values", "indices", "data", "name", "names", "type"}
MEMBERS = {name for name in dir(tk.Tensor) if not name.startswith("_")} - PLAIN


def uses(code: str) -> Iterator[str]:
    """The library's names in some code: `tk.name`, `tk.nn.Name`, and members of tensors."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            of_library = isinstance(root, ast.Name) and root.id in ("tk", "nn", "F", "optim")
            if of_library or node.attr in MEMBERS:
                yield node.attr


def introduced(markdown: str) -> set[str]:
    return {name for code in BETWEEN_BACKTICKS.findall(markdown) for name in NAME.findall(code)}


def in_sections(chapters: list[list[TextCell]]) -> Iterator[tuple[TextCell, str]]:
    """Each cell with the whole text of its section, from its `##` heading to the next."""
    for cells in chapters:
        sections: list[list[TextCell]] = [[]]
        for cell in cells:
            if cell.kind == "markdown" and cell.source.startswith("## "):
                sections.append([])
            sections[-1].append(cell)
        for section in sections:
            text = "\n".join(cell.source for cell in section if cell.kind == "markdown")
            yield from ((cell, text) for cell in section)


def too_early(chapters: list[list[TextCell]]) -> list[str]:
    """A sentence for each name that stands in code before any text has introduced it."""
    known: set[str] = set()
    exercises = load()
    found = []
    for cell, section in in_sections(chapters):
        known |= introduced(section)
        if cell.kind == "markdown":
            continue
        code, where = cell.source, f"line {cell.line}"
        if "exercise" in cell.marks:
            exercise = exercises[cell.marks["exercise"]]
            code, where = exercise.solution_source, f"the exercise {exercise.id!r}"
            known |= introduced(exercise.statement)
        elif cell.marks.get("role") == "show":
            continue
        found += [f"{where}: {name}" for name in uses(code) if name not in known]
        known |= set(uses(code))  # once is enough
    return found


@pytest.mark.parametrize("number", range(len(TEXTS)), ids=[text.stem for text in TEXTS])
def test_a_chapter_uses_nothing_that_no_text_has_introduced(number):
    before = too_early([read(text) for text in TEXTS[:number]])
    assert too_early([read(text) for text in TEXTS[: number + 1]])[len(before) :] == []


def test_a_name_before_its_introduction_is_noticed():
    text = [
        TextCell(1, "code", "tk.zeros(3).exp()", {}),
        TextCell(2, "markdown", "## Next\n\nNow `tk.zeros` and `exp`.", {}),
        TextCell(3, "code", "tk.zeros(3).exp()", {}),
    ]
    assert too_early([text]) == ["line 1: exp", "line 1: zeros"]
    assert too_early([text[1:]]) == []
