"""How an answer computes, measured while it runs: for demands that no value shows."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorkit as tk
from course.notebook.plain import Opaque
from tensorkit.overrides import original, override


class Work(tk.utils.DispatchMode):
    """Notes the operations and the walks back of what runs within it."""

    def __init__(self) -> None:
        self.walks = 0
        self.largest = 0
        self.factors: list[list[int]] = []

    def walks_noted(self, factor: float = 1) -> contextlib.AbstractContextManager[Any]:
        """Context that counts walks back, each from `factor` times the gradient it is given."""
        own = original("first_gradient")

        def first_gradient(root: tk.Tensor, given: Any, position: int) -> tk.Tensor:
            self.walks += position == 0
            return own(root, given, position) * factor

        return override("first_gradient", first_gradient)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, tk.Tensor):
            self.largest = max(self.largest, result.numel())
        sizes = [each.numel() for each in args if isinstance(each, tk.Tensor)]
        if len(sizes) > 1 and func.__name__ != "setitem":
            self.factors.append(sizes)
        return result


def measured(answer: Any, *args: Any) -> tuple[Any, dict[str, Any]]:
    """What an answer returns, and how it came to that.

    walks: how often it has gone back through a graph. largest: the elements of the largest tensor
    that an operation made. factors: of each operation on several tensors, the elements of these.
    written: of each tensor among the arguments, how many writes its version counts.
    doubled: what the answer returns where every walk back begins with twice the gradient; `...`
    where it raises then, as one does that compares its gradient with other numbers.
    """
    if isinstance(answer, Opaque):  # it is in another process
        found: tuple[Any, dict[str, Any]] = answer.there("measured", *args)  # type: ignore[attr-defined]
        return found
    work, again, doubled = Work(), _copied(args), ...
    tensors = _tensors(args)
    before = [each._version for each in tensors]
    with work.walks_noted(), work:
        result = answer(*args)
    written = [each._version - old for each, old in zip(tensors, before, strict=True)]
    with contextlib.suppress(Exception), Work().walks_noted(factor=2):
        doubled = answer(*again)
    noted = {"walks": work.walks, "largest": work.largest, "factors": work.factors}
    noted["written"] = written
    return result, {**noted, "doubled": doubled}


def _tensors(value: Any) -> list[Any]:
    entries = value if isinstance(value, list | tuple) else ()
    found = [tensor for entry in entries for tensor in _tensors(entry)]
    return [value] if isinstance(value, tk.Tensor) else found


def _copied(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    if isinstance(value, tk.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value
