"""The command `course`: runs a verb, and says what went wrong in a sentence without a traceback."""

from __future__ import annotations

import errno
import io
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from course.cli.learning import LEARN, TEACH
from course.cli.teaching import app
from course.shared import extras
from course.shared.errors import CourseError

if TYPE_CHECKING:
    from typer.models import CommandInfo


def main() -> None:
    """Run the command; an error that a person can mend is a sentence without a traceback."""
    # jsonschema would spend a second on the grammar of an address format that nothing here uses;
    # None makes its import fail as if the optional package were not installed
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    from course.shared import paths

    _escape_what_a_terminal_lacks()
    if find_spec("course.authoring") is None:  # learners' bundles leave out what these verbs run
        for verb in app.registered_commands:
            verb.hidden = verb.rich_help_panel == TEACH
        for group in app.registered_groups:
            group.hidden = group.rich_help_panel == TEACH
    try:
        with suppress(CourseError):  # a verb that needs the course says what is missing
            paths.tell_of_another(paths.course_root())
        app()
    except CourseError as problem:
        print(f"course: {problem}", file=sys.stderr)
        sys.exit(1)
    except ImportError as missing:
        if not missing.name:
            raise
        print(f"course: {_not_installed(missing)}", file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        sentence = (
            "This machine, or a limit of it (ulimit -v), gives this command too little memory."
        )
        print(f"course: {sentence} Mend that, and use the same command again.", file=sys.stderr)
        sys.exit(1)
    except OSError as problem:
        if problem.errno not in _NOT_WRITABLE:
            raise
        place = problem.filename or "The disk"
        again = "Mend that, and use the same command again."
        sentence = f"{place} cannot be read or written by you ({problem.strerror})"
        print(f"course: {sentence}. {again}", file=sys.stderr)
        sys.exit(1)


def _escape_what_a_terminal_lacks() -> None:
    """Write a sign that the terminal's encoding lacks as its number, and raise no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
"""What a machine says of files that are closed or read-only, and of a disk that is full."""


def _not_installed(missing: ImportError) -> str:
    """Which installation the command needs, whose module or package is missing."""
    verb = " ".join(["course", *sys.argv[1:2]])
    module = str(missing.name).partition(".")[0]
    if module == "course":
        # what learners get holds the checks, not the modules that write, release and grade
        return f"`{verb}` is for authors; learners' bundles leave it out."
    called = next(
        (command for command in app.registered_commands if _name(command) in sys.argv[1:2]), None
    )
    extra = "lab" if called is not None and called.rich_help_panel == LEARN else "teach"
    return extras.missing(module, extra, f"`{verb}`")


def _name(command: CommandInfo) -> str:
    return str(command.name or getattr(command.callback, "__name__", ""))
