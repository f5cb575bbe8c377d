"""``viz.training``: how loss and accuracy went."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tensorkit.viz.charts import chart, short
from tensorkit.viz.drawing import legible
from tensorkit.viz.picture import Picture, text_picture
from tensorkit.viz.words import count, library, number, table, unrecorded

MOST_POINTS, MOST_ROWS = 400, 9


def training(history: Any, *, per: str = "epoch") -> Picture:
    """Curves of loss and accuracy: losses in one chart, everything else in another.

    ``history`` is a dict of lists (``{"loss": [...], "accuracy": [...]}``), a list of dicts, or a
    list of losses. A value that is not finite leaves a gap, and a sentence says so.

    >>> from tensorkit import viz
    >>> viz.training({"loss": [2., 1., 0.5]})
    Training, 3 epochs
    loss: begins at 2., ends at 0.5, lowest 0.5 in epoch 2, highest 2. in epoch 0
    epoch  loss
    0      2.
    1      1.
    2      0.5
    """
    with unrecorded():
        curves = _curves(history)
    n = max((len(values) for values in curves.values()), default=0)
    if not n:
        return text_picture("No training yet", "The history is empty: append to it in every epoch.")
    title = f"Training, {count(n, per)}"
    losses = {name: it for name, it in curves.items() if "loss" in name.lower()} or curves
    others = {name: it for name, it in curves.items() if name not in losses}
    panels = [it for it in (losses, others) if it]

    def draw(*axes: Any) -> None:
        for panel, group in zip(axes, panels, strict=True):
            for name, values in group.items():
                every = -(-len(values) // MOST_POINTS)  # of many points as many as can be seen
                steps = [*range(0, len(values) - 1, every), len(values) - 1]
                marker = "o" if n <= 40 else ""
                panel.plot(steps, [values[it] for it in steps], marker=marker, label=name)
            panel.set(xlabel=per, title=_label(group))
            panel.xaxis.set_major_locator(library("matplotlib.ticker").MaxNLocator(6, integer=True))
            panel.yaxis.set_major_formatter(lambda value, _: short(value))
            if len(group) > 1 or list(group) != [_label(group)]:
                panel.legend(loc="upper left", bbox_to_anchor=(0, -0.2), ncols=2)

    notes = [f"{name}: {_in_words(values, per)}" for name, values in curves.items()]
    last = MOST_ROWS - 1
    rows = [
        [str(step), *(number(it[step]) if step < len(it) else "" for it in curves.values())]
        for step in sorted({round(it * (n - 1) / last) for it in range(MOST_ROWS)})
    ]
    return chart(
        title,
        "\n".join([title, *notes, *table([per, *curves], rows)]),
        draw,
        note="; ".join(it for it in notes if "not finite" in it),
        panels=(1, len(panels)),
        size=(320 * len(panels) + 120, 270 + 20 * max(len(it) // 2 for it in panels)),
    )


def _label(group: Mapping[str, list[float]]) -> str:
    """What the curves of one chart are."""
    common = [it for it in ("loss", "accuracy") if all(it in name.lower() for name in group)]
    return common[0] if common else ", ".join(group) if len(group) < 3 else "other values"


def _curves(history: Any) -> dict[str, list[float]]:
    try:
        columns = history
        if not isinstance(history, Mapping):
            rows = _as_list(history)
            columns = {"loss": rows}
            if rows and isinstance(rows[0], Mapping):
                names = dict.fromkeys(name for row in rows for name in row)
                columns = {name: [row.get(name, math.nan) for row in rows] for name in names}
        lists = {
            legible(str(name)): values for name, values in columns.items() if not _is_number(values)
        }
        return {name: [float(it) for it in _as_list(values)] for name, values in lists.items()}
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            "viz.training() wants numbers: a dict of lists, a list of dicts, or a list of losses. "
            'Try: history["loss"].append(loss.item())'
        ) from None


def _is_number(values: Any) -> bool:
    return not isinstance(values, Sequence) and not hasattr(values, "tolist")


def _as_list(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _in_words(values: list[float], per: str) -> str:
    finite = [(value, -step) for step, value in enumerate(values) if math.isfinite(value)]
    parts = []
    if finite:
        low, high = min(finite, key=lambda pair: (pair[0], -pair[1])), max(finite)
        parts = [f"begins at {number(values[0])}", f"ends at {number(values[-1])}"]
        parts.append(f"lowest {number(low[0])} in {per} {-low[1]}")
        parts.append(f"highest {number(high[0])} in {per} {-high[1]}")
    others = [step for step, value in enumerate(values) if not math.isfinite(value)]
    if others:
        parts.append(f"{count(len(others), 'value')} not finite, first in {per} {others[0]}")
    return ", ".join(parts)
