"""How a call finds its kernel: ``@op(...)`` turns a forward on arrays into a public operation.

    @op(ndim={"input": 2, "mat2": 2}, dtypes="numeric", check=_check_sizes)
    def mm(xp, input, mat2):
        ...  # a docstring with an example that runs
        return xp.matmul(input, mat2)

    mm.grad(input=lambda g, mat2: mm(g, t(mat2)), mat2=lambda g, input: mm(t(input), g))

The forward's parameters after ``xp`` are the call's: tensors first (those without a default, or as
many as ``tensors=`` says: one with the default None may be left out), then options, which reach
forward and formulas as they were given. It returns a new array, or a tuple of arrays for
``outputs=``, a namedtuple of which only the first field has a gradient. It raises where NumPy
would compute something else than is meant. ``Definition`` lists what can be declared.

**The direct path** of a call takes the arrays, runs the forward, wraps the result and gives it its
node. Before, it checks only what NumPy would not refuse: the number of dimensions, the category of
dtypes, dtypes that differ. Its functions are below, one for operations of one tensor, of two and of
several. A call that they cannot compute raises one of ``_NOT_DIRECT``, or does not enter their
``if``. Then **the layers** of ``tensorkit.dispatch_layers`` take the call: arguments by name,
NumPy's names of options, dtypes to be promoted, devices, modes. ``tensorkit.refusals`` has the
words for what is wrong.

In a plain backward (``state.on_arrays``) formulas call operations with arrays in place of tensors.
An operation then computes an array, and does nothing else.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tensorkit import base, direct_path, layout, refusals
from tensorkit.autograd.node import INFERENCE
from tensorkit.autograd.versions import bump_version, make_view
from tensorkit.base import TensorBase
from tensorkit.definition import TYPECODES, Definition
from tensorkit.devices import backend_of
from tensorkit.direct_path import NotDirect, without_warnings
from tensorkit.dispatch_layers import call_layers, call_on_arrays, finish, owned
from tensorkit.ops.arguments import as_number, promoted_dtype
from tensorkit.ops.inplace import check_output_dtype, check_output_shape, check_overlap, in_place
from tensorkit.thread_state import state

_ndarray = np.ndarray
_asarray, _new_array = np.asarray, np.array
_new = object.__new__


def op(**declared: Any) -> Callable[[Callable[..., Any]], Any]:
    """Define an operation; ``Definition`` lists what can be declared of it.

    It has ``definition`` and ``grad`` (see ``Definition.grad``), and ``inplace`` if it goes element
    by element; one of two tensors also ``operator``, for ``x + y``, and ``reflected``, for
    ``2 - x``.
    """

    def define(forward: Callable[..., Any]) -> Any:
        definition = Definition(forward, **declared)
        if definition.is_of_two:
            call: Any = _of_two(definition)
        else:
            call = _of_one(definition) if definition.is_of_one else _of_several(definition)
            if definition.has_form_in_place:
                call.inplace = in_place(call, definition.name)
        call.__name__ = call.__qualname__ = forward.__name__
        call.__module__, call.__doc__ = forward.__module__, forward.__doc__
        call.__signature__ = definition.signature
        call.definition, call.grad, definition.call = definition, definition.grad, call
        return call

    return define


# What ends the direct path: NotDirect (it is closed, or not for this call), KeyError (no table of
# ``_TABLES`` is for the number), AttributeError (an argument has no array), and NumPy's errors.
# Then the layers compute the call, or refuse it.
_NOT_DIRECT = (NotDirect, KeyError, *refusals.FROM_ARRAYS)


def _fit(definition: Definition, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether each option that is a bool, a number or a str has one of its classes."""
    classes, given = definition.classes, [*zip(definition.options, args), *options.items()]  # noqa: B905
    return not [name for name, x in given if name in classes and x.__class__ not in classes[name]]


def _of_one(definition: Definition) -> Any:  # noqa: C901 - one function, for speed
    """An operation of one tensor, and options."""
    compute, (typecodes,), (ndim,) = definition.compute, definition.typecodes, definition.ndims
    is_view, has_outputs, contiguous = definition.view, definition.outputs, definition.contiguous
    at_least_1d, accepts_all = definition.at_least_1d, typecodes == TYPECODES["any"]

    def call(input: Any, *args: Any, **options: Any) -> Any:  # noqa: C901 - one function, for speed
        if input.__class__ is _ndarray and state.on_arrays:  # in a formula
            return compute(input, *args, **options)
        computed = None
        try:
            array, node = input._array, input._node
            if (
                array.__class__ is _ndarray
                and (accepts_all or array.dtype.char in typecodes)
                and (ndim is None or array.ndim == ndim)
            ):
                if not (array.ndim or is_view) and (at_least_1d or args or options):
                    raise NotDirect
                if not (args or options):
                    computed = direct_path.run(compute, array)
                elif is_view or _fit(definition, args, options):
                    computed = direct_path.run(compute, array, *args, **options)
        except _NOT_DIRECT:
            pass
        if computed is None:
            return call_layers(definition, (input, *args), options)
        if is_view and array.flags.c_contiguous:  # of others the forward may give a copy
            saved = ()
            if node is not None and definition.options:
                saved = definition.saved_by_view((input, *args), options)
            return make_view(input, computed, definition.rules.get(None), saved)
        if is_view or has_outputs:
            return finish(definition, computed, (input, *args), options)
        if computed.__class__ is not _ndarray:  # a number of NumPy's
            computed = _new_array(computed)
        elif (  # it may share the memory of the argument
            computed.base is not None
            or computed is array
            or (contiguous and not computed.flags.c_contiguous)
        ):
            computed = owned(computed, (array,), contiguous)
        result = _new(base.tensor_class)
        result._array = computed
        result._storage = result._node = None
        if node is not None:
            if args or options:
                definition.record(result, (input, *args), options)
            else:
                definition.record_tensors[None](result, input)
        return result

    return call


