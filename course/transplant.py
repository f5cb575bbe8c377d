"""`with transplant(my_function):` puts the learner's function in the library's own place.

While the block runs, tensorkit asks the learner's function where it would ask its own, so that a
network trains on it. The library then takes its general path, which looks every function up when it
calls it.

The places are a fixed list, `PLACES`, by the name that the exercise gives the function.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorkit as tk
from course.errors import CourseError
from course.exercise import Exercise, load
from tensorkit import optim
from tensorkit.autograd import engine
from tensorkit.errstate import silent
from tensorkit.ops import reductions


class Asked:
    """Whether the library asked the learner's function, as a sentence."""

    def __init__(self, name: str, is_written: bool) -> None:
        self.name = name
        self.is_written = is_written
        self.times = 0
        self.error = ""

    def __repr__(self) -> str:
        if not self.is_written:
            return f"`{self.name}` is not written yet: tensorkit used its own."
        if self.error:
            return f"With your `{self.name}` inside, tensorkit stopped: {self.error}"
        if not self.times:
            return f"tensorkit had nothing to ask your `{self.name}`."
        return f"tensorkit asked your `{self.name}`."


@contextmanager
def transplant(function: Callable[..., Any]) -> Iterator[Asked]:
    """Let tensorkit ask `function` in place of its own while the block runs.

    function: the learner's answer to an exercise whose name stands in `PLACES`. One that is not
    written yet changes nothing. What goes wrong with it inside is said in a sentence, so that a
    notebook runs on.

    Raises CourseError if tensorkit has no place for a function of this name.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if name not in PLACES:
        raise CourseError(
            f"tensorkit has no place for a function called {name!r}; there are places for "
            f"{', '.join(PLACES)}."
        )
    asked = Asked(name, is_written=_is_written(name, function))
    if not asked.is_written:
        yield asked
        return

    def counted(*args: Any) -> Any:
        asked.times += 1
        return function(*args)

    silent.close()
    restore = PLACES[name](counted)
    try:
        yield asked
    except Exception as error:
        first = str(error).partition("\n")[0]
        asked.error = f"{type(error).__name__}: {first}"
    finally:
        for undo in restore:
            undo()
        silent.open()


def _is_written(name: str, function: Callable[..., Any]) -> bool:
    exercise = _exercise_of(name)
    try:
        source: str | None = inspect.getsource(function)
    except (OSError, TypeError):
        source = None
    return exercise is None or not exercise.is_not_started(function, source)


def _exercise_of(name: str) -> Exercise | None:
    return next((it for it in load().values() if it.name == name), None)


# The places

Undo = Callable[[], None]


def _module_function(module: str, name: str, adapt: Any = None) -> Callable[[Any], list[Undo]]:
    """The place of a function that modules import by name or by module: all of them."""

    def put(mine: Any) -> list[Undo]:
        own = getattr(sys.modules[module], name)
        new = mine if adapt is None else adapt(mine, own)
        undos: list[Undo] = []
        for other in [it for key, it in sys.modules.items() if key.startswith("tensorkit")]:
            for attribute, value in list(vars(other).items()):
                if value is own:
                    undos.append(_set(other, attribute, new))
        return undos

    return put


def _set(owner: Any, attribute: str, value: Any) -> Undo:
    own = getattr(owner, attribute)
    setattr(owner, attribute, value)
    return lambda: setattr(owner, attribute, own)


def _ours_where_it_refuses(mine: Any, own: Any) -> Any:
    """Where the learner's function finds shapes that do not fit, the library words the error."""

    def fitting(a: Any, b: Any) -> Any:
        try:
            return mine(tuple(a), tuple(b))
        except ValueError:
            return own(a, b)

    return fitting


def _of_contiguous(mine: Any, own: Any) -> Any:
    """Of an array in the standard order the strides are what the learner's function says."""

    def strides_of(array: Any) -> Any:
        return mine(tuple(array.shape)) if array.flags.c_contiguous else own(array)

    return strides_of


def _formula(operation: str, number: str | None = None) -> Callable[[Any], list[Undo]]:
    """The gradient formula of an operation with one input."""

    def put(mine: Any) -> list[Undo]:
        rule = getattr(tk, operation).definition.rules[number]

        def formula(g: Any, *saved: Any) -> Any:
            if isinstance(g, tk.Tensor):
                return mine(g, *saved)
            with tk.no_grad():
                found = mine(*map(_as_tensor, (g, *saved)))
            return found._array if isinstance(found, tk.Tensor) else found

        return [_set(rule, "formulas", (formula,))]

    return put


