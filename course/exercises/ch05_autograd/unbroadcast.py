"""The exercise unbroadcast: the gradient of an operand that was stretched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def unbroadcast(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    """The gradient of an operand of this shape, which was stretched."""
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=0)
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(dim=dim, keepdim=True)
    return gradient


def _mean_instead(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient.mean(dim=0)
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.mean(dim=dim, keepdim=True)
    return gradient


def _only_leading(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=0)
    return gradient


def _only_ones(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(dim=dim, keepdim=True)
    return gradient


def _dimension_lost(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=0)
    for dim in reversed(range(len(shape))):
        if shape[dim] == 1:
            gradient = gradient.sum(dim=dim)
    return gradient


def _first_of_each(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient[0]
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.narrow(dim, 0, 1)
    return gradient


def _sum_of_all(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    return gradient.sum() * tk.ones(shape, dtype=gradient.dtype)


def _one_missing_dimension(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    if gradient.ndim > len(shape):
        gradient = gradient.sum(dim=0)
    return _only_ones(gradient, shape)


def _first_size_of_one(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    gradient = _only_leading(gradient, shape)
    return gradient.sum(dim=shape.index(1), keepdim=True) if 1 in shape else gradient


def _from_the_right(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=-1)
    return unbroadcast(gradient, shape)


@exercise("unbroadcast", answer=unbroadcast, points=4, difficulty=4, minutes=8)
class Unbroadcast(Exercise):
    """Backward through broadcasting

    An element that was used several times receives several gradients, and they are added. So a
    gradient is summed over the dimensions that were stretched.

    **Input:** `gradient`, a tensor of any float dtype, of the shape that the operands agreed on;
    `shape`, the shape of one operand, a tuple: `()` for a 0-d tensor.

    **Output:** a tensor of that shape: `gradient` summed over the dimensions that the operand lacks
    (at the left), and over those in which it has size 1. `gradient` itself stays as it is.

    ```python
    g = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    unbroadcast(g, (3,))
    # tensor([5., 7., 9.])
    unbroadcast(g, (2, 1))
    # tensor([[ 6.],
    #         [15.]])
    ```

    Your function runs inside tensorkit below.
    """

    hints = (
        "Two things stretch: missing dimensions at the left, and dimensions of size 1. Undo the "
        "first before the second.",
        "While `gradient` has more dimensions than `shape`, sum over dimension 0.",
        "Then, for each dimension of size 1, sum with `keepdim=True`, so that it stays.",
    )
    usual_mistakes = {
        "the mean": (
            _mean_instead,
            "You take the mean. Every place that read the element changes the result, so their "
            "gradients add up: `sum`.",
        ),
        "only the missing dimensions": (
            _only_leading,
            "You sum over the dimensions that are missing at the left. Dimensions of size 1 were "
            "stretched too.",
        ),
        "only the ones": (
            _only_ones,
            "You sum over dimensions of size 1. The operand may also lack dimensions at the left: "
            "sum over these first.",
        ),
        "dimension lost": (
            _dimension_lost,
            "The sums are right and dimensions are missing: the gradient must have the shape of "
            "the operand. `keepdim=True` keeps the size of 1.",
        ),
        "the first of each": (
            _first_of_each,
            "You took one of the gradients that come back. All of them count: add them up.",
        ),
        "everything": (
            _sum_of_all,
            "You summed over everything. A dimension that was not stretched keeps its own entries.",
        ),
        "from the right": (
            _from_the_right,
            "You sum over the last dimensions. Those that the operand lacks are at the left: "
            "`dim=0`.",
        ),
        "one missing dimension": (
            _one_missing_dimension,
            "You sum over one missing dimension. More than one may be missing: `while` in place of "
            "`if`.",
        ),
        "the first size of 1": (
            _first_size_of_one,
            "You sum over the first dimension of size 1. There may be several: go through all of "
            "them.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        g = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        yield case(g, (3,), label="a row")
        yield case(g, (2, 1), label="a column (size 1)")
        yield case(_table(draw, 3), (1, 3), label="a row with two dimensions")
        columns = draw.integer(2, 4)
        yield case(_table(draw, columns), (), label="a single number (0-d)")
        columns = draw.integer(3, 4)  # not as many as rows: a sum over the other dimension is seen
        halves = _table(draw, columns).half()
        yield case(halves, (columns,), label="half the memory (float16)")
        columns = draw.integer(2, 4)
        yield case(_table(draw, columns), (2, columns), label="nothing was stretched")
        h = tk.tensor(draw.floats(24, -9, 3), dtype=tk.float64).reshape(2, 3, 4)
        yield case(h, (4,), label="two dimensions missing")
        yield case(h, (3, 1), label="a dimension missing, another of size 1")
        yield case(h, (2, 1, 4), label="the middle one")
        yield case(h, (1, 3, 1), label="the first and the last one")
        yield case(h, (2, 1, 1), label="the last two")
        square = tk.tensor(draw.floats(9, 1, 9)).reshape(3, 3)
        yield case(square, (3,), label="a row for a square gradient")
        yield case(square, (3, 1), label="a column for a square gradient (size 1)")
        yield case(h.permute(2, 1, 0), (3, 2), label="a permuted gradient (non-contiguous)")
        yield case(tk.zeros(0, 3), (1, 3), label="no rows (empty)")

    def advice(self, *args: Any) -> str | None:
        gradient, shape = args
        return f"The result must have the shape {shape}; the gradient has {tuple(gradient.shape)}."


def _table(draw: Draw, columns: int) -> tk.Tensor:
    return tk.tensor([draw.integers(columns, 1, 9) for _ in range(2)]).float()
