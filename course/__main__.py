"""The command `course`, also as `python -m course`.

Whoever has the notebooks' packages alone is told in a sentence what the command needs.
"""

import sys

from course.shared import extras


def main() -> None:
    """Run the command."""
    try:
        from course.cli.commands import main as run
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.exit(f"course: {extras.missing(missing.name, 'lab', 'This command')}")
    run()


if __name__ == "__main__":
    main()
