"""``tk.library``: kernels and operations of your own.

A *kernel* is the function that computes an operation on one kind of device; an operation's table
(``tensorkit.dispatch_layers.find_kernel``) has one for each kind, or a default for those without.

Kernels work below autograd and below modes: what they call is not recorded. They are given
contiguous tensors on one device, of operations element by element also in one dtype and one shape,
and options as they were given. They return a new tensor on that device, of the dtype and the number
of dimensions that the operation gives; element by element also of the shape. The names are
PyTorch's, and so are the meanings.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, update_wrapper, wraps
from typing import Any, NoReturn

import numpy as np

from tensorkit import base, devices, direct_path, dtypes, refusals
from tensorkit.autograd.function import Function
from tensorkit.base import TensorBase
from tensorkit.devices import CPU, Device, check_same_device, get_default_device, is_array
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch_layers import Trace, find_kernel
from tensorkit.dispatch_mode import through_modes
from tensorkit.errors import AutogradError, NotSupportedError, message, type_name
from tensorkit.overrides import replaced
from tensorkit.thread_state import state

Kernel = Callable[..., Any]


def register_kernel(op: Any, device_types: str | None, func: Kernel | None = None) -> Any:
    """Let ``func`` compute ``op`` on a kind of device; None: on all that have no kernel.

    op: an operation such as ``tk.relu``, or a custom one. Also a decorator, without ``func``. A
    kernel that was there before is replaced; ``scope`` ends with what was registered inside. While
    an operation of tensorkit has a kernel of yours, all operations take the slow way.

    Raises TypeError for what is no operation or no function, for compositions of others such as
    ``tk.matmul``, and for one device of a kind, ``"cuda:0"``; NotSupportedError for views, which
    compute nothing.

    >>> with tk.library.scope():
    ...     @tk.library.register_kernel(tk.relu, "cpu")
    ...     def my_relu(x):
    ...         return x * (x > 0)
    ...     tk.relu(tk.tensor([-1., 2.]))
    tensor([-0., 2.])
    """
    if func is None:
        return partial(register_kernel, op, device_types)
    definition, name = getattr(op, "definition", op), getattr(op, "__name__", type_name(op))
    if not hasattr(definition, "kernels"):
        first = f"register_kernel(): {name} is no operation with kernels of its own"
        raise TypeError(message(first, "Copies, joins and what is made of others have none."))
    is_custom = definition is op
    if not is_custom and definition.view:
        raise NotSupportedError(f"{name} is a view: nothing is computed")
    kind = "default" if isinstance(device_types, tuple | list | None) else Device(device_types).type
    if not callable(func) or str(device_types) not in ("None", kind):
        raise TypeError(message("A kernel is a function for one kind of device", repair='"cpu", f'))
    _restore_at_the_end(definition.kernels)
    definition.kernels[kind] = func if is_custom else _on_tensors(definition, func)
    if not is_custom:  # what the direct path calls is not in the table
        direct_path.close()
        _scopes[-1].callback(direct_path.reopen)
    return func


_scopes = [ExitStack()]  # what the end of each open scope calls, the last one first


def _restore_at_the_end(table: dict[str, Any]) -> None:
    _scopes[-1].callback(table.update, dict(table))
    _scopes[-1].callback(table.clear)


@contextmanager
def scope() -> Iterator[None]:
    """Context that ends what is registered inside, kernels and kinds of device, and modes left on.

    >>> with tk.library.scope():
    ...     _ = tk.library.register_kernel(tk.relu, "cpu", lambda x: x * 100)
    >>> tk.relu(tk.tensor(2.))
    tensor(2.)
    """
    n_scopes, n_modes = len(_scopes), len(state.dispatch_modes)
    _scopes.append(ExitStack())
    _restore_at_the_end(devices._kinds)
    try:
        yield
    finally:
        while len(_scopes) > n_scopes:
            _scopes.pop().close()
        while len(state.dispatch_modes) > n_modes:
            state.dispatch_modes[-1].__exit__()


def _below(operation: str, kernel: Kernel, *args: Any, **options: Any) -> Any:
    """Call a kernel of the user's: nothing is recorded, and no mode sees what it calls."""
    above = {"grad": False, "on_arrays": False, "dispatch_modes": (), "trace": None}
    with replaced(state, closes_path=False, **above):
        found = kernel(*args, **options)
    tensors = [x for x in args if isinstance(x, TensorBase)]
    who = f"{getattr(kernel, '__name__', kernel)}(), a kernel of {operation}, returned"
    for each in _results(found):
        if not isinstance(each, TensorBase):
            raise TypeError(message(f"{who} {type_name(each)}, not a Tensor", repair="return out"))
        check_same_device(*(x.device for x in (*tensors, each)))
        if any(base.storage_of(x) is base.storage_of(each) for x in tensors):
            raise AutogradError(f"{who} one of its inputs, or a view of it", repair=".clone()")
    return found


def _on_tensors(definition: Any, kernel: Kernel) -> Kernel:
    """A kernel of the user's as ``dispatch`` calls it: with an array library and arrays."""

    @wraps(kernel)
    def call(xp: Any, *arrays: Any, **options: Any) -> Any:
        args = []
        for x in arrays:
            if is_array(x):
                x = base.new(base.contiguous(x, devices.device_of_array(x)))
            args.append(x.item() if isinstance(x, np.generic) else x)
        found = _below(definition.name, kernel, *args, **options)
        _check_result(definition, found, arrays, options)
        return tuple(x._array for x in found) if isinstance(found, tuple) else found._array

    return call


