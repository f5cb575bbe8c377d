"""A grid of cells with text, as broadcast and indexing draw tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tensorkit.viz.drawing import Canvas, text_width
from tensorkit.viz.palette import INK, SOFT, WHITE

MOST_ROWS, MOST_COLUMNS, HEIGHT, SIZE = 8, 10, 24.0, 11.5


@dataclass
class Cell:
    """The text of a cell, its ground, the dashes of its outline, and whether that is heavy."""

    text: str
    ground: str = WHITE
    dash: str = ""
    is_heavy: bool = False

    @property
    def in_brackets(self) -> str:
        """The text, in brackets if the outline is heavy."""
        return f"({self.text})" if self.is_heavy else self.text


class Grid:
    """The cells of a tensor as rows: the last dimension lies along them, the others are beside.

    ``cell`` gives the cell at an index. A large grid is shortened to its first rows and columns
    and the last, or to some rows and columns that are ``wanted``.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        cell: Callable[[tuple[int, ...]], Cell],
        wanted: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> None:
        *lead, n_columns = shape or (1,)
        self.columns = _shown(n_columns, MOST_COLUMNS, wanted[1])
        self.rows: list[str] = []
        self.cells: list[list[Cell | None]] = []
        for row in _shown(prod(lead), MOST_ROWS, wanted[0]):
            index = () if row is None else tuple(map(int, np.unravel_index(row, lead)))
            self.rows.append("…" if row is None else ", ".join(map(str, index)))
            columns = [None if row is None else it for it in self.columns]
            full = [None if it is None else (*index, it)[: len(shape)] for it in columns]
            self.cells.append([None if it is None else cell(it) for it in full])

    def as_text(self) -> list[str]:
        """The cells as lines of text; heavy ones in brackets."""
        lines = []
        for name, cells in zip(self.rows, self.cells, strict=True):
            words = ["..." if it is None else it.in_brackets for it in cells]
            lines += ["  " + ("..." if name == "…" else " ".join(words))] if cells else []
        return lines

    def draw(
        self, canvas: Canvas, x: float, y: float, names: Sequence[str] = ()
    ) -> tuple[float, float]:
        """Draw the cells with their indices beside them; gives the right and lower end.

        ``names`` stand beside the rows instead of their indices.
        """
        rows = [names[int(it)] if names and it.isdigit() else it for it in self.rows]
        columns = ["" if it is None else str(it) for it in self.columns if rows]
        texts = [it.text for cells in self.cells for it in cells if it is not None]
        widths = [text_width(it, SIZE, mono=True) for it in [*texts, *columns]]
        width = max([16.0, *widths]) + 14
        left, top = x + 8 + max((text_width(it, 10.5) for it in rows), default=0), y + 16
        for n, column in enumerate(columns):
            canvas.text(left + (n + 0.5) * width, y + 11, column, 10, SOFT, anchor="middle")
        for name, cells in zip(rows, self.cells, strict=True):
            canvas.text(left - 6, top + 16, name, 10.5, SOFT, anchor="end")
            for n, cell in enumerate(cells):
                at = left + n * width
                if cell is not None:
                    canvas.rect(at, top, width, HEIGHT, cell.ground, SOFT, dash=cell.dash, line=1)
                    if cell.is_heavy:  # inside the cell, so that it reads in grey too
                        canvas.rect(at + 2, top + 2, width - 4, HEIGHT - 4, "none", INK, line=1.8)
                text = "⋯" if cell is None else cell.text
                canvas.text(at + width / 2, top + 16, text, SIZE, anchor="middle", mono=True)
            top += HEIGHT
        return left + len(columns) * width, top


def _shown(size: int, most: int, wanted: Sequence[int]) -> list[int | None]:
    """The indices along a dimension that are shown; None stands for those left out.

    Of many these are the first ones and the last; where those hold fewer than two of the
    ``wanted`` ones, the first of these between both ends.
    """
    if size <= most:
        return list(range(size))
    shown = {*range(most - 2), size - 1}
    if len(shown & set(wanted)) < min(len(wanted), 2):
        shown = {0, size - 1, *wanted[: (most - 2) // 2]}
    found: list[int | None] = []
    for it in sorted(shown):
        found += [None, it] if found and it - 1 not in shown else [it]
    return found
