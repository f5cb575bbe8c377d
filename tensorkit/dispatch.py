"""How a call finds its kernel: ``@op(...)`` turns a forward on arrays into a public operation.

    @op(ndim={"input": 2, "mat2": 2}, dtypes="numeric", explain=_sizes_differ)
    def mm(xp, input, mat2):
        ...  # a docstring with an example that runs
        return xp.matmul(input, mat2)

    mm.grad(input=lambda g, mat2: mm(g, t(mat2)), mat2=lambda g, input: mm(t(input), g))

The forward's parameters after ``xp`` are the call's: tensors first (those without a default, or as
many as ``tensors=`` says: one with the default None may be left out), then options, which reach
forward and formulas as they were given. It returns a new array, or a tuple of arrays for
``outputs=``, a namedtuple of which only the first field has a gradient. It raises where NumPy
would compute something else than is meant. ``Definition`` lists what can be declared.

A call takes the arrays, runs the forward, wraps the result and records it. Only what NumPy would
accept in silence is asked before: the number of dimensions, the category of dtypes, dtypes that
differ. Modes that every operation must see (inference, recordings, overrides, ``DispatchMode``)
close the direct path (``errstate.silent``): it then raises, and the slow way takes the call. What
fails is explained (``tensorkit.explainer``), or computed, by the slow way: arguments by name,
NumPy's names of options, numbers, dtypes to be promoted, devices. It has layers, which
``tensorkit.dispatch_layers`` lists. Given arrays, which the formulas of a backward do, an operation
computes on arrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from tensorkit import base, dtypes, explainer, layout
from tensorkit.autograd.grad_mode import state
from tensorkit.autograd.inplace import view, written
from tensorkit.autograd.node import has_recorder, recorder
from tensorkit.base import Tensor, TensorBase
from tensorkit.definition import Definition
from tensorkit.devices import backend_of
from tensorkit.dispatch_layers import call_layers, finish, on_arrays, owned, record_call
from tensorkit.errstate import silent, silently
from tensorkit.ops.arguments import as_number, result_type
from tensorkit.ops.writing import check_output_dtype, check_output_shape, check_overlap, in_place

_ndarray = np.ndarray
_asarray = np.asarray
_new = object.__new__


class Operation(Protocol):
    """What ``@op`` makes of a forward function."""

    definition: Definition
    grad: Callable[..., None]  # see Definition.grad
    inplace: Callable[..., Tensor]
    operator: Callable[[Any, Any], Any]  # of a tensor and a tensor or number: ``x + y``
    reflected: Callable[[Any, Any], Any]  # the same for ``2 - x``

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Apply the operation to tensors and numbers."""

    def __get__(self, instance: Any, owner: Any) -> Callable[..., Any]:
        """An operation in the body of a class is a method, as every function is."""


def op(**declared: Any) -> Callable[[Callable[..., Any]], Operation]:
    """Define an operation; ``Definition`` lists what can be declared of it."""

    def define(forward: Callable[..., Any]) -> Operation:
        definition = Definition(forward, **declared)
        if definition.is_operator:
            call: Any = _of_two(definition)
        else:
            is_short = definition.tensors == 1 and not definition.options
            call = _of_one(definition) if is_short else _of_several(definition)
            call.inplace = in_place(call, definition.name)
        call.__name__ = call.__qualname__ = forward.__name__
        call.__module__, call.__doc__ = forward.__module__, forward.__doc__
        call.__signature__ = definition.signature
        call.definition, call.grad, definition.call = definition, definition.grad, call
        return call

    return define


# The direct path. What it leaves to the slow one: no tensor, a device, a mode, what NumPy refuses.
_FAILED = (AttributeError, KeyError, TypeError, ValueError, IndexError, RuntimeError, OverflowError)


def _of_one(definition: Definition) -> Any:
    """An operation of one tensor without options."""
    forward, (letters,), (ndim,) = definition.compute, definition.letters, definition.ndims
    is_simple, contiguous = not (definition.outputs or definition.view), definition.contiguous
    record: Any = None  # made by _recorder when it is needed first

    def call(input: Any) -> Any:
        nonlocal record
        if input.__class__ is _ndarray and state.on_arrays:  # in a formula
            return forward(input)
        try:
            array = input._array
            if (
                array.__class__ is _ndarray
                and array.dtype.char in letters
                and (ndim is None or array.ndim == ndim)
            ):
                found = silent.run(forward, array)
                if not is_simple:
                    return finish(definition, found, (input,), {})
                if (
                    found.__class__ is not _ndarray
                    or found.base is not None
                    or found is array
                    or (contiguous and not found.flags.c_contiguous)
                ):
                    found = owned(found, (array,), contiguous)
                result = _new(base.public)
                result._array = found
                result._storage = result._node = None
                if input._node is not None:
                    if record is None:
                        record = _recorder(definition)
                    record(result, input)
                return result
        except _FAILED:
            pass
        return call_layers(definition, (input,), {})

    return call


