"""``tk.version``: which CUDA there is."""

from typing import Any

from tensorkit.devices import cuda as _cuda


def __getattr__(name: str) -> Any:
    # looked up when asked: to find the version means to import CuPy
    if name == "cuda":
        found = _cuda.backends()
        return found[0].cuda_version if found else None
    if name == "hip":
        return None
    raise AttributeError(f"module 'tensorkit.version' has no attribute {name!r}")
