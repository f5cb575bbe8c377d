"""Every chapter keeps to its form, and `course build` says where one does not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from course.authoring import form
from course.notebook.exercise import chapters, load

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_keeps_its_form(chapter):
    assert form.departures(ROOT, chapter) == []


def departures(tmp_path: Path, before: str, after: str) -> list[str]:
    """What is said of chapter 02 with another text."""
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions", dirs_exist_ok=True)
    text = tmp_path / "solutions" / "02_operations.py"
    written = text.read_text("utf-8")
    changed = re.sub(before, after, written, count=1, flags=re.MULTILINE)
    assert changed != written
    text.write_text(changed, encoding="utf-8")
    return form.departures(tmp_path, "02_operations")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('(?s)(# %% exercise="[^"]*")(.*?)(# %% exercise="[^"]*")', r"\3\2\1", "into one order"),
        ("^# ## ", "# ### ", "not one `#` and after that `##` only"),
        ("^# ## On one page$", "# ## One page", "last sections are not On one page"),
        (r"\Z", "\n# %%\n1\n", "its text does not end with these lines"),
        ("^import tensorkit as tk$", f"import tensorkit as tk  # {'x' * 70}", "has 96 columns"),
        (r"exercises take about \d+", "exercises take about 9", "does not say 'The core exercises"),
        ("^import tensorkit as tk$", "import tensorkit as tk\ntk.tan", "uses `tan`, before a text"),
        (r"\*\*What to notice\.\*\*", "Notice.", "has no what to notice"),
        (r"\*\*A question\.\*\*", "Asked.", "is no `**A question.**`"),
        (' tags=\\["nbval-ignore-output"\\]\n((?!# %%).*\n)*explain.source', "", "is not marked"),
    ],
)
def test_a_text_that_departs_from_the_form_is_told(tmp_path, before, after, words):
    found = departures(tmp_path, before, after)
    assert any(words in sentence for sentence in found), found


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("points", 9.0, "points, and should give 20: change `points=`"),
        ("further", True, "exercises of its core: 4, and there should be 5"),
        ("minutes", 99.0, "75 are the most"),
        ("hints", ("Read it again", "Read."), "end this with a full stop"),
        ("witness", "inside", "points; 2 are the most, a tenth"),
    ],
)
def test_a_definition_that_departs_from_the_form_is_told(monkeypatch, attribute, value, words):
    core = [each for each in load("02_operations").values() if not each.further]
    changed = max(core, key=lambda exercise: exercise.points)
    monkeypatch.setattr(changed, attribute, value)
    found = form.departures(ROOT, "02_operations")
    assert any(words in sentence for sentence in found), found


def test_a_course_with_one_of_the_chapters_has_its_form(tmp_path: Path) -> None:
    (tmp_path / "solutions").mkdir()
    shutil.copy(ROOT / "solutions" / "02_operations.py", tmp_path / "solutions")
    assert not any("end with these" in each for each in form.departures(tmp_path, "02_operations"))
