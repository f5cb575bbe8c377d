"""The prediction what-is-remembered: the inputs and versions of three results."""

from __future__ import annotations

from typing import Any

from course import engine
from course.notebook.exercise import Prediction, exercise


@exercise("what-is-remembered", points=2, difficulty=2, minutes=4)
class WhatIsRemembered(Prediction):
    """Predict: what a result remembers

    `x` and `y` are leaves that require grad, `c` is a constant. What do these results remember?
    Every answer is a whole number, True or False.

    One is done for you:

    ```python
    len((x * y).inputs)      # 2: x and y
    ```
    """

    name = "remembered"
    ask = "Replace each ... by a whole number, by True or by False."
    questions = {
        "len((x * x).inputs)": (
            "An input that is used twice is there twice: two gradients go back to it."
        ),
        "(x * c).requires_grad": "One input that requires grad is enough.",
        "len((c * c).inputs)": "What is made of constants alone is a constant: it has no history.",
        "len((x + c).saved)": "The formula of `+` passes `g` on. It reads no numbers.",
        "len((x * c).saved)": "The formula of `*` reads the numbers of both factors.",
        "len(x.relu().saved)": (
            "`relu` keeps a mask that it made itself. Nobody else can write into that."
        ),
        "(x * y + c).inputs[0].inputs[0] is x": (
            "The first input of the sum is the product, and the first input of the product is `x`."
        ),
    }
    hints = (
        "Look at your `Operations`: what does each hand to `self.result` as its inputs, and what "
        "as `saved`?",
        "`result` notes all that only if one of the inputs requires grad.",
    )
    usual_mistakes = {
        "each input once": (
            {"len((x * x).inputs)": 1, "len((x * c).saved)": 1},
            "You count different tensors that require grad. The inputs of `*` are two, whatever "
            "they are, and both are saved.",
        ),
        "all inputs are saved": (
            {"len((x + c).saved)": 2, "len(x.relu().saved)": 1},
            "You take the inputs for what is saved. Saved is only what the formula will read.",
        ),
        "constants have inputs": (
            {"len((c * c).inputs)": 2, "(x * c).requires_grad": False},
            "A result requires grad if one of its inputs does, and it remembers its inputs only "
            "then.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        leaf = engine.Tensor(2.0, requires_grad=True)
        other = engine.Tensor(3.0, requires_grad=True)
        return eval(expression, {"x": leaf, "y": other, "c": engine.Tensor(5.0)})
