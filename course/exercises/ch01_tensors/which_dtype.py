"""The exercise which-dtype: predict the dtype."""

from __future__ import annotations

from typing import Any

import tensorkit as tk
from course.notebook.exercise import Prediction, exercise


@exercise("which-dtype", points=1, difficulty=2, minutes=5)
class WhichDtype(Prediction):
    """Predict the dtype

    Write down the dtype that you expect before you run anything: as a string such as `"int32"`.

    One is done for you:

    ```python
    tk.tensor([True, False])      # "bool": a list of Python's True and False
    ```
    """

    name = "dtypes"
    ask = 'Replace each ... by the dtype that you expect, as a string such as "int32".'
    form = r"(u?int|b?float|complex)\d+|bool"
    questions = {
        "tk.tensor([1, 2, 3])": "A list of Python ints gives the default dtype for whole numbers.",
        "tk.tensor([1, 2.5])": "One float among the numbers makes all of them the default float.",
        "tk.arange(4)": "`arange` counts with the kind of number that it is given.",
        "tk.full((2,), 7)": "`full` looks at the number that it writes, and 7 has no point.",
        "tk.from_numpy(np.array([0.5, 1.5]))": "`from_numpy` keeps the dtype of the array.",
        "tk.from_numpy(np.array([1, 2], dtype=np.uint8))": (
            "`from_numpy` keeps the dtype of the array."
        ),
        "tk.tensor([1, 2, 3]) / 2": "`/` between whole numbers gives the default float.",
        "tk.tensor([1, 2, 3]) * 0.5": (
            "A Python float is a higher kind than whole numbers; it brings the default float."
        ),
        "tk.ones(2, dtype=tk.float16) * 2.0": (
            "A Python float beside a float tensor is the same kind, so the tensor decides."
        ),
        "tk.ones(2) + tk.tensor(1.0, dtype=tk.float64)": (
            "A 0-d tensor beside a tensor with dimensions counts as little as a Python number."
        ),
        "tk.ones(2, dtype=tk.uint8) + 1": (
            "A Python int beside a tensor of whole numbers is the same kind: the tensor decides."
        ),
    }
    hints = (
        "Two defaults cover most of it: whole numbers become int64, floats become float32.",
        "`from_numpy` never converts. A Python number changes the dtype of a tensor only if it is "
        "of a higher kind: bool, then whole number, then float.",
    )
    usual_mistakes = {
        "floats have 64 bits": (
            {
                "tk.tensor([1, 2.5])": "float64",
                "tk.tensor([1, 2, 3]) / 2": "float64",
                "tk.tensor([1, 2, 3]) * 0.5": "float64",
            },
            "You expect floats with 64 bits, as NumPy and Python make them. A tensor's default "
            "float has half as many; only data from NumPy arrives with 64. Go through the floats "
            "again.",
        ),
        "from_numpy converts": (
            {
                "tk.from_numpy(np.array([0.5, 1.5]))": "float32",
                "tk.from_numpy(np.array([1, 2], dtype=np.uint8))": "int64",
            },
            "You let `from_numpy` convert to the defaults. It shares the memory of the array and "
            "therefore has to keep its dtype: ask which dtype the array has.",
        ),
        "whole numbers have 32 bits": (
            {"tk.tensor([1, 2, 3])": "int32", "tk.arange(4)": "int32"},
            "You expect whole numbers with 32 bits, as in C. The default for whole numbers is "
            "twice as wide. Change those two.",
        ),
        "factories make floats": (
            {"tk.arange(4)": "float32", "tk.full((2,), 7)": "float32"},
            "`zeros` and `ones` make floats, but `arange` and `full` look at the numbers that you "
            "give them. Yours have no decimal point: predict those two again.",
        ),
        "whole numbers stay whole": (
            {"tk.tensor([1, 2, 3]) / 2": "int64", "tk.tensor([1, 2, 3]) * 0.5": "int64"},
            "You kept whole numbers, but 1 / 2 is 0.5 and needs a float. `/` always gives a "
            "float, and so does a Python float as partner. Which float is the default?",
        ),
        "the Python number decides": (
            {
                "tk.ones(2, dtype=tk.float16) * 2.0": "float32",
                "tk.ones(2) + tk.tensor(1.0, dtype=tk.float64)": "float64",
                "tk.ones(2, dtype=tk.uint8) + 1": "int64",
            },
            "You let a single number choose. Beside a tensor with dimensions of the same kind it "
            "has no say: the tensor's dtype stays. Predict the last three again.",
        ),
        "Python's types": (
            {"tk.tensor([1, 2, 3])": "int", "tk.tensor([1, 2.5])": "float", "tk.arange(4)": "int"},
            "`int` and `float` are Python's types. A dtype also says how many bits: "
            '"int64", "float32".',
        ),
    }

    def observe(self, value: tk.Tensor) -> str:
        return str(value.dtype).removeprefix("torch.")

    def run(self, answer: Any, *args: Any) -> Any:
        said = super().run(answer, *args)
        if said is int or said is float:
            return said.__name__  # without quotes the same mistake
        # `tk.float32`, "torch.float32", "Float32" and "float 32" say the same as "float32"
        if isinstance(said, str | type(tk.float32)):
            said = str(said).replace(" ", "").lower()
            return said.removeprefix("torch.").removeprefix("tk.")
        return said
