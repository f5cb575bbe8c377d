"""`course new`: the files of a new chapter and the places of a new exercise, for authors to fill.

What is written is complete enough to be built; `course build` then says what is still missing.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterator
from pathlib import Path

from course.notebook import exercise
from course.shared import files, paths
from course.shared.errors import CourseError

CHAPTER = re.compile(r"(\d\d)_[a-z][a-z0-9_]*")
ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST_ID = 41
END = re.compile(
    r"^# %% \[markdown\]\n# ## (?:On one page|Elsewhere|In tensorkit)\n|^# %%\nprogress\(",
    re.MULTILINE,
)
"""Where the sections begin that end a chapter: exercises stand above them."""

UNWRITTEN_TEXT = (
    "What a learner can do after this chapter, in a few sentences.",
    "How long the core exercises take.",
    "The chapter's rules in one table.",
)
"""What a new chapter says until its author has written something else."""

TEXT = """\
# %% [markdown]
# # {title}
#
# {unwritten[0]}
#
# **Time and difficulty.** {unwritten[1]}

# %%
import tensorkit as tk
from course import check, hint, progress, solution, transplant

# %% [markdown]
# ## On one page
#
# {unwritten[2]}

# %%
progress("{chapter}")
"""

CHAPTER_OF_EXERCISES = '''\
"""The exercises of chapter {number}, {title}, a module each, in the order of its text."""
'''

TESTS = '''\
"""Chapter {number}. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations

RIGHT = []
'''

UNWRITTEN = ("Say in one line what is returned; learners read this.", "**Output:** a tensor.")
"""What a new exercise says until its author has written something else."""

EXERCISE = '''\
"""The exercise {id}."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def {name}(numbers: tk.Tensor) -> tk.Tensor:
    """{unwritten[0]}"""
    return numbers * 2


@exercise("{id}", answer={name}, points=0, difficulty=1, minutes=5, further=True)
class {kind}(Exercise):
    """{title}

    **Input:** `numbers`, a tensor, possibly empty.

    {unwritten[1]} `numbers` stays as it is.
    """

    hints = ()
    usual_mistakes = {{}}  # "name": (answer, "message"), a function and the sentence that helps

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, 2.0]), label="two numbers")
        yield case(tk.tensor(draw.floats(1, -9, 9)), label="one number")
        yield case(tk.tensor(draw.floats(4, -9, 9)), label="any four numbers")
        yield case(tk.tensor(draw.floats(6, -9, -1)), label="six negative numbers")
        yield case(tk.zeros(0), label="no numbers (empty)")
'''

ANOTHER_ANSWER = """\
def {name}_{way}(numbers):
    raise NotImplementedError("Write another right answer to {id} here.")


