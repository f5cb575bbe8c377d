"""``viz.backward``: the engine's way through the graph, one node a step."""

from collections import Counter
from html import escape
from typing import Any, NamedTuple

import numpy as np

from tensorkit import creation
from tensorkit.autograd.function import Application
from tensorkit.autograd.grad_mode import no_grad
from tensorkit.autograd.node import edge_of
from tensorkit.base import Tensor
from tensorkit.errors import AutogradError
from tensorkit.ops import reductions
from tensorkit.viz import autograd_graph, boxes, words
from tensorkit.viz._graph import FLOW, MEANINGS
from tensorkit.viz.autograd_graph import Vertex
from tensorkit.viz.boxes import Box
from tensorkit.viz.drawing import INK, LEAF, MARGIN, PLAIN, RESULT, Canvas, wrap_text
from tensorkit.viz.picture import Explanation, Picture

MOST_VERTICES, MOST_ROWS, MOST_VISITS = 40, 12, 2_000

_RULE = (
    "incoming gradient × local derivative (or the rule in words) = the product that it passes on."
)
_ORDER = (
    "Numbered in the engine's order: a node runs when all its gradients have arrived. Hooks are "
    "not called."
)
# What a formula does where it is no product with a local derivative.
_RULES = {("MmBackward0", 0): "incoming @ mat2.T", ("MmBackward0", 1): "input.T @ incoming"}


class Run(NamedTuple):
    """A way through the graph: its steps, what arrived at each vertex, how often it was there."""

    steps: list[tuple[int, str, list[str]]]  # the vertex, what arrived, what each input gets
    gradients: dict[int, str]
    visits: Counter[int]
    is_finished: bool


def backward(loss: Tensor, *, naive: bool = False) -> Picture:
    """Backward in steps, in the engine's order: a node runs when all its gradients have arrived.

    For each node: the incoming gradient, for each input the local derivative, their product, and
    the sum so far. With ``naive`` a recursion stands beside it that does not wait: it passes a
    gradient on whenever one arrives. Nothing changes: no ``.grad`` is written, no graph is freed,
    no hook is called.

    >>> from tensorkit import viz
    >>> x = tk.tensor(3., requires_grad=True)
    >>> viz.backward(x * x)
    Backward in 1 step
    In each step: incoming gradient × local derivative (or the rule in words) = the product that
    it passes on.
    Numbered in the engine's order: a node runs when all its gradients have arrived. Hooks are not
    called.
    1. MulBackward0, () float32, receives 1.
       to x: local derivative 3., product 3., first
       to x: local derivative 3., product 3., sum so far 6.
    x.grad gets 6. (x: () float32, 3.)
    """
    words.must_be_tensor("viz.backward", loss)
    if not loss.requires_grad:
        reason = "This tensor does not require grad. explain.no_grad(t) says why."
        return Explanation("No backward", reason)
    if loss.numel() != 1:
        reason = f"Backward begins at one number, and this tensor has shape {tuple(loss.shape)}. "
        return Explanation("No backward", reason + "Try: viz.backward(loss.sum())")
    with words.unrecorded(), no_grad(), np.errstate(all="ignore"):
        vertices = autograd_graph.read(loss)
        if len(vertices) > MOST_VERTICES:
            many = f"It has {len(vertices):,} operations and leaves, more than {MOST_VERTICES}."
            return Explanation("No backward of a large graph", f"{many} Try: viz.graph(loss)")
        first = _arriving(edge_of(loss), creation.ones_like(loss))
        try:
            run = _run(vertices, first)
            recursion = _run(vertices, first, waits=False) if naive else None
        except AutogradError as error:
            reason, *_ = str(error).split("\n")
            repair = " explain.inplace(loss) says what to do."
            return Explanation("Backward cannot run", reason + repair)
        return _picture(vertices, run, recursion)


def _arriving(edge: Any, gradient: Tensor) -> Any:
    """A gradient in the shape in which an edge takes it."""
    if gradient.shape == edge.shape:
        return gradient
    return reductions.sum_to_shape(gradient, to=tuple(edge.shape))


def _run(vertices: list[Vertex], first: Any, *, waits: bool = True) -> Run:
    """The engine's way, the youngest node first; without ``waits`` the naive recursion's."""
    totals = {len(vertices) - 1: first}
    steps: list[tuple[int, str, list[str]]] = []
    ready, visits = [len(vertices) - 1], Counter[int]()
    while ready and (waits or visits.total() < MOST_VISITS):
        if waits:
            ready.sort(key=lambda number: getattr(vertices[number].node, "order", -1))
        number = ready.pop()
        visits[number] += 1
        vertex, incoming = vertices[number], totals[number]
        if vertex.is_leaf:
            continue
        rules = _rules(vertex, incoming) if waits else {}
        shares: list[str] = []
        edges = [pair for pair in enumerate(vertex.node.edges) if pair[1] is not None]
        values = vertex.node.rule.gradients(vertex.node, incoming, True)
        for (at, edge), to in zip(edges, vertex.inputs, strict=True):
            if values[at] is not None:
                value = _arriving(edge, values[at])
                is_first, product = to not in totals, f"product {words.values(value)}"
                totals[to] = value if is_first else totals[to] + value
                so_far = "first" if is_first else f"sum so far {words.values(totals[to])}"
                shares.append(f"to {vertices[to].label}: {rules.get(at)}, {product}, {so_far}")
                if not (waits and to in ready):
                    ready.append(to)
        head = f"{len(steps) + 1}. {vertex.label}, {vertex.form}, receives {words.values(incoming)}"
        steps.append((number, head, shares))
    return Run(steps, {n: words.values(g) for n, g in totals.items()}, visits, not ready)


