"""The exercise hessian-vector: a Hessian times a vector, without the Hessian."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.engine.measuring import measured
from course.notebook.demands import is_by_autograd, seen
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def _cubes_and_square(x: tk.Tensor) -> tk.Tensor:
    return (x**3).sum() + x.sum() ** 2


def hessian_vector(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    """The Hessian of `f` at `x`, times the vector `v`."""

    def f(x: tk.Tensor) -> tk.Tensor:
        return (x**3).sum() + x.sum() ** 2

    x = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(f(x), x, create_graph=True)
    product = (gradient * v).sum()
    return tk.autograd.grad(product, x)[0]


@no_type_check
def _hessian_vector_program(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    def f(x: tk.Tensor) -> tk.Tensor:
        return (x**3).sum() + x.sum() ** 2

    x = x.clone().requires_grad_()
    gradient = ...  # the gradient of f at x, with a history of its own
    product = ...  # gradient times v, added up: one number
    return ...  # the gradient of that number


def _recorded_gradient(x: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf, create_graph=True)
    return leaf, gradient


def _gradient_times_v(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    _, gradient = _recorded_gradient(x)
    return (gradient * v).detach()


def _v_afterwards(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    leaf, gradient = _recorded_gradient(x)
    return tk.autograd.grad(gradient.sum(), leaf)[0] * v


def _without_v(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    leaf, gradient = _recorded_gradient(x)
    return tk.autograd.grad(gradient.sum(), leaf)[0]


def _one_number(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    return hessian_vector(x, v) @ v


def _graph_not_recorded(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf)
    return tk.autograd.grad((gradient * v).sum(), leaf)[0]


def _gradient_still_there(x: tk.Tensor, v: tk.Tensor) -> tk.Tensor:
    leaf = x.clone().requires_grad_()
    _cubes_and_square(leaf).backward(create_graph=True)
    (leaf.grad * v).sum().backward()
    return leaf.grad


@exercise(
    "hessian-vector",
    answer=hessian_vector,
    stub=_hessian_vector_program,
    kind="complete",
    points=6,
    difficulty=4,
    minutes=9,
)
class HessianVector(Exercise):
    """A Hessian times a vector, without the Hessian

    The Hessian of a model with a million parameters has a million times a million entries.
    Often only its product with one vector is needed, and that takes one more backward pass.
    Fill the gaps.

    **Input:** `x` and `v`, two float vectors of the same length and dtype, with at least one
    element.

    **Output:** the Hessian of `f` at `x`, times `v`: a vector. `f` stands in the code. `x` and `v`
    themselves stay as they are.

    ```python
    hessian_vector(tk.tensor([1.0, 2.0]), tk.tensor([1.0, 0.0]))
    # tensor([8., 2.]): the first column of [[8, 2], [2, 14]]
    ```
    """

    hints = (
        "Slope `i` changes by row `i` of the Hessian. So the gradient of `gradient @ v` is the "
        "Hessian times `v`: `v` is a constant.",
        "`tk.autograd.grad(f(x), x, create_graph=True)[0]` is the gradient; the last line is one "
        "more `tk.autograd.grad`, of `product`.",
    )
    usual_mistakes = {
        "gradient times v": (
            _gradient_times_v,
            "This is the gradient times `v`, element by element. Add it up, and differentiate that "
            "number once more.",
        ),
        "v afterwards": (
            _v_afterwards,
            "You multiplied by `v` after the second derivative. That weighs the sums of the rows; "
            "multiply the gradient by `v` before you differentiate again.",
        ),
        "without v": (
            _without_v,
            "You differentiated the sum of the gradient: that is the Hessian times a vector of "
            "ones. Multiply by `v` first.",
        ),
        "one number": (
            _one_number,
            "You multiplied by `v` twice, which leaves one number. The result is a vector.",
        ),
        "not recorded": (
            _graph_not_recorded,
            "The gradient has no history, so it cannot be differentiated. `create_graph=True` "
            "belongs into the call that computes the gradient.",
            r"^(?!(?s:.*)create_graph)",
        ),
        "the whole Hessian": (
            lambda x, v: tk.autograd.functional.hessian(_cubes_and_square, x) @ v,
            "The vector is right, and you make the whole Hessian for it, a backward pass for each "
            "row. Differentiate the one number `(gradient * v).sum()` instead.",
        ),
        "by a formula": (
            lambda x, v: 6 * x * v + 2 * v.sum(),
            "The vector is right, and autograd did not find it. Let it differentiate twice: first "
            "`f(x)`, then the product with `v`.",
        ),
        "only the diagonal": (
            lambda x, v: (6 * x + 2) * v,
            "This is the diagonal of the Hessian times `v`. The square of the sum couples all "
            "elements: every entry beside the diagonal is 2, and counts too.",
        ),
        "the gradient is still there": (
            _gradient_still_there,
            "The gradient stands in your result as well: `.grad` held it before the second "
            "backward. Use `tk.autograd.grad`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbers(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 1, 9)]

        def unlike(n: int) -> list[float]:
            return [float(number) for number in draw.distinct(n, 2, 9)]

        yield case(tk.tensor([1.0, 2.0]), tk.tensor([1.0, 0.0]), label="the first column")
        yield case(tk.tensor(numbers(3)), tk.tensor(unlike(3)), label="any three elements")
        yield case(tk.tensor(numbers(6)), tk.tensor(unlike(6)), label="six elements")
        (below, middle), (up, down) = numbers(2), unlike(2)
        yield case(
            tk.tensor([-below, middle / 2]), tk.tensor([up, -down]), label="negative numbers"
        )
        yield case(tk.tensor(numbers(3)), tk.tensor([0.0, 0.0, 1.0]), label="the last column")
        yield case(
            tk.tensor(numbers(2)).double() / 2, tk.tensor(unlike(2)).double(), label="float64"
        )
        first, second = draw.floats(2, 1.5, 9)
        yield case(tk.tensor([first]), tk.tensor([second]), label="one element (size 1)")
        first, second = numbers(2)
        yield case(
            tk.tensor([first, 9.0, second])[::2],
            tk.tensor([0.0, 9.0, unlike(1)[0]])[::2],
            label="every second element (non-contiguous)",
        )
        yield case(tk.zeros(0), tk.zeros(0), label="no elements (empty)", weight=0.25)
        above, below = numbers(2)
        half_v = tk.tensor(unlike(2), dtype=tk.float16)
        yield case(
            tk.tensor([above, -below], dtype=tk.float16), half_v, label="half the memory (float16)"
        )

    def run(self, answer: Any, *args: Any) -> Any:
        """The vector, and whether autograd has found it in two walks, without a matrix."""
        x, v = args
        right = self.reference(x, v)
        product, work = measured(answer, x, v)
        if not isinstance(product, tk.Tensor):
            return product
        demands = {  # of one element the Hessian is a vector too
            "one more backward pass": len(x) < 2 or work["walks"] == 2,
            "by autograd": is_by_autograd(product, work["doubled"], walks=2),
            # of so few elements other tensors are as large as the Hessian
            "without the Hessian": len(x) < 4 or work["largest"] < len(x) ** 2,
        }
        return seen("product", product, right, demands)
