"""``explain.broadcast``: whether shapes fit together, and what would make them fit."""

from collections.abc import Iterator
from itertools import combinations
from math import prod
from typing import Any

from tensorkit import creation
from tensorkit.explain.explanation import Explanation, Repair
from tensorkit.viz._broadcast import Alignment, Operand, align, operands_from, picture

MOST_REPAIRS = 3
MOST_ELEMENTS = 1_000_000


def broadcast(*shapes_or_tensors: Any, **named: Any) -> Explanation:
    """Why shapes broadcast or do not, and the ``unsqueeze``, ``view`` or transpose that helps.

    Each repair was run before it is offered.

    >>> from tensorkit import explain
    >>> explain.broadcast((3, 4), (3,)).repairs
    ['b.unsqueeze(1)', 'a.T', 'a.unsqueeze(2)']
    """
    operands = operands_from("explain.broadcast", shapes_or_tensors, named)
    alignment = align(operands)
    drawn = picture(alignment)
    names = " and ".join(f"{it.name} {it.shape}" for it in operands)
    if not alignment.wrong:
        sentences, repairs = _why_it_fits(alignment), []
        if 1 < _elements(tuple(alignment.result)) > max(_elements(it.shape) for it in operands):
            repairs = [
                Repair(code, f"if the elements are meant in pairs, {name} gets shape {shape}")
                for code, name, shape, result in _that_work(operands)
                if result == operands[0].shape or result == operands[-1].shape
            ]
        return Explanation(f"{names} broadcast", sentences, repairs, drawn)
    repairs = [
        Repair(code, f"{name} gets shape {shape}, together {result}")
        for code, name, shape, result in _that_work(operands)
    ]
    sentences = [
        "Shapes are aligned at the right. Two sizes fit if they are equal or one of them is 1.",
        f"{alignment.verdict}.",
    ]
    if not repairs:
        sentences.append(
            "No single unsqueeze, transpose or view makes these shapes fit: look at where the "
            "sizes come from."
        )
    return Explanation(f"{names} do not broadcast", sentences, repairs, drawn)


def _why_it_fits(alignment: Alignment) -> list[str]:
    sentences = []
    for operand in alignment.operands:
        new, stretched = [], []
        for axis, result in enumerate(alignment.result):
            size = alignment.size(operand, axis)
            if size is None:
                new.append(str(axis))
            elif size != result:
                stretched.append(f"{axis} from 1 to {result}")
        parts = []
        if new:
            parts.append(f"gets new axes on the left ({', '.join(new)})")
        if stretched:
            parts.append(f"is stretched along axis {' and '.join(stretched)}")
        sentences.append(f"{operand.name} {' and '.join(parts) or 'stays as it is'}.")
    return [*sentences, f"The result has shape {tuple(alignment.result)}. Nothing is copied."]


def _that_work(operands: list[Operand]) -> Iterator[tuple[str, str, tuple[int, ...], Any]]:
    """Repairs that were run and gave shapes that fit: code, name, new shape, result."""
    found: list[Any] = []
    for place, operand in enumerate(operands):
        for rank, code in _ideas(operand, operands):
            try:
                changed = eval(f"x{code}", {"x": _stand_in(operand)})
            except (RuntimeError, IndexError, TypeError, ValueError, NameError):
                continue
            after = list(operands)
            after[place] = Operand(operand.name, tuple(changed.shape))
            result = align(after)
            if not result.wrong:
                sizes = tuple(result.result)
                # the fewest new elements first: that is most often what was meant
                order = (_elements(sizes), rank, -place, len(found))
                told = (f"{operand.name}{code}", operand.name, tuple(changed.shape), sizes)
                found.append((order, told))
    offered: dict[Any, Any] = {}
    for _, repair in sorted(found, key=lambda pair: pair[0]):
        offered.setdefault(repair[1:], repair)
    yield from list(offered.values())[:MOST_REPAIRS]


def _elements(shape: tuple[int | None, ...]) -> int:
    return prod(size or 0 for size in shape)


def _ideas(operand: Operand, operands: list[Operand]) -> Iterator[tuple[int, str]]:
    """What might help, the plainest first: how far-fetched it is, and the code after the name."""
    n_dims = len(operand.shape)
    for dim in range(1, n_dims + 1):
        yield 0, f".unsqueeze({dim})"
    if n_dims == 2:
        yield 1, ".T"
    for first, second in combinations(range(n_dims), 2) if n_dims > 2 else ():
        yield 1, f".transpose({first}, {second})"
    for other in operands:
        if other is not operand and _elements(other.shape) == _elements(operand.shape):
            yield 2, f".view({', '.join(map(str, other.shape))})"


def _stand_in(operand: Operand) -> Any:
    """A tensor to try a repair on: the operand itself, or an empty one of its shape."""
    if operand.tensor is not None:
        return operand.tensor.detach()
    if _elements(operand.shape) <= MOST_ELEMENTS:
        return creation.empty(operand.shape)
    return creation.empty(()).expand(operand.shape)  # no memory; views of it that copy are refused
