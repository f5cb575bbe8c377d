"""The exceptions of the course: one sentence for its users, one end for code that runs too long."""


class CourseError(Exception):
    """Something a person can mend; its text is shown as it is, without a traceback."""


class TimeLimit(BaseException):
    """Raised inside an answer whose time is up; no `except Exception` catches it."""
