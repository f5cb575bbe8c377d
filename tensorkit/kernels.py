"""Kernels for GPUs: what takes NumPy several functions, in one launch, written in CUDA C.

Each is defined beside its NumPy form, which all other devices use, and is compiled when a GPU first
needs it. ``T`` stands for float or double.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

ALL: list["Kernel"] = []


class Kernel:
    """A kernel for CuPy: parameters as ``"T x, T y"``, then the statements that compute."""

    kind = "ElementwiseKernel"

    def __init__(self, name: str, inputs: str, outputs: str, *code: str) -> None:
        self.name, self.inputs, self.outputs, self.code = name, inputs, outputs, code
        ALL.append(self)

    def __call__(self, xp: Any, *arrays: Any, **options: Any) -> Any:
        """Launch it on arrays and numbers; arrays given for outputs are written to."""
        name = f"tensorkit_{self.name}"  # CUDA has an erf of its own
        make = getattr(xp, self.kind)
        return _made(make, self.inputs, self.outputs, *self.code, name)(*arrays, **options)


class Reduction(Kernel):
    """One along axes: what to take of each element, how two become one, and what is kept."""

    kind = "ReductionKernel"


@cache
def _made(make: Callable[..., Any], *told: str) -> Any:
    return make(*told)


def are_for(xp: Any, x: Any) -> bool:
    """Whether kernels run on this array."""
    return xp.__name__ == "cupy" and x.dtype.char in "fd"