def _of_several(definition: Definition) -> Any:  # noqa: C901 - without calls
    """An operation of one or several tensors and options."""
    forward, n = definition.compute, definition.tensors
    asked = list(zip(definition.letters, definition.ndims, definition.categories, strict=True))
    first = definition.categories[0]
    is_simple = not (definition.outputs or definition.view or definition.several)
    contiguous, bools, is_view = definition.contiguous, definition.bools, definition.view
    counts_as_vector = definition.names_dims
    record: Any = None  # made by _recorder when it is needed first

    def call(*args: Any, **options: Any) -> Any:  # noqa: C901 - without calls
        nonlocal record
        if args and args[0].__class__ is _ndarray and state.on_arrays:  # in a formula
            return forward(*args, **options)
        try:
            arrays: list[Any] = []
            tracked, array = False, args[0]._array
            dtype = array.dtype
            if not array.ndim and (counts_as_vector or options or len(args) > n):
                raise TypeError
            for x, (letters, ndim, category) in zip(args, asked, strict=False):
                if x is None:
                    arrays.append(None)
                    continue
                array = x._array
                if (
                    array.__class__ is not _ndarray
                    or (array.dtype is not dtype and category == first)
                    or array.dtype.char not in letters
                    or (ndim is not None and array.ndim != ndim)
                ):
                    raise TypeError
                if x._node is not None:
                    tracked = True
                arrays.append(array)
            if len(args) > n:
                for at in bools:
                    if args[at:] and args[at].__class__ is not bool:
                        raise TypeError
                found = silent.run(forward, *arrays, *args[n:], **options)
            else:
                found = silent.run(forward, *arrays, **options)
            if is_view and not tracked and array.flags.c_contiguous:
                return view(args[0], found, None)
            if not is_simple:
                return finish(definition, found, args, options)
            if found.__class__ is not _ndarray:  # a number of NumPy's
                found = _asarray(found)
            elif (
                found.base is not None
                or found is array
                or (contiguous and not found.flags.c_contiguous)
            ):
                found = owned(found, arrays, contiguous)
            result = _new(base.public)
            result._array = found
            result._storage = result._node = None
            if tracked:
                if record is None:
                    record = _recorder(definition)
                record(result, *args, **options)
            return result
        except _FAILED:
            pass
        return call_layers(definition, args, options)

    return call


# Numbers as arrays without dimensions, by NumPy's letter of the dtype: an operation with one takes
# half the time of one with a Python number.
_NUMBERS: dict[str, dict[float, Any]] = {"f": {}, "d": {}, "l": {}}
_MOST_NUMBERS = 1000


def _number(value: Any, dtype: Any, known: dict[float, Any]) -> Any:
    """A number as an array of this dtype, from now on in ``known``.

    KeyError for an integer outside of int64, which is for the slow way.
    """
    if value.__class__ is int and not -(2**63) <= value < 2**63:
        raise KeyError
    array = silently(_asarray, value, dtype)
    if value:  # 0.0 and -0.0 are equal
        if len(known) >= _MOST_NUMBERS:
            known.clear()
        known[value] = array
    return array


def _of_two(definition: Definition) -> Any:  # noqa: C901 - without calls
    """An operation of two tensors, one of which may be a number: also operator and in place."""
    letters, compute = definition.letters[0], definition.compute
    known = {char: table for char, table in _NUMBERS.items() if char in letters}
    numbers: dict[type, dict[str, dict[float, Any]]] = {}  # an int64 and a float give another dtype
    if definition.numbers:
        numbers = {int: known, float: {char: known[char] for char in known if char != "l"}}
    runs_body = definition.ufunc is None
    record: Any = None  # made by _recorder when it is needed first

    def operator(input: Any, other: Any) -> Any:  # noqa: C901 - without calls
        nonlocal record
        try:
            a = input._array
            dtype, tables = a.dtype, numbers.get(other.__class__)
            if tables is None:
                b, tracked = other._array, other._node is not None
                is_here = a.__class__ is b.__class__ is _ndarray
            else:
                table, tracked, is_here = tables[dtype.char], False, a.__class__ is _ndarray
                b = table.get(other)
                if b is None:
                    b = _number(other, dtype, table)
                if runs_body:  # it tells a number from a tensor, by its class
                    b = b[()]
            # else a GPU, or dtypes that differ: the slow way, below
            if is_here and dtype is b.dtype and dtype.char in letters:
                found = silent.run(compute, a, b)
                if found.__class__ is not _ndarray:
                    found = _asarray(found)
                result = _new(base.public)
                result._array = found
                result._storage = result._node = None
                if tracked or input._node is not None:
                    if record is None:
                        record = _recorder(definition)
                    record(result, input, other)
                return result
        except _FAILED:
            pass
        if not (isinstance(other, TensorBase) or as_number(other) is not None):
            if isinstance(other, _ndarray):
                explainer.refuse_array(definition, input, other)
            return NotImplemented
        return call_layers(definition, (input, other), {})

    def call(input: Any, other: Any = None, **options: Any) -> Any:
        if state.on_arrays and not isinstance(input, TensorBase):  # in a formula
            return on_arrays(definition, input, other, **options)
        found = NotImplemented if options or other is None else operator(input, other)
        if found is not NotImplemented:
            return found
        return call_layers(definition, (input,) if other is None else (input, other), options)

    def reflected(other: Any, input: Any) -> Any:  # ``other`` is the tensor, as of ``2 - x``
        try:
            array = other._array
            table = numbers[input.__class__][array.dtype.char]
            number = table.get(input)
            if number is None:
                number = _number(input, array.dtype, table)
            if array.__class__ is _ndarray and array.dtype.char in letters and not runs_body:
                result = base.new(_asarray(silent.run(compute, number, array)))
                if other._node is not None:
                    record_call(definition, result, (input, other), {})
                return result
        except _FAILED:
            pass
        if isinstance(input, TensorBase) or as_number(input) is not None:
            return call_layers(definition, (input, other), {})
        return operator(other, input)  # which refuses

    call.operator, call.reflected = operator, reflected  # type: ignore[attr-defined]
    call.inplace = _in_place_of_two(definition, call)  # type: ignore[attr-defined]
    return call


