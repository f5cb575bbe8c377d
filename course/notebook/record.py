"""What a learner has done: points, attempts, hints opened; kept across notebooks and restarts.

The notes lie in `.course-progress.json` in the folder that holds the learner's chapters. They are
self-reported and never graded. Nothing is written while a notebook is validated, graded, built or
tested: only in a chapter folder that belongs to a learner.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import textwrap
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from course.notebook.exercise import Exercise, chapters, load
from course.notebook.report import Report
from course.shared import identity
from course.shared.paths import chapter_named

FILE = ".course-progress.json"

_in_memory: dict[str, dict[str, Any]] = {}


def note_check(exercise: Exercise, report: Report, source: str | None) -> str:
    """Remember how the answer stands, whether it ever passed and, by its text, each attempt.

    Gives a sentence if the chapter's core is done by this answer, and was not before it.
    """
    notes = _read()
    entry = notes.setdefault(exercise.id, {})
    was_done = entry.get("state") == "done"
    entry["points"] = report.score
    entry["state"] = "done" if report.status == "passed" else report.status
    if report.rows:
        entry["passed"] = entry.get("passed", False) or report.status == "passed"
        attempt = hashlib.sha256(_meaning(source or "").encode()).hexdigest()[:12]
        if attempt not in entry.setdefault("attempts", []):
            entry["attempts"].append(attempt)
    _write(notes)
    core = [asked for asked in load(exercise.chapter).values() if not asked.further]
    are_done = all(notes.get(asked.id, {}).get("state") == "done" for asked in core)
    is_last = exercise in core and are_done and not was_done
    return _FINISHED.format(exercise.chapter[:2]) if is_last else ""


_FINISHED = "Well done. You have finished chapter {}: every core exercise passes."


def _meaning(source: str) -> str:
    """The text of an answer without comments and layout: another comment is no other attempt."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(source)))
    except SyntaxError:
        return source


def note_hint(exercise: Exercise) -> int:
    """The number of the next hint, counted from 1, which is remembered as opened."""
    notes = _read()
    entry = notes.setdefault(exercise.id, {})
    entry["hints"] = min(entry.get("hints", 0) + 1, len(exercise.hints))
    _write(notes)
    return int(entry["hints"])


def hints_opened(exercise: Exercise) -> int:
    """How many hints the learner has seen."""
    return int(_read().get(exercise.id, {}).get("hints", 0))


def forget(folder: Path, exercise_id: str) -> None:
    """Note that the answer to an exercise of the chapter in `folder` is as it was released."""
    with contextlib.chdir(folder):
        notes = _read()
        if exercise_id in notes:
            notes[exercise_id].update(points=0.0, state="not started")
            _write(notes)


def points(exercise: Exercise) -> float:
    """What the last check gave."""
    return min(float(_read().get(exercise.id, {}).get("points", 0.0)), exercise.points)


def state(exercise: Exercise) -> str:
    """How the last check found the answer: a report's status, `done` for passed."""
    return str(_read().get(exercise.id, {}).get("state", "not started"))


def has_passed(exercise: Exercise) -> bool:
    """Whether a check ever passed, even if the answer was changed since."""
    return bool(_read().get(exercise.id, {}).get("passed", False))


def attempts(exercise: Exercise) -> int:
    """How many different answers were checked."""
    return len(_read().get(exercise.id, {}).get("attempts", []))


class Progress:
    """Points and what they are for, as text and as a table."""

    def __init__(self, of: str, rows: list[tuple[str, float, float, str]]) -> None:
        self.of = of
        self.rows = rows
        """Of each chapter or exercise: its name, points so far, all points, the state in words."""

    def __repr__(self) -> str:
        width = max([len(name) for name, *_ in self.rows], default=0)
        return "\n".join(
            f"{name:<{width}}  {_counted(earned, possible):<11}  {words}"
            for name, earned, possible, words in self.rows
        )

    def _repr_html_(self) -> str:
        # cells keep their distance where no stylesheet gives it: on nbgrader's feedback pages
        left = 'style="text-align: left; padding: 3px 12px"'
        head = "".join(
            f'<th scope="col" {left}>{word}</th>' for word in (self.of, "Points", "State")
        )
        body = "".join(
            f'<tr><th scope="row" {left}>{escape(name)}</th>'
            f"<td {left}>{_counted(earned, possible)}</td><td {left}>{escape(words)}</td></tr>"
            for name, earned, possible, words in self.rows
        )
        caption = '<caption style="text-align: left; color: inherit">Your progress</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _counted(earned: float, possible: float) -> str:
    return f"{earned:g} of {possible:g}" if possible else "–"


