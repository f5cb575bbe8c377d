"""`make release-check`: builds what a release consists of, and tries it as strangers do.

    dist/tensorkit_course-VERSION.tar.gz    the sources
    dist/tensorkit_course-VERSION-....whl   the package, built from them
    bundle/tensorkit-course-VERSION.zip     what learners get

1. The version stands in `tensorkit/__init__.py` and has a section in CHANGELOG.md. With a tag, the
   tag is that version, its section is the newest, and nothing is uncommitted.
2. Sources and package are built, and `twine check --strict` reads them.
3. They hold the files of the repository and no others; learners get no solution notebook and no
   tool of grading.
4. Package and bundle are installed, each in an empty environment. The package alone imports
   `tensorkit`; with its extra `lab`, and from the bundle, `learners_half.py` runs a chapter.

Installing needs the network: pip takes the newest releases for the package, as it does for
everybody on that day, and the locked ones for the bundle.
"""

from __future__ import annotations

import argparse
import email
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHAPTER = "01_tensors"
CORE = """
import tensorkit as tk
x = tk.tensor([1.0, 2.0], requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [2.0, 4.0]
print("   tensorkit", tk.__version__, "from", tk.__path__[0])
"""


def main() -> None:
    options = argparse.ArgumentParser(description="Build a release and try it.")
    options.add_argument("--tag", help="the tag that is released, such as v0.1.0")
    options.add_argument("--notes", action="store_true", help="print the version's changes only")
    given = options.parse_args()
    version = version_of(ROOT)
    if given.notes:
        print(changes(ROOT, version))
        return
    check_version(ROOT, version, given.tag)
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        check(version, Path(folder).resolve())


