"""``viz.training``: how loss and accuracy went."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tensorkit.viz import table
from tensorkit.viz.chart import Axes, span
from tensorkit.viz.drawing import WIDEST, Canvas, Picture, heading, said, text_width
from tensorkit.viz.words import count, number, unseen

MOST_POINTS, MOST_TOLD = 400, 9
_BESIDE = 106  # what a chart takes beside its frame and the names of its curves


def training(history: Any, *, per: str = "epoch") -> Picture:
    """Curves of loss and accuracy: losses in one chart, everything else in another.

    ``history`` is a dict of lists (``{"loss": [...], "accuracy": [...]}``), a list of dicts, or a
    list of losses. What is not finite leaves a gap and is told.

    >>> from tensorkit import viz
    >>> viz.training({"loss": [2., 1., 0.5]})
    Training, 3 epochs
    loss: begins at 2., ends at 0.5, lowest 0.5 in epoch 2, highest 2. in epoch 0
    epoch  loss
    0      2.
    1      1.
    2      0.5
    """
    with unseen():
        curves = _curves(history)
    n = max((len(values) for values in curves.values()), default=0)
    if not n:
        return said("No training yet", "The history is empty: append to it in every epoch.")
    title = f"Training, {count(n, per)}"
    canvas = Canvas()
    odd = [f"{name}: {_odd(values, per)}" for name, values in curves.items() if _odd(values, per)]
    left, low = 70.0, heading(canvas, title, "; ".join(odd))
    losses = {name: it for name, it in curves.items() if "loss" in name.lower()} or curves
    others = {name: it for name, it in curves.items() if name not in losses}
    groups = [(label, it) for label, it in (("loss", losses), (_together(others), others)) if it]
    names = sum(max(text_width(name, 12) for name in group) for _, group in groups)
    width = (WIDEST - 36 - names) / len(groups) - _BESIDE  # as wide as a notebook's page in all
    for y_label, group in groups:
        y = span([value for values in group.values() for value in values])
        axes = Axes(canvas, (left, low + 20, min(max(width, 160), 330), 220), (0, max(n - 1, 1)), y)
        axes.draw(per, y_label if losses is not curves or y_label != "loss" else "value")
        axes.curves([(name, _points(values)) for name, values in group.items()])
        left = canvas.extent[0] + 70
    text = [title, *(f"{name}: {_told(values, per)}" for name, values in curves.items())]
    steps = sorted({round(it * (n - 1) / max(MOST_TOLD - 1, 1)) for it in range(MOST_TOLD)})
    rows = [
        [str(step), *(number(it[step]) if step < len(it) else "" for it in curves.values())]
        for step in steps
    ]
    text += table.text([per, *curves], rows)
    return Picture(title, canvas, "\n".join(text))


def _together(names: Collection[str]) -> str:
    """What the curves beside the losses are."""
    if all("acc" in name.lower() for name in names):
        return "accuracy"
    return ", ".join(names) if len(names) < 3 else "other values"


def _curves(history: Any) -> dict[str, list[float]]:
    try:
        if isinstance(history, Mapping):
            columns = dict(history)
        elif (rows := _listed(history)) and isinstance(rows[0], Mapping):
            names = dict.fromkeys(name for row in rows for name in row)
            columns = {name: [row.get(name, math.nan) for row in rows] for name in names}
        else:
            columns = {"loss": rows}
        return {
            str(name): [float(value) for value in _listed(values)]
            for name, values in columns.items()
            if isinstance(values, Sequence) or hasattr(values, "tolist")
        }
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            "viz.training() wants numbers: a dict of lists, a list of dicts, or a list of losses. "
            'Try: history["loss"].append(loss.item())'
        ) from None


def _listed(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _points(values: list[float]) -> list[tuple[float, float]]:
    """Step and value; of very many only so many as can be told apart."""
    every = -(-len(values) // MOST_POINTS)
    kept = range(0, len(values), every)
    return [(float(step), values[step]) for step in dict.fromkeys([*kept, len(values) - 1])]


def _told(values: list[float], per: str) -> str:
    good = [(value, step) for step, value in enumerate(values) if math.isfinite(value)]
    parts = []
    if good:
        least, most = min(good), max(good, key=lambda pair: (pair[0], -pair[1]))
        parts = [
            f"begins at {number(values[0])}",
            f"ends at {number(values[-1])}",
            f"lowest {number(least[0])} in {per} {least[1]}",
            f"highest {number(most[0])} in {per} {most[1]}",
        ]
    return ", ".join(filter(None, [*parts, _odd(values, per)]))


def _odd(values: list[float], per: str) -> str:
    odd = [step for step, value in enumerate(values) if not math.isfinite(value)]
    return f"{count(len(odd), 'value')} not finite, first in {per} {odd[0]}" if odd else ""
