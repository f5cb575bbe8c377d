"""What is wrong with a notebook, before it is handed in or graded, and what mends it.

Its cells are matched with the released ones as grading does it (`notebook.matching`), and read.
The learner's own notebook also runs, from the top: what its checks give then is compared with the
points that it shows. Each finding is a sentence of one of three kinds:

    wrong       it costs points as it stands: what to do is said
    look        it may be meant; worth a look
    repaired    grading mends it by itself, nothing to do
"""

from __future__ import annotations

import ast
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course.cli import whole_run
from course.notebook import answer_text, built_notebook, matching
from course.notebook.exercise import load as exercises
from course.notebook.helpers import names_in, needed
from course.notebook.history import Run, bound_names
from course.notebook.limited import limited
from course.notebook.matching import Cell, Refused, Source
from course.shared import paths
from course.shared.errors import TimeLimit

LONGEST_READ, LEAST_READ = 5.0, 0.1
"""Seconds for parsing all cells of a notebook; the least that is left for one of them."""
WRONG, LOOK, REPAIRED = "wrong", "look", "repaired"
IMPORTABLE = {"IPython", "course", "graphviz", "matplotlib", "numpy", "safetensors", "tensorkit"}
"""What notebooks may import while they are graded, besides Python's own library."""


@dataclass(frozen=True)
class Finding:
    """One thing about a notebook."""

    kind: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.kind:<9} {self.sentence}"


def source_for(root: Path, chapter: str) -> Source:
    """The released notebook of a chapter and its files, all that a learner has of it."""
    file = paths.notebook_in(paths.notebooks(root), chapter)
    return Source(chapter, built_notebook.read(file, chapter), {}, matching.files_beside(file))


Read = Callable[[Path, str], tuple[bytes, Iterable[str]]]
"""Takes the notebook of a chapter out of a folder, and says what is unusual there."""


def from_own_folder(folder: Path, chapter: str) -> tuple[bytes, Iterable[str]]:
    """The notebook in a learner's own folder: the one of its name or, alone, of another."""
    file, notes = folder / f"{chapter}.ipynb", []
    if not file.is_file():
        notebooks = sorted(entry for entry in folder.iterdir() if entry.suffix == ".ipynb")
        if len(notebooks) != 1:
            raise Refused(f"There is no notebook {file.name} in {folder}.")
        notes.append(f"The notebook was called {notebooks[0].name!r}; it is taken for {file.name}.")
        file = notebooks[0]
    return file.read_bytes(), notes


def from_submission(folder: Path, chapter: str) -> tuple[bytes, Iterable[str]]:
    """The notebook of a submission, as it is graded."""
    from course.grading.intake import read

    submission = read(folder, "", chapter)
    return submission.notebook(), submission.repaired


def examine(folder: Path, source: Source, read: Read) -> list[Finding]:
    """What there is to say about the notebook in a folder, the worst first.

    It runs only if it is the learner's own.
    """
    return read_through(folder, source, read, runs=read is from_own_folder)


def _by_running(
    content: bytes, cells: list[Cell], source: Source
) -> tuple[list[Finding], dict[str, float]]:
    """The checks that give fewer points than the notebook shows when it runs from the top.

    Where it shows none, those of answers that do not get all points. With them the points of each
    check; none where nothing ran.
    """
    shown = whole_run.points_shown(json.loads(content)["cells"])
    answers = [cell for cell in cells if matching.is_answer(cell)]
    started = {
        str(matching.grade_id(cell))
        for cell in answers
        if not answer_text.is_untouched(cell, source.by_id[cell["id"]])
    }
    if not (started or any(shown.values())):
        return [], {}
    got, stopped = whole_run.run(cells, source)
    findings = []
    for id, exercise in exercises(source.chapter).items():
        points = got.get(id, 0.0)
        run = f"run from the top in an empty folder it gets {points:g}"
        about = f" {stopped}" * bool(stopped)
        if points < shown.get(id, 0.0):
            sentence = (
                f"{id}: the notebook shows {shown[id]:g} of {exercise.points:g} points, and {run}."
                f"{about} Grading puts changed cells of the release back, and runs the notebook so."
            )
            findings.append(Finding(WRONG, sentence))
        elif id in started - shown.keys() and points < exercise.points:
            sentence = f"{id}: {run} of {exercise.points:g} points.{about}"
            findings.append(Finding(LOOK, sentence))
    return findings, got