def _as_tensor(value: Any) -> Any:
    return tk.from_numpy(value) if hasattr(value, "ndim") else value


class _SumToShape:
    """Undoes broadcasting with the learner's function, on tensors and on arrays."""

    def __init__(self, mine: Any) -> None:
        self.mine = mine

    def __call__(self, value: Any, *, to: tuple[int, ...]) -> Any:
        if isinstance(value, tk.Tensor):
            return self.mine(value, to)
        with tk.no_grad():
            return self.mine(tk.from_numpy(value), to)._array


def _unbroadcasting(mine: Any) -> list[Undo]:
    return [_set(reductions, "sum_to_shape", _SumToShape(mine))]


def _engine_order(mine: Any) -> list[Undo]:
    """The engine with another walk: in the order that the learner's function gives."""

    def walk(run: Any, starts: list[Any], needed: Any) -> None:
        for edge, gradient in starts:
            run.deliver(edge, gradient)
        names = _names([edge for edge, _ in starts])
        inputs = {name: [names[it] for it in _nodes(node.edges)] for node, name in names.items()}
        inputs[""] = [names[edge] for edge in _nodes(edge for edge, _ in starts)]
        root = inputs[""][0] if len(inputs[""]) == 1 else ""
        nodes = {name: node for node, name in names.items()}
        for name in mine(inputs, root) if nodes else []:
            if name:
                _run_node(run, nodes[name])

    return [_set(engine._Run, "_walk", walk)]


def _nodes(edges: Iterable[Any]) -> list[Any]:
    """The edges that lead to a node, not to a leaf or nowhere."""
    return [it for it in edges if it is not None and not isinstance(it, tk.Tensor)]


def _names(starts: list[Any]) -> dict[Any, str]:
    """A name for every node that can be reached."""
    found = dict.fromkeys(_nodes(starts))
    waiting = list(found)
    for node in waiting:  # grows while it is walked
        new = [it for it in dict.fromkeys(_nodes(node.edges)) if it not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return {node: f"{node.name()} {number}" for number, node in enumerate(found)}


def _run_node(run: Any, node: Any) -> None:
    gradient = run.pending.pop(node, None)
    if gradient is None:  # the order was wrong: nothing has arrived yet
        return
    if id(node) in (run.wanted or ()):
        run.found[id(node)] = gradient
    values = node.rule.gradients(node, gradient, run.create_graph)
    for edge, value in zip(node.edges, values, strict=False):
        if edge is not None and value is not None:
            run.deliver(edge, value)
    if not run.keep:
        node.release()


def _optimizer_step(mine: Any) -> list[Undo]:
    def step(self: optim.SGD) -> None:
        for group in self.param_groups:
            parameters = group["params"]
            mine(parameters, [it.grad for it in parameters], group["lr"])

    return [_set(optim.SGD, "step", step)]


def _momentum_step(mine: Any) -> list[Undo]:
    def step(self: optim.SGD) -> None:
        for group in self.param_groups:
            parameters = group["params"]
            states = [self.state[it] for it in parameters]
            for state, parameter in zip(states, parameters, strict=True):
                state.setdefault("momentum_buffer", tk.zeros_like(parameter))
            velocities = [state["momentum_buffer"] for state in states]
            gradients = [it.grad for it in parameters]
            mine(parameters, gradients, velocities, group["lr"], group["momentum"])

    return [_set(optim.SGD, "step", step)]


PLACES: dict[str, Callable[[Any], list[Undo]]] = {
    "strides_of": _module_function("tensorkit.base", "strides_of", _of_contiguous),
    "contiguous_by_hand": _module_function("tensorkit.layout", "is_contiguous"),
    "broadcast_shape": _module_function(
        "tensorkit.layout", "broadcast_shapes", _ours_where_it_refuses
    ),
    "tanh_gradient": _formula("tanh"),
    "sigmoid_gradient": _formula("sigmoid"),
    "backward_order": _engine_order,
    "unbroadcast": _unbroadcasting,
    "topological_order": _engine_order,
    "sum_to": _unbroadcasting,
    "sgd_step": _optimizer_step,
    "momentum_step": _momentum_step,
}
