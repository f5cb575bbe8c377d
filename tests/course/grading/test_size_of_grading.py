"""How large grading is: who raises a number says why in the message of the commit."""

from pathlib import Path

import size

COURSE = Path(__file__).parents[3] / "course"

APART = ("export.py", "grades.py", "comments.py", "watch.py")
"""What instructors asked for beyond grading."""
MOST = {"grading": 3739, "sandbox": 1318, "apart": 454, "matching": 298}
LONGEST = 400
"""Lines of one file."""


def lines(*files):
    return sum(size.code_lines(file.read_text("utf-8")) for file in files)


def test_no_room_of_grading_has_grown():
    files = [file for file in (COURSE / "grading").rglob("*.py") if file.name not in APART]
    found = {
        "grading": lines(*files),
        "sandbox": lines(*(COURSE / "sandbox").rglob("*.py")),
        "apart": lines(*(COURSE / "grading" / name for name in APART)),
        "matching": lines(COURSE / "notebook" / "matching.py"),
    }
    assert {room: count for room, count in found.items() if count > MOST[room]} == {}


def test_no_file_of_grading_is_longer_than_400_lines():
    files = [*(COURSE / "grading").rglob("*.py"), *(COURSE / "sandbox").rglob("*.py")]
    assert {file.name: lines(file) for file in files if lines(file) > LONGEST} == {}
