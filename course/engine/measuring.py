"""How an answer computes, measured while it runs: for demands that no value shows."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from typing import Any

import tensorkit as tk
from course.notebook.plain import Opaque
from tensorkit.overrides import original, override

PRODUCTS = {"mul", "mul_", "mm", "bmm", "mv", "dot", "addmm", "_einsum"}
"""The operations that multiply the elements of two tensors."""

SLIGHTLY = 1 + 2e-6
"""A factor that shows in float32, and passes where numbers are compared by `allclose`."""

MOST_WALKS = 20
"""Walks of which each is doubled alone."""

_counted = itertools.count(1)


class Work(tk.utils.DispatchMode):
    """Notes the operations and the backward passes of what runs within it."""

    def __init__(self) -> None:
        self.walks = 0
        self.fresh = 0
        self.largest = 0
        self.lengths = set[int]()
        self.factors: list[list[int]] = []
        self._made: dict[int, int] = {}

    def walks_noted(
        self, factor: float = 1, only: int | None = None
    ) -> contextlib.AbstractContextManager[Any]:
        """Context that counts backward passes, each from `factor` times the gradient it is given.

        only: the number of the walk, from 0, to which `factor` is confined.
        """
        replaced = original("first_gradient")

        def first_gradient(root: tk.Tensor, given: Any, position: int) -> tk.Tensor:
            self.fresh += self._made.get(id(root), 0) > 0
            self.walks += position == 0
            is_multiplied = only is None or self.walks == only + 1
            return replaced(root, given, position) * (factor if is_multiplied else 1)

        return override("first_gradient", first_gradient)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, tk.Tensor):
            self.largest = max(self.largest, result.numel())
            self._made[id(result)] = self.walks
            if result.dim() > 1 or any(tensor.requires_grad for tensor in _tensors(args)):
                self.lengths.update(result.shape)
        sizes = [tensor.numel() for tensor in args if isinstance(tensor, tk.Tensor)]
        if len(sizes) > 1 and func.__name__ in PRODUCTS:
            self.factors.append(sizes[-2:])
        return result


def measured(answer: Any, *args: Any) -> tuple[Any, dict[str, Any]]:
    """What an answer returns, and how it came to that.

    walks: how often it has gone back through a graph. largest: the elements of the largest tensor
    that an operation made. fresh: how many walks begin at what was computed after another walk.
    lengths: the sizes of the dimensions of matrices, and of what comes of a tensor that requires
    grad. factors: of each product of two tensors, the elements of these.
    written: of each tensor among the arguments, how many writes its version counts.
    doubled: what the answer returns where every backward pass begins with twice the gradient; `...`
    where that says nothing: the result was kept from the first call, or the answer compares its
    gradient with other numbers and raises.
    alone: for each of several walks what the answer returns where that one alone begins with twice
    the gradient.
    """
    if isinstance(answer, Opaque):  # it is in another process
        result: tuple[Any, dict[str, Any]] = answer.call_there("measured", *args)  # type: ignore[attr-defined]
        return result
    work = Work()
    kept = _copied(args)
    tensors = _tensors(args)
    before = [tensor._version for tensor in tensors]
    with work.walks_noted(), work:
        result = answer(*args)
    written = [tensor._version - old for tensor, old in zip(tensors, before, strict=True)]
    doubled = _again(answer, kept, work.walks, 2)
    if doubled is ... and work.walks:
        slightly = _again(answer, kept, work.walks, SLIGHTLY)
        if slightly is not ... and _are_same(result, slightly):
            doubled = slightly
    repeated = range(work.walks) if 1 < work.walks <= MOST_WALKS else ()
    alone = [_again(answer, kept, work.walks, 2, only=walk) for walk in repeated]
    noted = {"walks": work.walks, "largest": work.largest, "factors": work.factors}
    noted |= {"fresh": work.fresh, "lengths": sorted(work.lengths), "written": written}
    return result, {**noted, "doubled": doubled, "alone": alone}


def launched(answer: Any, *args: Any) -> tuple[Any, list[tuple[int, int, int]]]:
    """What an answer returns, and for each kernel that it launches on the simulated device:
    the threads, the elements that they fill, and the most that one of them fills.
    """
    if isinstance(answer, Opaque):
        result: tuple[Any, Any] = answer.call_there("launched", *args)  # type: ignore[attr-defined]
        return result
    with tk.cuda.profile() as launches:
        value = answer(*args)
    filled = []
    for launch in launches:
        touched = launch.log.touched.values() if launch.log else ()
        writers = [
            access[:2] for element in touched for access in element.values() if "writes" in access
        ]
        threads = math.prod(launch.blocks) * math.prod(launch.threads)
        filled.append((threads, len(writers), max(Counter(writers).values(), default=0)))
    return value, filled


MEASURES = measured, launched
"""What measures an answer in the process in which it runs."""


def _again(answer: Any, args: Any, walks: int, factor: float, only: int | None = None) -> Any:
    """What the answer returns where backward passes begin with `factor` times the gradient.

    only: the number of the walk that does. `...` where it raises, or no longer goes back.
    """
    work = Work()
    with contextlib.suppress(Exception), work.walks_noted(factor, only):
        result = answer(*_copied(args, 1 + (1 + next(_counted) % 1000) * 1e-14))
        return result if work.walks or not walks else ...
    return ...


def _are_same(result: Any, repeated: Any) -> bool:
    """Whether no number of two results differs as much as by `SLIGHTLY`, in a dtype that has it."""
    numbers, repeated_numbers = _numbers(result), _numbers(repeated)
    if len(numbers) != len(repeated_numbers):
        return False
    return all(
        math.isclose(a, b, rel_tol=5e-7) for a, b in zip(numbers, repeated_numbers, strict=True)
    )


def _numbers(value: Any) -> list[float]:
    if isinstance(value, tk.Tensor):
        is_fine = value.dtype in (tk.float32, tk.float64)
        return value.detach().flatten().tolist() if is_fine else [math.nan]
    if isinstance(value, list | tuple):
        return [number for entry in value for number in _numbers(entry)]
    return [value] if isinstance(value, int | float) else [math.nan]


def _tensors(value: Any) -> list[Any]:
    entries = value if isinstance(value, list | tuple) else ()
    tensors = [tensor for entry in entries for tensor in _tensors(entry)]
    return [value] if isinstance(value, tk.Tensor) else tensors


def _copied(value: Any, factor: float = 1) -> Any:
    """A copy. Numbers of Python are multiplied, so that no answer knows them from another call."""
    if isinstance(value, list | tuple):
        return type(value)(_copied(entry, factor) for entry in value)
    if isinstance(value, tk.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value * factor if isinstance(value, float) else value
