"""The general path: numbers, promotion, broadcasting, strides, in-place writes, errors.

The first call of an operation on operands of certain forms comes here. The steps are always the
same: check the kinds of the arguments, find the dtype, broadcast the shapes, lay the result out as
PyTorch would. What was found out is kept as a ``Plan``, with which fast paths then compute; what
cannot be planned (recording, inference mode, tracked writes, errors) comes here every time.
"""

import math
from collections.abc import Callable
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd import history
from tensorkit.autograd.graph import INFERENCE, Rule, make_node
from tensorkit.autograd.modes import state
from tensorkit.base import Form, TensorBase
from tensorkit.devices import CPU, Device, backend_of, is_array, quiet, quietly, refuse_mix
from tensorkit.dtypes import DType
from tensorkit.errors import (
    ConversionError,
    DTypeError,
    NotSupportedError,
    OverlapError,
    ShapeError,
    message,
    must_be,
    sizes,
    type_name,
)
from tensorkit.layout import Ints, Layout

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor

Number = bool | int | float


class Definition:
    """What ``@op`` was told about an operation; see ``tensorkit.ops.notation.op``.

    ``rules`` holds its gradients: for tensors under None; under "x", "y" or "reflected" for calls
    in which that argument is a number, where they differ.
    """

    name: str
    kind: str
    forward: Callable[..., Any]
    dtypes: str
    kernel: str
    symbol: str | None
    refuse: Callable[..., None] | None
    result: str
    inputs: tuple[str, ...]
    options: tuple[str, ...]
    number_first: bool
    number_is_option: bool
    overloaded: bool
    two_numbers: bool
    exact_number: bool
    takes_numbers: bool
    on_arrays: Callable[..., Any] | None
    ufunc: str | None
    window: Callable[[Layout, dict[str, Any]], Layout]

    def __init__(self, **told: Any) -> None:
        self.__dict__.update(told)
        self.rules: dict[str | None, Rule] = {}
        self.plans: dict[Any, Plan] = {}  # by the forms of the operands; see Plan
        self.writes: dict[Any, Plan] = {}  # the same for the in-place form
        tables.extend((self.plans, self.writes))
        # The short ways to record a result; without a gradient there is nothing to record.
        self.record: Callable[..., None] = _no_record
        self.record_number: dict[bool, Callable[..., None]] = {True: _no_record, False: _no_record}

    def set_rule(self, number: str | None, rule: Rule) -> None:
        """Use ``rule`` for calls in which ``number`` is a number."""
        self.rules[number] = rule
        if number is None:
            recorder = {1: history.unary_recorder, 2: history.pair_recorder}.get(len(rule.inputs))
            self.record = recorder(rule) if recorder else _no_record
        for number_first in (False, True) if len(rule.inputs) == 2 else ():
            found = self.rule_for("reflected" if number_first else "y")
            if found is not None:
                self.record_number[number_first] = history.number_recorder(found, number_first)

    def rule_for(self, number: str | None) -> Rule | None:
        """The rule of a call in which ``number`` ("x", "y", "reflected" or None) is a number."""
        if number == "reflected" and number not in self.rules:
            number = "x"
        return self.rules.get(number) or self.rules.get(None)


def _no_record(*_: Any) -> None:
    """The operation has no gradient, and its results do not require grad."""


class Plan:
    """How an operation is computed on operands of certain forms.

    The general path finds it out once, with all checks; from then on fast paths look it up.
    ``compute`` takes the operands' arrays, and for a number among them ``number``; a write also
    takes the array to write to. ``form`` is that of the result.
    """

    __slots__ = ("compute", "form", "number")

    def __init__(self, form: Form, compute: Callable[..., Any], number: Any) -> None:
        self.form = form
        self.compute = compute
        self.number = number


_MOST_PLANS = 1000
tables: list[dict[Any, Any]] = []  # of all operations


def forget_plans() -> None:
    """Find everything out anew: a rule by which plans were made has changed."""
    for table in tables:
        table.clear()
    base.forget_views()


dtypes.when_default_changes.append(forget_plans)


def remember(plans: dict[Any, Any], key: Any, plan: Any) -> None:
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[key] = plan


def key_of(x: Any, y: Any, options: dict[str, Any]) -> Any:
    """What plans depend on. Numbers that are equal but not the same must differ here.

    Fast paths look for the same keys: a form, two forms, a form and a number.
    """
    if isinstance(x, TensorBase) and isinstance(y, TensorBase):
        key: Any = x._form if x._form is y._form else (x._form, y._form)
    elif isinstance(x, TensorBase):
        key = (x._form, y.__class__, y or repr(y))
    elif isinstance(y, TensorBase):
        key = (x.__class__, x or repr(x), y._form)
    else:
        return None
    if options:
        key = (key, *((name, each.__class__, each or repr(each)) for name, each in options.items()))
    return key


