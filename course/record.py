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
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

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
    """The table of chapters and points, as text and as HTML."""

    def __init__(self) -> None:
        self.rows = [
            (chapter, sum(map(points, own)), sum(it.points for it in own), _done(own), len(own))
            for chapter, own in _by_chapter()
        ]

    def __repr__(self) -> str:
        lines = [
            f"{chapter:<24} {earned:>5g} of {possible:g} points   {done} of {total} exercises"
            for chapter, earned, possible, done, total in self.rows
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        left = 'style="text-align: left"'
        head = "".join(
            f'<th scope="col" {left}>{name}</th>' for name in ("Chapter", "Points", "Exercises")
        )
        body = "".join(
            f'<tr><th scope="row" {left}>{escape(chapter)}</th>'
            f"<td {left}>{earned:g} of {possible:g}</td><td {left}>{done} of {total}</td></tr>"
            for chapter, earned, possible, done, total in self.rows
        )
        caption = '<caption style="text-align: left; color: inherit">Your progress</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def progress() -> Progress:
    """Chapters and points so far, best scores of the checks that ran in this folder's notebooks."""
    return Progress()


def _by_chapter() -> Iterator[tuple[str, list[Exercise]]]:
    for chapter in chapters():
        yield chapter, list(load(chapter).values())


def _done(own: list[Exercise]) -> int:
    return sum(points(it) >= it.points for it in own)


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
