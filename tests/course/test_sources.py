"""The table of the sources is complete, and true of the chapters."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([A-D]) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
TEXTS = {
    path.name[:2]: path.read_text(encoding="utf-8") for path in (ROOT / "solutions").glob("*.py")
}


def test_every_source_has_its_sections_in_the_table():
    counted = {source: sum(row[0] == source for row in ROWS) for source in "ABCD"}
    # the headings of the four texts; D has three exercises besides
    assert counted == {"A": 9, "B": 4, "C": 10, "D": 33}


def test_every_place_in_the_table_is_a_section_of_a_chapter():
    for _, section, places in ROWS:
        for place in places.split("; "):
            chapter, heading = place.split(" ", 1)
            found = re.search(rf"^# ## {re.escape(heading)}", TEXTS[chapter], re.MULTILINE)
            assert found, f"{section}: there is no section {heading!r} in chapter {chapter}"


def test_every_name_of_the_sources_stands_in_a_chapter():
    names = re.search(r"\n`([^`]+)`\n", PAGE.partition("## Names")[2])
    assert names
    taught = set(re.findall(r"\w+", "\n".join(TEXTS.values())))
    assert len(names[1].split()) == 99  # as counted in the four texts; none is left out
    assert set(names[1].split()) - taught == set()