class Operand(NamedTuple):
    """A tensor's array, or a number that has no dtype of its own yet."""

    array: Any
    dtype: DType
    shape: Ints
    strides: Ints
    is_number: bool


# The kinds of arguments


def need_tensor(function: str, value: Any) -> None:
    """TypeError with PyTorch's words unless ``value`` is a tensor."""
    if not isinstance(value, TensorBase):
        raise must_be(function, "input", 1, "Tensor", value)


def as_number(value: Any) -> Number | None:
    """A Python number, or None if ``value`` is not one. NumPy scalars count as Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        negative = "can't convert negative int to unsigned"
        raise OverflowError(negative if value < 0 else "int too big to convert")
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, complex):
        dtypes.refuse("complex64")
    return None


def as_scalar(value: Any) -> Number | None:
    """A Python number, also from a 0-d tensor, or None if ``value`` is neither."""
    if isinstance(value, TensorBase):
        return None if value._form.shape else value._form.device.backend.item(value._array, "item")
    return as_number(value)


def as_int(value: Any) -> int | None:
    """An integer, also from a 0-d integer tensor, or None if ``value`` is neither."""
    if isinstance(value, (bool, float)) or not hasattr(value, "__index__"):
        return None
    try:
        number = index(value)
    except TypeError:  # an array or tensor of several elements
        return None
    if not -(2**63) <= number < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return number


def need_int(function: str, argument: str, position: int, value: Any) -> int:
    """``as_int``, or TypeError with PyTorch's words."""
    number = as_int(value)
    if number is None:
        raise must_be(function, argument, position, "int", value)
    return number


def need_sizes(function: str, argument: str, position: int, values: Any) -> Ints:
    """A tuple or list of integers as a tuple; TypeError with PyTorch's words for all else."""
    if not isinstance(values, (tuple, list)):
        raise must_be(function, argument, position, "tuple of ints", values)
    first = as_int_or_large(values[0]) if values else 0
    if first is None:
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be tuple of ints, "
            f"but found element of type {_kind(values[0])} at pos 0"
        )
    return tuple(_unpacked(function, argument, at, value) for at, value in enumerate(values, 1))


def as_int_or_large(value: Any) -> int | None:
    """``as_int`` that leaves the refusal of large numbers to the caller."""
    try:
        return as_int(value)
    except ValueError:
        return index(value)


def _unpacked(function: str, argument: str, position: int, value: Any) -> int:
    number = int(value) if isinstance(value, bool) else as_int_or_large(value)
    failed = f"{function}(): argument '{argument}' failed to unpack the object at pos {position}"
    if number is None:
        kind = _kind(value)
        raise TypeError(f'{failed} with error "type must be tuple of ints,but got {kind}"')
    if not -(2**63) <= number < 2**63:
        raise TypeError(
            message(
                f'{failed} with error "Overflow when unpacking long long',
                f"Sizes have 64 bits; {number} needs more.",
            )
        )
    return number


def as_operand(value: Any) -> Operand | None:
    """A tensor or number as an Operand; None for everything else."""
    if isinstance(value, TensorBase):
        form = value._form
        return Operand(value._array, form.dtype, tuple(form.shape), form.strides, False)
    number = as_number(value)
    if number is None:
        return None
    return Operand(number, dtypes.of_number(number), (), (), True)


def _operands(definition: Definition, x: Any, y: Any, called: str) -> tuple[Operand, Operand]:
    """Both arguments; TypeError with PyTorch's words for what is neither tensor nor number.

    ``called`` is how the caller wrote it: "function", "method" or "in place".
    """
    first, second = as_operand(x), as_operand(y)
    n_tensors = isinstance(x, TensorBase) + isinstance(y, TensorBase)
    name = definition.name + ("_" if called == "in place" else "")
    if definition.overloaded:
        if (
            first is None
            or second is None
            or (n_tensors == 0 and not definition.two_numbers)
            or not (definition.number_first or isinstance(x, TensorBase))
        ):
            _refuse_combination(name, (x, y) if called == "function" else (y,))
    elif first is None or (first.is_number and not definition.takes_numbers):
        raise must_be(name, "input", 1, "Tensor", x)
    elif second is None or (second.is_number and not definition.takes_numbers):
        raise must_be(name, "other", 2 if called == "function" else 1, "Tensor", y)
    assert first is not None
    assert second is not None
    return first, second


def _refuse_combination(name: str, got: tuple[Any, ...]) -> NoReturn:
    self_name = "Tensor input, " if len(got) == 2 else ""
    raise no_such_call(name, got, f"({self_name}Tensor other)", f"({self_name}Number other)")


