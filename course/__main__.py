"""The command `course`, also as `python -m course`.

Whoever has the notebooks' packages alone is told in a sentence what the command needs.
"""

import sys

from course.shared import extras
from course.shared.errors import CourseError


def main() -> None:
    """Run the command."""
    try:
        for package in ("typer", "rich"):
            extras.needed(package, "lab", "This command")
    except CourseError as problem:
        sys.exit(f"course: {problem}")
    from course.cli.commands import main as run

    run()


if __name__ == "__main__":
    main()
