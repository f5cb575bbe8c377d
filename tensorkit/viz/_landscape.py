"""``viz.landscape``: a function of two variables as lines of equal height, and a way through it."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorkit.data import is_tensor, tensor
from tensorkit.viz import table, words
from tensorkit.viz.chart import Axes, span
from tensorkit.viz.drawing import Canvas, Picture, heading, said
from tensorkit.viz.palette import BLUE, INK, RED, SKY, SOFT, WHITE

N, N_LEVELS, MOST_TOLD = 60, 10, 12
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
    with words.unseen():
        points, device = _points(path)
    x = _widened([it[0] for it in points] if x is None else x, 0.15 if x is None else 0)
    y = _widened([it[1] for it in points] if y is None else y, 0.15 if y is None else 0)
    xs = [x[0] + (x[1] - x[0]) * step / N for step in range(N + 1)]
    ys = [y[0] + (y[1] - y[0]) * step / N for step in range(N + 1)]
    with words.unseen():
        heights = _heights(f, xs, ys, device)
        along = [_height(f, *point, device) for point in points]
    finite = [it for row in heights for it in row if math.isfinite(it)]
    title = "Landscape" if not points else f"Landscape, path of {words.count(len(points), 'point')}"
    if not finite:
        return said(title, "The function has no finite value in this range.")
    canvas = Canvas()
    low = heading(canvas, title)
    axes = Axes(canvas, (70, low + 20, 460, 380), x, y)
    axes.draw("x", "y")
    levels = _levels(finite)
    # of a valley the root of the height is nearly straight from one point of the grid to the next
    lowest = min(finite)
    roots = [[math.sqrt(max(it - lowest, 0)) for it in row] for row in heights]
    for number, level in enumerate(levels):
        lines = _line(xs, ys, roots, math.sqrt(level - lowest))
        ends = [it for one, other in lines for it in (("M", one), ("L", other))]
        commands = [(name, *axes.at(*at)) for name, at in ends]
        share = number / max(len(levels) - 1, 1)
        canvas.path(commands, BLUE if share < 0.5 else SKY, width=2.2 - 1.4 * share)
    _draw_path(canvas, axes, points)
    legend = f"Lines of equal height, the lowest thickest: {', '.join(map(words.number, levels))}"
    canvas.lines(70, low + 452, legend, 11.5, SOFT, width=470)
    return Picture(title, canvas, _alt(title, points, along, xs, ys, heights, legend))


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


def _widened(values: Sequence[float], share: float) -> Point:
    """The range of the values and a share of it on both sides."""
    low, high = span(values) if values else (-2.0, 2.0)
    margin = share * (high - low)
    return low - margin, high + margin


def _heights(
    f: Callable[[Any, Any], Any], xs: list[float], ys: list[float], device: Any
) -> list[list[float]]:
    """The function on a grid: at once if it works on elements, which three points must confirm."""
    try:
        found = (
            f(tensor(xs, device=device), tensor(ys, device=device).unsqueeze(1))
            .expand(N + 1, N + 1)
            .tolist()
        )
        for place in (0, N // 3, N):
            alone = _height(f, xs[place], ys[N - place], device)
            if not math.isclose(alone, found[N - place][place], rel_tol=1e-4, abs_tol=1e-6):
                raise ValueError
    except Exception:  # whatever a function of numbers raises when it is given a whole grid
        return [[_height(f, x, y, device) for x in xs] for y in ys]
    return found


def _height(f: Callable[[Any, Any], Any], x: float, y: float, device: Any) -> float:
    try:
        return float(f(tensor(x, device=device), tensor(y, device=device)))
    except (OverflowError, ZeroDivisionError):
        return math.nan


def _levels(finite: list[float]) -> list[float]:
    """Heights between the least and the greatest, closer together further down."""
    low, high = min(finite), max(finite)
    if low == high:
        return [low]
    return [low + (high - low) * (step / (N_LEVELS + 1)) ** 2 for step in range(1, N_LEVELS + 1)]


def _line(
    xs: list[float], ys: list[float], heights: list[list[float]], level: float
) -> list[tuple[Point, Point]]:
    """The pieces of the line of one height: in each half of each square it enters and leaves once.

    Cutting squares into triangles leaves no doubtful case ("marching triangles").
    """
    pieces = []
    below = (np.array(heights) < level).astype(int)
    n_below = below[1:, 1:] + below[1:, :-1] + below[:-1, 1:] + below[:-1, :-1]
    for row, column in np.argwhere((n_below > 0) & (n_below < 4)).tolist():
        corner = [
            (xs[column + i], ys[row + j], heights[row + j][column + i])
            for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))
        ]
        for three in ((0, 1, 2), (0, 2, 3)):
            ends = []
            for one, other in ((0, 1), (1, 2), (2, 0)):
                (x, y, h), (to_x, to_y, to_h) = corner[three[one]], corner[three[other]]
                if (h < level) != (to_h < level) and math.isfinite(h - to_h):
                    share = (level - h) / (to_h - h)
                    ends.append((x + share * (to_x - x), y + share * (to_y - y)))
            if len(ends) == 2:
                pieces.append((ends[0], ends[1]))
    return pieces


def _draw_path(canvas: Canvas, axes: Axes, points: list[Point]) -> None:
    good = [it for it in points if all(map(math.isfinite, it))]
    left, top, width, height = axes.frame
    at = [axes.at(*it) for it in good]
    inside = [it for it in at if left <= it[0] <= left + width and top <= it[1] <= top + height]
    if len(inside) > 1:
        canvas.line(inside, RED, width=2)
    for place in inside if len(inside) <= 60 else []:
        canvas.dot(*place, 3, RED, WHITE)
    below = 0
    for (x, y), name in [(inside[0], "start"), (inside[-1], "end")] if inside else []:
        canvas.dot(x, y, 5, RED, WHITE)
        canvas.text(x + 8, y - 7 + below, name, 12, INK, bold=True)
        is_near = abs(x - inside[-1][0]) < 50 and abs(y - inside[-1][1]) < 15
        below = 23 if is_near else 0


def _alt(
    title: str,
    points: list[Point],
    along: list[float],
    xs: list[float],
    ys: list[float],
    heights: list[list[float]],
    legend: str,
) -> str:
    say = words.number
    text = [title]
    if points:
        first, last = points[0], points[-1]
        text.append(
            f"The path: {words.count(len(points), 'point')}, from f({say(first[0])}, "
            f"{say(first[1])}) = {say(along[0])} to f({say(last[0])}, {say(last[1])}) = "
            f"{say(along[-1])}"
        )
        steps = sorted({round(it * (len(points) - 1) / MOST_TOLD) for it in range(MOST_TOLD + 1)})
        rows = [[str(it), *map(say, points[it]), say(along[it])] for it in steps]
        text += table.text(("step", "x", "y", "f"), rows)
    every = range(0, N + 1, N // 4)
    text.append("f on a grid, x to the right, y down:")
    rows = [[say(ys[row]), *(say(heights[row][column]) for column in every)] for row in every]
    text += table.text(["", *(say(xs[column]) for column in every)], rows)
    return "\n".join([*text, legend])
