"""The one-definition notation: ``@op(...)`` turns a forward function into an operation.

A definition says what an operation computes on arrays; everything else comes from here: the dtype
it computes in, broadcasting, strides, the operators, the in-place form, the error messages.

    @op(kind="binary", symbol="*", ufunc="multiply")
    def mul(xp, x, y):
        return xp.multiply(x, y)

    mul.grad(x=lambda g, y: g * y, y=lambda g, x: g * x)

``kind`` picks one of a few factories. Each returns closures around the definition: ``mul`` itself,
``mul.operator`` and ``mul.reflected`` for ``*``, and ``mul.inplace``. A closure looks for the plan
that ``tensorkit.ops.general`` made when it met operands of these forms first; where there is none,
or autograd must be asked, it hands the call over to it.
"""

from collections.abc import Callable
from operator import methodcaller
from typing import Any, Protocol

from tensorkit import base
from tensorkit.autograd import history, recorders
from tensorkit.autograd.marks import INFERENCE
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of
from tensorkit.layout import Layout
from tensorkit.ops import general, planning, results, writing
from tensorkit.ops.arguments import need_tensor, renamed
from tensorkit.ops.moving import together
from tensorkit.ops.planning import Definition
from tensorkit.quiet import quiet, quietly

_xp = CPU.backend.xp
_new = object.__new__
_ndarray = _xp.ndarray


class Operation(Protocol):
    """What ``@op`` makes of a forward function."""

    definition: Definition
    operator: Callable[[Any, Any], Tensor]
    method: Callable[..., Tensor]
    reflected: Callable[[Any, Any], Tensor]
    inplace: Callable[..., Tensor]
    inplace_operator: Callable[[Any, Any], Tensor]
    on_arrays: Callable[..., Any]
    grad: Callable[..., None]  # see Definition.grad

    def __call__(self, *args: Any, **options: Any) -> Tensor:
        """Apply the operation to tensors and numbers."""

    def __get__(self, instance: Any, owner: Any) -> Callable[..., Tensor]:
        """An operation in the body of a class is a method, as every function is."""


def op(**told: Any) -> Callable[[Callable[..., Any]], Operation]:
    """Define an operation; what may be told of it is listed in ``Definition``."""

    def define(forward: Callable[..., Any]) -> Operation:
        definition = Definition(forward, **told)
        return _FACTORIES[definition.kind](definition)

    return define


def _dress(call: Any, definition: Definition, on_arrays: Any = None) -> Any:
    """Give a closure the name, the documentation and the definition that it stands for."""
    call.__name__ = call.__qualname__ = definition.name
    call.__module__ = definition.forward.__module__
    call.__doc__ = definition.forward.__doc__
    call.definition = definition
    call.on_arrays = on_arrays or _array_form(definition)
    call.grad = definition.grad
    return call


def _array_form(definition: Definition) -> Callable[..., Any]:
    """The operation on arrays, as a formula calls it in a plain backward."""
    forward = definition.forward
    if definition.kind != "binary":

        def on_any(*args: Any, **options: Any) -> Any:
            xp = _xp if args[0].__class__ is _ndarray else backend_of(*args).xp
            return forward(xp, *args, **options)

        return on_any

    def on_two(x: Any, y: Any, **options: Any) -> Any:
        if not hasattr(x, "dtype"):
            x = _xp.asarray(x, y.dtype)[()]  # a NumPy scalar tells a number from a tensor
        elif not hasattr(y, "dtype"):
            y = _xp.asarray(y, x.dtype)[()]
        return forward(_xp if x.__class__ is _ndarray else backend_of(x, y).xp, x, y, **options)

    return on_two


def _unary(definition: Definition) -> Operation:
    plans, writes = definition.plans, definition.writes

    def call(input: Tensor) -> Tensor:
        try:
            plan = plans[input._form]
            array = quiet.run(plan.compute, input._array)
            result = _new(base.public)
            result._array = array
            result._form = plan.form
            result._storage = result._node = None
            if input._node is not None:
                plan.record(result, input)
            return result
        except (AttributeError, KeyError, RuntimeError):
            pass  # no tensor, no plan, fast paths closed, autograd refuses: the general path tells
        return general.unary(definition, input)

    def inplace(input: Tensor) -> Tensor:
        try:
            if input._node is None or not (state.grad or input._node is INFERENCE):
                quiet.run(writes[input._form].compute, input._array, input._array)
                history.written(input, name)
                return input
        except (AttributeError, KeyError, RuntimeError, ValueError):
            pass
        return general.unary_inplace(definition, input)

    name = f"{definition.name}_"
    inplace.__doc__ = f"``{definition.name}``, in place."
    operation = _dress(call, definition)
    operation.inplace = inplace
    return operation


