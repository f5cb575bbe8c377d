"""Do the chapters say the same in PyTorch? Runs their cells with both libraries and compares.

    python tests/course/parity.py [CHAPTER ...]

Compared is what each teaching cell prints, random numbers included. Left out are cells marked
`role="show"` (pictures, the simulated device), the cells of exercises, and what only the course
has (`check`, `progress`). Where a difference is meant, `MEANT` says why.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import numpy as np

SOLUTIONS = Path(__file__).parents[2] / "solutions"
ONLY_HERE = {"check", "explain", "hint", "progress", "solution", "transplant", "viz"}

MEANT: dict[str, str] = {}
"""Cells whose text differs on purpose: a part of their source, and the reason."""


@dataclass(frozen=True)
class Cell:
    """A teaching cell: its source and what it printed with each library."""

    source: str
    tensorkit: str
    torch: str

    @property
    def reason(self) -> str | None:
        return next((reason for part, reason in MEANT.items() if part in self.source), None)


def chapters() -> list[str]:
    return sorted(path.stem for path in SOLUTIONS.glob("*.py"))


def why_not_compared(chapter: str) -> str | None:
    """Why PyTorch cannot run the cells of a chapter here; None if it can."""
    import torch

    if chapter == "08_devices" and not torch.cuda.is_available():
        return "its cells use a CUDA device, and PyTorch has none here"
    reasons = {
        "11_dispatch": "its cells look into tensorkit's own layers",
        "12_kernels": "PyTorch has no kernels written in Python",
    }
    return reasons.get(chapter)


def compared(chapter: str) -> list[Cell]:
    """Every teaching cell of a chapter, run from the first to the last with both libraries."""
    sources = list(teaching_cells(chapter))
    outputs = (printed(sources, library, chapter) for library in ("tensorkit", "torch"))
    return [Cell(*each) for each in zip(sources, *outputs, strict=True)]


def teaching_cells(chapter: str) -> Iterator[str]:
    notebook = nbformat.read(SOLUTIONS / chapter / f"{chapter}.ipynb", as_version=4)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        is_shown = "show" in tags or "nbval-ignore-output" in tags
        if cell.cell_type == "code" and not is_shown and "nbgrader" not in cell.metadata:
            yield cell.source


def printed(sources: list[str], library: str, chapter: str) -> list[str]:
    """What each cell prints, the value of its last expression included."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file in (SOLUTIONS / chapter).iterdir():  # its data files
            if file.suffix != ".ipynb" and file.is_file():
                (Path(scratch) / file.name).symlink_to(file)
        os.chdir(scratch)
        try:
            return [_run(source, library, namespace) for source in sources]
        finally:
            os.chdir(before)
            for value in namespace.values():
                if isinstance(value, np.lib.npyio.NpzFile):  # which a notebook leaves open
                    value.close()


def _run(source: str, library: str, namespace: dict[str, Any]) -> str:
    body = [statement for statement in ast.parse(source).body if not _is_only_here(statement)]
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(_compiled(body, library), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
            if value is not None:
                print(repr(value))
    return out.getvalue()


def _is_only_here(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom) and statement.module == "course":
        return True
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return isinstance(statement, ast.Expr) and bool(names & ONLY_HERE)


def _compiled(body: list[ast.stmt], library: str) -> Any:
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                alias.name = alias.name.replace("tensorkit", library)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            statement.module = statement.module.replace("tensorkit", library)
            kept = [alias for alias in statement.names if alias.name not in ONLY_HERE]
            statement.names = kept or [ast.alias("Tensor", "_")]
    return compile(ast.fix_missing_locations(ast.Module(body, [])), "cell", "exec")


def main(names: list[str]) -> int:
    """Print the report; the number of cells that differ without a reason."""
    unexplained = 0
    for chapter in names or chapters():
        if reason := why_not_compared(chapter):
            print(f"{chapter}: not compared, {reason}")
            continue
        cells = compared(chapter)
        differing = [cell for cell in cells if cell.tensorkit != cell.torch]
        print(f"{chapter}: {len(cells) - len(differing)} of {len(cells)} cells print the same")
        for cell in differing:
            unexplained += cell.reason is None
            print(f"\n  {cell.reason or 'NO REASON GIVEN'}")
            texts = {"cell": cell.source, "tensorkit": cell.tensorkit, "torch": cell.torch}
            for name, text in texts.items():
                print(f"    {name}:\n" + "\n".join(f"      {line}" for line in text.splitlines()))
    return unexplained


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
