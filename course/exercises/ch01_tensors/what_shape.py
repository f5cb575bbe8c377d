"""The exercise what-shape: predict the shape."""

from __future__ import annotations

import tensorkit as tk
from course.notebook.exercise import Prediction, exercise
from course.notebook.varied import Varied


@exercise("what-shape", points=1, difficulty=1, minutes=4)
class WhatShape(Prediction):
    """Predict the shape

    `tk.zeros(4, 3)` is a table of 4 rows and 3 columns. Write down the shape that you expect
    before you run anything: as a list such as `[2, 3]`, and `[]` for a single number.

    One is done for you:

    ```python
    tk.zeros(4, 3)[:2]      # [2, 3]: rows 0 and 1, all 3 columns
    ```

    A wrong prediction costs nothing. The check names the rule and leaves the experiment to you.
    """

    name = "shapes"
    ask = "Replace each ... by the shape that you expect, as a list such as [2, 3]."
    questions = {
        "tk.tensor(7)": "No brackets in the call, no dimension in the tensor.",
        "tk.tensor([7, 8])[0]": "A whole number as index picks one entry: its dimension goes.",
        "tk.zeros(4, 3)[1]": "The shape lists rows first. A whole number picks one row.",
        "tk.zeros(4, 3)[1:2]": "A slice keeps its dimension, even if one entry is left in it.",
        "tk.zeros(4, 3)[2:2]": "From 2 up to, not including, 2: a slice may keep nothing.",
        "tk.zeros(4, 3)[:, 1]": "`:` keeps all rows; the whole number removes the columns.",
        "tk.zeros(5, 4)[:3, ::3]": (
            "`:3` stops before 3. `::3` starts at 0 and takes every third entry that exists."
        ),
        "tk.zeros(10)[::3]": "Count the positions that are taken: 0, 3, 6, ... below 10.",
        "tk.zeros(8, 3, 32, 32)[0, 0]": "Two whole numbers remove the first two dimensions.",
    }
    varied = (
        Varied(("3", "4"), 2, 12, ("tk.zeros(4, 3)",)),
        Varied(("32",), 16, 64, ("tk.zeros(8, 3, 32, 32)",)),
    )
    hints = (
        "A whole number as index removes its dimension; a slice keeps it.",
        "For a slice, write down the positions that it takes: `::3` of 5 entries takes 0 and 3.",
    )
    usual_mistakes = {
        "an index keeps its dimension": (
            {"tk.zeros(4, 3)[1]": (1, 3), "tk.zeros(4, 3)[:, 1]": (4, 1)},
            "You left a 1 where a whole number was the index. A whole number removes its "
            "dimension; only a slice such as `1:2` keeps it. Go through the indices once more.",
        ),
        "a number has one dimension": (
            {"tk.tensor(7)": (1,), "tk.tensor([7, 8])[0]": (1,)},
            "You gave a single number one dimension. `[7]` is a list of length 1, `7` is no list: "
            "count the brackets that are left, and write `[]` where there are none.",
        ),
        "columns before rows": (
            {"tk.zeros(4, 3)[1]": (4,), "tk.zeros(4, 3)[:, 1]": (3,)},
            "You took the columns for the first dimension. A shape is read from the outer "
            "brackets inwards: rows, then columns. Try `tk.zeros(4, 3)[1]` again with that.",
        ),
        "the stop is included": (
            {
                "tk.zeros(4, 3)[1:2]": (2, 3),
                "tk.zeros(4, 3)[2:2]": (1, 3),
                "tk.zeros(5, 4)[:3, ::3]": (4, 2),
            },
            "You counted the stop of a slice. As in Python's lists a slice ends just before its "
            "stop, so `1:2` takes only position 1. Count those slices again.",
        ),
        "steps rounded down": (
            {"tk.zeros(5, 4)[:3, ::3]": (3, 1), "tk.zeros(10)[::3]": (3,)},
            "You divided the size by the step and rounded down. Position 0 is always taken: list "
            "the positions (0, 3, ...) and count them.",
        ),
        "a bare number": (
            {"tk.zeros(4, 3)[1]": 3, "tk.zeros(4, 3)[:, 1]": 4, "tk.zeros(10)[::3]": 4},
            "The numbers are right, and a shape is a list even with one entry: write `[3]`, "
            "not `3`.",
        ),
        "in quotes": (
            {"tk.tensor(7)": "[]", "tk.tensor([7, 8])[0]": "[]", "tk.zeros(4, 3)[1]": "[3]"},
            "Your shapes stand in quotes, and so they are text. Write a list, without quotes.",
        ),
    }

    def observe(self, value: tk.Tensor) -> list[int]:
        return list(value.shape)
