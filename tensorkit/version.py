"""``tk.version``: which CUDA there is."""

from typing import Any

from tensorkit.devices import find_backend


def __getattr__(name: str) -> Any:
    # looked up when asked: to find the version means to import CuPy
    if name != "cuda":
        raise AttributeError(f"module 'tensorkit.version' has no attribute {name!r}")
    backend = find_backend("cuda")
    return None if backend is None else backend.cuda_version
