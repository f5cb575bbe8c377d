"""Checks as a notebook runs them, which several modules of tests share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sample  # noqa: F401  # registers its exercises

from course.notebook.exercise import load
from course.notebook.report import Report

STRIDES = load()["sample-strides"]
NEGATED = load()["sample-negated"]


class Pretender:
    """An object that says it is a tuple, and ends the program when it is looked at."""

    @property
    def __class__(self):
        return tuple

    def __getattr__(self, name):
        raise SystemExit

    def __repr__(self):
        raise SystemExit


def checked(exercise_id: object = "sample-strides", **names: object) -> Report:
    """The report of a `check` in a notebook that holds these names."""
    from course.notebook.check import _reported

    return _reported(exercise_id, names)  # type: ignore[arg-type]


def _run_in_python(program: str) -> str:
    """What a fresh IPython prints for `program`, cell by cell at `# %%`."""
    runner = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "for cell in ['import tensorkit as tk, sample\\nfrom course import check', "
        "*sys.argv[2].split('# %%\\n')]:\n"
        "    shell.run_cell(cell, store_history=True)\n"
    )
    here = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", runner, here, program], capture_output=True, text=True, check=True
    )
    return done.stdout


def words(*cells: str) -> str:
    """What a notebook with these cells prints, on one line."""
    return " ".join(_run_in_python("# %%\n".join(cells)).split())


CHECK = "check('sample-strides')"
