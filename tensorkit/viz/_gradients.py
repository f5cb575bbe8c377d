"""``viz.gradients``: how large the gradient of each parameter is."""

import math
from collections.abc import Iterable
from typing import Any

from tensorkit.base import Tensor
from tensorkit.viz import table, words
from tensorkit.viz.chart import span, ticks
from tensorkit.viz.drawing import Canvas, Picture, heading, said, text_width
from tensorkit.viz.palette import BLUE, EDGE, INK, SOFT

MOST_ROWS, WIDTH = 40, 360.0
_BELOW = "The mean |gradient|, on a logarithmic scale; in brackets its ratio to the mean |value|."


def gradients(module: Any) -> Picture:
    """Bars for the gradients of a module's parameters, layer by layer, on a logarithmic scale.

    The size is the mean of the absolute values; beside it stands its share of the parameter's own.
    ``module`` has ``named_parameters()``, or is a dict of tensors. None, all zero and not finite
    are said in words. More than 40 parameters are shown by the first part of their names.

    >>> from tensorkit import viz
    >>> w = tk.ones(2, requires_grad=True)
    >>> (w * tk.tensor([1., 3.])).sum().backward()
    >>> viz.gradients({"w": w})
    Gradients of 1 parameter
    parameter  shape  mean |gradient|  of mean |value|
    w          (2,)   2.               2.
    """
    named = module.items() if hasattr(module, "items") else None
    if named is None and hasattr(module, "named_parameters"):
        named = module.named_parameters()
    if named is None:
        raise TypeError(
            f"viz.gradients() wants a module or a dict of tensors, not {type(module).__name__}. "
            'Try: viz.gradients({"w": w})'
        )
    pairs = list(named)
    if not pairs:
        return said("No parameters", "This module has no parameters.")
    for name, it in pairs:
        words.must_be_tensor("viz.gradients", it, name)
    with words.unseen():
        rows = _rows(pairs) if len(pairs) <= MOST_ROWS else _by_layer(pairs)
    title = f"Gradients of {words.count(len(pairs), 'parameter')}"
    canvas = Canvas()
    low = heading(canvas, title, _BELOW)
    _bars(canvas, rows, low)
    header = ("parameter", "shape", "mean |gradient|", "of mean |value|")
    lines = [(name, shape, told, share) for name, shape, _, told, share in rows]
    return Picture(title, canvas, "\n".join([title, *table.text(header, lines)]))


Row = tuple[str, str, float, str, str]
"""Name, shape, size of the gradient (nan if there is none to draw), the same told, its share."""


def _rows(pairs: Iterable[tuple[str, Tensor]]) -> list[Row]:
    rows = []
    for name, parameter in pairs:
        shape = str(tuple(parameter.shape))
        if parameter.grad is None or not parameter.numel():
            why = "None" if parameter.grad is None else "no elements"
            rows.append((name, shape, math.nan, why, ""))
            continue
        size, own = _size(parameter.grad), _size(parameter)
        told = "all 0" if size == 0 else words.number(size)
        share = words.number(size / own) if own and math.isfinite(size) else ""
        rows.append((name, shape, size if size else math.nan, told, share))
    return rows


def _size(x: Tensor) -> float:
    return float(x.detach().double().abs().mean().item())


def _by_layer(pairs: list[tuple[str, Tensor]]) -> list[Row]:
    layers: dict[str, list[tuple[str, Tensor]]] = {}
    for name, parameter in pairs:
        layers.setdefault(name.split(".")[0], []).append((name, parameter))
    if len(layers) > MOST_ROWS or len(layers) == 1:  # names say nothing: stretches of them do
        size = -(-len(pairs) // MOST_ROWS)
        parts = [pairs[start : start + size] for start in range(0, len(pairs), size)]
        layers = {f"{part[0][0]} … {part[-1][0]}": part for part in parts}
    rows = []
    for name, part in layers.items():
        own = [row for row in _rows(part) if math.isfinite(row[2])]
        mean = sum(row[2] for row in own) / len(own) if own else math.nan
        told = words.number(mean) if own else "None, 0 or not finite"
        rows.append((name, words.count(len(part), "parameter"), mean, told, ""))
    return rows


def _bars(canvas: Canvas, rows: list[Row], top: float) -> None:
    low, high = span([row[2] for row in rows], log=True)
    low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
    left = 34 + max(text_width(row[0], 12) for row in rows)
    start = left + 14 + max(text_width(row[1], 11.5) for row in rows)
    bottom = top + 22 * len(rows) + 6

    def place(value: float) -> float:
        return start + WIDTH * math.log(value / low) / math.log(high / low)

    for tick in ticks(low, high, log=True):
        canvas.line([(place(tick), top), (place(tick), bottom)], EDGE, width=0.8)
        canvas.text(place(tick), bottom + 15, f"{tick:g}", 11, SOFT, anchor="middle")
    for row, (name, shape, size, told, share) in enumerate(rows):
        y = top + 22 * row + 4
        canvas.text(18, y + 13, name, 12, INK)
        canvas.text(left, y + 13, shape, 11.5, SOFT)
        end = place(max(size, low)) if math.isfinite(size) else start
        canvas.rect(start, y + 2, max(end - start, 0), 15, BLUE)
        note = f"{told} ({share})" if share else told
        canvas.text(end + 8, y + 13, note, 11.5, INK)
