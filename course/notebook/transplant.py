"""`with transplant(my_function):` puts the learner's function in the place of the library's own.

While the block runs, tensorkit calls the learner's function instead of its own, so that a network
trains on it: see `tensorkit.overrides`.

The places are a fixed list, `PLACES`, by the name that the exercise gives the function. Each wraps
it in a function with the arguments and the result of the library's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Exercise, load
from course.shared.errors import CourseError
from tensorkit.overrides import original, override, override_gradient


class Use:
    """Whether the library called the learner's function, as a sentence."""

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
def transplant(function: Callable[..., Any]) -> Iterator[Use]:
    """Let tensorkit call `function` instead of its own while the block runs.

    function: the learner's answer to an exercise whose name stands in `PLACES`. One that is not
    written yet changes nothing. An error of it becomes a sentence, so that a notebook runs on.

    Raises CourseError if tensorkit has no place for a function of this name.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if name not in PLACES:
        raise CourseError(
            f"tensorkit has no place for a function called {name!r}; there are places for "
            f"{', '.join(PLACES)}."
        )
    use = Use(name, is_written=_is_written(name, function))
    if not use.is_written:
        yield use
        return

    def counted(*args: Any) -> Any:
        use.times += 1
        return function(*args)

    try:
        with PLACES[name](counted):
            yield use
    except Exception as error:
        first = str(error).partition("\n")[0]
        use.error = f"{type(error).__name__}: {first}"


def _is_written(name: str, function: Callable[..., Any]) -> bool:
    exercise = _exercise_of(name)
    try:
        source: str | None = inspect.getsource(function)
    except (OSError, TypeError):
        source = None
    return exercise is None or not exercise.is_not_started(function, source)


def _exercise_of(name: str) -> Exercise | None:
    return next((exercise for exercise in load().values() if exercise.name == name), None)


# The places


def _strides_of(function: Any) -> AbstractContextManager[None]:
    """The learner's function gives the strides of arrays in the standard order."""
    of_the_library = original("strides_of")

    def strides_of(array: Any) -> Any:
        return function(tuple(array.shape)) if array.flags.c_contiguous else of_the_library(array)

    return override("strides_of", strides_of)


def _is_contiguous(function: Any) -> AbstractContextManager[None]:
    return override("is_contiguous", function)


def _broadcast_shapes(function: Any) -> AbstractContextManager[None]:
    """Where the learner's function finds shapes that do not fit, the library words the error."""
    of_the_library = original("broadcast_shapes")

    def broadcast_shapes(a: Any, b: Any) -> Any:
        try:
            return function(tuple(a), tuple(b))
        except ValueError:
            return of_the_library(a, b)

    return override("broadcast_shapes", broadcast_shapes)


def _on_tensors(function: Any, *args: Any) -> Any:
    """What the learner's function makes of tensors, or of arrays: a plain backward has arrays."""
    if isinstance(args[0], tk.Tensor):
        return function(*args)
    tensors = [
        tk.from_numpy(argument) if hasattr(argument, "ndim") else argument for argument in args
    ]
    with tk.no_grad():
        result = function(*tensors)
    return result.numpy() if isinstance(result, tk.Tensor) else result


def _gradient_of_tanh(function: Any) -> AbstractContextManager[None]:
    return override_gradient(tk.tanh, input=lambda g, out: _on_tensors(function, g, out))


def _gradient_of_sigmoid(function: Any) -> AbstractContextManager[None]:
    return override_gradient(tk.sigmoid, input=lambda g, out: _on_tensors(function, g, out))


def _sum_to_shape(function: Any) -> AbstractContextManager[None]:
    return override("sum_to_shape", lambda x, *, to: _on_tensors(function, x, to))


def _backward_order(function: Any) -> AbstractContextManager[None]:
    """The engine visits nodes in the order that the learner's function gives."""

    def order(roots: list[Any], waiting: Any) -> Iterator[Any]:
        names = _names(roots)
        inputs = {
            name: [names[source] for source in _nodes(node.edges)] for node, name in names.items()
        }
        inputs[""] = [names[node] for node in _nodes(roots)]
        root = inputs[""][0] if len(inputs[""]) == 1 else ""
        nodes = {name: node for node, name in names.items()}
        return (nodes[name] for name in (function(inputs, root) if nodes else []) if name)

    return override("backward_order", order)


def _nodes(edges: Iterable[Any]) -> list[Any]:
    """The edges that lead to a node, not to a leaf or nowhere."""
    return [edge for edge in edges if edge is not None and not isinstance(edge, tk.Tensor)]


def _names(roots: list[Any]) -> dict[Any, str]:
    """A name for every node that can be reached."""
    reached = dict.fromkeys(_nodes(roots))
    waiting = list(reached)
    for node in waiting:  # grows while it is read
        new = [source for source in dict.fromkeys(_nodes(node.edges)) if source not in reached]
        reached.update(dict.fromkeys(new))
        waiting += new
    return {node: f"{node.name()} {number}" for number, node in enumerate(reached)}


def _step_of_sgd(change: Callable[[dict[str, Any], Any], None]) -> AbstractContextManager[None]:
    """A step of SGD in which `change` is called with each group and the optimizer."""
    of_the_library = original("step")

    def step(optimizer: Any, *args: Any) -> Any:
        if not isinstance(optimizer, tk.optim.SGD):
            return of_the_library(optimizer, *args)
        for group in optimizer.param_groups:
            change(group, optimizer)
        return None

    return override("step", step)


def _sgd_step(function: Any) -> AbstractContextManager[None]:
    def change(group: dict[str, Any], _: Any) -> None:
        parameters = group["params"]
        function(parameters, [parameter.grad for parameter in parameters], group["lr"])

    return _step_of_sgd(change)


def _momentum_step(function: Any) -> AbstractContextManager[None]:
    def change(group: dict[str, Any], optimizer: Any) -> None:
        parameters = group["params"]
        states = [optimizer.state[parameter] for parameter in parameters]
        for state, parameter in zip(states, parameters, strict=True):
            state.setdefault("momentum_buffer", tk.zeros_like(parameter))
        velocities = [state["momentum_buffer"] for state in states]
        gradients = [parameter.grad for parameter in parameters]
        function(parameters, gradients, velocities, group["lr"], group["momentum"])

    return _step_of_sgd(change)


def _find_kernel(function: Any) -> AbstractContextManager[None]:
    return override("find_kernel", function)


PLACES: dict[str, Callable[[Any], AbstractContextManager[None]]] = {
    "strides_of": _strides_of,
    "contiguous_by_hand": _is_contiguous,
    "broadcast_shape": _broadcast_shapes,
    "tanh_gradient": _gradient_of_tanh,
    "sigmoid_gradient": _gradient_of_sigmoid,
    "backward_order": _backward_order,
    "unbroadcast": _sum_to_shape,
    "sgd_step": _sgd_step,
    "momentum_step": _momentum_step,
    "find_kernel": _find_kernel,
}
