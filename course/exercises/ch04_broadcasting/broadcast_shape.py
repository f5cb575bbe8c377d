"""The exercise broadcast-shape: the shape that two shapes agree on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.rules import Rule

Ints = tuple[int, ...]


def broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a result whose operands have the shapes `a` and `b`."""
    n = max(len(a), len(b))
    a = (1,) * (n - len(a)) + tuple(a)
    b = (1,) * (n - len(b)) + tuple(b)
    sizes = []
    for x, y in zip(a, b, strict=True):
        if x != y and x != 1 and y != 1:
            raise ValueError(f"sizes {x} and {y} do not fit together")
        sizes.append(y if x == 1 else x)
    return tuple(sizes)


def _from_the_left(a: Ints, b: Ints) -> Ints:
    sizes = []
    for x, y in zip_longest(a, b, fillvalue=1):
        if x != y and x != 1 and y != 1:
            raise ValueError("these sizes do not fit together")
        sizes.append(y if x == 1 else x)
    return tuple(sizes)


def _no_stretching(a: Ints, b: Ints) -> Ints:
    sizes = []
    for x, y in zip_longest(reversed(a), reversed(b)):
        if x is not None and y is not None and x != y:
            raise ValueError("these sizes differ")
        sizes.append(y if x is None else x)
    return tuple(reversed(sizes))


def _always_the_larger(a: Ints, b: Ints) -> Ints:
    pairs = list(zip_longest(reversed(a), reversed(b), fillvalue=1))
    return tuple(max(x, y) for x, y in reversed(pairs))


def _only_the_common_part(a: Ints, b: Ints) -> Ints:
    n = min(len(a), len(b))
    return broadcast_shape(a[len(a) - n :], b[len(b) - n :])


def _larger_if_it_fits(a: Ints, b: Ints) -> Ints:
    broadcast_shape(a, b)
    return _always_the_larger(a, b)


def _backwards(a: Ints, b: Ints) -> Ints:
    return broadcast_shape(a, b)[::-1]


@exercise(
    "broadcast-shape",
    answer=broadcast_shape,
    points=5,
    difficulty=3,
    minutes=10,
    without=("broadcast_to", "zeros", "ones", "empty", "full", "rand", "randn"),
)
class BroadcastShape(Exercise):
    """The shape that two shapes agree on

    **Input:** two shapes `a` and `b`, tuples of whole numbers.

    **Output:** the shape of `x + y` for an `x` of shape `a` and a `y` of shape `b`. If
    the shapes do not fit together, raise `ValueError`, whatever the library itself raises.

    ```python
    broadcast_shape((2, 3), (3,))
    # (2, 3)
    broadcast_shape((4, 1), (1, 5))
    # (4, 5)
    ```

    The rule that a size of 1 stretches holds beside a size of 0 too: 1 and 0 give 0. `()` is the
    shape of a 0-d tensor. Your function runs inside tensorkit below, and there each sum asks it: so
    compute with the sizes alone. `tk.zeros` and its like switch themselves off while it runs.
    """

    rules = (
        Rule(
            "compute with the sizes alone",
            "This asks NumPy for the shape. Align the sizes at the right, and choose one of each "
            "pair.",
            refuses=(".broadcast_shapes", "broadcast_shapes", ".broadcast", ".broadcast_arrays"),
        ),
    )
    hints = (
        "Which end of the two shapes is aligned? Turn both around and walk from there.",
        "Put ones in front of the shorter shape until both are equally long: `(1,) * 2 + (3,)` is "
        "`(1, 1, 3)`. Then `zip(a, b)` gives the pairs.",
        "For each pair: equal, or one of them is 1. The result takes the other one; else raise "
        "`ValueError`.",
    )
    usual_mistakes = {
        "aligned at the left": (
            _from_the_left,
            "You align the shapes at the left. They are aligned at the right: the last "
            "dimensions belong together.",
        ),
        "nothing stretches": (
            _no_stretching,
            "You ask for equal sizes. A size of 1 fits beside every size.",
        ),
        "always the larger": (
            _always_the_larger,
            "You take the larger size without asking whether the two fit. 2 and 3 do not: raise "
            "`ValueError`. And 1 beside 0 gives 0.",
        ),
        "1 beside 0": (
            _larger_if_it_fits,
            "The larger size is right except for an empty dimension: 1 stretches to 0. Take the "
            "one that is not 1.",
        ),
        "the longer rest is lost": (
            _only_the_common_part,
            "The dimensions that only one shape has are missing. They count as 1 in the other "
            "shape and stay in the result.",
        ),
        "backwards": (
            _backwards,
            "The sizes are right and stand in the wrong order: turn them around at the end.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case((2, 3), (3,), label="a matrix and a row")
        a, b = draw.distinct(2, 2, 9)
        yield case((a, b), (a, 1), label="a matrix and a column (size 1)")
        yield case((4, 1), (1, 5), label="a column and a row")
        a, b, c, d = draw.distinct(4, 2, 9)
        yield case((a, 1, b), (c, 1), label="three dimensions and two")
        a, b, c, d = draw.distinct(4, 2, 9)
        yield case((a, 1, b, 1), (c, 1, d), label="four dimensions and three")
        a, b, c, d = draw.distinct(4, 2, 9)
        yield case((), (a, b), label="a single number and a matrix (0-d)")
        yield case((c, d), (c,), label="a vector as long as a column", raises=True)
        a, b, c = draw.distinct(3, 2, 9)
        yield case((a, b), (c, b), label="two heights that differ", raises=True)
        a, b, c = draw.long_shape()
        yield case((a, 1, c), (b, 1), label="more elements than fit into memory")
        n = draw.integer(2, 9)
        yield case((0, n), (1, n), label="no rows and one row (empty)")
        yield case((1,), (0,), label="one number and none (empty)")
        a, b = draw.distinct(2, 2, 9)
        yield case((0, b), (a, b), label="no rows and some rows (empty)", raises=True)

    def advice(self, *args: Any) -> str | None:
        a, b = args
        width = max(len(str(a)), len(str(b)))
        return f"Write them below one another, aligned at the right: {a!s:>{width}} and {b!s}."
