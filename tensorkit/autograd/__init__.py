"""Automatic differentiation: what ``tk.autograd`` offers.

In the order of the list in ``tensorkit``: ``grad_mode`` says whether operations are recorded,
``node`` what a node is and how a result gets one, ``versions`` how views and writes are tied to
the graph. ``hooks`` has ``.grad`` and what else a tensor carries, ``recording`` notes where tensors
come from. ``function`` has operations of the user's own, and ``engine`` walks the graph backwards.
On top of it are ``functional`` (jacobian, hessian) and ``gradcheck`` (a comparison with finite
differences).
"""

from typing import Any

from tensorkit import absent

_HOME = {
    "Function": "function",
    "backward": "engine",
    "enable_grad": "grad_mode",
    "grad": "engine",
    "gradcheck": "_gradcheck",
    "inference_mode": "grad_mode",
    "no_grad": "grad_mode",
    "recording": "_recording",
    "set_grad_enabled": "grad_mode",
}

_MODULES = ("function", "functional")

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    # Looked up when asked: operations import `node`, and `engine` imports operations.
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"tensorkit.autograd.{name}")
    if name not in _HOME:
        raise AttributeError(absent.sentence("torch.autograd", name))
    home = importlib.import_module(f"tensorkit.autograd.{_HOME[name]}")
    found = globals()[name] = getattr(home, name)
    return found
