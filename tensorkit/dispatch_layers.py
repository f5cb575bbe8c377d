"""The layers of a call, for what the direct path of ``tensorkit.dispatch`` does not compute.

From the outside in: **autograd** gives the result its node (``finish``); **modes** may compute in
place of the layers below, see ``tensorkit.dispatch_mode``; **promotion** gives the operands of an
operation element by element one dtype and one shape; **device** looks up the kernel by
``find_kernel``. The direct path is what remains of them for equal dtypes on the CPU without a mode.
"""

from functools import partial
from typing import Any

import numpy as np

from tensorkit import base, explainer, layout
from tensorkit.autograd.grad_mode import state
from tensorkit.autograd.node import mark_inference
from tensorkit.autograd.versions import view
from tensorkit.base import TensorBase
from tensorkit.definition import Definition
from tensorkit.devices import Device, backend_of, is_array
from tensorkit.dispatch_mode import through_modes
from tensorkit.errors import NotSupportedError, TensorkitError
from tensorkit.errstate import without_warnings
from tensorkit.ops.arguments import promoted
from tensorkit.ops.copying import on_one_device
from tensorkit.overrides import overridable

_asarray = np.asarray


def call_layers(definition: Definition, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The operation on arguments of all kinds, or the refusal.

    Most calls on a GPU come here; ``x += y`` there, and formulas given arrays, do not.
    """
    if options or definition.variadic or len(args) != definition.tensors:
        values = definition.bind(args, options)
    else:
        values = {**definition.defaults, **dict(zip(definition.inputs, args, strict=True))}
    tensors = [values[name] for name in definition.inputs]
    others: list[Any] = [values[definition.variadic]] if definition.variadic else []
    named = {name: values[name] for name in definition.options if name != definition.variadic}
    if state.on_arrays and not [x for x in tensors if isinstance(x, TensorBase)]:
        return on_arrays(definition, *tensors, *others, **named)
    explainer.check_tensors(definition, values)
    trace = Trace(definition.call, tensors)
    if state.modes:
        found = through_modes(definition.call, args, options, records=False)
        tensors = list(on_one_device(*tensors))
    else:
        tensors = list(on_one_device(*tensors))
        values.update(zip(definition.inputs, tensors, strict=True))
        device = next(x for x in tensors if isinstance(x, TensorBase)).device
        arrays, trace.dtype = _promotion(definition, values, tensors, device)
        trace.kernel = kernel = find_kernel(definition.kernels, definition.name, device.type)
        found = _device(definition, kernel, device.backend.xp, arrays, others, named)
    trace.result = finish(definition, found, (*tensors, *others), named)
    return trace.result


class Trace:
    """What the layers did with a call, which ``explain.dispatch`` reads in ``state.trace``."""

    dtype: Any = None  # that promotion computes in; None where the operation does not promote
    kernel: Any = None
    result: Any = None

    def __init__(self, operation: Any, tensors: list[Any]) -> None:
        self.operation, self.tensors, self.modes = operation, tensors, state.modes
        if state.trace is not None:
            # a part of another call, which has no result yet
            self.is_part = any(trace.result is None for trace in state.trace)
            state.trace.append(self)


@overridable
def find_kernel(kernels: dict[str, Any], operation: str, device: str) -> Any:
    """The kernel of an operation for a kind of device: its own, otherwise the default.

    ``kernels`` is the operation's table, by kinds of device and ``"default"``; see
    ``tk.library.register_kernel``. NotSupportedError, a NotImplementedError, if there is neither.
    """
    kernel = kernels.get(device, kernels.get("default"))
    if kernel is None:
        first = f"Could not run '{operation}' with arguments from the '{device.upper()}' backend."
        known = f"{operation} has kernels for: {', '.join(kernels) or 'no device'}."
        repair = f'tk.library.register_kernel({operation.rpartition(":")[2]}, "{device}", f)'
        raise NotSupportedError(first, known, repair=repair)
    return kernel


def _promotion(
    definition: Definition, values: dict[str, Any], tensors: list[Any], device: Device
) -> tuple[list[Any], Any]:
    """The operands as arrays, and where the operation promotes their one dtype, of one shape."""
    if not (definition.promote or definition.to_floating):
        explainer.refuse(definition, values)
        return [None if x is None else x._array for x in tensors], None
    arrays, dtype = promoted(tensors, definition.to_floating)
    shape: layout.Ints = ()
    for x in tensors:
        if isinstance(x, TensorBase):
            shape = layout.broadcast_shapes(shape, tuple(x.shape))
    explainer.refuse(definition, values, dtype)
    for at, x in enumerate(tensors):
        if isinstance(x, TensorBase) and x.shape != shape:
            arrays[at] = device.backend.xp.broadcast_to(arrays[at], shape)
    return arrays, dtype


def _device(
    definition: Definition, kernel: Any, xp: Any, arrays: list[Any], others: list[Any], named: Any
) -> Any:
    """What the kernel for the device gives; with default options it may be the library's ufunc."""
    is_own = kernel is definition.forward
    try:
        if is_own and definition.ufunc and named == definition.defaults:
            return without_warnings(getattr(xp, definition.ufunc), *arrays)
        on_device = partial(kernel, xp)
        return without_warnings(_counted_as_vector, definition, on_device, arrays, others, named)
    except TensorkitError:
        raise
    except explainer.FROM_ARRAYS as error:
        if not is_own:  # an error of the user's kernel
            raise
        raise explainer.in_words(definition, error) from None


def on_arrays(definition: Definition, *args: Any, **options: Any) -> Any:
    """The operation on arrays and numbers, as a formula calls it in a plain backward."""
    if definition.promote:  # a forward may ask a number for its dtype
        dtype = next(x.dtype for x in args if hasattr(x, "dtype"))
        n = definition.tensors
        arrays = [x if x is None or hasattr(x, "dtype") else dtype.type(x) for x in args[:n]]
        args = (*arrays, *args[n:])
    return definition.forward(backend_of(*args).xp, *args, **options)


def _counted_as_vector(
    definition: Definition, kernel: Any, arrays: list[Any], others: list[Any], named: dict[str, Any]
) -> Any:
    """What the kernel gives; a number whose dimension is named counts as a vector of one."""
    named_dims = [named[name] for name in definition.dim if named.get(name) is not None]
    if definition.view or not named_dims or arrays[0].ndim:
        return kernel(*arrays, *others, **named)
    vectors = [each if each is None else each.reshape(1) for each in arrays]
    found = kernel(*vectors, *others, **named)
    if isinstance(found, tuple):
        return tuple(each.reshape(()) if each.size == 1 else each for each in found)
    return found.reshape(()) if found.size == 1 else found


# Autograd


def finish(
    definition: Definition, found: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Tensors from what a forward or a mode has given: numbers, views, several results."""
    if definition.view:
        return _finish_view(definition, found, args, options)
    arrays = [x._array for x in args if isinstance(x, TensorBase)]
    several = found if definition.outputs is not None else (found,)
    new = [_as_result(each, arrays, definition.contiguous) for each in several]
    tensors = [mark_inference(each) for each in new]
    outputs: Any = tensors[0] if definition.outputs is None else definition.outputs(*tensors)
    if any(isinstance(x, TensorBase) and x._node is not None for x in args[: definition.tensors]):
        more = dict(zip(outputs._fields, tensors, strict=True)) if len(tensors) > 1 else {}
        definition.add_node(tensors[0], args, options, **more)
    return outputs


def _as_result(found: Any, arrays: Any, contiguous: bool) -> Any:
    """A tensor on an array of its own: from what a forward gave, or a mode."""
    if isinstance(found, TensorBase):
        array = owned(found._array, arrays, contiguous)
        if array is found._array and found._node is None:
            return found
        found = array
    return base.new(owned(found, arrays, contiguous))


def owned(found: Any, arrays: Any, contiguous: bool) -> Any:
    """The array that a forward has given, or a copy of it where it is a part of another."""
    if not is_array(found):
        return _asarray(found)
    may_share = backend_of(found).xp.may_share_memory
    same = [each for each in arrays if each.__class__ is found.__class__]
    flags = found.flags
    is_dense = flags.c_contiguous or (flags.f_contiguous and not contiguous)
    if is_dense and not any(may_share(found, each) for each in same):
        return found
    return found.copy(order="C" if contiguous else "K")


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
        definition.add_node(result, args, options)
        return result
    values = None if x._node is None else definition.options_of(args, options)
    return view(x, shown, definition.rules.get(None), values)
