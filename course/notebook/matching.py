"""The cells of a learner's notebook, matched with those of the instructor's: `repair`.

Ids, points, kinds and the order of the cells that matter come from the instructor's notebook; from
the learner come the text of the answers and the cells of their own. Grading reads a submission so,
and `course doctor` a learner's notebook before it is handed in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from course.notebook import answer_text, built_notebook, chapter_folder, exercise, own_answers
from course.shared import paths

MOST_BYTES, MOST_CELLS, MOST_SOURCE = 20 << 20, 2000, 1 << 20
"""The most bytes of a notebook; the most cells; the most characters of one cell."""
MOST_PARTS, MOST_OLDER = 1_000_000, 1 << 20
"""Lists and objects in a notebook, which may have twice as many texts; bytes of an older format."""

Cell = answer_text.Cell
AGAIN = "Save it in JupyterLab and hand it in again."


class Refused(Exception):
    """What was handed in cannot be graded; its text is the sentence that says why."""


@dataclass(frozen=True)
class Source:
    """The instructor's notebook of a chapter, as released and as built with the answers."""

    chapter: str
    released: dict[str, Any]
    solved: dict[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The chapter's data, by path beside the notebook."""
    definitions: str = ""
    """SHA-256 of the text of the chapter's exercises."""

    @property
    def title(self) -> str:
        """The chapter's number and its first heading: "01 Tensors"."""
        texts = (cell["source"] for cell in self.released["cells"])
        heading = next((text for text in texts if text.startswith("# ")), "# " + self.chapter[3:])
        return f"{self.chapter[:2]} {heading.splitlines()[0][2:]}"

    @cached_property
    def by_id(self) -> Mapping[str, Cell]:
        """The released cells by their ids."""
        return {cell["id"]: cell for cell in self.released["cells"]}

    @cached_property
    def setup(self) -> str | None:
        """The id of the first cell of code: in every chapter it imports what all others use."""
        return next(
            (cell["id"] for cell in self.released["cells"] if cell["cell_type"] == "code"), None
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        files = {name: base64.b64encode(file).decode() for name, file in sorted(self.files.items())}
        values = {"chapter": self.chapter, "files": files, "definitions": self.definitions}
        text = json.dumps({**values, "released": self.released, "solved": self.solved})
        return hashlib.sha256(text.encode()).hexdigest()


def source_of(root: Path, chapter: str) -> Source:
    """The source of a chapter. Raises CourseError if it is not built."""
    folders = (paths.notebooks(root), paths.solutions(root))
    built = [paths.notebook_in(folder, chapter) for folder in folders]
    released, solved = (built_notebook.read(file, chapter) for file in built)
    return Source(chapter, released, solved, files_beside(built[0]), exercise.digest(chapter))


def files_beside(notebook: Path) -> dict[str, bytes]:
    """The files of a chapter's folder without its notebooks, by path."""
    folder = notebook.parent
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".ipynb" and ".ipynb_checkpoints" not in path.parts
    }


def too_large(size: int) -> str:
    """The sentence about a notebook of so many bytes."""
    return (
        f"The notebook has {size / 1e6:.0f} MB; {MOST_BYTES / 1e6:.0f} MB are read. "
        "Clear the outputs (Edit > Clear All Outputs), save, submit again."
    )


@dataclass(frozen=True)
class Repaired:
    """The cells to grade, in order, and what had to be mended."""

    cells: list[Cell]
    notes: tuple[str, ...]


def repair(content: bytes, source: Source) -> Repaired:
    """The cells of a submission, as the instructor's notebook orders them.

    Raises Refused for what is no notebook.
    """
    if len(content) > MOST_BYTES:
        raise Refused(too_large(len(content)))
    notes: list[str] = []
    handed_in = cells_of(content)
    released_cells = source.released["cells"]
    by_id = source.by_id
    placed: dict[str, Cell] = {}  # by the id of the released cell
    numbers = {id: number for number, id in enumerate(by_id, 1)}
    own_cells: list[own_answers.Numbered] = []
    last = 0
    for cell, known in zip(handed_in, counting(handed_in, source, notes), strict=True):
        if known is not None:
            placed[known["id"]] = cell
            last = numbers[known["id"]]
        elif not cell["source"].startswith(chapter_folder.FIRST_LINE):
            # the cell that installs the course in a hosted copy of a chapter
            own_cells.append((last, own_answers.without_marks(cell)))
    answers = [cell for cell in released_cells if is_answer(cell)]
    with_answers = dict(placed)
    taken, with_copies = own_answers.take(answers, numbers, with_answers, own_cells)
    if len(with_copies) <= MOST_CELLS:
        placed, own_cells = with_answers, with_copies
    else:
        taken = []
        notes.append(_TOO_MANY_COPIES)
    notes += [
        f"The cell {id} was as released; what another cell gives its name counts as the answer."
        for id in taken
    ]
    cells = [cell for place, cell in own_cells if place == 0]
    positions = [numbers[id] for id in placed]
    if positions != sorted(positions):
        notes.append("Cells had been moved; they stand in their order again.")
    for released in released_cells:
        is_code = placed.get(released["id"], {}).get("cell_type") == "code"
        if released["id"] == source.setup and not is_code:
            placed[released["id"]] = released
            notes.append(
                "The first cell, with the imports, was not there; it is as it was released."
            )
        cells += _mended(released, placed.get(released["id"]), notes)
        cells += [cell for place, cell in own_cells if place == numbers[released["id"]]]
    for number, cell in enumerate(cells):
        cell["id"] = cell["id"] or f"own-{number}"  # the same id each time
    return Repaired(cells, tuple(_together(notes)))


def counting(cells: list[Cell], source: Source, notes: list[str]) -> list[Cell | None]:
    """The released cell as which each cell of a learner's counts; None for one of their own.

    notes: sentences are added here. Raises Refused for the notebook of another chapter.
    """
    released = source.by_id.values()
    marked = {id: cell for cell in released if (id := grade_id(cell)) is not None}
    _check_chapter(cells, marked, source.chapter)
    matched = _matched(cells, source.by_id, marked, notes)
    chosen = _chosen(cells, matched, source.by_id, notes)
    return [
        known if known is not None and chosen[known["id"]] == at else None
        for at, known in enumerate(matched)
    ]


_TOO_MANY_COPIES = (
    "Answer cells were as released, and answers in cells of your own were not taken: with the "
    "cells that may have to run before them the notebook would have more than "
    f"{MOST_CELLS} cells. Write your answers into the answer cells."
)


def _check_chapter(cells: list[Cell], marked: Mapping[str, Cell], chapter: str) -> None:
    """Raises Refused if a notebook has exercises of another chapter, and no cell of this one's."""
    names = {str(grade_id(cell)) for cell in cells}
    if not names & marked.keys():
        known = exercise.load()
        chapters = sorted(known[name].chapter for name in names & known.keys())
        if chapters:
            raise Refused(f"This is the notebook of {chapters[0]}; hand in that of {chapter}.")


_PLURALS = {"its id": "their ids", "its text": "their texts", "it defines": "they define"}
_PLURALS |= {"it was": "they were", "was there": "were there", "it is": "they are"}
_PLURALS |= {"was as released": "were as released", "its name": "their names"}
_PLURALS |= {"counts as the answer": "counts as the answers"}


def _together(notes: Iterable[str]) -> list[str]:
    """Sentences that say the same of several cells as one."""
    names: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        parts = re.fullmatch(r"The (cell|check) (\S+) (.*)", note)
        key = (parts[1], parts[3]) if parts else (note, "")
        names.setdefault(key, []).append(parts[2] if parts else "")
    sentences = []
    for (kind, predicate), cells in names.items():
        if len(cells) > 1 and predicate:
            for singular, plural in _PLURALS.items():
                predicate = predicate.replace(singular, plural)
            kind += "s"
        sentences.append(f"The {kind} {', '.join(cells)} {predicate}" if predicate else kind)
    return sentences


def grade_id(cell: Cell) -> str | None:
    """The name of a cell in nbgrader's gradebook."""
    marks = cell.get("metadata", {}).get("nbgrader")
    name = marks.get("grade_id") if isinstance(marks, dict) else None
    return name if isinstance(name, str) else None


def named(cell: Cell) -> str:
    """A cell as a sentence names it: by its exercise, or by how it begins."""
    name = grade_id(cell)
    if name is None:
        name = repr(cell["source"].strip().partition("\n")[0].strip()[:40])
    return f"The cell {name}"


def is_answer(cell: Cell) -> bool:
    """Whether this is a cell that learners fill in."""
    return bool(cell["metadata"].get("nbgrader", {}).get("solution"))


def is_check(cell: Cell) -> bool:
    """Whether this is a cell that is graded by running it."""
    marks = cell["metadata"].get("nbgrader", {})
    return bool(marks.get("grade")) and not marks.get("solution") and cell["cell_type"] == "code"


def checked_exercise(cell: Cell) -> str | None:
    """The exercise that a check cell asks for by `check("the-id")`; None for other cells."""
    id = str(grade_id(cell)).removeprefix("check-")
    return id if is_check(cell) and cell["source"].strip() == f'check("{id}")' else None


def answer_above_check(cells: Iterable[Cell], id: str) -> str | None:
    """The text of an exercise's answer cell; None if no such cell of code is above its check."""
    for cell in cells:
        if grade_id(cell) == f"check-{id}":
            break
        if grade_id(cell) == id and cell["cell_type"] == "code":
            return str(cell["source"]) if is_answer(cell) else None
    return None


def cells_of(content: bytes) -> list[Cell]:
    """The cells of a learner's notebook, as far as they are sound. Raises Refused."""
    parts = content.count(b"{") + content.count(b"[")  # each takes ten times its size
    if parts > MOST_PARTS or content.count(b'"') > 4 * MOST_PARTS:
        raise Refused("The file holds more lists and objects, or texts, than a notebook has.")
    if not content.strip():
        raise Refused(f"The file is empty. {AGAIN}")
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError):
        raise Refused(f"The file is not a notebook: it is no JSON. {AGAIN}") from None
    if isinstance(notebook, dict) and notebook.get("nbformat") != 4:
        notebook = _older(content)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise Refused(f"The file is JSON, but not a notebook: it has no cells. {AGAIN}")
    if len(cells) > MOST_CELLS:
        raise Refused(f"The notebook has {len(cells)} cells; {MOST_CELLS} are read. {AGAIN}")
    return [sound for cell in cells if (sound := _sound(cell)) is not None]


