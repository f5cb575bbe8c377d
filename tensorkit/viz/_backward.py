"""``viz.backward``: the engine's way through the graph, one node a step."""

from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

import numpy as np

from tensorkit import creation
from tensorkit.autograd.function import Application
from tensorkit.autograd.grad_mode import on_arrays
from tensorkit.autograd.node import Outputs, edge_of
from tensorkit.base import Tensor
from tensorkit.creation import from_numpy
from tensorkit.devices import backend_of
from tensorkit.errors import AutogradError
from tensorkit.ops import reductions
from tensorkit.viz import autograd_graph, boxes, folding, words
from tensorkit.viz._graph import FLOW, box_of, key
from tensorkit.viz.autograd_graph import Vertex
from tensorkit.viz.drawing import MARGIN, Canvas, heading, shortened, wrapped
from tensorkit.viz.palette import INK, SOFT
from tensorkit.viz.picture import Picture, text_picture

MOST_DRAWN, MOST_STEPS, MOST_ROWS, MOST_VISITS = 40, 60, 12, 2_000

# What a formula does where it is no product with a local derivative.
_RULES = {
    "MmBackward0": ("incoming @ mat2.T", "input.T @ incoming"),
    "MvBackward0": ("the outer product incoming × vec", "input.T @ incoming"),
    "TBackward0": ("incoming, transposed",),
    "SumBackward0": ("incoming, repeated along the summed dimensions",),
    "MeanBackward0": ("incoming / number of elements, repeated",),
    "ExpandBackward0": ("incoming, summed over what was repeated",),
}
_RULE = (
    "incoming gradient × local derivative (or the rule in words) = the product that it passes on."
)
_ORDER = (
    "Numbered in the engine's order: a node runs when all its gradients have arrived. Hooks are "
    "not called."
)


class Walk(NamedTuple):
    """A way through the graph: its steps, what arrived at each vertex, how often it was there."""

    steps: list[tuple[int, str, list[str]]]  # the vertex, what arrived, what each input gets
    gradients: dict[int, str]
    visits: Counter[int]
    is_finished: bool


class Steps(Picture):
    """The picture of ``viz.backward``: the graph with gradients; below it each step, folded."""

    _folds: str = ""

    @property
    def html(self) -> str:
        """The image, then a fold for each step."""
        return super().html + self._folds


def backward(
    loss: Tensor, gradient: Tensor | None = None, *, naive: bool = False, **named: Tensor
) -> Picture:
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
        why = "This tensor does not require grad. explain.no_grad(t) says why."
        return text_picture("No backward", why)
    if gradient is None and loss.numel() != 1:
        why = f"Backward begins at one number, and this tensor has shape {tuple(loss.shape)}. "
        repair = "Try: viz.backward(loss.sum()), or viz.backward(loss, tk.ones_like(loss))"
        return text_picture("No backward", why + repair)
    with words.unrecorded():
        names = [*named.items(), *words.named_tensors(words.caller())]
        vertices = autograd_graph.read(loss, names)
        first = creation.ones_like(loss) if gradient is None else gradient
        words.must_be_tensor("viz.backward", first, "gradient")
        if words.form(first) != words.form(loss):
            why = f"The gradient is {words.form(first)}; it must be like the tensor, "
            return text_picture("No backward", why + words.form(loss))
        try:
            with np.errstate(all="ignore"):
                walk = _walk(vertices, _start(loss, first))
                recursion = _walk(vertices, _start(loss, first), waits=False) if naive else None
        except AutogradError as error:
            why, *_ = str(error).split("\n")
            repair = " explain.inplace(loss) says what to do."
            return text_picture("Backward cannot run", why + repair)
        return _picture(vertices, walk, recursion)


# Computing


def _start(loss: Tensor, gradient: Tensor) -> Any:
    """The array with which the walk begins, as the node of ``loss`` takes it."""
    node = loss.grad_fn
    edge = edge_of(loss)
    if node is not None and edge is not node:  # one of several outputs
        return Outputs({edge.output_nr: gradient.detach()._array})
    return gradient.detach()._array


