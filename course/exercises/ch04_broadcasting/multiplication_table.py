"""The exercise multiplication-table: the multiplication table."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def multiplication_table(n: int) -> tk.Tensor:
    """The products of the numbers from 1 to `n` with each other."""
    numbers = tk.arange(1, n + 1)
    return numbers.unsqueeze(1) * numbers


def _from_zero(n: int) -> tk.Tensor:
    numbers = tk.arange(n)
    return numbers.unsqueeze(1) * numbers


def _without_the_last(n: int) -> tk.Tensor:
    numbers = tk.arange(1, max(n, 1))
    return numbers.unsqueeze(1) * numbers


def _only_the_squares(n: int) -> tk.Tensor:
    numbers = tk.arange(1, n + 1)
    return numbers * numbers


def _sums(n: int) -> tk.Tensor:
    numbers = tk.arange(1, n + 1)
    return numbers.unsqueeze(1) + numbers


def _floats(n: int) -> tk.Tensor:
    numbers = tk.linspace(1, n, n)
    return numbers.unsqueeze(1) * numbers


def _one_number(n: int) -> tk.Tensor:
    numbers = tk.arange(1, n + 1)
    return numbers @ numbers


@exercise("multiplication-table", answer=multiplication_table, points=3, difficulty=2, minutes=6)
class MultiplicationTable(Exercise):
    """The multiplication table

    **Input:** `n`, a whole number, 0 or larger.

    **Output:** an int64 tensor of shape `[n, n]`: the table of the numbers from 1 to `n`. The
    entry in row `i` and column `j`, both counted from 0, is `(i + 1) * (j + 1)`.

    ```python
    multiplication_table(3)
    # tensor([[1, 2, 3],
    #         [2, 4, 6],
    #         [3, 6, 9]])
    ```

    No loop is needed: a column times a row is a table.
    """

    hints = (
        "Which shapes must the two factors have so that the result has shape `[n, n]`?",
        "`tk.arange(1, n + 1)` is the row. `.unsqueeze(1)` makes a column of it.",
    )
    usual_mistakes = {
        "from 0": (
            _from_zero,
            "Your numbers begin at 0, so the first row and column are 0. The table begins at 1: "
            "`tk.arange(1, n + 1)`.",
        ),
        "one too few": (
            _without_the_last,
            "The last row and column are missing. `arange` stops before its end: to include `n`, "
            "the end is `n + 1`.",
        ),
        "only the squares": (
            _only_the_squares,
            "A row times the same row multiplies element by element. Make a column of one of them.",
        ),
        "two rows": (
            lambda n: tk.arange(1, n + 1).unsqueeze(0) * tk.arange(1, n + 1),
            "Both factors are rows, of shape `[1, n]` or `[n]`. A column has shape `[n, 1]`: "
            "`unsqueeze(1)`.",
        ),
        "sums": (_sums, "You added row and column. Multiply them: `*` in place of `+`."),
        "floats": (
            _floats,
            "The numbers are right, as floats. `arange` with whole numbers gives int64.",
        ),
        "one number": (
            _one_number,
            "The products are added up to one number, as `@` of two vectors does it. Use `*` "
            "between a column and a row.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(3, label="three")
        yield case(draw.integer(4, 8), label="four to eight")
        yield case(draw.integer(9, 12), label="nine to twelve")
        yield case(draw.integer(13, 19), label="thirteen and more")
        yield case(1, label="one (size 1)")
        yield case(0, label="none (empty)")
