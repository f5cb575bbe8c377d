"""The doctor: a sentence for each thing that is wrong with a notebook, a server or a link."""

from __future__ import annotations

import ast
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from classroom import CHAPTER, FILE, ROOT, Class, School, cell_of, put_first

from course.cli import commands, doctor
from course.grading import server
from course.notebook.matching import Source
from course.sandbox import linux, profiles

ID = "pixels"


@pytest.fixture
def klass(source: Source) -> Class:
    return Class(None, source)  # type: ignore[arg-type]


def said(tmp_path: Path, notebook: Any, name: str = FILE) -> list[str]:
    content = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    (tmp_path / name).write_bytes(content)
    return [str(each) for each in doctor.read_through(tmp_path, doctor.source_for(ROOT, CHAPTER))]


def test_a_whole_notebook_gets_no_finding(klass: Class, tmp_path: Path) -> None:
    assert said(tmp_path, klass.honest()) == []


def test_the_released_notebook_is_only_not_started(klass: Class, tmp_path: Path) -> None:
    (only,) = said(tmp_path, klass.blank())
    assert only.startswith("look      Answer cells without an answer, ")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(:", "wrong     The cell 'def f(:': Python cannot read it (SyntaxError in line 1)."),
        ("while True:\n    pass", "The loop in line 1 never ends as it is written."),
        ("name = input()", "input() waits for somebody"),
        ("!pip install torch", "none starts while it is graded"),
        ("import os, torch.nn", "`torch` is not there when it is graded"),
    ],
)
def test_what_fails_when_it_is_graded_is_named(
    klass: Class, tmp_path: Path, code: str, expected: str
) -> None:
    (only,) = said(tmp_path, put_first(klass.honest(), code))
    assert expected in only


def test_broken_imports_are_mended_when_it_is_graded(
    klass: Class, source: Source, tmp_path: Path
) -> None:
    notebook = klass.honest()
    cell = next(each for each in notebook["cells"] if each["id"] == source.setup)
    cell["source"] = "import tensorkit as tk(\n"
    (only,) = said(tmp_path, notebook)
    assert only.startswith("repaired  ")
    assert "SyntaxError in line 1). Graded with the imports that were released." in only


