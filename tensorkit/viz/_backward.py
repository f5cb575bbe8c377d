"""``viz.backward``: the engine's way through the graph, one node a step."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from tensorkit import creation
from tensorkit.autograd.function import FunctionNode
from tensorkit.autograd.graph import Parts
from tensorkit.autograd.modes import on_arrays
from tensorkit.base import Tensor
from tensorkit.data import from_numpy, is_tensor
from tensorkit.devices import backend_of
from tensorkit.errors import AutogradError
from tensorkit.ops import reduction
from tensorkit.viz import boxes, folding, reading, table, words
from tensorkit.viz._graph import FLOW, LEFT, box_of, key
from tensorkit.viz.drawing import Canvas, Picture, heading, said
from tensorkit.viz.palette import SOFT
from tensorkit.viz.reading import Vertex

MOST_DRAWN, MOST_STEPS, MOST_VISITS = 40, 60, 2_000

# What a formula does where it is no product with a local derivative, by the operation's name.
_IN_WORDS = {
    "mm": ("incoming @ mat2.T", "self.T @ incoming"),
    "bmm": ("incoming @ mat2.mT", "self.mT @ incoming"),
    "mv": ("the outer product incoming × vec", "self.T @ incoming"),
    "t": ("incoming, transposed",),
    "transpose": ("incoming, transposed back",),
    "permute": ("incoming, permuted back",),
    "sum": ("incoming, repeated along the summed dimensions",),
    "mean": ("incoming / number of elements, repeated",),
    "expand": ("incoming, summed over what was repeated",),
}
_VIEWS = "incoming, put where the view took it from"
_RULE = (
    "incoming gradient × local derivative (or the rule in words) = the product that it passes on."
)


@dataclass
class Share:
    """What one input receives in a step."""

    to: int
    derivative: str
    product: Any
    total: Any  # the sum so far, this share included
    is_first: bool


@dataclass
class Step:
    """One node: the gradient that arrived and what it passes on."""

    place: int
    incoming: Any
    shares: list[Share] = field(default_factory=list)


class Steps(Picture):
    """The picture of ``viz.backward``: the graph with gradients; below it each step, folded."""

    _folded: str = ""

    @property
    def html(self) -> str:
        """The image, then a fold for each step."""
        return super().html + self._folded


def backward(
    loss: Tensor, gradient: Tensor | None = None, *, naive: bool = False, **named: Tensor
) -> Picture:
    """Backward in steps, in the engine's order: a node runs when all its gradients have arrived.

    For each node: the incoming gradient, for each input the local derivative, their product, and
    the sum so far. With ``naive`` a recursion stands beside it that does not wait: it passes a
    gradient on whenever one arrives. Nothing changes: no ``.grad`` is written, no graph is freed.

    >>> from tensorkit import viz
    >>> x = tk.tensor(3., requires_grad=True)
    >>> viz.backward(x * x)
    Backward in 1 step
    In each step: incoming gradient × local derivative (or the rule in words) = the product that
    it passes on.
    1. MulBackward0, () float32, receives 1.
       to x: local derivative 3., product 3., first
       to x: local derivative 3., product 3., sum so far 6.
    x.grad gets 6. (x: () float32, 3.)
    """
    words.must_be_tensor("viz.backward", loss)
    if not loss.requires_grad:
        text = "This tensor does not require grad. explain.no_grad(t) says why."
        return said("No backward", text)
    if gradient is None and loss.numel() != 1:
        return said(
            "No backward",
            f"Backward begins at one number, and this tensor has shape {tuple(loss.shape)}. "
            "Try: viz.backward(loss.sum()), or viz.backward(loss, tk.ones_like(loss))",
        )
    if gradient is not None:
        words.must_be_tensor("viz.backward", gradient, "gradient")
        if words.form(gradient) != words.form(loss):
            given, wanted = words.form(gradient), words.form(loss)
            text = f"The gradient is {given}; it must be like the tensor, {wanted}."
            return said("No backward", text)
    with words.unseen():
        return _steps(loss, gradient, naive, [*named.items(), *words.named_tensors(words.caller())])


def _steps(
    loss: Tensor, gradient: Tensor | None, naive: bool, names: list[tuple[str, Tensor]]
) -> Picture:
    vertices = reading.read(loss, names)
    first: Any = (creation.ones_like(loss) if gradient is None else gradient).detach()._array
    if isinstance(vertices[-1].node, FunctionNode) and len(vertices[-1].node.models) > 1:
        first = Parts({loss._node.output_nr: first})
    try:
        with np.errstate(all="ignore"):
            steps, arrived = _walk(vertices, first)
            again = _recurse(vertices, first) if naive else None
    except AutogradError as error:
        first, *_ = str(error).split("\n")
        return said("Backward cannot run", f"{first} explain.inplace(loss) says what to do.")
    return _picture(vertices, steps, arrived, again)


# Computing


def _passed_on(vertex: Vertex, incoming: Any) -> Iterator[tuple[int, Any, Any]]:
    """What a node passes on: place among its edges, the node or leaf there, the gradient.

    The gradient has the edge's own shape; it is None where a user's function gave none.
    """
    with on_arrays():
        values = vertex.node.gradients(incoming)
    for number, (edge, value) in enumerate(zip(vertex.node.edges, values, strict=False)):
        if edge is None:
            continue
        if value is not None:
            shape = tuple(edge.shape)
            value = edge.device.backend.asarray(value)
            if value.shape != shape:
                with on_arrays():
                    value = reduction.sum_to_shape(value, to=shape)
        if is_tensor(edge):
            yield number, edge, value
        elif edge.whole is not edge:  # one of several outputs
            yield number, edge.whole, None if value is None else Parts({edge.output_nr: value})
        else:
            yield number, edge, value


def _places(vertices: list[Vertex]) -> dict[int, int]:
    return {id(it.node): place for place, it in enumerate(vertices)}


def _walk(vertices: list[Vertex], first: Any) -> tuple[list[Step], dict[int, Any]]:
    """The engine's walk: the steps, and what arrived at each place."""
    places = _places(vertices)
    waiting = [0] * len(vertices)
    for vertex in vertices:
        for edge in () if vertex.is_leaf else vertex.node.edges:
            if edge is not None:
                waiting[places[id(edge if is_tensor(edge) else edge.whole)]] += 1
    arrived = {len(vertices) - 1: first}
    ready: list[int] = [len(vertices) - 1]
    steps: list[Step] = []
    while ready:
        place = ready.pop()
        vertex = vertices[place]
        if vertex.is_leaf or place not in arrived:
            continue
        incoming = arrived[place]
        step = Step(place, _on_host(incoming))
        derivatives = _derivatives(vertex, step.incoming) if len(steps) < MOST_STEPS else {}
        for number, source, value in _passed_on(vertex, incoming):
            to = places[id(source)]
            if value is not None:
                is_first = to not in arrived
                arrived[to] = value if is_first else arrived[to] + value
                rule = derivatives.get(number, "")
                product, total = _on_host(value), _on_host(arrived[to])
                step.shares.append(Share(to, rule, product, total, is_first))
            waiting[to] -= 1
            if not waiting[to]:
                ready.append(to)
        steps.append(step)
    return steps, {place: _on_host(it) for place, it in arrived.items()}


