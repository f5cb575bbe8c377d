"""The prediction how-many-parameters: parameters and shapes of networks."""

from __future__ import annotations

from typing import Any

import tensorkit as tk
from course.notebook.exercise import Prediction, exercise
from course.notebook.varied import Value, Varied


@exercise("how-many-parameters", points=2, difficulty=2, minutes=5)
class HowManyParameters(Prediction):
    """Predict: parameters and shapes

    Write a whole number, or a shape as a list, before you run anything. `net` is the network that
    reads the digits further below.

    One is done for you:

    ```python
    net = tk.nn.Sequential(tk.nn.Linear(64, 32), tk.nn.ReLU(), tk.nn.Linear(32, 10))
    sum(p.numel() for p in tk.nn.Linear(3, 2).parameters())  # 8: 2 · 3 weights, 2 biases
    ```
    """

    name = "parameters"
    ask = "Replace each ... by a whole number, or by a shape such as [2, 3]."
    questions = {
        "sum(p.numel() for p in tk.nn.Linear(64, 10).parameters())": (
            "One weight for each pair of input and output, and one bias for each output."
        ),
        "sum(p.numel() for p in tk.nn.Linear(64, 10, bias=False).parameters())": (
            "Without biases only the weights are left."
        ),
        "list(tk.nn.Linear(64, 10).weight.shape)": "Outputs first: a row of weights each.",
        "list(tk.nn.Linear(64, 10)(tk.zeros(32, 64)).shape)": (
            "The last dimension becomes the outputs; whatever stands before it stays."
        ),
        "list(tk.nn.Linear(64, 10)(tk.zeros(5, 32, 64)).shape)": (
            "The last dimension becomes the outputs; whatever stands before it stays."
        ),
        "sum(p.numel() for p in tk.nn.ReLU().parameters())": "ReLU has nothing to learn.",
        "len(list(net.parameters()))": "A weight and a bias for each linear layer.",
        "sum(p.numel() for p in net.parameters())": (
            "Count both linear layers by the rule above, and add."
        ),
    }
    varied = (Varied(("64",), 20, 99, ("tk.nn.Linear(64, 10",)),)
    hints = (
        "A linear layer from `n` inputs to `m` outputs has `n * m` weights and `m` biases.",
        "Its weight has the shape `[m, n]`. It changes only the last dimension of its input, from "
        "`n` to `m`.",
    )
    usual_mistakes = {
        "no biases": (
            {
                "sum(p.numel() for p in tk.nn.Linear(64, 10).parameters())": Value("64 * 10"),
                "len(list(net.parameters()))": 2,
                "sum(p.numel() for p in net.parameters())": 2368,
            },
            "You left out the biases. Unless it is told `bias=False`, a linear layer has one for "
            "each output.",
        ),
        "a bias for each input": (
            {
                "sum(p.numel() for p in tk.nn.Linear(64, 10).parameters())": Value("64 * 10 + 64"),
                "sum(p.numel() for p in net.parameters())": 2464,
            },
            "You counted a bias for each input. A bias is added to the result, so there is one for "
            "each output.",
        ),
        "inputs first": (
            {
                "list(tk.nn.Linear(64, 10).weight.shape)": [64, 10],
                "list(tk.nn.Linear(64, 10)(tk.zeros(32, 64)).shape)": [10, 32],
            },
            "You took inputs for rows. The weight has one row for each output, and the batch stays "
            "the first dimension of the result.",
        ),
        "the batch in front is lost": (
            {
                "list(tk.nn.Linear(64, 10)(tk.zeros(32, 64)).shape)": [10],
                "list(tk.nn.Linear(64, 10)(tk.zeros(5, 32, 64)).shape)": [5, 10],
            },
            "A layer answers for every sample: all dimensions but the last stay.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        net = tk.nn.Sequential(tk.nn.Linear(64, 32), tk.nn.ReLU(), tk.nn.Linear(32, 10))
        return eval(expression, {"tk": tk, "net": net})
