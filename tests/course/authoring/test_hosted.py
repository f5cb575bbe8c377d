"""Copies for hosted notebooks: one more cell in front, and nothing else that the release lacks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from course.authoring import bundle, hosted
from course.notebook import chapter_folder, matching
from course.notebook.exercise import load
from course.shared import paths
from course.shared.errors import CourseError

ROOT = Path(__file__).parents[3]
CHAPTERS = paths.released_chapters(ROOT)
REPOSITORY = "ada/tensors"


@pytest.fixture(scope="module")
def unnamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as it is written while the repository has no address."""
    return hosted.write(ROOT, to=tmp_path_factory.mktemp("unnamed"), repository="")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hosted.write(ROOT, to=tmp_path_factory.mktemp("named"), repository=REPOSITORY)


def _cells(folder: Path, chapter: str) -> list[dict[str, Any]]:
    notebook = json.loads(paths.notebook_in(folder, chapter).read_text(encoding="utf-8"))
    cells: list[dict[str, Any]] = notebook["cells"]
    return cells


def _wheel(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


# the cell


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_copy_is_the_release_after_one_cell_and_without_a_link_to_another(
    named: Path, chapter: str
) -> None:
    first, *others = _cells(named, chapter)
    assert first["source"].startswith(chapter_folder.FIRST_LINE)
    assert f'enter("{chapter}")' in first["source"]
    released = _cells(paths.notebooks(ROOT), chapter)
    assert others == [cell for cell in released if "ipynb)" not in "".join(cell["source"])]


def test_the_cell_stands_nowhere_else() -> None:
    texts = [*(ROOT / "solutions").rglob("*.py"), *(ROOT / "solutions").rglob("*.ipynb")]
    texts += [*(ROOT / "notebooks").rglob("*.ipynb"), *(ROOT / "docs").rglob("*.ipynb")]
    assert len(texts) > 30
    for page in texts:
        text = page.read_text(encoding="utf-8")
        assert chapter_folder.FIRST_LINE not in text, page
        assert "pip install --quiet" not in text, page


@pytest.mark.parametrize("repository", ["", REPOSITORY])
def test_the_cell_is_python_to_ipython(unnamed: Path, repository: str) -> None:
    text = hosted.install_cell("01_tensors", _wheel(unnamed), repository)
    compile(TransformerManager().transform_cell(text), "cell", "exec")


def test_the_cell_gives_no_name_that_an_exercise_asks_for(unnamed: Path) -> None:
    text = hosted.install_cell("01_tensors", _wheel(unnamed), "")
    given = set(re.findall(r"(?m)^ *(\w+) = |import (\w+)", text))
    names = {name for pair in given for name in pair if name}
    assert {"wheel", "there", "enter"} <= names
    assert not names & {exercise.name for exercise in load().values()}


def test_the_cell_does_nothing_where_the_course_is_installed(
    unnamed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At home, where a learner opens a copy that they have downloaded."""
    monkeypatch.chdir(tmp_path)
    text = hosted.install_cell("01_tensors", _wheel(unnamed), "")
    exec(TransformerManager().transform_cell(text), {})  # `get_ipython` would be a NameError
    assert list(tmp_path.iterdir()) == []
    assert Path.cwd() == tmp_path
    assert capsys.readouterr().out == ""


def test_without_the_wheel_the_cell_says_what_to_upload(unnamed: Path, tmp_path: Path) -> None:
    text = hosted.install_cell("01_tensors", _wheel(unnamed), "")
    code = (
        f"from IPython.core.interactiveshell import InteractiveShell as S\nS().run_cell({text!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['tensorkit'] = None\n{code}"],
        cwd=tmp_path,
        env={**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"Upload {_wheel(unnamed).name} beside this notebook" in done.stdout, done


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_grading_does_not_see_the_cell(named: Path, chapter: str) -> None:
    source = matching.source_of(ROOT, chapter)
    copy, release = (
        paths.notebook_in(folder, chapter).read_bytes() for folder in (named, paths.notebooks(ROOT))
    )
    expected = matching.repair(release, source)
    # the link to the next chapter is not in the copy
    cells = [cell for cell in expected.cells if not cell["source"].startswith("**Next:**")]
    assert matching.repair(copy, source) == replace(expected, cells=cells)


def test_grading_does_not_see_it_in_a_notebook_that_lost_its_ids(named: Path) -> None:
    copy = json.loads(paths.notebook_in(named, "01_tensors").read_bytes())
    for cell in copy["cells"]:
        del cell["id"]
        cell["source"] = (
            cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        )
    found = matching.repair(json.dumps(copy).encode(), matching.source_of(ROOT, "01_tensors"))
    assert not [cell for cell in found.cells if "pip install" in cell["source"]]


# addresses


def test_without_a_repository_nothing_names_an_address(unnamed: Path) -> None:
    for file in unnamed.rglob("*"):
        if file.suffix in (".ipynb", ".md"):
            text = file.read_text(encoding="utf-8")
            for name in ("colab.research", "raw.githubusercontent", "colab-badge"):
                assert name not in text, file
    assert f"`{_wheel(unnamed).name}`" in (unnamed / "README.md").read_text(encoding="utf-8")


def test_with_a_repository_each_chapter_has_a_badge(named: Path) -> None:
    page = (named / "README.md").read_text(encoding="utf-8")
    for chapter in CHAPTERS:
        opened = f"/github/{REPOSITORY}/blob/{hosted.BRANCH}/{chapter}/{chapter}.ipynb"
        assert f"]({hosted.BADGE})](https://colab.research.google.com{opened})" in page
        assert (named / opened.partition(f"/{hosted.BRANCH}/")[2]).is_file()


def test_the_cell_names_the_wheel_that_lies_in_the_folder(named: Path) -> None:
    (address,) = re.findall(r'wheel = "(\S+)"', _cells(named, "01_tensors")[0]["source"])
    there, _, digest = address.partition("#")
    assert there == (
        f"https://raw.githubusercontent.com/{REPOSITORY}/{hosted.BRANCH}/"
        + _wheel(named).name.replace("+", "%2B")
    )
    assert re.fullmatch("sha256=[0-9a-f]{64}", digest)


# the wheel


def test_the_wheel_brings_no_configuration_to_the_host(named: Path) -> None:
    with zipfile.ZipFile(_wheel(named)) as content:
        names = content.namelist()
        metadata = next(name for name in names if name.endswith("/METADATA"))
        needs = re.findall(r"(?m)^Requires-Dist: ([^;\n]+)$", content.read(metadata).decode())
    folders = {re.sub(r"-.*(?=\.)", "", name.partition("/")[0]) for name in names}
    assert folders == {"course", "tensorkit", "tensorkit_course.dist-info"}
    assert not [name for name in names if "jupyter" in name]
    assert needs == ["numpy>=2.0"]


def test_the_wheel_has_the_data_of_the_chapters_and_no_solutions(named: Path) -> None:
    with zipfile.ZipFile(_wheel(named)) as content:
        names = set(content.namelist())
    released = {
        f"course/notebook/data/{path.parent.name}/{path.name}"
        for path in paths.notebooks(ROOT).glob("*/*")
        if path.is_file() and path.suffix != ".ipynb"
    }
    assert len(released) >= 4
    assert released <= names
    assert not [name for name in names if name.endswith(".ipynb")]
    assert not {f"course/{name}" for name in bundle.AUTHORS_ONLY} & names


def test_the_folder_of_a_chapter_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    (data / "09_training").mkdir(parents=True)
    (data / "09_training" / "digits.txt").write_text("1")
    monkeypatch.setattr(chapter_folder, "DATA", data)
    (tmp_path / "content").mkdir()
    monkeypatch.chdir(tmp_path / "content")
    for _ in range(2):
        chapter_folder.enter("09_training")
        assert Path.cwd() == tmp_path / "content" / "09_training"
        assert Path("digits.txt").read_text() == "1"
        assert str(tmp_path / "content") in capsys.readouterr().out
    Path("digits.txt").write_text("mine")
    chapter_folder.enter("09_training")
    assert Path("digits.txt").read_text() == "mine"


# the folder


def test_an_older_copy_is_replaced_and_other_files_are_not(named: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(CourseError, match="holds other files"):
        hosted.write(ROOT, to=other, repository="")
    assert (other / "thesis.txt").read_text() == "mine"
    again = tmp_path / "again"
    hosted.write(ROOT, to=again, repository=REPOSITORY)
    (again / "11_gone").mkdir()
    hosted.write(ROOT, to=again, repository=REPOSITORY)
    found = {
        path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()
    }
    assert found == {
        path.relative_to(named): path.read_bytes() for path in named.rglob("*") if path.is_file()
    }
    assert not (again / "11_gone").exists()


def test_a_course_without_released_notebooks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    with pytest.raises(CourseError, match="no released notebook"):
        hosted.write(tmp_path, repository="")
