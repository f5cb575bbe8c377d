"""Each exercise takes at least two right answers that are written differently from the reference.

They stand, with the tests of a chapter's own, as RIGHT in test_chNN.
"""

from __future__ import annotations

import inspect
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

from course.notebook.check import judge
from course.notebook.exercise import Prediction, chapters, load
from course.notebook.runner import Outcome
from course.notebook.slips import first_slip

CHAPTERS = [
    import_module(path.stem) for path in sorted(Path(__file__).parent.glob("test_ch[0-9]*.py"))
]
RIGHT = [each for chapter in CHAPTERS for each in chapter.RIGHT]
EXERCISES = {id: exercise for chapter in chapters() for id, exercise in load(chapter).items()}


def name_of(value):
    return value if isinstance(value, str) else getattr(value, "__name__", "dictionary")


@pytest.mark.parametrize(("id", "answer"), RIGHT, ids=name_of)
def test_another_right_answer_passes_in_full(id, answer):
    for seed in range(5):
        report = judge(EXERCISES[id], answer, seed=seed)
        if "NotImplementedError" in str(report):
            what = "is the placeholder that `course new exercise` wrote: replace it by another"
            pytest.fail(f"{name_of(answer)} {what} right answer to {id}", pytrace=False)
        assert report.status == "passed", str(report)


def test_every_exercise_has_two_other_right_answers():
    counted = {id: sum(other == id for other, _ in RIGHT) for id in EXERCISES}
    asked = {id for id, exercise in EXERCISES.items() if not isinstance(exercise, Prediction)}
    for id in sorted(asked):
        assert counted[id] >= 2, (
            f"{id} needs two other right answers in RIGHT of test_ch{EXERCISES[id].chapter}.py; "
            f"there are {counted[id]}"
        )


@pytest.mark.parametrize("answer", [answer for _, answer in RIGHT if callable(answer)], ids=name_of)
def test_no_slip_of_syntax_is_found_in_a_right_answer(answer):
    found = first_slip(textwrap.dedent(inspect.getsource(answer)), Outcome(), Outcome())
    assert found is None or found.name == "range ends early", found
