"""The exercise visits: how often a simple recursion comes to each node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course.exercises.ch05_autograd.backward_order import backward_order
from course.exercises.ch05_autograd.graphs import Graph, diamond, node_names, residual
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def visits(graph: dict[str, list[str]], root: str) -> dict[str, int]:
    """How often the simple recursion comes to each node."""
    counts: dict[str, int] = {}

    def visit(node: str) -> None:
        counts[node] = counts.get(node, 0) + 1
        for source in graph[node]:
            visit(source)

    visit(root)
    return counts


def _each_once(graph: Graph, root: str) -> dict[str, int]:
    return dict.fromkeys(backward_order(graph, root), 1)


def _uses(graph: Graph, root: str) -> dict[str, int]:
    reached = backward_order(graph, root)
    return {name: max(1, sum(graph[user].count(name) for user in reached)) for name in reached}


def _without_the_root(graph: Graph, root: str) -> dict[str, int]:
    counts = visits(graph, root)
    counts[root] -= 1
    return counts


def _inputs_of_the_root(graph: Graph, root: str) -> dict[str, int]:
    counts = {root: 1}
    for source in graph[root]:
        counts[source] = counts.get(source, 0) + 1
    return counts


def _all_together(graph: Graph, root: str) -> Any:
    return sum(visits(graph, root).values())


def _distances(graph: Graph, root: str) -> dict[str, int]:
    distances = {root: 0}
    for node in list(backward_order(graph, root)):
        for source in graph[node]:
            distances[source] = max(distances.get(source, 0), distances[node] + 1)
    return distances


@exercise("visits", answer=visits, points=0, difficulty=3, minutes=6, further=True)
class Visits(Exercise):
    """What the simple recursion costs

    Why not let every node call its inputs at once, whenever a gradient arrives? Count how often
    such a recursion would visit each node.

    **Input:** `graph` and `root` as before.

    **Output:** a dictionary from each node that can be reached to the number of times that it
    is visited: once for every path that leads from the root to it. The root itself is visited
    once. `graph` itself stays as it is.

    ```python
    visits({"loss": ["a", "b"], "b": ["a"], "a": []}, "loss")
    # {"loss": 1, "a": 2, "b": 1}
    ```

    Print it for `y1 = y0 + y0`, `y2 = y1 + y1`, and so on, twenty times.
    """

    hints = (
        "Write the simple recursion: `visit(node)` counts, then visits each input.",
        "An input that is named twice is visited twice. Do not remember what was seen: that is the "
        "point.",
    )
    usual_mistakes = {
        "each once": (
            _each_once,
            "You visit each node once. The simple recursion does not remember: it comes again "
            "along every way.",
        ),
        "uses": (
            _uses,
            "You counted how many nodes use each node. A visit of one of them happens several "
            "times too, and each brings a visit here.",
        ),
        "without the root": (
            _without_the_root,
            "The root is missing. It is visited as well, once: begin with 1 for it.",
        ),
        "all together": (
            _all_together,
            "This is the number of all visits. Give one number for each node, in a dictionary.",
        ),
        "distances": (
            _distances,
            "You measured how far each node is from the root. Count how often it is visited.",
        ),
        "each node once for each user": (
            lambda graph, root: visits(
                {node: list(dict.fromkeys(sources)) for node, sources in graph.items()}, root
            ),
            "An input that is named twice is visited twice: a `set` forgets the second time.",
        ),
        "root not counted": (
            lambda graph, root: {
                node: n for node, n in visits(graph, root).items() if node != root
            },
            "The root is missing. It is visited as well, once.",
        ),
        "the calls are lost": (
            _inputs_of_the_root,
            "Each call makes a dictionary of its own, and what the inner calls count is lost. Add "
            "the counts that they return, or count in one dictionary for all.",
            r"visits\(",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            {"loss": ["a", "b"], "b": ["a"], "a": []}, "loss", label="a node that is used twice"
        )
        yield case(residual(node_names(draw, 2, 4)), "loss", label="two shortcuts")
        yield case(*_doublings(node_names(draw, 4, 4)), label="three doublings")
        yield case(*_doublings(node_names(draw, 9, 11)), label="many doublings")
        unused = {**diamond(node_names(draw, 2, 4)), "unused": ["x"]}
        yield case(unused, "loss", label="a node that is not reached")
        yield case({"alone": []}, "alone", label="a single node (size 1)")


def _doublings(names: list[str]) -> tuple[Graph, str]:
    """A chain in which every node uses the next one twice; and its root."""
    return {name: names[i : i + 1] * 2 for i, name in enumerate(names, 1)}, names[0]