def no_such_call(function: str, got: tuple[Any, ...], *signatures: str) -> TypeError:
    """PyTorch's sentence for arguments that fit none of a function's signatures."""
    return TypeError(
        message(
            f"{function}() received an invalid combination of arguments - "
            f"got ({', '.join(_kind(value) for value in got)}), but expected one of:",
            *(f" * {signature}" for signature in signatures),
        )
    )


def _kind(value: Any) -> str:
    return "Tensor" if isinstance(value, TensorBase) else type_name(value)


# Dtypes


def result_type(operands: tuple[Operand, ...]) -> DType:
    """The promoted dtype: tensors with dimensions count most, 0-d tensors less, numbers least."""
    ranked: list[DType | None] = [None, None, None]
    for operand in operands:
        rank = 2 if operand.is_number else 0 if operand.shape else 1
        present = ranked[rank]
        ranked[rank] = operand.dtype if present is None else dtypes.promote(present, operand.dtype)
    with_dims, without_dims, numbers = ranked
    found = dtypes.combine(with_dims, dtypes.combine(without_dims, numbers))
    assert found is not None
    return found


def _dtypes_for(
    definition: Definition, operands: tuple[Operand, ...], options: dict[str, Any]
) -> tuple[DType, DType]:
    """The dtype to compute in and the dtype of the result; raises where the op refuses."""
    promoted = result_type(operands)
    if definition.refuse is not None:
        definition.refuse(operands, promoted, **options)
    if definition.result == "floating" and not promoted.is_floating_point:
        promoted = dtypes.get_default_dtype()
    if definition.result == "bool":
        return promoted, dtypes.bool_
    return promoted, promoted


def check_category(definition: Definition, dtype: DType) -> None:
    """NotImplementedError, in PyTorch's words, if the op does not work on ``dtype``."""
    refused = (definition.dtypes == "numeric" and dtype is dtypes.bool_) or (
        definition.dtypes == "integral" and dtype.is_floating_point
    )
    if refused:
        raise NotSupportedError(
            message(
                f"\"{definition.kernel}\" not implemented for '{dtype.word}'",
                repair="x.int()" if dtype is dtypes.bool_ else "x.bool() or x.long()",
            ),
            dtype=dtype,
        )


def as_array(operand: Operand, dtype: DType) -> Any:
    """The array of an operand in this dtype."""
    if operand.is_number:  # as a NumPy scalar, by which a forward can tell it from a tensor
        return number_array(operand.array, dtype)[()]
    if operand.array.dtype == dtype.numpy:
        return operand.array
    return operand.array.astype(dtype.numpy)


def number_array(value: Number, dtype: DType) -> Any:
    """A 0-d array of a number; integers wrap around as in PyTorch's arithmetic."""
    if dtype.category == dtypes.INTEGER:
        value = int(value)
        if not -(2**63) <= value < 2**64:
            raise OverflowError("int too big to convert")
        value &= 2 ** (8 * dtype.itemsize) - 1
        unsigned = np.array(value, f"u{dtype.itemsize}")
        return unsigned.view(dtype.numpy)
    return np.array(value, dtype.numpy)


def converted_strides(operand: Operand, dtype: DType) -> Ints:
    """Strides of the operand after promotion: converting makes a dense copy."""
    if operand.is_number or operand.dtype is dtype or not operand.shape:
        return operand.strides
    return layout.dense_strides(operand.shape, operand.strides)


# Computing


def _device(*values: Any) -> Device:
    for value in values:
        if isinstance(value, TensorBase):
            return value._form.device
    return CPU


def together(*values: Any) -> tuple[Any, ...]:
    """These tensors and numbers on one device: 0-d tensors of the CPU go to that of the others.

    DeviceMismatchError for others that are apart.
    """
    tensors = [value for value in values if isinstance(value, TensorBase)]
    devices = {each._form.device for each in tensors}
    if len(devices) < 2:
        return values
    device = next(each._form.device for each in tensors if each._form.device is not CPU)
    refuse_mix(*(each._form.device for each in tensors if each._form.shape), device)
    return tuple(
        moved(each, device, "0-d tensor")
        if isinstance(each, TensorBase) and each._form.device is CPU
        else each
        for each in values
    )


def sent(x: Any, origin: Device) -> Any:
    """A gradient on its way back to the device of ``origin``."""
    return moved(x, origin)


def _sent_array(x: Any, origin: Device) -> Any:
    return origin.backend.from_host(backend_of(x).to_host(x))


sent.on_arrays = _sent_array  # type: ignore[attr-defined]
_MOVE = Rule("to", "ToCopyBackward0", ("x",), {"x": lambda g, origin: sent(g, origin)})


