"""Whether definitions, notebooks and gradebook have the same points of a chapter.

Points are defined in `course/exercises/`. `course build` writes them into the notebook with the
answers and the released one; `nbgrader generate_assignment` enters them in the gradebook. Where a
step was left out, grades would be wrong in silence: a gradebook's old maximum would cap new points.
So nobody is graded until all four agree, and no grade is written, shown or exported that was given
by another version of the chapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from course.grading import asserts
from course.grading.result import Result
from course.notebook import exercise, matching
from course.notebook.matching import Source
from course.shared.errors import CourseError
from course.shared.words import listed

MOST_NAMED = 5
"""How many of the cells that differ are named."""
REFUSED = "Nothing was written, because grades would be wrong. Run:"


def generate(chapter: str) -> str:
    """The command that tells the gradebook a chapter's cells; without --force it does nothing."""
    return f"nbgrader generate_assignment {chapter} --force"


def in_words(
    points: float | None, kind: str = "code", *, is_answer: bool = False, is_task: bool = False
) -> str:
    """What nbgrader knows of a cell; no words for a cell that it does not know.

    kind: the type of a cell with points. Only code is graded by running it.
    """
    words = ["a task"] * is_task
    words += [] if points is None else [f"{points:.10g} points" + " as text" * (kind != "code")]
    return " and ".join([*words, *["an answer"] * is_answer])


def cells_in(notebook: Mapping[str, list[matching.Cell]]) -> dict[str, str]:
    """What nbgrader knows of each cell that is graded, an answer or a task, in order."""
    cells: dict[str, str] = {}
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        points = marks.get("points", 0.0) if marks.get("task") or marks.get("grade") else None
        is_answer, is_task = bool(marks.get("solution")), bool(marks.get("task"))
        if words := in_words(points, cell["cell_type"], is_answer=is_answer, is_task=is_task):
            cells[str(matching.grade_id(cell))] = words
    return cells


def check_notebooks(source: Source) -> None:
    """Raises CourseError unless the notebooks have the exercises and points of the definitions.

    The answer cells and the checks are also compared: their order, their kind, their texts.

    A check of a name that no definition has is the instructor's own.
    """
    definitions = exercise.load(source.chapter)
    released, solved = cells_in(source.released), cells_in(source.solved)
    asked = {f"check-{matching.checked_exercise(cell)}" for cell in source.solved["cells"]}
    defined = {f"check-{id}": in_words(definition.points) for id, definition in definitions.items()}
    called = {
        name: words if name in asked else f"{words} without its check"
        for name, words in solved.items()
        if name in asked or name in defined
    }
    answers = "The notebook with the answers"
    command = f"course build {source.chapter}, then {generate(source.chapter)}"
    _compare("The definitions", defined, "the notebook with the answers", called, command)
    _compare(answers, solved, "the released one", released, command)
    _compare(answers, _places(source.solved), "the released one", _places(source.released), command)
    for id, definition in definitions.items():
        solved_cell = (answers, source.solved, definition.answer_source)
        released_cell = ("The released notebook", source.released, definition.released_source)
        for title, notebook, text in (solved_cell, released_cell):
            if (present := matching.answer_above_check(notebook["cells"], id)) != text:
                cell = "no cell" if present is None else "another text in the cell"
                raise CourseError(
                    f"{title} differs from the definition: it has {cell} {id} above its check. "
                    f"{REFUSED} {command}"
                )


def _places(notebook: Mapping[str, list[matching.Cell]]) -> dict[str, str]:
    """The position and the type of each cell that nbgrader knows; of a check, what it calls."""
    marked = [cell for cell in notebook["cells"] if matching.grade_id(cell) is not None]
    places = {}
    for number, cell in enumerate(marked, 1):
        place = f"number {number}, {cell['cell_type']}"
        if matching.is_check(cell):
            id = matching.checked_exercise(cell)
            place += f', calls check("{id}")' if id else ", calls no check"
        places[str(matching.grade_id(cell))] = place
    return places


