"""CuPy on a GPU that is not its current one.

CuPy runs what it is asked on the thread's current device, wherever the arrays lie, and puts the
results there. So the arrays of another GPU are ``Array``, which hold CuPy's, and its array library
is ``There(cupy)``: both make their GPU the current one for the time of each call.
"""

import operator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorkit.wrapped import Wrapped

if TYPE_CHECKING:
    from tensorkit.gpu import Gpu


class There:
    """A module, a function or a kernel of CuPy, called on another GPU."""

    def __init__(self, what: Any, gpu: "Gpu") -> None:
        self._what, self._gpu = what, gpu

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._what, name)
        is_dtype = isinstance(found, type) and issubclass(found, np.generic)
        if isinstance(found, ModuleType) or (callable(found) and not is_dtype):
            found = There(found, self._gpu)
        self.__dict__[name] = found  # the next time it is not looked for
        return found

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _run(self._gpu, self._what, args, options)


def _run(gpu: "Gpu", function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    given = [_inside(value, gpu) for value in args]
    for name in options:
        options[name] = _inside(options[name], gpu)
    with gpu.device:
        return _outside(function(*given, **options), gpu)


def _inside(value: Any, gpu: "Gpu") -> Any:
    kind = value.__class__
    if kind is Array:
        if value.gpu is not gpu:
            raise ValueError(f"an array of GPU {value.gpu.index} is used on GPU {gpu.index}")
        return value.inner
    if kind is tuple or kind is list:
        return kind([_inside(each, gpu) for each in value])
    return value


def _outside(found: Any, gpu: "Gpu") -> Any:
    kind = found.__class__
    if kind is gpu.cupy.ndarray:
        return Array(found, gpu)
    if kind is tuple or kind is list:
        return kind([_outside(each, gpu) for each in found])
    return There(found, gpu) if callable(found) else found


class Array(Wrapped):
    """An array of CuPy on another GPU."""

    __slots__ = ("__weakref__", "gpu", "inner")

    def __init__(self, inner: Any, gpu: "Gpu") -> None:
        self.inner, self.gpu = inner, gpu

    def _do(self, name: str, function: Any, *args: Any) -> Any:
        return _run(self.gpu, function, (self, *args), {})

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return There(found, self.gpu) if callable(found) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        self._do("setitem", operator.setitem, index, value)

    def __repr__(self) -> str:
        return f"<array on GPU {self.gpu.index}, {self.dtype} {self.shape}>"


for _kind in (bool, int, float):
    setattr(Array, f"__{_kind.__name__}__", lambda self, kind=_kind: kind(self.inner))
for _name in ("shape", "dtype", "size", "ndim", "strides", "flags"):  # asked for most often
    setattr(Array, _name, property(operator.attrgetter(f"inner.{_name}")))
