"""The general path: numbers, promotion, broadcasting, strides, in-place forms, errors.

The first call of an operation on operands of certain forms comes here. The steps are always the
same: check the kinds of the arguments, find the dtype, broadcast the shapes, lay the result out as
PyTorch would. What was found out is kept as a ``Plan``, with which fast paths then compute; what
cannot be planned (recording, inference mode, tracked writes, errors) comes here every time.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd import history, recorders
from tensorkit.autograd.graph import RepeatedNode
from tensorkit.base import Form, Tensor, TensorBase
from tensorkit.devices import CPU, Device, is_array
from tensorkit.dtypes import DType
from tensorkit.errors import message, must_be
from tensorkit.layout import Ints
from tensorkit.ops.arguments import (
    as_number,
    as_scalar,
    check_value,
    kind_of,
    need_tensor,
    no_kernel,
    no_such_call,
)
from tensorkit.ops.moving import device_of, joining, together
from tensorkit.ops.operands import (
    Operand,
    as_array,
    as_operand,
    converted_strides,
    number_array,
    promoted_type,
)
from tensorkit.ops.planning import Definition, Plan, key_of, remember
from tensorkit.ops.results import finished, recorded, run
from tensorkit.ops.writing import check_output_dtype, check_output_shape, check_overlap, write
from tensorkit.quiet import quietly


def _operands(definition: Definition, x: Any, y: Any, called: str) -> tuple[Operand, Operand]:
    """Both arguments; TypeError with PyTorch's words for what is neither tensor nor number.

    ``called`` is how the caller wrote it: "function", "method" or "in place".
    """
    first, second = as_operand(x), as_operand(y)
    name, takes = definition.name + ("_" if called == "in place" else ""), definition.takes
    if takes in ("any", "tensors"):
        if first is None or (first.is_number and takes == "tensors"):
            raise must_be(name, "input", 1, "Tensor", x)
        if second is None or (second.is_number and takes == "tensors"):
            raise must_be(name, "other", 2 if called == "function" else 1, "Tensor", y)
        return first, second
    n_numbers = sum(each is not None and each.is_number for each in (first, second))
    if (
        first is None
        or second is None
        or (n_numbers == 2 and takes != "overloads")
        or (first.is_number and takes == "tensor first")
    ):
        _refuse_combination(name, (x, y) if called == "function" else (y,))
    return first, second


def _refuse_combination(name: str, got: tuple[Any, ...]) -> NoReturn:
    self_name = "Tensor input, " if len(got) == 2 else ""
    raise no_such_call(name, got, f"({self_name}Tensor other)", f"({self_name}Number other)")


def _dtypes_for(
    definition: Definition, operands: tuple[Operand, ...], options: dict[str, Any]
) -> tuple[DType, DType]:
    """The dtype to compute in and the dtype of the result; raises where the op refuses."""
    promoted = promoted_type(operands)
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
        repair = "x.int()" if dtype is dtypes.bool_ else "x.bool() or x.long()"
        raise no_kernel(definition.kernel, dtype, repair)


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
        kind = kind_of(options["alpha"])
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
    counting = operands
    if definition.takes == "exponent" and operands[-1].is_number:
        counting = operands[:-1]
    if definition.takes == "exponent" and operands[0].is_number:
        strides = layout.contiguous_strides(shape)
    else:
        pairs = [(own.shape, converted_strides(own, dtype)) for own in counting]
        strides = layout.result_strides(shape, pairs)
    form = base.form_of(device, result_dtype, shape, strides)
    compute, numbers = _kernel(definition, device, operands, dtype, options, bool(into))
    if into:
        is_ufunc = definition.ufunc and compute is getattr(device.backend.xp, definition.ufunc)
        if not (is_ufunc and result_dtype is into[0]._form.dtype):
            compute = partial(_copied, compute)  # a ufunc writes by itself
    elif (
        shape
        and form.is_contiguous
        and all(layout.is_contiguous(each.shape, each.strides) for each in operands)
    ):
        pass  # the array library lays it out so
    elif isinstance(compute, np.ufunc) and layout.is_dense(shape, strides):
        order = layout.slowest_first(strides)
        in_memory = tuple(shape[dim] for dim in order)
        compute = _into(compute, in_memory, form.dtype.numpy, layout.inverse(order))
    else:
        itemsize = form.dtype.itemsize
        compute = partial(_arranged, compute, form, tuple(each * itemsize for each in strides))
    record = _recorder(definition, device, operands, form)
    return Plan(form, compute, numbers[0] if len(numbers) == 1 else numbers, record)


def _recorder(
    definition: Definition, device: Device, operands: tuple[Operand, ...], form: Form
) -> recorders.Recorder:
    """How results are recorded: large ones of two tensors of which one was repeated, specially."""
    # only operators look for the plan of a call in which a number stands first
    place = "reflected" if operands[0].is_number else "y" if operands[-1].is_number else None
    rule = definition.rule_for(place) if definition.rules else None
    if rule is None:
        return recorders.no_record
    if len(operands) == 1:
        return recorders.unary_recorder(rule)
    if place is not None:
        return recorders.number_recorder(rule, place == "reflected")
    is_large = form.shape.numel() >= _LARGE and form.is_contiguous and device is CPU
    if is_large and rule.summed and any(each.shape != form.shape for each in operands):
        return recorders.pair_recorder(rule, RepeatedNode)
    return recorders.pair_recorder(rule)


_LARGE = 2**14


def _into(ufunc: Any, in_memory: Ints, dtype: Any, back: Ints) -> Callable[..., Any]:
    """A function that writes what ``ufunc`` gives to an array laid out as the result should be.

    ``in_memory`` is its shape, the slowest dimension first, ``back`` the way to its own order.
    """
    empty = np.empty
    order = {(*range(len(back)),): "C", (*reversed(range(len(back))),): "F"}.get(back)
    if not back:  # without dimensions: a ufunc alone would give a number
        if ufunc.nin == 1:
            return lambda x: ufunc(x, out=empty((), dtype))
        return lambda x, y: ufunc(x, y, out=empty((), dtype))
    if order is not None:
        if ufunc.nin == 1:
            return lambda x: ufunc(x, order=order)
        return lambda x, y: ufunc(x, y, order=order)
    if ufunc.nin == 1:
        return lambda x: ufunc(x, out=empty(in_memory, dtype).transpose(back))
    return lambda x, y: ufunc(x, y, out=empty(in_memory, dtype).transpose(back))


def _copied(compute: Callable[..., Any], *arrays: Any) -> None:
    """Write what ``compute`` gives into the last of ``arrays``."""
    result = compute(*arrays[:-1])
    arrays[-1][...] = np.asarray(result) if isinstance(result, np.generic) else result


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
    in_place: bool,
) -> tuple[Callable[..., Any], list[Any]]:
    """The forward as a function of arrays as they come, and what it takes for the numbers."""
    xp = device.backend.xp
    is_ufunc = definition.ufunc is not None and not options
    half = dtype is dtypes.float16 and definition.result != "bool"
    if half and "alpha" in options:
        options = {**options, "alpha": float(quietly(np.float16, options["alpha"]))}
    if is_ufunc:
        forward = getattr(xp, str(definition.ufunc))
    else:
        forward = definition.compute_for(device, *operands, **options)
    if half and is_ufunc and device is not CPU and _rounds_once(definition, operands, in_place):
        return forward, []
    if half:
        bare = [each._replace(array=None) for each in operands]  # a plan outlives its first arrays

        def in_half(*arrays: Any) -> Any:
            own = [each._replace(array=a) for each, a in zip(bare, arrays, strict=True)]
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


def _rounds_once(definition: Definition, operands: tuple[Operand, ...], in_place: bool) -> bool:
    """Whether a ufunc of CuPy gives what ``_half_arrays`` are for, in one launch.

    A result in float32 is rounded when it is written; a new array would have that dtype.
    """
    kinds = [None if each.is_number else each.dtype for each in operands]
    exact = definition.exact_number and in_place and math.prod(operands[1].shape) == 1
    wanted = {dtypes.float16, dtypes.float32} if exact else {dtypes.float16}
    return definition.ufunc in _SIMPLE and kinds[0] is dtypes.float16 and wanted.issuperset(kinds)


_SIMPLE = ("add", "subtract", "multiply", "divide")  # rounding them twice changes nothing


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
) -> Tensor:
    """A new tensor from two tensors or numbers."""
    options = _checked(definition, options)
    if isinstance(x, TensorBase) and isinstance(y, TensorBase):
        x, y = together(x, y)
    key = key_of(x, y, options)
    plan = definition.plans.get(key)
    if plan is None:
        operands = _operands(definition, x, y, called)
        plan = quietly(_plan, definition, device_of(x, y), operands, options)
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
        to_array = partial(np.array, dtype=plan.number.dtype)
        return key[:2], Plan(plan.form, plan.compute, to_array, plan.record)
    return key, plan


_MANY_PLANS = 100


def _recorded(
    definition: Definition, result: Tensor, x: Any, y: Any, options: dict[str, Any], called: str
) -> Tensor:
    if not definition.rules or not (_may_be_tracked(x) or _may_be_tracked(y)):
        return finished(result)
    rule = definition.rule_for(_number_place(x, y, called))
    return history.record(rule, result, _values(definition, x, y, options))


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


def unary(definition: Definition, x: Any) -> Tensor:
    """A new tensor from one tensor."""
    need_tensor(definition.name, x)
    plan = definition.plans.get(x._form)
    if plan is None:
        plan = quietly(_plan, definition, device_of(x), (as_operand(x),), {})
        remember(definition.plans, x._form, plan)
    result = base.new(quietly(plan.compute, x._array), plan.form)
    if x._node is None or not definition.rules:
        return finished(result)
    return history.record(definition.rule_for(None), result, {"x": x})


def elementwise(
    definition: Definition,
    values: dict[str, Any],
    options: dict[str, Any],
    into: Tensor | None = None,
) -> Tensor:
    """A tensor from several tensors and numbers that broadcast, written ``into`` one if asked.

    ``values`` are the arguments by name; a None among them reaches the forward as None.
    """
    join = together if into is None else joining
    values = dict(zip(values, join(*values.values()), strict=True))
    operands = {name: as_operand(each) for name, each in values.items()}
    given = tuple(each for each in operands.values() if each is not None)
    inputs = tuple(values.values())
    dtype = promoted_type(given)
    shape: Ints = ()
    for each in given:
        shape = layout.broadcast_shapes(shape, each.shape)
        if each.is_number:
            check_value(each.array, dtype)
    device = device_of(*inputs)
    arrays = [None if each is None else as_array(each, dtype) for each in operands.values()]
    if into is not None:
        tracked = history.check_write(*inputs)
        check_overlap(*inputs)
        check_output_shape(tuple(into._form.shape), shape)
        check_output_dtype(dtype, into._form.dtype)
        array = run(definition.forward, device.backend.xp, *arrays, **options)
        rule = definition.rule_for(None) if tracked else None
        write(into, array, definition.name, rule, {**values, **options})
        return into
    array = run(definition.forward, device.backend.xp, *arrays, **options)
    pairs = [(each.shape, converted_strides(each, dtype)) for each in given if not each.is_number]
    result = base.place(array, device, dtype, layout.result_strides(shape, pairs))
    return recorded(definition, result, {**values, **options})


def _refuse_array(definition: Definition, left: Any, right: Any) -> NoReturn:
    kinds = f"'{kind_of(left)}' and '{kind_of(right)}'"
    if definition.symbol in ("<", "<=", ">", ">="):
        first = f"'{definition.symbol}' not supported between instances of {kinds}"
    else:
        first = f"unsupported operand type(s) for {definition.symbol}: {kinds}"
    tensor = left if isinstance(left, TensorBase) else right
    there, back = ("", "") if tensor._form.device is CPU else (".to(tensor.device)", ".cpu()")
    raise TypeError(
        message(
            first,
            "A tensor and a NumPy array are not mixed without being told: the array's dtype "
            "(often float64) would decide.",
            repair=f"tk.from_numpy(array){there}, or tensor{back}.numpy()",
        )
    )


def method(definition: Definition, x: Any, y: Any, options: dict[str, Any]) -> Tensor:
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


def binary_inplace(definition: Definition, x: Any, y: Any, options: dict[str, Any]) -> Tensor:
    """Write ``op(x, y)`` into ``x``."""
    options = _checked(definition, options, "in place")
    x, y = joining(x, y)
    key = key_of(x, y, options)
    plan = definition.writes.get(key)
    # as in PyTorch, what is no operand is refused first, then the write, then what does not fit
    operands = _operands(definition, x, y, "in place") if plan is None else ()
    tracked = history.check_write(x, y) and x._form.dtype.is_floating_point
    if plan is None:
        plan = quietly(_plan, definition, device_of(x), operands, options, (x, y))
        remember(definition.writes, key, plan)
    check_overlap(x, y)
    rule = definition.rule_for(_number_place(x, y, "in place")) if tracked else None
    values = _values(definition, x, y, options) if tracked else {}
    write(x, partial(plan.compute, *_arrays(plan, x, y)), definition.name, rule, values)
    return x


def unary_inplace(definition: Definition, x: Any) -> Tensor:
    """Write ``op(x)`` into ``x``."""
    need_tensor(definition.name, x)
    tracked = history.check_write(x)
    plan = definition.writes.get(x._form)
    if plan is None:
        plan = quietly(_plan, definition, device_of(x), (as_operand(x),), {}, (x,))
        remember(definition.writes, x._form, plan)
    rule = definition.rule_for(None) if tracked else None
    write(x, partial(plan.compute, x._array), definition.name, rule, {"x": x})
    return x
