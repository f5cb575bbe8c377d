"""Whether all who know a chapter's points say the same: definitions, notebooks, gradebook.

Points are defined in `course/exercises/`. `course build` writes them into the notebook with the
answers and the released one; `nbgrader generate_assignment` enters them in the gradebook. Where one
of these was left out, grades would be wrong in silence: a gradebook's old maximum would cap new
points. So nobody is graded until all four agree.
"""

from __future__ import annotations

from collections.abc import Mapping

from course.notebook import exercise, matching
from course.notebook.matching import Source
from course.shared.errors import CourseError

MOST_NAMED = 5
"""Cells that differ which are named."""


def points_in(notebook: Mapping[str, list[matching.Cell]]) -> dict[str, float]:
    """The graded cells of a notebook and their points, tasks that a person reads included."""
    found: dict[str, float] = {}
    for cell in notebook["cells"]:
        name, marks = matching.grade_id(cell), cell["metadata"].get("nbgrader", {})
        if name is not None and (marks.get("grade") or marks.get("task")):
            found[name] = float(marks.get("points", 0))
    return found


def check_notebooks(source: Source) -> None:
    """Raises CourseError unless the notebooks have the exercises and points of the definitions.

    A check cell that does not call `check` is the instructor's own and has no definition.
    """
    released, solved = points_in(source.released), points_in(source.solved)
    asked = {f"check-{matching.checked_exercise(it)}" for it in source.solved["cells"]}
    called = {name: points for name, points in solved.items() if name in asked}
    defined = {
        f"check-{id}": float(it.points)
        for id, it in exercise.load(source.chapter).items()
        if f"check-{id}" in asked or f"check-{id}" not in solved
    }
    command = f"course build {source.chapter}, then nbgrader generate_assignment {source.chapter}"
    _same("The definitions", defined, "the notebook with the answers", called, command)
    _same("The notebook with the answers", solved, "the released one", released, command)


def check_gradebook(source: Source, graded: Mapping[str, float]) -> None:
    """Raises CourseError unless the gradebook has the graded cells and points of the notebook.

    graded: the points of the gradebook's cells by their names.
    """
    command = f"nbgrader generate_assignment {source.chapter}"
    released = points_in(source.released)
    _same("The released notebook", released, "the gradebook", graded, command)


def _same(
    one: str,
    expected: Mapping[str, float],
    other: str,
    found: Mapping[str, float],
    command: str,
) -> None:
    if expected == found:
        return
    differ = sorted(
        it for it in expected.keys() | found.keys() if expected.get(it) != found.get(it)
    )
    named = [
        f"{it} ({_points(expected.get(it))} and {_points(found.get(it))})"
        for it in differ[:MOST_NAMED]
    ]
    more = f" and {len(differ) - MOST_NAMED} more" if len(differ) > MOST_NAMED else ""
    raise CourseError(
        f"{one} and {other} do not agree on {', '.join(named)}{more}. Nothing was graded, because "
        f"grades would be wrong. Run: {command}"
    )


def _points(points: float | None) -> str:
    return "not there" if points is None else f"{points:g} points"
