"""The whole way, from an author's text to a learner's feedback, with the real nbgrader programs."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from rich.console import Console

from course.cli import demo, demo_learners
from course.cli.demo import Rehearsal, first_for_a_class
from course.notebook import exercise
from course.notebook.check import judge
from course.shared import paths
from course.shared.errors import CourseError

ROOT = Path(__file__).parents[3]
CHAPTER = first_for_a_class(paths.written_chapters(ROOT))
EXERCISES = exercise.load(CHAPTER)
POSSIBLE = sum(exercise.points for exercise in EXERCISES.values())


def _own_things() -> dict[Path, tuple[int, int]]:
    """What the course itself keeps: its gradebook, its exchange, its learners' notebooks."""
    own = [ROOT / "work"]
    own += [ROOT / "course" / name for name in ("exchange", "submitted", "autograded", "feedback")]
    files = [file for folder in own for file in folder.rglob("*")]
    files += (ROOT / "course").glob("gradebook.db*")
    return {file: (file.stat().st_mtime_ns, file.stat().st_size) for file in files}


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    before = _own_things()
    yield demo.hold_class(ROOT, CHAPTER, tmp_path_factory.mktemp("class"))
    assert _own_things() == before, "the rehearsal touched the course's own files"


def _totals(rehearsal: Rehearsal) -> dict[str, float]:
    return {name: sum(points.values()) for name, points in rehearsal.points.items()}


def _tables(rehearsal: Rehearsal, learner: str) -> list[str]:
    """The captions of the tables on a learner's feedback page."""
    page = BeautifulSoup(rehearsal.feedback[learner].read_text(encoding="utf-8"), "html.parser")
    return [caption.get_text() for caption in page.find_all("caption")]


def test_the_perfect_learner_gets_full_marks(rehearsal: Rehearsal) -> None:
    assert rehearsal.points["perfect"] == {
        id: exercise.points for id, exercise in EXERCISES.items()
    }
    assert rehearsal.exported()["perfect"] == (POSSIBLE, POSSIBLE)


def test_the_partial_learner_gets_the_expected_fraction(rehearsal: Rehearsal) -> None:
    partial = rehearsal.learners[1]
    assert rehearsal.points["partial"] == pytest.approx(dict(partial.expected))
    assert 0 < _totals(rehearsal)["partial"] < POSSIBLE
    untouched = EXERCISES.keys() - partial.answers.keys()
    assert untouched
    assert all(rehearsal.points["partial"][id] == 0 for id in untouched)


def test_the_troubled_learner_loses_only_what_is_lost(rehearsal: Rehearsal) -> None:
    points = rehearsal.points["troubled"]
    lost = {id for id, exercise in EXERCISES.items() if points[id] == 0 and exercise.points}
    assert len(lost) == 3  # the exception, the SyntaxError, the untouched cell
    assert all(
        points[id] == exercise.points for id, exercise in EXERCISES.items() if id not in lost
    )


def test_points_follow_from_the_definitions(rehearsal: Rehearsal) -> None:
    assert rehearsal.surprises() == []


def test_a_wrong_expectation_is_noticed(rehearsal: Rehearsal) -> None:
    first, *others = rehearsal.learners
    id = next(iter(EXERCISES))
    wrong = replace(first, expected={**first.expected, id: first.expected[id] - 0.25})
    assert [
        said.split()[:2] for said in replace(rehearsal, learners=[wrong, *others]).surprises()
    ] == [
        ["perfect:", id],  # the gradebook's number
        ["perfect:", f"{POSSIBLE:g}"],  # and the exported one
    ]


def test_a_gradebook_without_a_grade_is_noticed(rehearsal: Rehearsal) -> None:
    id = next(iter(EXERCISES))
    points = {name: dict(own) for name, own in rehearsal.points.items()}
    del points["troubled"][id]
    assert len(replace(rehearsal, points=points).surprises()) == 1


def test_the_export_holds_the_gradebooks_numbers(rehearsal: Rehearsal) -> None:
    exported = rehearsal.exported()
    assert {name: score for name, (score, _) in exported.items()} == pytest.approx(
        _totals(rehearsal)
    )
    assert {possible for _, possible in exported.values()} == {POSSIBLE}


