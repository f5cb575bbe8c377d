"""The one-definition notation: ``@op(...)`` turns a forward function into an operation.

A definition says what an operation computes on arrays; everything else comes from here: the dtype
it computes in, broadcasting, strides, the operators, the in-place form, the error messages.

    @op(kind="binary", symbol="*", ufunc="multiply")
    def mul(xp, x, y):
        return xp.multiply(x, y)

    mul.grad(x=lambda g, y: g * y, y=lambda g, x: g * x)

``kind`` picks one of a few factories. Each returns closures around the definition: ``mul`` itself,
``mul.operator`` and ``mul.reflected`` for ``*``, and ``mul.inplace``.

A closure takes the direct path: it hands the arrays to NumPy and wraps what comes back. No question
is asked where two dtypes are one and the definition calls it ``direct``. All else goes to
``tensorkit.ops.general``, and so does what NumPy refuses, to be computed there or refused in words.
In inference mode, while a recording is on and while a function of a learner is transplanted
``quiet.run`` refuses, so that every call goes there.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Protocol

from tensorkit import base
from tensorkit.autograd import history
from tensorkit.autograd.marks import INFERENCE
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, backend_of, is_array
from tensorkit.layout import Layout, contiguous_strides
from tensorkit.ops import general, results
from tensorkit.ops.arguments import need_tensor, renamed
from tensorkit.ops.moving import together
from tensorkit.ops.planning import Definition
from tensorkit.quiet import quiet, quietly

_xp = CPU.backend.xp
_new = object.__new__
_ndarray = _xp.ndarray
_asarray = _xp.asarray


class Operation(Protocol):
    """What ``@op`` makes of a forward function."""

    definition: Definition
    operator: Callable[[Any, Any], Tensor]
    method: Callable[..., Tensor]
    reflected: Callable[[Any, Any], Tensor]
    inplace: Callable[..., Tensor]
    inplace_operator: Callable[[Any, Any], Tensor]
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


def _dress(call: Any, definition: Definition) -> Any:
    """Give a closure the name, the documentation and the definition that it stands for."""
    call.__name__ = call.__qualname__ = definition.name
    call.__module__ = definition.forward.__module__
    call.__doc__ = definition.forward.__doc__
    call.definition = definition
    call.grad = definition.grad
    return call


def _compute(definition: Definition) -> Callable[..., Any]:
    """What computes on arrays of the CPU."""
    if definition.ufunc is not None:
        return getattr(_xp, definition.ufunc)
    return partial(definition.forward, _xp)


def _rule(definition: Definition, number: str | None) -> Any:
    """The rule of a call that does not write in place."""
    return definition.rule_for(number) if definition.rules else None


# What the direct path meets and leaves to the general one: no tensor, a number that is not known
# yet, a mode in which `quiet.run` refuses, what NumPy refuses, what autograd refuses.
_LEFT = (AttributeError, KeyError, RuntimeError, TypeError, ValueError)


def _unary(definition: Definition) -> Operation:  # noqa: C901 - without calls
    direct, compute = definition.direct, _compute(definition)
    record: Any = None

    def call(input: Any) -> Any:
        nonlocal record
        if input.__class__ is _ndarray and state.on_arrays:  # in a formula
            return compute(input)
        try:
            array = input._array
            if array.__class__ is _ndarray and array.dtype.char in direct:
                array = quiet.run(compute, array)
                if array.__class__ is not _ndarray:
                    array = _asarray(array)
                result = _new(base.public)
                result._array = array
                result._storage = result._node = None
                if input._node is not None:
                    if record is None:
                        record = history.recorder(_rule(definition, None))
                    record(result, input)
                return result
        except _LEFT:
            pass
        return general.unary(definition, input)

    def inplace(input: Tensor) -> Tensor:
        try:
            array = input._array
            if (
                array.__class__ is _ndarray
                and array.dtype.char in direct
                and definition.result != "bool"
                and array.flags.c_contiguous
                and (input._node is None or not (state.grad or input._node is INFERENCE))
            ):
                if definition.ufunc is not None:
                    quiet.run(compute, array, array)
                else:
                    array[...] = quiet.run(compute, array)
                history.written(input, name)
                return input
        except _LEFT:
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


# Numbers as arrays without dimensions, by NumPy's letter of the dtype: an operation with one takes
# half the time of one with a Python number.
_NUMBERS: dict[str, dict[float, Any]] = {"f": {}, "d": {}, "l": {}}
_MOST_NUMBERS = 1000


def _known_numbers(definition: Definition) -> dict[type, dict[str, dict[float, Any]]]:
    """These tables by the class of a number; an int64 tensor and a float give another dtype."""
    if definition.takes == "tensors":
        return {}
    known = {char: table for char, table in _NUMBERS.items() if char in definition.direct}
    return {int: known, float: {char: table for char, table in known.items() if char != "l"}}


def _number(value: Any, dtype: Any, known: dict[float, Any]) -> Any:
    """A number as an array of this dtype, which is kept; KeyError where more is to be asked."""
    if value.__class__ is int and not -(2**63) <= value < 2**63:
        raise KeyError
    array = quietly(_asarray, value, dtype)
    if value:  # 0.0 and -0.0 are equal
        if len(known) >= _MOST_NUMBERS:
            known.clear()
        known[value] = array
    return array


def _of_two(  # noqa: C901 - one way, without calls
    definition: Definition, otherwise: Callable[..., Any]
) -> Any:
    """The operation on a tensor and a tensor or number; all else is left to ``otherwise``."""
    direct, compute, numbers = definition.direct, _compute(definition), _known_numbers(definition)
    as_scalar = definition.ufunc is None  # by which a forward tells a number from a tensor
    record: Any = None
    record_number: Any = None

    def apply(input: Any, other: Any) -> Any:  # noqa: C901 - one way, without calls
        nonlocal record, record_number
        kind = other.__class__
        try:
            a = input._array
            dtype = a.dtype
            tables = numbers.get(kind)
            if tables is not None:
                known = tables[dtype.char]
                b = known.get(other)
                if b is None:
                    b = _number(other, dtype, known)
                if as_scalar:
                    b = b[()]
                if a.__class__ is not _ndarray:
                    raise KeyError
                array = quiet.run(compute, a, b)
                if array.__class__ is not _ndarray:
                    array = _asarray(array)
                result = _new(base.public)
                result._array = array
                result._storage = result._node = None
                if input._node is not None:
                    if record_number is None:
                        record_number = history.recorder(_rule(definition, "y"))
                    record_number(result, input, other)
                return result
            b = other._array
            if dtype is b.dtype and dtype.char in direct and a.__class__ is b.__class__ is _ndarray:
                if input._storage is other._storage is None:  # nearly always
                    array = quiet.run(compute, a, b)
                else:
                    array = quiet.run(compute, a, b, **_order(a, b, not as_scalar))
                if array.__class__ is not _ndarray:
                    array = _asarray(array)
                result = _new(base.public)
                result._array = array
                result._storage = result._node = None
                if input._node is not None or other._node is not None:
                    if record is None:
                        record = history.recorder(_rule(definition, None))
                    record(result, input, other)
                return result
        except _LEFT:
            pass
        return otherwise(definition, input, other, {})

    return apply


def _order(a: Any, b: Any, is_ufunc: bool) -> dict[str, str]:
    """In which order PyTorch lays out a result, where that may not be NumPy's choice.

    KeyError where only the general path knows.
    """
    if a.flags.c_contiguous and b.flags.c_contiguous:
        return _NUMPYS_CHOICE
    if a.shape != b.shape or 1 in a.shape:
        raise KeyError
    if a.strides == b.strides:
        return _NUMPYS_CHOICE
    if not (is_ufunc and a.flags.forc):
        raise KeyError
    return {"order": "C" if a.flags.c_contiguous else "F"}


_NUMPYS_CHOICE: dict[str, str] = {}


def _with_options(definition: Definition, otherwise: Callable[..., Any]) -> Any:
    """The same with options, for those who call it by its name."""
    plain = _of_two(definition, otherwise)

    def apply(input: Any, other: Any, **options: Any) -> Any:
        if not options:
            return plain(input, other)
        return otherwise(definition, input, other, options)

    return apply


def _reflected(definition: Definition) -> Any:
    """``number <operator> tensor``; sums and products are turned round, as in PyTorch."""
    if definition.symbol in ("+", "*"):
        turned = _of_two(definition, lambda *args: general.reflected(*args[:3]))
        # by this name a recording sees that the number stands first
        turned.__code__ = turned.__code__.replace(co_name="reflected")
        return turned
    compute, numbers = _compute(definition), _known_numbers(definition)
    if definition.ufunc is None:
        numbers = {}
    record: Any = None

    def reflected(self: Tensor, other: Any) -> Any:
        nonlocal record
        kind = other.__class__
        try:
            array = self._array
            known = numbers[kind][array.dtype.char]
            number = known.get(other)
            if number is None:
                number = _number(other, array.dtype, known)
            if array.__class__ is _ndarray:
                result = base.new(_asarray(quiet.run(compute, number, array)))
                if self._node is not None:
                    if record is None:
                        record = history.recorder(_rule(definition, "reflected"))
                    record(result, other, self)
                return result
        except _LEFT:
            pass
        return general.reflected(definition, self, other)

    return reflected


def _inplace_of_two(definition: Definition, otherwise: Callable[..., Any]) -> Any:
    """The in-place form where autograd need not be asked; all else is left to ``otherwise``."""
    direct, compute, numbers = definition.direct, _compute(definition), _known_numbers(definition)
    name = f"{definition.name}_"
    if definition.ufunc is None or definition.result == "bool":
        direct, numbers = "", {}

    def inplace(input: Any, other: Any, **options: Any) -> Any:
        kind = other.__class__
        try:
            a, node = input._array, input._node
            dtype = a.dtype
            if (
                options
                or a.__class__ is not _ndarray
                or (node is not None and (state.grad or node is INFERENCE))
                or not a.flags.c_contiguous
            ):
                pass
            elif kind in numbers:
                known = numbers[kind][dtype.char]
                number = known.get(other)
                if number is None:
                    number = _number(other, dtype, known)
                quiet.run(compute, a, number, a)
                history.written(input, name)
                return input
            else:
                b = other._array
                if (
                    dtype is b.dtype
                    and dtype.char in direct
                    and b.__class__ is _ndarray
                    and not (other._node is not None and state.grad)
                    and (
                        input._storage is None
                        or other._storage is None
                        or other is input
                        or input._storage.flat is not other._storage.flat
                    )
                ):
                    quiet.run(compute, a, b, a)
                    history.written(input, name)
                    return input
        except _LEFT:
            pass  # also: the memory is read-only
        return otherwise(definition, input, other, options)

    return inplace


def _view(definition: Definition) -> Operation:  # noqa: C901 - without calls
    """A view operation's forward maps a layout to a layout; no element is touched.

    ``on_arrays`` is the same for an array. Where it refuses, or gives a copy, the forward says what
    is wrong, or which view is meant.
    """
    locate, look = definition.forward, definition.on_arrays
    names = definition.options = definition.inputs  # what follows the layout
    definition.inputs = ("x",)
    defaults = dict(zip(names[::-1], (locate.__defaults__ or ())[::-1], strict=False))

    def call(input: Any, *args: Any, **options: Any) -> Any:
        if input.__class__ is _ndarray and state.on_arrays:  # in a formula
            return viewed_array(definition, input, *args, **options)
        try:
            array = input._array
            for each in () if options or look is None else args:
                if each.__class__ is not int and each.__class__ is not tuple:
                    break
            else:
                # what NumPy shows without elements or with a size of 1 may lie otherwise
                if array.__class__ is _ndarray and not options and look is not None:
                    shown = look(array, *args)
                    if shown is not None and shown.size and 1 not in shown.shape:
                        values = None
                        if input._node is not None:
                            values = dict(zip(names, args, strict=False))
                        return history.view(input, shown, definition.rules[None], values)
        except (AttributeError, TypeError, ValueError, IndexError, OverflowError):
            pass
        return by_layout(input, args, options)

    def by_layout(input: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if not isinstance(input, TensorBase):
            if state.on_arrays:
                return viewed_array(definition, input, *args, **options)
            need_tensor(definition.name, input)
        if options or len(args) < len(names) or [each for each in args if each.__class__ is list]:
            args = _positional(definition.name, names, defaults, args, options)
        source = Layout(input._array.shape, input._strides, 0)
        target = locate(source, *args)
        offset = base.offset_of(input) + target.offset
        flat = base.storage_of(input).flat
        shown = input.device.backend.view(flat, target.shape, target.strides, offset)
        values = dict(zip(names, args, strict=False), source=source, target=target)
        return history.view(input, shown, definition.rules[None], values, offset)

    return _dress(call, definition)


def _positional(
    function: str, names: Any, defaults: dict[str, Any], args: Any, options: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments of a view in order, lists as tuples."""
    args = tuple(tuple(arg) if isinstance(arg, list) else arg for arg in args)
    options = renamed(options)
    known = {**defaults, **options}
    named = [name for name in names[len(args) :] if name in known]
    args += tuple(known[name] for name in named)
    for name in named:
        options.pop(name, None)
    if options:
        unknown = next(iter(options))
        raise TypeError(f"{function}() got an unexpected keyword argument '{unknown}'")
    return args


