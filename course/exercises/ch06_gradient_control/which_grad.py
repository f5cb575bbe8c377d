"""The exercise which-grad: which tensors require grad."""

from __future__ import annotations

from typing import Any

import tensorkit as tk
from course.notebook.exercise import Prediction, exercise


@exercise("which-grad", points=2, difficulty=3, minutes=5)
class WhichGrad(Prediction):
    """Predict: does it require grad?

    Every answer is True or False. `tk.no_grad()(f)` is the function `f` with recording switched off
    while it runs.

    One is done for you:

    ```python
    w = tk.ones(1, requires_grad=True)
    (w * 2).requires_grad  # True: recorded
    ```
    """

    name = "asks"
    ask = "Replace each ... by True or False."
    questions = {
        "(w * 2).detach().requires_grad": ("`detach` gives the numbers without their history."),
        "w.detach().is_leaf": (
            "What has no history is a leaf, whether it asks for a gradient or not."
        ),
        "(w.detach() * 2).requires_grad": ("Its only input asks for nothing."),
        "(tk.ones(1).detach() + w).requires_grad": (
            "One input that asks is enough, whatever the other one is."
        ),
        "tk.no_grad()(lambda: w * 2)().requires_grad": (
            "Inside `no_grad` no operation is recorded."
        ),
        "tk.no_grad()(lambda: tk.ones(1, requires_grad=True))().requires_grad": (
            "`no_grad` switches recording off. A new tensor that asks for a gradient still asks."
        ),
        "tk.inference_mode()(lambda: w * 2)().requires_grad": (
            "`inference_mode` records nothing either."
        ),
        "(tk.ones(1, requires_grad=True).requires_grad_(False) * 2).requires_grad": (
            "`requires_grad_(False)` takes the wish back: the tensor is frozen."
        ),
    }
    hints = (
        "Ask two things: was the operation recorded, and did one of its inputs ask for a gradient?",
        "`detach`, `no_grad`, `inference_mode` and `requires_grad_(False)` all end in False, with "
        "one exception: a tensor that is *made* with `requires_grad=True` inside `no_grad`.",
    )
    usual_mistakes = {
        "detach changes nothing": (
            {
                "(w * 2).detach().requires_grad": True,
                "(w.detach() * 2).requires_grad": True,
            },
            "A detached tensor has no history and asks for nothing; what is made of it alone has "
            "none either.",
        ),
        "no_grad freezes everything": (
            {
                "tk.no_grad()(lambda: tk.ones(1, requires_grad=True))().requires_grad": False,
                "(tk.ones(1).detach() + w).requires_grad": False,
            },
            "These switches stop the recording of operations. A tensor that asks for a gradient "
            "still asks, and one such input is enough outside of them.",
        ),
        "no_grad is only for the update": (
            {
                "tk.no_grad()(lambda: w * 2)().requires_grad": True,
                "tk.inference_mode()(lambda: w * 2)().requires_grad": (True),
            },
            "Nothing that is computed inside `no_grad` or `inference_mode` is recorded, so its "
            "results require no grad.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        w = tk.ones(1, requires_grad=True)
        return eval(expression, {"tk": tk, "w": w})
