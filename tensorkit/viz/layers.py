"""Where the boxes of a graph go without graphviz: rows from top to bottom, edges pointing down.

The steps of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures" (1981): give each box a row; lead long edges past the rows between by invisible boxes;
sort each row by where its neighbours stand; then move the boxes close to their neighbours.
"""

from collections import Counter, defaultdict
from itertools import pairwise
from typing import NamedTuple

GAP, ROW_GAP, BEND_WIDTH, N_SORTS, N_TURNS = 22.0, 34.0, 14.0, 8, 12
Edge = tuple[int, int]
Point = tuple[float, float]


class Layout(NamedTuple):
    """The middle of each box's upper side, and each edge as the points of Bézier curves."""

    boxes: list[Point]
    routes: list[list[Point]]


def layout(sizes: list[tuple[float, float]], edges: list[Edge]) -> Layout:
    """Place boxes of these sizes; an edge (upper, lower) has upper < lower."""
    above_last = [0] * len(sizes)  # rows between a box and the last one
    for upper, lower in sorted(edges, reverse=True):
        above_last[upper] = max(above_last[upper], above_last[lower] + 1)
    row_of = [max(above_last) - it for it in above_last]
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
    row_heights = [max(heights[it] for it in row) for row in rows]
    tops = [sum(row_heights[:row]) + row * ROW_GAP for row in row_of]
    routes, n_drawn = [], Counter[Edge]()
    for edge, chain in zip(edges, chains, strict=True):
        # h * h takes h twice: two arrows beside each other
        aside = 14 * (n_drawn[edge] - (edges.count(edge) - 1) / 2)
        n_drawn[edge] += 1
        first, *between, last = [(centres[it] + aside, tops[it], it) for it in chain]
        points = [(first[0], first[1] + heights[first[2]])]
        for x, y, bend in between:
            points += [(x, y), (x, y + row_heights[row_of[bend]])]
        routes.append(_route([*points, last[:2]]))
    return Layout([(centres[it], tops[it]) for it in range(len(sizes))], routes)


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
                wanted[box] = sum(centres[it] for it in near) / len(near)
            if turn < N_SORTS:
                row.sort(key=wanted.__getitem__)
            middles = _apart([wanted[it] for it in row], [widths[it] for it in row])
            centres.update(zip(row, middles, strict=True))
    left = min(centres[it] - widths[it] / 2 for it in centres)
    return {box: centre - left for box, centre in centres.items()}


def _apart(wanted: list[float], widths: list[float]) -> list[float]:
    """Centres near to ``wanted`` that keep their order and a gap.

    Moved to the right until nothing overlaps, moved to the left, and the mean of both.
    """
    distances = [(one + other) / 2 + GAP for one, other in pairwise(widths)]
    right, left = list(wanted), list(wanted)
    for n, distance in enumerate(distances):
        right[n + 1] = max(right[n + 1], right[n] + distance)
    for n, distance in reversed(list(enumerate(distances))):
        left[n] = min(left[n], left[n + 1] - distance)
    return [(one + other) / 2 for one, other in zip(left, right, strict=True)]
