"""The prediction how-many-transactions: the memory accesses of a warp."""

from __future__ import annotations

from typing import Any

import tensorkit as tk
from course.notebook.exercise import Prediction, exercise
from tensorkit import cuda


@cuda.kernel
def neighbours(x):
    i = cuda.grid(1)
    value = x[0, i]


@cuda.kernel
def backwards(x):
    i = cuda.grid(1)
    value = x[0, 31 - i]


@cuda.kernel
def shifted(x):
    i = cuda.grid(1)
    value = x[0, i + 1]


@cuda.kernel
def every_second(x):
    i = cuda.grid(1)
    value = x[0, 2 * i]


@cuda.kernel
def one_for_all(x):
    value = x[0, 0]


@cuda.kernel
def down(x):
    i = cuda.grid(1)
    value = x[i, 0]


def transactions(kernel: Any) -> int:
    """The transactions in which one warp reads of a matrix of 32 rows of 64 float32."""
    with cuda.simulate():
        return int(kernel[1, 32](tk.zeros(32, 64, device="cuda")).counts.transactions)


@exercise("how-many-transactions", points=2, difficulty=3, minutes=4)
class HowManyTransactions(Prediction):
    """Predict the transactions

    The kernels of the cell above read a matrix `x` of 32 rows with 64 float32 each, so a row takes
    256 bytes. One warp of 32 threads reads. How many pieces of 128 bytes does the memory send?

    One is done for you: if thread `i` read `x[0, 32 + i]`, the answer would be `1`. These are 32
    neighbours, 128 bytes, and they begin where a piece begins.
    """

    name = "pieces"
    ask = "Replace each ... by a number of transactions."
    questions = {
        "transactions(neighbours)": "32 neighbours of 4 bytes fill one piece of 128 bytes.",
        "transactions(backwards)": (
            "Which thread reads which of them does not matter: together they touch one piece."
        ),
        "transactions(shifted)": (
            "The elements 1 to 32: the first 31 lie in one piece, the last one in the next."
        ),
        "transactions(every_second)": (
            "The elements 0, 2, ..., 62 spread over 256 bytes; half of what is sent is not used."
        ),
        "transactions(one_for_all)": "One element lies in one piece, however many threads want it.",
        "transactions(down)": (
            "Elements of one column lie 256 bytes apart, each in a piece of its own."
        ),
    }
    hints = (
        "Number the bytes: element `[i, j]` begins at byte `256 * i + 4 * j`. A piece begins at "
        "each multiple of 128.",
        "Only the set of pieces counts, not the order of the threads, nor how many want the same.",
    )
    usual_mistakes = {
        "one for each thread": (
            {
                "transactions(neighbours)": 32,
                "transactions(backwards)": 32,
                "transactions(one_for_all)": 32,
            },
            "A warp asks together: what lies in one piece of 128 bytes comes in one transaction.",
        ),
        "one for each warp": (
            {
                "transactions(shifted)": 1,
                "transactions(every_second)": 1,
                "transactions(down)": 1,
            },
            "A transaction is a piece of 128 bytes. Where the elements of a warp lie in several "
            "pieces, there are several.",
        ),
        "order matters": (
            {"transactions(backwards)": 32, "transactions(shifted)": 32},
            "Neither the order nor a shift makes every thread wait alone: count the pieces that "
            "the elements lie in.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        name = expression.partition("(")[2].rstrip(")")
        return transactions(globals()[name])
