"""The exercises of chapter 01, Tensors, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together. Data in words: a *reference* is written as a learner might
write it, with nothing but `tk`, `np` and Python; the private functions are usual mistakes, and
what makes their inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import numpy as np

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import Rule
from course.notebook.varied import Varied


@exercise("what-shape", points=1, difficulty=1, minutes=4)
class WhatShape(Prediction):
    """Predict the shape

    `tk.zeros(4, 3)` is a table of 4 rows and 3 columns. Write down the shape that you expect
    before you run anything: as a list such as `[2, 3]`, and `[]` for a single number.

    One is done for you:

    ```python
    tk.zeros(4, 3)[:2]      # [2, 3]: rows 0 and 1, all 3 columns
    ```

    A wrong prediction costs nothing. The check names the rule and leaves the experiment to you.
    """

    name = "shapes"
    ask = "Replace each ... by the shape that you expect, as a list such as [2, 3]."
    questions = {
        "tk.tensor(7)": "No brackets in the call, no dimension in the tensor.",
        "tk.tensor([7, 8])[0]": "A whole number as index picks one entry: its dimension goes.",
        "tk.zeros(4, 3)[1]": "The shape lists rows first. A whole number picks one row.",
        "tk.zeros(4, 3)[1:2]": "A slice keeps its dimension, even if one entry is left in it.",
        "tk.zeros(4, 3)[2:2]": "From 2 up to, not including, 2: a slice may keep nothing.",
        "tk.zeros(4, 3)[:, 1]": "`:` keeps all rows; the whole number removes the columns.",
        "tk.zeros(5, 4)[:3, ::3]": (
            "`:3` stops before 3. `::3` starts at 0 and takes every third entry that exists."
        ),
        "tk.zeros(10)[::3]": "Count the positions that are taken: 0, 3, 6, ... below 10.",
        "tk.zeros(8, 3, 32, 32)[0, 0]": "Two whole numbers remove the first two dimensions.",
    }
    varied = (
        Varied(("3", "4"), 2, 12, ("tk.zeros(4, 3)",)),
        Varied(("32",), 16, 64, ("tk.zeros(8, 3, 32, 32)",)),
    )
    hints = (
        "A whole number as index removes its dimension; a slice keeps it.",
        "For a slice, write down the positions that it takes: `::3` of 5 entries takes 0 and 3.",
    )
    usual_mistakes = {
        "an index keeps its dimension": (
            {"tk.zeros(4, 3)[1]": (1, 3), "tk.zeros(4, 3)[:, 1]": (4, 1)},
            "You left a 1 where a whole number was the index. A whole number removes its "
            "dimension; only a slice such as `1:2` keeps it. Go through the indices once more.",
        ),
        "a number has one dimension": (
            {"tk.tensor(7)": (1,), "tk.tensor([7, 8])[0]": (1,)},
            "You gave a single number one dimension. `[7]` is a list of length 1, `7` is no list: "
            "count the brackets that are left, and write `[]` where there are none.",
        ),
        "columns before rows": (
            {"tk.zeros(4, 3)[1]": (4,), "tk.zeros(4, 3)[:, 1]": (3,)},
            "You took the columns for the first dimension. A shape is read from the outer "
            "brackets inwards: rows, then columns. Try `tk.zeros(4, 3)[1]` again with that.",
        ),
        "the stop is included": (
            {
                "tk.zeros(4, 3)[1:2]": (2, 3),
                "tk.zeros(4, 3)[2:2]": (1, 3),
                "tk.zeros(5, 4)[:3, ::3]": (4, 2),
            },
            "You counted the stop of a slice. As in Python's lists a slice ends just before its "
            "stop, so `1:2` takes only position 1. Count those slices again.",
        ),
        "steps rounded down": (
            {"tk.zeros(5, 4)[:3, ::3]": (3, 1), "tk.zeros(10)[::3]": (3,)},
            "You divided the size by the step and rounded down. Position 0 is always taken: list "
            "the positions (0, 3, ...) and count them.",
        ),
        "a bare number": (
            {"tk.zeros(4, 3)[1]": 3, "tk.zeros(4, 3)[:, 1]": 4, "tk.zeros(10)[::3]": 4},
            "The numbers are right, and a shape is a list even with one entry: write `[3]`, "
            "not `3`.",
        ),
        "in quotes": (
            {"tk.tensor(7)": "[]", "tk.tensor([7, 8])[0]": "[]", "tk.zeros(4, 3)[1]": "[3]"},
            "Your shapes stand in quotes, and so they are text. Write a list, without quotes.",
        ),
    }

    def observe(self, value: tk.Tensor) -> list[int]:
        return list(value.shape)


def evenly_spaced(start: float, end: float, n: int) -> tk.Tensor:
    """`n` numbers at equal distances from `start` to `end`, both included."""
    step = (end - start) / max(n - 1, 1)
    return start + step * tk.arange(n)


@no_type_check
def _spaced_program(start: float, end: float, n: int) -> tk.Tensor:
    step = ...  # from each number to the next; for n = 1 there is no next one
    return ...  # n numbers that begin at start and lie this far apart


def _without_the_end(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) / max(n, 1)
    return start + step * tk.arange(n)


def _one_too_many(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) / max(n, 1)
    return start + step * tk.arange(n + 1)


def _divides_by_no_gap(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) / (n - 1)
    return start + step * tk.arange(n)


def _floor_of_the_width(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) // (n - 1)
    return start + step * tk.arange(n)


def _forgets_the_start(start: float, end: float, n: int) -> tk.Tensor:
    step = (end - start) / max(n - 1, 1)
    return step * tk.arange(n)


def _with_numpy(start: float, end: float, n: int) -> tk.Tensor:
    return tk.from_numpy(np.linspace(start, end, n))


@exercise(
    "linspace-by-hand",
    answer=evenly_spaced,
    stub=_spaced_program,
    kind="complete",
    points=0,
    difficulty=2,
    minutes=6,
    further=True,
    without=("linspace",),
)
class LinspaceByHand(Exercise):
    """linspace by hand

    **Input:** two numbers `start` and `end`, and `n`, how many numbers are wanted (0 or more).

    **Output:** a float32 tensor of shape `[n]`: `n` numbers at equal distances, the first one
    `start`, the last one `end`. For `n` equal to 1 it holds `start` alone.

    ```python
    evenly_spaced(2, 5, 4)
    # tensor([2., 3., 4., 5.])
    ```

    `tk.linspace` does this, and switches itself off while your answer runs. NumPy's `linspace` is
    no answer either. `tk.arange` and some arithmetic are enough. Fill the gaps.
    """

    rules = (
        Rule(
            "by hand",
            "Compute the numbers: `tk.arange(n)`, times the width of a gap, plus `start`.",
            refuses=("linspace", ".linspace"),
        ),
    )
    hints = (
        "Four numbers in a row have three gaps between them. How wide is one gap?",
        "`tk.arange(n)` counts 0, 1, 2, ... Multiply it by the width of a gap, then shift it so "
        "that it begins at `start`.",
        "The width is `(end - start) / (n - 1)`. For `n` equal to 1 that divides by 0, and the "
        "width does not matter there: `max(n - 1, 1)` is one way out.",
    )
    usual_mistakes = {
        "the end is missing": (
            _without_the_end,
            "Your last number falls short of `end`. You divided by the number of points; divide "
            "by the number of gaps between them, which is one less.",
        ),
        "one number too many": (
            _one_too_many,
            "You return `n + 1` numbers: `n` gaps, and so one point too many. Begin with "
            "`tk.arange(n)` and ask how many gaps `n` points have.",
        ),
        "a single point": (
            _divides_by_no_gap,
            "With one point there is no gap, and `n - 1` is 0: the division fails. Treat `n` "
            "equal to 1 apart, or never divide by less than 1.",
        ),
        "rounds the width down": (
            _floor_of_the_width,
            "The width of a gap is rounded down to a whole number, which is what `//` does. A gap "
            "can be 0.25 wide: divide with `/`.",
        ),
        "the start is missing": (
            _forgets_the_start,
            "The distances are right, and every result begins at 0. Add `start` at the end.",
        ),
        "float64 from NumPy": (
            _with_numpy,
            "The numbers are right, in float64; asked for is float32. NumPy computes in float64, "
            "and `from_numpy` keeps what it is given. The product of `tk.arange` and a Python "
            "float is float32.",
        ),
        "begins a step late": (
            lambda start, end, n: start + (end - start) / max(n - 1, 1) * tk.arange(1, n + 1),
            "Your numbers begin one step after `start`. `tk.arange(n)` begins at 0, so that the "
            "first one is `start` itself.",
        ),
        "the width backwards": (
            lambda start, end, n: start + (start - end) / max(n - 1, 1) * tk.arange(n),
            "You go away from `end`: the width is `end - start`, divided by the number of gaps.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(0, 1, draw.integer(4, 12), label="from 0 to 1")
        yield case(draw.integer(1, 9), draw.integer(-9, -1), draw.integer(4, 6), label="downwards")
        start = draw.number(-9, -1)
        end = round(start + draw.integer(10, 18) + 0.5, 2)  # so that no width is whole
        yield case(start, end, draw.integer(6, 9), label="any two ends")
        both = draw.number(1, 9)
        yield case(both, both, draw.integer(3, 6), label="both ends the same")
        start, end = draw.distinct(2, 10, 29)
        yield case(start, end, 2, label="the two ends alone")
        start, end = draw.distinct(2, 1, 9)
        yield case(start, end, 1, label="one number (size 1)")
        start = draw.number(-9, -1)
        yield case(start, draw.integer(1, 9), 1, label="one number, below zero (size 1)")
        yield case(1, 4, 0, label="no number (empty)", weight=0.25)


def checkerboard(rows: int, columns: int) -> tk.Tensor:
    """Zeros and ones in turn, as int64, with a 0 in the corner at the top left."""
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2, 1::2] = 1
    board[1::2, ::2] = 1
    return board


def _begins_with_one(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2, ::2] = 1
    board[1::2, 1::2] = 1
    return board


def _only_even_rows(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2, 1::2] = 1
    return board


def _stripes(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[:, 1::2] = 1
    return board


def _float_board(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns)
    board[::2, 1::2] = 1
    board[1::2, ::2] = 1
    return board


def _counts_on(rows: int, columns: int) -> tk.Tensor:
    return (tk.arange(rows * columns) % 2).reshape(rows, columns)


def _two_brackets(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[::2][1::2] = 1
    board[1::2][::2] = 1
    return board


def _stops_before_the_edge(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    for row in range(rows - 1):
        for column in range(columns - 1):
            board[row, column] = (row + column) % 2
    return board


def _whole_rows_and_columns(rows: int, columns: int) -> tk.Tensor:
    board = tk.zeros(rows, columns, dtype=tk.int64)
    board[1::2] = 1
    board[:, 1::2] = 1
    return board


def _columns_by_rows(rows: int, columns: int) -> tk.Tensor:
    return checkerboard(columns, rows)


@exercise("checkerboard", answer=checkerboard, points=6, difficulty=2, minutes=8)
class Checkerboard(Exercise):
    """A checkerboard

    **Input:** `rows` and `columns`, two whole numbers, 0 or larger.

    **Output:** a tensor of shape `[rows, columns]` and dtype `tk.int64`. Zeros and ones take turns
    along every row and every column; the corner at the top left is 0.

    ```python
    checkerboard(3, 4)
    # tensor([[0, 1, 0, 1],
    #         [1, 0, 1, 0],
    #         [0, 1, 0, 1]])
    ```

    Slices with a step do it in a few lines, without a loop.

    The words after `:` and `->` in the first line name the type of each value; leave them as
    they are.
    """

    hints = (
        "Begin with a board of zeros. Which rows look alike? There are only two kinds of them.",
        "In rows 0, 2, 4, ... the ones stand in columns 1, 3, 5, ... One assignment to "
        "`board[::2, ...]` writes all of these at once.",
        "`board[::2, 1::2] = 1` fills the even rows. The odd rows need one line more, in which "
        "rows and columns change places.",
    )
    usual_mistakes = {
        "begins with 1": (
            _begins_with_one,
            "The pattern is there, with zeros and ones exchanged: the corner at the top left "
            "should be 0. Shift the ones by one column.",
        ),
        "only even rows": (
            _only_even_rows,
            "Rows 0, 2, 4, ... are done, and rows 1, 3, 5, ... are still empty. Add a second "
            "assignment for those, with the columns shifted by one.",
        ),
        "stripes": (
            _stripes,
            "These are stripes: every row is the same. Fill the even and the odd rows in two "
            "assignments, with different columns.",
        ),
        "floats": (
            _float_board,
            "The pattern is right, in float32, which is what `tk.zeros` makes unless you ask. "
            "Asked for is `dtype=tk.int64`.",
        ),
        "counts on": (
            _counts_on,
            "You count on from row to row. With an even number of columns every row then begins "
            "with the same number: every second row must be shifted by one.",
        ),
        "whole rows": (
            _whole_rows_and_columns,
            "Ones fill whole rows or whole columns, and some stand side by side. In rows 1, 3, 5, "
            "... fill only columns 0, 2, 4, ...: name both in one index.",
        ),
        "two pairs of brackets": (
            _two_brackets,
            "`board[::2][1::2]` takes rows twice: every second row, and of these every second row "
            "again. Put both slices into one pair of brackets: `board[::2, 1::2]`.",
        ),
        "stops before the edge": (
            _stops_before_the_edge,
            "The last row and the last column are still empty. A `range` leaves out its end: "
            "`range(rows)` reaches the last row. Slices do it without a loop.",
        ),
        "columns first": (
            _columns_by_rows,
            "The board lies on its side: rows and columns are exchanged. The first number of a "
            "shape counts the rows.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        side = 2 * draw.integer(2, 5)
        yield case(side, side, label="a square board")
        few, more = 2 * draw.integer(1, 2) + 1, 2 * draw.integer(3, 5) + 1
        yield case(few, more, label="odd sides")
        yield case(few, 2 * draw.integer(2, 5), label="an even number of columns")
        yield case(2 * draw.integer(1, 3), 2 * draw.integer(4, 6) + 1, label="any board")
        yield case(1, draw.integer(4, 11), label="a single row (size 1)")
        yield case(draw.integer(3, 9), 1, label="a single column (size 1)")
        yield case(1, 1, label="a single square (size 1)")
        yield case(0, 3, label="no rows (empty)", weight=0.25)
        yield case(2, 0, label="no columns (empty)", weight=0.25)


@exercise("which-dtype", points=1, difficulty=2, minutes=5)
class WhichDtype(Prediction):
    """Predict the dtype

    Write down the dtype that you expect before you run anything: as a string such as `"int32"`.

    One is done for you:

    ```python
    tk.tensor([True, False])      # "bool": a list of Python's True and False
    ```
    """

    name = "dtypes"
    ask = 'Replace each ... by the dtype that you expect, as a string such as "int32".'
    questions = {
        "tk.tensor([1, 2, 3])": "A list of Python ints gives the default dtype for whole numbers.",
        "tk.tensor([1, 2.5])": "One float among the numbers makes all of them the default float.",
        "tk.arange(4)": "`arange` counts with the kind of number that it is given.",
        "tk.full((2,), 7)": "`full` looks at the number that it writes, and 7 has no point.",
        "tk.from_numpy(np.array([0.5, 1.5]))": "`from_numpy` keeps the dtype of the array.",
        "tk.from_numpy(np.array([1, 2], dtype=np.uint8))": (
            "`from_numpy` keeps the dtype of the array."
        ),
        "tk.tensor([1, 2, 3]) / 2": "`/` between whole numbers gives the default float.",
        "tk.tensor([1, 2, 3]) * 0.5": (
            "A Python float is a higher kind than whole numbers; it brings the default float."
        ),
        "tk.ones(2, dtype=tk.float16) * 2.0": (
            "A Python float beside a float tensor is the same kind, so the tensor decides."
        ),
        "tk.ones(2) + tk.tensor(1.0, dtype=tk.float64)": (
            "A 0-d tensor beside a tensor with dimensions is as polite as a Python number."
        ),
        "tk.ones(2, dtype=tk.uint8) + 1": (
            "A Python int beside a tensor of whole numbers is the same kind: the tensor decides."
        ),
    }
    hints = (
        "Two defaults cover most of it: whole numbers become int64, floats become float32.",
        "`from_numpy` never converts. A Python number changes the dtype of a tensor only if it is "
        "of a higher kind: bool, then whole number, then float.",
    )
    usual_mistakes = {
        "floats have 64 bits": (
            {
                "tk.tensor([1, 2.5])": "float64",
                "tk.tensor([1, 2, 3]) / 2": "float64",
                "tk.tensor([1, 2, 3]) * 0.5": "float64",
            },
            "You expect floats with 64 bits, as NumPy and Python make them. A tensor's default "
            "float has half as many; only data from NumPy arrives with 64. Go through the floats "
            "again.",
        ),
        "from_numpy converts": (
            {
                "tk.from_numpy(np.array([0.5, 1.5]))": "float32",
                "tk.from_numpy(np.array([1, 2], dtype=np.uint8))": "int64",
            },
            "You let `from_numpy` convert to the defaults. It shares the memory of the array and "
            "therefore has to keep its dtype: ask which dtype the array has.",
        ),
        "whole numbers have 32 bits": (
            {"tk.tensor([1, 2, 3])": "int32", "tk.arange(4)": "int32"},
            "You expect whole numbers with 32 bits, as in C. The default for whole numbers is "
            "twice as wide. Change those two.",
        ),
        "factories make floats": (
            {"tk.arange(4)": "float32", "tk.full((2,), 7)": "float32"},
            "`zeros` and `ones` make floats, but `arange` and `full` look at the numbers that you "
            "give them. Yours have no decimal point: predict those two again.",
        ),
        "whole numbers stay whole": (
            {"tk.tensor([1, 2, 3]) / 2": "int64", "tk.tensor([1, 2, 3]) * 0.5": "int64"},
            "You kept whole numbers, but 1 / 2 is 0.5 and needs a float. `/` always gives a "
            "float, and so does a Python float as partner. Which float is the default?",
        ),
        "the Python number decides": (
            {
                "tk.ones(2, dtype=tk.float16) * 2.0": "float32",
                "tk.ones(2) + tk.tensor(1.0, dtype=tk.float64)": "float64",
                "tk.ones(2, dtype=tk.uint8) + 1": "int64",
            },
            "You let a single number choose. Beside a tensor with dimensions of the same kind it "
            "has no say: the tensor's dtype stays. Predict the last three again.",
        ),
        "Python's types": (
            {"tk.tensor([1, 2, 3])": "int", "tk.tensor([1, 2.5])": "float", "tk.arange(4)": "int"},
            "`int` and `float` are Python's types. A dtype also says how many bits: "
            '"int64", "float32".',
        ),
    }

    def observe(self, value: tk.Tensor) -> str:
        return str(value.dtype).removeprefix("torch.")

    def run(self, answer: Any, *args: Any) -> Any:
        said = super().run(answer, *args)
        if said is int or said is float:
            return said.__name__  # without quotes the same mistake
        # `tk.float32` and "torch.float32" say the same as "float32"
        if isinstance(said, str | type(tk.float32)):
            return str(said).removeprefix("torch.").removeprefix("tk.")
        return said


def to_unit_range(image: tk.Tensor) -> tk.Tensor:
    """The brightness of each pixel as float32: 0 is black, 1 is white."""
    numbers = image.float()
    total = numbers[:, :, 0] + numbers[:, :, 1] + numbers[:, :, 2]
    return total / (3 * 255)


def _starts_again_from_zero(image: tk.Tensor) -> tk.Tensor:
    return (image[:, :, 0] + image[:, :, 1] + image[:, :, 2]) / 765


def _floor_division(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image).floor()


def _by_256(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image) * 255 / 256


def _without_a_scale(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image) * 255


def _sums_of_three(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image) * 3


def _only_the_first_number(image: tk.Tensor) -> tk.Tensor:
    return image[:, :, 0] / 255


def _still_three_numbers(image: tk.Tensor) -> tk.Tensor:
    return image.float() / 255


def _through_numpy(image: tk.Tensor) -> tk.Tensor:
    return to_unit_range(image).double()


def _by_the_brightest(image: tk.Tensor) -> tk.Tensor:
    total = to_unit_range(image)
    return total / total.max()


@exercise("pixels", answer=to_unit_range, points=6, difficulty=2, minutes=8)
class Pixels(Exercise):
    """From a colour photo to a grey one

    A photo arrives as whole numbers from 0 to 255, three for each pixel: red, green and blue. A
    network wants one float from 0 to 1 for each pixel.

    **Input:** `image`, a uint8 tensor of shape `[height, width, 3]`.

    **Output:** a float32 tensor of shape `[height, width]`: for each pixel the mean of its three
    numbers, divided by 255, so that black becomes `0.0` and white `1.0`. `image` itself stays as it
    is.

    ```python
    to_unit_range(tk.tensor([[[0, 51, 102], [255, 255, 255]]], dtype=tk.uint8))
    # tensor([[0.2000, 1.0000]])
    ```

    `image[:, :, 0]` holds the red numbers, in the shape `[height, width]`.
    """

    hints = (
        "Slices give the three colours, each in the shape of the result. What happens if you add "
        "them as they are? Look at the last lines of *Kinds of numbers*.",
        "In uint8, 200 + 100 is 44. Cast before you add: `image.float()`. Then divide the sum by a "
        "number that makes 3 · 255 to 1.",
    )
    usual_mistakes = {
        "starts again from 0": (
            _starts_again_from_zero,
            "You add in uint8, where 255 is followed by 0. Cast first, then add: `image.float()`.",
        ),
        "floor division": (
            _floor_division,
            "Everything below 1 has become 0, as `//` and a cast to whole numbers make it. Divide "
            "floats with `/`, and return what that gives.",
        ),
        "divides by 256": (
            _by_256,
            "White is 0.9961. uint8 has 256 values, and the largest of them is 255: that is the "
            "number to become 1.",
        ),
        "no scale": (
            _without_a_scale,
            "The means are right, and they still run up to 255. A cast never rescales: divide.",
        ),
        "three times too bright": (
            _sums_of_three,
            "White is 3. A mean is the sum divided by how many there are.",
        ),
        "one colour": (
            _only_the_first_number,
            "Your brightness is that of red alone. Green and blue count as much.",
        ),
        "three numbers a pixel": (
            _still_three_numbers,
            "Each pixel still has three numbers. Their mean is asked for: one number a pixel.",
        ),
        "float64 from NumPy": (
            _through_numpy,
            "The numbers are right and their dtype is float64, in which NumPy computes, and which "
            "`.double()` asks for. `.float()` gives float32.",
        ),
        "by the brightest": (
            _by_the_brightest,
            "You divide by the brightest pixel of this photo, so a dark photo becomes a bright "
            "one. The same number must mean the same in every photo: divide by 255.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(_image([[[0, 51, 102], [255, 255, 255]]]), label="two pixels")
        yield case(_image(_photo(draw, draw.integer(2, 3), 2)), label="any photo")
        yield case(_image(_photo(draw, 3, 3)), label="a square photo")
        yield case(_image(_photo(draw, 2, draw.integer(4, 5))), label="a wide photo")
        wide = _image(_photo(draw, 4, 2))
        yield case(wide[::2], label="every second row of a photo (non-contiguous)")
        yield case(_image(_photo(draw, 1, 1)), label="a single pixel (size 1)")
        yield case(_image([[[255] * 3] * 2] * 3), label="white")
        yield case(tk.zeros(0, 4, 3, dtype=tk.uint8), label="a photo without rows (empty)")


def _image(pixels: list[list[list[int]]]) -> tk.Tensor:
    return tk.tensor(pixels, dtype=tk.uint8)


def _photo(draw: Draw, height: int, width: int) -> list[list[list[int]]]:
    """Bright pixels of any colour but grey, whose sums do not fit into uint8."""
    return [
        [
            [draw.integer(30, 90), draw.integer(100, 180), draw.integer(190, 254)]
            for _ in range(width)
        ]
        for _ in range(height)
    ]


def total_of(x: tk.Tensor) -> tk.Tensor:
    """The sum of all elements of the vector `x`, as a 0-d float32 tensor."""
    total = tk.tensor(0.0)
    for value in x:
        total += value
    return total


def _narrow_total(x: tk.Tensor) -> tk.Tensor:
    total = tk.tensor(0.0, dtype=tk.float16)
    for value in x:
        total += value
    return total.float()


def _answers_in_float16(x: tk.Tensor) -> tk.Tensor:
    total = tk.tensor(0.0)
    for value in x:
        total += value
    return total.to(tk.float16)


def _sums_in_float16(x: tk.Tensor) -> tk.Tensor:
    return x.sum().float()


def _starts_with_an_int(x: tk.Tensor) -> tk.Tensor:
    total = tk.tensor(0)
    for value in x:
        total += value
    return total


def _total_of_shape_one(x: tk.Tensor) -> tk.Tensor:
    total = tk.zeros(1)
    for value in x:
        total += value
    return total


def _python_number(x: tk.Tensor) -> float:
    return float(sum(x.tolist()))


@exercise(
    "half-precision",
    answer=total_of,
    stub=_narrow_total,
    points=0,
    difficulty=3,
    minutes=6,
    further=True,
)
class HalfPrecision(Exercise):
    """A sum that stops growing

    The code below adds up a float16 vector. For small vectors it is right. For some others it
    answers `inf`, or another number than the sum. Repair it.

    **Input:** `x`, a float16 tensor with one dimension, possibly empty.

    **Output:** the sum of its elements as a 0-d float32 tensor.

    ```python
    total_of(tk.tensor([2048.0, 1.0, 1.0], dtype=tk.float16))
    # tensor(2050.)
    # the code below answers tensor(2048.)
    ```
    """

    hints = (
        "Print `total` after every step. In which line does it go wrong, in the additions or in "
        "the last line?",
        "float16 has no number between 2048 and 2050, and none above 65504. Which tensor in this "
        "code has to hold such numbers?",
        "Only `total` has to be wider, from the first line on. A cast at the end comes too late.",
    )
    usual_mistakes = {
        "casts at the end": (
            _narrow_total,
            "The sum still grows in float16 and is cast at the end, when the digits are lost "
            "already: `inf` stays `inf`. Make `total` a float32 tensor before the loop.",
        ),
        "answers in float16": (
            _answers_in_float16,
            "You add up well and then cast the result back to float16, which cannot hold it. "
            "Return the float32 total.",
        ),
        "sums in float16": (
            _sums_in_float16,
            "The sum is rounded to float16 before it becomes float32: `x.sum()` answers in the "
            "dtype of `x`. Cast first, then add up.",
        ),
        "starts with a whole number": (
            _starts_with_an_int,
            "`tk.tensor(0)` is int64, and `+=` writes into it: a float does not fit there. Begin "
            "with `tk.tensor(0.0)`.",
        ),
        "shape [1]": (
            _total_of_shape_one,
            "The number is right, in a tensor of shape `[1]`. `tk.zeros(1)` has one dimension of "
            "size 1; a 0-d tensor comes from `tk.tensor(0.0)`.",
        ),
        "a Python number": (
            _python_number,
            "The number is right, as a Python float. Keep the total in a tensor, or wrap it at "
            "the end: `tk.tensor(...)`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(_half(draw.integers(5, 1, 9)), label="small numbers")
        a, b, c = draw.integers(3, 1, 20)
        yield case(_half([a / 4, -b / 4, c]), label="fractions and signs")
        large = 2048 + 4 * draw.integer(0, 400)  # to which float16 cannot add 1
        yield case(_half([large, 1, 1, 1]), label="small steps on a large number")
        yield case(_half([60000, draw.integer(200, 900) * 32]), label="a sum above 65504")
        large = 32 * draw.integer(1100, 1900)
        yield case(_half([large, large, -large]), label="above 65504 on the way")
        five = _half(draw.integers(5, 1, 9))
        yield case(five[::2], label="every second element (non-contiguous)")
        yield case(_half([draw.integer(1, 39) / 4]), label="a single element (size 1)")
        yield case(_half([]), label="no elements (empty)")


def _half(numbers: list[Any]) -> tk.Tensor:
    return tk.tensor(numbers, dtype=tk.float16)


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a new tensor of this shape, counted in elements."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _in_bytes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(4 * stride for stride in strides_of(shape))


def _from_the_left(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides)


def _multiplies_by_zero(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _with_its_own_size(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for size in reversed(shape):
        step *= max(size, 1)
        strides.append(step)
    return tuple(reversed(strides))


def _only_the_next_size(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(size, 1) for size in (*shape[1:], 1)) if shape else ()


@exercise(
    "strides-of",
    answer=strides_of,
    points=0,
    difficulty=3,
    minutes=8,
    further=True,
    without=("Tensor.stride",),
)
class StridesOf(Exercise):
    """Strides from a shape

    **Input:** `shape`, a tuple of whole numbers, 0 or larger; `()` is the shape of a 0-d tensor.

    **Output:** the strides that a new tensor of this shape has, as many as it has dimensions:
    for each, how many elements further in memory its next entry lies.

    ```python
    strides_of((3, 4))
    # (4, 1): the next row is 4 elements away, the next column 1
    ```

    An empty dimension (size 0) counts as 1, as in PyTorch: `strides_of((2, 0, 3))` is `(3, 3, 1)`.
    `Tensor.stride` switches itself off while your answer runs.
    """

    hints = (
        "Neighbours along the last dimension lie side by side: its stride is 1. What about the "
        "dimension before it?",
        "The stride of a dimension is the product of all sizes to its right. Walk the shape from "
        "the right and multiply as you go.",
        "Note the product first and multiply by the size afterwards; `max(size, 1)` takes care of "
        "the empty dimension. Turn the list around at the end.",
    )
    usual_mistakes = {
        "counts bytes": (
            _in_bytes,
            "These strides are 4 times too large: bytes of float32. Strides count elements, so "
            "the last one is 1.",
        ),
        "begins at the left": (
            _from_the_left,
            "You multiply from the left, so the first dimension has stride 1. A new tensor stores "
            "row after row: the last dimension has stride 1. Walk from the right.",
        ),
        "an empty dimension": (
            _multiplies_by_zero,
            "Once you multiply by a size of 0, everything to its left becomes 0. Count an empty "
            "dimension as 1.",
        ),
        "includes its own size": (
            _with_its_own_size,
            "Each of your strides contains the size of its own dimension. A step to the next row "
            "jumps over the entries of one row: multiply only the sizes to the right.",
        ),
        "only the next size": (
            _only_the_next_size,
            "You took the one size to the right. That works for two dimensions; with three, a "
            "step jumps over all entries of all dimensions to the right. Take their product.",
        ),
        "two dimensions": (
            lambda shape: (shape[1], 1),
            "This is right for a matrix. There may be one dimension, three, or none: go through "
            "all of them in a loop.",
            r"shape\[1\]",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case((3, 4), label="a matrix")
        yield case((draw.integer(2, 9),), label="a vector")
        yield case(tuple(draw.integers(3, 2, 6)), label="three dimensions")
        yield case(tuple(draw.integers(4, 2, 6)), label="any four dimensions")
        rows, columns = draw.integers(2, 2, 6)
        yield case((rows, 1, columns), label="a dimension in the middle (size 1)")
        yield case((2, 0, 3), label="a dimension of size 0 (empty)")
        yield case((draw.integer(2, 9), 0), label="no columns (empty)")
        yield case((), label="a single number (0-d)")


def private_copy(array: np.ndarray) -> tk.Tensor:
    """Every second row and column of `array`, as float32, with memory of its own."""
    return tk.from_numpy(array)[::2, ::2].float().clone()


def _sometimes_shared(array: np.ndarray) -> tk.Tensor:
    return tk.from_numpy(array)[::2, ::2].float()


def _contiguous(array: np.ndarray) -> tk.Tensor:
    return tk.from_numpy(array)[::2, ::2].float().contiguous()


def _always_shared(array: np.ndarray) -> tk.Tensor:
    return tk.from_numpy(array)[::2, ::2]


def _its_own_dtype(array: np.ndarray) -> tk.Tensor:
    return tk.tensor(array)[::2, ::2]


def _everything(array: np.ndarray) -> tk.Tensor:
    return tk.tensor(array, dtype=tk.float32)


def _rows_taken_twice(array: np.ndarray) -> tk.Tensor:
    return tk.tensor(array, dtype=tk.float32)[::2][::2]


def _still_an_array(array: np.ndarray) -> np.ndarray:
    return array[::2, ::2].astype(np.float32)


@exercise(
    "private-copy", answer=private_copy, stub=_sometimes_shared, points=6, difficulty=3, minutes=8
)
class PrivateCopy(Exercise):
    """The small picture that changes

    A camera writes every new frame into the same NumPy array. A program keeps a small picture of
    each frame: every second row and column, as float32. With the code below that works for a camera
    that delivers float64. With another camera yesterday's small picture changes when today's frame
    arrives. Find out with which one, and repair the code for all of them.

    **Input:** `array`, a NumPy array of shape `[rows, columns]`, of float32, float64, int64 or
    uint8.

    **Output:** a float32 tensor with every second row and column, from row 0 and column 0 on. A
    later write to the array must not show in the tensor, and a write to the tensor must not show in
    the array.

    ```python
    frame = np.array([[1.0, 2.0, 3.0]], dtype=np.float32)
    kept = private_copy(frame)
    frame[0, 0] = 99.0
    kept
    # tensor([[1., 3.]]); the code below gives tensor([[99.,  3.]])
    ```

    The check makes just this experiment, with zeros as the later frame.
    """

    hints = (
        "The code has three steps. Which of them never copies, and which copies only sometimes?",
        "A cast to the dtype that a tensor has already returns the same tensor. Which method "
        "copies in any case?",
    )
    usual_mistakes = {
        "sometimes shared": (
            _sometimes_shared,
            "Where the array is float32 already, the tensor still shares its memory: `.float()` "
            "copies only if the dtype changes. Ask for a copy in any case.",
        ),
        "contiguous": (
            _contiguous,
            "`.contiguous()` copies only what is not contiguous already, and a single element "
            "always is. `.clone()` copies in any case.",
            "contiguous",
        ),
        "always shared": (
            _always_shared,
            "The tensor has the dtype of the array, and its memory: slices are views. Make it "
            "float32, and ask for a copy.",
        ),
        "the dtype of the array": (
            _its_own_dtype,
            "Your tensor has memory of its own, and the dtype that the array had. Make it float32.",
        ),
        "the whole frame": (
            _everything,
            "This is the whole frame. Keep every second row and column: `[::2, ::2]`.",
        ),
        "rows twice": (
            _rows_taken_twice,
            "`[::2][::2]` takes rows twice. Put both slices into one pair of brackets: "
            "`[::2, ::2]`.",
        ),
        "still an array": (
            _still_an_array,
            "The numbers are right, in a NumPy array. Make a tensor of them.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def frame(rows: int, columns: int) -> np.ndarray:
            return np.array(draw.distinct(rows * columns, 1, 250)).reshape(rows, columns)

        yield case(np.array([[1.0, 2.0, 3.0]], dtype=np.float32), label="the row of the example")
        yield case(frame(3, 5).astype(np.float32), label="any frame of float32")
        yield case(frame(4, 3) / 4, label="any frame of float64")
        yield case(frame(3, 4), label="whole numbers, int64")
        yield case(frame(5, 2).astype(np.uint8), label="whole numbers, uint8")
        yield case(
            frame(4, 6).astype(np.float32)[:, ::2], label="a part of another (non-contiguous)"
        )
        # one element is left, of which every view is contiguous
        yield case(frame(2, 2).astype(np.float32), label="two rows, two columns")
        yield case(frame(1, 1).astype(np.float32), label="one row, one column (size 1)")
        yield case(np.zeros((0, 3), dtype=np.float32), label="no rows (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The small picture, before and after a write to the array."""
        (array,) = args
        kept = answer(array)
        before, seen = array.copy(), Seen({"at first": _frozen(kept)})
        array[...] = 0
        seen["after the array is filled with zeros"] = _frozen(kept)
        array[...] = before  # the check looks whether the answer itself changed the array
        return seen


def _frozen(value: Any) -> Any:
    """A tensor or an array as it is now, with memory of its own."""
    if isinstance(value, tk.Tensor):
        return value.clone()
    return value.copy() if isinstance(value, np.ndarray) else value