def read_through(
    folder: Path, source: Source, read: Read = from_own_folder, *, runs: bool = False
) -> list[Finding]:
    """What its text says about the notebook in a folder, the worst first.

    runs: whether the notebook also runs. Of an answer that gets all points then, its text is only
    looked at for what the run does not show.
    """
    try:
        content, notes = read(folder, source.chapter)
        repaired = matching.repair(content, source)
    except Refused as refusal:
        return [Finding(WRONG, f"It cannot be graded. {refusal}")]
    except OSError as problem:
        return [Finding(WRONG, f"The folder cannot be read ({problem.strerror}).")]
    findings, got = _by_running(content, repaired.cells, source) if runs else ([], {})
    known = exercises(source.chapter)
    right = {id for id, points in got.items() if points >= known[id].points}
    answers = [
        cell
        for cell in repaired.cells
        if matching.is_answer(cell) and matching.grade_id(cell) not in right
    ]
    findings += [Finding(REPAIRED, note) for note in (*notes, *repaired.notes)]
    findings += _about_file(content, source)
    until = time.monotonic() + LONGEST_READ
    for cell in repaired.cells:
        is_read = time.monotonic() < until
        if is_read and cell["cell_type"] == "code" and not matching.is_check(cell):
            seconds = max(until - time.monotonic(), LEAST_READ)
            for kind, sentence in _about_cell(cell, seconds):
                if sentence.startswith(_UNREADABLE) and cell["id"] in right:
                    continue  # another cell has the answer
                if kind == WRONG and cell["id"] == source.setup:
                    kind, sentence = (
                        REPAIRED,
                        f"{sentence} Graded with the imports that were released.",
                    )
                findings.append(Finding(kind, f"{matching.named(cell)}: {sentence}"))
    findings += _beside(content, repaired.cells, answers, source)
    findings += _late_helpers(content, repaired.cells, answers, source, until)
    findings += _misplaced(content, answers, source, until)
    findings += _replaced(answers, source)
    findings += _without_its_name(repaired.cells, answers, source)
    findings += _not_started(answers, source)
    if time.monotonic() >= until:
        findings.append(
            Finding(LOOK, "Its code takes too long to read: not all cells were looked at.")
        )
    order = (WRONG, LOOK, REPAIRED)
    return sorted(dict.fromkeys(findings), key=lambda finding: order.index(finding.kind))


def _about_file(content: bytes, source: Source) -> Iterator[Finding]:
    """The kernel and the release."""
    notebook = json.loads(content)
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kernel, expected = _kernel(metadata), _kernel(source.released["metadata"])
    if kernel != expected:
        yield Finding(
            REPAIRED, f"It names the kernel {kernel!r}; grading takes its own, {expected!r}."
        )
    release = source.released["metadata"].get("course")
    if release is not None and metadata.get("course") not in (None, release):  # Colab drops it
        chapter = source.chapter.partition("_")[0]
        yield Finding(
            LOOK,
            "It was made from another release of the chapter. Answers are found by their exercise; "
            f"to take the newest release over: course update {chapter}",
        )


def _kernel(metadata: dict[str, Any]) -> str:
    spec = metadata.get("kernelspec")
    return str(spec.get("name", ""))[:80] if isinstance(spec, dict) else ""


_UNREADABLE = "Python cannot read it"


def _about_cell(cell: Cell, seconds: float) -> Iterator[tuple[str, str]]:
    from IPython.core.inputtransformer2 import TransformerManager  # half a second

    read: list[ast.Module] = []
    try:
        source = cell["source"]
        transform = TransformerManager().transform_cell
        # a thousand semicolons take IPython seconds
        limited(lambda: read.append(ast.parse(transform(source))), seconds)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TimeLimit) as problem:
        line = getattr(problem, "lineno", None)
        in_line = f" in line {line}" if line else ""
        yield WRONG, f"{_UNREADABLE} ({type(problem).__name__}{in_line})."
        return
    for node in ast.walk(read[0]):
        if isinstance(node, ast.While) and never_ends(node):
            yield WRONG, f"The loop in line {node.lineno} never ends as it is written."
        elif isinstance(node, ast.Call) and _called(node) == "input":
            yield WRONG, "input() waits for somebody; nobody is there when it is graded."
        elif isinstance(node, ast.Call) and _called(node) in ("system", "getoutput"):
            yield LOOK, "Lines that begin with ! start a program; none starts while it is graded."
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name in sorted(_imported(node) - IMPORTABLE - sys.stdlib_module_names):
                yield LOOK, f"`{name}` is not there when it is graded; NumPy and tensorkit are."