def viewed_array(definition: Definition, array: Any, *args: Any, **options: Any) -> Any:
    """A view of an array, as a formula makes it in a plain backward."""
    if not is_array(array):  # a number
        array = _asarray(array)
    if definition.on_arrays is not None:
        shown = definition.on_arrays(array, *args, **options)
        if shown is not None:
            return shown
    backend, strides = backend_of(array), contiguous_strides(array.shape)
    target = definition.forward(Layout(array.shape, strides, 0), *args, **options)
    return backend.view(array.reshape(-1), *target)


def _function(definition: Definition) -> Operation:  # noqa: C901 - without calls
    """An operation on tensors of one dtype, as its caller has checked; its result is contiguous.

    Tensors come first and by position, options by name.
    """
    forward = definition.forward
    names = definition.inputs
    record: Any = None  # in short, for operations of one or two tensors without options

    def call(*inputs: Any, **options: Any) -> Tensor:  # noqa: C901 - without calls
        nonlocal record
        if inputs and inputs[0].__class__ is _ndarray and state.on_arrays:  # in a formula
            return forward(_xp, *inputs, **options)
        try:
            if len(inputs) == 1:
                array = inputs[0]._array
                if array.__class__ is not _ndarray:
                    raise AttributeError  # more is to be asked
                array = quiet.run(forward, _xp, array, **options)
            else:
                arrays = [x._array for x in inputs]
                for array in arrays:
                    if array.__class__ is not _ndarray:
                        raise AttributeError
                array = quiet.run(forward, _xp, *arrays, **options)
            result = _new(base.public)
            result._storage = result._node = None
            if array.__class__ is not _ndarray or not array.flags.c_contiguous:
                array = base.contiguous(array)
            result._array = array
        except (AttributeError, RuntimeError, TypeError):
            # an array, a number or a device among them, or a mode in which more is asked
            if state.on_arrays and not [x for x in inputs if isinstance(x, TensorBase)]:
                return general.on_arrays(definition, *inputs, **options)
            inputs = together(*inputs)
            device = inputs[0].device
            arrays = [x._array if isinstance(x, TensorBase) else x for x in inputs]
            array = quietly(forward, device.backend.xp, *arrays, **options)
            result = results.finished(results.contiguous_result(array, device))
        for x in inputs:
            if isinstance(x, TensorBase) and x._node is not None:
                if not options:
                    if record is None:
                        rule = definition.rules.get(None)
                        record = False
                        if rule is not None and names == rule.inputs and history.is_short(rule):
                            record = history.recorder(rule)
                    if record and not state.inference and base.watch is None:
                        record(result, *inputs)
                        return result
                values = dict(zip(names, inputs, strict=False), **options)
                values["shape"] = inputs[0]._array.shape
                return history.record(definition.rules.get(None), result, values)
        return result

    return _dress(call, definition)


