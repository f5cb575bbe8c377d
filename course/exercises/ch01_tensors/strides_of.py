"""The exercise strides-of: strides from a shape."""

from __future__ import annotations

from collections.abc import Iterator

from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.rules import Rule


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


# least: what an empty dimension counts as; 0 for who multiplies by its size as it is


def _from_the_left(shape: tuple[int, ...], least: int = 1) -> tuple[int, ...]:
    strides = []
    step = 1
    for size in shape:
        strides.append(step)
        step *= max(size, least)
    return tuple(strides)


def _multiplies_by_zero(shape: tuple[int, ...]) -> tuple[int, ...]:
    return _from_the_left(shape[::-1], least=0)[::-1]


def _with_its_own_size(shape: tuple[int, ...], least: int = 1) -> tuple[int, ...]:
    strides = []
    step = 1
    for size in reversed(shape):
        step *= max(size, least)
        strides.append(step)
    return tuple(reversed(strides))


def _only_the_next_size(shape: tuple[int, ...], least: int = 1) -> tuple[int, ...]:
    return tuple(max(size, least) for size in (*shape[1:], 1)) if shape else ()


LEFT = (
    "You multiply from the left, so the first dimension has stride 1. A new tensor stores "
    "row after row: the last dimension has stride 1. Walk from the right."
)
OWN = (
    "Each of your strides contains the size of its own dimension. A step to the next row "
    "jumps over the entries of one row: multiply only the sizes to the right."
)
NEXT = (
    "You took the one size to the right. That works for two dimensions; with three, a "
    "step jumps over all entries of all dimensions to the right. Take their product."
)
REVERSED = (
    "These are strides in reverse order: the first of your numbers belongs to the last dimension. "
    "Turn the list around at the end, and count an empty dimension as 1."
)


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
    Strides are computed from the sizes: the shape may have more elements than fit into memory.
    `Tensor.stride` switches itself off while your answer runs.
    """

    rules = (
        Rule(
            "Strides are computed from the sizes",
            "`tensorkit.layout` computes the strides for you. Multiply the sizes yourself.",
            refuses=("layout", ".layout", "tensorkit.layout"),
        ),
    )

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
        "begins at the left": (_from_the_left, LEFT),
        "begins at the left, with zeros": (lambda shape: _from_the_left(shape, 0), LEFT),
        "in reverse order, with zeros": (lambda shape: _from_the_left(shape[::-1], 0), REVERSED),
        "an empty dimension": (
            _multiplies_by_zero,
            "Once you multiply by a size of 0, everything to its left becomes 0. Count an empty "
            "dimension as 1.",
        ),
        "includes its own size": (_with_its_own_size, OWN),
        "includes its own size, with zeros": (lambda shape: _with_its_own_size(shape, 0), OWN),
        "only the next size": (_only_the_next_size, NEXT),
        "only the next size, with zeros": (lambda shape: _only_the_next_size(shape, 0), NEXT),
        "two dimensions": (
            lambda shape: (shape[1], 1),
            "This is right for a matrix. There may be one dimension, three, or none: go through "
            "all of them in a loop.",
            r"shape\[1\]",
        ),
        "the first is left out": (
            lambda shape: (1, *strides_of(shape)[1:]) if shape else (),
            "All strides but the first are right. A `range` leaves out its end: to come down to 0 "
            "it ends at -1.",
            r"range\(",
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
        yield case(draw.long_shape(), label="more elements than fit into memory")
        yield case((), label="a single number (0-d)")