def never_ends(loop: ast.While) -> bool:
    """Whether nothing in a loop's body can end it: no exit, and no name of its test touched.

    >>> never_ends(ast.parse("while n > 0:\\n    print(n)").body[0])
    True
    >>> never_ends(ast.parse("while n > 0:\\n    n -= 1").body[0])
    False
    """
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if any(isinstance(node, ast.Break | ast.Return | ast.Raise | ast.Yield) for node in inside):
        return False
    if any(isinstance(node, ast.Call | ast.Attribute) for node in ast.walk(loop.test)):
        return False  # a call may return another value later
    tested = {node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
    if not tested:
        return isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    # a name is touched if it is assigned, or has an attribute or an entry used
    used = {id(node.value) for node in inside if isinstance(node, ast.Attribute | ast.Subscript)}
    names = (node for node in inside if isinstance(node, ast.Name))
    touched = {name.id for name in names if not isinstance(name.ctx, ast.Load) or id(name) in used}
    return not tested & touched


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    names = (
        [alias.name for alias in node.names]
        if isinstance(node, ast.Import)
        else [node.module or ""]
    )
    return {name.partition(".")[0] for name in names} - {""}


def _beside(
    content: bytes, cells: list[Cell], answers: list[Cell], source: Source
) -> Iterator[Finding]:
    """Other answers in cells of the learner's own, and which of them is graded."""
    handed_in = matching.cells_of(content)
    code = ((at, cell) for at, cell in enumerate(cells) if cell["cell_type"] == "code")
    own_cells = [(at, cell) for at, cell in code if cell["id"] not in source.by_id]
    for answer in answers:
        start = cells.index(answer)
        name = matching.grade_id(answer)
        check = (at for at, cell in enumerate(cells) if matching.grade_id(cell) == f"check-{name}")
        end = next(check, start)
        released = source.by_id[answer["id"]]
        copies = [cell for cell in handed_in if matching.grade_id(cell) == name]
        names = answer_text.defined_names(released["source"])
        places = [
            at
            for at, cell in own_cells
            if answer_text.answered(cell, [released])
            and cell["source"].strip() != answer["source"].strip()
        ]
        if not places:
            continue
        said = f"The cell {name} is not as it was released, and a cell of your own has an answer."
        if copies and all(answer_text.is_untouched(copy, released) for copy in copies):
            if exercises(source.chapter)[str(name)].kind == "predict":
                continue  # several cells may each add predictions
            sentence = (
                f"Cells of your own have different answers to {name}. The last one above its check "
                "is graded, or else the last one below: move the right one into the cell "
                f"{name}."
            )
        elif not (answer_text.begin(answer, released) or names & bound_names(answer["source"])):
            if places[0] < end:
                continue  # it is there when the check runs
            sentence = (
                f"The cell {name} has no answer, and yours stands below its check, where it is not "
                f"graded: move it into the cell {name}."
            )
        elif any(start < at < end for at in places):
            sentence = (
                f"{said} Yours stands between the cell {name} and its check, so it is graded: move "
                f"the right answer into the cell {name}, and delete the other cell."
            )
        else:
            sentence = (
                f"{said} What the cell {name} has is graded: if yours is the right answer, move it "
                "there."
            )
        yield Finding(LOOK, sentence)


def _late_helpers(
    content: bytes, cells: list[Cell], answers: list[Cell], source: Source, until: float
) -> Iterator[Finding]:
    """Names that an answer uses and whose cell runs too late, or not at all, when it is graded."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    known = {cell["source"] for cell in (*code, *source.released["cells"])}
    # the text of a check that was changed, say, in whose place the released one is graded
    unlike_released = [cell for cell in matching.cells_of(content) if cell["source"] not in known]
    runs: list[Run] = []
    for cell in (*code, *unlike_released):
        if time.monotonic() >= until:
            return  # `examine` says so
        bound = frozenset(names_in(cell["source"])[0])
        runs.append(Run(None, cell["source"], cell["id"], None, bound=bound))
    for answer in answers:
        id = matching.grade_id(answer)
        checks = (at for at, cell in enumerate(code) if matching.grade_id(cell) == f"check-{id}")
        end = next(checks, len(runs))
        above = frozenset[str]().union(*(run.bound for run in runs[:end]))
        texts_above = {run.source for run in runs[:end]}
        for name, run in needed(answer["source"], runs):
            if run.source in texts_above:
                continue
            if name not in above:
                yield Finding(
                    WRONG,
                    f"{matching.named(answer)} uses `{name}`, which no cell of code above its "
                    f"check defines. Move it into the cell {id}.",
                )
            elif name in answer_text.defined_names(run.source):  # and not by another `import`
                yield Finding(
                    LOOK,
                    f"{matching.named(answer)} uses `{name}`, which is defined above its check and "
                    f"below. The one above is graded: move the right one into the cell {id}.",
                )


def _misplaced(
    content: bytes, answers: list[Cell], source: Source, until: float
) -> Iterator[Finding]:
    """Answers where grading does not look: in the cell of a check or of another exercise."""
    bound_in = cache(bound_names)
    released = {cell["id"]: cell for cell in source.released["cells"]}
    given = {cell["source"].strip() for cell in released.values()}
    written = [cell for cell in matching.cells_of(content) if cell["source"].strip() not in given]
    for answer in answers:
        stub = released[answer["id"]]
        is_untouched = answer_text.is_untouched(answer, stub)
        if not is_untouched and answer_text.begin(answer, stub):
            continue
        for cell in written:
            is_own = matching.grade_id(cell) is None and cell["id"] not in released
            if not is_untouched and is_own:
                continue  # a cell of the learner's own, which runs before the check
            if is_own and cell["cell_type"] == "code":
                bound = answer_text.defined_names(cell["source"])
                bound |= bound_in(cell["source"]) if time.monotonic() < until else set()
                if names := bound & answer_text.defined_names(stub["source"]):
                    yield Finding(
                        LOOK,
                        f"{matching.named(cell)} is your own and gives `{min(names)}` a value. If "
                        f"that is the answer, write it into the cell {matching.grade_id(answer)}: "
                        "grading may not find it elsewhere.",
                    )
                continue
            made = answer_text.begin(cell, stub)
            if cell["cell_type"] != "code":
                if is_untouched and made:
                    yield Finding(
                        WRONG,
                        f"{matching.named(cell)} is {cell['cell_type']}, but it has an answer to "
                        f"{matching.grade_id(answer)}. Make it a code cell: click it, then press "
                        "Esc and Y.",
                    )
            elif made:
                yield Finding(
                    WRONG,
                    f"{matching.named(cell)} has {made!r}, which belongs into the cell "
                    f"{matching.grade_id(answer)}. Move it there: grading may not "
                    "find it elsewhere.",
                )


def _replaced(answers: list[Cell], source: Source) -> Iterator[Finding]:
    """Answers above the released code in their cell, which replaces them."""
    for answer in answers:
        if answer_text.ends_as_released(answer, source.by_id[answer["id"]]):
            yield Finding(
                WRONG,
                f"{matching.named(answer)} has an answer and, below it, the released code, which "
                "replaces it. Delete the released code.",
            )


def _without_its_name(cells: list[Cell], answers: list[Cell], source: Source) -> Iterator[Finding]:
    """Answers whose name, by which the check finds them, no cell defines."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for answer in answers:
        stub = source.by_id[answer["id"]]
        names = sorted(answer_text.defined_names(stub["source"]))
        if (
            names
            and not answer_text.is_untouched(answer, stub)
            and not any(answer_text.begin(cell, stub) for cell in code)
        ):
            cell, name = matching.named(answer), f"`{'`, `'.join(names)}`"
            if re.search(rf"\b(?:{'|'.join(names)})\b", answer["source"]):
                yield Finding(
                    LOOK,
                    f"{cell} has {name}, but no line of it begins with a definition of that name: "
                    "run its check, which says whether it is defined.",
                )
            else:
                yield Finding(
                    WRONG,
                    f"{cell} does not define {name}, which its check looks for. Give the answer "
                    "that name again.",
                )


def _not_started(answers: list[Cell], source: Source) -> Iterator[Finding]:
    of = sum(map(matching.is_answer, source.released["cells"]))
    untouched = [
        cell for cell in answers if answer_text.is_untouched(cell, source.by_id[cell["id"]])
    ]
    if untouched:
        names = ", ".join(str(matching.grade_id(cell)) for cell in untouched)
        yield Finding(LOOK, f"Answer cells without an answer, {len(untouched)} of {of}: {names}.")
