"""The exercise newton-step: one step of Newton's method."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def newton_step(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    """The point to which Newton's method goes from `x`."""
    return x - tk.linalg.solve(hessian, gradient)


def _times_hessian(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x - hessian @ gradient


def _plus(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x + tk.linalg.solve(hessian, gradient)


def _only_gradient(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x - gradient


def _only_diagonal(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x - gradient / hessian.diagonal()


def _element_by_element(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return x - gradient / hessian


def _the_step_alone(x: tk.Tensor, gradient: tk.Tensor, hessian: tk.Tensor) -> tk.Tensor:
    return tk.linalg.solve(hessian, gradient)


@exercise("newton-step", answer=newton_step, points=3, difficulty=3, minutes=8)
class NewtonStep(Exercise):
    """One step of Newton's method

    Gradient descent knows the slope and guesses how far to go. Newton's method also knows how the
    slope changes, and goes to where it would be 0: the step $s$ solves $H s = g$.

    **Input:** `x`, the present point, of shape `[n]`, `n` at least 1; `gradient`, of shape `[n]`;
    `hessian`, of shape `[n, n]`, which can be inverted; all of the same dtype.

    **Output:** the next point, `x` minus that step: a tensor of shape `[n]`. The three arguments
    stay as they are.

    ```python
    H = tk.tensor([[2.0, 0.0], [0.0, 4.0]])
    newton_step(tk.tensor([1.0, 1.0]), tk.tensor([2.0, 8.0]), H)
    # tensor([ 0., -1.])
    ```

    `tk.linalg.solve(A, b)` gives the `s` for which `A @ s` is `b`.
    """

    hints = (
        "For one number: the slope 8 falls by 4 for each 1, so after 2 it is 0. The step is slope "
        "divided by curvature; with matrices dividing becomes solving.",
        "The step is `tk.linalg.solve(hessian, gradient)`; the new point is `x` minus the step.",
    )
    usual_mistakes = {
        "times the Hessian": (
            _times_hessian,
            "You multiplied by the Hessian. Where the curvature is large the step should be small: "
            "solve with it, which is the opposite.",
        ),
        "uphill": (_plus, "The step leads downhill if it is subtracted: `x - step`."),
        "without the Hessian": (
            _only_gradient,
            "This is gradient descent with a rate of 1. Let the Hessian decide how far to go.",
        ),
        "only the diagonal": (
            _only_diagonal,
            "You divided by the diagonal. The other entries say how the elements depend on each "
            "other: solve with the whole matrix.",
        ),
        "element by element": (
            _element_by_element,
            "You divided by the matrix element by element. `tk.linalg.solve(hessian, gradient)` is "
            "the division that is meant.",
        ),
        "each entry inverted": (
            lambda x, gradient, hessian: x - hessian**-1 @ gradient,
            "`** -1` takes 1 divided by each entry, which is not the inverse of the matrix: "
            "`tk.linalg.solve(hessian, gradient)`.",
            r"\*\* \(?-1",
        ),
        "the inverse by element": (
            lambda x, gradient, hessian: x - tk.linalg.inv(hessian) * gradient,
            "`*` multiplies element by element, and the result is a matrix. The product of a "
            "matrix and a vector is `@`.",
            r"inv",
        ),
        "the step alone": (
            _the_step_alone,
            "This is the step. The next point is `x` minus the step.",
        ),
        "exchanged": (
            lambda x, gradient, hessian: x - tk.linalg.solve(gradient, hessian),
            "`solve` takes the matrix first: `tk.linalg.solve(hessian, gradient)`.",
            r"solve\(gradient",
        ),
        "a learning rate": (
            lambda x, gradient, hessian: x - 0.1 * tk.linalg.solve(hessian, gradient),
            "You go a tenth of the way. Newton's step is taken as a whole.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def vector(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 1, 9))

        yield case(
            tk.tensor([1.0, 1.0]),
            tk.tensor([2.0, 8.0]),
            tk.tensor([[2.0, 0.0], [0.0, 4.0]]),
            label="a diagonal matrix",
        )
        yield case(
            vector(2),
            vector(2),
            tk.tensor([[4.0, 1.0], [1.0, 3.0]]),
            label="elements that depend on each other",
        )
        a, b, c = (float(number) for number in draw.integers(3, 5, 9))
        symmetric = tk.tensor([[a, -2.0, 1.0], [-2.0, -b, 2.0], [1.0, 2.0, c]])
        yield case(
            tk.zeros(3), vector(3) * tk.tensor([1.0, -1.0, 1.0]), symmetric, label="three elements"
        )
        a, b = (float(number) for number in draw.integers(2, 2, 9))
        coupled = tk.tensor([[a, 0.5], [0.5, b]]).double()
        yield case(-vector(2).double(), vector(2).double(), coupled, label="float64")
        curvature = float(draw.integer(2, 9))
        yield case(
            -vector(1), vector(1), tk.tensor([[curvature]]), label="a single element (size 1)"
        )
        a, b = (float(number) for number in draw.integers(2, 4, 9))
        wide = tk.tensor([[a, 9.0, 1.0], [0.0, 0.0, 0.0], [2.0, 9.0, b]])
        yield case(
            vector(3)[::2],
            vector(3)[::2],
            wide[::2, ::2].T,
            label="not symmetric",
        )
        yield case(
            tk.zeros(0), tk.zeros(0), tk.zeros(0, 0), label="no elements (empty)", weight=0.25
        )
