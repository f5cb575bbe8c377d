"""Boxes of text joined by arrows: how pictures of graphs are drawn.

Where graphviz' program ``dot`` is installed, it says where the boxes go. With the variable
``TENSORKIT_DOT=0`` it is never called: then a picture is the same on every machine, as in the
notebooks of the course.

Elsewhere ``layout`` does, in rows from top to bottom. Its steps are those of Sugiyama, Tagawa and
Toda, "Methods for visual understanding of hierarchical system structures" (1981): give each box a
row; lead long edges past the rows between by invisible boxes; sort each row by where its
neighbours stand; then move the boxes close to their neighbours.
"""

import math
import os
import shutil
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tensorkit.viz import drawing, words
from tensorkit.viz.drawing import INK, MARGIN, SOFT, Canvas, text_width

SIZE, LINE, PAD, INCH, MOST_CHARACTERS = 12.0, 16.5, 9.0, 72.0, 46
GAP, ROW_GAP, BEND_WIDTH, N_SORTS, N_TURNS = 22.0, 34.0, 14.0, 8, 12

# The outline of a box on each ground, which tells it apart without colour.
_OUTLINES: dict[str, Any] = {
    drawing.LEAF: {"radius": 12.0},
    drawing.PLAIN: {"radius": 4.0},
    drawing.RESULT: {"radius": 4.0, "line": 2.6},
    drawing.FOLDED: {"radius": 4.0, "dash": "5 3"},
}

Edge = tuple[int, int]
Point = tuple[float, float]
# The middle of each box's upper side, and each edge as the points of Bézier curves.
Layout = tuple[list[Point], list[list[Point]]]


