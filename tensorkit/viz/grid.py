"""A grid of cells with text, as broadcast and indexing draw tensors of up to two dimensions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorkit.viz.drawing import Canvas, text_width
from tensorkit.viz.palette import INK, SOFT, WHITE

MOST_ROWS, MOST_COLUMNS, HEIGHT, SIZE = 8, 10, 24.0, 11.5


@dataclass
class Cell:
    """The text of a cell, its ground, the dashes of its outline, and whether that is heavy."""

    text: str
    ground: str = WHITE
    dash: str = ""
    strong: bool = False


Places = Sequence[int]


def shown(size: int, most: int, wanted: Places = ()) -> list[int | None]:
    """The places along a dimension that are drawn; None stands for those left out.

    Of many these are the first ones and the last, or, if that shows clearly more of them, as many
    ``wanted`` ones as there is room for.
    """
    if size <= most:
        return list(range(size))
    usual = [*range(most - 2), None, size - 1]
    if not wanted:
        return usual
    places = {0, wanted[-1], size - 1}
    for place in wanted:
        if len(_with_gaps(places | {place})) > most:
            break
        places.add(place)
    seen, usually = len(places & set(wanted)), len(set(usual) & set(wanted))
    is_clearer = seen > usually + 1 or (seen > usually and seen == len(wanted)) or not usually
    return _with_gaps(places) if is_clearer else usual


def _with_gaps(places: set[int]) -> list[int | None]:
    found: list[int | None] = []
    for place in sorted(places):
        if found and place - 1 not in places:
            found.append(None)
        found.append(place)
    return found


def text(
    rows: int,
    columns: int,
    cell: Callable[[int, int], Cell],
    wanted: tuple[Places, Places] = ((), ()),
) -> list[str]:
    """The same cells as lines of text; heavy ones in brackets."""
    lines = []
    column_places = shown(columns, MOST_COLUMNS, wanted[1])
    for row in shown(rows, MOST_ROWS, wanted[0]) if columns else []:
        cells = ["..." if row is None else ""]
        if row is not None:
            told = [None if it is None else cell(row, it) for it in column_places]
            cells = [
                "..." if it is None else f"({it.text})" if it.strong else it.text for it in told
            ]
        lines.append("  " + " ".join(cells))
    return lines


def draw(
    canvas: Canvas,
    x: float,
    y: float,
    rows: int,
    columns: int,
    cell: Callable[[int, int], Cell],
    name_rows: bool = True,
    wanted: tuple[Places, Places] = ((), ()),
) -> tuple[float, float]:
    """Draw the cells of a matrix, with its indices beside it; gives the right and lower end.

    ``wanted`` are rows and columns that are drawn of a large matrix rather than its first ones.
    """
    row_places = shown(rows, MOST_ROWS, wanted[0])
    column_places = shown(columns, MOST_COLUMNS, wanted[1])
    cells = {
        (row, column): cell(row, column)
        for row in row_places
        for column in column_places
        if row is not None and column is not None
    }
    width = 14 + max((text_width(it.text, SIZE, mono=True) for it in cells.values()), default=16)
    width = max(width, 14 + text_width(str(columns - 1), 10), 30)
    left, at_y = x + 12 + text_width(str(max(rows - 1, 0)), 10), y + 16
    for row in row_places:
        at_x = left
        if row is not None and name_rows:
            canvas.text(left - 6, at_y + 16, str(row), 10, SOFT, anchor="end")
        for column in column_places:
            if row is None or column is None:
                dots = "⋯" if row is not None else "⋮"
                canvas.text(at_x + width / 2, at_y + 16, dots, 12, SOFT, anchor="middle")
            else:
                it = cells[row, column]
                if it.strong:  # inside the cell, so that it reads in grey and beside others
                    canvas.rect(at_x, at_y, width, HEIGHT, it.ground, SOFT, line=1)
                    canvas.rect(at_x + 2, at_y + 2, width - 4, HEIGHT - 4, "", INK, line=1.8)
                else:
                    canvas.rect(at_x, at_y, width, HEIGHT, it.ground, SOFT, dash=it.dash, line=1)
                middle = at_x + width / 2
                canvas.text(middle, at_y + 16, it.text, SIZE, INK, anchor="middle", mono=True)
            at_x += width
        at_y += HEIGHT
    at_x = left
    for column in column_places:
        if column is not None and rows:
            canvas.text(at_x + width / 2, y + 11, str(column), 10, SOFT, anchor="middle")
        at_x += width
    return at_x, at_y
