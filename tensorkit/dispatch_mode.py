"""``tk.utils.DispatchMode``: a block in which code of yours is called in place of every operation.

Autograd is above a mode and what computes is below it, as in PyTorch: what ``__torch_dispatch__``
gives back gets the history, and the operations that it calls are not recorded. While a mode is on
the direct path of ``tensorkit.dispatch`` is closed, and formulas of gradients compute on tensors.
"""

import functools
from typing import Any, Self

from tensorkit import direct_path
from tensorkit.absent import call_again
from tensorkit.base import TensorBase
from tensorkit.errors import message, type_name
from tensorkit.overrides import AnyFunction, replaced
from tensorkit.thread_state import state


class DispatchMode:
    """Context in which every operation calls the method ``__torch_dispatch__`` of a subclass.

    PyTorch's ``TorchDispatchMode``. ``func`` is the operation, ``func.__name__`` its name;
    ``args`` and ``kwargs`` are those of the call, ``types`` is empty: tensors have one class here.
    ``func(*args, **kwargs)`` computes it, without this mode. Of modes inside of one another the
    innermost is called first. A mode belongs to a thread.

    The operations of gradient formulas are seen, too, sums and casts of gradients. What is returned
    for an operation that is no view is copied if it shares memory with an argument. Indexing,
    copies, joins, new tensors, writes in place and an optimizer's step are seen above autograd:
    what ``func`` gives has its history already.

    >>> class Names(tk.utils.DispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> x = tk.tensor([1., 2.], requires_grad=True)
    >>> with Names():
    ...     (x * x).sum().backward()
    mul
    sum
    expand
    mul
    mul
    add
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a call of ``func`` gives."""
        repair = "def __torch_dispatch__(self, func, types, args=(), kwargs=None): ..."
        raise NotImplementedError(message(f"{type(self).__name__} lacks a method", repair=repair))

    def __enter__(self) -> Self:
        state.dispatch_modes = (*state.dispatch_modes, self)
        direct_path.close()
        return self

    def __exit__(self, *error: object) -> None:
        at = len(state.dispatch_modes) - 1 - state.dispatch_modes[::-1].index(self)
        state.dispatch_modes = state.dispatch_modes[:at] + state.dispatch_modes[at + 1 :]
        direct_path.reopen()


def through_modes(func: Any, args: Any, kwargs: Any, *, records: bool) -> Any:
    """What the innermost mode makes of a call; ``records``: whether ``func`` does so itself.

    TypeError if it gives something else than tensors for an operation that is recorded afterwards.
    """
    outer, mode = state.dispatch_modes[:-1], state.dispatch_modes[-1]
    # the mode has closed the direct path
    with replaced(state, closes_path=False, dispatch_modes=outer, grad=state.grad and records):
        found = mode.__torch_dispatch__(func, (), args, kwargs)
    for each in found if isinstance(found, tuple) else (found,):
        if not (records or isinstance(each, TensorBase)):
            first = f"{type(mode).__name__} gives {type_name(each)}, no Tensor, for {func.__name__}"
            raise TypeError(message(first, repair="return func(*args, **(kwargs or {}))"))
    return found


def seen_by_modes(function: AnyFunction) -> AnyFunction:
    """Let modes see a function that is no operation of ``@op``."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not direct_path.is_open and state.dispatch_modes:
            return through_modes(call, args, options, records=True)
        try:
            return function(*args, **options)
        except TypeError as error:
            return call_again(function, args, options, error)

    return call  # type: ignore[return-value]
