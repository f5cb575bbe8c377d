"""What every chapter keeps to: points, order of exercises, headings, messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from course.exercise import chapters, load

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def text_of(chapter: str) -> str:
    return (SOLUTIONS / f"{chapter}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", chapters())
def test_the_text_has_the_exercises_in_the_order_of_their_definitions(chapter):
    marked = re.findall(r'^# %% exercise="(.*)"$', text_of(chapter), re.MULTILINE)
    assert marked == list(load(chapter))


@pytest.mark.parametrize("chapter", chapters())
def test_the_headings_of_the_text_are_an_outline(chapter):
    levels = re.findall(r"^# (#+) ", text_of(chapter), re.MULTILINE)
    assert levels[0] == "#"
    assert set(levels[1:]) == {"##"}


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_ends_with_one_page_and_the_progress(chapter):
    *_, last = re.findall(r"^# ## (.*)$", text_of(chapter), re.MULTILINE)
    assert last == "On one page"
    assert text_of(chapter).rstrip().endswith(f'progress("{chapter}")')


@pytest.mark.parametrize("chapter", chapters()[1:])
def test_the_minutes_in_the_text_are_those_of_the_core_exercises(chapter):
    (said,) = re.findall(r"core exercises take about (\d+)\s+minutes", text_of(chapter))
    assert abs(int(said) - sum(it.minutes for it in load(chapter).values() if not it.further)) <= 3


@pytest.mark.parametrize("chapter", chapters()[1:])
def test_a_chapter_has_a_live_picture(chapter):
    assert re.search(r'^# %% role="show"\n(?:.+\n|\n(?!#))*?viz\.', text_of(chapter), re.MULTILINE)


@pytest.mark.parametrize("chapter", chapters())
def test_every_mistake_and_every_hint_is_a_sentence_or_more(chapter):
    texts = [text for it in load(chapter).values() for text in it.hints]
    texts += [mistake.message for it in load(chapter).values() for mistake in it.mistakes()]
    for text in texts:
        assert text[-1] in ".?", text
        assert text.count("`") % 2 == 0, text


@pytest.mark.parametrize("chapter", [it for it in chapters() if it != "00_start"])
def test_the_core_gives_twenty_points(chapter):
    assert sum(it.points for it in load(chapter).values()) == 20
