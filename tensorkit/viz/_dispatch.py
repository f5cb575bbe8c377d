"""``viz.dispatch``: the layers that a call passes, and the kernel it ends in.

What is shown is what happened: the call is made once, on the slow way, whose layers note what they
do (``tensorkit.dispatch_layers.Trace``).
"""

from inspect import unwrap
from typing import Any, NamedTuple

from tensorkit.autograd._recording import why_untracked
from tensorkit.autograd.node import requires_grad
from tensorkit.base import TensorBase
from tensorkit.dispatch_layers import Trace
from tensorkit.dtypes import of_number
from tensorkit.errors import NotSupportedError
from tensorkit.ops.arguments import as_number
from tensorkit.overrides import replaced
from tensorkit.thread_state import state
from tensorkit.viz import boxes, drawing
from tensorkit.viz.picture import Picture

MOST_CALLS = 8
MEANINGS = {drawing.PLAIN: "passed", drawing.FOLDED: "skipped", drawing.RESULT: "the kernel"}


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


def dispatch(operation: Any, *args: Any, **options: Any) -> Picture:
    """Picture of the layers that a call passes: autograd, modes, promotion, device, the kernel.

    The call is made, once. Of a function that is made of several operations each is drawn.
    ``explain.dispatch`` says the same in sentences. Raises what the call raises.

    >>> from tensorkit import viz
    >>> viz.dispatch(tk.mul, tk.ones(2), tk.tensor([1, 2]))
    Dispatch of mul
    autograd: skipped, no input requires grad
    modes: skipped, no mode is on
    promotion: float32 and int64 become float32
    device: cpu; the default kernel
    kernel: numpy.multiply
    """
    routes = routes_of(operation, args, options)
    title, *_ = said = sentences(routes)
    width, drawn, edges = 44 if len(routes) == 1 else 26, list[boxes.Box](), list[tuple[int, int]]()
    for route in routes[:MOST_CALLS]:
        edges += [(len(drawn) + at, len(drawn) + at + 1) for at in range(len(route.layers))]
        for name, is_passed, reason in route.layers:
            lines = [*["skipped"] * (not is_passed), *drawing.wrap_text(reason, width)]
            drawn.append(boxes.Box(name, lines, drawing.PLAIN if is_passed else drawing.FOLDED))
        kernel = drawing.wrap_text(route.kernel, 40)
        drawn.append(boxes.Box(route.operation, kernel, drawing.RESULT))
    canvas = drawing.Canvas(title)
    boxes.draw(canvas, drawn, edges, MEANINGS)
    return Picture(title, canvas, "\n".join(said))


def sentences(routes: list[Route]) -> list[str]:
    """The routes in words; the first one is a title."""
    lines = [f"Dispatch of {', '.join(route.operation for route in routes[:MOST_CALLS])}"]
    for route in routes:
        lines += [f"{route.operation}:"] * (len(routes) > 1)
        for name, is_passed, reason in route.layers:
            lines.append(f"{name}: {reason}" if is_passed else f"{name}: skipped, {reason}")
        lines.append(f"kernel: {route.kernel}")
    return lines


def routes_of(operation: Any, args: Any, options: Any) -> list[Route]:
    """Make the call, and read what its layers noted."""
    traces = list[Trace]()
    with replaced(state, trace=traces):
        operation(*args, **options)
    found = [_route(each, [x for x in traces if x.kernel]) for each in traces if each.outer is None]
    if not found:
        first = f"{getattr(operation, '__name__', operation)} calls no operation with kernels"
        raise NotSupportedError(first, "Copies, joins, new tensors, indexing, tk.where have none.")
    return found


def _route(trace: Trace, traces: list[Trace]) -> Route:
    """The route of a call; ``traces``: all that ended in a kernel, also what a mode has called."""
    name, result = trace.operation.__name__, trace.result
    result = result[0] if isinstance(result, tuple) else result
    tensors = [x for x in trace.tensors if isinstance(x, TensorBase)]
    reason = f"an input requires grad: the result gets {getattr(result, 'grad_fn', None)}"
    reason = reason if requires_grad(result) else why_untracked(name, tensors, result, trace.grad)
    called = " and ".join(type(mode).__name__ for mode in reversed(trace.modes))
    layers = [Layer("autograd", requires_grad(result), reason)]
    layers.append(Layer("modes", bool(called), called or "no mode is on"))
    below = [x for x in traces if trace in (x, x.outer) and x.operation is trace.operation]
    if not below:
        return Route(name, layers, "no kernel: the mode answered")
    kernel, result = below[0].kernel, below[0].result
    device = (result[0] if isinstance(result, tuple) else result).device
    definition = getattr(trace.operation, "definition", trace.operation)
    is_own = definition.kernels.get(device.type) is kernel
    which = f"the kernel of {device.type}" if is_own else "the default kernel"
    library, end = device.backend.xp.__name__, f"{getattr(unwrap(kernel), '__name__', kernel)}()"
    if kernel is not getattr(definition, "forward", None):
        end += ", registered by you"
    elif definition.ufunc:
        end = f"{library}.{definition.ufunc}"
    else:
        end += f" of {kernel.__module__}, {library}"
    layers += [_promotion(below[0]), Layer("device", True, f"{device}; {which}")]
    return Route(name, layers, end)


def _promotion(trace: Trace) -> Layer:
    if trace.dtype is None:
        return Layer("promotion", False, "this operation does not promote")
    own = [x.dtype if isinstance(x, TensorBase) else of_number(as_number(x)) for x in trace.tensors]  # type: ignore[arg-type]
    shapes = [str(tuple(x.shape)) for x in trace.tensors if isinstance(x, TensorBase)]
    name = trace.dtype.name
    said = [x.dtype.name if isinstance(x, TensorBase) else f"the number {x}" for x in trace.tensors]
    changes = [f"{' and '.join(said)} become {name}"] * ({*own} != {trace.dtype})
    changes += [f"shapes {' and '.join(shapes)} are broadcast"] * (len({*shapes}) > 1)
    return Layer("promotion", bool(changes), "; ".join(changes) or f"all are {name}, of one shape")
