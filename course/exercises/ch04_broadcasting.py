"""The exercises of chapter 04, Broadcasting and indexing, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.varied import Varied

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
    without=("broadcast_to",),
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
    shape of a 0-d tensor. Your function runs inside tensorkit below.
    """

    hints = (
        "Which end of the two shapes is lined up? Turn both around and walk from there.",
        "Put ones in front of the shorter shape until both are equally long: `(1,) * 2 + (3,)` is "
        "`(1, 1, 3)`. Then `zip(a, b)` gives the pairs.",
        "For each pair: equal, or one of them is 1. The result takes the other one; else raise "
        "`ValueError`.",
    )
    usual_mistakes = {
        "aligned at the left": (
            _from_the_left,
            "You line the shapes up at the left. They are lined up at the right: the last "
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
        n = draw.integer(2, 9)
        yield case((0, n), (1, n), label="no rows and one row (empty)")
        yield case((1,), (0,), label="one number and none (empty)")
        a, b = draw.distinct(2, 2, 9)
        yield case((0, b), (a, b), label="no rows and some rows (empty)", raises=True)

    def advice(self, *args: Any) -> str | None:
        a, b = args
        width = max(len(str(a)), len(str(b)))
        return f"Write them below one another, lined up at the right: {a!s:>{width}} and {b!s}."


def multiplication_table(n: int) -> tk.Tensor:
    """The products of the numbers from 1 to `n` with each other."""
    numbers = tk.arange(1, n + 1)
    return numbers.unsqueeze(1) * numbers


def _from_zero(n: int) -> tk.Tensor:
    numbers = tk.arange(n)
    return numbers.unsqueeze(1) * numbers


def _without_the_last(n: int) -> tk.Tensor:
    numbers = tk.arange(1, max(n, 1))
    return numbers.unsqueeze(1) * numbers


def _only_the_squares(n: int) -> tk.Tensor:
    numbers = tk.arange(1, n + 1)
    return numbers * numbers


def _sums(n: int) -> tk.Tensor:
    numbers = tk.arange(1, n + 1)
    return numbers.unsqueeze(1) + numbers


def _floats(n: int) -> tk.Tensor:
    numbers = tk.linspace(1, n, n)
    return numbers.unsqueeze(1) * numbers


def _one_number(n: int) -> tk.Tensor:
    numbers = tk.arange(1, n + 1)
    return numbers @ numbers


@exercise("multiplication-table", answer=multiplication_table, points=4, difficulty=2, minutes=6)
class MultiplicationTable(Exercise):
    """The multiplication table

    **Input:** `n`, a whole number, 0 or larger.

    **Output:** an int64 tensor of shape `[n, n]`: the table of the numbers from 1 to `n`. The
    entry in row `i` and column `j`, both counted from 0, is `(i + 1) * (j + 1)`.

    ```python
    multiplication_table(3)
    # tensor([[1, 2, 3],
    #         [2, 4, 6],
    #         [3, 6, 9]])
    ```

    No loop is needed: a column times a row is a table.
    """

    hints = (
        "Which shapes must the two factors have so that the result has shape `[n, n]`?",
        "`tk.arange(1, n + 1)` is the row. `.unsqueeze(1)` makes a column of it.",
    )
    usual_mistakes = {
        "from 0": (
            _from_zero,
            "Your numbers begin at 0, so the first row and column are 0. The table begins at 1: "
            "`tk.arange(1, n + 1)`.",
        ),
        "one too few": (
            _without_the_last,
            "The last row and column are missing. `arange` stops before its end: to include `n`, "
            "the end is `n + 1`.",
        ),
        "only the squares": (
            _only_the_squares,
            "A row times the same row multiplies element by element. Make a column of one of them.",
        ),
        "sums": (_sums, "You added row and column. Multiply them: `*` in place of `+`."),
        "floats": (
            _floats,
            "The numbers are right, as floats. `arange` with whole numbers gives int64.",
        ),
        "one number": (
            _one_number,
            "The products are added up to one number, as `@` of two vectors does it. Use `*` "
            "between a column and a row.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(3, label="three")
        yield case(draw.integer(4, 8), label="four to eight")
        yield case(draw.integer(9, 12), label="nine to twelve")
        yield case(draw.integer(13, 19), label="thirteen and more")
        yield case(1, label="one (size 1)")
        yield case(0, label="none (empty)")


def nearest(points: tk.Tensor, centres: tk.Tensor) -> tk.Tensor:
    """For each point the number of the centre that is nearest."""
    differences = points.unsqueeze(1) - centres
    squared = (differences * differences).sum(dim=2)
    return squared.argmin(dim=1)


def _nearest_program(points: tk.Tensor, centres: tk.Tensor) -> Any:
    differences = ...  # [points, centres, 2]: each point minus each centre
    squared = ...  # [points, centres]: the squared distances
    return ...  # [points]: for each point the number of the nearest centre


def _for_each_centre(points: tk.Tensor, centres: tk.Tensor) -> tk.Tensor:
    squared = (points.unsqueeze(1) - centres).square().sum(dim=2)
    return squared.argmin(dim=0)


def _farthest(points: tk.Tensor, centres: tk.Tensor) -> tk.Tensor:
    squared = (points.unsqueeze(1) - centres).square().sum(dim=2)
    return squared.argmax(dim=1)


def _not_squared(points: tk.Tensor, centres: tk.Tensor) -> tk.Tensor:
    return (points.unsqueeze(1) - centres).sum(dim=2).argmin(dim=1)


def _the_distances(points: tk.Tensor, centres: tk.Tensor) -> tk.Tensor:
    squared = (points.unsqueeze(1) - centres).square().sum(dim=2)
    return squared.amin(dim=1)


def _pair_by_pair(points: tk.Tensor, centres: tk.Tensor) -> tk.Tensor:
    return (points - centres).square().argmin(dim=1)


def _distances_and_places(points: tk.Tensor, centres: tk.Tensor) -> Any:
    return (points.unsqueeze(1) - centres).square().sum(dim=2).min(dim=1)


@exercise(
    "nearest-centre",
    answer=nearest,
    stub=_nearest_program,
    kind="complete",
    points=5,
    difficulty=4,
    minutes=12,
)
class NearestCentre(Exercise):
    """The nearest centre

    Many programs ask which of a few centres is nearest to each of many points. Broadcasting
    computes all differences at once, without a loop. Fill the three gaps.

    **Input:** `points` of shape `[n, 2]` and `centres` of shape `[k, 2]`, both of the same dtype.

    **Output:** an int64 vector of length `n`: for each point the number of the nearest centre.

    ```python
    points = tk.tensor([[0.0, 0.0], [9.0, 9.0], [1.0, 0.0]])
    nearest(points, tk.tensor([[10.0, 10.0], [0.0, 1.0]]))
    # tensor([1, 0, 1])
    ```

    The squared distance is the sum of the squared differences; its root is not needed to compare.
    """

    hints = (
        "`[n, 2]` and `[k, 2]` do not fit. Which shape must the points have so that `[?, ?, 2]` "
        "minus `[k, 2]` gives `[n, k, 2]`?",
        "`points.unsqueeze(1)` has shape `[n, 1, 2]`. The 1 stretches to the `k` centres.",
        "Sum over the last dimension, then ask along the centres, dimension 1, where the smallest "
        "stands: `argmin`.",
    )
    usual_mistakes = {
        "for each centre": (
            _for_each_centre,
            "You ask for each centre which point is nearest. The centres are dimension 1 of the "
            "table: that is the dimension which must go.",
        ),
        "the farthest": (_farthest, "You found the farthest centre: `argmin`, not `argmax`."),
        "not squared": (
            _not_squared,
            "You add the differences without squaring them, so negative ones pull the sum down. "
            "Square first.",
        ),
        "distances and places": (
            _distances_and_places,
            "`min(dim=1)` answers twice: the smallest distances and where they stand. You want the "
            "places alone: `argmin(dim=1)`.",
        ),
        "the distance": (
            _the_distances,
            "You gave the smallest squared distance. `argmin` says at which centre it stands.",
        ),
        "pair by pair": (
            _pair_by_pair,
            "You subtract point 0 and centre 0, point 1 and centre 1. Every point must meet every "
            "centre: give the points a dimension of size 1 for the centres.",
        ),
        "the centre itself": (
            lambda points, centres: centres[
                (points.unsqueeze(1) - centres).square().sum(dim=2).argmin(dim=1)
            ],
            "These are the nearest centres themselves. Asked for are their numbers.",
        ),
        "one number": (
            lambda points, centres: (points.unsqueeze(1) - centres).square().sum(dim=2).argmin(),
            "`argmin()` without `dim` gives one place in the whole table. Name the dimension of "
            "the centres.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        centres = tk.tensor([[10.0, 10.0], [0.0, 1.0]])
        yield case(
            tk.tensor([[0.0, 0.0], [9.0, 9.0], [1.0, 0.0]]), centres, label="three points, two"
        )
        four = tk.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
        yield case(_around(draw, four, [2, 0, 3, 1, 1]), four, label="five points, four centres")
        yield case(_around(draw, four, [3, 2, 0, 1]), four, label="as many points as centres")
        yield case(_around(draw, four, [3, 1]) - 25, four - 25, label="negative coordinates")
        # the first centre is nearer, the second has the smaller sum of absolute differences
        x, y, far = draw.integer(-9, 9), draw.integer(-9, 9), draw.integer(3, 9)
        near = tk.tensor([[x + 4 * far, y - 4 * far], [x - 6 * far, y + far]]).float()
        yield case(tk.tensor([[x, y]]).float(), near, label="near along the diagonal")
        # the second centre is nearer, the first has the smaller largest difference
        axis = tk.tensor([[x + 4 * far, y - 4 * far], [x - 5 * far, y + far]]).float()
        yield case(tk.tensor([[x, y]]).float(), axis, label="near along an axis")
        # float16 has no number between these, so that its first centre would win
        corner = 8 * draw.integer(640, 652) + tk.tensor([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
        yield case(corner[2:] - 0.125, corner, label="centres far from 0")
        yield case(_around(draw, four, [1]), four, label="a single point (size 1)")
        halves = tk.tensor([draw.integers(2, low, low + 6) for low in (0, 13, 0)]).half() / 2
        yield case(halves, centres.half(), label="half the memory (float16)")
        whole = tk.tensor([draw.integers(2, low, low + 3) for low in (0, 6, 0)])
        yield case(whole, centres.long(), label="whole numbers (int)")
        yield case(tk.zeros(0, 2), four, label="no points (empty)")
        points = _around(draw, four, [3, 0, 2, 0])
        yield case(points[::2], four, label="every second point (non-contiguous)")


def _around(draw: Draw, centres: tk.Tensor, owners: list[int]) -> tk.Tensor:
    """A point near each of these centres."""
    rows = []
    for owner in owners:
        x, y = centres[owner].tolist()
        dx, dy = draw.floats(2, 3, 9)
        rows.append([x + dx, y - dy])
    return tk.tensor(rows)


def top_scores(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    """The scores above the limit, and all scores with the others set to 0."""
    passed = scores > limit
    return scores[passed], tk.where(passed, scores, 0.0)


def _limit_included(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = scores >= limit
    return scores[passed], tk.where(passed, scores, 0.0)


def _ones_instead(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = scores > limit
    return scores[passed], tk.where(passed, 1.0, 0.0)


def _where_exchanged(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = scores > limit
    return scores[passed], tk.where(passed, 0.0, scores)


def _the_mask(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = scores > limit
    return passed, tk.where(passed, scores, 0.0)


def _the_same_twice(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = tk.where(scores > limit, scores, 0.0)
    return passed, passed


@exercise("top-scores", answer=top_scores, points=0, difficulty=2, minutes=5, further=True)
class TopScores(Exercise):
    """Pick, or keep the places

    **Input:** `scores`, a float vector, and `limit`, a number.

    **Output:** a pair: a vector of the scores above `limit`, in their order; and a vector as long
    as `scores`, in which every score that is not above `limit` is 0.

    ```python
    top_scores(tk.tensor([85.0, 67.0, 95.0]), 80)
    # (tensor([85., 95.]), tensor([85.,  0., 95.]))
    ```
    """

    hints = (
        "A mask as index picks. `tk.where(condition, a, b)` keeps the places.",
        "`passed = scores > limit` serves both: `scores[passed]` and `tk.where(passed, scores, "
        "0.0)`.",
    )
    usual_mistakes = {
        "the limit included": (
            _limit_included,
            "A score equal to the limit is not above it: `>`, not `>=`.",
        ),
        "ones": (
            _ones_instead,
            "Where the score passes, the score itself should stand, not 1.",
        ),
        "where exchanged": (
            _where_exchanged,
            "Your second result keeps the scores that did not pass. `where` takes its second "
            "argument where the condition is True.",
        ),
        "the mask itself": (
            _the_mask,
            "Your first result is the mask. Use it as an index: `scores[passed]`.",
        ),
        "the same twice": (
            _the_same_twice,
            "Your first result still has the places of the others. A mask as index leaves only "
            "what passes.",
        ),
        "the limit itself": (
            lambda scores, limit: (scores[scores > limit], scores.clamp(min=limit)),
            "`clamp` sets the others to the limit. They should become 0: `tk.where(scores > "
            "limit, scores, 0.0)`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([85.0, 67.0, 95.0]), 80, label="three scores")
        yield case(*_scores(draw, 1, 1, -1, -1, 1), label="five scores")
        low, high = draw.integers(3, 10, 49), draw.integers(3, 51, 90)
        mixed = [float(number) for pair in zip(low, high, strict=True) for number in pair]
        yield case(tk.tensor(mixed), 50, label="any scores")
        yield case(*_scores(draw, 0, 1, -1, 0), label="scores at the limit")
        yield case(*_scores(draw, -1, 0, 0, -1, 1), label="at the limit and above")
        mixed = [2.0, -float(draw.integer(5, 9)), 0.0, -float(draw.integer(1, 3))]
        yield case(tk.tensor(mixed), -4, label="a limit below 0")
        five, limit = _scores(draw, 1, -1, -1, 1, 1)
        yield case(five[::2], limit, label="every second (non-contiguous)")
        two, limit = _scores(draw, 1, -1)
        yield case(two.half(), limit, label="half the memory (float16)")
        yield case(*_scores(draw, 1), label="a single score (size 1)")
        yield case(tk.tensor([]), 1, label="no scores (empty)")


def _scores(draw: Draw, *sides: int) -> tuple[tk.Tensor, int]:
    """Scores above the limit (1), below it (-1) or equal to it (0), and the limit."""
    limit = draw.integer(40, 60)
    scores = [limit + side * draw.integer(1, 30) for side in sides]
    return tk.tensor(scores).float(), limit


@exercise("which-index", points=2, difficulty=2, minutes=6)
class WhichIndex(Prediction):
    """Predict the shape once more

    Write each shape as a list.

    One is done for you:

    ```python
    tk.zeros(4, 3)[[0, 0, 1]]      # [3, 3]: three rows, one of them twice
    ```
    """

    name = "picked"
    ask = "Replace each ... by the shape that you expect, as a list such as [2, 3]."
    questions = {
        "tk.zeros(4, 1) + tk.zeros(3)": "Line up at the right: [4, 1] and [1, 3].",
        "tk.zeros(5, 1, 4) * tk.zeros(3, 1)": "Line up at the right: [5, 1, 4] and [1, 3, 1].",
        "tk.zeros(4, 3)[[0, 2]]": "A list picks entries of dimension 0, one for each number.",
        "tk.zeros(4, 3)[[0, 2], [1, 1]]": (
            "Two lists are read in pairs: row 0 column 1, row 2 column 1."
        ),
        "tk.zeros(4, 3)[tk.tensor([[0, 1], [2, 3]])]": (
            "Each number of the index is replaced by the row that it picks."
        ),
        "tk.arange(6)[tk.arange(6) > 3]": "A mask leaves as many elements as it has True.",
        "tk.arange(6)[tk.arange(6) > 9]": "A mask without a True leaves nothing, as a vector.",
        "tk.tensor(5) + tk.zeros(0)": "A number fits beside everything, also beside no elements.",
        "tk.zeros(4, 3)[None]": "`None` puts a new dimension of size 1 where it stands.",
        "tk.zeros(5, 4, 3)[..., 0]": "`...` stands for all dimensions that are not named.",
    }
    varied = (
        Varied(("3", "4"), 3, 12, ("tk.zeros(4, ", "tk.zeros(5, 1, 4)", "tk.zeros(5, 4, 3)")),
    )
    hints = (
        "For the first two, write the shapes below one another, lined up at the right.",
        "A list keeps its dimension, as long as the list. Two lists together go through the pairs.",
    )
    usual_mistakes = {
        "lists like slices": (
            {
                "tk.zeros(4, 3)[[0, 2], [1, 1]]": [2, 2],
                "tk.zeros(4, 3)[tk.tensor([[0, 1], [2, 3]])]": [4, 3],
            },
            "You read index lists like slices. Two lists are taken in pairs and give one element "
            "for each pair; a table of numbers gives a table of rows.",
        ),
        "aligned at the left": (
            {
                "tk.zeros(4, 1) + tk.zeros(3)": [4, 1],
                "tk.zeros(5, 1, 4) * tk.zeros(3, 1)": [5, 3, 1],
            },
            "Shapes are lined up at the right. Write them below one another and fill up with 1 at "
            "the left.",
        ),
        "a mask keeps the shape": (
            {
                "tk.arange(6)[tk.arange(6) > 3]": [6],
                "tk.arange(6)[tk.arange(6) > 9]": [6],
                "tk.zeros(4, 3)[[0, 2]]": [4, 3],
            },
            "You left the shape as it was. A mask and a list pick: only what is picked remains.",
        ),
        "an index list removes": (
            {
                "tk.zeros(4, 3)[[0, 2]]": [3],
                "tk.zeros(4, 3)[tk.tensor([[0, 1], [2, 3]])]": [3],
            },
            "A whole number removes its dimension, a list of them does not: it leaves as many "
            "entries as it is long.",
        ),
    }

    def observe(self, value: tk.Tensor) -> list[int]:
        return list(value.shape)


def one_hot(labels: tk.Tensor, n: int) -> tk.Tensor:
    """A row for each label, with a 1 at its place and 0 elsewhere."""
    rows = tk.zeros(len(labels), n, dtype=tk.int64)
    rows[tk.arange(len(labels)), labels] = 1
    return rows


def _every_column(labels: tk.Tensor, n: int) -> tk.Tensor:
    rows = tk.zeros(len(labels), n, dtype=tk.int64)
    rows[:, labels] = 1
    return rows


def _whole_rows(labels: tk.Tensor, n: int) -> tk.Tensor:
    rows = tk.zeros(max(len(labels), n), n, dtype=tk.int64)
    rows[labels] = 1
    return rows[: len(labels)]


def _the_label_itself(labels: tk.Tensor, n: int) -> tk.Tensor:
    rows = tk.zeros(len(labels), n, dtype=tk.int64)
    rows[tk.arange(len(labels)), labels] = labels
    return rows


def _as_booleans(labels: tk.Tensor, n: int) -> tk.Tensor:
    return labels.unsqueeze(1) == tk.arange(n)


def _turned(labels: tk.Tensor, n: int) -> tk.Tensor:
    return one_hot(labels, n).T


def _counted_from_one(labels: tk.Tensor, n: int) -> tk.Tensor:
    return one_hot((labels - 1) % n, n)


@exercise("one-hot", answer=one_hot, points=0, difficulty=3, minutes=7, further=True)
class OneHot(Exercise):
    """One-hot rows

    A classifier's target is often written as a row with a single 1.

    **Input:** `labels`, an int64 vector with numbers from 0 to `n - 1`, and `n`.

    **Output:** an int64 tensor of shape `[len(labels), n]`; row `i` has a 1 in column
    `labels[i]`, and 0 everywhere else.

    ```python
    one_hot(tk.tensor([2, 0]), 3)
    # tensor([[0, 0, 1],
    #         [1, 0, 0]])
    ```
    """

    hints = (
        "Either write into zeros with two index tensors, rows and columns, or compare a column of "
        "labels with a row of numbers.",
        "`rows[tk.arange(len(labels)), labels] = 1` goes through the pairs. A comparison gives "
        "bool and needs `.long()`.",
    )
    usual_mistakes = {
        "every label in every row": (
            _every_column,
            "Each row has a 1 for every label: `rows[:, labels]` takes these columns in every row. "
            "Name the row that belongs to each label: two index tensors are read in pairs.",
        ),
        "whole rows": (
            _whole_rows,
            "One index tensor picks whole rows. You want one element in each row: give the rows "
            "first, then the labels as columns.",
        ),
        "the label itself": (
            _the_label_itself,
            "You wrote the label. A one-hot row holds a 1 at the place of the label.",
        ),
        "True and False": (
            _as_booleans,
            "The places are right, as bool. `.long()` makes 0 and 1 of it.",
        ),
        "turned": (
            _turned,
            "Each label should have a row; yours has a column: rows and columns are exchanged.",
        ),
        "counted from 1": (
            _counted_from_one,
            "Each 1 stands one column too far to the left: labels count from 0, as columns do.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([2, 0]), 3, label="two labels (int)")
        yield case(tk.tensor([*draw.distinct(4, 0, 5), 5]), 6, label="any labels")
        a, b = draw.distinct(2, 1, 5)
        yield case(tk.tensor([a, a, b, a]), 6, label="a label again and again")
        n = draw.integer(6, 9)
        yield case(tk.tensor(draw.distinct(3, 1, n - 2)), n, label="fewer labels than classes")
        six = tk.tensor(draw.distinct(6, 1, 7))
        yield case(six[::2], 8, label="every second (non-contiguous)")
        n = draw.integer(4, 9)
        yield case(tk.tensor([draw.integer(2, n - 1)]), n, label="a single label (size 1)")
        yield case(tk.tensor([], dtype=tk.int64), 4, label="no labels (empty)")


def cleaned(readings: tk.Tensor) -> tk.Tensor:
    """The readings, with the negative ones replaced by the mean of the others."""
    result = readings.clone()
    faulty = result < 0
    result[faulty] = result[~faulty].mean()
    return result


def _write_that_vanishes(readings: tk.Tensor) -> tk.Tensor:
    result = readings.clone()
    faulty = result < 0
    result[faulty][:] = result[~faulty].mean()
    return result


def _into_the_readings(readings: tk.Tensor) -> tk.Tensor:
    faulty = readings < 0
    readings[faulty] = readings[~faulty].mean()
    return readings


def _mean_of_all(readings: tk.Tensor) -> tk.Tensor:
    result = readings.clone()
    result[result < 0] = readings.mean()
    return result


def _zero_instead(readings: tk.Tensor) -> tk.Tensor:
    result = readings.clone()
    result[result < 0] = 0
    return result


def _left_out(readings: tk.Tensor) -> tk.Tensor:
    return readings[readings >= 0]


def _the_good_ones_replaced(readings: tk.Tensor) -> tk.Tensor:
    result = readings.clone()
    faulty = result < 0
    result[~faulty] = result[~faulty].mean()
    return result


def _write_into_a_named_copy(readings: tk.Tensor) -> tk.Tensor:
    return readings.clone()


@exercise("cleaned", answer=cleaned, stub=_write_that_vanishes, points=4, difficulty=3, minutes=8)
class Cleaned(Exercise):
    """The write that vanishes

    A sensor reports a negative number when it fails. The code below should replace these readings
    by the mean of the good ones. It runs without an error, and nothing changes. Repair it.

    **Input:** `readings`, a tensor of any shape and any float dtype, with at least one reading that
    is not negative.

    **Output:** a tensor of the same shape, in which each negative reading is replaced by the
    mean of all readings that are not negative. `readings` itself stays as it was.

    ```python
    cleaned(tk.tensor([2.0, -1.0, 4.0]))
    # tensor([2., 3., 4.])
    ```
    """

    hints = (
        "`result[faulty]` picks with a mask. Is that a view of `result`, or a copy?",
        "It is a copy, and `[:] = ...` writes into that copy. An assignment right behind the mask, "
        "`result[faulty] = ...`, writes into `result`.",
    )
    usual_mistakes = {
        "into the readings": (
            _into_the_readings,
            "You write into the readings themselves, which belong to the caller. Write into a "
            "clone.",
        ),
        "the mean of all": (
            _mean_of_all,
            "Your mean counts the faulty readings too. Pick the good ones first: `~faulty`.",
        ),
        "zero": (
            _zero_instead,
            "You replace the faulty readings by 0. They should become the mean of the others.",
        ),
        "left out": (
            _left_out,
            "You leave the faulty readings out, so the shape changes. Keep their places and "
            "replace the numbers.",
        ),
        "the good ones": (
            _the_good_ones_replaced,
            "You replaced the good readings. `faulty` picks what is to be replaced, `~faulty` what "
            "the mean is taken of.",
        ),
        "a named copy": (
            _write_into_a_named_copy,
            "A mask picks a copy, and what is written into that copy, under whatever name, is not "
            "written into `result`. Assign to `result[mask]`.",
            r"(\w+) = \w+\[.*\]\n(?s:.*)\1\[|\]\.fill_",
        ),
        "zeros in the mean": (
            lambda readings: tk.where(readings < 0, readings.clamp(min=0).mean(), readings),
            "Your mean counts the faulty readings as 0. Take it over the good ones alone.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([2.0, -1.0, 4.0]), label="one fault")
        good, bad = draw.floats(4, 1, 9), draw.floats(2, -9, -1)
        yield case(
            tk.tensor([good[0], bad[0], good[1], good[2], bad[1], good[3]]), label="two faults"
        )
        yield case(
            tk.tensor([[good[0], bad[0], 12.0], [bad[1], 0.5, good[1]]]),
            label="a table of readings",
        )
        zero = tk.tensor([-draw.integer(1, 9), 0, draw.integer(2, 9)]).float()
        yield case(zero, label="a reading of 0 is good")
        a, b, c, d = *draw.distinct(2, 1, 9), *draw.integers(2, 1, 9)
        yield case(tk.tensor([a, -c, -d, b]).double(), label="float64")
        a, b, c = *draw.distinct(2, 1, 9), draw.integer(1, 9)
        yield case(tk.tensor([a, -c, b]).half(), label="half the memory (float16)")
        a, b, c = *draw.distinct(2, 1, 9), draw.integer(1, 9)
        wide = tk.tensor([a, 99, -c, 99, b, 99]).float()
        yield case(wide[::2], label="every second reading (non-contiguous)")
        yield case(tk.tensor(draw.number(1, 9)), label="a single reading (0-d)")
        yield case(tk.tensor([[draw.number(1, 9)]]), label="one row, one column (size 1)")
        yield case(tk.tensor(draw.distinct(2, 1, 9)).float(), label="no fault")

    def advice(self, *args: Any) -> str | None:
        (readings,) = args
        if (readings == 0).any():
            return "0 is not negative: it is a good reading, stays, and counts in the mean."
        return None
