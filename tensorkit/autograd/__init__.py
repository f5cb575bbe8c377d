"""Automatic differentiation: what ``tk.autograd`` offers.

To be read in this order: ``modes`` says whether operations are recorded, ``rules`` what an
operation's gradients are, ``marks`` what is known of a tensor, ``graph`` what a record looks like,
``saved`` how it refuses what was changed, ``history`` how tensors, views and in-place writes are
tied to it; ``engine`` walks the graph backwards.

Around them: ``leaves`` (``.grad`` and what else a leaf has), ``hooks``, ``anomaly``, ``origins``
(where tensors come from), ``function`` (operations of the user's own), ``functional`` (jacobian,
hessian), ``differences`` (a comparison with finite differences).
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
