"""The exercise checkerboard: zeros and ones in turn."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def checkerboard(rows: int, columns: int) -> tk.Tensor:
    """Zeros and ones in turn, as int64, with a 0 in the corner at the top left."""
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2, 1::2] = 1
    board[1::2, ::2] = 1
    return board


def _begins_with_one(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2, ::2] = 1
    board[1::2, 1::2] = 1
    return board


def _only_even_rows(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2, 1::2] = 1
    return board


def _stripes(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[:, 1::2] = 1
    return board


def _float_board(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns)
    board[::2, 1::2] = 1
    board[1::2, ::2] = 1
    return board


def _counts_on(rows: int, columns: int) -> tk.Tensor:
    return (tk.arange(rows * columns) % 2).reshape(rows, columns)


def _two_brackets(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2][1::2] = 1
    board[1::2][::2] = 1
    return board


def _stops_before_the_edge(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    for row in range(rows - 1):
        for column in range(columns - 1):
            board[row, column] = (row + column) % 2
    return board


def _whole_rows_and_columns(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[1::2] = 1
    board[:, 1::2] = 1
    return board


def _every_second_row(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[1::2] = 1
    return board


def _columns_by_rows(rows: int, columns: int) -> tk.Tensor:
    return checkerboard(columns, rows)


@exercise("checkerboard", answer=checkerboard, points=6, difficulty=2, minutes=8)
class Checkerboard(Exercise):
    """A checkerboard

    **Input:** `rows` and `columns`, two whole numbers, 0 or larger.

    **Output:** a tensor of shape `[rows, columns]` and dtype `tk.int64`. Zeros and ones take turns
    along every row and every column; the corner at the top left is 0.

    ```python
    checkerboard(3, 4)
    # tensor([[0, 1, 0, 1],
    #         [1, 0, 1, 0],
    #         [0, 1, 0, 1]])
    ```

    Slices with a step do it in a few lines, without a loop.

    The words after `:` and `->` in the first line name the type of each value; leave them as
    they are.
    """

    hints = (
        "Begin with a board of zeros. Which rows look alike? There are only two kinds of them.",
        "In rows 0, 2, 4, ... the ones stand in columns 1, 3, 5, ... One assignment to "
        "`board[::2, ...]` writes all of these at once.",
        "`board[::2, 1::2] = 1` fills the even rows. The odd rows need one line more, in which "
        "rows and columns change places.",
    )
    usual_mistakes = {
        "brackets missing": (
            lambda rows, columns: tk.arange(rows).unsqueeze(1) + tk.arange(columns) % 2,
            "`%` comes before `+`, so only the last number is taken modulo 2. Put the sum into "
            "brackets.",
        ),
        "begins with 1": (
            _begins_with_one,
            "The pattern is there, with zeros and ones exchanged: the corner at the top left "
            "should be 0. Shift the ones by one column.",
        ),
        "only even rows": (
            _only_even_rows,
            "Rows 0, 2, 4, ... are done, and rows 1, 3, 5, ... are still empty. Add a second "
            "assignment for those, with the columns shifted by one.",
        ),
        "stripes": (
            _stripes,
            "These are stripes: every row is the same. Fill the even and the odd rows in two "
            "assignments, with different columns.",
        ),
        "floats": (
            _float_board,
            "The pattern is right, in float32, which is what `tk.zeros` makes unless you ask. "
            "Asked for is `dtype=tk.int64`.",
        ),
        "counts on": (
            _counts_on,
            "You count on from row to row. With an even number of columns every row then begins "
            "with the same number: every second row must be shifted by one.",
        ),
        "whole rows": (
            _whole_rows_and_columns,
            "Ones fill whole rows or whole columns, and some stand side by side. In rows 1, 3, 5, "
            "... fill only columns 0, 2, 4, ...: name both in one index.",
        ),
        "two pairs of brackets": (
            _two_brackets,
            "`board[::2][1::2]` takes rows twice: every second row, and of these every second row "
            "again. Put both slices into one pair of brackets: `board[::2, 1::2]`.",
        ),
        "stops before the edge": (
            _stops_before_the_edge,
            "The last row and the last column are still empty. A `range` leaves out its end, and "
            "so does a slice: one that ends at `rows` reaches the last row.",
        ),
        "columns first": (
            _columns_by_rows,
            "The board lies on its side: rows and columns are exchanged. The first number of a "
            "shape counts the rows.",
        ),
        "every second row": (
            _every_second_row,
            "Whole rows are 0 or 1. Zeros and ones take turns along a row too: name the columns as "
            "well, `board[1::2, ::2]`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        side = 2 * draw.integer(2, 5)
        yield case(side, side, label="a square board")
        rows, columns = 2 * draw.integer(1, 2) + 1, 2 * draw.integer(3, 5) + 1
        yield case(rows, columns, label="odd sides")
        yield case(rows, 2 * draw.integer(2, 5), label="an even number of columns")
        yield case(2 * draw.integer(1, 3), 2 * draw.integer(4, 6) + 1, label="any board")
        yield case(1, draw.integer(4, 11), label="a single row (size 1)")
        yield case(draw.integer(3, 9), 1, label="a single column (size 1)")
        yield case(1, 1, label="a single square (size 1)")
        yield case(0, 3, label="no rows (empty)", weight=0.25)
        yield case(2, 0, label="no columns (empty)", weight=0.25)
