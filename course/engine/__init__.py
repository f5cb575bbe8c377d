"""The engine of chapter 10 in use: operators, a picture, and the test of a learner's parts.

The parts themselves are in `engine_parts`. Here a learner's functions take their places and are
compared with tensorkit on a list of programs; whatever runs in the block `with join(...)` runs on
them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorkit as tk
from course.engine import parts as parts
from course.engine.parts import Graph
from course.notebook import compare
from course.notebook.check import judge
from course.notebook.exercise import Exercise, load
from course.notebook.limited import limited
from course.shared.errors import CourseError, TimeLimit
from tensorkit.viz import Picture, boxes
from tensorkit.viz.drawing import LEAF, PLAIN, Canvas

STEPS = {
    "record": "1, the graph",
    "topological_order": "2, the order",
    "gradients_of": "3, five formulas",
    "backward": "3, the walk",
    "sum_to": "4, broadcasting",
    "recorded_gradients": "5, second order",
}
"""The functions that learners write, and the step to which each belongs."""

SECONDS = 10.0


class Var:
    """A node of a graph with operators: what makes an engine pleasant to use."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    @property
    def value(self) -> tk.Tensor:
        return self.graph[self.name]["value"]

    def _apply(self, operation: str, *others: Var | float) -> Var:
        names = [
            it.name if isinstance(it, Var) else parts.constant(self.graph, it) for it in others
        ]
        return Var(self.graph, parts.apply(self.graph, operation, [self.name, *names]))

    def __add__(self, other: Var | float) -> Var:
        return self._apply("add", other)

    def __sub__(self, other: Var) -> Var:
        return self + other * -1.0

    def __mul__(self, other: Var | float) -> Var:
        return self._apply("mul", other)

    def __matmul__(self, other: Var) -> Var:
        return self._apply("matmul", other)

    def sum(self) -> Var:
        return self._apply("sum")

    def tanh(self) -> Var:
        return self._apply("tanh")

    def gradients(self) -> dict[str, tk.Tensor]:
        """The gradient of this number with respect to every node before it, by name."""
        return parts.gradients_from(self.graph, self.name)

    def recorded_gradients(self) -> dict[str, Var]:
        """The same as nodes of the graph, of which gradients can be taken in turn."""
        found = parts.recorded_gradients_from(self.graph, self.name)
        return {name: Var(self.graph, it) for name, it in found.items()}


def leaves(graph: Graph, **values: tk.Tensor) -> list[Var]:
    """Leaves that require grad, under the names of the keywords."""
    return [Var(graph, parts.leaf(graph, name, it)) for name, it in values.items()]


def constants(graph: Graph, **values: tk.Tensor) -> list[Var]:
    """Tensors that need no gradient, such as data, under the names of the keywords."""
    return [
        Var(graph, parts.leaf(graph, name, it, requires_grad=False)) for name, it in values.items()
    ]


def count(program: Callable[[Var, Var], Var]) -> int:
    """The number of nodes in the graph after `program(x, y)`, the leaves `x` and `y` included."""
    graph: Graph = {}
    program(*leaves(graph, x=tk.tensor(2.0), y=tk.tensor(3.0)))
    return len(graph)


def picture(graph: Graph) -> Picture:
    """The graph as boxes and arrows."""
    names = list(graph)
    drawn = [_box(name, node) for name, node in graph.items()]
    arrows = [
        (names.index(source), at)
        for at, node in enumerate(graph.values())
        for source in node["inputs"]
    ]
    title = f"A graph of {len(graph)} nodes"
    canvas = Canvas(title, "Values flow down.")
    boxes.draw(canvas, drawn, arrows)
    return Picture(title, canvas, "\n".join([title, *(_told(*it) for it in graph.items())]))


def _box(name: str, node: dict[str, Any]) -> boxes.Box:
    is_end = not node["inputs"]
    lines = [node["operation"], _short(node["value"])]
    return boxes.Box(name, lines, LEAF if is_end else PLAIN)


