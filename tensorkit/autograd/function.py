"""``autograd.Function``: operations of the user's own, with a backward of their own.

``forward`` works on ordinary tensors and is not recorded; what it gives gets a node, whose rule
calls ``backward``. Where there are several outputs each has a node of its own, which hands its
gradient on to that one with its number: see ``node.Outputs``.
"""

from typing import Any, NoReturn

from tensorkit import base
from tensorkit.autograd.grad_mode import no_grad, state
from tensorkit.autograd.node import (
    OUTPUT,
    Node,
    Outputs,
    Rule,
    record,
    requires_grad,
)
from tensorkit.base import TensorBase
from tensorkit.devices import device_of_array
from tensorkit.errors import AutogradError, NotSupportedError, message
from tensorkit.ops import copying, views


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
        for number, x in enumerate(tensors):
            if x is not None and not isinstance(x, TensorBase):
                first = (
                    f"save_for_backward can only save variables, but argument {number} is of type"
                )
                repair = "ctx.name = value    # for everything that is no tensor"
                raise TypeError(message(f"{first} {type(x).__name__}", repair=repair))
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
        raise AutogradError("A Function is applied", repair=f"{type(self).__name__}.apply(x)")

    @staticmethod
    def forward(*args: Any, **options: Any) -> Any:
        """The results from ``ctx`` and the arguments; without ``ctx`` if there is setup_context."""
        raise NotImplementedError("A Function needs a forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save on ``ctx`` what backward needs, if forward has no ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """A gradient, or None, for each argument of forward."""
        raise NotImplementedError("A Function needs a backward")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call ``forward`` on the arguments, and record it."""
        ctx = Context(tuple([requires_grad(x) for x in args]))
        with no_grad():
            if cls.setup_context is Function.setup_context:
                given = cls.forward(ctx, *args)
            else:
                given = cls.forward(*args)
                cls.setup_context(ctx, args, given)
        several = given if isinstance(given, tuple) else (given,)
        outputs = tuple([views.alias(x) if any(x is arg for arg in args) else x for x in several])
        tensors: Any = [x for x in outputs if isinstance(x, TensorBase)]
        if state.grad and any(ctx.needs_input_grad):
            Application(cls, ctx, args, several).record(args, outputs)
        for x in tensors:
            record(None, x)
            if state.recordings:
                state.recordings[-1].made(x)
        return outputs if isinstance(given, tuple) else outputs[0]


class Application(Rule):
    """The rule of one application of a Function: its gradients are what ``backward`` gives.

    ``keeps`` says of each saved tensor which argument or output it is, if any.
    """

    def __init__(self, function: type[Function], ctx: Context, args: Any, outputs: Any) -> None:
        self.tensors = [n for n, x in enumerate(args) if isinstance(x, TensorBase)]
        inputs = tuple([f"argument {n}" for n in self.tensors])
        super().__init__(function.__name__, f"{function.__name__}Backward", inputs, {})
        self.function, self.ctx = function, ctx
        known = {id(x): f"argument {n}" for n, x in enumerate(args)}
        known |= {id(x): f"output {n}" for n, x in enumerate(outputs)}
        self.keep(tuple([known.get(id(x), f"tensor {n}") for n, x in enumerate(ctx._kept)]))
        self.users = (tuple(range(len(inputs))),) * len(self.keeps)
        self.constant = [n for n, x in enumerate(outputs) if any(x is it for it in ctx._constant)]
        self.models: list[Any] = []  # shape, dtype and device of each output

    def record(self, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Give the results a node, and let it save what ``forward`` asked for."""
        values = {f"argument {n}": args[n] for n in self.tensors}
        for x, name in zip(self.ctx._kept, self.keeps, strict=True):  # outputs without a cycle
            values[name] = base.same_memory(x) if name.startswith("output") else x
        memory = {id(base.storage_of(args[n])) for n in self.tensors}
        node = None
        for number, x in enumerate(outputs):
            self.models.append(None)
            if isinstance(x, TensorBase):
                self.models[-1] = x._array.shape, x._array.dtype, x.device
                self.is_view = self.is_view or id(base.storage_of(x)) in memory
                x._node = None
                if x._array.dtype.kind == "f" and number not in self.constant:
                    node = node or record(self, base.same_memory(x), values)._node
                    x._node = Node(OUTPUT, x, (node,), (number,)) if len(outputs) > 1 else node
        self.ctx._kept = self.ctx._constant = ()

    def with_history(self, node: Node, at: int) -> Any:
        """A saved tensor with its history; an output comes from this node."""
        value, (what, _, number) = node.saved[at], self.keeps[at].partition(" ")
        if what == "output":
            value, several = base.same_memory(value), len(self.models) > 1
            value._node = Node(OUTPUT, value, (node,), (int(number),)) if several else node
        return value

    def gradients(self, node: Node, g: Any, as_tensors: bool) -> Any:
        """What ``backward`` gives, checked."""
        self.ctx.saved_tensors = tuple(node.values(True))
        try:
            found = self.function.backward(self.ctx, *self._arrived(g, as_tensors))
        finally:
            del self.ctx.saved_tensors
        answers = [*found] if isinstance(found, tuple) else [found]
        expected = len(self.ctx.needs_input_grad)
        while len(answers) > expected and answers[-1] is None:
            answers.pop()
        if len(answers) != expected:
            raise AutogradError(
                f"function {self.node} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(answers)})",
                "Backward gives one gradient, or None, for each argument of forward.",
            )
        gradients = dict.fromkeys(self.tensors)
        for number, x in enumerate(answers):
            if x is None:
                continue
            if number not in gradients:
                raise AutogradError(
                    f"function {self.node} returned a gradient different than None at position "
                    f"{number + 1}, but the corresponding forward input was not a Variable",
                    repair="return None in its place",
                )
            if not isinstance(x, TensorBase):
                raise AutogradError(f"expected Variable or None (got {type(x).__name__})")
            edge = node.edges[self.tensors.index(number)]
            if edge is not None:
                said = f"Function {self.node} returned an "
                x = copying.at_home(x, edge.device, number, said)
                gradients[number] = x if as_tensors else x._array
        return [*gradients.values()]

    def _arrived(self, g: Any, as_tensors: bool) -> list[Any]:
        """A gradient, as a tensor, for each output; zeros for one that was not used."""
        arrived = g if isinstance(g, Outputs) else {0: g}
        given: list[Any] = [arrived.get(number) for number in range(len(self.models))]
        for number, (x, model) in enumerate(zip(given, self.models, strict=True)):
            if x is not None and not as_tensors:
                given[number] = base.new(base.contiguous(x, device_of_array(x)))
            elif x is None and model is not None and self.ctx._materialize:
                shape, dtype, device = model
                given[number] = base.new(device.backend.xp.zeros(shape, dtype))
        return given
