"""`course hosted`: copies of the released chapters for Colab and other hosted notebooks.

    hosted/
        README.md                   the chapters, with a badge each once the repository is known
        tensorkit_course-VERSION-py3-none-any.whl
        LICENSE
        01_tensors/01_tensors.ipynb as released, after one cell that installs the wheel

The wheel is the one that learners get (`authoring.bundle`), with the chapters' data and without the
configuration of JupyterLab and nbgrader, which a host has of its own. A workflow publishes the
folder to the branch `BRANCH`, from which Colab opens it. Older wheels stay there: the copy that a
learner saved last month names the wheel of last month.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from course.authoring import bundle
from course.notebook.chapter_folder import FIRST_LINE
from course.shared import files, paths
from course.shared.errors import CourseError
from course.shared.settings import settings

BRANCH = "hosted"
"""The branch of the repository that holds the folder and nothing else."""

BADGE = "https://colab.research.google.com/assets/colab-badge.svg"

CELL = (
    FIRST_LINE
    + """
from importlib.metadata import distributions
from importlib.util import find_spec

if find_spec("tensorkit") is None:
{wheel}
    there = {{each.name: each.version for each in distributions()}}
    used = ["numpy", "matplotlib", "graphviz", "safetensors"]
    used = " ".join(f"{{name}}=={{there[name]}}" if name in there else name for name in used)
    %pip install --quiet "{{wheel}}" {{used}}

from course.notebook.chapter_folder import enter

enter("{chapter}")"""
)
"""pip is given the installed version of each library that the chapters import. So it keeps them, or
says that they do not fit and changes nothing; it installs what is missing."""

CELL_ID = "install-the-course"

BY_ADDRESS = '    wheel = "{address}"'

UPLOADED = """\
    from pathlib import Path

    name = "{name}"
    wheel = next((file for file in (Path(name), Path("..", name)) if file.is_file()), None)
    if wheel is None:
        raise FileNotFoundError(f"Upload {{name}} beside this notebook, then run this again.")"""

README = """\
# tensorkit in hosted notebooks

{how}

Run the chapter's first cell: it installs the course beside what the host has.
What is different there, and where answers and points are kept, stands in `docs/hosted.md` of the
project.

| chapter |{head}
|---|{rule}
{rows}
"""

BY_BADGE = """\
A badge opens the chapter in Colab. Choose *File > Save a copy in Drive* to keep what you write."""

BY_UPLOAD = """\
Upload a chapter's notebook and the file `{wheel}`
to your host, into one folder."""


def write(
    root: Path | None = None, *, to: Path | None = None, repository: str | None = None
) -> Path:
    """Write the folder anew and say where it lies; its path.

    root: a checkout; by default the course folder. to: by default `hosted/` in it. repository:
    "owner/name" on GitHub, "" for none; by default the setting. Without one no address is written:
    the first cell takes a wheel that was uploaded.

    Raises CourseError as `bundle.bundle` does, and if `to` holds anything that this did not write.
    """
    root = paths.course_root() if root is None else root
    to = root / "hosted" if to is None else to
    repository = settings().repository if repository is None else repository
    chapters = paths.released_chapters(root)
    if not chapters:
        raise CourseError("There is no released notebook to make a hosted copy of: course build.")
    with tempfile.TemporaryDirectory(prefix="course-hosted-") as folder:
        wheel = bundle.build_wheel(_staged(root, Path(folder) / "project"), Path(folder) / "dist")
        _make_empty(to)
        files.write(to / wheel.name, wheel.read_bytes())
    wheel = to / wheel.name
    files.write(to / "LICENSE", (root / "LICENSE").read_bytes())
    for chapter in chapters:
        released = paths.notebook_in(paths.notebooks(root), chapter).read_text(encoding="utf-8")
        copy = json.dumps(copied(json.loads(released), wheel, repository), indent=1)
        files.write(paths.notebook_in(to, chapter), copy + "\n")
    files.write(to / "README.md", readme(root, wheel, repository))
    opened = f"opened from {repository}" if repository else "without an address: see docs/hosted.md"
    print(f"{to}: {len(chapters)} chapters, {opened}")
    return to


def copied(notebook: dict[str, Any], wheel: Path, repository: str) -> dict[str, Any]:
    """A released notebook with the cell that installs a wheel in front of all others.

    Without its last cell's link to the next chapter: a host opens a notebook alone.
    """
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": CELL_ID,
        "metadata": {},
        "outputs": [],
        "source": install_cell(notebook["metadata"]["course"]["chapter"], wheel, repository),
    }
    cells = [
        released
        for released in notebook["cells"]
        if not "".join(released["source"]).startswith("**Next:**")
    ]
    return {**notebook, "cells": [cell, *cells]}


def install_cell(chapter: str, wheel: Path, repository: str) -> str:
    """The first cell's text."""
    if repository:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        address = f"{address_of(repository, wheel.name)}#sha256={digest}"
        argument = BY_ADDRESS.format(address=address)
    else:
        argument = UPLOADED.format(name=wheel.name)
    return CELL.format(wheel=argument, chapter=chapter)


