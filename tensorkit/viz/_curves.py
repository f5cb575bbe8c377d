"""Curves: ``viz.training``, ``viz.landscape`` and ``viz.benchmark``."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorkit.creation import tensor
from tensorkit.viz import words
from tensorkit.viz.charts import chart, short
from tensorkit.viz.drawing import BLUE, RED, SKY, WHITE, legible
from tensorkit.viz.picture import Explanation, Picture
from tensorkit.viz.words import count, duration, library, number, table

N, N_LEVELS, MOST_ROWS = 40, 10, 12
Point = tuple[float, float]


def training(history: Mapping[str, Sequence[Any]], *, per: str = "epoch") -> Picture:
    """Curves of loss and accuracy: losses in one chart, everything else in another.

    ``history`` is a dict of lists: ``{"loss": [...], "accuracy": [...]}``. A value that is not
    finite leaves a gap, and a sentence says so.

    >>> from tensorkit import viz
    >>> viz.training({"loss": [2., 1., 0.5]})
    Training, 3 epochs
    loss: begins at 2., ends at 0.5, lowest 0.5 in epoch 2, highest 2. in epoch 0
    epoch  loss
    0      2.
    1      1.
    2      0.5
    """
    with words.reading(
        "viz.training() wants a dict of lists of numbers. "
        'Try: history["loss"].append(loss.item()), and viz.training(history)'
    ):
        curves = {legible(name): [*map(float, values)] for name, values in history.items()}
    n = max(map(len, curves.values()), default=0)
    if not n:
        return Explanation("No training yet", "The history is empty: append to it in every epoch.")
    title = f"Training, {count(n, per)}"
    losses = [name for name in curves if "loss" in name.lower()] or list(curves)
    others = [name for name in curves if name not in losses]
    panels = [names for names in (losses, others) if names]

    def draw(*axes: Any) -> None:
        for panel, names in zip(axes, panels, strict=True):
            for name in names:
                panel.plot(curves[name], marker="o" if n <= 40 else "", label=name)
            panel.set(xlabel=per, title=_label(names))
            panel.xaxis.set_major_locator(library("matplotlib.ticker").MaxNLocator(6, integer=True))
            panel.yaxis.set_major_formatter(lambda value, _: short(value))
            if names != [_label(names)]:
                panel.legend(loc="upper left", bbox_to_anchor=(0, -0.2), ncols=2)

    notes = [f"{name}: {_in_words(values, per)}" for name, values in curves.items()]
    rows = [
        [str(step), *(number(ys[step]) if step < len(ys) else "" for ys in curves.values())]
        for step in _some_of(n, 9)
    ]
    return chart(
        title,
        "\n".join([title, *notes, *table([per, *curves], rows)]),
        draw,
        note="; ".join(note for note in notes if "not finite" in note),
        panels=(len(panels), 1),  # below one another, so that they fit on a telephone
        size=(420, 250 * len(panels) + 20 * sum(len(panel) // 2 for panel in panels)),
    )


def _label(names: list[str]) -> str:
    """What the curves of one chart are."""
    common = [word for word in ("loss", "accuracy") if all(word in name.lower() for name in names)]
    return common[0] if common else ", ".join(names) if len(names) < 3 else "other values"


def _in_words(values: list[float], per: str) -> str:
    finite = [step for step, value in enumerate(values) if math.isfinite(value)]
    parts = []
    if finite:
        parts = [f"begins at {number(values[0])}", f"ends at {number(values[-1])}"]
        for word, best in (("lowest", min), ("highest", max)):
            step = best(finite, key=values.__getitem__)
            parts.append(f"{word} {number(values[step])} in {per} {step}")
    others = [step for step, value in enumerate(values) if not math.isfinite(value)]
    if others:
        parts.append(f"{count(len(others), 'value')} not finite, first in {per} {others[0]}")
    return ", ".join(parts)


def _some_of(n: int, most: int) -> list[int]:
    """At most so many of the numbers below ``n``, at equal distances, with both ends."""
    return sorted({round(step * (n - 1) / (most - 1)) for step in range(most)})


def landscape(
    f: Callable[[Any, Any], Any], path: Any = (), *, x: Point | None = None, y: Point | None = None
) -> Picture:
    """Lines of equal height of ``f(x, y)``, and the path of an optimizer upon them.

    ``f`` takes two 0-d tensors; ``path`` holds pairs of numbers. Without the ranges ``x`` and ``y``
    the path is seen whole. Heights lie closer together further down.

    >>> from tensorkit import viz
    >>> viz.landscape(lambda x, y: x * x + y * y, [(1., 1.), (0.5, 0.5)]).alt.splitlines()[1]
    'The path: 2 points, from f(1., 1.) = 2. to f(0.5, 0.5) = 0.5'
    """
    with words.reading(
        "viz.landscape() wants a function of two numbers, and a path of pairs of numbers. "
        "Try: path.append((x.item(), y.item())), and viz.landscape(lambda x, y: x + y, path)"
    ):
        points = [(float(x), float(y)) for x, y in path]
        if not callable(f):
            raise TypeError

    def height(x: float, y: float) -> float:
        return float(f(tensor(x), tensor(y)))

    with words.unrecorded():
        xs = np.linspace(*(x or _range([point[0] for point in points])), N + 1).tolist()
        ys = np.linspace(*(y or _range([point[1] for point in points])), N + 1).tolist()
        heights = np.array([[height(x, y) for x in xs] for y in ys])
        heights_on_path = [height(*point) for point in points]
    title = "Landscape" if not points else f"Landscape, path of {count(len(points), 'point')}"
    finite = heights[np.isfinite(heights)]
    if not finite.size:
        return Explanation(title, "The function has no finite value in this range.")
    low, high = float(finite.min()), float(finite.max())
    shares = [level / (N_LEVELS + 1) for level in range(1, N_LEVELS + 1)]

    def draw(axes: Any) -> None:
        if low < high:
            # the root of a valley's height is nearly straight between two points of the grid
            roots = np.ma.sqrt(np.ma.masked_invalid(heights) - low)
            style = {
                "colors": [BLUE if share < 0.5 else SKY for share in shares],
                "linewidths": [2.4 - 1.6 * share for share in shares],
            }
            axes.contour(xs, ys, roots, [math.sqrt(high - low) * s for s in shares], **style)
        axes.set(xlabel="x", ylabel="y", xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))
        axes.plot(*np.reshape(points, (-1, 2)).T, "o-", color=RED, markersize=6, mec=WHITE)
        for name, at in zip(("start", "end"), points[:1] + points[-1:], strict=False):
            side = "left" if at[0] < (xs[0] + xs[-1]) / 2 else "right"
            if name == "end" and len(points) > 1:  # on the other side than the path
                side = "right" if points[-2][0] > at[0] else "left"
            above = "bottom" if name == "start" else "top"
            style = {"weight": "bold", "in_layout": False, "textcoords": "offset points"}
            axes.annotate(name, at, (8 if side == "left" else -8, 0), ha=side, va=above, **style)

    levels = [low + (high - low) * share**2 for share in shares] if low < high else [low]
    legend = f"Lines of equal height, the lowest thickest: {', '.join(map(number, levels))}"
    lines = [title]
    if points:
        cells = [
            [*map(number, point), number(at)]
            for point, at in zip(points, heights_on_path, strict=True)
        ]
        first, last = (f"f({x}, {y}) = {at}" for x, y, at in (cells[0], cells[-1]))
        lines.append(f"The path: {count(len(points), 'point')}, from {first} to {last}")
        rows = [[str(step), *cells[step]] for step in _some_of(len(points), MOST_ROWS + 1)]
        lines += table(("step", "x", "y", "f"), rows)
    every = range(0, N + 1, N // 4)
    rows = [[number(ys[row]), *(number(float(heights[row, at])) for at in every)] for row in every]
    lines.append("f on a grid, x to the right, y down:")
    lines += [*table(["", *(number(xs[at]) for at in every)], rows), legend]
    return chart(title, "\n".join(lines), draw, note=legend, size=(620, 420))


def _range(values: Sequence[float]) -> Point:
    """The range of the values with a margin of 15 % on both sides."""
    finite = [value for value in values if math.isfinite(value)] or [-2.0, 2.0]
    low, high = min(finite), max(finite)
    margin = 0.15 * (high - low) or abs(low) / 2 + 0.5
    return low - margin, high + margin


def benchmark(times: Mapping[str, Mapping[float, float]]) -> Picture:
    """The CPU/GPU chart: seconds of a call over numbers of elements, both axes logarithmic.

    ``times`` is ``{"cpu": {1000: 2e-5, ...}, "cuda": {...}}``. Nothing is measured here.

    >>> from tensorkit import viz
    >>> viz.benchmark({"cpu": {1: 1e-6, 100: 1e-4}, "cuda": {1: 1e-5, 100: 2e-5}})
    Time of a call over elements: cpu, cuda
    elements  cpu     cuda
    1         1 µs    10 µs
    100       100 µs  20 µs
    """
    with words.reading(
        'viz.benchmark() wants {"cpu": {1000: seconds}, ...}, all above 0. '
        'Try: viz.benchmark({"cpu": {1000: 2e-5}})'
    ):
        # the logarithm of what is not above 0 is a ValueError
        math.log(min(min(pair) for each in times.values() for pair in each.items()))
    title = f"Time of a call over elements: {', '.join(times)}"

    def draw(axes: Any) -> None:
        for name, each in times.items():
            axes.plot(*zip(*sorted(each.items()), strict=True), marker="o", label=legible(name))
        axes.set(xscale="log", yscale="log", xlabel="elements", title="time of a call")
        for axis, in_words in ((axes.xaxis, short), (axes.yaxis, duration)):
            low, high = axis.get_data_interval()
            first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
            axis.set_view_interval(10**first, 10 ** max(last, first + 1), ignore=True)
            axis.set_major_formatter(lambda value, _, in_words=in_words: in_words(value))
        axes.minorticks_off()
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))

    sizes = sorted({at for each in times.values() for at in each})
    rows = [
        [f"{at:,.0f}", *(duration(each[at]) if at in each else "" for each in times.values())]
        for at in sizes
    ]
    alt = "\n".join([title, *table(["elements", *times], rows)])
    return chart(title, alt, draw, size=(660, 310))
