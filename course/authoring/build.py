"""`course build`: from an author's text to the notebook with answers and to the released one.

    solutions/NN_topic.py -> solutions/NN_topic/NN_topic.ipynb -> notebooks/NN_topic/NN_topic.ipynb

The first step is `text` and an execution, the second nbgrader's (`release`); both happen in a
temporary folder, so that a chapter is replaced as a whole or not at all. `differences` builds the
same way without executing and tells what in the repository is not what the texts say.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from course.authoring.audit import raised_by
from course.authoring.text import Chapter, chapter_from
from course.notebook import exercise
from course.shared import extras, files, paths
from course.shared.errors import CourseError

SECONDS_PER_CELL = 120
IGNORED = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints", "__pycache__", "*.pyc")
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Watch = Callable[[str, int, int], None]
"""Called with what is being done, the number of steps done, and that of all steps."""


def build(
    root: Path, chapters: Iterable[str], *, watch: Watch = lambda name, done, total: None
) -> list[Path]:
    """Build these chapters; the files that changed.

    A cell whose source and result are as committed keeps its committed output, byte for byte.

    Raises CourseError that names everything an author has to mend; chapters without a problem are
    built all the same.
    """
    paths.check_exercises(root)
    extras.needed("jupytext", "teach", "Building a chapter")
    problems: list[str] = []
    changed: list[Path] = []
    with _temporary_course(root) as temporary:
        built = []
        for name in chapters:
            try:
                chapter = chapter_from(_text(root, name), exercise.load())
                _lay_out(temporary, root, chapter)
                _execute(chapter, temporary, watch)
                _keep_equal_outputs(chapter.notebook, _read(_solution(root, name)))
                _write(_solution(temporary, name), chapter.notebook)
                built.append(name)
            except CourseError as problem:
                problems.append(str(problem))
        if built:
            watch("release", 0, 1)
            _release(temporary, built)
            watch("release", 1, 1)
        for name in built:
            changed += _copy_if_new(_solution(temporary, name), _solution(root, name))
            changed += _mirror(paths.notebooks(temporary) / name, paths.notebooks(root) / name)
    if problems:
        raise CourseError("\n".join(problems))
    return changed


def build_pages(root: Path) -> list[Path]:
    """Execute the texts docs/NAME.py into docs/NAME.ipynb, pages without exercises.

    Gives the files that changed; raises CourseError as `build` does.
    """
    changed = []
    with _temporary_course(root) as temporary:
        for text in _pages(root):
            page = chapter_from(text, {})
            (paths.solutions(temporary) / text.stem).mkdir(parents=True)
            _execute(page, temporary, lambda name, done, total: None)
            committed = text.with_suffix(".ipynb")
            _keep_equal_outputs(page.notebook, _read(committed))
            _write(temporary / committed.name, page.notebook)
            changed += _copy_if_new(temporary / committed.name, committed)
    return changed


def differing_pages(root: Path) -> list[str]:
    """What in `docs/` is not what the texts say: a sentence for each cell."""
    return [
        sentence
        for text in _pages(root)
        for sentence in _differing_cells(
            root, text.with_suffix(".ipynb"), chapter_from(text, {}).notebook
        )
    ]


def _pages(root: Path) -> list[Path]:
    return sorted((root / "docs").glob("*.py"))


def differences(root: Path, chapters: Iterable[str]) -> list[str]:
    """What in `solutions/` and `notebooks/` is not what the texts say: a sentence for each cell.

    Outputs are not compared here; nbval does that.

    Raises CourseError as `build` does.
    """
    chapters = list(chapters)
    problems: list[str] = []
    sentences: list[str] = []
    with _temporary_course(root) as temporary:
        sound = []
        for name in chapters:
            try:
                chapter = chapter_from(_text(root, name), exercise.load())
                _lay_out(temporary, root, chapter)
                sound.append(name)
            except CourseError as problem:
                problems.append(str(problem))
        if sound:
            _release(temporary, sound)
        for name in sound:
            sentences += _differing_cells(
                root, _solution(root, name), _read(_solution(temporary, name))
            )
            released = paths.notebook_in(paths.notebooks(root), name)
            sentences += _differing_cells(
                root, released, _read(paths.notebook_in(paths.notebooks(temporary), name))
            )
            sentences += _differing_files(root, temporary, name)
    if problems:
        raise CourseError("\n".join(problems))
    return sentences


def without_text(root: Path) -> list[str]:
    """Built notebooks whose text is gone: a sentence for each."""
    written = paths.written_chapters(root)
    return [
        f"{folder.name}/{chapter} has no text solutions/{chapter}.py; remove the folder."
        for folder in (paths.solutions(root), paths.notebooks(root))
        if folder.is_dir()
        for chapter in sorted(path.name for path in folder.iterdir())
        if chapter not in written and paths.notebook_in(folder, chapter).is_file()
    ]


# the temporary folder


@contextmanager
def _temporary_course(root: Path) -> Iterator[Path]:
    """A temporary course folder, in which chapters are built."""
    with tempfile.TemporaryDirectory(prefix="course-build-") as folder:
        temporary = Path(folder).resolve()
        paths.notebooks(temporary).mkdir()
        yield temporary


def _lay_out(temporary: Path, root: Path, chapter: Chapter) -> None:
    """The chapter's data files and its notebook, not executed yet, in the temporary folder."""
    name = chapter.text.stem
    folder = paths.solutions(temporary) / name
    committed = paths.solutions(root) / name
    if committed.is_dir():
        shutil.copytree(committed, folder, ignore=IGNORED)
    _write(_solution(temporary, name), chapter.notebook)


