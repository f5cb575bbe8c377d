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
would compute something else than is meant. ``Declaration`` lists what can be declared.

A call takes the arrays, runs the forward, wraps the result and records it. Only what NumPy would
accept in silence is asked before: the number of dimensions, the category of dtypes, dtypes that
differ. What fails is explained (``tensorkit.explainer``), or computed, by the slow way: arguments
by name, NumPy's names of options, numbers, dtypes to be promoted, devices. Given arrays, which the
formulas of a backward do, an operation computes on arrays.
"""

from collections.abc import Callable
from inspect import Signature, signature
from typing import Any

import numpy as np

from tensorkit import base, explainer
from tensorkit.autograd import history
from tensorkit.autograd.marks import INFERENCE
from tensorkit.autograd.modes import state
from tensorkit.autograd.rules import Rule
from tensorkit.base import TensorBase
from tensorkit.devices import CPU, backend_of, device_of_array, is_array
from tensorkit.ops.moving import together
from tensorkit.ops.operands import as_array, as_operand, promoted_type
from tensorkit.quiet import quiet, quietly

_ndarray = np.ndarray
_xp = CPU.backend.xp
_new = object.__new__

# NumPy's letters of the dtypes of a category.
LETTERS = {"any": "fdlihbB?e", "numeric": "fdlihbBe", "integral": "lihbB?", "floating": "fde"}


class Declaration:
    """What is known of an operation. First come the options of ``@op``, with their defaults."""

    tensors: int  # how many of the first parameters are tensors, if not those without a default
    ndim: dict[str, int | tuple[int, ...]]  # how many dimensions a tensor must have
    # The category of the tensors ("any", "numeric": not bool, "integral": no floating point,
    # "floating"), which have one dtype; or by name, and then only those of one word have one dtype.
    dtypes: str | dict[str, str] = "any"
    promote: bool = False  # dtypes may differ: all is computed in the promoted one; numbers, too
    dim: tuple[str, ...] = ("dim",)  # options that name dimensions of the first tensor
    outputs: Callable[..., Any] | None = None  # of several results: a namedtuple
    view: bool = False  # the result shares the memory of the first tensor
    explain: Callable[..., object] | None = None  # called as the operation is: raises if it can
    kernel: str  # the name in PyTorch's "not implemented for" message, if not <name>_cpu

    def __init__(self, forward: Callable[..., Any], **declared: Any) -> None:
        assert declared.keys() <= Declaration.__annotations__.keys(), declared
        self.forward, self.name = forward, forward.__name__.strip("_")
        self.kernel, self.ndim = f"{self.name}_cpu", {}
        parameters = list(signature(forward).parameters.values())[1:]
        self.signature = Signature(parameters)
        self.tensors = len([each for each in parameters if _is_tensor(each)])
        self.__dict__.update(declared)
        names = [each.name for each in parameters]
        self.inputs, self.options = tuple(names[: self.tensors]), tuple(names[self.tensors :])
        self.defaults = {
            each.name: each.default for each in parameters if each.default is not each.empty
        }
        self.several = next(
            (each.name for each in parameters if each.kind is each.VAR_POSITIONAL), ""
        )
        self.ndims: tuple[Any, ...] = tuple(self.ndim.get(name) for name in self.inputs)
        whole = self.dtypes if isinstance(self.dtypes, str) else None
        own = self.dtypes if isinstance(self.dtypes, dict) else {}
        self.categories = tuple(whole or own.get(name, "any") for name in self.inputs)
        self.letters = tuple(LETTERS[word] for word in self.categories)
        self.rule: Rule | None = None
        self.rules: dict[str | None, Rule] = {}

    def grad(self, *, node: str | None = None, **formulas: Callable[..., Any] | None) -> None:
        """Give the gradient formulas, one per tensor that has a gradient.

        A formula's first parameter is the gradient of the result; the others name what it needs:
        tensors, options, ``out`` (the result), ``shape`` (of the first tensor), other outputs. It
        is written in operations and operators only, so that it runs on tensors and on arrays.
        ``node`` is PyTorch's name of the node if it is not ``<Name>Backward0``.
        """
        camel = self.name.title().replace("_", "")
        inputs = tuple(name for name in self.inputs if name in formulas)
        options = self.options if self.view else ()
        self.rule = Rule(self.name, node or f"{camel}Backward0", inputs, formulas, None, options)
        self.rules[None] = self.rule

    def bind(self, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, with defaults; TypeError where they do not fit."""
        options = {_OF_NUMPY.get(name, name): value for name, value in options.items()}
        if self.several in options:
            args, options = (*args, options.pop(self.several)), options
        try:
            bound = self.signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        bound.apply_defaults()
        values = bound.arguments
        for name in self.options:
            if isinstance(values[name], list):
                values[name] = tuple(values[name])
        if self.several:
            if not values[self.several]:
                raise TypeError(f"{self.name}() missing 1 required argument: {self.several}")
            values[self.several] = _unpacked(values[self.several])
        return values


