"""What exists in a sandbox: some files of this course, Python, and the learners' libraries."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import sys
import sysconfig
from functools import cache
from pathlib import Path

import tensorkit

COURSE_FILES = (
    "shared/errors.py",
    "notebook/plain.py",
    "notebook/limited.py",
    "notebook/quiet.py",
    "notebook/state.py",
    "notebook/history.py",
    "notebook/tracebacks.py",
    "engine/*.py",  # learners' parts of chapters 10 and 11 run among these
    "sandbox/*.py",
)
"""What of `course` exists in the sandbox, beside `sandboxed.py` as its `__init__`."""

IMPORTED = ("numpy", "matplotlib", "ipython", "matplotlib-inline", "graphviz", "safetensors")
"""The distributions that learners may import, with what these need."""


def lay_out(stage: Path) -> None:
    """The packages `tensorkit` and `course` as they exist in the sandbox."""
    library, course = Path(tensorkit.__path__[0]), Path(__file__).parents[1]
    files = [file for name in COURSE_FILES for file in course.glob(name)]
    copies = {stage / "course" / file.relative_to(course): file for file in files}
    files = [file for file in library.rglob("*") if file.is_file()]
    copies |= {stage / "tensorkit" / file.relative_to(library): file for file in files}
    copies[stage / "course" / "__init__.py"] = course / "sandbox" / "sandboxed.py"
    for copy, file in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
    for path in (stage, *stage.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@cache
def readable() -> tuple[str, ...]:
    """The files and folders of this machine that the sandbox shows: Python and its libraries."""
    paths = [entry for folder in _standard_library() for entry in _entries(folder)]
    paths += [str(distribution) for distribution in _distributions()]
    paths += ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo"]
    paths += [str(path) for path in Path(sys.base_prefix, "lib").glob("*.so*")]
    return tuple(dict.fromkeys(path for path in paths if Path(path).exists()))


def _standard_library() -> list[Path]:
    """The folders of the standard library, of an environment's Python too."""
    platform = sysconfig.get_path("platstdlib", vars={"platbase": sys.base_exec_prefix})
    return list(dict.fromkeys([Path(sysconfig.get_path("stdlib")), Path(platform)]))


def _entries(folder: Path) -> list[str]:
    """What lies in a folder of the standard library; its site-packages may hold this course."""
    left_out = ("site-packages", "dist-packages", "test", "idlelib", "lib2to3")
    return [str(path) for path in sorted(folder.iterdir()) if path.name not in left_out]


@cache
def _distributions() -> list[Path]:
    """What the distributions in `IMPORTED`, and those that they need, have installed."""
    wanted, seen, places = list(IMPORTED), set(), []
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # a requirement of another platform or Python
        tops = {Path(file.parts[0]) for file in distribution.files or ()}
        places += [Path(str(distribution.locate_file(top))) for top in tops if top.name != ".."]
        needed = [text for text in distribution.requires or () if "extra ==" not in text]
        wanted += [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in needed]
    left_out = ("bin", "__pycache__", "share", "include")
    return sorted({path for path in places if path.name not in left_out})


def import_path() -> list[str]:
    """`sys.path` in the sandbox: the standard library and the environment, no current folder."""
    standard = [folder / name for folder in _standard_library() for name in ("", "lib-dynload")]
    packages = [distribution.parent for distribution in _distributions()]
    return list(dict.fromkeys(str(path) for path in [*standard, *packages]))
