"""What each check gives when a notebook runs from the top, in a new kernel: `run`.

The learner's code runs here as it does in JupyterLab, in no sandbox. So only the learner's own
notebook is run, on the learner's own machine.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course.notebook import matching
from course.notebook.matching import Cell, Source
from course.shared import extras, paths

SECONDS_PER_CELL, SECONDS = 10, 120
"""How long one cell runs, as in grading, and how long all of them."""
_CHECK = re.compile(r"""^check\(["']([\w-]+)["']\)""", re.MULTILINE)


def points_shown(cells: Iterable[Any]) -> dict[str, float]:
    """By exercise, the most points in the saved outputs of the cells that check it."""
    shown: dict[str, float] = {}
    for cell in cells:
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        if not isinstance(outputs, list):
            continue
        for id in _CHECK.findall(_text(cell.get("source"))):
            for output in outputs:
                data = output.get("data") if isinstance(output, dict) else None
                text = _text(data.get("text/plain")) if isinstance(data, dict) else ""
                if re.fullmatch(r"\d{1,3}\.\d{1,3}", text):
                    shown[id] = max(shown.get(id, 0.0), float(text))
    return shown


def _text(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def run(cells: list[Cell], source: Source) -> tuple[dict[str, float], str]:
    """The points of each check, and a sentence about the first cell that was stopped; or "".

    The folder in which the cells run has the chapter's own files and nothing else. If the cell with
    the imports fails, the released imports run next, as in grading.
    """
    nbclient = extras.needed("nbclient", "lab", "Running a notebook")
    nbformat = extras.needed("nbformat", "lab", "Running a notebook")
    code = [(cell["id"], cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    made = [nbformat.v4.new_code_cell(text, id=id) for id, text in code]
    root, until, stopped = paths.course_root(), time.monotonic() + SECONDS, ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary, "run")
        folder.mkdir()
        for name, data in source.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        client = nbclient.NotebookClient(
            nbformat.v4.new_notebook(cells=made),
            kernel_name="python3",
            allow_errors=True,
            timeout=SECONDS_PER_CELL,
            interrupt_on_timeout=True,
            shutdown_kernel="immediate",
            resources={"metadata": {"path": str(folder)}},
            log=_SILENT,
        )
        changed = {"COURSE_ROOT": str(root), "IPYTHONDIR": str(Path(temporary, "ipython"))}
        with client.setup_kernel(env={**os.environ, **changed}):
            for number, cell in enumerate(made):
                begun = time.monotonic()
                if begun > until:
                    stopped = stopped or f"All cells take longer than {SECONDS} seconds."
                    break
                try:
                    client.execute_cell(cell, number)
                    if cell.id == source.setup and _has_failed(cell):
                        cell.source = source.by_id[cell.id]["source"]
                        client.execute_cell(cell, number)
                except nbclient.exceptions.DeadKernelError:
                    stopped = stopped or f"{_named(cell, source)} ends the kernel."
                    break
                if time.monotonic() - begun >= SECONDS_PER_CELL:
                    limit = f"is stopped after {SECONDS_PER_CELL} seconds"
                    stopped = stopped or f"{_named(cell, source)} {limit}."
    return points_shown(made), stopped


def _has_failed(cell: Any) -> bool:
    return any(output["output_type"] == "error" for output in cell.outputs)


def _named(cell: Any, source: Source) -> str:
    return matching.named(source.by_id.get(cell.id, {"source": cell.source}))


_SILENT = logging.getLogger(__name__)
_SILENT.propagate = False
_SILENT.addHandler(logging.NullHandler())
