"""The exercise hessian-rows: the Hessian, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def hessian_rows(x: tk.Tensor) -> tk.Tensor:
    """The matrix of second derivatives of `f` at `x`."""

    def f(x: tk.Tensor) -> tk.Tensor:
        return (x**3).sum() + x.sum() ** 2

    x = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(f(x), x, create_graph=True)
    rows = []
    for slope in gradient:
        (row,) = tk.autograd.grad(slope, x, retain_graph=True)
        rows.append(row)
    return tk.stack(rows)


def _cubes_and_square(x: tk.Tensor) -> tk.Tensor:
    return (x**3).sum() + x.sum() ** 2


def _only_the_diagonal(x: tk.Tensor) -> tk.Tensor:
    full = hessian_rows(x)
    return full * tk.eye(len(x), dtype=x.dtype)


def _of_the_sum(x: tk.Tensor) -> tk.Tensor:
    return hessian_rows(x).sum(dim=0)


def _outer_product(x: tk.Tensor) -> tk.Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf)
    return gradient.unsqueeze(1) * gradient


def _a_list(x: tk.Tensor) -> Any:
    return list(hessian_rows(x))


def _graph_not_kept(x: tk.Tensor) -> tk.Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf, create_graph=True)
    return tk.stack([tk.autograd.grad(slope, leaf)[0] for slope in gradient])


def _one_grad_for_all_rows(x: tk.Tensor) -> tk.Tensor:
    leaf = x.clone().requires_grad_()
    (gradient,) = tk.autograd.grad(_cubes_and_square(leaf), leaf, create_graph=True)
    rows = []
    for slope in gradient:
        slope.backward(retain_graph=True)
        rows.append(leaf.grad)
    return tk.stack([row for row in rows if row is not None])


def _rows_added_up(x: tk.Tensor) -> tk.Tensor:
    return hessian_rows(x).cumsum(dim=0)


@exercise("hessian-rows", answer=hessian_rows, points=0, difficulty=4, minutes=9, further=True)
class HessianRows(Exercise):
    """The Hessian, row by row

    Take `f(x) = (x**3).sum() + x.sum() ** 2`; write it down inside your function.

    **Input:** `x`, a float vector of any dtype with at least one element.

    **Output:** its Hessian at `x`: the matrix whose row `i` is the gradient of slope `i`. `x`
    itself stays as it is.

    ```python
    hessian_rows(tk.tensor([1.0, 2.0]))
    # tensor([[ 8.,  2.],
    #         [ 2., 14.]])
    ```

    The entries on the diagonal are `6x + 2`, all others are 2.
    """

    hints = (
        "First the gradient, with `create_graph=True`. Then the gradient of each of its elements.",
        "All rows are computed from one graph: it must be kept for the next row with "
        "`retain_graph=True`. `tk.stack` makes a matrix of the rows.",
    )
    usual_mistakes = {
        "only the diagonal": (
            _only_the_diagonal,
            "Only the diagonal is there. The square of the sum couples all elements with each "
            "other.",
        ),
        "rows added up": (
            _rows_added_up,
            "Each row holds those above it as well: `backward` adds to `.grad`. "
            "`tk.autograd.grad` gives one row and adds to nothing.",
        ),
        "of the sum": (
            _of_the_sum,
            "You differentiated the sum of all slopes: that adds the rows up. Take each slope "
            "alone.",
        ),
        "outer product": (
            _outer_product,
            "You multiplied the gradient with itself. The Hessian holds the slopes of the slopes.",
        ),
        "a list": (_a_list, "The rows are right, in a list. `tk.stack` makes a matrix of them."),
        "one gradient for all rows": (
            _one_grad_for_all_rows,
            "Every backward adds to `x.grad`, and each row of yours is this one tensor. "
            "`tk.autograd.grad` gives each row a tensor of its own.",
        ),
        "the graph is gone": (
            _graph_not_kept,
            "After the first row the graph is freed. `retain_graph=True` in the call that computes "
            "a row keeps it.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbers(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 1, 9)]

        yield case(tk.tensor([1.0, 2.0]), label="two elements")
        yield case(tk.tensor(numbers(3)), label="any three")
        below, middle, above = numbers(3)
        yield case(tk.tensor([-below, middle / 2, 0.0, above]), label="four, one of them 0")
        yield case(tk.tensor(numbers(2)).double() / 2, label="float64")
        first, second = numbers(2)
        yield case(
            tk.tensor([first, 9.0, second])[::2], label="every second element (non-contiguous)"
        )
        yield case(tk.tensor([draw.number(1.5, 9)]), label="a single element (size 1)")
        above, below = numbers(2)
        yield case(tk.tensor([above, -below], dtype=tk.float16), label="half the memory (float16)")