def _passed_on(vertex: Vertex, incoming: Any) -> Iterator[tuple[int, int, Any]]:
    """What a node passes on: number of the edge, number of the vertex there, the gradient.

    The gradient has the edge's own shape; it is None where a user's function gave none.
    """
    node = vertex.node
    inputs = iter([it for it in vertex.inputs if it is not None])
    with on_arrays():
        values = node.rule.gradients(node, incoming, False)
    for number, (edge, value) in enumerate(zip(node.edges, values, strict=False)):
        if edge is None:
            continue
        if value is not None:
            shape = tuple(edge.shape)
            value = edge.device.backend.asarray(value)
            if value.shape != shape:
                with on_arrays():
                    value = reductions.sum_to_shape(value, to=shape)
        whole = getattr(edge, "whole", edge)
        if whole is not edge and value is not None:  # one of several outputs
            value = Outputs({edge.output_nr: value})
        yield number, next(inputs), value


def _walk(vertices: list[Vertex], first: Any, *, waits: bool = True) -> Walk:
    """The engine's walk; with ``waits=False`` the recursion that passes on whatever arrives."""
    waiting = Counter(source for it in vertices for source in it.inputs)
    totals = {len(vertices) - 1: first}
    steps: list[tuple[int, str, list[str]]] = []
    ready, visits = [len(vertices) - 1], Counter[int]()
    while ready and (waits or visits.total() < MOST_VISITS):
        number = ready.pop()
        visits[number] += 1
        vertex = vertices[number]
        if vertex.is_leaf or number not in totals:
            continue
        head = f"{len(steps) + 1}. {vertex.label}, {vertex.form}, receives "
        step = (number, head + _in_words(totals[number]), list[str]())
        rules = _rules(vertex, totals[number]) if waits and len(steps) < MOST_STEPS else {}
        for edge, to, value in _passed_on(vertex, totals[number]):
            if value is not None:
                so_far = "first"
                if to in totals:
                    totals[to] = totals[to] + value
                    so_far = f"sum so far {_in_words(totals[to])}"
                totals.setdefault(to, value)
                product = f"product {_in_words(value)}"
                step[2].append(f"to {_name(vertices[to])}: {rules.get(edge)}, {product}, {so_far}")
            waiting[to] -= 1
            if not (waits and waiting[to]):
                ready.append(to)
        steps.append(step)
    return Walk(steps, {n: _in_words(it) for n, it in totals.items()}, visits, not ready)


def _name(vertex: Vertex) -> str:
    return vertex.name or f"leaf {vertex.form}" if vertex.is_leaf else vertex.label


def _rules(vertex: Vertex, incoming: Any) -> dict[int, str]:
    """In words, for each edge, what the incoming gradient is multiplied with.

    An operation on elements multiplies each with its own derivative: then the gradient of ones is
    that derivative, and any other gradient gives its product with it.
    """
    node = vertex.node
    if isinstance(node.rule, Application):  # not called for a look: its backward may do anything
        return dict.fromkeys(range(len(node.edges)), "what its own backward gives")
    host = _on_host(incoming)
    ones = np.ones(host.shape, host.dtype)
    probe = (np.arange(1, host.size + 1).reshape(host.shape) % 7 + 1).astype(host.dtype)
    to_device = node.device.backend.from_host
    found = {}
    with on_arrays():
        both = zip(
            *(node.rule.gradients(node, to_device(it), False) for it in (ones, probe)), strict=True
        )
    for edge, (derivative, product) in enumerate(both):
        if derivative is None:
            continue
        derivative, product = _on_host(derivative), _on_host(product)
        fits = product.shape == derivative.shape and host.shape in ((), product.shape)
        if fits and np.allclose(derivative * probe, product, rtol=1e-3, equal_nan=True):
            found[edge] = f"local derivative {_in_words(derivative)}"
            if derivative.shape != tuple(node.edges[edge].shape):
                found[edge] += ", summed over what was broadcast"
        else:
            rules = _RULES.get(vertex.title, ("a linear map of the incoming gradient",))
            found[edge] = rules[min(edge, len(rules) - 1)]
    return found


