"""Derivatives of functions: ``jacobian``, ``hessian``, and their products with vectors.

``func`` takes tensors and gives a tensor or a tuple of tensors; what comes back has the structure
of its results and inputs. ``create_graph`` makes the derivatives differentiable; with ``strict``
an input that the result does not depend on is an error instead of zeros.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tensorkit.autograd import engine, history, leaves
from tensorkit.autograd.modes import enable_grad
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError, NotSupportedError, ShapeError
from tensorkit.ops import copying, joining, views

Func = Callable[..., Any]
_NOT_STRICT = " This is not allowed in strict mode."


def jacobian(
    func: Func,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """All partial derivatives of ``func`` at ``inputs``, of shape (*output, *input).

    One backward per element of the output; ``vectorize`` changes nothing.

    >>> tk.autograd.functional.jacobian(lambda x: x * x, tk.tensor([1., 3.]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    _need_reverse(strategy)
    call = _Call("jacobian", func, inputs, create_graph, strict)
    rows = [
        [_derivative(call, output, place, number) for number in range(output._array.size)]
        for place, output in enumerate(call.outputs)
    ]
    blocks = tuple(
        tuple(
            _stacked([row[at] for row in of_output], output, x) for at, x in enumerate(call.inputs)
        )
        for of_output, output in zip(rows, call.outputs, strict=True)
    )
    return call.unpacked_outputs(tuple(call.unpacked_inputs(call.finished(row)) for row in blocks))


def hessian(
    func: Func,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """All second partial derivatives of ``func``, which gives one number.

    >>> tk.autograd.functional.hessian(lambda x: (x * x * x).sum(), tk.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _need_reverse(outer_jacobian_strategy)
    several, _ = _as_tuple("hessian", "inputs", inputs)

    def gradient(*xs: Any) -> Any:
        call = _Call("hessian", func, xs, True, strict)
        call.need_scalar()
        return call.filled(call.first_derivatives(), _OUTPUT)

    found = jacobian(gradient, several, create_graph, strict)
    return found if isinstance(inputs, tuple) else found[0][0]


def vjp(
    func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of ``func``, and ``v`` times its Jacobian: what backward computes.

    >>> tk.autograd.functional.vjp(lambda x: x * x, tk.tensor([1., 3.]), tk.ones(2))
    (tensor([1., 9.]), tensor([2., 6.]))
    """
    call = _Call("vjp", func, inputs, create_graph, strict)
    if v is None and (len(call.outputs) != 1 or call.outputs[0]._array.size != 1):
        raise AutogradError(
            "The vector v can only be None if the user-provided function returns a single Tensor "
            "with a single element."
        )
    start = None if v is None else call.vector(v, call.outputs, call.has_output_tuple)
    found = call.filled(_grad(call.outputs, call.inputs, start, create_graph), _OUTPUT)
    return call.value(), call.unpacked_inputs(call.finished(found))


def jvp(
    func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of ``func``, and its Jacobian times ``v``: the slope in the direction ``v``.

    Two backwards: the first is linear in the gradient it starts with, the second differentiates
    it with respect to that.

    >>> tk.autograd.functional.jvp(lambda x: x * x, tk.tensor([1., 3.]), tk.tensor([1., 0.]))
    (tensor([1., 9.]), tensor([2., 0.]))
    """
    call = _Call("jvp", func, inputs, create_graph, strict)
    direction = call.direction(v)
    starts = tuple(copying.filled(y, 0).requires_grad_() for y in call.outputs)
    with enable_grad():
        first = _grad(call.outputs, call.inputs, starts, True)
    call.need_dependent(first, _GRADIENT)
    found = call.filled(_grad(first, starts, direction, create_graph), _TRICK, call.outputs)
    return call.value(), call.unpacked_outputs(call.finished(found))


def vhp(
    func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of ``func``, one number, and ``v`` times its Hessian.

    >>> x, v = tk.tensor([1., 2.]), tk.tensor([1., 0.])
    >>> tk.autograd.functional.vhp(lambda x: (x * x * x).sum(), x, v)
    (tensor(9.), tensor([6., 0.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of ``func``, one number, and its Hessian times ``v``.

    The Hessian is symmetric, so this is ``vhp``.

    >>> x, v = tk.tensor([1., 2.]), tk.tensor([1., 0.])
    >>> tk.autograd.functional.hvp(lambda x: (x * x * x).sum(), x, v)
    (tensor(9.), tensor([6., 0.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Func, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    call = _Call(name, func, inputs, create_graph, strict)
    direction = call.direction(v)
    call.need_scalar()
    first = call.first_derivatives()
    found = call.filled(
        _grad(first, call.inputs, direction, create_graph), _JACOBIAN, what="hessian"
    )
    return call.value(), call.unpacked_inputs(call.finished(found))


# One call of the user's function


class _Call:
    """``func`` called on fresh copies of the inputs that require grad."""

    def __init__(
        self, name: str, func: Func, inputs: Any, create_graph: bool, strict: bool
    ) -> None:
        self.name, self.create_graph, self.strict = name, create_graph, strict
        given, self.has_input_tuple = _as_tuple(name, "inputs", inputs)
        with enable_grad():
            self.inputs = tuple(self._fresh(x) for x in given)
            results = func(*self.inputs)
        outputs = "outputs of the user-provided function"
        self.outputs, self.has_output_tuple = _as_tuple(name, outputs, results)
        for place, y in enumerate(self.outputs):
            if strict and not history.requires_grad(y):
                raise AutogradError(
                    f"Output {place} of the user-provided function does not require gradients. The "
                    "outputs must be computed in a differentiable manner from the input when "
                    "running in strict mode."
                )

    def _fresh(self, x: Any) -> Any:
        if self.create_graph and history.requires_grad(x):
            return views.alias(x)
        x = x.detach()
        leaves.set_requires_grad(x, True)
        return x

    def vector(self, v: Any, like: Sequence[Any], in_tuple: bool) -> tuple[Any, ...]:
        """``v`` as a tuple, one tensor of the same shape for each of ``like``."""
        several, is_tuple = _as_tuple(self.name, "v", v)
        if in_tuple and len(several) != len(like):
            raise AutogradError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(several)}."
            )
        if not in_tuple and is_tuple:
            raise AutogradError("The given v should contain a single Tensor.")
        for place, (each, other) in enumerate(zip(several, like, strict=True)):
            if each.shape != other.shape:
                entry = f"Entry {place} in " if in_tuple else ""
                raise ShapeError(
                    f"{entry}v has invalid size: should be {other.shape!r} but got {each.shape!r}."
                )
        return several

    def direction(self, v: Any) -> tuple[Any, ...]:
        """``v`` for the inputs; a single number needs none."""
        if v is not None:
            return self.vector(v, self.inputs, self.has_input_tuple)
        if len(self.inputs) != 1 or self.inputs[0]._array.size != 1:
            raise AutogradError(
                "The vector v can only be None if the input to the user-provided function is a "
                "single Tensor with a single element."
            )
        return (copying.filled(self.inputs[0], 1),)

    def need_scalar(self) -> None:
        """Raise unless the result is one number."""
        if self.has_output_tuple:
            raise AutogradError(f"The function given to {self.name} should return a single Tensor")
        if self.outputs[0]._array.size != 1:
            raise AutogradError(
                f"The Tensor returned by the function given to {self.name} should contain a "
                "single element",
                repair="jacobian(func, inputs), or return y.sum()",
            )

    def first_derivatives(self) -> tuple[Any, ...]:
        """The gradient of the one number that ``func`` gave, to be differentiated again."""
        with enable_grad():
            found = _grad(self.outputs, self.inputs, None, True)
        self.need_dependent(found, _LINEAR)
        return found

    def need_dependent(self, gradients: Sequence[Any], refusal: str) -> None:
        """When strict, raise where a gradient does not depend on the inputs itself."""
        for place, each in enumerate(gradients):
            if self.strict and (each is None or not history.requires_grad(each)):
                raise AutogradError(refusal.format(place))

    def filled(
        self, gradients: Sequence[Any], refusal: str, like: Any = None, what: str = "jacobian"
    ) -> tuple[Any, ...]:
        """The gradients, with zeros where there is no dependence; when strict, the ``refusal``."""
        results = []
        shaped = self.inputs if like is None else like
        for place, (each, x) in enumerate(zip(gradients, shaped, strict=True)):
            if each is None and self.strict:
                raise AutogradError(refusal.format(place) + _NOT_STRICT)
            if self.strict and self.create_graph and not history.requires_grad(each):
                raise AutogradError(
                    f"The {what} of the user-provided function is independent of input {place}. "
                    "This is not allowed in strict mode when create_graph=True."
                )
            results.append(copying.filled(x, 0) if each is None else each)
        return tuple(results)

    def value(self) -> Any:
        """What ``func`` gave."""
        return self.unpacked_outputs(self.finished(self.outputs))

    def finished(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The tensors without history, unless it was asked for."""
        return tuple(tensors) if self.create_graph else tuple(x.detach() for x in tensors)

    def unpacked_inputs(self, values: tuple[Any, ...]) -> Any:
        """One value for each input, alone if the input was alone."""
        return values if self.has_input_tuple else values[0]

    def unpacked_outputs(self, values: tuple[Any, ...]) -> Any:
        """One value for each result, alone if the result was alone."""
        return values if self.has_output_tuple else values[0]


_OUTPUT = "The output of the user-provided function is independent of input {}."
_TRICK = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when "
    "using the double backward trick to compute forward mode gradients."
)
_JACOBIAN = "The jacobian of the user-provided function is independent of input {}."
_GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided "
    "function." + _NOT_STRICT
)
_LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on "
    "the inputs (this would be violated by a linear function for example)."
)


def _as_tuple(name: str, what: str, values: Any) -> tuple[tuple[Any, ...], bool]:
    """The tensors, and whether they came as a tuple."""
    is_tuple = isinstance(values, tuple)
    several = values if is_tuple else (values,)
    for place, each in enumerate(several):
        if not isinstance(each, TensorBase):
            which = f"value at index {place}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the "
                f"{which} has type {type(each)}."
            )
    return several, is_tuple