def _in_place_of_two(definition: Definition, call: Any) -> Any:
    """The in-place form: at once where autograd need not be asked."""
    letters, compute = definition.letters[0], definition.compute
    name, known = f"{definition.name}_", _NUMBERS
    otherwise = in_place(call, definition.name, partial(_check_in_place, definition))

    def inplace(input: Any, other: Any = None, **options: Any) -> Any:
        try:
            a, node = input._array, input._node
            is_dense = a.flags.c_contiguous or a.flags.f_contiguous
            if not options and is_dense and (node is None or not state.grad):
                if other.__class__ is float:
                    table = known[a.dtype.char]
                    b = table.get(other)
                    if b is None:
                        b = _number(other, a.dtype, table)
                    is_apart = a.dtype.kind == "f"
                else:
                    b, storage = other._array, input._storage
                    is_apart = other._node is None or not state.grad
                    if storage is not None and other is not input:
                        is_apart = is_apart and other._storage is not storage
                if is_apart and b.dtype is a.dtype and a.dtype.char in letters:
                    function = compute
                    if a.__class__ is not _ndarray:
                        function = _function_of(definition, a)
                        b = b[()] if b.__class__ is _ndarray and not b.ndim else b
                    silent.run(function, a, b, out=a)
                    written(input, name)
                    return input
        except _FAILED:
            pass  # also: the memory is read-only
        if isinstance(other, _ndarray):
            explainer.refuse_array(definition, input, other)
        others = () if other is None else (other,)
        return otherwise(input, *others, **options)

    inplace.__doc__ = f"``{definition.name}``, in place."
    return inplace if definition.ufunc else otherwise


def _function_of(definition: Definition, array: Any) -> Any:
    """The array library's function on a GPU; TypeError where a kernel of the user's is to run."""
    if len(definition.kernels) > 1:
        raise TypeError
    return getattr(backend_of(array).xp, definition.ufunc or "")


def _check_in_place(definition: Definition, *args: Any, **options: Any) -> None:
    """Raise where the result of an operation of two does not fit into the first, as PyTorch."""
    values = definition.bind(args, options)
    if definition.explain is not None:
        definition.explain(**values)
    input, other = (values[name] for name in definition.inputs)
    check_overlap(input, other)
    if isinstance(other, TensorBase):
        own, wanted = tuple(input.shape), tuple(other.shape)
        check_output_shape(own, layout.broadcast_shapes(own, wanted))
    dtype = result_type(input, other)
    if definition.to_floating and not dtype.is_floating_point:
        dtype = dtypes.get_default_dtype()
    check_output_dtype(dtype, input.dtype)


# What the direct path calls


def _recorder(definition: Definition) -> Any:
    """What gives a result its node, called with the result and the arguments of the call."""
    rule, n, defaults = definition.plain or definition.rules.get(None), definition.tensors, {}
    if rule is None:
        return lambda result, *args, **options: None
    defaults = {name: definition.defaults.get(name) for name in definition.options}
    starts_alike = rule.inputs == definition.inputs[: len(rule.inputs)]
    if len(definition.rules) > 1 or not (starts_alike and has_recorder(rule, defaults)):
        return lambda result, *args, **options: record_call(definition, result, args, options)
    short, n_inputs = recorder(rule, defaults), len(rule.inputs)
    if n == n_inputs and (not defaults or definition.is_operator):  # options come by the slow way
        return short

    def record(result: Any, *args: Any, **options: Any) -> None:
        if options or len(args) > n:
            record_call(definition, result, args, options)
        else:
            short(result, *args[:n_inputs])

    return record
