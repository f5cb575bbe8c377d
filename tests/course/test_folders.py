"""The folders: which one of `course` may import which, and that names say what they stand for."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from course.notebook import exercise

ROOT = Path(__file__).parents[2]

ORDER = (
    "shared",
    "notebook",
    "engine",
    "exercises",
    "authoring",
    "sandbox",
    "grading",
    "cli",
)
"""Each folder may import those before it, and itself."""
OF_A_CLASS = {"exchange", "submitted", "autograded", "graded", "feedback", "reports"}
"""Folders of `course` for what a class hands in and gets back, programs among it."""


def modules() -> dict[str, Path]:
    """The modules of `course` by their names."""
    files = (file for folder in ORDER for file in (ROOT / "course" / folder).rglob("*.py"))
    return {_name(file): file for file in files}


def _name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path, known: set[str]) -> Iterator[str]:
    """The modules of `course` that a file imports, in functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: write the whole name of the module"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            longest = next((n for n in (name, name.rpartition(".")[0]) if n in known), None)
            if longest is not None:
                yield longest


def test_every_module_lies_in_a_folder_of_the_order() -> None:
    folders = {path.name for path in (ROOT / "course").iterdir() if any(path.glob("*.py"))}
    assert folders - OF_A_CLASS == {*ORDER, "jupyter"}
    assert {file.stem for file in (ROOT / "course").glob("*.py")} == {"__init__", "__main__"}


def test_a_folder_imports_only_those_before_it() -> None:
    known = modules()
    wrong = [
        f"{name} imports {other}"
        for name, file in known.items()
        for other in imports(file, known.keys())
        if ORDER.index(other.split(".")[1]) > ORDER.index(name.split(".")[1])
    ]
    assert not wrong


def test_no_two_modules_import_each_other() -> None:
    known = modules()
    graph = {name: {*imports(file, known.keys())} - {name} for name, file in known.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def test_no_two_modules_have_one_name() -> None:
    names = Counter(name.rpartition(".")[2] for name in modules())
    assert [name for name, count in names.items() if count > 1] == []


def test_each_exercise_has_a_module_of_its_name() -> None:
    for chapter in exercise.chapters():
        folder = f"course.exercises.ch{chapter}"
        for id, definition in exercise.load(chapter).items():
            assert type(definition).__module__ == f"{folder}.{id.replace('-', '_')}"


def _bound(file: Path) -> Iterator[tuple[str, int]]:
    """The names of a file's own variables and parameters, and their lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


PRONOUNS = {"it", "its", "them", "mine", "ours", "theirs", "yours", "whose", "why", "nothing"}
"""Words that name no thing, and so are no variables."""
IN_COURSE = PRONOUNS | {"each", "here", "one", "there", "what", "who"}
"""Those of `course`."""


def test_no_variable_is_a_pronoun() -> None:
    files = (
        file
        for folder in ("course", "docs", "requirements", "solutions", "tensorkit", "tests")
        for file in sorted((ROOT / folder).rglob("*.py"))
        if not OF_A_CLASS & {*file.parts[len(ROOT.parts) :]}
    )
    found = [
        f"{file.relative_to(ROOT).as_posix()}:{line}"
        for file in (ROOT / "conftest.py", *files)
        for name, line in _bound(file)
        if name.lower() in (IN_COURSE if ROOT / "course" in file.parents else PRONOUNS)
    ]
    assert found == []
