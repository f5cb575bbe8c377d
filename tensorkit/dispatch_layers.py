"""The layers of a call, for what the direct path of ``tensorkit.dispatch`` does not compute.

**Autograd** is the outermost layer: it gives the result its node, so its code (``finish``) runs
last. **Modes** may compute in place of the layers below, see ``tensorkit.dispatch_mode``.
**Promotion** gives the operands of an operation element by element one dtype and one shape.
**Device** finds the kernel and runs it. What is wrong is refused as soon as the dtype is known. The
direct path is what remains of them for equal dtypes on the CPU without a mode.
"""

from typing import Any

import numpy as np

from tensorkit import base, layout, refusals
from tensorkit.autograd.node import mark_inference
from tensorkit.autograd.versions import make_view
from tensorkit.base import TensorBase
from tensorkit.definition import Definition
from tensorkit.devices import backend_of, is_array
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch_mode import through_modes
from tensorkit.errors import NotSupportedError, TensorkitError
from tensorkit.ops.arguments import as_array, promoted_dtype
from tensorkit.ops.copying import on_one_device
from tensorkit.overrides import overridable
from tensorkit.thread_state import state


def call_layers(definition: Definition, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The operation on arguments of all kinds, or the refusal.

    Most calls on a GPU come here, but not ``x += y`` of one dtype without a graph, nor a formula's
    ``x + y`` on arrays.
    """
    is_plain = len(args) == definition.tensors and not (options or definition.variadic)
    if not (is_plain and definition.defaults.keys() >= {*definition.options}):
        values = definition.bind(args, options)
    else:
        values = {**definition.defaults, **dict(zip(definition.inputs, args, strict=True))}
    tensors = [values[name] for name in definition.inputs]
    others: list[Any] = [values[definition.variadic]] if definition.variadic else []
    named = {name: values[name] for name in definition.options if name != definition.variadic}
    if state.on_arrays and not [x for x in tensors if isinstance(x, TensorBase)]:
        return call_on_arrays(definition, *tensors, *others, **named)
    refusals.check_tensors(definition, values)
    trace = Trace(definition.call, tensors)
    if state.dispatch_modes:  # a mode sees the operands as they were given, on all their devices
        computed = through_modes(definition.call, args, options, records=False)
        tensors = list(on_one_device(*tensors))
    else:
        tensors = list(on_one_device(*tensors))
        values.update(zip(definition.inputs, tensors, strict=True))
        trace.dtype, shape = common_dtype_and_shape(definition, tensors)
        refusals.check(definition, values, trace.dtype)
        device = next(x for x in tensors if isinstance(x, TensorBase)).device
        trace.kernel = find_kernel(definition.kernels, definition.name, device.type)
        xp = device.backend.xp
        arrays = promote_operands(xp, tensors, trace.dtype, shape)
        computed = run_kernel(definition, trace.kernel, xp, arrays, others, named)
    trace.result = finish(definition, computed, (*tensors, *others), named)
    return trace.result


class Trace:
    """What the layers did with a call; ``explain.dispatch`` finds it in ``state.trace``."""

    dtype: Any = None  # that promotion computes in; None where the operation does not promote
    kernel: Any = None
    result: Any = None  # None as long as the call runs

    def __init__(self, operation: Any, tensors: list[Any]) -> None:
        self.operation, self.tensors = operation, tensors
        self.modes, self.grad = state.dispatch_modes, state.grad
        if state.trace is not None:  # explain.dispatch asks
            self.outer = next((each for each in state.trace if each.result is None), None)
            state.trace.append(self)


def common_dtype_and_shape(definition: Definition, tensors: list[Any]) -> tuple[Any, layout.Ints]:
    """The dtype and the shape that operands are promoted to; None where nothing is promoted."""
    if not (definition.promote or definition.to_floating):
        return None, ()
    dtype = promoted_dtype(tensors, definition.to_floating)
    shape: layout.Ints = ()
    for x in tensors:
        if isinstance(x, TensorBase):
            shape = layout.broadcast_shapes(shape, tuple(x.shape))
    return dtype, shape


def promote_operands(xp: Any, tensors: list[Any], dtype: Any, shape: layout.Ints) -> list[Any]:
    """The operands as arrays of this dtype and shape; as they are where the dtype is None."""
    if dtype is None:
        return [None if x is None else x._array for x in tensors]
    arrays = [None if x is None else without_warnings(as_array, x, dtype) for x in tensors]
    for at, x in enumerate(tensors):
        if isinstance(x, TensorBase) and x.shape != shape:
            arrays[at] = xp.broadcast_to(arrays[at], shape)
    return arrays


@overridable
def find_kernel(kernels: dict[str, Any], operation: str, device: str) -> Any:
    """The kernel of an operation for a kind of device: its own, otherwise the default.

    ``kernels`` is the operation's table, by kinds of device and ``"default"``. tensorkit's own
    operations have only the default: a kernel is called with ``xp``, the array library, and that is
    what differs between devices. ``tk.library.register_kernel`` adds kernels of the user's.
    NotSupportedError, a NotImplementedError, if there is neither.
    """
    kernel = kernels.get(device, kernels.get("default"))
    if kernel is None:
        first = f"Could not run '{operation}' with arguments from the '{device.upper()}' backend."
        known = f"{operation} has kernels for: {', '.join(kernels) or 'no device'}."
        repair = f'tk.library.register_kernel({operation.rpartition(":")[2]}, "{device}", f)'
        raise NotSupportedError(first, known, repair=repair)
    return kernel


def run_kernel(
    definition: Definition, kernel: Any, xp: Any, arrays: list[Any], others: list[Any], named: Any
) -> Any:
    """What the kernel gives; an error of the array library names the operation."""
    try:
        return without_warnings(_run_on_vectors, definition, kernel, xp, arrays, others, named)
    except TensorkitError:
        raise
    except refusals.FROM_ARRAYS as error:
        if kernel is not definition.forward:  # an error of the user's kernel
            raise
        raise refusals.in_words(definition, error, backend_of(*arrays)) from None


def _run_on_vectors(
    definition: Definition, kernel: Any, xp: Any, arrays: list[Any], others: list[Any], named: Any
) -> Any:
    """What the kernel gives; a number whose dimension is named counts as a vector of one."""
    named_dims = [named[name] for name in definition.dim if named.get(name) is not None]
    if definition.view or not named_dims or arrays[0].ndim:
        return kernel(xp, *arrays, *others, **named)
    vectors = [x if x is None else x.reshape(1) for x in arrays]
    computed = kernel(xp, *vectors, *others, **named)
    if isinstance(computed, tuple):
        return tuple(x.reshape(()) if x.size == 1 else x for x in computed)
    return computed.reshape(()) if computed.size == 1 else computed


def call_on_arrays(definition: Definition, *args: Any, **options: Any) -> Any:
    """The operation on arrays and numbers, as a formula calls it in a plain backward."""
    if definition.promote:  # a forward may ask a number for its dtype
        dtype = next(x.dtype for x in args if hasattr(x, "dtype"))
        n = definition.tensors
        arrays = [x if x is None or hasattr(x, "dtype") else dtype.type(x) for x in args[:n]]
        args = (*arrays, *args[n:])
    return definition.forward(backend_of(*args).xp, *args, **options)


# Autograd


def finish(
    definition: Definition, computed: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Tensors from what a forward or a mode has given: numbers, views, several results."""
    if definition.view:
        return _finish_view(definition, computed, args, options)
    arrays = [x._array for x in args if isinstance(x, TensorBase)]
    several = computed if definition.outputs is not None else (computed,)
    new = [_as_result(each, arrays, definition.contiguous) for each in several]
    tensors = [mark_inference(each) for each in new]
    outputs: Any = tensors[0] if definition.outputs is None else definition.outputs(*tensors)
    if any(isinstance(x, TensorBase) and x._node is not None for x in args[: definition.tensors]):
        more = dict(zip(outputs._fields, tensors, strict=True)) if len(tensors) > 1 else {}
        definition.record(tensors[0], args, options, **more)
    return outputs


def _as_result(result: Any, arrays: Any, contiguous: bool) -> Any:
    """A tensor on an array of its own: from what a forward gave, or a mode."""
    array = owned(result._array if isinstance(result, TensorBase) else result, arrays, contiguous)
    if isinstance(result, TensorBase) and array is result._array and result._node is None:
        return result
    return base.new(array)


def owned(computed: Any, arrays: Any, contiguous: bool) -> Any:
    """The array that a forward has given, or a copy of it where it is a part of another."""
    if not is_array(computed):
        return np.asarray(computed)
    may_share = backend_of(computed).xp.may_share_memory
    same = [each for each in arrays if each.__class__ is computed.__class__]
    flags = computed.flags
    is_dense = flags.c_contiguous or (flags.f_contiguous and not contiguous)
    if is_dense and not any(may_share(computed, each) for each in same):
        return computed
    return computed.copy(order="C" if contiguous else "K")


def _finish_view(
    definition: Definition, shown: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """A view of the first tensor; a copy where the forward had to make one."""
    x, array = args[0], args[0]._array
    may_be_copy = not array.flags.c_contiguous and shown.size
    if isinstance(shown, TensorBase):  # a mode's
        shown, may_be_copy = shown._array, shown.shape.numel()
    if may_be_copy and not backend_of(array).xp.may_share_memory(shown, array):
        result = base.new(shown)
        definition.record(result, args, options)
        return result
    saved = () if x._node is None else definition.saved_by_view(args, options)
    return make_view(x, shown, definition.rules.get(None), saved)