def _in_words(gradient: Any) -> str:
    if isinstance(gradient, Outputs):
        each = sorted(gradient.items())
        return ", ".join(f"{_in_words(value)} for output {number}" for number, value in each)
    return words.values(from_numpy(np.array(_on_host(gradient))))


def _on_host(array: Any) -> Any:
    return np.asarray(backend_of(array).to_host(array))


# Drawing


def _picture(vertices: list[Vertex], walk: Walk, recursion: Walk | None) -> Picture:
    title = f"Backward in {words.count(len(walk.steps), 'step')}"
    step_of = {vertex: number for number, (vertex, _, _) in enumerate(walk.steps, start=1)}
    groups = folding.fold(vertices, MOST_DRAWN)
    drawn = []
    for group in groups:
        box = box_of(vertices, group)
        number, *others = group.members
        it, gradient = vertices[number], walk.gradients.get(number, "nothing")
        if others:
            numbers = sorted(step_of[it] for it in group.members if it in step_of)
            box.lines += [f"steps {numbers[0]} to {numbers[-1]}"] if numbers else []
        elif it.is_leaf:
            box.lines = [it.form, it.value, f".grad gets {gradient}"]
        else:
            box.title = f"{step_of.get(number, '–')}. {it.label}"
            box.lines = [it.form, f"receives {gradient}"]
        drawn.append(box)
    canvas = Canvas()
    low = heading(canvas, title, f"{FLOW}\n{_ORDER}")
    edges = folding.edges(vertices, groups)
    boxes.draw(canvas, drawn, edges, MARGIN, low)
    key(canvas, drawn)
    text, folds = [title, f"In each step: {_RULE}", _ORDER], f"<p>Open a step to see {_RULE}</p>"
    for _, head, shares in walk.steps[:MOST_STEPS]:
        text += [head, *(f"   {it}" for it in shares)]
        body = "<br>".join(map(escape, shares))
        folds += f"<details><summary>{escape(head)}</summary>{body}</details>"
    if len(walk.steps) > MOST_STEPS:
        text.append(f"and {words.count(len(walk.steps) - MOST_STEPS, 'more step')}")
        folds += f"<p>{text[-1]}</p>"
    for number, it in enumerate(vertices):
        if it.is_leaf:
            name, facts = it.name or it.title, ", ".join(filter(None, [it.form, it.value]))
            gradient = walk.gradients.get(number, "nothing")
            text.append(f"{name}.grad gets {gradient} ({name}: {facts})")
    if recursion is not None:
        text += _compare(canvas, vertices, walk.gradients, recursion)
    picture = Steps(title, canvas, "\n".join(text))
    picture._dot_source = lambda: boxes.dot_source(drawn, edges)
    picture._folds = folds
    return picture


def _compare(
    canvas: Canvas, vertices: list[Vertex], right: dict[int, str], recursion: Walk
) -> list[str]:
    """Draw how the naive recursion compares; gives the same as lines of text."""
    rows = []
    for number, n in sorted(recursion.visits.items()):
        if vertices[number].is_leaf or n > 1:
            gradient = recursion.gradients.get(number, "nothing")
            verdict = "right" if gradient == right.get(number) else "wrong"
            cells = (_name(vertices[number]), right.get(number, "nothing"), gradient)
            rows.append([*(shortened(it, 240, 12) for it in cells), verdict, f"{n:,}"])
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
    y = canvas.extent[1] + 36
    canvas.text(MARGIN, y, title, 13, bold=True)
    y = canvas.lines(MARGIN, y + 20, wrapped(below, 640, 12), 12, SOFT)
    canvas.lines(MARGIN, y + 6, lines, 11.5, INK, mono=True)
    return ["", f"{title}. {below}", *lines]
