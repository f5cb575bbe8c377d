"""Answers in cells of the learner's own, where the answer cell is as released: `take`."""

from __future__ import annotations

from collections.abc import Mapping

from course.notebook.answer_text import Cell, given, is_copy, is_untouched, names

Placed = list[tuple[int, Cell]]
"""Cells of the learner's own, each with the number of the released cell that it stands below."""


def without_marks(cell: Cell) -> Cell:
    """A cell as one of the learner's own: without ids, so that nothing takes it for another."""
    return {**cell, "id": "", "metadata": {}}


def take(
    answers: list[Cell], numbers: Mapping[str, int], placed: dict[str, Cell], own: Placed
) -> list[str]:
    """Put answers into the answer cells that are as released; the ids of these cells.

    answers: the released answer cells, in order. numbers: of the released cells, by id. placed: the
    learner's cells by released id. Both this and `own` are changed.

    The last own cell above the check that gives an answer counts; if there is none, the last one
    below the check. In the learner's notebook such a cell may use what ran before it. So directly
    above the answer run the released code and those own cells before it that stand below the answer
    cell or contain a name of the answer. Each of these own cells also runs at its own place, where
    it may use the released cells above it; but not if it gives an answer itself or stands directly
    below the answer cell.
    """
    released = {numbers[cell["id"]]: cell for cell in answers}
    for at, (place, cell) in enumerate(own):
        if place in released and is_copy(cell, released[place]):
            own[at] = (place - 1, cell)  # above the answer, which it then does not replace
    code = [each for each in own if each[1]["cell_type"] == "code"]
    first_runs = [place for place, _ in code]
    stubs = [
        cell for cell in answers if cell["id"] in placed and is_untouched(placed[cell["id"]], cell)
    ]
    ids = [given(cell, stubs) for _, cell in code]
    removed: list[Cell] = []
    filled = []
    for position, stub in enumerate(stubs):
        found = [at for at, each in enumerate(ids) if stub["id"] in each]
        if not found:
            continue
        number, check = numbers[stub["id"]], numbers[f"check-{stub['id']}"]
        above = [at for at in found if code[at][0] < check]
        last = (above or found)[-1]
        before = [at for at in range(last) if first_runs[at] >= number or names(code[at][1], stub)]
        removed += [code[at][1] for at in before if at in found or code[at][0] == number]
        answer, cells = code[last][1], [code[at][1] for at in before]
        # released code of this exercise and of those below, which ran before the answer did
        used = [
            each for each in stubs[position:] if any(names(cell, each) for cell in (*cells, answer))
        ]
        own += [(number - 1, without_marks(cell)) for cell in (*used, *cells)]
        placed[stub["id"]] = answer
        removed.append(answer)
        # what runs above this answer now need not run once more above the next one
        first_runs[: last + 1] = [min(place, number - 1) for place in first_runs[: last + 1]]
        filled.append(stub["id"])
    own[:] = [each for each in own if not any(each[1] is cell for cell in removed)]
    return filled