def _binary(definition: Definition) -> Operation:
    operation = _dress(_with_options(definition, general.binary), definition)
    operation.operator = _of_two(definition, general.operator)
    operation.method = _with_options(definition, general.method)
    operation.reflected = _reflected(definition)
    operation.inplace = _inplace_of_two(definition, general.binary_inplace)
    operation.inplace_operator = _inplace_of_two(definition, general.inplace_operator)
    operation.method.__doc__ = definition.forward.__doc__
    operation.inplace.__doc__ = f"``{definition.name}``, in place."
    return operation


def _of_two(definition: Definition, otherwise: Callable[..., Any]) -> Any:
    """The operation on a tensor and a tensor or number; all else is left to ``otherwise``."""
    plans = definition.plans

    def apply(input: Any, other: Any) -> Any:
        kind = other.__class__
        try:
            form = input._form
            if kind is float or kind is int:
                plan = plans.get((form, kind, other or repr(other)))
                if plan is None:  # one for all numbers of this kind?
                    plan = plans[form, kind]
                    number = quiet.run(plan.number, other)
                else:
                    number = plan.number
                array = quiet.run(plan.compute, input._array, number)
                tracked = input._node is not None
            else:
                right = other._form
                plan = plans[form if form is right else (form, right)]
                array = quiet.run(plan.compute, input._array, other._array)
                tracked = input._node is not None or other._node is not None
            result = _new(base.public)
            result._array = array
            result._form = plan.form
            result._storage = result._node = None
            if tracked:
                plan.record(result, input, other)
            return result
        except (AttributeError, KeyError, RuntimeError):
            pass  # no tensor, no plan, fast paths closed, autograd refuses
        return otherwise(definition, input, other, {})

    return apply


def _with_options(definition: Definition, otherwise: Callable[..., Any]) -> Any:
    """The same with options, for those who call it by its name."""
    plain, plans = _of_two(definition, otherwise), definition.plans

    def apply(input: Any, other: Any, **options: Any) -> Any:
        if not options:
            return plain(input, other)
        try:
            plan = plans[planning.key_of(input, other, options)]
            if input._node is other._node is None:
                array = quiet.run(plan.compute, input._array, other._array)
                return results.finished(base.new(array, plan.form))
        except (AttributeError, KeyError, RuntimeError, TypeError):
            pass  # no tensors, no plan, fast paths closed, an option that is a tensor
        return otherwise(definition, input, other, options)

    return apply


def _reflected(definition: Definition) -> Any:
    """``number <operator> tensor``; sums and products are turned round, as in PyTorch."""
    plans = definition.plans
    if definition.symbol in ("+", "*"):
        turned = _of_two(definition, lambda *args: general.reflected(*args[:3]))
        # by this name a recording sees that the number stands first
        turned.__code__ = turned.__code__.replace(co_name="reflected")
        return turned

    def reflected(self: Tensor, other: Any) -> Any:
        kind = other.__class__
        if not (kind is float or kind is int):
            return general.reflected(definition, self, other)
        try:
            plan = plans[kind, other or repr(other), self._form]
            result = base.new(quiet.run(plan.compute, plan.number, self._array), plan.form)
            if self._node is not None:
                plan.record(result, self, other)
            return result
        except (KeyError, RuntimeError):
            pass
        return general.reflected(definition, self, other)

    return reflected


def _inplace_of_two(definition: Definition, otherwise: Callable[..., Any]) -> Any:
    """The in-place form where autograd need not be asked; all else is left to ``otherwise``."""
    writes, name = definition.writes, f"{definition.name}_"

    def inplace(input: Any, other: Any, **options: Any) -> Any:
        kind = other.__class__
        try:
            form, node = input._form, input._node
            if node is not None and (state.grad or node is INFERENCE):
                pass
            elif options:
                if other._node is None or not state.grad:
                    writing.check_overlap(input, other)
                    compute = writes[planning.key_of(input, other, options)].compute
                    quiet.run(compute, input._array, other._array, input._array)
                    history.written(input, name)
                    return input
            else:
                if kind is float or kind is int:
                    plan = writes[form, kind, other or repr(other)]
                    quiet.run(plan.compute, input._array, plan.number, input._array)
                    history.written(input, name)
                    return input
                if not (other._node is not None and state.grad) and (
                    input._storage is None
                    or other._storage is None
                    or other is input
                    or input._storage.flat is not other._storage.flat
                ):
                    right = other._form
                    compute = writes[form if form is right else (form, right)].compute
                    quiet.run(compute, input._array, other._array, input._array)
                    history.written(input, name)
                    return input
        except (AttributeError, KeyError, RuntimeError, ValueError):
            pass  # also: the memory is read-only
        return otherwise(definition, input, other, options)

    return inplace