"""


def new_chapter(root: Path, name: str) -> list[Path]:
    """Write the text, the folder of exercises and the module of tests; the paths.

    Raises CourseError for a wrong name, or for one of which a file exists already.
    """
    match = CHAPTER.fullmatch(name)
    if match is None:
        raise CourseError(
            f"{name!r} is no name of a chapter: write two digits and its topic in small letters, "
            "such as 11_shapes."
        )
    number = match[1]
    for written in paths.written_chapters(root):
        if written.startswith(f"{number}_"):
            raise CourseError(f"There is a chapter {written} already: choose another number.")
    title = name.partition("_")[2].replace("_", " ").capitalize()
    contents = {
        _text(root, name): TEXT,
        _exercises(root, name): CHAPTER_OF_EXERCISES,
        _tests(root, name): TESTS,
    }
    for path in contents:
        if path.exists():
            raise CourseError(f"{path} is there already: rename it, or choose another name.")
    for path, content in contents.items():
        words = {"title": title, "chapter": name, "number": number, "unwritten": UNWRITTEN_TEXT}
        files.write(path, content.format(**words))
    return list(contents)


def new_exercise(root: Path, id: str, chapter: str) -> list[Path]:
    """Write the definition of an exercise, its place in the text and two other answers; the paths.

    The first path is that of the new module, the others are of files that were there.

    Raises CourseError for an id that is none or taken, and for a chapter without its files.
    """
    paths.check_exercises(root)
    if ID.fullmatch(id) is None or not 3 <= len(id) <= LONGEST_ID:
        raise CourseError(
            f"{id!r} is no id of an exercise: write small letters, digits and hyphens, such as "
            f"strides-of; at least 3 and at most {LONGEST_ID} of them."
        )
    taken = exercise.load()
    if id in taken:
        raise CourseError(f"There is an exercise {id} in {taken[id].chapter}: choose another id.")
    text, exercises, tests = (place(root, chapter) for place in (_text, _exercises, _tests))
    for path in (text, exercises, tests):
        if not path.is_file():
            raise CourseError(f"{path} is missing: course new chapter {chapter} writes it.")
    name = id.replace("-", "_")
    module = exercises.with_name(f"{name}.py")
    names = {definition.name for definition in taken.values() if definition.chapter == chapter}
    names |= {*keyword.kwlist, *dir(builtins), *_imported(root)}
    modules = root / "course"
    is_module = any(modules.rglob(f"{name}.py")) or any(modules.rglob(f"{name}/__init__.py"))
    if name in names or is_module:
        raise CourseError(
            f"{chapter} can have no function {name}, because that name has a meaning already: "
            "choose another id."
        )
    words = {
        "id": id,
        "name": name,
        "kind": "".join(word.capitalize() for word in id.split("-")),
        "title": id.replace("-", " ").capitalize(),
    }
    imports = exercises.read_text(encoding="utf-8")
    imports += "" if "\nfrom " in imports else "\n"
    contents = {
        module: EXERCISE.format(**words, unwritten=UNWRITTEN),
        exercises: f"{imports}from course.exercises.ch{chapter} import {name}\n",
        text: _with_place(text.read_text(encoding="utf-8"), id),
        tests: _with_answers(tests.read_text(encoding="utf-8"), words, tests),
    }
    for path, content in contents.items():
        files.write(path, content)
    return list(contents)


def _imported(root: Path) -> Iterator[str]:
    """The names that cells of any chapter import."""
    for chapter in paths.written_chapters(root):
        for node in ast.walk(ast.parse(_text(root, chapter).read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from (alias.asname or alias.name for alias in node.names)


def _with_place(text: str, id: str) -> str:
    """A chapter's text with the cell of an exercise above the sections that end it."""
    end = END.search(text)
    at = len(text) if end is None else end.start()
    return f'{text[:at].rstrip()}\n\n# %% exercise="{id}"\n\n{text[at:]}'


def _with_answers(tests: str, words: dict[str, str], path: Path) -> str:
    """A chapter's tests with two functions to be written, and their rows in RIGHT."""
    match = re.search(r"^RIGHT = \[(?:\]|\n(?:.*\n)*?\])", tests, re.MULTILINE)
    if match is None:
        raise CourseError(f"{path} has no list of other right answers: write `RIGHT = [`, `]`.")
    ways = ("another_way", "a_third_way")
    functions = "".join(ANOTHER_ANSWER.format(**words, way=way) for way in ways)
    rows = "".join(f'    ("{words["id"]}", {words["name"]}_{way}),\n' for way in ways)
    table = match[0].removesuffix("]").rstrip("\n") + "\n" + rows + "]"
    return f"{tests[: match.start()].rstrip()}\n\n\n{functions}{table}{tests[match.end() :]}"


def _text(root: Path, chapter: str) -> Path:
    return paths.solutions(root) / f"{chapter}.py"


def _exercises(root: Path, chapter: str) -> Path:
    return root / "course" / "exercises" / f"ch{chapter}" / "__init__.py"


def _tests(root: Path, chapter: str) -> Path:
    return root / "tests" / "course" / "exercises" / f"test_ch{chapter}.py"
