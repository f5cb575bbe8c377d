"""The folder of a chapter in a hosted notebook, which the first cell of its copy calls: `enter`.

There a notebook is opened alone, in whatever folder the host chose. Its data travel in the wheel
that `authoring.hosted` makes (the folder `data` beside this file); other wheels have none, and with
them nothing is done.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FIRST_LINE = (
    "# Only hosted copies have this cell. It adds the course; what the host has stays as it is."
)
"""By this line grading knows the cell, which it does not run."""

DATA = Path(__file__).with_name("data")


def enter(chapter: str) -> None:
    """Go to the folder of a chapter, made in the current one, and bring what the chapter reads.

    Points and attempts are noted beside that folder (`record`). Files that are there stay
    as they are; called again, it changes nothing.
    """
    if not DATA.is_dir():
        return
    folder = Path.cwd()
    if folder.name != chapter:
        folder = folder / chapter
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
    for file in sorted(DATA.glob(f"{chapter}/*")):
        if not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    print(
        f"Your points are noted in {folder.parent} for as long as the host keeps that folder. "
        "Save the notebook itself where you can find it again.\n"
        "nbgrader's exchange cannot be reached from here: to hand the chapter in, download the "
        "notebook (.ipynb) and send it as you were told."
    )