def _view(definition: Definition) -> Operation:
    """A view operation's forward maps a layout to a layout; no element is touched.

    Without formulas of its own its gradient is the general one: a view reads a window of its
    input, so the gradient is zero everywhere else.
    """
    locate = definition.forward
    names = definition.options = definition.inputs  # what follows the layout
    definition.inputs = ("x",)
    defaults = dict(zip(names[::-1], (locate.__defaults__ or ())[::-1], strict=False))

    def call(input: Tensor, *args: Any, **options: Any) -> Tensor:
        try:
            if not options:
                return history.view(input, input._form.views[locate, args])
        except (AttributeError, KeyError, TypeError):
            pass  # no tensor, no plan, a list of dimensions
        need_tensor(definition.name, input)
        args = tuple(tuple(arg) if isinstance(arg, list) else arg for arg in args)
        if options:
            options = renamed(options)
            known = {**defaults, **options}
            named = [name for name in names[len(args) :] if name in known]
            args = args + tuple(known[name] for name in named)
            for name in named:
                options.pop(name, None)
            if options:
                unknown = next(iter(options))
                raise TypeError(
                    f"{definition.name}() got an unexpected keyword argument '{unknown}'"
                )
        values = dict(zip(names, args, strict=False))
        form = input._form
        target = locate(Layout(tuple(form.shape), form.strides, 0), *args)
        view_form = base.form_of(form.device, form.dtype, target.shape, target.strides)
        steps = (results.view_step(definition, view_form, form.whole, values),)
        plan = base.plan_view(input, target, steps, _taker(definition, args))
        base.remember_view(form, (locate, args), plan)
        return history.view(input, plan)

    operation = _dress(call, definition, definition.on_arrays)

    def window(source: Layout, values: dict[str, Any]) -> Layout:
        return locate(source, **values)

    definition.window = window
    return operation


def _taker(definition: Definition, args: tuple[Any, ...]) -> Any:
    """What a view with these arguments does to an array."""
    if definition.method is not None:
        return methodcaller(definition.method, *args)
    take = definition.on_arrays
    return take if take is None or not args else lambda array: take(array, *args)


def _function(definition: Definition) -> Operation:
    """An operation on tensors of one dtype, as its caller has checked; its result is contiguous.

    Tensors come first and by position, options by name.
    """
    forward = definition.forward
    names = definition.inputs

    def call(*inputs: Any, **options: Any) -> Tensor:
        try:
            device = inputs[0]._form.device
            if device is not CPU:
                raise AttributeError  # more is to be asked
            if len(inputs) == 1:
                array = quiet.run(forward, _xp, inputs[0]._array, **options)
            else:
                array = quiet.run(forward, _xp, *[x._array for x in inputs], **options)
        except (AttributeError, RuntimeError, TypeError):
            # a number or a device among them, or fast paths closed
            inputs = together(*inputs)
            device = inputs[0]._form.device
            arrays = [x._array if isinstance(x, TensorBase) else x for x in inputs]
            array = quietly(forward, device.backend.xp, *arrays, **options)
        result = results.contiguous_result(array, device)
        rule = definition.rules.get(None)
        for x in inputs:
            if isinstance(x, TensorBase) and x._node is not None:
                if (
                    rule is not None
                    and rule.is_pair
                    and not (options or state.inference or base.watch)
                ):
                    recorders.pair_recorder(rule)(result, *inputs)
                    return result
                values = dict(zip(names, inputs, strict=False), **options)
                values["shape"] = tuple(inputs[0]._form.shape)
                return results.recorded(definition, result, values)
        return results.finished(result)

    return _dress(call, definition, definition.on_arrays)


_FACTORIES: dict[str, Callable[[Definition], Any]] = {
    "unary": _unary,
    "binary": _binary,
    "view": _view,
    "function": _function,
}