def test_feedback_holds_a_table_for_every_check(rehearsal: Rehearsal) -> None:
    captions = _tables(rehearsal, "perfect")
    for asked in EXERCISES.values():
        headline = judge(asked, asked.reference).headline.replace("`", "")
        assert f"✓ Passed {headline}" in captions


def test_feedback_names_the_usual_mistake(rehearsal: Rehearsal) -> None:
    page = rehearsal.feedback["partial"].read_text(encoding="utf-8")
    slip = demo_learners.mistaken_in(list(EXERCISES.values()))
    assert rehearsal.learners[1].answers[slip.exercise.id] == slip.text
    assert escape(slip.mistake.message.partition("`")[0]) in page


def test_feedback_says_what_the_troubles_are(rehearsal: Rehearsal) -> None:
    page = rehearsal.feedback["troubled"].read_text(encoding="utf-8")
    for error in ("NameError", "SyntaxError"):  # without a number: the page shows none
        assert f"Your edit did not run ({error}" in page
    assert "not started (0 of" in page
    # the right answer was noisy, and kept its points
    assert "Python warned while your code ran: UserWarning: I am not sure about this" in page
    assert 'Your code prints <code style="white-space: nowrap">debugging</code>;' in page


def test_what_is_released_is_what_is_committed(rehearsal: Rehearsal) -> None:
    committed = paths.notebook_in(paths.notebooks(ROOT), CHAPTER).read_bytes()
    exchanged = rehearsal.exchange / "tensorkit" / "outbound" / CHAPTER / f"{CHAPTER}.ipynb"
    made = paths.notebook_in(paths.notebooks(rehearsal.course), CHAPTER)
    assert made.read_bytes() == committed
    assert exchanged.read_bytes() == committed


def test_the_command_that_is_shown_writes_the_report_about_the_class(
    rehearsal: Rehearsal, capsys: pytest.CaptureFixture[str], environment: Mapping[str, str]
) -> None:
    demo._show(rehearsal, Console())
    shown = next(line for line in capsys.readouterr().out.splitlines() if "course report" in line)
    root, program, *arguments = shlex.split(shown)
    subprocess.run(
        [sys.executable, "-m", program, *arguments],
        env={**environment, "COURSE_ROOT": root.removeprefix("COURSE_ROOT=")},
        check=True,
    )
    assert (rehearsal.course / "course" / "reports" / CHAPTER / "index.html").is_file()


def test_everything_lies_in_the_temporary_folder(rehearsal: Rehearsal) -> None:
    assert (rehearsal.course / "course" / "gradebook.db").is_file()
    for learner in rehearsal.learners:
        assert (rehearsal.course / "course" / "submitted" / learner.name / CHAPTER).is_dir()
        assert (rehearsal.course / "course" / "autograded" / learner.name / CHAPTER).is_dir()
        assert rehearsal.feedback[learner.name].is_relative_to(rehearsal.home(learner))
    assert rehearsal.grades.parent == rehearsal.folder


def test_every_learner_fetches_their_own_feedback(rehearsal: Rehearsal) -> None:
    texts = {page.read_bytes() for page in rehearsal.feedback.values()}
    assert len(texts) == len(rehearsal.learners)
    for learner in rehearsal.learners:
        own = rehearsal.course / "course" / "feedback" / learner.name / CHAPTER / f"{CHAPTER}.html"
        assert own.read_bytes() == rehearsal.feedback[learner.name].read_bytes()


def test_a_program_that_fails_is_reported_with_its_words(tmp_path: Path) -> None:
    nothing_built = Rehearsal(tmp_path, "99_nothing", [])
    paths.notebooks(nothing_built.course).mkdir(parents=True)
    with pytest.raises(CourseError, match=r"(?s)nbgrader release_assignment failed.*99_nothing"):
        demo.Steps(nothing_built).instructor("release_assignment", "99_nothing")


def test_a_chapter_with_too_few_exercises_is_refused() -> None:
    with pytest.raises(CourseError, match="need four exercises"):
        demo_learners.class_of([demo_learners.mistaken_in(list(EXERCISES.values())).exercise] * 3)


def test_a_folder_that_is_not_empty_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_ROOT", str(ROOT))
    (tmp_path / "mine.txt").write_text("keep me", encoding="utf-8")
    with pytest.raises(CourseError, match="is not empty"):
        demo.rehearse(CHAPTER, tmp_path)
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "keep me"