def test_cells_that_take_long_to_read_are_not_waited_for(
    klass: Class, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LONGEST_READ", 0.5)
    # IPython takes an hour to read the first
    notebook = put_first(put_first(klass.honest(), "def f(:"), ";" * 1_000_000)
    first, last = said(tmp_path, notebook)
    assert "Python cannot read it (TimeLimit)" in first
    assert last == "look      Its code takes too long to read: not all cells were looked at."


@pytest.mark.parametrize(
    "code",
    [
        "while True:\n    break",
        "while stack:\n    stack.pop()",
        "while n < 3:\n    n += 1",
        "while rows[0]:\n    rows[0] -= 1",
        "while left():\n    pass",
        "while False:\n    pass",
    ],
)
def test_a_loop_that_can_end_is_not_accused(code: str) -> None:
    loop = ast.parse(code).body[0]
    assert isinstance(loop, ast.While)
    assert not doctor.never_ends(loop)


def test_a_long_loop_is_looked_through_once() -> None:
    # each name was looked for in all of it: hours, for the longest cell that is read
    (loop,) = ast.parse("while x:\n" + " y\n" * 20_000).body
    assert isinstance(loop, ast.While)
    begun = time.process_time()
    assert doctor.never_ends(loop)
    assert time.process_time() - begun < 5


def test_what_grading_mends_is_said_to_be_mended(klass: Class, tmp_path: Path) -> None:
    notebook = klass.honest()
    notebook["cells"].append(dict(cell_of(notebook, ID), id="second"))
    cell_of(notebook, f"check-{ID}")["source"] = "99.0"
    notebook["metadata"]["kernelspec"]["name"] = "conda-env"
    found = said(tmp_path, notebook, "final version (2).ipynb")
    assert {each.split()[0] for each in found} == {"repaired"}
    text = "\n".join(found)
    for part in (
        "was called",
        "was there 2 times; number 1 from the top counts",
        "had been changed",
        "'conda-env'",
    ):
        assert part in text


@pytest.mark.parametrize("place", [f"check-{ID}", "checkerboard", "private-copy"])
def test_an_answer_that_grading_does_not_find_is_named(
    klass: Class, source: Source, tmp_path: Path, place: str
) -> None:
    notebook = klass.honest()
    answer = cell_of(notebook, ID)
    written, answer["source"] = answer["source"], source.by_id[answer["id"]]["source"]
    cell_of(notebook, place)["source"] += "\n" + written
    wrong = [each for each in said(tmp_path, notebook) if each.startswith("wrong")]
    assert len(wrong) == 1
    assert f"belongs into the cell {ID}. Move it there" in wrong[0]


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_in_a_cell_that_is_no_code_is_named(
    klass: Class, source: Source, tmp_path: Path, kind: str
) -> None:
    notebook = klass.honest()
    answer = cell_of(notebook, ID)
    own = {"cell_type": kind, "id": "mine", "metadata": {}, "source": answer["source"]}
    answer["source"] = source.by_id[answer["id"]]["source"]
    notebook["cells"].append(own)
    (wrong, _) = said(tmp_path, notebook)
    assert wrong.startswith("wrong     The cell '")
    assert f"is {kind}, but it has an answer to {ID}. Make it a code cell" in wrong
    own["cell_type"] = "code"
    (mended,) = said(tmp_path, notebook)
    assert mended.startswith("repaired  ")


def test_two_answers_in_each_others_cells_are_named(klass: Class, tmp_path: Path) -> None:
    # a perfect learner had 10 of 20 points, and nobody was told why
    notebook = klass.honest()
    one, other = cell_of(notebook, ID), cell_of(notebook, "private-copy")
    one["source"], other["source"] = other["source"], one["source"]
    wrong = [each for each in said(tmp_path, notebook) if each.startswith("wrong")]
    assert len(wrong) == 2


def test_an_answer_of_another_name_is_named(klass: Class, tmp_path: Path) -> None:
    # its check finds nothing: no points, and the doctor said that nothing was wrong
    notebook = klass.honest()
    answer = cell_of(notebook, ID)
    answer["source"] = answer["source"].replace("to_unit_range", "to_unit")
    (only,) = said(tmp_path, notebook)
    assert only.startswith(f"wrong     The cell {ID} does not define `to_unit_range`")


@pytest.mark.parametrize(
    "form", ["{}\nglobals()['{name}'] = {name}", "{}\nother, {name} = 1, {name}"]
)
def test_an_answer_that_no_line_begins_to_define_is_not_accused(
    klass: Class, tmp_path: Path, form: str
) -> None:
    # it was called wrong, and had all points
    notebook = klass.honest()
    answer, name = cell_of(notebook, ID), "to_unit_range"
    text = answer["source"].replace(f"def {name}", f"def _{name}")
    answer["source"] = form.format(text, name=name).replace(f" = {name}", f" = _{name}")
    answer["source"] = answer["source"].replace(f"1, {name}", f"1, _{name}")
    (only,) = said(tmp_path, notebook)
    assert only.startswith(f"look      The cell {ID} has `{name}`, but no line of it begins with")


@pytest.mark.parametrize(
    "form",
    [
        "({name}, other) = _{name}, 1",
        "other, {name} = 1, _{name}",
        "globals()['{name}'] = _{name}",
        "from math import sqrt as {name}",
        "for {name} in [_{name}]: pass",
        "({name} := _{name})",
    ],
)
def test_an_own_cell_that_binds_the_name_of_an_answer_is_worth_a_look(
    klass: Class, source: Source, tmp_path: Path, form: str
) -> None:
    notebook = klass.honest()
    answer, name = cell_of(notebook, ID), "to_unit_range"
    text = answer["source"].replace(f"def {name}", f"def _{name}")
    answer["source"] = source.by_id[ID]["source"]
    own = {"cell_type": "code", "source": f"{text}\n{form.format(name=name)}", "metadata": {}}
    notebook["cells"] += [{**own, "id": "own"}]
    own_cell, not_started = said(tmp_path, notebook)
    assert f"gives `{name}` a value. If that is the answer, write it into the cell {ID}" in own_cell
    assert "without an answer" in not_started


@pytest.mark.parametrize(
    ("below", "which"),
    [(ID, "Yours stands between"), (f"check-{ID}", f"What the cell {ID} has is graded")],
)
def test_an_answer_in_two_cells_is_worth_a_look(
    klass: Class, tmp_path: Path, below: str, which: str
) -> None:
    notebook = klass.honest()
    cell = {"cell_type": "code", "source": cell_of(notebook, ID)["source"] + "\n", "metadata": {}}
    at = notebook["cells"].index(cell_of(notebook, below)) + 1
    notebook["cells"].insert(at, {**cell, "id": "the-same"})
    assert said(tmp_path, notebook) == []
    notebook["cells"].insert(at, {**cell, "source": cell["source"] + "# better", "id": "another"})
    (only,) = said(tmp_path, notebook)
    both = (
        f"look      The cell {ID} is not as it was released, and a cell of your own has an answer."
    )
    assert only.startswith(both)
    assert which in only


@pytest.mark.parametrize("left", ["{}", "# see below", "print('see below')", "pass"])
def test_different_answers_in_own_cells_are_worth_a_look(
    klass: Class, source: Source, tmp_path: Path, left: str
) -> None:
    notebook = klass.honest()
    answer = cell_of(notebook, ID)
    cell = {"cell_type": "code", "source": answer["source"], "metadata": {}}
    answer["source"] = left.format(source.by_id[ID]["source"])
    notebook["cells"] += [{**cell, "source": cell["source"] + "# try", "id": "first"}]
    notebook["cells"] += [{**cell, "id": "second"}]
    look, repaired = said(tmp_path, notebook)
    assert look.startswith(f"look      Cells of your own have different answers to {ID}. The last")
    assert "what another cell gives its name counts" in repaired


def test_predictions_of_several_own_cells_are_not_called_different_answers(
    klass: Class, tmp_path: Path
) -> None:
    # both counted, and to move "the right one" would have lost points
    notebook = klass.blank()
    own = {"cell_type": "code", "metadata": {}}
    notebook["cells"] += [{**own, "id": "first", "source": "dtypes |= {'tk.ones(1)': 'float32'}"}]
    notebook["cells"] += [{**own, "id": "second", "source": "dtypes = dtypes | {'x': 'int64'}"}]
    assert not any("different answers" in each for each in said(tmp_path, notebook))


def test_an_answer_in_the_released_cell_with_the_imports_is_not_in_a_cell_of_the_learners_own(
    klass: Class, source: Source, tmp_path: Path
) -> None:
    notebook = klass.blank()
    cell_of(notebook, str(source.setup))["source"] += "\ndef to_unit_range(image): return image"
    first = said(tmp_path, notebook)[0]
    assert "has 'def to_unit_range', which belongs into the cell pixels" in first
    assert "your own" not in first


def test_an_answer_above_the_released_code_in_its_cell_is_wrong(
    klass: Class, source: Source, tmp_path: Path
) -> None:
    # no points, and the doctor said that nothing was wrong
    notebook, stub = klass.honest(), source.by_id[ID]["source"]
    cell_of(notebook, ID)["source"] += f"\n\n{stub}"
    (only,) = said(tmp_path, notebook)
    assert only.startswith(f"wrong     The cell {ID} has an answer and, below it, the released")
    cell_of(notebook, ID)["source"] = f"{stub}\n\n{klass.exercises[ID].solution_source}"
    assert said(tmp_path, notebook) == []


@pytest.mark.parametrize("left", ["x = 1", "import math", "print('mine')\nx = 2"])
@pytest.mark.parametrize(("below", "is_graded"), [(ID, True), (f"check-{ID}", False)])
def test_an_answer_below_its_check_is_named_where_the_answer_cell_has_other_code(
    klass: Class, tmp_path: Path, left: str, below: str, is_graded: bool
) -> None:
    notebook = klass.honest()
    answer = cell_of(notebook, ID)
    own = {"cell_type": "code", "source": answer["source"], "metadata": {}, "id": "mine"}
    answer["source"] = left
    notebook["cells"].insert(notebook["cells"].index(cell_of(notebook, below)) + 1, own)
    found = [each for each in said(tmp_path, notebook) if "below its check" in each]
    assert len(found) == (not is_graded)


def test_a_notebook_that_names_no_release_is_not_called_an_older_one(
    klass: Class, tmp_path: Path
) -> None:
    notebook = klass.honest()
    notebook["metadata"].pop("course")  # as Colab leaves it
    assert said(tmp_path, notebook) == []


def test_an_older_release_is_worth_a_look(klass: Class, tmp_path: Path) -> None:
    notebook = klass.honest()
    notebook["metadata"]["course"] = {"chapter": CHAPTER, "release": "older"}
    (older,) = said(tmp_path, notebook)
    assert "course update 01" in older


OF_ANOTHER_CHAPTER = (ROOT / "notebooks/02_operations/02_operations.ipynb").read_bytes()


@pytest.mark.parametrize(
    "content", [b"no JSON", b"[]", b'{"cells": 3, "nbformat": 4}', OF_ANOTHER_CHAPTER]
)
def test_what_is_no_notebook_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (only,) = said(tmp_path, content)
    assert only.startswith("wrong     It cannot be graded.")


@pytest.mark.rest
def test_the_command_looks_at_own_work_and_at_what_was_handed_in(
    klass: Class, school: School, capsys: pytest.CaptureFixture[str]
) -> None:
    school.submit("ada", klass.honest())
    school.submit("bob", put_first(klass.honest(), "while True: pass"))
    commands.app(["doctor", "1", "--learner", "ada"], standalone_mode=False)
    assert capsys.readouterr().out == f"{CHAPTER}, ada: nothing is wrong.\n"
    assert commands.app(["doctor", "--submitted"], standalone_mode=False) == 1
    told = capsys.readouterr().out
    assert "bob:\n  wrong" in told
    assert told.endswith(f"{CHAPTER}: 2 submissions, 1 with something wrong, 0 with remarks.\n")
    assert "ada" not in told


@pytest.mark.skipif(profiles.best() != profiles.NAMESPACES, reason="needs namespaces")
def test_namespaces_in_which_nothing_can_be_mounted_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # as under Ubuntu's AppArmor rule; grading then takes the other sandbox, and does not stop
    def refuses(target: str, options: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(linux, "tmpfs", refuses)
    assert "not permitted" in (profiles.why_not(profiles.NAMESPACES) or "")
    assert profiles.best() in (profiles.LANDLOCK, None)


def test_a_server_without_namespaces_is_told_what_to_ask_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(profiles, "why_not", lambda profile: f"The kernel refuses {profile}.")
    text = "\n".join(server.examine())
    assert "Nothing is graded on this machine" in text
    assert "Ask your administrator" in text


@pytest.mark.skipif(
    sys.platform == "win32" or not server._is_open(Path(tempfile.gettempdir())),
    reason="needs a folder that every user can reach",
)
@pytest.mark.parametrize(("mode", "is_told"), [(0o755, True), (0o750, False)])
def test_a_course_that_every_user_can_read_is_told_so(mode: int, is_told: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "notebooks").mkdir()
        (root / "course").mkdir()
        (root / "course" / "gradebook.db").touch()
        root.chmod(mode)
        assert any("chmod o-rwx" in each for each in server._course(root)) == is_told
