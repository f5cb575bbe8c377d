"""`course watch`: who is where, and that nothing that learners put into the folder harms it."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from test_exchange import ADA, EVE, needs_root
from typer.testing import CliRunner

from course.cli import commands
from course.grading import watch
from course.shared.errors import CourseError
from course.shared.settings import settings

CHAPTER = "01_tensors"


def note(
    folder: Path, learner: str, *checks: tuple[str, bool, int], owner: str | None = None
) -> Path:
    """A learner's file with these checks: exercise, whether it passed, attempt."""
    lines = [
        {"time": time.time(), "exercise": id, "passed": passed, "attempt": attempt}
        for id, passed, attempt in checks
    ]
    file = folder / f"{learner}.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    if owner:
        shutil.chown(file, owner)
    return file


def printed(folder: Path) -> str:
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(watch.view(CHAPTER, *watch.read(folder, CHAPTER), minutes=15))
    return console.export_text()


def row(text: str, *words: str) -> list[str]:
    """The cells of the row that holds these words."""
    line = next(line for line in text.splitlines() if all(word in line for word in words))
    return [cell.strip() for cell in line.strip("│ ").split("│")]


def test_it_counts_who_tried_passed_and_is_stuck_and_names_who_needs_help(tmp_path: Path) -> None:
    stuck = [("pixels", False, attempt) for attempt in (1, 2, 3)]
    note(tmp_path, "ada", *stuck)
    note(tmp_path, "eve", ("pixels", False, 1), ("what-shape", True, 1))
    note(tmp_path, "bob", ("pixels", False, 1), ("pixels", True, 2), ("pixels", False, 3))
    text = printed(tmp_path)
    assert "learners: 3" in text
    assert row(text, "pixels") == ["pixels", "3", "1", "1"]
    assert row(text, "what-shape") == ["what-shape", "1", "1", "0"]
    assert row(text, "ada") == ["ada", "pixels", "3", "0"]
    assert text.index("ada") < text.index("eve")
    assert "bob" not in text


def test_who_stopped_an_hour_ago_needs_no_help_now(tmp_path: Path) -> None:
    file = note(tmp_path, "ada", ("pixels", False, 4))
    values = {**json.loads(file.read_text()), "time": time.time() - 3600}
    file.write_text(json.dumps(values))
    text = printed(tmp_path)
    assert row(text, "pixels") == ["pixels", "1", "0", "1"]
    assert "ada" not in text


@needs_root
def test_a_file_of_somebody_else_does_not_count_and_is_named(tmp_path: Path) -> None:
    note(tmp_path, ADA, ("pixels", True, 1), owner=EVE)
    note(tmp_path, EVE, ("pixels", False, 1), owner=EVE)
    text = printed(tmp_path)
    assert row(text, "pixels") == ["pixels", "1", "0", "0"]
    assert f"Left out: '{ADA}.jsonl': It belongs to {EVE}." in text


def test_what_is_no_file_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to(note(tmp_path, "ada", ("pixels", True, 1)))
    (tmp_path / "folder.jsonl").mkdir()
    text = printed(tmp_path)
    assert "learners: 1" in text
    assert text.count("Left out: ") == 3


def test_no_name_and_no_line_reaches_the_terminal_as_it_is(tmp_path: Path) -> None:
    note(tmp_path, "\x1b[2J\x1b]0;gone", ("pixels", True, 1))
    note(tmp_path, "[red]ada", ("pixels", False, 1))
    note(tmp_path, "a" * 200, ("pixels", False, 1))
    file = note(tmp_path, "eve", ("\x1b[2J", True, 1), ("pixels", False, 1))
    lines = [b"\xff\x00", b"{", b"[" * 5000, b"3", b'{"time": NaN}', b"9" * 5000]
    for when in ("NaN", "1e999", "-1", "99999999999"):
        record = '{"time": %s, "exercise": "pixels", "passed": true, "attempt": 1}' % when  # noqa: UP031
        lines.append(record.encode())
    lines.append(b'{"time": 1, "exercise": "pixels", "passed": true, "attempt": 1e999}')
    file.write_bytes(b"\n".join([*lines, file.read_bytes()]))
    text = printed(tmp_path)
    assert "\x1b" not in text
    assert row(text, "pixels") == ["pixels", "2", "0", "0"]
    assert row(text, "[red]ada")[1] == "pixels"


