"""The course: exercises that answer in the notebook, and the way from an author to a grade.

A learner needs four names: `check`, `hint`, `solution`, `progress`. Everything else is reached by
the command `course`.
"""

from course import history
from course.check import check
from course.hints import hint, solution
from course.record import progress

__all__ = ["check", "hint", "progress", "solution"]

history.watch()
