"""The exceptions of the course: a sentence for its users, and the time limit of an answer."""


class CourseError(Exception):
    """Something a person can mend; its text is shown as it is, without a traceback."""


class TimeLimit(BaseException):
    """Raised inside an answer whose time is up; no `except Exception` catches it."""