def _older(content: bytes) -> dict[str, Any]:
    """A notebook of an older format, brought up to date."""
    if len(content) > MOST_OLDER:  # bringing it up to date takes a hundred times its size
        raise Refused(
            f"The notebook is of an old format, of which {MOST_OLDER / 1e6:.0f} MB are read. "
            "Save it in JupyterLab once more, then submit again."
        )
    import nbformat

    try:
        return dict(nbformat.reads(content.decode(), as_version=4))
    except Exception as problem:  # whatever nbformat makes of it
        error = type(problem).__name__
        raise Refused(f"The file is not a notebook ({error}). {AGAIN}") from None


def _sound(cell: Cell) -> Cell | None:
    """What is kept of a learner's cell: kind, id, text, nbgrader's id; None for no cell at all."""
    kind, text = cell.get("cell_type"), _joined(cell.get("source", ""))
    if kind not in ("code", "markdown", "raw"):
        return None
    if len(text) > MOST_SOURCE:
        raise Refused(f"A cell holds {len(text)} characters; {MOST_SOURCE} are read.")
    id = cell.get("id")
    metadata = cell.get("metadata")
    name = grade_id({"metadata": metadata if isinstance(metadata, dict) else {}})
    return {
        "id": id if isinstance(id, str) and re.fullmatch(r"[\w-]{1,64}", id, re.ASCII) else "",
        "cell_type": kind,
        "source": text,
        "metadata": {"nbgrader": {"grade_id": name}} if name else {},
    }