def _release(temporary: Path, chapters: list[str]) -> None:
    from course.authoring import release  # nbgrader takes a second to import

    release.generate(temporary, chapters)


# executing


def _execute(chapter: Chapter, temporary: Path, watch: Watch) -> None:
    """Run the notebook in place, from top to bottom, in a kernel of its own."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook, name = chapter.notebook, chapter.text.stem
    running = notebook.cells[0] if notebook.cells else None

    def on_start(cell: NotebookNode, cell_index: int) -> None:
        nonlocal running
        running = cell
        watch(name, cell_index, len(notebook.cells))

    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=SECONDS_PER_CELL,
        resources={"metadata": {"path": str(paths.solutions(temporary) / name)}},
        coalesce_streams=True,
        record_timing=False,
        on_cell_start=on_start,
    )
    metadata = dict(notebook.metadata)
    try:
        client.execute(env=_environment(temporary))
    except CellExecutionError as problem:
        said = f"this cell raises {problem.ename}: {problem.evalue}"
        raise _at(chapter, running, said) from None
    except CellTimeoutError:
        said = f"this cell runs for more than {SECONDS_PER_CELL} seconds."
        raise _at(chapter, running, said) from None
    except DeadKernelError:
        raise _at(chapter, running, "this cell ends the kernel.") from None
    watch(name, len(notebook.cells), len(notebook.cells))
    # the kernel's version of Python is not part of the source
    notebook.metadata = nbformat.from_dict(metadata)
    for cell in notebook.cells:
        if said := _not_passed(cell):
            if "could not be checked" in said:  # the advice is for learners: find the line instead
                said = raised_by(exercise.load(name)[cell.source.split('"')[1]]) or said
            raise _at(chapter, cell, f"the worked solution does not pass this check: {said}")
        for output in cell.get("outputs", []):
            _without_library_frames(output)
            if ADDRESS.search(str(output)):
                said = (
                    "the output of this cell holds an address, which is another one in every run."
                )
                raise _at(chapter, cell, said)


def _not_passed(cell: NotebookNode) -> str:
    """What a check said of the worked solution, unless it passed in full."""
    if not cell.source.startswith('check("'):
        return ""
    last = (cell.get("outputs") or [{}])[-1]
    page = last.get("data", {}).get("text/html", "")
    said = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
    return "" if re.search(r"\b(\d+) of \1 cases passed", said) else said[:300] or _NO_REPORT


_NO_REPORT = "it shows no report. Does a cell give the name `check` another value?"


def _environment(temporary: Path) -> dict[str, str]:
    """The kernel's variables: nothing of the author's own settings, nothing written to `work/`."""
    kept = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    return {
        **kept,
        "COURSE_BUILD": "1",
        "COURSE_ROOT": str(temporary),
        "IPYTHONDIR": str(temporary / "ipython"),
        "PYTHONHASHSEED": "0",
        "TENSORKIT_DOT": "0",  # pictures as on a machine without graphviz' program dot
    }


def _without_library_frames(output: NotebookNode) -> None:
    """Leave of a traceback the learner's own cells: library frames hold this machine's paths."""
    if output.output_type == "error":
        head, *frames, tail = output.traceback or [""]
        kept = [frame for frame in frames if COLOUR.sub("", frame).lstrip().startswith("Cell In")]
        output.traceback = [*([head] if kept else []), *kept, tail]


def _at(chapter: Chapter, cell: NotebookNode | None, said: str) -> CourseError:
    line = 1 if cell is None else chapter.lines[cell.id]
    return CourseError(f"{chapter.text}:{line}: {said}")


# comparing


def _keep_equal_outputs(new: NotebookNode, old: NotebookNode | None) -> None:
    """Put the committed outputs back where nothing that nbval compares has changed."""
    committed = {} if old is None else {cell.get("id"): cell for cell in old.cells}
    for cell in new.cells:
        before = committed.get(cell.id)
        if cell.cell_type != "code" or before is None or before.source != cell.source:
            continue
        if _comparable(before.outputs) == _comparable(cell.outputs):
            cell.outputs = before.outputs


def _comparable(outputs: list[NotebookNode]) -> list[dict[str, Any]]:
    """Outputs without what nbval does not compare: the pixels and the frames of a traceback."""
    comparable = []
    for output in outputs:
        plain = {key: value for key, value in output.items() if key != "traceback"}
        if "data" in plain:
            plain["data"] = {
                kind: value for kind, value in plain["data"].items() if not _is_pixels(kind)
            }
        comparable.append(plain)
    return comparable


def _is_pixels(kind: str) -> bool:
    return kind in ("image/png", "image/jpeg")


def _differing_cells(root: Path, committed: Path, built: NotebookNode | None) -> list[str]:
    """A sentence for each cell of a committed notebook that is not what its text gives."""
    path = committed.relative_to(root).as_posix()
    mend = f"mend it with: course build {committed.stem}"
    if not committed.is_file():
        return [f"{path} is missing; {mend}"]
    try:
        notebook = _read(committed)
    except CourseError:
        notebook = None
    if notebook is None or built is None:
        return [f"{path} is not a notebook; {mend}"]
    sources, expected = _sources(notebook), _sources(built)
    said = [
        f"{path}: cell {number} ({id}) is not what {_text_name(committed)} gives; {mend}"
        for number, (id, source) in enumerate(sources.items(), 1)
        if expected.get(id) != source
    ]
    said += [f"{path}: the cell {id} is missing; {mend}" for id in expected if id not in sources]
    same_cells = list(sources) == list(expected)
    if not said and not (same_cells and notebook.metadata == built.metadata):
        part = "metadata" if same_cells else "order of the cells"
        said = [f"{path}: the {part} is not what {_text_name(committed)} gives; {mend}"]
    return said


def _sources(notebook: NotebookNode) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Everything of a notebook's cells but the results of running them, by id."""
    return {
        cell.get("id", f"without id {number}"): (cell.cell_type, cell.source, dict(cell.metadata))
        for number, cell in enumerate(notebook.cells)
    }


