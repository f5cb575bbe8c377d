"""Lays out what Sphinx reads: `python docs/site/staging.py FOLDER`.

The pages keep their paths in the repository, so that a link that works on GitHub works on the site:

    README.md is included in index.md; CONTRIBUTING.md, CHANGELOG.md and docs/ are copied;
    notebooks/ are the released chapters, with the outputs of their teaching cells;
    api/ is made from reference.toml.

Nothing is executed. Outputs come from the notebooks with the answers, cell by cell. The cells of
exercises have none there: what an answer or its check shows stays with the author.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import reference

from course.authoring import hosted
from course.shared import paths
from course.shared.settings import settings

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

LINK = re.compile(
    r"(?P<code>```.*?```|`[^`\n]*`)|(?<!!)\[(?P<text>[^\]]+)\]\((?P<to>[^)\s]+)\)", re.S
)
ANSWERS = re.compile(r"^(check|hint|solution|progress)\(", re.MULTILINE)


def is_teaching(cell: dict[str, Any]) -> bool:
    """Whether a cell's outputs are for every reader: no exercise's cell, and nobody's progress."""
    return (
        cell["cell_type"] == "code"
        and "nbgrader" not in cell["metadata"]
        and ANSWERS.search("".join(cell["source"])) is None
    )


def chapter(released: dict[str, Any], solved: dict[str, Any]) -> dict[str, Any]:
    """The released notebook with the outputs that its teaching cells have in the solved one."""
    ran = {cell["id"]: cell for cell in solved["cells"]}
    cells = []
    for cell in released["cells"]:
        shown = {**cell, "metadata": {}}
        if cell["cell_type"] == "code":
            shown["outputs"] = []
        if is_teaching(cell):
            if ran[cell["id"]]["source"] != cell["source"]:
                raise ValueError(f"the cell {cell['id']} is not the same in both notebooks")
            shown["outputs"] = ran[cell["id"]]["outputs"]
        cells.append(shown)
    return {**released, "cells": cells}


def sources(repository: str) -> dict[str, bytes]:
    """What Sphinx reads: the content of each file by its path."""
    files = {"index.md": (HERE / "index.md").read_bytes()}
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        files[name] = (ROOT / name).read_bytes()
    for path in sorted((ROOT / "docs").iterdir()):
        if path.suffix in (".md", ".svg", ".ipynb"):
            files[f"docs/{path.name}"] = path.read_bytes()
    for name in paths.released_chapters(ROOT):
        notebooks = (paths.notebooks(ROOT), paths.solutions(ROOT))
        released, solved = (
            json.loads(paths.notebook_in(each, name).read_text(encoding="utf-8"))
            for each in notebooks
        )
        shown = chapter(released, solved)
        # the number of the chapter, as in the README, for the sidebar and the search
        first = shown["cells"][0]
        title, line, rest = "".join(first["source"]).partition("\n")
        # words, not the badge: the site asks nobody else for a picture
        address = hosted.colab_address(repository, name)
        opened = f"\n[Open in Colab]({address})\n" * bool(repository)
        first["source"] = ["# " + name[:3].replace("_", " ") + title[2:] + line + opened + rest]
        text = json.dumps(shown, ensure_ascii=False, indent=1)
        files[f"notebooks/{name}/{name}.ipynb"] = text.encode()
    files["api/index.rst"] = reference.index().encode()
    for page in reference.PAGES:
        files[f"api/{page['name']}.rst"] = reference.rst_of(page).encode()
    for name, content in files.items():
        if name.endswith(".md"):
            files[name] = with_links(content.decode(), name, set(files), repository).encode()
    return files


def with_links(text: str, page: str, pages: set[str], repository: str) -> str:
    """The text with links that the site can follow.

    A link to a file that is no page leads into the repository, where that has an address, and is
    plain text where it has none.
    """

    def mended(found: re.Match[str]) -> str:
        to = found["to"]
        if found["code"] or re.match(r"[a-z]+:|#", to):
            return found[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), to.partition("#")[0]))
        if file in pages:
            return found[0]
        if not (ROOT / file).exists():
            raise ValueError(f"{page} links to {to}, which does not exist")
        if not repository:
            return found["text"]
        return f"[{found['text']}](https://github.com/{repository}/blob/main/{file})"

    return LINK.sub(mended, text)


def stage(folder: Path, repository: str) -> None:
    """Make `folder` hold the sources and no more; a file that did not change is not touched."""
    files = sources(repository)
    for path in [file for file in folder.rglob("*") if file.is_file()]:
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


if __name__ == "__main__":
    stage(Path(sys.argv[1]), settings().repository)
