"""What `make release-check` refuses, and what the files around a release keep to."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import release_check as release

CHANGES = "# Changes\n\n## 1.2.0\n\n- One.\n- Two.\n\n## 1.1.0\n\n- Old.\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A committed project of version 1.2.0."""
    if shutil.which("git") is None:
        pytest.skip("a release is made of a git checkout, and git is not installed")
    (tmp_path / "tensorkit").mkdir()
    (tmp_path / "tensorkit" / "__init__.py").write_text('"""It."""\n\n__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b.c commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    return tmp_path


def test_a_version_that_belongs_to_its_tag_passes(project: Path) -> None:
    version = release.version_of(project)
    release.check_version(project, version, None)
    release.check_version(project, version, "v1.2.0")
    assert release.changes(project, version) == "- One.\n- Two."
    assert release.changes(project, "1.1.0") == "- Old."


def test_a_version_without_changes_is_refused(project: Path) -> None:
    with pytest.raises(SystemExit, match=r"no section 1\.3\.0"):
        release.check_version(project, "1.3.0", None)


@pytest.mark.parametrize("tag", ["v1.1.0", "1.2.0", "v1.2.0rc1"])
def test_a_tag_of_another_version_is_refused(project: Path, tag: str) -> None:
    with pytest.raises(SystemExit, match=rf"The tag is {tag}, but .* says 1\.2\.0"):
        release.check_version(project, "1.2.0", tag)


def test_changes_that_are_not_named_yet_are_refused_with_a_tag(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(CHANGES.replace("## 1.2", "## Unreleased\n\n## 1.2"))
    release.check_version(project, "1.2.0", None)
    with pytest.raises(SystemExit, match=r"newest section of CHANGELOG\.md must be 1\.2\.0"):
        release.check_version(project, "1.2.0", "v1.2.0")


def test_what_is_not_committed_is_refused_with_a_tag(project: Path) -> None:
    (project / "grades.csv").write_text("ada,20")
    with pytest.raises(SystemExit, match=r"what is committed; here is more:\n\?\? grades.csv"):
        release.check_version(project, "1.2.0", "v1.2.0")


FILES = {"pyproject.toml", "course/check.py", "tensorkit/__init__.py", "solutions/01.py"}


def _sources(folder: Path, names: set[str]) -> Path:
    archive = folder / "sources.tar.gz"
    with tarfile.open(archive, "w:gz") as content:
        for name in names:
            content.addfile(tarfile.TarInfo(f"tensorkit_course-1.2.0/{name}"))
    return archive


def test_sources_hold_the_repository_and_nothing_else(tmp_path: Path) -> None:
    release.check_sources(_sources(tmp_path, {*FILES, "PKG-INFO"}), FILES)
    with pytest.raises(AssertionError, match=r"do not belong there: \['course/gradebook.db'\]"):
        release.check_sources(_sources(tmp_path, {*FILES, "course/gradebook.db"}), FILES)
    with pytest.raises(AssertionError, match=r"missing: \['solutions/01.py'\]"):
        release.check_sources(_sources(tmp_path, FILES - {"solutions/01.py"}), FILES)


def _package(folder: Path, names: set[str], version: str = "1.2.0") -> Path:
    wheel = folder / "package.whl"
    with zipfile.ZipFile(wheel, "w") as content:
        for name in names:
            content.writestr(name, "")
        metadata = f"Metadata-Version: 2.4\nName: tensorkit-course\nVersion: {version}\n"
        content.writestr("tensorkit_course-1.2.0.dist-info/METADATA", metadata)
    return wheel


PACKAGED = {"course/check.py", "tensorkit/__init__.py"}


def test_a_package_holds_its_two_packages_and_nothing_else(tmp_path: Path) -> None:
    settings = "tensorkit_course-1.2.0.data/data/etc/jupyter/nbgrader_config.py"
    release.check_package(_package(tmp_path, {*PACKAGED, settings}), FILES, "1.2.0")
    for more in ("course/01.csv", "work/01_tensors/01_tensors.ipynb", "solutions/01.py"):
        with pytest.raises(AssertionError, match=re.escape(more)):
            release.check_package(_package(tmp_path, {*PACKAGED, more}), FILES, "1.2.0")
    with pytest.raises(AssertionError, match="missing"):
        release.check_package(_package(tmp_path, {"course/check.py"}), FILES, "1.2.0")
    with pytest.raises(AssertionError):
        release.check_package(_package(tmp_path, PACKAGED, version="1.1.0"), FILES, "1.2.0")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    return release.build_bundle(folder, release.version_of(release.ROOT))


@pytest.fixture(scope="module")
def files() -> set[str]:
    if shutil.which("git") is None or not (release.ROOT / ".git").exists():
        pytest.skip("a release is made of a git checkout")
    done = subprocess.run(
        ["git", "ls-files"], cwd=release.ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines())


def test_the_bundle_of_this_checkout_passes(bundle: Path, files: set[str]) -> None:
    release.check_bundle(bundle, files)


def _changed(bundle: Path, to: Path, name: str, change: bytes | None) -> Path:
    """The bundle with another content of one file, or with a file more."""
    with zipfile.ZipFile(bundle) as content:
        entries = {entry: content.read(entry) for entry in content.namelist()}
    (full,) = [entry for entry in entries if entry.endswith(name)] or [f"tensorkit-course/{name}"]
    entries[full] = change if change is not None else _with_a_judge(entries[full])
    archive = to / "changed.zip"
    with zipfile.ZipFile(archive, "w") as content:
        for entry, data in entries.items():
            content.writestr(entry, data)
    return archive


def _with_a_judge(wheel: bytes) -> bytes:
    written = io.BytesIO(wheel)
    with zipfile.ZipFile(written, "a") as content:
        content.writestr("course/grading/judge.py", "")
    return written.getvalue()


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("solutions/01_tensors/01_tensors.ipynb", b"{}", "do not belong there"),
        ("work/01_tensors/01_tensors.ipynb", b"{}", "do not belong there"),
        ("01_tensors.ipynb", b'{"cells": [{"outputs": [1]}]}', "has outputs"),
        ("01_tensors.ipynb", b'{"cells": []}', "is not what is released"),
        (".whl", None, r"course/grading/judge\.py"),
    ],
)
def test_a_bundle_with_too_much_is_refused(
    bundle: Path, files: set[str], tmp_path: Path, name: str, change: bytes | None, reason: str
) -> None:
    with pytest.raises(AssertionError, match=reason):
        release.check_bundle(_changed(bundle, tmp_path, name, change), files)


