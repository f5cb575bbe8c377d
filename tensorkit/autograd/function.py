"""``autograd.Function``: operations of the user's own, with a backward of their own.

``forward`` works on ordinary tensors and is not recorded; what it gives gets a ``FunctionNode``,
which calls ``backward``. Where there are several outputs each has an ``OutputNode`` of its own;
these hand their gradients on as ``Parts``.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

from tensorkit import base
from tensorkit.autograd import history
from tensorkit.autograd.graph import Node, Parts, next_order
from tensorkit.autograd.marks import INFERENCE, LEAF
from tensorkit.autograd.modes import no_grad, state
from tensorkit.autograd.rules import Rule
from tensorkit.autograd.saved import (
    FREED,
    as_it_was,
    maker_of,
    refuse_freed,
    refuse_inference,
    refuse_stale,
    version_of,
)
from tensorkit.base import TensorBase
from tensorkit.devices import device_of_array
from tensorkit.errors import AutogradError, NotSupportedError, message, sizes
from tensorkit.ops import copying, moving, views


class Context:
    """What ``forward`` and ``backward`` share, their first argument. It takes any attribute."""

    needs_input_grad: tuple[bool, ...]  # for each argument of forward

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._kept: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True
        self._node: Callable[[], FunctionNode | None] = lambda: None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, or None, for backward, where ``saved_tensors`` gives them.

        A write to one of them in between is then an error instead of a wrong gradient.
        """
        for place, each in enumerate(tensors):
            if each is not None and not isinstance(each, TensorBase):
                raise TypeError(
                    message(
                        "save_for_backward can only save variables, but argument "
                        f"{place} is of type {type(each).__name__}",
                        repair="ctx.name = value    # for everything that is no tensor",
                    )
                )
        self._kept = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` was given."""
        node = self._node()
        return self._kept if node is None else node.saved_tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Tell that forward writes to these arguments; they must be among its results."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Tell that these results have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether the gradient of a result that was not used is zero (the default) or None."""
        self._materialize = value


class Function:
    """An operation with a gradient of its own: a subclass with ``forward`` and ``backward``.

    >>> class Cube(tk.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x * x
    >>> x = tk.tensor(2., requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y
    tensor(8., grad_fn=<CubeBackward>)
    >>> y.backward()
    >>> x.grad
    tensor(12.)
    """

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse: a function is applied, not called."""
        raise AutogradError(
            "Legacy autograd function with non-static forward method is deprecated. Please "
            "use new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)",
            repair=f"{type(self).__name__}.apply(x)",
        )

    @staticmethod
    def forward(*args: Any, **options: Any) -> Any:
        """The results from ``ctx`` and the arguments; without ``ctx`` if there is setup_context."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save on ``ctx`` what backward needs, if forward has no ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """A gradient, or None, for each argument of forward."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call ``forward`` on the arguments, and record it."""
        edges = [history.edge_of(x) if isinstance(x, TensorBase) else None for x in args]
        ctx = Context(tuple(edge is not None for edge in edges))
        with no_grad():
            if cls.setup_context is Function.setup_context:
                results = cls.forward(ctx, *args)
            else:
                results = cls.forward(*args)
                cls.setup_context(ctx, args, results)
        several = results if isinstance(results, tuple) else (results,)
        for x in ctx._dirty:
            _check_dirty(x, several)
        node = None
        if state.grad and any(ctx.needs_input_grad):
            node = FunctionNode(cls, ctx, args, edges, several)
        finished = tuple(
            _finished(each, place, node, ctx, args) for place, each in enumerate(several)
        )
        if node is not None:
            node.keep(ctx, finished)
        return finished if isinstance(results, tuple) else finished[0]


def _check_dirty(x: Any, results: tuple[Any, ...]) -> None:
    if not isinstance(x, TensorBase):
        raise TypeError(f"mark_dirty can only accept variables, but got {type(x).__name__}")
    if not any(x is each for each in results):
        raise AutogradError(
            "Some elements marked as dirty during the forward method were not returned as output. "
            "The inputs that are modified inplace must all be outputs of the Function."
        )


def _finished(
    result: Any, place: int, node: "FunctionNode | None", ctx: Context, args: tuple[Any, ...]
) -> Any:
    """A result of forward, tied to the graph."""
    if not isinstance(result, TensorBase):
        return result
    if any(result is x for x in ctx._dirty):
        _written(result, place, node, args)
        return result
    is_constant = any(result is x for x in ctx._constant)
    if any(result is x for x in args):
        result = views.alias(result)
    if state.inference:
        result._node = INFERENCE
    elif node is not None and (is_constant or not result.dtype.is_floating_point):
        result._node = None
    elif node is not None:
        if history.is_view(result):
            node.views.add(place)
        result._node = node.output(place)
    if base.watch is not None:
        base.watch.made(result)
    return result


def _written(x: TensorBase, place: int, node: "FunctionNode | None", args: tuple[Any, ...]) -> None:
    """Record the write of forward to its argument ``x``."""
    if x._node is LEAF and node is not None:
        raise AutogradError(
            "a leaf Variable that requires grad has been used in an in-place operation.",
            repair="F.apply(x.clone())",
        )
    history.written(x, "mark_dirty")
    if node is None:
        return
    if history.is_view(x) and x is not args[0]:
        raise NotSupportedError(
            "tensorkit records a Function's write to a view only if the view is the first argument",
            repair="x = x.clone()    # before",
        )
    history.rebase(x, node.output(place))


class FunctionNode(Node):
    """One application of a Function; in backward it calls the Function's ``backward``.

    What the user set on ``ctx`` can be read here, too.
    """

    __slots__ = ("__weakref__", "ctx", "function", "models", "places", "views")

    edges: Any  # of the arguments that are tensors
    saved: Any

    def __init__(
        self,
        function: type[Function],
        ctx: Context,
        args: tuple[Any, ...],
        edges: list[Any],
        results: tuple[Any, ...],
    ) -> None:
        self.rule = Rule(function.__name__, f"{function.__name__}Backward", (), {})
        self.hooks, self.order = None, next_order()
        self.function, self.ctx = function, ctx
        # the arguments that are tensors have edges
        self.places = [place for place, x in enumerate(args) if isinstance(x, TensorBase)]
        self.edges = tuple(edges[place] for place in self.places)
        # shape, dtype and device of each result
        self.models = [
            (each._array.shape, each._array.dtype, each.device)
            if isinstance(each, TensorBase)
            else None
            for each in results
        ]
        self.shape, self.dtype, self.device = next(
            (x for x in self.models if x is not None), ((), None, None)
        )
        self.saved, self.versions = (), 0
        self.views: set[int] = set()  # the results that share memory with an argument
        if base.watch is not None:
            base.watch.node(self)

    def keep(self, ctx: Context, results: tuple[Any, ...]) -> None:
        """Save what ``forward`` asked for; results without a reference back to them."""
        kept: list[Any] = []
        for x in ctx._kept:
            place = next((place for place, each in enumerate(results) if each is x), None)
            if x is None:
                kept.append(None)
            elif place is not None:
                base.storage_of(x)
                kept.append((base.same_memory(x), version_of(x), place))
            else:
                refuse_inference(x)
                kept.append((x, version_of(x), history.edge_of(x)))
        self.saved = kept
        ctx._kept = ctx._dirty = ctx._constant = ()
        ctx._node = weakref.ref(self)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``ctx.save_for_backward`` was given."""
        if self.saved is FREED:
            refuse_freed()
        return tuple(each and self._unpacked(*each) for each in self.saved)

    def _unpacked(self, x: Any, version: int, where: Any) -> Any:
        is_result = where.__class__ is int
        if version_of(x) != version:
            name, maker = ("out", self) if is_result else ("x", maker_of(x))
            refuse_stale(self, name, x, version, maker)
        if not is_result:
            return as_it_was(x, where)
        result = base.same_memory(x)
        result._node = self.output(where)
        return result

    def output(self, place: int) -> Node:
        """The node of one result."""
        return self if len(self.models) == 1 else OutputNode(self, place)

    def gradients(self, g: Any) -> tuple[Any, ...]:
        """The gradients for the edges, as arrays."""
        given = [
            None
            if part is None or model is None
            else base.new(base.contiguous(part, device_of_array(part)))
            for part, model in self._parts(g)
        ]
        return tuple(None if each is None else each._array for each in self._backward(given))

    def tensor_gradients(self, g: Any) -> tuple[Any, ...]:
        """The gradients for the edges, recorded."""
        return self._backward([part for part, _ in self._parts(g)])

    def _parts(self, g: Any) -> list[tuple[Any, Any]]:
        parts = g.values if isinstance(g, Parts) else {0: g}
        return [(parts.get(place), model) for place, model in enumerate(self.models)]

    def _backward(self, given: list[Any]) -> tuple[Any, ...]:
        if self.saved is FREED:
            refuse_freed()
        if self.ctx._materialize:
            given = [
                base.new(model[2].backend.xp.zeros(*model[:2]))
                if part is None and model is not None
                else part
                for part, model in zip(given, self.models, strict=True)
            ]
        answer = self.function.backward(self.ctx, *given)
        answers = list(answer) if isinstance(answer, tuple) else [answer]
        n_args = len(self.ctx.needs_input_grad)
        while len(answers) > n_args and answers[-1] is None:
            del answers[-1]
        if len(answers) != n_args:
            raise AutogradError(
                f"function {self.rule.node} returned an incorrect number of gradients "
                f"(expected {n_args}, got {len(answers)})",
                "Backward gives one gradient, or None, for each argument of forward.",
            )
        answers = [self._checked(place, each) for place, each in enumerate(answers)]
        return tuple(answers[place] for place in self.places)

    def _checked(self, place: int, answer: Any) -> Any:
        if answer is None:
            return None
        if place not in self.places:
            raise AutogradError(
                f"function {self.rule.node} returned a gradient different than None at "
                f"position {place + 1}, but the corresponding forward input was not a Variable",
                repair="return None in its place",
            )
        if not isinstance(answer, TensorBase):
            raise AutogradError(f"expected Variable or None (got {type(answer).__name__})")
        number = self.places.index(place)
        edge = self.edges[number]
        if edge is None or isinstance(edge, OutputNode):
            return answer
        wanted, got = tuple(edge.shape), tuple(answer.shape)
        lead = len(got) - len(wanted)
        if lead < 0 or any(
            size not in (1, other) for size, other in zip(wanted, got[lead:], strict=True)
        ):
            raise AutogradError(
                f"Function {self.rule.node} returned an invalid gradient at index {number} - got "
                f"{sizes(got)} but expected shape compatible with {sizes(wanted)}"
            )
        return moving.at_home(
            answer, edge.device, number, f"Function {self.rule.node} returned an "
        )

    def allow_write(self, place: int = 0) -> None:
        """Raise if the result shares memory with an argument."""
        if place in self.views:
            raise AutogradError(
                f"Output {place} of {self.rule.name} is a view and is being modified inplace. "
                "This view was created inside a custom Function (or because an input was "
                "returned as-is) and the autograd logic to handle view+inplace would override "
                "the custom backward associated with the custom Function, leading to "
                "incorrect gradients. This behavior is forbidden. You can fix this by cloning "
                "the output of the custom Function.",
                repair="y = F.apply(x).clone()",
            )

    def release(self) -> None:
        """Forget the saved tensors."""
        if self.saved:
            self.saved = FREED

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'{self.rule.node}' object has no attribute '{name}'")
        return getattr(self.ctx, name)


class OutputNode(Node):
    """One of several results of a FunctionNode."""

    __slots__ = ("function", "output_nr")

    def __init__(self, function: FunctionNode, place: int) -> None:
        self.rule, self.hooks = function.rule, None
        self.shape, self.dtype, self.device = function.models[place]  # type: ignore[misc]
        self.saved, self.versions = (), 0
        self.order = next_order()
        self.function, self.output_nr = function, place

    @property
    def whole(self) -> Node:
        """The node of the application."""
        return self.function

    @property
    def edges(self) -> tuple[Any, ...]:
        """The node of the application."""
        return (self.function,)

    def gradients(self, g: Any) -> tuple[Any, ...]:
        """The gradient, marked as that of this result."""
        return (Parts({self.output_nr: g}),)

    tensor_gradients = gradients

    def allow_write(self, place: int = 0) -> None:
        """Raise if the result shares memory with an argument."""
        self.function.allow_write(self.output_nr)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a ``backward`` that must not be differentiated: its results say so."""

    @functools.wraps(backward)
    def inside(ctx: Any, *gradients: Any) -> Any:
        with no_grad():
            answer = backward(ctx, *gradients)
        if not any(isinstance(g, TensorBase) and history.requires_grad(g) for g in gradients):
            return answer
        answers = answer if isinstance(answer, tuple) else (answer,)
        refused = tuple(
            None if x is None else _Refused.apply(copying.filled(x, 0).requires_grad_(), x)
            for x in answers
        )
        return refused if isinstance(answer, tuple) else refused[0]

    return inside


class _Refused(Function):
    """A value whose gradient is an error."""

    @staticmethod
    def forward(ctx: Any, start: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise AutogradError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
