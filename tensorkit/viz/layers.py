"""Where the boxes of a graph go: rows from top to bottom, edges pointing down.

The steps of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures" (1981): give each box a row; cut long edges into pieces by invisible boxes; sort each
row by where its neighbours stand; then move the boxes as close to their neighbours as their widths
permit. Plain numbers, no randomness: the same graph is placed alike on every machine.
"""

import itertools
from collections import Counter
from dataclasses import dataclass

from tensorkit.viz.drawing import Command

GAP, ROW_GAP, BEND = 22.0, 34.0, 14.0


@dataclass
class Placed:
    """The middle of each box's upper side, and each edge as commands of a path."""

    boxes: list[tuple[float, float]]
    edges: list[list[Command]]


def place(sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> Placed:
    """Place boxes of these sizes; an edge (upper, lower) has upper < lower."""
    rows = _rows(len(sizes), edges)
    widths = [width for width, _ in sizes]
    row_of = list(rows)
    chains: list[list[int]] = []
    for upper, lower in edges:
        chain = [upper]
        for row in range(rows[upper] + 1, rows[lower]):
            chain.append(len(widths))
            widths.append(BEND)
            row_of.append(row)
        chains.append([*chain, lower])
    above: list[list[int]] = [[] for _ in widths]
    below: list[list[int]] = [[] for _ in widths]
    for chain in chains:
        for one, other in itertools.pairwise(chain):
            below[one].append(other)
            above[other].append(one)
    table: list[list[int]] = [[] for _ in range(max(row_of, default=-1) + 1)]
    for box in _in_reading_order(len(sizes), len(widths), above):
        table[row_of[box]].append(box)
    _sort(table, above, below)
    centres = _centres(table, widths, above, below)
    left = min((centres[box] - widths[box] / 2 for box in range(len(widths))), default=0.0)
    heights = [max((sizes[b][1] for b in row if b < len(sizes)), default=0.0) for row in table]
    tops = [sum(heights[:row]) + row * ROW_GAP for row in range(len(table))]
    routes = []
    drawn: Counter[tuple[int, int]] = Counter()
    for edge, chain in zip(edges, chains, strict=True):
        first, last = edge
        # h * h takes h twice: two arrows beside each other
        aside = 14 * (drawn[edge] - (edges.count(edge) - 1) / 2) - left
        drawn[edge] += 1
        points = [(centres[first] + aside, tops[row_of[first]] + sizes[first][1])]
        for box in chain[1:-1]:
            top = tops[row_of[box]]
            points += [
                (centres[box] + aside, top),
                (centres[box] + aside, top + heights[row_of[box]]),
            ]
        routes.append(_curve([*points, (centres[last] + aside, tops[row_of[last]])]))
    return Placed([(centres[b] - left, tops[row_of[b]]) for b in range(len(sizes))], routes)


def _curve(points: list[tuple[float, float]]) -> list[Command]:
    """A line through the points that leaves and reaches each of them upright."""
    commands: list[Command] = [("M", *points[0])]
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        middle = (y + to_y) / 2
        commands.append(
            ("L", to_x, to_y) if abs(x - to_x) < 0.5 else ("C", x, middle, to_x, middle, to_x, to_y)
        )
    return commands


def _rows(n: int, edges: list[tuple[int, int]]) -> list[int]:
    """The longest way from a source; a source itself stands just above the first that uses it."""
    rows = [0] * n
    uses: list[list[int]] = [[] for _ in range(n)]
    is_source = [True] * n
    for upper, lower in sorted(edges, key=lambda edge: edge[1]):
        rows[lower] = max(rows[lower], rows[upper] + 1)
        uses[upper].append(lower)
        is_source[lower] = False
    for box in range(n):
        if is_source[box] and uses[box]:
            rows[box] = min(rows[user] for user in uses[box]) - 1
    return rows


def _in_reading_order(n: int, n_all: int, above: list[list[int]]) -> list[int]:
    """Boxes in the order of a walk from the last one, so that inputs begin from left to right."""
    order: list[int] = []
    seen = [False] * n_all
    for root in reversed(range(n)):
        stack = [root]
        while stack:
            box = stack.pop()
            if not seen[box]:
                seen[box] = True
                order.append(box)
                stack.extend(reversed(above[box]))
    return order


def _sort(table: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Order each row by the mean place of its neighbours, down and up a few times."""
    at: dict[int, float] = {}

    def note(row: list[int]) -> None:
        for place, box in enumerate(row):
            at[box] = (place + 0.5) / len(row)

    for row in table:
        note(row)
    for turn in range(8):
        down = turn % 2 == 0
        neighbours = above if down else below
        for row in table if down else reversed(table):
            row.sort(key=lambda b: _mean([at[it] for it in neighbours[b]], at[b]))
            note(row)


def _centres(
    table: list[list[int]], widths: list[float], above: list[list[int]], below: list[list[int]]
) -> list[float]:
    """Centres of all boxes: each row as near as possible to the means of its neighbours."""
    centres = [0.0] * len(widths)
    for row in table:
        edge = 0.0
        for box in row:
            centres[box] = edge + widths[box] / 2
            edge += widths[box] + GAP
    for turn in range(10):
        down = turn % 2 == 0
        for row in table if down else reversed(table):
            wanted = []
            for box in row:
                near = (above if down else below)[box] or (below if down else above)[box]
                wanted.append(_mean([centres[it] for it in near], centres[box]))
            for box, centre in zip(row, _apart(wanted, [widths[box] for box in row]), strict=True):
                centres[box] = centre
    return centres


def _mean(numbers: list[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _apart(wanted: list[float], widths: list[float]) -> list[float]:
    """The centres nearest to ``wanted`` that keep their order and a gap.

    Less its least distance from the first one, each centre must not be less than the one before:
    pooling neighbours that are gives the nearest such numbers (isotonic regression).
    """
    offsets, total = [], 0.0
    for place, width in enumerate(widths):
        total += 0.0 if not place else (widths[place - 1] + width) / 2 + GAP
        offsets.append(total)
    pools: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        mean, count = want - offset, 1
        while pools and pools[-1][0] > mean:
            before, n_before = pools.pop()
            mean = (before * n_before + mean * count) / (n_before + count)
            count += n_before
        pools.append((mean, count))
    flat = [mean for mean, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(flat, offsets, strict=True)]
