"""The learner's own copies in `work/`: made once, never overwritten, brought up to date on demand.

    work/NN_topic/NN_topic.ipynb     the learner's notebook
    work/NN_topic/older/             what `reset` and `update` put aside, numbered

A notebook remembers in its metadata (`course.authoring.release`) from which release it was made.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary

from course.cli.doctor import source_for
from course.notebook import answer_text, built_notebook, matching, record
from course.shared import files, paths
from course.shared.errors import CourseError
from course.shared.settings import settings

OLDER = "older"


@dataclass(frozen=True)
class Updated:
    """What `update` did."""

    carried: list[str]
    """The ids of the exercises whose answers are in the new notebook's answer cells."""
    left_behind: list[str]
    """The ids of those that the new release does not have; their answers are among `n_own`."""
    n_own: int
    """Cells of the learner's own, and released ones that the learner changed: they were added."""
    kept: Path
    """The old notebook."""


def make_copies(root: Path, say: Callable[[str], None] = print) -> None:
    """Copy to `work/` what is not there yet, and say so where the release is newer than a copy.

    Raises CourseError if a file stands where a folder belongs, or if nothing can be written there.
    """
    for chapter in paths.released_chapters(root):
        released, folder = paths.notebooks(root) / chapter, paths.work(root) / chapter
        for file in sorted(path for path in released.rglob("*") if path.is_file()):
            copy = folder / file.relative_to(released)
            if not copy.exists() and ".ipynb_checkpoints" not in file.parts:
                _copy(file, copy)
        try:
            if not _is_current(root, chapter):
                say(
                    f"There is a newer release of {chapter}. Your copy stays as it is. To take it "
                    f"over with your answers, in JupyterLab's terminal: course update {chapter}"
                )
        except CourseError as problem:
            say(str(problem))


def _copy(file: Path, to: Path) -> None:
    try:
        files.write(to, file.read_bytes())
    except OSError as problem:
        _check_folders(to.parent)
        raise CourseError(
            f"Your copy {to} cannot be written: {problem.strerror}. Make room or give yourself "
            "the right to write there."
        ) from None


def _check_folders(folder: Path) -> None:
    """Raises CourseError if something else stands where this folder, or one above it, belongs."""
    for path in (folder, *folder.parents):
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            kind = "a link that leads nowhere" if path.is_symlink() else "a file"
            raise CourseError(
                f"{path} is {kind}, but a folder of yours belongs there. It was left as it is: "
                "rename it, then use the same command again."
            ) from None


def chapter_in_work(root: Path, name: str) -> str:
    """The chapter that `name` means, among those of which the learner has a copy."""
    chapter = paths.chapter_named(name, paths.released_chapters(root))
    if not paths.notebook_in(paths.work(root), chapter).is_file():
        _check_folders(paths.work(root) / chapter)
        raise CourseError(f"You have no copy of {chapter} yet: course lab makes one.")
    return chapter


def notebook_saved_last(root: Path) -> Path | None:
    """The learner's copy of a chapter that was saved last; None if there is no copy yet."""
    names = chapters(root)
    copies = [paths.notebook_in(paths.work(root), name) for name in names]
    released = [paths.notebook_in(paths.notebooks(root), name) for name in names]
    # a copy that was just made is not saved yet
    pairs = zip(copies, released, strict=True)
    saved = [copy for copy, original in pairs if copy.read_bytes() != original.read_bytes()]
    return max(saved or copies[:1], key=lambda copy: copy.stat().st_mtime, default=None)


def chapters(root: Path) -> list[str]:
    """The chapters of which the learner has a copy."""
    released = paths.released_chapters(root)
    return [name for name in released if paths.notebook_in(paths.work(root), name).is_file()]


def any_folder(root: Path) -> Path:
    """The folder of the first chapter of which the learner has a copy."""
    for chapter in chapters(root):
        return paths.work(root) / chapter
    _check_folders(paths.work(root))
    raise CourseError("You have no copy of a chapter yet: course lab makes them.")


