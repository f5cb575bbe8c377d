"""Trying a repair before it is offered: small stand-ins for the tensors in question."""

from collections.abc import Callable
from typing import Any

from tensorkit import creation
from tensorkit.autograd.modes import enable_grad, inference_mode
from tensorkit.base import Tensor
from tensorkit.explain.explanation import Repair
from tensorkit.viz import words


def works(attempt: Callable[[], Any]) -> bool:
    """Whether an attempt runs, recorded by autograd, and gives neither None nor False."""
    try:
        with words.unseen(), inference_mode(False), enable_grad():
            return attempt() not in (None, False)
    except Exception:
        return False


def offered(*candidates: tuple[str, str, Callable[[], Any]]) -> list[Repair]:
    """The repairs (code, effect, attempt) whose attempt works."""
    return [Repair(code, effect) for code, effect, attempt in candidates if works(attempt)]


def stand_in(x: Tensor) -> Tensor:
    """A tensor of one element with the dtype and the number of dimensions of ``x``."""
    return creation.ones((1,) * x.ndim, dtype=x.dtype)


def gets_gradient(leaf: Tensor) -> bool:
    """Whether backward through a product reaches ``leaf``."""
    (leaf * 2).sum().backward()
    return leaf.grad is not None
