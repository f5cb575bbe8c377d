"""What travels: the project's wheel, and the archive that learners get, file by file."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from course.authoring import bundle
from course.notebook import exercise
from course.shared import paths
from course.shared.errors import CourseError

ROOT = Path(__file__).parents[3]
CHAPTERS = paths.released_chapters(ROOT)

FOLDERS = (
    "authoring",
    "cli",
    "engine",
    "exercises",
    "grading",
    "jupyter",
    "notebook",
    "sandbox",
    "shared",
)
"""What `course` consists of. Instructors' own files lie beside these folders."""
CONFIGURATION = {
    "etc/jupyter/nbgrader_config.py",
    "etc/jupyter/jupyter_server_config.py",
    "etc/ipython/ipython_kernel_config.py",
    "share/jupyter/lab/settings/overrides.json",
}


@pytest.fixture(scope="module")
def project_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle.build_wheel(ROOT, tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle.bundle(ROOT, to=tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    return folder / bundle.FOLDER


@pytest.fixture(scope="module")
def learners_wheel(unpacked: Path) -> Path:
    (wheel,) = unpacked.glob("*.whl")
    return wheel


def _names(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as content:
        return set(content.namelist())


def _of_course(wheel: Path) -> set[str]:
    return {name.removeprefix("course/") for name in _names(wheel) if name.startswith("course/")}


def _files_of_course(without: Iterable[str] = ()) -> set[str]:
    """The files of `course` by path, without some files and folders."""
    home = ROOT / "course"
    files = {*home.glob("*.py"), home / "settings.toml"}
    files |= {path for folder in FOLDERS for path in (home / folder).rglob("*.*")}
    names = {file.relative_to(home).as_posix() for file in files if "__pycache__" not in file.parts}
    return {name for name in names if not {name, name.partition("/")[0]} & set(without)}


def _rest(wheel: Path) -> set[str]:
    """Names in a wheel outside its two packages, without the version in them."""
    others = (name for name in _names(wheel) if not name.startswith(("course/", "tensorkit/")))
    return {re.sub(r"^[\w.]+-[\w.+]+\.(data|dist-info)/", r"\1/", other) for other in others}


def test_no_grades_travel_with_a_wheel(tmp_path: Path) -> None:
    project = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", "gradebook.db*", "submitted", "exchange")
    for name in ("course", "tensorkit"):
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    for name in ("01.csv", "gradebook.db", "notes.txt", "submitted/ada/01_tensors/mine.txt"):
        (project / "course" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / "course" / name).write_text("ada,20")
    found = _of_course(bundle.build_wheel(project, tmp_path))
    assert found == _files_of_course()


def test_the_projects_wheel_holds_both_packages_and_nothing_else(project_wheel: Path) -> None:
    assert _of_course(project_wheel) == _files_of_course()
    assert _of_tensorkit(project_wheel) == _sources_of_tensorkit()
    assert _rest(project_wheel) == _metadata_and_data()


def test_the_learners_wheel_lacks_what_only_authors_need(learners_wheel: Path) -> None:
    assert _of_course(learners_wheel) == _files_of_course(bundle.AUTHORS_ONLY)
    assert _of_tensorkit(learners_wheel) == _sources_of_tensorkit()
    assert _rest(learners_wheel) == _metadata_and_data()


def _of_tensorkit(wheel: Path) -> set[str]:
    return {name for name in _names(wheel) if name.startswith("tensorkit/")}


def _sources_of_tensorkit() -> set[str]:
    files = (path for path in (ROOT / "tensorkit").rglob("*") if path.suffix == ".py")
    return {file.relative_to(ROOT).as_posix() for file in files} | {"tensorkit/py.typed"}


def _metadata_and_data() -> set[str]:
    metadata = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    return {
        *(f"dist-info/{name}" for name in metadata),
        *(f"data/data/{name}" for name in CONFIGURATION),
    }


def test_the_archive_holds_the_wheel_and_the_released_notebooks(archive: Path) -> None:
    names = {name.removeprefix(f"{bundle.FOLDER}/") for name in _names(archive)}
    wheels = {name for name in names if name.endswith(".whl")}
    assert len(wheels) == 1
    released = {
        file.relative_to(ROOT).as_posix()
        for chapter in CHAPTERS
        for file in (paths.notebooks(ROOT) / chapter).rglob("*")
        if file.is_file() and ".ipynb_checkpoints" not in file.parts
    }
    assert released
    assert names - wheels == {"README.md", "LICENSE", "requirements.txt"} | released


def test_notebooks_travel_as_they_are_released(unpacked: Path) -> None:
    for chapter in CHAPTERS:
        extracted, original = (
            paths.notebook_in(paths.notebooks(root), chapter) for root in (unpacked, ROOT)
        )
        assert extracted.read_bytes() == original.read_bytes()


def test_nothing_names_this_machine(archive: Path, learners_wheel: Path) -> None:
    here = [str(ROOT), str(Path.home()), sys.prefix, str(archive.parent)]
    for file in (archive, learners_wheel):
        with zipfile.ZipFile(file) as content:
            for name in content.namelist():
                data = content.read(name)
                assert not [path for path in here if len(path) > 1 and os.fsencode(path) in data], (
                    name
                )


def test_the_same_project_gives_the_same_archive(archive: Path, tmp_path: Path) -> None:
    assert bundle.bundle(ROOT, to=tmp_path).read_bytes() == archive.read_bytes()


def test_a_changed_project_has_a_wheel_of_another_version(
    learners_wheel: Path, tmp_path: Path
) -> None:
    # pip leaves what is installed alone when the version of a wheel is the same
    readme = (ROOT / "README.md").read_bytes()
    one, other = bundle.staged(ROOT, tmp_path / "one", readme), tmp_path / "other"
    bundle.staged(ROOT, other, readme + b"changed")
    versions = {
        re.search(r'__version__ = "(.+)"', (folder / "tensorkit/__init__.py").read_text("utf-8"))[1]  # type: ignore[index]
        for folder in (one, other)
    }
    assert len(versions) == 2
    assert all(re.fullmatch(r"[\d.]+\+g[0-9a-f]{8}", version) for version in versions)
    assert re.search(r"-[\d.]+\+g[0-9a-f]{8}-", learners_wheel.name)


def test_requirements_pin_the_wheel_and_no_tools_of_authors(unpacked: Path) -> None:
    wheel = next(unpacked.glob("*.whl"))
    text = (unpacked / "requirements.txt").read_text(encoding="utf-8")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert text.startswith(f"./{wheel.name} \\\n    --hash=sha256:{digest}\n")
    pinned = set(re.findall(r"(?m)^([\w.-]+)==", text))
    assert {"jupyterlab", "nbgrader", "numpy", "matplotlib", "traitlets"} <= pinned
    assert not {"pytest", "mypy", "ruff", "uv", "hatchling", "jupytext", "playwright"} & pinned
    assert "://" not in text


def test_requirements_are_complete(unpacked: Path) -> None:
    text = (unpacked / "requirements.txt").read_text(encoding="utf-8")
    pinned = set(re.findall(r"(?m)^([\w.-]+)==", text))
    lock = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    for name in pinned:  # with every version and every hash
        assert text.count(f"\n{name}==") == lock.count(f"\n{name}==")
        needed = (
            (Requirement(require) for require in metadata.requires(name) or [])
            if _is_here(name)
            else ()
        )
        for requirement in needed:
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                assert canonicalize_name(requirement.name) in pinned, f"{name} needs {requirement}"


def _is_here(name: str) -> bool:
    """False for what only another platform or another Python needs."""
    return next(iter(metadata.distributions(name=name)), None) is not None


@pytest.fixture(scope="module")
def installed(
    learners_wheel: Path, unpacked: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, str]:
    """The variables of a program that finds the learners' packages first."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(learners_wheel) as content:
        content.extractall(site)
    return {**os.environ, "PYTHONPATH": str(site), "COURSE_ROOT": str(unpacked)}


def _python(
    *arguments: str, environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=dict(environment),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.rest
def test_every_module_that_travels_can_be_imported(
    installed: Mapping[str, str], unpacked: Path
) -> None:
    files = _files_of_course(without=(*bundle.AUTHORS_ONLY, "jupyter", "__main__.py"))
    names = (file.removesuffix(".py").replace("/", ".") for file in files if file.endswith(".py"))
    modules = ", ".join(
        f"course.{name.removesuffix('.__init__')}" for name in names if name != "__init__"
    )
    code = f"import course, tensorkit, {modules}; print(course.__file__, tensorkit.__file__)"
    done = _python("-c", code, environment=installed, folder=unpacked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(installed["PYTHONPATH"]) == 2


def test_checks_answer_without_the_authors_modules(
    installed: Mapping[str, str], unpacked: Path
) -> None:
    code = (
        "from course.notebook.check import judge; from course.notebook.exercise import load\n"
        "print(sum(judge(each, each.reference).score for each in load('01_tensors').values()))"
    )
    done = _python("-c", code, environment=installed, folder=unpacked)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == sum(asked.points for asked in exercise.load("01_tensors").values())


@pytest.mark.parametrize("verb", ["build", "demo", "bundle"])
def test_a_verb_that_stays_at_home_says_so(
    verb: str, installed: Mapping[str, str], unpacked: Path
) -> None:
    done = _python("-m", "course", verb, environment=installed, folder=unpacked)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"course {verb}" in done.stderr
    assert "authors" in done.stderr


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    with pytest.raises(CourseError, match="made from a checkout"):
        bundle.bundle(tmp_path)


def test_a_course_without_released_notebooks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    with pytest.raises(CourseError, match="no released notebook"):
        bundle.bundle(tmp_path)
