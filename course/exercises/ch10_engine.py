"""The exercises of chapter 10, Build your own engine, in the order of its text.

The reference answers of the core stand in `course.engine.parts`, where the engine runs on them.
Here stand what learners write instead, and the definitions. Data in words: a *graph* is a
dictionary from names to nodes, and a node a dictionary of its operation, inputs, value and
requires_grad, or, where only the order matters, a list of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.engine import parts as parts
from course.engine.parts import (
    backward,
    gradients_of,
    record,
    recorded_gradients,
    sum_to,
    topological_order,
)
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen

Graph = parts.Graph
Uses = dict[str, list[str]]


@exercise("graph-size", points=2, difficulty=2, minutes=4)
class GraphSize(Prediction):
    """Predict: how many nodes

    `count(program)` calls `program(x, y)` on two leaves and counts the nodes of the graph
    afterwards, the two leaves among them. Every answer is a whole number.

    One is done for you:

    ```python
    count(lambda x, y: x + y)      # 3: x, y, and one addition
    ```
    """

    name = "sizes"
    ask = "Replace each ... by the number of nodes."
    questions = {
        "count(lambda x, y: x * y + x)": (
            "One node for each operation that runs, and the two leaves. Using `x` once more makes "
            "no new node."
        ),
        "count(lambda x, y: x * x)": (
            "The leaf `y` is in the graph from the start, whether anybody uses it or not."
        ),
        "count(lambda x, y: (x + y) * (x + y))": (
            "The graph holds what ran, not what the formula means: an expression that is written "
            "twice is computed twice."
        ),
        "count(lambda x, y: (lambda s: s * s)(x + y))": (
            "Here the sum runs once, and its node is used twice."
        ),
        "count(lambda x, y: x if 2 > 1 else x * y)": (
            "Only the branch that is taken runs, and here it has no operation."
        ),
        "count(lambda x, y: (x * x) * (x * x))": "Each `x * x` runs when Python comes to it.",
    }
    hints = (
        "Go through the expression as Python does and make a mark at each `+` and each `*` that "
        "runs. Two more for the leaves.",
        "`(x + y) * (x + y)` runs three operations: Python does not notice that it has seen "
        "`x + y` before. With a name for the sum it runs only once.",
    )
    usual_mistakes = {
        "without the leaves": (
            {
                "count(lambda x, y: x * y + x)": 2,
                "count(lambda x, y: x * x)": 1,
                "count(lambda x, y: (x + y) * (x + y))": 3,
                "count(lambda x, y: (lambda s: s * s)(x + y))": 2,
                "count(lambda x, y: x if 2 > 1 else x * y)": 0,
                "count(lambda x, y: (x * x) * (x * x))": 3,
            },
            "You counted the operations. The leaves are nodes too: two more everywhere.",
        ),
        "equal parts are one": (
            {
                "count(lambda x, y: (x + y) * (x + y))": 4,
                "count(lambda x, y: (x * x) * (x * x))": 4,
            },
            "You took equal expressions for one node. The engine records what runs, and each of "
            "them runs.",
        ),
        "every mention is a node": (
            {
                "count(lambda x, y: x * y + x)": 5,
                "count(lambda x, y: x * x)": 3,
                "count(lambda x, y: (x + y) * (x + y))": 7,
                "count(lambda x, y: (lambda s: s * s)(x + y))": 5,
                "count(lambda x, y: (x * x) * (x * x))": 7,
            },
            "You counted every time that a leaf is mentioned. A leaf is one node, however often it "
            "is used, and both leaves are there from the start.",
        ),
        "only the leaves that are used": (
            {
                "count(lambda x, y: x * x)": 2,
                "count(lambda x, y: x if 2 > 1 else x * y)": 1,
                "count(lambda x, y: (x * x) * (x * x))": 4,
            },
            "You left out leaves that nobody uses. `count` puts both into the graph before the "
            "program runs.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        from course.engine import count

        return eval(expression, {"count": count})


@no_type_check
def _record_stub(graph, operation, inputs, value):
    requires_grad = ...  # whether at least one of the inputs does
    name = f"{operation}{len(graph)}"
    if not requires_grad:
        operation, inputs = ...  # nobody asks how it was made: "constant", no inputs
    graph[name] = ...  # the node: a dictionary with the four entries
    return name


def _with(graph: Graph, name: str, operation: str, inputs: Any, value: Any, asks: Any) -> str:
    graph[name] = {
        "operation": operation,
        "inputs": inputs,
        "value": value,
        "requires_grad": asks,
    }
    return name


def _asks(graph: Graph, inputs: list[str]) -> bool:
    return any(graph[it]["requires_grad"] for it in inputs)


def _all_must_ask(graph: Graph, operation: str, inputs: list[str], value: Any) -> str:
    name = f"{operation}{len(graph)}"
    asks = all(graph[it]["requires_grad"] for it in inputs)
    kind, used = (operation, inputs) if asks else ("constant", [])
    return _with(graph, name, kind, used, value, asks)


def _history_kept(graph: Graph, operation: str, inputs: list[str], value: Any) -> str:
    name = f"{operation}{len(graph)}"
    return _with(graph, name, operation, inputs, value, _asks(graph, inputs))


def _asks_the_tensor(graph: Graph, operation: str, inputs: list[str], value: Any) -> str:
    name = f"{operation}{len(graph)}"
    return _with(graph, name, "constant", [], value, value.requires_grad)


def _always_asks(graph: Graph, operation: str, inputs: list[str], value: Any) -> str:
    return _with(graph, f"{operation}{len(graph)}", operation, inputs, value, True)


def _named_by_operation(graph: Graph, operation: str, inputs: list[str], value: Any) -> str:
    name = record(graph, operation, inputs, value)
    graph[operation] = graph.pop(name)
    return operation


def _nodes_as_inputs(graph: Graph, operation: str, inputs: list[str], value: Any) -> str:
    name = record(graph, operation, inputs, value)
    graph[name]["inputs"] = [graph[it]["value"] for it in graph[name]["inputs"]]
    return name


def _node_returned(graph: Graph, operation: str, inputs: list[str], value: Any) -> Any:
    return graph[record(graph, operation, inputs, value)]


def _each_source_once(graph: Graph, operation: str, inputs: list[str], value: Any) -> str:
    return record(graph, operation, list(dict.fromkeys(inputs)), value)


def _leaves(**values: tk.Tensor) -> Graph:
    """A graph of leaves; what ends with an underscore is a constant."""
    graph: Graph = {}
    for name, value in values.items():
        parts.leaf(graph, name.rstrip("_"), value, requires_grad=not name.endswith("_"))
    return graph


@exercise(
    "record-node",
    answer=record,
    stub=_record_stub,
    kind="complete",
    points=3,
    difficulty=2,
    minutes=6,
    without=("course.engine.parts.record",),
)
class RecordNode(Exercise):
    """Remember how it was made

    After an operation has run, its result becomes a node of the graph. Fill the three gaps.

    **Input:** `graph`, a dictionary from names to nodes; `operation`, the name of the operation,
    such as `"mul"`; `inputs`, the names of the nodes it was applied to; `value`, its result.

    **Output:** the name of the new node: the operation and the number of nodes that were there
    before. The graph has the new node under this name, a dictionary with four entries:
    `"operation"`, `"inputs"` (the list of names), `"value"`, `"requires_grad"` (True if at least
    one of the inputs requires grad). If none does, the node is a constant: its operation is
    `"constant"`, its inputs an empty list.

    ```python
    graph = {}
    graph["x"] = {
        "operation": "leaf",
        "inputs": [],
        "value": tk.tensor(2.0),
        "requires_grad": True,
    }
    record(graph, "mul", ["x", "x"], tk.tensor(4.0))
    # "mul1"
    graph["mul1"]["inputs"]
    # ["x", "x"]
    ```
    """

    changes_arguments = True
    hints = (
        'Each name in `inputs` leads to a node, `graph[it]`, and its entry `"requires_grad"` is '
        "True or False. Python's `any` tells whether one of several is True.",
        'The constant is two values for two names: `operation, inputs = "constant", []`.',
        'The node: `{"operation": operation, "inputs": inputs, "value": value, "requires_grad": '
        "requires_grad}`.",
    )
    usual_mistakes = {
        "all must ask": (
            _all_must_ask,
            "You ask whether all of the inputs require grad. One is enough: a product of a weight "
            "and a constant has a gradient. Use `any`.",
        ),
        "the history is kept": (
            _history_kept,
            "Where no input requires grad the node still knows how it was made. Make it a "
            "constant without inputs: no gradient will ever go there.",
        ),
        "asks the tensor": (
            _asks_the_tensor,
            "Everything is a constant in your graph. A tensor knows nothing of this engine, so "
            "`value.requires_grad` says nothing: look it up in the nodes of the inputs.",
        ),
        "everything asks": (
            _always_asks,
            "Every node of yours requires grad. Look it up in the inputs: what is made of "
            "constants is a constant.",
        ),
        "two of the same name": (
            _named_by_operation,
            "The operation alone is no name: the second product would replace the first. Put the "
            "number of nodes behind it.",
        ),
        "values as inputs": (
            _nodes_as_inputs,
            "The inputs of your node are tensors. Keep their names: backward must find the nodes "
            "that they came from.",
        ),
        "the node comes back": (
            _node_returned,
            "You return the node. Return its name, by which the next operation will call it.",
        ),
        "each input once": (
            _each_source_once,
            "An input that is used twice stands in your list once. Keep both: `x * x` sends two "
            "gradients to `x`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        x, y = (tk.tensor(draw.floats(3, 1, 9)) for _ in range(2))
        yield case(_leaves(x=x), "mul", ["x", "x"], x * x, label="a square")
        yield case(_leaves(x=x, y=y), "add", ["x", "y"], x + y, label="two leaves")
        yield case(_leaves(x=x, c_=y), "mul", ["x", "c"], x * y, label="a leaf and a constant")
        yield case(_leaves(x=x, c_=y), "add", ["c", "x"], y + x, label="a constant and a leaf")
        yield case(_leaves(c_=x, d_=y), "add", ["c", "d"], x + y, label="two constants")
        yield case(_leaves(c_=x), "mul", ["c", "c"], x * x, label="a constant squared")
        graph = _leaves(x=x, c_=y)
        product = parts.apply(graph, "mul", ["x", "c"])
        value = graph[product]["value"]
        yield case(graph, "mul", [product, "x"], value * x, label="a second product")
        twice = _leaves(x=tk.tensor(draw.number(1, 9)))
        value = twice[parts.apply(twice, "add", ["x", "x"])]["value"]
        yield case(twice, "add", ["add1", "add1"], value * 2, label="a node used twice")
        none = tk.zeros(0, 3)
        yield case(_leaves(x=none), "tanh", ["x"], none.tanh(), label="no elements (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The name, the names that are new in the graph, and the entries of the new node."""
        graph, operation, inputs, value = args
        before = list(graph)
        name = answer(graph, operation, inputs, value)
        new = [it for it in graph if it not in before]
        node = graph[new[0]] if new else {}
        entries = node if isinstance(node, dict) else {"the new node": node}
        return {"returned": name, "names of new nodes": new, **entries}

    def describe_call(self, args: tuple[Any, ...], show: Any) -> str:
        graph, operation, inputs, value = args
        return f"record(graph, {operation!r}, {inputs}, {show(value)}), where {_told(graph, show)}"


