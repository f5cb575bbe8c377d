"""What every chapter keeps to: points, order of exercises, headings, messages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from shipped import SHIPPED

import tensorkit
from course.authoring.text import TextCell, read
from course.notebook.exercise import chapters, load
from tensorkit.nn import functional

SOLUTIONS = Path(__file__).parents[3] / "solutions"


def text_of(chapter: str) -> str:
    return (SOLUTIONS / f"{chapter}.py").read_text(encoding="utf-8")


def title_of(chapter: str) -> str:
    return re.findall(r"^# # (.*)$", text_of(chapter), re.MULTILINE)[0]


@pytest.mark.parametrize("chapter", chapters())
def test_the_text_has_the_exercises_in_the_order_of_their_definitions(chapter):
    marked = re.findall(r'^# %% exercise="(.*)"$', text_of(chapter), re.MULTILINE)
    assert marked == list(load(chapter))


@pytest.mark.parametrize("chapter", SHIPPED)
def test_the_headings_of_the_text_are_an_outline(chapter):
    levels = re.findall(r"^# (#+) ", text_of(chapter), re.MULTILINE)
    assert levels[0] == "#"
    assert set(levels[1:]) == {"##"}


END = ("On one page", "Elsewhere", "In tensorkit")
"""The sections that teach nothing new."""


@pytest.mark.parametrize("chapter", SHIPPED)
def test_a_chapter_ends_with_one_page_what_is_said_elsewhere_and_the_library(chapter):
    end = list(END)
    headings = re.findall(r"^# ## (.*)$", text_of(chapter), re.MULTILINE)
    if "Elsewhere" not in headings:  # nothing to put right
        end.remove("Elsewhere")
    assert headings[-len(end) :] == end or (chapter == SHIPPED[0] and headings[-1] == end[1])
    next_one = SHIPPED[SHIPPED.index(chapter) + 1 :][:1]
    links = [f"# **Next:** [{title_of(name)}](../{name}/{name}.ipynb)\n" for name in next_one]
    last = "\n# %% [markdown]\n".join([f'# %%\nprogress("{chapter}")\n', *links])
    assert text_of(chapter).endswith(last)


@pytest.mark.parametrize("chapter", SHIPPED[1:])
def test_the_lines_of_the_library_that_a_chapter_shows_exist_and_are_few(chapter):
    _, shown, question, *_ = sections_of(chapter)["In tensorkit"]
    assert shown.marks == {"role": "show", "tags": ["nbval-ignore-output"]}
    known = {"tk": tensorkit, "F": functional, "optim": tensorkit.optim}
    *imports, last = ast.parse(shown.source).body
    exec(compile(ast.Module(imports, []), chapter, "exec"), known)
    source = eval(ast.unparse(last), known)
    assert 10 <= sum(len(excerpt.lines) for excerpt in source.excerpts) <= 45
    assert all(excerpt.file.startswith("tensorkit/") for excerpt in source.excerpts)
    assert re.match(r"\*\*A question\.\*\*(.|\n)*\?\n\n<details>", question.source)


@pytest.mark.parametrize("chapter", SHIPPED[1:])
def test_the_minutes_in_the_text_are_those_of_the_core_exercises(chapter):
    (said,) = re.findall(r"core exercises take about (\d+)\s+minutes", text_of(chapter))
    core = [exercise for exercise in load(chapter).values() if not exercise.further]
    assert abs(int(said) - sum(exercise.minutes for exercise in core)) <= 3


@pytest.mark.parametrize("chapter", SHIPPED[1:])
def test_a_chapter_has_a_live_picture(chapter):
    assert re.search(r'^# %% role="show"\n(?:.+\n|\n(?!#))*?viz\.', text_of(chapter), re.MULTILINE)


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


def sections_of(chapter: str) -> dict[str, list[TextCell]]:
    """The cells of each section, by its heading."""
    found: dict[str, list[TextCell]] = {}
    for cell in read(SOLUTIONS / f"{chapter}.py"):
        if cell.source.startswith("## "):
            found[cell.source.splitlines()[0][3:]] = []
        if found:
            [*found.values()][-1].append(cell)
    return found


def lacks(section: list[TextCell]) -> set[str]:
    shown = [cell.source for cell in section if cell.marks.get("role") == "show"]
    plain = [cell for cell in section if cell.kind == "code" and cell.marks.get("role") != "show"]
    examples = [cell for cell in plain if "exercise" not in cell.marks]
    has = {
        "picture": any(re.search(r"\b(viz\.|explain\.|picture\()", source) for source in shown),
        "example": bool(examples),
        "exercise": any("exercise" in cell.marks for cell in section),
        "what to notice": any("**What to notice.**" in cell.source for cell in section),
    }
    return {name for name, there in has.items() if not there}


@pytest.mark.parametrize("chapter", SHIPPED[1:])
def test_a_section_has_a_picture_an_example_an_exercise_and_what_to_notice(chapter):
    taught = [part for part in sections_of(chapter).items() if part[0] not in END]
    found = {(heading, lack) for heading, section in taught for lack in lacks(section)}
    assert found <= WITHOUT


@pytest.mark.parametrize("chapter", SHIPPED)
def test_no_code_is_wider_than_a_cell_of_jupyterlab(chapter):
    code = [cell.source for cell in read(SOLUTIONS / f"{chapter}.py") if cell.kind == "code"]
    for exercise in load(chapter).values():
        code += [exercise.released_source, exercise.solution_source]
        code += re.findall(r"```python\n(.*?)```", exercise.statement, re.DOTALL)
    assert [line for text in code for line in text.splitlines() if len(line) > 88] == []


@pytest.mark.parametrize("chapter", SHIPPED)
def test_every_mistake_and_every_hint_is_a_sentence_or_more(chapter):
    texts = [text for exercise in load(chapter).values() for text in exercise.hints]
    texts += [
        mistake.message for exercise in load(chapter).values() for mistake in exercise.mistakes()
    ]
    for text in texts:
        assert text[-1] in ".?", text
        assert text.count("`") % 2 == 0, text


@pytest.mark.parametrize("chapter", SHIPPED[1:])
def test_the_core_gives_twenty_points(chapter):
    assert sum(exercise.points for exercise in load(chapter).values()) == 20