def progress(chapter: str | None = None) -> Progress:
    """The points as they stand: chapter by chapter, or for one chapter exercise by exercise.

    chapter: its name, number or topic, such as "01_tensors", "01" or "tensors". Points are those of
    the last check of each exercise; what counts is the notebook that is submitted.

    Raises CourseError for a chapter that does not exist.
    """
    if chapter is None:
        every = [(name, list(load(name).values())) for name in chapters()]
        return Progress("Chapter", [_chapter_row(name, exercises) for name, exercises in every])
    name = chapter_named(str(chapter), list(chapters()))
    return Progress("Exercise", [_exercise_row(exercise) for exercise in load(name).values()])


def _chapter_row(name: str, exercises: list[Exercise]) -> tuple[str, float, float, str]:
    done = sum(state(exercise) == "done" for exercise in exercises)
    words = f"{done} of {len(exercises)} exercises done"
    return name, sum(map(points, exercises)), sum(exercise.points for exercise in exercises), words


def _exercise_row(exercise: Exercise) -> tuple[str, float, float, str]:
    words = {"partly": "begun", "failed": "begun"}.get(state(exercise), state(exercise))
    return (
        exercise.title,
        points(exercise),
        exercise.points,
        f"{words}, further" if exercise.further else words,
    )


def is_learners() -> bool:
    """Whether this is a learner's own notebook: no other one's checks are noted anywhere."""
    return _file() is not None


def owner() -> str:
    """The learner whose numbers this notebook has; empty for a notebook with the answers."""
    has_answers = os.environ.get("COURSE_BUILD") or Path.cwd().parent.name == "solutions"
    return "" if has_answers else identity.learner()


def _file() -> Path | None:
    """Where the notes lie; None where this is nobody's own notebook."""
    if os.environ.get("NBGRADER_EXECUTION") or os.environ.get("COURSE_BUILD"):
        return None
    folder = Path.cwd()
    if folder.name not in chapters() or folder.parent.name in ("solutions", "notebooks"):
        return None
    return folder.parent / FILE


def _read() -> dict[str, dict[str, Any]]:
    file = _file()
    if file is None:
        return _in_memory
    try:
        notes = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _in_memory
    except (OSError, ValueError, RecursionError):
        notes = None
    if not _is_sound(notes):
        with contextlib.suppress(OSError):  # nothing is lost: the file stays beside the new one
            file.replace(file.with_name(f"{FILE}.damaged"))
        return _in_memory
    return notes


def _is_sound(notes: object) -> bool:
    """True for what `_write` writes: a dictionary of entries with values that make sense."""
    return isinstance(notes, dict) and all(
        isinstance(entry, dict)
        and all(name in _SOUND and _SOUND[name](value) for name, value in entry.items())
        for entry in notes.values()
    )


_SOUND: dict[str, Callable[[Any], bool]] = {
    "points": lambda value: isinstance(value, int | float) and 0 <= value < 1000,
    "state": lambda value: isinstance(value, str),
    "passed": lambda value: isinstance(value, bool),
    "attempts": lambda value: isinstance(value, list),
    "hints": lambda value: isinstance(value, int) and value >= 1,
}


def _write(notes: dict[str, dict[str, Any]]) -> None:
    _in_memory.update(notes)
    file = _file()
    if file is None:
        return
    beside = file.with_name(f"{FILE}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(notes, indent=1), encoding="utf-8")
        beside.replace(file)
    except OSError:
        beside.unlink(missing_ok=True)  # a read-only folder: the notes last as long as the kernel
