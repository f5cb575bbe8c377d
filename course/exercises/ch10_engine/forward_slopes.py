"""The exercise forward-slopes: the chain rule from a leaf to the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def forward_slopes(
    slopes: dict[str, dict[str, float]], order: list[str], leaf: str
) -> dict[str, float]:
    """The slope of every node with respect to `leaf`, found on the way there."""
    found: dict[str, float] = {}
    for node in order:
        found[node] = 1.0 if node == leaf else 0.0
        for source, slope in slopes[node].items():
            found[node] += slope * found[source]
    return found


def _one_way_only(slopes: Any, order: list[str], leaf: str) -> Any:
    found: dict[str, float] = {}
    for node in order:
        found[node] = 1.0 if node == leaf else 0.0
        for source, slope in slopes[node].items():
            found[node] = slope * found[source]
    return found


def _slopes_added(slopes: Any, order: list[str], leaf: str) -> Any:
    found: dict[str, float] = {}
    for node in order:
        found[node] = 1.0 if node == leaf else 0.0
        for source, slope in slopes[node].items():
            found[node] += slope + found[source]
    return found


def _from_the_end(slopes: Any, order: list[str], leaf: str) -> Any:
    found = {node: 1.0 if node == leaf else 0.0 for node in order}
    for node in reversed(order):
        for source, slope in slopes[node].items():
            found[source] += slope * found[node]
    return found


def _edges_alone(slopes: Any, order: list[str], leaf: str) -> Any:
    found: dict[str, float] = {}
    for node in order:
        found[node] = 1.0 if node == leaf else sum(slopes[node].values(), 0.0)
    return found


def _one_edge_only(slopes: Any, order: list[str], leaf: str) -> Any:
    return {node: 1.0 if node == leaf else slopes[node].get(leaf, 0.0) for node in order}


def _every_leaf(slopes: Any, order: list[str], leaf: str) -> Any:
    found: dict[str, float] = {}
    for node in order:
        found[node] = 0.0 if slopes[node] else 1.0
        for source, slope in slopes[node].items():
            found[node] += slope * found[source]
    return found


def _only_what_depends(slopes: Any, order: list[str], leaf: str) -> Any:
    return {name: slope for name, slope in forward_slopes(slopes, order, leaf).items() if slope}


@exercise("forward-slopes", answer=forward_slopes, points=0, difficulty=3, minutes=8, further=True)
class ForwardSlopes(Exercise):
    """The other direction

    The chain rule can be followed forwards too. Choose one leaf. Its slope with respect to itself
    is 1, that of the other leaves 0; every later node gets the sum of its inputs' slopes, each
    times its own. One pass finds the slope of *every* node with respect to *one* leaf, while
    backward finds the slope of one node with respect to every leaf.

    **Input:** `slopes`, a dictionary from each node to a dictionary from its inputs to the slope of
    the node with respect to that input; `order`, all nodes, inputs first; `leaf`, the name of the
    chosen leaf.

    **Output:** a dictionary from each node to its slope with respect to `leaf`, a number. The
    three arguments stay as they are.

    ```python
    # y = x * w with x = 2 and w = 3, z = y + x
    y, z = {"x": 3.0, "w": 2.0}, {"y": 1.0, "x": 1.0}
    slopes = {"x": {}, "w": {}, "y": y, "z": z}
    forward_slopes(slopes, ["x", "w", "y", "z"], "x")
    # {"x": 1.0, "w": 0.0, "y": 3.0, "z": 4.0}
    ```
    """

    hints = (
        "Go through `order`. Each node begins with 1.0 if it is the leaf and 0.0 if not.",
        "For each input add the slope along this edge times what was found for the input.",
    )
    usual_mistakes = {
        "one way only": (
            _one_way_only,
            "Each input replaces the one before it. What comes along different ways is added up.",
        ),
        "slopes added": (
            _slopes_added,
            "Along one way slopes are multiplied: the slope of the edge times the slope of the "
            "input.",
        ),
        "from the end": (
            _from_the_end,
            "You go from the end to the inputs, as backward does. Here the inputs come first: a "
            "node needs what was found for them.",
            r"reversed|-1\]|reverse\(|pop\(",
        ),
        "the edges alone": (
            _edges_alone,
            "You add up the slopes of the edges. Each is multiplied by what was found for its "
            "input.",
        ),
        "one edge only": (
            _one_edge_only,
            "Only the edge from the leaf itself counts in yours; what comes along other nodes is "
            "missing. Go through `order` from its beginning, and multiply each slope by what was "
            "found for its input.",
        ),
        "every leaf": (
            _every_leaf,
            "Every leaf begins with 1 in yours. Only the chosen one changes; the others have 0.",
        ),
        "without the zeros": (
            _only_what_depends,
            "Nodes that do not depend on the leaf are missing. They have a slope too: 0.0.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        x, w = (float(number) for number in draw.integers(2, 2, 9))
        slopes: dict[str, dict[str, float]] = {
            "x": {},
            "w": {},
            "y": {"x": w, "w": x},
            "z": {"y": 1.0, "x": 1.0},
        }
        yield case(slopes, ["x", "w", "y", "z"], "x", label="two ways")
        yield case(slopes, ["w", "x", "y", "z"], "w", label="the other leaf")
        more = {"u": {"z": 0.5, "y": -2.0}, "c": {"v": 3.0}, "v": {}}
        more |= {node: slopes[node] for node in "zywx"}  # `order` alone has the inputs first
        yield case(more, ["x", "w", "v", "c", "y", "z", "u"], "x", label="three ways")
        yield case({"x": {}}, ["x"], "x", label="a leaf alone (size 1)")
        chain: dict[str, dict[str, float]] = {"n0": {}}
        for i, slope in enumerate(draw.floats(7, 1.1, 1.9)):
            chain[f"n{i + 1}"] = {f"n{i}": -slope}
        yield case(chain, [f"n{i}" for i in range(8)], "n0", label="a chain")
