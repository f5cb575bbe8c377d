"""Building gives the same bytes each time, refuses what is wrong, and knows a hand edit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny
from tiny import DOUBLE, HALF

from course.authoring import build
from course.shared.errors import CourseError

SOLUTION = "solutions/01_numbers/01_numbers.ipynb"
RELEASE = "notebooks/01_numbers/01_numbers.ipynb"


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        tiny.register(patch, DOUBLE, HALF)
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny course, built once; only to be read."""
    root = tiny.write_course(tmp_path_factory.mktemp("built"))
    build.build(root, ["01_numbers"])
    return root


@pytest.fixture
def course(built: Path, tmp_path: Path) -> Path:
    """The tiny course, built, for a test that changes it."""
    return Path(shutil.copytree(built, tmp_path / "course"))


def _bytes(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_building_writes_both_notebooks_and_the_data(built: Path) -> None:
    assert set(_bytes(built)) == {
        "solutions/01_numbers.py",
        "solutions/01_numbers/data.csv",
        SOLUTION,
        "notebooks/01_numbers/data.csv",
        RELEASE,
    }
    assert (built / SOLUTION).read_bytes().endswith(b"}\n")
    assert (built / RELEASE).read_bytes().endswith(b"}\n")


def test_outputs_are_stored_in_the_notebook_with_the_answers(built: Path) -> None:
    notebook = tiny.read(built / SOLUTION)
    last = notebook.cells[-1]
    assert [output.get("text") or output.data["text/plain"] for output in last.outputs] == [
        "seen\n",
        "{'two': 2}",
    ]
    numbers = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_stored_traceback_shows_the_cell_and_no_path(built: Path) -> None:
    (output,) = tiny.read(built / SOLUTION).cells[-2].outputs
    assert output.ename == "JSONDecodeError"
    assert "json.loads" in build.COLOUR.sub("", "\n".join(output.traceback))
    assert "decoder.py" not in "\n".join(output.traceback)


def test_no_machine_stands_in_what_is_built(built: Path) -> None:
    for name in (SOLUTION, RELEASE):
        text = (built / name).read_text(encoding="utf-8")
        assert str(Path.home()) not in text
        assert "course-build-" not in text


def test_rebuilding_changes_no_byte(course: Path) -> None:
    before = _bytes(course)
    assert build.build(course, ["01_numbers"]) == []
    assert _bytes(course) == before


def test_building_elsewhere_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    elsewhere = tiny.write_course(tmp_path / "a longer name" / "course")
    build.build(elsewhere, ["01_numbers"])
    assert _bytes(elsewhere) == _bytes(built)


def test_outputs_that_compare_equal_stay_as_they_were_committed() -> None:
    def picture(pixels: str) -> dict[str, object]:
        return {
            "output_type": "display_data",
            "metadata": {},
            "data": {"image/png": pixels, "text/plain": "<Figure>"},
        }

    def notebook(pixels: str, text: str) -> tiny.NotebookNode:
        figure = tiny.nbformat.v4.new_code_cell("draw()", id="a", outputs=[picture(pixels)])
        stream = tiny.nbformat.v4.new_output("stream", name="stdout", text=text)
        printed = tiny.nbformat.v4.new_code_cell("show()", id="b", outputs=[stream])
        notebook = tiny.nbformat.v4.new_notebook(cells=[figure, printed])
        return tiny.nbformat.from_dict(notebook)

    new = notebook("bmV3", "new")
    build._keep_equal_outputs(new, notebook("b2xk", "old"))
    assert new.cells[0].outputs[0].data["image/png"] == "b2xk"
    assert new.cells[1].outputs[0].text == "new"


def test_nothing_is_reported_of_a_course_that_is_built(course: Path) -> None:
    assert build.differences(course, ["01_numbers"]) == []
    assert build.without_text(course) == []


@pytest.mark.parametrize("name", [SOLUTION, RELEASE])
def test_a_hand_edit_is_reported_with_the_cell_and_the_command(course: Path, name: str) -> None:
    tiny.change(course / name, "check-half-it", "check('half-it')  # edited")
    (said,) = build.differences(course, ["01_numbers"])
    assert said == (
        f"{name}: cell 9 (check-half-it) is not what solutions/01_numbers.py gives; "
        "mend it with: course build 01_numbers"
    )


def test_an_edit_of_points_is_reported(course: Path) -> None:
    path = course / RELEASE
    path.write_text(path.read_text().replace('"points": 2.0', '"points": 20.0'))
    assert ["(check-half-it)" in said for said in build.differences(course, ["01_numbers"])] == [
        True
    ]


def test_outputs_are_no_drift(course: Path) -> None:
    path = course / SOLUTION
    path.write_text(path.read_text().replace("seen\\n", "something else\\n"))
    assert build.differences(course, ["01_numbers"]) == []


def test_a_change_of_the_text_is_reported_for_both_notebooks(course: Path) -> None:
    text = course / "solutions" / "01_numbers.py"
    text.write_text(text.read_text().replace('print("seen")', 'print("unseen")'))
    said = build.differences(course, ["01_numbers"])
    assert {sentence.split(":")[0] for sentence in said} == {SOLUTION, RELEASE}


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_text("not JSON"), "is not a notebook"),
        (lambda path: (path.parent / "data.csv").write_text("9"), "data.csv is not what"),
        (lambda path: (path.parent / "more.csv").write_text("9"), "more.csv is not what"),
    ],
)
@pytest.mark.rest
def test_damage_is_reported_and_mended_by_building(
    course: Path, damage: object, sentence: str
) -> None:
    before = _bytes(course)
    damage(course / RELEASE)  # type: ignore[operator]
    (said,) = build.differences(course, ["01_numbers"])
    assert sentence in said
    assert said.endswith("course build 01_numbers")
    build.build(course, ["01_numbers"])
    assert _bytes(course) == before


