"""Takes what a learner handed in out of its folder, whatever it is: `read`, `collect`.

Regular files only, no link followed, bounded. Of the bytes nothing is read here: a worker unpacks
them (`Submission.notebook`), and `notebook.matching` makes cells of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pwd
import re
import stat
import zipfile
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from course.grading.session import remove
from course.notebook.matching import AGAIN, MOST_BYTES, Refused, too_large

MOST_FILES = 1000
"""The most entries of a folder or an archive."""
MOST_COLLECTED, DEEPEST = 5 * MOST_BYTES, 8
"""The most bytes that are collected of one submission, and the deepest level of its folders."""


@dataclass(frozen=True)
class Submission:
    """A submission as it lies in its folder."""

    learner: str
    chapter: str
    content: bytes
    """The bytes of the notebook, or of the archive that holds it."""
    timestamp: str | None = None
    repaired: tuple[str, ...] = ()
    is_archive: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()

    def notebook(self) -> bytes:
        """The notebook's bytes, out of the archive if it came in one. Raises Refused."""
        expected = f"{self.chapter}.ipynb"
        return _from_archive(self.content, expected) if self.is_archive else self.content


def read(folder: Path, learner: str, chapter: str) -> Submission:
    """The notebook of a submission, found under its name or, alone, under another.

    Raises Refused.
    """
    notes: list[str] = []
    with _opened(str(folder)) as opened:
        names = sorted(entry.name for entry in _entries(opened))
        links = [name for name in names if stat.S_ISLNK(_status(opened, name).st_mode)]
        if links:
            notes.append(f"Links are not followed: {', '.join(map(_shown, links[:5]))}.")
        name = _notebook([name for name in names if name not in links], chapter, notes)
        content, timestamp = _content(opened, name), _timestamp(opened, notes)
        is_archive = name.lower().endswith(".zip")
        return Submission(learner, chapter, content, timestamp, tuple(notes), is_archive)


def collect(
    folder: Path,
    to: Path,
    ignored: Callable[[str, list[str]], Set[str]],
    owners: Set[int] | None = None,
) -> list[str]:
    """Copy the regular files of a folder that its learner can change meanwhile.

    to: a folder that is made. ignored: as `shutil.ignore_patterns` gives it. owners: the users to
    whom the folder and its files may belong; None for any. The list names what is left out: links,
    devices, what is too large, too deep, of somebody else or cannot be read.

    Raises Refused if the folder belongs to somebody else.
    """
    left_out: list[str] = []
    files, room = MOST_FILES - 1, MOST_COLLECTED  # one more file holds the time

    def copy(opened: Folder, to: Path, depth: int) -> None:
        nonlocal files, room
        _check_owner(_status(opened, "."), owners)
        to.mkdir(parents=True)
        names = [entry.name for entry in os.scandir(opened)]
        wanted = set(names) - ignored("", names)
        for name in sorted(wanted, key=lambda name: (not name.endswith(".ipynb"), name)):
            files -= 1
            try:
                if files < 0:
                    raise Refused(f"There are more than {MOST_FILES} files.")
                if stat.S_ISDIR(_status(opened, name).st_mode) and depth < DEEPEST:
                    with _opened(name, opened) as inner:
                        copy(inner, to / name, depth + 1)
                else:
                    content = _content(opened, name, owners)
                    room -= len(content)
                    if room < 0:
                        raise Refused("All files together are too large.")
                    (to / name).write_bytes(content)
            except (OSError, Refused) as problem:
                left_out.append(f"{_shown(name)}: {problem}")
                if files < 0:
                    return

    with _opened(str(folder)) as opened:
        copy(opened, to, 0)
    return left_out[:MOST_NAMED]


MOST_NAMED = 20
"""How many of the files that were left out are named."""


def owners_of(folder: Path) -> set[int]:
    """The numbers of the users who own a folder and its entries, as far as these are collected.

    Raises OSError for a link, for what is no folder, and for one that cannot be read.
    """
    with _opened(str(folder)) as opened, os.scandir(opened) as entries:
        names = [".", *(entry.name for entry in islice(entries, MOST_FILES))]
        return {_status(opened, name).st_uid for name in names}


def account(uid: int) -> str:
    """The name of a user of this machine, or the number of one who has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"the user number {uid}"


def _check_owner(status: os.stat_result, owners: Set[int] | None) -> None:
    if owners is not None and status.st_uid not in owners:
        raise Refused(f"It belongs to {account(status.st_uid)}.")


Folder = int
"""An open folder: its descriptor, which stays with the folder whatever is done to its name."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@contextlib.contextmanager
def _opened(name: str, folder: Folder | None = None) -> Iterator[Folder]:
    opened = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)


def exchange_secret(folder: Path) -> str | None:
    """What nbgrader's `submit` put beside the notebook, to find the learner's feedback by."""
    try:
        with _opened(str(folder)) as opened:
            text = _content(opened, "submission_secret.txt")[:201].decode("ascii")
        return text if re.fullmatch(r"[\w.+ :-]{1,200}", text) else None
    except (OSError, Refused, UnicodeDecodeError):
        return None


def _entries(folder: Folder) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number >= MOST_FILES:
                raise Refused(f"The folder holds more than {MOST_FILES} files.")
            yield entry


