"""Operands of all kinds: numbers, promotion, broadcasting, strides, in-place forms, errors.

What the direct path (``notation``) does not compute comes here: dtypes that differ, float16, other
devices, tracked writes, and all that is refused. The steps are always the same: check the kinds of
the arguments, find the dtype, broadcast the shapes, lay the result out as PyTorch would.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd import history
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Device, backend_of, is_array
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
from tensorkit.ops.planning import Definition
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


def _prepared(
    definition: Definition,
    device: Device,
    operands: tuple[Operand, ...],
    options: dict[str, Any],
    into: tuple[Any, ...] = (),
) -> tuple[Callable[..., Any], list[Any], Ints]:
    """The function to compute with, the numbers that it takes, and the strides of the result.

    All refusals are made here. With ``into``, a tensor to write to and what it is computed with,
    the function writes into its last argument.
    """
    dtype, result_dtype = _dtypes_for(definition, operands, options)
    if into:
        check_overlap(*into)
    shape = operands[0].shape
    for operand in operands[1:]:
        shape = layout.broadcast_shapes(shape, operand.shape)
    if into:
        check_output_shape(tuple(into[0].shape), shape)
        check_output_dtype(result_dtype, into[0].dtype)
    check_category(definition, dtype)
    counting = operands
    if definition.takes == "exponent" and operands[-1].is_number:
        counting = operands[:-1]
    if definition.takes == "exponent" and operands[0].is_number:
        strides = layout.contiguous_strides(shape)
    else:
        pairs = [(own.shape, converted_strides(own, dtype)) for own in counting]
        strides = layout.result_strides(shape, pairs)
    compute, numbers = _kernel(definition, device, operands, dtype, options, bool(into))
    if into:
        is_ufunc = definition.ufunc and compute is getattr(device.backend.xp, definition.ufunc)
        if not (is_ufunc and result_dtype is into[0].dtype):
            compute = partial(_copied, compute)  # a ufunc writes by itself
    return compute, numbers, strides


def _copied(compute: Callable[..., Any], *arrays: Any) -> None:
    """Write what ``compute`` gives into the last of ``arrays``."""
    result = compute(*arrays[:-1])
    arrays[-1][...] = np.asarray(result) if isinstance(result, np.generic) else result


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
        forward = partial(definition.forward, xp, **options)
    if half and is_ufunc and device is not CPU and _rounds_once(definition, operands, in_place):
        return forward, []
    if half:
        bare = [each._replace(array=None) for each in operands]  # only their dtypes are needed

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


def _computed(
    device: Device, values: tuple[Any, ...], prepared: tuple[Callable[..., Any], list[Any], Ints]
) -> Tensor:
    """The result of what ``_prepared`` gives, of these tensors and numbers."""
    compute, numbers, strides = prepared
    array = quietly(compute, *_arrays(numbers, *values))
    return base.place(device.backend.asarray(array), strides)


def _arrays(numbers: list[Any], *values: Any) -> list[Any]:
    """The operands as arrays."""
    left = iter(numbers)
    return [v._array if isinstance(v, TensorBase) else next(left) for v in values]


def binary(
    definition: Definition, x: Any, y: Any, options: dict[str, Any], called: str = "function"
) -> Tensor:
    """A new tensor from two tensors or numbers."""
    if state.on_arrays and not (isinstance(x, TensorBase) or isinstance(y, TensorBase)):
        return on_arrays(definition, x, y, **options)
    options = _checked(definition, options)
    if isinstance(x, TensorBase) and isinstance(y, TensorBase):
        x, y = together(x, y)
    operands = _operands(definition, x, y, called)
    device = device_of(x, y)
    prepared = quietly(_prepared, definition, device, operands, options)
    result = _computed(device, (x, y), prepared)
    return _recorded(definition, result, x, y, options, called)


def on_arrays(definition: Definition, *args: Any, **options: Any) -> Any:
    """The operation on arrays, as a formula calls it in a plain backward."""
    if definition.kind == "binary":
        x, y = args
        if not hasattr(x, "dtype"):
            x = np.asarray(x, y.dtype)[()]  # a NumPy scalar tells a number from a tensor
        elif not hasattr(y, "dtype"):
            y = np.asarray(y, x.dtype)[()]
        args = x, y
    return definition.forward(backend_of(*args).xp, *args, **options)


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
    if state.on_arrays and not isinstance(x, TensorBase):
        return on_arrays(definition, x)
    need_tensor(definition.name, x)
    prepared = quietly(_prepared, definition, x.device, (as_operand(x),), {})
    result = _computed(x.device, (x,), prepared)
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
        check_output_shape(tuple(into.shape), shape)
        check_output_dtype(dtype, into.dtype)
        array = run(definition.forward, device.backend.xp, *arrays, **options)
        rule = definition.rule_for(None) if tracked else None
        write(into, array, definition.name, rule, {**values, **options})
        return into
    array = run(definition.forward, device.backend.xp, *arrays, **options)
    pairs = [(each.shape, converted_strides(each, dtype)) for each in given if not each.is_number]
    result = base.place(array, layout.result_strides(shape, pairs))
    return recorded(definition, result, {**values, **options})


def _refuse_array(definition: Definition, left: Any, right: Any) -> NoReturn:
    kinds = f"'{kind_of(left)}' and '{kind_of(right)}'"
    if definition.symbol in ("<", "<=", ">", ">="):
        first = f"'{definition.symbol}' not supported between instances of {kinds}"
    else:
        first = f"unsupported operand type(s) for {definition.symbol}: {kinds}"
    tensor = left if isinstance(left, TensorBase) else right
    there, back = ("", "") if tensor.device is CPU else (".to(tensor.device)", ".cpu()")
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
    # as in PyTorch, what is no operand is refused first, then the write, then what does not fit
    operands = _operands(definition, x, y, "in place")
    tracked = history.check_write(x, y) and x.dtype.is_floating_point
    prepared = quietly(_prepared, definition, device_of(x), operands, options, (x, y))
    rule = definition.rule_for(_number_place(x, y, "in place")) if tracked else None
    values = _values(definition, x, y, options) if tracked else {}
    write(x, partial(prepared[0], *_arrays(prepared[1], x, y)), definition.name, rule, values)
    return x


def unary_inplace(definition: Definition, x: Any) -> Tensor:
    """Write ``op(x)`` into ``x``."""
    need_tensor(definition.name, x)
    tracked = history.check_write(x)
    prepared = quietly(_prepared, definition, device_of(x), (as_operand(x),), {}, (x,))
    rule = definition.rule_for(None) if tracked else None
    write(x, partial(prepared[0], x._array), definition.name, rule, {"x": x})
    return x