def _check_result(definition: Any, found: Any, arrays: Any, options: Any) -> None:
    """TypeError where a kernel of the user's gives another dtype or shape than the operation does.

    The operation itself says what it gives, of arrays with one element: dtypes and numbers of
    dimensions. Element by element the result has the operands' shape; other sizes are the kernel's
    matter, and so is all of an operation that one element is not enough for, such as a ``gather``.
    """
    examples = [np.zeros((1,) * x.ndim, x.dtype) if is_array(x) else x for x in arrays]
    try:
        with warnings.catch_warnings(action="ignore"):
            own = without_warnings(definition.forward, CPU.backend.xp, *examples, **options)
    except refusals.FROM_ARRAYS:
        return
    for given, wanted in zip(_results(found), _results(own), strict=True):
        like, name = (wanted, "ndim") if definition.contiguous else (arrays[0], "shape")
        dtype, form = dtypes.of_numpy(wanted.dtype), getattr(like, name)
        if given.dtype is not dtype or getattr(given, name) != form:
            first = f"{definition.name} gives {dtype} with {name} {form} here, and its kernel "
            first += f"returned {given.dtype} of shape {tuple(given.shape)}"
            raise TypeError(message(first, repair="out = tk.empty_like(x), filled"))


def _results(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


# Operations of the user's


class CustomOp:
    """An operation of the user's; ``custom_op`` makes it. PyTorch's ``CustomOpDef``."""

    _function: Any  # a Function, whose forward is the layers below autograd

    def __init__(self, name: str, func: Kernel) -> None:
        self.name, self.kernels = name, dict[str, Kernel]()
        self.signature = inspect.signature(func)
        update_wrapper(self, func)
        self.__name__ = name.partition("::")[2]
        register_autograd(self, self._no_gradient)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The result for these arguments."""
        try:
            bound = self.signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        bound.apply_defaults()
        return self._function.apply(*bound.args)

    def _no_gradient(self, ctx: Any, *gradients: Any) -> NoReturn:
        first = f"Trying to backward through {self.name} but no autograd formula was registered"
        raise NotSupportedError(first, repair=f"{self.__name__}.register_autograd(backward)")

    def _computed(self, *args: Any) -> Any:
        """The layers of modes and device. There is no promotion: dtypes are the kernel's matter."""
        tensors = [x for x in args if isinstance(x, TensorBase)]
        trace = Trace(self, tensors)
        if state.dispatch_modes:
            return through_modes(self, args, {}, records=False)
        check_same_device(*(x.device for x in tensors))
        device = tensors[0].device if tensors else get_default_device()
        trace.kernel = kernel = find_kernel(self.kernels, self.name, device.type)
        trace.result = _below(self.name, kernel, *args)
        return trace.result


def custom_op(
    name: str, fn: Kernel | None = None, /, *, mutates_args: Any, device_types: str | None = None
) -> Any:
    """Make an operation of a function, which is its kernel; a decorator, without ``fn``.

    name: ``"namespace::name"``. device_types: the kind of device that the kernel is for; without
    it, all. mutates_args must be ``()``: an operation returns new tensors. Raises ValueError for
    a name without a namespace, NotSupportedError for arguments that are written to and for
    keyword-only ones.

    >>> @tk.library.custom_op("mine::cube", mutates_args=())
    ... def cube(x):
    ...     return x * x * x
    >>> cube.register_autograd(
    ...     lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    ... )
    >>> x = tk.tensor(2., requires_grad=True)
    >>> cube(x)
    tensor(8., grad_fn=<cubeBackward>)
    >>> tk.autograd.grad(cube(x), x)
    (tensor(12.),)
    """
    if fn is None:
        return partial(custom_op, name, mutates_args=mutates_args, device_types=device_types)
    if [part.isidentifier() for part in name.split("::")] != [True, True]:
        raise ValueError(message(f"custom_op() wants a name such as 'mine::cube', not {name!r}"))
    if len(mutates_args):
        raise NotSupportedError("A custom operation returns new tensors", repair="mutates_args=()")
    made = CustomOp(name, fn)
    if any(each.kind is each.KEYWORD_ONLY for each in made.signature.parameters.values()):
        raise NotSupportedError(f"{name}() has a keyword-only argument", repair="def f(x, n):")
    register_kernel(made, device_types, fn)
    return made


def register_autograd(op: Any, backward: Kernel, /, *, setup_context: Kernel | None = None) -> None:
    """Give a custom operation its gradient.

    ``backward(ctx, g)`` gives a gradient, or None, for each argument. It finds in ``ctx`` what
    ``setup_context(ctx, inputs, output)`` has saved there: see ``tk.autograd.Function``. Raises
    TypeError for operations of tensorkit, whose formulas stand in their definitions.
    """
    if not isinstance(op, CustomOp):
        first = f"register_autograd() wants a custom operation, not {getattr(op, '__name__', op)}"
        raise TypeError(message(first, repair='@tk.library.custom_op("mine::f", mutates_args=())'))
    keep = setup_context or (lambda ctx, inputs, output: None)
    members = {"forward": op._computed, "setup_context": keep, "backward": backward}
    static = {name: staticmethod(member) for name, member in members.items()}
    op._function = type(op.__name__, (Function,), static)


CustomOp.register_kernel = register_kernel  # type: ignore[attr-defined]
CustomOp.register_autograd = register_autograd  # type: ignore[attr-defined]


__all__ = ["custom_op", "register_autograd", "register_kernel", "scope"]
