"""Odd things in an answer cell: one true sentence, and the other exercises keep their points."""

from __future__ import annotations

from copy import deepcopy

import pytest
from classroom import Class, Notebook, cell_of

ID = "checkerboard"
RIGHT = """\
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2, 1::2] = 1
    board[1::2, ::2] = 1
    return board
"""
HEAD = "def checkerboard(rows, columns):\n"


def replaced(source: str):
    def change(notebook: Notebook) -> None:
        cell_of(notebook, ID)["source"] = source

    return change


def deleted(notebook: Notebook) -> None:
    notebook["cells"].remove(cell_of(notebook, ID))


def duplicated(notebook: Notebook, source: str = "") -> None:
    place = notebook["cells"].index(cell_of(notebook, ID))
    copy = deepcopy(notebook["cells"][place])
    copy["source"] = source or copy["source"]
    notebook["cells"].insert(place + 1, copy)


def duplicated_and_changed(notebook: Notebook) -> None:
    duplicated(notebook, f"{HEAD}    return 0")


def above_the_imports(notebook: Notebook) -> None:
    cell = cell_of(notebook, ID)
    notebook["cells"].remove(cell)
    notebook["cells"].insert(0, cell)


BAD = [
    (deleted, 0, "not started"),
    (duplicated, 6, "9 of 9 cases passed"),
    (duplicated_and_changed, 0, "`rows` is not used, so the result does not depend on it."),
    (above_the_imports, 6, "9 of 9 cases passed"),
    (replaced("def checkerboard(rows, columns)\n    return 1"), 0, "(SyntaxError: expected ':'"),
    (replaced(f"{HEAD}    return input('how many?')"), 0, "`input()` asks a person"),
    (replaced(f"n = input('how many?')\n{HEAD}    return n"), 0, "`input()` asks a person"),
    (replaced(f"{HEAD}    while True:\n        pass"), 0, "condition of the `while` ever become"),
    (replaced("while True:\n    pass"), 0, "It did not end within 1 seconds"),
    (replaced("class checkerboard:\n    rows = 1"), 0, "should be a function, and it is a class."),
    (replaced("checkerboard = 3"), 0, "should be a function, and it is a whole number."),
    (replaced(f"async {HEAD}{RIGHT}"), 0, "which `async def` makes of a function. Write `def`."),
    (replaced(f"{HEAD}    yield 3"), 0, "which `yield` makes of a function."),
    (replaced(f"sum = 3\n{HEAD}{RIGHT}"), 6, "9 of 9 cases passed"),
    (replaced(f"{HEAD}{RIGHT}\ntk = None"), 0, "`tk` is no longer what it was: a cell gave it"),
    (replaced(f"{HEAD}    range(9)\n{RIGHT}\nrange = 3"), 0, "`range` is no longer what it was:"),
    (replaced(f"tk = None\nprint(tk.pi)\n{HEAD}{RIGHT}"), 0, "It gives `tk` another value."),
]


@pytest.mark.parametrize(("change", "points", "words"), BAD)
def test_an_odd_answer_gets_one_true_sentence_and_costs_no_other_exercise(
    klass_once: Class, change, points, words
) -> None:
    notebook = klass_once.honest()
    change(notebook)
    reports = {
        exercise.report.exercise_id: exercise.report
        for exercise in klass_once.grade(notebook).exercises
    }
    assert " ".join(str(reports[ID]).split()).count(words) == 1, str(reports[ID])
    earned = {id: each.score for id, each in reports.items() if each.possible and id != ID}
    possible = {id: each.possible for id, each in reports.items() if each.possible and id != ID}
    assert (reports[ID].score, earned) == (points, possible)


def test_what_an_answer_changes_is_reported_and_does_not_reach_other_exercises(
    klass_once: Class,
) -> None:
    notebook = klass_once.honest()
    replaced(f"{HEAD}    tk.set_default_dtype(tk.float64)\n{RIGHT}")(notebook)
    result = klass_once.grade(notebook)
    reports = {exercise.report.exercise_id: exercise.report for exercise in result.exercises}
    assert sum(report.score for report in reports.values()) == 20
    assert reports[ID].notes[0].startswith("Your code changes the default dtype and leaves it so.")


@pytest.mark.parametrize("name", ["tk.zeros", "tk.from_numpy", "tk.Tensor.float"])
def test_a_name_of_the_library_that_a_cell_replaces_is_said_and_costs_nothing(
    klass_once: Class, name
) -> None:
    notebook = klass_once.honest()
    replaced(f"{name} = None\n{HEAD}{RIGHT}")(notebook)
    reports = [exercise.report for exercise in klass_once.grade(notebook).exercises]
    assert sum(report.score for report in reports) == 20
    assert sum(f"Your code changes `{name}`" in str(report.notes) for report in reports) == 1
