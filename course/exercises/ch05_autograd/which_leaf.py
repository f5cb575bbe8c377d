"""The exercise which-leaf: which tensors are leaves, and which require grad."""

from __future__ import annotations

from course.notebook.exercise import Prediction, exercise


@exercise("which-leaf", points=2, difficulty=2, minutes=5)
class WhichLeaf(Prediction):
    """Predict: leaf or not, tracked or not

    Every answer is True or False.

    One is done for you:

    ```python
    tk.ones(2, requires_grad=True).requires_grad      # True: you asked for it
    ```
    """

    name = "leaves"
    ask = "Replace each ... by True or False."
    questions = {
        "tk.ones(2).requires_grad": "A new tensor asks for no gradient unless you say so.",
        "tk.ones(2, requires_grad=True).is_leaf": "No operation made it: it is where a graph ends.",
        "(tk.ones(2, requires_grad=True) * 2).is_leaf": "A recorded operation made it.",
        "(tk.ones(2) * 2).is_leaf": (
            "Nothing asked for a gradient, so nothing was recorded: a tensor without a history is "
            "a leaf."
        ),
        "(tk.ones(2, requires_grad=True) + tk.ones(2)).requires_grad": (
            "One input that asks is enough."
        ),
        "tk.ones(2, requires_grad=True).double().is_leaf": "A cast is an operation too.",
        "(tk.ones(2, requires_grad=True) > 0).requires_grad": (
            "True and False do not change a little when the input does: they have no gradient."
        ),
        "tk.ones(2, requires_grad=True).long().requires_grad": (
            "Whole numbers cannot change a little: only floats have gradients."
        ),
        "tk.ones(2, requires_grad=True).sum().requires_grad": "A reduction is recorded as well.",
    }
    hints = (
        "Ask of each: which operation made this tensor, and did one of its inputs ask for a "
        "gradient?",
        "Recorded are operations on floats of which at least one input requires grad. What they "
        "make requires grad and is no leaf; everything else is a leaf.",
    )
    usual_mistakes = {
        "a leaf is what requires grad": (
            {
                "(tk.ones(2, requires_grad=True) * 2).is_leaf": True,
                "(tk.ones(2) * 2).is_leaf": False,
                "tk.ones(2, requires_grad=True).double().is_leaf": True,
            },
            "You took `is_leaf` for `requires_grad`. A leaf is a tensor that no recorded operation "
            "made, whether it asks for a gradient or not.",
        ),
        "everything is tracked": (
            {
                "tk.ones(2).requires_grad": True,
                "(tk.ones(2) * 2).is_leaf": False,
                "(tk.ones(2, requires_grad=True) > 0).requires_grad": True,
                "tk.ones(2, requires_grad=True).long().requires_grad": True,
            },
            "Not everything is recorded: an input must ask for a gradient, and the result must be "
            "a float.",
        ),
        "all inputs must ask": (
            {
                "(tk.ones(2, requires_grad=True) + tk.ones(2)).requires_grad": False,
                "tk.ones(2, requires_grad=True).sum().requires_grad": False,
            },
            "One input that requires grad is enough for the result to require it.",
        ),
    }