def moved(x: Any, device: Device, why: str = "to") -> "Tensor":
    """``x`` on this device: the only place where tensors change devices."""
    form = x._form
    if device is form.device:
        return x
    backend = form.device.backend
    array = x._array
    if form.device is not CPU:  # also between two CUDA devices: by way of the host
        array = backend.to_host(array, why)
    if device is not CPU:
        array = device.backend.from_host(array, why)
    shape = tuple(form.shape)
    result = base.place(array, device, form.dtype, layout.dense_strides(shape, form.strides))
    if x._node is None:
        return finished(result)
    return history.record(_MOVE, result, (x,), {"origin": form.device})


def _checked(
    definition: Definition, options: dict[str, Any], called: str = "function"
) -> dict[str, Any]:
    """The options, with numbers as Python numbers; TypeError for what the operation lacks."""
    for name in options:
        if name not in definition.options:
            raise TypeError(f"{definition.name}() got an unexpected keyword argument '{name}'")
    if "alpha" not in options:
        return options
    alpha = as_scalar(options["alpha"])
    if alpha is None:
        name = definition.name + ("_" if called == "in place" else "")
        kind = _kind(options["alpha"])
        raise TypeError(f"{name}(): argument 'alpha' must be Number, not {kind}")
    return {**options, "alpha": alpha}


def _plan(
    definition: Definition,
    device: Device,
    operands: tuple[Operand, ...],
    options: dict[str, Any],
    into: tuple[Any, ...] = (),
) -> Plan:
    """Dtypes, shapes, strides and the function to compute with; all refusals are made here.

    With ``into``, a tensor to write to and what it is computed with, ``compute`` writes into its
    last argument.
    """
    dtype, result_dtype = _dtypes_for(definition, operands, options)
    if into:
        check_overlap(*into)
    shape = operands[0].shape
    for operand in operands[1:]:
        shape = layout.broadcast_shapes(shape, operand.shape)
    if into:
        check_output_shape(tuple(into[0]._form.shape), shape)
        check_output_dtype(result_dtype, into[0]._form.dtype)
    check_category(definition, dtype)
    if definition.number_is_option and operands[0].is_number:
        strides = layout.contiguous_strides(shape)
    else:
        strides = layout.result_strides(
            shape,
            [
                (own.shape, converted_strides(own, dtype))
                for own in operands
                if not (own is operands[-1] and own.is_number and definition.number_is_option)
            ],
        )
    form = base.form_of(device, result_dtype, shape, strides)
    compute, numbers = _kernel(definition, device, operands, dtype, options)
    all_contiguous = form.is_contiguous and all(
        layout.is_contiguous(each.shape, each.strides) for each in operands
    )
    if not into and isinstance(compute, np.ufunc) and layout.is_dense(shape, strides):
        if not (shape and all_contiguous):
            order = tuple(sorted(range(len(shape)), key=lambda dim: -strides[dim]))
            slowest_first = tuple(shape[dim] for dim in order)
            back = tuple(order.index(dim) for dim in range(len(shape)))
            compute = partial(_into, compute, slowest_first, form.dtype.numpy, back)
    elif not (shape and all_contiguous):
        itemsize = form.dtype.itemsize
        compute = partial(_arranged, compute, form, tuple(each * itemsize for each in strides))
    if into and not (isinstance(compute, np.ufunc) and result_dtype is into[0]._form.dtype):
        compute = partial(_copied, compute)  # a ufunc writes by itself
    return Plan(form, compute, numbers[0] if len(numbers) == 1 else numbers)


def _into(ufunc: Any, slowest_first: Ints, dtype: Any, back: Ints, *arrays: Any) -> Any:
    """What ``ufunc`` gives, written to an array laid out as the result should be."""
    array = np.empty(slowest_first, dtype)
    if back:
        array = array.transpose(back)
    ufunc(*arrays, out=array)
    return array


def _copied(compute: Callable[..., Any], *arrays: Any) -> None:
    """Write what ``compute`` gives into the last of ``arrays``."""
    arrays[-1][...] = compute(*arrays[:-1])


def _arranged(compute: Callable[..., Any], form: Form, byte_strides: Ints, *arrays: Any) -> Any:
    """What ``compute`` gives, as an array with the strides of ``form``."""
    array = compute(*arrays)
    if array.__class__ is np.ndarray and array.strides == byte_strides:
        return array
    array = form.device.backend.xp.asarray(array)
    return base.arranged(array, form.device, form.strides)


