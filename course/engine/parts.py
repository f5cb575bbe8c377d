"""The parts of a small engine: what chapter 10 lets the learner write, as the course wrote it.

A *graph* is a dictionary from names to nodes. A *node* is a dictionary too: the `operation` that
made it, the names of its `inputs`, its `value` (a tensor), and whether it has `requires_grad`. The
six functions that learners write come first, in the order of the chapter. Whatever is called here
is looked up in this module at that moment, so `course.engine` can put a learner's function in the
place of each.
"""

from collections.abc import Callable
from typing import Any

import tensorkit as tk

Graph = dict[str, dict[str, Any]]


def record(graph: "Graph", operation: str, inputs: list[str], value: tk.Tensor) -> str:
    """Add a node for the result of an operation to the graph; its name."""
    requires_grad = any(graph[it]["requires_grad"] for it in inputs)
    name = f"{operation}{len(graph)}"
    if not requires_grad:
        operation, inputs = "constant", []
    graph[name] = {
        "operation": operation,
        "inputs": list(inputs),
        "value": value,
        "requires_grad": requires_grad,
    }
    return name


def topological_order(graph: dict[str, list[str]], root: str) -> list[str]:
    """The nodes reached from `root`, each one after every node that uses it."""
    reached = {root}
    waiting = [root]
    uses = {root: 0}
    while waiting:
        for source in graph[waiting.pop()]:
            uses[source] = uses.get(source, 0) + 1
            if source not in reached:
                reached.add(source)
                waiting.append(source)
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


def gradients_of(
    operation: str, upstream: tk.Tensor, inputs: list[tk.Tensor], out: tk.Tensor
) -> list[tk.Tensor]:
    """The gradient of each input of an operation, from that of its result `out`."""
    if operation == "add":
        return [upstream, upstream]
    if operation == "mul":
        a, b = inputs
        return [upstream * b, upstream * a]
    if operation == "matmul":
        a, b = inputs
        return [upstream @ b.T, a.T @ upstream]
    if operation == "sum":
        return [upstream.expand(inputs[0].shape)]
    return [upstream * (1 - out * out)]  # tanh


def backward(graph: "Graph", order: list[str]) -> dict[str, tk.Tensor]:
    """The gradient of the first node of `order` with respect to every node of it."""
    from course.engine.parts import contributions

    gradients = {order[0]: tk.ones_like(graph[order[0]]["value"])}
    for name in order:
        for source, gradient in contributions(graph, name, gradients[name]):
            if source in gradients:
                gradients[source] = gradients[source] + gradient
            else:
                gradients[source] = gradient
    return gradients


def sum_to(gradient: tk.Tensor, shape: tuple[int, ...]) -> tk.Tensor:
    """`gradient` summed over the dimensions that were stretched, in the given shape."""
    missing = gradient.ndim - len(shape)
    stretched = list(range(missing))
    stretched += [missing + dim for dim, size in enumerate(shape) if size == 1]
    if stretched:
        gradient = gradient.sum(dim=stretched, keepdim=True)
    return gradient.reshape(shape)


def recorded_gradients(graph: "Graph", name: str, upstream: str) -> list[str]:
    """Nodes for the gradients of a node's inputs, added to the graph; their names."""
    from course.engine.parts import apply, constant

    operation, inputs = graph[name]["operation"], graph[name]["inputs"]
    if operation == "add":
        return [upstream, upstream]
    if operation == "mul":
        a, b = inputs
        return [apply(graph, "mul", [upstream, b]), apply(graph, "mul", [upstream, a])]
    if operation == "matmul":
        a, b = (apply(graph, "transpose", [it]) for it in inputs)
        left = apply(graph, "matmul", [upstream, b])
        return [left, apply(graph, "matmul", [a, upstream])]
    if operation == "sum":
        return [apply(graph, "expand", [upstream], graph[inputs[0]]["value"].shape)]
    square = apply(graph, "mul", [name, name])  # tanh
    minus = apply(graph, "mul", [constant(graph, -1.0), square])
    slope = apply(graph, "add", [constant(graph, 1.0), minus])
    return [apply(graph, "mul", [upstream, slope])]


