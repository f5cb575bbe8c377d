"""Bars: ``viz.gradients`` and ``viz.saved``."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.viz import autograd_graph, words
from tensorkit.viz.charts import chart
from tensorkit.viz.drawing import BLUE, SOFT, WHITE, legible
from tensorkit.viz.picture import Explanation, Picture

MOST_OPERATIONS = 20


def _bars(
    axes: Any, labels: list[str], widths: Sequence[float], left: float, notes: list[str]
) -> None:
    """Draw bars from top to bottom, each with a label on its left and a note on its right."""
    drawn = axes.barh(range(len(labels)), widths, left=left, color=BLUE)
    axes.bar_label(drawn, notes, padding=6)
    axes.set_yticks(range(len(labels)), map(legible, labels))
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def gradients(module: Any) -> Picture:
    """Bars for the gradients of a module's parameters, in their order, on a logarithmic scale.

    The size is the mean of the absolute values; beside it stands its ratio to the parameter's own.
    ``module`` has ``named_parameters()``, or is a dict of tensors. What has no bar (None, all zero,
    not finite) gets words.

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
        return Explanation("No parameters", "This module has no parameters.")
    rows, drawn = [], []
    for name, x in pairs:
        words.must_be_tensor("viz.gradients", x, name)
        with words.unrecorded():
            size, own = _mean_size(x.grad), _mean_size(x)
        has_bar = size is not None and 0 < size < math.inf
        in_words = "None" if size is None else words.number(size) if size else "all 0"
        ratio = words.number(size / own) if has_bar and own else ""
        rows.append((name, str(tuple(x.shape)), in_words, ratio))
        drawn.append(size if has_bar else 0.0)
    title = f"Gradients of {words.count(len(pairs), 'parameter')}"
    header = ("parameter", "shape", "mean |gradient|", "of mean |value|")

    def draw(axes: Any) -> None:
        powers = [math.log10(size) for size in drawn if size] or [0.0]
        low, high = 10 ** math.floor(min(powers) - 0.3), 10 ** math.ceil(max(powers))
        axes.set_xscale("log")
        labels = [f"{name}  {shape}" for name, shape, _, _ in rows]
        notes = [f"{in_words} ({ratio})" if ratio else in_words for _, _, in_words, ratio in rows]
        _bars(axes, labels, [max(size - low, 0) for size in drawn], low, notes)
        axes.set_xlim(low, high * (high / low) ** 0.3)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()

    note = "The mean |gradient|, on a logarithmic scale; in brackets its ratio to the mean |value|."
    alt = "\n".join([title, *words.table(header, rows)])
    return chart(title, alt, draw, note=note, size=(760, 60 + 22 * len(rows)))


def _mean_size(x: Tensor | None) -> Any:
    return None if x is None else x.detach().double().abs().mean().item()


class Row(NamedTuple):
    """One operation: the bytes that it keeps first, those of leaves apart."""

    label: str
    form: str
    own: int
    of_leaves: int

    @property
    def keeps(self) -> str:
        """The bytes in words."""
        more = f", and {words.n_bytes(self.of_leaves)} of leaves" if self.of_leaves else ""
        return words.n_bytes(self.own) + more


def saved(loss: Tensor) -> Picture:
    """Picture of the memory kept for the backward of ``loss``, operation by operation.

    Each storage counts once, where it was first saved. What leaves keep (inputs, parameters) would
    be there without autograd too, and is counted apart. Of many operations those that keep most are
    shown.

    >>> from tensorkit import viz
    >>> x = tk.ones(100, requires_grad=True)
    >>> viz.saved((x.exp() * 2).sum())
    Kept for backward: 400 bytes by 3 operations; besides, leaves hold 0 bytes
    operation     result          keeps
    ExpBackward0  (100,) float32  400 bytes
    MulBackward0  (100,) float32  0 bytes
    SumBackward0  () float32      0 bytes
    """
    words.must_be_tensor("viz.saved", loss)
    if loss.grad_fn is None:
        return Explanation("Nothing is kept for backward", "This tensor has no graph.")
    with words.unrecorded():
        operations = [vertex for vertex in autograd_graph.read(loss) if not vertex.is_leaf]
        if any("freed" in saved.words for vertex in operations for saved in vertex.saved):
            freed = "An earlier backward freed what this graph kept. Try: viz.saved(loss) before "
            return Explanation("Nothing is kept any more", freed + "loss.backward()")
        seen: set[int] = set()
        rows = [Row(v.label, v.form, *_bytes_kept(v.saved, seen)) for v in operations]
    total, of_leaves = sum(row.own for row in rows), sum(row.of_leaves for row in rows)
    title = (
        f"Kept for backward: {words.n_bytes(total)} by {words.count(len(rows), 'operation')}; "
        f"besides, leaves hold {words.n_bytes(of_leaves)}"
    )
    note = "Each storage counts once, where it was first saved."
    note += " Dashed: memory of leaves, there without autograd too." if of_leaves else ""
    if len(rows) > MOST_OPERATIONS:
        rows = sorted(rows, key=lambda row: -row.own - row.of_leaves)[:MOST_OPERATIONS]
        note += f" The {MOST_OPERATIONS} operations that keep most are shown."

    def draw(axes: Any) -> None:
        own = [row.own for row in rows]
        dashes = {"color": WHITE, "edgecolor": SOFT, "linestyle": "--"}
        _bars(axes, [f"{row.label}  {row.form}" for row in rows], own, 0, [""] * len(rows))
        dashed = axes.barh(range(len(rows)), [row.of_leaves for row in rows], left=own, **dashes)
        axes.bar_label(dashed, [row.keeps for row in rows], padding=6)
        axes.set(xlim=(0, 1.7 * max(row.own + row.of_leaves for row in rows) or 1), xticks=[])

    cells = [(row.label, row.form, row.keeps) for row in rows]
    alt = "\n".join([title, *words.table(("operation", "result", "keeps"), cells)])
    return chart(title, alt, draw, note=note, size=(760, 24 + 24 * len(rows)))


def _bytes_kept(kept: list[autograd_graph.Saved], seen: set[int]) -> tuple[int, int]:
    """The bytes of the storages that are not ``seen`` yet: of results, and of leaves."""
    own = of_leaves = 0
    for x in (saved.value for saved in kept if is_tensor(saved.value)):
        storage = x.untyped_storage()
        # a number that was an operand is shown as a 0-d tensor
        if x.numel() and (x.ndim or x.grad_fn) and storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            # a view of a leaf is no leaf but lies on its memory
            if (x if x._base is None else x._base).is_leaf:
                of_leaves += storage.nbytes()
            else:
                own += storage.nbytes()
    return own, of_leaves