def _derivatives(vertex: Vertex, incoming: Any) -> dict[int, str]:
    """In words, for each edge, what the incoming gradient is multiplied with.

    An operation on elements multiplies each with its own derivative: then the gradient of ones is
    that derivative, and any other gradient gives its product with it.
    """
    node = vertex.node
    if isinstance(node, FunctionNode):  # not called for a look: its backward may do anything
        return dict.fromkeys(range(len(node.edges)), "what its own backward gives")
    ones = np.ones(incoming.shape, incoming.dtype)
    probe = (np.arange(1, incoming.size + 1).reshape(incoming.shape) % 7 + 1).astype(incoming.dtype)
    to_device = node.device.backend.from_host
    found = {}
    with on_arrays():
        given = to_device(ones), to_device(probe)
        pairs = zip(*map(node.gradients, given), strict=True)
    for number, (derivative, product) in enumerate(pairs):
        if derivative is None:
            continue
        derivative, product = _on_host(derivative), _on_host(product)
        fits = product.shape == derivative.shape and incoming.shape in ((), product.shape)
        if fits and np.allclose(derivative * probe, product, rtol=1e-3, equal_nan=True):
            found[number] = f"local derivative {_values(derivative)}"
            if derivative.shape != tuple(node.edges[number].shape):
                found[number] += ", summed over what was broadcast"
        else:
            rules = _IN_WORDS.get(node.rule.name, (_VIEWS,))
            is_known = (
                node.rule.name in _IN_WORDS
                or node.rule.part is not None
                or "source" in node.rule.keeps
            )
            text = rules[min(number, len(rules) - 1)]
            found[number] = text if is_known else "a linear map of the incoming gradient"
    return found