def _told(graph: Graph, show: Any) -> str:
    """The nodes of a graph in words."""
    said = []
    for name, node in graph.items():
        kind = "leaf" if node["requires_grad"] else "constant"
        what = f"{node['operation']} of {node['inputs']}" if node["inputs"] else f"a {kind}"
        said.append(f"{name} is {what}, {show(node['value'])}")
    return "; ".join(said)


def _own_recursion(graph: Uses, root: str) -> list[str]:
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


def _as_they_come_off(graph: Uses, root: str) -> list[str]:
    order: list[str] = []
    seen: set[str] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            order.append(node)
            waiting += graph[node]
    return order


def _rows(graph: Uses, root: str) -> list[str]:
    order, seen = [root], {root}
    for node in order:  # grows while it is walked
        for source in graph[node]:
            if source not in seen:
                seen.add(source)
                order.append(source)
    return order


def _by_count(graph: Uses, root: str, uses: dict[str, int]) -> list[str]:
    order = []
    ready = [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            uses[source] -= 1
            if uses[source] == 0:
                ready.append(source)
    return order


def _users_counted(graph: Uses, root: str) -> list[str]:
    reached = topological_order(graph, root)
    uses = dict.fromkeys(reached, 0)
    for node in reached:
        for source in set(graph[node]):
            uses[source] += 1
    return _by_count(graph, root, uses)


def _all_counted(graph: Uses, root: str) -> list[str]:
    uses = dict.fromkeys(graph, 0)
    for sources in graph.values():
        for source in sources:
            uses[source] += 1
    return _by_count(graph, root, uses)


def _inputs_first(graph: Uses, root: str) -> list[str]:
    return topological_order(graph, root)[::-1]


MUST_WAIT: Uses = {"a": [], "b": ["a"], "loss": ["a", "b"]}
LONG_AND_SHORT: Uses = {"a": ["x"], "b": ["a", "a"], "c": ["b"], "loss": ["x", "c"], "x": []}
BLOCKS: Uses = {
    "add1": ["x", "mul1"],
    "add2": ["add1", "mul2"],
    "loss": ["add2"],
    "mul1": ["x", "x"],
    "mul2": ["add1", "add1"],
    "x": [],
}
SQUARE: Uses = {"loss": ["u", "v"], "u": ["x", "x"], "v": ["w"], "w": ["x"], "x": []}
SQUARES: Uses = {
    "loss": ["s", "u"],
    "s": ["x", "x"],
    "t": ["x", "x"],
    "u": ["t", "v"],
    "v": ["w"],
    "w": ["x"],
    "x": [],
}
DEEP = 1200
RIGHT = "a right order"


def _mirrored(graph: Uses) -> Uses:
    return {name: inputs[::-1] for name, inputs in graph.items()}


def _renamed(draw: Draw, graph: Uses, root: str) -> tuple[Uses, str]:
    """The same graph and its root, with drawn numbers in the names."""
    numbers = draw.distinct(len(graph), 1, 99)
    new = {it: it.rstrip("0123456789") + str(n) for it, n in zip(graph, numbers, strict=True)}
    return {new[it]: [new[one] for one in inputs] for it, inputs in graph.items()}, new[root]


def _made(graph: Uses | tuple[int, ...]) -> Uses:
    """A graph, or of (n, back, ...) one of n + 1 nodes with inputs that lie so far back."""
    if isinstance(graph, dict):
        return graph
    n, *back = graph
    made = {f"n{i}": [f"n{i - it}" for it in back if it <= i] for i in range(n + 1)}
    return dict(sorted(made.items()))


@exercise(
    "deep-order",
    answer=topological_order,
    points=3,
    difficulty=4,
    minutes=8,
    without=("course.engine.parts.topological_order",),
)
class DeepOrder(Exercise):
    """An order without recursion

    The recursive search finds an order, and dies in a graph that is deeper than Python lets
    functions call each other, about 1,000 levels. Find an order without recursion, for graphs of
    any depth.

    **Input:** `graph`, a dictionary from the name of each node to a list of the names of its
    inputs, where a name may stand twice; `root`, the name of the node at which backward begins.

    **Output:** a list of the names of all nodes that can be reached from `root`, each once, each
    after all the nodes of the list that have it as an input. If several orders are right, any will
    do.

    ```python
    topological_order({"loss": ["a", "b"], "b": ["a"], "a": []}, "loss")
    # ["loss", "b", "a"]: "a" must wait for "b"
    ```

    Your function runs inside tensorkit below.
    """

    hints = (
        "Count first, for every node that can be reached, how often the others use it. A node may "
        "come as soon as all of its uses have come.",
        "Two loops. The first walks from the root with a list of nodes still to visit, and adds 1 "
        "to `uses[source]` for each use. The second begins with `ready = [root]`: it takes a node, "
        "writes it down, and takes 1 off for each of its inputs.",
        "In the second loop an input whose count has come to 0 goes into `ready`. Count a node "
        "that uses another twice as two uses, in both loops.",
    )
    usual_mistakes = {
        "recursion": (
            _own_recursion,
            "The order is right where the graph is flat. In a deep graph your function calls "
            "itself too often, and Python stops it. Use a loop with a list of your own.",
        ),
        "as they come off the list": (
            _as_they_come_off,
            "You write a node down when it comes off the list of waiting nodes. It may have a "
            "longer way still to come. Count its uses, and let it wait for the last one.",
        ),
        "level by level": (
            _rows,
            "You go level by level, so a node near along one way and far along another comes too "
            "early. Count its uses, and let it wait for the last one.",
        ),
        "users instead of uses": (
            _users_counted,
            "You count how many nodes use a node. One that uses it twice counts two: you take off "
            "two later. So yours comes too early, or never.",
        ),
        "uses that are not reached": (
            _all_counted,
            "You count the uses of the whole graph. Nodes that the root does not reach will never "
            "take their count off, so some of yours never become ready. Count from the root.",
        ),
        "inputs first": (
            _inputs_first,
            "This is the order of the forward pass, inputs first. Backward goes the other way.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def named(graph: Uses, root: str = "loss") -> tuple[Uses, str]:
            return _renamed(draw, graph, root)

        yield case(MUST_WAIT, "loss", label="a node that must wait")
        yield case(_mirrored(MUST_WAIT), "loss", label="the same, inputs the other way round")
        yield case(*named({"x": [], "y": ["x", "x"]}, "y"), label="an input used twice")
        yield case(*named(LONG_AND_SHORT), label="a long way and a short way")
        yield case(*named(_mirrored(LONG_AND_SHORT)), label="a short way and a long way")
        yield case(*named(BLOCKS), label="two shortcuts")
        yield case(*named(_mirrored(BLOCKS)), label="two shortcuts, mirrored")
        yield case(*named(SQUARES), label="two squares and a longer way")
        yield case(*named(_mirrored(SQUARES)), label="a longer way and two squares")
        yield case(*named(SQUARE), label="a square and a longer way")
        yield case(*named(_mirrored(SQUARE)), label="a longer way and a square")
        aside = {"above": ["aside", "x"], "aside": ["c"], **LONG_AND_SHORT}
        yield case(*named(aside), label="nodes that are not reached")
        yield case(*named({"above": ["x"], **BLOCKS}, "add2"), label="a root in the middle")
        yield case(*named({"alone": []}, "alone"), label="a single node (size 1)")
        n = draw.integer(DEEP, DEEP + 50)
        yield case((n, 1), f"n{n}", label="a chain of 1,200 nodes", weight=3)
        yield case((2 * n, 2, 1), f"n{2 * n}", label="2,400 nodes with shortcuts", weight=6)

    def run(self, answer: Any, *args: Any) -> Any:
        """Whether the order is a right one, and if not what is wrong with it."""
        graph, root = args
        order = answer(_made(graph), root)
        return order if order is None else _judged(order, _made(graph), root)

    def expected(self, *args: Any) -> Any:
        return RIGHT

    def describe_call(self, args: tuple[Any, ...], show: Any) -> str:
        graph, root = args
        shown = graph if isinstance(graph, dict) else "graph"
        return f"topological_order({shown}, {root!r})"

    def advice(self, *args: Any) -> str | None:
        if isinstance(args[0], dict):
            return None
        return "This graph is more than 1,000 levels deep: walk it with a loop, not with recursion."


def _judged(order: Any, graph: Uses, root: str) -> str:
    """RIGHT, or a sentence about the first fault of an order."""
    if not isinstance(order, list | tuple) or not all(type(it) is str for it in order):
        return "no list of names"
    text = ", ".join(order[:8]) + (", ..." if len(order) > 8 else "")
    place = {name: position for position, name in enumerate(order)}
    if root not in place:
        return f"{text}: the root {root!r} is missing"
    reached = {root}.union(*(graph.get(name, ()) for name in order))
    for name in order:
        if name not in reached:
            return f"{text}: {name!r} has no place there, {root!r} does not reach it"
        for source in graph[name]:
            if source not in place:
                return f"{text}: {source!r} is missing, an input of {name!r}"
            if place[source] < place[name]:
                return f"{text}: {source!r} comes before {name!r}, which uses it"
    twice = len(place) < len(order)
    return f"{text}: a name stands there twice" if twice else RIGHT


def _without_upstream(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    return gradients_of(operation, tk.ones_like(upstream), inputs, out)


def _own_factor(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    if operation != "mul":
        return gradients_of(operation, upstream, inputs, out)
    return [upstream * inputs[0], upstream * inputs[1]]


def _factors_swapped(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    if operation != "matmul":
        return gradients_of(operation, upstream, inputs, out)
    a, b = inputs
    return [b.T @ upstream, upstream @ a.T]


def _not_transposed(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    if operation != "matmul":
        return gradients_of(operation, upstream, inputs, out)
    a, b = inputs
    return [upstream @ b, a @ upstream]


def _not_stretched(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    if operation != "sum":
        return gradients_of(operation, upstream, inputs, out)
    return [upstream]


def _all_ones(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    if operation != "sum":
        return gradients_of(operation, upstream, inputs, out)
    return [tk.ones_like(inputs[0])]


def _tanh_of_the_input(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    if operation != "tanh":
        return gradients_of(operation, upstream, inputs, out)
    return [upstream * (1 - inputs[0] * inputs[0])]


def _tanh_without_a_square(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    if operation != "tanh":
        return gradients_of(operation, upstream, inputs, out)
    return [upstream * (1 - out)]


def _no_list(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    found = gradients_of(operation, upstream, inputs, out)
    return found[0] if len(found) == 1 else found


def _one_for_both(operation: str, upstream: Any, inputs: Any, out: Any) -> Any:
    if operation != "add":
        return gradients_of(operation, upstream, inputs, out)
    return [upstream]


@exercise(
    "five-formulas",
    answer=gradients_of,
    points=4,
    difficulty=3,
    minutes=8,
    without=("course.engine.parts.gradients_of",),
)
class FiveFormulas(Exercise):
    """Five operations

    What does each node pass on? Write the formulas of `add`, `mul`, `matmul`, `sum` and `tanh`.

    **Input:** `operation`, one of these five names; `upstream`, the gradient of the result;
    `inputs`, the list of the input tensors, two for `add`, `mul` and `matmul`, one for `sum` and
    `tanh`; `out`, the result.

    For `add` and `mul` both inputs have the same shape, `matmul` is a product of two matrices.
    `sum` adds up everything, so that `upstream` has the shape `()`, or some dimensions, and then it
    has a shape that stretches to that of the input, such as `[rows, 1]`.

    **Output:** a list with the gradient of each input, each of the shape of that input.

    ```python
    a, b, up = tk.tensor([2.0, 3.0]), tk.tensor([4.0, 5.0]), tk.tensor([1.0, 10.0])
    gradients_of("mul", up, [a, b], a * b)
    # [tensor([ 4., 50.]), tensor([ 2., 30.])]
    ```
    """

    hints = (
        "One `if` for each operation. Every formula has `upstream` in it once. Addition is the "
        "simplest: both inputs get it as it is.",
        "For `out = a @ b` the shapes leave only one way: `upstream @ b.T` has the shape of `a`, "
        "and `a.T @ upstream` that of `b`.",
        "A sum read every element once: each gets the upstream gradient. "
        "`upstream.expand(shape)` stretches it. For `tanh` the slope is `1 - out * out`.",
    )
    usual_mistakes = {
        "without upstream": (
            _without_upstream,
            "These are the slopes of the operations alone. Multiply what comes from above into "
            "each of them, or the chain ends here.",
        ),
        "its own factor": (
            _own_factor,
            "In `mul` each input gets its own value. The slope of `a * b` with respect to `a` is "
            "`b`: the other factor.",
        ),
        "the order of the product": (
            _factors_swapped,
            "In `matmul` the order of the factors matters, and yours is turned. `upstream` has "
            "the rows of `a` and the columns of `b`: which order gives the shape of `a`?",
        ),
        "not transposed": (
            _not_transposed,
            "In `matmul` the other factor must be transposed: `.T`. Compare the shapes.",
        ),
        "the sum is not stretched": (
            _not_stretched,
            "In `sum` the gradient must have the shape of the input: each element gets the "
            "upstream gradient. `expand` stretches it.",
        ),
        "only ones": (
            _all_ones,
            "In `sum` every element has the slope 1, and you return just that. Multiply what "
            "comes from above into it.",
        ),
        "tanh of the input": (
            _tanh_of_the_input,
            "In `tanh` the slope is 1 minus the square of the *result*. `out` is there for it.",
        ),
        "tanh not squared": (
            _tanh_without_a_square,
            "In `tanh` the slope is 1 minus the *square* of the result: `1 - out * out`.",
        ),
        "no list": (
            _no_list,
            "With one input you return a tensor. Return a list always, here a list of one.",
        ),
        "one for both": (
            _one_for_both,
            "In `add` there are two inputs, and each gets a gradient. Return two.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def matrix(rows: int, columns: int) -> tk.Tensor:
            return tk.tensor(draw.floats(rows * columns, 0.2, 0.9)).reshape(rows, columns)

        a, b, up = matrix(2, 3), matrix(2, 3), matrix(2, 3) + 1.5
        yield case("add", up, [a, b], a + b, label="add")
        yield case("mul", up, [a, b + 1], a * (b + 1), label="mul")
        w, wide = matrix(3, 4) - 1, matrix(2, 4) + 1.5
        yield case("matmul", wide, [a, w], a @ w, label="matmul")
        yield case("sum", tk.tensor(2.5), [a], a.sum(), label="sum of everything")
        rows = a.sum(dim=1, keepdim=True)
        yield case("sum", tk.tensor([[2.0], [3.0]]), [a], rows, label="sum of every row")
        yield case("tanh", up, [a], a.tanh(), label="tanh")
        one, two = tk.tensor(draw.number(2, 9)), tk.tensor(-draw.number(0.4, 0.9))
        yield case(
            "mul", tk.tensor(3.0), [one, two], one * two, label="mul of single numbers (0-d)"
        )
        yield case(
            "add", tk.tensor(3.0), [one, two], one + two, label="add of single numbers (0-d)"
        )
        x = two.unsqueeze(0)
        yield case("tanh", tk.tensor([4.0]), [x], x.tanh(), label="tanh of one element (size 1)")
        s, t = matrix(3, 3), matrix(3, 3) - 1
        yield case("matmul", matrix(3, 3) + 2, [s, t.T], s @ t.T, label="matmul of squares")
        c, d = a.double(), (b + 2).double()
        yield case("mul", up.double() + 1, [c, d], c * d, label="float64")
        empty = tk.zeros(0, 3)
        yield case("sum", tk.tensor(2.0), [empty], empty.sum(), label="sum of nothing (empty)")
        yield case("mul", up.T + 1, [a.T, (b + 2).T], a.T * (b + 2).T, label="mul (non-contiguous)")
        half = tk.tensor([[1.0, -2.0], [0.5, 4.0]], dtype=tk.float16)
        yield case("matmul", half + 1, [half, half.T], half @ half.T, label="matmul (float16)")


@no_type_check
def _added_in_place(graph, order):
    from course.engine.parts import contributions

    gradients = {order[0]: tk.ones_like(graph[order[0]]["value"])}
    for name in order:
        for source, gradient in contributions(graph, name, gradients[name]):
            if source in gradients:
                gradients[source] += gradient
            else:
                gradients[source] = gradient
    return gradients


def _collected(graph: Graph, order: list[str], join: Any) -> dict[str, tk.Tensor]:
    gradients = {order[0]: tk.ones_like(graph[order[0]]["value"])}
    for name in order:
        for source, gradient in parts.contributions(graph, name, gradients[name]):
            before = gradients.get(source)
            gradients[source] = gradient if before is None else join(before, gradient)
    return gradients


def _last_one(graph: Graph, order: list[str]) -> dict[str, tk.Tensor]:
    return _collected(graph, order, lambda before, gradient: gradient)


def _first_one(graph: Graph, order: list[str]) -> dict[str, tk.Tensor]:
    return _collected(graph, order, lambda before, gradient: before)


def _multiplied(graph: Graph, order: list[str]) -> dict[str, tk.Tensor]:
    return _collected(graph, order, lambda before, gradient: before * gradient)


def _cloned_too_late(graph: Graph, order: list[str]) -> dict[str, tk.Tensor]:
    gradients = {order[0]: tk.ones_like(graph[order[0]]["value"])}
    for name in order:
        for source, gradient in parts.contributions(graph, name, gradients[name]):
            if source in gradients:
                gradients[source] += gradient.clone()
            else:
                gradients[source] = gradient
    return gradients


def _only_leaves(graph: Graph, order: list[str]) -> dict[str, tk.Tensor]:
    found = backward(graph, order)
    return {name: it for name, it in found.items() if not graph[name]["inputs"]}


def _built(leaves: Graph, *steps: tuple[str, str]) -> tuple[Graph, list[str]]:
    """A graph and its order, from steps such as ("mul", "x y"); `1` is the first step's result."""
    names: list[str] = []
    for operation, used in steps:
        inputs = [names[int(it) - 1] if it.isdigit() else it for it in used.split()]
        names.append(parts.apply(leaves, operation, inputs))
    root = names[-1] if names else next(iter(leaves))
    return leaves, topological_order(parts.edges(leaves), root)


@exercise(
    "gradients-added",
    answer=backward,
    stub=_added_in_place,
    points=3,
    difficulty=4,
    minutes=7,
    without=("course.engine.parts.backward",),
)
class GradientsAdded(Exercise):
    """The gradient that was changed from afar

    This is the heart of the engine: walk the order, let every node pass on its gradient, add up
    what arrives. The code below is right for chains and for many other graphs. For
    `(x + y) + y` it finds the gradient 2 for `x` where 1 is right. Repair it.

    **Input:** `graph`, a dictionary from names to nodes as before; `order`, a topological order,
    whose first node is the one to begin at.

    **Output:** a dictionary from the name of every node in `order` to its gradient, a tensor.

    `contributions(graph, name, upstream)` is given: it applies the formula of the node `name`, and
    returns a list of pairs, each the name of an input and the gradient for it. For an addition both
    gradients are the upstream tensor itself.

    ```python
    # (x + y) + y, with x = 2 and y = 3
    backward(graph, ["add3", "add2", "y", "x"])
    # {"add3": tensor(1.), "add2": tensor(1.), "x": tensor(1.), "y": tensor(2.)}
    ```
    """

    hints = (
        "Which gradients are one and the same tensor after the first addition has passed on its "
        "own? What does `+=` do to a tensor?",
        "`gradients[source] += gradient` writes into memory that other nodes hold as their "
        "gradient. Make a new tensor of the sum instead.",
    )
    usual_mistakes = {
        "copies the wrong one": (
            _cloned_too_late,
            "You copy what arrives, but `+=` still writes into the tensor that is there, and that "
            "one is shared. Write `gradients[source] = gradients[source] + gradient`.",
        ),
        "the last one": (
            _last_one,
            "A gradient that arrives replaces the one before it. All of them count: add them up.",
        ),
        "the first one": (
            _first_one,
            "Only the first gradient that arrives is kept. All of them count: add them up.",
        ),
        "multiplied": (
            _multiplied,
            "You multiply gradients that come along different ways. Along one way slopes are "
            "multiplied, different ways are added up.",
        ),
        "only the leaves": (
            _only_leaves,
            "The nodes on the way are missing. Return the whole dictionary.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def leaves() -> Graph:
            x, y = (tk.tensor(draw.floats(3, 2, 9)) for _ in range(2))
            return _leaves(x=x, y=y)

        two = _leaves(x=tk.tensor(2.0), y=tk.tensor(3.0))
        yield case(*_built(two, ("add", "x y"), ("add", "1 y")), label="(x + y) + y")
        chain = ("mul", "x y"), ("tanh", "1"), ("sum", "2")
        yield case(*_built(leaves(), *chain), label="a chain")
        yield case(*_built(leaves(), ("add", "x x"), ("sum", "1")), label="x + x")
        square = ("mul", "x x"), ("mul", "1 x"), ("sum", "2")
        yield case(*_built(leaves(), *square), label="a cube")
        shortcut = ("add", "x y"), ("add", "1 y"), ("mul", "2 1"), ("add", "3 y"), ("sum", "4")
        yield case(*_built(leaves(), *shortcut), label="additions with shortcuts")
        matrices = _leaves(a=tk.tensor([draw.floats(2, 2, 9)]), w_=tk.ones(2, 2) * 3.0)
        layer = ("matmul", "a w"), ("add", "1 a"), ("add", "2 a"), ("sum", "3")
        yield case(*_built(matrices, *layer), label="a layer with a constant")
        doubles = _leaves(x=tk.tensor(draw.floats(2, 2, 9)).double())
        yield case(*_built(doubles, ("add", "x x"), ("add", "1 x"), ("sum", "2")), label="float64")
        yield case(*_built(_leaves(x=tk.tensor(draw.number(2, 9)))), label="a leaf alone (size 1)")
        turned = _leaves(x=tk.tensor([draw.floats(3, 2, 9) for _ in range(2)]).T)
        added = ("add", "x x"), ("add", "1 x"), ("sum", "2")
        yield case(*_built(turned, *added), label="a turned leaf (non-contiguous)")
        up, down = draw.integers(2, 2, 9)
        half = _leaves(x=tk.tensor([up, -down / 4], dtype=tk.float16))
        yield case(
            *_built(half, ("mul", "x x"), ("add", "1 x"), ("sum", "2")),
            label="half the memory (float16)",
        )
        none = _leaves(x=tk.zeros(0, 2))
        yield case(*_built(none, ("add", "x x"), ("sum", "1")), label="no elements (empty)")

    def describe_call(self, args: tuple[Any, ...], show: Any) -> str:
        graph, order = args
        return f"backward(graph, {order}), where {_told(graph, show)}"


@no_type_check
def _dims_of_the_shape(gradient, shape):
    missing = gradient.ndim - len(shape)
    stretched = list(range(missing))
    stretched += [dim for dim, size in enumerate(shape) if size == 1]
    return gradient.sum(dim=stretched, keepdim=True).reshape(shape)


def _index_repaired_only(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    missing = gradient.ndim - len(shape)
    stretched = list(range(missing))
    stretched += [missing + dim for dim, size in enumerate(shape) if size == 1]
    return gradient.sum(dim=stretched, keepdim=True).reshape(shape)


def _nothing_repaired_only(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    if gradient.shape == shape:
        return gradient
    return _dims_of_the_shape(gradient, shape)


def _average(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    missing = gradient.ndim - len(shape)
    n = 1
    for dim in range(gradient.ndim):
        if dim < missing or shape[dim - missing] == 1:
            n *= max(1, gradient.shape[dim])
    return sum_to(gradient, shape) / n


def _one_of_them(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    missing = gradient.ndim - len(shape)
    for dim in range(gradient.ndim):
        if gradient.shape[dim] and (dim < missing or shape[dim - missing] == 1):
            gradient = gradient.narrow(dim, 0, 1)
    return gradient.reshape(shape) if gradient.numel() else sum_to(gradient, shape)


def _ones_left_out(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    return sum_to(gradient, shape).reshape([size for size in shape if size != 1])


@exercise(
    "sum-to",
    answer=sum_to,
    stub=_dims_of_the_shape,
    points=2,
    difficulty=4,
    minutes=6,
    without=("course.engine.parts.sum_to",),
)
class SumTo(Exercise):
    """One sum for all stretched dimensions

    Broadcasting stretched an operand; its gradient is summed over the stretched dimensions, all of
    them in a single `sum`. The code below is right for a bias and for a column. It has two faults:
    when dimensions are missing *and* others have size 1, and when nothing was stretched at all.

    **Input:** `gradient`, a tensor; `shape`, the shape of the operand, a tuple.

    **Output:** a tensor of that shape: `gradient` summed over the dimensions that the operand
    lacks (at the left), and over those in which it has size 1.

    ```python
    g = tk.ones(2, 3, 4)
    sum_to(g, (3, 1))
    # tensor([[8.],
    #         [8.],
    #         [8.]])
    sum_to(g, (2, 3, 4)).shape
    # torch.Size([2, 3, 4])
    ```

    Your function runs inside tensorkit below.
    """

    hints = (
        "With `gradient` of shape `(2, 3, 4)` and `shape` `(3, 1)`, print `stretched`. Of which of "
        "the two shapes are these dimensions, and which of the two does `sum` ask for?",
        "Dimension `dim` of the operand is dimension `missing + dim` of the gradient.",
        "`sum(dim=[])` sums over everything, not over nothing. Sum only if `stretched` has an "
        "entry.",
    )
    usual_mistakes = {
        "nothing stretched": (
            _index_repaired_only,
            "The dimensions are right now. Where nothing was stretched the list is empty, and "
            "`sum` with an empty list adds up everything: leave the sum out in this case.",
        ),
        "counted in the operand": (
            _nothing_repaired_only,
            "Where dimensions are missing you sum over the wrong ones: a dimension of the operand "
            "stands further to the right in the gradient, by `missing`.",
        ),
        "the mean": (
            _average,
            "You take a mean. Every place that read the element changes the result, so their "
            "gradients add up.",
        ),
        "one of them": (
            _one_of_them,
            "You took one of the gradients that come back. All of them count: add them up.",
        ),
        "sizes of 1 dropped": (
            _ones_left_out,
            "The sums are right, and dimensions of size 1 are missing. The gradient has the shape "
            "of the operand: `reshape(shape)`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        g = tk.tensor(draw.floats(24, 1, 9), dtype=tk.float64).reshape(2, 3, 4)
        yield case(g[0], (4,), label="a bias")
        yield case(g[0], (3, 1), label="a column")
        yield case(g, (3, 1), label="a dimension missing, another of size 1")
        yield case(g, (1, 4), label="a dimension missing, the first of size 1")
        square = tk.tensor(draw.floats(18, 1, 9)).reshape(2, 3, 3)
        yield case(square, (3, 1), label="where sizes agree by chance")
        yield case(g, (2, 3, 4), label="nothing was stretched")
        yield case(g[0], (3, 4), label="nothing was stretched, a matrix")
        yield case(g, (), label="a single number (0-d)")
        yield case(tk.tensor(2.5), (), label="a single number that stays one")
        yield case(g, (2, 1, 1), label="two dimensions that stretch (size 1)")
        yield case(g.permute(2, 1, 0), (3, 1), label="a turned gradient (non-contiguous)")
        yield case(tk.zeros(0, 3), (1,), label="no rows (empty)")
        half = tk.tensor([draw.integers(3, 1, 20) for _ in range(2)]).half()
        yield case(half, (2, 1), label="half the memory (float16)")

    def advice(self, *args: Any) -> str | None:
        gradient, shape = args
        return f"The result must have the shape {shape}; the gradient has {tuple(gradient.shape)}."


@no_type_check
def _recorded_stub(graph, name, upstream):
    from course.engine.parts import apply, constant

    operation, inputs = graph[name]["operation"], graph[name]["inputs"]
    if operation == "add":
        return [upstream, upstream]
    if operation == "sum":
        return [apply(graph, "expand", [upstream], graph[inputs[0]]["value"].shape)]
    if operation == "mul":
        a, b = inputs
        return ...  # a list of two names: upstream times b, upstream times a
    if operation == "matmul":
        a, b = (apply(graph, "transpose", [it]) for it in inputs)
        return ...  # a list of two names: upstream @ b.T, a.T @ upstream
    minus_one, one = constant(graph, -1.0), constant(graph, 1.0)
    slope = ...  # 1 - out * out, where out is this node itself: `name`
    return [apply(graph, "mul", [upstream, slope])]


def _as_constants(graph: Graph, name: str, upstream: str) -> list[str]:
    found = recorded_gradients(graph, name, upstream)
    for it in found:
        if it != upstream:
            graph[it] = {
                "operation": "constant",
                "inputs": [],
                "value": graph[it]["value"],
                "requires_grad": False,
            }
    return found


def _from_tensors(graph: Graph, name: str, upstream: str) -> list[Any]:
    node = graph[name]
    values = [graph[it]["value"] for it in node["inputs"]]
    return gradients_of(node["operation"], graph[upstream]["value"], values, node["value"])


def _own_factor_recorded(graph: Graph, name: str, upstream: str) -> list[str]:
    found = recorded_gradients(graph, name, upstream)
    return found[::-1] if graph[name]["operation"] == "mul" else found


def _without_upstream_recorded(graph: Graph, name: str, upstream: str) -> list[str]:
    one = parts.leaf(
        graph, f"one{len(graph)}", tk.ones_like(graph[upstream]["value"]), requires_grad=False
    )
    return recorded_gradients(graph, name, one)


def _slope_of(graph: Graph, name: str, upstream: str, square: str) -> list[str]:
    minus = parts.apply(graph, "mul", [parts.constant(graph, -1.0), square])
    slope = parts.apply(graph, "add", [parts.constant(graph, 1.0), minus])
    return [parts.apply(graph, "mul", [upstream, slope])]


def _tanh_not_squared(graph: Graph, name: str, upstream: str) -> list[str]:
    if graph[name]["operation"] != "tanh":
        return recorded_gradients(graph, name, upstream)
    return _slope_of(graph, name, upstream, name)


def _tanh_of_its_input(graph: Graph, name: str, upstream: str) -> list[str]:
    if graph[name]["operation"] != "tanh":
        return recorded_gradients(graph, name, upstream)
    (x,) = graph[name]["inputs"]
    return _slope_of(graph, name, upstream, parts.apply(graph, "mul", [x, x]))


def _out_as_a_constant(graph: Graph, name: str, upstream: str) -> list[str]:
    if graph[name]["operation"] != "tanh":
        return recorded_gradients(graph, name, upstream)
    value = graph[name]["value"]
    out = parts.leaf(graph, f"out{len(graph)}", value, requires_grad=False)
    return _slope_of(graph, name, upstream, parts.apply(graph, "mul", [out, out]))


def _product_turned(graph: Graph, name: str, upstream: str) -> list[str]:
    if graph[name]["operation"] != "matmul":
        return recorded_gradients(graph, name, upstream)
    a, b = (parts.apply(graph, "transpose", [it]) for it in graph[name]["inputs"])
    return [
        parts.apply(graph, "matmul", [b, upstream]),
        parts.apply(graph, "matmul", [upstream, a]),
    ]


@exercise(
    "recorded-gradients",
    answer=recorded_gradients,
    stub=_recorded_stub,
    kind="complete",
    points=3,
    difficulty=4,
    minutes=6,
    without=("course.engine.parts.recorded_gradients",),
)
class RecordedGradients(Exercise):
    """Gradients that can be differentiated

    The formulas once more, written with the engine's own operations: each result is a node of the
    graph, with a history of its own. Fill the three gaps.

    **Input:** `graph`; `name`, the node whose formula is asked for, one of `add`, `mul`, `matmul`,
    `sum` and `tanh`; `upstream`, the name of the node that holds the gradient of its result.

    **Output:** a list of names, one for each input: the nodes that hold its gradient.

    `apply(graph, "mul", [a, b])` runs an operation on two nodes, records it, and returns the name
    of the new node. `constant(graph, 1.0)` puts a number into the graph and returns its name.

    ```python
    # graph has the leaves x = 2, y = 5 and up = 1, and "mul3" of ["x", "y"]
    recorded_gradients(graph, "mul3", "up")
    # ["mul4", "mul5"]: "mul4" is up times y, 5, and "mul5" is up times x, 2
    ```

    The check looks at your gradients, and at their *second order*: at the gradients of the sum of
    their squares.
    """

    changes_arguments = True
    hints = (
        'For `mul` the first of the two names is `apply(graph, "mul", [upstream, b])`. `matmul` '
        "goes like it; `a` and `b` are transposed there already.",
        'The square of the result: `apply(graph, "mul", [name, name])`. Times `minus_one`, plus '
        "`one`: each an `apply`.",
        "Use names only. Whoever takes a value out of the graph and computes with tensors loses "
        "the history.",
    )
    usual_mistakes = {
        "without a history": (
            _as_constants,
            "The gradients are right, and they are constants: nothing leads from them to the "
            "inputs, so their own gradients are zero. Make them with `apply`.",
        ),
        "tensors": (
            _from_tensors,
            "You return tensors. Return the names of nodes, as `apply` gives them.",
        ),
        "its own factor": (
            _own_factor_recorded,
            "In `mul` each input gets its own value. The slope of `a * b` with respect to `a` is "
            "`b`: the other factor.",
        ),
        "without upstream": (
            _without_upstream_recorded,
            "These are the slopes alone. Every formula has `upstream` in it once.",
        ),
        "tanh not squared": (
            _tanh_not_squared,
            "The slope of tanh is 1 minus the *square* of the result: apply `mul` to the node and "
            "itself first.",
        ),
        "tanh of the input": (
            _tanh_of_its_input,
            "The slope of tanh is 1 minus the square of its result, not of its input. The result "
            "is the node `name`.",
        ),
        "out as a constant": (
            _out_as_a_constant,
            "The gradient of tanh is right, its own gradient is not: the result went in as a "
            "constant. Use the node itself, `name`, whose history leads on to the input.",
        ),
        "the order of the product": (
            _product_turned,
            "In `matmul` the factors are in the wrong order: `upstream @ b.T` and "
            "`a.T @ upstream`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(*shape: int) -> tk.Tensor:
            n = tk.zeros(shape).numel()
            return tk.tensor(draw.floats(n, 0.2, 0.9)).reshape(shape)

        x, y, up = draw.number(2, 4), draw.number(5, 9), draw.number(1.5, 3)
        number = {"x": tk.tensor(x), "y": tk.tensor(y), "up": tk.tensor(up)}
        yield case(*_node(number, "mul"), "up", label="mul of two numbers (0-d)")
        rows = {"x": some(3), "y": some(3) + 1, "up": some(3) + 2}
        yield case(*_node(rows, "mul"), "up", label="mul")
        matrices = {"x": some(2, 3), "y": some(3, 2) + 1, "up": some(2, 2) + 2}
        yield case(*_node(matrices, "matmul"), "up", label="matmul")
        squares = {"x": some(2, 2), "y": some(2, 2) + 1, "up": some(2, 2) + 2}
        yield case(*_node(squares, "matmul"), "up", label="matmul of squares")
        yield case(*_node({"x": some(3), "up": some(3) + 2}, "tanh"), "up", label="tanh")
        one = {"x": some(1)[0], "up": some(1)[0] + 2}
        yield case(*_node(one, "tanh"), "up", label="tanh of a number (0-d)")
        doubles = {"x": some(2, 1).double(), "up": some(2, 1).double() + 2}
        yield case(*_node(doubles, "tanh"), "up", label="tanh in float64")
        turned = {"x": some(3, 2).T, "y": some(3, 2).T + 1, "up": some(3, 2).T + 2}
        yield case(*_node(turned, "mul"), "up", label="mul (non-contiguous)")
        exact = {"x": [1.0, -2.0], "y": [4.0, 0.5], "up": [2.0, 1.0]}
        halves = {name: tk.tensor(it, dtype=tk.float16) for name, it in exact.items()}
        yield case(*_node(halves, "mul"), "up", label="mul (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The gradients, and the gradients of the sum of their squares."""
        graph, name, upstream = args
        leaves = [it for it, node in graph.items() if node["operation"] == "leaf"]
        names = answer(graph, name, upstream)
        if not isinstance(names, list):
            return names
        for position, it in enumerate(names):
            if type(it) is not str or it not in graph:
                raise TypeError(f"Entry {position} of the list is no name of a node.")
        nothing = parts.apply(graph, "mul", [leaves[0], parts.constant(graph, 0.0)])
        total = parts.apply(graph, "sum", [nothing])
        for it in names:
            square = parts.apply(graph, "mul", [it, it])
            total = parts.apply(graph, "add", [total, parts.apply(graph, "sum", [square])])
        own = parts.gradients_from(graph, total)
        again = {it: own.get(it, tk.zeros_like(graph[it]["value"])) for it in leaves}
        return Seen({"gradients": [graph[it]["value"] for it in names], "second order": again})

    def advice(self, *args: Any) -> str | None:
        return "What `apply` takes, and what you return, are names of nodes."

    def describe_call(self, args: tuple[Any, ...], show: Any) -> str:
        graph, name, upstream = args
        return f"recorded_gradients(graph, {name!r}, {upstream!r}), where {_told(graph, show)}"


def _node(values: dict[str, tk.Tensor], operation: str) -> tuple[Graph, str]:
    graph = _leaves(**values)
    inputs = [it for it in values if it != "up"]
    return graph, parts.apply(graph, operation, inputs)


def cross_entropy_gradient(
    upstream: tk.Tensor,
    scores: tk.Tensor,
    labels: tk.Tensor,
) -> tk.Tensor:
    """The gradient of the scores, from that of their mean cross entropy."""
    n = len(labels)
    gradient = tk.softmax(scores, dim=1)
    gradient[tk.arange(n), labels] -= 1
    return upstream * gradient / n


def _softmax_alone(upstream: Any, scores: Any, labels: Any) -> Any:
    return upstream * tk.softmax(scores, dim=1) / len(labels)


def _not_averaged(upstream: Any, scores: Any, labels: Any) -> Any:
    return cross_entropy_gradient(upstream, scores, labels) * len(labels)


def _turned(upstream: Any, scores: Any, labels: Any) -> Any:
    return -cross_entropy_gradient(upstream, scores, labels)


def _along_the_samples(upstream: Any, scores: Any, labels: Any) -> Any:
    gradient = tk.softmax(scores, dim=0)
    gradient[tk.arange(len(labels)), labels] -= 1
    return upstream * gradient / len(labels)


def _slope_alone(upstream: Any, scores: Any, labels: Any) -> Any:
    return cross_entropy_gradient(tk.ones_like(upstream), scores, labels)


@exercise(
    "sixth-operation",
    answer=cross_entropy_gradient,
    points=0,
    difficulty=4,
    minutes=10,
    further=True,
)
class SixthOperation(Exercise):
    """A sixth operation

    Libraries have an operation of its own for the loss of a classifier, because its formula is
    shorter than the way through its parts. The cross entropy of a sample is minus the logarithm of
    the probability that softmax gives to its label; the loss is the mean over the samples. With
    respect to the scores its gradient is

    $$\\frac{1}{n} \\, (\\text{softmax}(\\text{scores}) - \\text{one-hot}(\\text{labels}))$$

    times the upstream gradient.

    **Input:** `upstream`, a 0-d tensor; `scores`, float of shape `[samples, classes]`; `labels`,
    whole numbers of shape `[samples]`.

    **Output:** the gradient of `scores`. `scores` itself must stay as it is.

    ```python
    cross_entropy_gradient(tk.tensor(1.0), tk.tensor([[0.0, 0.0]]), tk.tensor([1]))
    # tensor([[ 0.5000, -0.5000]])
    ```
    """

    hints = (
        "`tk.softmax(scores, dim=1)` gives the probabilities, a row for each sample. It is a new "
        "tensor, so you may write into it.",
        "Subtract 1 at the place of the label in each row: `gradient[tk.arange(n), labels] -= 1`.",
    )
    usual_mistakes = {
        "softmax alone": (
            _softmax_alone,
            "These are the probabilities. At the label of each sample subtract 1: that score "
            "should grow.",
        ),
        "not averaged": (
            _not_averaged,
            "The loss is a mean over the samples, so each sample counts one n-th: divide by `n`.",
        ),
        "the sign": (
            _turned,
            "The sign is turned: it is the probabilities minus one-hot. Along the gradient the "
            "loss grows.",
        ),
        "along the samples": (
            _along_the_samples,
            "Your softmax goes along the samples. The probabilities of one sample add up to 1: "
            "`dim=1`.",
        ),
        "without upstream": (
            _slope_alone,
            "This is the gradient of the loss alone. Multiply the upstream gradient into it.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        flat = tk.tensor([[0.0, 0.0]])
        yield case(tk.tensor(1.0), flat, tk.tensor([1]), label="one sample, equal scores")
        scores = tk.tensor([draw.floats(4, -2, 2) for _ in range(3)])
        yield case(tk.tensor(1.0), scores, tk.tensor([0, 3, 1]), label="three samples")
        yield case(tk.tensor(2.5), scores, tk.tensor([2, 2, 2]), label="upstream is not 1")
        wide = scores.double().T
        yield case(
            tk.tensor(-1.0).double(),
            wide,
            tk.tensor([0, 2, 1, 1]),
            label="float64 (non-contiguous)",
        )
        single = tk.tensor(draw.floats(2, -2, 2)).unsqueeze(1)
        yield case(tk.tensor(3.0), single, tk.tensor([0, 0]), label="a single class (size 1)")
        half, many = tk.zeros(2, 4, dtype=tk.float16), tk.tensor(float(draw.integer(2, 20)))
        own = tk.tensor(draw.integers(2, 0, 3))
        yield case(many.half(), half, own, label="equal scores, half the memory (float16)")


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


def _every_leaf(slopes: Any, order: list[str], leaf: str) -> Any:
    found: dict[str, float] = {}
    for node in order:
        found[node] = 0.0 if slopes[node] else 1.0
        for source, slope in slopes[node].items():
            found[node] += slope * found[source]
    return found


def _only_what_depends(slopes: Any, order: list[str], leaf: str) -> Any:
    return {name: it for name, it in forward_slopes(slopes, order, leaf).items() if it}


@exercise("forward-slopes", answer=forward_slopes, points=0, difficulty=3, minutes=8, further=True)
class ForwardSlopes(Exercise):
    """The other direction

    The chain rule can be followed forwards too. Choose one leaf. Its slope with respect to itself
    is 1, that of the other leaves 0; every later node gets the sum of its inputs' slopes, each
    times its own. One walk finds the slope of *every* node with respect to *one* leaf, while
    backward finds the slope of one node with respect to every leaf.

    **Input:** `slopes`, a dictionary from each node to a dictionary from its inputs to the slope of
    the node with respect to that input; `order`, all nodes, inputs first; `leaf`, the name of the
    chosen leaf.

    **Output:** a dictionary from each node to its slope with respect to `leaf`, a float.

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
        x, w = (float(it) for it in draw.integers(2, 2, 9))
        slopes: dict[str, dict[str, float]] = {
            "x": {},
            "w": {},
            "y": {"x": w, "w": x},
            "z": {"y": 1.0, "x": 1.0},
        }
        yield case(slopes, ["x", "w", "y", "z"], "x", label="two ways")
        yield case(slopes, ["w", "x", "y", "z"], "w", label="the other leaf")
        more = {**slopes, "v": {}, "u": {"z": 0.5, "y": -2.0}, "c": {"v": 3.0}}
        yield case(more, ["x", "w", "v", "c", "y", "z", "u"], "x", label="three ways")
        yield case({"x": {}}, ["x"], "x", label="a leaf alone (size 1)")
        chain: dict[str, dict[str, float]] = {"n0": {}}
        for i, slope in enumerate(draw.floats(7, 1.1, 1.9)):
            chain[f"n{i + 1}"] = {f"n{i}": -slope}
        yield case(chain, [f"n{i}" for i in range(8)], "n0", label="a chain")
