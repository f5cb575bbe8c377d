"""``viz.graph``: what autograd recorded, as boxes and arrows."""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from tensorkit.base import Tensor
from tensorkit.viz import boxes, dot, folding, layers, reading, words
from tensorkit.viz.boxes import Box
from tensorkit.viz.drawing import Canvas, Picture, heading, said
from tensorkit.viz.folding import Group
from tensorkit.viz.palette import FOLDED, LEAF, PLAIN, RESULT
from tensorkit.viz.reading import Vertex

LEFT = 18.0
FLOW = "Values flow down along the arrows, gradients back up."


def graph(
    t: Tensor, *, values: bool = True, most: int = 40, by_dot: bool = False, **named: Tensor
) -> Picture:
    """Picture of the graph behind ``t``: operations, what they keep, leaves and their gradients.

    Tensors are called what they are called in the calling code; keywords give other names. Values
    of intermediate results are shown where a name, a saved tensor or a recording still holds them;
    under ``autograd.recording()`` each operation shows its line too. A graph of more than ``most``
    operations and leaves is folded: blocks that repeat become one box.

    The boxes are placed by tensorkit itself, so that the picture is the same on every machine;
    ``by_dot`` has graphviz place the same boxes, where its program ``dot`` is installed.
    ``picture.dot`` holds the graph in graphviz' language.

    >>> from tensorkit import viz
    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> viz.graph((x * x).sum())
    Autograd graph: 2 operations, 1 leaf
    1. x: leaf, (2,) float32, [1., 2.]; backward adds its gradient to x.grad
    2. MulBackward0 of 1 and 1: (2,) float32; keeps _saved_other (2,) float32, _saved_self
       (2,) float32
    3. SumBackward0 of 2: () float32, 5.; keeps _saved_self_sym_sizes (2,)
    """
    words.must_be_tensor("viz.graph", t)
    if not t.requires_grad:
        return said(
            "No graph",
            "This tensor does not require grad: no operation on it was recorded. "
            "explain.no_grad(t) says why.",
        )
    with words.unseen():
        names = [*named.items(), *words.named_tensors(words.caller())]
        return _picture(reading.read(t, names, values=values), most, by_dot)


def _picture(vertices: list[Vertex], most: int, by_dot: bool) -> Picture:
    groups = folding.fold(vertices, most)
    edges = folding.edges(vertices, groups)
    n_leaves = sum(it.is_leaf for it in vertices)
    title = (
        f"Autograd graph: {words.count(len(vertices) - n_leaves, 'operation')}, "
        f"{words.count(n_leaves, 'leaf')}"
    )
    last = len(vertices) - 1
    drawn = [box_of(vertices, group, is_result=last in group.members) for group in groups]
    canvas = Canvas()
    low = heading(canvas, title, FLOW)
    boxes.draw(canvas, drawn, edges, LEFT, low, dot.place if by_dot else layers.place)
    key(canvas, drawn)
    picture = GraphPicture(title, canvas, _alt(title, vertices, groups, edges))
    labels = ["\n".join([box.title, *box.lines]) for box in drawn]
    picture.dot_source = partial(dot.source, labels, [box.ground for box in drawn], edges)
    return picture


class GraphPicture(Picture):
    """A picture of a graph; graphviz is imported when its language is asked for."""

    dot_source: Callable[[], str]

    @property
    def dot(self) -> str:  # type: ignore[override]  # other pictures have none
        """The graph in graphviz' language."""
        return self.dot_source()


def key(canvas: Canvas, drawn: list[Box]) -> None:
    """Write what the boxes' grounds mean, below the graph."""
    used = {box.ground for box in drawn}
    samples = [Box(title, ground=ground, **style) for ground, (title, style) in _STYLES.items()]
    boxes.key(canvas, LEFT, canvas.extent[1] + 28, [it for it in samples if it.ground in used])


# What a box on each ground is, and the outline that tells it apart without colour.
_STYLES: dict[str, tuple[str, Any]] = {
    LEAF: ("leaf: backward adds to its .grad", {"radius": 12}),
    PLAIN: ("operation", {}),
    RESULT: ("result", {"outline": 2.6}),
    FOLDED: ("several, folded", {"dash": "5 3"}),
}


