"""Whether operations are recorded: ``no_grad``, ``enable_grad``, ``inference_mode``.

A mode belongs to a thread. Each of these is a context and a decorator; on leaving, also through
an error, the mode is what it was before.
"""

import inspect
from contextlib import ContextDecorator
from typing import Any, Self

from tensorkit import direct_path
from tensorkit.errors import NotSupportedError, must_be
from tensorkit.thread_state import state


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded.

    >>> with tk.no_grad():
    ...     tk.is_grad_enabled()
    False
    """
    return state.grad


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on.

    >>> tk.is_inference_mode_enabled()
    False
    """
    return state.inference


class _Mode(ContextDecorator):
    """A change of mode: a context, or a decorator whose function runs inside it."""

    _grad: bool
    _inference: bool | None = None  # None leaves it as it is
    _before: list[tuple[bool, bool]]  # a stack: one object may be entered twice

    def __new__(cls, function: Any = None) -> Self:
        """The context; or, as a decorator without brackets, the decorated function."""
        made: Any = object.__new__(cls)
        made._before = []
        return made if function is None else made(function)

    def __enter__(self) -> Self:
        self._before.append((state.grad, state.inference))
        _set(self._grad, self._inference)
        return self

    def __exit__(self, *error: object) -> None:
        _set(*self._before.pop())

    def __call__(self, function: Any) -> Any:
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & inspect.CO_GENERATOR:
            raise NotSupportedError(
                "the mode of a generator would be left before its first value",
                repair="with tk.no_grad(): inside the generator",
            )
        return super().__call__(function)


def _set(grad: bool, inference: bool | None) -> None:
    state.grad = grad
    if inference is not None and inference != state.inference:
        state.inference = inference
        direct_path.close() if inference else direct_path.reopen()


class no_grad(_Mode):
    """Context or decorator in which no operation is recorded.

    >>> x = tk.ones(2, requires_grad=True)
    >>> with tk.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _grad = False


class enable_grad(_Mode):
    """Context or decorator in which operations are recorded, also inside ``no_grad``.

    >>> x = tk.ones(2, requires_grad=True)
    >>> with tk.no_grad(), tk.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    _grad = True


class set_grad_enabled(_Mode):
    """Turn recording on or off, at once; as a context, until its end.

    >>> with tk.set_grad_enabled(False):
    ...     tk.is_grad_enabled()
    False
    """

    def __new__(cls, mode: bool) -> Self:
        """The context; the mode holds from now on."""
        if not isinstance(mode, bool):
            raise must_be("set_grad_enabled", "enabled", 1, "bool", mode)
        made = super().__new__(cls)
        made._grad = mode
        return _Mode.__enter__(made)

    def __enter__(self) -> Self:
        if not self._before:  # entered a second time
            return super().__enter__()
        state.grad = self._grad
        return self

    def __call__(self, function: Any) -> Any:
        self.__exit__()  # a decorator changes nothing outside its function
        return super().__call__(function)


class inference_mode(_Mode):
    """Like ``no_grad``; and what it makes can never require grad, views of older tensors aside.

    >>> with tk.inference_mode():
    ...     y = tk.ones(2) * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Self:
        """The context; or, as ``@inference_mode`` without brackets, the decorated function."""
        made: Any = super().__new__(cls)
        made._inference = mode is not False
        made._grad = not made._inference
        return made if isinstance(mode, bool) else made(mode)
