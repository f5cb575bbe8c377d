"""The committed notebooks are what their texts and exercises say."""

from __future__ import annotations

from pathlib import Path

from course.authoring import build
from course.shared import paths


def test_the_committed_notebooks_are_what_their_texts_say(repository: Path) -> None:
    found = build.differences(repository, paths.written_chapters(repository))
    assert found + build.without_text(repository) == []


def test_the_committed_pages_are_what_their_texts_say(repository: Path) -> None:
    assert build.differing_pages(repository) == []
