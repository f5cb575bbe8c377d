"""``explain.broadcast``: whether shapes fit together, and what would make them fit."""

from collections.abc import Iterator
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

from tensorkit import creation
from tensorkit.explain.explanation import Explanation, Repair
from tensorkit.viz._broadcast import Alignment, Operand, align, operands_from, picture

MOST_REPAIRS = 3


class Change(NamedTuple):
    """A change of one operand that makes the shapes fit."""

    code: str
    name: str
    shape: tuple[int, ...]
    result: tuple[int, ...]


def broadcast(*shapes_or_tensors: Any, **named: Any) -> Explanation:
    """Why shapes broadcast or do not, and the ``unsqueeze``, ``view`` or transpose that helps.

    Each repair was run before it is offered.

    >>> from tensorkit import explain
    >>> explain.broadcast((3, 4), (3,)).repairs
    ['b.unsqueeze(1)', 'a.T', 'a.unsqueeze(2)']
    """
    operands = operands_from("explain.broadcast", shapes_or_tensors, named)
    alignment = align(operands)
    names = " and ".join(f"{it.name} {it.shape}" for it in operands)
    title, sentences = f"{names} broadcast", _why_it_fits(alignment)
    changes = _changes(operands)
    effect = "if the elements are meant in pairs, {1} gets shape {2}"
    if alignment.wrong:
        title, effect = f"{names} do not broadcast", "{1} gets shape {2}, together {3}"
        sentences = ["Shapes are aligned at the right. Sizes fit if they are equal or one is 1."]
        sentences.append(f"{alignment.verdict}.")
        if not changes:
            sentences.append("No single unsqueeze, transpose or view makes these shapes fit.")
    elif _n_elements(alignment) > max([1, *(prod(it.shape) for it in operands)]):
        changes = [it for it in changes if it.result in (operands[0].shape, operands[-1].shape)]
    else:
        changes = []
    repairs = [Repair(it.code, effect.format(*it)) for it in changes]
    return Explanation(title, sentences, repairs, picture(alignment))


def _n_elements(alignment: Alignment) -> int:
    return prod(size or 0 for size in alignment.result)


def _why_it_fits(alignment: Alignment) -> list[str]:
    sentences = []
    for operand in alignment.operands:
        changes = [alignment.change(operand, axis) for axis in range(len(alignment.result))]
        stretched = [f"axis {axis}: {it}" for axis, it in enumerate(changes) if "→" in it]
        what = f"is stretched ({', '.join(stretched)})" if stretched else "stays as it is"
        sentences.append(f"{operand.name} {what}.")
    return [*sentences, f"The result has shape {tuple(alignment.result)}. Nothing is copied."]


def _changes(operands: list[Operand]) -> list[Change]:
    """Changes that were run and gave shapes that fit, the likeliest first."""
    found: list[Any] = []
    for number, operand in enumerate(operands):
        for rank, code in _ideas(operand, operands):
            x = operand.tensor
            x = creation.empty(()).expand(operand.shape) if x is None else x.detach()
            try:
                shape = tuple(eval(f"x{code}", {"x": x}).shape)
            except (RuntimeError, IndexError, TypeError, ValueError):
                continue
            after = [*operands[:number], Operand(operand.name, shape), *operands[number + 1 :]]
            alignment = align(after)
            if not alignment.wrong:
                result = tuple(size or 0 for size in alignment.result)
                change = Change(f"{operand.name}{code}", operand.name, shape, result)
                # the fewest new elements first: that is most often what was meant
                found.append(((prod(result), rank, -number, len(found)), change))
    different: dict[Any, Change] = {}
    for _, change in sorted(found, key=lambda pair: pair[0]):
        different.setdefault(change[1:], change)
    return list(different.values())[:MOST_REPAIRS]


def _ideas(operand: Operand, operands: list[Operand]) -> Iterator[tuple[int, str]]:
    """What might help: how far-fetched it is, and the code after the name."""
    n_dims = len(operand.shape)
    for dim in range(1, n_dims + 1):
        yield 0, f".unsqueeze({dim})"
    if n_dims == 2:
        yield 1, ".T"
    for first, second in combinations(range(n_dims), 2) if n_dims > 2 else ():
        yield 1, f".transpose({first}, {second})"
    for other in operands:
        if other is not operand and prod(other.shape) == prod(operand.shape):
            yield 2, f".view({', '.join(map(str, other.shape))})"