def _of_several(definition: Definition) -> Any:  # noqa: C901 - one function, for speed
    """An operation of several tensors, some of which may be None, and options."""
    compute, n, first_category = definition.compute, definition.tensors, definition.categories[0]
    required = [*zip(definition.typecodes, definition.ndims, definition.categories, strict=True)]
    is_simple = not (definition.outputs or definition.view or definition.variadic)
    contiguous, at_least_1d = definition.contiguous, definition.at_least_1d

    def call(*args: Any, **options: Any) -> Any:  # noqa: C901 - one function, for speed
        if args and args[0].__class__ is _ndarray and state.on_arrays:  # in a formula
            return compute(*args, **options)
        computed, tracked = None, False
        try:
            arrays: list[Any] = []
            array = args[0]._array
            dtype, is_plain = array.dtype, len(args) <= n and not options
            if not array.ndim and (at_least_1d or not is_plain):
                raise NotDirect
            for x, (typecodes, ndim, category) in zip(args, required):  # noqa: B905
                if x is None:
                    arrays.append(None)
                    continue
                array = x._array
                if (
                    array.__class__ is not _ndarray
                    or (array.dtype is not dtype and category == first_category)
                    or array.dtype.char not in typecodes
                    or (ndim is not None and array.ndim != ndim)
                ):
                    raise NotDirect
                if x._node is not None:
                    tracked = True
                arrays.append(array)
            if is_plain or _fit(definition, args[n:], options):
                computed = direct_path.run(compute, *arrays, *args[n:], **options)
        except _NOT_DIRECT:
            pass
        if computed is None:
            return call_layers(definition, args, options)
        if not is_simple:
            return finish(definition, computed, args, options)
        if computed.__class__ is not _ndarray:  # a number of NumPy's
            computed = _new_array(computed)
        elif computed.base is not None or (contiguous and not computed.flags.c_contiguous):
            computed = owned(computed, arrays, contiguous)
        result = _new(base.tensor_class)
        result._array = computed
        result._storage = result._node = None
        if tracked and is_plain:
            definition.record_tensors[None](result, *args)
        elif tracked:
            definition.record(result, args, options)
        return result

    return call


# Arrays without dimensions of the numbers that were operands, in a table for each dtype, by NumPy's
# letter: an operation with such an array takes half the time of one with a Python number.
_TABLES: dict[str, dict[float, Any]] = {"f": {}, "d": {}, "l": {}}
_MAX_NUMBERS = 1000


def _number(value: Any, dtype: Any, table: dict[float, Any]) -> Any:
    """A number as an array of this dtype, from now on in ``table``; no integer outside of int64."""
    if value.__class__ is int and not -(2**63) <= value < 2**63:
        raise NotDirect
    array = without_warnings(_asarray, value, dtype)
    if value:  # 0.0 and -0.0 are equal
        if len(table) >= _MAX_NUMBERS:
            table.clear()
        table[value] = array
    return array


