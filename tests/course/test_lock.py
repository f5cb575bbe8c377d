"""The lock files and the programs of CI: complete, with hashes, and without any address."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

ADDRESS = re.compile(r"\w+://|--(extra-)?index-url|--find-links|\bgit@|\s@\s+\S+:")
PINNED = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)( ; (?P<where>.+))? \\$")


LOCKS = ("core", "lab", "teach", "dev", "build")


@pytest.fixture(scope="module")
def locks(repository: Path) -> Mapping[str, str]:
    """The text of each lock file."""
    folder = repository / "requirements"
    return {name: (folder / f"{name}.txt").read_text(encoding="utf-8") for name in LOCKS}


def _pinned(lock: str) -> list[re.Match[str]]:
    """What a lock file pins: name, version and condition."""
    return [found for line in lock.splitlines() if (found := PINNED.match(line))]


def _versions(lock: str) -> set[tuple[str, str]]:
    return {(package["name"], package["version"]) for package in _pinned(lock)}


def _names(lock: str) -> set[str]:
    return {package["name"] for package in _pinned(lock)}


INSTALLS_AND_RUNS = """
    requirements/core.txt requirements/lab.txt requirements/teach.txt requirements/dev.txt
    requirements/build.txt requirements/install.py pyproject.toml Makefile .ci/run
    .github/workflows/ci.yml .github/workflows/site.yml .pre-commit-config.yaml
    course/settings.toml
    course/jupyter/overrides.json
"""


@pytest.mark.parametrize("name", INSTALLS_AND_RUNS.split())
def test_no_address_stands_in_what_installs_and_runs(repository: Path, name: str) -> None:
    text = (repository / name).read_text(encoding="utf-8")
    assert ADDRESS.findall(text) == []
    assert str(Path.home()) + "/" not in text


@pytest.mark.parametrize("name", LOCKS)
def test_every_requirement_is_pinned_with_hashes(locks: Mapping[str, str], name: str) -> None:
    requirements = re.split(r"\n(?=\w)", locks[name])[1:]
    assert requirements
    for requirement in requirements:
        assert PINNED.match(requirement.splitlines()[0]), requirement
        assert "--hash=sha256:" in requirement, requirement


def test_everybody_gets_versions_of_one_resolution(locks: Mapping[str, str]) -> None:
    core, lab, teach, dev, build = (_versions(locks[name]) for name in LOCKS)
    assert core < lab < teach < dev
    assert build < dev


@pytest.mark.parametrize("name", ["lab", "teach", "dev"])
def test_every_dependency_is_locked(repository: Path, locks: Mapping[str, str], name: str) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"][name]
    names = {re.split(r"[<>=!~ \[]", requirement)[0].lower() for requirement in wanted} - {
        project["name"]
    }
    assert names <= _names(locks[name])


def test_the_core_is_what_notebooks_import(locks: Mapping[str, str]) -> None:
    assert _names(locks["core"]) == {"numpy"}


def test_the_locks_are_for_every_system(locks: Mapping[str, str]) -> None:
    conditions = {package["where"] for package in _pinned(locks["lab"])}
    assert any("win32" in (condition or "") for condition in conditions)
    assert any(
        "darwin" in condition or "!= 'win32'" in condition for condition in conditions if condition
    )


def test_ci_takes_the_version_of_pytorch_that_the_project_names(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (oracle,) = project["optional-dependencies"]["oracle"]
    assert f'"{oracle}"' in (repository / ".ci/run").read_text(encoding="utf-8")


def test_make_alone_lists_every_verb(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony.split() == re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE)