def _joined(text: Any) -> str:
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        text = "".join(text)
    # half of a surrogate pair cannot be encoded
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""


def _released_for(cell: Cell, by_id: Mapping[str, Cell], marked: Mapping[str, Cell]) -> Cell | None:
    """The instructor's cell with the same nbgrader id or, where this has none, the same id."""
    name = grade_id(cell)
    if name is not None:
        return marked.get(name)
    return by_id.get(cell["id"])


def _chosen(
    handed_in: list[Cell],
    matched: list[Cell | None],
    by_id: Mapping[str, Cell],
    notes: list[str],
) -> dict[str, int]:
    """The place in the notebook of the cell that counts, of each released cell by its id.

    Of several answer cells it is the last above the check that has an answer, as when the notebook
    runs from top to bottom; where none has, the last that has one. Of other cells it is the first.
    """
    copies: dict[str, list[int]] = {}
    for at, known in enumerate(matched):
        if known is not None:
            copies.setdefault(known["id"], []).append(at)
    chosen = {}
    for id, places in copies.items():
        check = copies.get(f"check-{id}", [len(matched)])[0]
        released = by_id[id]
        written = [at for at in places if not answer_text.is_untouched(handed_in[at], released)]
        above = [at for at in written if at < check]
        counting = (above[-1:] or written[-1:] or places) if is_answer(released) else places
        chosen[id] = counting[0]
        if len(places) > 1:
            counts = f"number {places.index(counting[0]) + 1} from the top counts"
            name = grade_id(released) or id
            notes.append(f"The cell {name} was there {len(places)} times; {counts}.")
    return chosen


