"""The exercise one-hot: one-hot rows."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def one_hot(labels: tk.Tensor, n: int) -> tk.Tensor:
    """A row for each label, with a 1 at its place and 0 elsewhere."""
    rows = tk.zeros(len(labels), n, dtype=tk.int64)
    rows[tk.arange(len(labels)), labels] = 1
    return rows


def _every_column(labels: tk.Tensor, n: int) -> tk.Tensor:
    rows = tk.zeros(len(labels), n, dtype=tk.int64)
    rows[:, labels] = 1
    return rows


def _whole_rows(labels: tk.Tensor, n: int) -> tk.Tensor:
    rows = tk.zeros(max(len(labels), n), n, dtype=tk.int64)
    rows[labels] = 1
    return rows[: len(labels)]


def _the_label_itself(labels: tk.Tensor, n: int) -> tk.Tensor:
    rows = tk.zeros(len(labels), n, dtype=tk.int64)
    rows[tk.arange(len(labels)), labels] = labels
    return rows


def _as_booleans(labels: tk.Tensor, n: int) -> tk.Tensor:
    return labels.unsqueeze(1) == tk.arange(n)


def _turned(labels: tk.Tensor, n: int) -> tk.Tensor:
    return one_hot(labels, n).T


def _counted_from_one(labels: tk.Tensor, n: int) -> tk.Tensor:
    return one_hot((labels - 1) % n, n)


@exercise("one-hot", answer=one_hot, points=0, difficulty=3, minutes=7, further=True)
class OneHot(Exercise):
    """One-hot rows

    A classifier's target is often written as a row with a single 1.

    **Input:** `labels`, an int64 vector of any length with numbers from 0 to `n - 1`, and `n`.

    **Output:** an int64 tensor of shape `[len(labels), n]`; row `i` has a 1 in column
    `labels[i]`, and 0 everywhere else. `labels` itself stays as it is.

    ```python
    one_hot(tk.tensor([2, 0]), 3)
    # tensor([[0, 0, 1],
    #         [1, 0, 0]])
    ```
    """

    hints = (
        "Either write into zeros with two index tensors, rows and columns, or compare a column of "
        "labels with a row of numbers.",
        "`rows[tk.arange(len(labels)), labels] = 1` goes through the pairs. A comparison gives "
        "bool and needs `.long()`.",
    )
    usual_mistakes = {
        "every label in every row": (
            _every_column,
            "Each row has a 1 for every label: `rows[:, labels]` takes these columns in every row. "
            "Name the row that belongs to each label: two index tensors are read in pairs.",
        ),
        "whole rows": (
            _whole_rows,
            "One index tensor picks whole rows. You want one element in each row: give the rows "
            "first, then the labels as columns.",
        ),
        "n rows": (
            lambda labels, n: tk.cat([one_hot(labels, n), tk.zeros(n, n, dtype=tk.int64)])[:n],
            "You have a row for each class: `n` of them. There should be one for each label, "
            "`len(labels)`.",
        ),
        "the label itself": (
            _the_label_itself,
            "You wrote the label. A one-hot row holds a 1 at the place of the label.",
        ),
        "True and False": (
            _as_booleans,
            "The places are right, as bool. `.long()` makes 0 and 1 of it.",
        ),
        "turned": (
            _turned,
            "Each label should have a row; yours has a column: rows and columns are exchanged.",
        ),
        "counted from 1": (
            _counted_from_one,
            "Each 1 stands one column too far to the left: labels count from 0, as columns do.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([2, 0]), 3, label="two labels (int)")
        yield case(tk.tensor([*draw.distinct(4, 0, 5), 5]), 6, label="any labels")
        a, b = draw.distinct(2, 1, 5)
        yield case(tk.tensor([a, a, b, a]), 6, label="a label again and again")
        n = draw.integer(6, 9)
        yield case(tk.tensor(draw.distinct(3, 1, n - 2)), n, label="fewer labels than classes")
        six = tk.tensor(draw.distinct(6, 1, 7))
        yield case(six[::2], 8, label="every second (non-contiguous)")
        n = draw.integer(4, 9)
        yield case(tk.tensor([draw.integer(2, n - 1)]), n, label="a single label (size 1)")
        yield case(tk.tensor([], dtype=tk.int64), 4, label="no labels (empty)")
