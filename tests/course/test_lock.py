"""The lock file and the programs of CI: complete, with hashes, and without any address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ADDRESS = re.compile(r"\w+://|--(extra-)?index-url|--find-links|\bgit@|\s@\s+\S+:")
PINNED = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)( ; (?P<where>.+))? \\$")


@pytest.fixture(scope="module")
def lock() -> str:
    return (Path(__file__).parents[2] / "requirements.lock").read_text(encoding="utf-8")


INSTALLS_AND_RUNS = """
    requirements.lock pyproject.toml Makefile .ci/run .github/workflows/ci.yml
    .github/workflows/site.yml .pre-commit-config.yaml course/settings.toml
    course/jupyter/overrides.json
"""


@pytest.mark.parametrize("name", INSTALLS_AND_RUNS.split())
def test_no_address_stands_in_what_installs_and_runs(repository: Path, name: str) -> None:
    text = (repository / name).read_text(encoding="utf-8")
    assert ADDRESS.findall(text) == []
    assert str(Path.home()) + "/" not in text


def test_every_requirement_is_pinned_with_hashes(lock: str) -> None:
    for requirement in re.split(r"\n(?=\w)", lock.partition("\n#    make lock\n")[2]):
        assert PINNED.match(requirement.splitlines()[0]), requirement
        assert "--hash=sha256:" in requirement, requirement


def test_every_dependency_is_locked(repository: Path, lock: str) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    names = {re.split(r"[<>=!~ \[]", it)[0].lower() for it in wanted}
    assert names <= {m["name"] for line in lock.splitlines() if (m := PINNED.match(line))}


def test_the_lock_is_for_every_system(lock: str) -> None:
    conditions = {m["where"] for line in lock.splitlines() if (m := PINNED.match(line))}
    assert any("win32" in (it or "") for it in conditions)
    assert any("darwin" in it or "!= 'win32'" in it for it in conditions if it)


def test_ci_takes_the_version_of_pytorch_that_the_project_names(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (oracle,) = project["optional-dependencies"]["oracle"]
    assert f'"{oracle}"' in (repository / ".ci/run").read_text(encoding="utf-8")


def test_make_alone_lists_every_verb(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony.split() == re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE)
