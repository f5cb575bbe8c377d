"""Tables: the same rows drawn on a canvas, as plain text, and as HTML."""

from collections.abc import Sequence
from html import escape

from tensorkit.viz.drawing import Canvas, shortened, text_width
from tensorkit.viz.palette import EDGE, INK, SOFT

ROW, SIZE, WIDEST_CELL = 22.0, 12.0, 340.0

Rows = Sequence[Sequence[str]]


def draw(
    canvas: Canvas,
    x: float,
    y: float,
    header: Sequence[str],
    rows: Rows,
    *,
    widest: float = WIDEST_CELL,
) -> float:
    """Draw a table with its header; gives the y below it. Cells are no wider than ``widest``."""
    widths = [
        min(max(text_width(cell, SIZE) * 1.06 for cell in column), widest) + 22
        for column in zip(header, *rows, strict=True)
    ]
    for number, row in enumerate([header, *rows]):
        at = x
        for cell, width in zip(row, widths, strict=True):
            text = shortened(cell, widest, SIZE)
            canvas.text(at, y + 15, text, SIZE, INK if number else SOFT, bold=not number)
            at += width
        y += ROW
        canvas.line([(x, y - 1), (at - 16, y - 1)], SOFT if not number else EDGE, width=1)
    return y


def text(header: Sequence[str], rows: Rows) -> list[str]:
    """The table as lines of text."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    ]


def html(header: Sequence[str], rows: Rows) -> str:
    """The table as HTML."""
    left = 'style="text-align:left"'  # JupyterLab has it right
    head = "".join(f'<th scope="col" {left}>{escape(cell)}</th>' for cell in header)
    body = "".join(
        f"<tr>{''.join(f'<td {left}>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
