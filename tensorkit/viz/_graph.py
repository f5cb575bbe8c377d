"""``viz.graph``: what autograd recorded, as boxes and arrows."""

from collections import Counter
from typing import Any

from tensorkit.base import Tensor
from tensorkit.viz import autograd_graph, boxes, folding, words
from tensorkit.viz.autograd_graph import Vertex
from tensorkit.viz.boxes import Box
from tensorkit.viz.drawing import MARGIN, Canvas, heading
from tensorkit.viz.folding import Group
from tensorkit.viz.palette import FOLDED, LEAF, PLAIN, RESULT
from tensorkit.viz.picture import Picture, text_picture

FLOW = "Values flow down along the arrows, gradients back up."


def graph(t: Tensor, *, values: bool = True, most: int = 40, **named: Tensor) -> Picture:
    """Picture of the graph behind ``t``: operations, what they keep, leaves and their gradients.

    Tensors are called what they are called in the calling code; keywords give other names. Values
    of intermediate results are shown where a name or a saved tensor still holds them; under
    ``autograd.recording()`` each operation shows its line too. A graph of more than ``most``
    operations and leaves is folded: blocks that repeat become one box.

    The boxes are placed by graphviz where its program ``dot`` is installed. ``picture.dot`` holds
    the graph in graphviz' language.

    >>> from tensorkit import viz
    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> viz.graph((x * x).sum())
    Autograd graph: 2 operations, 1 leaf
    1. x: leaf, (2,) float32; [1., 2.]; gradient → .grad
    2. MulBackward0 of 1 and 1: (2,) float32; keeps input (2,) float32; keeps other (2,) float32
    3. SumBackward0 of 2: () float32; 5.; keeps shape (2,)
    """
    words.must_be_tensor("viz.graph", t)
    if not t.requires_grad:
        return text_picture(
            "No graph",
            "This tensor does not require grad: no operation on it was recorded. "
            "explain.no_grad(t) says why.",
        )
    with words.unrecorded():
        names = [*named.items(), *words.named_tensors(words.caller())]
        return _picture(autograd_graph.read(t, names, values=values), most)


def _picture(vertices: list[Vertex], most: int) -> Picture:
    groups = folding.fold(vertices, most)
    edges = folding.edges(vertices, groups)
    n_leaves = sum(it.is_leaf for it in vertices)
    operations = words.count(len(vertices) - n_leaves, "operation")
    title = f"Autograd graph: {operations}, {words.count(n_leaves, 'leaf')}"
    drawn = [box_of(vertices, group) for group in groups]
    lines = [title]
    for number, box in enumerate(drawn):
        sources = [str(upper + 1) for upper, lower in edges if lower == number]
        of = f" of {' and '.join(sources)}" if sources else ""
        lines.append(f"{number + 1}. {box.title}{of}: {'; '.join(box.lines)}")
    canvas = Canvas()
    low = heading(canvas, title, FLOW)
    picture = Picture(title, canvas, "\n".join(lines))
    boxes.draw(canvas, drawn, edges, MARGIN, low)
    picture._dot_source = lambda: boxes.dot_source(drawn, edges)
    key(canvas, drawn)
    return picture


def key(canvas: Canvas, drawn: list[Box]) -> None:
    """Write what the boxes' grounds mean, below the graph."""
    used = {box.ground for box in drawn}
    samples = [Box(title, ground=ground, **style) for ground, (title, style) in _STYLES.items()]
    below = canvas.extent[1] + 28
    boxes.key(canvas, MARGIN, below, [it for it in samples if it.ground in used])


# What a box on each ground is, and the outline that tells it apart without colour.
_STYLES: dict[str, tuple[str, Any]] = {
    LEAF: ("leaf: backward adds to its .grad", {"radius": 12}),
    PLAIN: ("operation", {}),
    RESULT: ("result", {"outline": 2.6}),
    FOLDED: ("several, folded", {"dash": "5 3"}),
}


def box_of(vertices: list[Vertex], group: Group) -> Box:
    """The box of a vertex or of a folded group."""
    if len(group.members) > 1:
        title, lines = _summary(vertices, group)
        return _box(title, lines, FOLDED)
    it = vertices[group.members[0]]
    if it.is_leaf:
        lines = [f"leaf, {it.form}", it.value, "gradient → .grad"]
        return _box(it.title, lines, LEAF)
    lines = [it.form, it.value]
    lines += [f"keeps {saved.name} {saved.words}" for saved in it.saved]
    if it.tensor is not None and it.tensor.retains_grad:
        lines.append("gradient → .grad (retain_grad)")
    return _box(it.label, [*lines, it.line], RESULT if it is vertices[-1] else PLAIN)


def _box(title: str, lines: list[str], ground: str) -> Box:
    return Box(title, [it for it in lines if it], ground, **_STYLES[ground][1])


def _summary(vertices: list[Vertex], group: Group) -> tuple[str, list[str]]:
    """Title and lines for a folded group."""
    members = [vertices[it] for it in group.members]
    leaves = [it for it in members if it.is_leaf]
    operations = [it for it in members if not it.is_leaf]
    title, lines = words.count(len(operations), "operation"), []
    if group.times > 1:
        title = f"{group.times} times the block"
        names = ", ".join(it.title for it in operations[: min(group.block, 6)])
        lines.append(f"{names} … {group.block} operations" if group.block > 6 else names)
        lines += {it.form for it in operations} if len({it.form for it in operations}) == 1 else []
    elif operations:
        kinds = Counter(it.title for it in operations).most_common(3)
        lines.append(", ".join(f"{n} {kind}" for kind, n in kinds) + ", …" * (len(kinds) == 3))
    if leaves:
        n = words.count(sum(it.node.numel() for it in leaves), "element")
        lines.append(f"{words.count(len(leaves), 'leaf')}, {n}" if operations else n)
    return title if operations else words.count(len(leaves), "leaf"), lines
