"""What Sphinx reads: the chapters show what is taught and no answer, the reference is complete."""

from __future__ import annotations

import doctest
import importlib
import json
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import reference
import staging

from course.shared import paths

ROOT = Path(__file__).parents[2]
CHAPTERS = paths.released_chapters(ROOT)


@cache
def staged() -> dict[str, bytes]:
    return staging.sources("")


@cache
def notebook(kind: str, chapter: str) -> dict[str, Any]:
    path = f"{kind}/{chapter}/{chapter}.ipynb"
    text = staged()[path].decode() if kind == "notebooks" else (ROOT / path).read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def released(chapter: str) -> dict[str, Any]:
    text = (ROOT / f"notebooks/{chapter}/{chapter}.ipynb").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def lines_of(cell: dict[str, Any]) -> list[str]:
    return [line.strip() for line in "".join(cell["source"]).splitlines()]


def answer_lines(chapter: str) -> set[str]:
    """The lines of the reference answers that the released notebook does not have."""
    known = "\n".join(line for cell in released(chapter)["cells"] for line in lines_of(cell))
    answers = [
        line
        for cell in notebook("solutions", chapter)["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
        for line in lines_of(cell)
    ]
    return {line for line in answers if line and line not in known and "SOLUTION" not in line}


def test_a_chapter_opens_in_colab_once_the_repository_has_an_address() -> None:
    named = staging.sources("ada/tensors")
    for chapter in CHAPTERS:
        path = f"notebooks/{chapter}/{chapter}.ipynb"
        opened = (
            f"colab.research.google.com/github/ada/tensors/blob/hosted/{chapter}/{chapter}.ipynb"
        )
        first = json.loads(named[path])["cells"][0]["source"]
        assert opened in "".join(first).splitlines()[2]
        assert b"colab.research" not in staged()[path]


def said_by(output: dict[str, Any]) -> str:
    return json.dumps(output, ensure_ascii=False)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_the_released_cells(chapter: str) -> None:
    shown, original = notebook("notebooks", chapter)["cells"], released(chapter)["cells"]
    assert [cell["id"] for cell in shown] == [cell["id"] for cell in original]
    assert [lines_of(cell) for cell in shown[1:]] == [lines_of(cell) for cell in original[1:]]
    number = chapter[:2]
    assert lines_of(shown[0]) == [
        lines_of(original[0])[0].replace("# ", f"# {number} ", 1),
        *lines_of(original[0])[1:],
    ]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_teaching_cell_has_its_outputs(chapter: str) -> None:
    shown = {cell["id"]: cell for cell in notebook("notebooks", chapter)["cells"]}
    n_outputs = 0
    for cell in notebook("solutions", chapter)["cells"]:
        is_own = lines_of(cell)[0] == f'progress("{chapter}")'
        if cell["cell_type"] == "code" and "nbgrader" not in cell["metadata"] and not is_own:
            assert shown[cell["id"]]["outputs"] == cell["outputs"]
            n_outputs += len(cell["outputs"])
    assert n_outputs > 3


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_answer_is_in_a_chapter(chapter: str) -> None:
    shown = notebook("notebooks", chapter)
    for cell, original in zip(shown["cells"], released(chapter)["cells"], strict=True):
        if "nbgrader" in original["metadata"]:
            assert cell["outputs"] == []
    lines = {line for cell in shown["cells"] for line in lines_of(cell)}
    # the library's own source, which everybody has, says some of the same
    cells = [cell for cell in shown["cells"] if "explain.source(" not in "".join(cell["source"])]
    outputs = "\n".join(said_by(output) for cell in cells for output in cell.get("outputs", []))
    answers = answer_lines(chapter)
    assert answers
    for line in answers:
        assert line not in lines
        assert json.dumps(line, ensure_ascii=False)[1:-1] not in outputs, line


def test_what_shows_an_answer_is_no_teaching_cell() -> None:
    for source in ('check("x")', 'y = 1\nsolution("x")', 'hint("x")', 'progress("x")'):
        assert not staging.is_teaching({"cell_type": "code", "metadata": {}, "source": [source]})


def test_a_chapter_whose_notebooks_differ_is_refused() -> None:
    chapter, other = released("05_autograd"), json.loads(json.dumps(released("05_autograd")))
    next(cell for cell in other["cells"] if staging.is_teaching(cell))["source"] = ["2"]
    with pytest.raises(ValueError, match="is not the same in both notebooks"):
        staging.chapter(chapter, other)


def test_a_link_to_a_file_that_is_no_page_needs_the_repository() -> None:
    text = "[a](cuda.md#the-ledger), [b](../LICENSE), [c](https://example.org/x.py), `[d](e)`"
    pages = {"docs/cuda.md"}
    assert staging.with_links(text, "docs/x.md", pages, "") == text.replace("[b](../LICENSE)", "b")
    there = staging.with_links(text, "docs/x.md", pages, "owner/name")
    assert "[b](https://github.com/owner/name/blob/main/LICENSE)" in there
    with pytest.raises(ValueError, match=r"links to nowhere\.md, which does not exist"):
        staging.with_links("[a](nowhere.md)", "docs/x.md", pages, "")


def test_without_a_repository_nothing_leads_there() -> None:
    pages = [content.decode() for name, content in staged().items() if name.endswith(".md")]
    addresses = re.findall(r"https://github\.com/([\w.-]+/[\w.-]+)", "".join(pages))
    # what docs/hosted.md and docs/sources.md give as sources
    assert set(addresses) <= {"googlecolab/backend-info", "srush/GPU-Puzzles"}


MODULES = {page["module"]: importlib.import_module(page["module"]) for page in reference.PAGES}


@pytest.mark.parametrize(
    "name", [module for module in MODULES if hasattr(MODULES[module], "__all__")]
)
def test_the_reference_shows_every_public_name(name: str) -> None:
    module = MODULES[name]
    shown = [
        getattr(MODULES[page["module"]], each)
        for page in reference.PAGES
        for each in reference.names_of(page)
        if page["module"] == name or name != "tensorkit"  # what another page shows is not repeated
    ]
    missing = [
        each
        for each in module.__all__
        if not isinstance(getattr(module, each), ModuleType)
        and not any(getattr(module, each) is there for there in shown)
    ]
    assert missing == []


def test_the_reference_shows_a_name_once() -> None:
    names = [
        f"{page['module']}.{name}" for page in reference.PAGES for name in reference.names_of(page)
    ]
    assert len(names) == len(set(names))


def test_docstrings_become_rst() -> None:
    tried = doctest.testmod(reference)
    assert tried.attempted > 0
    assert tried.failed == 0
