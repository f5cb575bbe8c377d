"""Intake: what is read of a submission, and how it is repaired."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from classroom import CHAPTER, FILE, Notebook, cell_of

from course.grading import intake
from course.grading.session import remove
from course.notebook import matching
from course.notebook.matching import Refused, Source


def repaired(source: Source, notebook: Notebook) -> matching.Repaired:
    return matching.repair(json.dumps(notebook).encode(), source)


def by_id(found: matching.Repaired) -> dict[str, matching.Cell]:
    ids = [cell["id"] for cell in found.cells]
    assert len(ids) == len(set(ids)), "an id stands twice"
    return {cell["id"]: cell for cell in found.cells}


@pytest.fixture
def notebook(source: Source) -> Notebook:
    return deepcopy(source.released)


def test_an_untouched_notebook_needs_no_repair(source: Source, notebook: Notebook) -> None:
    found = repaired(source, notebook)
    assert found.notes == ()
    assert [cell["id"] for cell in found.cells] == [cell["id"] for cell in notebook["cells"]]


def test_the_answer_is_the_learners_and_all_else_the_instructors(
    source: Source, notebook: Notebook
) -> None:
    cell_of(notebook, "pixels").update(source="mine", metadata={"nbgrader": {"grade_id": "pixels"}})
    cell = by_id(repaired(source, notebook))["pixels"]
    assert cell["source"] == "mine"
    assert cell["metadata"] == cell_of(source.released, "pixels")["metadata"]


@pytest.mark.parametrize("first_is_answered", [True, False])
def test_of_a_doubled_cell_the_answered_one_counts(
    source: Source, notebook: Notebook, first_is_answered: bool
) -> None:
    where = notebook["cells"].index(cell_of(notebook, "pixels"))
    double = deepcopy(notebook["cells"][where])
    double["id"] = "copied"
    notebook["cells"].insert(where + 1, double)
    (notebook["cells"][where] if first_is_answered else double)["source"] = "mine"
    found = repaired(source, notebook)
    assert by_id(found)["pixels"]["source"] == "mine"
    number = 1 if first_is_answered else 2
    told = f"The cell pixels was there 2 times; number {number} from the top counts."
    assert told in found.notes


@pytest.mark.parametrize("became", ["nothing", "markdown"])
def test_the_imports_come_back(source: Source, notebook: Notebook, became: str) -> None:
    first = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    if became == "nothing":
        notebook["cells"].remove(first)
    else:
        first["cell_type"] = became
    found = repaired(source, notebook)
    code = next(cell for cell in found.cells if cell["cell_type"] == "code")
    assert code["source"] == source.by_id[source.setup or ""]["source"]
    assert any("with the imports" in note for note in found.notes)


def test_a_deleted_check_comes_back(source: Source, notebook: Notebook) -> None:
    notebook["cells"].remove(cell_of(notebook, "check-pixels"))
    found = repaired(source, notebook)
    ids = [cell["id"] for cell in found.cells]
    assert ids.index("check-pixels") == ids.index("pixels") + 1
    assert any("check-pixels had been deleted" in note for note in found.notes)


def test_a_changed_check_is_as_released(source: Source, notebook: Notebook) -> None:
    cell_of(notebook, "check-pixels")["source"] = "6.0"
    found = repaired(source, notebook)
    assert by_id(found)["check-pixels"]["source"] == 'check("pixels")'
    assert any("check-pixels had been changed" in note for note in found.notes)


def test_an_answer_that_became_text_is_code_again(source: Source, notebook: Notebook) -> None:
    cell_of(notebook, "pixels").update(cell_type="markdown", source="mine")
    cell = by_id(repaired(source, notebook))["pixels"]
    assert (cell["cell_type"], cell["source"]) == ("code", "mine")


def test_an_answer_without_its_id_is_found_by_what_it_defines(
    source: Source, notebook: Notebook
) -> None:
    cell = cell_of(notebook, "pixels")
    cell.update(
        id="pasted", metadata={}, source="def to_unit_range(image):\n    return image / 255"
    )
    found = repaired(source, notebook)
    assert by_id(found)["pixels"]["source"].endswith("image / 255")
    assert any("pixels had lost its id" in note for note in found.notes)


ANSWER = "def to_unit_range(image):\n    return image / 255"


@pytest.mark.parametrize("before", ["pixels", "check-pixels", "half-precision"])
def test_an_answer_in_a_cell_of_its_own_counts_where_the_answer_cell_is_as_released(
    source: Source, notebook: Notebook, before: str
) -> None:
    at = notebook["cells"].index(cell_of(notebook, before))
    own = {"cell_type": "code", "source": ANSWER, "metadata": {}, "id": "my-own"}
    first = {**own, "source": ANSWER.replace("255", "2"), "id": "first-try"}
    notebook["cells"][at:at] = [first, own]
    found = repaired(source, notebook)
    assert by_id(found)["pixels"]["source"] == ANSWER
    assert sum(cell["source"] == ANSWER for cell in found.cells) == 1
    assert any("pixels was as released; what another cell" in note for note in found.notes)


def test_one_cell_may_hold_the_answers_to_several_exercises(
    source: Source, notebook: Notebook
) -> None:
    text = f"{ANSWER}\ndef strides_of(shape):\n    return ()"
    notebook["cells"].append({"cell_type": "code", "source": text, "metadata": {}, "id": "all"})
    cells = by_id(repaired(source, notebook))
    assert cells["pixels"]["source"] == cells["strides-of"]["source"] == text


def test_an_answer_cell_that_was_written_in_counts_before_any_other(
    source: Source, notebook: Notebook
) -> None:
    cell_of(notebook, "pixels")["source"] = "def to_unit_range(image): return image"
    notebook["cells"].append({"cell_type": "code", "source": ANSWER, "metadata": {}, "id": "own"})
    assert by_id(repaired(source, notebook))["pixels"]["source"].endswith("return image")


def test_a_notebook_without_any_id_is_put_in_order_and_said_in_few_words(
    source: Source, notebook: Notebook
) -> None:
    own = {"cell_type": "code", "source": "mine = 1", "metadata": {}}
    at = next(n for n, cell in enumerate(notebook["cells"]) if cell["id"] == "pixels")
    notebook["cells"].insert(at, own)
    for cell in notebook["cells"]:
        cell.pop("id", None)
        cell["metadata"] = {"id": "Xy12", "colab": {}}
    found = repaired(source, notebook)
    told = [cell["source"] for cell in found.cells]
    released = [cell["source"] for cell in source.released["cells"]]
    assert told == [*released[:at], "mine = 1", *released[at:]]
    assert len(found.notes) == 2


def by_vs_code(notebook: Notebook) -> None:
    """As releases of 2021 write it: no ids, a kernel of their own naming; newer ones keep more."""
    kernel = {
        "display_name": "Python 3.8.3 64-bit ('base': conda)",
        "name": "python383jvsc74a57bd0",
    }
    notebook.update(nbformat_minor=2)
    notebook["metadata"].update(kernelspec=kernel, orig_nbformat=4)
    notebook["metadata"]["vscode"] = {"interpreter": {"hash": "b1677b44"}}
    for cell in notebook["cells"]:
        del cell["id"]
        cell["metadata"]["vscode"] = {"languageId": "python"}
        cell["source"] = cell["source"].splitlines(keepends=True)


def by_colab(notebook: Notebook) -> None:
    """Its own badge first, ids of its own in the metadata, a state of widgets without `state`."""
    notebook.update(nbformat_minor=0)
    notebook["metadata"] = {
        "accelerator": "GPU",
        "colab": {"provenance": [], "gpuType": "T4"},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "widgets": {"application/vnd.jupyter.widget-state+json": {"0a1b": {"model_name": "HBox"}}},
    }
    for cell in notebook["cells"]:
        del cell["id"]
        marks = cell["metadata"].get("nbgrader")
        cell["metadata"] = {"id": "w5R64Bnf2jJM"} | ({"nbgrader": marks} if marks else {})
        if cell["cell_type"] == "code":
            cell["metadata"] |= {"outputId": "3f0e", "executionInfo": {"status": "ok"}}
            cell["outputs"] = [
                {"output_type": "display_data", "data": {"image/png": "iVBORw0="}, "metadata": {}}
            ]
    badge = {"id": "view-in-github", "colab_type": "text"}
    badge_cell = {"cell_type": "markdown", "metadata": badge, "source": ["<a href='x'>Open</a>"]}
    notebook["cells"].insert(0, badge_cell)


@pytest.mark.parametrize("written", [by_vs_code, by_colab])
def test_what_other_editors_write_is_found_without_repair(
    source: Source, notebook: Notebook, written: Callable[[Notebook], None]
) -> None:
    cell_of(notebook, "pixels")["source"] = "mine = 1"
    written(notebook)
    found = repaired(source, notebook)
    assert found.notes == ()
    assert by_id(found)["pixels"]["source"] == "mine = 1"
    assert set(source.by_id) <= set(by_id(found))


def test_moved_cells_stand_in_order_again(source: Source, notebook: Notebook) -> None:
    cell = cell_of(notebook, "pixels")
    notebook["cells"].remove(cell)
    notebook["cells"].append(cell)
    found = repaired(source, notebook)
    assert [cell["id"] for cell in found.cells] == [cell["id"] for cell in source.released["cells"]]
    assert any("moved" in note for note in found.notes)


def test_own_cells_stay_where_they_are_and_lose_their_marks(
    source: Source, notebook: Notebook
) -> None:
    own = {"cell_type": "code", "id": "x", "source": "1", "metadata": {"tags": ["show"]}}
    own["metadata"]["nbgrader"] = {"grade_id": "check-of-mine", "grade": True, "points": 100}
    where = notebook["cells"].index(cell_of(notebook, "pixels"))
    notebook["cells"].insert(where, own)
    cell = repaired(source, notebook).cells[where]
    assert cell["metadata"] == {}
    assert cell["source"] == "1"


# the folder


@pytest.fixture
def folder(tmp_path: Path, notebook: Notebook) -> Path:
    (tmp_path / FILE).write_text(json.dumps(notebook), encoding="utf-8")
    return tmp_path


def read(folder: Path) -> intake.Submission:
    return intake.read(folder, "ada", CHAPTER)


@pytest.mark.parametrize(
    "name", ["Copy of mine.ipynb", "MINE.IPYNB", f"{FILE}.txt", "a.ipynb.json"]
)
def test_a_renamed_notebook_is_found(folder: Path, name: str) -> None:
    (folder / FILE).rename(folder / name)
    assert name in read(folder).repaired[0]


def test_an_archive_is_opened(folder: Path) -> None:
    content = (folder / FILE).read_bytes()
    (folder / FILE).unlink()
    with zipfile.ZipFile(folder / "work.zip", "w") as archive:
        archive.writestr(f"deep/{FILE}", content)
        archive.writestr("../../escape.txt", "x")
    assert read(folder).notebook() == content
    assert not (folder.parent.parent / "escape.txt").exists()


def archived(content: bytes) -> bytearray:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(FILE, content)
    return bytearray(written.getvalue())


def put_bomb(folder: Path) -> None:
    (folder / FILE).unlink()
    (folder / "x.zip").write_bytes(archived(b"0" * (matching.MOST_BYTES * 2)))


def put_large_archive(folder: Path) -> None:
    (folder / FILE).unlink()
    with (folder / "x.zip").open("wb") as file:
        file.truncate(35_000_000)


def put_damaged(folder: Path) -> None:
    written = archived((folder / FILE).read_bytes())
    (folder / FILE).unlink()
    written[200:1000] = bytes(800)
    (folder / "x.zip").write_bytes(written)


def put_cut(folder: Path) -> None:
    written = archived((folder / FILE).read_bytes())
    (folder / FILE).unlink()
    written[-6:-2] = b"\xff" * 4  # where the list of contents begins
    (folder / "x.zip").write_bytes(written)


def put_two(folder: Path) -> None:
    (folder / FILE).rename(folder / "a.ipynb")
    (folder / "b.ipynb").write_text("{}", encoding="utf-8")


def put_large(folder: Path) -> None:
    with (folder / FILE).open("wb") as file:
        file.truncate(200 << 20)


def put_fifo(folder: Path) -> None:
    (folder / FILE).unlink()
    os.mkfifo(folder / FILE)


def put_link(folder: Path) -> None:
    (folder / FILE).unlink()
    (folder / FILE).symlink_to("/etc/passwd")


def put_folder(folder: Path) -> None:
    (folder / FILE).unlink()
    (folder / FILE).mkdir()


def put_too_deep(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / FILE).rename(folder / "inner" / FILE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put_bomb, "MB are read"),
        (put_large_archive, "The archive is too large"),
        (put_damaged, "cannot be read"),
        (put_cut, "cannot be read"),
        (put_two, "2 notebooks"),
        (put_large, "210 MB; 21 MB are read"),
        (put_fifo, "not a file"),
        (put_link, "no notebook"),
        (put_folder, "not a file"),
        (lambda folder: (folder / FILE).unlink(), "no notebook"),
        (
            lambda folder: (folder / FILE).rename(folder / "work.pdf"),
            f"no notebook {FILE}, but 'work.pdf'",
        ),
        (put_too_deep, f"but 'inner'. It must lie in the folder {CHAPTER} itself: save it there"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(
    folder: Path, change: Callable[[Path], None], words: str
) -> None:
    change(folder)
    with pytest.raises(Refused, match=words):
        read(folder).notebook()


def test_odd_names_do_no_harm(folder: Path) -> None:
    for name in ("\n.ipynb~", "a\tb", "$(reboot)", "ü" * 60):
        (folder / name).write_text("x", encoding="utf-8")
    assert read(folder).repaired == ()


def put_many(folder: Path) -> None:
    for n in range(intake.MOST_FILES + 5):
        (folder / f"-{n}").touch()


def put_deep(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: os.mkfifo(folder / "pipe"), "'pipe' is not a file"),
        (lambda folder: (folder / "link").symlink_to("/etc/passwd"), "'link'"),
        (lambda folder: os.truncate(folder / "big", 3 << 30), "3221 MB"),
        (put_many, "more than 1000 files"),
        (put_deep, "'d' is not a file"),
    ],
)
def test_of_what_is_not_collected_the_rest_is(
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    change: Callable[[Path], None],
    words: str,
) -> None:
    # stock: a pipe ends the collecting for everybody, and the large file is copied
    (folder / "big").touch()
    change(folder)
    to = tmp_path_factory.mktemp("collected") / "ada" / CHAPTER
    left_out = intake.collect(
        folder, to, lambda path, names: {name for name in names if name == "big~"}
    )
    remove(folder)
    assert words in "".join(left_out)
    (to / "timestamp.txt").touch()
    assert read(to).repaired == ()
    assert sum(path.stat().st_size for path in to.rglob("*")) < 10 << 20


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("2026-03-01 10:00:00 UTC", "2026-03-01T10:00:00+00:00"),
        ("2026-03-01 10:00:00.25 UTC", "2026-03-01T10:00:00.250000+00:00"),
        ("2026-03-01 10:00 UTC\r\n", "2026-03-01T10:00:00+00:00"),
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00+00:00"),
        ("2026-03-01 11:00:00+01:00", "2026-03-01T10:00:00+00:00"),
        ("tomorrow", None),
        ("2026-02-30 10:00:00 UTC", None),
        ("0001-01-01 00:00:00+01:00", None),
        ("", None),
        ("9" * 5000, None),
    ],
)
def test_the_collectors_time_is_read(folder: Path, text: str, known: str | None) -> None:
    (folder / "timestamp.txt").write_text(text, encoding="utf-8")
    assert read(folder).timestamp == known


@pytest.mark.parametrize(
    "content",
    [
        b"1.3.2026, 10 o'clock",
        b"2026-03-01 10:00 CET",
        b"\xff\xfe2",
        b"\xef\xbb\xbf2026-03-01 10:00 UTC",
        b"2026-03-01 10:00 UTC" + b" " * 200 + b"garbage",
    ],
)
def test_a_time_that_cannot_be_read_is_told(folder: Path, content: bytes) -> None:
    # whoever wrote it by hand believes that late work counts as late
    (folder / "timestamp.txt").write_bytes(content)
    (note,) = read(folder).repaired
    assert "it counts as in time" in note


def test_long_cells_without_ids_are_not_read_again_and_again(
    source: Source, notebook: Notebook
) -> None:
    for cell in notebook["cells"]:
        del cell["id"]
        cell["metadata"] = {}
    long = {"cell_type": "code", "metadata": {}, "source": "x = 1\n" * 160_000}
    notebook["cells"][3:3] = [long] * 15
    begun = time.process_time()
    repaired(source, notebook)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    "content",
    [
        b'{"nbformat": 4, "cells": [' + b"{}," * 6_000_000 + b"{}]}",
        b'{"nbformat": 4, "cells": [{"source": [' + b'"ab",' * 4_000_000 + b'"ab"]}]}',
        b'{"nbformat": 3, "worksheets": [{"cells": [' + b"{}," * 700_000 + b"{}]}]}",
    ],
)
def test_a_small_file_that_grows_is_refused(source: Source, content: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(Refused, match=r"lists and objects|old format"):
        matching.repair(content, source)
    assert time.process_time() - begun < 1