def reset(root: Path, chapter: str, exercise: str) -> Path | None:
    """Put one exercise back as it was released; the file with the learner's text, if there was one.

    Raises CourseError for an exercise that the chapter does not have.
    """
    copy = paths.notebook_in(paths.work(root), chapter)
    notebook, release = _read(copy), _read(paths.notebook_in(paths.notebooks(root), chapter))
    with _notary() as notary:
        was_trusted = notary.check_signature(notebook)
    stubs = _answers(release)
    if exercise not in stubs:
        raise CourseError(
            f"There is no exercise {exercise!r} in {chapter}. Its exercises: {', '.join(stubs)}."
        )
    cell = _answers(notebook, stubs).get(exercise)
    kept = None
    if cell is None:
        notebook.cells.insert(_place_of(exercise, notebook), stubs[exercise])
    elif cell.source != stubs[exercise].source:
        kept = files.keep(cell.source + "\n", copy.parent / OLDER, f"{exercise}.py")
        cell.source = stubs[exercise].source
    for cell in notebook.cells:
        if _grade_id(cell) in (exercise, f"check-{exercise}"):
            cell.outputs, cell.execution_count = [], None
    _write(copy, notebook, trusted=was_trusted)
    record.forget(copy.parent, exercise)
    return kept


def update(root: Path, chapter: str) -> Updated | None:
    """Put a newer release in the place of the learner's copy, with the learner's cells in it.

    Which cell is an answer, and which is one of the learner's own, is told as grading tells it
    (`matching.counting`). Answers move by exercise id, unless the cell is as released or holds no
    code of an answer. Cells of the learner's own stand below the same released cell as before. The
    old notebook, and data files that the release changes, are kept in `older/`. None if the copy is
    of the newest release.
    """
    copy = paths.notebook_in(paths.work(root), chapter)
    old, new = _read(copy), _read(paths.notebook_in(paths.notebooks(root), chapter))
    if _is_current(root, chapter):
        return None
    try:
        cells = matching.cells_of(copy.read_bytes())
        counting = matching.counting(cells, source_for(root, chapter), [])
    except matching.Refused as refusal:
        raise CourseError(f"{copy} was left as it is. {refusal}") from None
    stubs = _answers(new)
    carried, left_behind = [], []
    own_cells: dict[str, list[NotebookNode]] = {"": []}  # by the id of the released cell above
    above = ""
    for cell, released in zip(old.cells, counting, strict=True):
        above = released["id"] if released else above
        id = _grade_id(cell) if released is None else matching.grade_id(released)
        if released is not None and id in stubs:
            if not _is_untouched(cell, stubs[id]):
                stubs[id].source = cell.source
                carried.append(id)
        elif _is_own(cell, released):
            own_cells.setdefault(above, []).append(cell)
            if id is not None and id not in stubs:
                left_behind.append(id)
    kept = files.keep(copy.read_bytes(), copy.parent / OLDER, copy.name)
    added = [cell for cells in own_cells.values() for cell in cells]
    _without_marks(added, {cell.id for cell in new.cells})
    below = [cell for released in new.cells for cell in (released, *own_cells.get(released.id, []))]
    new.cells = [*own_cells[""], *below]
    _take_over_data(paths.notebooks(root) / chapter, copy.parent)
    _write(copy, new)
    return Updated(carried, left_behind, len(added), kept)


def _is_own(cell: NotebookNode, released: matching.Cell | None) -> bool:
    """Whether the learner wrote or changed a cell that is no answer cell of the newer release.

    released: the released cell that it is matched with; None if there is none.
    """
    if not cell.source.strip() or cell.get("id", "").startswith("exercise-"):
        return False
    if released is not None:
        is_changed = cell.source.strip() != released["source"].strip()
        return is_changed and matching.grade_id(released) is None
    if "nbgrader" in cell.metadata:  # a copy of an answer cell, or an exercise that is gone
        return bool(cell.metadata.nbgrader.get("solution")) and not _is_untouched(cell, None)
    return not built_notebook.is_as_built(cell)


