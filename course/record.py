"""What a learner has done: points, attempts, hints opened; kept across notebooks and restarts.

The notes lie in `.course-progress.json` in the folder that holds the learner's chapters. They are
self-reported and never graded. Nothing is written while a notebook is validated, graded, built or
tested: only in a chapter folder that belongs to a learner.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from html import escape
from pathlib import Path
from typing import Any

from course.errors import CourseError
from course.exercise import Exercise, chapters, load
from course.report import Report

FILE = ".course-progress.json"

_in_memory: dict[str, dict[str, Any]] = {}


def note_check(exercise: Exercise, report: Report, source: str | None) -> None:
    """Remember the best score and, by its text, each different attempt."""
    if report.status == "not started" or not report.rows:
        return
    notes = _read()
    entry = notes.setdefault(exercise.id, {})
    entry["points"] = max(entry.get("points", 0.0), report.score)
    attempt = hashlib.sha256((source or "").encode()).hexdigest()[:12]
    if attempt not in entry.setdefault("attempts", []):
        entry["attempts"].append(attempt)
    _write(notes)


def note_hint(exercise: Exercise) -> int:
    """The number of the next hint, counted from 1, which is remembered as opened."""
    notes = _read()
    entry = notes.setdefault(exercise.id, {})
    entry["hints"] = min(entry.get("hints", 0) + 1, len(exercise.hints))
    _write(notes)
    return int(entry["hints"])


def points(exercise: Exercise) -> float:
    """The best score so far."""
    return float(_read().get(exercise.id, {}).get("points", 0.0))


def attempts(exercise: Exercise) -> int:
    """How many different answers were checked."""
    return len(_read().get(exercise.id, {}).get("attempts", []))


class Progress:
    """Points and what they are for, as text and as a table."""

    def __init__(self, of: str, rows: list[tuple[str, float, float, str]]) -> None:
        self.of = of
        self.rows = rows
        """What it is, points so far, points in all, how far that is in words."""

    def __repr__(self) -> str:
        width = max([len(name) for name, *_ in self.rows], default=0)
        return "\n".join(
            f"{name:<{width}}  {earned:>5g} of {possible:g} points   {state}"
            for name, earned, possible, state in self.rows
        )

    def _repr_html_(self) -> str:
        left = 'style="text-align: left"'
        head = "".join(f'<th scope="col" {left}>{it}</th>' for it in (self.of, "Points", "State"))
        body = "".join(
            f'<tr><th scope="row" {left}>{escape(name)}</th>'
            f"<td {left}>{earned:g} of {possible:g}</td><td {left}>{escape(state)}</td></tr>"
            for name, earned, possible, state in self.rows
        )
        caption = '<caption style="text-align: left; color: inherit">Your progress</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def progress(chapter: str | None = None) -> Progress:
    """The points so far: chapter by chapter, or for one chapter exercise by exercise.

    chapter: such as "01_tensors". Points are the best that a check in this folder's notebooks gave.

    Raises CourseError for a chapter that does not exist.
    """
    if chapter is None:
        every = [(name, list(load(name).values())) for name in chapters()]
        return Progress("Chapter", [_chapter_row(name, own) for name, own in every])
    if chapter not in chapters():
        raise CourseError(f"There is no chapter {chapter!r}; there are {', '.join(chapters())}.")
    return Progress("Exercise", [_exercise_row(it) for it in load(chapter).values()])


def _chapter_row(name: str, own: list[Exercise]) -> tuple[str, float, float, str]:
    done = sum(points(it) >= it.points for it in own)
    state = f"{done} of {len(own)} exercises done"
    return name, sum(map(points, own)), sum(it.points for it in own), state


def _exercise_row(it: Exercise) -> tuple[str, float, float, str]:
    begun = "begun" if attempts(it) else "not started"
    state = "done" if points(it) >= it.points else begun
    return it.title, points(it), it.points, f"{state}, further" if it.further else state


def _file() -> Path | None:
    """Where the notes lie; None where this is nobody's own notebook."""
    if os.environ.get("NBGRADER_EXECUTION") or os.environ.get("COURSE_BUILD"):
        return None
    here = Path.cwd()
    if here.name not in chapters() or here.parent.name in ("solutions", "notebooks"):
        return None
    return here.parent / FILE


def _read() -> dict[str, dict[str, Any]]:
    file = _file()
    if file is None:
        return _in_memory
    try:
        notes = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _in_memory
    except (OSError, ValueError):
        notes = None
    if not isinstance(notes, dict):
        with contextlib.suppress(OSError):  # nothing is lost: the file stays beside the new one
            file.replace(file.with_name(f"{FILE}.damaged"))
        return _in_memory
    return notes


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
