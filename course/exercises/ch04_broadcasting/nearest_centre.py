"""The exercise nearest-centre: the nearest centre."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


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
    points=6,
    difficulty=4,
    minutes=12,
)
class NearestCentre(Exercise):
    """The nearest centre

    Many programs ask which of a few centres is nearest to each of many points. Broadcasting
    computes all differences at once, without a loop. Fill the three gaps.

    **Input:** `points` of shape `[n, 2]` and `centres` of shape `[k, 2]`, both of the same dtype,
    float or int64.

    **Output:** an int64 vector of length `n`: for each point the number of the nearest centre.
    `points` and `centres` stay as they are.

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
        "not added up": (
            lambda points, centres: (points.unsqueeze(1) - centres).square().argmin(dim=1),
            "The squares of the two coordinates are not added up. Sum over the last dimension "
            "before you compare.",
        ),
        "added over the centres": (
            lambda points, centres: (
                (points.unsqueeze(1) - centres).square().sum(dim=1).argmin(dim=1)
            ),
            "`sum(dim=1)` adds over the centres. The two coordinates are the last dimension: "
            "`dim=2`.",
        ),
        "the square of the sum": (
            lambda points, centres: (
                (points.unsqueeze(1) - centres).sum(dim=2).square().argmin(dim=1)
            ),
            "You add the differences and then square the sum. Square each difference first, then "
            "add.",
        ),
        "absolute differences": (
            lambda points, centres: (points.unsqueeze(1) - centres).abs().sum(dim=2).argmin(dim=1),
            "You add the absolute differences, which is another distance. Square them, then add.",
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
        "one coordinate": (
            lambda points, centres: (points.unsqueeze(1) - centres)[:, :, 0].square().argmin(dim=1),
            "Only the first coordinate counts in your answer. Square both differences and add "
            "them.",
            r"\b0\]|select|narrow",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        centres = tk.tensor([[10.0, 10.0], [0.0, 1.0]])
        yield case(
            tk.tensor([[0.0, 0.0], [9.0, 9.0], [1.0, 0.0]]), centres, label="three points, two"
        )
        yield case(*_telling(draw, 5, 4), label="five points, four centres")
        points, four = _telling(draw, 4, 4)
        yield case(points / 256, four / 256, label="as many points as centres")
        points, four = _telling(draw, 2, 4)
        yield case(points - 100, four - 100, label="negative coordinates")
        yield case(*_telling(draw, 2, 6), label="more centres than points")
        # float16 has no number between these, so that its first centre would win
        corner = 8 * draw.integer(640, 652) + tk.tensor([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
        yield case(corner[2:] - 0.125, corner, label="centres far from 0")
        yield case(*_telling(draw, 1, 4), label="a single point (size 1)")
        halves = (tensor.half() / 2 for tensor in _telling(draw, 3, 4))
        yield case(*halves, label="half the memory (float16)")
        whole = (tensor.long() for tensor in _telling(draw, 6, 4))
        yield case(*whole, label="whole numbers (int)")
        yield case(tk.zeros(0, 2), four, label="no points (empty)")
        points, four = _telling(draw, 4, 4)
        pairs = tk.stack([points, points + 1], dim=1).flatten(0, 1)
        yield case(pairs[::2], four, label="every second point (non-contiguous)")


def _telling(draw: Draw, n: int, k: int) -> tuple[tk.Tensor, tk.Tensor]:
    """Points and centres for which other measures than the distance give other answers.

    Point 0 is nearer to a centre at (-4, -4) than to one at (-6, 1), and the sum of the absolute
    differences says the opposite. Point 1 is nearer to one at (8, 1) than to one at (6, -6), and
    the largest difference, the square of the sum, third and fourth powers say the opposite.
    """
    x, y, size = draw.integer(-9, 9), draw.integer(-9, 9), draw.integer(2, 4)
    u, v = x + draw.integer(50, 70), y + draw.integer(50, 70)
    points = [(x, y), (u, v)]
    centres = [(-6 * size + x, size + y), (6 * size + u, -6 * size + v)]
    # the two that are nearest, and those that are near to no point
    centres += [(-4 * size + x, -4 * size + y), (8 * size + u, size + v)]
    centres += [(x - 60, v + 10 * number) for number in range(k - 4)]
    points += [(centres[number][0] + 1, centres[number][1]) for number in draw.integers(n, 0, 1)]
    return tk.tensor(points[:n]).float(), tk.tensor(centres).float()