def address_of(repository: str, name: str) -> str:
    """Where a file of the published folder can be downloaded.

    >>> address_of("ada/course", "a+b.whl")
    'https://raw.githubusercontent.com/ada/course/hosted/a%2Bb.whl'
    """
    return f"https://raw.githubusercontent.com/{repository}/{BRANCH}/{quote(name)}"


def colab_address(repository: str, chapter: str) -> str:
    """What opens a chapter's hosted copy in Colab.

    >>> colab_address("ada/course", "01_tensors")
    'https://colab.research.google.com/github/ada/course/blob/hosted/01_tensors/01_tensors.ipynb'
    """
    return (
        f"https://colab.research.google.com/github/{repository}/blob/{BRANCH}/"
        f"{chapter}/{chapter}.ipynb"
    )


def badge(repository: str, chapter: str) -> str:
    """A picture in Markdown that opens a chapter in Colab."""
    return f"[![Open in Colab]({BADGE})]({colab_address(repository, chapter)})"


def readme(root: Path, wheel: Path, repository: str) -> str:
    """The page of the folder: a table of the chapters."""
    rows = []
    for chapter in paths.released_chapters(root):
        row = f"| [{chapter}]({chapter}/{chapter}.ipynb) |"
        rows.append(f"{row} {badge(repository, chapter)} |" if repository else row)
    return README.format(
        how=BY_BADGE if repository else BY_UPLOAD.format(wheel=wheel.name),
        head=" open |" * bool(repository),
        rule="---|" * bool(repository),
        rows="\n".join(rows),
    )


def _staged(root: Path, stage: Path) -> Path:
    """The project as learners get it, with the chapters' data, without the host's configuration."""
    bundle.staged(root, stage, b"The course on tensors, for hosted notebooks.\n")
    data = stage / "course" / "notebook" / "data"
    for chapter in paths.released_chapters(root):
        for file in sorted((paths.notebooks(root) / chapter).iterdir()):
            if file.is_file() and file.suffix != ".ipynb":
                copy = data / chapter / file.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
    data.mkdir(exist_ok=True)
    (data / "README.txt").write_text("What chapters read, by chapter.\n")
    project = stage / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    text, tables = re.subn(r"(?ms)^\[[\w.]+\.wheel\.shared-data\]\n.*?(?=^\[)", "", text)
    text, lists = re.subn(r'(?m)^( +"!/course/)jupyter",$', r'\1data",', text)
    if (tables, lists) != (1, 1):
        raise CourseError(f"{root / 'pyproject.toml'}: its lists of what a wheel holds are others.")
    project.write_text(text, encoding="utf-8", newline="\n")
    bundle.mark(stage)
    return stage


def _make_empty(folder: Path) -> None:
    """Remove what an earlier call wrote, so that no chapter or wheel stays that is gone."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / "README.md").is_file() or not list(folder.glob("tensorkit_course-*.whl")):
            raise CourseError(f"{folder} holds other files: name or make an empty folder.")
        shutil.rmtree(folder)
