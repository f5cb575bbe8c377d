"""The exercise standard-rows: standardise each row."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def standard_rows(x: tk.Tensor) -> tk.Tensor:
    """The rows of `x`, each with mean 0 and standard deviation 1."""
    return (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True)


def _over_columns(x: tk.Tensor) -> tk.Tensor:
    return (x - x.mean(dim=0)) / x.std(dim=0)


def _over_everything(x: tk.Tensor) -> tk.Tensor:
    return (x - x.mean()) / x.std()


def _without_keepdim(x: tk.Tensor) -> tk.Tensor:
    return (x - x.mean(dim=1)) / x.std(dim=1)


def _only_the_mean(x: tk.Tensor) -> tk.Tensor:
    return x - x.mean(dim=1, keepdim=True)


def _divides_by_variance(x: tk.Tensor) -> tk.Tensor:
    return (x - x.mean(dim=1, keepdim=True)) / x.var(dim=1, keepdim=True)


def _divides_first_then_centres(x: tk.Tensor) -> tk.Tensor:
    return x / x.std(dim=1, keepdim=True)


def _squeezed_into_0_to_1(x: tk.Tensor) -> tk.Tensor:
    low, high = x.amin(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)
    return (x - low) / (high - low)


@exercise("standard-rows", answer=standard_rows, points=5, difficulty=3, minutes=9)
class StandardRows(Exercise):
    """Standardise each row

    Each row holds the measurements of one sensor. To compare sensors of different kinds, shift
    each row so that its mean is 0, and scale it so that its standard deviation is 1.

    **Input:** `x`, a float tensor of shape `[rows, columns]`, with at least 2 columns and no row
    of equal numbers.

    **Output:** a tensor of the same shape and dtype: from each row its mean is subtracted, then
    the row is divided by its standard deviation, as `std` computes it. `x` itself stays as it is.

    ```python
    standard_rows(tk.tensor([[1.0, 2.0, 3.0], [10.0, 30.0, 50.0]]))
    # tensor([[-1.,  0.,  1.],
    #         [-1.,  0.,  1.]])
    ```
    """

    hints = (
        "Which `dim` disappears if each row becomes one number?",
        "`x.mean(dim=1)` has shape `[rows]`, and that is taken for a row of numbers. With "
        "`keepdim=True` it has shape `[rows, 1]` and fits beside the rows.",
        "The same two words, `dim=1` and `keepdim=True`, belong in `std`.",
    )
    usual_mistakes = {
        "columns": (
            _over_columns,
            "You standardise the columns. `dim=0` makes the rows disappear; you want one mean for "
            "each row, so name the dimension of the columns: `dim=1`.",
        ),
        "everything at once": (
            _over_everything,
            "You took one mean and one deviation of all numbers together. Give both a `dim`, so "
            "that each row has its own.",
        ),
        "without keepdim": (
            _without_keepdim,
            "`x.mean(dim=1)` has shape `[rows]` and is subtracted along the wrong direction, or "
            "does not fit at all. `keepdim=True` keeps a size of 1 in its place.",
        ),
        "only centred": (
            _only_the_mean,
            "The means are 0 now. The rows still have different spreads: divide each by its `std`.",
        ),
        "variance": (
            _divides_by_variance,
            "You divide by the variance, which is the square of the standard deviation. Use `std`.",
        ),
        "not centred": (
            _divides_first_then_centres,
            "The spread is 1 now, and the means are not 0: subtract the mean of each row first.",
        ),
        "from 0 to 1": (
            _squeezed_into_0_to_1,
            "You stretched each row from 0 to 1. That is another scaling: subtract the mean, "
            "divide by the standard deviation.",
        ),
        "brackets missing": (
            lambda x: x - x.mean(dim=1, keepdim=True) / x.std(dim=1, keepdim=True),
            "Only the mean is divided: `/` comes before `-`. Put brackets around the difference.",
        ),
        "length 1": (
            lambda x: (
                (x - x.mean(dim=1, keepdim=True))
                / (x - x.mean(dim=1, keepdim=True)).norm(dim=1, keepdim=True)
            ),
            "You divide by the norm, so each row has the length 1. Its standard deviation should "
            "be 1: divide by `std`.",
        ),
        "divided by n": (
            lambda x: (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True, correction=0),
            "This is the standard deviation that NumPy computes, with `n` as divisor. `std` as it "
            "comes divides by `n - 1`.",
        ),
        "the old mean": (
            lambda x: x / x.std(dim=1, keepdim=True) - x.mean(dim=1, keepdim=True),
            "You scale first and subtract the mean that the row had before. Subtract the mean "
            "first, then divide.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([[1.0, 2.0, 3.0], [10.0, 30.0, 50.0]]), label="two sensors")
        yield case(_rows(draw, 3, 5), label="any three rows")
        yield case(_rows(draw, 4, 4), label="as many rows as columns")
        yield case(_rows(draw, 1, 6), label="a single row (size 1)")
        yield case(_rows(draw, 5, 3).T, label="columns of a table (non-contiguous)")
        # in equal steps, so that float16 is exact
        start, step = draw.integer(1, 9), draw.integer(2, 5)
        small = [start + step * i for i in draw.distinct(3, 0, 2)]
        start, step = draw.integer(10, 30), draw.integer(6, 10)
        large = [start + step * i for i in draw.distinct(3, 0, 2)]
        yield case(tk.tensor([small, large]).half(), label="half the memory (float16)")
        yield case(_rows(draw, 2, 4).double(), label="float64")
        yield case(tk.zeros(0, 3), label="no rows (empty)")


def _rows(draw: Draw, rows: int, columns: int) -> tk.Tensor:
    """Multiples of 0.25 in rows: row 0 is negative, and each next row is drawn 5 higher."""
    return tk.tensor(
        [
            [5.0 * row - 17 + number / 4 for number in draw.distinct(columns, 0, 40)]
            for row in range(1, rows + 1)
        ]
    )
