"""The device "counting" of chapter 11: NumPy, with a count of every call that computes something.

Its arrays are a subclass of NumPy's, by which tensorkit recognises the device. Its library has the
functions of NumPy, wrapped so that each call is counted. The learner writes the function that says
what a call costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from tensorkit.devices import Backend

Shape = tuple[int, ...]
Cost = Callable[[str, list[Shape], Shape], tuple[int, int]]
WORDS = {"add.reduce": "sum", "maximum.reduce": "max"}


class CountingArray(np.ndarray[Any, Any]):
    """An array of the device; operators and functions on it are counted."""

    backend: Counting

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        return self.backend.run(name, getattr(ufunc, method), args, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return self.backend.run(function.__name__, function, args, options)


class _Library(ModuleType):
    """NumPy's functions, whose results are arrays of the device."""

    ndarray = CountingArray

    def __init__(self, backend: Counting) -> None:
        super().__init__("counting")
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if isinstance(function, (type, ModuleType, np.ufunc)) or not callable(function):
            return function
        return lambda *args, **options: self._backend.run(name, function, args, options)


class Counting(Backend):
    """The backend: what `tk.register_device("counting", lambda: backend)` is given.

    cost(name, shapes, shape): operations and elements moved by a call of NumPy's function `name` on
    arrays of these shapes, whose result has the shape `shape`. `flops` and `moved` add them up by
    name, `calls` counts.
    """

    kind = "counting"

    def __init__(self, cost: Cost) -> None:
        self.array = type("CountingArray", (CountingArray,), {"backend": self})
        self.cost, self.problem = cost, ""
        self.calls, self.flops, self.moved = Counter[str](), Counter[str](), Counter[str]()
        super().__init__(_Library(self))

    def run(self, name: str, function: Any, args: Any, options: Any) -> Any:
        """A function of NumPy's on arrays of the device, counted."""
        given = [array for array in _arrays((args, options)) if isinstance(array, CountingArray)]
        result = function(*_plain(args), **_plain(options))
        out = options.get("out")
        made = self._of_device(result) if out is None else out[0] if type(out) is tuple else out
        if given and isinstance(made, np.ndarray) and not _shares(made, given):
            name = WORDS.get(name, name)
            shapes = [tuple(array.shape) for array in given]
            self.calls[name] += 1
            try:
                flops, moved = self.cost(name, shapes, tuple(made.shape))
                self.flops[name] += flops
                self.moved[name] += moved
            except Exception as error:  # the learner's function, perhaps not written yet
                self.problem = f"{type(error).__name__}: {error}"
        return made

    def _of_device(self, result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return type(result)(map(self._of_device, result))
        is_array = isinstance(result, (np.ndarray, np.generic))
        return np.asarray(result).view(self.array) if is_array else result

    def product(self, x: Any, y: Any) -> Any:
        """The product of matrices and vectors."""
        return np.matmul(x, y)

    def device_assert(self, fine: Any, mistake: str) -> None:
        """Raise unless all of `fine` is true."""
        if not np.asarray(fine.view(np.ndarray)).all():
            raise IndexError(mistake)

    def device_assert_inside(self, indices: Any, low: int, high: int, mistake: str) -> None:
        """Raise unless all integers lie in [low, high)."""
        at = indices.view(np.ndarray)
        self.device_assert((at >= low) & (at < high), mistake)

    def asarray(self, value: Any) -> Any:
        """A result as an array of the device."""
        return np.asarray(value).view(self.array)

    def from_host(self, array: Any, reason: str = "to") -> Any:
        """A copy in the device's memory."""
        return array.copy(order="K").view(self.array)

    def to_host(self, array: Any, reason: str = "to") -> Any:
        """A copy in the host's memory."""
        return np.array(array, order="K", subok=False)

    def __repr__(self) -> str:
        lines = [f"{'function':22}{'calls':>7}{'operations':>14}{'elements moved':>17}"]
        for name, calls in sorted(
            self.calls.items(), key=lambda entry: (-self.flops[entry[0]], entry)
        ):
            lines.append(f"{name:22}{calls:>7,}{self.flops[name]:>14,}{self.moved[name]:>17,}")
        total = f"{sum(self.calls.values()):>7,}{sum(self.flops.values()):>14,}"
        lines.append(f"{'all':22}{total}{sum(self.moved.values()):>17,}")
        if self.problem:
            lines.append(f"The function that says what a call costs stopped: {self.problem}")
        return "\n".join(lines)


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [array for entry in value for array in _arrays(entry)]
    return [value]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value))
    return value.view(np.ndarray) if isinstance(value, CountingArray) else value


def _shares(made: Any, given: list[Any]) -> bool:
    """Whether a result is a view: nothing was computed."""
    return any(made is not array and np.shares_memory(made, array) for array in given)
