"""``viz.gradients``: how large the gradient of each parameter is."""

import math
from typing import Any, NamedTuple

from tensorkit.base import Tensor
from tensorkit.viz import words
from tensorkit.viz.charts import bars, chart
from tensorkit.viz.picture import Picture, text_picture

MOST_ROWS = 40
_NOTE = "The mean |gradient|, on a logarithmic scale; in brackets its ratio to the mean |value|."


class Row(NamedTuple):
    """One bar; ``size`` is 0 where there is none."""

    name: str
    shape: str
    size: float
    in_words: str
    ratio: str = ""


def gradients(module: Any) -> Picture:
    """Bars for the gradients of a module's parameters, in their order, on a logarithmic scale.

    The size is the mean of the absolute values; beside it stands its ratio to the parameter's own.
    ``module`` has ``named_parameters()``, or is a dict of tensors. What has no bar (None, all zero,
    not finite) gets words. Of more than 40 parameters the first 40 are drawn.

    >>> from tensorkit import viz
    >>> w = tk.ones(2, requires_grad=True)
    >>> (w * tk.tensor([1., 3.])).sum().backward()
    >>> viz.gradients({"w": w})
    Gradients of 1 parameter
    parameter  shape  mean |gradient|  of mean |value|
    w          (2,)   2.               2.
    """
    named = getattr(module, "named_parameters", getattr(module, "items", None))
    if named is None:
        raise TypeError(
            f"viz.gradients() wants a module or a dict of tensors, not {type(module).__name__}. "
            'Try: viz.gradients({"w": w})'
        )
    pairs = list(named())
    if not pairs:
        return text_picture("No parameters", "This module has no parameters.")
    for name, it in pairs:
        words.must_be_tensor("viz.gradients", it, name)
    with words.unrecorded():
        rows = [_row(*pair) for pair in pairs[:MOST_ROWS]]
    title = f"Gradients of {words.count(len(pairs), 'parameter')}"
    more = f" The first {MOST_ROWS} are drawn." if len(pairs) > MOST_ROWS else ""
    header = ("parameter", "shape", "mean |gradient|", "of mean |value|")
    table = words.table(header, [(it.name, it.shape, it.in_words, it.ratio) for it in rows])

    def draw(axes: Any) -> None:
        powers = [math.log10(it.size) for it in rows if it.size] or [0.0]
        low, high = 10 ** math.floor(min(powers) - 0.3), 10 ** math.ceil(max(powers))
        axes.set_xscale("log")
        labels = [f"{it.name}  {it.shape}" for it in rows]
        notes = [f"{it.in_words} ({it.ratio})" if it.ratio else it.in_words for it in rows]
        bars(axes, labels, [max(it.size - low, 0) for it in rows], low, notes)
        axes.set_xlim(low, high * (high / low) ** 0.3)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()

    alt = "\n".join([title + more, *table])
    return chart(title, alt, draw, note=_NOTE + more, size=(760, 60 + 22 * len(rows)))


def _row(name: str, parameter: Tensor) -> Row:
    shape = str(tuple(parameter.shape))
    if parameter.grad is None or not parameter.numel():
        return Row(name, shape, 0.0, "None" if parameter.grad is None else "no elements")
    size, own = _mean_size(parameter.grad), _mean_size(parameter)
    if size == 0 or not math.isfinite(size):
        return Row(name, shape, 0.0, words.number(size) if size else "all 0")
    return Row(name, shape, size, words.number(size), words.number(size / own) if own else "")


def _mean_size(x: Tensor) -> float:
    return float(x.detach().double().abs().mean().item())