def check_gradebook(source: Source, cells: Mapping[str, str], notebooks: list[str]) -> None:
    """Raises CourseError unless the gradebook has the cells and points of the notebook.

    cells: what each is in the gradebook, `in_words`. notebooks: those of another name whose
    points the gradebook counts in this chapter.
    """
    command = generate(source.chapter)
    _compare("The released notebook", cells_in(source.released), "the gradebook", cells, command)
    if notebooks:
        files = " ".join(f"solutions/{source.chapter}/{name}.ipynb" for name in notebooks)
        raise CourseError(
            f"The gradebook counts the points of other notebooks in {source.chapter} as well, "
            f"which nobody can earn. {REFUSED} rm {files}, then {command}. Where nbgrader refuses "
            f"that because of submissions, before it: nbgrader db assignment remove "
            f"{source.chapter} --force, which forgets the due date and what was entered by hand."
        )


def check_versions(source: Source, results: Iterable[Result]) -> None:
    """Raises CourseError if a result was graded by another version of the chapter."""
    if older := [result.learner for result in results if result.source != source.digest]:
        raise CourseError(
            f"Graded by another version of {source.chapter}: {listed(older, MOST_NAMED)}. "
            f"Nothing was written. Run: {again(source.chapter)}"
        )


def check_results(chapter: str, results: Iterable[Result], checks: Mapping[str, float]) -> None:
    """Raises CourseError if a result was graded by other points than the gradebook has now.

    checks: the gradebook's points of the cells that are graded by running them, by their names.
    """
    known = {cell: in_words(points) for cell, points in checks.items()}
    for result in results:
        graded = {check.cell: in_words(check.report.possible) for check in result.exercises}
        if differ := _differences("The result", graded, "the gradebook", known):
            raise CourseError(
                f"{result.learner} was graded by other points. {differ} Nothing was written. Run: "
                f"{again(chapter)}"
            )


def again(chapter: str) -> str:
    """The command that grades a submission anew."""
    return (
        f"course grade {chapter}, with the submission back in course/submitted/ if it is no longer "
        "there."
    )


def check_definitions(source: Source) -> None:
    """Raises CourseError if a chapter's checks cannot be trusted.

    That is if more than a tenth of the points depend on what only the learner's own process sees,
    or if an instructor's plain check reads names that learners can define besides their answers.
    """
    known = exercise.load(source.chapter)
    points = sum(definition.points for definition in known.values())
    seen_inside = [definition for definition in known.values() if definition.witness == "inside"]
    inside = sum(definition.points for definition in seen_inside)
    if inside > points / 10:
        raise CourseError(
            f"{inside:g} of {points:g} points of {source.chapter} are witnessed inside the "
            f"learner's process, where they can be forged; a tenth may be."
        )
    for cell in source.released["cells"]:
        if matching.is_check(cell) and matching.checked_exercise(cell) not in known:
            _check_asserts(cell, source)


def _check_asserts(cell: matching.Cell, source: Source) -> None:
    solved = {cell["id"]: cell for cell in source.solved["cells"]}
    try:
        asserts.read(solved.get(cell["id"], cell)["source"], source.solved["cells"])
    except asserts.Broken as problem:
        raise CourseError(
            f"The check {matching.grade_id(cell)} of {source.chapter} cannot be graded: {problem}."
        ) from None


def _compare(
    left: str, expected: Mapping[str, str], right: str, present: Mapping[str, str], command: str
) -> None:
    if differ := _differences(left, expected, right, present):
        raise CourseError(f"{differ} {REFUSED} {command}")


def _differences(
    left: str, expected: Mapping[str, str], right: str, present: Mapping[str, str]
) -> str:
    """A sentence that names the cells on which two sides do not agree; empty if there are none."""
    names = expected.keys() | present.keys()
    differ = sorted(name for name in names if expected.get(name) != present.get(name))
    if not differ:
        return ""
    named = [
        f"{name} ({expected.get(name, 'not there')} and {present.get(name, 'not there')})"
        for name in differ
    ]
    return f"{left} and {right} do not agree on {listed(named, MOST_NAMED)}."