def _matched(
    handed_in: list[Cell], by_id: Mapping[str, Cell], marked: Mapping[str, Cell], notes: list[str]
) -> list[Cell | None]:
    """The instructor's cell of each cell; of one without ids it is found by the text."""
    matched = [_released_for(cell, by_id, marked) for cell in handed_in]
    present = {cell["id"] for cell in matched if cell is not None}
    lost = [cell for cell in by_id.values() if cell["id"] not in present]
    for at, cell in enumerate(handed_in):
        if matched[at] is not None or not lost:
            continue
        alike = (candidate for candidate in lost if _is_same(cell, candidate))
        if released := next(alike, None):
            lost.remove(released)
            matched[at] = released
            if (name := grade_id(released)) is not None:
                by = "what it defines" if is_answer(released) else "its text"
                notes.append(f"The cell {name} had lost its id; it was found by {by}.")
    return matched


def _is_same(cell: Cell, released: Cell) -> bool:
    """Whether a cell without an id is this one: an answer by what it defines, others by text."""
    if is_answer(released) and released["cell_type"] == "code":
        return bool(answer_text.begin(cell, released))
    text = cell["source"].strip()
    is_equal = text == released["source"].strip() and cell["cell_type"] == released["cell_type"]
    return bool(text) and is_equal


def _mended(released: Cell, cell: Cell | None, notes: list[str]) -> list[Cell]:
    """A released cell as it is graded: with the learner's text where learners write."""
    name = grade_id(released)
    kept = {name: released[name] for name in ("id", "cell_type", "metadata")}
    if name is None:
        return [] if cell is None else [{**kept, "cell_type": cell["cell_type"], **_text(cell)}]
    if cell is None:
        notes.append(f"The cell {name} had been deleted; it is as it was released.")
        return [{**kept, **_text(released)}]
    if cell["cell_type"] != released["cell_type"]:
        notes.append(f"The cell {name} had become {cell['cell_type']}; it is code again.")
    if is_answer(released):
        return [{**kept, **_text(cell)}]
    if cell["source"].strip() != released["source"].strip():
        notes.append(f"The check {name} had been changed; it is as it was released.")
    return [{**kept, **_text(released)}]


def _text(cell: Cell) -> Cell:
    return {"source": cell["source"]}