def _told(name: str, node: dict[str, Any]) -> str:
    inputs = " and ".join(node["inputs"])
    what = f"{node['operation']} of {inputs}" if inputs else node["operation"]
    return f"{name}: {what}, {_short(node['value'])}"


def _short(value: tk.Tensor) -> str:
    if value.ndim == 0:
        return f"{value.item():.5g}"
    shape = " × ".join(str(size) for size in value.shape)
    return f"{shape} tensor"


# Programs that run in both engines


@dataclass(frozen=True)
class Program:
    """A computation on leaves of the given shapes; its result is one number."""

    formula: str
    shapes: dict[str, tuple[int, ...]]
    second: bool = True
    """Whether its second order is compared too."""

    def run(self, values: dict[str, Any]) -> Any:
        """The result for these leaves, in whatever engine they belong to."""
        return eval(self.formula, {"chain": _chain, **values})

    def values(self) -> dict[str, tk.Tensor]:
        """Numbers between -0.9 and 0.9, the same on every run."""
        found = {}
        for position, (name, shape) in enumerate(self.shapes.items()):
            n = tk.zeros(shape).numel()
            numbers = [((7 * i + 5 * position + 3) % 19 - 9) / 10 for i in range(n)]
            found[name] = tk.tensor(numbers, dtype=tk.float64).reshape(shape)
        return found


def _chain(x: Any) -> Any:
    for _ in range(1500):
        x = x * 0.5 + 0.25  # exact in every dtype
    return x


PROGRAMS = (
    Program("(x + y).sum()", {"x": (3,), "y": (3,)}),
    Program("(x * y).sum()", {"x": (2, 3), "y": (2, 3)}),
    Program("(x * x * x).sum()", {"x": (4,)}),
    Program("(x + x).sum()", {"x": (2,)}),
    Program("(lambda u: (u + u * u).sum())(x * x)", {"x": (3,)}),
    Program("(lambda u: ((u + y) * (u + y) + u).sum())(x + y)", {"x": (3,), "y": (3,)}),
    Program("(x * 3.0 + 1.0).sum()", {"x": (2,)}),
    Program("x * y + x", {"x": (), "y": ()}),
    Program("(x @ w).sum()", {"x": (2, 3), "w": (3, 4)}),
    Program("(x.tanh() * x).sum()", {"x": (5,)}),
    Program("chain(x).sum()  # 3,000 operations", {"x": (2,)}, second=False),
    Program("((x + b) * x).sum()", {"x": (4, 3), "b": (3,)}),
    Program("(x * y * y).sum()", {"x": (3, 1), "y": (4,)}),
    Program("(x * y).tanh().sum()", {"x": (2, 3), "y": ()}),
    Program("(x * y).tanh().sum()  # two ways to stretch", {"x": (3, 1), "y": (2, 3, 3)}),
    Program(
        "(lambda out: (out * out).sum())((x @ w + b).tanh() @ v)",
        {"x": (4, 3), "w": (3, 5), "b": (5,), "v": (5, 2)},
    ),
)


Observed = dict[str, tk.Tensor]


def _in_engine(program: Program) -> Observed:
    graph: Graph = {}
    values = program.values()
    inputs = dict(zip(values, leaves(graph, **values), strict=True))
    result = program.run(inputs)
    gradients = result.gradients()
    found = {"the value": result.value}
    found.update({f"the gradient of {it}": gradients[it] for it in inputs})
    if program.second:
        slopes = result.recorded_gradients()
        nothing = (inputs["x"] * 0.0).sum()
        total = sum(((slopes[it] * slopes[it]).sum() for it in inputs), start=nothing)
        second = total.gradients()
        found.update({f"the second order of {it}": second[it] for it in inputs if it in second})
    return found


