"""Boxes of text joined by arrows: how pictures of graphs are drawn.

Where graphviz' program ``dot`` is installed, it says where the boxes go; elsewhere ``layers``
does. With the variable ``TENSORKIT_DOT=0`` dot is never called: then a picture is the same on every
machine, as in the notebooks of the course.
"""

import math
import os
import shutil
from dataclasses import dataclass, field
from typing import Any

from tensorkit.viz import layers, words
from tensorkit.viz.drawing import Canvas, shortened, text_width
from tensorkit.viz.layers import GAP, ROW_GAP, Edge, Layout
from tensorkit.viz.palette import INK, PLAIN, SOFT

SIZE, LINE, PAD, WIDEST, INCH = 12.0, 16.5, 9.0, 250.0, 72.0


@dataclass
class Box:
    """A heading and lines below it, on a ground whose colour and outline say what it is."""

    title: str
    lines: list[str] = field(default_factory=list)
    ground: str = PLAIN
    dash: str = ""
    radius: float = 4.0
    outline: float = 1.2

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that its text needs."""
        widths = [text_width(self.title, SIZE, bold=True)]
        widths += [text_width(line, SIZE - 1) for line in self.lines]
        return min(max(widths), WIDEST) + 2 * PAD, LINE * (1 + len(self.lines)) + 1.2 * PAD


def draw(canvas: Canvas, boxes: list[Box], edges: list[Edge], left: float, top: float) -> None:
    """Draw boxes from top to bottom with an arrow for each edge."""
    if shutil.which("dot") and os.environ.get("TENSORKIT_DOT") != "0":
        digraph = _digraph(boxes, edges)
        digraph.edge_attr["arrowhead"] = "none"  # the arrows are drawn here
        layout = _dots_layout(digraph.pipe(format="plain", encoding="utf-8"), boxes, edges)
    else:
        layout = layers.layout([box.size for box in boxes], edges)
    for route in layout.routes:
        first, *others = [(left + x, top + y) for x, y in route]
        curves = zip(others[0::3], others[1::3], others[2::3], strict=True)
        canvas.path([("M", *first), *(("C", *a, *b, *c) for a, b, c in curves)], SOFT, 1.3)
        (from_x, from_y), (x, y) = others[-2:]
        length = math.hypot(x - from_x, y - from_y) or 1.0
        canvas.arrowhead(x, y, (x - from_x) / length, (y - from_y) / length, SOFT)
    for box, (x, y) in zip(boxes, layout.boxes, strict=True):
        _draw_box(canvas, box, left + x, top + y)


def _draw_box(canvas: Canvas, box: Box, middle: float, y: float) -> None:
    width, height = box.size
    _draw_ground(canvas, middle - width / 2, y, width, height, box)
    y += 0.6 * PAD + 0.72 * LINE
    title = shortened(box.title, WIDEST / 1.1, SIZE)
    canvas.text(middle, y, title, SIZE, INK, anchor="middle", bold=True)
    for line in box.lines:
        y += LINE
        canvas.text(middle, y, shortened(line, WIDEST, SIZE - 1), SIZE - 1, INK, anchor="middle")


def _draw_ground(canvas: Canvas, x: float, y: float, width: float, height: float, box: Box) -> None:
    style: Any = {"radius": box.radius, "line": box.outline, "dash": box.dash}
    canvas.rect(x, y, width, height, box.ground, SOFT, **style)


def key(canvas: Canvas, left: float, y: float, samples: list[Box]) -> None:
    """Write in a row what grounds and outlines mean: the title of each sample."""
    for sample in samples:
        _draw_ground(canvas, left, y - 11, 20, 14, sample)
        left = canvas.text(left + 26, y, sample.title, 11.5, SOFT) + 20


def dot_source(boxes: list[Box], edges: list[Edge]) -> str:
    """The graph in graphviz' language."""
    source: str = _digraph(boxes, edges).source
    return source


def _digraph(boxes: list[Box], edges: list[Edge]) -> Any:
    """The graph with the sizes that the boxes have here."""
    graphviz = words.library("graphviz")
    digraph: Any = graphviz.Digraph(
        graph_attr={"nodesep": str(GAP / INCH), "ranksep": str(ROW_GAP / INCH)},
        node_attr={"shape": "box", "style": "filled", "fixedsize": "true", "fontsize": "9"},
    )
    for number, box in enumerate(boxes, start=1):
        lines = (shortened(it, WIDEST, SIZE) for it in [box.title, *box.lines])
        label = "\\n".join(map(graphviz.escape, lines))
        width, height = (f"{it / INCH:.3f}" for it in box.size)
        digraph.node(str(number), label, fillcolor=box.ground, width=width, height=height)
    for upper, lower in edges:
        digraph.edge(str(upper + 1), str(lower + 1))
    return digraph


def _dots_layout(plain: str, boxes: list[Box], edges: list[Edge]) -> Layout:
    """The layout that dot wrote: in inches, from the lower left corner."""
    lines = [line.split() for line in plain.splitlines()]
    height = float(lines[0][3])

    def points(numbers: list[str]) -> list[tuple[float, float]]:
        pairs = zip(map(float, numbers[0::2]), map(float, numbers[1::2]), strict=True)
        return [(x * INCH, (height - y) * INCH) for x, y in pairs]

    middles = [points(line[2:4])[0] for line in lines if line[0] == "node"]
    routes: dict[Edge, list[Any]] = {}
    for _, upper, lower, n, *numbers in (line for line in lines if line[0] == "edge"):
        route = points(numbers[: 2 * int(n)])
        routes.setdefault((int(upper) - 1, int(lower) - 1), []).append(route)
    tops = [(x, y - box.size[1] / 2) for (x, y), box in zip(middles, boxes, strict=True)]
    return Layout(tops, [routes[edge].pop() for edge in edges])