# What joins the parts


def leaf(graph: Graph, name: str, value: tk.Tensor, *, requires_grad: bool = True) -> str:
    """Put a tensor into the graph under a name; the name."""
    kind = "leaf" if requires_grad else "constant"
    graph[name] = {
        "operation": kind,
        "inputs": [],
        "value": value,
        "requires_grad": requires_grad,
    }
    return name


def constant(graph: Graph, number: float) -> str:
    """Put a number into the graph; its name."""
    return leaf(graph, f"number{len(graph)}", tk.tensor(number), requires_grad=False)


FORWARD: dict[str, Callable[..., Any]] = {
    "add": lambda shape, a, b: a + b,
    "mul": lambda shape, a, b: a * b,
    "matmul": lambda shape, a, b: a @ b,
    "sum": lambda shape, a: sum_to(a, tuple(shape)),
    "tanh": lambda shape, a: a.tanh(),
    "expand": lambda shape, a: a.expand(shape),
    "transpose": lambda shape, a: a.T,
}
"""What each operation does with the values of its inputs; `shape` matters to sum and expand."""


def apply(graph: Graph, operation: str, inputs: list[str], shape: tuple[int, ...] = ()) -> str:
    """Compute an operation and record it; the name of the new node.

    shape: of the result of `sum` and `expand`. () adds everything up.
    """
    values = [graph[it]["value"] for it in inputs]
    return record(graph, operation, inputs, FORWARD[operation](shape, *values))


def edges(graph: Graph) -> dict[str, list[str]]:
    """The names of each node's inputs, as far as a gradient flows."""
    return {
        name: [it for it in node["inputs"] if graph[it]["requires_grad"]]
        for name, node in graph.items()
        if node["requires_grad"]
    }


def gradients_from(graph: Graph, root: str) -> dict[str, tk.Tensor]:
    """The gradient of `root` with respect to every node before it, as tensors."""
    return backward(graph, topological_order(edges(graph), root))


def contributions(graph: Graph, name: str, upstream: tk.Tensor) -> list[tuple[str, tk.Tensor]]:
    """What a node passes on: for each input that requires grad, its name and a gradient."""
    node = graph[name]
    values = [graph[it]["value"] for it in node["inputs"]]
    if not values:
        return []
    if node["operation"] == "expand":
        found = [upstream]
    elif node["operation"] == "transpose":
        found = [upstream.T]
    else:
        found = gradients_of(node["operation"], upstream, values, node["value"])
    passed = []
    for source, value, gradient in zip(node["inputs"], values, found, strict=True):
        if graph[source]["requires_grad"]:
            if gradient.shape != value.shape:
                gradient = sum_to(gradient, tuple(value.shape))
            passed.append((source, gradient))
    return passed


def recorded_gradients_from(graph: Graph, root: str) -> dict[str, str]:
    """The same as `gradients_from`, with every gradient a node of the graph: their names."""
    order = topological_order(edges(graph), root)
    one = graph[root]["value"] * 0 + 1
    gradients = {root: leaf(graph, f"one{len(graph)}", one, requires_grad=False)}
    for name in order:
        for source, gradient in _recorded_contributions(graph, name, gradients[name]):
            if source in gradients:
                gradient = apply(graph, "add", [gradients[source], gradient])
            gradients[source] = gradient
    return gradients


def _recorded_contributions(graph: Graph, name: str, upstream: str) -> list[tuple[str, str]]:
    node = graph[name]
    if not node["inputs"]:
        return []
    if node["operation"] == "expand":
        found = [upstream]
    elif node["operation"] == "transpose":
        found = [apply(graph, "transpose", [upstream])]
    else:
        found = recorded_gradients(graph, name, upstream)
    passed = []
    for source, gradient in zip(node["inputs"], found, strict=True):
        if graph[source]["requires_grad"]:
            shape = tuple(graph[source]["value"].shape)
            if tuple(graph[gradient]["value"].shape) != shape:
                gradient = apply(graph, "sum", [gradient], shape)
            passed.append((source, gradient))
    return passed
