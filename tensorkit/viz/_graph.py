"""``viz.graph``: what autograd recorded, as boxes and arrows."""

from collections import Counter

from tensorkit.base import Tensor
from tensorkit.viz import autograd_graph, boxes, words
from tensorkit.viz.autograd_graph import Group, Vertex
from tensorkit.viz.boxes import Box
from tensorkit.viz.drawing import FOLDED, LEAF, PLAIN, RESULT, Canvas
from tensorkit.viz.picture import Explanation, Picture

FLOW = "Values flow down along the arrows, gradients back up."
MEANINGS = {
    LEAF: "leaf: backward adds to its .grad",
    PLAIN: "operation",
    RESULT: "result",
    FOLDED: "several, folded",
}


def graph(t: Tensor) -> Picture:
    """Picture of the graph behind ``t``: operations, what they keep, leaves and their gradients.

    Tensors are called what they are called in the calling code. Values of intermediate results are
    shown where a name or a saved tensor still holds them; under ``autograd.recording()`` each
    operation shows its line too. A graph of more than 40 operations and leaves is folded: blocks
    that repeat become one box.

    The boxes are placed by graphviz where its program ``dot`` is installed.

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
        return Explanation(
            "No graph",
            "This tensor does not require grad: no operation on it was recorded. "
            "explain.no_grad(t) says why.",
        )
    with words.unrecorded():
        vertices = autograd_graph.read(t)
        groups = autograd_graph.fold(vertices)
        edges = autograd_graph.edges(vertices, groups)
        drawn = [_box(vertices, group) for group in groups]
    n_leaves = sum(vertex.is_leaf for vertex in vertices)
    operations = words.count(len(vertices) - n_leaves, "operation")
    title = f"Autograd graph: {operations}, {words.count(n_leaves, 'leaf')}"
    lines = [title]
    for number, box in enumerate(drawn):
        sources = [str(upper + 1) for upper, lower in edges if lower == number]
        of = f" of {' and '.join(sources)}" if sources else ""
        lines.append(f"{number + 1}. {box.title}{of}: {'; '.join(filter(None, box.lines))}")
    canvas = Canvas(title, FLOW)
    boxes.draw(canvas, drawn, edges, MEANINGS)
    return Picture(title, canvas, "\n".join(lines))


def _box(vertices: list[Vertex], group: Group) -> Box:
    """The box of a vertex or of a folded group."""
    if len(group.members) > 1:
        return _folded([vertices[member] for member in group.members], group.times)
    v = vertices[group.members[0]]
    if v.is_leaf:
        return Box(v.label, [f"leaf, {v.form}", v.value, "gradient → .grad"], LEAF)
    lines = [v.form, v.value]
    lines += [f"keeps {saved.name} {saved.words}" for saved in v.saved if saved.words]
    lines.append(autograd_graph.line_of(v.node))
    return Box(v.label, lines, RESULT if v is vertices[-1] else PLAIN)


def _folded(members: list[Vertex], times: int) -> Box:
    """A box for several operations, and leaves among them."""
    operations = [vertex for vertex in members if not vertex.is_leaf]
    leaves = [vertex.node.numel() for vertex in members if vertex.is_leaf]
    title, n_shown = words.count(len(operations), "operation"), len(operations) // times
    kinds = Counter(vertex.kind for vertex in operations).most_common(3)
    lines = [", ".join(f"{n} {kind}" for kind, n in kinds)]
    if times > 1:
        title = f"{times} times the block"
        more = f" … {n_shown} operations" if n_shown > 6 else ""
        forms = {vertex.form for vertex in operations}
        block = ", ".join(vertex.kind for vertex in operations[: min(n_shown, 6)])
        lines = [block + more, *(forms if len(forms) == 1 else ())]
    if leaves:
        lines.append(f"{words.count(len(leaves), 'leaf')}, {words.count(sum(leaves), 'element')}")
    return Box(title, lines, FOLDED)