def in_tensorkit(program: Program) -> Observed:
    """The value, the gradients and the second order, as tensorkit's own engine has them."""
    values = {name: it.requires_grad_() for name, it in program.values().items()}
    inputs = list(values.values())
    result = program.run(values)
    found = {"the value": result.detach()}
    slopes = tk.autograd.grad(result, inputs, create_graph=program.second)
    found.update(
        {f"the gradient of {n}": it.detach() for n, it in zip(values, slopes, strict=True)}
    )
    if program.second:
        nothing = (values["x"] * 0.0).sum()
        total = sum(((it * it).sum() for it in slopes), start=nothing)
        second = tk.autograd.grad(total, inputs, allow_unused=True)
        named = zip(values, second, strict=True)
        found.update({f"the second order of {n}": it for n, it in named if it is not None})
    return found


def first_difference() -> str | None:
    """Where the engine, with the parts that are in place, first differs from tensorkit."""
    for program in PROGRAMS:
        try:
            found = _in_engine(program)
        except (KeyboardInterrupt, TimeLimit):
            raise
        except Exception as error:
            text, _ = compare.text_of(error)
            return f"stops in `{program.formula}` with {type(error).__name__}: {text}"
        for what, expected in in_tensorkit(program).items():
            differs = compare.difference(found.get(what), expected)
            if differs is not None:
                return f"differs from tensorkit in `{program.formula}`, {what}. {differs}"
    return None


# A learner's parts


@contextmanager
def in_place(functions: dict[str, Callable[..., Any]]) -> Iterator[None]:
    """The engine runs on these functions while the block runs."""
    own = {name: getattr(parts, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(parts, name, function)
        yield
    finally:
        for name, function in own.items():
            setattr(parts, name, function)


class Joined:
    """An engine of the learner's functions, and what the tests said of each.

    `with joined:` lets everything in the block run on those that are right.
    """

    def __init__(self, functions: dict[str, Callable[..., Any]]) -> None:
        unknown = [name for name in functions if name not in STEPS]
        if unknown:
            raise CourseError(f"The engine has no part {unknown[0]!r}; it has {', '.join(STEPS)}.")
        self.said: dict[str, str] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        for name in (it for it in STEPS if it in functions):
            problem = _problem_of(name, functions[name])
            self.said[name] = problem or "agrees with tensorkit"
            if problem is None:
                self.functions[name] = functions[name]
        self.problem = _tested(self.functions)
        if self.problem:
            self.functions = {}

    def __enter__(self) -> Joined:
        self._running = in_place(self.functions)
        self._running.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._running.__exit__(*error)

    def __repr__(self) -> str:
        lines = [f"Step {STEPS[name]}: `{name}` {said}" for name, said in self.said.items()]
        mine, all_ = len(self.functions), len(STEPS)
        if self.problem:
            lines.append(f"Together the engine {self.problem}")
        elif mine == all_:
            lines.append(f"All {all_} parts are yours, and {len(PROGRAMS)} programs agree")
        else:
            is_ = "is" if mine == 1 else "are"
            lines.append(f"{mine} of {all_} parts {is_} yours, the others are the course's")
        return "\n".join(line.rstrip(".") + "." for line in lines)


def join(**functions: Callable[..., Any]) -> Joined:
    """Test each function in an engine of reference parts, then all that are right together."""
    return Joined(functions)


def _problem_of(name: str, function: Callable[..., Any]) -> str | None:
    exercise = next(it for it in load("10_engine").values() if it.name == name)
    if not _is_written(exercise, function):
        return "is not written yet"
    problem = _tested({name: function})
    if problem is None and judge(exercise, function).status != "passed":
        problem = "runs, but not in every case."
    return problem and f'{problem.rstrip(".")}.\n    See `check("{exercise.id}")`'


def _tested(functions: dict[str, Callable[..., Any]]) -> str | None:
    found: list[str | None] = [None]

    def test() -> None:
        found[0] = first_difference()

    try:
        with in_place(functions):
            limited(test, SECONDS)
    except TimeLimit:
        return f"does not end within {SECONDS:g} seconds"
    return found[0]


def _is_written(exercise: Exercise, function: Callable[..., Any]) -> bool:
    try:
        source: str | None = inspect.getsource(function)
    except (OSError, TypeError):
        source = None
    return not exercise.is_not_started(function, source)
