"""Where tensors come from: ``recording()`` notes the origin of every result, tracked or not.

While it is on, the direct path is closed, and the few places where tensors are made and written
call its methods. The call stack says the rest: the innermost frame of the user's code is the line,
and the library's function that it called is the operation, with the arguments it was given.

An origin refers to the origins of the inputs, and to tensors only weakly: so it can never be part
of a reference cycle. It does keep the memory of the inputs, as long as the result lives.
"""

import sys
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Self

from tensorkit import base, direct_path
from tensorkit.absent import explains_options
from tensorkit.autograd.node import Node, become_leaf, hooks_of, requires_grad
from tensorkit.base import Tensor, TensorBase
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.layout import Layout, contiguous_strides
from tensorkit.storage import Storage
from tensorkit.thread_state import is_library_code, state


class recording:
    """Context in which every result carries ``.origin``: operation, inputs, line.

    A recording belongs to a thread, and results keep the memory of their inputs: meant for looking
    at a program, not for training.

    >>> w = tk.ones(2, requires_grad=True)
    >>> with tk.autograd.recording():
    ...     y = (w * 3).detach()
    >>> y.origin.operation, y.origin.untracked
    ('detach', 'detach leaves the history behind')
    >>> y.origin.inputs[0].origin.inputs[0] is w
    True
    """

    def __enter__(self) -> Self:
        state.origin_recorders = (*state.origin_recorders, self)
        direct_path.close()
        return self

    def __exit__(self, *error: object) -> None:
        state.origin_recorders = tuple(x for x in state.origin_recorders if x is not self)
        direct_path.reopen()

    # The library calls these on the innermost recording.

    def made(self, result: TensorBase) -> None:
        """A tensor was made: note its origin."""
        result._origin = Origin(result, _Call())

    def writes(self, x: TensorBase) -> None:
        """``x`` is about to be written to: its origin becomes that write."""
        call = _Call()
        # `x[0] = 1` writes to a view of x that is made for it
        for tensor in [x] if call.operation != "setitem" else [x, call.tensors[0]]:
            origin, before = Origin(tensor, call), getattr(tensor, "_origin", None)
            if before is not None:
                before._superseded(tensor)
            tensor._origin = origin

    def node(self, node: Node) -> None:
        """A node was made: note the line."""
        frame = _user_frame()[0]
        hooks_of(node).line = (frame.f_code.co_filename, frame.f_lineno)


class Origin:
    """How a tensor came about; what ``Tensor.origin`` gives.

    ``operation`` is what the user called (``mul``, ``add_``, ``getitem``, ``zeros``); ``file`` and
    ``line`` say where; ``inputs`` are its tensors. A tensor made of numbers has no inputs.
    """

    operation = ""  # made while nothing was recorded
    _storage: Storage | None = None  # known once the tensor was an input of another operation
    _tensor: Callable[[], TensorBase | None]

    def __init__(self, tensor: TensorBase, call: "_Call | None" = None) -> None:
        self._tensor = weakref.ref(tensor)
        if call is not None:
            self.operation, self.file, self.line = call.operation, call.file, call.line
            self._inputs = tuple([_noted(x)._used(x) for x in call.tensors])
            self._why = why_untracked(self.operation, call.tensors, tensor, state.grad)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the operation was called with.

        One that no longer exists, or was changed in place since, is represented by another with
        the same values and the same origin.
        """
        return tuple(each._current() for each in self._inputs)

    @property
    def untracked(self) -> str | None:
        """Why autograd does not track the result; None if it does."""
        return None if requires_grad(self._tensor()) else self._why

    def _current(self) -> Any:
        tensor = self._tensor()
        if tensor is None:
            assert self._storage is not None
            before, state.origin_recorders = state.origin_recorders, ()
            tensor = base.on_storage(self._storage, self._layout)
            state.origin_recorders = before
            if self._tracked:
                become_leaf(tensor)
            tensor._origin = self
            self._tensor = weakref.ref(tensor)
        return tensor

    def _used(self, tensor: TensorBase) -> Self:
        """This origin, ready to stand for its tensor when that is gone."""
        self._storage, self._layout = base.storage_of(tensor), base.layout_of(tensor)
        self._tracked = requires_grad(tensor)
        return self

    def _superseded(self, tensor: TensorBase) -> None:
        """Keep the values of the tensor, which is about to be written to."""
        self._storage = Storage(tensor._array.copy().reshape(-1))
        shape = tuple(tensor.shape)
        self._layout = Layout(shape, contiguous_strides(shape), 0)
        self._tensor = lambda: None  # as a dead weak reference

    def __repr__(self) -> str:
        return f"<{self.operation} at {self.file}, line {self.line}>"


def origin_of(x: TensorBase) -> Origin | None:
    """Where ``x`` comes from, if it was made or changed while a recording was on."""
    origin = getattr(x, "_origin", None)
    return origin if origin is not None and origin.operation else None


def _noted(x: TensorBase) -> Origin:
    if getattr(x, "_origin", None) is None:
        x._origin = Origin(x)
    return x._origin


# the code of all functions that these two give: users call what it stands in front of
_WRAPPERS = (seen_by_modes(print).__code__, explains_options(print).__code__)


def _user_frame() -> tuple[FrameType, FrameType]:
    """The innermost frame of the user's code, and that of the function it called."""
    callee = frame = sys._getframe(1)
    while frame.f_back is not None and is_library_code(frame):
        code = frame.f_code  # a comprehension belongs to its function
        if not (code.co_name.startswith("<") or code in _WRAPPERS):
            callee = frame
        frame = frame.f_back
    return frame, callee


