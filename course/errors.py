"""The one exception that the course raises for its users: a sentence that says what to do."""


class CourseError(Exception):
    """Something a person can mend; its text is shown as it is, without a traceback."""
