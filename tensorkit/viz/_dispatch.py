"""``viz.dispatch``: the layers that a call passes, and the kernel it ends in.

What is shown is what happened: the call is made once, on the slow way, whose layers note what they
do (``tensorkit.dispatch_layers.Trace``).
"""

from collections.abc import Callable
from inspect import unwrap
from typing import Any, NamedTuple

from tensorkit.autograd.node import requires_grad
from tensorkit.autograd.recording import why_untracked
from tensorkit.base import TensorBase
from tensorkit.dispatch_layers import Trace
from tensorkit.dtypes import of_number
from tensorkit.errors import NotSupportedError
from tensorkit.ops.arguments import as_number
from tensorkit.overrides import replaced
from tensorkit.thread_state import state
from tensorkit.viz import boxes, drawing
from tensorkit.viz.boxes import Box
from tensorkit.viz.drawing import Canvas
from tensorkit.viz.picture import Picture

MOST_CALLS = 8
MEANINGS = {
    drawing.PLAIN: "a layer that the call passes",
    drawing.FOLDED: "a layer that is skipped",
    drawing.RESULT: "the kernel",
}


class Layer(NamedTuple):
    """What a layer did with a call, or why it was skipped."""

    name: str
    is_passed: bool
    reason: str


class Route(NamedTuple):
    """The way of one call: its layers from the outside in, and the kernel, all in words."""

    operation: str
    layers: list[Layer]
    kernel: str


def dispatch(operation: Callable[..., Any], *args: Any, **options: Any) -> Picture:
    """Picture of the layers that a call passes: autograd, modes, promotion, device, the kernel.

    The call is made, once. Of a function that is made of several operations each is drawn.
    ``explain.dispatch`` says the same in sentences. Raises what the call raises.

    >>> from tensorkit import viz
    >>> viz.dispatch(tk.mul, tk.ones(2), tk.tensor([1, 2]))
    Dispatch of mul: ends in numpy.multiply
    autograd: skipped, no input requires grad
    modes: skipped, no mode is on
    promotion: float32 and int64 become float32
    device: cpu; the default kernel
    kernel: numpy.multiply
    """
    routes = routes_of("viz.dispatch", operation, args, options)
    shown, width = routes[:MOST_CALLS], 44 if len(routes) == 1 else 26
    title = f"Dispatch of {', '.join(route.operation for route in shown)}"
    title += f": ends in {routes[0].kernel}" if len(routes) == 1 else ""
    drawn, edges = list[Box](), list[tuple[int, int]]()
    for route in shown:
        edges += [(len(drawn) + at, len(drawn) + at + 1) for at in range(len(route.layers))]
        for name, is_passed, reason in route.layers:
            lines = [*["skipped"] * (not is_passed), *drawing.wrap_text(reason, width)]
            drawn.append(Box(name, lines, drawing.PLAIN if is_passed else drawing.FOLDED))
        drawn.append(Box(route.operation, drawing.wrap_text(route.kernel, 40), drawing.RESULT))
    canvas = Canvas(title)
    boxes.draw(canvas, drawn, edges, MEANINGS)
    return Picture(title, canvas, "\n".join([title, *sentences(routes)]))


def sentences(routes: list[Route]) -> list[str]:
    """The routes in words."""
    lines = []
    for route in routes:
        lines += [f"{route.operation}:"] * (len(routes) > 1)
        for name, is_passed, reason in route.layers:
            lines.append(f"{name}: {reason}" if is_passed else f"{name}: skipped, {reason}")
        lines.append(f"kernel: {route.kernel}")
    return lines


def routes_of(function: str, operation: Any, args: Any, options: Any) -> list[Route]:
    """Make the call, and read what its layers noted."""
    traces = list[Trace]()
    with replaced(state, trace=traces):
        operation(*args, **options)
    found = [_route(each, traces[at + 1 :]) for at, each in enumerate(traces) if not each.is_inner]
    if not found:
        name = getattr(operation, "__name__", repr(operation))
        first = f"{function}(): {name} calls no operation that has a table of kernels"
        raise NotSupportedError(first, repair=f"{function}(tk.add, x, y)")
    return found


def _route(trace: Trace, later: list[Trace]) -> Route:
    """The route of a call; below a mode, ``later`` has the call that the mode makes."""
    name, inner = trace.operation.__name__, trace
    for other in later:
        if other.operation is trace.operation and other.modes == inner.modes[:-1] and inner.modes:
            inner = other
    result = trace.result[0] if isinstance(trace.result, tuple) else trace.result
    tensors = [x for x in trace.tensors if isinstance(x, TensorBase)]
    why = f"an input requires grad: the result gets {getattr(result, 'grad_fn', None)}"
    why = why if requires_grad(result) else why_untracked(name, tensors, result)
    called = " and ".join(type(mode).__name__ for mode in reversed(trace.modes))
    layers = [Layer("autograd", requires_grad(result), why)]
    layers.append(Layer("modes", bool(called), called or "no mode is on"))
    if inner.kernel is None:
        return Route(name, layers, "no kernel: the mode answered")
    return Route(name, [*layers, _promotion(inner), _device(inner)], _kernel(inner))


def _promotion(trace: Trace) -> Layer:
    if trace.dtype is None:
        return Layer("promotion", False, "this operation does not promote")
    operands: Any = [x for x in trace.tensors if x is not None]
    own = [x.dtype if isinstance(x, TensorBase) else of_number(as_number(x)) for x in operands]  # type: ignore[arg-type]
    shapes = [tuple(x.shape) for x in operands if isinstance(x, TensorBase)]
    changes, name = [], trace.dtype.name
    if {*own} != {trace.dtype}:
        changes.append(f"{' and '.join(dtype.name for dtype in own)} become {name}")
    if len({*shapes}) > 1:
        changes.append(f"shapes {' and '.join(map(str, shapes))} are broadcast")
    return Layer("promotion", bool(changes), "; ".join(changes) or f"all are {name}, of one shape")


def _device(trace: Trace) -> Layer:
    kernels = getattr(trace.operation, "definition", trace.operation).kernels
    is_own = kernels.get(trace.device.type) is trace.kernel
    which = f"the kernel of {trace.device.type}" if is_own else "the default kernel"
    return Layer("device", True, f"{trace.device}; {which}")


def _kernel(trace: Trace) -> str:
    definition = getattr(trace.operation, "definition", None)
    name = getattr(unwrap(trace.kernel), "__name__", repr(trace.kernel))
    if definition is None or trace.kernel is not definition.forward:
        return f"{name}(), registered by you"
    library = trace.device.backend.xp.__name__
    of_module = f"{name}() of {definition.forward.__module__}, {library}"
    return f"{library}.{definition.ufunc}" if definition.ufunc else of_module
