"""``autograd.Function``: operations of the user's own, with a backward of their own.

``forward`` works on ordinary tensors and is not recorded; what it gives gets a node, whose rule
calls ``backward``. Where there are several outputs each has a node of its own, which hands its
gradient on to that one with its number: see ``node.Outputs``.
"""

from typing import Any, NoReturn

from tensorkit import base
from tensorkit.autograd.grad_mode import no_grad, state
from tensorkit.autograd.inplace import version_of
from tensorkit.autograd.node import (
    INFERENCE,
    OUTPUT,
    Node,
    Outputs,
    Rule,
    edge_of,
    refuse_inference,
)
from tensorkit.base import TensorBase
from tensorkit.devices import device_of_array
from tensorkit.errors import AutogradError, NotSupportedError, ShapeError, message, sizes
from tensorkit.layout import broadcast_shapes
from tensorkit.ops import transfer, views


class Context:
    """What ``forward`` and ``backward`` share, their first argument. It takes any attribute."""

    needs_input_grad: tuple[bool, ...]  # for each argument of forward
    saved_tensors: tuple[Any, ...] = ()  # what ``save_for_backward`` was given; in backward

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._kept: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True

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

    def mark_dirty(self, *tensors: Any) -> NoReturn:
        """Refuse: forward does not write to its arguments."""
        raise NotSupportedError("A Function returns new tensors", repair="x.clone()")

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
        edges = [edge_of(x) if isinstance(x, TensorBase) else None for x in args]
        ctx = Context(tuple([edge is not None for edge in edges]))
        with no_grad():
            if cls.setup_context is Function.setup_context:
                given = cls.forward(ctx, *args)
            else:
                given = cls.forward(*args)
                cls.setup_context(ctx, args, given)
        several = given if isinstance(given, tuple) else (given,)
        results = tuple(views.alias(x) if any(x is arg for arg in args) else x for x in several)
        if state.grad and any(ctx.needs_input_grad):
            _record(cls, ctx, args, edges, several, results)
        for x in results:
            if isinstance(x, TensorBase):
                if state.inference:
                    x._node = INFERENCE
                if base.watch is not None:
                    base.watch.made(x)
        return results if isinstance(given, tuple) else results[0]


def _record(
    cls: type[Function], ctx: Context, args: Any, edges: list[Any], given: Any, results: Any
) -> None:
    """Give the results a node, and let it save what ``forward`` asked for."""
    rule = Application(cls, ctx, args, given)
    like = next((x for x in results if isinstance(x, TensorBase)), None)
    if like is None:
        return
    saved, versions = [], []
    for x, name in zip(ctx._kept, rule.keeps, strict=True):
        refuse_inference(x)
        saved.append(base.same_memory(x) if name.startswith("output") else x)
        versions.append(0 if x is None else version_of(x))
    edges = [edges[place] for place in rule.places_of_tensors]
    node = Node(rule, like, tuple(edges), tuple(saved), tuple(versions))
    if base.watch is not None:
        base.watch.node(node)
    memory = {id(base.storage_of(x)) for x in args if isinstance(x, TensorBase)}
    for place, (x, result) in enumerate(zip(given, results, strict=True)):
        is_constant = any(x is each for each in ctx._constant)
        rule.models.append(None)
        if isinstance(result, TensorBase):
            array = result._array
            rule.models[-1] = array.shape, array.dtype, result.device
            rule.is_view = rule.is_view or id(base.storage_of(result)) in memory
            result._node = None
            if array.dtype.kind == "f" and not is_constant:
                result._node = node
                if len(results) > 1:
                    result._node = Node(OUTPUT, result, (node,), (place,))
    ctx._kept = ctx._constant = ()


class Application(Rule):
    """The rule of one application of a Function: its gradients are what ``backward`` gives.

    ``keeps`` says of each saved tensor which argument or output it is, if any.
    """

    def __init__(self, function: type[Function], ctx: Context, args: Any, given: Any) -> None:
        super().__init__(function.__name__, f"{function.__name__}Backward", (), {})
        self.function, self.ctx = function, ctx
        self.models: list[Any] = []  # shape, dtype and device of each output
        self.places_of_tensors = [n for n, x in enumerate(args) if isinstance(x, TensorBase)]
        self.inputs = tuple([f"argument {place}" for place in self.places_of_tensors])
        known = [("output", given), ("argument", args)]
        names = [
            [f"{what} {n}" for what, several in known for n, x in enumerate(several) if x is kept]
            for kept in ctx._kept
        ]
        self.keep(tuple([each[0] if each else "tensor" for each in names]))

    def with_history(self, node: Node, at: int) -> Any:
        """A saved tensor with its history; an output comes from this node."""
        what, _, place = self.keeps[at].partition(" ")
        if what != "output":
            return super().with_history(node, at)
        result = base.same_memory(node.saved[at])
        several = len(self.models) > 1
        result._node = Node(OUTPUT, result, (node,), (int(place),)) if several else node
        return result

    def gradients(self, node: Node, g: Any, as_tensors: bool) -> Any:
        """What ``backward`` gives, checked."""
        parts = g if isinstance(g, Outputs) else {0: g}
        given = [parts.get(place) for place in range(len(self.models))]
        for place, model in enumerate(self.models):
            if given[place] is None:
                if self.ctx._materialize and model is not None:
                    shape, dtype, device = model
                    given[place] = base.new(device.backend.xp.zeros(shape, dtype))
            elif not as_tensors:
                array = given[place]
                given[place] = base.new(base.contiguous(array, device_of_array(array)))
        self.ctx.saved_tensors = tuple(map(node.value, range(len(node.saved))))
        try:
            answer = self.function.backward(self.ctx, *given)
        finally:
            del self.ctx.saved_tensors
        answers, expected = [answer], len(self.ctx.needs_input_grad)
        if isinstance(answer, tuple):
            answers = [x for n, x in enumerate(answer) if n < expected or x is not None]
        if len(answers) != expected:
            raise AutogradError(
                f"function {self.node} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(answers)})",
                "Backward gives one gradient, or None, for each argument of forward.",
            )
        found = {place: self._checked(node, place, x) for place, x in enumerate(answers)}
        gradients = [found[place] for place in self.places_of_tensors]
        return [x if x is None or as_tensors else x._array for x in gradients]

    def _checked(self, node: Node, place: int, answer: Any) -> Any:
        if answer is None:
            return None
        if place not in self.places_of_tensors:
            raise AutogradError(
                f"function {self.node} returned a gradient different than None at "
                f"position {place + 1}, but the corresponding forward input was not a Variable",
                repair="return None in its place",
            )
        if not isinstance(answer, TensorBase):
            raise AutogradError(f"expected Variable or None (got {type(answer).__name__})")
        number = self.places_of_tensors.index(place)
        edge = node.edges[number]
        if edge is None or (isinstance(edge, Node) and edge.rule is OUTPUT):
            return answer
        try:
            fits = broadcast_shapes(tuple(edge.shape), tuple(answer.shape)) == answer.shape
        except ShapeError:
            fits = False
        if not fits:
            raise AutogradError(
                f"Function {self.node} returned an invalid gradient at index {number} - got "
                f"{sizes(answer.shape)} but expected shape compatible with {sizes(edge.shape)}"
            )
        return transfer.at_home(answer, edge.device, number, f"Function {self.node} returned an ")
