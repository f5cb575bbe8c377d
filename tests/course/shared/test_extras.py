"""Packages that only some users have."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.shared import extras
from course.shared.errors import CourseError


@pytest.mark.parametrize("name", ["there_is_none", "closed_to_you"])
def test_a_package_that_is_missing_or_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "closed_to_you").mkdir()  # as Python sees it: without anything in it
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CourseError, match=f"^Grading needs {name}, readable for you: make teach"):
        extras.needed(name, "teach", "Grading")
