"""Where the course lies: its root folder, the folders in it, and the names of its chapters.

Every command finds the root in the same way, from whatever folder it is started: see
`course_root`. Nothing here reads or writes a notebook.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from course.shared.errors import CourseError

DISTRIBUTION = "tensorkit-course"


def course_root() -> Path:
    """The folder of the course, the one that holds `notebooks/`; the first of these that exists:

    1. the folder that the variable COURSE_ROOT names;
    2. the folder from which this distribution was installed: the checkout for `pip install .` and
       `pip install -e .`, the folder of the wheel file for a bundle;
    3. the nearest folder that holds `notebooks/`, from the current one upward.

    Where 2 or 3 may only be read, as on a hub, it is `~/tensorkit-course` in its place.

    Raises CourseError if there is none, or if COURSE_ROOT names a folder without `notebooks/`.
    """
    if named := os.environ.get("COURSE_ROOT"):
        root = Path(named).expanduser().absolute()
        if not _is_course(root):
            raise CourseError(
                f"COURSE_ROOT is {root}, but there is no folder `notebooks` in it: "
                "set it to the folder of the course."
            )
        return root
    current = Path.cwd()
    for folder in (*_installed_from(), current, *current.parents):
        if _is_course(folder):
            return folder if os.access(folder, os.W_OK) else _own_folder(folder)
    raise CourseError(
        "The course folder was not found: change into it (the folder that holds `notebooks`), "
        "or name it in the variable COURSE_ROOT."
    )


@cache
def tell_of_another(root: Path) -> bool:
    """Whether the current folder is of another course than `root`; prints that once."""
    current = Path.cwd()
    courses = (
        folder
        for folder in (current, *current.parents)
        if _is_course(folder) and solutions(folder).is_dir()
    )
    if "COURSE_ROOT" in os.environ or (course := next(courses, root)).resolve() == root.resolve():
        return False
    print(
        f"course: This works in {root}, from where it was installed, not in {course}, where you "
        f"are. For that one: export COURSE_ROOT={shlex.quote(str(course))}",
        file=sys.stderr,
    )
    return True


def solutions(root: Path) -> Path:
    """Texts and built notebooks with the answers."""
    return root / "solutions"


def notebooks(root: Path) -> Path:
    """Released notebooks, built and never edited."""
    return root / "notebooks"


def work(root: Path) -> Path:
    """The learner's own copies."""
    return root / "work"


def notebook_in(folder: Path, chapter: str) -> Path:
    """The notebook of a chapter in `solutions`, `notebooks` or `work`.

    >>> notebook_in(Path("work"), "01_tensors").as_posix()
    'work/01_tensors/01_tensors.ipynb'
    """
    return folder / chapter / f"{chapter}.ipynb"


def released_chapters(root: Path) -> list[str]:
    """The names of the chapters in `notebooks/`, in order."""
    folder = notebooks(root)
    return sorted(
        path.name for path in folder.iterdir() if notebook_in(folder, path.name).is_file()
    )


def written_chapters(root: Path) -> list[str]:
    """The names of the chapters that have a text in `solutions/`, in order."""
    return sorted(text.stem for text in solutions(root).glob("[0-9]*.py"))


def check_exercises(root: Path) -> None:
    """Raises CourseError if a checkout's exercises are not those that this program runs.

    After `pip install .` the program has a copy: what is changed in the checkout would be ignored.
    """
    installed = Path(__file__).parents[1] / "exercises"
    folder = root / "course" / "exercises"
    for file in sorted(folder.rglob("*.py")):
        name = file.relative_to(folder)
        copy = installed / name
        if not copy.is_file() or copy.read_bytes() != file.read_bytes():
            raise CourseError(
                f"course/exercises/{name.as_posix()} is not what is installed, so a change in it "
                "has no effect. Install once so that changes count: pip install -e '.[teach]'"
            )


def chapter_named(name: str, chapters: list[str]) -> str:
    """The one chapter that `name` means: its name, its number or its topic.

    >>> chapter_named("1", ["01_tensors", "02_shapes"])
    '01_tensors'

    Raises CourseError if no chapter is meant.
    """
    number = name.lstrip("0") if re.fullmatch(r"[0-9]+", name) else None
    for chapter in chapters:
        written_number, _, topic = chapter.partition("_")
        if name in (chapter, topic) or written_number.lstrip("0") == number:
            return chapter
    there_are = ", ".join(chapters) or "none yet"
    raise CourseError(f"There is no chapter {name!r}. The chapters: {there_are}.")


def _is_course(folder: Path) -> bool:
    return (folder / "notebooks").is_dir()


def _own_folder(shared: Path) -> Path:
    """A folder in the home directory for `work/`, with a link to the shared notebooks."""
    folder = Path.home() / DISTRIBUTION
    with contextlib.suppress(OSError):  # the folder exists, or the home directory is read-only
        folder.mkdir(exist_ok=True)
        (folder / "notebooks").symlink_to(shared / "notebooks")
    return folder if _is_course(folder) else shared


def _installed_from() -> Iterator[Path]:
    """The folder that pip noted (in `direct_url.json`) when it installed from this machine."""
    try:
        noted = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return
    url = urlsplit(json.loads(noted)["url"]) if noted else None
    if url is not None and url.scheme == "file":
        source = Path(url2pathname(url.path))
        yield source if source.is_dir() else source.parent


def scripts_on_path() -> None:
    """Let this process, and what it starts, find the programs of this environment by name.

    `course` in JupyterLab's terminal and the `alembic` that nbgrader starts for a new gradebook are
    among them; in an environment that is not activated they would not be found.
    """
    scripts = sysconfig.get_path("scripts")
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