def _need_reverse(strategy: str) -> None:
    if strategy != "reverse-mode":
        raise NotSupportedError(
            "tensorkit computes Jacobians by backward only", repair='"reverse-mode"'
        )


def _grad(
    outputs: Sequence[Any], inputs: Sequence[Any], starts: Any, create_graph: bool
) -> tuple[Any, ...]:
    """``autograd.grad`` of those outputs that require grad."""
    starts = [None] * len(outputs) if starts is None else starts
    pairs = [
        (y, start)
        for y, start in zip(outputs, starts, strict=True)
        if y is not None and history.requires_grad(y)
    ]
    if not pairs:
        return (None,) * len(inputs)
    ys, given = zip(*pairs, strict=True)
    return engine.grad(
        ys, inputs, given, retain_graph=True, create_graph=create_graph, allow_unused=True
    )


def _derivative(call: _Call, output: Tensor, place: int, number: int) -> tuple[Any, ...]:
    """The gradients of one element of an output."""
    start = copying.filled(output, 0)
    start._array.reshape(-1)[number] = 1
    found = _grad([output], call.inputs, [start], call.create_graph)
    return call.filled(
        found, f"Output {place} of the user-provided function is independent of input {{}}."
    )


def _stacked(rows: list[Any], output: Tensor, x: Tensor) -> Tensor:
    """Rows of one block as a tensor of shape (*output, *input)."""
    shape = (*output.shape, *x.shape)
    if not rows:
        return views.reshape(x.detach()[None][:0], shape)
    return views.reshape(joining.stack(rows), shape)
