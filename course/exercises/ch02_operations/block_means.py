"""The exercise block-means: the means of blocks."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def block_means(x: tk.Tensor, size: int) -> tk.Tensor:
    """The means of consecutive blocks of `size` elements of the vector `x`."""
    return x.reshape(-1, size).mean(dim=1)


def _blocks_as_columns(x: tk.Tensor, size: int) -> tk.Tensor:
    return x.reshape(size, -1).mean(dim=1)


def _mean_of_the_others(x: tk.Tensor, size: int) -> tk.Tensor:
    return x.reshape(-1, size).mean(dim=0)


def _block_sums(x: tk.Tensor, size: int) -> tk.Tensor:
    return x.reshape(-1, size).sum(dim=1)


def _every_nth(x: tk.Tensor, size: int) -> tk.Tensor:
    return x[::size]


def _means(x: tk.Tensor, size: int, n: int) -> tk.Tensor:
    return tk.tensor([x[i : i + size].mean().item() for i in range(n)], dtype=x.dtype)


@exercise("block-means", answer=block_means, points=0, difficulty=2, minutes=5, further=True)
class BlockMeans(Exercise):
    """The means of blocks

    A sensor reports a number every minute; you want one number an hour.

    **Input:** `x`, a vector of any float dtype, and `size`, a number from 1 on that divides the
    length of `x`.

    **Output:** a vector of the same dtype with the mean of the first `size` elements, of the next
    `size`, and so on. `x` itself stays as it is.

    ```python
    block_means(tk.tensor([1.0, 3.0, 10.0, 20.0, 0.0, 2.0]), 2)
    # tensor([ 2., 15.,  1.])
    ```

    No loop is needed.
    """

    hints = (
        "If the vector were a table with a block in each row, one reduction would do it.",
        "`x.reshape(-1, size)` is that table; its rows are the blocks.",
    )
    usual_mistakes = {
        "size rows": (
            _blocks_as_columns,
            "You made `size` rows. A row should hold one block, that is `size` columns: "
            "`reshape(-1, size)`.",
        ),
        "the other dimension": (
            _mean_of_the_others,
            "The table is right, and you take the mean of each column. Each row should become "
            "one number: `dim=1`.",
        ),
        "sums": (_block_sums, "These are the sums of the blocks. Take their means."),
        "one of each": (
            _every_nth,
            "You picked the first element of each block. All of its elements count: take the mean.",
        ),
        "at every place": (
            lambda x, size: _means(x, size, len(x) - size + 1),
            "A block begins at every element, as in a moving average. The next block begins "
            "`size` elements later.",
        ),
        "a block at every element": (
            lambda x, size: _means(x, size, len(x) // size),
            "The number of means is right, and each block begins one element after the one before. "
            "The next block begins `size` elements later.",
        ),
        "every so many": (
            lambda x, size: x.reshape(size, -1).mean(dim=0),
            "Each of your means is over elements that lie apart. A block holds neighbours: "
            "`reshape(-1, size)` puts each into a row.",
        ),
        "one mean": (
            lambda x, size: x.mean(),
            "This is one mean of everything. Each block should become one number.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([1.0, 3.0, 10.0, 20.0, 0.0, 2.0]), 2, label="blocks of two")
        yield case(tk.tensor(draw.distinct(12, -60, 20)) / 4, 4, label="any twelve")
        n = draw.integer(3, 5)
        block = tk.tensor([draw.integer(40, 60), *draw.integers(n - 1, 1, 30)]).float()
        yield case(block, n, label="one block")
        n = draw.integer(3, 5)
        yield case(tk.tensor(draw.distinct(n, 1, 60)).float(), 1, label="blocks of one (size 1)")
        rising = tk.tensor(sorted(draw.distinct(12, 1, 60))).float()
        yield case(rising[::2], 3, label="every second element (non-contiguous)")
        large = tk.tensor([2.0**26, -(2.0**26)] * 2, dtype=tk.float64)  # float32 loses the rest
        yield case(tk.tensor(draw.distinct(4, 1, 60)) / 4 + large, 2, label="float64")
        halves = tk.tensor(draw.distinct(4, 1, 60)).half()
        yield case(halves, 2, label="half the memory (float16)")
        yield case(tk.zeros(0), 2, label="no elements (empty)")
