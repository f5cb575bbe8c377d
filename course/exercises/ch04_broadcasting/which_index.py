"""The exercise which-index: predict the shape once more."""

from __future__ import annotations

import tensorkit as tk
from course.notebook.exercise import Prediction, exercise
from course.notebook.varied import Varied


@exercise("which-index", points=2, difficulty=2, minutes=6)
class WhichIndex(Prediction):
    """Predict the shape once more

    Write each shape as a list.

    One is done for you:

    ```python
    tk.zeros(4, 3)[[0, 0, 1]]      # [3, 3]: three rows, one of them twice
    ```
    """

    name = "picked"
    ask = "Replace each ... by the shape that you expect, as a list such as [2, 3]."
    questions = {
        "tk.zeros(4, 1) + tk.zeros(3)": "Align at the right: [4, 1] and [1, 3].",
        "tk.zeros(5, 1, 4) * tk.zeros(3, 1)": "Align at the right: [5, 1, 4] and [1, 3, 1].",
        "tk.zeros(4, 3)[[0, 2]]": "A list picks entries of dimension 0, one for each number.",
        "tk.zeros(4, 3)[[0, 2], [1, 1]]": (
            "Two lists are read in pairs: row 0 column 1, row 2 column 1."
        ),
        "tk.zeros(4, 3)[tk.tensor([[0, 1], [2, 3]])]": (
            "Each number of the index is replaced by the row that it picks."
        ),
        "tk.arange(6)[tk.arange(6) > 3]": "A mask leaves as many elements as it has True.",
        "tk.arange(6)[tk.arange(6) > 9]": "A mask without a True leaves nothing, as a vector.",
        "tk.tensor(5) + tk.zeros(0)": "A number fits beside everything, also beside no elements.",
        "tk.zeros(4, 3)[None]": "`None` puts a new dimension of size 1 where it stands.",
        "tk.zeros(5, 4, 3)[..., 0]": "`...` stands for all dimensions that are not named.",
    }
    varied = (
        Varied(("3", "4"), 3, 12, ("tk.zeros(4, ", "tk.zeros(5, 1, 4)", "tk.zeros(5, 4, 3)")),
    )
    hints = (
        "For the first two, write the shapes below one another, aligned at the right.",
        "A list keeps its dimension, as long as the list. Two lists together go through the pairs.",
    )
    usual_mistakes = {
        "lists like slices": (
            {
                "tk.zeros(4, 3)[[0, 2], [1, 1]]": [2, 2],
                "tk.zeros(4, 3)[tk.tensor([[0, 1], [2, 3]])]": [4, 3],
            },
            "You read index lists like slices. Two lists are taken in pairs and give one element "
            "for each pair; a table of numbers gives a table of rows.",
        ),
        "aligned at the left": (
            {
                "tk.zeros(4, 1) + tk.zeros(3)": [4, 1],
                "tk.zeros(5, 1, 4) * tk.zeros(3, 1)": [5, 3, 1],
            },
            "Shapes are aligned at the right. Write them below one another and fill up with 1 at "
            "the left.",
        ),
        "a mask keeps the shape": (
            {
                "tk.arange(6)[tk.arange(6) > 3]": [6],
                "tk.arange(6)[tk.arange(6) > 9]": [6],
                "tk.zeros(4, 3)[[0, 2]]": [4, 3],
            },
            "You left the shape as it was. A mask and a list pick: only what is picked remains.",
        ),
        "an index list removes": (
            {
                "tk.zeros(4, 3)[[0, 2]]": [3],
                "tk.zeros(4, 3)[tk.tensor([[0, 1], [2, 3]])]": [3],
            },
            "A whole number removes its dimension, a list of them does not: it leaves as many "
            "entries as it is long.",
        ),
    }

    def observe(self, value: tk.Tensor) -> list[int]:
        return list(value.shape)
