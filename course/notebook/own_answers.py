"""Answers in cells of the learner's own, where the answer cell is as released: `take`."""

from __future__ import annotations

from collections.abc import Mapping

from course.notebook.answer_text import Cell, answered, is_copy, is_untouched, names

Numbered = tuple[int, Cell]
"""A cell of the learner's own, with the number of the released cell that it stands below."""


def without_marks(cell: Cell) -> Cell:
    """A cell as one of the learner's own: without ids, so that nothing takes it for another."""
    return {**cell, "id": "", "metadata": {}}


def take(
    answers: list[Cell],
    numbers: Mapping[str, int],
    placed: dict[str, Cell],
    own_cells: list[Numbered],
) -> tuple[list[str], list[Numbered]]:
    """Put answers into the answer cells that are as released.

    answers: the released answer cells, in order. numbers: of the released cells, by id. placed: the
    learner's cells by released id, which is changed. What comes back: the ids of the cells that got
    an answer, and the learner's own cells at the places where they run now.

    The last own cell above the check that gives an answer counts; if there is none, the last one
    below the check. In the learner's notebook such a cell may use what ran before it. So directly
    above the answer run the released code and those own cells before it that stand below the answer
    cell or contain a name of the answer. Each of these own cells also runs at its own place, where
    it may use the released cells above it; but not if it gives an answer itself or stands directly
    below the answer cell.
    """
    cells = [_OwnCell(*numbered) for numbered in _with_copies_above(own_cells, answers, numbers)]
    code = [cell for cell in cells if cell.cell["cell_type"] == "code"]
    stubs = [
        cell for cell in answers if cell["id"] in placed and is_untouched(placed[cell["id"]], cell)
    ]
    for own_cell in code:
        own_cell.answered = answered(own_cell.cell, stubs)
    ids: list[str] = []
    added: list[Numbered] = []
    for position, stub in enumerate(stubs):
        number = numbers[stub["id"]]
        check = numbers.get(f"check-{stub['id']}", number)  # an instructor's own may have none
        last = _last_answer(code, stub["id"], check)
        if last is None:
            continue
        answer = code[last]
        before = [cell for cell in code[:last] if cell.runs_below(number) or names(cell.cell, stub)]
        for own_cell in (*before, answer):
            if stub["id"] in own_cell.answered or own_cell.place == number:
                own_cell.stays = False
        texts = [cell.cell for cell in (*before, answer)]
        # released code of this exercise and of those below, which ran before the answer did
        released = [cell for cell in stubs[position:] if any(names(text, cell) for text in texts)]
        added += [(number - 1, without_marks(cell)) for cell in (*released, *texts[:-1])]
        placed[stub["id"]] = answer.cell
        ids.append(stub["id"])
        for own_cell in code[: last + 1]:
            # from here on these cells run above this answer cell: they do not stand below it only
            own_cell.first = min(own_cell.first, number - 1)
    return ids, [(cell.place, cell.cell) for cell in cells if cell.stays] + added


class _OwnCell:
    """A cell of the learner's own, and where it runs."""

    def __init__(self, place: int, cell: Cell) -> None:
        self.place, self.cell = place, cell
        self.first = place
        """The lowest number of a released cell below which it runs."""
        self.stays = True
        """Whether it runs at its own place."""
        self.answered: set[str] = set()
        """The ids of the answer cells to which it gives an answer."""

    def runs_below(self, number: int) -> bool:
        """Whether it runs below this released cell and at no place above it."""
        return self.first >= number


def _with_copies_above(
    own_cells: list[Numbered], answers: list[Cell], numbers: Mapping[str, int]
) -> list[Numbered]:
    """The own cells; a copy of released code directly below its answer cell is moved above it.

    There the copy does not replace the answer.
    """
    released = {numbers[cell["id"]]: cell for cell in answers}
    return [
        (place - (place in released and is_copy(cell, released[place])), cell)
        for place, cell in own_cells
    ]


def _last_answer(code: list[_OwnCell], id: str, check: int) -> int | None:
    """The position of the own cell whose answer counts: the last above the check, or the last."""
    positions = [at for at, own_cell in enumerate(code) if id in own_cell.answered]
    above = [at for at in positions if code[at].place < check]
    counting = above or positions
    return counting[-1] if counting else None
