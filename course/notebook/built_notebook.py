"""A notebook that `course build` wrote: `read`, for grading and `course doctor`; its cells' ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course.shared.errors import CourseError


def read(file: Path, chapter: str) -> dict[str, Any]:
    """A built notebook, the text of each cell in one piece.

    Raises CourseError if it is not there, or is no notebook as `course build` writes it.
    """
    try:
        notebook: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        parts: list[tuple[Any, Any]] = [(notebook["metadata"], dict)]
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
            points = cell["metadata"].get("nbgrader", {}).get("points")
            parts += [(cell["id"], str), (cell["cell_type"], str), (points, int | float | None)]
        if not all(isinstance(part, kind) for part, kind in parts):
            raise ValueError
        return notebook
    except OSError as problem:
        raise CourseError(
            f"The chapter {chapter} is not built, or you may not read it ({file}: "
            f"{problem.strerror}): course build {chapter}."
        ) from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise CourseError(f"{file} is damaged: course build {chapter}.") from None


def id_of(kind: str, source: str) -> str:
    """The id of a cell that is no part of an exercise; it follows from the cell's content."""
    return hashlib.sha256(f"{kind}\n{source}".encode()).hexdigest()[:12]


def is_as_built(cell: Mapping[str, Any]) -> bool:
    """Whether such a cell, of this release or of another one, has the text of its release."""
    id: str = cell.get("id", "")
    return id.partition("-")[0] == id_of(cell["cell_type"], cell["source"])