def box_of(vertices: list[Vertex], group: Group, *, is_result: bool = False) -> Box:
    """The box of a vertex or of a folded group."""
    if len(group.members) > 1:
        return _box(*_summary(vertices, group), FOLDED)
    it = vertices[group.members[0]]
    if it.is_leaf:
        lines = [it.form, *filter(None, [it.value]), "gradient → .grad"]
        return _box(it.title, lines, LEAF)
    lines = [f"{it.name}: {it.form}" if it.name else it.form, *filter(None, [it.value])]
    lines += [f"keeps {saved.name.removeprefix('_saved_')} {saved.words}" for saved in it.saved]
    lines += ["gradient → .grad (retain_grad)"] if it.retains_grad else []
    lines += [it.line] if it.line else []
    return _box(it.title, lines, RESULT if is_result else PLAIN)


def _box(title: str, lines: list[str], ground: str) -> Box:
    return Box(title, lines, ground, **_STYLES[ground][1])


def _summary(vertices: list[Vertex], group: Group) -> tuple[str, list[str]]:
    members = [vertices[place] for place in group.members]
    leaves = [it for it in members if it.is_leaf]
    operations = [it for it in members if not it.is_leaf]
    kinds = Counter(it.title for it in operations).most_common()
    if group.times > 1:
        title = f"{group.times} times the block"
        lines = [", ".join(it.title for it in operations[: min(group.block, 6)])]
        lines[0] += f" … {group.block} operations" if group.block > 6 else ""
        if len({it.form for it in operations}) == 1:
            lines.append(operations[0].form)
    elif operations:
        title = words.count(len(operations), "operation")
        title = f"{group.module}, {title}" if group.module else title
        lines = [", ".join(f"{n} {kind}" for kind, n in kinds[:3])]
        lines[0] += f" and {len(kinds) - 3} other kinds" if len(kinds) > 3 else ""
    else:
        title, lines = words.count(len(leaves), "leaf"), []
    if leaves:
        n = sum(it.node.numel() for it in leaves)
        what = words.count(n, "element")
        lines.append(f"{words.count(len(leaves), 'leaf')}, {what}" if operations else what)
        names = sorted((it.name for it in leaves), key=_numbers_as_numbers)
        if all(names):
            lines.append(f"{names[0]} … {names[-1]}")
    return title, lines


def _numbers_as_numbers(name: str) -> str:
    return re.sub(r"\d+", lambda found: found[0].zfill(9), name)


def _alt(
    title: str, vertices: list[Vertex], groups: list[Group], edges: list[tuple[int, int]]
) -> str:
    lines = [title]
    for number, group in enumerate(groups):
        it = vertices[group.members[0]]
        if len(group.members) > 1:
            sources = sorted({source for source, target in edges if target == number})
            head, below = _summary(vertices, group)
            text = f"{head}{_of(sources)}: {'; '.join(below)}"
        elif it.is_leaf:
            home = f"{it.name}.grad" if it.name else "its .grad"
            facts = ", ".join(filter(None, [it.form, it.value]))
            name = f"{it.name}: leaf" if it.name else "leaf"
            text = f"{name}, {facts}; backward adds its gradient to {home}"
        else:
            home_of = {place: at for at, each in enumerate(groups) for place in each.members}
            sources = [home_of[place] for place in it.inputs if place is not None]
            facts = ", ".join(filter(None, [it.form, it.value]))
            text = f"{it.label}{_of(sources)}: {facts}"
            if it.saved:
                kept = ", ".join(f"{saved.name} {saved.words}" for saved in it.saved)
                text += f"; keeps {kept}"
            if it.retains_grad:
                text += "; retain_grad keeps its gradient"
            if it.line:
                text += f"; {it.line}"
        lines.append(f"{number + 1}. {text}")
    return "\n".join(lines)


def _of(sources: list[int]) -> str:
    return f" of {' and '.join(str(it + 1) for it in sources)}" if sources else ""
