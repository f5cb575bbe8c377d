"""The course: exercises that answer in the notebook, and the way from an author to a grade.

A learner needs five names: `check`, `hint`, `solution`, `progress`, and `transplant`, which lets
the library run on the learner's own functions. Everything else is reached by the command `course`.
"""

from course import history, tracebacks
from course.check import check
from course.hints import hint, solution
from course.record import progress
from course.transplant import transplant

__all__ = ["check", "hint", "progress", "solution", "transplant"]

history.watch()
tracebacks.shorten()
