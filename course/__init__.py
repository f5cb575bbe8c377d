"""The course: exercises that answer in the notebook, and the way from an author to a grade.

A learner needs five names: `check`, `hint`, `solution`, `progress`, and `transplant`, which lets
the library run on the learner's own functions. Everything else is reached by the command `course`.
"""

import sys

from course.shared import extras
from course.shared.errors import CourseError

try:
    extras.needed("numpy", "lab", "The course")
except CourseError as problem:  # here, because every module of the course imports it
    sys.exit(f"course: {problem}")

from course import engine as engine
from course.notebook import history, state, tracebacks
from course.notebook.check import check
from course.notebook.hints import hint, solution
from course.notebook.record import progress
from course.notebook.transplant import transplant

__all__ = ["check", "hint", "progress", "solution", "transplant"]

state.keep_names()
history.watch()
tracebacks.shorten()
