"""What a chapter's exercises need is there in the sandbox: its worked solutions get full marks."""

from __future__ import annotations

import pytest
from classroom import ROOT, Class

from course.notebook import exercise, matching


@pytest.mark.parametrize("chapter", exercise.chapters())
def test_the_worked_solutions_get_full_marks(chapter, warm_with_the_usual_limits):
    klass = Class(warm_with_the_usual_limits, matching.source_of(ROOT, chapter))
    result = klass.grade(klass.honest())
    reports = [each.report for each in result.exercises]
    assert [report.exercise_id for report in reports if report.status != "passed"] == []
    assert sum(report.score for report in reports) == sum(
        each.points for each in klass.exercises.values()
    )
    assert result.troubles == ()
