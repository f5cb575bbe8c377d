"""``viz.saved``: the bytes that each operation keeps for backward, and what would change them."""

from collections import Counter
from math import prod
from typing import Any

from tensorkit.base import Tensor
from tensorkit.data import is_tensor
from tensorkit.viz import reading, table, words
from tensorkit.viz.drawing import Canvas, Picture, heading, said, text_width
from tensorkit.viz.palette import BLUE, INK, SOFT, WHITE
from tensorkit.viz.reading import Vertex

MOST_ROWS, BAR = 20, 320.0

Kept = dict[int, tuple[int, bool]]
"""Address of a storage -> its bytes, and whether a leaf lies on it (an input or a parameter)."""


def saved(loss: Tensor, **named: Tensor) -> Picture:
    """Picture of the memory kept for the backward of ``loss``, operation by operation.

    Each storage counts once, where it was first saved. What leaves keep (inputs, parameters) would
    be there without autograd too, and is told apart. Below: the peak while backward runs, and what
    ``no_grad``, ``detach``, ``loss.item()`` and micro-batches would change.

    >>> from tensorkit import viz
    >>> x = tk.ones(100, requires_grad=True)
    >>> print(viz.saved((x.exp() * 2).sum()).alt.partition("What")[0])
    Kept for backward: 400 bytes by 3 operations; besides, leaves hold 0 bytes
    operation     result          keeps
    ExpBackward0  (100,) float32  400 bytes
    MulBackward0  (100,) float32  0 bytes
    SumBackward0  () float32      0 bytes
    <BLANKLINE>
    """
    words.must_be_tensor("viz.saved", loss)
    if loss.grad_fn is None:
        return said("Nothing is kept", "This tensor has no graph: nothing is kept for backward.")
    with words.unseen():
        names = [*named.items(), *words.named_tensors(words.caller())]
        vertices = reading.read(loss, names, values=False)
        return _picture(vertices)


def _picture(vertices: list[Vertex]) -> Picture:
    operations = [it for it in vertices if not it.is_leaf]
    keeps = [_kept_by(it) for it in operations]
    if any("freed" in it.words for vertex in operations for it in vertex.saved):
        return said(
            "Nothing is kept any more",
            "An earlier backward freed what this graph kept. Try: viz.saved(loss) before "
            "loss.backward()",
        )
    rows = _first_savers(operations, keeps)
    everything = {key: value for kept in keeps for key, value in kept.items()}
    total = _bytes(everything, leaves=False)
    title = (
        f"Kept for backward: {words.n_bytes(total)} by "
        f"{words.count(len(operations), 'operation')}; "
        f"besides, leaves hold {words.n_bytes(_bytes(everything, leaves=True))}"
    )
    canvas = Canvas()
    low = heading(canvas, title, "Each storage counts once, where it was first saved.")
    low = _bars(canvas, rows, low)
    header = ("operation", "result", "keeps")
    lines = [(label, form, _words(own, leaves)) for label, form, own, leaves in rows]
    changes = _changes(vertices, operations, keeps, total)
    canvas.text(18, low + 22, "What changes it", 13, bold=True)
    table.draw(canvas, 18, low + 30, ("", "kept for backward", ""), changes)
    text = [title, *table.text(header, lines), "What changes it:"]
    text += [f"{what}: {size}{f' ({why})' if why else ''}" for what, size, why in changes]
    return Picture(title, canvas, "\n".join(text))


def _kept_by(vertex: Vertex) -> Kept:
    kept: Kept = {}
    for it in vertex.saved:
        # a number that was an operand is shown as a 0-d tensor
        if it.tensor is not None and it.tensor.numel() and (it.tensor.ndim or it.tensor.grad_fn):
            storage = it.tensor.untyped_storage()
            # a view of a leaf is no leaf but lies on its memory
            owner = getattr(it.tensor, "_viewed", it.tensor)
            kept[storage.data_ptr()] = (storage.nbytes(), owner.is_leaf)
    return kept


def _bytes(kept: Kept, *, leaves: bool) -> int:
    return sum(n for n, is_leaf in kept.values() if is_leaf is leaves)


def _words(own: int, leaves: int) -> str:
    return words.n_bytes(own) + (f", and {words.n_bytes(leaves)} of leaves" if leaves else "")


def _first_savers(operations: list[Vertex], keeps: list[Kept]) -> list[tuple[str, str, int, int]]:
    """Label, form of the result, bytes, bytes of leaves; many operations are added up by kind."""
    seen: set[int] = set()
    rows = []
    for it, kept in zip(operations, keeps, strict=True):
        new = {key: value for key, value in kept.items() if key not in seen}
        seen |= set(kept)
        rows.append((it.label, it.form, _bytes(new, leaves=False), _bytes(new, leaves=True)))
    if len(rows) <= MOST_ROWS:
        return rows
    kinds = Counter(it.title for it in operations)
    own: Counter[str] = Counter()
    leaves: Counter[str] = Counter()
    for it, (_, _, bytes_, of_leaves) in zip(operations, rows, strict=True):
        own[it.title] += bytes_
        leaves[it.title] += of_leaves
    order = sorted(kinds, key=lambda kind: (-own[kind], -leaves[kind], kind))
    found = [(f"{kinds[k]:,} {k}", "", own[k], leaves[k]) for k in order[:MOST_ROWS]]
    if order[MOST_ROWS:]:
        rest = order[MOST_ROWS:]
        n, bytes_, of_leaves = (sum(it[k] for k in rest) for it in (kinds, own, leaves))
        found.append((f"{n:,} others", "", bytes_, of_leaves))
    return found


