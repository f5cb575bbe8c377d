"""The exercise which-result: predict the result."""

from __future__ import annotations

from typing import Any

import tensorkit as tk
from course.notebook.exercise import Prediction, exercise
from course.notebook.varied import Value, Varied


@exercise("which-result", points=2, difficulty=1, minutes=5)
class WhichResult(Prediction):
    """Predict the result

    Write down what you expect before you run anything: for a tensor of one number that number, for
    a vector a list such as `[1.0, 2.0]`.

    One is done for you:

    ```python
    tk.tensor([1.0, 2.0]) + 1      # [2.0, 3.0]: the 1 is added to each element
    ```
    """

    name = "results"
    ask = "Replace each ... by the result that you expect: a number or a list."
    questions = {
        "tk.tensor([1.0, 2.0]) * tk.tensor([3.0, 4.0])": (
            "`*` multiplies element by element; it adds nothing up."
        ),
        "tk.tensor([1.0, 2.0]) @ tk.tensor([3.0, 4.0])": (
            "`@` of two vectors multiplies element by element and adds the products up."
        ),
        "tk.tensor([1, 2]) / 2": "`/` divides each element, and whole numbers become floats.",
        "tk.tensor([1.0, 2.0, 3.0]) ** 2": "`**` raises each element to the power.",
        "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum()": "Without `dim` everything is added up.",
        "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)": (
            "`dim=0` is the dimension that disappears: the rows are added to each other."
        ),
        "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=1)": (
            "`dim=1` is the dimension that disappears: each row becomes one number."
        ),
        "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).amax(dim=-1)": (
            "-1 is the last dimension, and it disappears: each row becomes one number."
        ),
        "tk.zeros(0).sum()": "A sum begins at 0 and adds what there is.",
        "tk.tensor([4.0, 9.0, 7.0]).argmax()": "`argmax` gives a position, counted from 0.",
        "tk.tensor([9.0, -1.0]).abs().sqrt().sum()": (
            "Go from left to right: absolute values, square roots, their sum."
        ),
    }
    varied = (
        Varied(
            ("1.0", "2.0", "3.0", "4.0"), 1, 9, ("tk.tensor([1.0, 2.0", "tk.tensor([[1.0, 2.0]")
        ),
        Varied(("4.0", "7.0", "9.0"), 1, 9, ("tk.tensor([4.0, 9.0, 7.0])",)),
    )
    hints = (
        "`*` and `**` keep the shape. `@`, `sum` and `argmax` make fewer numbers of many.",
        "The `dim` that you name is the one that goes. `[[1, 2], [3, 4]]` has rows as dimension 0: "
        "without it, one row is left.",
    )
    usual_mistakes = {
        "dim names what stays": (
            {
                "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)": Value(
                    "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=1)"
                ),
                "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=1)": Value(
                    "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)"
                ),
                "tk.tensor([[1.0, 2.0], [3.0, 4.0]]).amax(dim=-1)": [3.0, 4.0],
            },
            "You kept the dimension that is named. `dim=0` says which dimension disappears: after "
            "`sum(dim=0)` the rows are gone and one number for each column is left.",
        ),
        "products confused": (
            {
                "tk.tensor([1.0, 2.0]) * tk.tensor([3.0, 4.0])": Value(
                    "tk.tensor([1.0, 2.0]) @ tk.tensor([3.0, 4.0])"
                ),
                "tk.tensor([1.0, 2.0]) @ tk.tensor([3.0, 4.0])": Value(
                    "tk.tensor([1.0, 2.0]) * tk.tensor([3.0, 4.0])"
                ),
            },
            "You exchanged `*` and `@`. `*` works element by element and keeps the shape; `@` adds "
            "the products up.",
        ),
        "the value instead of the position": (
            {
                "tk.tensor([4.0, 9.0, 7.0]).argmax()": 9.0,
                "tk.tensor([9.0, -1.0]).abs().sqrt().sum()": 3.0,
            },
            "You gave the largest value. `argmax` answers where it is, `max` how large it is; and "
            "do the last line once more, step by step.",
        ),
        "vectors are added up": (
            {
                "tk.tensor([1.0, 2.0, 3.0]) ** 2": Value("(tk.tensor([1.0, 2.0, 3.0]) ** 2).sum()"),
                "tk.tensor([1.0, 2.0]) * tk.tensor([3.0, 4.0])": Value(
                    "tk.tensor([1.0, 2.0]) @ tk.tensor([3.0, 4.0])"
                ),
            },
            "You added the elements up. An operation on elements leaves as many numbers as it was "
            "given.",
        ),
    }

    def observe(self, value: tk.Tensor) -> Any:
        return value.tolist()
