"""The result of grading as JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.grading.result import Graded, Result
from course.notebook.report import Report, Row

ROWS = (Row("a matrix", "failed", "f(1)", "2", "3", "Look again."), Row("a vector", "passed"))
REPORT = Report("sample", "A sample", "partly", 3.0, 1.5, "Nearly.", "off by one", ROWS, ("note",))
RESULT = Result(
    "ada",
    "01_tensors",
    submission="ab",
    exercises=(Graded("check-sample", REPORT),),
    repaired=("The cell was moved.",),
    cells=[{"id": "a", "cell_type": "code", "source": "1"}],
    timings={"cells": 0.25},
)


def test_a_result_survives_the_way_through_json():
    assert Result.from_json(RESULT.to_json()) == RESULT


def test_the_json_does_not_hold_what_differs_from_run_to_run():
    slower = replace(RESULT, timings={"cells": 9.0}, page="{}")
    assert slower.to_json() == RESULT.to_json()


def changed(old, new):
    """A result with valid JSON, of which something was changed."""
    text = RESULT.to_json()
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "damaged"),
        ("{}", "format"),
        ('{"format": 1}', "format"),
        ('{"format": 3, "exercises": []}', "changed"),
        ("{", "Expecting"),
        (changed('"earned": 1.5', '"earned": 6.0'), "changed"),
    ],
)
def test_another_text_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        Result.from_json(text)


def test_the_score_is_the_sum_of_the_checks():
    assert (RESULT.score, RESULT.possible) == (1.5, 3.0)