def _bars(canvas: Canvas, rows: list[tuple[str, str, int, int]], top: float) -> float:
    left = 30 + max(text_width(label, 12, bold=True) for label, *_ in rows)
    forms = max(text_width(form, 11.5) for _, form, *_ in rows)
    start = left + forms + (14 if forms else 0)
    most = max(max(own + leaves for *_, own, leaves in rows), 1)
    for label, form, own, leaves in rows:
        canvas.text(18, top + 15, label, 12, INK)
        canvas.text(left, top + 15, form, 11.5, SOFT)
        wide, more = BAR * own / most, BAR * leaves / most
        canvas.rect(start, top + 3, wide, 16, BLUE)
        if more:
            canvas.rect(start + wide, top + 3, more, 16, WHITE, SOFT, dash="3 3", line=1)
        canvas.text(start + wide + more + 8, top + 15, _words(own, leaves), 11.5, INK)
        top += 22
    if any(leaves for *_, leaves in rows):
        key = "Dashed: memory of leaves, there without autograd too."
        canvas.text(18, top + 18, key, 11.5, SOFT)
        top += 22
    return top


# What would change it


def _changes(
    vertices: list[Vertex], operations: list[Vertex], keeps: list[Kept], total: int
) -> list[tuple[str, str, str]]:
    nodes = words.count(len(operations), "node")
    peak = _peak(vertices, operations, keeps)
    rows: list[tuple[str, float, str]] = [
        ("as it is", total, "until backward() has run"),
        ("peak while backward runs", peak, "with the gradients on their way"),
        ("with tk.no_grad()", 0, "nothing is recorded"),
    ]
    cut = _cut(vertices, operations, keeps, total)
    if cut is not None:
        rows.append((f"detach() after {cut[0]}", cut[1], "nothing before it gets a gradient"))
    rows += [
        ("losses.append(loss)", total, f"the list keeps {nodes}; backward() empties them"),
        ("losses.append(loss.item())", 0, "a number keeps no graph"),
    ]
    size, batched = _batch(operations)
    for parts in (2, 4):
        if size % parts == 0 and size > parts:
            less = total - batched + batched / parts
            why = f"backward() after each; first dimension {size} in parts"
            rows.append((f"{parts} micro-batches of {size // parts}", less, why))
    return [(what, words.n_bytes(n), why) for what, n, why in rows]


def _peak(vertices: list[Vertex], operations: list[Vertex], keeps: list[Kept]) -> int:
    """The most bytes at once while backward frees what was kept and makes gradients."""
    uses = Counter(key for kept in keeps for key, (_, is_leaf) in kept.items() if not is_leaf)
    sizes = {key: n for kept in keeps for key, (n, _) in kept.items()}
    kept_bytes = sum(sizes[key] for key in uses)
    alive: dict[int, int] = {}
    peak = 0
    for vertex, kept in zip(reversed(operations), reversed(keeps), strict=True):
        alive.setdefault(id(vertex), _gradient_bytes(vertex))
        for source in vertex.inputs:
            if source is not None:
                alive[id(vertices[source])] = _gradient_bytes(vertices[source])
        peak = max(peak, kept_bytes + sum(alive.values()))
        del alive[id(vertex)]
        for key in kept:
            uses[key] -= 1
            if not uses[key] and not kept[key][1]:
                kept_bytes -= sizes[key]
    return peak


def _gradient_bytes(vertex: Vertex) -> int:
    node = vertex.node
    if is_tensor(node):
        return int(node.numel() * node.itemsize)
    return prod(node.shape) * int(node.dtype.itemsize)


def _cut(
    vertices: list[Vertex], operations: list[Vertex], keeps: list[Kept], total: int
) -> tuple[str, int] | None:
    """The first operation whose result, detached, lets half of the memory go; and what is left.

    Only results that all earlier ones lead through are tried: in the order of the graph nothing
    before such a place is used after it.
    """
    last_use = list(range(len(vertices)))
    for place, vertex in enumerate(vertices):
        for source in vertex.inputs:
            if source is not None:
                last_use[source] = place
    needed_after: list[int] = []
    seen: set[int] = set()
    left = 0
    for kept in reversed(keeps):
        needed_after.append(left)
        for key, (n, is_leaf) in kept.items():
            if key not in seen and not is_leaf:
                left += n
            seen.add(key)
    reach = -1
    numbers = iter(zip(operations[:-1], reversed(needed_after), strict=False))
    for place, vertex in enumerate(vertices):
        if vertex.is_leaf or place == len(vertices) - 1:
            continue
        _, left = next(numbers)
        if reach <= place and 0 < left <= total / 2:
            return vertex.label, left
        reach = max(reach, last_use[place])
    return None


def _batch(operations: list[Vertex]) -> tuple[int, int]:
    """The first dimension that most of the kept memory has, and the bytes that have it."""
    found: Counter[int] = Counter()
    seen: set[int] = set()
    for vertex in operations:
        for it in vertex.saved:
            x: Any = it.tensor
            if x is None or not x.ndim or x.is_leaf or not x.numel():
                continue
            if x.untyped_storage().data_ptr() not in seen:
                seen.add(x.untyped_storage().data_ptr())
                found[x.shape[0]] += x.untyped_storage().nbytes()
    return found.most_common(1)[0] if found else (0, 0)
