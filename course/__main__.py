"""`python -m course` is the command `course`."""

from course.cli import main

main()