TIMESTAMP, _UNREADABLE = "timestamp.txt", "timestamp.unreadable"
NO_MOMENT = f"{TIMESTAMP} says"
"""How the note begins about a moment that cannot be read."""
_NOT_HANDED_IN = {TIMESTAMP, _UNREADABLE, "submission_secret.txt"}


def _notebook(names: list[str], chapter: str, notes: list[str]) -> str:
    """Which of these files is the notebook, or the archive that holds it. Raises Refused."""
    expected = f"{chapter}.ipynb"
    if expected in names:
        return expected
    seen = [name for name in names if not name.startswith(".")]
    named = [name for name in seen if name.lower().endswith(".ipynb")]
    # as browsers and mail programs save it
    named = named or [name for name in seen if name.lower().endswith((".ipynb.txt", ".ipynb.json"))]
    if len(named) == 1:
        notes.append(f"The notebook was called {_shown(named[0])}; it is taken for {expected}.")
        return named[0]
    archives = [name for name in names if name.lower().endswith(".zip")]
    if not named and len(archives) == 1:
        notes.append(f"The notebook came in the archive {_shown(archives[0])}.")
        return archives[0]
    if named:
        raise Refused(f"There are {len(named)} notebooks, and none is called {expected}. {AGAIN}")
    other_files = [_shown(name) for name in names if name not in _NOT_HANDED_IN][:5]
    instead = f", but {', '.join(other_files)}" if other_files else ""
    advice = f"It must lie in the folder {chapter} itself: save it there and hand it in again."
    raise Refused(f"There is no notebook {expected}{instead}. {advice}")


def _content(folder: Folder, name: str, owners: Set[int] | None = None) -> bytes:
    opened = os.open(name, _FILE, dir_fd=folder)
    status = os.fstat(opened)
    if not stat.S_ISREG(status.st_mode):
        os.close(opened)
        raise Refused(f"{_shown(name)} is not a file.")
    with os.fdopen(opened, "rb") as file:
        _check_owner(status, owners)
        if status.st_size > MOST_BYTES:
            is_archive = name.lower().endswith(".zip")
            raise Refused(_LARGE_ARCHIVE if is_archive else too_large(status.st_size))
        return file.read(MOST_BYTES + 1)[:MOST_BYTES]


_LARGE_ARCHIVE = "The archive is too large. Hand in the notebook alone, not packed."


def _from_archive(content: bytes, expected: str) -> bytes:
    if content.count(b"PK\x01\x02") > MOST_FILES:  # the head of an entry in its list of contents
        raise Refused(f"The archive holds more than {MOST_FILES} files.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".ipynb")]
            entries = [entry for entry in entries if "__MACOSX" not in entry.filename]
            named = [entry for entry in entries if Path(entry.filename).name == expected] or entries
            if len(named) != 1:
                raise Refused(f"The archive holds {len(named)} notebooks instead of one.")
            if named[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Refused("The archive is packed in an unusual way: pack it as a plain .zip.")
            if named[0].file_size > MOST_BYTES:
                raise Refused(too_large(named[0].file_size))
            with archive.open(named[0]) as file:
                return file.read(MOST_BYTES + 1)[:MOST_BYTES]
    except Refused:
        raise
    except Exception as problem:  # whatever zipfile makes of a damaged one
        raise Refused(f"The archive cannot be read ({type(problem).__name__}).") from None


def _status(folder: Folder, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _timestamp(folder: Folder, notes: list[str]) -> str | None:
    """When it was collected, as the collector noted it, or whoever put it there by hand."""
    for name in (TIMESTAMP, _UNREADABLE):
        try:
            content = _content(folder, name)
        except FileNotFoundError:
            continue
        except (OSError, Refused):
            content = b"?"
        moment = _moment(content)
        if content.strip() and moment is None:
            notes.append(
                f"{NO_MOMENT} {_shown(content.decode(errors='replace').strip())}, which is "
                "no moment such as '2027-03-01 22:10:00 UTC' and nothing else, in ASCII: it counts "
                "as in time."
            )
        return moment
    return None


def _moment(content: bytes) -> str | None:
    """A moment in UTC as ISO 8601 writes it; None for what nbgrader does not read as the same."""
    from nbgrader.utils import parse_utc  # nbgrader takes a second to import

    try:
        text = content.decode("ascii").strip() if len(content) <= 100 else ""
        moment = parse_utc(datetime.fromisoformat(re.sub(r" (UTC|Z)$", "+00:00", text)))
        return moment.replace(tzinfo=UTC).isoformat() if moment == parse_utc(text) else None
    except (ValueError, OverflowError):  # the 30th of February
        return None


def set_aside_timestamp(folder: Path) -> None:
    """Rename a timestamp.txt that names no moment: nbgrader stops at one, for the whole class."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), _opened(str(folder)) as opened:
        if _timestamp(opened, []) is None and os.path.lexists(folder / TIMESTAMP):
            remove(folder / _UNREADABLE)  # no file can be renamed to the name of a folder
            (folder / TIMESTAMP).rename(folder / _UNREADABLE)


def _shown(name: str) -> str:
    return ascii(name[:80])