def check(version: str, folder: Path) -> None:
    """Build, look into and install everything; `folder` is for what is thrown away."""
    files = set(_run("git", "ls-files", cwd=ROOT).splitlines())
    _say(f"building {version}")
    sources, package = build(ROOT / "dist", version)
    _run(sys.executable, "-m", "twine", "check", "--strict", str(sources), str(package))
    _say("looking into the sources, the package and the bundle")
    check_sources(sources, files)
    check_package(package, files, version)
    bundle = build_bundle(ROOT / "bundle", version)
    check_bundle(bundle, files)

    with tarfile.open(sources) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)

    _say("installing the package in an empty environment")
    python = _environment(folder / "with the package")
    _run(python, "-m", "pip", "install", "--quiet", str(package))
    brought = {line.split("==")[0] for line in _run(python, "-m", "pip", "freeze").split()}
    assert {"numpy"} == {name for name in brought if "tensorkit" not in name and "@" not in name}, (
        brought
    )
    _run(python, "-I", "-c", CORE, cwd=folder, is_shown=True)
    _run(python, "-m", "pip", "install", "--quiet", f"{package}[lab]")
    half = str(unpacked / "tests" / "release" / "learners_half.py")
    notebooks = str(unpacked / "notebooks")
    _run(python, half, "--notebooks", notebooks, CHAPTER, cwd=folder, is_shown=True)

    _say("installing the bundle in an empty environment")
    bundled = folder / "tensorkit-course"
    python = _environment(folder / "with the bundle")
    _run(python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt", cwd=bundled)
    notebooks = str(bundled / "notebooks")
    _run(python, half, "--notebooks", notebooks, CHAPTER, cwd=folder, is_shown=True)
    _say(f"{version} can be released: dist/ and {bundle.relative_to(ROOT).as_posix()}")


def version_of(root: Path) -> str:
    """The version, from the one place where it stands."""
    text = (root / "tensorkit" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'(?m)^__version__ = "(\d+\.\d+\.\d+)"$', text)
    return str(version)


def check_version(root: Path, version: str, tag: str | None) -> None:
    """Exit with a sentence if the version, its changes and the tag do not belong together."""
    if not changes(root, version):
        sys.exit(f"CHANGELOG.md has no section {version} with its changes.")
    if tag is None:
        return
    if tag != f"v{version}":
        sys.exit(f"The tag is {tag}, but tensorkit.__version__ says {version}.")
    newest = re.search(r"(?m)^## (.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if newest is None or newest[1] != version:
        sys.exit(f"The newest section of CHANGELOG.md must be {version} when that is released.")
    if changed := _run("git", "status", "--porcelain", cwd=root):
        sys.exit(f"A release is made of what is committed; here is more:\n{changed}")


def changes(root: Path, version: str) -> str:
    """The section of CHANGELOG.md about a version, without its heading; empty if there is none."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"(?ms)^## {re.escape(version)}$(.*?)(?=^## |\Z)", text)
    return section[1].strip() if section else ""


def build(to: Path, version: str) -> tuple[Path, Path]:
    """The sources, and the package built from them, alone in a folder.

    hatchling comes from this environment, where its version is locked.
    """
    shutil.rmtree(to, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(to), str(ROOT))
    name = f"tensorkit_course-{version}"
    expected = (to / f"{name}.tar.gz", to / f"{name}-py3-none-any.whl")
    assert set(to.iterdir()) == set(expected), sorted(to.iterdir())
    return expected


def build_bundle(to: Path, version: str) -> Path:
    """The archive for learners."""
    from course.authoring.bundle import bundle

    bundle(ROOT, to=to)
    return to / f"tensorkit-course-{version}.zip"


def check_sources(archive: Path, files: set[str]) -> None:
    """Fail unless the archive of sources holds the files of the repository, and only those."""
    with tarfile.open(archive) as content:
        names = {
            member.name.partition("/")[2] for member in content.getmembers() if not member.isdir()
        }
    _expect_same(names - {"PKG-INFO"}, files)


def check_package(wheel: Path, files: set[str], version: str) -> None:
    """Fail unless the package holds both Python packages, its configuration, and nothing else."""
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        metadata = content.read(f"tensorkit_course-{version}.dist-info/METADATA").decode()
    assert email.message_from_string(metadata)["Version"] == version
    _expect_same(
        {name for name in names if name.startswith(("course/", "tensorkit/"))},
        {name for name in files if name.startswith(("course/", "tensorkit/"))},
    )
    beside = re.compile(
        rf"tensorkit_course-{re.escape(version)}\.(dist-info/|data/data/(etc|share)/)"
    )
    others = {name for name in names if not name.startswith(("course/", "tensorkit/"))}
    assert not [name for name in others if not beside.match(name)], others


def check_bundle(archive: Path, files: set[str]) -> None:
    """Fail if learners would get an answer in a notebook, or what only authors need."""
    from course.authoring import bundle

    with zipfile.ZipFile(archive) as content:
        names = {name.partition("/")[2]: content.read(name) for name in content.namelist()}
    (wheel,) = (name for name in names if name.endswith(".whl"))
    released = {name for name in files if name.startswith("notebooks/")}
    _expect_same(names.keys() - {wheel}, {"README.md", "LICENSE", "requirements.txt", *released})
    for name in sorted(name for name in names if name.endswith(".ipynb")):
        cells = json.loads(names[name])["cells"]
        assert not any(cell.get("outputs") for cell in cells), f"{name} has outputs"
        assert names[name] == (ROOT / name).read_bytes(), f"{name} is not what is released"
    with zipfile.ZipFile(io.BytesIO(names[wheel])) as content:
        inside = set(content.namelist())
    for name in bundle.AUTHORS_ONLY:
        path = f"course/{name}"
        found = {each for each in inside if each == path or each.startswith(f"{path}/")}
        assert not found, found


def _expect_same(found: Iterable[str], expected: Iterable[str]) -> None:
    more, missing = set(found) - set(expected), set(expected) - set(found)
    assert not more, f"Files that do not belong there: {sorted(more)[:20]}"
    assert not missing, f"Files that are missing: {sorted(missing)[:20]}"


def _environment(folder: Path) -> str:
    """The Python of a new, empty environment."""
    venv.create(folder, with_pip=True)
    return str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


def _run(*command: str, cwd: Path | None = None, is_shown: bool = False) -> str:
    """What a program prints; exit with all it said if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        encoding="utf-8",
        stdout=None if is_shown else subprocess.PIPE,
        stderr=None if is_shown else subprocess.STDOUT,
    )
    if done.returncode:
        sys.exit(f"{done.stdout or ''}\nThis failed: {' '.join(command)}")
    return done.stdout or ""


def _say(what: str) -> None:
    print(f"-- {what}", flush=True)


if __name__ == "__main__":
    main()
