"""Every nbgrader program finds the course from any folder, and JupyterLab needs no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest
import tiny

from course.authoring import release
from course.shared import paths

ENVIRONMENT = Path(sysconfig.get_path("data"))
INSTALLED = {
    "etc/jupyter/nbgrader_config.py": "nbgrader_config.py",
    "etc/jupyter/jupyter_server_config.py": "jupyter_server_config.py",
    "etc/ipython/ipython_kernel_config.py": "ipython_kernel_config.py",
    "share/jupyter/lab/settings/overrides.json": "overrides.json",
}


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return tiny.write_course(tmp_path / "course")


def _nbgrader(
    course: Path, environment: Mapping[str, str], *arguments: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run nbgrader from another folder, in an environment that is not activated."""
    elsewhere = course.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    variables = {**environment, "COURSE_ROOT": str(course), "PATH": os.defpath, **more}
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=elsewhere,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("installed", "source"), INSTALLED.items())
def test_the_environment_has_the_configuration_of_this_checkout(
    repository: Path, installed: str, source: str
) -> None:
    expected = repository / "course" / "jupyter" / source
    assert (ENVIRONMENT / installed).read_bytes() == expected.read_bytes(), "run: make"


@pytest.mark.rest
def test_nbgrader_finds_the_course_from_any_folder(
    course: Path, environment: Mapping[str, str]
) -> None:
    done = _nbgrader(course, environment, "list")
    assert done.returncode == 0, done.stderr
    assert "Released assignments" in done.stderr
    assert (course / "course" / "exchange").is_dir()
    assert (course / "work").is_dir()


def test_a_file_in_the_courses_folder_counts_in_every_folder(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # elsewhere `course grade` wrote into another gradebook than the one that nbgrader read
    url = "postgresql://grader@host/course"
    (course / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.CourseDirectory.db_url = {url!r}\n"
    )
    monkeypatch.setenv("COURSE_ROOT", str(course))
    monkeypatch.chdir(tmp_path)
    assert release.nbgrader_config().CourseDirectory.db_url == url


@pytest.mark.rest
def test_a_hub_has_its_exchange_elsewhere(course: Path, environment: Mapping[str, str]) -> None:
    hub = course.parent / "hub"
    done = _nbgrader(course, environment, "list", COURSE_EXCHANGE=str(hub))
    assert done.returncode == 0, done.stderr
    assert hub.is_dir()
    assert not (course / "course" / "exchange").exists()


@pytest.mark.rest
def test_a_new_gradebook_needs_no_activated_environment(
    course: Path, environment: Mapping[str, str]
) -> None:
    done = _nbgrader(course, environment, "db", "student", "list")
    assert done.returncode == 0, done.stderr
    assert (course / "course" / "gradebook.db").is_file()


@pytest.mark.rest
def test_a_course_that_is_not_found_is_a_warning(
    course: Path, environment: Mapping[str, str]
) -> None:
    done = _nbgrader(course, environment, "list", COURSE_ROOT=str(course / "nowhere"))
    assert "there is no folder `notebooks` in it" in done.stderr


def test_nothing_of_jupyterlab_asks_the_network(repository: Path) -> None:
    overrides = json.loads((repository / "course/jupyter/overrides.json").read_text())
    notification = overrides["@jupyterlab/apputils-extension:notification"]
    assert notification == {"fetchNews": "false", "checkForUpdates": False}


def test_overrides_name_settings_that_jupyterlab_has(repository: Path) -> None:
    overrides = json.loads((repository / "course/jupyter/overrides.json").read_text())
    for plugin, values in overrides.items():
        package, _, name = plugin.partition(":")
        schema = ENVIRONMENT / "share/jupyter/lab/schemas" / package / f"{name}.json"
        assert set(values) <= set(json.loads(schema.read_text())["properties"]), plugin


@pytest.mark.rest
def test_a_kernel_does_not_warn_of_its_own_machine(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    program = (
        "import nbformat, nbclient\n"
        "cells = [nbformat.v4.new_code_cell('1')]\n"
        "nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells)).execute()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=dict(environment),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "TCP" not in done.stderr


def test_older_texts_are_not_submitted() -> None:
    from course.authoring.release import nbgrader_config
    from course.cli.copies import OLDER

    assert OLDER in nbgrader_config().CourseDirectory.ignore


def test_folders_are_those_that_the_commands_use(course: Path) -> None:
    from course.authoring.release import nbgrader_config

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_ROOT", str(course))
        config = nbgrader_config()
    assert Path(config.CourseDirectory.root) == course
    assert config.CourseDirectory.source_directory == paths.solutions(course).name
    assert config.CourseDirectory.release_directory == paths.notebooks(course).name
    assert Path(config.Exchange.assignment_dir) == paths.work(course)