class _Call:
    """The call from the user's code that is now running."""

    def __init__(self) -> None:
        frame, callee = _user_frame()
        code, found = callee.f_code, callee.f_locals
        self.file, self.line = frame.f_code.co_filename, frame.f_lineno
        self.operation = _name(code, found)
        self.tensors: list[Any] = []
        flags = bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args and **options
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]:
            value: Any = found.get(name)
            for each in value.values() if isinstance(value, dict) else (value,):
                if callable(getattr(type(each), "parameters", None)):  # a module takes them, too
                    each = tuple(each.parameters())
                several = each if isinstance(each, (tuple, list)) else (each,)
                self.tensors += [x for x in several if isinstance(x, TensorBase)]


_BETTER_NAMES = {
    "convert": "to",
    "get_data": "data",
    "iter": "unbind",
    "matmul_operator": "matmul",
    "rtruediv": "div",
}


def _name(code: CodeType, found: dict[str, Any]) -> str:
    """The name of the operation that a function of the library stands for.

    It is read from the function's variables: ``name`` of ``in_place``, ``make`` of ``factory``,
    ``definition`` of what ``@op`` makes, ``cls`` of ``Function.apply``. Other functions have it
    themselves, or in ``_BETTER_NAMES``.
    """
    function = code.co_name
    for variable in ("name", "make"):
        if variable in code.co_freevars:
            return str(getattr(found[variable], "__name__", found[variable]))
    if "definition" in found:
        return str(found["definition"].name)
    if function == "apply":
        return str(found["cls"].__name__)
    if function == "__call__":  # a module
        return type(found["self"]).__name__
    plain = function.strip("_") if function.startswith("__") else function
    return _BETTER_NAMES.get(plain, plain)


def why_untracked(operation: str, inputs: Any, result: TensorBase, grad: bool) -> str:
    if operation in ("detach", "data", "numpy", "item", "tolist"):
        return f"{operation} leaves the history behind"
    if operation in ("backward", "grad"):
        return "gradients are recorded only with create_graph=True"
    if state.inference:
        return "made in inference_mode"
    if not any(requires_grad(x) for x in inputs):
        return "no input requires grad" if inputs else "made without requires_grad=True"
    if not grad:
        return "made inside no_grad"
    if not result.dtype.is_floating_point:
        return f"its dtype is {result.dtype}: only floating-point numbers have gradients"
    if operation == "tensor":
        return "tensor copies values and leaves the history behind"
    return f"{operation} has no gradient, or its result was detached since"