def _kernel(
    definition: Definition,
    device: Device,
    operands: tuple[Operand, ...],
    dtype: DType,
    options: dict[str, Any],
) -> tuple[Callable[..., Any], list[Any]]:
    """The forward as a function of arrays as they come, and what it takes for the numbers."""
    xp = device.backend.xp
    is_ufunc = definition.ufunc is not None and not options
    half = dtype is dtypes.float16 and definition.result != "bool"
    if half and "alpha" in options:
        options = {**options, "alpha": float(quietly(np.float16, options["alpha"]))}
    forward = partial(definition.forward, xp, **options)
    if is_ufunc:
        forward = getattr(xp, str(definition.ufunc))
    if half:

        def in_half(*arrays: Any) -> Any:
            own = [each._replace(array=a) for each, a in zip(operands, arrays, strict=True)]
            return xp.asarray(forward(*_half_arrays(definition, own))).astype(np.float16)

        return in_half, [each.array for each in operands if each.is_number]
    # A forward can tell a number by its being a NumPy scalar; a ufunc is faster with an array.
    numbers = [number_array(each.array, dtype) for each in operands if each.is_number]
    if not (is_ufunc and device is CPU):
        numbers = [each[()] for each in numbers]
    casts = [None if each.is_number or each.dtype is dtype else dtype.numpy for each in operands]
    if not any(casts):
        return forward, numbers

    def converting(*arrays: Any) -> Any:
        pairs = zip(arrays, casts, strict=True)
        return forward(*[a if cast is None else a.astype(cast) for a, cast in pairs])

    return converting, numbers


def _half_arrays(definition: Definition, operands: list[Operand]) -> list[Any]:
    """Operands of a float16 operation.

    As in PyTorch's kernels they are rounded to float16, then computed with in float32. The
    definitions with ``exact_number`` differ: a single number as second operand keeps its full
    value, and without one each step is rounded to float16.
    """
    if definition.exact_number:
        if math.prod(operands[1].shape) != 1:
            return [as_array(operand, dtypes.float16) for operand in operands]
        half = as_array(operands[0], dtypes.float16)
        return [half.astype(np.float32), as_array(operands[1], dtypes.float32)]
    halves = [as_array(operand, dtypes.float16).astype(np.float32) for operand in operands]
    if any(is_array(half) and half.__class__ is not np.ndarray for half in halves):
        return halves
    return [np.asarray(half) for half in halves]


def _arrays(plan: Plan, *values: Any) -> list[Any]:
    """The operands as ``plan`` takes them."""
    if not any(isinstance(value, TensorBase) for value in values):
        return plan.number
    return [v._array if isinstance(v, TensorBase) else plan.number for v in values]


def binary(
    definition: Definition, x: Any, y: Any, options: dict[str, Any], called: str = "function"
) -> "Tensor":
    """A new tensor from two tensors or numbers."""
    options = _checked(definition, options)
    if isinstance(x, TensorBase) and isinstance(y, TensorBase):
        x, y = together(x, y)
    key = key_of(x, y, options)
    plan = definition.plans.get(key)
    if plan is None:
        operands = _operands(definition, x, y, called)
        plan = quietly(_plan, definition, _device(x, y), operands, options)
        if key is not None:
            remember(definition.plans, *_for_any_number(definition, key, plan))
    result = base.new(quietly(plan.compute, *_arrays(plan, x, y)), plan.form)
    return _recorded(definition, result, x, y, options, called)


def _for_any_number(definition: Definition, key: Any, plan: Plan) -> tuple[Any, Plan]:
    """The plan to keep: once there are many, one for all floats, which makes arrays of them.

    Numbers that are used again are best kept as arrays; one that is another in every call would
    fill the table.
    """
    if (
        len(definition.plans) > _MANY_PLANS
        and isinstance(plan.compute, np.ufunc)
        and isinstance(key, tuple)
        and len(key) == 3
        and key[1] is float
        and key[0].dtype.is_floating_point
    ):
        return key[:2], Plan(plan.form, plan.compute, partial(np.array, dtype=plan.number.dtype))
    return key, plan


_MANY_PLANS = 100


def _recorded(
    definition: Definition, result: "Tensor", x: Any, y: Any, options: dict[str, Any], called: str
) -> "Tensor":
    if not definition.rules or not (_may_be_tracked(x) or _may_be_tracked(y)):
        return finished(result)
    rule = definition.rule_for(_number_place(x, y, called))
    return history.record(rule, result, (x, y), _values(definition, x, y, options))


def _may_be_tracked(value: Any) -> bool:
    return isinstance(value, TensorBase) and value._node is not None


def _number_place(x: Any, y: Any, called: str) -> str | None:
    if not isinstance(y, TensorBase):
        return "y"
    if not isinstance(x, TensorBase):
        return "reflected" if called == "reflected" else "x"
    return None


def _values(definition: Definition, x: Any, y: Any, options: dict[str, Any]) -> dict[str, Any]:
    defaults = definition.forward.__kwdefaults__ or {}
    return {"x": x, "y": y, **defaults, **options}