def test_a_program_that_fails_ends_the_check_with_its_words() -> None:
    with pytest.raises(SystemExit, match=r"oh dear\s+This failed: .*python"):
        release._run(sys.executable, "-c", "raise SystemExit('oh dear')")


WORKFLOWS = sorted((release.ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_actions_by_their_major_version(workflow: Path) -> None:
    named = re.findall(r"uses: +(\S+)", workflow.read_text(encoding="utf-8"))
    assert named
    assert [
        action for action in named if not re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", action)
    ] == []


def test_only_the_job_that_publishes_may_speak_to_pypi() -> None:
    text = (release.ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = dict(re.findall(r"(?ms)^  (\w+):\n(.*?)(?=^  \w|\Z)", text.partition("\njobs:\n")[2]))
    assert [name for name, job in jobs.items() if "id-token: write" in job] == ["publish"]
    assert [name for name, job in jobs.items() if "contents: write" in job] == ["page"]
    assert "needs: check" in jobs["publish"]
    assert "needs: publish" in jobs["page"]
    assert "://" not in text


def test_the_citation_names_no_version() -> None:
    # it would be a second place to change for a release
    text = (release.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "\nlicense: BSD-3-Clause\n" in text
    assert not re.search(r"(?m)^(version|date-released|doi|url|repository.*):", text)
