"""The report: one number for nbgrader, one text, one table."""

from __future__ import annotations

import math
from html.parser import HTMLParser

import pytest

from course.notebook.report import Report, Row

FAILED = Row("two", "failed", "f(2)", "1 < 2", "4", "Multiply `x` by itself.")
ROWS = (Row("one", "passed", "f(1)"), FAILED, Row("three", "failed", "f(3)", "3", "9", "Look."))


@pytest.mark.parametrize(
    ("earned", "score"),
    [(math.nan, 0.0), (-1.0, 0.0), (99.0, 3.0), (math.inf, 3.0), (1.23456, 1.23), (3, 3.0)],
)
def test_the_score_lies_between_nothing_and_the_points(earned, score):
    report = Report("x", "X", "partly", possible=3.0, earned=earned)
    assert repr(report) == repr(score)
    assert float(repr(report)) == score


def test_the_text_shows_the_first_failure_in_full_and_the_others_by_name():
    text = str(Report("x", "X", "partly", 3.0, 1.0, rows=ROWS))
    assert "X: 1 of 3 points, 1 of 3 cases passed" in text
    assert "f(2)" in text
    assert "f(3)" not in text
    assert "three" in text


def test_advice_of_several_lines_keeps_them_below_one_another():
    advice = "a:    2  3\nb: 4  5"
    report = Report("x", "X", "failed", 3.0, rows=(Row("two", "failed", tip=advice),))
    assert f">{advice}</pre>" in report.html()
    assert "a:    2  3\n" in str(report)


def test_the_table_has_a_caption_scoped_headers_and_words_beside_the_marks():
    html = Report("x", "X", "partly", 3.0, 1.0, rows=ROWS).html()
    assert "<caption" in html
    assert html.count('scope="col"') == 2
    assert "✗ failed" in html
    assert "✓ passed" in html
    assert html.count("<details open>") == 1


def test_passing_has_another_sign_and_another_frame_than_failing():
    passed = Report("x", "X", "passed", 3.0, 3.0, rows=ROWS[:1]).html()
    partly = Report("x", "X", "partly", 3.0, 1.0, rows=ROWS).html()
    assert ("✓ Passed" in passed, "✗ Not yet" in passed, "dashed" in passed) == (True, False, False)
    assert ("✓ Passed" in partly, "✗ Not yet" in partly, "dashed" in partly) == (False, True, True)


def test_the_table_escapes_what_the_learner_returned():
    html = Report("x", "<b>", "partly", 3.0, rows=(Row("<i>", "failed", got="<script>"),)).html()
    assert "<script>" not in html
    assert "<i>" not in html
    assert "<b>" not in html


def test_the_table_is_well_formed():
    class Balance(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag, attrs):
            self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parser = Balance()
    parser.feed(Report("x", "X", "partly", 3.0, message="a `b`", rows=ROWS, notes=("n",)).html())
    assert parser.open == []


def test_a_notebook_gets_the_number_as_text_and_the_table_as_html():
    bundle = Report("x", "X", "partly", 3.0, 1.5, rows=ROWS)._repr_mimebundle_()
    assert bundle["text/plain"] == "1.5"
    assert bundle["text/html"].startswith("<div")


def test_an_exercise_without_points_says_nothing_of_points():
    assert Report("x", "X", "partly", 0.0, rows=ROWS).headline == "X: 1 of 3 cases passed"
    assert Report("x", "X", "not started", 0.0).headline == "X: not started"
