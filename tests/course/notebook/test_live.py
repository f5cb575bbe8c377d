"""What a check notes for the instructor's live view, which costs no check its points."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sample
from checked_cells import checked

from course.notebook import live, record
from course.notebook.report import Report
from course.shared import identity
from course.shared.settings import settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the live view, switched on, and a learner's own chapter beside it."""
    (tmp_path / "01_tensors").mkdir()
    (tmp_path / "watch").mkdir()
    monkeypatch.chdir(tmp_path / "01_tensors")
    monkeypatch.setattr(record, "_in_memory", {})
    monkeypatch.setattr(live, "_complained", [])
    monkeypatch.setattr(live, "_writers", [])
    monkeypatch.delenv("COURSE_BUILD", raising=False)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    on = replace(settings(), watch_folder=str(tmp_path / "watch"))
    monkeypatch.setattr(live, "settings", lambda: on)
    return tmp_path / "watch"


def noted(folder: Path) -> list[dict[str, object]]:
    file = folder / f"{identity.learner()}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_check_adds_a_line_without_the_answer_and_says_so(folder: Path) -> None:
    told = [
        checked(strides_of=answer).notes[-1] for answer in (sample.bytes_apart, sample.strides_of)
    ]
    assert told[0] == told[1]
    assert told[0].startswith(f"Your results of checks are shown to your instructor, in {folder}")
    first, second = noted(folder)
    assert first.keys() == {"time", "exercise", "passed", "attempt"}
    assert (first["exercise"], first["passed"], second["passed"]) == ("sample-strides", False, True)
    assert abs(float(str(second["time"])) - time.time()) < 60


def test_the_group_of_the_folder_may_read_it_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        checked(strides_of=sample.strides_of)
    finally:
        os.umask(before)
    assert next(folder.iterdir()).stat().st_mode & 0o777 == 0o640


def test_nothing_is_noted_unless_it_is_switched_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "settings", settings)
    assert checked(strides_of=sample.strides_of).notes == ()
    assert list(folder.iterdir()) == []


def test_nothing_is_noted_outside_of_a_learners_own_notebook(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    assert checked(strides_of=sample.strides_of).notes == ()
    assert list(folder.iterdir()) == []


def _missing(folder: Path, file: Path) -> None:
    folder.rmdir()


def _full(folder: Path, file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(live.MOST_BYTES)


def _pipe(folder: Path, file: Path) -> None:
    os.mkfifo(file)


def _link(folder: Path, file: Path) -> None:
    (folder.parent / "other").write_text("")
    file.symlink_to(folder.parent / "other")


def _folder(folder: Path, file: Path) -> None:
    file.mkdir()


def _of_somebody_else(folder: Path, file: Path) -> None:
    file.write_text("")
    file.chmod(0o666)
    os.chown(file, 1, 1)


def _checked_twice() -> list[Report]:
    return [checked(strides_of=sample.strides_of) for _ in range(2)]


@pytest.mark.parametrize("spoil", [_missing, _full, _pipe, _link, _folder, _of_somebody_else])
def test_a_folder_that_takes_nothing_costs_no_points_and_one_sentence(
    folder: Path, spoil: Callable[[Path, Path], None]
) -> None:
    if spoil is _of_somebody_else and os.getuid() != 0:
        pytest.skip("needs root, to be several users")
    file = folder / f"{identity.learner()}.jsonl"
    spoil(folder, file)
    before = file.stat().st_size if file.exists() else None
    first, second = _checked_twice()
    assert (first.score, second.score) == (3.0, 3.0)
    assert first.notes[-1].startswith("Your instructor's live view does not get your checks (")
    assert second.notes == ()
    assert (file.stat().st_size if file.exists() else None) == before


def test_a_folder_that_does_not_answer_holds_a_check_up_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(live, "_append", lambda *_: answers.wait(30))
    begun = time.monotonic()
    first, second = _checked_twice()
    answers.set()
    assert time.monotonic() - begun < 2 * live.SECONDS
    assert "does not answer" in first.notes[-1]
    assert (first.score, second.score) == (3.0, 3.0)
