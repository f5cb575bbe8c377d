"""The instructor's switches: the defaults are good, and a wrong value is answered in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from course.shared import settings
from course.shared.errors import CourseError

# as it is delivered: whoever publishes the course names a repository
GOOD = re.sub("(?m)^repository = .*", 'repository = ""', settings.FILE.read_text(encoding="utf-8"))


def _read(tmp_path: Path, old: str, new: str) -> settings.Settings:
    assert old in GOOD
    file = tmp_path / "settings.toml"
    file.write_text(GOOD.replace(old, new), encoding="utf-8")
    return settings.read(file)


def test_every_setting_has_a_comment_above_it() -> None:
    lines = GOOD.splitlines()
    for number, line in enumerate(lines):
        if "=" in line and not line.startswith("#"):
            assert lines[number - 1].startswith("#"), line


def test_the_defaults(tmp_path: Path) -> None:
    assert _read(tmp_path, "", "") == settings.Settings(
        course_id="tensorkit",
        exchange="course/exchange",
        solutions_open=True,
        solution_after_attempts=3,
        seconds=5.0,
        variants="",
        watch_folder="",
        repository="",
    )


def test_a_hub_names_its_exchange_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    settings.settings.cache_clear()
    monkeypatch.setenv("COURSE_EXCHANGE", "/srv/exchange")
    assert settings.settings().exchange == "/srv/exchange"
    settings.settings.cache_clear()


def test_a_whole_number_of_seconds_is_fine(tmp_path: Path) -> None:
    assert _read(tmp_path, "seconds = 5.0", "seconds = 2").seconds == 2.0


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("seconds = 5.0", "seconds = 0", "seconds must be a number between 0 and 3600, not 0."),
        ("seconds = 5.0", "seconds = nan", "not nan."),
        ("seconds = 5.0", "seconds = true", "not True."),
        ("attempts = 3", "attempts = 2.5", "must be a whole number of at least 1, not 2.5."),
        ("attempts = 3", "attempts = 0", "must be a whole number of at least 1, not 0."),
        ("_open = true", '_open = "yes"', "solutions_open must be true, false or a date"),
        ("_open = true", "_open = 2027-03-08T10:00:00", "solutions_open must be true, false or a"),
        ('"tensorkit"', '"a+b"', "course_id must be a name of letters, digits"),
        ('"course/exchange"', '""', "exchange must be the path of a folder, not ''."),
        ("solutions_open", "solution_open", "there is no setting 'solution_open'; there are"),
        ('variants = ""', "variants = true", "variants must be a text, not True."),
        ('watch_folder = ""', 'watch_folder = "here"', "must be empty or the absolute path of"),
        ('repository = ""', 'repository = "a/b/c"', "must be empty or of the form 'owner/name'"),
        ("seconds = 5.0", "", "the setting 'seconds' is missing."),
        ("seconds = 5.0", "seconds 5.0", "cannot be read"),
    ],
)
def test_a_wrong_value_is_answered_in_a_sentence(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    with pytest.raises(CourseError) as caught:
        _read(tmp_path, old, new)
    assert sentence in str(caught.value)
    assert "settings.toml" in str(caught.value)
