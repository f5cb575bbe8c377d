"""Answers in cells of the learner's own, where the answer cell is as released: `take`."""

from __future__ import annotations

from collections.abc import Mapping

from course.notebook.answer_text import Cell, given, is_copy, is_untouched, names

Placed = list[tuple[int, Cell]]
"""Cells of the learner's own, each with the number of the released cell that it stands below."""


def without_marks(cell: Cell) -> Cell:
    """A cell as one of the learner's own: without ids, so that nothing takes it for another."""
    return {**cell, "id": "", "metadata": {}}


def take(answers: Mapping[int, Cell], placed: dict[str, Cell], own: Placed) -> list[str]:
    """Put answers into the answer cells that are as released; the ids of these cells.

    answers: the released answer cells by number. placed: the learner's cells by released id. Both
    this and `own` are changed.

    As in the learner's notebook, the last cell that gives an answer counts, and it may use what ran
    before. So in front of it run the released cell, then those own cells before it that stand below
    the answer cell or name the answer. Where they stand they run once more, because they may need
    the cells in between, unless they give an answer too or stand above the check.
    """
    for at, (place, cell) in enumerate(own):
        if place in answers and is_copy(cell, answers[place]):
            own[at] = (place - 1, cell)  # in front, where it replaces no answer
    code = [each for each in own if each[1]["cell_type"] == "code"]
    places = [place for place, _ in code]
    stubs = {
        number: released
        for number, released in answers.items()
        if released["id"] in placed and is_untouched(placed[released["id"]], released)
    }
    ids = [given(cell, list(stubs.values())) for _, cell in code]
    removed: list[Cell] = []
    filled = []
    for number, stub in stubs.items():
        found = [at for at, each in enumerate(ids) if stub["id"] in each]
        if not found:
            continue
        last = found[-1]
        before = [at for at in range(last) if places[at] >= number or names(code[at][1], stub)]
        removed += [code[at][1] for at in before if at in found or code[at][0] == number]
        answer, cells = code[last][1], [code[at][1] for at in before]
        later = [each for n, each in stubs.items() if n >= number]
        used = [each for each in later if any(names(cell, each) for cell in (*cells, answer))]
        own += [(number - 1, without_marks(cell)) for cell in (*used, *cells)]
        placed[stub["id"]] = answer
        removed.append(answer)
        places[: last + 1] = [min(place, number - 1) for place in places[: last + 1]]
        filled.append(stub["id"])
    own[:] = [each for each in own if not any(each[1] is cell for cell in removed)]
    return filled
