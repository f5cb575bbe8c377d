"""`course new`: what an author starts from can be built, and what is missing is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course.authoring import new
from course.authoring.text import read
from course.shared.errors import CourseError

ROOT = Path(__file__).parents[3]
CHAPTER = "77_shapes"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what an author works on, with one chapter."""
    shutil.copytree(ROOT / "course", tmp_path / "course", ignore=shutil.ignore_patterns("*.pyc"))
    for folder in ("notebooks", "solutions", "tests/course/exercises"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("solutions/00_start.py", "tests/course/exercises/test_ch00_start.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def course(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "course", *arguments],
        cwd=checkout,
        env={**os.environ, "COURSE_ROOT": str(checkout), "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.rest
def test_a_new_chapter_with_a_new_exercise_is_built_and_what_it_lacks_is_said(
    checkout: Path,
) -> None:
    for arguments in (("chapter", CHAPTER), ("exercise", "first-shape", "--chapter", "77")):
        done = course(checkout, "new", *arguments)
        assert done.returncode == 0, done.stderr
        assert "The way back: remove" in done.stdout
    built = course(checkout, "build", CHAPTER)
    assert built.returncode == 1, built.stderr
    assert (checkout / "notebooks" / CHAPTER / f"{CHAPTER}.ipynb").is_file()
    for sentence in (
        "first-shape: it has 0 hints; two are needed",
        "first-shape: it has 0 usual mistakes; three are needed",
        "first-shape: it still says 'Say in one line what is returned; learners read this.'",
        "first-shape: it still says '**Output:** a tensor.'",
        f"{CHAPTER}: its text still says 'What a learner can do after this chapter, in a few",
        f"{CHAPTER}: its text still says 'How long the core exercises take.'",
        f'{CHAPTER}: its text still says "The chapter\'s rules in one table."',
    ):
        assert sentence in built.stdout
    for sentence in ("edge case", "drawn numbers", "points"):  # not said of what is just begun
        assert sentence not in built.stdout


@pytest.mark.rest
def test_what_is_wrong_in_a_definition_is_one_sentence(checkout: Path) -> None:
    for arguments in (("chapter", CHAPTER), ("exercise", "first-shape", "--chapter", "77")):
        course(checkout, "new", *arguments)
    module = checkout / "course" / "exercises" / f"ch{CHAPTER}" / "first_shape.py"
    written = module.read_text("utf-8")
    for before, after, words in (
        ("case(tk.tensor([1.0, 2.0])", "case(not_defined(2)", "name 'not_defined' is not defined"),
        ("return numbers * 2", "return numbers *", "SyntaxError: invalid syntax"),
        ("answer=first_shape", "answer=first", "NameError: name 'first' is not defined"),
    ):
        module.write_text(written.replace(before, after), encoding="utf-8")
        line = written[: written.index(before)].count("\n") + 1
        said = course(checkout, "build", CHAPTER).stderr
        assert words in said
        assert f"first_shape.py, line {line}" in said
        assert "Restart the kernel" not in said
        assert "Traceback" not in said
    for before, after, words in (
        ("difficulty=1, ", "", "missing 1 required keyword-only argument: 'difficulty'"),
        ("minutes=5", "minutes='5'", "first-shape: points, difficulty and minutes are numbers"),
        ("(Exercise)", "", "first-shape: write `class FirstShape(Exercise):`"),
        ("hints = ()", "hints = ('One.')", "first-shape: hints are a tuple of texts"),
        ("= {}", "= {'a': 'b'}", "write the mistake 'a' as `\"name\": (answer, "),
        ("= {}", "= {len: 'b'}", 'first-shape: write a mistake as `"name": (answer, '),
    ):
        module.write_text(written.replace(before, after), encoding="utf-8")
        said = course(checkout, "build", CHAPTER).stderr
        assert words in said
        assert "Traceback" not in said


def test_a_new_exercise_stands_above_the_sections_that_end_a_chapter(checkout: Path) -> None:
    new.new_exercise(checkout, "second-step", "00_start")
    cells = read(checkout / "solutions" / "00_start.py")
    at = next(n for n, cell in enumerate(cells) if cell.marks.get("exercise") == "second-step")
    after = [cell.source for cell in cells[at + 1 :]]
    assert after[-2] == 'progress("00_start")'
    assert not any(cell.marks.get("exercise") for cell in cells[at + 1 :])
    tests = (checkout / "tests/course/exercises/test_ch00_start.py").read_text("utf-8")
    compile(tests, "tests", "exec")
    assert '("celsius", celsius_by_ninths),' in tests
    assert tests.count('("second-step", second_step_') == 2


def test_a_new_exercise_says_that_its_argument_stays(checkout: Path) -> None:
    # a check finds a changed argument; the statement has to ask for what is checked
    written = new.new_exercise(checkout, "second-step", "00_start")
    assert any("`numbers` stays as it is" in path.read_text("utf-8") for path in written)


def test_a_new_exercise_has_a_module_of_its_own(checkout: Path) -> None:
    for file in ("solutions/12_kernels.py", "tests/course/exercises/test_ch12_kernels.py"):
        shutil.copy(ROOT / file, checkout / file)
    written = new.new_exercise(checkout, "last-kernel", "12_kernels")
    assert written[0].name == "last_kernel.py"
    found = "from course.notebook.exercise import load; print(list(load('12_kernels'))[-1])"
    ran = subprocess.run(
        [sys.executable, "-c", found], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "last-kernel\n", ran.stderr


@pytest.mark.parametrize(
    ("id", "sentence"),
    [
        ("celsius", "There is an exercise celsius in 00_start"),
        ("Second", "is no id of an exercise"),
        ("a--b", "is no id of an exercise"),
        ("x" * 42, "is no id of an exercise"),
        *((name, f"can have no function {name}") for name in ("while", "print", "build")),
        *((name, f"can have no function {name}") for name in ("check", "progress", "exercises")),
    ],
)
def test_an_id_that_is_none_or_taken_is_refused(checkout: Path, id: str, sentence: str) -> None:
    with pytest.raises(CourseError, match=sentence):
        new.new_exercise(checkout, id, "00_start")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("shapes", "is no name of a chapter"),
        ("77-shapes", "is no name of a chapter"),
        ("00_other", "There is a chapter 00_start already"),
    ],
)
def test_a_name_that_is_none_or_taken_is_refused(checkout: Path, name: str, sentence: str) -> None:
    with pytest.raises(CourseError, match=sentence):
        new.new_chapter(checkout, name)


def test_a_new_chapter_that_was_formatted_takes_its_first_exercise(checkout: Path) -> None:
    ruff = [sys.executable, "-m", "ruff", "--config", str(ROOT / "pyproject.toml")]
    _, module, tests = new.new_chapter(checkout, CHAPTER)
    for program in (("check", "--fix"), ("format",)):
        subprocess.run([*ruff, *program, "--quiet", module, tests], check=True)
    done = course(checkout, "new", "exercise", "first-shape", "--chapter", CHAPTER)
    assert done.returncode == 0, done.stderr
    assert tests.read_text("utf-8").count('("first-shape", first_shape_') == 2
    load = [sys.executable, "-c", f"import course.exercises.ch{CHAPTER}"]
    subprocess.run(load, cwd=checkout, check=True)


def test_an_exercise_that_is_refused_leaves_every_file_as_it_was(checkout: Path) -> None:
    module = checkout / "course" / "exercises" / "ch00_start" / "__init__.py"
    before = module.read_text("utf-8")
    (checkout / "tests/course/exercises/test_ch00_start.py").write_text("RIGHT = ()\n", "utf-8")
    with pytest.raises(CourseError, match="has no list of other right answers"):
        new.new_exercise(checkout, "first-shape", "00_start")
    assert module.read_text("utf-8") == before


def test_no_file_is_overwritten(checkout: Path) -> None:
    new.new_chapter(checkout, CHAPTER)
    (checkout / "solutions" / f"{CHAPTER}.py").unlink()
    with pytest.raises(CourseError, match="is there already"):
        new.new_chapter(checkout, CHAPTER)


def test_an_exercise_of_a_chapter_without_its_files_says_what_writes_them(checkout: Path) -> None:
    with pytest.raises(CourseError, match=f"course new chapter {CHAPTER} writes it"):
        new.new_exercise(checkout, "first-shape", CHAPTER)