def _differing_files(root: Path, temporary: Path, name: str) -> list[str]:
    """A sentence for each data file of a released chapter that is not the author's."""
    made, committed = paths.notebooks(temporary) / name, paths.notebooks(root) / name
    return [
        f"notebooks/{name}/{file.as_posix()} is not what solutions/{name} holds; "
        f"mend it with: course build {name}"
        for file in sorted(_files_in(made) | _files_in(committed))
        if file.suffix != ".ipynb" and _bytes(made / file) != _bytes(committed / file)
    ]


# files


def _text(root: Path, chapter: str) -> Path:
    return paths.solutions(root) / f"{chapter}.py"


def _text_name(notebook: Path) -> str:
    return f"solutions/{notebook.stem}.py"


def _solution(root: Path, chapter: str) -> Path:
    return paths.notebook_in(paths.solutions(root), chapter)


def _read(path: Path) -> NotebookNode | None:
    """The notebook in a file, or None if there is no such file."""
    if not path.is_file():
        return None
    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except Exception as problem:  # whatever a file that is no notebook makes nbformat raise
        raise CourseError(f"{path} is not a notebook ({type(problem).__name__}).") from None


def _write(path: Path, notebook: NotebookNode) -> None:
    files.write(path, nbformat.writes(notebook).rstrip("\n") + "\n")


def _mirror(made: Path, committed: Path) -> list[Path]:
    """Make one folder hold the other's files and no more; the files that changed."""
    changed = []
    for file in sorted(_files_in(made)):
        changed += _copy_if_new(made / file, committed / file)
    for file in sorted(_files_in(committed) - _files_in(made)):
        (committed / file).unlink()
        changed.append(committed / file)
    return changed


def _copy_if_new(source: Path, target: Path) -> list[Path]:
    content = source.read_bytes()
    if _bytes(target) == content:
        return []
    files.write(target, content)
    return [target]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _files_in(folder: Path) -> set[Path]:
    """The files in a folder, as relative paths, without what editors leave behind."""
    left_behind = {".ipynb_checkpoints", "__pycache__"}
    return {
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and not left_behind & set(path.parts)
    }