_OF_NUMPY = {"axis": "dim", "axis0": "dim0", "axis1": "dim1", "keepdims": "keepdim"}


def _is_tensor(parameter: Any) -> bool:
    return (
        parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    )


def _unpacked(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Integers that are given one by one or as one sequence: permute(1, 0), permute((1, 0))."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return values


def op(**declared: Any) -> Callable[[Callable[..., Any]], Any]:
    """Define an operation; ``Declaration`` lists what can be declared of it."""

    def define(forward: Callable[..., Any]) -> Any:
        definition = Declaration(forward, **declared)
        call: Any = _of_one(definition) if definition.tensors == 1 else _of_several(definition)
        call.__name__ = call.__qualname__ = forward.__name__
        call.__module__, call.__doc__ = forward.__module__, forward.__doc__
        call.__signature__ = definition.signature
        call.definition, call.grad = definition, definition.grad
        return call

    return define


# What the direct path leaves to the slow one: no tensor, a device, a mode, what NumPy refuses.
_FAILED = (AttributeError, TypeError, ValueError, IndexError, RuntimeError, OverflowError)


def _of_one(definition: Declaration) -> Callable[..., Any]:
    forward, (letters,), (ndim,) = definition.forward, definition.letters, definition.ndims
    is_simple = not (definition.outputs or definition.view or definition.several)
    finish = _finish

    def call(input: Any, *args: Any, **options: Any) -> Any:
        if input.__class__ is _ndarray and state.on_arrays:  # in a formula
            return forward(_xp, input, *args, **options)
        try:
            array = input._array
            if (
                array.__class__ is _ndarray
                and array.dtype.char in letters
                and (ndim is None or array.ndim == ndim)
            ):
                found = quiet.run(forward, _xp, array, *args, **options)
                if not is_simple or found.__class__ is not _ndarray or found.base is not None:
                    return finish(definition, found, (input, *args), options)
                if found is not array:
                    result = _new(base.public)
                    result._array = found
                    result._storage = result._node = None
                    if input._node is not None:
                        _record(definition, result, (input, *args), options)
                    return result
        except _FAILED:
            pass
        return _slow(definition, (input, *args), options)

    return call


def _of_several(definition: Declaration) -> Callable[..., Any]:  # noqa: C901 - without calls
    forward, n, finish = definition.forward, definition.tensors, _finish
    asked = list(zip(definition.letters, definition.ndims, definition.categories, strict=True))
    first = definition.categories[0]
    is_simple = not (definition.outputs or definition.view or definition.several)

    def call(*args: Any, **options: Any) -> Any:  # noqa: C901 - without calls
        if args and args[0].__class__ is _ndarray and state.on_arrays:  # in a formula
            return forward(_xp, *args, **options)
        try:
            arrays: list[Any] = []
            tracked, dtype = False, args[0]._array.dtype
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
            found = quiet.run(forward, _xp, *arrays, *args[n:], **options)
            if is_simple and found.__class__ is _ndarray and found.base is None:
                for array in arrays:
                    if array is found:
                        break
                else:
                    result = _new(base.public)
                    result._array = found
                    result._storage = result._node = None
                    if tracked:
                        _record(definition, result, args, options)
                    return result
            return finish(definition, found, args, options)
        except _FAILED:
            pass
        return _slow(definition, args, options)

    return call


def _record(
    definition: Declaration,
    result: Any,
    args: tuple[Any, ...],
    options: dict[str, Any],
    **more: Any,
) -> None:
    """Give a result its node."""
    if definition.rule is None:
        return
    values = dict(definition.defaults)
    values.update(zip((*definition.inputs, *definition.options), args, strict=False))
    values.update(options)
    if definition.several:
        values[definition.several] = _unpacked(args[definition.tensors :])
    values.update(more)
    values["shape"] = args[0]._array.shape
    history.record(definition.rule, result, values)


def _finish(
    definition: Declaration, found: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Tensors from what a forward has given: numbers, views, several results."""
    if definition.view:
        return _viewed(definition, found, args, options)
    if definition.outputs is None:
        result = base.new(_owned(found, args))
        if state.inference:
            result._node = INFERENCE
        if any(x is not None and x._node is not None for x in args[: definition.tensors]):
            _record(definition, result, args, options)
        return result
    results = [base.new(_owned(each, args)) for each in found]
    for each in results:
        if state.inference:
            each._node = INFERENCE
    outputs = definition.outputs(*results)
    if any(x is not None and x._node is not None for x in args[: definition.tensors]):
        fields = outputs._fields
        _record(
            definition, results[0], args, options, **dict(zip(fields[1:], results[1:], strict=True))
        )
    return outputs


def _owned(found: Any, args: tuple[Any, ...]) -> Any:
    """The array that a forward has given, or a copy of it where it is a part of another."""
    if not is_array(found):
        return np.asarray(found)
    device = device_of_array(found)
    if found.__class__ is not _ndarray:
        return base.contiguous(found, device)
    if found.flags.forc and not any(
        np.may_share_memory(found, x._array) for x in args if _has_array(x)
    ):
        return found
    return found.copy(order="K")


def _has_array(x: Any) -> bool:
    return isinstance(x, TensorBase) and x._array.__class__ is _ndarray


def _viewed(
    definition: Declaration, shown: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """A view of the first tensor; a copy where the forward had to make one."""
    x, array = args[0], args[0]._array
    is_here = shown.__class__ is _ndarray and not array.flags.c_contiguous and shown.size
    if is_here and not np.may_share_memory(shown, array):
        result = base.new(shown)
        _record(definition, result, args, options)
        return result
    values = None
    if x._node is not None:
        values = {**definition.defaults, **dict(zip(definition.options, args[1:], strict=False))}
        values.update(options)
        if definition.several:
            values[definition.several] = _unpacked(args[definition.tensors :])
    return history.view(x, shown, definition.rule, values)  # type: ignore[arg-type]


# The slow way


def _slow(definition: Declaration, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The operation on arguments of all kinds, or the refusal."""
    values = definition.bind(args, options)
    tensors = [values[name] for name in definition.inputs]
    others: list[Any] = []
    for name in definition.options:
        others += [values[name]] if name == definition.several else []
    named = {name: values[name] for name in definition.options if name != definition.several}
    if state.on_arrays and not [x for x in tensors if isinstance(x, TensorBase)]:
        return definition.forward(backend_of(*tensors).xp, *tensors, *others, **named)
    explainer.need_tensors(definition, values)
    tensors = list(together(*tensors))
    if definition.promote:
        tensors = _promoted(tensors)
    values.update(zip(definition.inputs, tensors, strict=True))
    explainer.refuse(definition, values)
    arrays = [None if x is None else x._array for x in tensors]
    xp = next(x for x in tensors if x is not None).device.backend.xp
    try:
        found = quietly(_counted_as_vector, definition, xp, arrays, others, named)
    except explainer.FROM_ARRAYS as error:
        explainer.refuse_as_numpy(definition, error)
    return _finish(definition, found, (*tensors, *others), named)


def _counted_as_vector(
    definition: Declaration, xp: Any, arrays: list[Any], others: list[Any], named: dict[str, Any]
) -> Any:
    """The forward; where a number has a dimension named it counts as a vector of one element."""
    named_dims = [named[name] for name in definition.dim if named.get(name) is not None]
    if definition.view or not named_dims or arrays[0].ndim:
        return definition.forward(xp, *arrays, *others, **named)
    vectors = [each if each is None else each.reshape(1) for each in arrays]
    found = definition.forward(xp, *vectors, *others, **named)
    if isinstance(found, tuple):
        return tuple(each.reshape(()) if each.size == 1 else each for each in found)
    return found.reshape(()) if found.size == 1 else found


def _promoted(tensors: list[Any]) -> list[Any]:
    """Tensors and numbers in the dtype that they have together."""
    operands = tuple([as_operand(x) for x in tensors if x is not None])
    dtype = promoted_type(operands)  # type: ignore[arg-type]
    found = []
    for x in tensors:
        if isinstance(x, TensorBase):
            found.append(x if x.dtype is dtype else x.to(dtype))  # type: ignore[attr-defined]
        elif x is None:
            found.append(None)
        else:
            operand: Any = as_operand(x)
            found.append(base.new(np.asarray(as_array(operand, dtype))))
    return found
