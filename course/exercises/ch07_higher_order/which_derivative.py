"""The exercise which-derivative: predict slopes and curvatures."""

from __future__ import annotations

import tensorkit as tk
from course.notebook.exercise import Prediction, exercise
from course.notebook.varied import Value, Varied


@exercise("which-derivative", points=2, difficulty=2, minutes=5)
class WhichDerivative(Prediction):
    """Predict slopes and curvatures

    `jacobian` computes first derivatives, `hessian` second ones. Write each answer as a number.

    One is done for you:

    ```python
    from tensorkit.autograd.functional import hessian
    hessian(lambda x: x**2, tk.tensor(3.0))      # 2.0: the slope 2x grows by 2 for each 1
    ```
    """

    name = "derivatives"
    ask = "Replace each ... by a number."
    questions = {
        "tk.autograd.functional.jacobian(lambda x: x**3, tk.tensor(2.0))": (
            "The first derivative of x³ is 3x²."
        ),
        "tk.autograd.functional.hessian(lambda x: x**3, tk.tensor(2.0))": (
            "The second derivative of x³ is 6x."
        ),
        "tk.autograd.functional.hessian(lambda x: x**2 + 5 * x, tk.tensor(2.0))": (
            "The straight part has the same slope everywhere: it adds nothing to the curvature."
        ),
        "tk.autograd.functional.hessian(lambda x: tk.sin(x), tk.tensor(0.0))": (
            "The second derivative of the sine is minus the sine, and the sine of 0 is 0."
        ),
        "tk.autograd.functional.hessian(lambda x: tk.exp(x), tk.tensor(0.0))": (
            "The exponential function is its own derivative, again and again."
        ),
        "tk.autograd.functional.hessian(lambda x: (x**2).sum(), tk.ones(2))[0, 1]": (
            "No term has both elements in it: the slope of one does not depend on the other."
        ),
        "tk.autograd.functional.hessian(lambda x: x[0] * x[1], tk.ones(2))[0, 1]": (
            "The slope of element 0 is element 1: it grows by 1 when that grows by 1."
        ),
        "tk.autograd.functional.hessian(lambda x: x[0] * x[1], tk.ones(2))[0, 0]": (
            "The slope of element 0 does not depend on element 0."
        ),
    }
    varied = (Varied(("2.0", "5"), 4, 9, ("x**3, tk.tensor(2.0)", "5 * x, tk.tensor(2.0)")),)
    hints = (
        "Differentiate on paper: x³, 3x², 6x. `hessian` does it twice.",
        "Entry `[i, j]` of a Hessian says how much slope `i` changes when element `j` changes.",
    )
    usual_mistakes = {
        "one derivative too few": (
            {
                "tk.autograd.functional.jacobian(lambda x: x**3, tk.tensor(2.0))": Value(
                    "tk.tensor(2.0) ** 3"
                ),
                "tk.autograd.functional.hessian(lambda x: x**2 + 5 * x, tk.tensor(2.0))": Value(
                    "2 * tk.tensor(2.0) + 5"
                ),
            },
            "Count the derivatives: `jacobian` takes one, `hessian` takes two.",
        ),
        "slope for curvature": (
            {
                "tk.autograd.functional.hessian(lambda x: x**3, tk.tensor(2.0))": 6.0,
                "tk.autograd.functional.hessian(lambda x: tk.sin(x), tk.tensor(0.0))": 1.0,
            },
            "Differentiate once more, then put the number in: the second derivative of x³ is 6x, "
            "that of the sine is minus the sine.",
        ),
        "diagonal and rest exchanged": (
            {
                "tk.autograd.functional.hessian(lambda x: x[0] * x[1], tk.ones(2))[0, 1]": 0.0,
                "tk.autograd.functional.hessian(lambda x: x[0] * x[1], tk.ones(2))[0, 0]": 1.0,
            },
            "Entry `[0, 1]` asks how the slope of element 0 changes when element *1* moves. For a "
            "product of the two it does; for entry `[0, 0]` it does not.",
        ),
    }

    def observe(self, value: tk.Tensor) -> float:
        return float(value.item())