def _of_two(definition: Definition) -> Any:  # noqa: C901 - one function, for speed
    """An operation of two tensors, one of which may be a number: also operator and in place."""
    typecodes, compute = definition.typecodes[0], definition.compute
    (input_name, other_name), (ndim, other_ndim) = definition.inputs, definition.ndims
    # the tables for a number, by its class: a float and a tensor of integers are for the layers
    tables_of: dict[type, dict[str, dict[float, Any]]] = {}
    if definition.numbers and definition.promote:
        tables_of = {int: _TABLES, float: {char: _TABLES[char] for char in "fd"}}
    runs_body, contiguous = definition.ufunc is None, definition.contiguous
    accepts_all = typecodes == TYPECODES["any"]

    def operator(input: Any, other: Any) -> Any:  # noqa: C901 - one function, for speed
        computed = number_name = None
        try:
            a = input._array
            kind = other.__class__
            tables = None if kind is base.tensor_class else tables_of.get(kind)
            if tables is None:
                b = other._array
            else:
                table, number_name = tables[a.dtype.char], other_name
                b = table.get(other)
                if b is None:
                    b = _number(other, a.dtype, table)
                if runs_body:  # the body asks for np.generic to tell a number from a tensor
                    b = b[()]
            if (  # otherwise a GPU, or dtypes that differ: for the layers
                a.dtype is b.dtype
                and a.__class__ is _ndarray
                and (number_name or b.__class__ is _ndarray)
                and (accepts_all or a.dtype.char in typecodes)
                and (ndim is None or (a.ndim == ndim and b.ndim == other_ndim))
            ):
                computed = direct_path.run(compute, a, b)
        except _NOT_DIRECT:
            pass
        if computed is not None:
            if computed.__class__ is not _ndarray:
                computed = _new_array(computed)
            elif contiguous and (computed.base is not None or not computed.flags.c_contiguous):
                computed = owned(computed, (a, b), contiguous)
            result = _new(base.tensor_class)
            result._array = computed
            result._storage = result._node = None
            if input._node is not None or (number_name is None and other._node is not None):
                definition.record_tensors[number_name](result, input, other)
            return result
        if not (isinstance(other, TensorBase) or as_number(other) is not None):
            if isinstance(other, _ndarray):
                refusals.refuse_array(definition, input, other)
            return NotImplemented
        return call_layers(definition, (input, other), {})

    def call(input: Any, other: Any = ..., **options: Any) -> Any:  # ...: it was not given
        if not isinstance(input, TensorBase) and state.on_arrays:  # in a formula
            if input.__class__ is other.__class__ is _ndarray and not options:
                return compute(input, other)
            return call_on_arrays(definition, input, other, **options)
        computed = NotImplemented if options or other is ... else operator(input, other)
        if computed is not NotImplemented:
            return computed
        return call_layers(definition, (input,) if other is ... else (input, other), options)

    def reflected(tensor: Any, number: Any) -> Any:
        computed = None
        try:
            array = tensor._array
            table = tables_of[number.__class__][array.dtype.char]
            left = table.get(number)
            if left is None:
                left = _number(number, array.dtype, table)
            if array.__class__ is _ndarray and array.dtype.char in typecodes and not runs_body:
                computed = direct_path.run(compute, left, array)
        except _NOT_DIRECT:
            pass
        if computed is not None:
            result = base.new(computed if computed.__class__ is _ndarray else _new_array(computed))
            if tensor._node is not None:
                definition.record_tensors[input_name](result, number, tensor)
            return result
        if isinstance(number, TensorBase) or as_number(number) is not None:
            return call_layers(definition, (number, tensor), {})
        return operator(tensor, number)  # which refuses

    call.operator, call.reflected = operator, reflected  # type: ignore[attr-defined]
    if definition.has_form_in_place:
        call.inplace = _in_place_of_two(definition, call)  # type: ignore[attr-defined]
    return call


def _in_place_of_two(definition: Definition, call: Any) -> Any:  # noqa: C901 - for speed
    """The in-place form: at once where autograd need not be asked."""
    typecodes, compute = definition.typecodes[0], definition.compute
    name = f"{definition.name}_"
    otherwise = in_place(call, definition.name, partial(_check_in_place, definition))

    def inplace(input: Any, other: Any = ..., **options: Any) -> Any:
        is_done = False
        try:
            a, node = input._array, input._node
            is_dense = a.flags.c_contiguous or a.flags.f_contiguous
            is_untracked = node is None or (not state.grad and node is not INFERENCE)
            if not options and is_dense and is_untracked:
                if other.__class__ is float:
                    table = _TABLES[a.dtype.char]
                    b = table.get(other)
                    if b is None:
                        b = _number(other, a.dtype, table)
                    may_write = a.dtype.kind == "f"
                else:
                    b, storage = other._array, input._storage
                    may_write = other._node is None or not state.grad
                    if storage is not None and other is not input:  # they may overlap
                        may_write = may_write and other._storage is not storage
                if may_write and b.dtype is a.dtype and a.dtype.char in typecodes:
                    function = compute
                    if a.__class__ is not _ndarray:
                        function = getattr(backend_of(a).xp, definition.ufunc or "")
                        b = b[()] if b.__class__ is _ndarray and not b.ndim else b
                    direct_path.run(function, a, b, a)
                    is_done = True
        except _NOT_DIRECT:
            pass  # also: the memory is read-only
        if is_done:
            bump_version(input, name)
            return input
        if isinstance(other, _ndarray):
            refusals.refuse_array(definition, input, other)
        others = () if other is ... else (other,)
        return otherwise(input, *others, **options)

    inplace.__doc__ = f"``{definition.name}``, in place."
    return inplace if definition.ufunc else otherwise


def _check_in_place(definition: Definition, *args: Any, **options: Any) -> None:
    """Raise where the result of an operation of two does not fit into the first, as PyTorch."""
    values = definition.bind(args, options)
    refusals.check_tensors(definition, values)
    if definition.check is not None:
        definition.check(**values)
    input, other = (values[name] for name in definition.inputs)
    check_overlap(input, other)
    if isinstance(other, TensorBase):
        own, wanted = tuple(input.shape), tuple(other.shape)
        check_output_shape(own, layout.broadcast_shapes(own, wanted))
    check_output_dtype(promoted_dtype([input, other], definition.to_floating), input.dtype)