@dataclass
class Box:
    """A heading and lines below it, on a ground that says what it is."""

    title: str
    lines: list[str]
    ground: str = drawing.PLAIN

    @property
    def text(self) -> list[str]:
        """The heading and the lines, as long as they may be."""
        return [words.shortened(t, MOST_CHARACTERS) for t in (self.title, *self.lines) if t]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that its text needs."""
        title, *lines = self.text
        widths = [text_width(line, SIZE - 1) for line in lines]
        width = max([text_width(title, SIZE, bold=True), *widths])
        return width + 2 * PAD, LINE * (1 + len(lines)) + 1.2 * PAD


def draw(canvas: Canvas, boxes: list[Box], edges: list[Edge], meanings: dict[str, str]) -> None:
    """Draw boxes from top to bottom with an arrow for each edge; below, what their grounds mean."""
    has_dot = shutil.which("dot") and os.environ.get("TENSORKIT_DOT") != "0"
    positions, routes = (_layout_of_dot if has_dot else layout)([box.size for box in boxes], edges)
    left, top = MARGIN, canvas.top
    for route in routes:
        first, *others = [(left + x, top + y) for x, y in route]
        curves = zip(others[0::3], others[1::3], others[2::3], strict=True)
        canvas.path([("M", *first), *(("C", *a, *b, *c) for a, b, c in curves)], SOFT, 1.3)
        (from_x, from_y), (x, y) = others[-2:]
        length = math.hypot(x - from_x, y - from_y) or 1.0
        canvas.arrowhead(x, y, (x - from_x) / length, (y - from_y) / length, SOFT)
    for box, (x, y) in zip(boxes, positions, strict=True):
        width, height = box.size
        x, y = left + x, top + y
        canvas.rect(x - width / 2, y, width, height, box.ground, SOFT, **_OUTLINES[box.ground])
        y += 0.6 * PAD + 0.72 * LINE
        title, *lines = box.text
        canvas.text(x, y, title, SIZE, INK, anchor="middle", bold=True)
        for line in lines:
            y += LINE
            canvas.text(x, y, line, SIZE - 1, INK, anchor="middle")
    left, y = MARGIN, canvas.low + 28
    used = {box.ground for box in boxes}
    for ground, meaning in ((ground, meanings[ground]) for ground in meanings if ground in used):
        canvas.rect(left, y - 11, 20, 14, ground, SOFT, **_OUTLINES[ground])
        left = canvas.text(left + 26, y, meaning, 11.5, SOFT) + 20


def _layout_of_dot(sizes: list[Point], edges: list[Edge]) -> Layout:
    """Where dot places boxes of these sizes. It counts inches, from the lower left corner."""
    digraph = words.library("graphviz").Digraph(
        graph_attr={"nodesep": str(GAP / INCH), "ranksep": str(ROW_GAP / INCH)},
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
        edge_attr={"arrowhead": "none"},  # the arrows are drawn here
    )
    for number, (width, height) in enumerate(sizes):
        digraph.node(str(number), width=f"{width / INCH:.3f}", height=f"{height / INCH:.3f}")
    digraph.edges((str(upper), str(lower)) for upper, lower in edges)
    plain = digraph.pipe(format="plain", encoding="utf-8")
    (_, _, _, total), *lines = (line.split() for line in plain.splitlines())

    def points(numbers: list[str]) -> list[Point]:
        pairs = zip(map(float, numbers[0::2]), map(float, numbers[1::2]), strict=True)
        return [(x * INCH, (float(total) - y) * INCH) for x, y in pairs]

    middles = [points(line[2:4])[0] for line in lines if line[0] == "node"]
    positions = [(x, y - height / 2) for (x, y), (_, height) in zip(middles, sizes, strict=True)]
    routes: dict[Edge, list[list[Point]]] = defaultdict(list)
    for _, upper, lower, n, *numbers in (line for line in lines if line[0] == "edge"):
        routes[int(upper), int(lower)].append(points(numbers[: 2 * int(n)]))
    return positions, [routes[edge].pop() for edge in edges]


def layout(sizes: list[Point], edges: list[Edge]) -> Layout:
    """Place boxes of these sizes; an edge (upper, lower) has upper < lower."""
    above_last = [0] * len(sizes)  # rows between a box and the last one
    for upper, lower in sorted(edges, reverse=True):
        above_last[upper] = max(above_last[upper], above_last[lower] + 1)
    row_of = [max(above_last) - above for above in above_last]
    widths = [width for width, _ in sizes]
    heights = [height for _, height in sizes]
    chains = []  # the boxes of each edge, invisible ones in the rows between
    for upper, lower in edges:
        bends = range(row_of[upper] + 1, row_of[lower])
        chains.append([upper, *range(len(widths), len(widths) + len(bends)), lower])
        row_of += bends
        widths += [BEND_WIDTH] * len(bends)
        heights += [0.0] * len(bends)
    rows: list[list[int]] = [[] for _ in range(max(row_of) + 1)]
    for box in range(len(widths)):
        rows[row_of[box]].append(box)
    centres = _centres(rows, widths, chains)
    row_heights = [max(heights[box] for box in row) for row in rows]
    tops = [sum(row_heights[:row]) + row * ROW_GAP for row in row_of]
    routes, n_drawn = [], Counter[Edge]()
    for edge, chain in zip(edges, chains, strict=True):
        # h * h takes h twice: two arrows beside each other
        aside = 14 * (n_drawn[edge] - (edges.count(edge) - 1) / 2)
        n_drawn[edge] += 1
        first, *between, last = [(centres[box] + aside, tops[box], box) for box in chain]
        points = [(first[0], first[1] + heights[first[2]])]
        for x, y, bend in between:
            points += [(x, y), (x, y + row_heights[row_of[bend]])]
        routes.append(_route([*points, last[:2]]))
    return [(centres[box], tops[box]) for box in range(len(sizes))], routes


def _route(points: list[Point]) -> list[Point]:
    """A line through the points that leaves and reaches each of them upright."""
    route = points[:1]
    for (x, y), (to_x, to_y) in pairwise(points):
        route += [(x, (y + to_y) / 2), (to_x, (y + to_y) / 2), (to_x, to_y)]
    return route


def _centres(
    rows: list[list[int]], widths: list[float], chains: list[list[int]]
) -> dict[int, float]:
    """The centre of each box: down and up, rows are sorted and moved close to their neighbours."""
    above, below = defaultdict(list), defaultdict(list)
    for chain in chains:
        for upper, lower in pairwise(chain):
            above[lower].append(upper)
            below[upper].append(lower)
    centres = dict.fromkeys(range(len(widths)), 0.0)
    for turn in range(N_TURNS):
        first, second = (above, below) if turn % 2 else (below, above)
        for row in rows if turn % 2 else reversed(rows):
            wanted = {}
            for box in row:
                near = first[box] or second[box] or [box]
                wanted[box] = sum(centres[box] for box in near) / len(near)
            if turn < N_SORTS:
                row.sort(key=wanted.__getitem__)
            middles = _apart([wanted[box] for box in row], [widths[box] for box in row])
            centres.update(zip(row, middles, strict=True))
    left = min(centres[box] - widths[box] / 2 for box in centres)
    return {box: centre - left for box, centre in centres.items()}


def _apart(wanted: list[float], widths: list[float]) -> list[float]:
    """Centres near to ``wanted`` that keep their order and a gap.

    Moved to the right until nothing overlaps, moved to the left, and the mean of both.
    """
    distances = [(one + other) / 2 + GAP for one, other in pairwise(widths)]
    packed = np.cumsum([0.0, *distances])
    free = np.array(wanted) - packed
    right, left = np.maximum.accumulate(free), np.minimum.accumulate(free[::-1])[::-1]
    middles: list[float] = ((left + right) / 2 + packed).tolist()
    return middles
