"""The pages for instructors name commands, files and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from course import cli

DOCS = Path(__file__).parents[2] / "docs"
TESTS = Path(__file__).parent


@pytest.mark.parametrize("page", ["grading.md", "instructors.md", "learners.md"])
def test_every_course_command_exists_with_its_options(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for verb, options in set(re.findall(r"\bcourse ([a-z]+)((?: [^\s`#(]+)*)", text)):
        if verb not in {it.callback.__name__ for it in cli.app.registered_commands if it.callback}:
            continue  # prose
        known = CliRunner().invoke(cli.app, [verb, "--help"], terminal_width=200).output
        for option in re.findall(r"--[a-z]+", options):
            assert option in known, f"{page}: course {verb} {option}"


def test_every_test_that_the_page_about_grading_names_exists() -> None:
    text = (DOCS / "grading.md").read_text(encoding="utf-8")
    sources = "\n".join(it.read_text(encoding="utf-8") for it in TESTS.rglob("*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources, name
    for name in re.findall(r"`(test_\w+\.py)`", text):
        assert list(TESTS.rglob(name)), name
