"""``viz.landscape``: a function of two variables as lines of equal height, and a way through it."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorkit.creation import is_tensor, tensor
from tensorkit.viz import words
from tensorkit.viz.charts import chart
from tensorkit.viz.palette import BLUE, RED, SKY, WHITE
from tensorkit.viz.picture import Picture, text_picture

N, N_LEVELS, MOST_ROWS = 40, 10, 12
Point = tuple[float, float]


def landscape(
    f: Callable[[Any, Any], Any], path: Any = (), *, x: Point | None = None, y: Point | None = None
) -> Picture:
    """Lines of equal height of ``f(x, y)``, and the path of an optimizer upon them.

    ``f`` takes two 0-d tensors, on the device of the path if that is made of tensors; ``path``
    holds pairs, also as tensors. Without the ranges ``x`` and ``y`` the path is seen whole. Heights
    lie closer together further down.

    >>> from tensorkit import viz
    >>> viz.landscape(lambda x, y: x * x + y * y, [(1., 1.), (0.5, 0.5)]).alt.splitlines()[1]
    'The path: 2 points, from f(1., 1.) = 2. to f(0.5, 0.5) = 0.5'
    """
    if not callable(f):
        raise TypeError(
            f"viz.landscape() wants a function of two numbers, not {type(f).__name__}. "
            "Try: viz.landscape(lambda x, y: x * x + y * y, path)"
        )

    def height(x: float, y: float) -> float:
        try:
            return float(f(tensor(x, device=device), tensor(y, device=device)))
        except (OverflowError, ZeroDivisionError):
            return math.nan

    with words.unrecorded():
        points, device = _points(path)
        xs = np.linspace(*(_range([it[0] for it in points]) if x is None else x), N + 1).tolist()
        ys = np.linspace(*(_range([it[1] for it in points]) if y is None else y), N + 1).tolist()
        heights = np.array([[height(x, y) for x in xs] for y in ys])
        along = [height(*point) for point in points]
    title = "Landscape" if not points else f"Landscape, path of {words.count(len(points), 'point')}"
    finite = heights[np.isfinite(heights)]
    if not finite.size:
        return text_picture(title, "The function has no finite value in this range.")
    low, high = float(finite.min()), float(finite.max())
    shares = [number / (N_LEVELS + 1) for number in range(1, N_LEVELS + 1)]
    levels = [low + (high - low) * share**2 for share in shares]

    def draw(axes: Any) -> None:
        if low < high:
            # the root of a valley's height is nearly straight between two points of the grid
            roots = np.ma.sqrt(np.ma.masked_invalid(heights) - low)
            style = {
                "colors": [BLUE if share < 0.5 else SKY for share in shares],
                "linewidths": [2.4 - 1.6 * share for share in shares],
            }
            axes.contour(xs, ys, roots, [math.sqrt(high - low) * it for it in shares], **style)
        axes.set(xlabel="x", ylabel="y", xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))
        axes.plot(*np.reshape(points, (-1, 2)).T, "o-", color=RED, markersize=6, mec=WHITE)
        for name, at in zip(("start", "end"), points[:1] + points[-1:], strict=False):
            side = "left" if at[0] < (xs[0] + xs[-1]) / 2 else "right"
            above = "bottom" if name == "start" else "top"
            style = {"weight": "bold", "clip_on": True, "in_layout": False}
            axes.text(*at, f"  {name}  ", ha=side, va=above, **style)

    numbers = ", ".join(map(words.number, levels if low < high else [low]))
    legend = f"Lines of equal height, the lowest thickest: {numbers}"
    say = words.number
    lines = [title]
    if points:
        ends = [f"f({say(points[n][0])}, {say(points[n][1])}) = {say(along[n])}" for n in (0, -1)]
        lines.append(f"The path: {words.count(len(points), 'point')}, from {' to '.join(ends)}")
        steps = sorted({round(it * (len(points) - 1) / MOST_ROWS) for it in range(MOST_ROWS + 1)})
        rows = [[str(it), *map(say, points[it]), say(along[it])] for it in steps]
        lines += words.table(("step", "x", "y", "f"), rows)
    every = range(0, N + 1, N // 4)
    rows = [[say(ys[row]), *(say(float(heights[row, it])) for it in every)] for row in every]
    lines.append("f on a grid, x to the right, y down:")
    lines += [*words.table(["", *(say(xs[it]) for it in every)], rows), legend]
    return chart(title, "\n".join(lines), draw, note=legend, size=(620, 420))


def _points(path: Any) -> tuple[list[Point], Any]:
    """The points of a path, and the device of the first one if it is a tensor."""
    try:
        given = list(path)
        pairs = [it.tolist() if hasattr(it, "tolist") else it for it in given]
        points = [(float(x), float(y)) for x, y in pairs]
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            "viz.landscape() wants a path of points of two numbers. "
            "Try: path.append((x.item(), y.item()))"
        ) from None
    return points, given[0].device if given and is_tensor(given[0]) else None


def _range(values: Sequence[float]) -> Point:
    """The range of the values with a margin of 15 % on both sides."""
    finite = [it for it in values if math.isfinite(it)] or [-2.0, 2.0]
    low, high = min(finite), max(finite)
    margin = 0.15 * (high - low) or abs(low) / 2 + 0.5
    return low - margin, high + margin
