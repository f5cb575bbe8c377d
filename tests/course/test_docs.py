"""The pages for instructors name commands, files and tests that exist."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from course.cli import commands

DOCS = Path(__file__).parents[2] / "docs"
TESTS = Path(__file__).parent


@pytest.mark.parametrize("page", ["grading.md", "hosted.md", "instructors.md", "learners.md"])
def test_every_course_command_exists_with_its_options(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for verb, options in set(re.findall(r"\bcourse ([a-z]+)((?: [^\s`#(]+)*)", text)):
        if verb not in {
            it.callback.__name__ for it in commands.app.registered_commands if it.callback
        }:
            continue  # prose
        known = CliRunner().invoke(commands.app, [verb, "--help"], terminal_width=200).output
        for option in re.findall(r"--[a-z]+", options):
            assert option in known, f"{page}: course {verb} {option}"


def test_every_test_that_the_page_about_grading_names_exists() -> None:
    text = (DOCS / "grading.md").read_text(encoding="utf-8")
    sources = "\n".join(it.read_text(encoding="utf-8") for it in TESTS.rglob("*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources, name
    for name in re.findall(r"`(test_\w+\.py)`", text):
        assert list(TESTS.rglob(name)), name


def programs() -> list[str]:
    """The programs for rosters, in the order of the page: Moodle's, then Canvas's."""
    text = (DOCS / "instructors.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(import csv.*?)```", text, re.DOTALL)
    assert len(found) == 2
    return found


def run(program: str, *arguments: str, folder: Path) -> list[dict[str, str]]:
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py", *arguments],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        check=True,
    )
    return list(csv.DictReader(done.stdout.splitlines()))


def test_moodles_participants_become_a_roster(tmp_path: Path) -> None:
    rows = (
        '"First name","Last name","ID number","Email address",Groups\nZoë,Nyx,zn1,z@example.org,A\n'
    )
    (tmp_path / "participants.csv").write_text(rows, encoding="utf-8-sig")
    names = ("ID number", "First name", "Last name", "Email address")
    roster = run(programs()[0], "participants.csv", *names, folder=tmp_path)
    assert roster == [
        {"id": "zn1", "first_name": "Zoë", "last_name": "Nyx", "email": "z@example.org"}
    ]


CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Chapter 01 (4711),Current Score
    Points Possible,,,,,20.00,(read only)
"Nyx, Zoë",7,0007,zn1,Group A,,
"Student, Test",9,,,Group A,,
"Ohm, Eve",8,0008,eo2,Group A,3.0,
"""


def test_canvass_export_becomes_a_roster(tmp_path: Path) -> None:
    (tmp_path / "exported.csv").write_text(CANVAS, encoding="utf-8-sig")
    roster = run(programs()[1], "exported.csv", folder=tmp_path)
    assert [(it["id"], it["first_name"]) for it in roster] == [("zn1", "Zoë"), ("eo2", "Eve")]
