"""The exercise backward-order: each node after every node that uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course.exercises.ch05_autograd.graphs import Graph, chain, diamond, node_names, residual
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def backward_order(graph: dict[str, list[str]], root: str) -> list[str]:
    """The nodes reached from `root`, each one after every node that uses it."""
    finished: list[str] = []
    seen = set()

    def visit(node: str) -> None:
        if node in seen:
            return
        seen.add(node)
        for source in graph[node]:
            visit(source)
        finished.append(node)

    visit(root)
    return finished[::-1]


def _as_they_are_met(graph: Graph, root: str) -> list[str]:
    order: list[str] = []

    def visit(node: str) -> None:
        if node not in order:
            order.append(node)
            for source in graph[node]:
                visit(source)

    visit(root)
    return order


def _level_by_level(graph: Graph, root: str) -> list[str]:
    order = [root]
    for node in order:  # grows while it is walked
        order += [source for source in dict.fromkeys(graph[node]) if source not in order]
    return order


def _from_a_stack(graph: Graph, root: str) -> list[str]:
    order: list[str] = []
    left = [root]
    while left:
        node = left.pop()
        if node not in order:
            order.append(node)
            left += graph[node]
    return order


def _inputs_first(graph: Graph, root: str) -> list[str]:
    return backward_order(graph, root)[::-1]


def _once_per_path(graph: Graph, root: str) -> list[str]:
    order = [root]
    for source in graph[root]:
        order += _once_per_path(graph, source)
    return order


def _all_nodes(graph: Graph, root: str) -> list[str]:
    return backward_order({**graph, "": list(graph)}, "")[1:]


def _long_and_short(names: list[str]) -> Graph:
    return {"loss": ["x", names[0]], **chain(names, "x"), "x": []}


def _unreached_users(graph: Graph, root: str) -> list[str]:
    waiting = {name: sum(sources.count(name) for sources in graph.values()) for name in graph}
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            waiting[source] -= 1
            if waiting[source] == 0:
                ready.append(source)
    return order


def _counted_once(graph: Graph, root: str) -> list[str]:
    reached = backward_order(graph, root)
    waiting = {name: sum(name in graph[user] for user in reached) for name in reached}
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            waiting[source] -= 1
            if waiting[source] == 0:
                ready.append(source)
    return order


@exercise("backward-order", answer=backward_order, points=5, difficulty=4, minutes=9)
class BackwardOrder(Exercise):
    """In which order

    A node may pass its gradient on only when all of it has arrived, that is, after every node that
    uses it has run. Find such an order.

    **Input:** `graph`, a dictionary from the name of each node to a list of its inputs, in which a
    name stands twice if it is used twice; `root`, the name of the node at which backward begins.

    **Output:** a list of the names of all nodes that can be reached from `root`, each once, each
    after all the nodes of the list that have it as an input. If several orders are right, any will
    do. `graph` itself stays as it is.

    ```python
    backward_order({"loss": ["a", "b"], "b": ["a"], "a": []}, "loss")
    # ["loss", "b", "a"]: "a" must wait for "b"
    ```

    Your function runs inside tensorkit below.
    """

    hints = (
        "Which node can be *last*? One that has no inputs left to serve.",
        "Visit the inputs of a node first, all of them, and write the node down afterwards. What "
        "does the list look like from its end?",
        "A recursive `visit(node)` with a set of nodes that were seen; it appends the node after "
        "its inputs. Return the list reversed.",
    )
    usual_mistakes = {
        "as they are met": (
            _as_they_are_met,
            "You write a node down when you first meet it. If a longer way leads to it as well, it "
            "comes too early. Write it down after its inputs were visited, and turn the list.",
        ),
        "from a stack": (
            _from_a_stack,
            "You write a node down when it comes off your stack. A node that uses it may still be "
            "waiting there. Write it down when all nodes that use it stand in the list.",
            r"\.pop\(",
        ),
        "level by level": (
            _level_by_level,
            "You go level by level. A node that is near along one way and far along another comes "
            "too early: it must wait for the longest way.",
        ),
        "inputs first": (
            _inputs_first,
            "This is the order of the forward pass, inputs first. Backward goes the other way.",
        ),
        "once per path": (
            _once_per_path,
            "A node stands in your list once for every way that leads to it. Remember what you "
            "have seen: each node belongs there once.",
        ),
        "nodes that are not reached": (
            _all_nodes,
            "Your list has nodes that cannot be reached from the root. Start at the root and "
            "follow the inputs.",
        ),
        "unreached users": (
            _unreached_users,
            "A node waits for users that are not reached from the root, and they never come. "
            "Count only the uses by nodes that are reached.",
        ),
        "without the root": (
            lambda graph, root: backward_order(graph, root)[1:],
            "The root is missing. It comes first.",
        ),
        "counted once": (
            _counted_once,
            "An input that is named twice is counted once and subtracted twice. Count each time "
            "that it is named.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case({"loss": ["a", "b"], "b": ["a"], "a": []}, "loss", label="a node that must wait")

        def mixed(graph: Graph) -> Graph:  # or `list(graph)` would be a right order
            names = list(graph)
            order = draw.distinct(len(names), 0, len(names) - 1)
            return {names[position]: graph[names[position]] for position in order}

        names = node_names(draw, 3, 5)
        yield case(mixed({**chain(names, "x"), "x": []}), names[0], label="a chain")
        yield case(mixed(diamond(node_names(draw, 2, 4))), "loss", label="a diamond")
        long = _long_and_short(node_names(draw, 2, 5))
        yield case(mixed(long), "loss", label="a long way and a short way")
        yield case(mixed(residual(node_names(draw, 2, 4))), "loss", label="two shortcuts")
        names = node_names(draw, 2, 4)
        more = {**_long_and_short(names), "other": [names[0]], "far": ["other"]}
        yield case(mixed(more), "loss", label="nodes that are not reached")
        arms = node_names(draw, 2, 4)
        aside = {**diamond(arms), "unused": ["x"]}
        yield case(mixed(aside), arms[0], label="a root in the middle")
        yield case({"alone": []}, "alone", label="a single node (size 1)")
        # of the two squares one comes first from a stack, the other one from a queue
        first, second, middle, square, leaf = node_names(draw, 5, 5)
        squares: Graph = {second: [square, square, middle, leaf, leaf], middle: [square, leaf]}
        squares |= {square: [], leaf: []}
        yield case(mixed(squares), second, label="an input that is named twice")
        below = {first: [second], **squares}
        yield case(mixed(below), first, label="named twice, further down")
        ladder, root = _ladder(draw.distinct(draw.integer(10, 12), 10, 99))
        yield case(mixed(ladder), root, label="many diamonds on top of each other")

    def run(self, answer: Any, *args: Any) -> Any:
        """Whether the order is a right one, and if not why."""
        graph, root = args
        whole = {name: list(inputs) for name, inputs in graph.items()}
        order = answer(graph, root)
        if order is None:
            return order
        if not isinstance(order, (list, tuple)) or not all(type(name) is str for name in order):
            return "no list of names"
        wrong = _wrong_order(list(order), whole, root)
        return f"{wrong}: {order}" if wrong else "a right order"


def _ladder(numbers: list[int]) -> tuple[Graph, str]:
    """A chain in which every node uses the next one twice and the one after it once; its root."""
    names = [str(number) for number in numbers]
    graph = {name: names[i : i + 1] * 2 + names[i + 1 : i + 2] for i, name in enumerate(names, 1)}
    return graph, names[0]


def _wrong_order(order: list[str], graph: Graph, root: str) -> str | None:
    reached = backward_order(graph, root)
    for name in reached:
        if order.count(name) != 1:
            return f"{name!r} stands there {order.count(name)} times"
    for name in order:
        if name not in reached:
            return f"{name!r} cannot be reached from {root!r}"
    for name in order:
        for source in graph[name]:
            if order.index(source) < order.index(name):
                return f"{source!r} comes before {name!r}, which uses it"
    return None