def _without_marks(cells: Iterable[NotebookNode], ids: set[str]) -> None:
    """Make cells the learner's own, without marks of nbgrader's and with ids other than these."""
    for cell in cells:
        if cell.metadata.pop("nbgrader", None):
            cell.metadata.pop("deletable", None)
        if cell.get("id") in (None, *ids):
            cell.id = nbformat.v4.new_code_cell().id
        ids.add(cell.id)


def _is_current(root: Path, chapter: str) -> bool:
    folders = (paths.work(root), paths.notebooks(root))
    copied, released = (_read(paths.notebook_in(folder, chapter)).metadata for folder in folders)
    return bool(copied.get("course") == released.get("course"))


def is_released_otherwise(root: Path, chapter: str) -> bool:
    """Whether the class's exchange has another release of a chapter than this course folder."""
    outbound = root / settings().exchange / settings().course_id / "outbound"
    in_exchange = paths.notebook_in(outbound, chapter)
    try:
        released = _read(in_exchange) if in_exchange.is_file() else None
    except (CourseError, OSError):  # nbgrader says what is wrong with it
        return False
    local = _read(paths.notebook_in(paths.notebooks(root), chapter))
    return released is not None and released.metadata.get("course") != local.metadata.get("course")


def _answers(
    notebook: NotebookNode, stubs: Mapping[str, NotebookNode] | None = None
) -> dict[str, Any]:
    """The answer cells by exercise id; of several copies of a cell the last with an answer.

    stubs: the released cells, by exercise id.
    """
    answers: dict[str, Any] = {}
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("solution"):
            id = marks["grade_id"]
            if id not in answers or not _is_untouched(cell, (stubs or {}).get(id)):
                answers[id] = cell
    return answers


def _is_untouched(cell: NotebookNode, stub: NotebookNode | None) -> bool:
    """Whether a cell is as its own release had it, or has no answer beside the newest stub."""
    from nbgrader.utils import compute_checksum  # nbgrader takes a second to import

    checksum = cell.metadata.get("nbgrader", {}).get("checksum")  # noted at its release
    if checksum is not None and checksum == compute_checksum(cell):
        return True
    return stub is not None and answer_text.is_untouched(cell, stub)


def _grade_id(cell: NotebookNode) -> str | None:
    id: str | None = cell.metadata.get("nbgrader", {}).get("grade_id")
    return id


def _place_of(exercise: str, notebook: NotebookNode) -> int:
    """Where the answer cell belongs: above its check, or at the end if that is gone too."""
    for index, cell in enumerate(notebook.cells):
        if _grade_id(cell) == f"check-{exercise}":
            return index
    return len(notebook.cells)


def _take_over_data(released: Path, folder: Path) -> None:
    for file in sorted(released.rglob("*")):
        if not file.is_file() or file.suffix == ".ipynb":
            continue
        copy = folder / file.relative_to(released)
        if copy.is_file() and copy.read_bytes() != file.read_bytes():
            files.keep(copy.read_bytes(), folder / OLDER, copy.name)
            copy.unlink()
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def _read(path: Path) -> NotebookNode:
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        nbformat.validate(notebook)
        return notebook
    except Exception as problem:  # whatever a file that is no notebook makes nbformat raise
        raise CourseError(
            f"{path} cannot be read as a notebook ({type(problem).__name__}). It was left as it "
            "is: mend or rename it, and course lab makes a fresh copy."
        ) from None


@contextmanager
def _notary() -> Iterator[NotebookNotary]:
    """Jupyter's list of trusted notebooks, a database that is closed at the end."""
    try:
        notary = NotebookNotary()
    except OSError as problem:
        raise CourseError(
            f"Jupyter cannot write its list of trusted notebooks: {problem.filename} "
            f"({problem.strerror}). Set HOME, or JUPYTER_DATA_DIR, to a folder of yours."
        ) from None
    try:
        yield notary
    finally:
        notary.store.close()


def _write(path: Path, notebook: NotebookNode, *, trusted: bool = False) -> None:
    if trusted:  # otherwise JupyterLab would show its pictures as text
        with _notary() as notary:
            notary.sign(notebook)
    files.write(path, nbformat.writes(notebook).rstrip("\n") + "\n")
