"""`course bundle`: what learners get, in one archive that needs neither git nor make.

    tensorkit-course/
        README.md           three commands for Linux, macOS and Windows
        requirements.txt    the versions that were tested, and the wheel, each with its hash
        tensorkit_course-VERSION-py3-none-any.whl
        notebooks/          as they are released

The wheel is built from a copy of the project in which `AUTHORS_ONLY` is missing, and so from no
list that could name what is not there. The same project gives the same archive, byte for byte, and
another one a wheel of another version: pip does not replace what is installed by its equal.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from course.shared import extras, files, paths
from course.shared.errors import CourseError

FOLDER = "tensorkit-course"
"""The folder that the archive unpacks to."""

AUTHORS_ONLY = ("authoring", "cli/demo.py", "cli/demo_learners.py", "grading", "sandbox")
"""What learners do not get of `course`: writing, releasing and grading."""

README = """\
# {title}

You need Python 3.11 or newer. Open a terminal in this folder.

Linux and macOS:

    python3 -m venv .venv
    .venv/bin/python -m pip install -r requirements.txt
    .venv/bin/course lab

Windows:

    py -m venv .venv
    .venv\\Scripts\\python -m pip install -r requirements.txt
    .venv\\Scripts\\course lab

JupyterLab opens on your own copies of the notebooks, in the folder `work`. Nothing there is ever
overwritten. Next time only the last command is needed, and no network. If you get a newer archive,
unpack it over this folder and run the last two commands: your work stays as it is; `course update`
then takes your answers into the newer chapters. `course doctor` says what is wrong with a notebook
before you hand it in, and `course reset` begins an exercise again.

To hand a chapter in, send its notebook `work/NN_topic/NN_topic.ipynb` as you were told; where your
instructor shares an exchange folder with you (the variable COURSE_EXCHANGE; not on Windows), choose
Nbgrader > Assignment List in JupyterLab and press Submit.

The checks answer in the notebook, on your machine. Therefore what they compare with lies on your
machine too: whoever looks into the installed package `course.exercises` finds a solution to every
exercise. Look there and you lose the exercise; nobody else does.
"""


def bundle(root: Path | None = None, *, to: Path | None = None) -> Path:
    """Write the archive for learners and say where it lies; its path.

    root: a checkout of the project; by default the course folder. to: a folder; by default
    `bundle/` in the checkout.

    Raises CourseError if `root` is no checkout, if there is nothing to release yet, or if the wheel
    cannot be built.
    """
    root = paths.course_root() if root is None else root
    project = _project(root)
    chapters = paths.released_chapters(root)
    if not chapters:
        raise CourseError("There is no released notebook to put into a bundle: course build.")
    with tempfile.TemporaryDirectory(prefix="course-bundle-") as folder:
        readme = README.format(title=project["description"]).encode()
        stage = staged(root, Path(folder) / "project", readme)
        wheel = build_wheel(stage, Path(folder) / "dist")
        content = {
            "README.md": readme,
            "LICENSE": (root / "LICENSE").read_bytes(),
            "requirements.txt": requirements(root, wheel).encode(),
            wheel.name: wheel.read_bytes(),
            **_notebooks(root, chapters),
        }
        name = "-".join([FOLDER, *wheel.name.split("-")[1:2]]).partition("+")[0] + ".zip"
    archive = (root / "bundle" if to is None else to) / name
    files.write(archive, _zipped(content))
    print(f"{archive}: {len(chapters)} chapters, {archive.stat().st_size / 1e6:.1f} MB")
    return archive


def build_wheel(project: Path, to: Path) -> Path:
    """The wheel of the project in a folder, built without the network.

    Raises CourseError with hatchling's words if that fails.
    """
    extras.needed("hatchling", "teach", "Building a wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    done = subprocess.run([*command, str(to)], cwd=project, capture_output=True, text=True)
    if done.returncode:
        raise CourseError(f"hatchling could not build the wheel:\n{done.stderr.strip()}")
    (wheel,) = to.glob("*.whl")
    return wheel


def requirements(root: Path, wheel: Path) -> str:
    """The learners' lock and the wheel: one file for `pip install -r`."""
    locked = (root / "requirements" / "lab.txt").read_text(encoding="utf-8")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"./{wheel.name} \\\n    --hash=sha256:{digest}\n{locked}"


def _project(root: Path) -> dict[str, Any]:
    """The table `project` of the checkout's pyproject.toml."""
    file = root / "pyproject.toml"
    if not file.is_file():
        raise CourseError(f"A bundle is made from a checkout of the project; {root} is none.")
    project: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    return project


def staged(root: Path, stage: Path, readme: bytes) -> Path:
    """A copy of the project as learners get it, in a folder that is made."""
    stage.mkdir()
    (stage / "README.md").write_bytes(readme)
    for file in ("pyproject.toml", "LICENSE"):
        shutil.copy(root / file, stage)
    shutil.copytree(root / "tensorkit", stage / "tensorkit", ignore=_LEFT_BEHIND)
    shutil.copytree(root / "course", stage / "course", ignore=_LEFT_BEHIND)
    for name in AUTHORS_ONLY:
        path = stage / "course" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    mark(stage)
    return stage


def mark(stage: Path) -> None:
    """Give the copy a version of its own, made of its content: 0.1.0+g0123abcd.

    One that has been changed since it was marked gets another.
    """
    files = sorted(path for path in stage.rglob("*") if path.is_file())
    content = b"".join(
        file.relative_to(stage).as_posix().encode() + file.read_bytes() for file in files
    )
    digest = hashlib.sha256(content).hexdigest()[:8]
    home = stage / "tensorkit" / "__init__.py"
    text = home.read_text(encoding="utf-8")
    marked = re.sub(r'(?m)^(__version__ = "[^"+]+)[^"]*', rf"\1+g{digest}", text)
    home.write_text(marked, encoding="utf-8", newline="\n")


_LEFT_BEHIND = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")


def _notebooks(root: Path, chapters: Iterable[str]) -> dict[str, bytes]:
    """The released chapters, by path in the bundle."""
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for chapter in chapters
        for file in sorted((paths.notebooks(root) / chapter).rglob("*"))
        if file.is_file() and ".ipynb_checkpoints" not in file.parts
    }


def _zipped(content: Mapping[str, bytes]) -> bytes:
    """An archive of these files that depends on nothing but them."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return written.getvalue()
