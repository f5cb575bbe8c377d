"""The form of this course's chapters: points, order, headings, sections, width of code.

`course build` says in sentences where a chapter of `SHIPPED` departs from it. A chapter of your own
may have other rules. Three hold for every chapter: its text has the exercises in the order of their
definitions, introduces a name before it uses it, and has no sentence of `course new` left.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorkit
from course.authoring.introduced import used_before
from course.authoring.new import UNWRITTEN_TEXT
from course.authoring.text import TextCell, read
from course.notebook.exercise import Exercise, Prediction, load
from course.shared import paths
from tensorkit.nn import functional

SHIPPED = (
    "00_start",
    "01_tensors",
    "02_operations",
    "03_memory",
    "04_broadcasting",
    "05_autograd",
    "06_gradient_control",
    "07_higher_order",
    "08_devices",
    "09_training",
    "10_engine",
    "11_dispatch",
    "12_kernels",
)
"""The chapters that keep to all of these rules."""
POINTS, MOST_MINUTES, WIDEST = 20, 75, 88
CORE = {"03_memory": 7, "05_autograd": 7, "10_engine": 7, "11_dispatch": 7, "12_kernels": 9}
"""Exercises of the core, which gives the points; 5 in the other chapters."""
END = ("On one page", "Elsewhere", "In tensorkit")
"""The sections that end a chapter and teach nothing new."""
WITHOUT = {
    ("What a tensor is", "exercise"),  # opens the course
    ("The same in PyTorch", "exercise"),  # closes its text
    ("The same in PyTorch", "example"),
    ("The same in PyTorch", "picture"),
    ("The same in PyTorch", "what to notice"),
    ("What a transfer costs", "example"),  # a ledger, which PyTorch does not keep
    ("Your engine", "exercise"),  # joins those before it
}
"""What the sections that open or close the course do without."""


def departures(root: Path, chapter: str) -> list[str]:
    """Sentences that say where a chapter departs from its form; empty where it does not."""
    text = _text(root, chapter)
    return [f"{chapter}: {sentence}" for sentence in _departures(root, chapter, text)]


def _text(root: Path, chapter: str) -> Path:
    return paths.solutions(root) / f"{chapter}.py"


def _departures(root: Path, chapter: str, text: Path) -> Iterator[str]:
    written, cells = text.read_text(encoding="utf-8"), read(text)
    exercises = load(chapter)
    placed = [cell.marks["exercise"] for cell in cells if "exercise" in cell.marks]
    if placed != list(exercises):
        yield (
            f"its text has {', '.join(placed)}, the __init__.py of its exercises imports "
            f"{', '.join(exercises)}: bring them into one order"
        )
    yield from _unwritten(written)
    yield from used_before(root, chapter)
    if chapter not in SHIPPED:
        return
    definitions = list(exercises.values())
    yield from _wrong_end(root, chapter, written)
    yield from _wide_code(cells, definitions)
    yield from _weak_sentences(definitions)
    yield from _wrong_shares(definitions)
    minutes = sum(exercise.minutes for exercise in definitions if not exercise.further)
    if minutes > MOST_MINUTES:
        yield f"its core takes {minutes:g} minutes; {MOST_MINUTES} are the most"
    if chapter == SHIPPED[0]:  # has one exercise, to be done within two minutes
        return
    yield from _wrong_core(chapter, definitions)
    said = re.search(r"core exercises take about (\d+)\s+minutes", written)
    if said is None or abs(int(said[1]) - minutes) > 3:
        yield f"its text does not say 'The core exercises take about {minutes:g} minutes'"
    if not re.search(r'^# %% role="show"\n(?:.+\n|\n(?!#))*?viz\.', written, re.MULTILINE):
        yield 'it has no picture of `viz` in a cell `# %% role="show"`'
    sections = _sections(cells)
    for heading, section in sections.items():
        for lack in _lacks(section) if heading not in END else ():
            if (heading, lack) not in WITHOUT:
                yield f"the section {heading!r} has no {lack}"
    yield from _wrong_excerpt(chapter, sections.get("In tensorkit", []))


def _unwritten(written: str) -> Iterator[str]:
    for part in UNWRITTEN_TEXT:
        if part in written:
            yield f"its text still says {part!r}, as `course new chapter` wrote it"


def _wrong_end(root: Path, chapter: str, written: str) -> Iterator[str]:
    levels = re.findall(r"^# (#+) ", written, re.MULTILINE)
    if levels[:1] != ["#"] or set(levels[1:]) != {"##"}:
        yield "its headings are not one `#` and after that `##` only"
    headings = re.findall(r"^# ## (.*)$", written, re.MULTILINE)
    end = [name for name in END if name != "Elsewhere" or name in headings]  # if there is any
    if chapter == SHIPPED[0]:  # shows no library
        end = [name for name in END[1:2] if name in headings]
    if headings[len(headings) - len(end) :] != end:
        yield f"its last sections are not {', '.join(end)}, in this order"
    next_one = SHIPPED[SHIPPED.index(chapter) + 1 :][:1]
    if any(not _text(root, name).is_file() for name in next_one):
        return  # a course with some of the chapters
    links = [f"# **Next:** [{_title(root, name)}](../{name}/{name}.ipynb)\n" for name in next_one]
    last = "\n# %% [markdown]\n".join([f'# %%\nprogress("{chapter}")\n', *links])
    if not written.endswith(last):
        yield f"its text does not end with these lines:\n{last}"


def _title(root: Path, chapter: str) -> str:
    written = _text(root, chapter).read_text(encoding="utf-8")
    heading = re.search(r"^# # (.*)$", written, re.MULTILINE)
    return heading[1] if heading else chapter


def _wide_code(cells: list[TextCell], exercises: list[Exercise]) -> Iterator[str]:
    code = [(f"the cell in line {cell.line}", cell.source) for cell in cells if cell.kind == "code"]
    for exercise in exercises:
        shown = re.findall(r"```python\n(.*?)```", exercise.statement, re.DOTALL)
        sources = [exercise.released_source, exercise.solution_source, *shown]
        code += [(exercise.id, source) for source in sources]
    for place, source in code:
        if wide := [line for line in source.splitlines() if len(line) > WIDEST]:
            yield (
                f"a line in the code of {place} has {len(wide[0])} columns; a cell of JupyterLab "
                f"shows {WIDEST}: {wide[0].strip()}"
            )


def _weak_sentences(exercises: list[Exercise]) -> Iterator[str]:
    for exercise in exercises:
        for text in (*exercise.hints, *(mistake.message for mistake in exercise.mistakes())):
            if text[-1:] not in (".", "?") or text.count("`") % 2:
                yield (
                    f"{exercise.id}: end this with a full stop or a question mark, and each `code` "
                    f"with a backtick: {text!r}"
                )


def _wrong_core(chapter: str, exercises: list[Exercise]) -> Iterator[str]:
    points = sum(exercise.points for exercise in exercises)
    if points != POINTS:
        yield f"its exercises give {points:g} points, and should give {POINTS}: change `points=`"
    further = [exercise for exercise in exercises if exercise.further]
    core, expected = len(exercises) - len(further), CORE.get(chapter, 5)
    if core != expected:
        yield (
            f"exercises of its core: {core}, and there should be {expected}; one with "
            "`further=True, points=0` is not of the core"
        )
    if not further:
        yield "none of its exercises has `further=True`; one is needed"
    if len({exercise.kind for exercise in exercises}) < 4:
        yield "its exercises are of fewer than four kinds"


def _wrong_shares(exercises: list[Exercise]) -> Iterator[str]:
    tenth = sum(exercise.points for exercise in exercises) / 10
    predicted = sum(exercise.points for exercise in exercises if isinstance(exercise, Prediction))
    inside = sum(exercise.points for exercise in exercises if exercise.witness == "inside")
    for points, kind in ((predicted, "predictions"), (inside, 'exercises with witness="inside"')):
        if points > tenth:
            yield f"its {kind} give {points:g} points; {tenth:g} are the most, a tenth"


def _sections(cells: list[TextCell]) -> dict[str, list[TextCell]]:
    """The cells of each section, by its heading."""
    sections: dict[str, list[TextCell]] = {}
    for cell in cells:
        if cell.source.startswith("## "):
            sections[cell.source.splitlines()[0][3:]] = []
        if sections:
            [*sections.values()][-1].append(cell)
    return sections


def _lacks(section: list[TextCell]) -> list[str]:
    shown = [cell.source for cell in section if cell.marks.get("role") == "show"]
    plain = [cell for cell in section if cell.kind == "code" and cell.marks.get("role") != "show"]
    has = {
        "picture": any(re.search(r"\b(viz\.|explain\.|picture\()", source) for source in shown),
        "example": any("exercise" not in cell.marks for cell in plain),
        "exercise": any("exercise" in cell.marks for cell in section),
        "what to notice": any("**What to notice.**" in cell.source for cell in section),
    }
    return [name for name, is_there in has.items() if not is_there]


def _wrong_excerpt(chapter: str, section: list[TextCell]) -> Iterator[str]:
    """Whether *In tensorkit* shows few lines of the library, and asks a question about them."""
    shown, question = [*section, None, None, None][1:3]
    if shown is None or shown.marks != {"role": "show", "tags": ["nbval-ignore-output"]}:
        yield (
            "the second cell of *In tensorkit* is not marked "
            '`role="show" tags=["nbval-ignore-output"]`, or is missing'
        )
        return
    known: dict[str, Any] = {"tk": tensorkit, "F": functional, "optim": tensorkit.optim}
    *imports, last = ast.parse(shown.source).body
    exec(compile(ast.Module(imports, []), chapter, "exec"), known)
    source = eval(ast.unparse(last), known)
    n_lines = sum(len(excerpt.lines) for excerpt in source.excerpts)
    if not 10 <= n_lines <= 45:
        yield f"*In tensorkit* shows {n_lines} lines of the library; ten to 45 are read"
    if not all(excerpt.file.startswith("tensorkit/") for excerpt in source.excerpts):
        yield "*In tensorkit* shows a file that is not the library's"
    asked = r"\*\*A question\.\*\*(.|\n)*\?\n\n<details>"
    if question is None or not re.match(asked, question.source):
        yield "the third cell of *In tensorkit* is no `**A question.**` with its `<details>`"