def finished(result: "Tensor") -> "Tensor":
    """A result that needs no node; in inference mode it is marked."""
    if state.inference:
        result._node = INFERENCE
    return result


def unary(definition: Definition, x: Any) -> "Tensor":
    """A new tensor from one tensor."""
    need_tensor(definition.name, x)
    plan = definition.plans.get(x._form)
    if plan is None:
        plan = quietly(_plan, definition, _device(x), (as_operand(x),), {})
        remember(definition.plans, x._form, plan)
    result = base.new(quietly(plan.compute, x._array), plan.form)
    if x._node is None or not definition.rules:
        return finished(result)
    return history.record(definition.rule_for(None), result, (x,), {"x": x})


def elementwise(
    definition: Definition,
    values: dict[str, Any],
    options: dict[str, Any],
    into: "Tensor | None" = None,
) -> "Tensor":
    """A tensor from several tensors and numbers that broadcast, written ``into`` one if asked.

    ``values`` are the arguments by name; a None among them reaches the forward as None.
    """
    values = dict(zip(values, together(*values.values()), strict=True))
    operands = {name: as_operand(each) for name, each in values.items()}
    given = tuple(each for each in operands.values() if each is not None)
    inputs = tuple(values.values())
    dtype = result_type(given)
    shape: Ints = ()
    for each in given:
        shape = layout.broadcast_shapes(shape, each.shape)
        if each.is_number:
            check_value(each.array, dtype)
    device = _device(*inputs)
    arrays = [None if each is None else as_array(each, dtype) for each in operands.values()]
    if into is not None:
        tracked = history.check_write(*inputs)
        check_overlap(*inputs)
        check_output_shape(tuple(into._form.shape), shape)
        check_output_dtype(dtype, into._form.dtype)
        array = run(definition.forward, device.backend.xp, *arrays, **options)
        rule = definition.rule_for(None) if tracked else None
        edges = () if rule is None else tuple(values[name] for name in rule.inputs)
        write(into, array, definition.name, rule, edges, {**values, **options})
        return into
    array = run(definition.forward, device.backend.xp, *arrays, **options)
    pairs = [(each.shape, converted_strides(each, dtype)) for each in given if not each.is_number]
    result = base.place(array, device, dtype, layout.result_strides(shape, pairs))
    return recorded(definition, result, {**values, **options})


