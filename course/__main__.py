"""The command `course`, also as `python -m course`.

Whoever has the notebooks' packages alone is told in a sentence what the command needs.
"""

import sys


def main() -> None:
    """Run the command."""
    try:
        from course.cli import main as run
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.exit(
            "course: The notebooks run without it, but this command needs the package "
            f"{missing.name}: pip install 'tensorkit-course[lab]'"
        )
    run()


if __name__ == "__main__":
    main()