def _recurse(vertices: list[Vertex], first: Any) -> tuple[dict[int, Any], list[int], bool]:
    """The naive recursion: pass on all that is there whenever something arrives.

    Gives the gradients, how often each place was visited, and whether it came to an end.
    """
    places = _places(vertices)
    totals: dict[int, Any] = {len(vertices) - 1: first}
    visits = [0] * len(vertices)
    stack = [len(vertices) - 1]
    while stack and sum(visits) < MOST_VISITS:
        place = stack.pop()
        visits[place] += 1
        if vertices[place].is_leaf:
            continue
        inputs = []
        for _, source, value in _passed_on(vertices[place], totals[place]):
            to = places[id(source)]
            if value is not None:
                totals[to] = value if to not in totals else totals[to] + value
                inputs.append(to)
        stack.extend(reversed(inputs))
    return {place: _on_host(it) for place, it in totals.items()}, visits, not stack


def _values(array: Any) -> str:
    if array is None:
        return "nothing"
    if isinstance(array, Parts):
        each = sorted(array.values.items())
        return ", ".join(f"{_values(value)} for output {place}" for place, value in each)
    return words.values(from_numpy(np.array(array)))


def _on_host(array: Any) -> Any:
    """The same in the host's memory, where it can be shown."""
    if isinstance(array, Parts):
        return Parts({place: _on_host(it) for place, it in array.values.items()})
    return np.asarray(backend_of(array).to_host(array))


# Drawing