def run(forward: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """``forward`` with NumPy's reports off; always an array, never a NumPy scalar."""
    try:
        array = quiet.run(forward, *args, **options)
    except RuntimeError:  # fast paths are closed, or an error that will come again
        array = quietly(forward, *args, **options)
    return array if is_array(array) else np.asarray(array)


def recorded(definition: Definition, result: "Tensor", values: dict[str, Any]) -> "Tensor":
    """``result`` with a node if one of the inputs among ``values`` is tracked."""
    rule = definition.rules.get(None)
    inputs = () if rule is None else tuple(values[name] for name in rule.inputs)
    return history.record(rule, result, inputs, values)


def recorder(
    definition: Definition, tensors: tuple[Any, ...], known: dict[str, Any]
) -> Callable[..., None]:
    """How results are recorded of an operation of kind "function" with these options."""
    rule = definition.rules.get(None)
    if rule is None:
        return _no_record
    if rule.is_pair and not known:
        return definition.record
    names, missing = definition.inputs[: len(tensors)], definition.inputs[len(tensors) :]
    known = {"shape": tuple(tensors[0]._form.shape), **dict.fromkeys(missing), **known}
    return history.known_recorder(rule, names, known)


def contiguous_result(array: Any, device: Device) -> "Tensor":
    """A tensor with the standard strides, on a fresh array or number."""
    if array.__class__ is not np.ndarray:
        array = device.backend.asarray(array)
    form = base.contiguous_form(device, array.dtype, array.shape)
    if array.flags.c_contiguous:
        return base.new(array, form)
    return base.place(array, device, form.dtype, form.strides)


def view_step(
    definition: Definition, form: Form, source: Layout, values: dict[str, Any]
) -> tuple[Rule, Form, dict[str, Any]]:
    """What autograd records of a view operation on ``source``; ``form`` is that of the view."""
    rule = definition.rules[None]
    known = {"shape": source.shape, **values}
    if "source" in rule.keeps:
        known.update(source=source, target=definition.window(source, values))
    return rule, form, known


# Operators: what they do not know they leave to Python, which then words the TypeError


def _refuse_array(definition: Definition, left: Any, right: Any) -> NoReturn:
    kinds = f"'{_kind(left)}' and '{_kind(right)}'"
    if definition.symbol in ("<", "<=", ">", ">="):
        first = f"'{definition.symbol}' not supported between instances of {kinds}"
    else:
        first = f"unsupported operand type(s) for {definition.symbol}: {kinds}"
    raise TypeError(
        message(
            first,
            "A tensor and a NumPy array are not mixed without being told: the array's dtype "
            "(often float64) would decide.",
            repair="tk.from_numpy(array), or tensor.numpy()",
        )
    )


def method(definition: Definition, x: Any, y: Any, options: dict[str, Any]) -> "Tensor":
    """``x.<operation>(y)``."""
    return binary(definition, x, y, options, "method")


def operator(definition: Definition, x: Any, y: Any, options: dict[str, Any]) -> Any:
    """``x <operator> y`` where x is a tensor; there are no options."""
    if isinstance(y, TensorBase) or as_number(y) is not None:
        return binary(definition, x, y, options)
    if isinstance(y, np.ndarray):
        _refuse_array(definition, x, y)
    return NotImplemented


def reflected(definition: Definition, y: Any, x: Any) -> Any:
    """``x <operator> y`` where y is a tensor and x is not."""
    if definition.symbol in ("+", "*") and as_number(x) is not None:
        return operator(definition, y, x, {})  # as PyTorch does, and its nodes show it
    if as_number(x) is not None:
        return binary(definition, x, y, {}, "reflected")
    if isinstance(x, np.ndarray):
        _refuse_array(definition, x, y)
    return NotImplemented


def inplace_operator(definition: Definition, x: Any, y: Any, options: dict[str, Any]) -> Any:
    """``x <operator>= y``; there are no options."""
    if isinstance(y, TensorBase) or as_number(y) is not None:
        return binary_inplace(definition, x, y, options)
    if isinstance(y, np.ndarray):
        _refuse_array(definition, x, y)
    return NotImplemented


# Writing


def binary_inplace(definition: Definition, x: Any, y: Any, options: dict[str, Any]) -> "Tensor":
    """Write ``op(x, y)`` into ``x``."""
    options = _checked(definition, options, "in place")
    x, y = _joining(x, y)
    key = key_of(x, y, options)
    plan = definition.writes.get(key)
    operands = _operands(definition, x, y, "in place") if plan is None else ()
    tracked = history.check_write(x, y)
    if plan is None:
        plan = quietly(_plan, definition, _device(x), operands, options, (x, y))
        remember(definition.writes, key, plan)
    check_overlap(x, y)
    rule = definition.rule_for(_number_place(x, y, "in place")) if tracked else None
    values = _values(definition, x, y, options) if tracked else {}
    write(x, partial(plan.compute, *_arrays(plan, x, y)), definition.name, rule, (x, y), values)
    return x


def _joining(x: Any, *others: Any) -> tuple[Any, ...]:
    """``together`` for a tensor to write to, which stays where it is."""
    if isinstance(x, TensorBase) and x._form.device is CPU:
        refuse_mix(CPU, *(each._form.device for each in others if isinstance(each, TensorBase)))
    return together(x, *others)


def unary_inplace(definition: Definition, x: Any) -> "Tensor":
    """Write ``op(x)`` into ``x``."""
    need_tensor(definition.name, x)
    tracked = history.check_write(x)
    plan = definition.writes.get(x._form)
    if plan is None:
        plan = quietly(_plan, definition, _device(x), (as_operand(x),), {}, (x,))
        remember(definition.writes, x._form, plan)
    rule = definition.rule_for(None) if tracked else None
    write(x, partial(plan.compute, x._array), definition.name, rule, (x,), {"x": x})
    return x


def write_plainly(x: TensorBase, array: Any, operation: str) -> bool:
    """Write where nothing is to be asked or recorded; False where something is.

    The shape of ``array``, its overlap with ``x`` and what it is tracked by are the caller's care.
    """
    own = x._array
    if not (x._node is None and x._form.is_contiguous and x._form.device is CPU):
        return False
    if base.watch is not None or state.inference or not own.flags.writeable:
        return False
    try:
        quiet.run(own.__setitem__, ..., array)
    except RuntimeError:  # fast paths are closed
        quietly(own.__setitem__, ..., array)
    history.written(x, operation)
    return True


def write(
    x: TensorBase,
    array: Any,
    operation: str,
    rule: Rule | None = None,
    inputs: tuple[Any, ...] = (),
    values: dict[str, Any] | None = None,
    at: Any = ...,
) -> None:
    """Copy ``array`` into the memory of ``x``, converting and broadcasting it.

    ``array`` may also be a function that writes into the array it is given, and ``at`` a NumPy
    index of the elements to write; without it, all are. Every write goes through here, after all
    checks, or is as simple as a fast path's: it makes a new version, and with a ``rule`` it is
    recorded; ``inputs`` and ``values`` are those of ``history.record``.
    """
    if x._form.device is CPU and not x._array.flags.writeable:
        storage = base.storage_of(x)
        if not storage.flat.flags.writeable:
            raise DTypeError(
                message(
                    "The given NumPy array is not writable",
                    "This tensor shares memory with a read-only NumPy array.",
                    repair="x = x.clone()",
                )
            )
        # a part of an expanded tensor, which NumPy takes for read-only
        x._array = storage.device.backend.view(storage.flat, *base.layout_of(x))
    node = None
    if rule is not None:
        assert values is not None
        if "x" in rule.keeps:
            # clone first: a formula needs x as it was before this write
            before = contiguous_result(x._array.copy(), x._form.device)
            values = {**values, "x": before}
        edges = tuple(history.edge_of(v) if isinstance(v, TensorBase) else None for v in inputs)
        node = make_node(rule, x._form, edges, values, None)
    if base.watch is not None:
        base.watch.writes(x)
    if callable(array):
        quietly(array, x._array)
    elif array.__class__ is np.ndarray and x._form.device is not CPU and not array.ndim:
        x._array[at] = array[()]  # a number travels with the launch
    else:
        quietly(x._array.__setitem__, at, array)
    history.written(x, f"{operation}_")
    if node is not None:
        if "out" in rule.keeps:  # type: ignore[union-attr]
            node.save_result(x)
        history.rebase(x, node)


def check_output_shape(own: Ints, wanted: Ints) -> None:
    """ShapeError unless a result of shape ``wanted`` fits into a tensor of shape ``own``."""
    if own != wanted:
        raise ShapeError(
            message(
                f"output with shape {sizes(own)} doesn't match the broadcast shape {sizes(wanted)}",
                "An in-place operation cannot change the shape of the tensor it writes to.",
                repair="x = x + y    # a new tensor",
            ),
            a_shape=own,
            b_shape=wanted,
        )


def check_output_dtype(result: DType, own: DType) -> None:
    """DTypeError unless a result of dtype ``result`` may be stored as ``own``."""
    if not dtypes.can_cast(result, own):
        raise DTypeError(
            message(
                f"result type {result.word} can't be cast to the desired output type {own.word}",
                f"An in-place operation keeps the dtype {own}, which cannot hold the result.",
                repair="x = x + y    # a new tensor of the result's dtype",
            ),
            result=result,
            output=own,
        )


def check_overlap(x: TensorBase, *others: Any) -> None:
    """OverlapError if a write to ``x`` would be read again by the operands."""
    own = base.layout_of(x)
    if layout.overlaps_itself(own.shape, own.strides):
        raise OverlapError(
            message(
                "unsupported operation: more than one element of the written-to tensor refers to "
                "a single memory location. Please clone() the tensor before performing the "
                "operation.",
                f"Strides {own.strides}: a stride of 0 repeats one element.",
                repair="x = x.clone()",
            )
        )
    for other in others:
        if not isinstance(other, TensorBase) or other is x or x._storage is None:
            continue
        if other._storage is None or other._storage.flat is not x._storage.flat:
            continue
        if layout.overlap_partially(own, base.layout_of(other)):
            raise OverlapError(
                message(
                    "unsupported operation: some elements of the input tensor and the written-to "
                    "tensor refer to a single memory location. Please clone() the tensor before "
                    "performing the operation.",
                    repair="y = y.clone()",
                )
            )


def check_value(value: Number, dtype: DType, name: str | None = None) -> None:
    """ConversionError if storing ``value`` as ``dtype`` would lose it.

    Negative numbers may wrap into uint8, as in PyTorch. ``name`` is the dtype's name in the
    sentence, where PyTorch uses another one than the C type.
    """
    if dtype is dtypes.bool_ or (dtype.is_floating_point and -60_000 < value < 60_000):
        return
    if dtype.is_floating_point:
        fits = not np.isfinite(value) or abs(value) <= float(np.finfo(dtype.numpy).max)
    elif not np.isfinite(value):
        fits = False
    else:
        low, high = dtypes.limits(dtype)
        wraps = low == 0 and not isinstance(value, float)
        fits = (-high if wraps else low) <= value <= high
    if not fits:
        range_ = "" if dtype.is_floating_point else f"{dtype} holds {low_high(dtype)}."
        raise ConversionError(
            message(
                f"value cannot be converted to type {name or dtype.c_name} without overflow",
                f"The value is {value}. {range_}".strip(),
            ),
            value=value,
            dtype=dtype,
        )


def low_high(dtype: DType) -> str:
    """The range of an integer dtype in words."""
    low, high = dtypes.limits(dtype)
    return f"{low} to {high}"
