"""``autograd.Function``: operations of the user's own, with a backward of their own.

``forward`` works on ordinary tensors and is not recorded; what it gives, one tensor, gets a node,
whose rule calls ``backward``.
"""

from typing import Any, NoReturn

from tensorkit import absent, base
from tensorkit.autograd.grad_mode import no_grad
from tensorkit.autograd.node import Node, Rule, add_node, mark_inference, requires_grad
from tensorkit.base import TensorBase
from tensorkit.devices import device_of_array
from tensorkit.errors import AutogradError, NotSupportedError, message
from tensorkit.ops import copying, views
from tensorkit.thread_state import state


class Context:
    """What ``forward`` and ``backward`` share, their first argument. It takes any attribute."""

    needs_input_grad: tuple[bool, ...]  # for each argument of forward
    saved_tensors: tuple[Any, ...] = ()  # what ``save_for_backward`` was given; in backward

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] = ()

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
        self._saved = tensors

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(absent.sentence("torch.autograd.function.FunctionCtx", name))


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
        """The result from ``ctx`` and the arguments; without ``ctx`` if there is setup_context."""
        raise NotImplementedError("A Function needs a forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save on ``ctx`` what backward needs, if forward has no ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        """A gradient, or None, for each argument of forward."""
        raise NotImplementedError("A Function needs a backward")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call ``forward`` on the arguments, and give the result its node."""
        ctx = Context(tuple([requires_grad(x) for x in args]))
        with no_grad():
            if cls.setup_context is Function.setup_context:
                returned = cls.forward(ctx, *args)
            else:
                returned = cls.forward(*args)
                cls.setup_context(ctx, args, returned)
        if isinstance(returned, tuple):
            first = f"A Function returns one tensor; {cls.__name__}.forward returned a tuple"
            repair = "tk.stack(results), or a Function for each of them"
            raise NotSupportedError(first, repair=repair)
        if not isinstance(returned, TensorBase):
            return returned
        result: Any = views.alias(returned) if any(returned is arg for arg in args) else returned
        if state.grad and any(ctx.needs_input_grad):
            Application(cls, ctx, args, returned).add_node(args, result)
        mark_inference(result)
        if state.origin_recorders:
            state.origin_recorders[-1].made(result)
        return result


class Application(Rule):
    """The rule of one application of a Function: its gradients are what ``backward`` gives.

    ``saved_names`` says of each saved tensor which argument it is, or that it is the result.
    """

    def __init__(self, function: type[Function], ctx: Context, args: Any, result: Any) -> None:
        self.tensors = [n for n, x in enumerate(args) if isinstance(x, TensorBase)]
        inputs = tuple([f"argument {n}" for n in self.tensors])
        super().__init__(function.__name__, f"{function.__name__}Backward", inputs, {})
        self.function, self.ctx = function, ctx
        known = {id(x): f"argument {n}" for n, x in enumerate(args)} | {id(result): "out"}
        self.set_saved(tuple([known.get(id(x), f"tensor {n}") for n, x in enumerate(ctx._saved)]))
        self.needs = (self.saved_names,) * len(inputs)

    def add_node(self, args: tuple[Any, ...], result: Any) -> None:
        """Give the result a node, and let it save what ``forward`` asked for."""
        values = {f"argument {n}": args[n] for n in self.tensors}
        values.update(zip(self.saved_names, self.ctx._saved, strict=True))
        memory = [base.storage_of(args[n]) for n in self.tensors]
        self.is_view = any(base.storage_of(result) is each for each in memory)
        result._node = None
        add_node(self, result, values)
        self.ctx._saved = ()

    def gradients(self, node: Node, g: Any, as_tensors: bool) -> Any:
        """What ``backward`` gives, checked."""
        self.ctx.saved_tensors = tuple([node.value(at, True) for at in range(len(node.saved))])
        try:
            g = g if as_tensors else base.new(base.contiguous(g, device_of_array(g)))
            found = self.function.backward(self.ctx, g)
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
                prefix = f"Function {self.node} returned an "
                x = copying.gradient_on(x, edge.device, number, prefix)
                gradients[number] = x if as_tensors else x._array
        return [*gradients.values()]