def test_a_huge_file_and_many_files_are_read_in_part(tmp_path: Path) -> None:
    file = note(tmp_path, "ada", ("pixels", True, 1))
    line = file.read_bytes()
    with file.open("r+b") as opened:
        opened.truncate(1 << 40)
        opened.seek(0, os.SEEK_END)
        opened.write(b"\n" + line)
    (tmp_path / "eve.jsonl").write_bytes(b"\n" * (1 << 20))
    for n in range(watch.MOST_FILES):
        (tmp_path / f"{n}.jsonl").write_bytes(b"{}\n" * 100)
    begun = time.process_time()
    checks, _ = watch.read(tmp_path, CHAPTER)
    assert time.process_time() - begun < 10
    assert set(checks) <= {"ada"}
    for n in range(watch.MOST_FILES):
        (tmp_path / f"{n}.jsonl").unlink()
    assert set(watch.read(tmp_path, CHAPTER)[0]) == {"ada"}


@needs_root
def test_who_fills_the_folder_hides_nobody_and_is_named(tmp_path: Path) -> None:
    for n in range(watch.MOST_FILES + 10):
        (tmp_path / f"{n}.jsonl").touch()
        shutil.chown(tmp_path / f"{n}.jsonl", EVE)
    note(tmp_path, ADA, ("pixels", True, 1), owner=ADA)
    said = " ".join(printed(tmp_path).split())
    assert "learners: 1" in said
    assert f"Left out: {EVE} has 2010 files, of which 2000 are read." in said
    assert f"Left out: {2001 - watch.MOST_NAMED} more." in said


def test_more_entries_than_are_looked_at_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MOST_ENTRIES", 3)
    for learner in ("ada", "bob", "cem", "eve"):
        note(tmp_path, learner, ("pixels", True, 1))
    text = printed(tmp_path)
    assert "learners: 3" in text
    assert "Left out: There are 3 files or more; the rest is not read." in text


def test_only_a_file_of_a_learners_name_is_that_learners(tmp_path: Path) -> None:
    # both of these were read as ada's, and the third as that of a learner without a name
    note(tmp_path, "ada", ("pixels", False, 1))
    note(tmp_path, "bob", ("pixels", True, 1)).rename(tmp_path / "ada")
    note(tmp_path, "", ("pixels", False, 1))
    text = printed(tmp_path)
    assert row(text, "pixels") == ["pixels", "1", "0", "0"]
    for name in ("ada", ".jsonl"):
        assert f"Left out: '{name}': Its name is no learner's." in text


def test_the_command_needs_the_setting_and_prints_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CourseError, match="name a folder as watch_folder"):
        CliRunner().invoke(commands.app, ["watch", "1", "--once"], catch_exceptions=False)
    on = replace(settings(), watch_folder=str(tmp_path / "watch"))
    monkeypatch.setattr(watch, "settings", lambda: on)
    with pytest.raises(CourseError, match=r"watch cannot be read \(No such file"):
        CliRunner().invoke(commands.app, ["watch", "1", "--once"], catch_exceptions=False)
    (tmp_path / "watch").mkdir()
    note(tmp_path / "watch", "ada", ("pixels", False, 1))
    said = CliRunner().invoke(commands.app, ["watch", "1", "--once"]).output
    assert row(said, "ada")[:3] == ["ada", "pixels", "1"]


def test_it_draws_itself_anew_until_ctrl_c(tmp_path: Path) -> None:
    program = f"""
from dataclasses import replace
from course.grading import watch
on = replace(watch.settings(), watch_folder={str(tmp_path)!r})
watch.settings = lambda: on
watch.SECONDS = 0.1
watch.show({CHAPTER!r}, minutes=15)
"""
    screen, other = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=other,
        stderr=other,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(other)

    def wait_for(word: bytes) -> None:
        seen = b""
        while word not in seen:
            seen += os.read(screen, 65536)  # ends with an OSError if the program does

    wait_for(b"learners: 0")
    note(tmp_path, "ada", ("pixels", False, 1))
    wait_for(b"learners: 1")
    started.send_signal(signal.SIGINT)
    assert started.wait(10) == 0
    os.close(screen)
