"""The exercise count-cost: the operations and the elements that a call of NumPy costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def cost(
    name: str,
    shapes: list[tuple[int, ...]],
    shape: tuple[int, ...],
) -> tuple[int, int]:
    """What a call costs: operations on numbers, and elements read and written."""
    read = sum(int(np.prod(shape)) for shape in shapes)
    written = int(np.prod(shape))
    operations = written
    if name == "matmul":
        operations = 2 * written * shapes[0][-1]
    if name in ("sum", "max"):
        operations = int(np.prod(shapes[0]))
    return operations, read + written


Shapes = list[tuple[int, ...]]


def _n(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _matmul_by_elements(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (_n(shape) if name == "matmul" else operations), moved


def _no_additions(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (operations // 2 if name == "matmul" else operations), moved


def _one_addition_less(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (operations - _n(shape) if name == "matmul" else operations), moved


def _wrong_length(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (2 * _n(shape) * shapes[0][0] if name == "matmul" else operations), moved


def _results_of_a_sum(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (_n(shape) if name in ("sum", "max") else operations), moved


def _max_forgotten(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (_n(shape) if name == "max" else operations), moved


def _length_of_the_second(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (2 * _n(shape) * shapes[1][-1] if name == "matmul" else operations), moved


def _only_read(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return operations, moved - _n(shape)


def _only_written(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    return cost(name, shapes, shape)[0], _n(shape)


def _in_bytes(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return operations, 4 * moved


def _first_argument(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    return cost(name, shapes, shape)[0], _n(shapes[0]) + _n(shape)


@exercise("count-cost", answer=cost, points=3, difficulty=3, minutes=8)
class CountCost(Exercise):
    """What a call costs

    The device "counting" asks a function of yours about every call of NumPy's. Write it.

    **Input:** `name`, the name of NumPy's function; `shapes`, a list of the shapes of the arrays
    it was given; `shape`, that of its result.

    **Output:** two whole numbers; `shapes` stays as it is.

    - The operations on numbers. `"matmul"` of shapes `(n, k)` and `(k, m)` takes `k`
      multiplications and `k` additions for every element of the result. `"sum"` and `"max"` take
      one for every element of their argument. All others take one for every element of the result.
    - The elements moved: those of all arguments, which are read, and those of the result, which are
      written.

    ```python
    cost("add", [(2, 3), (3,)], (2, 3))              # (6, 15)
    cost("matmul", [(2, 3), (3, 5)], (2, 5))         # (60, 31)
    cost("sum", [(4, 5)], (4,))                      # (20, 24)
    ```

    `int(np.prod(shape))` is the number of elements of a shape. The shape `()`, without dimensions,
    is that of a single number, which is one element.
    """

    hints = (
        "The elements that are read: a sum over `shapes`. Those that are written: of `shape`.",
        "Begin with what holds of most: one operation for each element of the result. Then come "
        "two exceptions.",
        "In a product the length that is summed over is the last size of the first argument: "
        "`shapes[0][-1]`.",
    )
    usual_mistakes = {
        "a product by elements": (
            _matmul_by_elements,
            "Each element of a matrix product is a sum of `k` products, not one operation.",
        ),
        "no additions": (
            _no_additions,
            "You count the multiplications of the product. The `k` additions come on top: twice as "
            "many.",
        ),
        "one addition less": (
            _one_addition_less,
            "You count `k - 1` additions for an element of the product. Here `k` are counted: the "
            "sum begins with 0.",
        ),
        "the wrong length": (
            _wrong_length,
            "In a product of (n, k) and (k, m) the sums are as long as the last size of the first "
            "matrix: `shapes[0][-1]`.",
        ),
        "results of a sum": (
            _results_of_a_sum,
            "A sum adds every element of its argument, however few results there are.",
        ),
        "max is forgotten": (
            _max_forgotten,
            '`"max"` looks at every element of its argument, as `"sum"` does: one operation for '
            "each of these.",
        ),
        "the length of the second": (
            _length_of_the_second,
            "In a product of (n, k) and (k, m) the sums are `k` long: the last size of the first "
            "matrix, `shapes[0][-1]`, or the first size of the second.",
        ),
        "only read": (_only_read, "The result is written to memory, too: add its elements."),
        "only written": (_only_written, "The arguments are read from memory: add their elements."),
        "in bytes": (
            _in_bytes,
            "You count bytes. Elements are asked for; how large they are is another question.",
        ),
        "the first argument": (
            _first_argument,
            "You count the elements of the first argument. All of them are read.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        n, k, m = draw.distinct(3, 4, 40)
        yield case("add", [(n, k), (n, k)], (n, k), label="element by element")
        yield case("multiply", [(n, 1), (k,)], (n, k), label="broadcast")
        yield case("exp", [(n, m)], (n, m), label="one argument")
        yield case("einsum", [(n,), (m,)], (n, m), label="products of a column and a row")
        yield case("maximum", [(n,), (n, n)], (n, n), label="the larger ones of a row and a square")
        taken = [(max(n, m), k), (min(n, m),)]
        yield case("take", taken, (min(n, m), k), label="some rows of a matrix")
        yield case("where", [(n,), (n,), ()], (n,), label="three arguments, one a number (0-d)")
        yield case("matmul", [(n, k), (k, m)], (n, m), label="a product of matrices")
        yield case("matmul", [(1, n), (n, k)], (1, k), label="a row by a matrix (size 1)")
        yield case("sum", [(n, m)], (n,), label="sums of rows")
        yield case("sum", [(n, k)], (), label="the sum of all (0-d)")
        yield case("max", [(k, m)], (1, m), label="the largest of each column")
        yield case("max", [(n, k)], (), label="the largest of all (0-d)")
        yield case("subtract", [(0, m), (m,)], (0, m), label="no rows (empty)")