def test_cells_in_another_order_are_reported(course: Path) -> None:
    notebook = json.loads((course / RELEASE).read_text())
    notebook["cells"].reverse()
    (course / RELEASE).write_text(json.dumps(notebook))
    (said,) = build.differences(course, ["01_numbers"])
    assert "the order of the cells is not what" in said


def test_a_released_chapter_without_a_text_is_reported(course: Path) -> None:
    (course / "solutions" / "01_numbers.py").unlink()
    assert build.without_text(course) == [
        "solutions/01_numbers has no text solutions/01_numbers.py; remove the folder.",
        "notebooks/01_numbers has no text solutions/01_numbers.py; remove the folder.",
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1 / 0", "this cell raises ZeroDivisionError: division by zero"),
        pytest.param(
            "object()", "the output of this cell holds an address", marks=pytest.mark.rest
        ),
        pytest.param(
            "import os; os._exit(1)", "this cell ends the kernel.", marks=pytest.mark.rest
        ),
    ],
)
def test_a_cell_that_cannot_be_built_is_named(course: Path, line: str, sentence: str) -> None:
    before = _bytes(course / "notebooks")
    text = course / "solutions" / "01_numbers.py"
    text.write_text(text.read_text().replace('print("seen")\n{"two": 2}', line))
    with pytest.raises(CourseError, match=r"01_numbers\.py:22: ") as caught:
        build.build(course, ["01_numbers"])
    assert sentence in str(caught.value)
    assert _bytes(course / "notebooks") == before, "a failed build leaves everything as it was"


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [('HTML("1 of 2 cases passed")', "1 of 2 cases passed"), ("0.0", "it shows no report")],
)
def test_a_chapter_whose_own_solution_fails_is_not_built(
    course: Path, shown: str, sentence: str
) -> None:
    before = _bytes(course / "notebooks")
    text = course / "solutions" / "01_numbers.py"
    head = "from IPython.display import HTML\ncheck = lambda id: "
    written, n = re.subn(r"(?m)^check = .*$", head + shown, text.read_text())
    assert n == 1
    text.write_text(written)
    with pytest.raises(CourseError, match=f"worked solution does not pass .*: {sentence}"):
        build.build(course, ["01_numbers"])
    assert _bytes(course / "notebooks") == before
