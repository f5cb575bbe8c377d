"""The exercise which-layout: which shape, stride and offset a view has."""

from __future__ import annotations

from typing import Any

from course.notebook.exercise import Prediction, exercise
from course.notebook.varied import Varied


@exercise("which-layout", points=2, difficulty=2, minutes=6)
class WhichLayout(Prediction):
    """Predict the layout

    Write down shapes and strides as lists, offsets as numbers, and True or False where the question
    has two answers.

    One is done for you:

    ```python
    tk.zeros(3, 4).stride()      # [4, 1]: a new row every 4 elements
    ```
    """

    name = "layouts"
    ask = "Replace each ... by what you expect: a list, a number, True or False."
    questions = {
        "tk.zeros(2, 5).stride()": (
            "One step to the right is 1 element further, one row down a whole row of 5."
        ),
        "tk.zeros(3, 4).T.stride()": "A transpose exchanges the strides along with the sizes.",
        "tk.zeros(2, 3, 4).transpose(-1, 0).stride()": (
            "-1 is the last dimension. Write down the strides of [2, 3, 4] and exchange two."
        ),
        "tk.tensor(5).stride()": "One stride for each dimension, and here is none.",
        "tk.zeros(3, 4)[:, 1].stride()": (
            "The whole number removes the columns and their stride; the rows keep theirs."
        ),
        "tk.zeros(3, 4)[::2].stride()": "A step of 2 doubles the stride of that dimension.",
        "tk.zeros(2, 3, 4).permute(2, 0, 1).shape": (
            "`permute` lists, for each new dimension, which old one it is."
        ),
        "tk.zeros(3, 4)[1:, 1:].storage_offset()": (
            "The first element of the slice is row 1, column 1: its position in the storage."
        ),
        "tk.zeros(3, 4).T.is_contiguous()": (
            "Contiguous means: reading row after row walks through memory element by element."
        ),
        "tk.zeros(4, 1).T.is_contiguous()": (
            "Nobody takes a step in a dimension of size 1: its stride does not matter."
        ),
        "tk.zeros(3, 4)[1:].is_contiguous()": (
            "Leaving out rows at the beginning leaves no gaps between the elements."
        ),
    }
    varied = (
        Varied(("3", "4"), 3, 12, ("tk.zeros(3, 4)",)),
        Varied(("5",), 3, 12, ("tk.zeros(2, 5)",)),
    )
    hints = (
        "For each of them draw the storage as one row of numbers, and count.",
        "Slices and transposes never move a number. They change sizes, strides and the offset.",
    )
    usual_mistakes = {
        "strides of a fresh tensor": (
            {
                "tk.zeros(3, 4).T.stride()": [3, 1],
                "tk.zeros(3, 4)[::2].stride()": [4, 1],
                "tk.zeros(3, 4)[:, 1].stride()": [1],
                "tk.zeros(2, 3, 4).transpose(-1, 0).stride()": [6, 2, 1],
            },
            "You gave the strides that a new tensor of that shape would have. These tensors lie in "
            "the memory of the old one: start from its strides.",
        ),
        "permute the other way": (
            {
                "tk.zeros(2, 3, 4).permute(2, 0, 1).shape": [3, 4, 2],
                "tk.zeros(3, 4)[1:, 1:].storage_offset()": 2,
            },
            "`permute(2, 0, 1)` reads: the new dimension 0 is the old dimension 2. And an offset "
            "counts all the elements that are skipped, whole rows too.",
        ),
        "contiguity exchanged": (
            {
                "tk.zeros(3, 4).T.is_contiguous()": True,
                "tk.zeros(3, 4)[1:].is_contiguous()": False,
            },
            "It is not about whether something was cut off, but about gaps and order: rows 1 and 2 "
            "stand side by side in memory, the rows of a transpose do not.",
        ),
    }

    def observe(self, value: Any) -> Any:
        return value if isinstance(value, (bool, int)) else list(value)