def _picture(
    vertices: list[Vertex],
    steps: list[Step],
    arrived: dict[int, Any],
    again: tuple[dict[int, Any], list[int], bool] | None,
) -> Picture:
    number_of = {step.place: number for number, step in enumerate(steps, start=1)}
    called = [
        it.name or f"leaf {it.form}" if it.is_leaf else f"{number_of.get(place, '–')}. {it.label}"
        for place, it in enumerate(vertices)
    ]
    title = f"Backward in {words.count(len(steps), 'step')}"
    groups = folding.fold(vertices, MOST_DRAWN)
    drawn = []
    for group in groups:
        box = box_of(vertices, group, is_result=len(vertices) - 1 in group.members)
        if len(group.members) == 1:
            place = group.members[0]
            vertex, value = vertices[place], _values(arrived.get(place))
            box.lines = [
                f"{vertex.name}: {vertex.form}"
                if not vertex.is_leaf and vertex.name
                else vertex.form
            ]
            if vertex.is_leaf:
                box.lines += [vertex.value, f".grad gets {value}"]
            else:
                box.title = f"{number_of.get(place, '–')}. {vertex.title}"
                box.lines.append(f"receives {value}")
        else:
            numbers = sorted(number_of[it] for it in group.members if it in number_of)
            if numbers:
                box.lines.append(f"steps {numbers[0]} to {numbers[-1]}")
        drawn.append(box)
    canvas = Canvas()
    below = "Numbered in the engine's order: a node runs when all its gradients have arrived."
    hooked = [_HOOKS] if any(map(_has_hooks, vertices)) else []
    low = heading(canvas, title, "\n".join([FLOW, below, *hooked]))
    boxes.draw(canvas, drawn, folding.edges(vertices, groups), LEFT, low)
    key(canvas, drawn)
    texts = [_told(vertices[step.place], called, step) for step in steps[:MOST_STEPS]]
    text = [title, f"In each step: {_RULE}", *hooked]
    text += ("\n".join([head, *lines]) for head, lines, _ in texts)
    folds = [f"<p>Open a step to see {_RULE}</p>"]
    folds += [
        f"<details><summary>{escape(head)}</summary>{table.html(_HEADER, rows)}</details>"
        for head, _, rows in texts
    ]
    if len(steps) > MOST_STEPS:
        more = f"and {words.count(len(steps) - MOST_STEPS, 'more step')}"
        text.append(more)
        folds.append(f"<p>{more}</p>")
    for place, vertex in enumerate(vertices):
        if vertex.is_leaf:
            facts = ", ".join(filter(None, [vertex.form, vertex.value]))
            name, gradient = vertex.name or vertex.title, _values(arrived.get(place))
            text.append(f"{name}.grad gets {gradient} ({name}: {facts})")
    if again is not None:
        text += _beside(canvas, vertices, called, arrived, again)
    picture = Steps(title, canvas, "\n".join(text))
    picture._folded = "".join(folds)
    return picture


_HOOKS = "Hooks are not called here: what they change is not shown."


def _has_hooks(vertex: Vertex) -> bool:
    attached = getattr(vertex.node, "_hooks" if vertex.is_leaf else "hooks", None)
    return attached is not None and bool(attached.of_tensor or attached.before or attached.after)


_HEADER = ("to", "rule", "product", "sum so far")


def _told(
    vertex: Vertex, called: list[str], step: Step
) -> tuple[str, list[str], list[tuple[str, str, str, str]]]:
    """A step as a headline, as lines, and as rows of a table."""
    head = f"{called[step.place]}, {vertex.form}, receives {_values(step.incoming)}"
    lines, rows = [], []
    for share in step.shares:
        name, product, total = called[share.to], _values(share.product), _values(share.total)
        so_far = "first" if share.is_first else f"sum so far {total}"
        lines.append(f"   to {name}: {share.derivative}, product {product}, {so_far}")
        rows.append((name, share.derivative, product, total))
    return head, lines, rows


def _beside(
    canvas: Canvas,
    vertices: list[Vertex],
    called: list[str],
    arrived: dict[int, Any],
    again: tuple[dict[int, Any], list[int], bool],
) -> list[str]:
    """Draw and tell how the naive recursion compares."""
    totals, visits, ended = again
    rows = []
    for place, vertex in enumerate(vertices):
        if vertex.is_leaf or visits[place] > 1:
            shown, right = _values(totals.get(place)), _values(arrived.get(place))
            verdict = "right" if shown == right else "wrong"
            rows.append((called[place], right, f"{shown}, {verdict}", f"{visits[place]:,}"))
    n_visits = f"{sum(visits):,} visits" + ("" if ended else ", then it was stopped")
    below = (
        "The naive recursion passes a gradient on whenever one arrives. Where paths meet it "
        "comes again, and what had arrived before is passed on twice. "
        f"All nodes and leaves together got {n_visits}; in order each gets one, "
        f"{len(vertices):,} in all. Below: the leaves, and what got more than one."
    )
    header = ("gradient of", "in order", "naive recursion", "visits")
    y = canvas.extent[1] + 36
    canvas.text(LEFT, y, "For comparison: the naive recursion", 13, bold=True)
    y = canvas.lines(LEFT, y + 20, below, 12, SOFT, width=640)
    table.draw(canvas, LEFT, y - 4, header, rows[:12])
    return ["", f"For comparison: the naive recursion. {below}", *table.text(header, rows[:12])]