def _rules(vertex: Vertex, incoming: Any) -> dict[int, str]:
    """In words, for each edge, what the incoming gradient is multiplied with.

    An operation on elements multiplies each with its own derivative: then the gradient of ones is
    that derivative, and any other gradient gives its product with it.
    """
    node = vertex.node
    if isinstance(node.rule, Application):  # not called for a look: its backward may do anything
        return dict.fromkeys(range(len(node.edges)), "what its own backward gives")
    probe = creation.arange(incoming.numel()).reshape(incoming.shape).remainder(7).add(1)
    probe = probe.to(incoming)
    gradients = (node.rule.gradients(node, g, True) for g in (creation.ones_like(probe), probe))
    found = {}
    for at, (derivative, product) in enumerate(zip(*gradients, strict=True)):
        if derivative is not None:
            fits = product.shape == derivative.shape and probe.shape in ((), product.shape)
            if fits and derivative.mul(probe).allclose(product, rtol=1e-3, equal_nan=True):
                found[at] = f"local derivative {words.values(derivative)}"
                if derivative.shape != node.edges[at].shape:
                    found[at] += ", summed over what was broadcast"
            else:
                found[at] = _RULES.get((vertex.kind, at), "a linear map of the incoming gradient")
    return found


def _picture(vertices: list[Vertex], run: Run, recursion: Run | None) -> Picture:
    title = f"Backward in {words.count(len(run.steps), 'step')}"
    step_of = {vertex: f"{number}" for number, (vertex, _, _) in enumerate(run.steps, start=1)}
    text, below = [title, f"In each step: {_RULE}", _ORDER], f"<p>Open a step to see {_RULE}</p>"
    for _, head, shares in run.steps:
        text += [head, *(f"   {share}" for share in shares)]
        body = "<br>".join(map(escape, shares))
        below += f"<details><summary>{escape(head)}</summary>{body}</details>"
    drawn = []
    for number, v in enumerate(vertices):
        gradient = run.gradients.get(number, "nothing")
        if v.is_leaf:
            drawn.append(Box(v.label, [v.form, v.value, f".grad gets {gradient}"], LEAF))
            text.append(f"{v.label}.grad gets {gradient} ({v.label}: {v.form}, {v.value})")
        else:
            ground = PLAIN if number + 1 < len(vertices) else RESULT
            heading = f"{step_of.get(number, '–')}. {v.label}"
            drawn.append(Box(heading, [v.form, f"receives {gradient}"], ground))
    canvas = Canvas(title, f"{FLOW}\n{_ORDER}")
    edges = [(source, number) for number, v in enumerate(vertices) for source in v.inputs]
    boxes.draw(canvas, drawn, edges, MEANINGS)
    if recursion is not None:
        text += _compare(canvas, vertices, run.gradients, recursion)
    return Picture(title, canvas, "\n".join(text), below)


def _compare(
    canvas: Canvas, vertices: list[Vertex], right: dict[int, str], recursion: Run
) -> list[str]:
    """Draw how the naive recursion compares; gives the same as lines of text."""
    rows = []
    for number, n in sorted(recursion.visits.items()):
        if vertices[number].is_leaf or n > 1:
            found = (right.get(number, "nothing"), recursion.gradients.get(number, "nothing"))
            cells = [words.shortened(text, 36) for text in (vertices[number].label, *found)]
            rows.append([*cells, "right" if found[0] == found[1] else "wrong", f"{n:,}"])
    stopped = "" if recursion.is_finished else ", then it was stopped"
    title = "For comparison: the naive recursion"
    below = (
        "It passes a gradient on whenever one arrives. Where paths meet it comes again, and what "
        "had arrived before is passed on twice. All nodes and leaves together got "
        f"{recursion.visits.total():,} visits{stopped}; in order each gets one, "
        f"{len(vertices):,} in all. Below: the leaves, and what got more than one."
    )
    header = ("gradient of", "in order", "naive recursion", "", "visits")
    lines = words.table(header, rows[:MOST_ROWS])
    y = canvas.low + 36
    canvas.text(MARGIN, y, title, 13, bold=True)
    y = canvas.lines(MARGIN, y + 20, wrap_text(below, 100), 12)
    canvas.lines(MARGIN, y + 6, lines, 11.5, INK, mono=True)
    return ["", f"{title}. {below}", *lines]
