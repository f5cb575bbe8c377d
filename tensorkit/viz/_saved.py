"""``viz.saved``: the bytes that each operation keeps for backward, and what would change them."""

from typing import Any, NamedTuple

from tensorkit.base import Tensor
from tensorkit.viz import autograd_graph, words
from tensorkit.viz.autograd_graph import Vertex
from tensorkit.viz.charts import bars, chart
from tensorkit.viz.palette import SOFT, WHITE
from tensorkit.viz.picture import Picture, text_picture

MOST_ROWS = 20


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


def saved(loss: Tensor, **named: Tensor) -> Picture:
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
        nothing = "This tensor has no graph: nothing is kept for backward."
        return text_picture("Nothing is kept", nothing)
    with words.unrecorded():
        names = [*named.items(), *words.named_tensors(words.caller())]
        vertices = autograd_graph.read(loss, names, values=False)
        operations = [it for it in vertices if not it.is_leaf]
        if any("freed" in it.words for vertex in operations for it in vertex.saved):
            freed = "An earlier backward freed what this graph kept. Try: viz.saved(loss) before "
            return text_picture("Nothing is kept any more", freed + "loss.backward()")
        rows = _rows(operations)
    total, of_leaves = sum(it.own for it in rows), sum(it.of_leaves for it in rows)
    n_nodes = len(rows)
    title = (
        f"Kept for backward: {words.n_bytes(total)} by {words.count(n_nodes, 'operation')}; "
        f"besides, leaves hold {words.n_bytes(of_leaves)}"
    )
    note = "Each storage counts once, where it was first saved."
    note += " Dashed: memory of leaves, there without autograd too." if of_leaves else ""
    if n_nodes > MOST_ROWS:
        rows = sorted(rows, key=lambda it: -it.own - it.of_leaves)[:MOST_ROWS]
        note += f" The {MOST_ROWS} operations that keep most are shown."

    def draw(axes: Any) -> None:
        own = [it.own for it in rows]
        dashes = {"color": WHITE, "edgecolor": SOFT, "linestyle": "--"}
        bars(axes, [f"{it.label}  {it.form}" for it in rows], own, 0, [""] * len(rows))
        dashed = axes.barh(range(len(rows)), [it.of_leaves for it in rows], left=own, **dashes)
        axes.bar_label(dashed, [it.keeps for it in rows], padding=6)
        most = max(it.own + it.of_leaves for it in rows) or 1
        axes.set(xlim=(0, 1.7 * most), xticks=[])

    header = ("operation", "result", "keeps")
    table = words.table(header, [(it.label, it.form, it.keeps) for it in rows])
    alt = "\n".join([title, *table])
    return chart(title, alt, draw, note=note, size=(760, 24 + 24 * len(rows)))


def _rows(operations: list[Vertex]) -> list[Row]:
    """A row per operation; a storage counts where it was first saved."""
    seen: set[int] = set()
    rows = []
    for vertex in operations:
        own = of_leaves = 0
        for x in (it.tensor for it in vertex.saved):
            # a number that was an operand is shown as a 0-d tensor
            if x is None or not x.numel() or not (x.ndim or x.grad_fn):
                continue
            storage = x.untyped_storage()
            if storage.data_ptr() in seen:
                continue
            seen.add(storage.data_ptr())
            # a view of a leaf is no leaf but lies on its memory
            if (x if x._base is None else x._base).is_leaf:
                of_leaves += storage.nbytes()
            else:
                own += storage.nbytes()
        rows.append(Row(vertex.label, vertex.form, own, of_leaves))
    return rows