_FACTORIES: dict[str, Callable[[Definition], Any]] = {
    "unary": _unary,
    "binary": _binary,
    "view": _view,
    "function": _function,
}


# Functions that choose an operation: ``x.sum(0)`` is one of several, depending on its arguments


def planned(n_tensors: int) -> Callable[[Callable[..., Any]], Any]:
    """Turn a function that chooses an operation into one that applies it.

    The function checks its arguments and gives an operation of kind "function", its tensors and its
    options; or a finished result. What formulas call also has ``on_arrays``.
    """

    def define(choose: Callable[..., Any]) -> Any:
        @wraps(choose)
        def call(*args: Any, **options: Any) -> Any:
            if args and not isinstance(args[0], TensorBase) and state.on_arrays:
                return call.on_arrays(*args, **options)  # type: ignore[attr-defined]
            chosen = choose(*args, **(renamed(options) if options else options))
            if chosen.__class__ is not tuple:
                return chosen
            operation, tensors, known = chosen
            return operation(*tensors, **known)

        return call

    return define


def composed(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function that chooses a view operation and its arguments into one that applies it.

    Given a list of such pairs it gives a tuple of views.
    """

    @wraps(choose)
    def view(input: Tensor, *args: Any, **options: Any) -> Any:
        chosen = choose(input, *args, **(renamed(options) if options else options))
        if chosen.__class__ is tuple:
            operation, own = chosen
            return operation(input, *own)
        if chosen.__class__ is list:
            return tuple([operation(input, *own) for operation, own in chosen])
        return chosen

    return view
