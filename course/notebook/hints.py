"""`hint("id")` unfolds one hint at a time; `solution("id")` opens when it helps and not before."""

from __future__ import annotations

from datetime import date
from html import escape

from course.notebook import record
from course.notebook.exercise import Exercise, load, no_such_exercise
from course.notebook.report import prose
from course.shared.settings import settings


class Shown:
    """A text with an optional piece of code, shown as text and as HTML."""

    def __init__(self, text: str, code: str = "") -> None:
        self.text, self.code = text, code

    def __repr__(self) -> str:
        return f"{self.text}\n\n{self.code}" if self.code else self.text

    def _repr_html_(self) -> str:
        code = f"<pre>{escape(self.code)}</pre>" if self.code else ""
        return f"<p>{prose(self.text)}</p>{code}"


def hint(exercise_id: object = None) -> Shown:
    """The next hint to an exercise; called again, the one after it."""
    exercise = _find(exercise_id)
    if exercise is None:
        return Shown(no_such_exercise(exercise_id, "hint"))
    number = record.note_hint(exercise)
    last = len(exercise.hints)
    more = (
        "Run this cell again for the next one."
        if number < last
        else f'This was the last one; `solution("{exercise.id}")` says when it opens.'
    )
    return Shown(f"Hint {number} of {last}: {exercise.hints[number - 1]} ({more})")


def solution(exercise_id: object = None) -> Shown:
    """A worked solution: once the exercise is passed, or enough different attempts were checked.

    Where the instructor has set a date, from that day on, and not before.
    """
    exercise = _find(exercise_id)
    if exercise is None:
        return Shown(no_such_exercise(exercise_id, "solution"))
    opens = settings().solutions_open
    if opens is False:
        return Shown("Your instructor has switched worked solutions off.")
    if isinstance(opens, date) and date.today() < opens:
        return Shown(f"Worked solutions open on {opens.isoformat()}.")
    needed = settings().solution_after_attempts
    tried = record.attempts(exercise)
    if isinstance(opens, date) or record.has_passed(exercise) or tried >= needed:
        variant = exercise.variant_for(record.owner())
        return Shown(f"One way to write `{exercise.name}`:", variant.solution_source)
    has_more = record.hints_opened(exercise) < len(exercise.hints)
    return Shown(
        f"The solution opens when the exercise is passed, or after {needed} different attempts; "
        f"so far {tried}." + f' `hint("{exercise.id}")` may help.' * has_more
    )


def _find(exercise_id: object) -> Exercise | None:
    return load().get(exercise_id) if type(exercise_id) is str else None
