"""The installation that `make` begins with: what it says, and that nothing half-made is used."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

CLOSED_PORT = "127.0.0.1:9"  # the port for discarding, on which nothing listens


@pytest.fixture
def project(repository: Path, tmp_path: Path) -> Path:
    """What the installation reads of the project, in a folder with a space and an umlaut."""
    copy = tmp_path / "mein Kurs ü"
    (copy / "course").mkdir(parents=True)
    shutil.copy(repository / "pyproject.toml", copy)
    shutil.copytree(repository / "requirements", copy / "requirements")
    shutil.copytree(repository / "course" / "jupyter", copy / "course" / "jupyter")
    return copy


@pytest.fixture
def install(project: Path) -> ModuleType:
    """The program as a module, working in the project's copy."""
    file = project / "requirements" / "install.py"
    spec = importlib.util.spec_from_file_location("install", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(project: Path, *, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PIP_INDEX_URL": "http" + f"://{CLOSED_PORT}/simple",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }
    return subprocess.run(
        [sys.executable, project / "requirements" / "install.py", "lab"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.rest
def test_without_a_network_a_sentence_says_what_to_do(project: Path, install: ModuleType) -> None:
    done = _run(project)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("Making the environment .venv")
    assert done.stdout.splitlines()[1].startswith("Installing what learners use")
    assert done.stderr.startswith("install: No package index could be reached.")
    assert len(done.stderr.splitlines()) == 1
    assert not install.is_usable(install.read_notes()), "the next call begins anew"


def test_a_failed_step_leaves_a_complete_environment_as_it_was(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = {"folder": str(install.ROOT), "is_complete": True, "digests": {"lab": "older"}}
    install.VENV.mkdir()
    install.write_notes(complete)
    (install.VENV / "their own package").touch()

    def failing(*_: object) -> None:
        raise install.Failed("no network")

    monkeypatch.setattr(install, "is_usable", lambda notes, package="pip": True)
    monkeypatch.setattr(install, "step", failing)
    for _ in range(2):
        with pytest.raises(install.Failed):
            install.install("lab")
    assert install.read_notes() == complete
    assert (install.VENV / "their own package").exists()


def test_a_change_that_was_killed_is_made_again(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    install.VENV.mkdir()
    wanted = install.digests("lab")
    install.write_notes({"folder": str(install.ROOT), "is_complete": True, "digests": wanted})
    monkeypatch.setattr(install, "is_usable", lambda notes, package="pip": True)
    assert install.is_installed(wanted, install.read_notes())

    def killed(words: str, *_: str) -> None:
        if words == "Installing the course itself":
            raise SystemExit

    monkeypatch.setattr(install, "step", killed)
    with pytest.raises(SystemExit):
        install.install("teach")
    assert not install.is_installed(wanted, install.read_notes())


def test_what_is_installed_is_not_installed_again(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(install, "is_usable", lambda notes, package="pip": bool(notes))
    monkeypatch.setattr(install, "make_environment", lambda notes: install.VENV.mkdir())
    monkeypatch.setattr(install, "step", lambda words, *_: steps.append(words))
    install.install("teach")
    assert len(steps) == 2
    install.install("teach")
    install.install("lab")
    assert len(steps) == 2, "an instructor's packages include a learner's"
    install.install("dev")
    assert len(steps) == 4


@pytest.mark.parametrize(
    "changed", ["pyproject.toml", "requirements/lab.txt", "requirements/build.txt"]
)
def test_a_change_of_what_is_wanted_is_noticed(install: ModuleType, changed: str) -> None:
    before = install.digests("lab")
    with (install.ROOT / changed).open("a") as file:
        file.write("# changed\n")
    assert install.digests("lab") != before


@pytest.mark.rest
@pytest.mark.parametrize(
    "notes", [{"is_complete": False}, {"is_complete": True, "folder": "elsewhere"}]
)
def test_an_unfinished_or_moved_environment_is_made_anew(
    install: ModuleType, notes: dict[str, object]
) -> None:
    install.make_environment({})
    (install.VENV / "half").mkdir()
    install.write_notes({"folder": str(install.ROOT), **notes})
    assert not install.is_usable(install.read_notes())
    install.make_environment(install.read_notes())
    assert not (install.VENV / "half").exists()
    install.NOTES.write_text(json.dumps({"folder": str(install.ROOT), "is_complete": True}))
    assert install.is_usable(install.read_notes())
    assert not install.is_usable(install.read_notes(), "jupyterlab"), "as in a damaged one"


def test_without_a_network_the_environment_of_another_folder_stays(project: Path) -> None:
    (project / ".venv").mkdir()
    (project / ".venv" / "installed.json").write_text('{"is_complete": true, "folder": "there"}')
    (project / ".venv" / "their own package").touch()
    done = _run(project)
    assert done.returncode == 1
    assert "No package index could be reached" in done.stderr
    assert {file.name for file in (project / ".venv").iterdir()} == {
        "installed.json",
        "install.log",
        "their own package",
    }
    assert not (project / ".venv.before").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows makes links for administrators only")
def test_a_link_to_another_folders_environment_is_refused(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / ".venv"
    other.mkdir(parents=True)
    (other / "a package").touch()
    notes = {"is_complete": True, "folder": str(other.parent)}
    (other / "installed.json").write_text(json.dumps(notes))
    (project / ".venv").symlink_to(other)
    done = _run(project)
    assert done.returncode == 1
    assert f".venv is a link to the environment of {other.parent}" in done.stderr
    assert (other / "a package").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_a_second_installation_waits_for_the_first(
    install: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    order: list[str] = []

    def second() -> None:
        with install.alone():
            order.append("second")

    thread = threading.Thread(target=second)
    with install.alone():
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert "Another installation is at work" in capsys.readouterr().out


def test_a_file_in_the_place_of_the_environment_is_said(project: Path) -> None:
    (project / ".venv").write_text("mine")
    done = _run(project)
    assert done.returncode == 1
    assert "cannot be made" in done.stderr
    assert "Rename or remove what is there" in done.stderr
    assert "Traceback" not in done.stderr
    assert (project / ".venv").read_text() == "mine"


@pytest.mark.parametrize(
    ("number", "words"), [(errno.EROFS, "that you may write"), (errno.EEXIST, "Rename or remove")]
)
def test_a_folder_that_cannot_be_written_is_said(
    install: ModuleType, number: int, words: str
) -> None:
    assert words in install.next_step(OSError(number, ""))


def test_an_old_python_is_refused(install: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    with pytest.raises(install.Failed, match=r"needs Python 3\.11 or newer; this is Python 3\.10"):
        install.check_python()


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE\nREQUIREMENTS",
            "its hash differs",
        ),
        ("Could not fetch URL ...: There was a problem confirming the ssl", "No package index"),
        ("error: something else", r"    error: something else\nAll of its output"),
    ],
)
def test_the_cause_is_said(install: ModuleType, output: str, words: str) -> None:
    import re

    assert re.search(words, install.explained(output))
