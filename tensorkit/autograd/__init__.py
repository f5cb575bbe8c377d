"""Automatic differentiation: what ``tk.autograd`` offers.

``modes`` says whether operations are recorded, ``rules`` what an operation's gradients are,
``graph`` what a record looks like, ``history`` how tensors, views and in-place writes are tied to
it, ``recorders`` how that goes fast, ``origins`` notes where tensors come from, ``engine`` walks
the graph backwards, ``differences`` compares its results with finite differences.
"""

from typing import Any

_HOME = {
    "Function": "function",
    "backward": "engine",
    "detect_anomaly": "anomaly",
    "enable_grad": "modes",
    "grad": "engine",
    "gradcheck": "differences",
    "gradgradcheck": "differences",
    "inference_mode": "modes",
    "no_grad": "modes",
    "recording": "origins",
    "set_detect_anomaly": "anomaly",
    "set_grad_enabled": "modes",
}

_MODULES = ("function", "functional")

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    # Looked up when asked: operations import `graph`, and `engine` imports operations.
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"tensorkit.autograd.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'tensorkit.autograd' has no attribute '{name}'")
    found = getattr(importlib.import_module(f"tensorkit.autograd.{_HOME[name]}"), name)
    globals()[name] = found  # the next time nobody asks here
    return found
